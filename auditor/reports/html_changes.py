"""What the HTML report says of two versions: the changes of a drift, as far as cells show them.

What counts as a change, and of which kind it is, is said by :mod:`auditor.drift`, so that a page
and ``audit drift`` agree. Remarks that come and go are listed with each version instead.
"""

from __future__ import annotations

import msgspec

from auditor.changes import Change as Told
from auditor.changes import Kind
from auditor.coverage import Coverage, Row
from auditor.drift import drift
from auditor.reports import rows as view

#: How each kind is announced, in the order of the report: what may break a user comes first.
TITLES: dict[Kind, str] = {
    "lost": "Lost the method",
    "unsafe": "Unsafe now",
    "silent": "Silently worse: the logits changed, the method did not",
    "added-without": "New architectures without the method",
    "unimportable": "Can no longer be loaded",
    "undecided": "Can no longer be said",
    "gained": "Gained the method",
    "importable": "Can be loaded now",
    "decided": "Can be said now",
    "verdict": "Another verdict",
    "head-path": "Another head path",
    "method-path": "The method computes something else",
    "moved": "Another class",
    "owner": "The method comes from another class",
    "added": "New architectures",
    "removed": "Architectures removed",
}


class Change(msgspec.Struct, frozen=True):
    """One change of an architecture, on the platforms where it is the same.

    Attributes:
        kind: which.
        architecture: the registry key.
        platforms: where, in the order of the later document.
        before: the verdict, class or head path before; empty for what is new.
        after: the same afterwards; empty for what was removed.
    """

    kind: Kind
    architecture: str
    platforms: tuple[str, ...]
    before: str
    after: str


def changes(before: Coverage, after: Coverage) -> tuple[Change, ...]:
    """What changed between two documents, on the platforms that both have, by kind and name."""
    shared = frozenset(before.platforms) & frozenset(after.platforms)
    old, new = _rows(before), _rows(after)
    groups: dict[tuple[Kind, str, str, str], list[str]] = {}
    for told in drift(before, after).changes:
        if told.kind in TITLES and told.platform in shared:
            place = told.architecture, told.platform
            was, now = _sides(told, old.get(place), new.get(place))
            groups.setdefault((told.kind, told.architecture, was, now), []).append(told.platform)
    order = list(TITLES)
    found = (
        Change(kind, name, tuple(platforms), was, now)
        for (kind, name, was, now), platforms in groups.items()
    )
    return tuple(sorted(found, key=lambda change: (order.index(change.kind), change.architecture)))


def _rows(coverage: Coverage) -> dict[tuple[str, str], Row]:
    return {(row.architecture, row.platform): row for row in coverage.rows}


def _sides(told: Told, old: Row | None, new: Row | None) -> tuple[str, str]:
    """What was and what is; classes as briefly as the rest of the page has them."""
    if told.kind == "moved" and old is not None and new is not None:
        return view.resolves_to(old), view.resolves_to(new)
    return told.before or "", told.after or ""
