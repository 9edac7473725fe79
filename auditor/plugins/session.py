"""Plugins over one source: the tree they make together, and a process in which they are loaded.

The order is vLLM's: the platform first (``vllm/platforms/__init__.py``), then the registry, which
``vllm/engine/arg_utils.py`` imports, then the general plugins, then what the platform class does
before a configuration is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from auditor.contracts.names import Ref
from auditor.errors import UsageError
from auditor.evaluation.frame import guard_pair
from auditor.evaluation.import_statements import Conventions, Program
from auditor.platforms import Platform
from auditor.plugins.events import Event
from auditor.plugins.platform import Given, ask_for_platform, entry_value
from auditor.plugins.record import Made
from auditor.plugins.registrations import Registrations
from auditor.plugins.run import PluginRun
from auditor.plugins.workers import worker_classes
from auditor.program import Files
from auditor.registry import Table
from auditor.ruleset.distributions import ModuleRule
from auditor.ruleset.target import TargetRule
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
        probed: the attributes that rows are about.
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
        probed: frozenset[str] = frozenset(),
    ) -> None:
        self._config, self._probed = config, probed
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
            self._probed,
            eager=self._eager,
        )

    # --- a process

    def start(self, program: Program, platform: Platform, conventions: Conventions) -> Started:
        """Load the plugins in a new process on a platform.

        Args:
            program: the joined program.
            platform: the platform.
            conventions: of the joined tree.
        """
        run = self._run(program, platform, conventions)
        self._load_platform(run)
        self._load_registry(run)
        for plugin in self.plugins:
            for one in plugin.unread:
                event = Event(plugin.name, "entry", "", UNBOUND, Place(one.path, one.line))
                run.record(event.open(f"an entry point may be missing: {one.reason}"))
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

    def _load_registry(self, run: PluginRun) -> None:
        try:
            module = run.load(self.rule.registry.module)
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

    def table(self, table: Table, platform: str, names: tuple[str, ...]) -> Table:
        """The tables of some names, read as one, as a process with the plugins has them."""
        started = self.started[platform]
        return Registrations(started.run, names, self.rule).over(table, started.events)

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


def _compiled_in(plugins: Iterable[Plugin]) -> Iterator[str]:
    """The compiled modules among the files of plugins, by their dotted names."""
    for plugin in plugins:
        for path in plugin.packages.files():
            folder, _, name = path.rpartition("/")
            if name.endswith((".so", ".pyd")):
                yield f"{folder}/{name.partition('.')[0]}".replace("/", ".")
