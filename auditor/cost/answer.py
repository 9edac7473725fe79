"""Sizes and measurements to the document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import PurePath
from typing import Literal

from auditor.cost.config import Sizes
from auditor.cost.document import (
    SCHEMA_VERSION,
    BreakEven,
    ConfigInfo,
    CostDocument,
    CostRow,
    Source,
    StepTime,
)
from auditor.cost.estimate import Crossing, crossing, estimate
from auditor.cost.measurements import Measurement, Series, describe
from auditor.cost.sizes import (
    check_shards,
    cost_rule,
    default_bytes,
    padded,
    reduction_bytes,
)
from auditor.errors import UsageError

#: More rows than anybody reads; a mistyped range ends here.
_MOST_ROWS = 20_000

Key = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Question:
    """Which draft steps are asked about; every combination is one.

    Attributes:
        config: the configuration that was given.
        dtype_missing: whether it was looked in for the dtype, and names none.
    """

    vocab_sizes: tuple[int, ...]
    tps: tuple[int, ...]
    dtypes: tuple[str, ...]
    batches: tuple[int, ...]
    config: Sizes | None = None
    dtype_missing: bool = False


def answer(question: Question, measurements: Sequence[Measurement]) -> CostDocument:
    """The bytes of every step, and what the first measurement with a fitting series says of it.

    Raises:
        UsageError: a head that vLLM would not load, or more rows than can be meant.
    """
    keys = list(product(question.vocab_sizes, question.tps, question.dtypes))
    if (count := len(keys) * len(question.batches)) > _MOST_ROWS:
        raise UsageError(f"{count} rows; no more than {_MOST_ROWS} are computed at once")
    for vocab_size, tp, _ in keys:
        check_shards(vocab_size, tp)
    found = {key: _found(key, measurements) for key in keys}
    used = [one for one in measurements if any(hit and hit[0] is one for hit in found.values())]
    return CostDocument(
        schema_version=SCHEMA_VERSION,
        config=_config(question.config) if question.config else None,
        rows=tuple(_row(key, batch, found[key]) for key in keys for batch in question.batches),
        break_even=tuple(_break_even(key, found[key], measurements) for key in keys),
        measurements=tuple(_source(one) for one in used),
        notes=tuple(_notes(question)),
    )


_Found = tuple[Measurement, Series] | None


def _found(key: Key, measurements: Sequence[Measurement]) -> _Found:
    for measurement in measurements:
        if series := measurement.for_(key):
            return measurement, series
    return None


def _row(key: Key, batch: int, found: _Found) -> CostRow:
    vocab_size, tp, dtype = key
    default, reduction = default_bytes(batch, vocab_size, dtype), reduction_bytes(batch, tp)
    said = estimate(found[1], batch) if found else None
    step = None
    if found and said and said.saved_percent is not None:
        step = StepTime(
            kind="measured" if said.by == "measured" else "interpolated",
            default_us=said.default_us,
            reduction_us=said.reduction_us,
            saved_us=_difference(said.default_us, said.reduction_us),
            saved_percent=said.saved_percent,
            low=said.low or batch,
            high=said.high or batch,
            measurement=found[0].name,
        )
    return CostRow(
        vocab_size=vocab_size,
        tp=tp,
        dtype=dtype,
        batch=batch,
        default_bytes=default,
        reduction_bytes=reduction,
        ratio=default / reduction,
        effect=said.effect if said else "unknown",
        step=step,
        reason=None if step else _reason(key, found),
    )


def _difference(default: float | None, reduction: float | None) -> float | None:
    return None if default is None or reduction is None else default - reduction


def _reason(key: Key, found: _Found) -> str:
    if not found:
        return f"nothing was measured for {describe(key)}"
    points = found[1].points
    if not points:
        return f"{found[0].name} gives none for {describe(key)}"
    return f"outside the measured batches, {points[0].batch} to {points[-1].batch}"


def _break_even(key: Key, found: _Found, measurements: Sequence[Measurement]) -> BreakEven:
    cross = crossing(found[1]) if found else None
    vocab_size, tp, dtype = key
    return BreakEven(
        vocab_size=vocab_size,
        tp=tp,
        dtype=dtype,
        kind=_kind(cross),
        low=cross.low if cross else None,
        high=cross.high if cross else None,
        batch=cross.batch if cross else None,
        advice=_advice(key, found, cross, measurements),
        measurement=found[0].name if found else None,
    )


def _kind(cross: Crossing | None) -> Literal["points", "reported", "none"]:
    if cross is None:
        return "none"
    return "reported" if cross.reported else "points"


def _advice(
    key: Key, found: _Found, cross: Crossing | None, measurements: Sequence[Measurement]
) -> str:
    """The sentence for one vocabulary, number of ranks and dtype."""
    if key[1] == 1:
        return "With one rank nothing is gathered either way: the flag has nothing to save."
    if not found:
        known = sorted({one.key for measurement in measurements for one in measurement.series})
        others = "; ".join(describe(one) for one in known[:6])
        return f"Nothing was measured for {describe(key)}, so measure it (measured: {others})."
    series = found[1]
    if cross is None:
        return _one_sided(series)
    if cross.reported:
        return (
            f"Up to a draft batch of about {cross.low} this flag costs time, from about "
            f"{cross.high} on it saves; by how much is not known here."
        )
    costs = [-one.saved_us for one in series.points if one.batch <= cross.low]
    where = (
        f"about {cross.batch:.0f}, interpolated between {cross.low} and {cross.high},"
        if cross.batch is not None
        else f"{cross.low} to {cross.high}, where both happen,"
    )
    return (
        f"Below a draft batch of {where} this flag costs about {_span(costs)} µs a step, "
        "above it saves."
    )


def _one_sided(series: Series) -> str:
    """The sentence where the figures do not go from costing to saving."""
    if not series.points:
        return "Only single batches were measured; they say nothing of a break-even."
    low, high = series.points[0].batch, series.points[-1].batch
    saved = [point.saved_us for point in series.points]
    if min(saved) > 0:
        return f"At every measured draft batch, {low} to {high}, this flag saves."
    if max(saved) <= 0:
        costs = _span([-us for us in saved])
        return (
            f"At every measured draft batch, {low} to {high}, this flag costs about {costs} µs a "
            "step: leave it off."
        )
    return f"Between draft batches of {low} and {high} there is no single break-even."


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low} to {high}"


def _source(measurement: Measurement) -> Source:
    return Source(
        name=measurement.name,
        hardware=measurement.hardware,
        what=measurement.what,
        link=measurement.link,
        via=measurement.via,
        remark=measurement.remark,
    )


def _config(config: Sizes) -> ConfigInfo:
    return ConfigInfo(
        name=PurePath(config.name).name or config.name,
        vocab_size_from=config.vocab_key,
        dtype_from=config.dtype_key,
    )


def _notes(question: Question) -> Iterator[str]:
    config = question.config
    if config and config.target_vocab_size:
        yield (
            f"The head has a vocabulary of its own, of {config.vocab_size}. Without the flag such "
            "a model also spreads the gathered logits over the target's vocabulary of "
            f"{config.target_vocab_size}; those bytes are not counted."
        )
    if config and config.downcast:
        yield (
            f"The checkpoint is in {config.downcast}; vLLM's --dtype auto makes {config.dtype} "
            "of it."
        )
    if config and question.dtype_missing:
        yield f"The configuration names no dtype: {', '.join(question.dtypes)} is taken."
    for vocab_size in question.vocab_sizes:
        if (rows := padded(vocab_size)) != vocab_size:
            yield (
                f"A head of {vocab_size} tokens has {rows} rows, and those are gathered; the bytes "
                "are those of the logits that are left after the padding is cut."
            )
        if vocab_size > cost_rule().pair.largest_index + 1:
            yield (
                f"Of a vocabulary of {vocab_size} not every index is exact as a float32, as which "
                "the reduction sends it: it may draft a neighbouring token."
            )
    if 1 in question.tps:
        yield "With one rank nothing is gathered; its rows say what the formulas give."
