"""What a function of the tree can do besides giving a value, read off its text.

Most functions that modules call while they load (``logger = init_logger(__name__)``) can neither
raise nor change anything that others see, and nobody asks for what they return. Such a call is
not run before its value is asked for. The rule is narrow on purpose: what it does not know is run.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator

from auditor import facts as f
from auditor.evaluation.builtin_calls import BuiltinCalls
from auditor.evaluation.frame import CONTAINERS, same
from auditor.evaluation.readings import Summary
from auditor.values import (
    UNBOUND,
    Builtin,
    ClassValue,
    Deferred,
    Either,
    Foreign,
    Function,
    ModuleValue,
    Opaque,
    PlatformMethod,
    PlatformObject,
    Read,
    Value,
)

#: Decorators that leave what the function returns as it is.
TRANSPARENT = frozenset(
    {"functools.cache", "functools.lru_cache", "functools.wraps", "typing.no_type_check",
     "torch.compiler.assume_constant_result", "torch.compiler.disable"}
)  # fmt: skip

#: Functions outside the tree that import, or that others see the effect of.
_SPECIAL = ("importlib", "sys", "runpy", "pkgutil", "os.environ")

_BUILTIN_NAMES = frozenset(dir(builtins))

#: Builtins that succeed whatever they are given.
_SAFE_BUILTINS = frozenset(("bool callable id isinstance print repr str type object").split())


class _HasEffectsError(Exception):
    """The text may raise, or change what others see."""


class _NotYetError(_HasEffectsError):
    """It may have an effect as things stand: what it reads or imports is not there yet."""


#: A value of which nothing matters but that it is there; and one that a caller passes in.
_SOME, _GIVEN = Opaque("some value"), Opaque("an argument")

_RUN = Summary(False)


class Summaries(BuiltinCalls):
    """Says which calls can be put off."""

    def summary(self, function: Function) -> Summary:
        """The summary of a function; made once, and again when a name it rests on is bound anew."""
        if function.scopes:
            return _RUN
        key, readings = (function.module.path, function.facts.line), self.readings
        known = readings.summaries.get(key)
        if known is not None and (not known.harmless or self.reads_alike(known.reads)):
            return known
        if key in readings.being_made:
            return Summary(True)
        readings.being_made.add(key)
        try:
            made = self._made_summary(function)
        except _NotYetError:
            if not self._gives_up(key):
                return _RUN
            made = _RUN
        finally:
            readings.being_made.discard(key)
        readings.summaries[key] = made
        return made

    def _gives_up(self, key: tuple[str, int]) -> bool:
        """Whether a function has read what is not there so often that it is run from now on."""
        attempts = self.readings.attempts
        attempts[key] = attempts.get(key, 0) + 1
        return attempts[key] >= _MAX_ATTEMPTS

    @staticmethod
    def reads_alike(reads: Iterable[Read]) -> bool:
        """Whether names still have the values that they had."""
        for names, name, value in reads:
            now = names.get(name, UNBOUND)
            if now is not value and not same(now, value):
                return False
        return True

    def _made_summary(self, function: Function) -> Summary:
        facts = self.function_facts(function)
        if not isinstance(facts, f.FunctionFacts) or facts.generator or facts.defaults_run:
            return _RUN
        reader = _Reader(self, function, facts)
        try:
            for node in function.decorators:
                decorator = reader.value(node)
                if not isinstance(decorator, Foreign) or decorator.name not in TRANSPARENT:
                    return _RUN
            reader.block(facts.body)
        except _NotYetError:
            raise
        except _HasEffectsError:
            return _RUN
        return Summary(True, tuple(reader.reads.values()), tuple(reader.texts))

    def maker(self, cls: ClassValue) -> Function | None:
        """The ``__init__`` that making an instance runs, where the tree defines it."""
        makers = self.readings.makers
        if cls not in makers:
            makers[cls] = self.method(cls, "__init__")
        return makers[cls]


class _Reader:
    """Reads one function body; raises where it finds what may have an effect."""

    def __init__(self, run: Summaries, function: Function, facts: f.FunctionFacts) -> None:
        self._run = run
        self._module = function.module
        given = {*facts.params, facts.vararg or "", facts.kwarg or ""}
        self._local = dict.fromkeys(given, _GIVEN)
        for name, fresh in run.program.texts.bindings.of(facts):
            before = self._local.get(name, _SOME)
            self._local[name] = _SOME if fresh and before is _SOME else _GIVEN
        self.reads: dict[tuple[int, str], Read] = {}
        self.texts: dict[str, None] = {}
        self._params = facts.params

    def block(self, body: Iterable[f.Stmt]) -> None:
        for stmt in body:
            self._statement(stmt)

    def _statement(self, stmt: f.Stmt) -> None:
        match stmt:
            case f.Assign(targets=targets, value=value):
                made = self.value(value)
                for target in targets:
                    self._target(target, made)
            case f.Do(value=value):
                self.value(value)
            case f.Return(value=value):
                if value is not None:
                    self.value(value)
            case f.If(test=test, body=body, orelse=orelse):
                self.value(test)
                self.block(body)
                self.block(orelse)
            case f.Loop(target=target, iter=iterated, body=body, orelse=orelse):
                over = self.value(iterated)
                if target is None or not (over is _SOME or isinstance(over, CONTAINERS)):
                    raise _HasEffectsError
                self.block(body)
                self.block(orelse)
            case f.Func(decorators=(), uses=(), defaults=()) | f.Jump() | f.Bind():
                pass
            case f.Import(module=module):
                self._imported(module)
            case f.ImportFrom():
                self._import_from(stmt)
            case _:
                raise _HasEffectsError

    def _target(self, target: f.Expr, made: Value) -> None:
        match target:
            case f.Name(id=name):
                if made is _GIVEN:
                    self._local[name] = _GIVEN
            case f.Attr(value=owner) | f.Subscript(value=owner):
                if self.value(owner) is not _SOME or isinstance(target, f.Subscript):
                    raise _HasEffectsError
            case _:
                raise _HasEffectsError

    def _imported(self, module: str) -> Value:
        """A module that importing once more does nothing to."""
        if self._run.exists_outside(module):
            return Foreign(module)
        value = self._run.loaded(module)
        settled = isinstance(value, ModuleValue) and value.state == "loaded" and not value.under
        if settled and not len(value.doubts):
            return value
        raise _NotYetError

    def _import_from(self, stmt: f.ImportFrom) -> None:
        module = self._imported(f.absolute_name(stmt, self._module.package))
        for name, bound in stmt.names:
            self._local[bound] = self._attribute(module, name)

    def _read(self, names: dict[str, Value], name: str) -> Value:
        value = names.get(name, UNBOUND)
        if value is UNBOUND or isinstance(value, Either | Deferred):
            raise _NotYetError
        self.reads[id(names), name] = Read(names, name, value)
        return value

    def _name(self, name: str) -> Value:
        if name in self._local:
            return self._local[name]
        if name not in self._module.names and name in _BUILTIN_NAMES:
            return Builtin(name)
        if name in ("__name__", "__file__"):
            return _SOME
        return self._read(self._module.names, name)

    def value(self, node: f.Expr) -> Value:
        """What an expression gives, as far as it matters here."""
        match node:
            case f.Const(value=value):
                return value
            case f.Name(id=name):
                return self._name(name)
            case f.Attr(value=owner, attr=attr):
                return self._attribute(self.value(owner), attr)
            case f.Call():
                return self._call(node)
            case f.Subscript(value=owner) if isinstance(self.value(owner), Foreign):
                return _SOME
            case f.BoolOp(values=nodes) | f.FString(parts=nodes) | f.Sequence(items=nodes):
                return self._all(nodes, isinstance(node, f.BoolOp), node)
            case f.IfExp(test=test, body=body, orelse=orelse):
                return self._all((test, body, orelse), True, node)
            case f.Not(value=inner):
                return self._all((inner,), False, node)
            case f.Compare(left=left, ops=ops, rights=rights) if _TOTAL.issuperset(ops):
                return self._all((left, *rights), False, node)
            case f.Mapping(keys=keys, values=values) if all(
                isinstance(key, f.Const) for key in keys
            ):
                return self._all(values, False, node)
            case f.Lambda():
                return _SOME
            case _:
                raise _HasEffectsError

    def _all(self, nodes: Iterable[f.Expr], one_of_them: bool, node: f.Expr) -> Value:
        values = [self.value(inner) for inner in nodes]
        if isinstance(node, f.Sequence) and node.kind == "set":
            raise _HasEffectsError
        return _SOME if not one_of_them or all(v is _SOME for v in values) else _GIVEN

    def _attribute(self, owner: Value, attr: str) -> Value:
        match owner:
            case Foreign():
                return self._run.foreign_attribute(f"{owner.name}.{attr}")
            case ModuleValue():
                if self._run.is_platform(owner, attr):
                    return PlatformObject()
                return self._read(owner.names, attr)
            case PlatformObject() | PlatformMethod():
                return _SOME
            case Opaque() if owner is not _GIVEN:
                return _SOME
            case _:
                raise _HasEffectsError

    def _call(self, node: f.Call) -> Value:
        if node.starred or any(name == "**" for name, _ in node.keywords):
            raise _HasEffectsError
        arguments = [*node.args, *(value for _, value in node.keywords)]
        if isinstance(node.func, f.Name):
            function = self._name(node.func.id)
        elif isinstance(node.func, f.Attr) and self._asks_text(node.func, arguments):
            return _SOME
        elif isinstance(node.func, f.Attr):
            owner = self.value(node.func.value)
            if isinstance(owner, CONTAINERS):
                if node.func.attr not in ("items", "keys", "values", "copy"):
                    raise _HasEffectsError
                function = _SOME
            else:
                function = self._attribute(owner, node.func.attr)
        else:
            raise _HasEffectsError
        values = [self.value(argument) for argument in arguments]
        return self._called(function, node, values)

    def _asks_text(self, func: f.Attr, arguments: list[f.Expr]) -> bool:
        """Whether a parameter is asked for what any string answers."""
        name = func.value.id if isinstance(func.value, f.Name) else ""
        asked = name in self._params and self._local[name] is _GIVEN
        constant = all(isinstance(n, f.Const) and isinstance(n.value, str) for n in arguments)
        if not (asked and constant and func.attr in _OF_TEXTS):
            return False
        self.texts[name] = None
        return True

    def _called(self, function: Value, node: f.Call, values: list[Value]) -> Value:
        match function:
            case Builtin(name="setattr") if len(values) == 3 and values[0] is _SOME:
                return _SOME
            case Builtin(name=name) if name in _SAFE_BUILTINS:
                return _SOME
            case Foreign(name=name) if not name.startswith(_SPECIAL):
                return _SOME
            case Function():
                return self._calls_on(function, (*function.bound, *values), node)
            case ClassValue():
                maker = self._run.maker(function)
                if maker is not None:
                    self._calls_on(maker, (_SOME, *values), node)
                return _GIVEN  # what its methods do is not known here
            case Opaque() if function is not _GIVEN:
                return _SOME
            case PlatformMethod():
                return _SOME
            case _:
                raise _HasEffectsError

    def _calls_on(self, function: Function, values: tuple[Value, ...], node: f.Call) -> Value:
        summary = self._run.summary(function)
        positional = len(values) - len(node.keywords)
        words = [(name, _SOME) for name, _ in node.keywords]
        if (
            not summary.harmless
            or summary.texts
            or not self._run.fits(function, values[:positional], words)
        ):
            raise _HasEffectsError
        self.reads.update(((id(read.names), read.name), read) for read in summary.reads)
        return _GIVEN


_OF_TEXTS = frozenset(("startswith", "endswith"))
_MAX_ATTEMPTS = 3
_TOTAL = frozenset(("is", "is not", "==", "!="))


def bindings(body: Iterable[f.Stmt]) -> Iterator[tuple[str, bool]]:
    """The names that a body binds, and whether what it binds is new, or from outside the tree."""
    for stmt in body:
        match stmt:
            case f.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, f.Name):
                        fresh = isinstance(value, f.Call | f.Const | f.Sequence | f.Mapping)
                        yield target.id, fresh
            case f.Loop(target=f.Name(id=name)):
                yield name, False
            case f.Loop(target=f.Sequence(items=items)):
                yield from ((item.id, False) for item in items if isinstance(item, f.Name))
            case f.Import(module=module, asname=asname):
                yield asname or module.partition(".")[0], asname is None and "." not in module
            case f.ImportFrom(names=pairs):
                yield from ((bound, False) for _, bound in pairs)
            case f.Func(name=name) | f.Class(name=name):
                yield name, False
            case f.Bind(names=names) | f.With(names=names):
                yield from ((name, False) for name in names)
            case f.AugAssign(target=f.Name(id=name)):
                yield name, False
            case f.Delete(targets=targets):
                yield from ((one.id, False) for one in targets if isinstance(one, f.Name))
            case f.Try(handlers=handlers):
                for handler in handlers:
                    yield from ([(handler.name, False)] if handler.name else ())
                    yield from bindings(handler.body)
            case f.Switch(bodies=bodies):
                for inner in bodies:
                    yield from bindings(inner)
            case _:
                pass
        for block in ("body", "orelse", "final"):
            if not isinstance(stmt, f.Func | f.Class):
                yield from bindings(getattr(stmt, block, ()))
