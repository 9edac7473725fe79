"""What code of plugins does to the package: registrations, stores, modules, hooks on importing.

A call of the method that registers a model is taken for what it does, since its body asks the
framework's own classes. Everything else (attributes, containers, ``sys.modules``) has its meaning
in the run already; here it is written down with its place and conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from auditor import facts as f
from auditor.classes import Found, Missing, linearise, lookup
from auditor.evaluation.frame import Frame, is_plain
from auditor.evaluation.machine import MAX_OWN_FORKS_ASKED
from auditor.plugins.events import Event
from auditor.plugins.record import Recording
from auditor.plugins.values import member_of_enum
from auditor.values import (
    UNBOUND,
    ClassValue,
    Doubt,
    Error,
    Foreign,
    Function,
    Instance,
    ModuleValue,
    Opaque,
    Place,
    PythonError,
    Undecided,
    Value,
    builtin_error,
)

_Keywords = tuple[tuple[str, Value], ...]
#: Where Python looks for an importer: whoever changes these imports as it likes.
_HOOKS = ("sys.meta_path", "sys.path_hooks", "sys.path")


class Stores(Recording):
    """Writes down what plugins do."""

    # --- registering a model

    def registry_object(self) -> Value:
        """The object that models are registered with, once its module is loaded."""
        module_name, _, name = self.rule.object.rpartition(".")
        module = self.loaded(module_name)
        return module.names.get(name, UNBOUND) if isinstance(module, ModuleValue) else UNBOUND

    def tree_call(
        self, function: Function, args: tuple[Value, ...], keywords: _Keywords, frame: Frame,
        place: Place, text: str,
    ) -> Value:  # fmt: skip
        """A call of the tree; one that registers a model is taken for what it does."""
        if function.facts.name == self.rule.register and self._is_registry(function.bound):
            self._register(function, args, keywords, frame, place)
            return None
        return super().tree_call(function, args, keywords, frame, place, text)

    def _is_registry(self, bound: tuple[Value, ...]) -> bool:
        return bool(bound) and bound[0] is self.registry_object()

    def _register(
        self, function: Function, args: tuple[Value, ...], keywords: _Keywords, frame: Frame,
        place: Place,
    ) -> None:  # fmt: skip
        facts = self.function_facts(function)
        params = facts.params[1:] if isinstance(facts, f.FunctionFacts) else ()
        given = {**dict(zip(params, args, strict=False)), **dict(keywords)}
        values = [self.force(given.get(name, UNBOUND), frame) for name in params[:2]]
        names, cls = (*values, UNBOUND, UNBOUND)[:2]
        if isinstance(cls, str) and cls.count(":") != 1:
            message = "Expected a string in the format `<module>:<class>`"
            raise PythonError(builtin_error("ValueError", message, place))
        if is_plain(names) and not isinstance(names, str):
            message = f"`model_arch` should be a string, not a {type(names)}"
            raise PythonError(builtin_error("TypeError", message, place))
        for name in self._options(names):
            if isinstance(name, str):
                event = self._event("architecture", name, cls, frame, place.line)
                if not isinstance(cls, str | ClassValue):
                    reason = cls.reason if isinstance(cls, Opaque) else "it is no class"
                    event = event.open(f"the class is not known: {reason}")
                self.record(event if name == names else event.open("one of several names"))
            else:
                event = self._event("architecture", "", cls, frame, place.line)
                self.record(event.open("the architecture is not known"))
        models = self._models()
        if isinstance(names, str) and isinstance(models, dict) and not self.open_guards:
            models[names] = cls

    def _models(self) -> Value:
        """What is registered: the argument that the object was made with."""
        made = self.registry_object()
        return made.args[0] if isinstance(made, Instance) and made.args else UNBOUND

    def _instance_attribute(self, owner: Instance, name: str, place: Place, frame: Frame) -> Value:
        if owner is self.registry_object() and name == self.rule.models:
            models = self.force(self._models(), self._outer())
            if isinstance(models, dict):
                self.track(models, f"{self.rule.object}.{self.rule.models}")
                return models
        if self.asking is not None and owner.cls is self.asking:
            found = lookup(owner.cls, name)
            if isinstance(found, Found):
                value = member_of_enum(self, found.owner, name)
                if value is not UNBOUND:
                    return value
        return super()._instance_attribute(owner, name, place, frame)

    def _class_attribute(self, cls: ClassValue, name: str, place: Place, frame: Frame) -> Value:
        if name.startswith("__") and isinstance(lookup(cls, name), Missing):
            decorated = any(one.decorators for one in linearise(cls) if isinstance(one, ClassValue))
            if decorated:
                # A decorator such as ``dataclass`` leaves what it knows of the class on it.
                return Opaque(f"attribute {name} of {cls.qualname}", place, own=True)
        if self.asking is not None and any(
            isinstance(base, Foreign) and base.name.startswith("enum.") for base in linearise(cls)
        ):
            return ("member", cls.dotted, name)
        if self.asking is not None and cls is self.asking:
            found = lookup(cls, name)
            value = member_of_enum(self, found.owner, name) if isinstance(found, Found) else UNBOUND
            if value is not UNBOUND:
                return value
        return super()._class_attribute(cls, name, place, frame)

    def _probe(
        self, owner: Value, name: str, call: f.Call, frame: Frame, line: int,
        found: Callable[[Value], Value], missing: Callable[[], Value],
    ) -> Value:  # fmt: skip
        """``hasattr`` of a class, as the audit itself answers it for a row.

        A base outside the tree has what every module has, and is taken to have nothing else.
        """
        owner = self.force(owner, frame)
        asked = isinstance(owner, ClassValue) and not name.startswith("__")
        if asked and self.plugin_of(frame.module.name):
            has = lookup(owner, name)
            every = name in self._of_every_module
            if isinstance(has, Missing) and not (has.foreign and every):
                return missing()
            method = self.method(owner, name) if isinstance(has, Found) else None
            if isinstance(has, Found) and method is not None and name not in has.owner.extra:
                return found(method)
            if isinstance(has, Found):
                return found(self._class_attribute(owner, name, frame.place(line), frame))
        return super()._probe(owner, name, call, frame, line, found, missing)

    def _looks_into_unknown(self, function: Function, given: tuple[Value, ...]) -> bool:
        """While a platform is asked, its attributes are known, and so its methods are run."""
        if self.asking is not None or self._is_registry(function.bound):
            return False
        return super()._looks_into_unknown(function, given)

    # --- containers of the package

    def track(self, container: Value, name: str) -> None:
        """Write down from now on what is done to a container."""
        self.tracked.setdefault(id(container), (container, name))

    def _stored(self, owner: Value, key: Value, value: Value, frame: Frame, line: int) -> bool:
        """Write down a store into a tracked container; whether it is one."""
        if id(owner) not in self.tracked or not self.plugin_of(frame.module.name):
            return False
        name = self.tracked[id(owner)][1]
        for one in self._options(key):
            text = one if isinstance(one, str) else ""
            event = replace(self._event("table", text, value, frame, line), table=name)
            if not text:
                event = event.open("the key is not known")
            elif one is not key:
                event = event.open("one of several keys")
            self.record(event)
        return True

    def store_item(self, owner: Value, index: Value, value: Value, frame: Frame, line: int) -> None:
        """``owner[index] = value``."""
        owner, index = self.force(owner, frame), self.force(index, frame)
        value = self.force(value, frame)
        if self._stored(owner, index, value, frame, line):
            # On a branch that may not run, the record alone says so; the table stays readable.
            if isinstance(index, str) and not self.open_guards:
                owner[index] = value
            return
        super().store_item(owner, index, value, frame, line)

    def delete_item(self, owner: Value, index: Value, frame: Frame, line: int) -> None:
        """``del owner[index]``."""
        if self._stored(owner, index, UNBOUND, frame, line):
            if isinstance(index, str) and not self.open_guards:
                owner.pop(index, None)
            return
        super().delete_item(owner, index, frame, line)

    def _mutate(
        self, owner: Value, name: str, values: list[Value], keywords: dict[str, Value],
        frame: Frame, line: int,
    ) -> Value:  # fmt: skip
        tracked = id(owner) in self.tracked and self.plugin_of(frame.module.name)
        if not tracked or not isinstance(owner, dict):
            return super()._mutate(owner, name, values, keywords, frame, line)
        values = [self.force(value, frame) for value in values]
        first = values[0] if values else {}
        if name == "update" and isinstance(first, list | tuple):
            pairs = [self.force(one, frame) for one in first]
            if all(isinstance(one, tuple | list) and len(one) == 2 for one in pairs):
                first = {self.force(key, frame): value for key, value in pairs}
        match name:
            case "update" if isinstance(first, dict):
                for key, value in {**first, **keywords}.items():
                    self.store_item(owner, key, value, frame, line)
                return None
            case "setdefault":
                if first in owner and isinstance(first, str):
                    table = self.tracked[id(owner)][1]
                    event = replace(
                        self._event("table", first, values[1:] and values[1], frame, line),
                        table=table, outcome="dead", reason=f"{table} has it already",
                    )  # fmt: skip
                    self.record(event)
                    return owner[first]
                value = values[1] if len(values) > 1 else None
                self.store_item(owner, first, value, frame, line)
                return value
            case "pop" if isinstance(first, str):
                value = owner.get(first, values[1] if len(values) > 1 else None)
                self.delete_item(owner, first, frame, line)
                return value
            case _:
                self._stored(owner, Opaque(f".{name}() of something unknown"), UNBOUND, frame, line)
                return Opaque(f"the result of .{name}()", frame.place(line))

    def binary(
        self, op: str, left: Value, right: Value, frame: Frame, line: int,
        table: Mapping[str, Callable[[Value, Value], Value]] | None = None,
    ) -> Value:  # fmt: skip
        """``left op right``; ``|=`` on a tracked table is an update."""
        if table is None:
            return super().binary(op, left, right, frame, line)
        left, right = self.force(left, frame), self.force(right, frame)
        if op == "|" and id(left) in self.tracked and isinstance(right, dict):
            self._mutate(left, "update", [right], {}, frame, line)
            return left
        return super().binary(op, left, right, frame, line, table)

    # --- attributes and modules of the package

    def store_attribute(
        self, owner: Value, name: str, value: Value, frame: Frame, line: int
    ) -> None:
        """``owner.name = value``."""
        owner = self.force(owner, frame)
        if self.plugin_of(frame.module.name):
            self._attribute_set(owner, name, value, frame, line)
        super().store_attribute(owner, name, value, frame, line)

    def _attribute_set(
        self, owner: Value, name: str, value: Value, frame: Frame, line: int
    ) -> None:
        for one in self._options(owner):
            if isinstance(one, ClassValue) and self.is_package(one.module.name):
                target = f"{one.dotted}.{name}"
                event = self._event("attribute", target, value, frame, line)
                event = replace(event, owner=one)
                if one.dotted == self._config:
                    event = replace(event, kind="config")
            elif isinstance(one, ModuleValue) and self.is_package(one.name):
                if value is one.names.get(name, UNBOUND):
                    continue
                if self._rebound(one, name, value, frame, line):
                    continue
                event = self._event("attribute", f"{one.name}.{name}", value, frame, line)
                replaced = one.names.get(name, UNBOUND)
                if isinstance(value, ModuleValue) and isinstance(replaced, ModuleValue):
                    event = replace(event, kind="module", target=replaced.name)
            elif one == Foreign("builtins") and name == "__import__":
                event = self._hooked(value, frame, line)
            else:
                continue
            self.record(event if one is owner else event.open("one of several objects"))

    def _rebound(
        self, module: ModuleValue, name: str, value: Value, frame: Frame, line: int
    ) -> bool:
        """Whether a tracked table is replaced by one that can be read: its entries are stored."""
        before, value = module.names.get(name, UNBOUND), self.force(value, frame)
        if id(before) not in self.tracked or not isinstance(before, dict | Opaque):
            return False
        if not isinstance(value, dict) or not isinstance(before, dict):
            return False
        table = self.tracked[id(before)][1]
        self.track(value, table)
        for key in dict.fromkeys((*before, *value)):
            new = value.get(key, UNBOUND)
            if new is not before.get(key, UNBOUND) and isinstance(key, str):
                self.record(replace(self._event("table", key, new, frame, line), table=table))
        return True

    def _any_attribute(self, call: f.Call, frame: Frame, line: int) -> None:
        """An attribute by a name that is not known is set."""
        super()._any_attribute(call, frame, line)
        owner = self.force(self.evaluate(call.args[0], frame, line), frame) if call.args else None
        name = getattr(owner, "dotted", getattr(owner, "name", ""))
        if self.plugin_of(frame.module.name) and isinstance(owner, ModuleValue | ClassValue):
            event = self._event("attribute", f"{name}.?", UNBOUND, frame, line)
            self.record(event.open("the name of the attribute is not known"))

    def put_in(self, name: str, value: Value, place: Place) -> None:
        """Set an entry of ``sys.modules``."""
        path = place.path.partition("/")[0].removesuffix(".py")
        if path in self.owners and self.is_package(name) and value is not self.loaded(name):
            self.record(Event(self.owners[path], "module", name, value, place))
        super().put_in(name, value, place)

    # --- hooks on importing

    def _hooked(self, value: Value, frame: Frame, line: int) -> Event:
        """What is put in the place of ``builtins.__import__``; a plain function is followed."""
        value = self.force(value, frame)
        event = self._event("hook", "builtins.__import__", value, frame, line)
        if isinstance(value, Function) and not value.decorators and not self.open_guards:
            self._hook = value
            return replace(event, reason="every later import statement goes through it")
        return event.open("every later import goes through it")

    def bind_import(self, stmt: f.Import, frame: Frame) -> None:
        """An ``import`` statement, which goes through the hook."""
        self._through_hook(stmt.module, 0, frame, stmt.line)
        super().bind_import(stmt, frame)

    def bind_import_from(self, stmt: f.ImportFrom, frame: Frame) -> None:
        """A ``from`` statement, which goes through the hook."""
        self._through_hook(stmt.module, stmt.level, frame, stmt.line)
        super().bind_import_from(stmt, frame)

    def _through_hook(self, name: str, level: int, frame: Frame, line: int) -> None:
        """Call the hook for a module of the package that is not loaded; it may load another."""
        hook = self._hook
        if hook is None or level or not self.is_package(name) or self.loaded(name) is not UNBOUND:
            return
        place = frame.place(line)
        outer = self._outer()
        outer.doubts = frame.doubts
        before = Place(hook.module.path, hook.facts.line)
        value = self.invoke(hook, (name,), (), outer, place, name, forks=MAX_OWN_FORKS_ASKED)
        if isinstance(value, Opaque) and value.own:
            reason = f"what the import hook of {hook.module.name} does for {name} is not followed"
            why = Undecided(reason, before, name)
            self.open_condition(why, frame)
            bases = ("?", "Exception", "BaseException")
            frame.doubt(Doubt(Error("Exception", "…", bases, (place,)), why))
        elif isinstance(value, ModuleValue) and self.loaded(name) is UNBOUND:
            self.put_in(name, value, before)

    def call(self, func: Value, call: f.Call, frame: Frame, line: int) -> Value:
        """A call; one that changes where Python looks for modules is written down."""
        if isinstance(func, Foreign) and self.plugin_of(frame.module.name):
            place, _, method = func.name.rpartition(".")
            if place in _HOOKS[:2] and method in ("insert", "append", "extend"):
                event = self._event("hook", place, UNBOUND, frame, line)
                self.record(event.open("every later import goes through it"))
        return super().call(func, call, frame, line)
