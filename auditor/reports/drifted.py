"""A Drift as a list of located problems: changes, with platforms that say the same gathered."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.changes import Drift, Undecided
from auditor.coverage import UndecidedItem
from auditor.reports.drift.groups import Group, advice, groups, heading, kinds_shown, summary
from auditor.reports.problems import (
    Catalogue,
    Problem,
    Report,
    most_severe_first,
    on_platforms,
    registry_path,
)
from auditor.reports.rows import place


def report_of_drift(drift: Drift, catalogue: Catalogue, *, baseline: str = "") -> Report:
    """The changes of a drift, the failing ones first.

    Args:
        drift: the document.
        catalogue: what its codes mean.
        baseline: the file of the baseline, from the root of the repository; empty where the path
            in the document will do.
    """
    found = (_of_group(drift, group, catalogue, baseline) for group in groups(drift))
    return Report(
        capability=drift.capability,
        title=heading(drift),
        lines=tuple(_lines(drift)),
        problems=most_severe_first(found, catalogue),
        undecided=tuple(map(_undecided, drift.undecided)),
    )


def _lines(drift: Drift) -> Iterator[str]:
    """How much of each kind there is, what that means, and what to do."""
    if drift.changes:
        yield summary(drift)
    for kind, meaning in kinds_shown(drift):
        fails = ", which fails the check" if kind in drift.fail_on else ""
        yield f"{kind}: {meaning}{fails}"
    yield from advice(drift)


def _of_group(drift: Drift, group: Group, catalogue: Catalogue, baseline: str) -> Problem:
    change = group.change
    in_baseline = change.side == "baseline" and bool(change.path)
    path, line = (baseline or change.path) if in_baseline else change.path, max(change.line, 1)
    was = ""
    if change.side == "before":
        # A line of the other source: here something else stands there, or nothing.
        was = f" (it was at {place(change.path, change.line)})" if change.path else ""
        path, line = "", 1
    where = on_platforms(group.platforms, drift.platforms)
    accepted = f" (accepted: {change.accepted})" if change.accepted else ""
    return Problem(
        code=catalogue.changes[change.kind],
        severity=change.severity,
        message=f"{change.architecture} {where}: {change.message}{was}{accepted}",
        path=path or registry_path(drift.registry),
        line=line,
        text="",
        identity=f"{change.architecture}\0{change.message}",
        architectures=(change.architecture,),
        platforms=group.platforms,
        outside=in_baseline,
    )


def _undecided(item: Undecided) -> UndecidedItem:
    subject = f"{item.architecture}: {item.reason}" if item.architecture else item.reason
    return UndecidedItem(
        kind="condition" if item.architecture else "file",
        path=item.path,
        line=item.line,
        text="",
        reason=f"{item.side}: {subject}",
        platforms=(item.platform,) if item.platform else (),
        architectures=(item.architecture,) if item.architecture else (),
    )
