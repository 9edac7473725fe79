"""What checkpoints come to, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.checkpoints.document import STATES, CheckpointDocument, Result, Summary, to_json
from auditor.coverage import Row, Step
from auditor.reports.console import plain, to_text
from auditor.reports.json import escaped
from auditor.reports.matrix import STYLES
from auditor.reports.rows import NOTHING

_INDENT = 2


def render(document: CheckpointDocument, *, width: int, color: bool = False) -> str:
    """Each checkpoint with its architecture, what that is on each platform, and why.

    Args:
        document: what to show.
        width: in terminal cells; no line is longer.
        color: whether to write ANSI colours.
    """
    blocks = _survey(document) if document.survey else _results(document)
    return to_text(Group(*blocks, *_unreadable(document)), width=width, color=color)


def render_json(document: CheckpointDocument) -> str:
    """The document as indented JSON with a final newline."""
    return escaped(to_json(document))


def _results(document: CheckpointDocument) -> Iterator[RenderableType]:
    for number, result in enumerate(document.results):
        if number:
            yield Text()
        yield from _result(result)


def _result(result: Result) -> Iterator[RenderableType]:
    yield plain(f"{result.name}: {_answer(result)}", "bold")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(overflow="fold")
    for what, said in _facts(result):
        table.add_row(plain(what), plain(said))
    for row in result.rows:
        cell = plain(row.verdict, STYLES.get(row.verdict, ""))
        table.add_row(plain(row.platform), cell + plain(f"  {class_of(row)}"))
    yield Padding(table, (0, 0, 0, _INDENT))
    yield from _steps(result.steps)


def _answer(result: Result) -> str:
    if result.error is not None:
        return f"refused: {result.error.type}: {result.error.message}"
    if result.architecture is None:
        return "no draft architecture" if not result.gaps else "not decided"
    return result.architecture


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    chosen = "" if result.asked else " (chosen by vLLM)"
    yield "method", f"{result.method or NOTHING}{chosen}"
    if result.architecture is not None and result.error is not None:
        yield "architecture", result.architecture
    if result.architecture is not None:
        yield "model type", NOTHING if result.model_type is None else str(result.model_type)
        yield "n_predict", NOTHING if result.n_predict is None else str(result.n_predict)
    if result.registered is False:
        near = f"; near: {', '.join(result.nearest)}" if result.nearest else ""
        table = (result.table or "the tables of models").rpartition(".")[2]
        yield "registry", f"{result.architecture} is not in {table}{near}"
    if result.refused is not None:
        yield "refused", f"{result.refused.type}: {result.refused.message}"
    for remark in result.remarks:
        yield "note", remark
    for gap in result.gaps:
        place = f" ({gap.path}:{gap.line})" if gap.path else ""
        yield "not known", f"{gap.reason}{place}"


def class_of(row: Row) -> str:
    """The class of a row, or why there is none."""
    if row.module is not None and row.class_ is not None:
        return f"{row.module}.{row.class_}"
    if row.error is not None:
        return f"{row.error.type}: {row.error.message}"
    return row.reason or NOTHING


def _steps(steps: Iterable[Step]) -> Iterator[RenderableType]:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for step in steps:
        said = step.text if step.kind == "branch" else f"{step.text}   {step.note}"
        table.add_row(plain(f"{step.path}:{step.line}"), plain(said))
    if table.row_count:
        yield Padding(table, (0, 0, 0, _INDENT))


def _unreadable(document: CheckpointDocument) -> Iterator[RenderableType]:
    if document.unreadable:
        yield Text()
        yield plain("Not read:", "bold")
    for one in document.unreadable:
        yield Padding(plain(f"{one.name}: {one.reason}"), (0, 0, 0, _INDENT))


# --- a survey


def _survey(document: CheckpointDocument) -> Iterator[RenderableType]:
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(3 + len(document.platforms)):
        table.add_column(overflow="fold")
    head = ("checkpoint", "method", "architecture", *document.platforms)
    table.add_row(*(plain(one, "bold") for one in head))
    width = len(document.platforms)
    for number, result in enumerate(document.results):
        here = document.survey[number * width : (number + 1) * width]
        cells = [plain(one.state) for one in here]
        table.add_row(
            plain(result.name),
            plain(result.method or NOTHING),
            plain(result.architecture or NOTHING),
            *cells,
        )
    yield table
    yield Text()
    for summary in document.summary:
        yield from _summary(summary)
    yield Text()
    for state, meaning in STATES.items():
        if any(one.state == state for one in document.survey):
            yield plain(f"{state}: {meaning}")
    yield from _reasons(document)


def _summary(summary: Summary) -> Iterator[RenderableType]:
    total = summary.checkpoints
    yield plain(
        f"{summary.platform}: {summary.reached} of {total} reach a draft class: {summary.had} had "
        f"it, {summary.blocked} blocked; {summary.no_draft_layers} without draft layers, "
        f"{summary.not_reached} not reached, {summary.undecided} not decided"
    )
    for name, count in summary.by_class.items():
        yield Padding(plain(f"{count}  {name}"), (0, 0, 0, _INDENT))


def _reasons(document: CheckpointDocument) -> Iterator[RenderableType]:
    said: dict[str, str] = {}
    for one in document.survey:
        if one.state in ("not reached", "?") and one.why:
            said.setdefault(one.name, one.why)
    if said:
        yield Text()
        yield plain("Why not:", "bold")
    for name, why in said.items():
        yield Padding(plain(f"{name}: {why}"), (0, 0, 0, _INDENT))
