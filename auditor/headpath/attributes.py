"""What ``self.x`` is: read off the ``__init__`` of the classes of the MRO.

Plain assignments in ``__init__`` say what an attribute is. The class of a submodule, the class of
the items of a ``ModuleDict`` or ``ModuleList``, an alias of another attribute, or None are told
apart; anything else is known to be assigned, and no more. Whatever may set the attribute in another
way (``changes.py``) takes that knowledge away.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache

import msgspec

from auditor.classes import Order, linearise
from auditor.headpath.bodies import Bodies
from auditor.headpath.changes import ChangesOf, init_calls
from auditor.headpath.stores import assignment, first_parameter, mangled, plain_statements
from auditor.nodes import nodes_of
from auditor.values import ClassValue, Either, Foreign, Function, Place, Value


class Attribute(msgspec.Struct, frozen=True):
    """One possible value of an attribute.

    Attributes:
        cls: the class it is an instance of, when that is known.
        item: the class of its items, when it is a container of submodules.
        alias: the names from ``self`` on, when it is another attribute (``("model", "lm_head")``).
        is_none: it is None.
        call: the call that makes it, for what is read off its arguments.
        where: the assignment.
        init: the class whose ``__init__`` assigns it.
    """

    cls: ClassValue | Foreign | None
    item: ClassValue | Foreign | None
    alias: tuple[str, ...]
    is_none: bool
    call: ast.Call | None
    where: Place
    init: ClassValue


class Attributes:
    """Attributes of instances, by class and name."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._known: dict[tuple[int, str], tuple[Attribute, ...]] = {}
        self._changes = ChangesOf(bodies)

    def of(self, cls: ClassValue, name: str) -> tuple[Attribute, ...]:
        """The values that ``self.name`` may have; empty where no ``__init__`` assigns it."""
        key = (id(cls), name)
        if key not in self._known:
            order = ("values", Order(cls), name)
            self._known[key] = self._bodies.once(order, lambda: self._find(cls, name))
        return self._known[key]

    def _find(self, cls: ClassValue, name: str) -> tuple[Attribute, ...]:
        """The assignments of the most derived class that makes one: it runs last.

        Where that class assigns on some branches only, or before it runs the ``__init__`` of its
        bases, those of the bases count as well.
        """
        found: list[Attribute] = []
        for member in linearise(cls):
            init = self._init(member)
            if init is not None and isinstance(member, ClassValue):
                found.extend(self._assigned(member, init, name))
                if found and _settles(init, name, member.qualname.rpartition(".")[2]):
                    break
        return tuple(found)

    def _init(self, member: Value) -> ast.FunctionDef | None:
        if not isinstance(member, ClassValue):
            return None
        return self._bodies.functions(member).get("__init__")

    def all_of(self, cls: ClassValue) -> Iterator[tuple[str, Attribute]]:
        """Every attribute that an ``__init__`` of the class or a base plainly assigns."""
        names: dict[str, None] = {}
        for member in linearise(cls):
            init = self._init(member)
            if init is not None and isinstance(member, ClassValue):
                names.update(dict.fromkeys(_plain(init, member.qualname.rpartition(".")[2])))
        for name in names:
            for value in self.of(cls, name):
                yield name, value

    def changed(self, cls: ClassValue, name: str) -> Place | None:
        """Where the class, or its file, may set ``name`` in another way than ``__init__`` says."""
        return self._changes.of(cls).of(name)

    def changed_by(self, cls: ClassValue, name: str) -> Place | None:
        """Where the methods of ``cls``, or its file, may set ``name`` on another object."""
        return self._changes.of(cls).of_any(name)

    def set_at(self, cls: ClassValue, name: str) -> Place | None:
        """Where a method, or the file of the class, sets ``name`` beside ``__init__``."""
        changes = self._changes.of(cls)
        return changes.own.get(name) or changes.other.get(name)

    def settled(self, cls: ClassValue, name: str) -> bool:
        """Whether some ``__init__`` that runs for every instance assigns ``name`` on every way."""
        for member in linearise(cls):
            init = self._init(member)
            if init is not None and isinstance(member, ClassValue):
                own = member.qualname.rpartition(".")[2]
                if _settles(init, name, own):
                    return True
                if _bounds(init)[0] == 0:
                    return False  # it does not run the __init__ of its bases
        return False

    def elsewhere(self, cls: ClassValue, name: str) -> Place | None:
        """Where ``name`` may be set in another way than ``__init__`` says, or by the engine."""
        return self.changed(cls, name) or self._bodies.outside(name)

    def outside(self, name: str) -> Place | None:
        """Where the engine sets an attribute of this name on some object, if it does."""
        return self._bodies.outside(name)

    def _assigned(self, cls: ClassValue, init: ast.FunctionDef, name: str) -> Iterator[Attribute]:
        for value, line in _plain(init, cls.qualname.rpartition(".")[2]).get(name, ()):
            yield from self._values(cls, value, _locals(init), line)

    def _values(
        self,
        cls: ClassValue,
        value: ast.expr,
        local: dict[str, list[ast.expr | None]],
        line: int,
    ) -> Iterator[Attribute]:
        where = Place(cls.module.path, line)
        for one in _options(value, local):
            alias = _self_path(one)
            is_none = isinstance(one, ast.Constant) and one.value is None
            call = one if isinstance(one, ast.Call) else None
            if call is not None and _dotted(call.func).partition(".")[0] in local:
                call = None  # a local name, and not what the module calls so
            made = self._class_of_call(cls, call) if call is not None else None
            item = self._item_class(cls, call) if call is not None else None
            yield Attribute(made, item, alias, is_none, call, where, cls)

    def _class_of_call(self, cls: ClassValue, call: ast.Call) -> ClassValue | Foreign | None:
        dotted = _dotted(call.func)
        value = self._bodies.named(cls, dotted) if dotted else None
        if isinstance(value, Either):
            options = list(value.values())
            value = options[0] if len({id(option) for option in options}) == 1 else None
        if isinstance(value, Function):
            return self._made_by(cls, f"{value.module.name}.{value.facts.name}")
        return value if isinstance(value, ClassValue | Foreign) else None

    def _made_by(self, cls: ClassValue, dotted: str) -> ClassValue | Foreign | None:
        """The class that a function of the tree makes an instance of, if every return does."""
        found = self._bodies.function(cls, dotted)
        if found is None:
            return None
        scope, function = found
        returns = [node for node in nodes_of(function) if isinstance(node, ast.Return)]
        made = [
            self._class_of_call(scope, node.value) if isinstance(node.value, ast.Call) else None
            for node in returns
        ]
        first = made[0] if made else None
        return first if all(one is first for one in made) else None

    def _item_class(self, cls: ClassValue, call: ast.Call) -> ClassValue | Foreign | None:
        """The class of the items of ``ModuleDict({…})`` and ``ModuleList([…])``, if it is one."""
        items = _items_of(call.args[0]) if call.args else []
        made = [
            self._class_of_call(cls, item) if isinstance(item, ast.Call) else None for item in items
        ]
        first = made[0] if made else None
        return first if all(one is first for one in made) else None


def is_attribute(target: ast.AST | None, owner: str, name: str, cls: str | None) -> bool:
    """Whether a target is ``owner.name``, as the body of ``cls`` means private names."""
    match target:
        case ast.Attribute(value=ast.Name(id=one), attr=attr):
            return one == owner and mangled(attr, cls) == name
        case _:
            return False


@lru_cache(maxsize=1024)
def _plain(init: ast.FunctionDef, cls: str) -> dict[str, list[tuple[ast.expr, int]]]:
    """What an ``__init__`` plainly assigns to attributes of ``self``, with the lines."""
    first = first_parameter(init)
    found: dict[str, list[tuple[ast.expr, int]]] = {}
    for node in plain_statements(init.body):
        match assignment(node):
            case ast.Attribute(value=ast.Name(id=one), attr=attr), ast.expr() as value if (
                one == first
            ):
                found.setdefault(mangled(attr, cls), []).append((value, node.lineno))
    return found


@lru_cache(maxsize=1024)
def _bounds(init: ast.FunctionDef) -> tuple[int, int]:
    """The last line on which an ``__init__`` runs that of a base, and the first of a return."""
    returns = [node.lineno for node in nodes_of(init) if isinstance(node, ast.Return)]
    return max(init_calls(init), default=0), min(returns, default=sys.maxsize)


def _settles(init: ast.FunctionDef, name: str, cls: str) -> bool:
    """Whether an ``__init__`` assigns ``self.name`` on every way, after all that its bases do."""
    first = first_parameter(init)
    last, returned = _bounds(init)

    def assigns(body: list[ast.stmt]) -> bool:
        for node in body:
            if returned < node.lineno:
                return False
            target, value = assignment(node)
            is_it = value is not None and is_attribute(target, first, name, cls)
            if is_it and node.lineno > last:
                return True
            match node:
                case ast.If(body=taken, orelse=orelse) if assigns(taken) and assigns(orelse):
                    return True
                case ast.With(body=inner) if assigns(inner):
                    return True
        return False

    return assigns(init.body)


def _items_of(display: ast.expr) -> list[ast.expr]:
    match display:
        case ast.DictComp(value=value):
            return [value]
        case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value):
            return [value]
        case ast.Dict(values=values):
            return values
        case ast.List(elts=values):
            return values
        case _:
            return []


#: Nodes that may bind a name.
_BINDING = frozenset((ast.Name, ast.arg, ast.MatchAs, ast.ExceptHandler, ast.Nonlocal, ast.Global))


@lru_cache(maxsize=1024)
def _locals(init: ast.FunctionDef) -> dict[str, list[ast.expr | None]]:
    """What local names of a function are assigned, each time; None for what is not an expression.

    A parameter has what the caller passes, and whatever is bound in another way than by a plain
    assignment is not read.
    """
    found: dict[str, list[ast.expr | None]] = {}
    plain: set[int] = set()
    for node in plain_statements(init.body):
        target, value = assignment(node)
        if isinstance(target, ast.Name) and value is not None:
            plain.add(id(target))
            found.setdefault(target.id, []).append(value)
    for inner in nodes_of(init):
        if type(inner) not in _BINDING:
            continue
        match inner:
            case ast.Name(ctx=ast.Load()):
                continue
            case ast.Name(id=name) if id(inner) not in plain:
                found.setdefault(name, []).append(None)
            case (
                ast.arg(arg=name)
                | ast.MatchAs(name=str() as name)
                | ast.ExceptHandler(name=str() as name)
            ):
                found.setdefault(name, []).append(None)
            case ast.Nonlocal(names=names) | ast.Global(names=names):
                found.update({name: [None] for name in names})
    return found


def _options(
    value: ast.expr, local: dict[str, list[ast.expr | None]], depth: int = 4
) -> Iterator[ast.expr]:
    """The expressions that a value may be: through local names and conditional expressions."""
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            yield from _options(body, local, depth)
            yield from _options(orelse, local, depth)
        case ast.Name(id=name) if local.get(name) and depth:
            for one in local[name]:
                if one is None:
                    yield value
                else:
                    yield from _options(one, local, depth - 1)
        case _:
            yield value


def _self_path(value: ast.expr) -> tuple[str, ...]:
    """The names from ``self`` on in ``self.a.b``; empty for anything else."""
    dotted = _dotted(value)
    return tuple(dotted.split(".")[1:]) if dotted.startswith("self.") else ()


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


#: Kept for callers that resolve names by themselves.
dotted_name: Callable[[ast.expr], str] = _dotted
