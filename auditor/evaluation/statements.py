"""Statements, run in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from auditor import facts as f
from auditor.evaluation.contexts import Contexts
from auditor.evaluation.frame import Frame, Jumping, Returning
from auditor.values import (
    Trace,
    Value,
)


class Statements(Contexts):
    """Runs blocks of statements in a frame."""

    def block(self, frame: Frame, body: Iterable[f.Stmt]) -> None:
        """Run statements in order.

        Raises:
            PythonError: what Python would raise.
            Returning, Jumping: on the way to the call or loop that they end.
        """
        for stmt in body:
            self.steps += 1
            _RUN[type(stmt)](self, frame, stmt)

    def _import(self, frame: Frame, stmt: f.Import) -> None:
        self.bind_import(stmt, frame)

    def _import_from(self, frame: Frame, stmt: f.ImportFrom) -> None:
        self.bind_import_from(stmt, frame)

    def _do(self, frame: Frame, stmt: f.Do) -> None:
        self.evaluate(stmt.value, frame, stmt.line)

    def _uses(self, frame: Frame, stmt: f.Uses) -> None:
        for dotted in stmt.names:
            self.use(frame, dotted, stmt.line)

    def _global(self, frame: Frame, stmt: f.Global) -> None:
        for name in stmt.names:
            frame.shared[name] = self._meant(frame, name, stmt.nonlocal_)

    @staticmethod
    def _meant(frame: Frame, name: str, nonlocal_: bool) -> dict[str, Value]:
        """The namespace in which ``global`` or ``nonlocal`` binds a name."""
        if nonlocal_:
            return next((scope for scope in frame.scopes[1:] if name in scope), frame.names)
        return frame.module.names

    def _return(self, frame: Frame, stmt: f.Return) -> None:
        raise Returning(self.returned(frame, stmt))

    def returned(self, frame: Frame, stmt: f.Return) -> Value:
        """What a ``return`` gives."""
        value = self.evaluate(stmt.value, frame, stmt.line) if stmt.value is not None else None
        if frame.trace is not None:
            frame.trace.append(Trace("getattr", frame.place(stmt.line), "returns it"))
        return value

    def _jump(self, frame: Frame, stmt: f.Jump) -> None:
        raise Jumping(stmt.kind)


_RUN: dict[type, Callable[..., None]] = {
    f.Import: Statements._import, f.ImportFrom: Statements._import_from, f.Func: Statements._func,
    f.Class: Statements._class, f.Assign: Statements._assign, f.AugAssign: Statements._aug_assign,
    f.Bind: Statements._bind_stmt, f.Delete: Statements._delete, f.Do: Statements._do,
    f.Uses: Statements._uses, f.If: Statements._if, f.Try: Statements._try,
    f.With: Statements._with, f.Loop: Statements._loop, f.Switch: Statements._switch,
    f.Raise: Statements._raise, f.Assert: Statements._assert, f.Return: Statements._return,
    f.Jump: Statements._jump, f.Global: Statements._global,
}  # fmt: skip
