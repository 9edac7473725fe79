"""A drift for people: what fails first, each change with what happened and where to look."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group as Blocks
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from auditor.changes import Change, Drift
from auditor.reports.console import plain, to_text
from auditor.reports.drift import groups as view
from auditor.reports.drift.groups import Group

_STYLES = {"error": "bold red", "warning": "yellow", "note": ""}
_INDENT = (0, 0, 0, 4)


def render(drift: Drift, *, width: int, color: bool = False) -> str:
    """Every change, what could not be compared, and what to do.

    Args:
        drift: what to show.
        width: in terminal cells; no line is longer.
        color: whether to write ANSI colours.
    """
    return to_text(Blocks(*_blocks(drift)), width=width, color=color)


def _blocks(drift: Drift) -> Iterator[RenderableType]:
    yield plain(view.heading(drift), style="bold")
    yield Text()
    told = view.groups(drift)
    for group in told:
        yield from _change(group, drift)
    if told:
        yield Text()
        yield from (plain(f"{kind:14} {text}") for kind, text in view.kinds_shown(drift))
        yield Text()
        yield plain(f"platforms: {', '.join(drift.platforms)}; rows compared: {drift.compared}")
        yield plain(f"changes: {view.summary(drift)}")
    undecided = view.undecided_lines(drift)
    if undecided:
        yield plain(f"not decided: {len(undecided)}", style="bold")
        yield from (Padding(plain(line), _INDENT) for line in undecided)
    yield from (plain(sentence) for sentence in view.advice(drift))


def _change(group: Group, drift: Drift) -> Iterator[RenderableType]:
    change = group.change
    everywhere = len(drift.platforms) > 1 and set(group.platforms) == set(drift.platforms)
    where = "every platform" if everywhere else ", ".join(group.platforms)
    mark = "FAIL " if change.failing else ""
    yield plain(
        f"{mark}{change.kind}: {change.architecture} on {where}{_cells(change)}",
        style=_STYLES[change.severity],
    )
    yield Padding(plain(change.message), _INDENT)
    if change.path:
        side = {"after": "", "before": f" of {drift.before.label}", "baseline": ""}[change.side]
        place = f"{change.path}:{change.line}" if change.line else change.path
        yield Padding(plain(f"{place}{side}"), _INDENT)
    if change.accepted is not None:
        yield Padding(plain(f"accepted: {change.accepted}"), _INDENT)
    if change.note is not None:
        yield Padding(plain(f"note: {change.note}"), _INDENT)


def _cells(change: Change) -> str:
    before, after = change.verdict_before, change.verdict_after
    if before is None or after is None or before == after or change.code is not None:
        return ""
    return f" ({before} -> {after})"
