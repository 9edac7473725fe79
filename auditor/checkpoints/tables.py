"""Registry tables of a source: which architectures they name, and what those are on a platform."""

from __future__ import annotations

from collections.abc import Sequence
from glob import escape

from msgspec.structs import replace

from auditor.api import Resources, audit
from auditor.checkpoints.configs import ConfigRun
from auditor.checkpoints.conventions import checkpoint_rule
from auditor.checkpoints.values import CannotFollow, Raised
from auditor.contracts.names import Ref
from auditor.coverage import Coverage, Row
from auditor.request import Request
from auditor.ruleset.engine import engine_rule
from auditor.sources.plugin import Plugin
from auditor.sources.tree import Source


class Tables:
    """The tables of one source.

    Args:
        run: an interpreter over its definitions.
        source: what is audited.
        request: what an audit is asked beside the architectures.
        resources: what may be used to answer.
        plugins: plugins over the source, which may register architectures.
    """

    def __init__(
        self,
        run: ConfigRun,
        source: Source,
        request: Request,
        resources: Resources,
        plugins: Sequence[Plugin] = (),
    ) -> None:
        self._run = run
        self._source = source
        self._request = request
        self._resources = resources
        self._plugins = tuple(plugins)
        self._names: dict[str, tuple[str, ...]] = {}
        self.drafts = engine_rule().draft.table

    def independent(self) -> list[str]:
        """The tables of independent models, dotted, in the order of looking."""
        module = self.drafts.rpartition(".")[0]
        return [f"{module}.{name}" for name in checkpoint_rule().tables.independent]

    def architectures(self, table: str) -> tuple[str, ...]:
        """The keys of a table, and what plugins register; none where there is no such table."""
        if table not in self._names:
            self._names[table] = self._audited(table) if self._plugins else self._read(table)
        return self._names[table]

    def _audited(self, table: str) -> tuple[str, ...]:
        """The architectures of the audit's rows."""
        request = replace(self._request, architectures=(), registry=(table,))
        every = audit(self._source, request, self._resources, self._plugins)
        return tuple(dict.fromkeys(row.architecture for row in every.rows))

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
        """The table that has an architecture, or None; a class of the user's is in the first."""
        tables = self.independent() if independent else [self.drafts]
        if architecture in self._request.overrides:
            return tables[0]
        return next((one for one in tables if architecture in self.architectures(one)), None)

    def coverage(self, table: str, architectures: Sequence[str]) -> Coverage:
        """The audit of some entries of a table, at least one."""
        globs = tuple(escape(one) for one in dict.fromkeys(architectures))
        request = replace(self._request, architectures=globs, registry=(table,))
        return audit(self._source, request, self._resources, self._plugins)


def rows_of(coverage: Coverage) -> dict[str, tuple[Row, ...]]:
    """The rows of each architecture, in the order of platforms."""
    found: dict[str, list[Row]] = {}
    for row in coverage.rows:
        found.setdefault(row.architecture, []).append(row)
    return {name: tuple(rows) for name, rows in found.items()}
