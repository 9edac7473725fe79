"""Who sets attributes, by the text of functions: every form that Python and PyTorch have for it.

Only ``self.x = value`` in ``__init__`` says what ``x`` is. Any other way of setting it (together
with others, in a loop or handler's target, by ``setattr`` or ``register_buffer``, through
``__dict__``, in another method, by a function that is handed the object) says only that it may be
something else as well. Objects other than ``self`` are told by the attribute's name alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from auditor.nodes import nodes_of

#: Methods of a module that set the attribute named by their first argument (PyTorch).
SETTERS = frozenset(("add_module", "register_module", "register_buffer", "register_parameter"))

#: Functions and methods that set or delete the attribute named by their second argument.
_BUILTIN_SETTERS = frozenset(("setattr", "delattr"))
_SLOT_SETTERS = frozenset(("__setattr__", "__delattr__"))

#: Where an object and PyTorch keep attributes by name.
NAMESPACES = frozenset(("__dict__", "_modules", "_parameters", "_buffers"))

#: What is read off a namespace, and leaves it as it is.
_READS = frozenset(("items", "keys", "values", "get", "copy"))

#: Methods that change which items a container has.
_FILLS = frozenset(
    "append extend insert update pop popitem remove clear setdefault "
    "__setitem__ __delitem__".split()
)

#: All of them, and ``vars``: what else is called sets nothing, but for hooks.
_CALLED = _BUILTIN_SETTERS | _SLOT_SETTERS | SETTERS | _FILLS | {"vars"}


class Handed(msgspec.Struct, frozen=True):
    """A call that is handed the object: what is called, at which argument, in which function."""

    function: str
    position: int | str
    line: int
    by_init: bool


class Stores(msgspec.Struct, frozen=True):
    """What functions set, by attribute, with the first line of each.

    Attributes:
        own: attributes of ``self``, other than by a plain assignment in ``__init__``.
        other: attributes of any other object.
        own_any: where an attribute of ``self`` is set whose name is not known.
        other_any: where one of another object is.
        handed: calls that are handed ``self``.
    """

    own: Mapping[str, int]
    other: Mapping[str, int]
    own_any: int | None
    other_any: int | None
    handed: tuple[Handed, ...]


def mangled(name: str, cls: str | None) -> str:
    """A private name as the body of a class means it (``__x`` in ``C``: ``_C__x``)."""
    bare = (cls or "").lstrip("_")
    if not bare or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    return f"_{bare}{name}"


def stores_of(functions: Mapping[str, ast.FunctionDef], cls: str | None) -> Stores:
    """What the methods of a class set."""
    scans = [
        _Scan(function, first_parameter(function), name == "__init__", cls)
        for name, function in functions.items()
    ]
    return _joined(scans)


@lru_cache(maxsize=4096)
def stores_of_function(function: ast.FunctionDef, parameter: str, new: str = "") -> Stores:
    """What one function sets on the object that is its ``parameter``, and on others.

    ``new`` is the parameter that is an object made by the call: who sets what on it is its own.
    """
    return _joined([_Scan(function, parameter, False, None, new)])


def first_parameter(function: ast.FunctionDef) -> str:
    """The name of ``self``; empty where there is none."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    return arguments[0].arg if arguments else ""


def plain_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body in order, those of its branches included; no nested function's."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        yield node
        for block in ("body", "orelse", "finalbody"):
            yield from plain_statements(getattr(node, block, []))
        for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield from plain_statements(inner.body)


def assignment(node: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    """Target and value of a plain assignment to one target."""
    match node:
        case ast.Assign(targets=[target], value=value):
            return target, value
        case ast.AnnAssign(target=target, value=value):
            return target, value
        case _:
            return None, None


def _joined(scans: list[_Scan]) -> Stores:
    own: dict[str, int] = {}
    other: dict[str, int] = {}
    for scan in scans:
        for found, into in ((scan.own, own), (scan.other, other)):
            for name, line in found.items():
                into[name] = min(line, into.get(name, line))
    own_any = [scan.own_any for scan in scans if scan.own_any is not None]
    other_any = [scan.other_any for scan in scans if scan.other_any is not None]
    handed = tuple(one for scan in scans for one in scan.handed)
    return Stores(own, other, min(own_any, default=None), min(other_any, default=None), handed)


class _Scan:
    """One function, read for what it sets."""

    def __init__(
        self,
        function: ast.FunctionDef,
        first: str,
        is_init: bool,
        cls: str | None,
        new: str = "",
    ) -> None:
        self._first = first
        self._is_init = is_init
        self._cls = cls
        self._new = new
        self.own: dict[str, int] = {}
        self.other: dict[str, int] = {}
        self.own_any: int | None = None
        self.other_any: int | None = None
        self.handed: list[Handed] = []
        self._plain = _plain_targets(function) if is_init else set()
        self._harmless: set[int] = set()  # parts that are only read: what holds them comes first
        for node in nodes_of(function):
            read = _READ.get(type(node))
            if read is not None:
                read(self, node)

    def _attribute(self, node: ast.Attribute) -> None:
        if node.attr in NAMESPACES:
            if id(node) not in self._harmless:
                self._set(node.value, None, node.lineno)
        elif (
            not isinstance(node.ctx, ast.Load)
            and id(node) not in self._plain
            and id(node) not in self._harmless
        ):
            self._set(node.value, mangled(node.attr, self._cls), node.lineno)
        if node.attr in _READS:
            self._harmless.add(id(node.value))

    def _subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Load):
            self._harmless.add(id(node.value))
        elif isinstance(node.value, ast.Attribute):
            held = node.value
            self._set(held.value, mangled(held.attr, self._cls), node.lineno)

    def _comparison(self, node: ast.Compare) -> None:
        self._harmless.update(map(id, node.comparators))

    def _loop(self, node: ast.For | ast.comprehension) -> None:
        self._harmless.add(id(node.iter))

    def _annotation(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            self._harmless.add(id(node.target))

    def _keyword(self, node: ast.keyword) -> None:
        if node.arg is None:
            self._harmless.add(id(node.value))

    def _is_self(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name):
                return name == self._first
            case ast.Call(func=ast.Name(id="super")):
                return True
            case _:
                return False

    def _set(self, owner: ast.AST, name: str | None, line: int) -> None:
        is_self = self._is_self(owner)
        if isinstance(owner, ast.Name) and owner.id == self._new:
            return
        if name is not None:
            (self.own if is_self else self.other).setdefault(name, line)
        elif is_self:
            self.own_any = self.own_any or line
        else:
            self.other_any = self.other_any or line

    def _call(self, node: ast.Call) -> None:
        if not _is_telling(node.func):
            self._hand(node)
            return
        match node:
            case ast.Call(func=ast.Name(id=name), args=[owner, key, *_]) if (
                name in _BUILTIN_SETTERS
            ):
                self._set(owner, _text(key), node.lineno)
            case ast.Call(func=ast.Attribute(attr=attr), args=[owner, key, _]) if (
                attr in _SLOT_SETTERS
            ):
                self._set(owner, _text(key), node.lineno)
            case ast.Call(func=ast.Attribute(attr=attr, value=owner)) if (
                attr in SETTERS or attr in _SLOT_SETTERS
            ):
                self._set(owner, _first_text(node), node.lineno)
            case ast.Call(func=ast.Attribute(attr=attr, value=ast.Attribute() as held)) if (
                attr in _FILLS and held.attr not in NAMESPACES
            ):
                self._set(held.value, mangled(held.attr, self._cls), node.lineno)
                self._hand(node)
            case ast.Call(func=ast.Attribute(attr=attr, value=owner)) if attr.startswith(
                "register_"
            ) and attr.endswith("_hook"):
                of = owner if isinstance(owner, ast.Attribute) else None
                # A hook changes what calling the module gives.
                self._set(of.value if of else owner, of.attr if of else None, node.lineno)
            case ast.Call(func=ast.Name(id="vars"), args=[owner]):
                self._set(owner, None, node.lineno)
            case _:
                self._hand(node)

    def _hand(self, node: ast.Call) -> None:
        given: list[tuple[int | str, ast.expr]] = [*enumerate(node.args)]
        given += [(keyword.arg or "", keyword.value) for keyword in node.keywords]
        for position, value in given:
            if isinstance(value, ast.Constant | ast.Attribute):
                continue  # most arguments
            if any(map(self._is_self, _held(value))):
                plain = position if self._is_self(value) else ""
                function = ast.unparse(node.func) if _is_dotted(node.func) else ""
                self.handed.append(Handed(function, plain, node.lineno, self._is_init))


def _is_telling(function: ast.expr) -> bool:
    """Whether the name of what is called says that it may set something."""
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in _CALLED or name.startswith("register_")


def _held(value: ast.expr) -> Iterator[ast.expr]:
    """An argument, or what it is a display of."""
    yield value
    match value:
        case ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts):
            yield from elts
        case ast.Dict(values=values):
            yield from values
        case ast.Starred(value=inner):
            yield from _held(inner)


def _plain_targets(function: ast.FunctionDef) -> set[int]:
    targets = (assignment(node)[0] for node in plain_statements(function.body))
    return {id(target) for target in targets if isinstance(target, ast.Attribute)}


#: Nodes that set something, or that say of a part that it is only read.
_READ: dict[type[ast.AST], Callable[[_Scan, Any], None]] = {
    ast.Call: _Scan._call, ast.Attribute: _Scan._attribute, ast.Subscript: _Scan._subscript,
    ast.Compare: _Scan._comparison, ast.For: _Scan._loop, ast.comprehension: _Scan._loop,
    ast.AnnAssign: _Scan._annotation, ast.keyword: _Scan._keyword,
}  # fmt: skip


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _first_text(call: ast.Call) -> str | None:
    named = [keyword.value for keyword in call.keywords if keyword.arg == "name"]
    first = [*call.args[:1], *named]
    return _text(first[0]) if first else None


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
