"""An import run that knows plugins: which code is theirs, what they did, what they bring.

:class:`Recording` adds to the run what is known of plugins alone: their versions, their modules
that are no source, and the list of what they do. What they do is written down in
:mod:`auditor.plugins.stores`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from packaging.utils import canonicalize_name

from auditor import facts as f
from auditor.evaluation.frame import Frame, join
from auditor.evaluation.import_statements import Conventions, Program
from auditor.evaluation.machine import MAX_OWN_FORKS_ASKED
from auditor.imports import ImportRun
from auditor.platforms import Existence, Platform
from auditor.plugins.events import Event, Kind
from auditor.releases import exact
from auditor.ruleset.heads import head_rule
from auditor.ruleset.target import RegistryRule
from auditor.values import (
    UNBOUND,
    ClassValue,
    Closure,
    Either,
    Function,
    Guard,
    Instance,
    ModuleValue,
    Opaque,
    Place,
    Release,
    Undecided,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_Keywords = tuple[tuple[str, Value], ...]
#: Parts of an exact version.
_NAMES = ("__name__", "__qualname__", "__module__")
_PARTS = ("public", "base_version", "release", "major", "minor", "micro", "is_devrelease")


class Made(NamedTuple):
    """Modules of plugins that are no Python source: those there are, and where more may be built.

    ``compiled`` are dotted names; ``built`` are top-level packages.
    """

    compiled: frozenset[str]
    built: frozenset[str]


class Recording(ImportRun):
    """One process with plugins on one platform.

    Args:
        owners: the top-level packages of plugins, each with the plugin's name.
        rule: where models are registered.
        versions: of the package and of the plugins, as far as they say them.
        made: modules of plugins that are no Python source.
        config: the class that holds the speculative configuration, dotted.
        probed: the attributes that rows are about.
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
        probed: frozenset[str] = frozenset(),
        *,
        eager: bool = True,
    ) -> None:
        super().__init__(program, platform, conventions, eager=eager)
        self.owners = owners
        self.rule = rule
        self.versions = versions
        self._made = made
        self._config = config
        self.probed = probed
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

    def _options(self, value: Value) -> list[Value]:
        if not isinstance(value, Either):
            return [value]
        return [option for _, option in self.alive(value)]

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
        """``owner.name``; an exact version has its parts, and what has a name knows it."""
        if name in _NAMES and self.plugin_of(frame.module.name):
            named = _own_name(self.force(owner, frame), name)
            if named:
                return named
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


def _own_name(owner: Value, name: str) -> str:
    """What a module, class or function is called, where it says so."""
    match owner:
        case ModuleValue() if name == "__name__":
            return owner.name
        case ClassValue() if name == "__module__":
            return owner.module.name
        case ClassValue():
            return owner.qualname.rpartition(".")[2] if name == "__name__" else owner.qualname
        case Function(decorators=()) if name == "__name__":
            return owner.facts.name
        case _:
            return ""
