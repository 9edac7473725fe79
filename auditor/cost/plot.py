"""Bars in a terminal: what is large, what is small, and where the flag begins to save.

The two ways differ in the character of their bars and are named beside them, so that nothing is
told by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.text import Text

from auditor.cost.document import CostRow
from auditor.cost.sizes import size_text
from auditor.reports.console import plain

#: More lines than fit on a screen show no more than these do.
_MOST = 24
_LABEL = 12  # "1,234,567  " and a space
_VALUE = 11  # " 1023.9 MiB"
_LEAST_BAR = 8


def thinned(rows: Sequence[CostRow]) -> Sequence[CostRow]:
    """All rows, or so many, evenly chosen and with the first and last, as a plot has lines."""
    if len(rows) <= _MOST:
        return rows
    last = len(rows) - 1
    return [rows[round(index * last / (_MOST - 1))] for index in range(_MOST)]


def bytes_plot(rows: Sequence[CostRow], width: int) -> Iterator[Text]:
    """Two bars a batch on a logarithmic scale: ``#`` the gathered logits, ``=`` the pairs."""
    shown = thinned(rows)
    most = max(max(row.default_bytes, row.reduction_bytes) for row in shown)
    least = min(min(row.default_bytes, row.reduction_bytes) for row in shown)
    length = max(_LEAST_BAR, width - _LABEL - len("default   ") - _VALUE)
    yield plain("bytes on each rank, logarithmic: # default, = with the flag", style="bold")
    for row in shown:
        pairs = (
            (f"{row.batch:>{_LABEL - 2}}  default   ", "#", row.default_bytes, "red"),
            (f"{'':{_LABEL - 2}}  flag      ", "=", row.reduction_bytes, "green"),
        )
        for label, sign, value, style in pairs:
            bar = sign * _logarithmic(value, least, most, length)
            line = Text(label)
            line.append(bar, style=style)
            line.append(f" {size_text(value)}")
            yield line


def _logarithmic(value: int, least: int, most: int, length: int) -> int:
    """From one character for the least to all of them for the most."""
    if most == least:
        return length
    return 1 + round((length - 1) * math.log(value / least) / math.log(most / least))


def time_plot(rows: Sequence[CostRow], width: int) -> Iterator[Text]:
    """One bar a batch, from a middle line: to the left what the flag costs, to the right saves."""
    shown = [
        (row, row.step.saved_us)
        for row in thinned(rows)
        if row.step and row.step.saved_us is not None
    ]
    if len(shown) < 2:
        return
    most = max(abs(saved) for _, saved in shown)
    half = max(_LEAST_BAR // 2, (width - _LABEL - len("|") - len(" ~-1234567.8 µs")) // 2)
    yield plain("step time with the flag: - costs, + saves, ~ interpolated", style="bold")
    for row, saved in shown:
        size = 0 if not most else math.ceil(half * abs(saved) / most)
        line = Text(f"{row.batch:>{_LABEL - 2}}  ")
        line.append(f"{'-' * size if saved < 0 else '':>{half}}", style="red")
        line.append("|")
        line.append(f"{'+' * size if saved > 0 else '':<{half}}", style="green")
        mark = "~" if row.step and row.step.kind == "interpolated" else " "
        line.append(f" {mark}{saved:+.1f} µs")
        yield line
