"""Which names belong to a function: those that it binds anywhere in its own body."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@cache
def locals_of(node: ast.FunctionDef | ast.Lambda) -> frozenset[str]:
    """The local names of a function: its parameters, and what its body binds."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    body = node.body if isinstance(node.body, list) else [node.body]
    found = {one.arg for one in every}
    outer: set[str] = set()
    for inner in (part for statement in body for part in _own(statement)):
        match inner:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.Import(names=aliases):
                found.update(one.asname or one.name.partition(".")[0] for one in aliases)
            case ast.ImportFrom(names=aliases):
                found.update(one.asname or one.name for one in aliases)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                outer.update(names)
            case _:
                continue
    return frozenset(found - outer)


def _own(node: ast.AST, inside: bool = False) -> Iterator[ast.AST]:
    """A node and what is inside it, without the bodies of other scopes.

    In a comprehension only ``:=`` binds a name of the function around it.
    """
    if isinstance(node, ast.Name) and inside and not isinstance(node.ctx, ast.Load):
        return
    yield node
    if isinstance(node, ast.NamedExpr):
        yield node.target
    if isinstance(node, _SCOPES):
        return
    inside = inside or isinstance(node, _COMPREHENSIONS)
    for child in ast.iter_child_nodes(node):
        yield from _own(child, inside)
