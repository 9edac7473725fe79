"""A method body, run over terms.

Locals are names for terms; attributes are terms; a method of ``self``, or of a submodule whose
class is known, is entered; anything else that is called stays a call. A branch forks the run, and
each end of it carries the conditions on the way. What cannot be followed becomes an
:class:`~auditor.headpath.terms.Unknown` at its place, and never a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from auditor.headpath.arguments import parameters
from auditor.headpath.calls import Calls
from auditor.headpath.state import Check, Ends, Frame, Outcome, State, TooManyPaths
from auditor.headpath.terms import (
    Apply,
    Changed,
    Constant,
    Global,
    Item,
    Operation,
    Param,
    Part,
    Self,
    Stored,
    Term,
    Unknown,
)
from auditor.values import ClassValue, Place

_MAX_PATHS = 128


class Symbolic(Calls):
    """Runs methods of one draft class."""

    def run(self, name: str) -> tuple[Outcome, ...]:
        """Every end of ``root.name(…)``, with its parameters as terms.

        Where the method is not one that can be followed, its one end is an unknown value.
        """
        found = self._method(self._root, name)
        if found is None:
            where = Place(self._root.module.path, self._root.facts.line)
            return self._not_run(f"{name} is not a plain method in a class body", where)
        owner, function = found
        try:
            return self._run(owner, function)
        except TooManyPaths:
            where = self._place(owner, function)
            return self._not_run(f"{name} forks into more than {_MAX_PATHS} ways", where)

    @staticmethod
    def _not_run(reason: str, where: Place) -> tuple[Outcome, ...]:
        return (Outcome(Unknown(reason, str(where), place=where), State({})),)

    def _run(self, owner: ClassValue, function: ast.FunctionDef) -> tuple[Outcome, ...]:
        names: dict[str, Term] = {
            argument.arg: Param(argument.arg, place=self._place(owner, argument))
            for argument in parameters(function)[1:]
        }
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
                ends.extend(self._statement(node, at, frame))
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
                load = ast.copy_location(ast.BinOp(_as_load(target), op, value), node)
                return self._assign([target], load, state, frame)
            case ast.Return(value=None):
                return [("return", Constant(None, place=self._place(frame.owner, node)), state)]
            case ast.Return(value=ast.expr() as value):
                return [("return", t, s) for t, s in self.expr(value, state, frame)]
            case ast.If(test=test, body=body, orelse=orelse):
                ends: Ends = []
                for holds, at in self._branch(test, state, frame):
                    ends.extend(self._block(body if holds else orelse, at, frame))
                return ends
            case ast.Assert(test=test):
                check = Check(f"assert {ast.unparse(test)}", self._place(frame.owner, node))
                return [("next", None, replace(state, checks=(*state.checks, check)))]
            case ast.Raise(exc=exc):
                text = f"raise {ast.unparse(exc)}" if exc is not None else "raise"
                check = Check(text, self._place(frame.owner, node))
                return [("raise", None, replace(state, checks=(*state.checks, check)))]
            case ast.With(body=body):
                return self._block(body, state, frame)
            case ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Global():
                return [("next", None, state)]
            case _:
                return self._not_followed(node, state, frame)

    def _not_followed(self, node: ast.stmt, state: State, frame: Frame) -> Ends:
        """A statement that is not followed: every name that it may bind is unknown after it."""
        names = dict(state.names)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                names[inner.id] = self._unknown(
                    f"a {type(node).__name__.lower()} loop or block", inner, frame
                )
        ends: Ends = [("next", None, replace(state, names=names))]
        if any(isinstance(inner, ast.Return) for inner in ast.walk(node)):
            value = self._unknown(f"returned from a {type(node).__name__.lower()}", node, frame)
            ends.append(("return", value, state))
        return ends

    def _expression_statement(self, value: ast.expr, state: State, frame: Frame) -> Ends:
        """A call for its effect: ``x.fill_(…)`` changes ``x`` in place."""
        ends: Ends = []
        for term, after in self.expr(value, state, frame):
            match value, term:
                case (
                    ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)),
                    Apply(arguments=arguments),
                ) if attr.endswith("_") and name in after.names:
                    place = self._place(frame.owner, value)
                    changed = Changed(after.names[name], attr, arguments, place=place)
                    ends.append(("next", None, after.bound(name, changed)))
                case _:
                    ends.append(("next", None, after))
        return ends

    def _assign(
        self, targets: Sequence[ast.expr], value: ast.expr, state: State, frame: Frame
    ) -> Ends:
        ends: Ends = []
        for term, at in self.expr(value, state, frame):
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
                    replace(s, stores={**s.stores, Part(o, attr, place=place): term})
                    for o, s in self.expr(owner, state, frame)
                ]
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                return [
                    s.bound(name, Stored(s.names.get(name, Global(name)), i, term, place=place))
                    for i, s in self.expr(index, state, frame)
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
            known = isinstance(term, Operation) and term.name in ("tuple", "list")
            if isinstance(term, Operation) and known and index < len(term.operands):
                part = term.operands[index]
            states = [s for one in states for s in self._store(element, part, one, frame)]
        return states


def _as_load(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body
