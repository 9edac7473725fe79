"""Calls made while a module loads.

Functions of the standard library that decide what is imported (``importlib``, ``os.environ``,
``contextlib``) have their meaning here. Functions of the tree are run when their result is
asked for. Every other call succeeds with a value that nobody looked into.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from auditor import facts as f
from auditor.evaluation.builtin_calls import SPECIAL
from auditor.evaluation.frame import Frame, guard_pair, is_own, is_plain
from auditor.evaluation.loaded import TABLE_METHODS, LoadedModules
from auditor.evaluation.truth import ITERATING
from auditor.releases import exact
from auditor.values import (
    UNBOUND,
    Builtin,
    ClassValue,
    Closure,
    Doubt,
    Either,
    Error,
    Foreign,
    Function,
    Instance,
    Method,
    ModuleValue,
    Opaque,
    Pending,
    Place,
    PlatformMethod,
    PythonError,
    Release,
    Spec,
    Suppress,
    Undecided,
    Value,
    builtin_error,
)

_IMPORTERS = frozenset({"importlib.import_module"})


class Calls(LoadedModules):
    """Gives calls their meaning."""

    def call(self, func: Value, call: f.Call, frame: Frame, line: int) -> Value:
        """The value of a call whose function is evaluated already."""
        if type(func) is Pending:
            func = self.force(func, frame)
        if type(func) is Either:
            return self._each(
                self.alive(func), frame, lambda one: self.call(one, call, frame, line)
            )
        if type(func) is Builtin and func.name in SPECIAL:
            return SPECIAL[func.name](self, call, frame, line)
        place = frame.place(line)
        unpacked = self._unpacked(func, call, frame, line)
        if unpacked is None:
            if isinstance(func, Function):
                self.lose_effects(func, (), place)
            return Opaque("a call with unknown arguments", place, call.text)
        args, keywords = unpacked
        match func:
            case Function():
                return self.tree_call(func, args, keywords, frame, place, call.text)
            case Foreign(name=name):
                return self._foreign_call(name, args, keywords, frame, line, call.text)
            case ClassValue():
                return self.make(func, args, keywords, frame, place, call.text)
            case Builtin(name=name):
                return self._builtin(name, args, keywords, frame, line, call.text)
            case Method():
                return self._method(func, args, keywords, frame, line, call.text)
            case PlatformMethod(name=name):
                return self._platform_call(name, args, keywords, place, call.text)
            case Closure(facts=facts) if len(args) == len(facts.params) and not keywords:
                return self._closure(func, args, frame)
            case Instance(cls=cls) if (method := self.method(cls, "__call__")) is not None:
                bound = structs.replace(method, bound=(func,))
                return self.tree_call(bound, args, keywords, frame, place, call.text)
            case Opaque(alias=ClassValue() as cls):
                return self.make(cls, args, keywords, frame, place, call.text)
            case (
                None
                | bool()
                | int()
                | float()
                | str()
                | bytes()
                | tuple()
                | list()
                | dict()
                | ModuleValue()
            ):
                kind = "module" if isinstance(func, ModuleValue) else type(func).__name__
                raise PythonError(
                    builtin_error("TypeError", f"{kind!r} object is not callable", place)
                )
            case _:
                if isinstance(func, Instance):
                    self.refuse(lambda stand: stand(), func, ("__call__",), frame, line)
                own = is_own(func) or any(map(is_own, args))
                return Opaque(
                    "the result of a call that is not followed", place, call.text, own=own
                )

    def _unpacked(
        self, func: Value, call: f.Call, frame: Frame, line: int
    ) -> tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]] | None:
        """The arguments with ``*`` and ``**`` unpacked, or None where those are not known."""
        if not call.starred and not call.keywords:
            return tuple([self.evaluate(node, frame, line) for node in call.args]), ()
        args: list[Value] = []
        known, may_double = True, False
        for index, node in enumerate(call.args):
            value = self.evaluate(node, frame, line)
            if index in call.starred:
                value = self.listed(value, frame)
                known = known and isinstance(value, tuple | list | dict | str | range)
                if not isinstance(value, tuple | list | dict | str | range):
                    self.refuse(_starred, value, ITERATING, frame, line)
                    value = ()
                args.extend(value)
            else:
                args.append(value)
        keywords: list[tuple[str, Value]] = []
        for name, node in call.keywords:
            value = self.evaluate(node, frame, line)
            if name == "**":
                value, may_double = self.force(value, frame), True
                known = known and isinstance(value, dict)
                if not isinstance(value, dict):
                    self.refuse(_mapped, value, ("keys",), frame, line)
                    value = {}
                if not all(isinstance(key, str) for key in value if is_plain(key)):
                    wrong = "keywords must be strings"
                    raise PythonError(builtin_error("TypeError", wrong, frame.place(line)))
                keywords.extend(value.items())
            else:
                keywords.append((name, value))
        if may_double and len(dict(keywords)) < len(keywords):
            twice = next(n for i, (n, _) in enumerate(keywords) if n in dict(keywords[:i]))
            said = f"got multiple values for keyword argument {twice!r}"
            name = _full_name(func)
            raise PythonError(builtin_error("TypeError", f"{name}() {said}", frame.place(line)))
        return (tuple(args), tuple(keywords)) if known else None

    def _platform_call(
        self,
        name: str,
        args: tuple[Value, ...],
        keywords: tuple[tuple[str, Value], ...],
        place: Place,
        text: str,
    ) -> Value:
        value = self.platform.call(name, bool(args or keywords))
        if not isinstance(value, Undecided):
            return value
        plain = is_plain(args) and not keywords
        key = f"platform:{name}{args}" if plain else ""
        return Opaque(value.reason, place, text, key)

    def _foreign_call(
        self, name: str, args: tuple[Value, ...], keywords: tuple[tuple[str, Value], ...],
        frame: Frame, line: int, text: str,
    ) -> Value:  # fmt: skip
        place = frame.place(line)
        if name == "contextlib.suppress":
            return Suppress(args)
        if name in ("typing.cast", "typing_extensions.cast") and len(args) == 2:
            return args[1]
        first = self.force(args[0], frame) if args else None
        if name in _IMPORTERS and isinstance(first, str):
            package = self.force(_argument(args, keywords, 1, "package"), frame)
            full = self._absolute_name(first, package, place)
            return self.import_module(full, frame, place) if isinstance(full, str) else full
        if name in _IMPORTERS and self.eager:
            return self._import_of_unknown(frame, place, text)
        if name in ("packaging.version.Version", "packaging.version.parse") and len(args) == 1:
            return (
                first if isinstance(first, Release) else self._package_version(first, place, text)
            )
        if name == "importlib.metadata.version" and isinstance(first, str):
            known = self.installed_release(first, place)
            if frame.trying and type(known) is Opaque:
                self.perhaps_not_installed(first, frame, place, text)
            return known
        if name == "importlib.util.find_spec" and isinstance(first, str):
            package = self.force(_argument(args, keywords, 1, "package"), frame)
            full = self._absolute_name(first, package, place)
            if isinstance(full, Opaque):
                return full
            return self._find_spec(full, frame, place, text)
        if name in ("os.getenv", "os.environ.get") and isinstance(first, str):
            default = _argument(args, keywords, 1, "default")
            return self._environment(first, default, place, text)
        if name in TABLE_METHODS and isinstance(first, str):
            return self.ask_table(name, first, args[1:], frame, place)
        return Opaque(f"the result of {name}()", place, text, own=any(map(is_own, args)))

    def _package_version(self, text: Value, place: Place, source: str) -> Value:
        """``packaging.version.Version(text)``; compared by :mod:`auditor.releases`."""
        return exact(text) if isinstance(text, str) else Opaque("a version", place, source)

    def _import_of_unknown(self, frame: Frame, place: Place, text: str) -> Value:
        """``import_module`` of who knows what: it may raise, and load any module of the tree."""
        why = Undecided("which module is imported is not known", place, text)
        self.open_condition(why, frame)
        bases = ("?", "Exception", "BaseException")
        frame.doubt(Doubt(Error("Exception", "…", bases, (place,)), why))
        return Opaque(why.reason, place, text)

    @staticmethod
    def _absolute_name(name: str, package: Value, place: Place) -> str | Opaque:
        """The module that a name means to ``importlib``, relative to ``package`` if it has dots."""
        level = len(name) - len(name.lstrip("."))
        if not level:
            return name
        if package is None or package == "":
            message = "the 'package' argument is required to perform a relative import for "
            raise PythonError(builtin_error("TypeError", f"{message}{name!r}", place))
        if not isinstance(package, str):
            return Opaque("a relative import from an unknown package", place, name)
        parts = package.split(".")
        if level > len(parts):
            message = "attempted relative import beyond top-level package"
            raise PythonError(builtin_error("ImportError", message, place))
        base = ".".join(parts[: len(parts) - level + 1])
        return f"{base}.{name[level:]}" if name[level:] else base

    def _find_spec(self, name: str, frame: Frame, place: Place, text: str) -> Value:
        parent = name.rpartition(".")[0]
        if self.eager and parent and self.loaded(name) is UNBOUND:
            package = self.import_module(parent, frame, place)
            if isinstance(package, ModuleValue) and not package.is_package:
                message = f"__path__ attribute not found on {parent!r} "
                message += f"while trying to find {name!r}"
                raise PythonError(builtin_error("ModuleNotFoundError", message, place))
        found = self.find(name, place)
        if isinstance(found, Undecided):
            found_it, missing = guard_pair(place, text, None, found.key)
            return Either(((found_it, Spec(name)), (missing, None)))
        return Spec(name) if found else None

    def _environment(self, name: str, default: Value, place: Place, text: str) -> Value:
        if name in self.platform.environment:
            return self.platform.environment[name]
        self.environment_asked += 1
        if self.bare_environment:
            return default
        return Opaque(
            f"the variable {name} is not set here; --env {name}=VALUE decides it",
            place,
            text,
            usual=default,
            like="a" if isinstance(default, str) else UNBOUND,
        )


def _full_name(func: Value) -> str:
    """What Python calls a function where it cannot make the arguments of a call."""
    if not isinstance(func, Function):
        return "…"
    return f"{func.module.name}.{func.prefix}{func.facts.name}"


def _starred(value: Any) -> None:
    try:
        iter(value)
    except TypeError:
        message = f"…() argument after * must be an iterable, not {type(value).__name__}"
        raise TypeError(message) from None


def _mapped(value: Any) -> None:
    try:
        dict(**value)
    except TypeError:
        message = f"…() argument after ** must be a mapping, not {type(value).__name__}"
        raise TypeError(message) from None


def _argument(
    args: tuple[Value, ...], keywords: tuple[tuple[str, Value], ...], index: int, name: str
) -> Value:
    """An argument by its position or its name; None where it is not given."""
    if len(args) > index:
        return args[index]
    return next((value for keyword, value in keywords if keyword == name), None)
