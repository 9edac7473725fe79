"""The import run with plugins: the same process, and a record of what plugins do to the package.

A call of the method that registers a model is taken for what it does, since its body asks the
framework's own classes. Everything else that a plugin does (attributes, containers,
``sys.modules``) has its meaning already; here it is written down with its place and conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from packaging.utils import canonicalize_name

from auditor import facts as f
from auditor.classes import Found, Missing, linearise, lookup
from auditor.evaluation.frame import Frame, join
from auditor.evaluation.import_statements import Conventions, Program
from auditor.evaluation.machine import MAX_OWN_FORKS_ASKED
from auditor.imports import ImportRun
from auditor.platforms import Existence, Platform
from auditor.plugins.events import Event, Kind
from auditor.plugins.guarded import Effect, effects_in
from auditor.plugins.values import member_of_enum, shown
from auditor.releases import exact
from auditor.rulesdata import RegistryRule, head_rule
from auditor.values import (
    UNBOUND,
    ClassValue,
    Closure,
    Doubt,
    Either,
    Error,
    Foreign,
    Function,
    Guard,
    Instance,
    ModuleValue,
    Opaque,
    Place,
    PythonError,
    Release,
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


class Made(NamedTuple):
    """Modules of plugins that are no Python source: those there are, and where more may be built.

    ``compiled`` are dotted names; ``built`` are top-level packages.
    """

    compiled: frozenset[str]
    built: frozenset[str]


class PluginRun(ImportRun):
    """One process with plugins on one platform.

    Args:
        owners: the top-level packages of plugins, each with the plugin's name.
        rule: where models are registered.
        versions: of the package and of the plugins, as far as they say them.
        made: modules of plugins that are no Python source.
        config: the class that holds the speculative configuration, dotted.
    """

    def __init__(
        self,
        program: Program,
        platform: Platform,
        conventions: Conventions,
        owners: Mapping[str, str],
        rule: RegistryRule,
        versions: Mapping[str, str],
        made: Made,
        config: str,
        *,
        eager: bool = True,
    ) -> None:
        super().__init__(program, platform, conventions, eager=eager)
        self.owners = owners
        self.rule = rule
        self.versions = versions
        self._made = made
        self._config = config
        #: What was put in the place of ``builtins.__import__``.
        self._hook: Function | None = None
        #: What plugins did so far, in order.
        self.events: list[Event] = []
        #: Containers of the package whose changes are written down: each with its dotted name.
        self.tracked: dict[int, tuple[Value, str]] = {}
        #: Attributes of plain objects stand for members while a platform's predicates are asked.
        self.asking: ClassValue | None = None
        self._bodies: list[tuple[f.Stmt, ...]] = []
        self._recording = True
        #: A worker is being made, from a configuration of which nothing is known.
        self._making = False
        self._of_every_module = frozenset(head_rule().module_attributes)

    # --- who does something, and to what

    def plugin_of(self, name: str) -> str:
        """The plugin that a module belongs to, or an empty text."""
        return self.owners.get(name.partition(".")[0], "")

    def is_package(self, name: str) -> bool:
        """Whether a dotted name belongs to the audited package."""
        head = name.partition(".")[0]
        return head in self.conventions.roots and head not in self.owners

    def record(self, event: Event) -> None:
        """Write down what a plugin does; on a branch of an open condition it may not be done."""
        if not self._recording:
            return
        if self.open_guards and event.outcome == "applied":
            guard = self.open_guards[-1]
            event = replace(event, guards=(*event.guards, *self.open_guards)).open(
                f"it depends on `{guard}` ({guard.where})"
            )
        self.events.append(event)

    def _event(self, kind: Kind, target: str, value: Value, frame: Frame, line: int) -> Event:
        plugin = self.plugin_of(frame.module.name)
        return Event(plugin, kind, target, value, frame.place(line), guards=frame.guards)

    @contextmanager
    def _unrecorded(self) -> Iterator[None]:
        """What is done inside is a part of what was written down already."""
        before, self._recording = self._recording, False
        try:
            yield
        finally:
            self._recording = before

    # --- entry points

    def call_entry(self, value: Value, place: Place) -> Value:
        """Call what an entry point names, without arguments, as vLLM does.

        Raises:
            PythonError: what the call raises.
        """
        frame = self._outer()
        value = self.force(value, frame)
        match value:
            case Function():
                result = self.invoke(
                    value, (), (), frame, place, value.facts.name, forks=MAX_OWN_FORKS_ASKED
                )
            case Closure(facts=facts) if not facts.params:
                result = self.apply(value, (), frame)
            case _:
                result = self.call(value, f.Call(f.Const(None), (), (), ""), frame, place.line)
        return self.force(result, frame)

    def make_instance(self, cls: ClassValue, place: Place) -> None:
        """Run the ``__init__`` of a class with arguments of which nothing is known.

        Raises:
            PythonError: what it raises.
        """
        maker = self.method(cls, "__init__")
        facts = self.function_facts(maker) if maker is not None else None
        if maker is None or not isinstance(facts, f.FunctionFacts):
            return
        frame = self._outer()
        given = tuple(Opaque(f"the argument {name}", place) for name in facts.params[1:])
        made = Instance(cls, place, given)
        text = f"{cls.qualname}(…)"
        self._making = True
        try:
            self.invoke(maker, (made, *given), (), frame, place, text, forks=MAX_OWN_FORKS_ASKED)
        finally:
            self._making = False

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
        if self._making and self._unknown_given((*args, *(v for _, v in keywords))):
            self._not_followed(function, place)
            return Opaque(f"{function.facts.name}() of what is not known", place, text)
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

    def _options(self, value: Value) -> list[Value]:
        if not isinstance(value, Either):
            return [value]
        return [option for _, option in self.alive(value)]

    def _models(self) -> Value:
        """What is registered: the argument that the object was made with."""
        made = self.registry_object()
        return made.args[0] if isinstance(made, Instance) and made.args else UNBOUND

    def _instance_attribute(self, owner: Instance, name: str, place: Place) -> Value:
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
        return super()._instance_attribute(owner, name, place)

    def _class_attribute(self, cls: ClassValue, name: str, place: Place) -> Value:
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
        return super()._class_attribute(cls, name, place)

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
            if isinstance(has, Found):
                return found(self._class_attribute(owner, name, frame.place(line)))
        return super()._probe(owner, name, call, frame, line, found, missing)

    def _looks_into_unknown(self, function: Function, given: tuple[Value, ...]) -> bool:
        """While a platform is asked, its attributes are known, and so its methods are run."""
        if self.asking is not None or self._is_registry(function.bound):
            return False
        return super()._looks_into_unknown(function, given)

    def _find_and_load(self, name: str, frame: Frame, place: Place) -> Value:
        """Load a module; one of the package is the same module whichever way a plugin goes.

        Otherwise what a plugin does to it on an open branch would be lost when it is loaded again.
        """
        if not self.is_package(name):
            return super()._find_and_load(name, frame, place)
        followed = self.open_guards
        self.open_guards = tuple(one for one in followed if not self._is_of_plugin(one))
        try:
            return super()._find_and_load(name, frame, place)
        finally:
            self.open_guards = followed

    def _is_of_plugin(self, guard: Guard) -> bool:
        return guard.where.path.partition("/")[0].removesuffix(".py") in self.owners

    # --- modules of plugins

    def _existence(self, name: str) -> Existence:
        """Whether a module exists; one of a plugin that is no source may be compiled."""
        head = name.partition(".")[0]
        if head not in self.owners or "." not in name:
            return super()._existence(name)
        if name in self._made.compiled:
            return Existence(True, f"{self.owners[head]} holds it, compiled")
        if any(name == one for rule in self.platform.modules for one in rule.names):
            return super()._existence(name)
        if head not in self._made.built:
            return Existence(False, f"{self.owners[head]} has no {name}")
        key = f"installed:{name}"
        known = self.settled(key)
        reason = f"no file of {self.owners[head]} is {name}, which a build may make"
        if known is not None:
            return Existence(known, reason)
        decides = f"{reason}; --with {name} or --without {name} decides it"
        return Existence(Undecided(decides, key=key), reason)

    # --- versions

    def installed_release(self, name: str, place: Place) -> Value:
        """The version of a distribution; of the package and of plugins, the one that they say."""
        known = self.versions.get(canonicalize_name(name))
        return super().installed_release(name, place) if known is None else known

    def foreign_attribute(self, name: str) -> Value:
        """A dotted name outside the tree; a build writes the version of the package down."""
        head, _, rest = name.partition(".")
        if head in self.versions and rest.rpartition(".")[2] == "__version__":
            return self.versions[head]
        return super().foreign_attribute(name)

    def attribute(self, owner: Value, name: str, frame: Frame, line: int) -> Value:
        """``owner.name``; an exact version has its parts."""
        version = owner.lowest if isinstance(owner, Release) else None
        if version is not None and owner == exact(str(version)) and name in _PARTS:
            return getattr(version, name)
        return super().attribute(owner, name, frame, line)

    def _perhaps_beyond(
        self, value: Either, module: ModuleValue, name: str, place: Place, frame: Frame
    ) -> Value:
        """A name that some branches leave unbound; one that needs a variable set is left out."""
        options = self.alive(value)
        bound = [option for option in options if option[1] is not UNBOUND]
        if bound and all(g.usual is False for g, option in options if option is UNBOUND):
            return join(bound)
        return super()._perhaps_beyond(value, module, name, place, frame)

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
                event = self._event("attribute", f"{one.name}.{name}", value, frame, line)
                replaced = one.names.get(name, UNBOUND)
                if isinstance(value, ModuleValue) and isinstance(replaced, ModuleValue):
                    event = replace(event, kind="module", target=replaced.name)
            elif one == Foreign("builtins") and name == "__import__":
                event = self._hooked(value, frame, line)
            else:
                continue
            self.record(event if one is owner else event.open("one of several objects"))

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

    def describe(self, value: Value) -> str:
        """A value of an event, for a person."""
        return shown(value)


def _conjuncts(test: f.Expr) -> Iterator[f.Expr]:
    match test:
        case f.Not(value=inner):
            yield from _conjuncts(inner)
        case f.BoolOp(values=values):
            for one in values:
                yield from _conjuncts(one)
        case _:
            yield test
