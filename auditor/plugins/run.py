"""The import run with plugins: what of them is not followed, and what a condition keeps them from.

The guard of a patch is looked at before its statement runs: where it asks about the package, and
its answer keeps a plugin from what stands below it, that is written down as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from auditor import facts as f
from auditor.evaluation.frame import Frame
from auditor.plugins.events import Event, Kind
from auditor.plugins.guarded import Effect, effects_in
from auditor.plugins.handed import Handed
from auditor.values import (
    UNBOUND,
    ClassValue,
    Function,
    ModuleValue,
    Opaque,
    Place,
    PythonError,
    Undecided,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_Keywords = tuple[tuple[str, Value], ...]
#: Statements that leave what stands below them in the same block.
_LEAVING = (f.Return, f.Raise, f.Jump)


class PluginRun(Handed):
    """One process with plugins on one platform."""

    def tree_call(
        self, function: Function, args: tuple[Value, ...], keywords: _Keywords, frame: Frame,
        place: Place, text: str,
    ) -> Value:  # fmt: skip
        """A call of the tree; a worker's calls with what is not known are not followed."""
        if self._making and self._unknown_given((*args, *(v for _, v in keywords))):
            self._not_followed(function, place)
            return Opaque(f"{function.facts.name}() of what is not known", place, text)
        return super().tree_call(function, args, keywords, frame, place, text)

    @staticmethod
    def _unknown_given(values: tuple[Value, ...]) -> bool:
        return any(isinstance(value, Opaque) for value in values)

    def _not_followed(self, function: Function, place: Place) -> None:
        """A call by which a worker hands on what is not known of its configuration."""
        plugin = self.plugin_of(function.module.name)
        if plugin and self._may_patch(function):
            name = f"{function.module.name}.{function.prefix}{function.facts.name}"
            event = Event(plugin, "worker", name, UNBOUND, place)
            self.record(event.open("it depends on a configuration of which nothing is known"))

    # --- calls that are not followed

    def lose_effects(self, function: Function, args: tuple[Value, ...], place: Place) -> None:
        """What a plugin's function does is not known where it is not followed."""
        plugin = self.plugin_of(function.module.name)
        if plugin and self._may_patch(function):
            name = f"{function.module.name}.{function.prefix}{function.facts.name}"
            event = Event(plugin, "call", name, UNBOUND, place)
            self.record(event.open("the call is not followed"))
        super().lose_effects(function, args, place)

    def _may_patch(self, function: Function) -> bool:
        """Whether the text of a function registers a model, or sets what may be the package's."""
        facts = self.function_facts(function)
        if isinstance(facts, f.Unparsed):
            return True
        return any(self._is_patch(one, function, facts) for one in effects_in(facts.body))

    def _is_patch(self, effect: Effect, function: Function, facts: f.FunctionFacts) -> bool:
        """Whether an effect is on the package: a registration, or a store into what is its own."""
        if effect.owner is None:
            return effect.method == self.rule.register
        root = effect.owner
        while isinstance(root, f.Attr):
            root = root.value
        if not isinstance(root, f.Name) or root.id in facts.params:
            return effect.name in self.probed
        if self._imports_of_package(facts.body, root.id):
            return True
        scopes = (*function.scopes, function.module.names)
        value = next((one[root.id] for one in scopes if root.id in one), UNBOUND)
        if isinstance(value, ClassValue | ModuleValue):
            owner = value.module.name if isinstance(value, ClassValue) else value.name
            return self.is_package(owner)
        return False

    def _imports_of_package(self, body: Iterable[f.Stmt], name: str) -> bool:
        """Whether a function imports a name from the package."""
        for stmt in body:
            match stmt:
                case f.ImportFrom(module=module, level=0, names=names):
                    if self.is_package(module) and any(bound == name for _, bound in names):
                        return True
                case f.Import(module=module, asname=asname):
                    if self.is_package(module) and name == (asname or module.partition(".")[0]):
                        return True
                case _:
                    if any(
                        self._imports_of_package(getattr(stmt, block, ()), name)
                        for block in ("body", "orelse", "handlers", "final")
                    ):
                        return True
        return False

    # --- guards that keep something from being done

    def block(self, frame: Frame, body: Iterable[f.Stmt]) -> None:
        """Run statements in order; conditions of plugins are looked at before."""
        if not self.plugin_of(frame.module.name):
            super().block(frame, body)
            return
        stmts = tuple(body)
        for at, stmt in enumerate(stmts):
            if isinstance(stmt, f.If):
                asked = self._asked_of_package(stmt.test, frame, stmt.line)
                if asked:
                    self._note_dead(asked, stmt, stmts[at + 1 :], frame)
            super().block(frame, (stmt,))

    def _asked_of_package(self, test: f.Expr, frame: Frame, line: int) -> str:
        """What of the package a condition asks, by ``hasattr`` or by what is registered."""
        for node in _conjuncts(test):
            match node:
                case f.Call(func=f.Name(id="hasattr" | "getattr"), args=(owner, named, *_)):
                    value, name = (self._quietly(one, frame, line) for one in (owner, named))
                    known = isinstance(value, ClassValue) and isinstance(name, str)
                    if known and self.is_package(value.module.name):
                        return f"{value.dotted}.{name}"
                case f.Compare(left=left, ops=(op,)) if op in ("in", "not in"):
                    value = self._quietly(left, frame, line)
                    if isinstance(value, str):
                        return value
        return ""

    def _quietly(self, node: f.Expr, frame: Frame, line: int) -> Value:
        """The value of a name or an attribute, asked beside the run."""
        if not isinstance(node, f.Name | f.Attr | f.Const | f.FString):
            return UNBOUND
        mark = frame.doubts.mark()
        try:
            return self.force(self.evaluate(node, frame, line), frame)
        except PythonError:
            # The statement itself meets the same exception.
            return UNBOUND
        finally:
            frame.doubts.drop(frame.doubts.since(mark))

    def _note_dead(self, asked: str, stmt: f.If, below: tuple[f.Stmt, ...], frame: Frame) -> None:
        """A condition about the package that keeps a plugin from doing what it is there for."""
        with self._unrecorded():
            mark = frame.doubts.mark()
            names = dict(frame.names)
            try:
                truth = self.truth(self.evaluate(stmt.test, frame, stmt.line), frame)
            except PythonError:
                return
            finally:
                frame.doubts.drop(frame.doubts.since(mark))
                frame.names.clear()
                frame.names.update(names)
        if isinstance(truth, Undecided):
            return
        for effect in effects_in(_skipped(stmt, below, truth=truth)):
            target = self._target_of(effect, frame, stmt.line)
            if target == asked or (not effect.owner and effect.name == asked):
                kind: Kind = "attribute" if effect.owner is not None else "architecture"
                answer = "true" if truth else "false"
                plugin = self.plugin_of(frame.module.name)
                where = frame.place(effect.line)
                reason = f"`{stmt.text}` is {answer} in this release"
                event = Event(plugin, kind, target or asked, UNBOUND, where, "dead", reason)
                self.record(replace(event, guards=frame.guards))

    def _target_of(self, effect: Effect, frame: Frame, line: int) -> str:
        if effect.owner is None:
            return ""
        owner = self._quietly(effect.owner, frame, line)
        name = effect.name if effect.by is None else self._quietly(effect.by, frame, line)
        return f"{owner.dotted}.{name}" if isinstance(owner, ClassValue) else ""


def _skipped(stmt: f.If, below: tuple[f.Stmt, ...], *, truth: bool) -> tuple[f.Stmt, ...]:
    """The statements that are not run: the other branch, or what leaving early leaves out."""
    other = stmt.orelse if truth else stmt.body
    taken = stmt.body if truth else stmt.orelse
    if not other and taken and isinstance(taken[-1], _LEAVING):
        return below
    return tuple(other)


def _conjuncts(test: f.Expr) -> Iterator[f.Expr]:
    match test:
        case f.Not(value=inner):
            yield from _conjuncts(inner)
        case f.BoolOp(values=values):
            for one in values:
                yield from _conjuncts(one)
        case f.Compare(
            left=f.Call() as left, ops=("is" | "is not",), rights=(f.Const(value=None),)
        ):
            yield left
        case _:
            yield test
