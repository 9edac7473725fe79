"""The document of ``audit checkpoint``: what each checkpoint comes to, as versioned JSON.

Like the Coverage document it holds no timestamps and no absolute paths; ``audit schema checkpoint``
prints its JSON Schema.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from auditor.coverage import Row, SourceInfo, Step

SCHEMA_VERSION = "1.0"

State = Literal["had", "blocked", "no draft layers", "not reached", "?"]

#: What a state of the survey means.
STATES: dict[State, str] = {
    "had": "the draft class has the method already",
    "blocked": "the draft class is reached, and lacks the method or cannot be used",
    "no draft layers": "the checkpoint says itself that it ships no layers for drafting",
    "not reached": "no draft class of this release is reached",
    "?": "not decided",
}


class Raised(msgspec.Struct, frozen=True):
    """An exception: the name of its class, and its message."""

    type: str
    message: str


class Stage(msgspec.Struct, frozen=True):
    """A configuration at one point.

    Attributes:
        architecture: the first of its architectures, or null.
        n_predict: how many tokens a step of the draft predicts, as it is held there.
        model_type: its model type, as it is held there.
        error: what the code raised instead.
        config_class: the class of the configuration, where it was loaded.
        gap: why nothing is known, or null.
    """

    architecture: Any = None
    n_predict: Any = None
    model_type: Any = None
    error: Raised | None = None
    config_class: str | None = None
    gap: str | None = None


class Gap(msgspec.Struct, frozen=True):
    """Something that could not be said, and where the tree's code asks for it.

    Attributes:
        reason: what, and who would know.
        path: relative to the folder that holds ``vllm/``; empty for no place.
        line: 1-based, or 0.
        decides: whether the architecture depends on it.
    """

    reason: str
    path: str = ""
    line: int = 0
    decides: bool = False


class Result(msgspec.Struct, frozen=True):
    """What one checkpoint comes to.

    Attributes:
        name: what the checkpoint was given as.
        method: the speculative method that the engine settles on; null where that is not known.
        asked: the method that was asked for, or null.
        architecture: the draft architecture that the engine asks its registry for, or null. Where
            ``error`` is what loading raises, that of the file alone: for which it would ask.
        model_type: the model type as the override leaves it: of ``loaded`` where that is known,
            else of ``override``. What settling the method makes of it is not shown.
        n_predict: the number of predicted tokens, of the same stage.
        error: what vLLM's loading or rewriting of the configuration raises, or null; an installed
            Transformers' exception too, unless another release of it may not raise it.
        refused: what vLLM raises when it settles the method, or null.
        registered: whether the registry has the architecture, in ``table``, or null.
        table: the registry table that was looked into.
        nearest: entries with a similar name, where it is not registered.
        draft_layers: how many layers for drafting the file says it has, or null.
        remarks: what a reader should know.
        gaps: what could not be said.
        steps: the lines that decided it, in order.
        override: the configuration as the override leaves it, taken as it stands in the file.
        loaded: the same for the configuration as vLLM loads it, with the defaults of its class.
        after_eagle_config: the architecture where another configuration took its place, or null.
        rows: what the architecture is on each platform, as in ``audit --format json``.
    """

    name: str
    method: str | None = None
    asked: str | None = None
    architecture: str | None = None
    model_type: Any = None
    n_predict: Any = None
    error: Raised | None = None
    refused: Raised | None = None
    registered: bool | None = None
    table: str | None = None
    nearest: tuple[str, ...] = ()
    draft_layers: int | None = None
    remarks: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    steps: tuple[Step, ...] = ()
    override: Stage | None = None
    loaded: Stage | None = None
    after_eagle_config: str | None = None
    rows: tuple[Row, ...] = ()


class Unreadable(msgspec.Struct, frozen=True):
    """A file that is no configuration, and why."""

    name: str
    reason: str


class Reach(msgspec.Struct, frozen=True, rename={"class_": "class"}):
    """What one checkpoint of a survey comes to on one platform.

    Attributes:
        name: the checkpoint.
        platform: the platform.
        state: see :data:`STATES`.
        architecture: the draft architecture, or null.
        class_: the class that blocks or has the method (in JSON: ``class``), or null.
        why: what blocks, or why nothing is reached.
    """

    name: str
    platform: str
    state: State
    architecture: str | None = None
    class_: str | None = None
    why: str | None = None


class Summary(msgspec.Struct, frozen=True):
    """One platform of a survey: how many checkpoints are in each state.

    ``reached`` are those that come to a draft class of the registry: ``had`` and ``blocked`` ones.
    ``by_class`` counts the blocked ones.
    """

    platform: str
    checkpoints: int
    reached: int
    had: int
    blocked: int
    no_draft_layers: int
    not_reached: int
    undecided: int
    by_class: dict[str, int]


class CheckpointDocument(msgspec.Struct, frozen=True):
    """What was asked and what came of it.

    Attributes:
        schema_version: of this document (``major.minor``).
        source: what was audited.
        transformers: the version of Transformers that was asked for class defaults, or null.
        platforms: the platforms, in the order of the report.
        results: one a checkpoint, in the order given.
        unreadable: files that are no configuration.
        survey: what each checkpoint comes to on each platform, with ``--survey``.
        summary: the same, counted.
    """

    schema_version: str
    source: SourceInfo
    transformers: str | None
    platforms: tuple[str, ...]
    results: tuple[Result, ...]
    unreadable: tuple[Unreadable, ...] = ()
    survey: tuple[Reach, ...] = ()
    summary: tuple[Summary, ...] = ()


def to_json(document: CheckpointDocument) -> bytes:
    """The document as indented JSON with a final newline; same input, same bytes."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def json_schema() -> dict[str, object]:
    """The JSON Schema (2020-12) of the document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "draftaudit checkpoint",
        **msgspec.json.schema(CheckpointDocument),
    }
