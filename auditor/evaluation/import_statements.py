"""``import`` and ``from … import``, as PEP 328 and the import reference have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import msgspec
from msgspec.structs import replace

from auditor import facts as f
from auditor.evaluation.calls import Calls
from auditor.evaluation.frame import CONSTANT_TYPES, Frame, doubtful, join, opposite
from auditor.evaluation.texts import Texts
from auditor.values import (
    UNBOUND,
    Deferred,
    Doubt,
    Either,
    Error,
    Foreign,
    Guard,
    ModuleValue,
    Opaque,
    Place,
    PlatformObject,
    PythonError,
    Trace,
    Unbound,
    Undecided,
    Value,
    Version,
    builtin_error,
)


class Conventions(msgspec.Struct, frozen=True):
    """Where the audited package keeps what the run must know (``rules/vllm.toml``)."""

    roots: frozenset[str]
    current_platform: str
    constants: Mapping[str, Value]
    python: Version


class Program(msgspec.Struct, frozen=True):
    """The files of a tree as modules: where each stands, and its facts when asked.

    Attributes:
        modules: dotted name to path and whether it is a package.
        namespaces: folders without ``__init__.py`` (PEP 420), as dotted names.
        facts: the facts of a path.
        function: the facts of a function at lines of a path.
        left_out: modules, or whole packages, whose files the source names but does not hold: for
            each the path, and why. What is there is not known.
        looked_through: told the path of a module when all its names are looked at at once.
        asked_by_text: told the path of code that asks for an attribute by a text, and the text.
        texts: what the text says by itself, for all runs.
    """

    modules: Mapping[str, tuple[str, bool]]
    namespaces: frozenset[str]
    facts: Callable[[str], f.ModuleFacts | f.Unparsed]
    function: Callable[[str, f.Func], f.FunctionFacts | f.Unparsed]
    left_out: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    looked_through: Callable[[str], object] = lambda _: None
    asked_by_text: Callable[[str, str], object] = lambda _, __: None
    texts: Texts = msgspec.field(default_factory=Texts)


#: What stands in ``sys.modules`` and may not: a module that may have failed, an unreadable one.
_DOUBTED = (ModuleValue, Opaque)

#: What a name may stand for that a ``from`` import does not take over as it is; None may be a
#: name that is not there.
_ASKED_FURTHER = frozenset((Unbound, Either, Opaque, ModuleValue, type(None)))


class ImportStatements(Calls):
    """Runs import statements."""

    conventions: Conventions
    modules: dict[str, Value]
    #: Modules that nothing is known of, each with what importing it may raise.
    unreadable: dict[str, Doubt]

    def looked_through(self, module: ModuleValue) -> None:
        """All names of a module were looked at at once; a namespace package has no file."""
        if module.path:
            self.program.looked_through(module.path)

    def asked_by_text(self, module: ModuleValue, name: str) -> None:
        """Code of a module asked for an attribute by a text."""
        self.program.asked_by_text(module.path, name)

    def bind_import(self, stmt: f.Import, frame: Frame) -> None:
        """``import a.b.c`` binds ``a``; ``import a.b.c as x`` binds the last module."""
        place = frame.place(stmt.line)
        head, _, rest = stmt.module.partition(".")
        if not (self.eager or frame.trying) and head in self.conventions.roots:
            self._must_exist(stmt.module, place)
            target = stmt.module if stmt.asname else head
            self.bind(frame, stmt.asname or head, Deferred(target, None, place), stmt, stmt.line)
            return
        known = None if rest or self.unreadable else self.modules.get(head)
        if type(known) is Foreign:
            # As most imports from outside the tree are: it was imported before.
            self.bind(frame, stmt.asname or head, known, stmt, stmt.line)
            return
        leaf = self.import_module(stmt.module, frame, place)
        top = self._top(stmt.module, frame, place)
        if stmt.asname is None:
            value = top
        elif rest and isinstance(leaf, ModuleValue):
            value = self._by_attributes(stmt.module, leaf, frame, place)
        else:
            value = leaf
        self.bind(frame, stmt.asname or head, value, stmt, stmt.line)

    def _by_attributes(self, name: str, leaf: ModuleValue, frame: Frame, place: Place) -> Value:
        """``import a.b as x`` reads ``b`` of ``a`` as ``from a import b`` does."""
        head, *parts = name.split(".")
        value = self.modules.get(head, UNBOUND)
        for part in parts:
            if not isinstance(value, ModuleValue):
                return leaf
            value = self._present_or_loaded(value, head, part, frame, place)
            head = f"{head}.{part}"
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
        name = self._absolute(stmt, frame.module, place) if stmt.level else stmt.module
        if frame.trace is not None:
            frame.trace.append(Trace("import", place, f"from {name}"))
        if not (self.eager or frame.trying) and name.partition(".")[0] in self.conventions.roots:
            self._defer_from(name, stmt, frame, place)
            return
        module = self.import_module(name, frame, place)
        at_hand = self._at_hand(module, stmt) if module is not frame.module else None
        if at_hand is not None:
            self.bind_all(frame, at_hand, stmt, stmt.line)
            return
        if isinstance(module, ModuleValue):
            self._import_listed(module, name, [attr for attr, _ in stmt.names], frame, place)
        for attr, bound in stmt.names:
            if attr == "*":
                self._star(module, frame, stmt, place)
            else:
                value = self._from(module, name, attr, frame, place)
                self.bind(frame, bound, value, stmt, stmt.line)

    def _at_hand(self, module: Value, stmt: f.ImportFrom) -> dict[str, Value] | None:
        """What most imports bind: there is nothing to search for, to serve or to doubt.

        That is where a module has each name on every branch, as one value, and no hook of its own;
        and where it is outside the tree, since it has what is imported from it.
        """
        if type(module) is Foreign:
            if stmt.names[0][0] == "*":
                return None
            prefix = module.name
            return {bound: self.foreign_attribute(f"{prefix}.{a}") for a, bound in stmt.names}
        if type(module) is not ModuleValue or module.name == self.platform_module:
            return None
        if "__getattr__" in module.names:
            return None
        look_up = module.names.get
        found = {bound: look_up(attr) for attr, bound in stmt.names}
        return found if _ASKED_FURTHER.isdisjoint(map(type, found.values())) else None

    def _import_listed(
        self, module: ModuleValue, name: str, attrs: list[str], frame: Frame, place: Place
    ) -> None:
        """Import the submodules among the names of a ``from``, all before the first is bound.

        A plain module is asked for its ``__path__``, and so its ``__getattr__`` runs.
        """
        if not module.is_package and "__getattr__" not in module.names:
            return
        trace, frame.trace = frame.trace, None
        try:
            if not module.is_package:
                self._present(module, "__path__", frame, place)
            elif len(attrs) > 1:
                for attr in attrs:
                    self._where_missing(module, name, attr, frame, place)
        finally:
            frame.trace = trace

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
            # A module outside the tree that exists has what the tree imports from it.
            probing, frame.probing = frame.probing, 0
            try:
                return self.attribute(module, attr, frame, place.line)
            finally:
                frame.probing = probing
        if module.is_package:
            submodule = self._where_missing(module, name, attr, frame, place)
            if submodule is not UNBOUND:
                return submodule
        return self._present_or_loaded(module, name, attr, frame, place)

    def _where_missing(
        self, package: ModuleValue, name: str, attr: str, frame: Frame, place: Place
    ) -> Value:
        """The submodule that ``from`` imports where a package lacks the name, else UNBOUND.

        One that only some branches lack is imported on those.
        """
        full, held = f"{name}.{attr}", package.names.get(attr, UNBOUND)
        lacking = self._lacking(held) if isinstance(held, Either) else None
        if lacking is None or "__getattr__" in package.names or self.find(full, place) is False:
            missing = self._present(package, attr, frame, place) is UNBOUND
            return self._submodule(full, frame, place) if missing else UNBOUND
        try:
            with self.branch(lacking):
                self._submodule(full, frame, place)
        except PythonError as raised:
            frame.doubt(Doubt(raised.error, doubtful(lacking, "a branch does not bind it")))
        return UNBOUND

    def _lacking(self, value: Either) -> Guard | None:
        """A branch on which a name is not bound, of those that the branch followed leaves."""
        return next((guard for guard, option in self.alive(value) if option is UNBOUND), None)

    def _present(self, module: ModuleValue, attr: str, frame: Frame, place: Place) -> Value:
        """``module.attr`` as ``from`` looks it up, or UNBOUND where there is none."""
        mark = frame.doubts.mark()
        try:
            value = self.module_attribute(module, attr, place, frame)
        except PythonError as raised:
            if "AttributeError" in raised.error.bases:
                return UNBOUND
            raise
        if frame.doubts.mark() > mark:
            self._doubt_as_import(module, attr, frame, mark, place)
        return value

    def _present_or_loaded(
        self, module: ModuleValue, name: str, attr: str, frame: Frame, place: Place
    ) -> Value:
        """An attribute of a module, else a submodule that is loading, else ``ImportError``."""
        value = self._present(module, attr, frame, place)
        if value is UNBOUND:
            value = self.modules.get(f"{name}.{attr}", UNBOUND)
        if value is UNBOUND:
            raise PythonError(self._cannot_import(module, attr, place))
        if type(value) in _DOUBTED and value is self.modules.get(f"{name}.{attr}", UNBOUND):
            # Where loading it has failed before, the package lacks it, and it is loaded again.
            return self.import_module(f"{name}.{attr}", frame, place)
        return value

    def _doubt_as_import(
        self, module: ModuleValue, attr: str, frame: Frame, mark: int, place: Place
    ) -> None:
        """A name that may be missing as an attribute is missing to ``from`` as an ImportError."""
        for doubt in frame.doubts.since(mark):
            if "AttributeError" in doubt.error.bases:
                frame.doubts.drop([doubt])
                frame.doubt(replace(doubt, error=self._cannot_import(module, attr, place)))

    def _submodule(self, full: str, frame: Frame, place: Place) -> Value:
        mark = frame.doubts.mark()
        try:
            value = self.import_module(full, frame, place)
            self._top(full, frame, place)
        except PythonError as raised:
            if raised.error.searching == full:
                frame.doubts.drop(frame.doubts.since(mark))
                return UNBOUND
            raise
        return value

    def _top(self, name: str, frame: Frame, place: Place) -> Value:
        """The first package of a dotted name, which importing it imports in the end.

        That matters where the rest was loaded before, and the package failed since.
        """
        head = name.partition(".")[0]
        if head in self.conventions.roots:
            return self.import_module(head, frame, place)
        return self.modules.get(head, Foreign(head))

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
            return None
        self.looked_through(module)
        exported = module.names.get("__all__", UNBOUND)
        if exported is UNBOUND:
            trace, frame.trace = frame.trace, None
            exported = self._present(module, "__all__", frame, place)
            frame.trace = trace
        exported = self.force(exported, frame)
        if isinstance(exported, Either):
            why = Undecided(f"the __all__ of {module.name} is one of several", place)
            branches = [
                (guard, partial(self._star_names, module, option, frame, stmt, place))
                for guard, option in self.alive(exported)
            ]
            return self.fork(frame, why, branches)
        return self._star_names(module, exported, frame, stmt, place)

    def _star_names(
        self, module: ModuleValue, exported: Value, frame: Frame, stmt: f.ImportFrom, place: Place
    ) -> None:
        """Bind what a star import binds, for one value of ``__all__``."""
        if isinstance(exported, CONSTANT_TYPES) and not isinstance(exported, str | bytes):
            message = f"{type(exported).__name__!r} object is not iterable"
            raise PythonError(builtin_error("TypeError", message, place))
        if isinstance(exported, list | tuple) and all(isinstance(name, str) for name in exported):
            for name in exported:
                self.bind(frame, name, self._star_name(module, name, frame, place), stmt, stmt.line)
            return
        if exported is not UNBOUND:
            frame.module.wild = Opaque(f"the __all__ of {module.name} is not known", place)
        guard = Guard(place, f"the __all__ of {module.name}", None)
        for name, value in list(module.names.items()):
            if not name.startswith("_"):
                before = frame.names.get(name, UNBOUND)
                if exported is not UNBOUND:
                    # A list that is not known may leave it out.
                    value = join(((guard, value), (opposite(guard), before)))
                elif isinstance(value, Either):
                    # A branch that does not bind it leaves what the name stood for before.
                    options = [(g, before if v is UNBOUND else v) for g, v in self.alive(value)]
                    value = join(options)
                self.bind(frame, name, value, stmt, stmt.line)
        if module.wild is not None:
            frame.module.wild = module.wild

    def _star_name(self, module: ModuleValue, name: str, frame: Frame, place: Place) -> Value:
        """A name of ``__all__``; a package's submodules are imported for it."""
        if module.is_package:
            self._where_missing(module, module.name, name, frame, place)
        return self.module_attribute(module, name, place, frame)

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

    def _no_attribute(self, module: ModuleValue, name: str, place: Place) -> Error:
        message = f"module {module.name!r} has no attribute {name!r}"
        submodule = self.modules.get(f"{module.name}.{name}")
        circular = "(most likely due to a circular import)"
        if module.state == "running":
            message = f"partially initialized {message} {circular}"
        elif isinstance(submodule, ModuleValue) and submodule.state == "running":
            message = f"cannot access submodule {name!r} of module {module.name!r} {circular}"
        return builtin_error("AttributeError", message, place)
