"""The coverage table for a terminal, and all that has to be said below it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.coverage import VERDICTS, Coverage, meaning
from auditor.reports import rows as view
from auditor.reports.console import plain, to_text
from auditor.reports.matrix import STYLES, Entry, matrix
from auditor.reports.remarks import remark_blocks


def render(
    coverage: Coverage, *, width: int, color: bool = False, only: Collection[str] = ()
) -> str:
    """The table, its legend, one line a platform, and what was not decided.

    Args:
        coverage: what to show.
        width: in terminal cells; no line is longer.
        color: whether to write ANSI colours; every cell says its verdict in words anyway.
        only: show the architectures that have one of these verdicts on some platform. The
            numbers below the table are those of the whole document all the same.
    """
    entries = [Entry.of(name, rows) for name, rows in view.by_architecture(coverage, only)]
    return to_text(Group(*_blocks(coverage, entries, only, width)), width=width, color=color)


def _blocks(
    coverage: Coverage, entries: Sequence[Entry], only: Collection[str], width: int
) -> Iterator[RenderableType]:
    yield plain(view.heading(coverage, only))
    for note in view.notes(coverage):
        yield plain(f"Note: {note}", style="yellow")
    if entries:
        yield Text()
        yield matrix(coverage.platforms, entries, width)
        yield Text()
        yield _legend(coverage, entries)
    yield Text()
    for platform in coverage.platforms:
        yield plain(view.platform_summary(coverage, platform))
    for block in remark_blocks(coverage):
        yield Text()
        yield plain(block.title, style="bold")
        lines = [*block.lines, *([block.rest] if block.rest else [])]
        yield from (Padding(plain(line), (0, 0, 0, 2)) for line in lines)


def _legend(coverage: Coverage, entries: Sequence[Entry]) -> Table:
    shown = {verdict for entry in entries for verdict in entry.verdicts.values()}
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for verdict in VERDICTS:
        if verdict in shown:
            table.add_row(Text(verdict, STYLES[verdict]), plain(meaning(coverage, verdict)))
        if verdict in shown and verdict == "yes?":
            for reason, count in view.unproven_reasons(coverage):
                table.add_row(Text(), plain(f"{count} of them: {reason}"))
    return table
