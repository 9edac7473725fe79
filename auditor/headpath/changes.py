"""Which attributes of a class's instances are set otherwise than by ``__init__``, and where.

The text of the class's own methods says so, that of functions which ``__init__`` hands the object
to, and the rest of the file: another class or function there may set an attribute of any object.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from auditor.classes import Order, linearise
from auditor.headpath.bodies import Bodies
from auditor.headpath.stores import Handed, Stores, first_parameter, stores_of_function
from auditor.nodes import nodes_of
from auditor.values import ClassValue, Foreign, Function, Place

#: Functions that are handed an object and leave its attributes alone (builtins, weakref).
_HARMLESS = frozenset(
    "hasattr getattr isinstance issubclass len id type repr str print super callable hash iter "
    "weakref.ref weakref.proxy".split()
)

#: So many functions deep is it followed where an object is handed to.
_DEPTH = 4


class Changes(msgspec.Struct):
    """What is set, by attribute, and where first.

    Attributes:
        own: attributes of the object itself.
        other: attributes of any object, its own included.
        anything: where an attribute of the object may be set whose name is not known.
        others: where one of any object may be.
    """

    own: dict[str, Place] = msgspec.field(default_factory=dict)
    other: dict[str, Place] = msgspec.field(default_factory=dict)
    anything: Place | None = None
    others: Place | None = None

    def of(self, name: str) -> Place | None:
        """Where an attribute of the object may be set."""
        return self.own.get(name) or self.anything or self.of_any(name)

    def of_any(self, name: str) -> Place | None:
        """Where an attribute of any object may be set."""
        return self.other.get(name) or self.others

    def add(self, stores: Stores, path: str) -> None:
        """Take in what functions of a file set."""
        for found, into in ((stores.own, self.own), (stores.other, self.other)):
            for name, line in found.items():
                into.setdefault(name, Place(path, line))
        if stores.own_any is not None:
            self.anything = self.anything or Place(path, stores.own_any)
        if stores.other_any is not None:
            self.others = self.others or Place(path, stores.other_any)


class ChangesOf:
    """Finds the changes of classes, each once."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._known: dict[int, tuple[ClassValue, Changes]] = {}

    def of(self, cls: ClassValue) -> Changes:
        """What may set attributes of an instance of ``cls``."""
        known = self._known.get(id(cls))
        if known is None:
            order = ("changes", Order(cls))
            changes = self._bodies.once(order, lambda: self._find(cls))
            known = self._known[id(cls)] = (cls, changes)
        return known[1]

    def _find(self, cls: ClassValue) -> Changes:
        found = Changes()
        for member in linearise(cls):
            if isinstance(member, ClassValue):
                stores = self._bodies.stores(member)
                found.add(stores, member.module.path)
                for name, where in self._bodies.beside(member).items():
                    found.other.setdefault(name, where)
                for handed in stores.handed:
                    self._handed(found, member, handed, _DEPTH)
        return found

    def _handed(self, found: Changes, scope: ClassValue, handed: Handed, depth: int) -> None:
        """What a function that is handed the object sets on it."""
        if handed.function in _HARMLESS or handed.function.endswith("__init__"):
            return
        target = self._target(scope, handed) if depth else None
        if target is None:
            if handed.by_init:
                found.anything = found.anything or Place(scope.module.path, handed.line)
            return
        owner, function, parameter = target
        new = first_parameter(function) if function.name == "__init__" else ""
        stores = stores_of_function(function, parameter, new)
        found.add(stores, owner.module.path)
        for inner in stores.handed:
            deeper = Handed(inner.function, inner.position, inner.line, handed.by_init)
            self._handed(found, owner, deeper, depth - 1)

    def _target(
        self, scope: ClassValue, handed: Handed
    ) -> tuple[ClassValue, ast.FunctionDef, str] | None:
        """The function of the tree that is called, and which of its parameters is the object."""
        value = self._bodies.named(scope, handed.function) if handed.function else None
        match value:
            case Function():
                name = f"{value.module.name}.{value.facts.name}"
                found, skipped = self._bodies.function(scope, name), 0
            case ClassValue():
                found, skipped = self._init(value), 1
            case _:
                return None
        parameter = _parameter(found[1], handed.position, skipped) if found is not None else None
        return (*found, parameter) if found is not None and parameter is not None else None

    def _init(self, cls: ClassValue) -> tuple[ClassValue, ast.FunctionDef] | None:
        for member in linearise(cls):
            if not isinstance(member, ClassValue):
                return None
            function = self._bodies.functions(member).get("__init__")
            if function is not None:
                return member, function
        return None


def _parameter(function: ast.FunctionDef, position: int | str, skipped: int) -> str | None:
    """The parameter that an argument binds, by position or by name."""
    positional = [p.arg for p in (*function.args.posonlyargs, *function.args.args)][skipped:]
    if isinstance(position, int):
        return positional[position] if position < len(positional) else None
    named = [*positional, *(p.arg for p in function.args.kwonlyargs)]
    return position if position in named else None


def foreign_class(value: object) -> bool:
    """Whether a name outside the tree is a class, by the convention for names (PEP 8)."""
    return isinstance(value, Foreign) and value.name.rpartition(".")[2][:1].isupper()


def init_calls(init: ast.FunctionDef) -> Iterator[int]:
    """The lines on which an ``__init__`` runs that of a base."""
    for node in nodes_of(init):
        match node:
            case ast.Call(func=ast.Attribute(attr="__init__")):
                yield node.lineno
