"""How the answer for one architecture comes about: every step from the registry to the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.coverage import Caller, Coverage, Finding, Head, Row, Step, meaning
from auditor.reports import rows as view
from auditor.reports.console import plain, to_text
from auditor.reports.heads import head_block
from auditor.reports.matrix import STYLES

_INDENT = 2
_GAP = "  "


def render(coverage: Coverage, architecture: str, *, width: int, color: bool = False) -> str:
    """The evidence for ``architecture``; platforms with the same evidence share one block.

    Args:
        coverage: a document with at least one row of the architecture.
        architecture: the registry key.
        width: in terminal cells; no line is longer.
        color: whether to write ANSI colours.
    """
    rows = [row for row in coverage.rows if row.architecture == architecture]
    blocks = [plain(f"{architecture}: {coverage.capability} in {coverage.source.label}", "bold")]
    blocks += [plain(f"Note: {note}", "yellow") for note in view.notes(coverage)]
    groups = (
        _group(group, meaning(coverage, group.row.verdict), width)
        for group in _same_evidence(coverage, rows)
    )
    drafts = _drafters(view.callers_of(coverage, architecture), coverage.capability)
    return to_text(Group(*blocks, *groups, *drafts), width=width, color=color)


def _drafters(callers: Sequence[Caller], capability: str) -> Iterator[RenderableType]:
    """Who drafts for the architecture, on every platform: how it is chosen, and what it calls."""
    if not callers:
        return
    yield Text()
    yield plain("What drafts for it:", "bold")
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(overflow="fold")
    for caller in callers:
        name = caller.class_.rpartition(".")[2]
        where = f", where {' and '.join(caller.conditions)}" if caller.conditions else ""
        unsure = f", as far as known: {caller.open}" if caller.open else ""
        made = f"{name}: method {caller.method}, by {caller.runner}{where}{unsure}"
        table.add_row(plain(f"{made}  ({_place(caller.made)})"))
        for step in caller.calls:
            table.add_row(Padding(plain(f"{_place(step)}  {step.note}"), (0, 0, 0, _INDENT)))
        if not any(step.note.startswith(f"{capability}(") for step in caller.calls):
            never = f"it never calls {capability}"
            table.add_row(Padding(plain(never), (0, 0, 0, _INDENT)))
    yield Padding(table, (0, 0, 0, _INDENT))


class _Group(msgspec.Struct, frozen=True):
    """Platforms on which an architecture comes to the same answer in the same way."""

    platforms: tuple[str, ...]
    row: Row
    head: Head | None
    findings: tuple[Finding, ...]


def _same_evidence(coverage: Coverage, rows: Sequence[Row]) -> Iterator[_Group]:
    groups: dict[tuple[Row, Head | None, tuple[Finding, ...]], list[str]] = {}
    for row in rows:
        found = view.findings_of(coverage, row)
        key = (view.anywhere(row), view.head_of(coverage, row), found)
        groups.setdefault(key, []).append(row.platform)
    for (row, head, found), names in groups.items():
        yield _Group(tuple(names), row, head, found)


def _group(group: _Group, means: str, width: int) -> RenderableType:
    row = group.row
    title = plain(f"{', '.join(group.platforms)}: ", "bold")
    title.append_text(Text(row.verdict, STYLES[row.verdict]))
    chain = [step for step in row.evidence if step.kind != "guard"]
    steps = _steps(chain, width - _INDENT)
    shown = [head_block(group.head)] if group.head is not None else []
    answer = _answer(row, means, group.findings)
    return Group(Text(), title, Padding(Group(*steps, *shown, answer), (0, 0, 0, _INDENT)))


def _steps(steps: Sequence[Step], width: int) -> list[RenderableType]:
    """``kind  path:line  text   note``; in two lines each where one of them would not fit."""
    kinds = max((len(step.kind) for step in steps), default=0)
    places = max((len(_place(step)) for step in steps), default=0)
    one_line = all(kinds + places + 2 * len(_GAP) + len(_shown(step)) <= width for step in steps)
    lines: list[RenderableType] = []
    for step in steps:
        place, shown = _place(step), _shown(step)
        if one_line:
            lines.append(plain(f"{step.kind:{kinds}}{_GAP}{place:{places}}{_GAP}{shown}".rstrip()))
            continue
        lines.append(plain(f"{step.kind:{kinds}}{_GAP}{place}".rstrip()))
        if shown:
            lines.append(Padding(plain(shown), (0, 0, 0, kinds + len(_GAP))))
    return lines


def _place(step: Step) -> str:
    """Where the step is; a platform fact has no place in the tree."""
    return view.place(step.path, step.line)


def _shown(step: Step) -> str:
    return f"{step.text}   {step.note}" if step.note else step.text


def _answer(row: Row, means: str, findings: Sequence[Finding] = ()) -> Table:
    """The verdict, then what supports it, each in a hanging paragraph."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, justify="right")
    table.add_column(overflow="fold")
    table.add_row(Text("=>"), plain(f"{row.verdict}: {means}"))
    for line in _support(row):
        table.add_row(Text(), plain(line))
    for finding in findings:
        place = view.place(finding.path, finding.line)
        table.add_row(
            Text(), plain(f"{finding.code} {finding.severity}: {finding.message}  ({place})")
        )
    for number, step in enumerate(row.error.chain if row.error else (), start=1):
        table.add_row(Text(f"{number}."), plain(f"{_place(step)}{_GAP}{_shown(step)}".strip()))
    return table


def _support(row: Row) -> Iterator[str]:
    if row.owner is not None:
        yield f"the method is provided by {row.owner}"
    if row.reason is not None:
        yield f"because: {row.reason}"
    for step in row.evidence:
        if step.kind == "guard":
            yield f"the engine would raise: {step.note or step.text}  ({_place(step)})"
    if row.error is not None:
        by = ", by this chain:" if row.error.chain else ""
        sentence = view.error_sentence(row.error)
        what = "asking for the class" if row.verdict == "absent" else "loading it"
        yield f"{what} fails with {sentence.rstrip('.') if by else sentence}{by}"
