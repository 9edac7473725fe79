"""The engine's modules as syntax trees with parents, each parsed when it is first asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from auditor.facts import Unparsed
from auditor.program import Files
from auditor.syntax.parsing import parse

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.Lambda | ast.Module


#: How a name is bound, and to what: to a ``value``, or to an ``item`` of one.
Bound = tuple[str, ast.expr]


@dataclass(frozen=True, slots=True)
class Module:
    """One file: its tree, the parent of each node, what its imports bind, and what is where."""

    path: str
    tree: ast.Module
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    functions: dict[str, list[Function]] = field(default_factory=dict)
    classes: dict[str, list[ast.ClassDef]] = field(default_factory=dict)
    calls: dict[str, list[ast.Call]] = field(default_factory=dict)
    _bound: dict[ast.AST, dict[str, list[Bound]]] = field(default_factory=dict)
    _stored: dict[ast.ClassDef, dict[str, list[ast.expr]]] = field(default_factory=dict)

    @classmethod
    def of(cls, path: str, tree: ast.Module) -> Module:
        """The module of a tree."""
        module = cls(path, tree)
        for node in _linked(tree, module.parents):
            match node:
                case ast.Call(func=func):
                    module.calls.setdefault(last_name(func), []).append(node)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    module.functions.setdefault(name, []).append(node)
                case ast.ClassDef(name=name):
                    module.classes.setdefault(name, []).append(node)
                case ast.ImportFrom(module=source, names=names, level=0):
                    for alias in names:
                        module.imported[alias.asname or alias.name] = f"{source}.{alias.name}"
                case ast.Import(names=names):
                    for alias in names:
                        bound = alias.asname or alias.name.partition(".")[0]
                        module.imported[bound] = alias.name if alias.asname else bound
                case _:
                    continue
        return module

    def bound(self, scope: ast.AST, name: str) -> list[Bound]:
        """What a name is assigned in a function or module, inner functions left out."""
        if scope not in self._bound:
            found: dict[str, list[Bound]] = {}
            for node in _own(scope):
                for known, how, value in bindings(node):
                    found.setdefault(known, []).append((how, value))
            self._bound[scope] = found
        return self._bound[scope].get(name, [])

    def stored(self, cls: ast.ClassDef, name: str) -> list[ast.expr]:
        """What the methods of a class assign to an attribute of ``self``."""
        if cls not in self._stored:
            found: dict[str, list[ast.expr]] = {}
            for node in ast.walk(cls):
                for attr, value in _own_stores(node):
                    found.setdefault(attr, []).append(value)
            self._stored[cls] = found
        return self._stored[cls].get(name, [])

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, from the inside out."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function(self, node: ast.AST) -> Function | None:
        """The function that a node stands in."""
        return next((one for one in self.above(node) if isinstance(one, Function)), None)

    def cls(self, node: ast.AST) -> ast.ClassDef | None:
        """The class that a node stands in."""
        return next((one for one in self.above(node) if isinstance(one, ast.ClassDef)), None)

    def holder(self, node: ast.AST) -> str:
        """The function that a node stands in, as ``Class.method``."""
        kinds = (*Function.__args__, ast.ClassDef)
        names = [one.name for one in self.above(node) if isinstance(one, kinds)]
        return ".".join(reversed(names))


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, in order, without those of functions and classes inside it."""
    todo = list(ast.iter_child_nodes(scope))[::-1]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            todo.extend(list(ast.iter_child_nodes(node))[::-1])


def bindings(node: ast.AST) -> Iterator[tuple[str, str, ast.expr]]:
    """The names that one node binds: each with how, and to what."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _names(target, "value", value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _names(target, "value", value)
        case ast.NamedExpr(target=target, value=value):
            yield from _names(target, "value", value)
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield from _names(target, "item", value)
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield from _names(target, "value", value)
        case _:
            return


def _names(target: ast.expr, how: str, value: ast.expr) -> Iterator[tuple[str, str, ast.expr]]:
    match target:
        case ast.Name(id=name):
            yield name, how, value
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            for one in elts:
                yield from _names(one, "item", value)
        case _:
            return


def _own_stores(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if isinstance(target, ast.Attribute) and last_name(target.value) == "self":
                    yield target.attr, value
        case ast.AnnAssign(
            target=ast.Attribute(value=ast.Name(id="self"), attr=attr), value=ast.expr() as value
        ):
            yield attr, value
        case _:
            return


def _linked(tree: ast.Module, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    """Every node in the order of the source; the parent of each is noted on the way."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        yield node
        inner = list(ast.iter_child_nodes(node))
        parents.update(dict.fromkeys(inner, node))
        todo.extend(reversed(inner))


class Trees:
    """The modules below a folder.

    Args:
        files: the files of the tree.
        paths: their names.
        folder: the folder.
    """

    def __init__(self, files: Files, paths: Sequence[str], folder: str) -> None:
        self._files = files
        self.folder = folder
        self.paths = sorted(p for p in paths if p.startswith(folder) and p.endswith(".py"))
        self.unread: dict[str, Unparsed] = {}
        self._known: dict[str, Module | None] = {}
        self._functions: dict[str, list[tuple[Module, Function]]] = {}
        self._calls: dict[str, list[tuple[Module, ast.Call]]] = {}
        self._classes: dict[str, list[tuple[Module, ast.ClassDef]]] = {}

    def module(self, path: str) -> Module | None:
        """The module in a file; None where it cannot be read, which :attr:`unread` tells."""
        if path not in self._known:
            source = self._files.source(path)
            tree = source if isinstance(source, Unparsed) else parse(source)
            if isinstance(tree, Unparsed):
                self.unread[path] = tree
                self._known[path] = None
            else:
                self._known[path] = Module.of(path, tree)
        return self._known[path]

    def text(self, path: str) -> bytes:
        """The bytes of a file; empty where it cannot be read, which :attr:`unread` tells."""
        source = self._files.source(path)
        if isinstance(source, Unparsed):
            self.unread[path] = source
            return b""
        return source

    def line(self, path: str, number: int) -> str:
        """The source of a line."""
        return self._files.line(path, number)

    def mentioning(self, words: Sequence[str]) -> Iterator[Module]:
        """The modules whose text holds one of the words."""
        wanted = [word.encode() for word in words]
        for path in self.paths:
            text = self.text(path)
            if any(word in text for word in wanted):
                module = self.module(path)
                if module is not None:
                    yield module

    def functions(self, name: str) -> list[tuple[Module, Function]]:
        """The functions and methods of this name."""
        if name not in self._functions:
            self._functions[name] = [
                (module, node)
                for module in self.mentioning([f"def {name}("])
                for node in module.functions.get(name, ())
            ]
        return self._functions[name]

    def calls(self, name: str) -> list[tuple[Module, ast.Call]]:
        """The calls of a function or method of this name."""
        if name not in self._calls:
            self._calls[name] = [
                (module, node)
                for module in self.mentioning([f"{name}("])
                for node in module.calls.get(name, ())
            ]
        return self._calls[name]

    def classes(self, name: str) -> list[tuple[Module, ast.ClassDef]]:
        """The classes of this name."""
        if name not in self._classes:
            self._classes[name] = [
                (module, node)
                for module in self.mentioning([f"class {name}"])
                for node in module.classes.get(name, ())
            ]
        return self._classes[name]


def last_name(node: ast.expr) -> str:
    """``c`` of ``a.b.c``; empty for what is no name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
