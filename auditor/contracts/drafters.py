"""What a speculator or proposer calls on its draft model, and from where.

A call counts for a class when the method it stands in is reached from the methods that the model
runner calls: through ``self.method``, ``super().method``, and references that hand a method on.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

import msgspec

from auditor.contracts.names import Names, Outside, Ref
from auditor.nodes import nodes_of
from auditor.values import Place


class Call(msgspec.Struct, frozen=True):
    """One call of a method of a model.

    Attributes:
        where: its place.
        text: its source on one line.
        method: the method that is called.
        receiver: the expression it is called on, with local names replaced by what they stand for.
        positional: how many positional arguments it has, without unpacked ones.
        keywords: its keyword arguments, without unpacked ones.
        starred: it has ``*args``.
        unpacked: it has ``**kwargs``.
        arguments: the source of the arguments, positional ones first.
        cls: the class around it, empty outside a class.
        function: the function around it.
    """

    where: Place
    text: str
    method: str
    receiver: str
    positional: int
    keywords: tuple[str, ...]
    starred: bool
    unpacked: bool
    arguments: tuple[str, ...]
    cls: str = ""
    function: str = ""

    @property
    def form(self) -> str:
        """The call without its receiver."""
        return f"{self.method}({', '.join(self.arguments)})"


class Drafter(msgspec.Struct, frozen=True):
    """A class that drafts, and the calls on its model that it comes to."""

    cls: Ref
    where: Place
    calls: tuple[Call, ...]
    guarded: bool
    open: str = ""

    def of(self, method: str) -> tuple[Call, ...]:
        """The calls of one method."""
        return tuple(call for call in self.calls if call.method == method)


class _Method(msgspec.Struct, frozen=True):
    """What one method calls on the model, which methods it may call, and whether it probes."""

    calls: tuple[Call, ...]
    references: tuple[tuple[str, Ref | None], ...]
    guards: bool


class Drafters:
    """Reads classes of the engine.

    Args:
        names: the definitions of the tree.
        model: the attribute that holds the draft model.
        entries: the methods that the model runner calls.
        methods: the methods of a model whose calls are of interest.
    """

    def __init__(
        self, names: Names, model: str, entries: Iterable[str], methods: Collection[str]
    ) -> None:
        self._names = names
        self._model = f"self.{model}"
        self._entries = tuple(entries)
        self._methods = methods
        self._known: dict[Ref, Drafter] = {}
        self._read_already: dict[tuple[Ref, str], _Method] = {}

    def of(self, cls: Ref) -> Drafter:
        """What a class calls."""
        if cls not in self._known:
            self._known[cls] = self._read(cls)
        return self._known[cls]

    def _read(self, cls: Ref) -> Drafter:
        sketch = self._names.sketch(cls.module)
        chunk = sketch.top.get(cls.name) if sketch is not None else None
        where = Place(self._names.path(cls.module), chunk.start if chunk is not None else 0)
        calls: dict[Place, Call] = {}
        guarded = False
        for method in self._reached(cls):
            calls.update((call.where, call) for call in method.calls)
            guarded = guarded or method.guards
        return Drafter(cls, where, tuple(calls[place] for place in calls), guarded, self._hole(cls))

    def _hole(self, cls: Ref) -> str:
        """Why the class's methods are not all known; empty where they are."""
        for member in self._names.order(cls):
            sketch = self._names.sketch(member.module) if isinstance(member, Ref) else None
            if sketch is not None and sketch.unparsed is not None:
                return f"{sketch.path} {sketch.unparsed.reason}"
            if isinstance(member, Outside) and not member.bound:
                # A name that no import at the top level binds: it may come from a branch.
                return f"the base {member} of {cls} was not found"
        return ""

    def _is_guard(self, node: ast.Call) -> bool:
        match node:
            case ast.Call(
                func=ast.Name(id="hasattr"), args=[owner, ast.Constant(value=str() as name)]
            ):
                return name in self._methods and ast.unparse(owner) == self._model
            case _:
                return False

    def _reached(self, cls: Ref) -> Iterator[_Method]:
        """What every method that the entries reach calls."""
        for owner, function in self.reached(cls):
            yield self._method(owner, function)

    def reached(self, cls: Ref) -> Iterator[tuple[Ref, ast.FunctionDef]]:
        """Every method that the entries reach, each with the class that defines it."""
        pending: list[tuple[str, Ref | None]] = [(name, None) for name in self._entries]
        seen: set[tuple[str, Ref]] = set()
        while pending:
            name, after = pending.pop(0)
            found = self._names.method(cls, name, after)
            if found is None or (name, found[0]) in seen:
                continue
            owner, function = found
            seen.add((name, owner))
            yield owner, function
            pending.extend(self._method(owner, function).references)

    def _method(self, owner: Ref, function: ast.FunctionDef) -> _Method:
        key = (owner, function.name)
        if key not in self._read_already:
            path = self._names.path(owner.module)
            nodes = nodes_of(function)
            called = [node for node in nodes if isinstance(node, ast.Call)]
            read = (node for node in nodes if isinstance(node, ast.Attribute))
            calls = calls_in(function, path, self._methods, owner.name, called)
            self._read_already[key] = _Method(
                tuple(call for call in calls if call.receiver == self._model),
                tuple(dict.fromkeys(_references(read, owner))),
                any(map(self._is_guard, called)),
            )
        return self._read_already[key]


def _references(nodes: Iterable[ast.Attribute], owner: Ref) -> Iterator[tuple[str, Ref | None]]:
    """The methods that a function may call: of ``self``, or of ``super()`` after its class."""
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                yield name, None
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[]), attr=name):
                yield name, owner
            case _:
                continue


def calls_in(
    function: ast.AST,
    path: str,
    methods: Collection[str],
    cls: str = "",
    nodes: Iterable[ast.AST] | None = None,
) -> Iterator[Call]:
    """The calls of ``methods`` in a function, in order; ``nodes`` are its calls where known."""
    found = [
        node
        for node in (nodes_of(function) if nodes is None else nodes)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in methods
    ]
    aliases = _aliases(function) if found else {}
    for node in sorted(found, key=lambda call: (call.lineno, call.col_offset)):
        assert isinstance(node.func, ast.Attribute)
        receiver = _spelled(node.func.value, aliases)
        yield _call(node, node.func.attr, receiver, path, cls, getattr(function, "name", ""))


def _call(node: ast.Call, method: str, receiver: str, path: str, cls: str, function: str) -> Call:
    starred = [isinstance(argument, ast.Starred) for argument in node.args]
    keywords = [keyword.arg for keyword in node.keywords]
    return Call(
        where=Place(path, node.lineno),
        text=" ".join(ast.unparse(node).split()),
        method=method,
        receiver=receiver,
        positional=starred.count(False),
        keywords=tuple(keyword for keyword in keywords if keyword is not None),
        starred=any(starred),
        unpacked=None in keywords,
        arguments=(*map(ast.unparse, node.args), *map(_keyword, node.keywords)),
        cls=cls,
        function=function,
    )


def _keyword(keyword: ast.keyword) -> str:
    value = ast.unparse(keyword.value)
    return f"{keyword.arg}={value}" if keyword.arg else f"**{value}"


def _aliases(function: ast.AST) -> dict[str, str]:
    """Local names that are assigned once, to a name or an attribute."""
    found: dict[str, list[str]] = {}
    for node in nodes_of(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    plain = isinstance(node.value, ast.Name | ast.Attribute)
                    found.setdefault(target.id, []).append(ast.unparse(node.value) if plain else "")
    return {name: texts[0] for name, texts in found.items() if len(texts) == 1 and texts[0]}


def _spelled(receiver: ast.expr, aliases: dict[str, str], depth: int = 4) -> str:
    """The source of a receiver, a local name replaced by what it was assigned."""
    text = ast.unparse(receiver)
    head, dot, rest = text.partition(".")
    if depth and head in aliases:
        inner = ast.parse(aliases[head], mode="eval").body
        return f"{_spelled(inner, aliases, depth - 1)}{dot}{rest}"
    return text
