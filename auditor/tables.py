"""Which registry tables a request asks, and what they hold on each platform."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence

from auditor.errors import UsageError
from auditor.imports import ImportRun
from auditor.program import Files
from auditor.registry import (
    Entry,
    Table,
    named_table,
    read_tables,
    table_names,
    with_overrides,
)
from auditor.request import Request
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.engine import engine_rule
from auditor.ruleset.target import target


class Tables:
    """Reads the tables of a request, platform by platform.

    Args:
        files: the files of the tree.
        capability: what is asked, with the tables that it is asked of.
        request: what is asked of the source.

    Attributes:
        names: the tables, as ``module.NAME``, once one platform has been read.
        read: what was read, in the order of platforms.
    """

    def __init__(self, files: Files, capability: Capability, request: Request) -> None:
        self._files = files
        self._capability = capability
        self._request = request
        self._drafts: set[str] = set()
        self.names: tuple[str, ...] = ()
        self.read: list[Table] = []

    def entries(self) -> Iterator[Entry]:
        """Every entry of every platform."""
        for table in self.read:
            yield from table.entries

    def architectures(self) -> tuple[str, ...]:
        """The architectures, each once."""
        return tuple(dict.fromkeys(entry.architecture for entry in self.entries()))

    def independent(self) -> tuple[str, ...]:
        """Those that are in no table of draft models: each drafts as a model of its own."""
        return tuple(sorted({*self.architectures()} - self._drafts))

    def on(
        self, run: ImportRun, registered: Callable[[Table, tuple[str, ...]], Table] | None = None
    ) -> Table:
        """The tables as one, as a platform has them; what the user says comes last.

        Args:
            run: an import run whose imports are deferred.
            registered: what plugins make of the tables of these names.

        Raises:
            UsageError: the request names a table that is not there.
            RegistryError: a table cannot be read.
        """
        package = target().registry.package
        self.names = self._named(run)
        table = read_tables(run, self._files, self.names, package)
        if registered is not None:
            table = registered(table, self.names)
        table = with_overrides(table, self._request.overrides)
        self._drafts |= {entry.architecture for entry in self._drafting(table, run).entries}
        self.read.append(table)
        return table

    def _drafting(self, table: Table, run: ImportRun) -> Table:
        """The table of draft models; ``table`` itself where that is what is asked."""
        drafts = engine_rule().draft.table
        if self._capability.agrees_with is None or self.names == (drafts,):
            return table
        module, _, name = drafts.rpartition(".")
        known = (drafts,) if name in table_names(run, module) else ()
        return read_tables(run, self._files, known, target().registry.package)

    def _named(self, run: ImportRun) -> tuple[str, ...]:
        """The tables whose entries are asked, as ``module.NAME``."""
        module = target().registry.module
        found: list[str] = []
        for name in self._request.registry:
            known = table_names(run, module)
            meant = named_table(name.removeprefix(f"{module}."), known)
            if meant is None:
                raise _no_such_table(name, known)
            found.append(f"{module}.{meant}")
        return tuple(dict.fromkeys(found)) or self._capability.tables


def _no_such_table(name: str, known: Sequence[str]) -> UsageError:
    near = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}? " if near else ""
    return UsageError(
        f"no registry table is called {name!r}",
        where="--registry",
        next_step=f"{hint}There are: {', '.join(known)}.",
    )
