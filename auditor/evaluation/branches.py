"""Branches and loops.

Where a condition stays open, both branches are followed on copies of the namespace, and the
results are joined name by name. A branch that raises leaves a *doubt*: the run goes on as if the
other branch had been taken, and whatever rests on it knows under which condition it would not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import structs

from auditor import facts as f
from auditor.evaluation.comprehensions import Comprehensions
from auditor.evaluation.frame import (
    SIGNALS,
    Ends,
    Frame,
    Jumping,
    Returning,
    Snapshot,
    Stop,
    UnfollowedError,
    doubtful,
    guard_pair,
    is_own,
    joined,
    replace_names,
)
from auditor.values import (
    Doubt,
    Error,
    Guard,
    Opaque,
    Place,
    PythonError,
    Trace,
    Undecided,
    Value,
)

_SINGLETONS = (bool, type(None))
_SET_SO = " when the variable is set so"


class Branches(Comprehensions):
    """Runs branches, one or both.

    ``outcomes`` are the conditions of modules that were decided, by their place.
    """

    outcomes: dict[Place, bool]
    #: How many more open conditions about objects of the tree the call that runs may ask.
    own_forks: int = 0

    def condition(self, test: f.Expr, text: str, frame: Frame, line: int) -> bool | Undecided:
        """The truth of a condition, with its own text and place when it stays open."""
        if self.platform.assumed and text in self.platform.assumed:
            return bool(self.platform.assumed[text])
        truth = self.truth(self.evaluate(test, frame, line), frame)
        if isinstance(truth, Undecided):
            truth = structs.replace(truth, where=frame.place(line), text=text)
            self.open_condition(truth, frame)
        return truth

    def _if(self, frame: Frame, stmt: f.If) -> None:
        asked = self.environment_asked
        truth = self.condition(stmt.test, stmt.text, frame, stmt.line)
        place = frame.place(stmt.line)
        if isinstance(truth, Undecided):
            usual = None
            if self.environment_asked != asked:
                usual = self.usual_truth(stmt.test, frame, stmt.line)
            then, orelse = guard_pair(place, stmt.text, usual, truth.key, truth.own)
            self.fork(
                frame,
                truth,
                [
                    (then, partial(self._follow, frame, stmt, True)),
                    (orelse, partial(self._follow, frame, stmt, False)),
                ],
            )
            return
        if frame.trace is not None:
            frame.trace.append(Trace("branch", place, f"{stmt.text} is {str(truth).lower()}"))
        if not frame.is_call:
            self.outcomes[place] = truth
        outer = frame.guards
        frame.guards = (*outer, Guard(place, stmt.text, truth))
        self.block(frame, stmt.body if truth else stmt.orelse)
        frame.guards = outer

    def _follow(self, frame: Frame, stmt: f.If, outcome: bool) -> None:
        narrowed = self.narrowed(frame, stmt.test, outcome, stmt.line)
        try:
            self.block(frame, stmt.body if outcome else stmt.orelse)
        finally:
            self.widen(frame, narrowed)

    def usual_truth(self, test: f.Expr, frame: Frame, line: int) -> bool | None:
        """The truth of an open condition in a process that sets no environment variable."""
        self.bare_environment += 1
        mark, names = frame.doubts.mark(), dict(frame.names)
        try:
            truth = self.truth(self.evaluate(test, frame, line), frame)
        except PythonError:
            return None
        finally:
            self.bare_environment -= 1
            frame.doubts.drop(frame.doubts.since(mark))
            replace_names(frame.names, names)
        return truth if isinstance(truth, bool) else None

    def fork(
        self, frame: Frame, why: Undecided, branches: Sequence[tuple[Guard, Callable[[], None]]]
    ) -> None:
        """Follow every branch from the same state, and join what they bind.

        Raises:
            PythonError, Returning, Jumping: when no branch runs through.
        """
        if why.own and frame.is_call:
            self.own_forks -= 1
            if self.own_forks < 0:
                raise UnfollowedError
        before = Snapshot(frame.names, self.containers)
        guards, start, left = frame.guards, frame.doubts.mark(), _left(frame)
        ends = Ends()
        stops: list[Stop] = []
        for guard, run in branches:
            before.restore(frame.names, (*self.open_guards, guard))
            frame.guards = (*guards, guard)
            mark = frame.doubts.mark()
            try:
                with self.branch(guard):
                    run()
                ends.append((guard, dict(frame.names)))
            except SIGNALS as stop:
                stops.append(Stop(guard, stop, dict(frame.names)))
            finally:
                frame.guards = guards
                if guard.usual is False:
                    frame.doubts.call_unusual(frame.doubts.since(mark))
        if ends:
            before.adopt(frame.names, joined(ends))
        try:
            self._settle(frame, why, before, stops, goes_on=bool(ends))
            self._rest(frame, why, ends, left)
        finally:
            if not frame.trying:
                self.pass_over_unusual(frame, start)

    def _rest(self, frame: Frame, why: Undecided, ends: Ends, left: int) -> None:
        """Where a branch has left the call or the round, the rest of it runs by that condition."""
        if _left(frame) == left or not (frame.is_call or frame.jumps):
            return
        guard = Guard(why.where or frame.place(0), f"{why.text}: goes on", None, own=why.own)
        if len(ends) == 1:
            guard = ends[0][0]
            self.known = {**self.known, guard.identity: not guard.negated}
            frame.unusual = frame.unusual or guard.usual is False
        self.open_guards = (*self.open_guards, guard)

    def pass_over_unusual(self, frame: Frame, mark: int) -> None:
        """What goes wrong only with a variable set is no doubt about a bare process.

        Nor is what code outside the tree is taken not to do. It is noted with the condition. A
        handler around it would still deal with it, so this is for when there is none any more.
        """
        for doubt in frame.doubts.since(mark):
            if doubt.assumed:
                self._pass_over_assumed(doubt, frame)
                frame.doubts.drop([doubt])
            elif doubt.unusual:
                self._note_unusual(doubt, frame)
                frame.doubts.drop([doubt])

    def _note_unusual(self, doubt: Doubt, frame: Frame) -> None:
        """Note what a set variable makes raise, the first of it, with the condition that asks."""
        why, shown = doubt.condition, f"{doubt.error.type}: {doubt.error.message}"
        asked = self.open_conditions.get((why.where, why.text), why) if why.where else why
        if not asked.reason.endswith(_SET_SO):
            reason = f"{asked.reason}; raises {shown}{_SET_SO}"
            self.open_condition(Undecided(reason, why.where, why.text), frame)

    def _pass_over_assumed(self, doubt: Doubt, frame: Frame) -> None:
        """Code outside the tree is taken not to fail where that would end the import.

        Where a handler makes another exception of the failure, that is noted.
        """
        why, error = doubt.condition, doubt.error
        if error.chain[0] != why.where:
            reason = f"{why.reason}; without it {error.type}: {error.message} is raised"
            self.open_condition(structs.replace(why, reason=reason), frame)

    def _settle(
        self, frame: Frame, why: Undecided, before: Snapshot, stops: list[Stop], *, goes_on: bool
    ) -> None:
        """Keep what stopped branches leave behind; stop too when none goes on."""
        last = None if goes_on else self._last(stops)
        frame.returns.extend(
            (stop.guard, stop.signal.value)
            for stop in stops
            if isinstance(stop.signal, Returning) and stop is not last
        )
        frame.jumps.extend(
            stop for stop in stops if isinstance(stop.signal, Jumping) and stop is not last
        )
        for stop in stops:
            if isinstance(stop.signal, PythonError) and stop is not last:
                self._doubt_of(frame, why, stop, stop.signal.error)
        if last is not None:
            before.adopt(frame.names, last.names)
            raise _with_other_messages(last.signal, [stop.signal for stop in stops])

    @staticmethod
    def _last(stops: list[Stop]) -> Stop:
        """The stop that ends the block, where all branches stop: not an exception, if any."""
        for kind in (Returning, Jumping):
            found = [stop for stop in stops if isinstance(stop.signal, kind)]
            if found:
                return found[-1]
        # Of exceptions, the first one of a process that sets no variable.
        return next((stop for stop in stops if stop.guard.usual is not False), stops[0])

    def _doubt_of(self, frame: Frame, why: Undecided, stop: Stop, error: Error) -> None:
        """A branch that raises is a doubt, which comes up with the names it has bound by then."""
        after = dict(frame.names)
        replace_names(frame.names, stop.names)
        condition = doubtful(stop.guard, why.reason)
        frame.doubt(Doubt(error, condition, unusual=stop.guard.usual is False))
        replace_names(frame.names, after)

    def _switch(self, frame: Frame, stmt: f.Switch) -> None:
        """``match``: the first case that surely matches, and those before that may."""
        subject = self.force(self.evaluate(stmt.subject, frame, stmt.line), frame)
        place, own = frame.place(stmt.line), is_own(subject)
        branches: list[tuple[Guard, Callable[[], None]]] = []
        for index, (case, body) in enumerate(zip(stmt.cases, stmt.bodies, strict=True)):
            matches = self._matches(case, subject, frame, stmt)
            if matches is False:
                continue
            run = partial(self._run_case, frame, stmt, case, subject, body)
            if matches is True and not branches:
                return run()
            guard = Guard(place, f"{stmt.text}: case {index + 1}", None, own=own)
            branches.append((guard, run))
            if matches is True:
                break
        else:
            none = Guard(place, f"{stmt.text}: no case", None, own=own)
            branches.append((none, lambda: None))
        if len(branches) == 1:
            return branches[0][1]()
        why = Undecided("which case matches is not known", place, stmt.text, "", own)
        self.open_condition(why, frame)
        return self.fork(frame, why, branches)

    def _matches(
        self, case: f.Case, subject: Value, frame: Frame, stmt: f.Switch
    ) -> bool | Undecided:
        why = Undecided("its pattern is not followed", frame.place(stmt.line), stmt.text)
        if case.values is None and not case.always:
            return why
        answers: list[bool | Undecided] = [case.always]
        for node in case.values or ():
            op = "is" if isinstance(node, f.Const) and type(node.value) in _SINGLETONS else "=="
            value = self.evaluate(node, frame, stmt.line)
            answers.append(self.compare(op, subject, value, frame, stmt.line))
        if any(answer is True for answer in answers):
            return True if case.guard is None else why
        return next((answer for answer in answers if isinstance(answer, Undecided)), False)

    def _run_case(
        self, frame: Frame, stmt: f.Switch, case: f.Case, subject: Value, body: tuple[f.Stmt, ...]
    ) -> None:
        place = frame.place(stmt.line)
        for name in case.binds:
            value = subject if case.always else Opaque("matched", place, own=is_own(subject))
            self.bind(frame, name, value, stmt, stmt.line)
        self.block(frame, body)


def _left(frame: Frame) -> int:
    """How many branches have left the call, or the round of a loop, so far."""
    return len(frame.returns) + len(frame.jumps)


def _with_other_messages(raised: Exception, signals: Sequence[Exception]) -> Exception:
    """An exception whose message says that branches raise the same type with different ones."""
    if not isinstance(raised, PythonError):
        return raised
    error = raised.error
    others = [
        signal.error.message
        for signal in signals
        if isinstance(signal, PythonError)
        and signal.error.type == error.type
        and signal.error.message != error.message
    ]
    if not others:
        return raised
    return PythonError(structs.replace(error, message=f"{error.message} … or {others[0]}"))
