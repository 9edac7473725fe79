"""The head path of each family: which classes get from hidden states to a token in the same way."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.coverage import Coverage, Head, Step
from auditor.reports import rows as view
from auditor.reports.console import plain, to_text
from auditor.reports.json import escaped

_INDENT = 2


class Family(msgspec.Struct, frozen=True):
    """Classes with one head path.

    Attributes:
        expression: the path as a composition, outermost first; empty where there is no path.
        shape: its shape, ``unnamed``, or null where it could not be followed.
        fix: what follows for providing the capability, or null.
        equivalence: of the capability with the path, or null where a class lacks it.
        architectures: registry keys, with the platforms on which they have this path.
        classes: the dotted classes.
        guards: conditions on the ways through the method.
        hops: the calls on the way to the head.
        checks: what is asserted or raised on the way.
        unknown: what could not be followed.
    """

    expression: str
    shape: str | None
    fix: str | None
    equivalence: str | None
    architectures: dict[str, tuple[str, ...]]
    classes: tuple[str, ...]
    guards: tuple[str, ...]
    hops: tuple[Step, ...]
    checks: tuple[Step, ...]
    unknown: tuple[Step, ...]


class Shapes(msgspec.Struct, frozen=True):
    """What ``audit shape --format json`` writes."""

    schema_version: str
    capability: str
    source: str
    families: tuple[Family, ...]


def families(coverage: Coverage) -> tuple[Family, ...]:
    """The rows of a document grouped by head path, in the order of shapes and expressions."""
    groups: dict[tuple[str, str, str], list[tuple[str, str, Head]]] = {}
    heads = {(head.class_, name): head for head in coverage.heads for name in head.platforms}
    for row in coverage.rows:
        head = heads.get((f"{row.module}.{row.class_}", row.platform))
        if head is not None:
            key = (head.shape or "", _expression(head), head.equivalence or "")
            groups.setdefault(key, []).append((row.architecture, row.platform, head))
    return tuple(_family(members) for _, members in sorted(groups.items()))


def _expression(head: Head) -> str:
    """``argmax ∘ lm_head ∘ norm``: the token, by the logits of the class."""
    if head.logits is None:
        return ""
    return " | ".join(f"argmax ∘ {way}" for way in head.logits.brief.split(" | "))


def _family(members: list[tuple[str, str, Head]]) -> Family:
    first = members[0][2]
    platforms: dict[str, list[str]] = {}
    for architecture, platform, _ in members:
        platforms.setdefault(architecture, []).append(platform)
    ways = [way for _, _, head in members if head.logits for way in head.logits.ways]
    return Family(
        expression=_expression(first),
        shape=first.shape,
        fix=first.fix,
        equivalence=first.equivalence,
        architectures={name: tuple(names) for name, names in platforms.items()},
        classes=tuple(sorted({head.class_ for _, _, head in members})),
        guards=tuple(dict.fromkeys(guard for way in ways for guard in way.guards)),
        hops=tuple(dict.fromkeys(step for way in ways for step in way.hops)),
        checks=tuple(dict.fromkeys(step for way in ways for step in way.checks)),
        unknown=tuple(dict.fromkeys(step for way in ways for step in way.unknown)),
    )


def render_json(coverage: Coverage) -> str:
    """The families as indented JSON with a final newline."""
    document = Shapes(
        coverage.schema_version, coverage.capability, coverage.source.label, families(coverage)
    )
    return escaped(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def render(coverage: Coverage, *, width: int, color: bool = False, detailed: bool = False) -> str:
    """One block a family; with ``detailed``, its hops and guards too.

    Args:
        coverage: what to show.
        width: in terminal cells; no line is longer.
        color: whether to write ANSI colours.
        detailed: show hops, guards and checks with their places.
    """
    found = families(coverage)
    named = f"{len(found)} famil{'y' if len(found) == 1 else 'ies'}"
    blocks = [plain(f"{coverage.capability} in {coverage.source.label}: head paths, {named}")]
    blocks += [plain(f"Note: {note}", "yellow") for note in view.notes(coverage)]
    shown = [_block(family, coverage.platforms, detailed) for family in found]
    return to_text(Group(*blocks, *shown), width=width, color=color)


def _block(family: Family, platforms: tuple[str, ...], detailed: bool) -> RenderableType:
    title = plain(f"{family.shape or 'not followed'}", "bold")
    if family.expression:
        title.append_text(plain(f": {family.expression}"))
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in _lines(family, platforms, detailed):
        table.add_row(Text(label), plain(text))
    return Group(Text(), title, Padding(table, (0, 0, 0, _INDENT)))


def _lines(family: Family, platforms: tuple[str, ...], detailed: bool) -> Iterator[tuple[str, str]]:
    for names, architectures in _by_platforms(family).items():
        where = "" if names == platforms else f" [{' '.join(names)}]"
        yield "for", f"{', '.join(architectures)}{where}"
    if family.equivalence is not None:
        yield "has it", family.equivalence
    elif family.fix is not None:
        yield "fix", family.fix
    for step in family.unknown:
        yield "open", _step(step)
    if not detailed:
        return
    for guard in family.guards:
        yield "guard", guard
    for hop in family.hops:
        yield "hop", _step(hop)
    for check in family.checks:
        yield "check", _step(check)


def _by_platforms(family: Family) -> dict[tuple[str, ...], list[str]]:
    """Architectures by the platforms on which they belong to the family."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name, platforms in family.architectures.items():
        found.setdefault(platforms, []).append(name)
    return found


def _step(step: Step) -> str:
    note = f"   {step.note}" if step.note else ""
    return f"{view.place(step.path, step.line)}  {step.text}{note}".strip()
