"""What stands in for functions outside the tree that configuration code calls."""

from __future__ import annotations

import collections.abc
import copy
import typing
from collections.abc import Mapping

from auditor.checkpoints.calls import Silent
from auditor.checkpoints.configs import ConfigRun
from auditor.checkpoints.conventions import CheckpointRule
from auditor.checkpoints.values import (
    Bound,
    CannotFollow,
    External,
    ModuleValue,
    Native,
    Object,
    Value,
    attrs_of,
    instance,
)


def standard(run: ConfigRun, rule: CheckpointRule) -> dict[str, Value]:
    """The functions and classes that any configuration code may use, by dotted name."""
    silent = Native("logger", lambda *_, **__: Silent("a logger"))
    found: dict[str, Value] = {
        "copy.deepcopy": Native("deepcopy", _deepcopy, python=True),
        "copy.copy": Native("copy", copy.copy, python=True),
        "typing.Literal": typing.Literal,
        "typing.get_args": Native("get_args", typing.get_args, python=True),
        "typing.cast": Native("cast", lambda _, value: value),
        "typing.TYPE_CHECKING": False,
        "functools.partial": Native("partial", lambda inner, *a, **kw: Bound(inner, a, kw)),
        "importlib.import_module": Native("import_module", lambda name: _module(run, name)),
        "dataclasses.field": Native("field", _default),
        "pydantic.Field": Native("Field", _default),
        "dataclasses.fields": Native("fields", lambda cls: _fields(run, rule, cls)),
        **{
            f"{module}.{name}": getattr(collections.abc, name)
            for module in ("collections.abc", "typing")
            for name in ("Mapping", "MutableMapping", "Sequence")
        },
    }
    found.update(dict.fromkeys(rule.tree.silent, silent))
    return found


def _deepcopy(value: Value) -> Value:
    return copy.deepcopy(value)


def _module(run: ConfigRun, name: Value) -> Value:
    if isinstance(name, str) and run.names.sketch(name) is not None:
        return ModuleValue(name)
    return External(str(name))


def _default(default: Value = None, **given: Value) -> Value:
    """The value that a field has where none is given."""
    factory = given.get("default_factory")
    if factory in (list, dict, set):
        return factory()
    if factory is not None:
        raise CannotFollow("the default of a field is made by a function")
    return default


def _fields(run: ConfigRun, rule: CheckpointRule, cls: Value) -> Value:
    """``dataclasses.fields`` of a bare configuration."""
    if not (isinstance(cls, External) and run.is_base(cls)):
        raise CannotFollow("the fields of a class that is not known")
    names = [*rule.base.none, *(key for key in rule.base.defaults if not key.startswith("_"))]
    return tuple(_object("dataclasses.Field", {"name": name}) for name in names)


def _object(dotted: str, attributes: Mapping[str, Value]) -> Object:
    made = instance(External(dotted), config=False)
    attrs_of(made).update(attributes)
    return made
