"""Registry tables of a source: which architectures they name, and what those are on a platform."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from glob import escape

import msgspec

from auditor.api import Resources, audit, collector_paused
from auditor.checkpoints.configs import ConfigRun
from auditor.checkpoints.conventions import checkpoint_rule
from auditor.checkpoints.values import CannotFollow, Raised
from auditor.contracts.names import Ref
from auditor.coverage import Coverage, Row
from auditor.factcache import FactCache
from auditor.job import Job
from auditor.program import Files
from auditor.request import Request
from auditor.rulesdata import capability
from auditor.sources.tree import Source

_CAPABILITY = "get_top_tokens"


class Tables:
    """The tables of one source.

    Args:
        run: an interpreter over its definitions.
        source: what is audited.
        request: what an audit is asked beside the architectures.
        resources: what may be used to answer.
    """

    def __init__(
        self, run: ConfigRun, source: Source, request: Request, resources: Resources
    ) -> None:
        self._run = run
        self._source = source
        self._request = request
        self._resources = resources
        self._names: dict[str, tuple[str, ...]] = {}
        self.drafts = capability(_CAPABILITY).registry

    def independent(self) -> list[str]:
        """The tables of independent models, dotted, in the order of looking."""
        module = self.drafts.rpartition(".")[0]
        return [f"{module}.{name}" for name in checkpoint_rule().tables.independent]

    def architectures(self, table: str) -> tuple[str, ...]:
        """The keys of a table; none where the release has no such table."""
        if table not in self._names:
            self._names[table] = self._read(table)
        return self._names[table]

    def _read(self, table: str) -> tuple[str, ...]:
        module, _, name = table.rpartition(".")
        sketch = self._run.names.sketch(module)
        if sketch is None or name not in sketch.top:
            return ()
        try:
            found = self._run.named(Ref(module, name))
        except (CannotFollow, Raised):
            if table != self.drafts:
                return ()
            # Built by something that only a whole run of the module follows.
            every = audit(self._source, Request(run_imports=False), self._resources)
            return tuple(dict.fromkeys(row.architecture for row in every.rows))
        return (
            tuple(key for key in found if isinstance(key, str)) if isinstance(found, dict) else ()
        )

    def table_of(self, architecture: str, *, independent: bool) -> str | None:
        """The table that has an architecture, or None."""
        tables = self.independent() if independent else [self.drafts]
        return next((one for one in tables if architecture in self.architectures(one)), None)

    def coverage(self, table: str, architectures: Sequence[str]) -> Coverage:
        """The audit of some entries of a table, at least one."""
        globs = tuple(escape(one) for one in dict.fromkeys(architectures))
        request = replace(self._request, architectures=globs)
        if table == self.drafts:
            return audit(self._source, request, self._resources)
        with collector_paused(), closing(FactCache(self._resources.cache)) as cache:
            files = Files(self._source.tree, cache)
            job = OtherTable(self._source, request, files, table)
            return job.run(self._resources.processes)[0]


class OtherTable(Job):
    """An audit of the entries of another table than that of draft models."""

    def __init__(self, source: Source, request: Request, files: Files, table: str) -> None:
        super().__init__(source, request, files)
        self._capability = msgspec.structs.replace(self._capability, registry=table)


def rows_of(coverage: Coverage) -> dict[str, tuple[Row, ...]]:
    """The rows of each architecture, in the order of platforms."""
    found: dict[str, list[Row]] = {}
    for row in coverage.rows:
        found.setdefault(row.architecture, []).append(row)
    return {name: tuple(rows) for name, rows in found.items()}
