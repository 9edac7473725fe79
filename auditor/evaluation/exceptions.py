"""Exceptions: raised, handled, suppressed; surely or by a condition that stayed open."""

from __future__ import annotations

import builtins
from dataclasses import replace
from functools import partial

from auditor import facts as f
from auditor.classes import linearise
from auditor.evaluation.branches import Branches
from auditor.evaluation.frame import SIGNALS, Frame, guard_pair, is_plain
from auditor.values import (
    Builtin,
    ClassValue,
    Doubt,
    Error,
    Foreign,
    Guard,
    Instance,
    Opaque,
    Place,
    PythonError,
    Suppress,
    Trace,
    Undecided,
    Value,
    builtin_error,
)


class Exceptions(Branches):
    """Raises and handles exceptions."""

    def _raise(self, frame: Frame, stmt: f.Raise) -> None:
        error = self.exception(stmt.exc, frame, stmt.line)
        raise PythonError(replace(error, guards=(frame.guards, *error.guards[1:])))

    def exception(self, node: f.Expr | None, frame: Frame, line: int) -> Error:
        """The exception that ``raise node`` raises."""
        place = frame.place(line)
        if node is None:
            return frame.handling or builtin_error(
                "RuntimeError", "No active exception to reraise", place
            )
        if isinstance(node, f.Call):
            cls = self.evaluate(node.func, frame, line)
            message = self._message(node.args, frame, line)
        else:
            cls, message = self.evaluate(node, frame, line), ""
        cls = self.force(cls, frame)
        match cls:
            case Error() as error:
                return Error(error.type, error.message, error.bases, (place,))
            case Builtin(name=name) if _is_exception(name):
                return builtin_error(name, message, place)
            case ClassValue() as own:
                return Error(own.facts.name, message, exception_bases(own), (place,))
            case Instance(cls=own):
                return Error(own.facts.name, message, exception_bases(own), (place,))
            case Foreign(name=name):
                return Error(
                    name.rpartition(".")[2], message, ("?", "Exception", "BaseException"), (place,)
                )
            case _:
                return Error("Exception", message, ("?", "Exception", "BaseException"), (place,))

    def _message(self, args: tuple[f.Expr, ...], frame: Frame, line: int) -> str:
        texts = []
        for node in args[:1]:
            value = self.force(self.evaluate(node, frame, line), frame)
            texts.append(str(value) if is_plain(value) else getattr(value, "text", "") or "…")
        return "".join(texts)

    def _assert(self, frame: Frame, stmt: f.Assert) -> None:
        truth = self.truth(self.evaluate(stmt.test, frame, stmt.line), frame)
        if truth is False:
            raise PythonError(builtin_error("AssertionError", "", frame.place(stmt.line)))

    def _try(self, frame: Frame, stmt: f.Try) -> None:
        mark = frame.doubts.mark()
        guards = frame.guards
        try:
            try:
                self._watched(frame, stmt.body, bool(stmt.handlers))
            except PythonError as raised:
                frame.guards = guards
                self._handle(frame, stmt.handlers, raised)
            else:
                self._after_body(frame, stmt, mark)
        except SIGNALS:
            frame.guards = guards
            self.block(frame, stmt.final)
            raise
        self.block(frame, stmt.final)

    def _watched(self, frame: Frame, body: tuple[f.Stmt, ...], handled: bool = True) -> None:
        """Run a block whose exceptions decide how it goes on: nothing in it can be put off."""
        frame.trying += handled
        try:
            self.block(frame, body)
        finally:
            frame.trying -= handled

    def _handle(self, frame: Frame, handlers: tuple[f.Handler, ...], raised: PythonError) -> None:
        """Run the first handler that takes the exception, or let it pass."""
        for index, handler in enumerate(handlers):
            takes = self._takes(handler, raised.error, frame)
            if takes is True:
                return self._run_handler(frame, handler, raised.error)
            if isinstance(takes, Undecided):
                rest = handlers[index + 1 :]
                place = frame.place(handler.line)
                text = f"except takes {raised.error.type}"
                return self.fork(
                    frame,
                    takes,
                    [
                        (
                            Guard(place, text, None),
                            partial(self._run_handler, frame, handler, raised.error),
                        ),
                        (
                            Guard(place, text, None, negated=True),
                            partial(self._handle, frame, rest, raised),
                        ),
                    ],
                )
        raise raised

    def _run_handler(self, frame: Frame, handler: f.Handler, error: Error) -> None:
        outer, frame.handling = frame.handling, error
        if handler.name:
            frame.names[handler.name] = error
        if frame.trace is not None:
            frame.trace.append(Trace("branch", frame.place(handler.line), f"after {error.type}"))
        guards = frame.guards
        text = f"{error.type}: {error.message}{f'; {error.fact}' if error.fact else ''}"
        frame.guards = (*guards, Guard(frame.place(handler.line), f"except after {text}", True))
        try:
            self.block(frame, handler.body)
        finally:
            frame.handling, frame.guards = outer, guards
            if handler.name:
                frame.names.pop(handler.name, None)

    def _after_body(self, frame: Frame, stmt: f.Try, mark: int) -> None:
        """The body ran through; where it may have raised, follow the handler as well."""
        caught = [
            (d, h)
            for d in frame.doubts.since(mark)
            if (h := self._taker(stmt.handlers, d.error, frame)) is not None
        ]
        if not caught:
            return self.block(frame, stmt.orelse)
        doubt, handler = caught[0]
        frame.doubts.drop([d for d, _ in caught])
        place = doubt.condition.where or frame.place(stmt.line)
        text = doubt.condition.text or doubt.condition.reason
        goes_well, fails = guard_pair(place, text, None, doubt.condition.key)
        self.fork(
            frame,
            doubt.condition,
            [
                (goes_well, lambda: self.block(frame, stmt.orelse)),
                (fails, lambda: self._run_handler(frame, handler, doubt.error)),
            ],
        )
        return None

    def _taker(
        self, handlers: tuple[f.Handler, ...], error: Error, frame: Frame
    ) -> f.Handler | None:
        for handler in handlers:
            if self._takes(handler, error, frame) is not False:
                return handler
        return None

    def _takes(self, handler: f.Handler, error: Error, frame: Frame) -> bool | Undecided:
        """Whether ``except`` takes the exception."""
        if handler.types is None:
            return True
        types = self.force(self.evaluate(handler.types, frame, handler.line), frame)
        return self.is_instance(error, types, frame.place(handler.line), frame)

    def is_instance(
        self, error: Error, types: Value, place: Place, frame: Frame
    ) -> bool | Undecided:
        """Whether an exception is an instance of a class, or of one of several."""
        if isinstance(types, tuple | list):
            results = [self.is_instance(error, self.force(t, frame), place, frame) for t in types]
            if True in [result for result in results if isinstance(result, bool)]:
                return True
            return next((r for r in results if isinstance(r, Undecided)), False)
        match types:
            case Builtin(name=name):
                # IOError and EnvironmentError are other names of OSError.
                wanted = getattr(getattr(builtins, name), "__name__", name)
                known = wanted in error.bases
            case ClassValue():
                known = types.facts.name in error.bases
            case _:
                return Undecided("which exceptions it takes is not known", place)
        if not known and "?" in error.bases:
            return Undecided(f"the bases of {error.type} are not known", place)
        return known

    def _with(self, frame: Frame, stmt: f.With) -> None:
        suppressed: list[Value] = []
        for item in stmt.items:
            value = self.evaluate(item, frame, stmt.line)
            if isinstance(value, Suppress):
                suppressed.extend(value.types)
        for name in stmt.names:
            self.bind(frame, name, Opaque("bound by with", frame.place(stmt.line)), stmt, stmt.line)
        if not suppressed:
            return self.block(frame, stmt.body)
        return self._suppressing(frame, stmt, tuple(suppressed))

    def _suppressing(self, frame: Frame, stmt: f.With, types: tuple[Value, ...]) -> None:
        """``contextlib.suppress``: the rest of the body is skipped when it raises."""
        mark, guards, place = frame.doubts.mark(), frame.guards, frame.place(stmt.line)
        try:
            self._watched(frame, stmt.body)
        except PythonError as raised:
            frame.guards = guards
            takes = self.is_instance(raised.error, types, place, frame)
            if takes is False:
                raise
            if isinstance(takes, Undecided):
                frame.doubt(Doubt(raised.error, takes))
        frame.doubts.drop(
            [
                doubt
                for doubt in frame.doubts.since(mark)
                if self.is_instance(doubt.error, types, place, frame) is not False
            ]
        )


def exception_bases(cls: ClassValue) -> tuple[str, ...]:
    """Names of the classes that an exception class of the tree derives from; ``?`` if unknown."""
    names: list[str] = []
    for member in linearise(cls):
        match member:
            case ClassValue():
                names.append(member.facts.name)
            case Builtin(name=name) if _is_exception(name):
                names.extend(base.__name__ for base in getattr(builtins, name).__mro__)
            case _:
                names.append("?")
    return tuple(names)


def _is_exception(name: str) -> bool:
    cls = getattr(builtins, name, None)
    return isinstance(cls, type) and issubclass(cls, BaseException)
