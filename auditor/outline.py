"""The outline of a file: its source without the bodies of its functions.

An import runs no function body that nobody calls, and bodies are four fifths of the source. Where
a body stands can be told without a parser: it begins after the colon of a ``def`` and ends before
the next line that is indented no deeper than the ``def``, unless that line is inside a string,
inside brackets or continues a line that ends in a backslash. Strings and comments are the only
tokens that hide others (*Lexical analysis* in the Python reference), so one pattern finds them,
and everything else is looked for in a text where they are covered; a line inside brackets leaves a
closing bracket without its opening one, which does not parse.

The outline keeps every line at its number. A body becomes one ``pass`` on the line where its last
statement ends, so that the function ends where it did.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

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
#: Covers strings. No text that is followed has it, and it is no white space.
_COVER = b"\0"
_DECLARED = re.compile(rb"\A(?:[^\n]*\n)?[^\n]*coding[:=]")
_BRACKETS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
_UNTOLD = bytes(set(range(256)) - set(b"()[]{}\"'"))

_BEFORE_DEF = re.compile(rb"( *)(?:async +)?")
#: The head of most functions, up to the line end: no colon but in brackets of one kind inside each
#: other, and the one that ends it. What follows the arrow may give characters back: Python before
#: 3.11.5 goes on in the wrong place where an alternative of a possessive group has matched in part
#: (CPython issue 106052), and a colon could come there.
_PLAIN_HEAD = re.compile(
    rb"\w++\((?:[^()]|\([^()]*+\))*+\) *+"
    rb"(?:->(?:[^\[\](){}:\n\\]|\[[^\[\](){}:\n\\]*+\])*)?: *+\n"
)
#: What matters on the way to the colon that ends the head of a function.
_HEAD = re.compile(rb"[()\[\]{}:]")
_REST_OF_LINE = re.compile(rb" *\n")


def outline(source: bytes) -> bytes | None:
    """The source with each function's body reduced to ``pass``, line by line as before.

    None where that cannot be told for certain: tabs, other line ends, a declared encoding, strings
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
    done = 0
    for line, indent, name in _definitions(covered):
        if line < done:
            continue
        body = _body_start(covered, name)
        last = _body_end(covered, body, len(indent)) if body is not None else None
        if last is None:
            continue
        kept.append(text[done:body])
        kept.append(b"\n" * text.count(b"\n", body, last))
        kept.append(indent + b" pass")
        done = last
    kept.append(text[done:])
    return b"".join(kept)[1:]


def _covered(text: bytes) -> bytes | None:
    """The text with its strings covered and its comments blank, each byte at its place.

    None where quotes or brackets do not close.
    """
    pieces = _HIDING.split(text)
    pieces[1::2] = [
        (b" " if token.startswith(b"#") else _COVER) * len(token) for token in pieces[1::2]
    ]
    covered = b"".join(pieces)
    told = covered.translate(None, _UNTOLD)
    closed = all(told.count(one) == told.count(other) for one, other in _BRACKETS)
    return covered if closed and b'"' not in told and b"'" not in told else None


def _definitions(covered: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Each ``def`` that begins a line: the line end before it, indentation, place of its name."""
    at = covered.find(b"def ")
    while at >= 0:
        line = covered.rfind(b"\n", 0, at)
        before = _BEFORE_DEF.fullmatch(covered, line + 1, at)
        if before is not None:
            yield line, before[1], at + len(b"def ")
        at = covered.find(b"def ", at + 1)


def _body_start(covered: bytes, position: int) -> int | None:
    """Where the line after a function's head begins; None where the body is on the same line."""
    plain = _PLAIN_HEAD.match(covered, position)
    if plain is not None:
        return plain.end()
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
