"""A method body, run over terms.

Locals are names for terms; attributes are terms; a method of ``self``, or of a submodule whose
class is known, is entered; anything else that is called stays a call. A branch forks the run, and
each end of it carries the conditions on the way. What cannot be followed becomes an
:class:`~auditor.headpath.terms.Unknown` at its place, and never a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from auditor.headpath.arguments import parameters
from auditor.headpath.attributes import dotted_name
from auditor.headpath.calls import Calls, is_generator
from auditor.headpath.effects import changed_to, stored_names, touched_names
from auditor.headpath.expressions import hands_over_self, own_name
from auditor.headpath.state import Check, Ends, Frame, Outcome, State, TooManyPaths
from auditor.headpath.terms import (
    Apply,
    Changed,
    Constant,
    Global,
    Item,
    Logits,
    Module,
    Operation,
    Param,
    Self,
    Stored,
    Term,
    TopTokens,
    Unknown,
)
from auditor.nodes import nodes_of
from auditor.values import ClassValue, Place

_MAX_PATHS = 128

#: More parts than this, and comparing terms costs more than an answer is worth.
_MAX_SIZE = 2000

_WHAT: dict[type[ast.stmt], str] = {
    ast.For: "a for loop", ast.While: "a while loop", ast.Try: "a try statement",
    ast.With: "a with statement", ast.Match: "a match statement", ast.Delete: "a del statement",
    ast.FunctionDef: "a nested function", ast.ClassDef: "a nested class",
}  # fmt: skip


class Symbolic(Calls):
    """Runs methods of one draft class."""

    def run(self, name: str, first: str | None = None) -> tuple[Outcome, ...]:
        """Every end of ``root.name(…)``, with its parameters as terms.

        ``first`` is what to call the first parameter, which the engine passes by position.
        Where the method is not one that can be followed, its one end is an unknown value.
        """
        found = self.method(self._root, name)
        if found is None:
            where = Place(self._root.module.path, self._root.facts.line)
            return self._not_run(f"{name} is not a plain method that can be followed", where)
        owner, function = found
        where = self._place(owner, function)
        if not self._is_transparent(function, owner):
            return self._not_run(f"{name} has a decorator that is not known", where)
        elsewhere = self._attributes.elsewhere(self._root, name)
        if elsewhere is not None or self.values_of(Self(), name):
            return self._not_run(f"{name} may be set on the instance as well", elsewhere or where)
        if is_generator(function):
            return self._not_run(f"{name} is a generator", where)
        try:
            return self._run(owner, function, first)
        except TooManyPaths:
            where = self._place(owner, function)
            return self._not_run(f"{name} forks into more than {_MAX_PATHS} ways", where)

    def run_method(
        self, owner: ClassValue, function: ast.FunctionDef, first: str | None = None
    ) -> tuple[Outcome, ...]:
        """Every end of a method of another class, as if ``root`` inherited it from ``owner``."""
        try:
            return self._run(owner, function, first)
        except TooManyPaths:
            where = self._place(owner, function)
            return self._not_run(f"it forks into more than {_MAX_PATHS} ways", where)

    @staticmethod
    def _not_run(reason: str, where: Place) -> tuple[Outcome, ...]:
        return (Outcome(Unknown(reason, str(where), place=where), State({})),)

    def first_parameter(self, name: str) -> str | None:
        """The name of a method's first parameter after ``self``."""
        found = self.method(self._root, name)
        named = parameters(found[1])[1:] if found is not None else []
        return named[0].arg if named else None

    def _run(
        self, owner: ClassValue, function: ast.FunctionDef, first: str | None
    ) -> tuple[Outcome, ...]:
        names: dict[str, Term] = {
            argument.arg: Param(argument.arg, place=self._place(owner, argument))
            for argument in parameters(function)[1:]
        }
        positional = [*function.args.posonlyargs, *function.args.args][1:]
        if first is not None and positional:
            names[positional[0].arg] = Param(first, place=self._place(owner, positional[0]))
        for rest in (function.args.vararg, function.args.kwarg):
            if rest is not None:
                names[rest.arg] = Param(f"*{rest.arg}", place=self._place(owner, rest))
        frame = Frame(owner, owner, Self(), 0)
        return tuple(self.body(function, State(names), frame))

    def body(self, function: ast.FunctionDef, state: State, frame: Frame) -> Iterator[Outcome]:
        """Every end of a function body."""
        for kind, value, end in self._block(function.body, state, frame):
            if kind == "return":
                yield Outcome(value, end)
            elif kind == "raise":
                yield Outcome(None, end)
            else:
                yield Outcome(Constant(None, place=self._place(frame.owner, function)), end)

    def _block(self, body: Sequence[ast.stmt], state: State, frame: Frame) -> Ends:
        ends: Ends = [("next", None, state)]
        for node in body:
            going = [end for end in ends if end[0] == "next"]
            ends = [end for end in ends if end[0] != "next"]
            for _, _, at in going:
                ends.extend(map(_raising, self._statement(node, at, frame)))
            if len(ends) > _MAX_PATHS:
                raise TooManyPaths
        return ends

    def _statement(self, node: ast.stmt, state: State, frame: Frame) -> Ends:
        match node:
            case ast.Expr(value=value):
                return self._expression_statement(value, state, frame)
            case ast.Assign(targets=targets, value=value):
                return self._assign(targets, value, state, frame)
            case ast.AnnAssign(target=target, value=value):
                if value is None:
                    return [("next", None, state)]
                return self._assign([target], value, state, frame)
            case ast.AugAssign(target=target, op=op, value=value):
                return self._augment(
                    node, target, ast.BinOp(_as_load(target), op, value), state, frame
                )
            case ast.Return(value=None):
                return [("return", Constant(None, place=self._place(frame.owner, node)), state)]
            case ast.Return(value=ast.expr() as value):
                return [("return", t, s) for t, s in self.given(value, state, frame)]
            case ast.If(test=test, body=body, orelse=orelse):
                ends: Ends = []
                for holds, at in self._branch(test, state, frame):
                    ends.extend(self._block(body if holds else orelse, at, frame))
                return ends
            case ast.Assert(test=test):
                return self._assert(node, test, state, frame)
            case ast.Raise(exc=exc):
                text = f"raise {ast.unparse(exc)}" if exc is not None else "raise"
                check = Check(text, self._place(frame.owner, node))
                return [("raise", None, replace(state, raised=check))]
            case ast.With(items=items, body=body):
                if not all(self._is_silent(item, frame) for item in items):
                    return self._not_followed(node, state, frame)
                return self._block(body, state, frame)
            case ast.Import(names=names):
                bound = {(n.asname or n.name.partition(".")[0]): n for n in names}
                terms = {name: Global(n.name if n.asname else name) for name, n in bound.items()}
                return [("next", None, replace(state, names={**state.names, **terms}))]
            case ast.ImportFrom(names=names):
                origin = _absolute(node, frame.scope)
                terms = {(n.asname or n.name): Global(f"{origin}.{n.name}") for n in names}
                return [("next", None, replace(state, names={**state.names, **terms}))]
            case ast.Pass():
                return [("next", None, state)]
            case ast.Delete(targets=targets):
                return self._delete(targets, state, frame)
            case _:
                return self._not_followed(node, state, frame)

    def _assert(self, node: ast.Assert, test: ast.expr, state: State, frame: Frame) -> Ends:
        """Goes on where the condition holds, and raises where it does not."""
        check = Check(f"assert {ast.unparse(test)}", self._place(frame.owner, node))
        ends: Ends = []
        for holds, at in self._branch(test, state, frame):
            new = tuple(replace(guard, asserted=True) for guard in at.guards[len(state.guards) :])
            after = replace(at, guards=(*state.guards, *new))
            if holds:
                ends.append(("next", None, replace(after, checks=(*at.checks, check))))
            else:
                ends.append(("raise", None, replace(after, raised=check)))
        return ends

    def _is_silent(self, item: ast.withitem, frame: Frame) -> bool:
        """Whether a context manager is known to compute nothing."""
        call = item.context_expr
        if item.optional_vars is not None or not isinstance(call, ast.Call):
            return False
        head, _, rest = dotted_name(call.func).partition(".")
        dotted = f"{self._dotted(head, frame)}.{rest}" if rest else self._dotted(head, frame)
        inner = [node for one in (*call.args, *call.keywords) for node in nodes_of(one)]
        return dotted in self._rule.silent_contexts and not any(
            isinstance(node, ast.Call) for node in inner
        )

    def _delete(self, targets: Sequence[ast.expr], state: State, frame: Frame) -> Ends:
        """``del``: what was there is not known any more."""
        ends: list[State] = [state]
        for target in targets:
            why = self._unknown("it was deleted", target, frame)
            ends = [s for at in ends for s in self._store(target, why, at, frame)]
        return [("next", None, at) for at in ends]

    def _not_followed(self, node: ast.stmt, state: State, frame: Frame) -> Ends:
        """A statement that is not followed: all that it may bind or change is unknown after it."""
        why = self._unknown(f"{_WHAT.get(type(node), 'a statement')} is not followed", node, frame)
        before = state
        touched = touched_names(node)
        for name in sorted(touched & state.names.keys()):
            state = self.disturbed(state.names[name], why, state)
        bound = touched & (state.names.keys() | stored_names(node))
        ends: Ends = [
            ("next", None, replace(state, names={**state.names, **dict.fromkeys(bound, why)}))
        ]
        for inner in nodes_of(node):
            if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store | ast.Del):
                ends = [
                    ("next", None, s)
                    for _, _, at in ends
                    for s in self._store(inner, why, at, frame)
                ]
        returns = any(
            isinstance(inner, ast.Return | ast.Yield | ast.YieldFrom) for inner in nodes_of(node)
        )
        if returns or self.may_change_model(node):
            ends.append(("return", why, before))
        return ends

    def may_change_model(self, node: ast.stmt) -> bool:
        """Whether a statement that is not followed may change the model."""
        return hands_over_self(node) and calls_something(node)

    def _expression_statement(self, value: ast.expr, state: State, frame: Frame) -> Ends:
        """A call for its effect, which is in the state after it."""
        return [("next", None, after) for _, after in self.given(value, state, frame)]

    def _augment(
        self, node: ast.AugAssign, target: ast.expr, load: ast.BinOp, state: State, frame: Frame
    ) -> Ends:
        """``x += y``: a tensor is changed in place, under every name that it has."""
        ends: Ends = []
        for term, at in self.expr(
            ast.fix_missing_locations(ast.copy_location(load, node)), state, frame
        ):
            before = term.operands[0] if isinstance(term, Operation) else term
            place = self._place(frame.owner, node)
            if isinstance(before, Logits | TopTokens | Module | Apply | Changed | Stored):
                at = changed_to(at, before, term, place, self._rule)
            elif not isinstance(before, Constant):
                # A tensor changes in place, a number does not; which it is, is not known.
                why = Unknown("may have been changed in place", str(place), place=place)
                at = changed_to(at, before, why, place, self._rule)
            ends.extend(("next", None, s) for s in self._store(target, term, at, frame))
        return ends

    def _assign(
        self, targets: Sequence[ast.expr], value: ast.expr, state: State, frame: Frame
    ) -> Ends:
        ends: Ends = []
        for term, at in self.given(value, state, frame):
            if self._sizes.of(term) > _MAX_SIZE:
                term = self._unknown("a value too large to be written out", value, frame)
            after = [at]
            for target in targets:
                after = [s for one in after for s in self._store(target, term, one, frame)]
            ends.extend(("next", None, s) for s in after)
        return ends

    def _store(self, target: ast.expr, term: Term, state: State, frame: Frame) -> list[State]:
        place = self._place(frame.owner, target)
        match target:
            case ast.Name(id=name):
                return [state.bound(name, term)]
            case ast.Attribute(value=owner, attr=attr):
                return [
                    self.stored(o, own_name(attr, frame), term, place, s)
                    for o, s in self.expr(owner, state, frame)
                ]
            case ast.Subscript(value=owner, slice=index):
                return [
                    changed_to(s, o, Stored(o, i, term, place=place), place, self._rule)
                    for (o, i), s in self._several((owner, index), state, frame)
                ]
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                return self._unpack(elts, term, state, frame)
            case _:
                return [state]

    def _unpack(
        self, elts: Sequence[ast.expr], term: Term, state: State, frame: Frame
    ) -> list[State]:
        states = [state]
        for index, element in enumerate(elts):
            place = self._place(frame.owner, element)
            part: Term = Item(term, Constant(index), place=place)
            if isinstance(element, ast.Starred):
                part = self._unknown("an unpacking with a star", element, frame)
                element = element.value
            known = isinstance(term, Operation) and term.name in ("tuple", "list")
            plain = not any(isinstance(one, ast.Starred) for one in elts)
            if isinstance(term, Operation) and known and plain and index < len(term.operands):
                part = term.operands[index]
            states = [s for one in states for s in self._store(element, part, one, frame)]
        return states


def calls_something(node: ast.AST) -> bool:
    """Whether something is called in ``node``."""
    return any(isinstance(inner, ast.Call) for inner in nodes_of(node))


def _raising(end: tuple[str, Term | None, State]) -> tuple[str, Term | None, State]:
    """The end of a statement in which something was called that raises."""
    return end if end[2].raised is None else ("raise", None, end[2])


def _absolute(node: ast.ImportFrom, scope: ClassValue) -> str:
    """The module that ``from X import`` inside a function names (PEP 328)."""
    if not node.level:
        return node.module or ""
    parts = scope.module.package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def _as_load(target: ast.expr) -> ast.expr:
    load = ast.parse(ast.unparse(target), mode="eval").body
    ast.increment_lineno(load, target.lineno - 1)
    return load
