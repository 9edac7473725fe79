"""``with``: what its context managers do, above all with the exceptions of the body.

``contextlib.suppress``, generator functions under ``contextlib.contextmanager`` and classes of the
tree with ``__exit__`` are followed. A context manager from outside the tree is taken to let
exceptions pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from auditor import facts as f
from auditor.evaluation.exceptions import Exceptions, Handler
from auditor.evaluation.frame import SIGNALS, Frame, UnfollowedError, guard_pair
from auditor.evaluation.machine import MAX_OWN_FORKS
from auditor.values import (
    Builtin,
    Context,
    Error,
    Function,
    Instance,
    Opaque,
    PythonError,
    Suppress,
    Undecided,
    Value,
)

Block = Callable[[], None]


class _Parts(msgspec.Struct, frozen=True):
    """A generator function cut at its one ``yield``, inside at most one ``try``."""

    before: tuple[f.Stmt, ...]
    handlers: tuple[f.Handler, ...]
    after: tuple[f.Stmt, ...]
    final: tuple[f.Stmt, ...]
    rest: tuple[f.Stmt, ...]


class Contexts(Exceptions):
    """Runs ``with`` statements."""

    def _with(self, frame: Frame, stmt: f.With) -> None:
        self._entered(frame, stmt, 0)

    def _entered(self, frame: Frame, stmt: f.With, index: int) -> None:
        """Enter the managers from ``index`` on, one inside the other, and run the body."""
        if index == len(stmt.items):
            for name in stmt.names:
                value = Opaque("bound by with", frame.place(stmt.line))
                self.bind(frame, name, value, stmt, stmt.line)
            self.block(frame, stmt.body)
            return
        manager = self.force(self.evaluate(stmt.items[index], frame, stmt.line), frame)
        body = partial(self._entered, frame, stmt, index + 1)
        if isinstance(manager, Instance):
            self.refuse(_enter, manager, ("__enter__",), frame, stmt.line)
            self.refuse(_no_exit, manager, ("__exit__",), frame, stmt.line)
        match manager:
            case Suppress(types=types):
                handler = Handler(lambda: types, lambda error: None, stmt.line)
                self.handled(frame, stmt.line, body, [handler])
            case Context():
                self._in_generator(frame, stmt, manager, body)
            case Instance() if self.method(manager.cls, "__exit__") is not None:
                self._in_instance(frame, stmt, manager, body)
            case _:
                self.refuse(_enter, manager, ("__enter__", "__exit__"), frame, stmt.line)
                body()

    # --- @contextmanager

    def _in_generator(self, frame: Frame, stmt: f.With, manager: Context, body: Block) -> None:
        """Run the generator up to its ``yield``, then the body, then the rest of it."""
        facts = self.function_facts(manager.function)
        place = frame.place(stmt.line)
        given = (*manager.function.bound, *manager.args)
        parts = _parts(facts.body) if isinstance(facts, f.FunctionFacts) else None
        if parts is None or isinstance(facts, f.Unparsed):
            self.lose_effects(manager.function, given, place)
            unknown = Opaque("a context manager that is not followed", place)
            handler = Handler(lambda: unknown, lambda error: None, stmt.line)
            self.handled(frame, stmt.line, body, [handler])
            return
        scope = self.arguments(
            manager.function, facts, manager.args, manager.keywords, frame, place
        )
        inner = self.call_frame(manager.function, scope, frame)

        def own(run: Callable[..., None], *asked: object) -> None:
            """Run a part of the generator: in a module, it may ask as much as a call may."""
            if not frame.is_call:
                self.own_forks = MAX_OWN_FORKS
            try:
                run(*asked)
            except UnfollowedError:
                if frame.is_call:
                    raise
                self.lose_effects(manager.function, given, place)

        own(self.block, inner, parts.before)
        handlers = [
            Handler(
                None if one.types is None else partial(self.evaluate, one.types, inner, one.line),
                partial(own, partial(self.run_handler, inner, one)),
                one.line,
            )
            for one in parts.handlers
        ]
        try:
            after = partial(own, self.block, inner, parts.after)
            self.handled(frame, stmt.line, body, handlers, after)
        except SIGNALS:
            own(self.block, inner, parts.final)
            raise
        own(self.block, inner, (*parts.final, *parts.rest))

    # --- classes with __exit__

    def _in_instance(self, frame: Frame, stmt: f.With, manager: Instance, body: Block) -> None:
        enter = self.method(manager.cls, "__enter__")
        if enter is not None:
            self._run_method(enter, (manager,), frame, stmt)
        leave = self.method(manager.cls, "__exit__")
        assert leave is not None
        handlers = []
        if self._may_swallow(leave):
            run = partial(self._leaving, frame, stmt, manager, leave)
            handlers = [Handler(None, run, stmt.line)]
        nothing = (manager, None, None, None)
        done = partial(self._run_method, leave, nothing, frame, stmt)
        self.handled(frame, stmt.line, body, handlers, done)

    def _run_method(
        self, method: Function, args: tuple[Value, ...], frame: Frame, stmt: f.With
    ) -> Value:
        """Call ``__enter__`` or ``__exit__``."""
        place = frame.place(stmt.line)
        return self.force(self.invoke(method, args, (), frame, place, stmt_text(stmt)), frame)

    def _may_swallow(self, leave: Function) -> bool:
        """Whether ``__exit__`` can return something true."""
        facts = self.function_facts(leave)
        if not isinstance(facts, f.FunctionFacts):
            return True
        nothing = (None, f.Const(None), f.Const(False))
        return any(stmt.value not in nothing for stmt in returns(facts.body))

    def _leaving(
        self, frame: Frame, stmt: f.With, manager: Instance, leave: Function, error: Error
    ) -> None:
        """The body has raised: ``__exit__`` says whether that is the end of it."""
        kind: Value = error.cls or Builtin(error.type)
        if "?" in error.bases:
            kind = Opaque("an exception class", frame.place(stmt.line))
        trace = Opaque("a traceback", frame.place(stmt.line))
        answer = self._run_method(leave, (manager, kind, error, trace), frame, stmt)
        swallows = self.truth(answer, frame)
        if swallows is True:
            return

        def passes() -> None:
            raise PythonError(error)

        if isinstance(swallows, Undecided):
            place = frame.place(stmt.line)
            then, orelse = guard_pair(place, swallows.text or swallows.reason, None, swallows.key)
            self.fork(frame, swallows, [(then, lambda: None), (orelse, passes)])
        else:
            passes()


def _enter(manager: Any) -> None:
    with manager:
        pass


def _no_exit(manager: Any) -> None:
    _enter(type(type(manager).__name__, (), {"__enter__": lambda _: None})())


def stmt_text(stmt: f.With) -> str:
    """A text for the calls that ``with`` makes."""
    return f"with at line {stmt.line}"


def returns(body: tuple[f.Stmt, ...]) -> list[f.Return]:
    """The ``return`` statements of a function."""
    found: list[f.Return] = []
    for stmt in body:
        if isinstance(stmt, f.Return):
            found.append(stmt)
        if not isinstance(stmt, f.Func | f.Class):
            for block in ("body", "orelse", "final"):
                found.extend(returns(getattr(stmt, block, ())))
            for part in (*getattr(stmt, "handlers", ()),):
                found.extend(returns(part.body))
            for inner in getattr(stmt, "bodies", ()):
                found.extend(returns(inner))
    return found


def _yields(stmt: f.Stmt) -> bool:
    value = stmt.value if isinstance(stmt, f.Do | f.Assign) else None
    return isinstance(value, f.Unknown) and value.text.startswith("yield")


def _parts(body: tuple[f.Stmt, ...]) -> _Parts | None:
    """A body cut at its ``yield``, or None where that stands elsewhere.

    Nor is one followed that ends early: its ``return`` is no end of who uses it.
    """
    if body and isinstance(body[-1], f.Return) and body[-1].value in (None, f.Const(None)):
        body = body[:-1]
    if returns(body):
        return None
    for index, stmt in enumerate(body):
        before, rest = body[:index], body[index + 1 :]
        if _yields(stmt):
            return _Parts(before, (), rest, (), ())
        if isinstance(stmt, f.Try):
            for inner, part in enumerate(stmt.body):
                if _yields(part):
                    before = (*before, *stmt.body[:inner])
                    after = (*stmt.body[inner + 1 :], *stmt.orelse)
                    return _Parts(before, stmt.handlers, after, stmt.final, rest)
    return None
