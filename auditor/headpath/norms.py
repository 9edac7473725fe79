"""The norm convention: what ``forward`` returns, against what the method for logits applies to it.

A draft's ``forward`` returns the hidden states for the logits first, and those for the next draft
step second, or one for both. Each may come normed or raw. Where the first is normed already and
the method for logits norms again, or neither does, that is worth a remark.

Only the modules on the way to the head are entered: what a decoder layer does inside is not asked.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from auditor.classes import linearise
from auditor.headpath.attributes import Attribute
from auditor.headpath.bodies import Bodies
from auditor.headpath.brief import name_of
from auditor.headpath.expressions import hands_over_self
from auditor.headpath.path import HeadPath, step_parameters
from auditor.headpath.shapes import norm_of
from auditor.headpath.state import Frame, State, Values
from auditor.headpath.symbolic import Symbolic
from auditor.headpath.terms import (
    Apply,
    Constant,
    Global,
    Item,
    Module,
    Operation,
    Part,
    Self,
    Term,
    Unknown,
    walk,
)
from auditor.nodes import nodes_of
from auditor.ruleset.heads import HeadRule
from auditor.values import ClassValue, Place

Kind = Literal["normed", "raw", "unknown"]


class Position(msgspec.Struct, frozen=True):
    """One thing that ``forward`` returns: normed (with which norm), raw, or not known."""

    kind: Kind
    norm: Term | None
    where: Place | None

    def __str__(self) -> str:
        named = f" by {name_of(self.norm)}" if self.norm is not None else ""
        return f"{self.kind}{named}"


class Convention(msgspec.Struct, frozen=True):
    """What ``forward`` returns in each position, and what is done with the first for logits.

    ``verdict`` is ``once`` where the hidden states are normed once on the way to the head,
    ``double``, ``never``, or ``unknown``. ``unused`` is a norm that the model builds and no method
    applies, where they are never normed: a draft that builds none is trained without.
    """

    positions: tuple[Position, ...]
    applied: Term | None
    verdict: Literal["once", "double", "never", "unknown"]
    unused: Attribute | None = None


class Forward(Symbolic):
    """Runs ``forward``, and enters only the modules that a head path goes through."""

    def __init__(self, root: ClassValue, bodies: Bodies, rule: HeadRule, logits: HeadPath) -> None:
        super().__init__(root, bodies, rule)
        parts = [
            part
            for branch in logits.branches
            for part in walk(branch.result)
            if isinstance(part, Part | Item)
        ]
        self._on_the_way = {_without_index(part) for part in parts}

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
        """Enter what is on the way; anything else stands for itself."""
        if self_term is not None and self._is_on_the_way(self_term):
            return super().enter(owner, function, self_term, args, named, place, state, frame)
        return [(Apply(Part(self_term or Self(), function.name), args, place=place), state)]

    def disturbed(self, term: Term, why: Unknown, state: State) -> State:
        """What is changed in place: it stays normed or raw, as far as that is asked here."""
        return state

    def _is_on_the_way(self, term: Term) -> bool:
        match term:
            case Self() | Part(owner=Self()):
                return True
            case Item(owner=Part(owner=Part(owner=Self())), index=index) if step_parameters(index):
                return True
            case _:
                return _without_index(term) in self._on_the_way

    def may_change_model(self, node: ast.stmt) -> bool:
        """Only what is handed the model may: a layer that is called in a loop changes no norm."""
        return any(hands_over_self(call) for call in nodes_of(node) if isinstance(call, ast.Call))

    def unused_norm(self) -> Attribute | None:
        """A norm that the model, or what is on the way to its head, builds and never names again.

        The first one, from the model inwards.
        """
        norms: dict[str, Attribute] = {}
        named: set[str] = set()
        for cls in self._classes_on_the_way():
            for member in linearise(cls):
                if isinstance(member, ClassValue):
                    named |= names_read(self._bodies.functions(member))
            for name, value in self._attributes.all_of(cls):
                if self.is_a(value.cls, self._rule.norms):
                    norms.setdefault(name, value)
        return next((value for name, value in norms.items() if name not in named), None)

    def _classes_on_the_way(self) -> list[ClassValue]:
        """The class of the model and those of its submodules, so far as ``__init__`` says."""
        found, pending = [self._root], [self._root]
        while pending:
            for _, value in self._attributes.all_of(pending.pop(0)):
                for cls in (value.cls, value.item):
                    plain = isinstance(cls, ClassValue) and not self.is_a(cls, self._rule.leaves)
                    if plain and isinstance(cls, ClassValue) and cls not in found:
                        found.append(cls)
                        pending.append(cls)
        return found


def names_read(functions: Mapping[str, ast.FunctionDef]) -> set[str]:
    """Attributes that functions read of anything, and what they might ask for by a text."""
    found: set[str] = set()
    for function in functions.values():
        for node in nodes_of(function):
            match node:
                case ast.Attribute(attr=attr, ctx=ast.Load()):
                    found.add(attr)
                case ast.Constant(value=str() as text):
                    found.add(text)
    return found


def _without_index(term: Term) -> str:
    """A part of the model by its names alone."""
    match term:
        case Part(owner=owner, name=name):
            return f"{_without_index(owner)}.{name}"
        case Item(owner=owner):
            return f"{_without_index(owner)}[]"
        case Self():
            return "self"
        case _:
            return "?"


def convention(forward: Forward, logits: HeadPath, rule: HeadRule) -> Convention | None:
    """The norm convention of a class; None where it has no ``forward`` or no head is reached."""
    heads = [branch.head_term for branch in logits.branches]
    if not heads or any(head is None for head in heads):
        return None  # without running what costs most
    outcomes = [o.value for o in forward.run("forward") if o.value is not None]
    returned = [value for value in outcomes if not _is_intermediate(value, rule)]
    if not returned:
        return None
    positions = _positions(returned, rule)
    applied = {norm_of(head.hidden) for head in heads if head is not None}
    norms = [found[0] if found is not None else None for found in applied]
    if len(norms) != 1 or any(branch.unknown for branch in logits.branches):
        return Convention(positions, None, "unknown")
    (norm,) = norms
    plain = all(head is None or not _is_transformed(head.hidden) for head in heads)
    match positions[0].kind:
        case "normed":
            return Convention(positions, norm, "double" if norm is not None else "once")
        case "raw" if norm is None:
            unused = forward.unused_norm() if plain else None
            return Convention(positions, norm, "never" if plain else "unknown", unused)
        case "raw":
            return Convention(positions, norm, "once")
        case _:
            return Convention(positions, norm, "unknown")


def _is_transformed(hidden: Term) -> bool:
    return isinstance(hidden, Apply | Module | Operation)


def _is_intermediate(value: Term, rule: HeadRule) -> bool:
    """Whether it is what a pipeline rank before the last one hands on."""
    match value:
        case Apply(function=Global(name=name)):
            return any(fnmatchcase(name, glob) for glob in rule.handed_on)
        case _:
            return False


def _positions(returned: list[Term], rule: HeadRule) -> tuple[Position, ...]:
    """What stands in each position, over all ways; unknown where they differ."""
    rows = [
        value.operands if isinstance(value, Operation) and value.name == "tuple" else (value,)
        for value in returned
    ]
    width = min(map(len, rows))
    found: list[Position] = []
    for index in range(width):
        kinds = {_position(row[index], rule) for row in rows}
        known = {(position.kind, position.norm) for position in kinds}
        first = next(iter(kinds))
        found.append(first if len(known) == 1 else Position("unknown", None, first.where))
    return tuple(found)


def _position(term: Term, rule: HeadRule) -> Position:
    where = term.place
    while True:
        norm = norm_of(term)
        if norm is not None:
            return Position("normed", norm[0], term.place or where)
        match term:
            case Item(owner=owner, index=Operation(name="slice" | "tuple")):
                term = owner
            case Item(owner=owner, index=Constant()) if norm_of(owner) is not None:
                # The second thing that a norm with a residual gives back is the sum, not normed.
                return Position("raw", None, where)
            case Apply(function=Part(owner=owner, name=name)) if name in rule.views:
                term = owner
            case Apply(function=Global(name=name), arguments=(inner, *_)) if any(
                fnmatchcase(name.rpartition(".")[2], glob) for glob in rule.gathers
            ):
                term = inner
            case Operation(name="+"):
                return Position("raw", None, where)
            case Unknown():
                return Position("unknown", None, where)
            case _:
                return Position("unknown", None, where)
