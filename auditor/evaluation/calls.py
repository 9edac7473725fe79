"""Calls made while a module loads.

Functions of the standard library that decide what is imported (``importlib``, ``os.environ``,
``contextlib``) have their meaning here. Functions of the tree are run when their result is
asked for. Every other call succeeds with a value that nobody looked into.
"""

from __future__ import annotations

from msgspec import structs

from auditor import facts as f
from auditor.evaluation.builtin_calls import SPECIAL, BuiltinCalls
from auditor.evaluation.frame import Frame, Returning, doubtful, guard_pair, join, opposite
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
    Trace,
    Undecided,
    Value,
    builtin_error,
)

_MAX_DEPTH = 12

#: Decorators that leave what the function returns as it is.
_TRANSPARENT = frozenset(
    {"functools.cache", "functools.lru_cache", "functools.wraps", "typing.no_type_check",
     "torch.compiler.assume_constant_result", "torch.compiler.disable"}
)  # fmt: skip

_IMPORTERS = frozenset({"importlib.import_module"})


class Calls(BuiltinCalls):
    """Gives calls their meaning."""

    #: How many calls are being run, each for the value of another.
    running: int = 0

    def call(self, func: Value, call: f.Call, frame: Frame, line: int) -> Value:
        """The value of a call whose function is evaluated already."""
        place = frame.place(line)
        func = self.force(func, frame) if isinstance(func, Pending) else func
        if isinstance(func, Either):
            return self._each(
                self.alive(func), frame, lambda one: self.call(one, call, frame, line)
            )
        if isinstance(func, Builtin) and func.name in SPECIAL:
            return SPECIAL[func.name](self, call, frame, line)
        unpacked = self._unpacked(call, frame, line)
        if unpacked is None:
            return Opaque("a call with unknown arguments", place, call.text)
        args, keywords = unpacked
        match func:
            case Builtin(name=name):
                return self._builtin(name, args, keywords, frame, line, call.text)
            case Method():
                return self._method(func, args, keywords, frame, line, call.text)
            case PlatformMethod(name=name):
                return self._platform_call(name, args, keywords, place, call.text)
            case Function():
                return Pending(func, args, keywords, place, call.text, self.steps)
            case Closure(facts=facts) if len(args) == len(facts.params) and not keywords:
                return self._closure(func, args, frame)
            case Foreign(name=name):
                return self._foreign_call(name, args, keywords, frame, line, call.text)
            case ClassValue():
                return Instance(func, place, args, keywords)
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
                return Opaque("the result of a call that is not followed", place, call.text)

    def _unpacked(
        self, call: f.Call, frame: Frame, line: int
    ) -> tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]] | None:
        """The arguments with ``*`` and ``**`` unpacked, or None where those are not known."""
        args: list[Value] = []
        known = True
        for index, node in enumerate(call.args):
            value = self.evaluate(node, frame, line)
            if index in call.starred:
                value = self.force(value, frame)
                known = known and isinstance(value, tuple | list)
                args.extend(value if isinstance(value, tuple | list) else ())
            else:
                args.append(value)
        keywords: list[tuple[str, Value]] = []
        for name, node in call.keywords:
            value = self.evaluate(node, frame, line)
            if name == "**":
                value = self.force(value, frame)
                known = known and isinstance(value, dict)
                keywords.extend(value.items() if isinstance(value, dict) else ())
            else:
                keywords.append((name, value))
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
        return Opaque(value.reason, place, text) if isinstance(value, Undecided) else value

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
            package = next(
                (v for k, v in keywords if k == "package"), args[1] if len(args) > 1 else None
            )
            return self._import_by_name(first, self.force(package, frame), frame, place)
        if name in ("packaging.version.Version", "packaging.version.parse") and len(args) == 1:
            return (
                first if isinstance(first, Release) else self._package_version(first, place, text)
            )
        if name == "importlib.metadata.version" and isinstance(first, str):
            return self.installed_release(first, place)
        if name == "importlib.util.find_spec" and isinstance(first, str):
            return self._find_spec(first, frame, place, text)
        if name in ("os.getenv", "os.environ.get") and isinstance(first, str):
            default = next(
                (v for k, v in keywords if k == "default"), args[1] if len(args) > 1 else None
            )
            return self._environment(first, default, place, text)
        if name == "sys.modules.get" and isinstance(first, str):
            return self._loaded_or(first, args[1] if len(args) > 1 else None, place)
        return Opaque(f"the result of {name}()", place, text)

    def _loaded_or(self, name: str, default: Value, place: Place) -> Value:
        """``sys.modules.get(name, default)``."""
        there = self.is_loaded(name)
        if isinstance(there, Undecided):
            then, orelse = guard_pair(there.where or place, there.text, None, there.key)
            return Either(((then, self.loaded(name)), (orelse, default)))
        return self.loaded(name) if there else default

    def _package_version(self, text: Value, place: Place, source: str) -> Value:
        """``packaging.version.Version(text)``; compared by :mod:`auditor.releases`."""
        return exact(text) if isinstance(text, str) else Opaque("a version", place, source)

    def _import_by_name(self, name: str, package: Value, frame: Frame, place: Place) -> Value:
        level = len(name) - len(name.lstrip("."))
        if level:
            if not isinstance(package, str):
                return Opaque("a relative import from an unknown package", place, name)
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - level + 1])
            name = f"{base}.{name[level:]}" if name[level:] else base
        return self.import_module(name, frame, place)

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
        if self.bare_environment:
            return default
        return Opaque(
            f"the variable {name} is not set here; --env {name}=VALUE decides it", place, text
        )

    def result(self, pending: Pending, frame: Frame) -> Value:
        """The value of a pending call, run once; in a bare environment it may be another."""
        if pending.result is not UNBOUND and not self.bare_environment:
            return pending.result
        if self.running >= _MAX_DEPTH:
            return Opaque("calls nested too deeply", pending.where, pending.text)
        self.running += 1
        try:
            if self.bare_environment:
                return self.force(self._run_pending(pending, frame), frame)
            pending.result = Opaque("a call that asks for itself", pending.where, pending.text)
            pending.result = self.force(self._run_pending(pending, frame), frame)
        finally:
            self.running -= 1
        return pending.result

    def _run_pending(self, call: Pending, frame: Frame) -> Value:
        """Run the function for its value.

        Where the statement that calls asks for the value, an exception is raised, as in Python.
        Later on the call counts as done, as every call does: an exception that it surely ends in
        leaves a doubt and an unknown value, and one that it may end in leaves nothing.
        """
        mark, at_once = frame.doubts.mark(), call.step == self.steps
        try:
            value = self.invoke(
                call.function, call.args, call.keywords, frame, call.where, call.text
            )
        except PythonError as raised:
            if at_once:
                raise
            error = f"{raised.error.type}: {raised.error.message}"
            why = Undecided(f"calling it ends in {error}", call.where, call.text)
            frame.doubt(Doubt(raised.error, why))
            return Opaque(why.reason, call.where, call.text)
        if not at_once:
            frame.doubts.drop(frame.doubts.since(mark))
        return value

    def invoke(
        self, function: Function, args: tuple[Value, ...], keywords: tuple[tuple[str, Value], ...],
        frame: Frame, place: Place, text: str, trace: list[Trace] | None = None,
    ) -> Value:  # fmt: skip
        """Call a function of the tree and give what it returns.

        Raises:
            PythonError: what its body raises.
        """
        if frame.depth >= _MAX_DEPTH:
            return Opaque("calls nested too deeply", place, text)
        wrapped = self._decorated(function, frame)
        if isinstance(wrapped, Function) and not wrapped.decorators:
            return self._run_body(
                wrapped, (*wrapped.bound, *args), keywords, frame, place, text, trace
            )
        return Opaque(f"{function.facts.name}() is decorated", place, text)

    def _decorated(self, function: Function, frame: Frame) -> Value:
        """The function that its decorators make of it, innermost first."""
        value: Value = structs.replace(function, decorators=())
        outer = Frame(function.module, {}, depth=frame.depth + 1)
        for node in reversed(function.decorators):
            target = node.func if isinstance(node, f.Call) else node
            decorator = self.evaluate(target, outer, function.facts.start)
            if isinstance(decorator, Foreign) and decorator.name in _TRANSPARENT:
                continue
            if not isinstance(decorator, Function) or isinstance(node, f.Call):
                return Opaque("decorated")
            value = self.force(
                self.invoke(
                    decorator,
                    (value,),
                    (),
                    outer,
                    Place(function.module.path, function.facts.start),
                    "",
                ),
                outer,
            )
            if isinstance(value, Function):
                value = self._decorated(value, outer)
            if not isinstance(value, Function):
                return Opaque("decorated")
            value = structs.replace(value, bound=function.bound)
        return value

    def _run_body(
        self, function: Function, args: tuple[Value, ...], keywords: tuple[tuple[str, Value], ...],
        frame: Frame, place: Place, text: str, trace: list[Trace] | None,
    ) -> Value:  # fmt: skip
        facts = self.function_facts(function)
        if isinstance(facts, f.Unparsed) or facts.generator:
            return Opaque(f"{function.facts.name}() is not followed", place, text)
        scope = self._arguments(function, facts, args, keywords, frame)
        if scope is None:
            return Opaque(f"the arguments of {function.facts.name}() are not followed", place, text)
        scopes = (scope,) if function.scope is None else (scope, function.scope)
        inner = Frame(
            function.module, scope, scopes, (), is_call=True, depth=frame.depth + 1, trace=trace
        )
        inner.doubts = frame.doubts
        try:
            self.block(inner, facts.body)
            result: Value = None
        except Returning as signal:
            result = signal.value
        except PythonError as raised:
            if not inner.returns:
                raise
            return self._unless_raised(inner, raised.error)
        if not inner.returns:
            return result
        return join((*inner.returns, (opposite(inner.returns[-1][0]), result)))

    @staticmethod
    def _unless_raised(frame: Frame, error: Error) -> Value:
        """What a call returns that has returned on an open branch, and raises on the other."""
        raising = opposite(frame.returns[-1][0])
        if frame.trace is None:
            # Asked for its value alone, as in _run_pending.
            value = Opaque(f"the call may end in {error.type}: {error.message}", raising.where)
            return join((*frame.returns, (raising, value)))
        frame.doubt(Doubt(error, doubtful(raising, "depends on an open condition")))
        return join(frame.returns)

    def _arguments(
        self, function: Function, facts: f.FunctionFacts, args: tuple[Value, ...],
        keywords: tuple[tuple[str, Value], ...], frame: Frame,
    ) -> dict[str, Value] | None:  # fmt: skip
        """The parameters' values, or None where the call does not fit the signature."""
        if len(args) > len(facts.params) and facts.vararg is None:
            return None
        scope = dict(zip(facts.params, args, strict=False))
        extra: dict[str, Value] = {}
        for name, value in keywords:
            if name in scope or (name not in facts.params and facts.kwarg is None):
                return None
            (scope if name in facts.params else extra)[name] = value
        if facts.vararg is not None:
            scope[facts.vararg] = tuple(args[len(facts.params) :])
        if facts.kwarg is not None:
            scope[facts.kwarg] = extra
        outer = Frame(function.module, {}, depth=frame.depth + 1)
        for name, default in facts.defaults:
            if name not in scope:
                scope[name] = self.evaluate(default, outer, function.facts.line)
        return scope if all(name in scope for name in facts.params) else None

    def _closure(self, closure: Closure, args: tuple[Value, ...], frame: Frame) -> Value:
        if frame.depth >= _MAX_DEPTH:
            return Opaque("calls nested too deeply")
        scope = dict(zip(closure.facts.params, args, strict=True))
        scopes = (scope,) if closure.scope is None else (scope, closure.scope)
        inner = Frame(closure.module, scope, scopes, (), is_call=True, depth=frame.depth + 1)
        inner.doubts = frame.doubts
        return self.evaluate(closure.facts.body, inner, 0)
