"""The rows as CSV and as Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from auditor.cost.document import CostDocument, CostRow
from auditor.cost.report import grouped
from auditor.cost.sizes import size_text

HEADER = (
    "vocab_size",
    "tp",
    "dtype",
    "batch",
    "default_bytes",
    "reduction_bytes",
    "effect",
    "kind",
    "default_us",
    "reduction_us",
    "saved_us",
    "saved_percent",
)


def render_csv(document: CostDocument) -> str:
    """One line a row, numbers in full; an empty field is not known."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(_fields(row) for row in document.rows)
    return out.getvalue()


def _fields(row: CostRow) -> list[object]:
    step = row.step
    sizes = [row.vocab_size, row.tp, row.dtype, row.batch, row.default_bytes, row.reduction_bytes]
    if step is None:
        return [*sizes, row.effect, "", "", "", "", ""]
    times = (step.default_us, step.reduction_us, step.saved_us, step.saved_percent)
    return [*sizes, row.effect, step.kind, *("" if one is None else f"{one:.3f}" for one in times)]


def render_markdown(document: CostDocument) -> str:
    """A table for an issue, with the advice and the source of every time."""
    return "".join(f"{line}\n" for line in _lines(document))


def _lines(document: CostDocument) -> Iterator[str]:
    yield "| vocab | TP | dtype | batch | default | with the flag | saved a step | how |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in document.rows:
        sizes = f"{size_text(row.default_bytes)} | {size_text(row.reduction_bytes)}"
        yield (
            f"| {row.vocab_size} | {row.tp} | {row.dtype} | {row.batch} | {sizes} "
            f"| {' | '.join(_saved(row))} |"
        )
    yield ""
    for even, _ in grouped(document):
        yield f"* vocab {even.vocab_size}, TP {even.tp}, {even.dtype}: {even.advice}"
    for source in document.measurements:
        link = f" <{source.link}>" if source.link else ""
        yield f"* times: `{source.name.replace('`', '')}`{link}"
    yield from (f"* note: {note}" for note in document.notes)


def _saved(row: CostRow) -> tuple[str, str]:
    step = row.step
    if step is None:
        return row.effect, ""
    us = "" if step.saved_us is None else f"{step.saved_us:+.1f} µs, "
    how = "measured" if step.kind == "measured" else f"between {step.low} and {step.high}"
    return f"{us}{step.saved_percent:+.1f} %", how
