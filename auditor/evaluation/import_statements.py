"""``import`` and ``from … import``, as PEP 328 and the import reference have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from auditor import facts as f
from auditor.evaluation.calls import Calls
from auditor.evaluation.frame import Frame
from auditor.values import (
    UNBOUND,
    Deferred,
    Doubt,
    Error,
    Foreign,
    Guard,
    ModuleValue,
    Opaque,
    Place,
    PlatformObject,
    PythonError,
    Trace,
    Value,
    Version,
    builtin_error,
)


@dataclass(frozen=True, slots=True)
class Conventions:
    """Where the audited package keeps what the run must know (``rules/vllm.toml``)."""

    roots: frozenset[str]
    current_platform: str
    constants: Mapping[str, Value]
    python: Version


@dataclass(frozen=True, slots=True)
class Program:
    """The files of a tree as modules: where each stands, and its facts when asked.

    Attributes:
        modules: dotted name to path and whether it is a package.
        namespaces: folders without ``__init__.py`` (PEP 420), as dotted names.
        facts: the facts of a path.
        function: the facts of a function at lines of a path.
    """

    modules: Mapping[str, tuple[str, bool]]
    namespaces: frozenset[str]
    facts: Callable[[str], f.ModuleFacts | f.Unparsed]
    function: Callable[[str, f.Func], f.FunctionFacts | f.Unparsed]


class ImportStatements(Calls):
    """Runs import statements."""

    program: Program
    conventions: Conventions
    eager: bool
    modules: dict[str, Value]

    def bind_import(self, stmt: f.Import, frame: Frame) -> None:
        """``import a.b.c`` binds ``a``; ``import a.b.c as x`` binds the last module."""
        place = frame.place(stmt.line)
        head, _, rest = stmt.module.partition(".")
        if not (self.eager or frame.trying) and head in self.conventions.roots:
            self._must_exist(stmt.module, place)
            target = stmt.module if stmt.asname else head
            self.bind(frame, stmt.asname or head, Deferred(target, None, place), stmt, stmt.line)
            return
        leaf = self.import_module(stmt.module, frame, place)
        if stmt.asname is None:
            value = self.modules.get(head, Foreign(head))
        elif rest and isinstance(leaf, ModuleValue):
            value = self._by_attributes(stmt.module, leaf, frame, stmt.line)
        else:
            value = leaf
        self.bind(frame, stmt.asname or head, value, stmt, stmt.line)

    def _by_attributes(self, name: str, leaf: ModuleValue, frame: Frame, line: int) -> Value:
        """``import a.b as x`` reads ``a.b`` by attribute, and else from ``sys.modules``."""
        parts = name.split(".")
        value = self.modules.get(parts[0], UNBOUND)
        for index, part in enumerate(parts[1:], start=2):
            if not isinstance(value, ModuleValue):
                return leaf
            value = value.names.get(part, self.modules.get(".".join(parts[:index]), leaf))
        return value

    def _must_exist(self, name: str, place: Place) -> None:
        found = self.find(name, place)
        if found is False:
            message = f"No module named {name!r}"
            fact = self.platform.existence(name).fact
            raise PythonError(self._not_found(message, name, place, fact))

    def bind_import_from(self, stmt: f.ImportFrom, frame: Frame) -> None:
        """``from module import names``."""
        place = frame.place(stmt.line)
        name = self._absolute(stmt, frame.module, place)
        if frame.trace is not None:
            frame.trace.append(Trace("import", place, f"from {name}"))
        if not (self.eager or frame.trying) and name.partition(".")[0] in self.conventions.roots:
            self._defer_from(name, stmt, frame, place)
            return
        module = self.import_module(name, frame, place)
        for attr, bound in stmt.names:
            if attr == "*":
                self._star(module, frame, stmt, place)
            else:
                value = self._from(module, name, attr, frame, place)
                self.bind(frame, bound, value, stmt, stmt.line)

    @staticmethod
    def _absolute(stmt: f.ImportFrom, module: ModuleValue, place: Place) -> str:
        """The absolute name that a relative import means (PEP 328)."""
        name = f.absolute_name(stmt, module.package)
        if not name:
            message = "attempted relative import beyond top-level package"
            if not module.package:
                message = "attempted relative import with no known parent package"
            raise PythonError(builtin_error("ImportError", message, place))
        return name

    def _from(self, module: Value, name: str, attr: str, frame: Frame, place: Place) -> Value:
        """One name of a ``from`` import: an attribute, else a submodule, else ``ImportError``."""
        if not isinstance(module, ModuleValue):
            return self.attribute(module, attr, frame, place.line)
        mark = frame.doubts.mark()
        try:
            value = self.module_attribute(module, attr, place, frame)
        except PythonError as raised:
            if raised.error.type != "AttributeError":
                raise
        else:
            if frame.doubts.mark() > mark:
                self._doubt_as_import(module, attr, frame, mark, place)
            return value
        full = f"{name}.{attr}"
        if module.is_package:
            submodule = self._submodule(full, frame, place)
            if submodule is not UNBOUND:
                return submodule
        if full in self.modules:
            return self.modules[full]
        raise PythonError(self._cannot_import(module, attr, place))

    def _doubt_as_import(
        self, module: ModuleValue, attr: str, frame: Frame, mark: int, place: Place
    ) -> None:
        """A name that only a branch binds is missing to ``from`` as an ``ImportError``."""
        missing = self._no_attribute(module, attr, place)
        for doubt in frame.doubts.since(mark):
            if doubt.error.type == missing.type and doubt.error.message == missing.message:
                frame.doubts.drop([doubt])
                frame.doubt(Doubt(self._cannot_import(module, attr, place), doubt.condition))

    def _submodule(self, full: str, frame: Frame, place: Place) -> Value:
        mark = frame.doubts.mark()
        try:
            return self.import_module(full, frame, place)
        except PythonError as raised:
            frame.doubts.drop(frame.doubts.since(mark))
            if raised.error.searching == full:
                return UNBOUND
            raise

    def _cannot_import(self, module: ModuleValue, attr: str, place: Place) -> Error:
        if module.state == "running":
            message = (
                f"cannot import name {attr!r} from partially initialized module {module.name!r} "
                "(most likely due to a circular import)"
            )
        else:
            message = f"cannot import name {attr!r} from {module.name!r}"
        # A name that starts in lower case may be meant for a module, which nothing builds here.
        may_be_module = module.is_package and not attr.lstrip("_")[:1].isupper()
        fact = self.platform.existence(f"{module.name}.{attr}").fact if may_be_module else ""
        return builtin_error("ImportError", message, place, fact=fact)

    def _star(self, module: Value, frame: Frame, stmt: f.ImportFrom, place: Place) -> None:
        """``from module import *``: the names of ``__all__``, or all public ones."""
        if not isinstance(module, ModuleValue):
            known = module.name if isinstance(module, Foreign) else "an unknown module"
            frame.module.wild = Opaque(f"may come from {known} by a star import", place)
            return
        exported = self.force(module.names.get("__all__", UNBOUND), frame)
        if isinstance(exported, list | tuple) and all(isinstance(name, str) for name in exported):
            for name in exported:
                self.bind(frame, name, self._star_name(module, name, frame, place), stmt, stmt.line)
            return
        if exported is not UNBOUND:
            frame.module.wild = Opaque(f"the __all__ of {module.name} is not known", place)
        for name, value in list(module.names.items()):
            if not name.startswith("_"):
                self.bind(frame, name, value, stmt, stmt.line)
        if module.wild is not None:
            frame.module.wild = module.wild

    def _star_name(self, module: ModuleValue, name: str, frame: Frame, place: Place) -> Value:
        """A name of ``__all__``; a package's submodules are imported for it."""
        try:
            return self.module_attribute(module, name, place, frame)
        except PythonError as raised:
            if raised.error.type != "AttributeError" or not module.is_package:
                raise
            submodule = self._submodule(f"{module.name}.{name}", frame, place)
            if submodule is UNBOUND:
                raise
            return submodule

    def _defer_from(self, name: str, stmt: f.ImportFrom, frame: Frame, place: Place) -> None:
        self._must_exist(name, place)
        for attr, bound in stmt.names:
            if attr == "*":
                self._star(self.import_module(name, frame, place), frame, stmt, place)
            else:
                full = f"{name}.{attr}"
                value: Value = Deferred(name, attr, place)
                if full == self.conventions.current_platform:
                    value = PlatformObject()
                elif frame.module.name == name and attr not in frame.module.names:
                    # A package asks itself for what it does not have yet: that is a submodule.
                    value = Deferred(full, None, place)
                self.bind(frame, bound, value, stmt, stmt.line)

    @staticmethod
    def _not_found(
        message: str, name: str, place: Place, fact: str, guards: tuple[Guard, ...] = ()
    ) -> Error:
        return builtin_error(
            "ModuleNotFoundError", message, place, fact=fact, searching=name, guards=guards
        )

    @staticmethod
    def _no_attribute(module: ModuleValue, name: str, place: Place) -> Error:
        message = f"module {module.name!r} has no attribute {name!r}"
        if module.state == "running":
            message = (
                f"partially initialized module {module.name!r} has no attribute {name!r} "
                "(most likely due to a circular import)"
            )
        return builtin_error("AttributeError", message, place)
