"""Keeps whole plans, so that a second run over the same files derives and proves nothing.

A plan is kept with the content key of every file that it rests on: those that the audits of the
tree and of the patched tree consulted. It counts as long as all of them are the same, byte for
byte, since a patch is for exactly these bytes. What makes plans takes part in the name. An entry
may be deleted, shared or damaged: it carries a digest, and one that is not intact is made again.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

import msgspec

from auditor.api import Request, Resources
from auditor.errors import SourceError
from auditor.memo import Memo
from auditor.sources.cache import Cache, CacheConfig
from auditor.sources.tree import Source, content_key, stamp
from codemods.applying import applier
from codemods.plans import Plan

_DIGEST = 16
_SETTINGS = "pyproject.toml"


class _File(msgspec.Struct, frozen=True, array_like=True):
    """A file that a plan rests on: its content key, and an identity had without reading it."""

    path: str
    key: bytes
    stamp: bytes


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    files: tuple[_File, ...]
    plan: Plan


def plan_of(source: Source, request: Request, resources: Resources) -> Plan:
    """What would be done, from the cache where nothing that it rests on has changed.

    Raises:
        DraftauditError: as :func:`codemods.planning.plan`.
    """
    kept = Cache(CacheConfig(resources.cache))
    name = Memo(resources.cache).name(source, request, _beside()) if resources.cache else ""
    blob = kept.read(name) if name else None
    entry = _opened(blob) if blob is not None else None
    if entry is not None and _is_same(entry, source):
        return entry.plan
    # A kept plan needs none of what a plan is made with.
    from codemods.planning import plan_with_grounds

    plan, grounds = plan_with_grounds(source, request, resources)
    if name:
        files = tuple(_noted(source, (*grounds, _SETTINGS)))
        payload = msgspec.msgpack.encode(_Entry(files, plan))
        kept.write(name, _digest(payload) + payload)
    return plan


def _beside() -> object:
    """What a plan depends on beside the request, the files and the code of the audit."""
    return ("plan", _code_digest(), version("libcst"), sys.version_info[:2], applier())


@cache
def _code_digest() -> bytes:
    digest = hashlib.blake2b(digest_size=_DIGEST)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.digest()


def _noted(source: Source, paths: Iterable[str]) -> Iterator[_File]:
    """Files as they are now: the stamp first, so that it is never newer than the key."""
    known = source.tree.files()
    for path in sorted(set(paths) & known):
        yield _File(path, *_identity(source, path))


def _identity(source: Source, path: str) -> tuple[bytes, bytes]:
    """The content key and the stamp of a file; both empty where it cannot be read."""
    try:
        mark = stamp(source.tree, path) or b""
        return content_key(source.tree, path), mark
    except SourceError:
        return b"", b""


def _is_same(entry: _Entry, source: Source) -> bool:
    """Whether every file that an entry rests on is what it was."""
    # The list of files is part of the entry's name, so that none of these can be missing.
    return all(
        (one.stamp and _stamp(source, one.path) == one.stamp)
        or _identity(source, one.path)[0] == one.key
        for one in entry.files
    )


def _stamp(source: Source, path: str) -> bytes | None:
    try:
        return stamp(source.tree, path)
    except SourceError:
        return None


def _opened(blob: bytes) -> _Entry | None:
    if _digest(blob[_DIGEST:]) != blob[:_DIGEST]:
        return None
    try:
        return msgspec.msgpack.decode(blob[_DIGEST:], type=_Entry)
    except msgspec.DecodeError:
        # Written by another version of the structures.
        return None


def _digest(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_DIGEST).digest()
