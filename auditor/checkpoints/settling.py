"""What the engine settles on: the method, and the architecture that it asks its registry for.

``SpeculativeConfig.__post_init__`` of the tree is run over a configuration that is already
rewritten. Of the target no more is known than that it may be the same checkpoint; what a user
gives beside the model and the method is unknown, and what only refuses it is left out.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

from auditor.checkpoints.configs import ConfigRun
from auditor.checkpoints.conventions import checkpoint_rule
from auditor.checkpoints.engine import guarded
from auditor.checkpoints.values import (
    Bound,
    CannotFollow,
    ClassValue,
    Config,
    External,
    Function,
    Native,
    Object,
    Partial,
    Raised,
    Unknown,
    Value,
    attrs_of,
    class_of,
    instance,
)
from auditor.contracts.names import Ref
from auditor.ruleset.engine import engine_rule

_USER = "what the user gives"


@dataclass(frozen=True, slots=True)
class Settled:
    """What the engine settles on.

    Attributes:
        method: the speculative method.
        config: the draft's configuration, None where the method has no draft model.
        wrapped: whether another configuration took the place of the checkpoint's.
        error: why the engine refuses it, or None.
    """

    method: str | None
    config: Value
    wrapped: bool
    error: Raised | None


def settle(run: ConfigRun, config: Value, before: Value, method: str | None, name: str) -> Settled:
    """Run the engine's settling.

    Args:
        run: a run that knows the classes of ``config``.
        config: the checkpoint's configuration as the override leaves it.
        before: the same before that: the target's, where the draft is part of its checkpoint.
        method: the method that the user asks for, or None.
        name: what the user calls the model.

    Raises:
        CannotFollow: the tree's code does something that is not followed.
    """
    rule = engine_rule()
    module, _, cls = rule.config.class_.rpartition(".")
    ref = Ref(module, cls)
    found = run.names.method(ref, rule.config.settle)
    if found is None:
        raise CannotFollow(f"this release has no {cls}.{rule.config.settle}")
    draft = _draft(config, name)
    made = instance(ClassValue(ref), config=False)
    attrs_of(made).update(
        {
            rule.config.method: method,
            rule.draft.name: name,
            rule.draft.target: _target(before),
            "target_parallel_config": Unknown(_USER, given=True),
            "num_speculative_tokens": Unknown(_USER, given=True),
        }
    )
    held = dict(run.stand_ins)
    run.stand_ins[rule.draft.class_] = Native("ModelConfig", lambda *_, **__: draft)
    function = Function(found[1], found[0].module, found[0])
    run.lenient = frozenset({rule.config.settle})
    error: Raised | None = None
    try:
        guarded(lambda: run.call_function(function, (made,), {}))
    except Raised as raised:
        error = raised
    finally:
        run.stand_ins.clear()
        run.stand_ins.update(held)
    return _outcome(made, draft, config, error)


def _draft(config: Value, name: str) -> Partial:
    """The draft's model configuration, whose architectures are those of its checkpoint."""
    rule = engine_rule().draft
    draft = Partial(External(rule.class_), "the draft")
    draft.views = {rule.architectures: lambda: _architectures(draft)}
    attrs_of(draft).update({rule.checkpoint: config, rule.name: name})
    return draft


def _architectures(draft: Partial) -> Value:
    """The architectures of the configuration that the draft has now."""
    rule = engine_rule().draft
    config = attrs_of(draft).get(rule.checkpoint)
    if not isinstance(config, Config):
        return Unknown("the draft's configuration is not known")
    return attrs_of(config).get(rule.architectures) or []


def _target(before: Value) -> Partial:
    """The target's model configuration: of the same checkpoint, run by vLLM's own code."""
    target = Partial(External(engine_rule().draft.class_), "the target")
    for name, value in checkpoint_rule().tree.target.items():
        attrs_of(target)[name] = Bound(Native(name, lambda answer, *_: answer), (value,))
    attrs_of(target)[engine_rule().draft.checkpoint] = copy.deepcopy(before)
    return target


def _outcome(made: Object, draft: Partial, config: Value, error: Raised | None) -> Settled:
    rule = engine_rule()
    method = attrs_of(made).get(rule.config.method)
    held = attrs_of(made).get(rule.draft.attribute)
    after = attrs_of(draft).get(rule.draft.checkpoint) if held is draft else None
    if not isinstance(method, str | None):
        raise CannotFollow("which method the engine settles on")
    return Settled(method, after, after is not None and after is not config, error)


def method_of_format(run: ConfigRun, given: Mapping[str, Value]) -> str | None:
    """The method that a checkpoint in a format of its own names; None where it has none.

    Raises:
        CannotFollow: the tree's code does something that is not followed.
        Raised: the code raised.
    """
    rule = engine_rule().converted
    if rule.key not in given:
        return None
    module, _, cls = rule.class_.rpartition(".")
    ref = Ref(module, cls)
    found = run.names.method(ref, rule.settle)
    if found is None:
        return None
    function = Function(found[1], found[0].module, found[0])
    said = guarded(
        lambda: run.call_function(function, (ClassValue(ref), copy.deepcopy(dict(given))), {})
    )
    method = said.get(engine_rule().config.method) if isinstance(said, dict) else None
    return method if isinstance(method, str) else None


def is_of_class(run: ConfigRun, config: Value, dotted: str) -> bool:
    """Whether a configuration is of a class of the tree."""
    module, _, name = dotted.rpartition(".")
    cls = class_of(config) if isinstance(config, Config) else None
    return isinstance(cls, ClassValue) and run.names.is_a(cls.ref, [Ref(module, name)])
