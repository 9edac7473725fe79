"""Changes that read alike, told once for all of their platforms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from auditor.changes import KINDS, Change, Drift, Kind
from auditor.reports.rows import impersonal


@dataclass(frozen=True, slots=True)
class Group:
    """A change of one architecture, and the platforms on which it is the same.

    ``change`` is that of the first platform; its message says ``here`` for ``on <platform>``. On
    the other platforms it is in the same place, unless it is of a line of the baseline.
    """

    change: Change
    platforms: tuple[str, ...]


def groups(drift: Drift) -> tuple[Group, ...]:
    """Every change in the order of the document; those that fail the check first."""
    found: dict[Change, list[str]] = {}
    for change in drift.changes:
        line = 0 if change.side == "baseline" else change.line
        message = impersonal(change.message, change.platform)
        key = replace(change, platform="", message=message, line=line)
        found.setdefault(key, []).append(change.platform)
    first = {(c.kind, c.architecture, c.platform, c.code): c for c in reversed(drift.changes)}
    told = [
        Group(
            replace(
                key,
                platform=names[0],
                line=first[key.kind, key.architecture, names[0], key.code].line,
            ),
            tuple(names),
        )
        for key, names in found.items()
    ]
    return tuple(sorted(told, key=lambda group: not group.change.failing))


def heading(drift: Drift) -> str:
    """What is compared with what, and how much has changed."""
    told = groups(drift)
    before = drift.baseline or drift.before.label
    if drift.baseline is not None:
        before += f" ({drift.before.label})"
    count = len({change.architecture for change in drift.changes})
    failing = sum(group.change.failing for group in told)
    if not told:
        changed = f"no change in {drift.compared} rows"
    else:
        changed = f"{_counted(len(told), 'change')} in {_counted(count, 'architecture')}, "
        changed += f"{failing or 'none'} failing"
    return f"{drift.capability}, {before} to {drift.after.label}: {changed}"


def kinds_shown(drift: Drift) -> list[tuple[Kind, str]]:
    """The kinds that occur, with their meanings."""
    occurring = {change.kind for change in drift.changes}
    return [(kind, meaning) for kind, meaning in KINDS.items() if kind in occurring]


def summary(drift: Drift) -> str:
    """``2 lost, 1 added``: how many changes of each kind, platforms together."""
    counted = Counter(group.change.kind for group in groups(drift))
    return ", ".join(f"{counted[kind]} {kind}" for kind in KINDS if counted[kind])


def advice(drift: Drift) -> list[str]:
    """What to do about what is shown."""
    told = []
    failing = drift.failing
    if failing and drift.baseline is not None:
        told.append(
            "What is meant to be so is taken in by audit drift --update; why a gap is accepted "
            'goes into its line as accepted = "...".'
        )
    if any("stale" in change.kinds for change in drift.changes):
        told.append("audit drift --prune takes out of the baseline what means nothing any more.")
    return told


def undecided_lines(drift: Drift) -> list[str]:
    """What could not be compared, each thing once with its entries."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for item in drift.undecided:
        where = f"{item.path}:{item.line}" if item.line else item.path
        reason = impersonal(item.reason, item.platform) if item.platform else item.reason
        who = found.setdefault((item.side, where, reason), {})
        if item.architecture is not None:
            who[f"{item.architecture} on {item.platform}"] = None
    names = {"before": drift.before.label, "after": drift.after.label}
    return [
        f"{names[side]}: {': '.join(filter(None, (where, reason)))}{_among(who)}"
        for (side, where, reason), who in found.items()
    ]


def _among(names: Iterable[str]) -> str:
    listed = list(names)
    return f" ({', '.join(listed)})" if listed else ""


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
