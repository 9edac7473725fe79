"""``rules/checkpoints.toml``: where the code stands, and what a bare configuration is."""

from __future__ import annotations

from functools import cache

import msgspec

from auditor.ruleset.files import load, rules_folder

Scalar = bool | int | str


class TreeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands where in vLLM.

    Attributes:
        load: the function that loads a configuration.
        rewrite: its argument that rewrites the configuration.
        arguments: its other arguments.
        lenient: functions in which a statement that changes nothing of interest may be left out.
        files: functions that ask for further files of a checkpoint.
        silent: functions that make objects which only say something.
        later: functions that run behind the rewriting and change no name.
        interest: attributes whose assignment is a step of the answer.
        layers: fields that say how many layers for drafting there are.
        target: methods of the target's configuration, and what they are taken to answer.
    """

    load: str
    rewrite: str
    arguments: dict[str, Scalar]
    lenient: tuple[str, ...]
    files: tuple[str, ...]
    silent: tuple[str, ...]
    later: tuple[str, ...]
    interest: tuple[str, ...]
    layers: tuple[str, ...]
    target: dict[str, Scalar]


class BaseRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``transformers.PreTrainedConfig``: its fields, and what else it defines.

    Attributes:
        names: the names of the class.
        none: fields whose default is None.
        defaults: fields with another default.
        class_defaults: class attributes; ``class_empty`` and ``class_none`` hold ``{}`` and None.
        aliases: other names of an attribute.
        layer_types: lists with a name for each layer, which it checks.
        uncounted: those of them whose length may be any.
        comparing: exceptions by which it refuses fields that do not go together.
        popped: keys that its constructor takes out.
        settable: properties that can be set like an attribute, and decide nothing here.
        computed: whatever else it defines.
    """

    names: tuple[str, ...]
    none: tuple[str, ...]
    defaults: dict[str, Scalar]
    class_defaults: dict[str, Scalar]
    class_empty: tuple[str, ...]
    class_none: tuple[str, ...]
    aliases: dict[str, str]
    layer_types: tuple[str, ...]
    uncounted: tuple[str, ...]
    comparing: tuple[str, ...]
    popped: tuple[str, ...]
    settable: tuple[str, ...]
    computed: tuple[str, ...]


class TablesRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tables of the registry in which an independent draft model is looked up."""

    independent: tuple[str, ...]


class CheckpointRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file; ``families`` are the fields that only drafts of one method have."""

    tree: TreeRule
    tables: TablesRule
    families: dict[str, tuple[str, ...]]
    base: BaseRule


@cache
def checkpoint_rule() -> CheckpointRule:
    """How a checkpoint becomes the configuration of a draft."""
    return load(rules_folder() / "checkpoints.toml", CheckpointRule)
