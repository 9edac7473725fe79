"""What a branch that is followed says of the names in its condition."""

from __future__ import annotations

from collections.abc import Iterator

from auditor import facts as f
from auditor.evaluation.frame import Frame, join
from auditor.evaluation.truth import Truth
from auditor.values import UNBOUND, Either, Guard, Opaque, Value

#: A name whose values a branch narrows: its scope, its value before, and on the branch.
Narrowed = tuple[dict[str, Value], str, Value, Value]


class Narrowing(Truth):
    """Leaves names the values that they can have on a branch."""

    def narrowed(self, frame: Frame, test: f.Expr, outcome: bool, line: int) -> list[Narrowed]:
        """Know of the names in an open condition what the branch that is followed says.

        That ends with the branch. Gives the names whose values were narrowed. Those of the frame
        itself stay narrowed, since the other branch may never come back.
        """
        found: list[Narrowed] = []
        for name, part in _tested_names(test, outcome):
            for scope in (frame.names, *frame.scopes, frame.module.names):
                if name in scope:
                    found.append(self._narrow(scope, name, part, outcome, frame, line))
                    break
        return found

    @staticmethod
    def widen(frame: Frame, narrowed: list[Narrowed]) -> None:
        """Give names outside the frame their values back, which the other branch asks for too."""
        for scope, name, before, during in narrowed:
            if scope is not frame.names and scope.get(name) is during:
                scope[name] = before

    def _narrow(
        self,
        scope: dict[str, Value],
        name: str,
        test: f.Expr,
        outcome: bool,
        frame: Frame,
        line: int,
    ) -> Narrowed:
        """Keep of a name's possible values those with which the test comes out so."""
        before = scope[name]
        kept = self._kept(scope, name, test, outcome, frame, line)
        scope[name] = during = join(kept) if kept else before
        if isinstance(during, Opaque) and during.key:
            key = during.key.removeprefix("!")
            self.known[key] = outcome is not during.key.startswith("!")
        return scope, name, before, during

    def _kept(
        self,
        scope: dict[str, Value],
        name: str,
        test: f.Expr,
        outcome: bool,
        frame: Frame,
        line: int,
    ) -> list[tuple[Guard, Value]]:
        value = scope[name]
        if not isinstance(value, Either):
            return []
        kept = []
        for guard, option in self.alive(value):
            if option is UNBOUND:
                continue
            scope[name] = option
            if self.truth(self.evaluate(test, frame, line), frame) is not (not outcome):
                kept.append((guard, option))
        return kept


def _tested_names(test: f.Expr, outcome: bool) -> Iterator[tuple[str, f.Expr]]:
    """Names whose value a condition tests by itself, with the part of the condition that does."""
    match test:
        case f.Name(id=name) | f.Not(value=f.Name(id=name)):
            yield name, test
        case f.Compare(left=f.Name(id=name), rights=(f.Const(),)):
            yield name, test
        case f.BoolOp(op=op, values=values) if (op == "and") is outcome:
            for value in values:
                yield from _tested_names(value, outcome)
        case _:
            return
