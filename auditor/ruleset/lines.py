"""Where in the text of a rule file a key stands.

Neither the TOML reader nor the check of types says it, so the text is cut into statements here, by
the reader itself: a statement ends where what was read so far parses.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import msgspec

_HEADER = re.compile(r"^\s*\[")

#: A key, or the position of an item in an array.
Key = str | int


def dotted(key: tuple[Key, ...]) -> str:
    """A key as a person writes it: ``guard.search``, ``examples[0].is``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
    return text.removeprefix(".")


def line_of(text: str, key: tuple[Key, ...]) -> int:
    """The line, from 1, on which a key stands; that of its table where it has none of its own."""
    best, deep = 1, 0
    for statement in _statements(text):
        full = (*statement.table, *statement.key)
        common = _common(full, key)
        if common in (len(full), len(key)) and common > deep:
            best, deep = statement.line, common
    return best


def broken(lines: list[str]) -> int | None:
    """Where the first statement starts that cannot be read; None where each of them can."""
    number = 0
    while number < len(lines):
        if not lines[number].strip() or lines[number].lstrip().startswith("#"):
            number += 1
            continue
        end = _end(lines, number)
        if not _parses(lines[number:end]):
            return number
        number = end
    return None


class _Statement(msgspec.Struct, frozen=True):
    """A statement of a TOML text: its line, the table it stands in or opens, and its key."""

    line: int
    table: tuple[Key, ...]
    key: tuple[Key, ...]


def _statements(text: str) -> Iterator[_Statement]:
    lines = text.splitlines()
    table: tuple[Key, ...] = ()
    counts: dict[tuple[Key, ...], int] = {}
    number = 0
    while number < len(lines):
        if not lines[number].strip() or lines[number].lstrip().startswith("#"):
            number += 1
            continue
        end = _end(lines, number)
        chunk = "\n".join(lines[number:end])
        parsed = tomllib.loads(chunk)
        if _HEADER.match(lines[number]):
            table = _table(parsed, counts)
            yield _Statement(number + 1, table, ())
        else:
            yield _Statement(number + 1, table, _path_in(parsed))
        number = end


def _common(one: tuple[Key, ...], other: tuple[Key, ...]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _end(lines: list[str], start: int) -> int:
    """The line behind the statement that starts at ``start``: what stands before it parses."""
    for end in range(start + 1, len(lines) + 1):
        if _parses(lines[start:end]):
            return end
    return len(lines)


def _parses(lines: list[str]) -> bool:
    try:
        tomllib.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return False
    return True


def _table(parsed: dict[str, Any], counts: dict[tuple[Key, ...], int]) -> tuple[Key, ...]:
    """The table that a header opens; of an array of tables, the next item."""
    path: tuple[Key, ...] = ()
    value: Any = parsed
    while isinstance(value, dict) and value:
        name, value = next(iter(value.items()))
        path = (*path, name)
        if isinstance(value, list):
            counts[path] = counts.get(path, -1) + 1
            return (*path, counts[path])
        if path in counts:
            path = (*path, counts[path])
    return path


def _path_in(parsed: dict[str, Any]) -> tuple[Key, ...]:
    """The key of one assignment; of an inline table, the key that it is given to."""
    return (next(iter(parsed)),)
