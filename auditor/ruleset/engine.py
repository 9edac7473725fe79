"""How the engine comes to the object that drafts: ``rules/engine.toml``."""

from __future__ import annotations

from functools import cache

import msgspec

from auditor.ruleset.files import Strict, load, rules_folder


class DrafterRule(Strict, frozen=True):
    """What a model runner makes to draft, and what that calls."""

    attributes: tuple[str, ...]
    model: str
    entries: tuple[str, ...]
    step: str


class ConfigRule(Strict, frozen=True):
    """The speculative configuration: its class, and the code that settles it."""

    attribute: str
    settle: str
    override: str
    method: str
    methods: str
    independent: tuple[str, ...]
    class_: str = msgspec.field(name="class")


class DraftRule(Strict, frozen=True):
    """The table of draft models, their configuration, and how a checkpoint's own is changed."""

    table: str
    attribute: str
    name: str
    target: str
    checkpoint: str
    overrides: str
    architectures: str
    model_type: str
    bases: tuple[str, ...]
    updaters: tuple[str, ...]
    class_: str = msgspec.field(name="class")


class ConvertedRule(Strict, frozen=True):
    """Checkpoints in a format of their own, and the code that converts them."""

    module: str
    decorator: str
    key: str
    settle: str
    class_: str = msgspec.field(name="class")


class TypesRule(Strict, frozen=True):
    """The classes of the tree for model types: the table, and the modules of those classes."""

    table: str
    modules: str


class ModelsRule(Strict, frozen=True):
    """By what the engine's code is told to hold a model.

    Attributes:
        search: the folder where the engine asks models what they have.
        interfaces: modules whose functions ask a model, and whose protocols it is an instance of.
        makers: functions and methods that give a model, or its class.
        part_makers: those that give parts of one.
        names: globs over names of variables, parameters and attributes that hold one.
        not_models: globs over names that hold none, though one of the others fits.
        modules: globs over annotations, by which it is a model or a part of one.
        parts: globs over annotations of parts.
        unsure: globs over annotations that leave it open.
    """

    search: str
    interfaces: tuple[str, ...]
    makers: tuple[str, ...]
    part_makers: tuple[str, ...]
    names: tuple[str, ...]
    not_models: tuple[str, ...]
    modules: tuple[str, ...]
    parts: tuple[str, ...]
    unsure: tuple[str, ...]


class EngineRule(Strict, frozen=True):
    """``rules/engine.toml``: how the engine comes to the object that drafts."""

    drafter: DrafterRule
    config: ConfigRule
    draft: DraftRule
    converted: ConvertedRule
    types: TypesRule
    models: ModelsRule


@cache
def engine_rule() -> EngineRule:
    """How the engine comes to the object that drafts."""
    return load(rules_folder() / "engine.toml", EngineRule)
