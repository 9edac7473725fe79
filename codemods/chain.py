"""The methods on the way from the draft model to the logits processor, outermost first."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

import msgspec

from auditor.classes import Found, lookup
from auditor.headpath.arguments import parameters
from auditor.headpath.bodies import SourceBodies
from auditor.headpath.path import HeadPath
from auditor.headpath.state import Frame, State
from auditor.headpath.symbolic import Symbolic
from auditor.headpath.terms import Logits, Param, Self, Term
from auditor.values import ClassValue, Place
from codemods.plans import Refusal, Refused, Spot

_LONGEST = 8


class Link(msgspec.Struct, frozen=True):
    """One method on the way.

    Attributes:
        owner: the class that defines it.
        function: its syntax.
        scope: the term that ``self`` stands for in it.
        spots: the calls that take the way on: of the logits processor, or of the next link.
        calls: the same calls as syntax.
        inner: the class of the next link; None where the head is called here.
        has_already: its class has the capability.
    """

    owner: ClassValue
    function: ast.FunctionDef
    scope: Term
    spots: tuple[Spot, ...]
    calls: tuple[ast.Call, ...]
    inner: ClassValue | None
    has_already: bool


class Chain:
    """Follows ``compute_logits`` of one class through the parts of the model."""

    def __init__(
        self, symbolic: Symbolic, bodies: SourceBodies, method: str, capability: str
    ) -> None:
        self._symbolic = symbolic
        self._bodies = bodies
        self._method = method
        self._capability = capability

    def links(self, path: HeadPath) -> tuple[Link, ...]:
        """Every link, so that all logits of ``path`` are computed by one of them.

        Raises:
            Refused: the way leads through something that is not a method of a part of the model.
        """
        links = tuple(self._follow(Self(), 0))
        covered = {
            Place(link.owner.module.path, call.lineno) for link in links for call in link.calls
        }
        for branch in path.branches:
            place = branch.head_term.place if branch.head_term is not None else None
            if place is not None and place not in covered:
                reason = "the logits processor is called outside the methods of the model"
                raise Refused(Refusal("indirect-head", reason, place))
        return links

    def _follow(self, scope: Term, depth: int) -> Iterator[Link]:
        cls = self._symbolic.class_of(scope)
        found = lookup(cls, self._method) if isinstance(cls, ClassValue) else None
        owner = found.owner if isinstance(found, Found) else None
        function = self._bodies.functions(owner).get(self._method) if owner is not None else None
        if not isinstance(cls, ClassValue) or owner is None or function is None:
            raise Refused(Refusal("indirect-head", f"{self._method} is no plain method", None))
        where = Place(owner.module.path, function.lineno)
        if depth > _LONGEST:
            raise Refused(Refusal("indirect-head", "forwarded too often to be followed", where))
        heads, hops = self._calls(owner, function, scope)
        if not heads and not hops:
            reason = f"{owner.qualname}.{self._method} calls neither a logits processor nor"
            reason = f"{reason} {self._method} of a part of the model by itself"
            raise Refused(Refusal("indirect-head", reason, where))
        targets = list(hops.values())
        if any(target != targets[0] for target in targets) or (heads and hops):
            reason = f"{owner.qualname}.{self._method} goes more than one way to the head"
            raise Refused(Refusal("indirect-head", reason, where))
        inner = self._symbolic.class_of(targets[0]) if targets else None
        lines = self._bodies.lines(owner)
        yield Link(
            owner=owner,
            function=function,
            scope=scope,
            spots=tuple(
                [_spot(call, lines, "processor") for call in heads]
                + [_spot(call, lines, "hop") for call in hops]
            ),
            calls=(*heads, *hops),
            inner=inner if isinstance(inner, ClassValue) else None,
            has_already=isinstance(lookup(cls, self._capability), Found),
        )
        if targets:
            yield from self._follow(targets[0], depth + 1)

    def _calls(
        self, owner: ClassValue, function: ast.FunctionDef, scope: Term
    ) -> tuple[list[ast.Call], dict[ast.Call, Term]]:
        """The calls of the logits processor in a method, and those of the method of a part."""
        state = State({p.arg: Param(p.arg) for p in parameters(function)[1:]})
        frame = Frame(owner, owner, scope, 0)
        heads: list[ast.Call] = []
        hops: dict[ast.Call, Term] = {}
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            part = self._forwards_to(call, state, frame)
            if part is not None:
                hops[call] = part
            elif self._is_head(call, state, frame):
                heads.append(call)
        return heads, hops

    def _forwards_to(self, call: ast.Call, state: State, frame: Frame) -> Term | None:
        """The part of the model whose ``compute_logits`` a call enters, or None."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr != self._method:
            return None
        for term, _ in self._symbolic.expr(call.func.value, state, frame):
            cls = self._symbolic.class_of(term)
            if isinstance(cls, ClassValue) and isinstance(lookup(cls, self._method), Found):
                return term
        return None

    def _is_head(self, call: ast.Call, state: State, frame: Frame) -> bool:
        """Whether a call is the one that makes the logits, and not one around it."""
        here = Place(frame.owner.module.path if frame.owner else "", call.lineno)
        if not isinstance(call.func, ast.Attribute | ast.Name):
            return False
        return any(
            isinstance(term, Logits) and term.place == here
            for term, _ in self._symbolic.expr(call, state, frame)
        )


def _spot(call: ast.Call, lines: list[bytes], kind: Literal["processor", "hop"]) -> Spot:
    """Where a call starts, with its column in characters (``ast`` counts bytes of UTF-8)."""
    line = lines[call.lineno - 1] if call.lineno <= len(lines) else b""
    column = len(line[: call.col_offset].decode("utf-8", "replace"))
    return Spot(call.lineno, column, kind)
