"""What ``self.x`` is: read off the ``__init__`` of the classes of the MRO.

Only assignments in ``__init__`` count. The class of a submodule, the class of the items of a
``ModuleDict`` or ``ModuleList``, an alias of another attribute, or None are told apart; anything
else is known to be assigned, and no more.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from auditor.classes import linearise
from auditor.values import ClassValue, Either, Foreign, Function, Place, Value


@dataclass(frozen=True, slots=True)
class Attribute:
    """One possible value of an attribute.

    Attributes:
        cls: the class it is an instance of, when that is known.
        item: the class of its items, when it is a container of submodules.
        alias: the names from ``self`` on, when it is another attribute (``("model", "lm_head")``).
        is_none: it is None.
        call: the call that makes it, for what is read off its arguments.
        where: the assignment.
        init: the class whose ``__init__`` assigns it.
    """

    cls: ClassValue | Foreign | None
    item: ClassValue | Foreign | None
    alias: tuple[str, ...]
    is_none: bool
    call: ast.Call | None
    where: Place
    init: ClassValue


class Bodies(Protocol):
    """Gives the syntax of class bodies, and evaluates names of their modules."""

    def functions(self, cls: ClassValue) -> dict[str, ast.FunctionDef]:
        """The methods that the body of ``cls`` defines, the last of each name."""
        ...

    def stores(self, cls: ClassValue) -> dict[str, int]:
        """Attributes of ``self`` that methods of ``cls`` other than ``__init__`` assign: lines."""
        ...

    def outside(self, name: str) -> Place | None:
        """Where the engine sets an attribute of this name on some object, if it does."""
        ...

    def named(self, cls: ClassValue, dotted: str) -> Value | None:
        """The value of a dotted name in the module of ``cls``, or None."""
        ...

    def function(self, cls: ClassValue, dotted: str) -> tuple[ClassValue, ast.FunctionDef] | None:
        """A function of the tree by its dotted name, with a class that stands for its module."""
        ...


class Attributes:
    """Attributes of instances, by class and name."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._known: dict[tuple[int, str], tuple[Attribute, ...]] = {}

    def of(self, cls: ClassValue, name: str) -> tuple[Attribute, ...]:
        """The values that ``self.name`` may have; empty where no ``__init__`` assigns it."""
        key = (id(cls), name)
        if key not in self._known:
            self._known[key] = self._find(cls, name)
        return self._known[key]

    def _find(self, cls: ClassValue, name: str) -> tuple[Attribute, ...]:
        """The assignments of the most derived class that makes one: it runs last.

        Where that class assigns on some branches only, those of its bases count as well.
        """
        found: list[Attribute] = []
        for member in linearise(cls):
            init = self._init(member)
            if init is not None and isinstance(member, ClassValue):
                found.extend(self._assigned(member, init, name))
                if found and _always_assigns(init.body, name):
                    break
        return tuple(found)

    def _init(self, member: Value) -> ast.FunctionDef | None:
        if not isinstance(member, ClassValue):
            return None
        return self._bodies.functions(member).get("__init__")

    def elsewhere(self, cls: ClassValue, name: str) -> Place | None:
        """Where a method other than ``__init__``, or the engine, assigns ``name``."""
        for member in linearise(cls):
            if isinstance(member, ClassValue):
                line = self._bodies.stores(member).get(name)
                if line is not None:
                    return Place(member.module.path, line)
        return self._bodies.outside(name)

    def _assigned(self, cls: ClassValue, init: ast.FunctionDef, name: str) -> Iterator[Attribute]:
        local: dict[str, ast.expr] = {}
        for node in _statements(init.body):
            target, value = _assignment(node)
            if value is None:
                continue
            if isinstance(target, ast.Name):
                local[target.id] = value
            if is_self_attribute(target, name):
                yield from self._values(cls, value, local, node.lineno)

    def _values(
        self, cls: ClassValue, value: ast.expr, local: dict[str, ast.expr], line: int
    ) -> Iterator[Attribute]:
        where = Place(cls.module.path, line)
        for one in _options(value, local):
            alias = _self_path(one)
            is_none = isinstance(one, ast.Constant) and one.value is None
            call = one if isinstance(one, ast.Call) else None
            made = self._class_of_call(cls, call) if call is not None else None
            item = self._item_class(cls, call) if call is not None else None
            yield Attribute(made, item, alias, is_none, call, where, cls)

    def _class_of_call(self, cls: ClassValue, call: ast.Call) -> ClassValue | Foreign | None:
        dotted = _dotted(call.func)
        value = self._bodies.named(cls, dotted) if dotted else None
        if isinstance(value, Either):
            options = list(value.values())
            value = options[0] if len({id(option) for option in options}) == 1 else None
        if isinstance(value, Function):
            return self._made_by(cls, f"{value.module.name}.{value.facts.name}")
        return value if isinstance(value, ClassValue | Foreign) else None

    def _made_by(self, cls: ClassValue, dotted: str) -> ClassValue | Foreign | None:
        """The class that a function of the tree makes an instance of, if every return does."""
        found = self._bodies.function(cls, dotted)
        if found is None:
            return None
        scope, function = found
        returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
        made = [
            self._class_of_call(scope, node.value) if isinstance(node.value, ast.Call) else None
            for node in returns
        ]
        first = made[0] if made else None
        return first if all(one is first for one in made) else None

    def _item_class(self, cls: ClassValue, call: ast.Call) -> ClassValue | Foreign | None:
        """The class of the items of ``ModuleDict({…})`` and ``ModuleList([…])``."""
        for argument in call.args[:1]:
            made = _item_of(argument)
            if isinstance(made, ast.Call):
                return self._class_of_call(cls, made)
        return None


def is_self_attribute(target: ast.AST | None, name: str) -> bool:
    """Whether a target is ``self.name``."""
    match target:
        case ast.Attribute(value=ast.Name(id="self"), attr=attr):
            return attr == name
        case _:
            return False


def _always_assigns(body: list[ast.stmt], name: str) -> bool:
    """Whether a body assigns ``self.name`` whichever branch is taken."""
    for node in body:
        target, value = _assignment(node)
        if value is not None and is_self_attribute(target, name):
            return True
        match node:
            case ast.If(body=taken, orelse=orelse) if _always_assigns(taken, name):
                if _always_assigns(orelse, name):
                    return True
            case ast.With(body=inner) if _always_assigns(inner, name):
                return True
    return False


def _item_of(display: ast.expr) -> ast.expr | None:
    match display:
        case ast.DictComp(value=value):
            return value
        case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value):
            return value
        case ast.Dict(values=[value, *_]) | ast.List(elts=[value, *_]):
            return value
        case _:
            return None


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body in order, those of its branches included."""
    for node in body:
        yield node
        for block in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(node, block, []))


def _assignment(node: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    match node:
        case ast.Assign(targets=[target], value=value):
            return target, value
        case ast.AnnAssign(target=target, value=value):
            return target, value
        case _:
            return None, None


def _options(value: ast.expr, local: dict[str, ast.expr], depth: int = 4) -> Iterator[ast.expr]:
    """The expressions that a value may be: through local names and conditional expressions."""
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            yield from _options(body, local, depth)
            yield from _options(orelse, local, depth)
        case ast.Name(id=name) if name in local and depth:
            yield from _options(local[name], local, depth - 1)
        case _:
            yield value


def _self_path(value: ast.expr) -> tuple[str, ...]:
    """The names from ``self`` on in ``self.a.b``; empty for anything else."""
    dotted = _dotted(value)
    return tuple(dotted.split(".")[1:]) if dotted.startswith("self.") else ()


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


#: Kept for callers that resolve names by themselves.
dotted_name: Callable[[ast.expr], str] = _dotted
