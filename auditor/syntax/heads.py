"""The heads of most functions, read without a syntax tree for each.

A release has sixty thousand parameters, and few of them differ: each that does is read once. A list
of parameters is taken apart at its commas. Annotations and default values are then judged by the
parser, each on its own, and the order of the parameters by the grammar (*Function definitions* in
the Python reference). A head that has more to it is left to the parser as a whole.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from keyword import iskeyword
from typing import NamedTuple

from auditor.facts import Expr, Name
from auditor.syntax.names import names_read
from auditor.syntax.parsing import parse

#: Stands for each byte of a string in ASCII without backslashes: whatever it says, it is right.
COVER = b"\0"
#: An annotation longer than this many bytes is left to the parser: it may be nested deeply.
_LONGEST = 300
#: How many heads, parameters, annotations and default values are remembered, of each.
_REMEMBERED = 1 << 15

_STRING = re.compile(COVER + rb"+")
#: The prefix of a string may make it one that evaluates something.
_PREFIXED = re.compile(rb"\w" + COVER)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: What each parameter is, in the order of the grammar: without a default value (``p``), with one
#: (``d``), a star alone, ``*args`` (``a``), ``**kwargs`` (``k``).
_ORDER = re.compile(r"p*d*(\*[pd]+|a[pd]*)?k?")
#: The kind of a parameter with a name, by the number of its stars and whether it has a default.
_KINDS = {(0, False): "p", (0, True): "d", (1, False): "a", (2, False): "k"}


class Head(NamedTuple):
    """What running a ``def`` evaluates, none of which calls anything.

    Attributes:
        defaults: the dotted names that default values read, in order.
        annotations: the dotted names that annotations read, in order.
        late: the default values that are names, each with its parameter.
    """

    defaults: tuple[str, ...]
    annotations: tuple[str, ...]
    late: tuple[tuple[str, Expr], ...]


@lru_cache(_REMEMBERED)
def read_head(parameters: bytes, result: bytes | None) -> Head | None:
    """What the head of a function says; None where the parser has to be asked.

    Args:
        parameters: what stands between the parentheses: ASCII, with no further parentheses and so
            without calls, with no comments, and with strings covered.
        result: what stands behind the arrow, if there is one; the same holds of it.
    """
    read = [_parameter(piece.strip()) for piece in _pieces(parameters)]
    returned = () if result is None else _annotation(result.strip())
    known = [parameter for parameter in read if parameter is not None]
    in_order = _ORDER.fullmatch("".join([kind for kind, _ in known]))
    if returned is None or len(known) < len(read) or not in_order:
        return None
    heads = [head for _, head in known if head is not None]
    return Head(
        tuple([name for head in heads for name in head.defaults]),
        tuple([name for head in heads for name in head.annotations]) + returned,
        tuple([value for head in heads for value in head.late]),
    )


def is_identifier(name: str) -> bool:
    """Whether a name may be bound: it is no keyword, and of letters that all releases know."""
    return _IDENTIFIER.fullmatch(name) is not None and not iskeyword(name)


def _pieces(parameters: bytes) -> list[bytes]:
    """The parameters: what commas that stand in no brackets part; the last comma may be idle."""
    pieces = parameters.split(b",")
    if not pieces[-1].strip():
        pieces.pop()
    return _rejoined(pieces) if b"[" in parameters else pieces


def _rejoined(pieces: list[bytes]) -> list[bytes]:
    """Pieces between commas, those that brackets hold together as one."""
    whole: list[bytes] = []
    held = b""
    for piece in pieces:
        held = held + b"," + piece if held else piece
        if held.count(b"[") == held.count(b"]"):
            whole.append(held)
            held = b""
    return [*whole, held] if held else whole


@lru_cache(_REMEMBERED)
def _parameter(piece: bytes) -> tuple[str, Head | None] | None:
    """The kind of a parameter, and what it evaluates, if anything; None where it is not plain."""
    if piece == b"*":
        return "*", None
    declared, has_default, value = piece.partition(b"=")
    starred, has_annotation, annotation = declared.partition(b":")
    bare = starred.lstrip(b"*")
    kind = _KINDS.get((len(starred) - len(bare), bool(has_default)))
    name = bare.strip().decode()
    read = _annotation(annotation.strip()) if has_annotation else ()
    default = _default(value.strip()) if has_default else ()
    if kind is None or not is_identifier(name) or read is None or default is None:
        return None
    if not has_annotation and not has_default:
        return kind, None
    late = tuple((name, Name(dotted)) for dotted in default if "." not in dotted)
    return kind, Head(default, read, late)


@lru_cache(_REMEMBERED)
def _annotation(text: bytes) -> tuple[str, ...] | None:
    """The dotted names that an annotation reads; None where it is not plain."""
    statement = _statement(b"_: ", text)
    if not isinstance(statement, ast.AnnAssign) or statement.value is not None:
        return None
    return tuple(names_read(statement.annotation, []))


@lru_cache(_REMEMBERED)
def _default(text: bytes) -> tuple[str, ...] | None:
    """The name that a default value is, dotted or not; none of a constant, None of all others."""
    match _statement(b"_ = ", text):
        case ast.Assign(targets=[_], value=ast.Constant() | ast.UnaryOp(operand=ast.Constant())):
            return ()
        case ast.Assign(targets=[_], value=ast.Name(id=name)):
            return (name,)
        case ast.Assign(targets=[_], value=ast.Attribute() as value) if b"[" not in text:
            return tuple(names_read(value, []))
        case _:
            return None


def _statement(start: bytes, text: bytes) -> ast.stmt | None:
    """The one statement that an expression of a head is the end of; None where it is not plain."""
    if len(text) > _LONGEST or _PREFIXED.search(text):
        return None
    # Lines may end anywhere between parentheses, but not in a statement.
    tree = parse(start + b" ".join(_STRING.sub(b'""', text).split()))
    return tree.body[0] if isinstance(tree, ast.Module) and len(tree.body) == 1 else None
