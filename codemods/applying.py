"""Whether a diff turns the bytes that it is for into the bytes that are wanted.

The diff is read again and applied hunk by hunk, with no fuzz and no offset (the format is that of
``git-apply(1)``, "unified diff"). Where there is a git, ``git apply`` is asked as well, in a folder
of its own that holds just the files that change; it takes a hunk that is a few lines off.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

#: Who tried the patches.
BY_GIT, BY_OWN = "git apply --check", "own reading of the diff"

_RANGES = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = b"\\ No newline at end of file\n"


def applier() -> str:
    """Who tries the patches here."""
    return BY_OWN if shutil.which("git") is None else BY_GIT


def misapplied(before: Mapping[str, bytes], after: Mapping[str, bytes], diff: bytes) -> str | None:
    """Why ``diff`` does not turn ``before`` into ``after``; None where it does."""
    try:
        found = applied(before, diff)
    except ValueError as error:
        return f"the diff does not apply: {error}"
    git = shutil.which("git")
    why = _difference(after, found)
    return _misapplied_by_git(git, before, after, diff) if why is None and git is not None else why


def _difference(wanted: Mapping[str, bytes], found: Mapping[str, bytes]) -> str | None:
    for path in sorted(wanted.keys() | found.keys()):
        if wanted.get(path) != found.get(path):
            return f"the diff, applied, does not give the bytes of {path} that were proven"
    return None


def _misapplied_by_git(
    git: str, before: Mapping[str, bytes], after: Mapping[str, bytes], diff: bytes
) -> str | None:
    """The same, asked of git; the folder is in no repository, and no setting of a user counts."""
    with tempfile.TemporaryDirectory(prefix="codemod-") as name:
        folder = Path(name)
        for path, content in before.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        own = {key: text for key, text in os.environ.items() if not key.startswith("GIT_")}
        own |= {
            "GIT_CEILING_DIRECTORIES": str(folder.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        for arguments in (["--check"], []):
            done = subprocess.run(
                [git, "apply", *arguments, "-"],
                input=diff, cwd=folder, env=own, capture_output=True, check=False,
            )  # fmt: skip
            if done.returncode:
                said = done.stderr.decode("utf-8", "replace").strip().splitlines()
                return f"git apply refuses the diff: {said[0] if said else done.returncode}"
        return _difference(after, {path: (folder / path).read_bytes() for path in before})


def applied(before: Mapping[str, bytes], diff: bytes) -> dict[str, bytes]:
    """The files after a diff, each hunk exactly where it says.

    Raises:
        ValueError: with the reason why it does not apply.
    """
    after = dict(before)
    for path, hunks in _files(_lines(diff)):
        if path not in before:
            raise ValueError(f"there is no {path}")
        after[path] = _patched(path, before[path], hunks)
    return after


def _files(lines: Sequence[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """Each file of a diff, with the lines of its hunks."""
    starts = [n for n, line in enumerate(lines) if line.startswith(b"diff --git ")]
    if not starts or starts[0] != 0:
        raise ValueError("it does not start with a file")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        head, hunks = lines[start : start + 3], lines[start + 3 : end]
        if len(head) < 3 or not head[2].startswith(b"+++ b/"):
            raise ValueError("the head of a file is not complete")
        name = head[2][len(b"+++ b/") :].rstrip(b"\n")
        if head[1] != b"--- a/%b\n" % name or head[0] != b"diff --git a/%b b/%b\n" % (name, name):
            raise ValueError("the head of a file names more than one")
        yield name.decode(), list(hunks)


def _patched(path: str, content: bytes, lines: Sequence[bytes]) -> bytes:
    old = _lines(content)
    new: list[bytes] = []
    at = 0
    for (first, count, start, length), body in _hunks(lines):
        begin = first - 1 if count else first
        if begin < at:
            raise ValueError(f"a hunk of {path} starts before the one ahead ends")
        new += old[at:begin]
        if len(new) != (start - 1 if length else start):
            raise ValueError(f"a hunk of {path} does not start where it says")
        taken = [text for kind, text in body if kind != b"+"]
        given = [text for kind, text in body if kind != b"-"]
        if (len(taken), len(given)) != (count, length):
            raise ValueError(f"a hunk of {path} is not as long as it says")
        if old[begin : begin + count] != taken:
            raise ValueError(f"line {begin + 1} of {path} is not what the hunk there says")
        new += given
        at = begin + count
    return b"".join([*new, *old[at:]])


def _lines(content: bytes) -> list[bytes]:
    """Lines end at a line feed alone, as they do for git."""
    parts = content.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


_Hunk = tuple[tuple[int, int, int, int], list[tuple[bytes, bytes]]]


def _hunks(lines: Sequence[bytes]) -> Iterator[_Hunk]:
    """The ranges of each hunk, and its lines by kind."""
    ranges: tuple[int, int, int, int] | None = None
    body: list[tuple[bytes, bytes]] = []
    for line in lines:
        found = _RANGES.match(line)
        if found is not None:
            if ranges is not None:
                yield ranges, body
            numbers = [1 if group is None else int(group) for group in found.groups()]
            ranges, body = (numbers[0], numbers[1], numbers[2], numbers[3]), []
        elif line == _NO_NEWLINE and body:
            body[-1] = body[-1][0], body[-1][1].removesuffix(b"\n")
        elif ranges is not None and line[:1] in (b" ", b"+", b"-"):
            body.append((line[:1], line[1:]))
        else:
            raise ValueError(f"it holds a line that is no part of a hunk: {line!r}")
    if ranges is None:
        raise ValueError("a file has no hunk")
    yield ranges, body
