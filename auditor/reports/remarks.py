"""What follows the table in every report for people: findings, and what was not decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from auditor.coverage import Coverage, Finding, UndecidedItem
from auditor.reports import rows as view
from auditor.reports.plugins import done, heading

#: So many of each kind are written out; the rest is counted.
SHOWN = 5


class Block(msgspec.Struct, frozen=True):
    """A title, the lines below it, and a sentence for those left out (empty when none is)."""

    title: str
    lines: tuple[str, ...] = ()
    rest: str = ""


def remark_blocks(coverage: Coverage) -> Iterator[Block]:
    """Findings first; the last blocks say what was not decided, always."""
    for plugin in coverage.plugins:
        yield Block(heading(plugin), tuple(done(plugin)))
    if coverage.findings:
        yield _block("Findings", [_finding(finding) for finding in view.by_severity(coverage)])
    if not coverage.undecided:
        yield Block("Not decided: nothing was left open beside the cells above.")
    for title, items in view.undecided_by_kind(coverage):
        # Those that a cell rests on are what a reader can do something about.
        first = sorted(items, key=lambda item: not item.architectures)
        yield _block(f"Not decided: {title}", list(map(_undecided, first)), _bearing(items))


def _block(title: str, lines: Sequence[str], bearing: str = "") -> Block:
    rest = len(lines) - SHOWN
    more = f"and {rest} more; --format json lists all" if rest > 0 else ""
    return Block(f"{title} ({len(lines)}{bearing}):", tuple(lines[:SHOWN]), more)


def _bearing(items: Sequence[UndecidedItem]) -> str:
    """How many conditions a cell rests on; the other kinds say it line by line."""
    if any(item.kind != "condition" for item in items):
        return ""
    count = sum(bool(item.architectures) for item in items)
    return f", cells rest on {count} of them" if count else ", no cell rests on them"


def _finding(finding: Finding) -> str:
    count = len(finding.architectures)
    scope = f" ({count} architecture{'s' * (count > 1)})" if count else ""
    where = view.place(finding.path, finding.line)
    return f"{finding.code} {finding.severity}: {finding.message}{scope}  {where}"


def _undecided(item: UndecidedItem) -> str:
    subject = f"{item.text} — {item.reason}" if item.text else item.reason
    scope = [f"on {', '.join(item.platforms)}"] if item.platforms else []
    if count := len(item.architectures):
        scope.append(f"{count} architecture{'s depend' if count > 1 else ' depends'} on it")
    line = f"{view.place(item.path, item.line)}  {subject}"
    return f"{line} ({'; '.join(scope)})" if scope else line
