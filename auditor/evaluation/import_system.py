"""Modules found, loaded and looked up in ``sys.modules`` (the import reference, PEP 420)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from auditor import facts as f
from auditor.evaluation.foreign_modules import ForeignModules
from auditor.evaluation.frame import Frame, doubtful, opposite
from auditor.values import (
    UNBOUND,
    Doubt,
    Error,
    Foreign,
    ModuleValue,
    Opaque,
    Origin,
    Place,
    PythonError,
    Undecided,
    Value,
    builtin_error,
)

#: How many imports may be running inside each other.
_MAX_NESTED = 150


class ImportSystem(ForeignModules):
    """Imports modules: those of the tree are run statement by statement."""

    #: Modules that failed, by path.
    failed: dict[str, ModuleValue]
    #: Modules that were run twice, since a branch alone had imported them first.
    run_again: set[str]
    unparsed: dict[str, f.Unparsed]
    #: Modules that nothing is known of, each with what importing it may raise.
    unreadable: dict[str, Doubt]
    paths_read: set[str]
    #: Whether any module was loaded with doubts so far.
    _perhaps_failed: bool
    #: How many imports are running inside each other.
    _nested: int

    def import_module(self, name: str, frame: Frame, place: Place) -> Value:
        """Import ``name`` with its parents, and give the last module."""
        value = self.modules.get(name, UNBOUND)
        if value is UNBOUND:
            value = self._find_and_load(name, frame, place)
        elif value is None:
            message = f"import of {name} halted; None in sys.modules"
            raise PythonError(self._not_found(message, name, place, ""))
        elif type(value) is ModuleValue and value.under:
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

    @staticmethod
    def _inherit(doubts: Iterable[Doubt], frame: Frame, place: Place) -> None:
        for doubt in doubts:
            frame.doubt(Doubt(doubt.error.seen_from(place), doubt.condition))

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

    def _find_and_load(self, name: str, frame: Frame, place: Place) -> Value:
        parent, _, child = name.rpartition(".")
        if name.partition(".")[0] not in self.conventions.roots:
            return self._import_foreign(name, frame, place)
        package: Value = None
        if parent:
            package = self.import_module(parent, frame, place)
            if name in self.modules:
                # Its package has imported it, on one branch perhaps.
                return self.import_module(name, frame, place)
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
        if self.paths_read and not self.comes_with_tree(name):
            # By code in one of the modules that were read.
            self.program.asked_by_text(min(self.paths_read), name)
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

    def entry(self, name: str) -> Value:
        """The entry of ``sys.modules`` where there is one, which may not be known."""
        module = self.loaded(name)
        return Foreign(name) if module is UNBOUND else module
