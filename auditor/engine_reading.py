"""Reads off the engine what bears on a capability, beside whatever else is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from auditor.contracts.contract import Contracts, Engine
from auditor.contracts.kept import EngineFacts, FileRead, KeptFacts, Recorder
from auditor.engine import GuardSite, Sources, guard_sites
from auditor.loading import outside_stores
from auditor.memo import answer_digest, tool_digest
from auditor.processes import Worker, can_fork
from auditor.program import Files
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.engine import engine_rule
from auditor.sources.cache import Cache, CacheConfig
from auditor.tables import Tables
from auditor.values import Place

#: Architectures, and those of them that draft as models of their own.
Drafts = tuple[tuple[str, ...], tuple[str, ...]]


class EngineReading:
    """One reading of the engine, for the drafts of the tables that were read by then.

    Args:
        files: the files of the tree.
        paths: the names of all of them.
        modules: its modules, by dotted name.
        capability: the method of interest, and the one that it must agree with.
        tables: the entries that are asked for.
        folder: where what is read is kept, or None.
        known: what :attr:`blob` was for another tree of the same files, if it was read.

    Attributes:
        blob: what was read as it is kept, once it was asked for.
        read: the files that were read for it, by another process or an earlier run maybe.
    """

    def __init__(
        self,
        files: Files,
        paths: Iterable[str],
        modules: Mapping[str, tuple[str, bool]],
        capability: Capability,
        tables: Tables,
        folder: Path | None,
        known: bytes | None,
    ) -> None:
        self._files = files
        guard = capability.guard
        self._paths = tuple(
            path
            for path in sorted(paths)
            if guard is not None and path.startswith(guard.search) and path.endswith(".py")
        )
        self._modules = modules
        self._capability = capability
        self._tables = tables
        self._folder = folder
        self._known = known
        self._worker: Worker | None = None
        #: What the second process was asked for.
        self._begun_for: Drafts | None = None
        self.blob: bytes | None = None
        self.read: tuple[FileRead, ...] = ()

    @property
    def matters(self) -> bool:
        """Whether it matters who calls the capability: where it must pick the same token."""
        return self._capability.agrees_with is not None

    def start(self, processes: int | None) -> None:
        """Have a second process read the files, where there may be one, before drafts are known."""
        if self._worker is None and self.matters and can_fork(processes):
            self._worker = Worker(self._answered)
            self._worker.send([])

    def begin(self, processes: int | None) -> None:
        """Have it go on for the drafts that are known by now; again if there are more."""
        drafts = self._drafts()
        if self._begun_for not in (None, drafts):
            self.leave()
        self.start(processes)
        if self._worker is not None and self._begun_for is None:
            self._worker.send([drafts])
            self._begun_for = drafts

    def leave(self) -> None:
        """End the second process: nobody asks for what it reads."""
        if self._worker is not None:
            self._worker.close()
        self._worker = self._begun_for = None

    def facts(self) -> EngineFacts:
        """What the engine says; where the token does not matter, only where it probes."""
        if not self.matters:
            return EngineFacts(Contracts(guards=self._guards(self._files)))
        drafts = self._drafts()
        self.blob = self._received() or self._read(drafts)
        facts, self.read = self._kept(drafts).taken(self.blob)
        return facts

    def _received(self) -> bytes | None:
        """What the second process has read; None where it did not."""
        if self._worker is None or self._begun_for is None:
            return None
        self._worker.receive()  # that it has read the files
        blobs = self._worker.receive()
        self.leave()
        return blobs[0] if blobs else None

    def _answered(self, asked: Sequence[Drafts]) -> list[bytes]:
        """What the second process does; asked for no drafts, it reads what none decides."""
        if not asked:
            # Not kept here: who reads a file again is answered from memory.
            self._guards(self._files)
            self._outside(self._files)
        return [self._read(drafts) for drafts in asked]

    def _read(self, drafts: Drafts) -> bytes:
        def read(files: Recorder) -> EngineFacts:
            engine = Engine(files, self._modules, self._capability, engine_rule())
            contracts = engine.contracts(*drafts, self._guards(files))
            return EngineFacts(contracts, self._outside(files))

        return self._kept(drafts).get(read, self._known)

    def _outside(self, files: Sources) -> Mapping[str, Place]:
        rule = self._capability.guard
        return outside_stores(files, self._paths, rule.search) if rule is not None else {}

    def _guards(self, files: Sources) -> tuple[GuardSite, ...]:
        rule = self._capability.guard
        if rule is None:
            return ()
        probed = self._capability.probed
        return guard_sites(files, self._paths, rule.search, probed, rule.functions)

    def _drafts(self) -> Drafts:
        """The architectures of the tables so far, and those that draft as models of their own."""
        return self._tables.architectures(), self._tables.independent()

    def _kept(self, drafts: Drafts) -> KeptFacts:
        modules = sorted(self._modules.items())
        asked = (tool_digest(), self._capability, drafts, modules, self._paths)
        cache = Cache(CacheConfig(self._folder))
        return KeptFacts(cache, self._files, asked, answer_digest)
