"""The coverage table as GitHub-flavoured Markdown, for an issue or a pull request."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from auditor.coverage import VERDICTS, Coverage, Row, meaning
from auditor.reports import rows as view
from auditor.reports.remarks import Block, remark_blocks
from auditor.reports.text import literal


def code(text: str) -> str:
    """``text`` as a code span that shows it literally, inside a table cell and outside.

    A code span keeps names from becoming emphasis, HTML, links, or mentions of people. A pipe
    ends a cell even there, so it is escaped (GFM 4.10); the fence is longer than any run of
    backticks inside (CommonMark 6.1).
    """
    shown = literal(text).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown.strip() else ""


def render(coverage: Coverage, *, only: Collection[str] = ()) -> str:
    """The table, one line a platform, and what was not decided.

    Args:
        coverage: what to show.
        only: show the architectures that have one of these verdicts on some platform.
    """
    return "".join(f"{line}\n" for line in _lines(coverage, only))


def _lines(coverage: Coverage, only: Collection[str]) -> Iterator[str]:
    yield f"**{code(view.heading(coverage, only))}**"
    yield ""
    for note in view.notes(coverage):
        yield f"> Note: {code(note)}"
        yield ""
    yield from _table(coverage, only)
    yield from _legend(coverage, only)
    for platform in coverage.platforms:
        yield f"- {view.platform_summary(coverage, platform)}"
    for block in remark_blocks(coverage):
        yield from _remarks(block)


def _remarks(block: Block) -> Iterator[str]:
    yield ""
    yield block.title
    if block.lines:
        yield ""
    yield from (f"* {code(line)}" for line in block.lines)
    if block.rest:
        yield f"* {block.rest}"


def _table(coverage: Coverage, only: Collection[str]) -> Iterator[str]:
    shown = list(view.by_architecture(coverage, only))
    if not shown:
        return
    yield _row(["architecture", *map(literal, coverage.platforms), "resolves to", "method from"])
    yield _row(["---"] * (len(coverage.platforms) + 3))
    for architecture, rows in shown:
        yield _row([code(architecture), *_cells(coverage.platforms, rows), *_targets(rows)])
    yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(platforms: Sequence[str], rows: Sequence[Row]) -> list[str]:
    verdicts = {row.platform: row.verdict for row in rows}
    return [verdicts.get(name, "") for name in platforms]


def _targets(rows: Sequence[Row]) -> tuple[str, str]:
    """The two last cells; one line within them for each group of platforms."""
    groups = view.targets(rows)
    among = [f" ({', '.join(group.platforms)})" if len(groups) > 1 else "" for group in groups]
    classes = (code(group.resolves_to) + names for group, names in zip(groups, among, strict=True))
    providers = (code(group.method_from) for group in groups)
    return "<br>".join(classes), "<br>".join(providers)


def _legend(coverage: Coverage, only: Collection[str]) -> Iterator[str]:
    shown = {row.verdict for _, rows in view.by_architecture(coverage, only) for row in rows}
    for verdict in VERDICTS:
        if verdict in shown:
            yield f"* **{verdict}**: {meaning(coverage, verdict)}"
    yield ""
