"""Exceptions: raised, handled, suppressed; surely or by a condition that stayed open."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from auditor import facts as f
from auditor.classes import derives, linearise
from auditor.evaluation.frame import (
    SIGNALS,
    Ends,
    Frame,
    Snapshot,
    guard_pair,
    is_plain,
    joined,
    replace_names,
)
from auditor.evaluation.loops import Loops
from auditor.evaluation.raised import error_text
from auditor.evaluation.standins import makes_itself
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
    Trace,
    Undecided,
    Value,
    builtin_error,
)

_ANY = Builtin("BaseException")


class Handler(msgspec.Struct, frozen=True):
    """An ``except`` clause, or ``contextlib.suppress``: what it takes, and what it then does.

    ``types`` is evaluated only when something was raised; None takes everything.
    """

    types: Callable[[], Value] | None
    run: Callable[[Error], None]
    line: int


class Exceptions(Loops):
    """Raises and handles exceptions."""

    def _raise(self, frame: Frame, stmt: f.Raise) -> None:
        error = self.exception(stmt.exc, frame, stmt.line)
        raise PythonError(structs.replace(error, guards=(frame.guards, *error.guards[1:])))

    def exception(self, node: f.Expr | None, frame: Frame, line: int) -> Error:
        """The exception that ``raise node`` raises."""
        place = frame.place(line)
        if node is None:
            return frame.handling or builtin_error(
                "RuntimeError", "No active exception to reraise", place
            )
        exact = True
        if isinstance(node, f.Call):
            cls = self.evaluate(node.func, frame, line)
            message = self._message(node.args, frame, line, quoted=cls == Builtin("KeyError"))
            message, exact = (message, True) if isinstance(message, str) else (message.text, False)
        else:
            cls, message = self.evaluate(node, frame, line), ""
        cls = self.force(cls, frame)
        match cls:
            case Error() as error:
                return structs.replace(error, chain=(place,), guards=())
            case Builtin(name=name) if _is_exception(name):
                return structs.replace(builtin_error(name, message, place), exact=exact)
            case ClassValue() | Instance(cls=_) if derives(_class(cls), _ANY) is False:
                if not isinstance(cls, Instance) or makes_itself(cls.cls):
                    message = "exceptions must derive from BaseException"
                    return builtin_error("TypeError", message, place)
                return Error("Exception", message, ("?", "Exception", "BaseException"), (place,))
            case ClassValue() as own:
                return Error(own.facts.name, message, exception_bases(own), (place,), cls=own)
            case Instance(cls=own):
                return Error(own.facts.name, message, exception_bases(own), (place,), cls=own)
            case Foreign(name=name):
                return Error(
                    name.rpartition(".")[2], message, ("?", "Exception", "BaseException"), (place,)
                )
            case _:
                self.refuse(_raised, cls, (), frame, line)
                return Error("Exception", message, ("?", "Exception", "BaseException"), (place,))

    def _message(
        self, args: tuple[f.Expr, ...], frame: Frame, line: int, *, quoted: bool
    ) -> str | Opaque:
        """The text of an exception with these arguments; ``quoted`` as ``KeyError`` shows it.

        Where a part of it is not known, an :class:`Opaque` with the rest as its text.
        """
        place = frame.place(line)
        if len(args) != 1:
            values = [self.force(self.evaluate(node, frame, line), frame) for node in args]
            known = is_plain(values)
            return (str(tuple(values)) if values else "") if known else Opaque("a message", place)
        spelled = self.spelled(args[0], frame, line)
        if isinstance(spelled, Opaque):
            return structs.replace(spelled, text=spelled.text or "…")
        return repr(spelled) if quoted else str(spelled)

    def spelled(self, node: f.Expr, frame: Frame, line: int) -> Value:
        """The value of a message; with ``…`` for what is not known of one put together."""
        place = frame.place(line)
        match node:
            case f.FString(parts=parts):
                values = [self.spelled(part, frame, line) for part in parts]
            case f.BinOp(op="+", left=left, right=right):
                values = [self.spelled(one, frame, line) for one in (left, right)]
                if all(map(is_plain, values)):
                    return self.binary("+", values[0], values[1], frame, line)
            case _:
                value = self.force(self.evaluate(node, frame, line), frame)
                if isinstance(value, Error):
                    text = error_text(value)
                    return Opaque("a message", place, "…") if text is None else text
                known = is_plain(value)
                return value if known else Opaque("a message", place, getattr(value, "text", ""))
        if all(map(is_plain, values)):
            return "".join(map(str, values))
        text = "".join("…" if isinstance(v, Opaque) else str(v) for v in values)
        return Opaque("a message", place, text)

    def _assert(self, frame: Frame, stmt: f.Assert) -> None:
        truth = self.truth(self.evaluate(stmt.test, frame, stmt.line), frame)
        if truth is True:
            return
        place = frame.place(stmt.line)
        message = (
            self._message((stmt.message,), frame, stmt.line, quoted=False) if stmt.message else ""
        )
        text = message.text if isinstance(message, Opaque) else message
        error = builtin_error("AssertionError", text, place)
        if truth is False:
            raise PythonError(error)
        why = structs.replace(truth, where=place, text=stmt.text)
        self.open_condition(why, frame)
        if why.key:
            # Only where the process runs can fail it: what a tree says of itself, it has tried.
            frame.doubt(Doubt(error, why))

    def _try(self, frame: Frame, stmt: f.Try) -> None:
        handlers = [
            Handler(
                None
                if handler.types is None
                else partial(self.evaluate, handler.types, frame, handler.line),
                partial(self.run_handler, frame, handler),
                handler.line,
            )
            for handler in stmt.handlers
        ]
        guards = frame.guards
        try:
            probes = any(_names_attribute_error(handler.types) for handler in stmt.handlers)
            run = partial(self._body, frame, stmt, probes)
            self.handled(frame, stmt.line, run, handlers, partial(self.block, frame, stmt.orelse))
        except SIGNALS:
            frame.guards = guards
            self.block(frame, stmt.final)
            raise
        self.block(frame, stmt.final)

    def _body(self, frame: Frame, stmt: f.Try, probes: bool) -> None:
        frame.probing += probes
        try:
            self.block(frame, stmt.body)
        finally:
            frame.probing -= probes

    def handled(
        self,
        frame: Frame,
        line: int,
        body: Callable[[], None],
        handlers: list[Handler],
        orelse: Callable[[], object] = lambda: None,
    ) -> None:
        """Run a body; then the handler of what it raises, and of what it may have raised."""
        stop: Exception | None = None
        mark, guards = frame.doubts.mark(), frame.guards
        with frame.doubts.watched(partial(self._raised_here, frame, len(frame.caught_as))) as watch:
            try:
                self._watched(frame, body, bool(handlers))
            except SIGNALS as signal:
                stop = signal
        frame.guards = guards
        end = partial(self._after_body, frame, handlers, orelse, stop)
        caught = self._caught(frame, handlers, mark)
        if not frame.trying:
            self.pass_over_unusual(frame, mark)
        if not caught:
            return end()
        # What surely may happen comes before what code outside the tree is taken not to do.
        doubt = min((doubts[0] for _, doubts in caught), key=lambda one: one.assumed)
        goes_well, _ = self._doubt_guards(doubt, frame, line)
        branches: list[tuple[Guard, Callable[[], None]]] = [(goes_well, end)]
        for handler, doubts in caught:
            # What one condition makes raise is not dealt with where another does. What code outside
            # the tree is taken not to do needs no such care.
            by_guard: dict[tuple[str, bool], list[tuple[Guard, Doubt]]] = {}
            for one in doubts:
                guard = self._doubt_guards(one, frame, line)[1]
                asked = ("", False) if one.assumed else (guard.identity, guard.negated)
                by_guard.setdefault(asked, []).append((guard, one))
            for alike in by_guard.values():
                states = [(guard, watch.state(one)) for guard, one in alike]
                late = partial(self._late, frame, states, handler, alike[0][1].error)
                branches.append((alike[0][0], late))
        return self.fork(frame, doubt.condition, branches)

    def _raised_here(self, frame: Frame, outside: int) -> dict[str, Value]:
        """The namespace as a handler finds it that takes an exception raised now.

        ``outside`` is how many names are bound by ``except`` blocks that this handler is in itself.
        """
        names = Snapshot(frame.names, self.containers).copy()
        for name in frame.caught_as[outside:]:
            names.pop(name, None)
        return names

    def _late(self, frame: Frame, states: Ends, handler: Handler, error: Error) -> None:
        """Run a handler from where the exception would have been raised."""
        names = Snapshot(joined(states), self.containers).copy(self.open_guards)
        replace_names(frame.names, names)
        handler.run(error)

    def _caught(
        self, frame: Frame, handlers: list[Handler], mark: int
    ) -> list[tuple[Handler, list[Doubt]]]:
        """For each handler, the doubts that it would deal with; they are none any more."""
        caught: dict[int, list[Doubt]] = {}
        for doubt in frame.doubts.since(mark):
            index = self._taker(handlers, doubt.error, frame)
            if index is not None:
                caught.setdefault(index, []).append(doubt)
        for doubts in caught.values():
            frame.doubts.drop(doubts)
            doubts.sort(key=lambda one: one.assumed)
        return [(handlers[index], doubts) for index, doubts in sorted(caught.items())]

    @staticmethod
    def _doubt_guards(doubt: Doubt, frame: Frame, line: int) -> tuple[Guard, Guard]:
        """The guards of the branch that goes well, and of the one that raises."""
        why = doubt.condition
        return guard_pair(
            why.where or frame.place(line), why.text or why.reason, None, why.key, why.own
        )

    def _after_body(
        self,
        frame: Frame,
        handlers: list[Handler],
        orelse: Callable[[], object],
        stop: Exception | None,
    ) -> None:
        if stop is None:
            orelse()
        elif isinstance(stop, PythonError):
            self._handle(frame, handlers, stop)
        else:
            raise stop

    def _watched(self, frame: Frame, body: Callable[[], None], handled: bool = True) -> None:
        """Run a block whose exceptions decide how it goes on: nothing in it can be put off."""
        frame.trying += handled
        try:
            body()
        finally:
            frame.trying -= handled

    def _handle(self, frame: Frame, handlers: list[Handler], raised: PythonError) -> None:
        """Run the first handler that takes the exception, or let it pass."""
        for index, handler in enumerate(handlers):
            takes = self._takes(handler, raised.error, frame)
            if takes is True:
                return handler.run(raised.error)
            if isinstance(takes, Undecided):
                place = frame.place(handler.line)
                then, orelse = guard_pair(place, f"except takes {raised.error.type}")
                rest = partial(self._handle, frame, handlers[index + 1 :], raised)
                run = partial(handler.run, raised.error)
                return self.fork(frame, takes, [(then, run), (orelse, rest)])
        raise raised

    def run_handler(self, frame: Frame, handler: f.Handler, error: Error) -> None:
        """Run the body of an ``except`` clause for an exception."""
        outer, frame.handling = frame.handling, error
        inside = frame.caught_as
        if handler.name:
            frame.names[handler.name] = error
            frame.caught_as = (*inside, handler.name)
        if frame.trace is not None:
            frame.trace.append(Trace("branch", frame.place(handler.line), f"after {error.type}"))
        guards = frame.guards
        text = f"{error.type}: {error.message}{f'; {error.fact}' if error.fact else ''}"
        frame.guards = (*guards, Guard(frame.place(handler.line), f"except after {text}", True))
        try:
            self.block(frame, handler.body)
        finally:
            frame.handling, frame.guards, frame.caught_as = outer, guards, inside
            if handler.name:
                frame.names.pop(handler.name, None)

    def _taker(self, handlers: list[Handler], error: Error, frame: Frame) -> int | None:
        """The index of the first handler that takes the exception, or may take it."""
        for index, handler in enumerate(handlers):
            if self._takes(handler, error, frame) is not False:
                return index
        return None

    def _takes(self, handler: Handler, error: Error, frame: Frame) -> bool | Undecided:
        """Whether ``except`` takes the exception."""
        if handler.types is None:
            return True
        types = self.force(handler.types(), frame)
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
                if error.cls is not None:
                    derived = derives(error.cls, Builtin(wanted))
                    known = derived is True
            case ClassValue():
                # Another class of the same name is another class.
                known = error.cls is not None and types in linearise(error.cls)
            case _:
                return Undecided("which exceptions it takes is not known", place)
        if not known and "?" in error.bases:
            return Undecided(f"the bases of {error.type} are not known", place)
        return known


def _class(value: ClassValue | Instance) -> ClassValue:
    return value.cls if isinstance(value, Instance) else value


def _raised(value: Any) -> None:
    raise value


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


def _names_attribute_error(types: f.Expr | None) -> bool:
    """Whether a handler says that it is for a missing attribute, alone or among others."""
    match types:
        case f.Name(id="AttributeError"):
            return True
        case f.Sequence(items=items):
            return any(map(_names_attribute_error, items))
        case _:
            return False
