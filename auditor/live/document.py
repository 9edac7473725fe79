"""The document of ``audit --live``: what an installed vLLM said, beside what its files say.

Like the Coverage document it holds no timestamps and no absolute paths; ``audit schema live``
prints its JSON Schema.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from auditor.coverage import SourceInfo

SCHEMA_VERSION = "1.0"

Outcome = Literal["agree", "differ", "open"]


class Raised(msgspec.Struct, frozen=True):
    """An exception: the name of its class, and its message."""

    type: str
    message: str


class Said(msgspec.Struct, frozen=True, rename={"class_": "class"}):
    """What one side says of an entry; null where it does not know, or where it does not apply.

    Attributes:
        loads: whether the registry gets an object for the entry.
        class_: the dotted class (in JSON: ``class``), or null where the object is no class.
        hasattr: what ``hasattr(cls, <capability>)`` says.
        owner: the first class of the MRO that has the method of its own, or null.
        error: the exception that loading raises.
        reason: why something is not known.
    """

    loads: bool | None
    class_: str | None = None
    hasattr: bool | None = None
    owner: str | None = None
    error: Raised | None = None
    reason: str | None = None


class Difference(msgspec.Struct, frozen=True):
    """One thing about which the sides differ, each answer as text."""

    architecture: str
    what: Literal["entry", "loads", "class", "hasattr", "owner", "error type", "error message"]
    static: str
    live: str


class LiveRow(msgspec.Struct, frozen=True):
    """One entry of the registry, by both sides.

    Attributes:
        architecture: the registry key.
        outcome: ``agree``, ``differ``, or ``open`` where a side does not know and nothing differs.
        static: what the files say; null where they have no such entry.
        live: what the interpreter said; null where it has no such entry.
    """

    architecture: str
    outcome: Outcome
    static: Said | None
    live: Said | None


class FailingModule(msgspec.Struct, frozen=True):
    """A module outside the tree, and what importing it raises."""

    module: str
    error: Raised


class Modules(msgspec.Struct, frozen=True):
    """What the interpreter has beside vLLM, of the modules that importing the tree asks for.

    Attributes:
        present: modules that can be found.
        missing: modules that cannot.
        failing: modules that can be found, and of which the import raised when vLLM asked for it;
            both sides are told.
    """

    present: tuple[str, ...]
    missing: tuple[str, ...]
    failing: tuple[FailingModule, ...]


class LiveDocument(msgspec.Struct, frozen=True):
    """Both answers for one installed vLLM.

    Attributes:
        schema_version: of this document (``major.minor``; a new major breaks readers).
        capability: the method asked for.
        registry: dotted name of the table the entries come from.
        source: the vLLM that both sides are about.
        python: the interpreter that ran it (``CPython 3.12.4``).
        platform: the platform that its ``current_platform`` is.
        modules: what it has beside vLLM.
        rows: one an entry.
        differences: every difference, in the order of the rows.
    """

    schema_version: str
    capability: str
    registry: str
    source: SourceInfo
    python: str
    platform: str
    modules: Modules
    rows: tuple[LiveRow, ...]
    differences: tuple[Difference, ...]


def to_json(document: LiveDocument) -> bytes:
    """The document as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def json_schema() -> dict[str, object]:
    """The JSON Schema (2020-12) of the document."""
    schema = msgspec.json.schema(LiveDocument)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "draftaudit live",
        **schema,
    }
