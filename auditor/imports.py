"""The import run: a module's top level under a platform, and all that it imports.

:class:`ImportRun` is Python's import system (the ``importlib`` reference, PEP 420 and 562) over a
read-only tree. Modules of the tree are run statement by statement; a module outside it exists
exactly where the platform's facts say so. Nothing of the tree is imported or executed.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from itertools import takewhile

from packaging.utils import canonicalize_name

from auditor import facts as f
from auditor.evaluation.containers import Containers
from auditor.evaluation.frame import Frame, doubtful, is_own, is_plain, join, opposite
from auditor.evaluation.import_statements import Conventions, ImportStatements, Program
from auditor.evaluation.summaries import Summary
from auditor.evaluation.touches import Text
from auditor.platforms import Existence, Platform
from auditor.releases import release
from auditor.values import (
    UNBOUND,
    ClassValue,
    Deferred,
    Doubt,
    Doubts,
    Either,
    Error,
    Foreign,
    Function,
    ModuleValue,
    Opaque,
    Origin,
    Pending,
    Place,
    PlatformObject,
    PythonError,
    Trace,
    Undecided,
    Value,
    builtin_error,
)

#: How many imports may be running inside each other.
_MAX_NESTED = 150


class ImportRun(ImportStatements):
    """One process on one platform: ``sys.modules``, and what stayed open.

    Args:
        eager: follow every import at once, as Python does. Otherwise an import only binds, and
            the module behind a name is run when something asks for the name.
    """

    def __init__(
        self, program: Program, platform: Platform, conventions: Conventions, *, eager: bool = True
    ) -> None:
        self.program = program
        self.platform = platform
        self.conventions = conventions
        self.eager = eager
        self.modules: dict[str, Value] = {}
        self.failed: dict[str, ModuleValue] = {}
        self.outcomes: dict[Place, bool] = {}
        #: Modules that were run twice, since a branch alone had imported them first.
        self.run_again: set[str] = set()
        self.open_conditions: dict[tuple[Place, str], Undecided] = {}
        self.unparsed: dict[str, f.Unparsed] = {}
        #: Modules that nothing is known of, each with what importing it may raise.
        self.unreadable: dict[str, Doubt] = {}
        self.paths_read: set[str] = set()
        self.known: dict[str, bool] = {}
        self.containers = Containers()
        self.summaries: dict[tuple[str, int], Summary] = {}
        self.texts: dict[tuple[str, int], Text] = {}
        self.makers: dict[ClassValue, Function | None] = {}
        self._being_made: set[tuple[str, int]] = set()
        self._attempts: dict[tuple[str, int], int] = {}
        self.namespaces: dict[int, ModuleValue] = {}
        self._looking_up: set[Deferred] = set()
        self._foreign: dict[str, Value] = {}
        #: Whether any module was loaded with doubts so far.
        self._perhaps_failed = False
        self._nested = 0
        self._outside = ModuleValue("", "", False, f.ModuleFacts(()))

    def load(self, name: str) -> Value:
        """Import a module as a process would.

        Raises:
            PythonError: what the import raises, with the chain of imports.
        """
        frame = self._outer()
        module = self.import_module(name, frame, Place("", 0))
        if isinstance(module, ModuleValue):
            for doubt in frame.doubts:
                module.doubts.add(doubt)
                self._perhaps_failed = True
        return module

    def get(self, module: Value, name: str, trace: list[Trace]) -> tuple[Value, Doubts]:
        """``getattr(module, name)``, the doubts it leaves, and the steps a ``__getattr__`` took.

        Raises:
            PythonError: what the lookup raises.
        """
        frame = self._outer()
        frame.trace = trace
        value = self.force(self.attribute(module, name, frame, 0), frame)
        return value, frame.doubts

    def forced(self, value: Value) -> tuple[Value, Doubts]:
        """The value behind a pending call or a deferred name, with the doubts that it leaves.

        Raises:
            PythonError: what looking it up raises.
        """
        frame = self._outer()
        return self.force(value, frame), frame.doubts

    def settle(self, cls: ClassValue) -> None:
        """Look up the bases of a class and of its bases that were deferred.

        Raises:
            PythonError: what importing a base, or putting the bases in order, raises.
        """
        frame = self._outer()
        self._settle_bases(cls, frame, (), set())
        self._check_order(cls, frame, cls.facts.line)

    def _settle_bases(
        self, cls: ClassValue, frame: Frame, below: tuple[ClassValue, ...], done: set[int]
    ) -> None:
        """Look the bases of ``cls`` up, then theirs; ``below`` are the classes asked for so far.

        With imports put off, a class can be met as a base of itself, which Python never allows.
        """
        if id(cls) in done:
            return
        done.add(id(cls))
        family = (*below, cls)
        where = Place(cls.module.path, cls.facts.line)
        circle = Opaque("a base that leads back to the class", where, cls.qualname)
        forced = tuple(self.force(base, frame) for base in cls.bases)
        bases = tuple(circle if base in family else base for base in forced)
        if bases != cls.bases:
            cls.bases, cls.mro = bases, None
        for base in bases:
            if isinstance(base, ClassValue):
                self._settle_bases(base, frame, family, done)

    def _outer(self) -> Frame:
        """Where a question from outside the tree is asked; nothing is bound there."""
        return Frame(self._outside, {})

    def extent(self) -> tuple[int, ...]:
        """How much the run has come across; the same as before where nothing was added to it."""
        return (
            len(self.open_conditions),
            len(self.paths_read),
            len(self.modules),
            len(self.unparsed),
            len(self.platform.options_used()),
        )

    def open_condition(self, why: Undecided, frame: Frame) -> None:
        """Take note of a condition that stayed open; what more is said of it later counts too."""
        self.note_condition(why)

    def note_condition(self, why: Undecided) -> None:
        """As :meth:`open_condition`, wherever it was met."""
        if why.where is not None:
            known = self.open_conditions.setdefault((why.where, why.text), why)
            if known is not why and why.reason.startswith(f"{known.reason}; "):
                self.open_conditions[why.where, why.text] = why

    def import_module(self, name: str, frame: Frame, place: Place) -> Value:
        """Import ``name`` with its parents, and give the last module."""
        value = self.modules.get(name, UNBOUND)
        if value is UNBOUND:
            value = self._find_and_load(name, frame, place)
        elif value is None:
            message = f"import of {name} halted; None in sys.modules"
            raise PythonError(self._not_found(message, name, place, ""))
        elif isinstance(value, ModuleValue) and value.under:
            value = self._imported_again(value, frame, place)
        if self._perhaps_failed or self.unreadable:
            self._inherit_from(name, frame, place)
        return value

    def _inherit_from(self, name: str, frame: Frame, place: Place) -> None:
        """A module or package that may have failed is imported once more where it did."""
        while name:
            module = self.modules.get(name)
            if isinstance(module, ModuleValue) and module.doubts:
                self._inherit(module.doubts, frame, place)
            elif name in self.unreadable:
                self._inherit((self.unreadable[name],), frame, place)
            name = name.rpartition(".")[0]

    def _imported_again(self, module: ModuleValue, frame: Frame, place: Place) -> Value:
        """A module that only some branches had imported is imported here as well.

        It is run once more: what it took for granted held in those branches.
        """
        common = zip(module.under, self.open_guards, strict=False)
        shared = tuple(a for a, b in takewhile(lambda pair: pair[0] == pair[1], common))
        if shared == module.under or module.state == "running":
            return module
        elsewhere, module.under = module.under[-1], shared
        self.modules.pop(module.name)
        self.run_again.add(module.name)
        try:
            return self._find_and_load(module.name, frame, place)
        except PythonError as raised:
            why = f"a branch has imported {module.name}"
            frame.doubt(Doubt(raised.error, doubtful(opposite(elsewhere), why)))
            self.modules[module.name] = module
            return module

    @staticmethod
    def _inherit(doubts: Iterable[Doubt], frame: Frame, place: Place) -> None:
        for doubt in doubts:
            frame.doubt(Doubt(doubt.error.seen_from(place), doubt.condition))

    def _find_and_load(self, name: str, frame: Frame, place: Place) -> Value:
        parent, _, child = name.rpartition(".")
        if name.partition(".")[0] not in self.conventions.roots:
            return self._import_foreign(name, frame, place)
        package: Value = None
        if parent:
            package = self.import_module(parent, frame, place)
            if name in self.modules:
                return self.modules[name]
            if isinstance(package, ModuleValue) and not package.is_package:
                message = f"No module named {name!r}; {parent!r} is not a package"
                raise PythonError(self._not_found(message, name, place, ""))
            if isinstance(package, Opaque | Foreign):
                return self._beneath_unknown(package, name)
        value = self._load(name, frame, place)
        if isinstance(package, ModuleValue):
            before = package.names.get(child, UNBOUND)
            package.names[child] = self._maybe(package.under, value, before)
            package.origins.setdefault(child, Origin(None, 0, ()))
        return value

    def _beneath_unknown(self, package: Value, name: str) -> Value:
        value = Foreign(name) if isinstance(package, Foreign) else package
        self.modules[name] = value
        return value

    def _load(self, name: str, frame: Frame, place: Place) -> Value:
        if name in self.program.left_out:
            return self._load_left_out(name, place)
        located = self.program.modules.get(name)
        if located is None:
            return self._load_without_source(name, frame, place)
        path, is_package = located
        facts = self.program.facts(path)
        self.paths_read.add(path)
        if isinstance(facts, f.Unparsed):
            return self._load_unparsed(name, path, facts)
        if self._nested >= _MAX_NESTED:
            return self._nested_too_deeply(name, frame, place)
        module = ModuleValue(name, path, is_package, facts, importer=place)
        module.under = self.open_guards
        self.modules[name] = module
        self.namespaces[id(module.names)] = module
        inner = Frame(module, module.names)
        self._nested += 1
        try:
            self.block(inner, facts.body)
        except PythonError as raised:
            # Python takes a module that failed out of sys.modules again.
            self.modules.pop(name, None)
            module.state = "failed"
            self.failed[path] = module
            for doubt in inner.doubts:
                frame.doubt(Doubt(doubt.error.seen_from(place), doubt.condition))
            raise PythonError(raised.error.seen_from(place, frame.guards)) from None
        finally:
            self._nested -= 1
        module.state = "loaded"
        module.doubts = inner.doubts
        self._perhaps_failed = self._perhaps_failed or len(inner.doubts) > 0
        # A module may have put something else in its place (``sys.modules[__name__] = …``).
        return self.modules.get(name, module)

    def _nested_too_deeply(self, name: str, frame: Frame, place: Place) -> Value:
        """Python itself gives up at about this depth, sooner or later by its release."""
        why = Undecided(f"{_MAX_NESTED} imports inside each other", place, f"import {name}")
        self.open_condition(why, frame)
        error = builtin_error("RecursionError", "maximum recursion depth exceeded", place)
        frame.doubt(Doubt(error, why))
        return Opaque(why.reason, place, why.text)

    def _load_unparsed(self, name: str, path: str, facts: f.Unparsed) -> Value:
        where = Place(path, facts.line)
        self.unparsed[path] = facts
        error = builtin_error("SyntaxError", facts.reason, where)
        self.unreadable[name] = Doubt(error, Undecided(facts.reason, where))
        self.modules[name] = Opaque(f"{path} {facts.reason}", where)
        return self.modules[name]

    def _load_left_out(self, name: str, place: Place) -> Value:
        """A module whose file the source does not hold: there or not, and who knows what in it."""
        path, why = self.program.left_out[name]
        reason = f"{path} was left out of the source: {why}"
        where = place if place.path else None
        # Which exception a file raises that Python cannot read depends on why it cannot.
        bases = ("ImportError", "?", "Exception", "BaseException")
        error = Error("ImportError", reason, bases, (place,))
        self.unreadable[name] = Doubt(error, Undecided(reason, where))
        self.modules[name] = Opaque(reason, where)
        return self.modules[name]

    def _load_without_source(self, name: str, frame: Frame, place: Place) -> Value:
        if name in self.program.namespaces:
            module = ModuleValue(name, "", True, f.ModuleFacts(()), state="loaded")
            self.modules[name] = module
            return module
        return self._import_foreign(name, frame, place)

    def _import_foreign(self, name: str, frame: Frame, place: Place) -> Value:
        existence = self._existence(name)
        message = f"No module named {self._first_missing(name)!r}"
        if existence.exists is False:
            raise PythonError(self._not_found(message, name, place, existence.fact, frame.guards))
        failure = self.platform.failure(name)
        if failure is not None:
            raise PythonError(self._failing(*failure, place, frame))
        value = Foreign(name)
        if isinstance(existence.exists, Undecided):
            why = Undecided(existence.exists.reason, place, f"import {name}", existence.exists.key)
            self.open_condition(why, frame)
            frame.doubt(Doubt(self._not_found(message, name, place, existence.fact), why))
        else:
            self.modules[name] = value
        return value

    @staticmethod
    def _failing(kind: str, message: str, module: str, place: Place, frame: Frame) -> Error:
        """What importing a module outside the tree raises; bases of a class of its own are open."""
        fact = f"importing {module} raises that"
        if isinstance(getattr(builtins, kind, None), type):
            return builtin_error(kind, message, place, fact=fact, guards=frame.guards)
        bases = ("?", "Exception", "BaseException")
        return Error(kind, message, bases, (place,), fact, guards=(frame.guards,))

    def _first_missing(self, name: str) -> str:
        """The module that the import of ``name`` misses first: parents are imported before it."""
        parts = name.split(".")
        if parts[0] in self.conventions.roots:
            return name
        prefixes = (".".join(parts[:end]) for end in range(1, len(parts)))
        return next((one for one in prefixes if self._existence(one).exists is not True), name)

    def _existence(self, name: str) -> Existence:
        """Whether a module outside the tree exists, by the facts and by the branch followed."""
        existence = self.platform.existence(name)
        if isinstance(existence.exists, Undecided):
            known = self.settled(existence.exists.key)
            if known is not None:
                return Existence(known, existence.fact)
        return existence

    def installed_release(self, name: str, place: Place) -> Value:
        """The version of a distribution, up to what the tree requires of it."""
        specifier = self.platform.versions.get(canonicalize_name(name))
        if specifier is None:
            return Opaque(f"the version of {name} is not known", place)
        return release(name, specifier)

    def plugin_of(self, name: str) -> str:
        """The plugin that a module belongs to; none in a process without plugins."""
        return ""

    def is_platform(self, module: ModuleValue, name: str) -> bool:
        """Whether ``module.name`` is ``current_platform``."""
        return f"{module.name}.{name}" == self.conventions.current_platform

    def exists_outside(self, name: str) -> bool:
        """Whether a module outside the tree surely exists."""
        if name.partition(".")[0] in self.conventions.roots:
            return False
        return self._existence(name).exists is True

    def comes_with_tree(self, name: str) -> bool:
        """Whether a dotted name belongs to the audited package, a build's extensions included."""
        return name.partition(".")[0] in self.conventions.roots

    def find(self, name: str, place: Place) -> bool | Undecided:
        """Whether a module can be found, without importing it."""
        if self.program.left_out:
            for end in range(1, name.count(".") + 2):
                known = self.program.left_out.get(".".join(name.split(".")[:end]))
                if known is not None:
                    return Undecided(f"{known[0]} was left out of the source: {known[1]}", place)
        if name in self.program.modules or name in self.program.namespaces:
            return True
        return self._existence(name).exists

    def is_loaded(self, name: str) -> bool | Undecided:
        """Whether ``sys.modules`` has a module on the branch that is followed."""
        module = self.loaded(name)
        if isinstance(module, ModuleValue):
            if module.under != self.open_guards[: len(module.under)]:
                guard = module.under[-1]
                return Undecided(f"a branch imports {name}", guard.where, guard.text)
            for doubt in module.doubts:
                why = f"importing {name} may raise {doubt.error.type}"
                return Undecided(why, doubt.condition.where, doubt.condition.text)
        if name in self.unreadable:
            return self.unreadable[name].condition
        if isinstance(module, Opaque):
            return Undecided(module.reason, module.where, module.text)
        if module is UNBOUND and not self.comes_with_tree(name):
            return self._loaded_outside(name)
        return module is not UNBOUND

    def _loaded_outside(self, name: str) -> bool | Undecided:
        """Whether code outside the tree has imported a module of its own: who knows, if it can."""
        if self._existence(name).exists is False:
            return False
        return Undecided(f"code outside the tree may have imported {name}", None, f"{name!r}")

    def loaded(self, name: str) -> Value:
        """The entry of ``sys.modules``, or UNBOUND."""
        return self.modules.get(name, UNBOUND)

    def force(self, value: Value, frame: Frame) -> Value:
        """The value behind a pending call or a deferred name; any other value as it is."""
        kind = type(value)
        if kind is Pending:
            return self.result(value, frame)
        if kind is Deferred:
            if value in self._looking_up:
                return Opaque("an import that leads back to itself", value.where)
            self._looking_up.add(value)
            try:
                return self._behind(value, frame)
            finally:
                self._looking_up.discard(value)
        if kind is Opaque and self.bare_environment and value.usual is not UNBOUND:
            return value.usual
        if kind is dict or kind is list or kind is set:
            return self.containers.lost(value) or value
        return value

    def _behind(self, name: Deferred, frame: Frame) -> Value:
        module = self.import_module(name.module, frame, name.where)
        if name.attr is None:
            return module
        return self.force(self._from(module, name.module, name.attr, frame, name.where), frame)

    def module_attribute(self, module: ModuleValue, name: str, place: Place, frame: Frame) -> Value:
        """``module.name``: the namespace, then the module's ``__getattr__`` (PEP 562)."""
        if self.is_platform(module, name):
            return PlatformObject()
        value = module.names.get(name, UNBOUND)
        if value is UNBOUND:
            return self._beyond_names(module, name, place, frame)
        if isinstance(value, Either) and any(v is UNBOUND for _, v in self.alive(value)):
            return self._perhaps_beyond(value, module, name, place, frame)
        return value

    def _perhaps_beyond(
        self, value: Either, module: ModuleValue, name: str, place: Place, frame: Frame
    ) -> Value:
        """A name that some branches leave to ``__getattr__``, or unbound."""
        options = [option for option in self.alive(value) if option[1] is not UNBOUND]
        guard = next(guard for guard, option in self.alive(value) if option is UNBOUND)
        try:
            options.append((guard, self._beyond_names(module, name, place, frame)))
        except PythonError as raised:
            why = Undecided("a branch does not bind it", guard.where, str(guard))
            frame.doubt(Doubt(raised.error, why))
            if not options:
                raise
        return join(options)

    def _beyond_names(self, module: ModuleValue, name: str, place: Place, frame: Frame) -> Value:
        if name == "__name__":
            return module.name
        if name in ("__file__", "__doc__", "__spec__", "__dict__", "__loader__", "__package__"):
            return Opaque(f"{name} of a module", place)
        if name == "__path__" and module.is_package:
            return Opaque("__path__ of a package", place)
        hook = module.names.get("__getattr__", UNBOUND)
        if isinstance(hook, Function) and (
            name in ("__path__", "__all__") or not name.startswith("__")
        ):
            return self._served(hook, module, name, place, frame)
        if hook is not UNBOUND and not isinstance(hook, Function):
            return Opaque(f"served by the __getattr__ of {module.name}", place)
        if not self.eager and f"{module.name}.{name}" in self.program.modules:
            return self.import_module(f"{module.name}.{name}", frame, place)
        if module.wild is not None:
            return module.wild
        raise PythonError(self._no_attribute(module, name, place))

    def _served(
        self, hook: Function, module: ModuleValue, name: str, place: Place, frame: Frame
    ) -> Value:
        trace: list[Trace] = [
            Trace("getattr", Place(module.path, hook.facts.line), f"asked for {name}")
        ]
        text = f"{module.name}.__getattr__({name!r})"
        value = self.invoke(hook, (name,), (), frame, place, text, trace)
        module.origins[name] = Origin(hook.facts, hook.facts.line, (), tuple(trace))
        if frame.trace is not None:
            frame.trace.extend(trace)
        return value

    def foreign_attribute(self, name: str) -> Value:
        """The value of a dotted name outside the tree; the same all through a run."""
        value = self._foreign.get(name, UNBOUND)
        if value is UNBOUND:
            value = self._foreign[name] = self._foreign_value(name)
        return value

    def _foreign_value(self, name: str) -> Value:
        if name in self.conventions.constants:
            return self.conventions.constants[name]
        if name in self.platform.constants:
            return self.platform.constants[name]
        if name == "sys.version_info":
            return self.conventions.python
        if name in self.platform.assumed:
            return self.platform.assumed[name]
        root, _, rest = name.partition(".")
        if rest == "__version__" and root in self.platform.versions:
            return release(root, self.platform.versions[root])
        return Foreign(name)

    def foreign_contains(self, item: Value, container: Value) -> bool | Undecided:
        """``item in sys.modules`` and ``name in os.environ``."""
        if container == Foreign("sys.modules") and isinstance(item, str):
            return self.is_loaded(item)
        if (
            container == Foreign("os.environ")
            and isinstance(item, str)
            and item in self.platform.environment
        ):
            return True
        if container == Foreign("os.environ") and self.bare_environment:
            return False
        return super().foreign_contains(item, container)

    def item(self, owner: Value, index: Value, frame: Frame, line: int) -> Value:
        """``owner[index]``; ``sys.modules`` and ``os.environ`` have their meaning."""
        place = frame.place(line)
        if owner == Foreign("sys.modules"):
            key = self.force(index, frame)
            value = self.loaded(key) if isinstance(key, str) else Opaque("a module", place)
            if value is UNBOUND:
                raise PythonError(builtin_error("KeyError", repr(key), place))
            return value
        if owner == Foreign("os.environ"):
            key = self.force(index, frame)
            unset = Opaque("a variable that must be set", place)
            if not isinstance(key, str):
                return unset
            if key not in self.platform.environment:
                error = builtin_error("KeyError", repr(key), place)
                frame.doubt(Doubt(error, Undecided(f"the variable {key} is not set here", place)))
            return self._environment(key, unset, place, f"os.environ[{key!r}]")
        return super().item(owner, index, frame, line)

    def store_item(self, owner: Value, index: Value, value: Value, frame: Frame, line: int) -> None:
        """``owner[index] = value``; a store into ``sys.modules`` replaces a module."""
        owner, key = self.force(owner, frame), self.force(index, frame)
        if owner == Foreign("sys.modules") and isinstance(key, str):
            self.put_in(key, value, frame.place(line))
        elif id(owner) in self.namespaces and isinstance(key, str):
            module = self.namespaces[id(owner)]
            self._set_in_module(module, key, value, frame, frame.place(line))
        elif id(owner) in self.namespaces:
            module = self.namespaces[id(owner)]
            module.wild = Opaque("globals() by an unknown name", frame.place(line))
        elif isinstance(owner, dict | list):
            self.containers.changes(owner, self.open_guards, self.steps)
            if isinstance(key, Opaque | Either):
                reason, own = "an item by an unknown index", is_own(key)
                self.forget(owner, reason, frame, line, own=own)
            else:
                self._python(owner.__setitem__, key, value, frame, line)

    def delete_item(self, owner: Value, index: Value, frame: Frame, line: int) -> None:
        """``del owner[index]``."""
        if owner == Foreign("sys.modules") and isinstance(index, str):
            self.take_out(index, UNBOUND, frame, frame.place(line))
        elif id(owner) in self.namespaces and isinstance(index, str):
            self._python(dict.__delitem__, self.namespaces[id(owner)].names, index, frame, line)
        elif isinstance(owner, dict) and is_plain(index):
            self.containers.changes(owner, self.open_guards, self.steps)
            self._python(dict.__delitem__, owner, index, frame, line)

    def put_in(self, name: str, value: Value, place: Place) -> None:
        """Set an entry of ``sys.modules``; on a branch of an open condition it is not known."""
        if value is self.loaded(name):
            return
        if self.open_guards:
            value = Opaque(f"a branch changes sys.modules[{name!r}]", place)
            parent, _, child = name.rpartition(".")
            package = self.loaded(parent)
            if isinstance(package, ModuleValue):
                package.names.setdefault(child, value)
        if value is UNBOUND:
            self.modules.pop(name, None)
        else:
            self.modules[name] = value
        if isinstance(value, ModuleValue):
            self.namespaces[id(value.names)] = value

    def function_facts(self, function: Function) -> f.FunctionFacts | f.Unparsed:
        """The body of a function of the tree."""
        self.paths_read.add(function.module.path)
        return self.program.function(function.module.path, function.facts)
