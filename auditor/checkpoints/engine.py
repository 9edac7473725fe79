"""The engine's own configuration code, run over one configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from auditor.checkpoints.configs import ConfigRun, Library
from auditor.checkpoints.conventions import checkpoint_rule
from auditor.checkpoints.stand_ins import standard
from auditor.checkpoints.values import CannotFollow, Config, Function, Value, attrs_of, instance
from auditor.contracts.names import Names, Ref
from auditor.ruleset.engine import engine_rule

_Answer = TypeVar("_Answer")


def new_run(names: Names, library: Library) -> ConfigRun:
    """A run over the definitions of a tree, with nothing known of any configuration yet."""
    rule = checkpoint_rule()
    run = ConfigRun(names, rule.tree.interest, rule.base, library)
    run.stand_ins.update(standard(run, rule))
    return run


def bare(run: ConfigRun, given: Mapping[str, Value]) -> Config:
    """A configuration with the fields of ``given`` and no class of its own.

    A nested object that is a configuration itself (it names a model type, or is the text part) is
    one as well.

    Raises:
        CannotFollow: a field is one that Transformers checks or computes.
    """
    made = instance(run.base, config=True)
    nested = {
        key: bare(run, value) if is_nested(key, value) else value for key, value in given.items()
    }
    run.start(made, nested, None)
    assert isinstance(made, Config)
    return made


def is_nested(key: str, value: Value) -> bool:
    """Whether a field of a configuration holds another one."""
    return isinstance(value, dict) and (
        key == "text_config" or isinstance(value.get("model_type"), str)
    )


def override_function(run: ConfigRun) -> Function:
    """The function that rewrites a checkpoint's configuration.

    Raises:
        CannotFollow: the tree has none.
    """
    rule = engine_rule().config
    module, _, name = rule.class_.rpartition(".")
    found = run.names.method(Ref(module, name), rule.override)
    if found is None:
        raise CannotFollow(f"this release has no {name}.{rule.override}")
    return Function(found[1], found[0].module, found[0])


def override(run: ConfigRun, config: Value) -> Value:
    """The configuration as ``hf_config_override`` leaves it.

    Raises:
        CannotFollow: the code does something that is not followed.
        Raised: the code raised.
    """
    return guarded(lambda: run.call_function(override_function(run), (config,), {}))


def guarded(run: Callable[[], _Answer]) -> _Answer:
    """The same, with an end of the tool's own stack as something that is not followed."""
    try:
        return run()
    except RecursionError as error:
        raise CannotFollow("expressions are nested too deeply") from error


def read(config: Value, name: str) -> Value:
    """An attribute that a configuration holds itself, else None."""
    return attrs_of(config).get(name) if isinstance(config, Config) else None
