"""Step times that somebody measured: the published ones, as data with their source.

Nothing here is computed from a model of the hardware. A file holds what its source says, and where
the source gives no more than the range in which both ways cost the same, it holds that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Literal

import msgspec

from auditor.cost.grid import LARGEST
from auditor.cost.sizes import dtype_named
from auditor.errors import RuleError, UsageError
from auditor.ruleset.files import load, rules_folder

Effect = Literal["saves", "costs", "unknown"]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key that is not known is an error, not a silent no-op."""


class Point(_Strict, frozen=True):
    """Microseconds from hidden states to draft tokens, both ways, at one draft batch."""

    batch: int
    default_us: float
    reduction_us: float

    @property
    def saved_us(self) -> float:
        """What the flag saves at this batch; negative where it costs."""
        return self.default_us - self.reduction_us


class Saving(_Strict, frozen=True):
    """The share of the default's time that the flag saves, where a source gives no times."""

    batch: int
    percent: float


class Series(_Strict, frozen=True):
    """Measurements that differ in the draft batch alone.

    Attributes:
        vocab_size: of the head.
        tp: the number of ranks.
        dtype: of the logits.
        points: times; empty where the source gives none.
        savings: shares, for batches without times.
        break_even: without points, the batches between which both ways cost the same.
    """

    vocab_size: int
    tp: int
    dtype: str = "bfloat16"
    points: tuple[Point, ...] = ()
    savings: tuple[Saving, ...] = ()
    break_even: tuple[int, int] | None = None

    @property
    def key(self) -> tuple[int, int, str]:
        """What the series is for."""
        return self.vocab_size, self.tp, self.dtype


class Example(_Strict, frozen=True):
    """What the file says of one case; ``by`` is what it says that from."""

    vocab_size: int
    tp: int
    batch: int
    is_: Effect = msgspec.field(name="is")
    by: Literal["measured", "interpolated", "break-even", "nothing"]


class Measurement(_Strict, frozen=True):
    """``rules/measurements/*.toml``, or a file of the user's.

    Attributes:
        name: a short one, by which reports refer to it.
        hardware: what it was measured on.
        what: what was timed.
        link: where it was published.
        via: how the figures came into the file, where not from ``link`` itself.
        remark: what else a reader should know.
        series: the figures.
        examples: cases and what follows for them; tests.
    """

    name: str
    series: tuple[Series, ...]
    hardware: str = ""
    what: str = ""
    link: str = ""
    via: str = ""
    remark: str = ""
    examples: tuple[Example, ...] = ()

    def for_(self, key: tuple[int, int, str]) -> Series | None:
        """The series for a vocabulary, a number of ranks and a dtype."""
        return next((series for series in self.series if series.key == key), None)


@cache
def published() -> tuple[Measurement, ...]:
    """The measurements that come with draftaudit, by file name; each text on one line.

    Raises:
        RuleError: a file is not what it should be.
    """
    return tuple(_published())


def _published() -> Iterator[Measurement]:
    for path in sorted((rules_folder() / "measurements").glob("*.toml")):
        try:
            yield in_order(load(path, Measurement))
        except UsageError as error:
            raise RuleError(error.what, where=f"rules/measurements/{path.name}") from error


def in_order(measurement: Measurement) -> Measurement:
    """Checked, each series by rising batch, dtypes by their own name, texts on one line.

    Raises:
        UsageError: figures that cannot be, or that contradict each other; the message names them.
    """
    series = tuple(
        _checked(one, f"series[{index}]") for index, one in enumerate(measurement.series)
    )
    for index, one in enumerate(series):
        if any(one.key == other.key for other in series[:index]):
            raise UsageError(f"series[{index}]: a second series for {describe(one.key)}")
    if not series:
        raise UsageError("no series: nothing is measured")
    texts = {
        name: " ".join(getattr(measurement, name).split())
        for name in ("hardware", "what", "link", "via", "remark")
    }
    return msgspec.structs.replace(measurement, series=series, **texts)


def describe(key: tuple[int, int, str]) -> str:
    """The words for what a series is for."""
    vocab_size, tp, dtype = key
    return f"vocab {vocab_size}, TP {tp}, {dtype}"


def _checked(series: Series, where: str) -> Series:
    _whole(series.vocab_size, "vocabulary size", f"{where}.vocab_size")
    _whole(series.tp, "number of ranks", f"{where}.tp")
    _batches([point.batch for point in series.points], f"{where}.points")
    _batches([saving.batch for saving in series.savings], f"{where}.savings")
    for index, point in enumerate(series.points):
        for field in ("default_us", "reduction_us"):
            _time(getattr(point, field), f"{where}.points[{index}].{field}")
    for index, saving in enumerate(series.savings):
        if not (math.isfinite(saving.percent) and saving.percent <= 100):
            raise UsageError(f"{where}.savings[{index}].percent: not a share")
    _break_even(series, where)
    return msgspec.structs.replace(
        series,
        dtype=_dtype(series.dtype, f"{where}.dtype"),
        points=tuple(sorted(series.points, key=lambda point: point.batch)),
        savings=tuple(sorted(series.savings, key=lambda saving: saving.batch)),
    )


def _batches(batches: list[int], where: str) -> None:
    for index, batch in enumerate(batches):
        _whole(batch, "draft batch", f"{where}[{index}].batch")
        if batch in batches[:index]:
            raise UsageError(f"{where}[{index}].batch: {batch} is there twice")


def _break_even(series: Series, where: str) -> None:
    if series.break_even is None:
        if not series.points and not series.savings:
            raise UsageError(f"{where}: neither points, savings nor break_even")
        return
    if series.points:
        raise UsageError(f"{where}.break_even: follows from the points; leave it out")
    low, high = series.break_even
    for end in (low, high):
        _whole(end, "draft batch", f"{where}.break_even")
    if low >= high:
        raise UsageError(f"{where}.break_even: {low} is not below {high}")


def _whole(value: int, kind: str, where: str) -> None:
    if not 1 <= value <= LARGEST[kind]:
        raise UsageError(f"{where}: {value} is no {kind}: it goes from 1 to {LARGEST[kind]}")


def _time(value: float, where: str) -> None:
    if not (math.isfinite(value) and 0 < value < 1e12):
        raise UsageError(f"{where}: {value} is no time in microseconds")


def _dtype(name: str, where: str) -> str:
    try:
        return dtype_named(name)
    except UsageError as error:
        raise UsageError(f"{where}: {error.what}", next_step=error.next_step) from error
