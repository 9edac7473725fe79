"""Expressions over terms, and the branches of conditions."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec.structs import replace

from auditor.classes import Missing, linearise
from auditor.headpath.attributes import Attribute, dotted_name
from auditor.headpath.bodies import Bodies
from auditor.headpath.effects import touched_names
from auditor.headpath.state import Frame, Guard, Outcome, State, Values
from auditor.headpath.stores import NAMESPACES, mangled
from auditor.headpath.terms import (
    Changed,
    Constant,
    Global,
    Item,
    Logits,
    Operation,
    Part,
    Stored,
    Term,
    TopTokens,
    Unknown,
    is_model_part,
    may_be_same,
    show,
)
from auditor.headpath.things import Things
from auditor.nodes import nodes_of
from auditor.ruleset.heads import HeadRule
from auditor.values import ClassValue, Foreign, Function, ModuleValue, Place

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


#: The methods by which a class has operators of its own.
_OPERATOR_METHODS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "@": "matmul", "|": "or", "&": "and", "^": "xor", "==": "eq", "<": "lt", "<=": "le", ">": "gt",
    ">=": "ge", "in": "contains", "not in": "contains", "[]": "getitem", "!=": "ne",
}  # fmt: skip


_NEGATED = {"is not": "is", "!=": "==", "not in": "in"}


#: On so many ways, the last ones first, is it looked up whether an expression gave a value before.
_WAYS = 16

_DISPLAYS: dict[type[ast.expr], str] = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}


class Expressions(Things, ABC):
    """Runs expressions over terms."""

    def __init__(self, root: ClassValue, bodies: Bodies, rule: HeadRule) -> None:
        super().__init__(root, bodies, rule)
        # What expressions gave on another way, by identity, with the nodes kept alive.
        self._given: dict[int, deque[tuple[ast.expr, Frame, State, Values]]] = {}

    @abstractmethod
    def body(self, function: ast.FunctionDef, state: State, frame: Frame) -> Iterator[Outcome]:
        """Every end of a function body."""

    @abstractmethod
    def call(self, node: ast.Call, state: State, frame: Frame) -> Values:
        """The terms that a call may stand for."""

    @abstractmethod
    def disturbed(self, term: Term, why: Unknown, state: State) -> State:
        """The state after a value was handed to something that may change it."""

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
                for term, after in self.given(test, state, frame):
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

    def given(self, node: ast.expr, state: State, frame: Frame) -> Values:
        """As :meth:`expr`; where nothing that it rests on differs, what it gave on another way.

        An expression that leaves the state alone has entered nothing and decided nothing, so it
        rests on no guard: each of those gives a state of its own.
        """
        known = self._given.setdefault(id(node), deque(maxlen=_WAYS))
        for _, where, at, values in known:
            if where is frame and state.rests_alike(at, names_in(node)):
                return [(term, state) for term, _ in values]
        values = self.expr(node, state, frame)
        if all(after is state for _, after in values):
            known.appendleft((node, frame, state, values))
        return values

    def expr(self, node: ast.expr, state: State, frame: Frame) -> Values:
        """The terms that an expression may stand for, each with the state after it."""
        if isinstance(node, ast.Name):
            return [(self._name(node.id, node, state, frame), state)]
        if isinstance(node, ast.Call):
            return self.call(node, state, frame)
        place = self._place(frame.owner, node)
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() | bytes() as value):
                return [(Constant(value, place=place), state)]
            case ast.Constant():
                return [(Global("...", place=place), state)]
            case ast.Attribute(value=owner, attr=attr):
                private = own_name(attr, frame)
                return [
                    pair
                    for term, after in self.expr(owner, state, frame)
                    for pair in self._part(term, private, place, after, frame)
                ]
            case ast.Subscript(value=owner, slice=index):
                return [
                    self._item(o, i, place, after)
                    for (o, i), after in self._several((owner, index), state, frame)
                ]
            case ast.BinOp(left=left, op=op, right=right):
                return self._operation(_BINARY[type(op)], (left, right), place, state, frame)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return [(Constant(-number, place=place), state)]
            case ast.UnaryOp(op=op, operand=operand):
                return self._operation(_UNARY[type(op)], (operand,), place, state, frame)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._operation(_COMPARE[type(op)], (left, right), place, state, frame)
            case ast.BoolOp(values=[_, *rest]) if any(map(_binds, rest)):
                return [self._skipped("a part of it may not run", node, state, frame)]
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
            case ast.JoinedStr(values=values) if not any(map(_has_spec, values)):
                parts = [v.value if isinstance(v, ast.FormattedValue) else v for v in values]
                return self._operation("f-string", parts, place, state, frame)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                return [(t, s.bound(name, t)) for t, s in self.expr(value, state, frame)]
            case ast.Starred(value=value):
                return self._operation("*", (value,), place, state, frame)
            case _:
                reason = f"a {type(node).__name__} expression"
                return [self._skipped(reason, node, state, frame)]

    def _skipped(
        self, reason: str, node: ast.expr, state: State, frame: Frame
    ) -> tuple[Term, State]:
        """An expression that is not followed: what it may bind or change is unknown after it."""
        why = self._unknown(reason, node, frame)
        for name in touched_names(node):
            if name in state.names:
                state = self.disturbed(state.names[name], why, state)
        bound = {n.id for n in nodes_of(node) if isinstance(n, ast.Name) and _is_store(n)}
        names = {**state.names, **dict.fromkeys(bound, why)}
        lost = why if hands_over_self(node) else state.lost
        return why, replace(state, names=names, lost=lost)

    def _several(
        self, nodes: Sequence[ast.expr], state: State, frame: Frame
    ) -> list[tuple[tuple[Term, ...], State]]:
        """Expressions in order; one that changes something changes what was evaluated before."""
        if not nodes:
            return [((), state)]
        if len(nodes) == 1:
            return [((term,), after) for term, after in self.expr(nodes[0], state, frame)]
        ways = [(state, True)]
        for node in nodes:
            ways = [
                (after.holding(term), unchanged and after is at)
                for at, unchanged in ways
                for term, after in self.expr(node, at, frame)
            ]
        count = len(nodes)
        return [
            (at.held[-count:], state if unchanged else at.released(count)) for at, unchanged in ways
        ]

    def _operation(
        self, name: str, nodes: Sequence[ast.expr], place: Place, state: State, frame: Frame
    ) -> Values:
        return [
            self._operated(name, terms, place, after)
            for terms, after in self._several(nodes, state, frame)
        ]

    def _operated(
        self, name: str, terms: tuple[Term, ...], place: Place, state: State
    ) -> tuple[Term, State]:
        """An operator over terms; what a class of the tree makes of one is not followed."""
        method = _OPERATOR_METHODS.get(name)
        if method is not None and any(self._defines(term, method) for term in terms):
            why = self._not_plain(f"what {method} does is not followed", place)
            for term in terms:
                state = self.disturbed(term, why, state)
            return why, state
        return _operation(name, terms, place), state

    def _defines(self, term: Term, method: str) -> bool:
        """Whether the class of a term has an operator of its own."""
        cls = self.class_of(term)
        return isinstance(cls, ClassValue) and any(
            not isinstance(self.found(cls, f"__{one}__"), Missing) for one in (method, f"r{method}")
        )

    def _name(self, name: str, node: ast.Name, state: State, frame: Frame) -> Term:
        known = state.names.get(name)
        if known is not None:
            return known
        place = self._place(frame.owner, node)
        if name == "self":
            return replace(frame.self_term, place=place)
        return Global(self._dotted(name, frame), place=place)

    def _dotted(self, name: str, frame: Frame) -> str:
        """The dotted name behind a name of a module; the name itself where it is a builtin.

        Of two modules, each has its own constants.
        """
        value = self._bodies.named(frame.scope, name)
        match value:
            case ClassValue():
                return value.dotted
            case Foreign(name=dotted) | ModuleValue(name=dotted):
                return dotted
            case Function():
                return f"{value.module.name}.{value.facts.name}"
            case _:
                module = frame.scope.module
                return f"{module.name}.{name}" if name in module.names else name

    def _part(self, owner: Term, name: str, place: Place, state: State, frame: Frame) -> Values:
        """``owner.name``: what was stored there, an alias, a property, or the attribute."""
        if isinstance(owner, Global):
            return [(Global(f"{owner.name}.{name}", place=place), state)]
        part = Part(owner, name, place=place)
        # Looking a term up takes all of its parts: mostly nothing was stored.
        if state.stores and part in state.stores:
            return [(state.stores[part], state)]
        known = self._overwritten(part, state)
        if known is not None:
            return [(known, state)]
        if name in NAMESPACES and is_model_part(owner):
            why = Unknown(f"what is done with {name} is not followed", str(place), place=place)
            return [(why, replace(state, lost=why))]
        cls = self.class_of(owner)
        if isinstance(cls, ClassValue):
            return self._attribute(part, cls, place, state, frame)
        return [(part, state)]

    def _overwritten(self, part: Term, state: State) -> Term | None:
        """Why a part of the model is not what it was, where something else may be there now."""
        if not is_model_part(part):
            return None
        if state.lost is not None:
            return state.lost
        for key, value in state.stores.items():
            if key == part or not is_model_part(key):
                continue
            # What is put in an attribute is there alone; a change in place is seen by any name.
            in_place = isinstance(value, Changed | Stored)
            if may_be_same(key, part, in_place):
                where = key.place or Place("", 0)
                reason = f"it may be {show(key)}, which was set before"
                known = value if isinstance(value, Unknown) else None
                return known or Unknown(reason, str(where), place=where)
        return None

    def _item(self, owner: Term, index: Term, place: Place, state: State) -> tuple[Term, State]:
        term = _item(owner, index, place)
        if self._defines(owner, "getitem"):
            return self._operated("[]", (owner, index), place, state)
        if isinstance(term, Item) and state.stores and term in state.stores:
            return state.stores[term], state
        if isinstance(term, Item):
            return self._overwritten(term, state) or term, state
        return term, state

    def _attribute(
        self, part: Part, cls: ClassValue, place: Place, state: State, frame: Frame
    ) -> Values:
        """An attribute of an object whose class is known."""
        owner, name = part.owner, part.name
        by_class = self.found(cls, name)
        if isinstance(by_class, Missing) and self.is_hooked(cls):
            return [(self._not_plain(f"{cls.dotted} computes its attributes", place), state)]
        values = self.values_of(owner, name)
        method = self.method(cls, name) if not isinstance(by_class, Missing) else None
        if method is not None and _is_property(method[1]) and self._is_transparent(*method[::-1]):
            return self.enter(method[0], method[1], owner, (), {}, place, state, frame)
        is_set = bool(values) or self.changed(owner, name) is not None
        if not isinstance(by_class, Missing) and (is_set or _is_computed(method)):
            reason = f"{cls.dotted} has {name} as well as its instances"
            return [(self._not_plain(reason, place), state)]
        if len(values) == 1 and values[0].alias and self._is_settled(owner, values[0], name):
            term: Term = owner
            for attr in values[0].alias:
                term = Part(term, attr, place=place)
            return [(term, state)]
        lacking = isinstance(by_class, Missing) and not is_set
        if lacking and self.elsewhere(owner, name) is None:
            return [(replace(part, unset=True), state)]
        if not any(map(_may_be_alias, values)):
            return [(part, state)]
        loose = replace(part, loose=True)
        return [(self._overwritten(loose, state) or loose, state)]

    @staticmethod
    def _not_plain(reason: str, place: Place) -> Unknown:
        return Unknown(reason, str(place), place=place)

    def _is_settled(self, owner: Term, alias: Attribute, name: str) -> bool:
        """Whether an alias still names what its target does: nothing sets either one later."""
        if self.elsewhere(owner, name) is not None:
            return False
        for position, attr in enumerate(alias.alias):
            targets = self.values_of(owner, attr)
            if len(targets) != 1 or self.elsewhere(owner, attr) is not None:
                return False
            (target,) = targets
            if position == 0:
                later = target.where.line >= alias.where.line
                bases = linearise(alias.init)
                if target.init not in bases or (target.init is alias.init and later):
                    return False
            owner = Part(owner, attr)
        return True

    def _unknown(self, reason: str, node: ast.AST, frame: Frame) -> Unknown:
        place = self._place(frame.owner or frame.scope, node)
        return Unknown(reason, str(place), place=place)


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


def _is_computed(method: tuple[ClassValue, ast.FunctionDef] | None) -> bool:
    """Whether a class has something else than a plain method: a setter, a descriptor."""
    return method is not None and bool(method[1].decorator_list)


def _may_be_alias(value: Attribute) -> bool:
    """Whether a value may be an object that another attribute holds as well."""
    if value.is_none or value.cls is not None or value.item is not None:
        return False
    if value.call is None:
        return True
    return any(isinstance(node, ast.Name) and node.id == "self" for node in nodes_of(value.call))


@lru_cache(maxsize=4096)
def names_in(node: ast.AST) -> tuple[str, ...]:
    """The names in a piece of syntax."""
    found = (inner.id for inner in nodes_of(node) if isinstance(inner, ast.Name))
    return tuple(dict.fromkeys(found))


def own_name(name: str, frame: Frame) -> str:
    """A private name as the class means it whose body it stands in."""
    cls = frame.owner.qualname.rpartition(".")[2] if frame.owner is not None else None
    return mangled(name, cls)


def hands_over_self(node: ast.AST) -> bool:
    """Whether the model is named where something is called or computed: it may change there."""
    return any(isinstance(inner, ast.Name) and inner.id == "self" for inner in nodes_of(node))


def _has_spec(part: ast.expr) -> bool:
    """Whether a part of an f-string is formatted by something that is computed."""
    spec = part.format_spec if isinstance(part, ast.FormattedValue) else None
    return any(isinstance(node, ast.FormattedValue) for node in nodes_of(spec)) if spec else False


def _is_store(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store | ast.Del)


def _is_property(function: ast.FunctionDef) -> bool:
    return any(dotted_name(node) in ("property", "cached_property", "functools.cached_property")
               for node in function.decorator_list)  # fmt: skip


def _binds(node: ast.expr) -> bool:
    """Whether evaluating an expression binds a name."""
    return any(isinstance(inner, ast.NamedExpr) for inner in nodes_of(node))
