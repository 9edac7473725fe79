"""Opens archives through the cache: repacked once, then opened in a few milliseconds."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from hashlib import blake2b, sha256
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

import msgspec

from auditor.errors import SourceError
from auditor.sources.archive import ArchiveKind, read_archive
from auditor.sources.cache import Cache
from auditor.sources.selection import VLLM, Selection
from auditor.sources.tree import MemoryTree, SourceProblem, Tree

Record = TypeVar("Record", bound=msgspec.Struct)

_STEP = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")

DAMAGED = "a damaged entry of the cache was discarded"


class KnownArchive(msgspec.Struct, frozen=True):
    """The SHA-256 of an archive given by path, as long as the file on the disk stays the same."""

    stamp: list[int]
    sha256: str


class OpenedArchive(NamedTuple):
    """An archive as a tree, with the hash of the whole file."""

    tree: Tree
    kind: ArchiveKind
    problems: tuple[SourceProblem, ...]
    sha256: str


Reopen = Callable[[], OpenedArchive]
"""Opens an archive from where it came from, past a damaged bundle of it."""


def open_archive(path: Path, cache: Cache, selection: Selection = VLLM) -> OpenedArchive:
    """The tree in the archive at ``path``; neither the file nor its folder is touched.

    Raises:
        SourceError: the file cannot be read, or :func:`~auditor.sources.archive.read_archive`
            refuses it.
    """
    try:
        with open(path, "rb") as file:
            digest = _hash_of(file, path, cache)
            again = partial(_read_again, path, digest, cache, selection)
            cached = open_cached(digest, cache, again, selection)
            where = str(path)
            return cached or open_stream(
                file, path.name, digest, cache, where=where, selection=selection
            )
    except OSError as error:
        raise _unreadable(path, error) from error


def open_cached(
    digest: str, cache: Cache, reopen: Reopen, selection: Selection = VLLM
) -> OpenedArchive | None:
    """The tree of the archive with this SHA-256, if the cache has it undamaged.

    Where damage shows only when a file is read, the entry is discarded, ``reopen`` is called, and
    the tree goes on with what that gives.
    """
    from auditor.sources.bundle import open_bundle

    # What an index states as a hash is text from a stranger, and here becomes a file name.
    if cache.folder is None or not _SHA256.fullmatch(digest):
        return None
    name = _bundle_name(digest, selection)

    def repair() -> Tree:
        cache.discard(name, DAMAGED)
        archive = reopen()
        if archive.sha256 != digest:
            raise SourceError(
                "the archive in the cache was damaged, and its origin now has another one",
                where=str(cache.folder),
                next_step="Run the command again.",
            )
        return archive.tree

    try:
        bundle = open_bundle(cache.folder / name, repair)
    except OSError as error:
        cache.note_unreadable(error)
        return None
    if bundle is None:
        cache.discard(name, DAMAGED)
        return None
    return OpenedArchive(bundle.tree, bundle.kind, bundle.problems, digest)


def open_stream(
    file: IO[bytes],
    name: str,
    digest: str,
    cache: Cache,
    *,
    where: str = "",
    selection: Selection = VLLM,
) -> OpenedArchive:
    """Read the archive in ``file`` from its start, and keep its tree in the cache.

    Raises:
        SourceError: see :func:`~auditor.sources.archive.read_archive`.
    """
    file.seek(0)
    contents = read_archive(file, name, where=where, selection=selection)
    if cache.folder is not None:
        from auditor.sources.bundle import SEALED_AT, pack

        cache.write(_bundle_name(digest, selection), pack(contents), modified=SEALED_AT)
    tree = MemoryTree(contents.members)
    return OpenedArchive(tree, contents.kind, contents.problems, digest)


def read_record(cache: Cache, name: str, kind: type[Record]) -> Record | None:
    """The JSON record ``name`` of the cache, or None when there is none that can be read."""
    content = cache.read(name)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError:
        cache.discard(name, DAMAGED)
        return None


def write_record(cache: Cache, name: str, record: msgspec.Struct) -> None:
    """Keep ``record`` in the cache as JSON."""
    if cache.folder is not None:
        cache.write(name, msgspec.json.encode(record))


def hash_file(path: Path) -> str:
    """The SHA-256 of the archive at ``path``.

    Raises:
        SourceError: the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return _hash_stream(file)
    except OSError as error:
        raise _unreadable(path, error) from error


def _read_again(path: Path, digest: str, cache: Cache, selection: Selection) -> OpenedArchive:
    try:
        with open(path, "rb") as file:
            found = _hash_stream(file)
            where = str(path)
            return open_stream(file, path.name, found, cache, where=where, selection=selection)
    except OSError as error:
        raise _unreadable(path, error) from error


def _hash_stream(file: IO[bytes]) -> str:
    digest = sha256()
    file.seek(0)
    while block := file.read(_STEP):
        digest.update(block)
    return digest.hexdigest()


def _hash_of(file: IO[bytes], path: Path, cache: Cache) -> str:
    if cache.folder is None:
        return ""
    place = blake2b(os.fsencode(os.path.realpath(path)), digest_size=16).hexdigest()
    name = f"archives/{place}.json"
    status = os.fstat(file.fileno())
    stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
    known = read_record(cache, name, KnownArchive)
    if known is not None and known.stamp == stamp:
        return known.sha256
    found = KnownArchive(stamp, _hash_stream(file))
    write_record(cache, name, found)
    return found.sha256


def _unreadable(path: Path, error: OSError) -> SourceError:
    return SourceError(
        f"this archive cannot be read ({error.strerror})",
        where=str(path),
        next_step="Check its permissions.",
    )


def _bundle_name(digest: str, selection: Selection) -> str:
    return f"trees/{digest}{selection.name and f'.{selection.name}'}.tree"
