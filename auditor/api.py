"""The whole question: a source and a request to a Coverage document."""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from auditor import facts as f
from auditor.coverage import (
    SCHEMA_VERSION,
    Coverage,
    Row,
    SourceInfo,
    UndecidedItem,
    sorted_coverage,
)
from auditor.engine import GuardSite, guard_sites
from auditor.environment import Environment
from auditor.errors import UsageError
from auditor.evaluation.import_statements import Conventions
from auditor.imports import ImportRun
from auditor.introspector import Introspector
from auditor.platforms import Platform, build, platform_names
from auditor.program import Files, program_of
from auditor.registry import Entry, Table, read_table
from auditor.rulesdata import (
    Capability,
    ModuleRule,
    capability,
    distributions,
    platforms,
    target,
    vendored,
)
from auditor.sources.tree import Source
from auditor.values import Place, PythonError, Undecided, Version

__all__ = ["Request", "audit", "platform_names"]

_DEFAULT_CAPABILITY = "get_top_tokens"


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask of a source.

    Attributes:
        platforms: names; empty for every known platform.
        architectures: globs over registry keys; empty for all.
        assume: source text or name of a condition to its value.
        env: environment variables.
        run_imports: follow every import; otherwise only what a name needs.
        with_modules: modules taken to exist on every platform asked for.
        without_modules: modules taken to be missing there.
    """

    platforms: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    assume: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    run_imports: bool = True
    with_modules: tuple[str, ...] = ()
    without_modules: tuple[str, ...] = ()


def audit(source: Source, request: Request) -> Coverage:
    """Resolve every entry on every platform asked for.

    Raises:
        DraftauditError: an unknown platform or architecture, or a registry that cannot be read.
    """
    job = _Job(source, request, capability(_DEFAULT_CAPABILITY))
    for platform in job.platforms():
        job.run(platform)
    return job.coverage()


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


class _Job:
    """One audit: the files, and what the platforms have answered so far."""

    def __init__(self, source: Source, request: Request, rule: Capability) -> None:
        self._source = source
        self._request = request
        self._capability = rule
        self._files = Files(source.tree)
        self._paths = source.tree.files()
        self._conventions = conventions()
        self._program = program_of(self._files, self._paths, self._conventions.roots)
        self._environment = Environment(
            self._files, self._paths, self._conventions, distributions(), vendored()
        )
        self._guards = self._guard_sites()
        self._rows: list[Row] = []
        self._read: set[str] = set()
        self._unparsed: dict[str, f.Unparsed] = {}
        self._open: dict[tuple[Place, str], _Open] = {}
        self._unread: dict[tuple[str, Place], set[str]] = {}
        self._known: dict[str, None] = {}

    def _guard_sites(self) -> tuple[GuardSite, ...]:
        rule = self._capability.guard
        if rule is None:
            return ()
        return guard_sites(self._files, self._paths, rule.search, self._capability.name)

    def platforms(self) -> Iterable[Platform]:
        """The platforms asked for, with the user's options, in the order of reports."""
        asked, known = self._request.platforms, platform_names()
        for name in asked:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"Did you mean {near[0]}? " if near else ""
                raise UsageError(
                    f"unknown platform {name!r}",
                    where="--platform",
                    next_step=f"{hint}Known: {', '.join(known)}.",
                )
        own = tuple(
            ModuleRule(names, exist, reason)
            for names, exist, reason in (
                (self._request.without_modules, False, "--without"),
                (self._request.with_modules, True, "--with"),
            )
            if names
        )
        for rule in platforms():
            if not asked or rule.name in asked:
                installed = self._environment.installed(rule, platforms())
                yield build(rule, self._request.assume, self._request.env, own, installed)

    def run(self, platform: Platform) -> None:
        """Resolve the entries on one platform."""
        table = self._table(platform)
        for key, where in table.unread:
            self._unread.setdefault((key, where), set()).add(platform.name)
        run = ImportRun(self._program, platform, self._conventions, eager=self._request.run_imports)
        self._prelude(run)
        introspector = Introspector(run, self._files, self._capability, self._guards)
        for entry in self._wanted(table):
            self._rows.append(introspector.row(entry))
        self._collect(run, introspector)

    def _table(self, platform: Platform) -> Table:
        run = ImportRun(self._program, platform, self._conventions, eager=False)
        package = target().registry.package
        table = read_table(run, self._files, self._capability.registry, package)
        self._known.update(dict.fromkeys(entry.architecture for entry in table.entries))
        return table

    def _prelude(self, run: ImportRun) -> None:
        """Import the registry first: whoever asks it for a class has imported it.

        Where that fails, every entry is asked in the state in which it failed.
        """
        if self._request.run_imports:
            try:
                run.load(self._capability.registry.rpartition(".")[0])
            except PythonError:
                return

    def _wanted(self, table: Table) -> Iterable[Entry]:
        globs = self._request.architectures
        return [
            entry
            for entry in table.entries
            if not globs or any(fnmatch.fnmatchcase(entry.architecture, glob) for glob in globs)
        ]

    def _collect(self, run: ImportRun, introspector: Introspector) -> None:
        name = run.platform.name
        self._read |= run.paths_read
        self._unparsed |= run.unparsed
        for key, why in run.open_conditions.items():
            self._open.setdefault(key, _Open(why)).platforms.add(name)
        for architecture, why in introspector.open_rows.items():
            if why.where is not None:
                item = self._open.setdefault((why.where, why.text), _Open(why))
                item.platforms.add(name)
                item.architectures.add(architecture)

    def coverage(self) -> Coverage:
        """The document.

        Raises:
            UsageError: architectures were asked for, and none matches.
        """
        if self._request.architectures and not self._rows:
            raise _no_such_architecture(self._request.architectures, tuple(self._known))
        asked = self._request.platforms
        return sorted_coverage(
            Coverage(
                schema_version=SCHEMA_VERSION,
                capability=self._capability.name,
                registry=self._capability.registry,
                source=SourceInfo(self._source.label, self._source.version, self._digest()),
                platforms=tuple(name for name in platform_names() if not asked or name in asked),
                imports="run" if self._request.run_imports else "skipped",
                notes=self._notes(),
                rows=tuple(self._rows),
                undecided=tuple(self._undecided()),
            )
        )

    def _digest(self) -> str:
        """SHA-256 over the paths and contents of the modules that the answers rest on."""
        digest = hashlib.sha256()
        for path in sorted(self._read):
            source = self._files.source(path)
            if isinstance(source, bytes):
                digest.update(f"{path}\0{len(source)}\0".encode())
                digest.update(source)
        return f"sha256:{digest.hexdigest()}"

    def _notes(self) -> tuple[str, ...]:
        flag = self._capability.flag
        if flag is None or self._has_flag(flag.holder, flag.name):
            return ()
        return (
            f"{self._source.label} has no {flag.name}: the setting came with a later release, "
            f"so nothing there asks for {self._capability.name}.",
        )

    def _has_flag(self, holder: str, name: str) -> bool:
        module, _, class_name = holder.rpartition(".")
        located = self._program.modules.get(module)
        facts = self._files.facts(located[0]) if located else None
        if not isinstance(facts, f.ModuleFacts):
            return False
        return any(
            isinstance(stmt, f.Class)
            and stmt.name == class_name
            and any(f.Name(name) in getattr(inner, "targets", ()) for inner in stmt.body)
            for stmt in facts.body
        )

    def _undecided(self) -> Iterable[UndecidedItem]:
        for problem in self._source.problems:
            yield UndecidedItem("source", problem.path, 0, "", problem.reason)
        for path, unparsed in self._unparsed.items():
            yield UndecidedItem("file", path, unparsed.line, "", unparsed.reason)
        for (key, where), names in self._unread.items():
            reason = "the entry is not a pair of strings"
            yield UndecidedItem("table", where.path, where.line, key, reason, self._ordered(names))
        for (where, text), item in self._open.items():
            yield UndecidedItem(
                "base" if "base" in item.why.reason else "condition",
                where.path,
                where.line,
                text,
                item.why.reason,
                self._ordered(item.platforms),
                tuple(sorted(item.architectures)),
            )

    @staticmethod
    def _ordered(names: set[str]) -> tuple[str, ...]:
        return tuple(name for name in platform_names() if name in names)


@dataclass(slots=True)
class _Open:
    """A condition that stayed open: on which platforms, and which answers rest on it."""

    why: Undecided
    platforms: set[str] = field(default_factory=set)
    architectures: set[str] = field(default_factory=set)


def _no_such_architecture(globs: tuple[str, ...], known: tuple[str, ...]) -> UsageError:
    lowered = {name.lower(): name for name in known}
    near = [
        lowered[n] for glob in globs for n in difflib.get_close_matches(glob.lower(), lowered, n=3)
    ]
    hint = f"Nearest: {', '.join(near)}." if near else f"There are {len(known)}; see `audit`."
    return UsageError(
        f"no architecture matches {', '.join(map(repr, globs))}", where="--arch", next_step=hint
    )
