"""The outline of a file: its source without its functions, as far as those need no parser.

An import runs no function body that nobody calls, and bodies are four fifths of the source. Where
a body stands can be told without a parser: it begins after the colon of a ``def`` and ends before
the next line that is indented no deeper than the ``def``, unless that line is inside a string,
inside brackets or continues a line that ends in a backslash. Strings and comments are the only
tokens that hide others (*Lexical analysis* in the Python reference), so one pattern finds them,
and everything else is looked for in a text where they are covered; a line inside brackets leaves a
closing bracket without its opening one, which does not parse.

The outline keeps every line at its number. A body becomes one ``pass`` on the line where its last
statement ends, so that the function ends where it did. A function becomes that ``pass`` as a whole
where its head is plain (:mod:`auditor.syntax.heads`); behind a decorator, its name is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from auditor.syntax.heads import COVER, Head, is_identifier, read_head

#: A comment or a whole string, as a group; the prefix of a string does not matter.
_HIDING = re.compile(
    rb"(#[^\n]*"
    rb'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    rb"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    rb'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    rb"|'[^'\\\n]*(?:\\.[^'\\\n]*)*')",
    re.DOTALL,
)
#: What this does not follow: other line ends, form feeds and tabs change what indentation means.
_FOREIGN = (b"\r", b"\f", b"\t", b"\0")
#: Stands for each byte of all other strings. No text that is followed has it.
_OTHER = b"\f"
_HASH = ord("#")
_DECLARED = re.compile(rb"\A(?:[^\n]*\n)?[^\n]*coding[:=]")
_BRACKETS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
_UNTOLD = bytes(set(range(256)) - set(b"()[]{}\"'"))

_BEFORE_DEF = re.compile(rb"( *)(?:async +)?")
_FLAT = rb"[^\[\](){}:\n\\\f\x80-\xff]*"
#: The head of most functions, up to the line end: name, parameters, result.
_PLAIN_HEAD = re.compile(
    rb"(\w++)\(([^(){}\f\x80-\xff]*+)\) *+"
    rb"(?:->(F(?:\[F(?:\[F\]F)*\]F)*))?: *+\n".replace(b"F", _FLAT)
)
#: The head of most other functions, up to the line end: no colon but in brackets of one kind inside
#: each other, and the one that ends it. What follows the arrow may give characters back: Python
#: before 3.11.5 goes on in the wrong place where an alternative of a possessive group has matched
#: in part (CPython issue 106052), and a colon could come there.
_OTHER_HEAD = re.compile(
    rb"\w++\((?:[^()]|\([^()]*+\))*+\) *+"
    rb"(?:->(?:[^\[\](){}:\n\\]|\[[^\[\](){}:\n\\]*+\])*)?: *+\n"
)
#: What matters on the way to the colon that ends the head of a function.
_HEAD = re.compile(rb"[()\[\]{}:]")
_REST_OF_LINE = re.compile(rb" *\n")


class Definition(NamedTuple):
    """A function whose head is not in the outline: the line of its ``def``, its name and head."""

    line: int
    name: str
    head: Head


class Outline(NamedTuple):
    """An outline, and what is left out of it but for bodies.

    Attributes:
        text: the outline.
        definitions: the functions without their heads, by the line on which what is left of each
            begins: a ``pass``, or the ``def`` behind a decorator.
    """

    text: bytes
    definitions: dict[int, Definition]


def outline(source: bytes) -> Outline | None:
    """The source without bodies of functions and without plain heads, line by line as before.

    None where those cannot be told for certain: tabs, other line ends, a declared encoding, strings
    or brackets that do not close. Errors of grammar inside a body are not seen.
    """
    if any(byte in source for byte in _FOREIGN) or _DECLARED.match(source):
        return None
    # A line of its own before the first one lets every line begin after a line end.
    text = b"\n" + source + b"\n"
    covered = _covered(text)
    if covered is None:
        return None
    kept: list[bytes] = []
    definitions: dict[int, Definition] = {}
    done = number = 0
    for function in _functions(covered):
        plain = _plain_head(covered, function)
        decorated = covered.find(b"\n" + function.indent + b"@", done, function.line) >= 0
        if plain is None:
            start, left = function.body, function.indent + b" pass"
        elif decorated:
            start, left = function.name + len(plain[0]) + len("("), b"): pass"
        else:
            start, left = function.line, function.indent + b"pass"
        number += text.count(b"\n", done, start)
        lines = text.count(b"\n", start, function.end)
        if plain is not None:
            definitions[number if decorated else number + lines] = Definition(number, *plain)
        kept += (text[done:start], b"\n" * lines, left)
        number += lines
        done = function.end
    kept.append(text[done:])
    return Outline(b"".join(kept)[1:], definitions)


def _covered(text: bytes) -> bytes | None:
    """The text with its strings covered and its comments blank, each byte at its place.

    None where quotes or brackets do not close.
    """
    pieces = _HIDING.split(text)
    pieces[1::2] = [
        (b" " if token[0] == _HASH else COVER if token.isascii() and b"\\" not in token else _OTHER)
        * len(token)
        for token in pieces[1::2]
    ]
    covered = b"".join(pieces)
    told = covered.translate(None, _UNTOLD)
    closed = all(told.count(one) == told.count(other) for one, other in _BRACKETS)
    return covered if closed and b'"' not in told and b"'" not in told else None


class _Function(NamedTuple):
    """Where a function stands in a text.

    Attributes:
        line: the start of the line of its ``def``.
        indent: the spaces on that line.
        name: its name.
        plain: the rest of its head, if that may be plain.
        body: the line after its head.
        end: what follows its last statement.
    """

    line: int
    indent: bytes
    name: int
    plain: re.Match[bytes] | None
    body: int
    end: int


def _functions(covered: bytes) -> Iterator[_Function]:
    """The functions that have a body on lines of its own, but for those inside another one."""
    at = covered.find(b"def ")
    while at >= 0:
        function = _function(covered, at)
        if function is not None:
            yield function
        at = covered.find(b"def ", function.end if function is not None else at + 1)


def _function(covered: bytes, at: int) -> _Function | None:
    """The function whose ``def`` is at a place, where that begins a line; None as above."""
    line = covered.rfind(b"\n", 0, at) + 1
    before = _BEFORE_DEF.fullmatch(covered, line, at)
    if before is None:
        return None
    name, indent = at + len(b"def "), before[1]
    plain = _PLAIN_HEAD.match(covered, name)
    body = plain.end() if plain is not None else _body_start(covered, name)
    end = _body_end(covered, body, len(indent)) if body is not None else None
    return None if body is None or end is None else _Function(line, indent, name, plain, body, end)


def _plain_head(covered: bytes, function: _Function) -> tuple[str, Head] | None:
    """The name and the head of a function; None where the parser has to read them."""
    # Of a line that goes on from the one before, ``pass`` could be right where ``def`` is not.
    if function.plain is None or covered.endswith(b"\\\n", 0, function.line):
        return None
    name, parameters, result = function.plain.groups()
    head = read_head(parameters, result) if is_identifier(name.decode()) else None
    return None if head is None else (name.decode(), head)


def _body_start(covered: bytes, position: int) -> int | None:
    """Where the line after a function's head begins; None where the body is on the same line."""
    other = _OTHER_HEAD.match(covered, position)
    if other is not None:
        return other.end()
    depth = 0
    for token in _HEAD.finditer(covered, position):
        match token[0]:
            case b"(" | b"[" | b"{":
                depth += 1
            case b")" | b"]" | b"}":
                depth -= 1
            case b":" if depth == 0:
                rest = _REST_OF_LINE.match(covered, token.end())
                return rest.end() if rest else None
    return None


@cache
def _shallow(indent: int) -> re.Pattern[bytes]:
    """The start of a statement that is indented by no more than ``indent`` spaces."""
    return re.compile(rb"\n {0,%d}[^ \n]" % indent)


def _body_end(covered: bytes, body: int, indent: int) -> int | None:
    """Where the last statement of a body ends; None where there is none, or it is not sure."""
    beyond = _shallow(indent).search(covered, body - 1)
    end = beyond.start() if beyond else len(covered)
    statements = covered[body:end].rstrip(b" \n")
    if not statements or statements.endswith(b"\\"):
        return None
    return body + len(statements)
