"""The document of ``audit capabilities``: probes of models in the engine, as versioned JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

from auditor.coverage import SourceInfo, UndecidedItem

SCHEMA_VERSION = "1.0"

Receiver = Literal["model", "part", "undecided", "other"]
Does = Literal["raises", "falls back", "skips", "undecided"]

#: What is asked, for people.
RECEIVERS: dict[Receiver, str] = {
    "model": "a model",
    "part": "a part of a model",
    "undecided": "it could not be told what",
    "other": "something else",
}


class Without(msgspec.Struct, frozen=True):
    """What follows where the answer is no, and where that stands.

    Attributes:
        does: ``raises``, ``falls back`` to something else, ``skips`` what needed it, or
            ``undecided``.
        text: the source that says so, on one line.
        path: where.
        line: 1-based.
    """

    does: Does
    text: str
    path: str
    line: int


class Probe(msgspec.Struct, frozen=True):
    """One place where the engine asks an object what it has.

    Attributes:
        attribute: what is asked for; a class where ``isinstance`` asks.
        form: ``hasattr``, ``getattr``, ``callable`` or ``isinstance``.
        through: the function of the tree that asks in its stead, or null.
        receiver: the source of the object that is asked.
        asks: whether that is a model, a part of one, something else, or undecided.
        because: how that is known.
        path: where.
        line: 1-based.
        text: the line, or the condition.
        holder: the function or method, as ``Class.method``; empty at the top of a module.
        without: what follows where the answer is no.
        rule: the capability that this is a probe for, or null where no rule describes it.
    """

    attribute: str
    form: Literal["hasattr", "getattr", "callable", "isinstance"]
    through: str | None
    receiver: str
    asks: Receiver
    because: str
    path: str
    line: int
    text: str
    holder: str
    without: Without
    rule: str | None = None


class Capability(msgspec.Struct, frozen=True):
    """A capability that a rule describes, and where the source probes for it.

    Attributes:
        name: its name.
        summary: what a model with it can do.
        attribute: what is probed.
        part: the attribute of the model that is asked in its stead, or null.
        model: ``draft`` or ``target``.
        agrees_with: the method that it must pick the same token as, or null.
        registry: the tables whose entries are asked.
        without: what the rule says of a model that lacks it.
        text: the same in words.
        probes: where the source probes for it; empty where it does not.
        uses: other lines of the engine that name it, as ``path:line``.
    """

    name: str
    summary: str
    attribute: str
    part: str | None
    model: Literal["draft", "target"]
    agrees_with: str | None
    registry: tuple[str, ...]
    without: Literal["raises", "falls back", "skips"]
    text: str
    probes: tuple[Probe, ...]
    uses: tuple[str, ...] = ()


class Change(msgspec.Struct, frozen=True):
    """A probe that one of two sources has and the other has not, or that ends otherwise.

    ``kind`` is ``added``, ``removed`` or ``changed``; ``new`` says of an added one that the other
    source probes for the same nowhere, and of a removed one that this source does not.
    """

    kind: Literal["added", "removed", "changed"]
    new: bool
    probe: Probe
    before: Without | None = None


class Discovery(msgspec.Struct, frozen=True):
    """What ``audit capabilities`` found.

    Attributes:
        schema_version: of this document.
        source: what was read.
        folder: below which folder.
        capabilities: those that rules describe.
        probes: every probe; null unless asked for.
        against: the source compared with, or null.
        changes: what the two sources differ in.
        undecided: files that could not be read, in either.
    """

    schema_version: str
    source: SourceInfo
    folder: str
    capabilities: tuple[Capability, ...]
    probes: tuple[Probe, ...] | None = None
    against: SourceInfo | None = None
    changes: tuple[Change, ...] = ()
    undecided: tuple[UndecidedItem, ...] = ()


def to_json(document: Discovery) -> bytes:
    """The document as indented JSON with a final newline; same input, same bytes."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def json_schema() -> dict[str, object]:
    """The JSON Schema (2020-12) of the document."""
    schema = msgspec.json.schema(Discovery)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "draftaudit capabilities",
        **schema,
    }
