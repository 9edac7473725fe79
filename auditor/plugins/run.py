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
from auditor.plugins.stores import Stores
from auditor.values import (
    UNBOUND,
    ClassValue,
    Function,
    ModuleValue,
    Opaque,
    Place,
    PythonError,
    Trace,
    Undecided,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_Keywords = tuple[tuple[str, Value], ...]
#: Where Python looks for an importer: whoever changes these imports as it likes.
_PARTS = ("public", "base_version", "release", "major", "minor", "micro", "is_devrelease")
_HOOKS = ("sys.meta_path", "sys.path_hooks", "sys.path")


class PluginRun(Stores):
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
            return False
        if self._imports_of_package(facts.body, root.id):
            return True
        value = function.module.names.get(root.id, UNBOUND)
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

    def _run_body(
        self, function: Function, args: tuple[Value, ...], keywords: _Keywords, frame: Frame,
        place: Place, text: str, trace: list[Trace] | None, effects: bool,
    ) -> Value:  # fmt: skip
        facts = self.function_facts(function)
        self._bodies.append(facts.body if isinstance(facts, f.FunctionFacts) else ())
        try:
            return super()._run_body(function, args, keywords, frame, place, text, trace, effects)
        finally:
            self._bodies.pop()

    def block(self, frame: Frame, body: Iterable[f.Stmt]) -> None:
        """Run statements in order; conditions of plugins are looked at before."""
        if not self.plugin_of(frame.module.name):
            super().block(frame, body)
            return
        for stmt in body:
            if isinstance(stmt, f.If):
                asked = self._asked_of_package(stmt.test, frame, stmt.line)
                if asked:
                    self._note_dead(asked, stmt, frame)
            super().block(frame, (stmt,))

    def _asked_of_package(self, test: f.Expr, frame: Frame, line: int) -> str:
        """What of the package a condition asks, by ``hasattr`` or by what is registered."""
        for node in _conjuncts(test):
            match node:
                case f.Call(func=f.Name(id="hasattr"), args=(owner, f.Const(value=str(name)))):
                    value = self._quietly(owner, frame, line)
                    if isinstance(value, ClassValue) and self.is_package(value.module.name):
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

    def _note_dead(self, asked: str, stmt: f.If, frame: Frame) -> None:
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
        skipped = self._skipped(stmt, truth=truth)
        for effect in effects_in(skipped):
            target = self._target_of(effect.owner, effect.name, frame, stmt.line)
            if target == asked or (not effect.owner and effect.name == asked):
                kind: Kind = "attribute" if effect.owner is not None else "architecture"
                answer = "true" if truth else "false"
                plugin = self.plugin_of(frame.module.name)
                where = frame.place(effect.line)
                reason = f"`{stmt.text}` is {answer} in this release"
                event = Event(plugin, kind, target or asked, UNBOUND, where, "dead", reason)
                self.record(replace(event, guards=frame.guards))

    def _target_of(self, owner: f.Expr | None, name: str, frame: Frame, line: int) -> str:
        value = self._quietly(owner, frame, line) if owner is not None else UNBOUND
        return f"{value.dotted}.{name}" if isinstance(value, ClassValue) else ""

    def _skipped(self, stmt: f.If, *, truth: bool) -> tuple[f.Stmt, ...]:
        """The statements that are not run: the other branch, or what an early return leaves."""
        other = stmt.orelse if truth else stmt.body
        taken = stmt.body if truth else stmt.orelse
        if not other and taken and isinstance(taken[-1], f.Return) and self._bodies:
            body = self._bodies[-1]
            return next((body[at + 1 :] for at, one in enumerate(body) if one is stmt), ())
        return tuple(other)


def _conjuncts(test: f.Expr) -> Iterator[f.Expr]:
    match test:
        case f.Not(value=inner):
            yield from _conjuncts(inner)
        case f.BoolOp(values=values):
            for one in values:
                yield from _conjuncts(one)
        case _:
            yield test
