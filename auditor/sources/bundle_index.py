"""The records of the cache. Apart, so that msgspec is imported only where one is read."""

from __future__ import annotations

import msgspec

from auditor.sources.archive import ArchiveKind

Member = tuple[int, int, bytes]
"""Where a file's contents start, how many bytes they are, and their key (empty: not kept)."""


class Index(msgspec.Struct, frozen=True, array_like=True):
    """What is in a bundle: the archive's kind, its members by path, and its problems."""

    kind: ArchiveKind
    members: dict[str, Member]
    problems: list[tuple[str, str]]


class KnownArchive(msgspec.Struct, frozen=True):
    """The SHA-256 of an archive given by path, as long as the file on the disk stays the same."""

    stamp: list[int]
    sha256: str


class KnownRelease(msgspec.Struct, frozen=True):
    """A release fetched from the package index: the archive's name, its hash, remarks on it."""

    filename: str
    sha256: str
    unchecked: bool = False
    yanked: str | None = None
