"""What one platform answers: every entry's row, and what stayed open on the way.

An answer can be sent from one process to another, so that platforms are asked in parallel.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from auditor import facts as f
from auditor.analysis import Analysis
from auditor.analyzer import Analyzer
from auditor.contracts.contract import Contracts
from auditor.coverage import Finding, Head, Row
from auditor.engine import GuardSite
from auditor.evaluation.import_statements import Conventions, Program
from auditor.findings import Findings, Subject
from auditor.headpath.bodies import Syntax
from auditor.imports import ImportRun
from auditor.instances import Instances
from auditor.introspector import Introspector
from auditor.platforms import Platform
from auditor.processes import Log, aside, two_logs
from auditor.program import Files
from auditor.registry import Table
from auditor.ruleset.capabilities import Capability
from auditor.sharing import Analyses
from auditor.values import ClassValue, Place, PythonError, Undecided
from auditor.verdicts import head_of, judged


class OpenCondition(msgspec.Struct, frozen=True):
    """A condition that stayed open, and the architectures whose answer rests on it."""

    path: str
    line: int
    text: str
    reason: str
    architectures: tuple[str, ...] = ()


class PlatformAnswer(msgspec.Struct, frozen=True):
    """The rows, heads and findings of one platform, what they rest on, and what was not decided.

    ``read`` are the modules that were run; ``options_used`` are the user's options that decided
    something, each with its name or module; ``seen`` is what the request's own look at the run gave
    (:class:`Asked`).
    """

    platform: str
    rows: tuple[Row, ...]
    heads: tuple[Head, ...]
    findings: tuple[Finding, ...]
    read: tuple[str, ...]
    unparsed: dict[str, f.Unparsed]
    conditions: tuple[OpenCondition, ...]
    options_used: tuple[tuple[str, str], ...] = ()
    seen: bytes = b""


class Asked(msgspec.Struct, frozen=True):
    """What every platform is asked in the same way.

    ``look`` is shown each platform's run once it is answered; what it gives goes into the answer.
    ``started`` are processes by platform in which something is loaded already; ``backwards`` says
    to analyse the last entry first, where another process begins with the first; ``helped`` says
    that a second process may help with one platform.
    """

    files: Files
    syntax: Syntax
    analyses: Analyses
    program: Program
    conventions: Conventions
    capability: Capability
    tables: tuple[str, ...]
    guards: tuple[GuardSite, ...]
    outside: Mapping[str, Place]
    contracts: Contracts
    step: str
    architectures: tuple[str, ...]
    run_imports: bool
    look: Callable[[Study], bytes] | None = None
    started: Mapping[str, ImportRun] = {}
    backwards: bool = False
    helped: bool = False


class Study(msgspec.Struct, frozen=True):
    """One platform's run, with what every row rests on: for those who look behind the answer."""

    run: ImportRun
    rows: tuple[Row, ...]
    classes: Mapping[str, ClassValue]
    analyzer: Analyzer
    contracts: Contracts
    step: str


class Resolved(msgspec.Struct, frozen=True):
    """The rows of one platform as its import run alone answers them, and what they rest on."""

    platform: Platform
    run: ImportRun
    introspector: Introspector
    rows: tuple[Row, ...]


def resolve(asked: Asked, platform: Platform, table: Table) -> Resolved:
    """Import the entries of ``table`` on one platform."""
    run = asked.started.get(platform.name) or ImportRun(
        asked.program, platform, asked.conventions, eager=asked.run_imports
    )
    if asked.run_imports:
        _prelude(run, asked.tables)
    introspector = Introspector(run, asked.files, asked.capability, asked.guards)
    rows = tuple(
        introspector.row(entry)
        for entry in table.entries
        if matches(entry.architecture, asked.architectures)
    )
    return Resolved(platform, run, introspector, rows)


def judge(asked: Asked, resolved: Resolved) -> PlatformAnswer:
    """What a platform answers, once its entries are resolved."""
    platform, run = resolved.platform, resolved.run
    introspector, rows = resolved.introspector, resolved.rows
    analyzer = Analyzer(run, asked.syntax, asked.outside, asked.capability, asked.analyses)
    heads: tuple[Head, ...] = ()
    findings: tuple[Finding, ...] = ()
    if asked.capability.agrees_with is None:
        rows = _probed(asked, rows, introspector, analyzer)
    elif asked.helped and asked.run_imports and (logs := two_logs()) is not None:
        rows, heads, findings = _analysed_in_two(asked, rows, introspector, analyzer, logs)
    else:
        rows, heads, findings = _analysed(asked, rows, introspector, analyzer)
    seen = b""
    if asked.look is not None:
        classes = introspector.classes
        seen = asked.look(Study(run, rows, classes, analyzer, asked.contracts, asked.step))
    return PlatformAnswer(
        platform=platform.name,
        rows=rows,
        heads=heads,
        findings=findings,
        read=tuple(sorted(run.paths_read)),
        unparsed=run.unparsed,
        conditions=_conditions(run, introspector.open_rows),
        options_used=tuple(sorted(platform.options_used())),
        seen=seen,
    )


def _analysed(
    asked: Asked, rows: tuple[Row, ...], introspector: Introspector, analyzer: Analyzer
) -> tuple[tuple[Row, ...], tuple[Head, ...], tuple[Finding, ...]]:
    """The rows as their classes and callers judge them, the record of each class, and findings.

    Every row is resolved before the first is analysed: analysis may ask modules for names, and no
    answer of a row depends on that.
    """
    heads: dict[str, Head] = {}
    judgements: list[Row] = []
    found: list[Finding] = []
    findings = Findings(asked.contracts, asked.capability, asked.step)
    made = _analyses_backwards if asked.backwards else _analyses
    analyses = made(analyzer, introspector, rows)
    for row in rows:
        analysis = analyses.get(row.architecture)
        if analysis is not None:
            cls = introspector.classes[row.architecture]
            subject = Subject(judged(row, analysis), analysis, partial(analyzer.method, cls))
            row, own = findings.of(subject)
            found.extend(own)
            if cls.dotted not in heads:
                write = partial(head_of, analysis, row.platform, asked.files)
                heads[cls.dotted] = asked.analyses.record(analysis, row.platform, write)
        judgements.append(row)
    return tuple(judgements), tuple(heads.values()), tuple(found)


def _analysed_in_two(
    asked: Asked, rows: tuple[Row, ...], introspector: Introspector, analyzer: Analyzer,
    logs: tuple[Log, Log],
) -> tuple[tuple[Row, ...], tuple[Head, ...], tuple[Finding, ...]]:  # fmt: skip
    """As :func:`_analysed`, while a second process makes analyses from the last entry on."""
    mine, theirs = asked.analyses.in_two(logs, asked.files)
    backwards = tuple(reversed(rows))
    try:
        with aside(partial(_analyses, analyzer.sharing(theirs), introspector, backwards)):
            return _analysed(asked, rows, introspector, analyzer.sharing(mine))
    finally:
        for log in logs:
            log.close()


def _analyses(
    analyzer: Analyzer, introspector: Introspector, rows: tuple[Row, ...]
) -> dict[str, Analysis]:
    """The analysis of each entry that has a class, in the order of the rows."""
    classes = introspector.classes
    return {
        row.architecture: analyzer.analyse(classes[row.architecture], stub=row.verdict == "stub")
        for row in rows
        if row.architecture in classes
    }


def _analyses_backwards(
    analyzer: Analyzer, introspector: Introspector, rows: tuple[Row, ...]
) -> dict[str, Analysis]:
    """As :func:`_analyses`, the last first; conditions are told as if the first had come first."""
    run = analyzer.bodies.run
    before, found = run.open_conditions, {}
    apart: list[dict[tuple[Place, str], Undecided]] = []
    for row in reversed(rows):
        run.open_conditions = {}
        found.update(_analyses(analyzer, introspector, (row,)))
        apart.append(run.open_conditions)
    run.open_conditions = before
    for conditions in reversed(apart):
        for why in conditions.values():
            run.note_condition(why)
    return found


def _probed(
    asked: Asked, rows: tuple[Row, ...], introspector: Introspector, analyzer: Analyzer
) -> tuple[Row, ...]:
    """The rows where ``hasattr`` of an instance alone decides."""
    evidence = introspector.evidence
    instances = Instances(analyzer.bodies, evidence, asked.capability, asked.guards)
    classes = introspector.classes
    settled = tuple(
        instances.row(row, classes[row.architecture]) if row.architecture in classes else row
        for row in rows
    )
    introspector.open_rows.update(instances.open_rows)
    return settled


def matches(architecture: str, globs: tuple[str, ...]) -> bool:
    """Whether an architecture is asked for; no glob asks for all."""
    return not globs or any(fnmatch.fnmatchcase(architecture, glob) for glob in globs)


def _prelude(run: ImportRun, tables: tuple[str, ...]) -> None:
    """Import the registry first: whoever asks it for a class has imported it.

    Where that fails, every entry is asked in the state in which it failed.
    """
    for module in dict.fromkeys(name.rpartition(".")[0] for name in tables):
        try:
            run.load(module)
        except (PythonError, RecursionError):
            return


def _conditions(run: ImportRun, rows: Mapping[str, Undecided]) -> tuple[OpenCondition, ...]:
    """Every condition that stayed open, with the rows that it decides."""
    found: dict[tuple[str, int, str], OpenCondition] = {}
    everything: list[tuple[Undecided, tuple[str, ...]]]
    everything = [(why, ()) for why in run.open_conditions.values()]
    everything += [(why, (name,)) for name, why in rows.items()]
    for why, architectures in everything:
        path, line = (why.where.path, why.where.line) if why.where else ("", 0)
        key = (path, line, why.text)
        before = found.get(key)
        found[key] = OpenCondition(
            path,
            line,
            why.text,
            before.reason if before else why.reason,
            (*(before.architectures if before else ()), *architectures),
        )
    return tuple(found.values())
