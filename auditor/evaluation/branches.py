"""Branches and loops.

Where a condition stays open, both branches are followed on copies of the namespace, and the
results are joined name by name. A branch that raises leaves a *doubt*: the run goes on as if the
other branch had been taken, and whatever rests on it knows under which condition it would not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from auditor import facts as f
from auditor.evaluation.binding import Binding
from auditor.evaluation.frame import SIGNALS, Frame, Jumping, Returning, guard_pair, join, same
from auditor.values import (
    UNBOUND,
    Doubt,
    Guard,
    Opaque,
    PythonError,
    Trace,
    Undecided,
    Value,
)

_MAX_ITERATIONS = 4096


class Branches(Binding):
    """Runs branches, one or both."""

    def condition(self, test: f.Expr, text: str, frame: Frame, line: int) -> bool | Undecided:
        """The truth of a condition, with its own text and place when it stays open."""
        if self.platform.assumed and text in self.platform.assumed:
            return bool(self.platform.assumed[text])
        truth = self.truth(self.evaluate(test, frame, line), frame)
        if isinstance(truth, Undecided):
            truth = Undecided(truth.reason, frame.place(line), text, truth.key)
            self.open_condition(truth, frame)
        return truth

    def _if(self, frame: Frame, stmt: f.If) -> None:
        truth = self.condition(stmt.test, stmt.text, frame, stmt.line)
        place = frame.place(stmt.line)
        if isinstance(truth, Undecided):
            usual = self.usual_truth(stmt.test, frame, stmt.line)
            then, orelse = guard_pair(place, stmt.text, usual, truth.key)
            self.fork(
                frame,
                truth,
                [
                    (then, partial(self._follow, frame, stmt, True, then)),
                    (orelse, partial(self._follow, frame, stmt, False, then)),
                ],
            )
            return
        if frame.trace is not None:
            frame.trace.append(Trace("branch", place, f"{stmt.text} is {str(truth).lower()}"))
        outer = frame.guards
        frame.guards = (*outer, Guard(place, stmt.text, truth))
        self.block(frame, stmt.body if truth else stmt.orelse)
        frame.guards = outer

    def _follow(self, frame: Frame, stmt: f.If, outcome: bool, guard: Guard) -> None:
        with self.knowing(frame, stmt.test, outcome, stmt.line, guard):
            self.block(frame, stmt.body if outcome else stmt.orelse)

    def usual_truth(self, test: f.Expr, frame: Frame, line: int) -> bool | None:
        """The truth of an open condition in a process that sets no environment variable."""
        self.bare_environment += 1
        mark = frame.doubts.mark()
        try:
            truth = self.truth(self.evaluate(test, frame, line), frame)
        except PythonError:
            return None
        finally:
            self.bare_environment -= 1
            frame.doubts.drop(frame.doubts.since(mark))
        return truth if isinstance(truth, bool) else None

    def fork(
        self, frame: Frame, why: Undecided, branches: Sequence[tuple[Guard, Callable[[], None]]]
    ) -> None:
        """Follow every branch from the same state, and join what they bind.

        Raises:
            PythonError, Returning, Jumping: when no branch runs through; the first one's.
        """
        outer, before, guards = frame.names, _copied(frame.names), frame.guards
        ends: list[tuple[Guard, dict[str, Value]]] = []
        stops: list[tuple[Guard, Exception]] = []
        for guard, run in branches:
            outer_state = _copied(before)
            outer.clear()
            outer.update(outer_state)
            frame.guards = (*guards, guard)
            mark, known = frame.doubts.mark(), self.known
            self.known = {**known, guard.identity: not guard.negated}
            try:
                run()
                ends.append((guard, dict(outer)))
            except SIGNALS as stop:
                stops.append((guard, stop))
            finally:
                frame.guards, self.known = guards, known
                if guard.usual is False:
                    # What goes wrong only with a variable set is no doubt about a bare process.
                    frame.doubts.drop(frame.doubts.since(mark))
        outer.clear()
        outer.update(_joined(ends) if ends else before)
        self._settle(frame, why, bool(ends), stops)

    def _settle(
        self, frame: Frame, why: Undecided, goes_on: bool, stops: list[tuple[Guard, Exception]]
    ) -> None:
        """Keep what stopped branches leave behind; stop too when none goes on."""
        returned = [(guard, stop.value) for guard, stop in stops if isinstance(stop, Returning)]
        if not goes_on and returned:
            for _, stop in stops:
                if isinstance(stop, PythonError):
                    frame.doubt(Doubt(stop.error, why))
            raise Returning(join(returned))
        if not goes_on:
            first = stops[0][1]
            others = {stop.error.type for _, stop in stops if isinstance(stop, PythonError)}
            if isinstance(first, PythonError) and len(others) > 1:
                for _, stop in stops[1:]:
                    if isinstance(stop, PythonError):
                        frame.doubt(Doubt(stop.error, why))
            raise first
        frame.returns.extend(returned)
        for guard, stop in stops:
            if isinstance(stop, PythonError) and guard.usual is not False:
                frame.doubt(Doubt(stop.error, why))
            elif isinstance(stop, PythonError):
                error = f"{stop.error.type}: {stop.error.message}"
                reason = f"{why.reason}; raises {error} when the variable is set so"
                self.open_condition(Undecided(reason, why.where, why.text), frame)

    def _loop(self, frame: Frame, stmt: f.Loop) -> None:
        if stmt.target is not None:
            values = self.force(self.evaluate(stmt.iter, frame, stmt.line), frame)
            if (
                isinstance(values, dict | set | frozenset | tuple | list | str | range)
                and len(values) <= _MAX_ITERATIONS
            ):
                return self._for_each(frame, stmt, list(values))
            why = Undecided("what is iterated over is not known", frame.place(stmt.line), stmt.text)
        else:
            truth = self.truth(self.evaluate(stmt.iter, frame, stmt.line), frame)
            if truth is False:
                return self.block(frame, stmt.orelse)
            why = Undecided("loops are not followed", frame.place(stmt.line), stmt.text)
        return self._maybe_loop(frame, stmt, why)

    def _for_each(self, frame: Frame, stmt: f.Loop, values: list[Value]) -> None:
        assert stmt.target is not None
        for value in values:
            self.store(frame, stmt.target, value, stmt, stmt.line)
            try:
                self.block(frame, stmt.body)
            except Jumping as signal:
                if signal.kind == "break":
                    return
        self.block(frame, stmt.orelse)

    def _maybe_loop(self, frame: Frame, stmt: f.Loop, why: Undecided) -> None:
        """A body that runs an unknown number of times: once and not at all are followed."""
        self.open_condition(why, frame)
        place = frame.place(stmt.line)

        def once() -> None:
            if stmt.target is not None:
                self.store(frame, stmt.target, Opaque("an item", place), stmt, stmt.line)
            try:
                self.block(frame, stmt.body)
            except Jumping:
                return

        self.fork(
            frame,
            why,
            [
                (Guard(place, stmt.text, None), once),
                (Guard(place, stmt.text, None, negated=True), lambda: None),
            ],
        )
        self.block(frame, stmt.orelse)

    def _switch(self, frame: Frame, stmt: f.Switch) -> None:
        place = frame.place(stmt.line)
        why = Undecided("match is not followed", place, stmt.text)
        self.open_condition(why, frame)
        branches: list[tuple[Guard, Callable[[], None]]] = [
            (
                Guard(place, f"{stmt.text}: case {index + 1}", None),
                partial(self.block, frame, body),
            )
            for index, body in enumerate(stmt.bodies)
        ]
        branches.append((Guard(place, f"{stmt.text}: no case", None), lambda: None))
        self.fork(frame, why, branches)


def _copied(names: dict[str, Value]) -> dict[str, Value]:
    """A namespace for a branch: containers are copied, since a branch may change them."""
    return {
        name: type(value)(value) if isinstance(value, list | dict | set) else value
        for name, value in names.items()
    }


def _joined(ends: list[tuple[Guard, dict[str, Value]]]) -> dict[str, Value]:
    """The namespace after several branches: one value a name, or one by each condition."""
    if len(ends) == 1:
        return ends[0][1]
    result: dict[str, Value] = {}
    for name in dict.fromkeys(name for _, names in ends for name in names):
        options = [(guard, names.get(name, UNBOUND)) for guard, names in ends]
        first = options[0][1]
        if all(same(first, value) for _, value in options[1:]):
            result[name] = first
        else:
            result[name] = join(options)
    return result
