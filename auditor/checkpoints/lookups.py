"""Names, attributes and items of configuration code: what they stand for in the tree."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping

from auditor.checkpoints import operations as ops
from auditor.checkpoints.interpreter import Statements
from auditor.checkpoints.properties import Property, property_of
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
    Partial,
    Raised,
    Unknown,
    Value,
    attrs_of,
    class_of,
)
from auditor.contracts.names import Named, Names, Outside, Ref
from auditor.facts import Unparsed
from auditor.values import Place

_SAFE = (
    "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "filter", "float", "frozenset",
    "int", "len", "list", "map", "max", "min", "next", "reversed", "round", "set", "sorted", "str",
    "sum", "tuple", "zip", "type", "object", "repr", "bytes", "iter", "isinstance", "issubclass",
    "getattr", "hasattr", "setattr", "callable", "range", "super", "classmethod", "staticmethod",
    "property", "vars", "id", "print",
)  # fmt: skip
BUILTINS: Mapping[str, Value] = {
    **{name: getattr(builtins, name) for name in _SAFE},
    **{
        name: value
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    },
    "NotImplemented": NotImplemented,
    "Ellipsis": ...,
    "__debug__": True,
}


class Lookups(Statements):
    """Finds what names and attributes stand for."""

    def __init__(self, names: Names, interest: Iterable[str]) -> None:
        super().__init__(names, interest)
        #: Values of modules and classes, by their place; and what stands in for others.
        self._values: dict[Ref | tuple[Ref, str], Value] = {}
        self._computing: set[object] = set()
        self._methods: dict[tuple[Ref, str], Function | None] = {}
        #: Functions and objects of the tree that the tool answers for, by dotted name.
        self.stand_ins: dict[str, Value] = {}
        #: Attributes that a configuration was asked for and does not have, with the place.
        self.absent: dict[str, Place | None] = {}
        #: Whether a configuration may have defaults that nobody can say; whether one is asked for.
        self.open_classes = False
        self.asking = False

    # --- names

    def lookup(self, name: str, frame: Frame, node: ast.AST) -> Value:
        """The value of a name."""
        scope: Frame | None = frame
        while scope is not None:
            if name in scope.local or (scope.lenient and name in scope.names):
                if name in scope.names:
                    return scope.names[name]
                said = f"cannot access local variable {name!r} where it is not associated"
                error = UnboundLocalError(f"{said} with a value")
                raise Raised(error, self.place(node, frame.module))
            scope = scope.outer
        found = self.names.resolve(frame.module, name)
        if not (isinstance(found, Outside) and not found.bound):
            return self.named(found)
        branches = self._in_branches(frame.module, name)
        if branches is not None:
            return branches
        if name in BUILTINS:
            return BUILTINS[name]
        where = self.place(node, frame.module)
        if name == "__name__":
            return frame.module
        if hasattr(builtins, name):
            raise CannotFollow(f"the built-in `{name}` is not followed", where)
        raise Raised(NameError(f"name {name!r} is not defined"), where)

    def _in_branches(self, module: str, name: str) -> Value | None:
        """What a module binds a name to inside a branch; None where it does not.

        Of several imports, the one of something that the tool knows: which of them runs depends on
        where the process runs, and not on a checkpoint.
        """
        sketch = self.names.sketch(module)
        tree = sketch.whole if sketch is not None else None
        if tree is None or isinstance(tree, Unparsed):
            return None
        found: list[Named] = []
        for outer in tree.body:
            if not isinstance(outer, ast.If | ast.Try) or _is_type_checking(outer):
                continue
            nodes = [n for n in ast.walk(outer) if isinstance(n, ast.Import | ast.ImportFrom)]
            bound = self.names.bound_by(module, nodes)
            if name in bound:
                found += [
                    self.names.bound_by(module, [node])[name]
                    for node in nodes
                    if name in self.names.bound_by(module, [node])
                ]
        known = [one for one in found if str(one) in self.stand_ins]
        for one in known or found[-1:]:
            return self.named(self.names.follow(one))
        return None

    def named(self, found: Named) -> Value:
        """The value that a definition of the tree, or something outside it, stands for."""
        if str(found) in self.stand_ins:
            return self.stand_ins[str(found)]
        if isinstance(found, Outside):
            return External(found.dotted)
        if not found.name:
            return ModuleValue(found.module)
        if found not in self._values:
            if found in self._computing:
                raise CannotFollow(f"`{found}` is made of itself")
            self._computing.add(found)
            try:
                self._values[found] = self._define(found)
            finally:
                self._computing.discard(found)
            value = self._values[found]
            if isinstance(value, dict | list | set):
                self._register(found, value)
        return self._values[found]

    def _define(self, found: Ref) -> Value:
        sketch = self.names.sketch(found.module)
        chunk = sketch.top.get(found.name) if sketch is not None else None
        if sketch is None or chunk is None:
            raise CannotFollow(f"`{found}` is not found")
        where = Place(self.names.path(found.module), chunk.start)
        if chunk.kind == "class":
            return ClassValue(found)
        match sketch.node(chunk):
            case ast.FunctionDef() as node:
                return self._decorated(Function(node, found.module), node, found.module)
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                self._check_assigned_once(found, where)
                return self.expr(value, Frame(found.module, {}))
            case _:
                raise CannotFollow(f"`{found.name}` is not a definition that is followed", where)

    def _check_assigned_once(self, found: Ref, where: Place) -> None:
        """Refuse a name of a module that other statements of its top level may change."""
        sketch = self.names.sketch(found.module)
        tree = sketch.whole if sketch is not None else None
        if tree is None or isinstance(tree, Unparsed):
            raise CannotFollow("the module does not parse", where)
        bound, changed = 0, False
        for node in tree.body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    continue
                case ast.Import() | ast.ImportFrom():
                    continue
                case ast.Assign(targets=targets):
                    changed = changed or any(_changes(one, found.name) for one in targets)
                    bound += any(_stores(one, found.name) for one in targets)
                case ast.AnnAssign(target=target):
                    bound += _stores(target, found.name)
                case _:
                    if any(_mentions(one, found.name) for one in ast.walk(node)):
                        raise CannotFollow(f"`{found.name}` is changed where it is loaded", where)
        if changed or bound > 1:
            raise CannotFollow(f"`{found.name}` is changed where it is loaded", where)

    def _register(self, found: Ref, value: Value) -> None:
        """Run the decorators of a module that has such a container: they may fill it."""
        sketch = self.names.sketch(found.module)
        if sketch is None:
            return
        for name, chunk in sketch.top.items():
            node = sketch.node(chunk) if chunk.kind == "def" else None
            if not isinstance(node, ast.FunctionDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name):
                    maker = self.names.resolve(found.module, mark.func.id)
                    if isinstance(maker, Ref) and maker.module == found.module:
                        self.named(Ref(found.module, name))

    def _decorated(
        self, function: Function, node: ast.FunctionDef, module: str, cls: bool = False
    ) -> Value:
        """A function as its decorators leave it; some say no more than how it is called."""
        made: Value = function
        for mark in reversed(node.decorator_list):
            text = ast.unparse(mark.func if isinstance(mark, ast.Call) else mark)
            last = text.rpartition(".")[2]
            if last in ("cache", "lru_cache", "wraps", "abstractmethod", "override", "final"):
                continue
            if cls and last in ("staticmethod", "classmethod"):
                continue
            decorator = self.expr(mark, Frame(module, {}))
            if isinstance(decorator, External):
                where = self.place(node, module)
                raise CannotFollow(f"the decorator `{decorator.dotted}` is not followed", where)
            made = self.call(decorator, (made,), {}, node, Frame(module, {}))
        return made

    # --- attributes

    def attribute(self, owner: Value, name: str, node: ast.AST, frame: Frame) -> Value:
        """``owner.name``."""
        where = self.place(node, frame.module)
        if name.startswith("__") and name.endswith("__"):
            return self._special(owner, name, where)
        match owner:
            case Object():
                return self.object_attribute(owner, name, where)
            case ClassValue():
                found = self.class_attribute(owner, name, owner, where)
                if found is _MISSING:
                    said = f"type object {owner.name!r} has no attribute {name!r}"
                    raise Raised(AttributeError(said), where)
                return found
            case ModuleValue():
                return self.module_attribute(owner, name, where)
            case External():
                dotted = f"{owner.dotted}.{name}"
                return self.stand_ins.get(dotted, External(dotted))
            case Unknown():
                return Unknown(owner.reason)
            case type() if owner in (dict, str, list, set, int, frozenset):
                found = ops.native(where, getattr, owner, name)
                return Native(f"{owner.__name__}.{name}", found, python=True)
            case _ if ops.has_native_methods(owner):
                return ops.native(where, getattr, owner, name)
            case BaseException() if name == "args":
                return owner.args
            case _:
                what = type(owner).__name__
                raise CannotFollow(f"the attribute `{name}` of a {what} is not followed", where)

    def _special(self, owner: Value, name: str, where: Place) -> Value:
        match owner, name:
            case Object(), "__class__":
                return class_of(owner)
            case Object(), "__dict__":
                return attrs_of(owner)
            case ClassValue(), "__dict__":
                sketch = self.names.sketch(owner.ref.module)
                return dict.fromkeys(sketch.members(owner.ref.name) if sketch is not None else ())
            case ((ClassValue() | Function()), "__name__" | "__qualname__"):
                return owner.name
            case type(), "__name__":
                return owner.__name__
            case External(), _:
                return External(f"{owner.dotted}.{name}")
            case _:
                raise CannotFollow(f"`{name}` is not followed", where)

    def module_attribute(self, owner: ModuleValue, name: str, where: Place | None) -> Value:
        """``module.name``, by the module's own ``__getattr__`` where it does not bind it."""
        found = self.names.member(owner.name, name)
        if isinstance(found, Ref) or str(found) in self.stand_ins:
            return self.named(found)
        if str(found) != f"{owner.name}.{name}":
            return self.named(found)
        branches = self._in_branches(owner.name, name)
        if branches is not None:
            return branches
        sketch = self.names.sketch(owner.name)
        getter = sketch.function("__getattr__") if sketch is not None else None
        if getter is not None:
            return self.call_function(Function(getter, owner.name), (name,), {})
        said = f"module {owner.name!r} has no attribute {name!r}"
        raise Raised(AttributeError(said), where)

    def class_attribute(
        self,
        cls: ClassValue,
        name: str,
        receiver: Value,
        where: Place | None,
        after: Ref | None = None,
    ) -> Value:
        """What the class and its bases have of that name, bound to ``receiver``; or _MISSING."""
        order = self.names.order(cls.ref)
        if after is not None and after in order:
            order = order[order.index(after) + 1 :]
        for member in order:
            if isinstance(member, Ref):
                found = self._own(member, name, receiver)
                if found is not _MISSING:
                    return found
            else:
                found = self.outside_attribute(member.dotted, cls, name, receiver, where)
                if found is not _MISSING:
                    return found
        return _MISSING

    def _own(self, member: Ref, name: str, receiver: Value) -> Value:
        """What one class of the tree itself has of that name, bound to ``receiver``."""
        if (member, name) in self._values:
            return self._values[member, name]
        sketch = self.names.sketch(member.module)
        chunk = sketch.members(member.name).get(name) if sketch is not None else None
        if sketch is None or chunk is None:
            return _MISSING
        match sketch.node(chunk):
            case ast.FunctionDef() as node:
                return self._bound_method(node, member, receiver)
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                key = (member, name)
                if key not in self._values:
                    frame = Frame(member.module, {}, owner=member)
                    self._values[key] = self.expr(value, frame)
                return self._values[key]
            case _:
                return _MISSING

    def own_property(self, member: Ref, name: str) -> Property | None:
        """The property that one class of the tree itself defines under a name."""
        sketch = self.names.sketch(member.module)
        return None if sketch is None else property_of(sketch, member.name, name)

    def _bound_method(self, node: ast.FunctionDef, member: Ref, receiver: Value) -> Value:
        held = self.own_property(member, node.name)
        if held is not None:
            if not isinstance(receiver, Object):
                raise CannotFollow(f"the property `{node.name}` of a class")
            getter = Function(held.getter, member.module, member)
            return self.call_function(getter, (receiver,), {})
        function = self._decorated(
            Function(node, member.module, member), node, member.module, cls=True
        )
        marks = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
        if "staticmethod" in marks:
            return function
        if "classmethod" in marks:
            cls = class_of(receiver) if isinstance(receiver, Object) else receiver
            return Bound(function, (cls,))
        return Bound(function, (receiver,)) if isinstance(receiver, Object) else function

    def object_attribute(self, owner: Object, name: str, where: Place | None) -> Value:
        """An attribute of an instance, by ``__getattribute__`` where its class has its own."""
        own = self.own_method(owner, "__getattribute__")
        if own is None:
            return self.plain_attribute(owner, name, where)
        return self.call(Bound(own, (owner,)), (name,), {}, _NODE, _TOP)

    def own_method(self, owner: Object, name: str) -> Function | None:
        """A method that a class of the tree has, by which Python acts on its instances."""
        cls = class_of(owner)
        if not isinstance(cls, ClassValue):
            return None
        key = (cls.ref, name)
        if key not in self._methods:
            found = self.names.method(cls.ref, name)
            made = None if found is None else Function(found[1], found[0].module, found[0])
            self._methods[key] = made
        return self._methods[key]

    def plain_attribute(self, owner: Object, name: str, where: Place | None) -> Value:
        """An attribute of an instance: its own, else its class's, else by ``__getattr__``."""
        if name == "__dict__":
            return attrs_of(owner)
        held = attrs_of(owner)
        name = self.mapped(owner, name)
        if name in held:
            return held[name]
        if isinstance(owner, Partial):
            return owner.view(name)
        cls = class_of(owner)
        if isinstance(cls, ClassValue):
            found = self.class_attribute(cls, name, owner, where)
            getter = self.own_method(owner, "__getattr__")
            if found is _MISSING and getter is not None:
                return self.call(Bound(getter, (owner,)), (name,), {}, _NODE, _TOP)
        else:
            found = self.outside_attribute(cls.dotted, cls, name, owner, where)
        if found is not _MISSING:
            return found
        if isinstance(owner, Config):
            self.absent.setdefault(name, where)
            if self.open_classes and not self.asking:
                reason = f"`{name}` may be a default of its class, which Transformers knows"
                return Unknown(reason)
        said = f"{type(owner).__name__!r} object has no attribute {name!r}"
        raise Raised(AttributeError(said), where)

    def set_attribute(self, owner: Value, name: str, value: Value, where: Place | None) -> None:
        """``owner.name = value``."""
        if isinstance(owner, Unknown):
            return
        if isinstance(owner, ClassValue):
            self._values[owner.ref, name] = value
            return
        if not isinstance(owner, Object):
            if ops.has_native_methods(owner):
                ops.native(where, setattr, owner, name, value)
            raise CannotFollow(f"an attribute of a {type(owner).__name__} is set", where)
        own = self.own_method(owner, "__setattr__")
        if own is not None:
            self.call(Bound(own, (owner,)), (name, value), {}, _NODE, _TOP)
            return
        self.plain_set(owner, name, value, where)

    def plain_set(self, owner: Object, name: str, value: Value, where: Place | None) -> None:
        """``object.__setattr__(owner, name, value)``."""
        name = self.mapped(owner, name)
        if not self.set_property(owner, name, value, where):
            attrs_of(owner)[name] = value

    # --- to be given by the other halves

    def mapped(self, owner: Object, name: str) -> str:
        """The name under which a configuration keeps an attribute."""
        raise NotImplementedError

    def set_property(self, owner: Object, name: str, value: Value, where: Place | None) -> bool:
        """Set an attribute that the class computes; whether it is one."""
        raise NotImplementedError

    def outside_attribute(
        self, dotted: str, cls: Value, name: str, receiver: Value, where: Place | None
    ) -> Value:
        """What a class outside the tree has of that name; _MISSING where it has nothing."""
        raise NotImplementedError

    def call(
        self,
        function: Value,
        args: tuple[Value, ...],
        named: Mapping[str, Value],
        node: ast.AST,
        frame: Frame,
    ) -> Value:
        """``function(*args, **named)``."""
        raise NotImplementedError


class _Missing:
    """No attribute of that name."""


_MISSING = _Missing()
MISSING: Value = _MISSING
_NODE = ast.Pass()
_TOP = Frame("", {})


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _stores(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _changes(target: ast.AST, name: str) -> bool:
    """Whether an assignment stores into what a name stands for."""
    plain = isinstance(target, ast.Name)
    return not plain and any(_mentions(one, name) for one in ast.walk(target))


def _mentions(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
