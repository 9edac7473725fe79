"""The outline of a file: its source without the bodies of its functions.

An import runs no function body that nobody calls, and bodies are four fifths of the source. Where
a body stands can be told without a parser: it begins after the colon of a ``def`` and ends before
the next line that is indented no deeper than the ``def``, unless that line is inside a string,
inside brackets or continues a line that ends in a backslash. Strings and comments are the only
tokens that hide others (*Lexical analysis* in the Python reference), so one pattern finds them;
a line inside brackets leaves a closing bracket without its opening one, which does not parse.

The outline keeps every line at its number. A body becomes one ``pass`` on the line where its last
statement ends, so that the function ends where it did.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

#: A comment or a whole string; the prefix of a string does not matter.
_HIDING = re.compile(
    rb"#[^\n]*"
    rb'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    rb"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    rb'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    rb"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'",
    re.DOTALL,
)
_BEFORE_DEF = re.compile(rb"( *)(?:async +)?")
#: The head of most functions, up to the line end: no string, no comment, no colon but in brackets
#: of one kind inside each other, and the one that ends it. What follows the arrow may give
#: characters back: Python before 3.11.5 goes on in the wrong place where an alternative of a
#: possessive group has matched in part (CPython issue 106052), and a colon could come there.
_PLAIN_HEAD = re.compile(
    rb"\w++\((?:[^()#'\"]|\([^()#'\"]*+\))*+\) *+"
    rb"(?:->(?:[^\[\](){}:#'\"\n\\]|\[[^\[\](){}:#'\"\n\\]*+\])*)?:[ \t]*+(?:#[^\n]*+)?\n"
)
#: What matters on the way to the colon that ends the head of a function.
_HEAD = re.compile(rb"[()\[\]{}:]|" + _HIDING.pattern, re.DOTALL)
_BRACKETS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
_REST_OF_LINE = re.compile(rb"[ \t]*(?:#[^\n]*)?\n")
_DECLARED = re.compile(rb"\A(?:[^\n]*\n)?[^\n]*coding[:=]")
#: What this does not follow: other line ends, form feeds and tabs change what indentation means.
_FOREIGN = (b"\r", b"\f", b"\t", b"\0")


def outline(source: bytes) -> bytes | None:
    """The source with each function's body reduced to ``pass``, line by line as before.

    None where that cannot be told for certain: tabs, other line ends, a declared encoding, strings
    or brackets that do not close. Errors of grammar inside a body are not seen.
    """
    if any(byte in source for byte in _FOREIGN) or _DECLARED.match(source):
        return None
    # A line of its own before the first one lets every line begin after a line end.
    text = b"\n" + source + b"\n"
    strings = _long_strings(text)
    if strings is None:
        return None
    kept: list[bytes] = []
    done = 0
    for line, indent, name in _definitions(text):
        if line < done or _inside(line, strings):
            continue
        body = _body_start(text, name)
        if body is None:
            continue
        last = _last_line(text, body, _body_end(text, body, len(indent), strings), strings)
        if last is None:
            continue
        start, end = last
        kept.append(text[done:body])
        kept.append(b"\n" * text.count(b"\n", body, start))
        kept.append(indent + b" pass")
        done = end
    kept.append(text[done:])
    return b"".join(kept)[1:]


def _definitions(text: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Each ``def`` that begins a line: the line end before it, indentation, place of its name."""
    at = text.find(b"def ")
    while at >= 0:
        line = text.rfind(b"\n", 0, at)
        before = _BEFORE_DEF.fullmatch(text, line + 1, at)
        if before is not None:
            yield line, before[1], at + len(b"def ")
        at = text.find(b"def ", at + 1)


def _long_strings(text: bytes) -> list[tuple[int, int]] | None:
    """Where the strings that span lines are; None where quotes or brackets do not close."""
    strings: list[tuple[int, int]] = []
    bare: list[bytes] = []
    done = 0
    for found in _HIDING.finditer(text):
        start, end = found.span()
        bare.append(text[done:start])
        done = end
        if b"\n" in found[0]:
            strings.append((start, end))
    bare.append(text[done:])
    code = b"".join(bare)
    closed = all(code.count(one) == code.count(other) for one, other in _BRACKETS)
    return strings if closed and b'"' not in code and b"'" not in code else None


def _inside(position: int, strings: list[tuple[int, int]]) -> int | None:
    """The end of the string that ``position`` is inside, or None."""
    index = bisect_right(strings, (position, len(strings) and strings[-1][1])) - 1
    if index >= 0 and strings[index][0] < position < strings[index][1]:
        return strings[index][1]
    return None


def _body_start(text: bytes, position: int) -> int | None:
    """Where the line after a function's head begins; None where the body is on the same line."""
    plain = _PLAIN_HEAD.match(text, position)
    if plain is not None:
        return plain.end()
    depth = 0
    for token in _HEAD.finditer(text, position):
        match token[0]:
            case b"(" | b"[" | b"{":
                depth += 1
            case b")" | b"]" | b"}":
                depth -= 1
            case b":" if depth == 0:
                rest = _REST_OF_LINE.match(text, token.end())
                return rest.end() if rest else None
    return None


@cache
def _shallow(indent: int) -> re.Pattern[bytes]:
    """The start of a statement that is indented by no more than ``indent`` spaces."""
    return re.compile(rb"\n {0,%d}[^ \n#]" % indent)


def _body_end(text: bytes, body: int, indent: int, strings: list[tuple[int, int]]) -> int | None:
    """The line end before the first line that is not in the body; None where it is not sure."""
    position = body - 1
    while found := _shallow(indent).search(text, position):
        beyond = _inside(found.start(), strings)
        if beyond is None:
            return None if text[found.start() - 1 : found.start()] == b"\\" else found.start()
        position = beyond
    return len(text) - 1


def _last_line(
    text: bytes, body: int, end: int | None, strings: list[tuple[int, int]]
) -> tuple[int, int] | None:
    """Where the last line of a body's last statement starts and ends; None in an empty body."""
    while end is not None and end > body:
        start = text.rfind(b"\n", 0, end) + 1
        line = text[start:end].strip()
        if _inside(start, strings) or (line and not line.startswith(b"#")):
            return start, end
        end = start - 1
    return None
