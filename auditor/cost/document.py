"""The document of ``audit cost``; ``audit schema cost`` prints its JSON Schema."""

from __future__ import annotations

from typing import Literal

import msgspec

from auditor.cost.measurements import Effect

SCHEMA_VERSION = "1.0"


class StepTime(msgspec.Struct, frozen=True):
    """How long a draft step takes from hidden states to tokens, as measured.

    Attributes:
        kind: at this very batch, or on the straight line between its measured neighbours.
        default_us: with full logits, in microseconds; null where a source gives shares alone.
        reduction_us: with the flag.
        saved_us: the difference; negative where the flag costs.
        saved_percent: the same as a share of the default's time.
        low: the measured batch at or below this one.
        high: the measured batch at or above it.
        measurement: by the name of which it is listed.
    """

    kind: Literal["measured", "interpolated"]
    default_us: float | None
    reduction_us: float | None
    saved_us: float | None
    saved_percent: float
    low: int
    high: int
    measurement: str


class CostRow(msgspec.Struct, frozen=True):
    """One draft step, both ways.

    Attributes:
        vocab_size: tokens of the draft model's head.
        tp: ranks that share it.
        dtype: of its logits.
        batch: hidden states of the step, one a sequence.
        default_bytes: of the gathered logits on each rank.
        reduction_bytes: of the gathered (value, index) pairs on each rank.
        ratio: how many times as many the default has.
        effect: what the flag does to the time of a step, as far as somebody measured it.
        step: the time; null where there is no number.
        reason: why there is none.
    """

    vocab_size: int
    tp: int
    dtype: str
    batch: int
    default_bytes: int
    reduction_bytes: int
    ratio: float
    effect: Effect
    step: StepTime | None
    reason: str | None


class BreakEven(msgspec.Struct, frozen=True):
    """From which draft batch on the flag saves, for one vocabulary, number of ranks and dtype.

    Attributes:
        kind: read off points, as a source says it, or not known.
        low: the largest batch that is known to cost.
        high: the smallest batch from which on it is known to save.
        batch: where it is between the two, by the straight line; null where no points say so.
        advice: what to do, in a sentence.
        measurement: by the name of which it is listed; null where nothing was measured.
    """

    vocab_size: int
    tp: int
    dtype: str
    kind: Literal["points", "reported", "none"]
    low: int | None
    high: int | None
    batch: float | None
    advice: str
    measurement: str | None


class Source(msgspec.Struct, frozen=True):
    """A measurement that rows refer to."""

    name: str
    hardware: str
    what: str
    link: str
    via: str
    remark: str


class ConfigInfo(msgspec.Struct, frozen=True):
    """The configuration that was given: the name of the file, and the keys that decided."""

    name: str
    vocab_size_from: str | None
    dtype_from: str | None


class CostDocument(msgspec.Struct, frozen=True):
    """Communication of one draft step, with and without ``use_local_argmax_reduction``.

    Attributes:
        schema_version: of this document (``major.minor``; a new major breaks readers).
        config: the checkpoint's configuration, where one was given.
        rows: one a vocabulary, number of ranks, dtype and batch.
        break_even: one a vocabulary, number of ranks and dtype.
        measurements: what the times come from.
        notes: what a reader has to know about the numbers.
    """

    schema_version: str
    config: ConfigInfo | None
    rows: tuple[CostRow, ...]
    break_even: tuple[BreakEven, ...]
    measurements: tuple[Source, ...]
    notes: tuple[str, ...]


def to_json(document: CostDocument) -> bytes:
    """The document as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def json_schema() -> dict[str, object]:
    """The JSON Schema (2020-12) of the document."""
    schema = msgspec.json.schema(CostDocument)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "draftaudit cost",
        **schema,
    }
