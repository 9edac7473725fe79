"""Python objects in the place of the run's values, to learn which exception Python would raise.

``None + 1`` and ``class A(module)`` fail with words that depend on the types alone. The objects
here have those types, and nothing of the tree in them.
"""

from __future__ import annotations

import builtins
import types
from importlib.machinery import ModuleSpec

from auditor.classes import linearise
from auditor.evaluation.frame import CONSTANT_TYPES, CONTAINERS, is_plain
from auditor.values import (
    UNBOUND,
    Builtin,
    ClassValue,
    Closure,
    Deferred,
    Either,
    Foreign,
    Function,
    ModuleValue,
    Opaque,
    Spec,
    Value,
)

_MAY_BE_CLASSES = frozenset((ClassValue, Foreign, Builtin, Opaque, Deferred, Either))


def stand_in(value: Value) -> object:
    """An object of the type that ``value`` has, or UNBOUND where that is not known."""
    match value:
        case ModuleValue(name=name):
            return types.ModuleType(name)
        case Spec(name=name):
            return ModuleSpec(name, None)
        case Function() | Closure():
            return lambda: None
        case Builtin(name=name):
            return getattr(builtins, name)
        case ClassValue() if is_ordinary(value):
            return type(value.facts.name, _builtin_bases(value), {})
        case _ if isinstance(value, (*CONSTANT_TYPES, *CONTAINERS)):
            return value
        case _:
            return UNBOUND


def outside(stand: object) -> object:
    """The stand-in, and of a container one without what is in it, which Python may ask."""
    return type(stand)() if isinstance(stand, CONTAINERS) and not is_plain(stand) else stand


def _builtin_bases(cls: ClassValue) -> tuple[type, ...]:
    found = (getattr(builtins, m.name) for m in linearise(cls) if isinstance(m, Builtin))
    return tuple(member for member in found if isinstance(member, type))[:1]


def base_error(name: str, bases: tuple[Value, ...]) -> str:
    """What Python says to a class one of whose bases is no class; empty where all may be."""
    if _MAY_BE_CLASSES.issuperset(map(type, bases)):
        return ""
    stands = [stand_in(base) for base in bases]
    if all(isinstance(stand, type) or stand is UNBOUND for stand in stands):
        return ""
    try:
        types.new_class(name, tuple(type(name, (), {}) if s is UNBOUND else s for s in stands))
    except TypeError as error:
        return str(error)
    return ""


def is_ordinary(cls: ClassValue) -> bool:
    """Whether no metaclass or decorator can give the class other attributes than its bodies do."""
    return all(
        isinstance(member, Builtin)
        or (
            isinstance(member, ClassValue)
            and not member.facts.keywords
            and (member.followed or not member.facts.decorators)
        )
        for member in linearise(cls)
    )


def inherits_builtin(cls: ClassValue, name: str) -> bool:
    """Whether the class has an attribute from ``type``, ``object`` or a builtin base."""
    members = [getattr(builtins, m.name) for m in linearise(cls) if isinstance(m, Builtin)]
    return any(hasattr(member, name) for member in (type, *members))
