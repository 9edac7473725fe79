"""One audit: a source and a request to a Coverage document, computed anew."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from auditor import facts as f
from auditor.answers import Asked, OpenCondition, PlatformAnswer, Study, ask, matches
from auditor.contracts.contract import Contracts, Engine
from auditor.contracts.kept import KeptContracts, Recorder
from auditor.contracts.selection import Selected
from auditor.coverage import (
    SCHEMA_VERSION,
    Caller,
    Coverage,
    Finding,
    Head,
    Row,
    SourceInfo,
    Step,
    UndecidedItem,
    sorted_coverage,
)
from auditor.engine import GuardSite, guard_sites
from auditor.environment import Environment, in_force, without_built
from auditor.errors import UsageError
from auditor.evaluation.import_statements import Conventions
from auditor.headpath.bodies import Syntax
from auditor.imports import ImportRun
from auditor.loading import outside_stores
from auditor.memo import Grounds, digest_of, tool_digest
from auditor.modules import program_of
from auditor.platforms import Platform, build, normal_text
from auditor.prefetch import Prefetch
from auditor.processes import Beside, can_fork, two_logs
from auditor.program import Files, Probe
from auditor.registry import Table
from auditor.request import Request
from auditor.ruleset.capabilities import capability
from auditor.ruleset.distributions import ModuleRule, distributions, generated, vendored
from auditor.ruleset.engine import engine_rule
from auditor.ruleset.platforms import PlatformRule, platform_names, platforms
from auditor.ruleset.target import target
from auditor.sharing import Analyses
from auditor.sources.cache import Cache, CacheConfig
from auditor.sources.tree import Source
from auditor.tables import Tables
from auditor.values import Place, Version
from auditor.verdicts import legend, question

if TYPE_CHECKING:
    from auditor.plugins.account import Account
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
        self._folder = folder
        self._look = look
        #: What ``look`` gave, in the order of platforms.
        self.seen: tuple[bytes, ...] = ()
        self._base = base
        self._changed = changed
        self._analyses = Analyses()
        self._outside: Mapping[str, Place] = {}
        self._engine_read: bytes | None = None
        self._beside: Beside | None = None
        self._beside_of: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._own_platform: dict[str, tuple[PlatformRule, tuple[ModuleRule, ...]]] | None = None
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

    def run(self, processes: int | None) -> tuple[Coverage, Grounds]:
        """The document, and what it rests on."""
        answers = self._answers(processes)
        self.seen = tuple(answer.seen for answer in answers)
        read = frozenset(path for answer in answers for path in answer.read)
        coverage = self._coverage(answers, read)
        probes: dict[str, set[Probe]] = {}
        for known in (self.files.probes(), *(answer.probes for answer in answers)):
            for path, asked in known.items():
                probes.setdefault(path, set()).update(asked)
        return coverage, Grounds(read, probes)

    def _answers(self, processes: int | None) -> list[PlatformAnswer]:
        """Ask every platform, half of them in a second process where that may be."""
        tables = self._prepared(processes)
        asked = self._asked()
        if not can_fork(processes):
            return [ask(asked, platform, table) for platform, table in tables]
        if len(tables) == 1:
            asked = msgspec.structs.replace(asked, helped=True)
            return [ask(asked, platform, table) for platform, table in tables]
        return _in_two(asked, tables)

    def _prepared(self, processes: int | None) -> list[tuple[Platform, Table]]:
        """The platforms with their tables, once the files that they need are at hand."""
        self._tables.read.clear()
        modules = self.program.modules
        with Prefetch(self.files, modules, processes if self._request.run_imports else 1) as ahead:
            try:
                tables = self._read_tables(processes, ahead)
            except BaseException:
                self._leave_beside()
                raise
            if self._request.run_imports:
                registries = {name.rpartition(".")[0] for name in self._tables.names}
                ahead.read(registries | self._entry_modules())
        return tables

    def _read_tables(self, processes: int | None, ahead: Prefetch) -> list[tuple[Platform, Table]]:
        """The platforms with their tables, while other processes read what the first one names.

        What one platform asks, the others will hardly ask less; who calls the capability is read
        again where they do.
        """
        tables: list[tuple[Platform, Table]] = []
        for platform in self.platforms():
            tables.append((platform, self._table(platform)))
            if len(tables) == 1:
                if self._request.run_imports:
                    ahead.begin(self._entry_modules())
                self._read_beside(processes)
        self._asked_platforms = [platform for platform, _ in tables]
        if not self._entry_modules():
            known = tuple(entry.architecture for entry in self._tables.entries())
            raise _no_such_architecture(self._request.architectures, known)
        if self._beside is not None and self._beside_of != self._drafts():
            self._read_beside(processes)
        return tables

    def _read_beside(self, processes: int | None) -> None:
        """Have the engine read beside the files of the models: neither needs the other."""
        self._leave_beside()
        if can_fork(processes) and self._reads_engine:
            self._beside, self._beside_of = Beside(self._read_engine), self._drafts()

    def _leave_beside(self) -> None:
        if self._beside is not None:
            self._beside.close()
            self._beside = None

    def _drafts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The architectures of the tables so far, and those that draft as models of their own."""
        return self._tables.architectures(), self._tables.independent()

    def _entry_modules(self) -> set[str]:
        """The modules of the entries that are asked for, of the tables that are read by now."""
        globs = self._request.architectures
        entries = self._tables.entries()
        return {entry.module for entry in entries if matches(entry.architecture, globs)}

    def _asked(self) -> Asked:
        rule = self._capability.guard
        guards: tuple[GuardSite, ...] = ()
        outside: Mapping[str, Place] = {}
        if rule is not None:
            probed, functions = self._capability.probed, rule.functions
            guards = guard_sites(self.files, self._paths, rule.search, probed, functions)
            if self._reads_engine:
                outside = outside_stores(self.files, self._paths, rule.search)
        self._contracts = self._engine(guards)
        self._outside = outside
        self._analyses = self._known_analyses()
        return Asked(
            self.files,
            Syntax(self.files),
            self._analyses,
            self.program,
            self.conventions,
            self._capability,
            self._tables.names,
            guards,
            outside,
            self._contracts,
            engine_rule().drafter.step,
            self._request.architectures,
            self._request.run_imports,
            self._look,
            {n: s.run for n, s in self._plugins.started.items()} if self._plugins else {},
        )

    @property
    def _reads_engine(self) -> bool:
        """Whether it matters who calls the capability: where it must pick the same token."""
        return self._capability.agrees_with is not None

    def _engine(self, guards: tuple[GuardSite, ...]) -> Contracts:
        """Who calls the capability; the same on every platform."""
        if not self._reads_engine:
            return Contracts(guards=guards)
        blob = self._beside.result() if self._beside is not None else self._read_engine()
        self._engine_read = blob
        flag = self._capability.flag
        flagged = flag is None or self._has_flag(flag.holder, flag.name)
        return replace(self._kept_contracts().taken(blob), guards=guards, flagged=flagged)

    def _read_engine(self) -> bytes:
        def read(files: Recorder) -> Contracts:
            engine = Engine(files, self.program.modules, self._capability, engine_rule())
            return engine.contracts(*self._drafts())

        known = self._base._engine_read if self._base is not None else None
        return self._kept_contracts().get(read, known)

    def _known_analyses(self) -> Analyses:
        """Analyses of the job before that rest on none of the files that differ."""
        if self._base is None or self._base._outside != self._outside:
            return Analyses()
        return self._base._analyses.without(frozenset(self._changed))

    def _kept_contracts(self) -> KeptContracts:
        modules = sorted(self.program.modules.items())
        asked = (tool_digest(), self._capability, self._drafts(), modules)
        return KeptContracts(Cache(CacheConfig(self._folder)), self.files, asked)

    def platforms(self) -> Iterable[Platform]:
        """The platforms asked for, with the user's options, in the order of reports."""
        asked, known = self._request.platforms, platform_names()
        if self._plugins is not None:
            provided = self._provided()
            known = (*known, *provided)
            if provided and not asked:
                asked = tuple(provided)
        for name in asked:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"Did you mean {near[0]}? " if near else ""
                raise UsageError(
                    f"unknown platform {name!r}",
                    where="--platform",
                    next_step=f"{hint}Known: {', '.join(known)}.",
                )
        own = self._options()
        for rule in platforms():
            if not asked or rule.name in asked:
                yield self._built(rule, own)
        if self._plugins is not None:
            for name, (rule, needs) in self._provided().items():
                if name in asked:
                    yield self._built(rule, (*own, *needs))

    def _options(self) -> tuple[ModuleRule, ...]:
        """The modules that the user takes to be there or missing."""
        return tuple(
            ModuleRule(names, exist, reason)
            for names, exist, reason in (
                (self._request.without_modules, False, "--without"),
                (self._request.with_modules, True, "--with"),
            )
            if names
        )

    def _built(self, rule: PlatformRule, modules: tuple[ModuleRule, ...]) -> Platform:
        """A platform with what is installed on it."""
        installed = self._environment.installed(rule, platforms())
        assume, env = self._request.assume, self._request.env
        if self._plugins is not None:
            modules = (*modules, *self._plugins.modules(self._environment.modules_of))
        return build(rule, assume, env, modules, installed, self._request.failing_modules)

    def _provided(self) -> Mapping[str, tuple[PlatformRule, tuple[ModuleRule, ...]]]:
        """The platform that a plugin gives, with the modules that it needs; asked for once."""
        assert self._plugins is not None
        if self._own_platform is None:
            from auditor.plugins.platform import needed, platform_rule

            # Nothing is known of a platform before it is given.
            blank = msgspec.structs.replace(platforms()[-1], attributes={}, predicates={})
            unknown = self._built(blank, self._options())
            found = self._plugins.provider(self.program, unknown, self.conventions)
            self._own_platform = {}
            if found is not None:
                run, plugin, given = found
                assert given.cls is not None
                if any(rule.name == plugin.name for rule in platforms()):
                    raise UsageError(
                        f"{plugin.label} gives a platform, and is called like a built-in one",
                        where="--plugin",
                        next_step="Give the project another name.",
                    )
                rule = platform_rule(run, given.cls, plugin.name, plugin.label, platforms())
                needs = needed(given.needs, plugin.label)
                self._own_platform[plugin.name] = (rule, needs)
        return self._own_platform

    def _names(self) -> tuple[str, ...]:
        """The platforms of the document, in order."""
        return tuple(platform.name for platform in self._asked_platforms)

    def _table(self, platform: Platform) -> Table:
        run = ImportRun(self.program, platform, self.conventions, eager=False)
        if self._plugins is None:
            return self._tables.on(run)
        plugins = self._plugins
        plugins.start(self.program, platform, self.conventions)
        return self._tables.on(run, lambda table, names: plugins.table(table, platform.name, names))

    def _coverage(self, answers: list[PlatformAnswer], read: frozenset[str]) -> Coverage:
        """The document."""
        rows = tuple(row for answer in answers for row in answer.rows)
        remarks = self._plugin_findings(rows)
        return sorted_coverage(
            Coverage(
                schema_version=SCHEMA_VERSION,
                capability=self._capability.name,
                registry=", ".join(self._tables.names),
                source=SourceInfo(self._source.label, self._source.version, self._digest(read)),
                platforms=self._names(),
                imports="run" if self._request.run_imports else "skipped",
                notes=(*self._notes(), *self._unused_options(answers)),
                rows=_with_codes(rows, remarks) if remarks else rows,
                findings=(*_findings(answers), *remarks),
                undecided=tuple(self._undecided(answers)),
                callers=tuple(self._callers()),
                heads=tuple(_heads(answers)),
                plugins=self._account().infos(self._names()) if self._plugins is not None else (),
                question=question(self._capability),
                legend=legend(self._capability),
            )
        )

    def _account(self) -> Account:
        """What is to be told of the plugins."""
        from auditor.plugins.account import Account

        assert self._plugins is not None
        return Account(self._plugins, self.files)

    def _plugin_findings(self, rows: tuple[Row, ...]) -> tuple[Finding, ...]:
        """What is to be said of the plugins themselves."""
        if self._plugins is None:
            return ()
        from auditor.plugins.remarks import On, Remarks

        modules = self.program.modules
        on = On(self.files, modules, self._contracts, self._capability, engine_rule())
        return Remarks(self._plugins, on, rows).findings()

    def _digest(self, read: Iterable[str]) -> str:
        return digest_of({path: self.files.key(path) for path in read})

    def _notes(self) -> Iterable[str]:
        if self._plugins is not None:
            yield from self._account().notes()
        label, flag = self._source.label, self._capability.flag
        if flag is not None and not self._has_flag(flag.holder, flag.name):
            yield (
                f"{label} has no {flag.name}: the setting came with a later release, "
                f"so nothing there asks for {self._capability.name}."
            )
        if flag is None and not self._is_named():
            yield f"nothing in the engine of {label} names {self._capability.probed}."
        setting = target().overrides
        if self._request.overrides and not self._has_flag(setting.holder, setting.name):
            yield (
                f"{label} has no {setting.name}: --override shows what registering the class "
                "by a plugin would do."
            )
        known = {entry.architecture for entry in self._tables.entries() if entry.where.path}
        for name in self._request.overrides:
            if name not in known:
                yield f"{name} is in none of the tables that are asked: --override adds it."

    def _is_named(self) -> bool:
        """Whether the engine names what is asked for, or a function that asks in its stead."""
        guard = self._capability.guard
        if guard is None:
            return True
        names = (self._capability.probed, *guard.functions)
        named = False
        for path in self._paths:
            if path.startswith(guard.search) and path.endswith(".py"):
                for name in names:
                    self.files.note(path, ("mentions", name, 0, 0, 0))
                text = self.files.text(path)
                named |= isinstance(text, bytes) and any(name.encode() in text for name in names)
        return named

    def _unused_options(self, answers: list[PlatformAnswer]) -> Iterable[str]:
        """The user's options that decided nothing: most likely a name that is spelled otherwise."""
        used = {option for answer in answers for option in answer.options_used}
        request = self._request
        given = [
            *(("--assume", normal_text(text)) for text in request.assume),
            *(("--env", name) for name in request.env),
            *(("--with", name) for name in request.with_modules),
            *(("--without", name) for name in request.without_modules),
        ]
        for option in given:
            if option not in used:
                yield f"{' '.join(option)} decided nothing: no module that was run asks for it"

    def _has_flag(self, holder: str, name: str) -> bool:
        module, _, class_name = holder.rpartition(".")
        located = self.program.modules.get(module)
        facts = self.files.facts(located[0]) if located else None
        if not isinstance(facts, f.ModuleFacts):
            return False
        return any(
            isinstance(stmt, f.Class)
            and stmt.name == class_name
            and any(f.Name(name) in getattr(inner, "targets", ()) for inner in stmt.body)
            for stmt in facts.body
        )

    def _undecided(self, answers: list[PlatformAnswer]) -> Iterable[UndecidedItem]:
        for problem in self._source.problems:
            yield UndecidedItem("source", problem.path, 0, "", problem.reason)
        build = self._environment.unread_build()
        if build is not None:
            yield UndecidedItem("file", "setup.py", build.line, "", build.reason)
        unparsed = {p: why for answer in answers for p, why in answer.unparsed.items()}
        for path, why in unparsed.items():
            yield UndecidedItem("file", path, why.line, "", why.reason)
        yield from self._unread(answers)
        yield from self._unknown_callers()
        if self._plugins is not None:
            yield from self._account().undecided()
        yield from _open_conditions(answers)

    def _callers(self) -> Iterable[Caller]:
        """What drafts for the architectures asked for, each class once for all of them."""
        known = {drafter.cls: drafter for drafter in self._contracts.drafters}
        found: dict[Selected, list[str]] = {}
        for name, selected in self._contracts.selected.items():
            if matches(name, self._request.architectures):
                for one in selected:
                    found.setdefault(one, []).append(name)
        for one, names in found.items():
            drafter = known[one.drafter]
            calls = (self._cited("call", call.where, call.form) for call in drafter.calls)
            yield Caller(
                str(one.drafter),
                one.runner,
                one.method,
                one.conditions,
                one.open or None,
                self._cited("made", one.where, ""),
                tuple(calls),
                drafter.guarded,
                tuple(sorted(names)),
            )

    def _cited(self, kind: str, where: Place, note: str) -> Step:
        return Step(kind, where.path, where.line, self.files.line(where.path, where.line), note)

    def _unknown_callers(self) -> Iterable[UndecidedItem]:
        """What was not followed of the engine, and architectures of which nothing drafts."""
        for problem in self._contracts.problems:
            where = problem.where
            yield UndecidedItem("caller", where.path, where.line, "", problem.reason)
        found: dict[str, list[str]] = {}
        for entry in self._tables.entries() if self._reads_engine else ():
            reason = self._contracts.unknown(entry.architecture)
            if reason is not None and matches(entry.architecture, self._request.architectures):
                found.setdefault(reason, []).append(entry.architecture)
        for reason, names in found.items():
            architectures = tuple(sorted(set(names)))
            yield UndecidedItem("caller", "", 0, "", reason, architectures=architectures)

    def _unread(self, answers: list[PlatformAnswer]) -> Iterable[UndecidedItem]:
        found: dict[tuple[str, Place], list[str]] = {}
        for answer, table in zip(answers, self._tables.read, strict=True):
            for entry in table.unread:
                found.setdefault(entry, []).append(answer.platform)
        for (key, where), names in found.items():
            reason = "the entry is not a pair of strings"
            yield UndecidedItem("table", where.path, where.line, key, reason, tuple(names))


def _with_codes(rows: tuple[Row, ...], findings: tuple[Finding, ...]) -> tuple[Row, ...]:
    from auditor.plugins.remarks import with_codes

    return with_codes(rows, findings)


def _session(
    plugins: Sequence[Plugin], files: Files, request: Request, version: str | None
) -> Session:
    from auditor.plugins.session import Session

    config, asked = engine_rule().config.class_, capability(request.capability)
    probed = frozenset(filter(None, (asked.probed, asked.agrees_with)))
    eager = request.run_imports
    return Session(plugins, files, target(), version, eager=eager, config=config, probed=probed)


def _in_two(asked: Asked, tables: list[tuple[Platform, Table]]) -> list[PlatformAnswer]:
    """Ask every second platform in another process, and the others here.

    Both tell each other what they have analysed, and start at the two ends of the tables.
    """
    logs = two_logs() if asked.run_imports else None
    here, there = asked, asked
    if logs is not None:
        mine, theirs = asked.analyses.in_two(logs, asked.files)
        here = msgspec.structs.replace(asked, analyses=mine)
        there = msgspec.structs.replace(asked, analyses=theirs, backwards=True)
    try:
        beside = Beside(lambda: msgspec.msgpack.encode([ask(there, p, t) for p, t in tables[1::2]]))
        answers = [ask(here, platform, table) for platform, table in tables[0::2]]
        answers += msgspec.msgpack.decode(beside.result(), type=list[PlatformAnswer])
    finally:
        for log in logs or ():
            log.close()
    position = {platform.name: index for index, (platform, _) in enumerate(tables)}
    return sorted(answers, key=lambda answer: position[answer.platform])


def _heads(answers: list[PlatformAnswer]) -> Iterable[Head]:
    """What is known of each class's head, once for all platforms where it is the same."""
    found: dict[Head, list[str]] = {}
    for answer in answers:
        for head in answer.heads:
            anywhere = msgspec.structs.replace(head, platforms=())
            found.setdefault(anywhere, []).append(answer.platform)
    for head, names in found.items():
        yield msgspec.structs.replace(head, platforms=tuple(names))


def _findings(answers: list[PlatformAnswer]) -> Iterable[Finding]:
    """Each finding once, with every architecture and platform that it is about."""
    found: dict[Finding, tuple[dict[str, None], dict[str, None]]] = {}
    for answer in answers:
        for finding in answer.findings:
            key = msgspec.structs.replace(finding, architectures=(), platforms=())
            names, platforms = found.setdefault(key, ({}, {}))
            names.update(dict.fromkeys(finding.architectures))
            platforms.update(dict.fromkeys(finding.platforms))
    for key, (names, platforms) in found.items():
        architectures = tuple(sorted(names))
        yield msgspec.structs.replace(key, architectures=architectures, platforms=tuple(platforms))


def _open_conditions(answers: list[PlatformAnswer]) -> Iterable[UndecidedItem]:
    """Conditions that stayed open: each once, with its platforms and the answers it decides."""
    found: dict[tuple[str, int, str], list[tuple[str, OpenCondition]]] = {}
    for answer in answers:
        for item in answer.conditions:
            key = (item.path, item.line, item.text)
            found.setdefault(key, []).append((answer.platform, item))
    for (path, line, text), items in found.items():
        first = items[0][1]
        yield UndecidedItem(
            "base" if "base of" in first.reason else "condition",
            path,
            line,
            text,
            first.reason,
            tuple(platform for platform, _ in items),
            tuple(sorted({name for _, item in items for name in item.architectures})),
        )


def _no_such_architecture(globs: tuple[str, ...], known: tuple[str, ...]) -> UsageError:
    lowered = {name.lower(): name for name in known}
    near = [
        lowered[n] for glob in globs for n in difflib.get_close_matches(glob.lower(), lowered, n=3)
    ]
    hint = f"Nearest: {', '.join(near)}." if near else f"There are {len(known)}; see `audit`."
    return UsageError(
        f"no architecture matches {', '.join(map(repr, globs))}", where="--arch", next_step=hint
    )
