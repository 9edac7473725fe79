"""Loops: every round where the items are known, else no round and one that stands for many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache, partial

from msgspec import structs

from auditor import facts as f
from auditor.evaluation.branches import Branches
from auditor.evaluation.frame import (
    CONTAINERS,
    Ends,
    Frame,
    Jumping,
    Returning,
    Stop,
    is_own,
    is_unordered,
    joined,
    opposite,
    replace_names,
)
from auditor.evaluation.touches import nodes_of
from auditor.evaluation.truth import ITERATING
from auditor.values import (
    UNBOUND,
    Doubt,
    Guard,
    Iterated,
    Opaque,
    PythonError,
    Undecided,
    Value,
    builtin_error,
)

_MAX_ITERATIONS = 4096

#: Rounds followed after one that may have been the last.
_MAX_OPEN_ROUNDS = 32


class Loops(Branches):
    """Runs ``for`` and ``while``."""

    def _loop(self, frame: Frame, stmt: f.Loop) -> None:
        if stmt.target is not None:
            over = self.force(self.evaluate(stmt.iter, frame, stmt.line), frame)
            values = self.listed(over, frame)
            if (
                isinstance(values, dict | set | frozenset | tuple | list | str | range)
                and len(values) <= _MAX_ITERATIONS
            ):
                unordered, step = is_unordered(over), self.steps
                over = over.over if isinstance(over, Iterated) else over
                self._for_each(frame, stmt, list(values), over)
                return self._any_order(frame, stmt, step) if unordered else None
            self.iterates(values, frame, stmt.line)
            self.refuse(iter, values, ITERATING, frame, stmt.line)
            reason, own = "what is iterated over is not known", is_own(values)
            why = Undecided(reason, frame.place(stmt.line), stmt.text, "", own)
        else:
            return self._while(frame, stmt)
        return self._maybe_loop(frame, stmt, why)

    def _any_order(self, frame: Frame, stmt: f.Loop, step: int) -> None:
        """What rests on the order of a set is not known after a loop over it."""
        why = Opaque("the order of a set", frame.place(stmt.line), stmt.text)
        self.containers.lose_lists(step, why)
        names = [name for node in nodes_of((stmt,)) for name in _stored(node)]
        for name in names:
            value = frame.names.get(name, UNBOUND)
            if value is not UNBOUND and not isinstance(value, CONTAINERS):
                frame.names[name] = why

    def _while(self, frame: Frame, stmt: f.Loop) -> None:
        """Rounds as long as the condition surely holds."""
        outer, frame.jumps = frame.jumps, []
        try:
            why = self._while_true(frame, stmt)
        finally:
            frame.jumps = outer
        if why is not None:
            self._maybe_loop(frame, stmt, why)

    def _while_true(self, frame: Frame, stmt: f.Loop) -> Undecided | None:
        """Run the loop up to its end, or up to where it is open how it goes on."""
        place = frame.place(stmt.line)
        for _ in range(_MAX_ITERATIONS):
            truth = self.truth(self.evaluate(stmt.iter, frame, stmt.line), frame)
            if isinstance(truth, Undecided):
                return structs.replace(truth, where=place, text=stmt.text)
            if not truth:
                self.block(frame, stmt.orelse)
                return None
            on, over = self._round(frame, stmt)
            replace_names(frame.names, joined([*on, *over]))
            if on and over:
                return Undecided("whether the loop is left is not known", place, stmt.text)
            if over:
                return None
        return Undecided("more rounds than are followed", place, stmt.text)

    def _for_each(self, frame: Frame, stmt: f.Loop, values: list[Value], over: Value) -> None:
        outer, frame.jumps = frame.jumps, []
        try:
            self._rounds(frame, stmt, values, over)
        finally:
            frame.jumps = outer

    def _rounds(
        self, frame: Frame, stmt: f.Loop, values: list[Value], over: Value = UNBOUND
    ) -> None:
        """The rounds of a loop; after a ``break`` on an open branch, with and without the rest.

        ``over`` is the container that is iterated over, which the body may change.
        """
        assert stmt.target is not None
        for index, value in enumerate(values):
            self.store(frame, stmt.target, value, stmt, stmt.line)
            on, left = self._round(frame, stmt)
            if on and left:
                return self._perhaps_over(frame, stmt, on, left, values[index + 1 :])
            replace_names(frame.names, joined(on or left))
            if left:
                return None
            if isinstance(over, list | dict | set):
                why = self._changed(frame, stmt, values, over)
                if why is not None:
                    return self._maybe_loop(frame, stmt, why)
        return self.block(frame, stmt.orelse)

    def _changed(
        self, frame: Frame, stmt: f.Loop, values: list[Value], over: Value
    ) -> Undecided | None:
        """Go on with a list as it is by now; a dict or set keeps its size while it is iterated.

        Gives why it is not known what comes next, if so.

        Raises:
            PythonError: ``RuntimeError``, where it has another size.
        """
        lost = self.containers.lost(over)
        kind = "dictionary" if isinstance(over, dict) else "Set"
        message = f"{kind} changed size during iteration"
        error = builtin_error("RuntimeError", message, frame.place(stmt.line))
        if lost is not None:
            why = Undecided(lost.reason, lost.where, lost.text, own=lost.own)
            if not isinstance(over, list):
                frame.doubt(Doubt(error, why))
            return why
        if isinstance(over, list):
            values[:] = over
            if len(values) > _MAX_ITERATIONS:
                return Undecided("more rounds than are followed", frame.place(stmt.line), stmt.text)
        elif len(over) != len(values):
            raise PythonError(error)
        return None

    def _round(self, frame: Frame, stmt: f.Loop) -> tuple[Ends, Ends]:
        """Run the body once: namespaces with which the loop goes on, and those after a break."""
        kind = "continue"
        try:
            with self.passage():
                self.block(frame, stmt.body)
        except Jumping as signal:
            kind = signal.kind
        except (PythonError, Returning) as signal:
            if not frame.jumps:
                raise
            self._stop_of_round(frame, signal)
            kind = ""
        jumps, frame.jumps = frame.jumps, []
        always = Guard(frame.place(stmt.line), stmt.text, None)
        guard = opposite(jumps[-1].guard) if jumps else always
        ends = {"continue": Ends(), "break": Ends(), "": Ends()}
        for jump in jumps:
            assert isinstance(jump.signal, Jumping)
            ends[jump.signal.kind].append((jump.guard, jump.names))
        ends[kind].append((guard, dict(frame.names) if jumps else frame.names))
        return ends["continue"], ends["break"]

    def _stop_of_round(self, frame: Frame, signal: PythonError | Returning) -> None:
        """A round that ends the block, where an open branch has left the round before."""
        guard = opposite(frame.jumps[-1].guard)
        if isinstance(signal, Returning):
            frame.returns.append((guard, signal.value))
        else:
            why = Undecided("whether the round comes so far is not known")
            self._doubt_of(frame, why, Stop(guard, signal, dict(frame.names)), signal.error)

    def _perhaps_over(
        self, frame: Frame, stmt: f.Loop, on: Ends, over: Ends, values: list[Value]
    ) -> None:
        guard = over[0][0]
        why = Undecided("whether the loop is left is not known", guard.where, guard.text)
        if len(values) > _MAX_OPEN_ROUNDS:
            replace_names(frame.names, joined([*on, *over]))
            return self._maybe_loop(frame, stmt, why)

        def go_on() -> None:
            replace_names(frame.names, joined(on))
            self._rounds(frame, stmt, values)

        leave = partial(replace_names, frame.names, joined(over))
        return self.fork(frame, why, [(opposite(guard), go_on), (guard, leave)])

    def _maybe_loop(self, frame: Frame, stmt: f.Loop, why: Undecided) -> None:
        """A body that runs an unknown number of times: once and not at all are followed."""
        self.open_condition(why, frame)
        place = frame.place(stmt.line)

        def once() -> None:
            self._any_round(frame, stmt, why)
            if stmt.target is not None:
                self.store(
                    frame, stmt.target, Opaque("an item", place, own=why.own), stmt, stmt.line
                )
            on, over = self._round(frame, stmt)
            replace_names(frame.names, joined([*on, *over]))

        outer, frame.jumps = frame.jumps, []
        try:
            self.fork(
                frame,
                why,
                [
                    (Guard(place, stmt.text, None, own=why.own), once),
                    (Guard(place, stmt.text, None, negated=True, own=why.own), lambda: None),
                ],
            )
        finally:
            frame.jumps = outer
        self.block(frame, stmt.orelse)

    def _any_round(self, frame: Frame, stmt: f.Loop, why: Undecided) -> None:
        """A round that stands for all: what one hands to the next is not known."""
        place = frame.place(stmt.line)
        for name in carried(stmt.body):
            before = frame.names.get(name, UNBOUND)
            if before is not UNBOUND:
                own = why.own or is_own(before)
                changed = Opaque("a loop changes it", place, stmt.text, own=own)
                self.bind(frame, name, changed, stmt, stmt.line)


@lru_cache(maxsize=1024)
def carried(body: tuple[f.Stmt, ...]) -> tuple[str, ...]:
    """The names that a body both binds and reads, so that a round may read what one before bound.

    An import binds the same in every round. The text of the body alone says which, so the answer is
    kept: one loop is met on every platform, and in every call of its function.
    """
    nodes = list(nodes_of(body))
    stored = Counter(name for node in nodes for name in _stored(node))
    read = Counter(node.id for node in nodes if isinstance(node, f.Name))
    # A name that is only stored stands among the nodes as the target that it is.
    read.subtract(
        name for node in nodes if isinstance(node, f.Assign | f.Loop) for name in _stored(node)
    )
    read.update(use.partition(".")[0] for node in nodes for use in _uses(node))
    return tuple(sorted(name for name in stored if read[name] > 0))


def _stored(node: object) -> Iterator[str]:
    """The names that a statement or expression assigns to."""
    match node:
        case f.Assign(targets=targets):
            for target in targets:
                yield from _targets(target)
        case f.AugAssign(target=target) | f.Loop(target=target) if target is not None:
            yield from _targets(target)
        case f.Walrus(name=name):
            yield name
        case _:
            return


def _uses(node: object) -> tuple[str, ...]:
    """Dotted names in what is not followed otherwise."""
    match node:
        case f.Uses(names=names) | f.Unknown(uses=names):
            return names
        case _:
            return ()


def _targets(target: f.Expr) -> Iterator[str]:
    match target:
        case f.Name(id=name):
            yield name
        case f.Sequence(items=items):
            for item in items:
                yield from _targets(item)
        case _:
            return
