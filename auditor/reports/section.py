"""A part of a file that is written by a report, between two comments that name it.

``<!-- gen:NAME -->`` and ``<!-- /gen:NAME -->``, each on a line of its own. The prefix is that of
the markers of vLLM's documentation generator (``docs/mkdocs/gen_files/generated_content.py``); a
pair of them lets the page be written again. Everything outside keeps its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from auditor.errors import UsageError
from auditor.reports.names import hint

#: Up to three spaces: four make it a code block (CommonMark 4.4).
_MARKER = re.compile(rb" {0,3}<!--\s*(/?)gen:([\w.-]+)\s*-->[ \t]*\r?\n?")
_NAME = re.compile(r"[\w.-]+", re.ASCII)
_FENCE = re.compile(rb" {0,3}(`{3,}|~{3,})(.*)", re.DOTALL)


class _Marker(NamedTuple):
    """A marker: whether it ends a section, of which name, and its bytes and line in the file."""

    closing: bool
    name: str
    start: int
    end: int
    line: int


def checked_name(name: str) -> str:
    """A name that a marker can hold.

    Raises:
        UsageError: it holds something else than letters, digits, ``_``, ``.`` and ``-``.
    """
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"{name!r} is not a name of letters, digits, '_', '.' or '-'",
                         where="--marker")  # fmt: skip
    return name


def with_section(data: bytes, name: str, text: str, path: str) -> bytes:
    """``data`` with ``text`` between the markers of ``name``.

    Args:
        data: the file.
        name: of the section.
        text: what stands there from now on.
        path: of the file, for messages.

    Raises:
        UsageError: the markers are missing, unclosed, doubled or interleaved; with file and line.
    """
    opening, closing = _pair(list(_markers(data)), name, path)
    first = data[opening.start : opening.end]
    newline = b"\r\n" if first.endswith(b"\r\n") else b"\n"
    body = text.strip("\n").encode().replace(b"\n", newline)
    inner = newline + body + newline * 2 if body else b""
    return data[: opening.end] + inner + data[closing.start :]


def _pair(markers: list[_Marker], name: str, path: str) -> tuple[_Marker, _Marker]:
    """The two markers of a section; every pair of the file must be sound, or none is used."""
    sections: dict[str, tuple[_Marker, _Marker]] = {}
    opened: _Marker | None = None
    for marker in markers:
        where = f"{path}:{marker.line}"
        if marker.closing:
            if opened is None or opened.name != marker.name:
                raise _broken(f"{_shown(marker)} closes nothing that is open", where)
            sections[marker.name], opened = (opened, marker), None
        elif opened is not None:
            raise _unclosed(opened, path, f"before {_shown(marker)} at line {marker.line}")
        elif marker.name in sections:
            raise _broken(f"a second {_shown(marker)}", where)
        else:
            opened = marker
    if opened is not None:
        raise _unclosed(opened, path, "before the end of the file")
    if name not in sections:
        raise UsageError(
            f"no line is <!-- gen:{name} -->",
            where=path,
            next_step=hint(name, sorted(sections))
            or f"Add it where the report belongs, and <!-- /gen:{name} --> below it.",
        )
    return sections[name]


def _shown(marker: _Marker) -> str:
    return f"<!-- {'/' * marker.closing}gen:{marker.name} -->"


def _broken(what: str, where: str) -> UsageError:
    return UsageError(what, where=where, next_step="Nothing was changed.")


def _unclosed(marker: _Marker, path: str, when: str) -> UsageError:
    end = f"<!-- /gen:{marker.name} -->"
    return _broken(f"{_shown(marker)} has no {end} {when}", f"{path}:{marker.line}")


def _markers(data: bytes) -> Iterator[_Marker]:
    """The markers of a file, in order; what stands in a fenced code block is an example."""
    offset, fence = 0, b""
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        start, offset = offset, offset + len(line)
        fence, inside = _after(line, fence), bool(fence)
        match = _MARKER.fullmatch(line.removeprefix(b"\xef\xbb\xbf"))
        if match is not None and not inside:
            yield _Marker(bool(match[1]), match[2].decode(), start, offset, number)


def _after(line: bytes, fence: bytes) -> bytes:
    """The fence that is open after a line (CommonMark 4.5); empty where none is."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    run, rest = match[1], match[2].strip()
    if not fence:
        return b"" if run[:1] == b"`" and b"`" in rest else run
    return b"" if run[:1] == fence[:1] and len(run) >= len(fence) and not rest else fence
