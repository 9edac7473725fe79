"""A Drift as a list of located problems: changes, with platforms that say the same gathered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from auditor.changes import KINDS, Change, Drift, Undecided
from auditor.coverage import UndecidedItem
from auditor.reports import rows as view
from auditor.reports.problems import (
    Catalogue,
    Problem,
    Report,
    most_severe_first,
    on_platforms,
    registry_path,
)


def report_of_drift(drift: Drift, catalogue: Catalogue, *, baseline: str = "") -> Report:
    """The changes of a drift, the failing ones first.

    Args:
        drift: the document.
        catalogue: what its codes mean.
        baseline: the file of the baseline, from the root of the repository; empty where the path
            in the document will do.
    """
    found = (_of_changes(drift, group, catalogue, baseline) for group in gathered(drift))
    return Report(
        capability=drift.capability,
        title=title(drift),
        lines=tuple(counts(drift)),
        problems=most_severe_first(found, catalogue),
        undecided=tuple(map(_undecided, drift.undecided)),
    )


def title(drift: Drift) -> str:
    """What was compared with what."""
    return f"{drift.capability} in {drift.after.label}, compared with {_before(drift)}"


def _before(drift: Drift) -> str:
    return f"{drift.baseline} ({drift.before.label})" if drift.baseline else drift.before.label


def counts(drift: Drift) -> Iterator[str]:
    """How many rows were compared, and how many changes there are of each kind."""
    failing = len(drift.failing)
    total = len(drift.changes)
    yield f"{drift.compared} rows compared: {total} changes, {failing} of them fail the check"
    count = Counter(change.kind for change in drift.changes)
    for kind, meaning in KINDS.items():
        if count[kind]:
            fails = ", fails the check" if kind in drift.fail_on else ""
            yield f"{kind}: {count[kind]} ({meaning}{fails})"


def gathered(drift: Drift) -> Iterator[tuple[Change, ...]]:
    """Changes of one architecture that say the same at one place, whatever the platform."""
    groups: dict[tuple[object, ...], list[Change]] = {}
    for change in drift.changes:
        message = view.impersonal(change.message, change.platform)
        key = (change.architecture, change.kind, change.severity, change.side, change.path,
               change.line, message, change.accepted)  # fmt: skip
        groups.setdefault(key, []).append(change)
    yield from map(tuple, groups.values())


def sentence(drift: Drift, changes: tuple[Change, ...]) -> str:
    """The architecture, where, and what happened; with the reason for which it is accepted."""
    first = changes[0]
    where = on_platforms([change.platform for change in changes], drift.platforms)
    accepted = f" (accepted: {first.accepted})" if first.accepted else ""
    return f"{first.architecture} {where}: {first.message}{accepted}"


def _of_changes(
    drift: Drift, changes: tuple[Change, ...], catalogue: Catalogue, baseline: str
) -> Problem:
    first = changes[0]
    in_baseline = first.side == "baseline" and bool(first.path)
    path = (baseline or first.path) if in_baseline else first.path
    return Problem(
        code=catalogue.changes[first.kind],
        severity=first.severity,
        message=sentence(drift, changes),
        path=path or registry_path(drift.registry),
        line=max(first.line, 1),
        text="",
        identity=f"{first.architecture}\0{first.message}",
        architectures=(first.architecture,),
        platforms=tuple(change.platform for change in changes),
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
