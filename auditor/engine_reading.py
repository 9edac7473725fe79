"""Reads off the engine what bears on a capability, beside whatever else is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from auditor.contracts.contract import Contracts, Engine
from auditor.contracts.kept import EngineFacts, FileRead, KeptFacts, Recorder
from auditor.engine import GuardSite, Sources, guard_sites
from auditor.loading import outside_stores
from auditor.memo import answer_digest, tool_digest
from auditor.processes import Beside, can_fork
from auditor.program import Files
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.engine import engine_rule
from auditor.sources.cache import Cache, CacheConfig
from auditor.tables import Tables


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
        self._beside: Beside | None = None
        self._begun_for = self._drafts()
        self.blob: bytes | None = None
        self.read: tuple[FileRead, ...] = ()

    @property
    def matters(self) -> bool:
        """Whether it matters who calls the capability: where it must pick the same token."""
        return self._capability.agrees_with is not None

    def begin(self, processes: int | None) -> None:
        """Have a second process read, where there may be one; again if there are more drafts."""
        if not self.matters or not can_fork(processes):
            return
        if self._beside is None or self._begun_for != self._drafts():
            self.leave()
            self._beside, self._begun_for = Beside(self._read), self._drafts()

    def leave(self) -> None:
        """End the second process: nobody asks for what it reads."""
        if self._beside is not None:
            self._beside.close()
            self._beside = None

    def facts(self) -> EngineFacts:
        """What the engine says; where the token does not matter, only where it probes."""
        if not self.matters:
            return EngineFacts(Contracts(guards=self._guards(self._files)))
        self.blob = self._beside.result() if self._beside is not None else self._read()
        self._beside = None
        facts, self.read = self._kept().taken(self.blob)
        return facts

    def _read(self) -> bytes:
        def read(files: Recorder) -> EngineFacts:
            engine = Engine(files, self._modules, self._capability, engine_rule())
            contracts = engine.contracts(*self._drafts(), self._guards(files))
            rule = self._capability.guard
            outside = outside_stores(files, self._paths, rule.search) if rule is not None else {}
            return EngineFacts(contracts, outside)

        return self._kept().get(read, self._known)

    def _guards(self, files: Sources) -> tuple[GuardSite, ...]:
        rule = self._capability.guard
        if rule is None:
            return ()
        probed = self._capability.probed
        return guard_sites(files, self._paths, rule.search, probed, rule.functions)

    def _drafts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The architectures of the tables so far, and those that draft as models of their own."""
        return self._tables.architectures(), self._tables.independent()

    def _kept(self) -> KeptFacts:
        modules = sorted(self._modules.items())
        asked = (tool_digest(), self._capability, self._drafts(), modules, self._paths)
        cache = Cache(CacheConfig(self._folder))
        return KeptFacts(cache, self._files, asked, answer_digest)
