"""Plugins over one source: the tree they make together, and a process in which they are loaded.

The order is vLLM's: the platform first (``vllm/platforms/__init__.py``), then the registry, which
``vllm/engine/arg_utils.py`` imports, then the general plugins, then what the platform class does
before a configuration is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from auditor.contracts.names import Ref
from auditor.coverage import PluginEvent, PluginInfo, Step, UndecidedItem
from auditor.errors import UsageError
from auditor.evaluation.frame import guard_pair
from auditor.evaluation.import_statements import Conventions, Program
from auditor.platforms import Platform
from auditor.plugins.events import Event
from auditor.plugins.platform import Given, ask_for_platform, entry_value
from auditor.plugins.run import Made, PluginRun
from auditor.plugins.values import shown
from auditor.plugins.workers import worker_classes
from auditor.program import Files
from auditor.registry import Entry, Table, absolute
from auditor.rulesdata import ModuleRule, TargetRule
from auditor.sources.metadata import EntryPoint
from auditor.sources.packages import Joined
from auditor.sources.plugin import Plugin
from auditor.sources.tree import Source
from auditor.values import (
    UNBOUND,
    ClassValue,
    Function,
    Instance,
    ModuleValue,
    Opaque,
    Place,
    PythonError,
    Undecided,
    Value,
)


def over(source: Source, plugins: Sequence[Plugin]) -> Source:
    """The source with the packages of plugins beside its own."""
    trees = (source.tree, *(plugin.packages for plugin in plugins))
    return replace(source, tree=Joined(trees))


def identity(plugin: Plugin) -> object:
    """What tells one plugin from another beside the contents of its files."""
    left_out = tuple((one.path, one.reason) for one in plugin.problems)
    return (plugin.label, plugin.entry_points, plugin.requires, plugin.unread, left_out)


@dataclass(slots=True)
class Started:
    """A process in which plugins are loaded, on one platform.

    Attributes:
        run: the process.
        events: what the plugins did, in order.
    """

    run: PluginRun
    events: tuple[Event, ...]


class Session:
    """Plugins over one source.

    Args:
        plugins: in the order in which they are loaded.
        files: the files of the joined tree.
        rule: the conventions of the package.
        version: of the package, if it says one.
        eager: whether imports are followed at once.
        config: the class that holds the speculative configuration, dotted.
    """

    def __init__(
        self,
        plugins: Sequence[Plugin],
        files: Files,
        rule: TargetRule,
        version: str | None,
        *,
        eager: bool,
        config: str,
    ) -> None:
        self._config = config
        self.plugins = tuple(plugins)
        self.rule = rule
        self._files = files
        self._eager = eager
        self._taken = frozenset({rule.package.name, *(r for one in plugins for r in one.roots)})
        #: Compiled modules that plugins hold, and the packages that a build may add some to.
        self._compiled = frozenset(_compiled_in(self.plugins))
        self._built = frozenset(r for one in self.plugins if one.builds for r in one.roots)
        self._owners = {root: one.name for one in self.plugins for root in one.roots}
        self._versions = {one.name: one.version for one in self.plugins if one.version}
        if version is not None:
            self._versions[rule.package.name] = version
        #: What asking for platforms found, by the name of the plugin.
        self.given: dict[str, Given] = {}
        #: The processes that were started, by platform.
        self.started: dict[str, Started] = {}

    @property
    def roots(self) -> frozenset[str]:
        """The top-level packages of all plugins."""
        return frozenset(self._owners)

    def plugin_of(self, module: str) -> str:
        """The plugin that a module belongs to, or an empty text."""
        return self._owners.get(module.partition(".")[0], "")

    def _points(self, plugin: Plugin, group: str) -> Iterator[EntryPoint]:
        return (entry for entry in plugin.entry_points if entry.group == group)

    # --- the platform

    def provider(
        self, program: Program, platform: Platform, conventions: Conventions
    ) -> tuple[PluginRun, Plugin, Given] | None:
        """The plugin that gives the platform, and the process in which it was asked.

        Args:
            program: the joined program.
            platform: one of which no predicate is known.
            conventions: of the joined tree.

        Raises:
            UsageError: two plugins give one, which ends a server at start-up.
        """
        found: list[tuple[PluginRun, Plugin, Given]] = []
        for plugin in self.plugins:
            points = list(self._points(plugin, self.rule.plugins.platform_group))
            if not points:
                continue
            run = self._run(program, platform, conventions)
            given = ask_for_platform(run, plugin.name, points)
            self.given[plugin.name] = given
            if given.cls is not None:
                found.append((run, plugin, given))
        if len(found) > 1:
            names = ", ".join(plugin.name for _, plugin, _ in found)
            raise UsageError(
                f"two plugins give a platform ({names}): vLLM raises RuntimeError, only one can "
                "be activated",
                where="--plugin",
                next_step="Name one of them.",
            )
        return found[0] if found else None

    def _run(self, program: Program, platform: Platform, conventions: Conventions) -> PluginRun:
        return PluginRun(
            program,
            platform,
            conventions,
            self._owners,
            self.rule.registry,
            self._versions,
            Made(self._compiled, self._built),
            self._config,
            eager=self._eager,
        )

    # --- a process

    def start(
        self, program: Program, platform: Platform, conventions: Conventions, table: str
    ) -> Started:
        """Load the plugins in a new process on a platform.

        Args:
            program: the joined program.
            platform: the platform.
            conventions: of the joined tree.
            table: the dotted name of the table whose entries are asked.
        """
        run = self._run(program, platform, conventions)
        self._load_platform(run)
        self._load_registry(run, table)
        for plugin in self.plugins:
            for entry in self._points(plugin, self.rule.plugins.general_group):
                self._call(run, plugin, entry)
        self._prepare(run)
        self._make_worker(run)
        started = Started(run, tuple(run.events))
        self.started[platform.name] = started
        return started

    def _load_platform(self, run: PluginRun) -> None:
        """The platform's functions are called, and its class loaded, before anything else."""
        for name, given in self.given.items():
            if given.cls is None or given.entry is None or run.platform.name != name:
                continue
            where = Place(given.entry.path, given.entry.line)
            try:
                run.call_entry(entry_value(run, given.entry), where)
                run.load(given.dotted.rpartition(".")[0])
            except PythonError as raised:
                reason = f"{raised.error.type}: {raised.error.message}"
                run.record(Event(name, "entry", given.dotted, UNBOUND, where, "failed", reason))

    def _load_registry(self, run: PluginRun, table: str) -> None:
        module_name = table.rpartition(".")[0]
        try:
            module = run.load(module_name)
        except PythonError:
            # Reading the table meets the same exception, and says so.
            return
        if isinstance(module, ModuleValue):
            for name, value in module.names.items():
                if isinstance(value, dict):
                    run.track(value, f"{module.name}.{name}")

    def _call(self, run: PluginRun, named: Plugin, entry: EntryPoint) -> None:
        where, plugin = Place(entry.path, entry.line), named.name
        module = entry.target.partition(":")[0].strip()
        if module.partition(".")[0] not in run.conventions.roots:
            event = Event(plugin, "entry", entry.target, UNBOUND, where)
            reason = f"no file of {plugin} is the module {module}"
            run.record(event.open(reason) if named.builds else event.failed(reason))
            return
        try:
            function = entry_value(run, entry)
        except PythonError as raised:
            # vLLM logs it, and goes on without this entry point.
            reason = f"it cannot be loaded: {raised.error.type}: {raised.error.message}"
            run.record(Event(plugin, "entry", entry.target, UNBOUND, where, "failed", reason))
            return
        try:
            value = run.call_entry(function, where)
        except PythonError as raised:
            reason = f"calling it raises {raised.error.type}: {raised.error.message}"
            run.record(Event(plugin, "entry", entry.target, UNBOUND, where, "failed", reason))
            return
        if not isinstance(function, Function | ClassValue | Instance) and isinstance(value, Opaque):
            event = Event(plugin, "entry", entry.target, UNBOUND, where)
            run.record(event.open(f"what it names is not known: {value.reason}"))

    def _prepare(self, run: PluginRun) -> None:
        """What the platform class does before a configuration is made."""
        given = self.given.get(run.platform.name)
        if given is None or given.cls is None or given.entry is None:
            return
        module_name, _, name = given.dotted.rpartition(".")
        where = Place(given.entry.path, given.entry.line)
        for method in self.rule.plugins.prepare:
            try:
                cls, _ = run.get(run.load(module_name), name, [])
                if isinstance(cls, ClassValue) and run.method(cls, method) is not None:
                    run.call_entry(run.attribute(cls, method, run._outer(), 0), where)
            except PythonError as raised:
                reason = f"{method}() raises {raised.error.type}: {raised.error.message}"
                target = f"{given.dotted}.{method}"
                name_of = run.platform.name
                run.record(Event(name_of, "entry", target, UNBOUND, where, "failed", reason))

    def _make_worker(self, run: PluginRun) -> None:
        """What the platform's worker does when it is made; models are loaded after that."""
        given = self.given.get(run.platform.name)
        if given is None or given.cls is None:
            return
        roots = frozenset(r for r, name in self._owners.items() if name == run.platform.name)
        rule = self.rule.plugins
        classes = worker_classes(self._files, run.program.modules, roots, rule)
        for number, cls in enumerate(classes):
            where = Place(run.program.modules[cls.module][0], 1)
            if len(classes) == 1:
                self._make(run, cls, where)
                continue
            # Which of them it is depends on the device.
            guard, _ = guard_pair(where, f"the worker is {cls}", key=f"worker:{number}")
            with run.branch(guard):
                self._make(run, cls, where)

    def _make(self, run: PluginRun, cls: Ref, where: Place) -> None:
        try:
            value, _ = run.get(run.load(cls.module), cls.name, [])
            if isinstance(value, ClassValue):
                run.make_instance(value, where)
        except PythonError as raised:
            # It is made from a configuration that was settled before, of which nothing is known.
            error = raised.error
            reason = f"made from an unknown configuration it raises {error.type}: {error.message}"
            event = Event(run.platform.name, "worker", str(cls), UNBOUND, where)
            run.record(event.open(reason))

    # --- the table

    def table(self, table: Table, platform: str, dotted: str) -> Table:
        """The table as a process with the plugins has it."""
        started = self.started[platform]
        return Registrations(started.run, dotted, self.rule).over(table, started.events)

    # --- the document

    def modules(self, brings: Callable[[str], tuple[str, ...]]) -> Iterator[ModuleRule]:
        """The modules outside the tree that plugins bring with what they require.

        Args:
            brings: the modules of a requirement.
        """
        brought = self.rule.plugins.brought
        yield ModuleRule(brought, True, "PyTorch, which every platform has, requires it")
        for plugin in self.plugins:
            for requirement in plugin.requires:
                names = tuple(n for n in brings(requirement) if n not in self._taken)
                if names:
                    yield ModuleRule(names, True, f"{plugin.name} requires {requirement}")

    def infos(self, order: Sequence[str]) -> tuple[PluginInfo, ...]:
        """What the document says of each plugin; ``order`` are the platforms of the document."""
        return tuple(self._info(plugin, order) for plugin in self.plugins)

    def _info(self, plugin: Plugin, order: Sequence[str]) -> PluginInfo:
        given = self.given.get(plugin.name)
        events: dict[PluginEvent, list[str]] = {}
        for event in given.events if given is not None else ():
            events.setdefault(self._event(event), [])
        for name in order:
            for event in self.started[name].events if name in self.started else ():
                if event.plugin == plugin.name:
                    events.setdefault(self._event(event), []).append(name)
        return PluginInfo(
            plugin.name,
            plugin.label,
            plugin.version,
            plugin.name if plugin.name in order else None,
            given.dotted if given is not None and given.cls is not None else None,
            tuple(
                Step("plugin", one.path, one.line, f"{one.name} = {one.target}", one.group)
                for one in plugin.entry_points
            ),
            tuple(
                msgspec.structs.replace(event, platforms=tuple(dict.fromkeys(names)))
                for event, names in events.items()
            ),
        )

    def _event(self, event: Event) -> PluginEvent:
        return PluginEvent(
            event.kind,
            event.target or event.table,
            shown(event.value),
            event.where.path,
            event.where.line,
            self._files.line(event.where.path, event.where.line),
            event.outcome,
            event.reason,
            (),
            tuple(dict.fromkeys(str(guard) for guard in event.guards)),
        )

    def undecided(self) -> Iterator[UndecidedItem]:
        """What of the plugins was not decided, and what was left out of them."""
        for plugin in self.plugins:
            for problem in plugin.problems:
                yield UndecidedItem("source", problem.path, 0, "", problem.reason)
            for unread in plugin.unread:
                reason = f"{plugin.name}: {unread.reason}"
                yield UndecidedItem("plugin", unread.path, unread.line, "", reason)
        for name, event in self._config_events():
            reason = f"{event.plugin} replaces {event.target}, which is read as the release has it"
            yield UndecidedItem(
                "caller", event.where.path, event.where.line,
                self._files.line(event.where.path, event.where.line), reason, (name,),
            )  # fmt: skip
        every = [e for given in self.given.values() for e in given.events]
        found: dict[tuple[Place, str], tuple[Event, list[str]]] = {}
        for event in every:
            found.setdefault((event.where, event.reason), (event, []))
        for name, started in self.started.items():
            for event in started.events:
                key = (event.where, f"{event.target}: {event.reason}")
                found.setdefault(key, (event, []))[1].append(name)
        for event, names in found.values():
            if event.outcome == "undecided":
                target = f"{event.target}: " if event.target else ""
                yield UndecidedItem(
                    "plugin", event.where.path, event.where.line,
                    self._files.line(event.where.path, event.where.line),
                    f"{event.plugin}: {target}{event.reason}", tuple(dict.fromkeys(names)),
                )  # fmt: skip

    def _config_events(self) -> Iterator[tuple[str, Event]]:
        """Changes of the code that says which draft a checkpoint asks for, by platform."""
        for name, started in self.started.items():
            for event in started.events:
                if event.kind == "config" and event.outcome != "dead":
                    yield name, event

    def notes(self) -> Iterator[str]:
        """Sentences about the whole audit."""
        groups = (self.rule.plugins.platform_group, self.rule.plugins.general_group)
        for plugin in self.plugins:
            if not plugin.entry_points and not plugin.unread:
                which = " or ".join(groups)
                yield f"{plugin.label} has no entry point of {which}: vLLM loads nothing of it"
            given = self.given.get(plugin.name)
            if given is not None and given.condition:
                yield (
                    f"whether {plugin.label} gives its platform depends on {given.condition}; "
                    "it is taken to"
                )


def _compiled_in(plugins: Iterable[Plugin]) -> Iterator[str]:
    """The compiled modules among the files of plugins, by their dotted names."""
    for plugin in plugins:
        for path in plugin.packages.files():
            folder, _, name = path.rpartition("/")
            if name.endswith((".so", ".pyd")):
                yield f"{folder}/{name.partition('.')[0]}".replace("/", ".")


def _may_do_anything(event: Event) -> bool:
    """Whether nothing is known of what a plugin does there."""
    return event.outcome == "undecided" and event.kind in ("hook", "call", "entry")


# --- what is registered ---------------------------------------------------------------------------


class Registrations:
    """What the events of one process make of a registry table."""

    def __init__(self, run: PluginRun, dotted: str, rule: TargetRule) -> None:
        self._run = run
        self._dotted = dotted
        self._rule = rule

    def over(self, table: Table, events: Iterable[Event]) -> Table:
        """The table with what plugins registered, stored and took out."""
        entries = {entry.architecture: entry for entry in table.entries}
        elsewhere = self._elsewhere(set(entries))
        for event in events:
            if event.kind not in ("architecture", "table") or event.outcome == "dead":
                continue
            if event.kind == "table" and not self._counts(event.table, entries):
                continue
            names = [event.target] if event.target else list(entries)
            for name in names:
                if name in elsewhere and name not in entries:
                    continue
                entry = self._entry(name, event, entries.get(name))
                if entry is None:
                    entries.pop(name, None)
                else:
                    entries[name] = entry
        unknown = next((e for e in events if _may_do_anything(e)), None)
        if unknown is not None:
            why = f"{unknown.plugin} may have changed it: {unknown.reason}"
            undecided = Undecided(why, unknown.where, unknown.target)
            entries = {
                name: entry
                if entry.open is not None
                else replace(entry, by=unknown.plugin, open=undecided)
                for name, entry in entries.items()
            }
        return Table(tuple(entries.values()), table.unread)

    def _tables(self) -> Iterator[tuple[str, dict[Value, Value]]]:
        for container, name in self._run.tracked.values():
            if isinstance(container, dict):
                yield name, container

    def _elsewhere(self, own: set[str]) -> set[str]:
        """Architectures of the registry's other tables."""
        found: set[str] = set()
        module = self._dotted.rpartition(".")[0]
        for name, table in self._tables():
            if name.startswith(f"{module}.") and name.count(".") == self._dotted.count("."):
                keys = {key for key in table if isinstance(key, str)}
                if name != self._dotted and not own <= keys:
                    found |= keys
        return found - own

    def _counts(self, table: str, entries: Mapping[str, Entry]) -> bool:
        """Whether a table is the one that is asked, or holds all of its entries."""
        if table == self._dotted:
            return True
        keys = next((set(one) for name, one in self._tables() if name == table), set())
        return table == self.models or (bool(entries) and entries.keys() <= keys)

    @property
    def models(self) -> str:
        """The dotted name of what is registered."""
        return f"{self._rule.registry.object}.{self._rule.registry.models}"

    def _entry(self, name: str, event: Event, before: Entry | None) -> Entry | None:
        """The row that an event makes; None where it takes it out."""
        by = f"{event.plugin} registers {name}"
        if event.kind == "table":
            by = f"{event.plugin} puts {name} into {event.table.rpartition('.')[2]}"
        entry = Entry(name, "", "", event.where, by)
        if event.outcome != "applied":
            why = f"{event.plugin} may have registered another class: {event.reason}"
            return replace(entry, open=Undecided(why, event.where, event.reason))
        value = event.value
        if value is UNBOUND and event.kind == "table":
            return None
        named = self._named(value, event)
        if named is not None:
            return replace(entry, module=named[0], class_name=named[1])
        if isinstance(value, ClassValue):
            return replace(entry, module=value.module.name, class_name=value.qualname, value=value)
        reason = value.reason if isinstance(value, Opaque) else "the class is not known"
        text = value.text if isinstance(value, Opaque) else ""
        why = f"{event.plugin} registers a class that is not known: {reason}"
        return replace(entry, open=Undecided(why, event.where, text))

    def _named(self, value: Value, event: Event) -> tuple[str, str] | None:
        match value:
            case str() if value.count(":") == 1:
                module, _, name = value.partition(":")
                return module, name
            case (str() as module, str() as name, *_):
                roots = self._run.conventions.roots
                return absolute(module, roots, self._rule.registry.package), name
            case Instance(args=(str() as module, str() as name, *_)):
                return module, name
            case Instance(keywords=keywords):
                given = [text for _, text in keywords if isinstance(text, str)]
                return (given[0], given[1]) if len(given) == 2 else None
            case _:
                return None
