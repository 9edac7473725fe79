"""What an edit has only moved: files that say the same on other lines.

Most edits change a function's body, a comment or a blank line, and move what follows. The facts of
such a file are those of before but for their lines. :func:`moved_lines` finds where each line went,
and :func:`relined` takes a document there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from auditor.coverage import ErrorInfo

#: Fields of facts that are numbers of lines.
UNLINED = frozenset({"line", "start", "end"})
Lines = dict[int, int]


class NotMoved(Exception):  # noqa: N818 - an outcome, not a failure
    """Something of which it is not known whether, or where, it went."""


def moved_lines(before: object, after: object) -> Lines | None:
    """Where each line that the facts name has gone; None where they differ in more than lines."""
    lines: Lines = {}
    return lines if _alike(before, after, lines) else None


def _alike(before: object, after: object, lines: Lines) -> bool:
    if type(before) is not type(after):
        return False
    if isinstance(before, tuple) and isinstance(after, tuple):
        return len(before) == len(after) and all(
            _alike(one, other, lines) for one, other in zip(before, after, strict=True)
        )
    if isinstance(before, msgspec.Struct):
        return all(
            lines.setdefault(one, other) == other if name in UNLINED else _alike(one, other, lines)
            for name in before.__struct_fields__
            for one, other in [(getattr(before, name), getattr(after, name))]
        )
    # 0.0 and -0.0 are equal, and not the same constant.
    return repr(before) == repr(after) if isinstance(before, float) else before == after


def cited_lines(document: object) -> Iterator[tuple[str, int]]:
    """Every place in a document that is a struct with ``path`` and ``line``."""
    if isinstance(document, tuple):
        for item in document:
            yield from cited_lines(item)
    elif isinstance(document, msgspec.Struct):
        if _is_place(document):
            yield document.path, document.line  # type: ignore[attr-defined]
        for name in document.__struct_fields__:
            yield from cited_lines(getattr(document, name))


def _is_place(value: msgspec.Struct) -> bool:
    """Whether a struct cites a line. A step that shows a module means all of it."""
    fields = value.__struct_fields__
    return (
        "path" in fields
        and "line" in fields
        and value.line > 0  # type: ignore[attr-defined]
        and getattr(value, "kind", "") != "module"
    )


def relined(document: Any, files: Mapping[str, Lines]) -> Any:
    """A document with every line of ``files`` where it is now.

    Places are structs that have ``path`` and ``line``, and ``path:line`` in a sentence.

    Raises:
        NotMoved: it cites a line that the facts of its file do not name, or source in it has what
            looks like a place.
    """
    if not files:
        return document
    paths = "|".join(re.escape(path) for path in files)
    return _Reliner(files, re.compile(rf"(?<![\w./-])({paths}):(\d+)")).of(document)


class _Reliner:
    def __init__(self, files: Mapping[str, Lines], places: re.Pattern[str]) -> None:
        self._files = files
        self._places = places

    def of(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._places.sub(self._place, value)
        if isinstance(value, tuple):
            return tuple(map(self.of, value))
        if isinstance(value, dict):
            return {key: self.of(item) for key, item in value.items()}
        if isinstance(value, msgspec.Struct):
            return self._struct(value)
        return value

    def _struct(self, value: msgspec.Struct) -> msgspec.Struct:
        # What stands in a field called text is source, as is what an exception of the tree says.
        left = ("text", "message") if isinstance(value, ErrorInfo) else ("text",)
        for name in left:
            if self._places.search(getattr(value, name, "")):
                # Sentences that repeat it cannot be told from those that name the place.
                raise NotMoved(getattr(value, name))
        old = {name: getattr(value, name) for name in value.__struct_fields__ if name not in left}
        new = {name: self.of(item) for name, item in old.items()}
        if _is_place(value) and old["path"] in self._files:
            new["line"] = self._line(old["path"], old["line"])
        return value if new == old else msgspec.structs.replace(value, **new)

    def _place(self, found: re.Match[str]) -> str:
        return f"{found[1]}:{self._line(found[1], int(found[2]))}"

    def _line(self, path: str, line: int) -> int:
        moved = self._files[path].get(line)
        if moved is None:
            raise NotMoved(f"{path}:{line}")
        return moved
