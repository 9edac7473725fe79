"""Keeps what was read of an engine, so that a change elsewhere in the tree does not read it again.

It is kept with the content key of every file that was read for it. An entry may be deleted or
damaged: it carries a digest, and one that is not intact is made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from auditor.contracts.contract import Contracts
from auditor.facts import Unparsed
from auditor.program import Files, Probe
from auditor.sources.cache import Cache
from auditor.values import Place

_FOLDER = "contracts"
_KEPT = 16
_DIGEST = 16


class EngineFacts(msgspec.Struct, frozen=True):
    """What is read off the engine.

    Attributes:
        contracts: who calls a capability, and where the engine probes for it.
        outside: attributes that it sets on some other object, each with the place where first.
    """

    contracts: Contracts = msgspec.field(default_factory=Contracts)
    outside: Mapping[str, Place] = msgspec.field(default_factory=dict)


class FileRead(msgspec.Struct, frozen=True, array_like=True):
    """A file that was read: its content key, and what was asked of it.

    Each probe has a digest of its answer, which is empty where nothing is kept.
    """

    path: str
    key: bytes
    asked: tuple[tuple[Probe, bytes], ...]


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    read: tuple[FileRead, ...]
    facts: EngineFacts


class Recorder:
    """Files that remember what was asked of them."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.asked: dict[str, set[Probe]] = {}

    def source(self, path: str) -> bytes | Unparsed:
        """The bytes of a file, or why they cannot be read."""
        self.note(path, ("text", "", 0, 0, 0))
        return self._files.text(path)

    def text(self, path: str) -> bytes | Unparsed:
        """The bytes of a file for one who notes himself what he asks of it."""
        return self._files.text(path)

    def note(self, path: str, probe: Probe) -> None:
        """Take note that something was asked of a file."""
        self.asked.setdefault(path, set()).add(probe)
        self._files.note(path, probe)


class KeptFacts:
    """What was read of an engine in a cache, by what it was asked for.

    Args:
        cache: where it is kept.
        files: the files of the tree.
        asked: what it depends on beside the files: tool, capability, architectures, file names.
        digest: gives a digest of what a file answers to a probe, for who keeps answers.
    """

    def __init__(
        self,
        cache: Cache,
        files: Files,
        asked: object,
        digest: Callable[[Files, str, Probe], bytes],
    ) -> None:
        self._cache = cache
        self._files = files
        self._digest_of = digest
        name = hashlib.blake2b(msgspec.msgpack.encode(asked), digest_size=16)
        self._name = f"{_FOLDER}/{name.hexdigest()}"

    def get(self, make: Callable[[Recorder], EngineFacts], known: bytes | None = None) -> bytes:
        """The facts, read again only where a file that they rest on has changed.

        They are encoded, so that another process may read them; :meth:`taken` opens them.
        ``known`` is what this has given for another tree of the same files, if it has.
        """
        blob = known if known is not None else self._cache.read(self._name)
        entry = _opened(blob) if blob is not None else None
        if (
            blob is not None
            and entry is not None
            and all(self._files.key(file.path) == file.key for file in entry.read)
        ):
            return blob
        recorder = Recorder(self._files)
        facts = make(recorder)
        read = tuple(self._read(path, probes) for path, probes in sorted(recorder.asked.items()))
        payload = msgspec.msgpack.encode(_Entry(read, facts))
        blob = _digest(payload) + payload
        self._cache.write(self._name, blob)
        self._prune()
        return blob

    def _read(self, path: str, probes: Iterable[Probe]) -> FileRead:
        # Where nothing is kept, nobody asks for digests.
        digest = self._digest_of if self._cache.folder is not None else lambda *_: b""
        asked = tuple((probe, digest(self._files, path, probe)) for probe in sorted(probes))
        return FileRead(path, self._files.key(path), asked)

    def taken(self, blob: bytes) -> tuple[EngineFacts, tuple[FileRead, ...]]:
        """The facts that ``blob`` holds; what was asked of files for them counts here too."""
        entry: _Entry = msgspec.msgpack.decode(blob[_DIGEST:], type=_Entry)
        for file in entry.read:
            for probe, _ in file.asked:
                self._files.note(file.path, probe)
        return entry.facts, entry.read

    def _prune(self) -> None:
        """Keep the newest entries only."""
        folder = self._cache.folder
        if folder is None:
            return
        aged = sorted(self._cache.names(_FOLDER), key=lambda name: _age(folder / _FOLDER / name))
        for name in aged[_KEPT:]:
            (folder / _FOLDER / name).unlink(missing_ok=True)


def _age(path: Path) -> float:
    """How old a file is; the oldest where another run has removed it already."""
    try:
        return -path.stat().st_mtime
    except OSError:
        return float("inf")


def _digest(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_DIGEST).digest()


def _opened(blob: bytes) -> _Entry | None:
    if _digest(blob[_DIGEST:]) != blob[:_DIGEST]:
        return None
    try:
        return msgspec.msgpack.decode(blob[_DIGEST:], type=_Entry)
    except msgspec.DecodeError:
        # Written by another version of the structures.
        return None
