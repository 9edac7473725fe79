"""Expressions over terms, and the branches of conditions."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from auditor.headpath.attributes import Bodies, dotted_name
from auditor.headpath.state import Frame, Guard, Outcome, State, Values
from auditor.headpath.terms import (
    Constant,
    Global,
    Item,
    Logits,
    Operation,
    Part,
    Term,
    TopTokens,
    Unknown,
)
from auditor.headpath.things import Things
from auditor.rulesdata import HeadRule
from auditor.values import ClassValue, Foreign, Function, Place

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


_UNARY: dict[type[ast.unaryop], str] = {
    ast.Not: "not", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~",
}  # fmt: skip


_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


_NEGATED = {"is not": "is", "!=": "==", "not in": "in"}


#: Before what is held while the rest of an expression is evaluated; no name starts so.
_HELD = "#"

_DISPLAYS: dict[type[ast.expr], str] = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}


class Expressions(Things, ABC):
    """Runs expressions over terms."""

    def __init__(self, root: ClassValue, bodies: Bodies, rule: HeadRule) -> None:
        super().__init__(root, bodies, rule)
        self._held = count()

    @abstractmethod
    def body(self, function: ast.FunctionDef, state: State, frame: Frame) -> Iterator[Outcome]:
        """Every end of a function body."""

    @abstractmethod
    def call(self, node: ast.Call, state: State, frame: Frame) -> Values:
        """The terms that a call may stand for."""

    @abstractmethod
    def enter(
        self,
        owner: ClassValue,
        function: ast.FunctionDef,
        self_term: Term | None,
        args: tuple[Term, ...],
        named: dict[str, Term],
        place: Place,
        state: State,
        frame: Frame,
    ) -> Values:
        """Run a method or function, and go on with each value that it returns."""

    def _branch(self, test: ast.expr, state: State, frame: Frame) -> Iterator[tuple[bool, State]]:
        """The ways in which a condition may come out, each with the state after it."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                for holds, after in self._branch(operand, state, frame):
                    yield not holds, after
            case ast.BoolOp(op=op, values=values):
                yield from self._bool_branch(isinstance(op, ast.Or), values, state, frame)
            case _:
                for term, after in self.expr(test, state, frame):
                    yield from self._decide(term, after, self._place(frame.owner, test))

    def _bool_branch(
        self, settles: bool, values: Sequence[ast.expr], state: State, frame: Frame
    ) -> Iterator[tuple[bool, State]]:
        first, rest = values[0], values[1:]
        for holds, after in self._branch(first, state, frame):
            if holds is settles or not rest:
                yield holds, after
            else:
                yield from self._bool_branch(settles, rest, after, frame)

    def _decide(self, term: Term, state: State, place: Place) -> Iterator[tuple[bool, State]]:
        positive, flipped = _normal_test(term)
        known = self._known(positive, state)
        for holds in (True, False) if known is None else (known,):
            guards = state.guards
            if known is None:
                guards = (*guards, Guard(positive, holds, place))
            yield holds is not flipped, replace(state, guards=guards)

    def _known(self, test: Term, state: State) -> bool | None:
        for guard in state.guards:
            if guard.test == test:
                return guard.holds
        match test:
            case Constant(value=value):
                return bool(value)
            case Operation(name="is", operands=(left, Constant(value=None))):
                return self.may_be_none(left)
            case Operation(name="==", operands=(Constant(value=a), Constant(value=b))):
                return a == b
            case Logits() | TopTokens():
                return True
            case _:
                return None

    def expr(self, node: ast.expr, state: State, frame: Frame) -> Values:
        """The terms that an expression may stand for, each with the state after it."""
        place = self._place(frame.owner, node)
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() | bytes() as value):
                return [(Constant(value, place=place), state)]
            case ast.Constant():
                return [(Global("...", place=place), state)]
            case ast.Name(id=name):
                return [(self._name(name, node, state, frame), state)]
            case ast.Attribute(value=owner, attr=attr):
                return [
                    pair
                    for term, after in self.expr(owner, state, frame)
                    for pair in self._part(term, attr, place, after, frame)
                ]
            case ast.Subscript(value=owner, slice=index):
                return [
                    (_item(o, i, place), after)
                    for (o, i), after in self._several((owner, index), state, frame)
                ]
            case ast.Call():
                return self.call(node, state, frame)
            case ast.BinOp(left=left, op=op, right=right):
                return self._operation(_BINARY[type(op)], (left, right), place, state, frame)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return [(Constant(-number, place=place), state)]
            case ast.UnaryOp(op=op, operand=operand):
                return self._operation(_UNARY[type(op)], (operand,), place, state, frame)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._operation(_COMPARE[type(op)], (left, right), place, state, frame)
            case ast.BoolOp(values=[_, *rest]) if any(map(_binds, rest)):
                return [(self._unknown("a part of it may not run", node, frame), state)]
            case ast.BoolOp(op=op, values=values):
                return self._operation(type(op).__name__.lower(), values, place, state, frame)
            case ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts):
                return self._operation(_DISPLAYS[type(node)], elts, place, state, frame)
            case ast.Slice(lower=lower, upper=upper, step=step):
                parts = [part or ast.Constant(None) for part in (lower, upper, step)]
                return self._operation("slice", parts, place, state, frame)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return [
                    pair
                    for holds, at in self._branch(test, state, frame)
                    for pair in self.expr(body if holds else orelse, at, frame)
                ]
            case ast.JoinedStr(values=values):
                parts = [v.value if isinstance(v, ast.FormattedValue) else v for v in values]
                return self._operation("f-string", parts, place, state, frame)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                return [(t, s.bound(name, t)) for t, s in self.expr(value, state, frame)]
            case ast.Starred(value=value):
                return self._operation("*", (value,), place, state, frame)
            case _:
                reason = f"a {type(node).__name__} expression"
                return [(self._unknown(reason, node, frame), state)]

    def _several(
        self, nodes: Sequence[ast.expr], state: State, frame: Frame
    ) -> list[tuple[tuple[Term, ...], State]]:
        """Expressions in order; one that changes something changes what was evaluated before."""
        keys = [f"{_HELD}{next(self._held)}" for _ in nodes]
        states = [state]
        for key, node in zip(keys, nodes, strict=True):
            states = [s.bound(key, term) for at in states for term, s in self.expr(node, at, frame)]
        return [(tuple(at.names[key] for key in keys), _without(at, keys)) for at in states]

    def _operation(
        self, name: str, nodes: Sequence[ast.expr], place: Place, state: State, frame: Frame
    ) -> Values:
        return [
            (_operation(name, terms, place), after)
            for terms, after in self._several(nodes, state, frame)
        ]

    def _name(self, name: str, node: ast.Name, state: State, frame: Frame) -> Term:
        place = self._place(frame.owner, node)
        if name == "self" and name not in state.names:
            return replace(frame.self_term, place=place)
        if name in state.names:
            return state.names[name]
        return Global(self._dotted(name, frame), place=place)

    def _dotted(self, name: str, frame: Frame) -> str:
        """The dotted name behind a name of a module; the name itself where it is not known."""
        value = self._bodies.named(frame.scope, name)
        match value:
            case ClassValue():
                return value.dotted
            case Foreign(name=dotted):
                return dotted
            case Function():
                return f"{value.module.name}.{value.facts.name}"
            case _:
                return str(getattr(value, "name", name))

    def _part(self, owner: Term, name: str, place: Place, state: State, frame: Frame) -> Values:
        """``owner.name``: what was stored there, an alias, a property, or the attribute."""
        if isinstance(owner, Global):
            return [(Global(f"{owner.name}.{name}", place=place), state)]
        part = Part(owner, name, place=place)
        if part in state.stores:
            return [(state.stores[part], state)]
        values = self.values_of(owner, name)
        cls = self.class_of(owner)
        fixed = isinstance(cls, ClassValue) and self._attributes.elsewhere(cls, name) is None
        if len(values) == 1 and values[0].alias and fixed and name != values[0].alias[-1]:
            term: Term = owner
            for attr in values[0].alias:
                term = Part(term, attr, place=place)
            return [(term, state)]
        if isinstance(cls, ClassValue) and not values:
            found = self.method(cls, name)
            if found is not None and _is_property(found[1]):
                return self.enter(found[0], found[1], owner, (), {}, place, state, frame)
        return [(part, state)]

    def _unknown(self, reason: str, node: ast.AST, frame: Frame) -> Unknown:
        place = self._place(frame.owner or frame.scope, node)
        return Unknown(reason, str(place), place=place)


def _without(state: State, keys: Sequence[str]) -> State:
    return replace(state, names={n: t for n, t in state.names.items() if n not in keys})


def _item(owner: Term, index: Term, place: Place) -> Term:
    display = isinstance(owner, Operation) and owner.name in ("tuple", "list")
    if (
        isinstance(owner, Operation)
        and display
        and isinstance(index, Constant)
        and isinstance(index.value, int)
        and -len(owner.operands) <= index.value < len(owner.operands)
    ):
        return owner.operands[index.value]
    return Item(owner, index, place=place)


def _operation(name: str, operands: tuple[Term, ...], place: Place) -> Term:
    return Operation(name, operands, place=place)


def _normal_test(term: Term) -> tuple[Term, bool]:
    """A condition without a negation in front, and whether one was taken off."""
    match term:
        case Operation(name="not", operands=(inner,)):
            positive, flipped = _normal_test(inner)
            return positive, not flipped
        case Operation(name=name, operands=operands) if name in _NEGATED:
            return Operation(_NEGATED[name], operands, place=term.place), True
        case _:
            return term, False


def _is_property(function: ast.FunctionDef) -> bool:
    return any(dotted_name(node) in ("property", "cached_property", "functools.cached_property")
               for node in function.decorator_list)  # fmt: skip


def _binds(node: ast.expr) -> bool:
    """Whether evaluating an expression binds a name."""
    return any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node))
