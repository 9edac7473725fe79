"""Calls of Python's builtins, and of methods of constants and containers.

Pure ones are applied to constants by Python itself; those that look at attributes or change a
namespace have their meaning here.
"""

from __future__ import annotations

import builtins
import collections.abc
from collections.abc import Callable

from msgspec.structs import replace

from auditor import facts as f
from auditor.classes import derives
from auditor.evaluation.containers import MUTATING_METHODS
from auditor.evaluation.frame import (
    CONSTANT_TYPES,
    CONTAINERS,
    Frame,
    is_own,
    is_plain,
    is_unordered,
    is_wide,
    join,
)
from auditor.evaluation.raised import error_class
from auditor.evaluation.standins import is_ordinary, may_define, stand_in
from auditor.evaluation.statements import Statements
from auditor.values import (
    UNBOUND,
    Builtin,
    ClassValue,
    Closure,
    Either,
    Error,
    Foreign,
    Function,
    Guard,
    Instance,
    Iterated,
    Method,
    ModuleValue,
    Opaque,
    PlatformObject,
    PythonError,
    Undecided,
    Value,
    builtin_error,
)

_PURE = frozenset(
    (
        "abs all any ascii bool bytes dict divmod enumerate float format frozenset int len list "
        "max min range repr reversed round set slice sorted str sum tuple zip"
    ).split()
)

#: Those that take all there is to iterate over.
#: An object of the type that a builtin gives, whatever it is given.
_GIVES: dict[str, object] = {
    **dict.fromkeys(("str", "repr", "ascii", "format", "chr", "hex", "oct", "bin"), "a"),
    **dict.fromkeys(("len", "ord", "hash", "id", "int"), 1),
    **dict.fromkeys(("hasattr", "callable", "isinstance", "issubclass", "any", "all"), True),
    "float": 1.0,
    "bool": True,
    "list": [],
    "sorted": [],
    "tuple": (),
    "dict": {},
}
#: Methods of texts that give texts.
_TEXTS = frozenset(("format", "format_map", "join", "lower", "replace", "strip", "title", "upper"))
_OF_ITEMS = frozenset(
    "all any dict enumerate frozenset list max min set sorted sum tuple zip".split()
)

#: Methods of constants and containers that only compute.
PURE_METHODS = frozenset(
    (
        "capitalize casefold count decode encode endswith find format get index isdigit items "
        "join keys lower lstrip partition removeprefix removesuffix replace rpartition rsplit "
        "rstrip split splitlines startswith strip title upper values difference intersection "
        "issubset issuperset union copy"
    ).split()
)

#: What they may ask the objects for that they are given in a container.
_OF_THEIRS = ("__lt__", "__gt__", "__eq__", "__hash__", "__add__", "__radd__", "__repr__")

#: Of them, those that give the items in their order; and those that show what they are given.
_ORDERED = frozenset("dict enumerate list tuple zip".split())
_SHOWING = frozenset("ascii format repr str".split())

#: Those that call what they are given.
_CALLING = frozenset("filter map max min sorted".split())

#: What stands for itself in a call that may be refused, and what an instance is asked for then.
_STANDING = (ModuleValue, Function, Closure, ClassValue, Instance, Iterated, *CONSTANT_TYPES)
_ASKED = (
    *(f"__{name}__" for name in _PURE),
    "__getitem__", "__index__", "__int__", "__iter__", "__lt__", "__gt__", "__add__", "__radd__",
    "__rdivmod__", "__trunc__", "__complex__", "__buffer__", "keys",
)  # fmt: skip

#: Those of a container that look at what is in it.
_ITEM_METHODS = frozenset("count difference index intersection issubset issuperset".split())


class BuiltinCalls(Statements):
    """Gives Python's builtins their meaning."""

    def _builtin(
        self, name: str, args: tuple[Value, ...], keywords: tuple[tuple[str, Value], ...],
        frame: Frame, line: int, text: str,
    ) -> Value:  # fmt: skip
        if isinstance(cls := getattr(builtins, name, None), type) and issubclass(cls, Exception):
            texts = [self.force(arg, frame) for arg in args]
            exact = not keywords and len(texts) < 2 and is_plain(texts)
            message = "…" if not exact else str(texts[0]) if texts else ""
            return replace(builtin_error(name, message, frame.place(line)), exact=exact)
        if name in _PURE:
            of_items, ordered = name in _OF_ITEMS, name in _ORDERED
            if of_items:
                values = [self.listed(arg, frame, ordered=ordered) for arg in args]
            else:
                values = [self.force(arg, frame) for arg in args]
            if name in _SHOWING and is_unordered(values):
                return Opaque("the order of a set", frame.place(line), text)
            if name == "str" and len(values) == 1:
                values = [self.shown(values[0], frame)]
            if name == "bool" and len(values) == 1:
                return self._truth_value(values[0], frame, line, text)
            if name in ("any", "all") and len(values) == 1 and isinstance(values[0], list | tuple):
                return self._any_all(name, list(values[0]), frame, line, text)
            containers = name in (
                "list",
                "tuple",
                "set",
                "frozenset",
                "dict",
                "len",
                "enumerate",
                "zip",
                "reversed",
            )
            usable = all(
                is_plain(v) or (containers and isinstance(v, tuple | list | dict)) for v in values
            )
            if name == "format" and is_wide(values[-1] if values else ""):
                return Opaque("a wide text", frame.place(line), text, like="a")
            if usable and all(is_plain(v) for _, v in keywords):
                function = getattr(builtins, name)
                result = self._python(
                    lambda a, k: function(*a, **k), values, dict(keywords), frame, line
                )
                if name in ("zip", "enumerate", "reversed"):
                    return Iterated(list(result), self.steps, result)
                return self.new(result)
            if values and isinstance(values[0], Instance | ClassValue):
                self.special(values[0], f"__{name}__", tuple(values[1:]), frame, line)
                if of_items:
                    self.iterates(values[0], frame, line)
            for value in values:
                self.lose_items(value, _OF_THEIRS, frame, line)
            if not keywords:
                self._refuse_builtin(name, values, frame, line)
        for value in (*args, *(value for _, value in keywords)):
            if isinstance(value, Function) and name in _CALLING:
                self.lose_effects(value, (), frame.place(line))
        own = any(map(is_own, args))
        like = _GIVES.get(name, UNBOUND)
        return Opaque(f"the result of {name}()", frame.place(line), text, own=own, like=like)

    def _refuse_builtin(self, name: str, values: list[Value], frame: Frame, line: int) -> None:
        """Raise what Python does where the types of the arguments are not those that it takes."""
        if len(values) == 1 and isinstance(values[0], Either):
            return self.refuse(getattr(builtins, name), values[0], _ASKED, frame, line)
        stands = [stand_in(v, _ASKED) if isinstance(v, _STANDING) else UNBOUND for v in values]
        if stands and UNBOUND not in stands:
            function = getattr(builtins, name)
            self.refuse(lambda _: function(*stands), None, (), frame, line)
        return None

    def _truth_value(self, value: Value, frame: Frame, line: int, text: str) -> Value:
        truth = self.truth(value, frame)
        if isinstance(truth, Undecided):
            return self._as_value(truth, frame, line, text)
        return truth

    def _any_all(self, name: str, values: list[Value], frame: Frame, line: int, text: str) -> Value:
        settles = name == "any"
        truths = [self.truth(value, frame) for value in values]
        if any(truth is settles for truth in truths):
            return settles
        unsettled = next((truth for truth in truths if isinstance(truth, Undecided)), None)
        if unsettled is None:
            return not settles
        return self._as_value(unsettled, frame, line, text)

    @staticmethod
    def _as_value(why: Undecided, frame: Frame, line: int, text: str) -> Opaque:
        where = why.where or frame.place(line)
        return Opaque(why.reason, where, why.text or text, own=why.own, like=True)

    def _attribute_name(self, call: f.Call, frame: Frame, line: int) -> tuple[Value, Value] | None:
        if len(call.args) < 2 or call.starred:
            return None
        owner = self.evaluate(call.args[0], frame, line)
        name = self.force(self.evaluate(call.args[1], frame, line), frame)
        if not isinstance(name, str):
            return None
        self.asked_by_text(frame.module, name)
        return owner, name

    def _hasattr(self, call: f.Call, frame: Frame, line: int) -> Value:
        pair = self._attribute_name(call, frame, line)
        if pair is None:
            return Opaque("hasattr by an unknown name", frame.place(line), call.text)
        return self._probe(pair[0], pair[1], call, frame, line, lambda _: True, lambda: False)

    def _getattr(self, call: f.Call, frame: Frame, line: int) -> Value:
        pair = self._attribute_name(call, frame, line)
        if pair is None:
            return Opaque("getattr by an unknown name", frame.place(line), call.text)
        if len(call.args) == 2:
            return self.attribute(pair[0], pair[1], frame, line)
        default = self.evaluate(call.args[2], frame, line)
        return self._probe(pair[0], pair[1], call, frame, line, lambda v: v, lambda: default)

    def _probe(
        self, owner: Value, name: str, call: f.Call, frame: Frame, line: int,
        found: Callable[[Value], Value], missing: Callable[[], Value],
    ) -> Value:  # fmt: skip
        """Look for an attribute; only ``AttributeError`` means that it is missing."""
        owner = self.force(owner, frame)
        if isinstance(owner, Either):
            return self._each(
                self.alive(owner),
                frame,
                lambda one: self._probe(one, name, call, frame, line, found, missing),
            )
        if isinstance(owner, Foreign):
            why = f"whether {owner.name} has {name} is not known"
            return Opaque(why, frame.place(line), call.text)
        if isinstance(owner, PlatformObject):
            known = (
                not isinstance(self.platform.attribute(name), Undecided)
                or name in self.platform.predicates
            )
            value = self.attribute(owner, name, frame, line)
            return (
                found(value)
                if known
                else Opaque(f"whether the platform has {name}", frame.place(line), call.text)
            )
        mark = frame.doubts.mark()
        try:
            value = self.attribute(owner, name, frame, line)
        except PythonError as raised:
            if "AttributeError" in raised.error.bases:
                return missing()
            raise
        doubts = [d for d in frame.doubts.since(mark) if "AttributeError" in d.error.bases]
        wild = value is owner.wild if isinstance(owner, ModuleValue) else True
        if isinstance(value, Opaque) and wild:
            own = is_own(owner)
            return Opaque(f"whether it has {name}", frame.place(line), call.text, own=own)
        if doubts:
            frame.doubts.drop(doubts)
            why_open = doubts[0].condition
            guard = Guard(why_open.where or frame.place(line), why_open.text, None)
            other = Guard(guard.where, guard.text, None, negated=True)
            return join(((other, found(value)), (guard, missing())))
        return found(value)

    def _setattr(self, call: f.Call, frame: Frame, line: int) -> Value:
        pair = self._attribute_name(call, frame, line)
        if len(call.args) == 3 and not call.starred:
            value = self.evaluate(call.args[2], frame, line)
            if pair is not None:
                self.store_attribute(pair[0], pair[1], value, frame, line)
                return None
        self._any_attribute(call, frame, line)
        return None

    def _any_attribute(self, call: f.Call, frame: Frame, line: int) -> None:
        """An attribute by an unknown name is set or deleted."""
        owner = self.evaluate(call.args[0], frame, line) if call.args else None
        owner = self.force(owner, frame)
        if isinstance(owner, ModuleValue | ClassValue):
            owner.wild = Opaque("attributes by unknown names", frame.place(line), call.text)

    def _delattr(self, call: f.Call, frame: Frame, line: int) -> Value:
        pair = self._attribute_name(call, frame, line)
        if pair is not None:
            self.delete_attribute(pair[0], pair[1], frame, line)
        return None

    def _globals(self, call: f.Call, frame: Frame, line: int) -> Value:
        self.looked_through(frame.module)
        return frame.module.names

    def _locals(self, call: f.Call, frame: Frame, line: int) -> Value:
        """``locals()``: of a call it is a copy, which nothing comes back from."""
        self.looked_through(frame.module)
        return dict(frame.names) if frame.is_call else frame.names

    def _exec(self, call: f.Call, frame: Frame, line: int) -> Value:
        """``exec(…)`` may bind any name: where it stands, or in the namespace that it is given."""
        values = [self.force(self.evaluate(node, frame, line), frame) for node in call.args]
        why = Opaque("exec() may bind it", frame.place(line), call.text)
        for owner in values[1:] or [frame.names]:
            if id(owner) in self.namespaces:
                self.namespaces[id(owner)].wild = why
            elif isinstance(owner, dict) and owner is not frame.names:
                self.containers.lose(owner, why)
            elif not frame.is_call:
                frame.wild = why
        return None

    def _issubclass(self, call: f.Call, frame: Frame, line: int) -> Value:
        values = [self.force(self.evaluate(node, frame, line), frame) for node in call.args]
        if len(values) == 2:
            types = values[1] if isinstance(values[1], tuple) else (values[1],)
            bases = [self.force(one, frame) for one in types]
            known = [derives(values[0], base) for base in bases]
            if not any(isinstance(base, ClassValue) and not is_ordinary(base) for base in bases):
                if True in known or all(answer is False for answer in known):
                    return True in known
            elif True in known and not any(map(_asks_meta, bases)):
                return True
            if isinstance(values[0], (ModuleValue, Instance, Closure, *CONSTANT_TYPES)):
                self.refuse(lambda _: issubclass(None, object), None, (), frame, line)  # type: ignore[arg-type]
        return Opaque("issubclass", frame.place(line), call.text)

    def _vars(self, call: f.Call, frame: Frame, line: int) -> Value:
        if not call.args:
            return self._locals(call, frame, line)
        owner = self.evaluate(call.args[0], frame, line)
        if not isinstance(owner, ModuleValue):
            return Opaque("vars()", frame.place(line), call.text)
        self.looked_through(owner)
        return owner.names

    def _dunder_import(self, call: f.Call, frame: Frame, line: int) -> Value:
        name = self.force(self.evaluate(call.args[0], frame, line), frame) if call.args else None
        if not isinstance(name, str):
            return Opaque("__import__ of an unknown name", frame.place(line), call.text)
        leaf = self.import_module(name, frame, frame.place(line))
        if any(keyword == "fromlist" for keyword, _ in call.keywords) or len(call.args) > 3:
            return leaf
        return self.entry(name.partition(".")[0])

    def _isinstance(self, call: f.Call, frame: Frame, line: int) -> Value:
        if len(call.args) != 2:
            return Opaque("isinstance", frame.place(line), call.text)
        value = self.force(self.evaluate(call.args[0], frame, line), frame)
        types = self.evaluate(call.args[1], frame, line)
        wanted = types if isinstance(types, tuple) else (types,)
        if type(types) in CONSTANT_TYPES:
            self._python(isinstance, 0, types, frame, line)  # for its exception alone
        classes = tuple(map(_python_class, wanted))
        known = isinstance(value, (*CONSTANT_TYPES, *CONTAINERS))
        if known and all(isinstance(cls, type) for cls in classes):
            return self._python(isinstance, value, classes, frame, line)
        if isinstance(value, Error):
            result = self.is_instance(value, types, frame.place(line), frame)
            return (
                result
                if isinstance(result, bool)
                else Opaque(result.reason, frame.place(line), call.text)
            )
        return Opaque("isinstance", frame.place(line), call.text, own=is_own(value))

    def _type(self, call: f.Call, frame: Frame, line: int) -> Value:
        """``type(value)``; a class that is made by a call is not followed."""
        values = [self.force(self.evaluate(node, frame, line), frame) for node in call.args]
        made: Value = UNBOUND
        if len(values) == 1 and not call.keywords and not call.starred:
            made = _class_of(values[0])
        own = any(map(is_own, values))
        unknown = Opaque("the result of type()", frame.place(line), call.text, own=own)
        return unknown if made is UNBOUND else made

    def _callable(self, call: f.Call, frame: Frame, line: int) -> Value:
        values = [self.force(self.evaluate(node, frame, line), frame) for node in call.args]
        if len(values) == 1 and isinstance(
            values[0], Function | ClassValue | Closure | Builtin | Method
        ):
            return True
        if len(values) == 1 and (is_plain(values[0]) or isinstance(values[0], ModuleValue)):
            return False
        return Opaque("callable()", frame.place(line), call.text)

    def _method(
        self, method: Method, args: tuple[Value, ...], keywords: tuple[tuple[str, Value], ...],
        frame: Frame, line: int, text: str,
    ) -> Value:  # fmt: skip
        name, owner = method.name, method.owner
        if name == "get" and id(owner) in self.namespaces and args:
            return self._global_or(owner, args, frame)
        if name in PURE_METHODS:
            values = [self.listed(arg, frame, ordered=name == "join") for arg in args]
        else:
            values = list(args)
        if name == "format" and is_unordered((*values, *(value for _, value in keywords))):
            return Opaque("the order of a set", frame.place(line), text)
        container = isinstance(owner, list | dict | set | tuple)
        if name in MUTATING_METHODS and container:
            return self._mutate(owner, name, values, dict(keywords), frame, line)
        if (
            name in PURE_METHODS
            and all(is_plain(v) for v in values[:1])
            and ((container and name not in _ITEM_METHODS) or is_plain((owner, *values)))
            and not (name == "format" and is_wide(owner, (*values, *dict(keywords).values())))
        ):
            function = getattr(owner, name)
            result = self._python(
                lambda a, k: function(*a, **k), values, dict(keywords), frame, line
            )
            if name in ("keys", "values", "items"):
                like: object = getattr({}, name)()
                return Iterated(list(result), self.steps, like, owner)
            return result
        like = "a" if isinstance(owner, str) and name in _TEXTS else UNBOUND
        return Opaque(f"the result of .{name}()", frame.place(line), text, like=like)

    def _global_or(self, owner: Value, args: tuple[Value, ...], frame: Frame) -> Value:
        """``globals().get(name, default)``."""
        name, default = self.force(args[0], frame), args[1] if len(args) > 1 else None
        wild = self.namespaces[id(owner)].wild
        value = owner.get(name, UNBOUND if wild is None else wild)
        if isinstance(value, Either):
            return join((g, default if v is UNBOUND else v) for g, v in self.alive(value))
        return default if value is UNBOUND else value

    def _mutate(
        self,
        owner: Value,
        name: str,
        values: list[Value],
        keywords: dict[str, Value],
        frame: Frame,
        line: int,
    ) -> Value:
        values = [self.listed(value, frame, ordered=name == "extend") for value in values]
        if name == "pop" and isinstance(owner, set) and is_unordered(owner):
            self.forget(owner, "which item is taken out is not known", frame, line)
            return Opaque("an item of a set", frame.place(line))
        if id(owner) in self.namespaces:
            return self._mutate_globals(owner, name, values, keywords, frame, line)
        self.containers.changes(owner, self.open_guards, self.steps)
        whole = name in ("extend", "update", "sort")
        known = all(isinstance(v, CONTAINERS) for v in (*values, *keywords.values()))
        if name == "sort" and not is_plain(owner):
            known = False
        if whole and not (known or (name == "update" and not values)):
            why = f"what .{name}() does to it is not known"
            self.forget(owner, why, frame, line, own=any(map(is_own, values)))
            return None
        if isinstance(owner, dict | set) and isinstance(next(iter(values), None), Opaque | Either):
            own = any(map(is_own, values))
            self.forget(owner, f".{name}() of something unknown", frame, line, own=own)
            return Opaque(f"the result of .{name}()", frame.place(line))
        function = getattr(owner, name)
        return self._python(lambda a, k: function(*a, **k), values, keywords, frame, line)

    def _mutate_globals(
        self,
        owner: Value,
        name: str,
        values: list[Value],
        keywords: dict[str, Value],
        frame: Frame,
        line: int,
    ) -> Value:
        """``globals().update(…)`` and its kin: each name by itself, or any name."""
        module, place = self.namespaces[id(owner)], frame.place(line)
        first = values[0] if values else {}
        if name == "update" and isinstance(first, dict) and all(isinstance(k, str) for k in first):
            for key, value in {**first, **keywords}.items():
                self._set_in_module(module, key, value, frame, place)
            return None
        if name in ("setdefault", "pop") and isinstance(first, str):
            if (first in owner) is (name == "setdefault"):
                return owner[first]
            value = values[1] if len(values) > 1 else None
            if name == "setdefault":
                self._set_in_module(module, first, value, frame, place)
            return value
        module.wild = Opaque(f"globals().{name}() of something unknown", place)
        return Opaque(f"the result of .{name}()", place)

    def forget(
        self, owner: Value, reason: str, frame: Frame, line: int, *, own: bool = False
    ) -> None:
        """What is in a container is not known any more, by whatever name it is read."""
        place = frame.place(line)
        self.open_condition(Undecided(reason, place, own=own), frame)
        self.containers.lose(owner, Opaque(reason, place, own=own))
        for names in (frame.names, frame.module.names):
            for name, value in names.items():
                if value is owner:
                    names[name] = Opaque(reason, place, own=own)


def _asks_meta(base: Value) -> bool:
    return isinstance(base, ClassValue) and may_define(base, "__subclasscheck__")


def _class_of(value: Value) -> Value:
    """The class of a value, or UNBOUND where it is not known."""
    if isinstance(value, Error):
        return error_class(value)
    if isinstance(value, (*CONSTANT_TYPES, *CONTAINERS)) and hasattr(
        builtins, type(value).__name__
    ):
        return Builtin(type(value).__name__)
    return UNBOUND


def _python_class(value: Value) -> object:
    """A class of Python itself by its name in the run; None for any other value."""
    if isinstance(value, Builtin):
        return getattr(builtins, value.name)
    if isinstance(value, Foreign):
        module, _, name = value.name.rpartition(".")
        if module in ("typing", "collections.abc"):
            return getattr(collections.abc, name, None)
    return None


def _some(name: str) -> Callable[[BuiltinCalls, f.Call, Frame, int], Value]:
    """``any`` and ``all``, which stop a generator expression early."""

    def evaluated(run: BuiltinCalls, call: f.Call, frame: Frame, line: int) -> Value:
        node = call.args[0] if len(call.args) == 1 and not call.starred else None
        if isinstance(node, f.Comprehension) and node.kind == "generator":
            return run.some_of(node, frame, line, name)
        args = tuple(run.evaluate(arg, frame, line) for arg in call.args)
        return run._builtin(name, args, (), frame, line, call.text)

    return evaluated


SPECIAL: dict[str, Callable[[BuiltinCalls, f.Call, Frame, int], Value]] = {
    "hasattr": BuiltinCalls._hasattr,
    "getattr": BuiltinCalls._getattr,
    "setattr": BuiltinCalls._setattr,
    "delattr": BuiltinCalls._delattr,
    "globals": BuiltinCalls._globals,
    "locals": BuiltinCalls._locals,
    "exec": BuiltinCalls._exec,
    "issubclass": BuiltinCalls._issubclass,
    "vars": BuiltinCalls._vars,
    "__import__": BuiltinCalls._dunder_import,
    "isinstance": BuiltinCalls._isinstance,
    "callable": BuiltinCalls._callable,
    "type": BuiltinCalls._type,
    "any": _some("any"),
    "all": _some("all"),
}
