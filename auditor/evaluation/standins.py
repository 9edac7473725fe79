"""Python objects in the place of the run's values, to learn which exception Python would raise.

``None + 1`` and ``class A(module)`` fail with words that depend on the types alone. The objects
here have those types, and nothing of the tree in them.
"""

from __future__ import annotations

import builtins
import types
from importlib.machinery import ModuleSpec
from typing import Any

from auditor.classes import (
    Found,
    Missing,
    body_namespace,
    linearise,
    lookup,
    own_attribute,
    own_value,
)
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
    Instance,
    Iterated,
    ModuleValue,
    Opaque,
    Spec,
    Value,
)

#: Classes of Python that have no subclasses.
_FINAL = frozenset(("bool", "memoryview", "range", "slice"))
_MAY_BE_CLASSES = frozenset((ClassValue, Foreign, Builtin, Opaque, Deferred, Either))


_NEW = ("__new__",)


def stand_in(value: Value, asked: tuple[str, ...] = ()) -> object:
    """An object of the type that ``value`` has, or UNBOUND where that is not known.

    An instance has one only where its class surely has none of the special methods ``asked``.
    """
    match value:
        case ModuleValue(name=name):
            return types.ModuleType(name)
        case Spec(name=name):
            return ModuleSpec(name, None)
        case Function(decorators=()) | Closure():
            return _function
        case Builtin(name=name):
            return getattr(builtins, name)
        case ClassValue() if is_ordinary(value):
            return type(value.facts.name, _builtin_bases(value), {})
        case Iterated(like=like):
            return like
        case Opaque(like=like):
            # What Python is tried on may change it.
            return type(like)() if type(like) in (list, dict, set) else like
        case Instance(cls=cls) if asked and _is_bare(cls, asked):
            kind: Any = type(cls.facts.name, _builtin_bases(cls), {})
            return kind.__new__(kind)
        case _ if isinstance(value, (*CONSTANT_TYPES, *CONTAINERS)):
            return value
        case _:
            return UNBOUND


def _function() -> None:
    """Stands for any function."""


def _is_bare(cls: ClassValue, asked: tuple[str, ...]) -> bool:
    """Whether instances of a class surely have none of these methods, nor a state of their own."""
    return (
        is_undecorated(cls)
        and all(issubclass(base, BaseException) for base in _builtin_bases(cls))
        and all(isinstance(lookup(cls, name), Missing) for name in ("__new__", *asked))
    )


def may_define(cls: ClassValue, *names: str) -> bool:
    """Whether the metaclass of a class may define one of these special methods in the tree."""
    match cls.metaclass:
        case None | Foreign() | Builtin():
            return False
        case ClassValue() as meta:
            return any(not isinstance(lookup(meta, name), Missing) for name in names)
        case _:
            return True


def may_serve(cls: ClassValue) -> bool:
    """Whether an instance of the class may be a descriptor, or something else altogether."""
    found = lookup(cls, "__get__")
    return not isinstance(found, Missing) or bool(found.foreign) or not makes_itself(cls)


def is_key(value: Value) -> bool:
    """Whether a value is told apart from others, as a key, as it is in the run."""
    match value:
        case Opaque() | Either():
            return False
        case Instance(cls=cls):
            return all(isinstance(lookup(cls, name), Missing) for name in ("__eq__", "__hash__"))
        case ClassValue():
            return not may_define(value, "__eq__", "__hash__")
        case tuple():
            return all(map(is_key, value))
        case _:
            return True


def has_no_hash(value: Value) -> bool:
    """Whether the class of an object surely leaves it without a hash.

    It does where it says itself what is equal, and not how that is hashed.
    """
    if not isinstance(value, Instance) or not _is_bare(value.cls, _NEW):
        return False
    for member in linearise(value.cls):
        if isinstance(member, ClassValue):
            if isinstance(own_attribute(member, "__hash__"), Found):
                return own_value(member, "__hash__") is None
            if "__eq__" in body_namespace(member):
                return "__hash__" not in member.extra
    return False


def takes_nothing(cls: ClassValue) -> bool:
    """Whether a class surely has no ``__init__`` but that of ``object``."""
    if cls.facts.decorators or Foreign in map(type, cls.bases):
        return False
    return _is_bare(cls, ("__init__",)) and not _builtin_bases(cls)


def makes_itself(cls: ClassValue) -> bool:
    """Whether calling a class gives an instance of it, and nothing else that it thinks of."""
    return isinstance(lookup(cls, "__new__"), Missing) and not may_define(cls, "__call__")


def outside(stand: object) -> object:
    """The stand-in, and of a container one without what is in it, which Python may ask."""
    return type(stand)() if isinstance(stand, CONTAINERS) and not is_plain(stand) else stand


def _builtin_bases(cls: ClassValue) -> tuple[type, ...]:
    found = (getattr(builtins, m.name) for m in linearise(cls) if isinstance(m, Builtin))
    return tuple(member for member in found if isinstance(member, type))[:1]


def base_error(name: str, bases: tuple[Value, ...]) -> str:
    """What Python says to a class one of whose bases is no class; empty where all may be."""
    may_be_classes = _MAY_BE_CLASSES.issuperset(map(type, bases))
    if may_be_classes and (not bases or (len(bases) == 1 and type(bases[0]) is not Builtin)):
        return ""
    if may_be_classes:
        built = [base for base in bases if isinstance(base, Builtin) or _has_layout(base)]
        if len(built) < 2 and not any(isinstance(b, Builtin) and b.name in _FINAL for b in built):
            return ""
    stands = [stand_in(base) for base in bases]
    types_alone = all(isinstance(stand, type) or stand is UNBOUND for stand in stands)
    if types_alone and not may_be_classes:
        return ""
    try:
        types.new_class(name, tuple(type(name, (), {}) if s is UNBOUND else s for s in stands))
    except TypeError as error:
        return str(error)
    return ""


def _has_layout(base: Value) -> bool:
    return isinstance(base, ClassValue) and is_ordinary(base) and bool(_builtin_bases(base))


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


def is_undecorated(cls: ClassValue) -> bool:
    """Whether a class is ordinary, and nothing that decorates it can have given it a method.

    What decorators of the tree hand to code outside it, as ``dataclass``, is not followed.
    """
    return is_ordinary(cls) and not any(
        isinstance(member, ClassValue) and member.facts.decorators for member in linearise(cls)
    )


def inherits_builtin(cls: ClassValue, name: str) -> bool:
    """Whether the class has an attribute from ``type``, ``object`` or a builtin base."""
    members = [getattr(builtins, m.name) for m in linearise(cls) if isinstance(m, Builtin)]
    return any(hasattr(member, name) for member in (type, *members))
