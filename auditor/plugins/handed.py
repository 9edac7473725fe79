"""What code of plugins hands to code that is not followed, and stores into what is not known.

A library that is given a class of the package may set its attributes; one that is given a function
of the plugin may call it. Whether it does is not known, so the classes, or every row, stay open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from auditor import facts as f
from auditor.evaluation.frame import Frame
from auditor.evaluation.touches import nodes_of
from auditor.plugins.events import Event
from auditor.plugins.stores import Stores
from auditor.values import (
    UNBOUND,
    Builtin,
    ClassValue,
    Closure,
    Foreign,
    Function,
    Instance,
    ModuleValue,
    Opaque,
    Place,
    Value,
)

_Keywords = tuple[tuple[str, Value], ...]
#: Libraries that read what they are given, or make something new of it.
_READING = (
    "abc", "collections", "copy", "dataclasses", "enum", "inspect", "logging", "operator",
    "os", "platform", "re", "typing", "typing_extensions", "warnings",
    "functools.lru_cache", "functools.update_wrapper", "functools.wraps",
    "importlib.metadata", "importlib.util",
)  # fmt: skip
#: Builtin functions that call what they are given.
_CALLING = frozenset(("filter", "map", "max", "min", "sorted"))
#: Attributes by which a class has others.
_OF_MANY = frozenset(("__bases__", "__class__", "__getattr__", "__getattribute__"))
_SETS = frozenset(("setattr", "delattr"))
_MODULES = "sys.modules"
_FEW = 64


class Handed(Stores):
    """Writes down what is handed on, and stores of which it is not known into what."""

    # --- calls

    def _foreign_call(
        self, name: str, args: tuple[Value, ...], keywords: _Keywords, frame: Frame, line: int,
        text: str,
    ) -> Value:  # fmt: skip
        if name == f"{_MODULES}.update" and self.plugin_of(frame.module.name):
            return self._modules_updated(args, keywords, frame, line)
        result = super()._foreign_call(name, args, keywords, frame, line, text)
        if isinstance(result, Opaque) and not _only_reads(name):
            self._hand_on(name, (*args, *(value for _, value in keywords)), frame, line)
        return result

    def _modules_updated(
        self, args: tuple[Value, ...], keywords: _Keywords, frame: Frame, line: int
    ) -> Value:
        """``sys.modules.update(…)``."""
        first = self.force(args[0], frame) if args else {}
        if not isinstance(first, dict):
            self._open_call(_MODULES, frame, line, "which modules are replaced is not known")
            return None
        for key, value in {**first, **dict(keywords)}.items():
            self.store_item(Foreign(_MODULES), key, value, frame, line)
        return None

    def call(self, func: Value, call: f.Call, frame: Frame, line: int) -> Value:
        """A call; one of something unknown may do anything with what it is given."""
        func = self.force(func, frame)
        if func == Builtin("exec") and self.plugin_of(frame.module.name):
            self._open_call("exec", frame, line, "what it runs is not followed")
        given: list[Value] = []
        if self.plugin_of(frame.module.name) and self._is_unknown(func):
            given = [self._beside(node, frame, line) for node in call.args]
            given += [self._beside(node, frame, line) for _, node in call.keywords]
        result = super().call(func, call, frame, line)
        if given and isinstance(result, Opaque | list | None):
            self._hand_on(call.text.partition("(")[0], given, frame, line)
        return result

    def _decorated_function(self, function: Function, frame: Frame) -> Value:
        """A function after its decorators; one of a library is given what it is called with."""
        result = super()._decorated_function(function, frame)
        for node in function.decorators if self.plugin_of(frame.module.name) else ():
            if isinstance(node, f.Call) and not self._is_of_tree(node, frame):
                line = function.facts.start
                maker = self._beside(node.func, frame, line)
                if isinstance(maker, Foreign) and not _only_reads(maker.name):
                    nodes = (*node.args, *(value for _, value in node.keywords))
                    given = [self._beside(one, frame, line) for one in nodes]
                    self._hand_on(maker.name, (*given, function), frame, line)
        return result

    @staticmethod
    def _is_unknown(func: Value) -> bool:
        match func:
            case Opaque():
                return True
            case Builtin(name=name):
                return name in _CALLING
            case _:
                return False

    def _beside(self, node: f.Expr, frame: Frame, line: int) -> Value:
        """The value of an argument that needs no call, asked beside the run."""
        if isinstance(node, f.Name | f.Attr | f.Lambda | f.Const):
            mark = frame.doubts.mark()
            value = self.evaluate(node, frame, line)
            frame.doubts.drop(frame.doubts.since(mark))
            return self.force(value, frame)
        if isinstance(node, f.Sequence):
            return tuple(self._beside(one, frame, line) for one in node.items)
        return UNBOUND

    def _hand_on(self, name: str, given: Iterable[Value], frame: Frame, line: int) -> None:
        """Something outside the tree is given these."""
        if not self.plugin_of(frame.module.name):
            return
        parts = [part for value in given for part in self._parts(value, frame)]
        runs = any(isinstance(part, Function | Closure) for part in parts)
        for part in parts:
            match part:
                case ClassValue() if self.is_package(part.module.name):
                    self._open_object(part, part.dotted, name, frame, line)
                case ModuleValue() if self.is_package(part.name):
                    self._open_object(part, part.name, name, frame, line)
                case Function(bound=bound) if self._is_registry(bound):
                    self._open_call(name, frame, line, "it may register any model")
                case Function():
                    self.lose_effects(part, (), frame.place(line))
                case Closure(facts=facts) if self._sets(facts.body):
                    self._open_call(name, frame, line, "it may call what it is given")
                case Instance() if part is self.registry_object():
                    self._open_call(name, frame, line, "it may register any model")
                case str() if "." in part and self.is_package(part) and (runs or "patch" in name):
                    self._open_call(name, frame, line, f"it may replace something of {part}")
                case _:
                    continue

    def _parts(self, value: Value, frame: Frame) -> Iterator[Value]:
        for one in self._options(self.force(value, frame)):
            match one:
                case list() | tuple() | set():
                    for part in list(one)[:_FEW]:
                        yield from self._options(self.force(part, frame))
                case dict():
                    for part in list(one.values())[:_FEW]:
                        yield from self._options(self.force(part, frame))
                case _:
                    yield one

    def _sets(self, body: f.Expr) -> bool:
        """Whether an expression registers a model or sets an attribute."""
        for node in nodes_of((body,)):
            match node:
                case f.Call(func=f.Name(id=name)) if name in _SETS:
                    return True
                case f.Call(func=f.Attr(attr=name)) if name == self.rule.register:
                    return True
                case _:
                    continue
        return False

    def _open_call(self, name: str, frame: Frame, line: int, reason: str) -> None:
        self.record(self._event("call", name, UNBOUND, frame, line).open(reason))

    def _open_object(
        self, owner: ClassValue | ModuleValue, dotted: str, name: str, frame: Frame, line: int
    ) -> None:  # fmt: skip
        reason = f"{name}() is given it, and may set any of its attributes"
        event = self._event("attribute", f"{dotted}.?", UNBOUND, frame, line).open(reason)
        self.record(replace(event, owner=owner if isinstance(owner, ClassValue) else None))
        owner.wild = owner.wild or Opaque(reason, frame.place(line))

    # --- generators and coroutines

    def _run_body(
        self, function: Function, args: tuple[Value, ...], keywords: _Keywords, frame: Frame,
        place: Place, text: str, trace: list | None, effects: bool,  # type: ignore[type-arg]
    ) -> Value:  # fmt: skip
        facts = self.function_facts(function)
        if isinstance(facts, f.FunctionFacts) and facts.generator:
            self.lose_effects(function, args, place)
        return super()._run_body(function, args, keywords, frame, place, text, trace, effects)

    # --- stores

    def store_attribute(
        self, owner: Value, name: str, value: Value, frame: Frame, line: int
    ) -> None:
        """``owner.name = value``; what a row asks may be set on an object that is not known."""
        owner = self.force(owner, frame)
        super().store_attribute(owner, name, value, frame, line)
        if not self.plugin_of(frame.module.name) or self._making:
            return
        for one in self._options(owner):
            if isinstance(one, Opaque) and name in self.probed:
                event = self._event("attribute", f"?.{name}", value, frame, line)
                self.record(event.open("whose attribute is set is not known"))
            elif isinstance(one, ClassValue) and name in _OF_MANY:
                one.wild = one.wild or Opaque(f"its {name} is set", frame.place(line))

    def delete_attribute(self, owner: Value, attr: str, frame: Frame, line: int) -> None:
        """``del owner.attr``."""
        owner = self.force(owner, frame)
        super().delete_attribute(owner, attr, frame, line)
        if not self.plugin_of(frame.module.name):
            return
        if isinstance(owner, ClassValue) and self.is_package(owner.module.name):
            event = self._event("attribute", f"{owner.dotted}.{attr}", UNBOUND, frame, line)
            self.record(replace(event, owner=owner, reason="it is deleted"))
        elif isinstance(owner, ModuleValue) and self.is_package(owner.name):
            event = self._event("attribute", f"{owner.name}.{attr}", UNBOUND, frame, line)
            self.record(replace(event, reason="it is deleted"))

    def store_item(self, owner: Value, index: Value, value: Value, frame: Frame, line: int) -> None:
        """``owner[index] = value``; a module by a name that is not known may be any."""
        owner, index = self.force(owner, frame), self.force(index, frame)
        if owner == Foreign(_MODULES) and not isinstance(index, str):
            for one in self._options(index):
                if not isinstance(one, str) and self.plugin_of(frame.module.name):
                    self._open_call(_MODULES, frame, line, "which module is replaced is not known")
        super().store_item(owner, index, value, frame, line)


def _only_reads(name: str) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in _READING)


def is_of_any(event: Event) -> bool:
    """Whether an event is about an attribute of an object that is not known."""
    return event.kind == "attribute" and event.target.startswith("?.")
