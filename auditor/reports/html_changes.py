"""What the HTML report says of two versions: which cells changed, and in which way.

A cell is compared by its verdict first; where that stays, by the class and by the head path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from auditor.coverage import Coverage, Head, Row
from auditor.reports import rows as view

Kind = Literal[
    "lost", "unsafe", "unloadable", "gained", "loadable", "verdict", "head", "moved", "added",
    "removed",
]  # fmt: skip

#: How each kind is announced, in the order of the report: what may break a user comes first.
TITLES: dict[Kind, str] = {
    "lost": "Lost the method",
    "unsafe": "Became unsafe",
    "unloadable": "Can no longer be loaded",
    "gained": "Gained the method",
    "loadable": "Can be loaded now",
    "verdict": "Another verdict",
    "head": "Another head path, same verdict",
    "moved": "Another class, same verdict",
    "added": "New architectures",
    "removed": "Architectures removed",
}

#: Verdicts of classes that answer ``hasattr`` with yes, and of those that nothing can load.
_HAVE = frozenset({"yes", "yes?", "unsafe"})
_UNLOADABLE = frozenset({"import", "absent"})


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
    shared = tuple(name for name in after.platforms if name in before.platforms)
    old, new = _cells(before), _cells(after)
    names = sorted({name for name, platform in (*old, *new) if platform in shared})
    groups: dict[tuple[Kind, str, str, str], list[str]] = {}
    for name in names:
        for platform in shared:
            pair = old.get((name, platform)), new.get((name, platform))
            for kind, was, now in _differences(*pair):
                groups.setdefault((kind, name, was, now), []).append(platform)
    order = list(TITLES)
    found = (
        Change(kind, name, tuple(platforms), was, now)
        for (kind, name, was, now), platforms in groups.items()
    )
    return tuple(sorted(found, key=lambda change: (order.index(change.kind), change.architecture)))


_Cell = tuple[Row, Head | None]


def _cells(coverage: Coverage) -> dict[tuple[str, str], _Cell]:
    heads = {(head.class_, name): head for head in coverage.heads for name in head.platforms}
    return {
        (row.architecture, row.platform): (
            row,
            heads.get((f"{row.module}.{row.class_}", row.platform)),
        )
        for row in coverage.rows
    }


def _differences(old: _Cell | None, new: _Cell | None) -> Iterator[tuple[Kind, str, str]]:
    if old is None and new is not None:
        yield "added", "", new[0].verdict
    elif old is not None and new is None:
        yield "removed", old[0].verdict, ""
    elif old is not None and new is not None:
        if old[0].verdict != new[0].verdict:
            was, now = old[0].verdict, new[0].verdict
            yield _kind(was, now), was, now
            return
        yield from _below_the_verdict(old, new)


def _kind(was: str, now: str) -> Kind:
    """What a change of verdict means; an open one on either side is no gain and no loss."""
    if "?" in (was, now):
        return "verdict"
    if now in _UNLOADABLE:
        return "lost" if was in _HAVE else "verdict" if was in _UNLOADABLE else "unloadable"
    if now == "unsafe":
        return "unsafe"
    if (was in _HAVE) != (now in _HAVE):
        return "gained" if now in _HAVE else "lost"
    return "loadable" if was in _UNLOADABLE else "verdict"


def _below_the_verdict(old: _Cell, new: _Cell) -> Iterator[tuple[Kind, str, str]]:
    was, now = _path(old[1]), _path(new[1])
    if was and now and was != now:
        yield "head", was, now
    if old[0].class_ is not None and new[0].class_ is not None:
        before, after = view.resolves_to(old[0]), view.resolves_to(new[0])
        if before != after:
            yield "moved", before, after


def _path(head: Head | None) -> str:
    """The head path of the method that the capability must agree with; empty where none is."""
    return head.logits.brief if head is not None and head.logits is not None else ""
