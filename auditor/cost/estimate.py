"""What a series says of a draft batch: a measured time, one between two of them, or nothing.

Between two neighbouring points each way is taken to cost what the straight line between them does.
Outside of the points there is no number, and no effect either.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

from auditor.cost.measurements import Effect, Point, Series

By = Literal["measured", "interpolated", "break-even", "nothing"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a series says of one batch.

    Attributes:
        by: what that rests on.
        effect: of the flag; a break-even that a source gives says this much and no time.
        default_us: a step with full logits, in microseconds.
        reduction_us: a step with the flag.
        saved_percent: of the default's time; negative where the flag costs.
        low: the measured batch at or below this one.
        high: the measured batch at or above it.
    """

    by: By
    effect: Effect = "unknown"
    default_us: float | None = None
    reduction_us: float | None = None
    saved_percent: float | None = None
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Crossing:
    """From which batch on the flag saves.

    Attributes:
        low: up to here it costs, as measured.
        high: from here on it saves, as measured.
        batch: where the straight lines between the two cross; None where more lies between.
        reported: whether a source says so, and not the points.
    """

    low: int
    high: int
    batch: float | None
    reported: bool


def estimate(series: Series, batch: int) -> Estimate:
    """What the series says of a draft batch."""
    if found := _between(series.points, batch):
        low, high = found
        at = (batch - low.batch) / (high.batch - low.batch) if high is not low else 0.0
        default, reduction = (
            _line(low.default_us, high.default_us, at),
            _line(low.reduction_us, high.reduction_us, at),
        )
        return Estimate(
            by="measured" if high is low else "interpolated",
            effect=_effect(default - reduction),
            default_us=default,
            reduction_us=reduction,
            saved_percent=100 * (default - reduction) / default,
            low=low.batch,
            high=high.batch,
        )
    for saving in series.savings:
        if saving.batch == batch:
            effect, percent = _effect(saving.percent), saving.percent
            return Estimate("measured", effect, saved_percent=percent, low=batch, high=batch)
    if series.break_even and not series.break_even[0] < batch < series.break_even[1]:
        return Estimate("break-even", "costs" if batch <= series.break_even[0] else "saves")
    return Estimate("nothing")


def crossing(series: Series) -> Crossing | None:
    """The break-even; None where the points do not go from costing to saving."""
    if series.break_even is not None:
        return Crossing(*series.break_even, batch=None, reported=True)
    saved = [point.saved_us for point in series.points]
    costing = next((i for i, us in enumerate(saved) if us > 0), len(saved))
    saving = len(saved) - next((i for i, us in enumerate(reversed(saved)) if us <= 0), len(saved))
    if costing == 0 or saving == len(saved):
        return None
    low, high = series.points[costing - 1], series.points[saving]
    adjacent = costing == saving
    at = -low.saved_us / (high.saved_us - low.saved_us)
    batch = _line(low.batch, high.batch, at) if adjacent else None
    return Crossing(low.batch, high.batch, batch=batch, reported=False)


def _between(points: tuple[Point, ...], batch: int) -> tuple[Point, Point] | None:
    """The points around a batch, one and the same where it is measured; None outside."""
    index = bisect_left(points, batch, key=lambda point: point.batch)
    if index == len(points):
        return None
    if points[index].batch == batch:
        return points[index], points[index]
    return (points[index - 1], points[index]) if index else None


def _line(low: float, high: float, at: float) -> float:
    """The value at a fraction of the way; never outside of the two, whatever floats round to."""
    value = low + (high - low) * at
    return min(max(value, min(low, high)), max(low, high))


def _effect(saved: float) -> Effect:
    return "saves" if saved > 0 else "costs"
