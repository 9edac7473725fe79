"""Reads who calls a capability off the engine, beside whatever else is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from auditor.contracts.contract import Contracts, Engine
from auditor.contracts.kept import KeptContracts, Recorder
from auditor.memo import tool_digest
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
        modules: its modules, by dotted name.
        capability: the method of interest, and the one that it must agree with.
        tables: the entries that are asked for.
        folder: where contracts are kept, or None.
        known: what :attr:`blob` was for another tree of the same files, if it was read.

    Attributes:
        blob: the contracts as they are kept, once they were asked for.
    """

    def __init__(
        self,
        files: Files,
        modules: Mapping[str, tuple[str, bool]],
        capability: Capability,
        tables: Tables,
        folder: Path | None,
        known: bytes | None,
    ) -> None:
        self._files = files
        self._modules = modules
        self._capability = capability
        self._tables = tables
        self._folder = folder
        self._known = known
        self._beside: Beside | None = None
        self._begun_for = self._drafts()
        self.blob: bytes | None = None

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

    def contracts(self) -> Contracts:
        """What the engine says; nothing where that does not matter."""
        if not self.matters:
            return Contracts()
        self.blob = self._beside.result() if self._beside is not None else self._read()
        self._beside = None
        return self._kept().taken(self.blob)

    def _read(self) -> bytes:
        def read(files: Recorder) -> Contracts:
            engine = Engine(files, self._modules, self._capability, engine_rule())
            return engine.contracts(*self._drafts())

        return self._kept().get(read, self._known)

    def _drafts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The architectures of the tables so far, and those that draft as models of their own."""
        return self._tables.architectures(), self._tables.independent()

    def _kept(self) -> KeptContracts:
        asked = (tool_digest(), self._capability, self._drafts(), sorted(self._modules.items()))
        return KeptContracts(Cache(CacheConfig(self._folder)), self._files, asked)
