"""A document as a list of located problems: what SARIF, annotations and the job summary show.

A problem is a finding, or the cells of one architecture that say the same on several platforms.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from auditor.coverage import Coverage, Finding, Row, Step, UndecidedItem
from auditor.reports import rows as view
from auditor.reports.findings import Rule

Severity = Literal["error", "warning", "note"]

#: The most severe first.
RANK: dict[str, int] = {"error": 0, "warning": 1, "note": 2}

#: So many names of a list are written out in a sentence.
_NAMED = 3


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong, where it is seen first.

    Attributes:
        code: of the rule (``SD101``).
        severity: ``error``, ``warning`` or ``note``.
        message: what is wrong, in a sentence without a place.
        path: POSIX path relative to the folder that holds ``vllm/``; never empty.
        line: 1-based.
        text: the source text of that line, or empty where the document does not hold it.
        identity: what stays the same when lines move, and when it is found for one more model.
        architectures: what it is about.
        platforms: where it holds.
        steps: how the answer came about, in order; places outside the tree are left out.
        places: other lines that it is about.
        outside: the path is relative to the root of the repository, not to the tree.
    """

    code: str
    severity: Severity
    message: str
    path: str
    line: int
    text: str
    identity: str
    architectures: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    places: tuple[Step, ...] = ()
    outside: bool = False

    def path_below(self, prefix: str) -> str:
        """The path from the root of the repository; ``prefix`` leads to the tree."""
        return self.path if self.outside else f"{prefix}{self.path}"


class Catalogue(msgspec.Struct, frozen=True):
    """What codes mean.

    Attributes:
        version: of the tool that gives them.
        rules: by code, in the order of a list.
        names: each code in words, with hyphens.
        cells: the code of each cell that is a problem.
        changes: the code of each kind of change.
    """

    version: str
    rules: Mapping[str, Rule]
    names: Mapping[str, str]
    cells: Mapping[str, str]
    changes: Mapping[str, str]


class Report(msgspec.Struct, frozen=True):
    """What a host of reports is told.

    Attributes:
        capability: the method asked for.
        title: of what this is a report, in a line.
        lines: sentences about the whole: counts by platform, notes.
        problems: the most severe first.
        undecided: what was not decided.
    """

    capability: str
    title: str
    lines: tuple[str, ...]
    problems: tuple[Problem, ...]
    undecided: tuple[UndecidedItem, ...]


def report_of(
    coverage: Coverage,
    catalogue: Catalogue,
    *,
    only: Collection[str] = (),
    failing: Collection[str] = (),
) -> Report:
    """The findings and the problematic cells of a document.

    Args:
        coverage: the document.
        catalogue: what its codes mean.
        only: of the cells, those with one of these verdicts; findings are all kept.
        failing: cells with one of these verdicts are errors, whatever their rule says.
    """
    found = [_of_finding(coverage, finding) for finding in coverage.findings]
    for group in _groups(view.filtered(coverage, only), catalogue):
        found.append(_of_cells(coverage, group, catalogue, failing))
    return Report(
        capability=coverage.capability,
        title=view.heading(coverage),
        lines=(*view.notes(coverage), *(view.platform_summary(coverage, name)
                                        for name in coverage.platforms)),
        problems=most_severe_first(found, catalogue),
        undecided=coverage.undecided,
    )  # fmt: skip


def most_severe_first(problems: Iterable[Problem], catalogue: Catalogue) -> tuple[Problem, ...]:
    """Sorted by severity, then in the order of the catalogue, then by place."""
    order = {code: number for number, code in enumerate(catalogue.rules)}
    return tuple(
        sorted(problems, key=lambda p: (RANK[p.severity], order[p.code], p.path, p.line, p.message))
    )


def listed(names: Sequence[str], kind: str) -> str:
    """``A, B and 5 more architectures``; empty where there are none."""
    if len(names) <= _NAMED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more {kind}"


def on_platforms(names: Sequence[str], every: Sequence[str]) -> str:
    """``on cuda, rocm``, or ``on every platform`` where that is what it is."""
    if len(every) > 1 and set(names) == set(every):
        return "on every platform"
    return f"on {', '.join(names)}"


def _of_finding(coverage: Coverage, finding: Finding) -> Problem:
    rows = [
        row
        for row in coverage.rows
        if row.architecture in finding.architectures and row.platform in finding.platforms
    ]
    scope = listed(finding.architectures, "architectures")
    about = f" ({scope}, {on_platforms(finding.platforms, coverage.platforms)})" if scope else ""
    return Problem(
        code=finding.code,
        severity=finding.severity,
        message=f"{finding.message}{about}",
        path=finding.path or registry_path(coverage.registry),
        line=max(finding.line, 1),
        text="",
        identity=finding.message,
        architectures=finding.architectures,
        platforms=finding.platforms,
        places=tuple(dict.fromkeys(step for row in rows for step in _class_steps(row))),
    )


def _groups(coverage: Coverage, catalogue: Catalogue) -> Iterator[tuple[Row, ...]]:
    """Rows of one architecture that have the same cell, place and explanation."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in coverage.rows:
        if row.verdict in catalogue.cells:
            place = _place(coverage, row)
            why = view.impersonal(_explanation(coverage, row), row.platform)
            key = (row.architecture, row.verdict, place.path, place.line, why)
            groups.setdefault(key, []).append(row)
    yield from map(tuple, groups.values())


def _of_cells(
    coverage: Coverage, rows: tuple[Row, ...], catalogue: Catalogue, failing: Collection[str]
) -> Problem:
    row, code = rows[0], catalogue.cells[rows[0].verdict]
    place, why = _place(coverage, row), _explanation(coverage, row)
    platforms = tuple(each.platform for each in rows)
    where = on_platforms(platforms, coverage.platforms)
    severity: Severity = "error" if row.verdict in failing else catalogue.rules[code].severity
    return Problem(
        code=code,
        severity=severity,
        message=f"{row.architecture} {_says(coverage, row)} {where}{f': {why}' if why else ''}",
        path=place.path,
        line=place.line,
        text=place.text,
        identity=row.architecture,
        architectures=(row.architecture,),
        platforms=platforms,
        steps=tuple(step for step in row.evidence if step.path),
    )


def _says(coverage: Coverage, row: Row) -> str:
    sentences = {
        "no": f"lacks {coverage.capability}",
        "unsafe": f"has {coverage.capability}, and using it goes wrong",
        "import": "cannot be imported",
        "absent": "is not provided by its module",
        "stub": "is a stub that only raises NotImplementedError",
        "?": "is undecided",
    }
    return sentences[row.verdict]


def _explanation(coverage: Coverage, row: Row) -> str:
    """Why the cell is what it is, as far as the document says."""
    if row.error is not None:
        return view.error_sentence(row.error)
    if row.verdict == "no" and (head := view.head_of(coverage, row)) is not None:
        shape = f"the head path is {head.shape}" if head.shape else ""
        return f"{shape}. {head.fix}" if shape and head.fix else shape
    return row.reason or ""


def _class_steps(row: Row) -> tuple[Step, ...]:
    """The line that defines the row's class."""
    return tuple(step for step in row.evidence if step.kind == "class" and step.path)[:1]


def _place(coverage: Coverage, row: Row) -> Step:
    """Where a reader should look first."""
    steps = [step for step in row.evidence if step.path and step.line > 0]
    chain = [step for step in row.error.chain if step.path and step.line > 0] if row.error else []
    if raised := [step for step in chain if step.kind in ("raise", "import")]:
        return raised[-1]
    method = [step for step in steps if step.kind == "method"]
    if row.verdict == "unsafe" and method and row.owner == f"{row.module}.{row.class_}":
        return method[-1]
    if defined := _class_steps(row):
        return defined[0]
    return steps[-1] if steps else Step("registry", registry_path(coverage.registry), 1, "")


def registry_path(registry: str) -> str:
    """The file of the table that the entries come from; what has no better place is there."""
    return registry.rpartition(".")[0].replace(".", "/") + ".py"
