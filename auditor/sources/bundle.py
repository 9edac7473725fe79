"""A tree packed into one file of the cache, so that a second run need not decompress an sdist.

Layout: 8 bytes of magic, the SHA-256 of the index, the length of the index (8 bytes, big endian),
the index (MessagePack), the contents one after the other. The index holds the size and the hash
of every file, and each read is checked against it. A bundle that anyone wrote to since it was made
is checked as a whole when it is opened; to see that cheaply, a bundle has a fixed time of last
modification.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import NamedTuple

import msgspec

from auditor.errors import SourceError
from auditor.sources.archive import ArchiveContents, ArchiveKind
from auditor.sources.tree import SourceProblem, Tree, contents_not_kept, key_of

Member = tuple[int, int, bytes]
"""Where a file's contents start, how many bytes they are, and their key (empty: not kept)."""

Repair = Callable[[], Tree]
"""Makes a tree of the same archive again, without the bundle; or raises a SourceError."""

SEALED_AT = 1_000_000_000
"""The time of last modification of an untouched bundle, in seconds since the epoch."""

_MAGIC = b"dabundl2"
_HEAD = len(_MAGIC) + 32 + 8


class Index(msgspec.Struct, frozen=True, array_like=True):
    """What is in a bundle: the archive's kind, its members by path, and its problems."""

    kind: ArchiveKind
    members: dict[str, Member]
    problems: list[tuple[str, str]]


class BundleTree:
    """The tree in an open bundle; contents are read from the file when they are asked for.

    Damage that shows only then is made good by ``repair``, which is called once.
    """

    def __init__(
        self, file: FileIO, base: int, members: dict[str, Member], repair: Repair | None
    ) -> None:
        self._file = file
        self._base = base
        self._members = members
        self._repair = repair
        self._repaired: Tree | SourceError | None = None
        self._lock = threading.Lock()
        weakref.finalize(self, file.close)

    def files(self) -> frozenset[str]:
        """See :meth:`auditor.sources.tree.Tree.files`."""
        return frozenset(self._members)

    def read(self, path: str) -> bytes:
        """See :meth:`auditor.sources.tree.Tree.read`."""
        start, size, key = self._members[path]
        if not key:
            raise contents_not_kept(path)
        content = self._intact(start, size, key)
        return self._again(path, key) if content is None else content

    def content_key(self, path: str) -> bytes:
        """See :func:`auditor.sources.tree.content_key`; nothing is read."""
        key = self._members[path][2]
        if not key:
            raise contents_not_kept(path)
        return key

    stamp = content_key

    def is_intact(self) -> bool:
        """Whether every file is still what was packed; reads the whole bundle."""
        kept = (member for member in self._members.values() if member[2])
        return all(self._intact(*member) is not None for member in kept)

    def _intact(self, start: int, size: int, key: bytes) -> bytes | None:
        try:
            content = self._bytes_at(self._base + start, size)
        except OSError:
            # The caller knows what to do with a file that the disk does not give back.
            return None
        return content if key_of(content) == key else None

    def _again(self, path: str, key: bytes) -> bytes:
        with self._lock:
            if self._repaired is None:
                self._repaired = self._repair_now(path)
        if isinstance(self._repaired, SourceError):
            raise self._repaired
        content = self._repaired.read(path)
        if key_of(content) != key:
            raise _damaged(path)
        return content

    def _repair_now(self, path: str) -> Tree | SourceError:
        try:
            return _damaged(path) if self._repair is None else self._repair()
        except SourceError as error:
            return error

    def _bytes_at(self, position: int, size: int) -> bytes:
        if sys.platform != "win32":
            # Positioned reads do not disturb a forked worker that shares the open file.
            return os.pread(self._file.fileno(), size, position)
        with self._lock:
            self._file.seek(position)
            return self._file.read(size)


class Bundle(NamedTuple):
    """An open bundle: the tree, the kind of archive it was made from, and its problems."""

    tree: BundleTree
    kind: ArchiveKind
    problems: tuple[SourceProblem, ...]


def pack(contents: ArchiveContents) -> bytes:
    """The bundle of ``contents``: the same bytes for the same contents."""
    members: dict[str, Member] = {}
    parts: list[bytes] = []
    start = 0
    for path, content in sorted(contents.members.items()):
        kept = b"" if content is None else content
        members[path] = (start, len(kept), b"" if content is None else key_of(content))
        parts.append(kept)
        start += len(kept)
    problems = [(problem.path, problem.reason) for problem in contents.problems]
    index = msgspec.msgpack.encode(Index(contents.kind, members, problems))
    head = _MAGIC + sha256(index).digest() + len(index).to_bytes(8, "big")
    return b"".join([head, index, *parts])


def open_bundle(path: Path, repair: Repair | None = None) -> Bundle | None:
    """The bundle at ``path``, or None when it is not what :func:`pack` gave.

    Args:
        path: the file.
        repair: what to do about damage that is found later, when a file is read.

    Raises:
        OSError: there is no such file, or it cannot be opened.
    """
    file = open(path, "rb", buffering=0)  # noqa: SIM115 - the tree closes it
    index, base = _read_index(file)
    if index is None:
        file.close()
        return None
    tree = BundleTree(file, base, index.members, repair)
    status = os.fstat(file.fileno())
    if status.st_size != base + sum(size for _, size, _ in index.members.values()):
        return None
    if status.st_mtime_ns != SEALED_AT * 10**9 and not _sealed_again(path, tree):
        return None
    problems = tuple(SourceProblem(name, reason) for name, reason in index.problems)
    return Bundle(tree, index.kind, problems)


def _read_index(file: FileIO) -> tuple[Index | None, int]:
    head = file.read(_HEAD)
    if len(head) < _HEAD or not head.startswith(_MAGIC):
        return None, 0
    length = int.from_bytes(head[-8:], "big")
    if length > os.fstat(file.fileno()).st_size:
        return None, 0
    encoded = file.read(length)
    if sha256(encoded).digest() != head[len(_MAGIC) : -8]:
        return None, 0
    try:
        return msgspec.msgpack.decode(encoded, type=Index), _HEAD + length
    except msgspec.MsgspecError:
        return None, 0


def _sealed_again(path: Path, tree: BundleTree) -> bool:
    if not tree.is_intact():
        return False
    try:
        os.utime(path, (SEALED_AT, SEALED_AT))
    except OSError:
        # A shared cache that may only be read: the check is made again next time.
        return True
    return True


def _damaged(path: str) -> SourceError:
    return SourceError(
        "the cached copy of this file is damaged",
        where=path,
        next_step="Run the command again with --no-cache.",
    )
