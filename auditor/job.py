"""One audit: a source and a request to a Coverage document, computed anew."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from auditor.answers import Asked, PlatformAnswer, Study, judge, matches, resolve
from auditor.asked_platforms import AskedPlatforms
from auditor.contracts.contract import Contracts
from auditor.coverage import Coverage
from auditor.document.assembly import document
from auditor.document.audited import Audited
from auditor.engine import has_setting
from auditor.engine_reading import EngineReading
from auditor.environment import Environment, in_force, without_built
from auditor.errors import UsageError
from auditor.evaluation.import_statements import Conventions
from auditor.headpath.bodies import Syntax
from auditor.imports import ImportRun
from auditor.memo import Grounds
from auditor.modules import program_of
from auditor.platforms import Platform
from auditor.prefetch import Prefetch
from auditor.processes import Beside, Tickets, can_fork, two_logs
from auditor.program import Files, Probe
from auditor.registry import Table
from auditor.request import Request
from auditor.ruleset.capabilities import capability
from auditor.ruleset.distributions import distributions, generated, vendored
from auditor.ruleset.engine import engine_rule
from auditor.ruleset.target import target
from auditor.sharing import Analyses
from auditor.sources.tree import Source
from auditor.stack import roomy
from auditor.tables import Tables
from auditor.values import Place, Version

if TYPE_CHECKING:
    from auditor.plugins.session import Session
    from auditor.sources.plugin import Plugin


def conventions() -> Conventions:
    """What the import run must know of vLLM, from ``rules/vllm.toml``."""
    rule = target()
    versions = tuple(tuple(map(int, text.split("."))) for text in rule.python.versions)
    return Conventions(
        roots=frozenset({rule.package.name}),
        current_platform=rule.package.current_platform,
        constants=rule.constants,
        python=Version(versions),
    )


class Job:
    """One audit: the files of a source, and what is asked of them.

    Args:
        source: what is audited.
        request: what is asked.
        files: the files of the source.
        folder: where what was read of the engine is kept, or None.
        look: is shown each platform's run once it is answered; see :attr:`seen`.
        base: a job that has run on a tree which differs in ``changed`` alone.
        changed: the files that differ.
        plugins: plugins over the source, whose packages its tree holds already.
    """

    def __init__(
        self,
        source: Source,
        request: Request,
        files: Files,
        folder: Path | None = None,
        look: Callable[[Study], bytes] | None = None,
        base: Job | None = None,
        changed: Collection[str] = (),
        plugins: Sequence[Plugin] = (),
    ) -> None:
        self._plugins: Session | None = None
        if plugins:
            self._plugins = _session(plugins, files, request, source.version)
        self._look = look
        #: What ``look`` gave, in the order of platforms.
        self.seen: tuple[bytes, ...] = ()
        self._base = base
        self._changed = changed
        self._analyses = Analyses()
        self._outside: Mapping[str, Place] = {}
        self._source = source
        self._request = request
        self._capability = capability(request.capability)
        self._tables = Tables(files, self._capability, request)
        self.files = files
        self._paths = source.tree.files()
        self.conventions = conventions()
        if self._plugins is not None:
            known = self.conventions.roots | self._plugins.roots
            self.conventions = replace(self.conventions, roots=known)
        modules = without_built(self._paths, in_force(vendored(), source.version), generated())
        roots, problems = self.conventions.roots, source.problems
        self.program = program_of(self.files, modules, roots, problems)
        self._environment = Environment(
            self.files, self._paths, self.conventions, distributions(), vendored(), source.version
        )
        self.platforms = AskedPlatforms(
            request, self._environment, self.program, self.conventions, self._plugins
        )
        before = base._engine if base is not None else None
        self._engine: EngineReading = EngineReading(
            files,
            self._paths,
            self.program.modules,
            self._capability,
            self._tables,
            folder,
            before.blob if before is not None else None,
        )

    @roomy
    def run(self, processes: int | None) -> tuple[Coverage, Grounds]:
        """The document, and what it rests on."""
        try:
            tables = self._prepared(processes)
            asked = self._asked()
        finally:
            self._engine.leave()
        answers = _answers(asked, tables, processes)
        self.seen = tuple(answer.seen for answer in answers)
        read = frozenset(path for answer in answers for path in answer.read)
        coverage = document(self._audited(asked, tables), answers, read)
        keys = {file.path: file.key for file in self._engine.read}
        digests = {(file.path, p): one for file in self._engine.read for p, one in file.asked}
        return coverage, Grounds(read, self.files.probes(), keys, digests)

    def _prepared(self, processes: int | None) -> list[tuple[Platform, Table]]:
        """The platforms with their tables, once the files that they need are at hand."""
        self._tables.read.clear()
        self._engine.start(processes)
        modules = self.program.modules
        with Prefetch(self.files, modules, processes if self._request.run_imports else 1) as ahead:
            tables = self._read_tables(processes, ahead)
            if self._request.run_imports:
                registries = {name.rpartition(".")[0] for name in self._tables.names}
                ahead.read(registries | self._entry_modules(), self._entry_classes())
        return tables

    def _read_tables(self, processes: int | None, ahead: Prefetch) -> list[tuple[Platform, Table]]:
        """The platforms with their tables, while other processes read what the first one names.

        What one platform asks, the others will hardly ask less; who calls the capability is read
        again where they do.
        """
        tables: list[tuple[Platform, Table]] = []
        for platform in self.platforms:
            tables.append((platform, self._table(platform)))
            ahead.go_on()
            if len(tables) == 1:
                if self._request.run_imports:
                    ahead.begin(self._entry_modules())
                self._engine.begin(processes)
        if not self._entry_modules():
            known = tuple(entry.architecture for entry in self._tables.entries())
            raise _no_such_architecture(self._request.architectures, known)
        self._engine.begin(processes)
        return tables

    def _table(self, platform: Platform) -> Table:
        run = ImportRun(self.program, platform, self.conventions, eager=False)
        if self._plugins is None:
            return self._tables.on(run)
        plugins = self._plugins
        plugins.start(self.program, platform, self.conventions)
        return self._tables.on(run, lambda table, names: plugins.table(table, platform.name, names))

    def _entry_modules(self) -> set[str]:
        """The modules of the entries that are asked for, of the tables that are read by now."""
        globs = self._request.architectures
        entries = self._tables.entries()
        return {entry.module for entry in entries if matches(entry.architecture, globs)}

    def _entry_classes(self) -> set[tuple[str, str]]:
        """The classes of those entries, each with its module."""
        globs = self._request.architectures
        entries = self._tables.entries()
        return {(e.module, e.class_name) for e in entries if matches(e.architecture, globs)}

    def _asked(self) -> Asked:
        """What every platform is asked; read off the engine first."""
        engine = self._engine.facts()
        contracts, self._outside = self._flagged(engine.contracts), engine.outside
        self._analyses = self._known_analyses()
        return Asked(
            self.files,
            Syntax(self.files),
            self._analyses,
            self.program,
            self.conventions,
            self._capability,
            self._tables.names,
            contracts.guards,
            self._outside,
            contracts,
            engine_rule().drafter.step,
            self._request.architectures,
            self._request.run_imports,
            self._look,
            {n: s.run for n, s in self._plugins.started.items()} if self._plugins else {},
        )

    def _flagged(self, contracts: Contracts) -> Contracts:
        """The contracts, with whether the release has the setting that makes the engine ask."""
        flag = self._capability.flag
        if flag is None or not self._engine.matters:
            return contracts
        flagged = has_setting(self.files, self.program.modules, flag.holder, flag.name)
        return replace(contracts, flagged=flagged)

    def _known_analyses(self) -> Analyses:
        """Analyses of the job before that rest on none of the files that differ."""
        if self._base is None or self._base._outside != self._outside:
            return Analyses()
        return self._base._analyses.without(frozenset(self._changed))

    def _audited(self, asked: Asked, tables: list[tuple[Platform, Table]]) -> Audited:
        return Audited(
            self._source,
            self._request,
            self._capability,
            self.files,
            self._paths,
            self.program,
            self._environment,
            self._tables,
            asked.contracts,
            tuple(platform.name for platform, _ in tables),
            self._plugins,
        )


def _session(
    plugins: Sequence[Plugin], files: Files, request: Request, version: str | None
) -> Session:
    from auditor.plugins.session import Session

    config, asked = engine_rule().config.class_, capability(request.capability)
    probed = frozenset(filter(None, (asked.probed, asked.agrees_with)))
    eager = request.run_imports
    return Session(plugins, files, target(), version, eager=eager, config=config, probed=probed)


def _answers(
    asked: Asked, tables: list[tuple[Platform, Table]], processes: int | None
) -> list[PlatformAnswer]:
    """Ask every platform, some of them in a second process where that may be."""
    if not can_fork(processes):
        return [judge(asked, resolve(asked, platform, table)) for platform, table in tables]
    if len(tables) == 1:
        helped = msgspec.structs.replace(asked, helped=True)
        return [judge(helped, resolve(helped, *tables[0]))]
    return _in_two(asked, tables)


class _Drawn(msgspec.Struct, array_like=True):
    """What another process answers, and what it has asked of the files for that."""

    answers: list[PlatformAnswer]
    asked: list[tuple[str, Probe]]


def _in_two(asked: Asked, tables: list[tuple[Platform, Table]]) -> list[PlatformAnswer]:
    """Ask about the platforms here and in another process, the next one where there is time.

    Both tell each other what they have analysed, and start at the two ends of the tables. Each
    resolves all of its platforms first: the one that is done with that earlier then analyses more
    of what both need, and neither waits long for the other in the end.
    """
    logs = two_logs() if asked.run_imports else None
    here, there = asked, asked
    if logs is not None:
        mine, theirs = asked.analyses.in_two(logs, asked.files)
        here = msgspec.structs.replace(asked, analyses=mine)
        there = msgspec.structs.replace(asked, analyses=theirs, backwards=True)
    tickets = Tickets(len(tables))

    def drawn(asked: Asked) -> list[PlatformAnswer]:
        resolved = [resolve(asked, *tables[number]) for number in tickets]
        return [judge(asked, one) for one in resolved]

    before = len(asked.files.noted(0))
    beside = Beside(lambda: msgspec.msgpack.encode(_Drawn(drawn(there), asked.files.noted(before))))
    try:
        answers = drawn(here)
        others = msgspec.msgpack.decode(beside.result(), type=_Drawn)
        for path, probe in others.asked:
            asked.files.note(path, probe)
        known = {answer.platform: answer for answer in (*answers, *others.answers)}
        # What a process had drawn that failed is asked again.
        return [known.get(p.name) or judge(here, resolve(here, p, table)) for p, table in tables]
    finally:
        beside.close()
        tickets.close()
        for log in logs or ():
            log.close()


def _no_such_architecture(globs: tuple[str, ...], known: tuple[str, ...]) -> UsageError:
    lowered = {name.lower(): name for name in known}
    near = [
        lowered[n] for glob in globs for n in difflib.get_close_matches(glob.lower(), lowered, n=3)
    ]
    hint = f"Nearest: {', '.join(near)}." if near else f"There are {len(known)}; see `audit`."
    return UsageError(
        f"no architecture matches {', '.join(map(repr, globs))}", where="--arch", next_step=hint
    )
