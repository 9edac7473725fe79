"""With what a submodule is built, traced back to what the draft model itself is given.

``ParallelLMHead(config.vocab_size)`` in a layer means nothing by itself: ``config`` is a parameter
of the layer's ``__init__``. Each name is replaced by what it was assigned, or by the argument of
the call that builds the object, up to the parameters of the draft model. Two sizes that come out
as the same text are the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from auditor.headpath.arguments import parameters
from auditor.headpath.attributes import Attribute
from auditor.headpath.bodies import Bodies
from auditor.headpath.terms import Item, Part, Self, Term
from auditor.headpath.things import Things
from auditor.nodes import nodes_of
from auditor.values import ClassValue, Foreign, Place

#: So many names are replaced in one text; what assigns itself would go on for ever.
_MAX_STEPS = 60


class Built(msgspec.Struct, frozen=True):
    """One call that builds a part of the model, as texts in the model's own parameters.

    Attributes:
        text: the whole call.
        arguments: its arguments by parameter; one that is not given is missing.
        where: the assignment.
        unread: it is given arguments of which it is not known which they are.
    """

    text: str
    arguments: dict[str, str]
    where: Place
    unread: bool = False


class _Scope(msgspec.Struct, frozen=True):
    """An ``__init__`` that runs: its function, the class, and the call that runs it with scope."""

    cls: ClassValue
    init: ast.FunctionDef
    call: ast.Call | None
    outer: _Scope | None


class _Made(msgspec.Struct, frozen=True):
    """A call that builds something, in the ``__init__`` where it stands."""

    call: ast.Call
    scope: _Scope
    where: Place
    cls: ClassValue | Foreign | None


class Construction:
    """Traces constructor arguments for the parts of one draft model."""

    def __init__(self, things: Things, bodies: Bodies, root: ClassValue) -> None:
        self._things = things
        self._bodies = bodies
        self._root = root
        self._known: dict[Term, tuple[Built, ...]] = {}

    def built(self, term: Term) -> tuple[Built, ...]:
        """The calls that may build a part of the model."""
        if term not in self._known:
            self._known[term] = tuple(self._found(term))
        return self._known[term]

    def _found(self, term: Term) -> Iterator[Built]:
        for made in self._calls(term):
            names = self._parameters(made.cls)
            unread = (
                len(made.call.args) > max(len(names), 1)
                or any(isinstance(argument, ast.Starred) for argument in made.call.args)
                or any(keyword.arg is None for keyword in made.call.keywords)
            )
            arguments = self._arguments(made.call, names, made.scope)
            text = self._text(made.call, made.scope)
            yield Built(text, arguments, made.where, unread)

    def _parameters(self, cls: ClassValue | Foreign | None) -> tuple[str, ...]:
        """The parameters of the constructor of a class; none where it is not known."""
        found = self._things.method(cls, "__init__") if isinstance(cls, ClassValue) else None
        return tuple(argument.arg for argument in parameters(found[1])[1:]) if found else ()

    def _calls(self, term: Term) -> list[_Made]:
        match term:
            case Part(owner=owner, name=name):
                values, is_item = self._values(owner, name), False
            case Item(owner=Part(owner=owner, name=name)):
                values, is_item = self._values(owner, name), True
            case _:
                return []
        found: list[_Made] = []
        for value in values:
            if value.alias and isinstance(term, Part) and value.alias != (term.name,):
                other: Term = term.owner
                for name in value.alias:
                    other = Part(other, name)
                found.extend(self._calls(other))
                continue
            scope = self._scope(owner, value)
            call = _item_call(value.call) if is_item and value.call is not None else value.call
            if scope is not None and call is not None:
                cls = value.item if is_item else value.cls
                found.append(_Made(call, scope, value.where, cls))
        return found

    def _values(self, owner: Term, name: str) -> tuple[Attribute, ...]:
        return self._things.values_of(owner, name)

    def _scope(self, owner: Term, value: Attribute) -> _Scope | None:
        """The ``__init__`` that assigns an attribute of ``owner``, and how it is called."""
        init = self._bodies.functions(value.init).get("__init__")
        if init is None:
            return None
        if isinstance(owner, Self):
            return _Scope(value.init, init, None, None)
        outer = self._calls(owner)
        cls = self._things.class_of(owner)
        if len(outer) != 1 or cls is not value.init:
            # Built in several ways, or by an inherited __init__: its parameters stay names.
            return _Scope(value.init, init, None, None)
        return _Scope(value.init, init, outer[0].call, outer[0].scope)

    def _arguments(self, call: ast.Call, names: tuple[str, ...], scope: _Scope) -> dict[str, str]:
        given = dict(zip(names, call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        return {name: self._text(node, scope) for name, node in given.items()}

    def _text(self, node: ast.expr, scope: _Scope) -> str:
        return ast.unparse(_Resolver(scope, [_MAX_STEPS]).of(node))


class _Resolver:
    """Replaces names and attributes of ``self`` by what an ``__init__`` assigned to them.

    The syntax that it is given stays as it is: what it gives is a copy.
    """

    def __init__(
        self, scope: _Scope, budget: list[int], busy: frozenset[str] = frozenset()
    ) -> None:
        self._scope = scope
        self._budget = budget
        # Names that are being replaced: ``config = replace(config)`` reads what was before.
        self._busy = busy

    def of(self, node: ast.AST) -> ast.AST:
        """An expression, or a part of one, with all in it replaced."""
        match node:
            case ast.Name():
                return self._name(node)
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                return self._own(node, f"self.{attr}")
            case _:
                return type(node)(**{name: self._in(part) for name, part in ast.iter_fields(node)})

    def _in(self, part: Any) -> Any:
        """What stands in a field of a node: a part, several, or a text or number."""
        if isinstance(part, list):
            return [self._in(one) for one in part]
        return self.of(part) if isinstance(part, ast.AST) else part

    def _name(self, node: ast.Name) -> ast.AST:
        """A local, else a parameter, else the name itself."""
        if self._budget[0] <= 0:
            return node
        assigned = _assigned(self._scope.init, node.id)
        if len(assigned) == 1 and node.id not in self._busy:
            return self._again(assigned[0], self._scope, self._busy | {node.id})
        return self._parameter(node) if len(assigned) < 2 else node

    def _parameter(self, node: ast.Name) -> ast.AST:
        scope = self._scope
        names = [argument.arg for argument in parameters(scope.init)][1:]
        if scope.call is None or scope.outer is None or node.id not in names:
            return node
        given = dict(zip(names, scope.call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in scope.call.keywords if keyword.arg}
        value = given.get(node.id)
        return node if value is None else self._again(value, scope.outer)

    def _own(self, node: ast.Attribute, name: str) -> ast.AST:
        """An attribute of ``self`` that ``__init__`` assigns once; else the attribute."""
        assigned = _assigned(self._scope.init, name)
        if len(assigned) != 1 or name in self._busy:
            return node
        return self._again(assigned[0], self._scope, self._busy | {name})

    def _again(self, node: ast.expr, scope: _Scope, busy: frozenset[str] = frozenset()) -> ast.AST:
        self._budget[0] -= 1
        if self._budget[0] <= 0:
            return node
        return _Resolver(scope, self._budget, busy).of(node)


def _assigned(init: ast.FunctionDef, target: str) -> list[ast.expr]:
    """What an ``__init__`` assigns to ``name`` or ``self.name``, every time that it does."""
    return _assignments(init).get(target, [])


@lru_cache(maxsize=512)
def _assignments(init: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    """What is assigned to each name; what is bound in another way counts as the name itself."""
    found: dict[str, list[ast.expr]] = {}
    plain: set[int] = set()
    for node in nodes_of(init):
        match node:
            case ast.Assign(targets=targets, value=value):
                pairs: list[tuple[ast.expr, ast.expr]] = [(target, value) for target in targets]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pairs = [(target, value)]
            case ast.AnnAssign(target=target):
                plain.add(id(target))
                continue
            case _:
                continue
        for to, what in pairs:
            name = _target_name(to)
            if name:
                plain.add(id(to))
                found.setdefault(name, []).append(what)
    for inner in nodes_of(init):
        is_store = isinstance(getattr(inner, "ctx", None), ast.Store | ast.Del)
        name = _target_name(inner) if is_store and id(inner) not in plain else ""
        if name and isinstance(inner, ast.expr):
            # Twice, so that it does not pass for the one value of the name.
            found.setdefault(name, []).extend((inner, inner))
    return found


def _target_name(node: ast.AST) -> str:
    """``x`` or ``self.x`` for such a target; empty for another."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id="self"), attr=attr):
            return f"self.{attr}"
        case _:
            return ""


def _item_call(call: ast.Call) -> ast.Call | None:
    """The call that builds the items of ``ModuleDict({…})`` or ``ModuleList([…])``."""
    for inner in call.args[:1]:
        match inner:
            case ast.DictComp(value=ast.Call() as made):
                return made
            case ast.ListComp(elt=ast.Call() as made) | ast.GeneratorExp(elt=ast.Call() as made):
                return made
            case ast.Dict(values=[ast.Call() as made]) | ast.List(elts=[ast.Call() as made]):
                return made
    return None
