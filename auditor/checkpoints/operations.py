"""Operations that Python itself performs on values, within bounds of size.

What a configuration or a tree says must not cost more than a bounded amount of memory or time: an
operation whose result could be large is not followed.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sized

from auditor.checkpoints.values import CannotFollow, Raised, Unknown, Value
from auditor.values import Place

#: No text, container or range of the run has more parts than this.
MAX_SIZE = 1_000_000
_MAX_BITS = 100_000
_WIDE = re.compile(r"\d{5,}")
_DATA = (type(None), bool, int, float, complex, str, bytes)

BINARY: Mapping[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.BitXor: operator.xor,
}  # fmt: skip
IN_PLACE: Mapping[type[ast.operator], Callable[[Value, Value], Value]] = {
    **BINARY, ast.Add: operator.iadd, ast.BitOr: operator.ior, ast.Mult: operator.imul,
}  # fmt: skip
UNARY: Mapping[type[ast.unaryop], Callable[[Value], Value]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip


def native(where: Place | None, function: Callable[..., Value], *args: Value, **kw: Value) -> Value:
    """What Python gives for an operation; what it raises becomes :class:`Raised`."""
    try:
        return function(*args, **kw)
    except (RecursionError, MemoryError) as error:
        raise CannotFollow(f"a {type(error).__name__} of the tool", where) from error
    except Exception as error:
        raise Raised(error, where) from error
    except CannotFollow as problem:
        problem.where = problem.where or where
        raise


def bounded(size: int) -> None:
    """Refuse a result that could be larger than is followed.

    Raises:
        CannotFollow: it could.
    """
    if size > MAX_SIZE:
        raise CannotFollow(f"a value of more than {MAX_SIZE} parts")


def size_of(value: Value) -> int:
    """The number of parts of a text or container; 1 of anything else."""
    return len(value) if isinstance(value, Sized) and not isinstance(value, Unknown) else 1


def check_binary(op: ast.operator, left: Value, right: Value) -> None:
    """Refuse an operation whose result could be large."""
    numbers = isinstance(left, int) and isinstance(right, int)
    match op:
        case ast.Mult() if numbers:
            _bits(left.bit_length() + right.bit_length())
        case ast.Mult() if isinstance(left, int) or isinstance(right, int):
            count, parts = (left, right) if isinstance(left, int) else (right, left)
            bounded(size_of(parts) * max(count, 1))
        case ast.Pow() if numbers:
            _bits(max(left.bit_length(), 1) * abs(right))
        case ast.LShift() if numbers:
            _bits(left.bit_length() + max(right, 0))
        case ast.Add() | ast.BitOr() if not numbers:
            bounded(size_of(left) + size_of(right))
        case ast.Mod() if isinstance(left, str):
            check_format(left, right)
        case _:
            return


def _bits(count: int) -> None:
    if count > _MAX_BITS:
        raise CannotFollow(f"a number of more than {_MAX_BITS} bits")


def check_format(text: str, *args: Value) -> None:
    """Refuse to format what is no data, or to a width that could be large."""
    if _WIDE.search(text):
        raise CannotFollow("text is formatted to a large width")
    for one in args:
        if not is_data(one):
            raise CannotFollow("the text of an object is not computed")


def is_data(value: Value, depth: int = 0) -> bool:
    """Whether a value is made of Python's own constants and containers alone."""
    if type(value) in _DATA or (isinstance(value, type) and value.__module__ == "builtins"):
        return True
    if depth > 100:
        return False
    if isinstance(value, BaseException):
        return all(is_data(one, depth + 1) for one in value.args)
    match value:
        case dict():
            return all(is_data(k, depth + 1) and is_data(v, depth + 1) for k, v in value.items())
        case list() | tuple() | set() | frozenset():
            return all(is_data(one, depth + 1) for one in value)
        case _:
            return type(value) in (type({}.keys()), type({}.values()), type({}.items())) and all(
                is_data(one, depth + 1) for one in value
            )


def formatted(value: Value, conversion: int, spec: str) -> str:
    """``f"{value!conversion:spec}"``; a set in the order of its parts' text, which is always one.

    Raises:
        CannotFollow: the value is no data, or the text could be large.
    """
    check_format(spec, value)
    if isinstance(value, set | frozenset) and value and not spec:
        inner = "{" + ", ".join(sorted(map(repr, value))) + "}"
        return inner if isinstance(value, set) else f"frozenset({inner})"
    convert = _CONVERSIONS.get(conversion)
    return format(value if convert is None else convert(value), spec)


#: ``!s``, ``!r`` and ``!a`` of a part of an f-string (``ast.FormattedValue``).
_CONVERSIONS: Mapping[int, Callable[[Value], str]] = {115: str, 114: repr, 97: ascii}


# --- methods of Python's own types

_WIDTHS = frozenset({"ljust", "rjust", "center", "zfill", "expandtabs"})
_GROWING = frozenset({"extend", "update", "append", "insert", "add", "union", "__ior__"})
_METHODS_OF: tuple[type, ...] = (
    str, bytes, int, float, bool, type(None), list, tuple, dict, set, frozenset,
    type({}.keys()), type({}.values()), type({}.items()), range,
)  # fmt: skip


def has_native_methods(value: Value) -> bool:
    """Whether Python's own methods of a value may be looked up."""
    return type(value) in _METHODS_OF


def check_method(owner: Value, name: str, args: tuple[Value, ...]) -> None:
    """Refuse a call of a method of a Python type whose result could be large."""
    if isinstance(owner, str | bytes):
        if name in ("format", "format_map") and isinstance(owner, str):
            check_format(owner, *args)
        elif name in _WIDTHS:
            bounded(max((one for one in args if isinstance(one, int)), default=0))
        elif name == "replace" and len(args) > 1:
            bounded((len(owner) + 1) * (size_of(args[1]) + 1))
        elif name == "join" and args and isinstance(args[0], list | tuple):
            bounded(sum(map(size_of, args[0])) + len(owner) * len(args[0]))
    elif name in _GROWING and isinstance(owner, list | set | frozenset | dict):
        bounded(len(owner) + sum(map(size_of, args)))


def checked_range(*args: Value) -> range:
    """``range`` of a bounded length."""
    made = range(*args)
    try:
        bounded(len(made))
    except OverflowError as error:
        raise CannotFollow("a range that is too long") from error
    return made
