"""Calls of configuration code: functions and classes of the tree, built-ins, what stands in."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from auditor.checkpoints import operations as ops
from auditor.checkpoints.expressions import Expressions
from auditor.checkpoints.lookups import MISSING
from auditor.checkpoints.values import (
    Bound,
    CannotFollow,
    ClassValue,
    Config,
    External,
    Frame,
    Function,
    ModuleValue,
    Native,
    Object,
    Raised,
    Unknown,
    Value,
    class_of,
    instance,
)
from auditor.contracts.names import Outside, Ref
from auditor.values import Place

#: Bases outside the tree that add nothing to an instance.
_PLAIN_BASES = frozenset({"object", "ABC", "Protocol", "Generic"})


@dataclass(frozen=True, slots=True, eq=False)
class Super:
    """``super()`` in a method of ``owner``, of an instance or a class."""

    owner: Ref
    receiver: Value


class TreeDict(dict[Value, Value]):
    """An instance of a class of the tree that derives from ``dict``."""

    cls: ClassValue


class Silent(Unknown):
    """An object whose methods only say something (a logger)."""

    __slots__ = ()


class Calls(Expressions):
    """Calls functions; ``calling`` is the last call of something that stands in."""

    calling: tuple[ast.AST, Frame] | None = None

    def call_node(self, node: ast.Call, frame: Frame) -> Value:
        """The value of a call expression."""
        where = self.place(node, frame.module)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            return self._super(frame, where)
        function = self.expr(node.func, frame)
        args = tuple(self.elements(node.args, frame))
        named: dict[str, Value] = {}
        for one in node.keywords:
            value = self.expr(one.value, frame)
            if one.arg is not None:
                named[one.arg] = value
            else:
                for key, held in self.mapping(value, where).items():
                    if not isinstance(key, str):
                        raise Raised(TypeError("keywords must be strings"), where)
                    if key in named:
                        said = f"got multiple values for keyword argument {key!r}"
                        raise Raised(TypeError(said), where)
                    named[key] = held
        return self.call(function, args, named, node, frame)

    def _super(self, frame: Frame, where: Place) -> Super:
        scope: Frame | None = frame
        while scope is not None and (scope.owner is None or scope.first not in scope.names):
            scope = scope.outer
        if scope is None or scope.owner is None:
            raise CannotFollow("`super()` outside a method", where)
        return Super(scope.owner, scope.names[scope.first])

    def call(
        self,
        function: Value,
        args: tuple[Value, ...],
        named: Mapping[str, Value],
        node: ast.AST,
        frame: Frame,
    ) -> Value:
        """``function(*args, **named)``."""
        where = self.place(node, frame.module) if frame.module else None
        match function:
            case Native(call=call):
                self.calling = (node, frame)
                if function.python:
                    return ops.native(where, call, *args, **named)
                return self._stand_in(function, args, named, where)
            case Function():
                return self.call_function(function, args, named)
            case Bound(function=inner, args=first, named=given):
                return self.call(inner, (*first, *args), {**given, **named}, node, frame)
            case ClassValue():
                return self.construct(function, args, named, where)
            case Silent():
                return None
            case External() if self.is_config_class(function):
                return self.construct_outside(function, args, named, where)
            case Unknown():
                return self._outside(function, (*args, *named.values()), where)
            case Object():
                raise CannotFollow("the call of an object", where)
            case _:
                return self._python(function, args, named, node, frame)

    def _stand_in(
        self,
        function: Native,
        args: tuple[Value, ...],
        named: Mapping[str, Value],
        where: Place | None,
    ) -> Value:
        """What stands in for a function; where it fails, nobody says what the real one does."""
        try:
            return function.call(*args, **named)
        except CannotFollow as problem:
            problem.where = problem.where or where
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise CannotFollow(f"`{function.name}` is not followed here ({said})", where) from error

    def _outside(self, function: Unknown, given: tuple[Value, ...], where: Place | None) -> Unknown:
        """What a call outside the tree gives is not known; it may change what it is handed."""
        what = function.dotted if isinstance(function, External) else "something unknown"
        if any(_may_be_changed(one) for one in given):
            raise CannotFollow(f"`{what}` is called, which is not in the tree", where)
        return Unknown(f"what `{what}` gives is not known")

    # --- Python's own functions

    def _python(
        self,
        function: Value,
        args: tuple[Value, ...],
        named: Mapping[str, Value],
        node: ast.AST,
        frame: Frame,
    ) -> Value:
        where = self.place(node, frame.module)
        own = self._OWN.get(id(function))
        if own is not None:
            return own(self, args, node, frame)
        owner = getattr(function, "__self__", None)
        name = getattr(function, "__name__", "")
        if isinstance(function, type) and issubclass(function, BaseException):
            return ops.native(where, function, *args, **named)
        if name == "join" and isinstance(owner, str) and args:
            args = (list(self.iterate(args[0], node, frame)),)
        if ops.has_native_methods(owner) or isinstance(owner, TreeDict):
            ops.check_method(owner, name, args)
            return ops.native(where, function, *args, **named)
        if function in _ALLOWED:
            wrapped = {key: self._callback(value, node, frame) for key, value in named.items()}
            if function in (map, filter) and args:
                args = (self._callback(args[0], node, frame), *args[1:])
            if function in _CONVERTING and any(not ops.is_data(one) for one in args[:1]):
                return self._converted(function, args, node, frame)
            return ops.native(where, function, *args, **wrapped)
        if callable(function):
            raise CannotFollow(f"`{name or function!r}` is not followed", where)
        said = f"{type(function).__name__!r} object is not callable"
        raise Raised(TypeError(said), where)

    def _converted(
        self, function: Value, args: tuple[Value, ...], node: ast.AST, frame: Frame
    ) -> Value:
        """``str`` and numbers of something that is no data of Python's own."""
        where = self.place(node, frame.module)
        if isinstance(args[0], Object | Function | ClassValue | ModuleValue | Unknown):
            if function is bool:
                return self.truth(args[0], where)
            if function in (int, float) and isinstance(args[0], Config):
                return ops.native(where, function, args[0])
            raise CannotFollow(f"`{function.__name__}` of an object", where)
        return ops.native(where, function, *args)

    def _callback(self, function: Value, node: ast.AST, frame: Frame) -> Value:
        """A function of the run as one that Python can call."""
        if function is None or not isinstance(function, Function | Bound | Native | ClassValue):
            return function
        return lambda *args: self.call(function, args, {}, node, frame)

    def _hasattr(self, args: tuple[Value, ...], node: ast.AST, frame: Frame) -> Value:
        owner, name = args
        return self._got(owner, name, node, frame) is not MISSING

    def _getattr(self, args: tuple[Value, ...], node: ast.AST, frame: Frame) -> Value:
        where = self.place(node, frame.module)
        if not isinstance(args[1], str):
            raise Raised(TypeError("attribute name must be string"), where)
        if len(args) == 2:
            return self.attribute(args[0], args[1], node, frame)
        found = self._got(args[0], args[1], node, frame)
        return args[2] if found is MISSING else found

    def _got(self, owner: Value, name: Value, node: ast.AST, frame: Frame) -> Value:
        where = self.place(node, frame.module)
        if isinstance(owner, Unknown) and not isinstance(owner, External):
            raise CannotFollow(owner.reason, where)
        before, self.asking = self.asking, True
        try:
            return self.attribute(owner, name, node, frame)
        except Raised as raised:
            if isinstance(raised.error, AttributeError):
                return MISSING
            raise
        finally:
            self.asking = before

    def _setattr(self, args: tuple[Value, ...], node: ast.AST, frame: Frame) -> Value:
        owner, name, value = args
        self.set_attribute(owner, name, value, self.place(node, frame.module))
        return None

    def _isinstance(self, args: tuple[Value, ...], node: ast.AST, frame: Frame) -> Value:
        value, classes = args
        where = self.place(node, frame.module)
        if isinstance(value, Unknown):
            raise CannotFollow(value.reason, where)
        every = classes if isinstance(classes, tuple) else (classes,)
        return any(self._is_a(value, one, where) for one in every)

    def _is_a(self, value: Value, cls: Value, where: Place) -> bool:
        if isinstance(cls, tuple):
            return any(self._is_a(value, one, where) for one in cls)
        match value, cls:
            case Object(), ClassValue():
                own = class_of(value)
                return isinstance(own, ClassValue) and self.names.is_a(own.ref, [cls.ref])
            case Object(), External():
                return self.is_outside_instance(value, cls, where)
            case ((Object() | Function() | ClassValue() | ModuleValue()), type()):
                return cls is object
            case _, (ClassValue() | External()) if isinstance(cls, ClassValue) or (
                self.is_config_class(cls)
            ):
                return False
            case _, External():
                raise CannotFollow(f"whether something is a `{cls.dotted}`", where)
            case _:
                return bool(ops.native(where, isinstance, value, cls))

    def _issubclass(self, args: tuple[Value, ...], node: ast.AST, frame: Frame) -> Value:
        first, second = args
        if isinstance(first, ClassValue) and isinstance(second, ClassValue):
            return self.names.is_a(first.ref, [second.ref])
        raise CannotFollow("`issubclass` of classes outside the tree", _at(self, node, frame))

    def _callable(self, args: tuple[Value, ...], node: ast.AST, frame: Frame) -> Value:
        if isinstance(args[0], Object | Unknown):
            raise CannotFollow("whether an object can be called", _at(self, node, frame))
        return isinstance(args[0], Function | Bound | Native | ClassValue) or callable(args[0])

    def _type(self, args: tuple[Value, ...], node: ast.AST, frame: Frame) -> Value:
        if isinstance(args[0], Object):
            return class_of(args[0])
        if ops.is_data(args[0]):
            return type(args[0])
        raise CannotFollow("the type of an object", _at(self, node, frame))

    def _range(self, args: tuple[Value, ...], node: ast.AST, frame: Frame) -> Value:
        return ops.native(_at(self, node, frame), ops.checked_range, *args)

    def _str(self, args: tuple[Value, ...], node: ast.AST, frame: Frame) -> Value:
        where = _at(self, node, frame)
        return ops.native(where, ops.formatted, args[0], 115, "") if args else ""

    def _repr(self, args: tuple[Value, ...], node: ast.AST, frame: Frame) -> Value:
        return ops.native(_at(self, node, frame), ops.formatted, args[0], 114, "")

    _OWN: Mapping[int, Callable[..., Value]] = {
        id(hasattr): _hasattr,
        id(getattr): _getattr,
        id(setattr): _setattr,
        id(isinstance): _isinstance,
        id(issubclass): _issubclass,
        id(callable): _callable,
        id(type): _type,
        id(range): _range,
        id(str): _str,
        id(repr): _repr,
    }

    # --- instances

    def construct(
        self,
        cls: ClassValue,
        args: tuple[Value, ...],
        named: Mapping[str, Value],
        where: Place | None,
    ) -> Value:
        """An instance of a class of the tree."""
        outside = [b.dotted for b in self.names.order(cls.ref) if isinstance(b, Outside)]
        if "dict" in outside:
            made = TreeDict(*args, **named)
            made.cls = cls
            return made
        config = any(self.is_config_class(External(one)) for one in outside)
        if not config and any(one.rpartition(".")[2] not in _PLAIN_BASES for one in outside):
            raise CannotFollow(f"an instance of `{cls.name}`, whose bases are outside", where)
        if self.names.method(cls.ref, "__new__") is not None:
            raise CannotFollow(f"`{cls.name}.__new__` is not followed", where)
        if not config and self._is_decorated(cls):
            raise CannotFollow(f"the decorated class `{cls.name}` is not followed", where)
        value = instance(cls, config=config)
        init = self.class_attribute(cls, "__init__", value, where)
        if init is not MISSING:
            self.call(init, args, named, _PASS, Frame(cls.ref.module, {}))
        return value

    def _is_decorated(self, cls: ClassValue) -> bool:
        sketch = self.names.sketch(cls.ref.module)
        header = sketch.header(cls.ref.name) if sketch is not None else None
        return bool(header is not None and header.decorator_list)

    def _special(self, owner: Value, name: str, where: Place) -> Value:
        match owner:
            case Super(owner=after, receiver=receiver):
                return self._above(after, receiver, name, where)
            case TreeDict():
                return Native(name, getattr(dict, name).__get__(owner), python=True)
            case ClassValue() if name in ("__init__", "__new__"):
                return self.class_attribute(owner, name, owner, where)
            case Object() if name not in ("__class__", "__dict__"):
                return self.object_attribute(owner, name, where)
            case _:
                return super()._special(owner, name, where)

    def attribute(self, owner: Value, name: str, node: ast.AST, frame: Frame) -> Value:
        """``owner.name``."""
        where = self.place(node, frame.module)
        if isinstance(owner, Super) and not name.startswith("__"):
            return self._above(owner.owner, owner.receiver, name, where)
        if isinstance(owner, Silent):
            return owner
        if isinstance(owner, TreeDict) and not name.startswith("__"):
            return ops.native(where, getattr, owner, name)
        return super().attribute(owner, name, node, frame)

    def _above(self, after: Ref, receiver: Value, name: str, where: Place) -> Value:
        """What ``super()`` finds behind ``after`` in the order of the receiver's class."""
        if isinstance(receiver, TreeDict):
            return Native(name, getattr(dict, name).__get__(receiver), python=True)
        cls = class_of(receiver) if isinstance(receiver, Object) else receiver
        if not isinstance(cls, ClassValue):
            raise CannotFollow("`super()` of something unknown", where)
        found = self.class_attribute(cls, name, receiver, where, after)
        if found is MISSING and name == "__init__":
            return Native(name, lambda *_, **__: None)
        if isinstance(receiver, Object) and name == "__getattribute__":
            return Native(name, lambda key: self.plain_attribute(receiver, key, where))
        if isinstance(receiver, Object) and name == "__setattr__":
            return Native(name, lambda key, value: self.plain_set(receiver, key, value, where))
        if found is MISSING:
            raise Raised(AttributeError(f"'super' object has no attribute {name!r}"), where)
        return found

    def item(self, owner: Value, key: Value, node: ast.AST, frame: Frame) -> Value:
        """``owner[key]``."""
        if isinstance(owner, TreeDict):
            found = self.names.method(owner.cls.ref, "__getitem__")
            if found is not None:
                function = Function(found[1], found[0].module, found[0])
                return self.call(function, (owner, key), {}, node, frame)
            return ops.native(self.place(node, frame.module), operator.getitem, owner, key)
        return super().item(owner, key, node, frame)

    # --- to be given by the last part

    def is_config_class(self, cls: External) -> bool:
        """Whether a class outside the tree is one of Transformers' configurations."""
        raise NotImplementedError

    def construct_outside(
        self,
        cls: External,
        args: tuple[Value, ...],
        named: Mapping[str, Value],
        where: Place | None,
    ) -> Value:
        """An instance of such a class."""
        raise NotImplementedError

    def is_outside_instance(self, value: Object, cls: External, where: Place) -> bool:
        """Whether an object is an instance of a class outside the tree."""
        raise NotImplementedError


_PASS = ast.Pass()
_ALLOWED = (
    abs, all, any, bool, dict, divmod, enumerate, filter, float, frozenset, int, len, list, map,
    max, min, next, reversed, round, set, sorted, sum, tuple, zip, iter,
)  # fmt: skip
_CONVERTING = (bool, int, float)


def _at(run: Calls, node: ast.AST, frame: Frame) -> Place:
    return run.place(node, frame.module)


def _may_be_changed(value: Value) -> bool:
    return isinstance(value, Object | list | dict | set | Iterator | Function | Bound)
