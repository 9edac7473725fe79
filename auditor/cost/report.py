"""The document for people: bytes both ways, times as far as they were measured, one advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.cost.document import BreakEven, CostDocument, CostRow, Source, to_json
from auditor.cost.measurements import describe
from auditor.cost.plot import bytes_plot, time_plot
from auditor.cost.sizes import size_text
from auditor.reports.console import plain, to_text
from auditor.reports.json import escaped


def render(document: CostDocument, *, width: int, color: bool = False, plots: bool) -> str:
    """Tables, and plots where several batches are asked about.

    Args:
        document: what to show.
        width: in terminal cells; no line is longer.
        color: whether to write ANSI colours.
        plots: whether to draw.
    """
    blocks = _blocks(document, width, plots)
    return to_text(Group(*blocks), width=width, color=color)


def render_json(document: CostDocument) -> str:
    """The document as indented JSON with a final newline."""
    return escaped(to_json(document))


def grouped(document: CostDocument) -> Iterator[tuple[BreakEven, list[CostRow]]]:
    """The rows of each vocabulary, number of ranks and dtype, beside their break-even."""
    found = groupby(document.rows, key=lambda row: (row.vocab_size, row.tp, row.dtype))
    for even, (_, rows) in zip(document.break_even, found, strict=True):
        yield even, list(rows)


def _blocks(document: CostDocument, width: int, plots: bool) -> Iterator[RenderableType]:
    yield plain("what each rank holds after the collective of one draft step")
    for even, rows in grouped(document):
        yield Text()
        yield plain(describe((even.vocab_size, even.tp, even.dtype)), style="bold")
        yield Padding(_bytes_table(rows), (0, 0, 0, 2))
        if timed := [row for row in rows if row.step]:
            yield Text()
            yield Padding(_time_table(timed), (0, 0, 0, 2))
            if any(row.step and row.step.kind == "interpolated" for row in timed):
                yield plain("N .. M: interpolated, on the line between these two measured batches")
        if plots and len(rows) > 1:
            for plot in (bytes_plot, time_plot):
                if lines := list(plot(rows, width)):
                    yield Text()
                    yield from lines
        yield Text()
        if even.measurement is not None:
            yield from (plain(line) for line in _unmeasured(rows))
        yield plain(even.advice)
    yield from _foot(document)


def _table(*columns: str) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in columns:
        table.add_column(justify="right", overflow="fold")
    table.add_row(*columns, style="dim")
    return table


def _bytes_table(rows: Sequence[CostRow]) -> Table:
    table = _table("batch", "default", "with flag", "ratio")
    for row in rows:
        sizes = size_text(row.default_bytes), size_text(row.reduction_bytes)
        table.add_row(str(row.batch), *sizes, f"{row.ratio:,.1f}x")
    return table


def _time_table(rows: Sequence[CostRow]) -> Table:
    table = _table("batch", "default", "with flag", "saved", "", "how")
    for row in rows:
        if row.step is None:
            continue
        step = row.step
        how = "measured" if step.kind == "measured" else f"{step.low} .. {step.high}"
        table.add_row(
            str(row.batch),
            _time(step.default_us),
            _time(step.reduction_us),
            _time(step.saved_us, "+"),
            f"{step.saved_percent:+.1f} %",
            how,
        )
    return table


def _time(us: float | None, sign: str = "") -> str:
    return "" if us is None else f"{us:{sign}.1f} µs"


def _unmeasured(rows: Sequence[CostRow]) -> Iterator[str]:
    """Batches of a measured series for which there is no time, by reason."""
    for reason, which in groupby((row for row in rows if row.reason), key=lambda row: row.reason):
        batches = [row.batch for row in which]
        span = str(batches[0]) if len(batches) == 1 else f"{batches[0]} to {batches[-1]}"
        yield f"no time for batch {span}: {reason}"


def _foot(document: CostDocument) -> Iterator[RenderableType]:
    for source in document.measurements:
        yield Text()
        yield plain(f"{source.name}: {_told(source)}")
    for note in document.notes:
        yield Text()
        yield plain(f"note: {note}")


def _told(source: Source) -> str:
    parts = (source.hardware, source.what, source.link, source.via, source.remark)
    told = [part.rstrip(".") for part in parts if part]
    return f"{'. '.join(told)}." if told else "your own measurement."
