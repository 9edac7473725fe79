r"""Unified diffs that ``git apply`` takes, byte for byte.

Lines end at ``\n`` alone, so that a carriage return is part of its line as it is for git, and a
file without a final newline says so.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

_CONTEXT = 3
_NO_NEWLINE = b"\\ No newline at end of file\n"


def file_diff(path: str, before: bytes | None, after: bytes) -> bytes:
    """The diff of one file; empty where nothing changed. ``before`` is None for a new file."""
    if before == after:
        return b""
    old, new = _lines(before or b""), _lines(after)
    name = path.encode()
    head = b"diff --git a/%b b/%b\n" % (name, name)
    if before is None:
        head += b"new file mode 100644\n--- /dev/null\n+++ b/%b\n" % name
    else:
        head += b"--- a/%b\n+++ b/%b\n" % (name, name)
    return head + b"".join(_hunks(old, new))


def diff_of(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bytes:
    """The diff of several files, in order of path."""
    return b"".join(file_diff(path, before[path], after[path]) for path in sorted(after))


def _lines(content: bytes) -> list[bytes]:
    parts = content.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


Opcode = tuple[str, int, int, int, int]


def _hunks(old: list[bytes], new: list[bytes]) -> Iterator[bytes]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    opcodes: list[Opcode] = []
    for code in matcher.get_opcodes():
        if code[0] != "equal":
            opcodes.append(_slid(code, new, opcodes[-1][2] if opcodes else 0))
    for group in _grouped(opcodes):
        yield from _hunk(group, old, new)


def _slid(code: Opcode, new: list[bytes], floor: int) -> Opcode:
    """An insertion moved up as far as it starts with the blank lines that it ends with."""
    tag, i1, i2, j1, j2 = code
    if tag != "insert":
        return code
    best = code
    while i1 > floor and new[j1 - 1] == new[j2 - 1]:
        i1, i2, j1, j2 = i1 - 1, i2 - 1, j1 - 1, j2 - 1
        if not new[j1].strip():
            best = (tag, i1, i2, j1, j2)
    return best


def _grouped(opcodes: list[Opcode]) -> Iterator[list[Opcode]]:
    group: list[Opcode] = []
    for code in opcodes:
        if group and code[1] - group[-1][2] > 2 * _CONTEXT:
            yield group
            group = []
        group.append(code)
    if group:
        yield group


def _hunk(group: list[Opcode], old: list[bytes], new: list[bytes]) -> Iterator[bytes]:
    start, end = max(group[0][1] - _CONTEXT, 0), min(group[-1][2] + _CONTEXT, len(old))
    body: list[bytes] = []
    at = start
    for _, i1, i2, j1, j2 in group:
        body += [b" " + line for line in old[at:i1]]
        body += [b"-" + line for line in old[i1:i2]]
        body += [b"+" + line for line in new[j1:j2]]
        at = i2
    body += [b" " + line for line in old[at:end]]
    added = sum((j2 - j1) - (i2 - i1) for _, i1, i2, j1, j2 in group)
    first = group[0][3] - (group[0][1] - start)
    count = end - start
    yield b"@@ -%b +%b @@\n" % (_range(start, count), _range(first, count + added))
    for line in body:
        yield line if line.endswith(b"\n") else line + b"\n" + _NO_NEWLINE


def _range(start: int, count: int) -> bytes:
    return b"%d,%d" % (start + 1 if count else start, count) if count != 1 else b"%d" % (start + 1)
