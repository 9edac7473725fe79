"""Annotations: where they stand, whether they are evaluated, and whether that calls something."""

from __future__ import annotations

import ast


def postpones_annotations(tree: ast.Module) -> bool:
    """Whether annotations are not evaluated (``from __future__ import annotations``, PEP 563)."""
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in tree.body
    )


def annotations_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    """The annotations of a function, in the order in which ``def`` evaluates them."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg]
    every += [*arguments.kwonlyargs, arguments.kwarg]
    found = [one.annotation for one in every if one is not None and one.annotation is not None]
    return found if node.returns is None else [*found, node.returns]


def makes_calls(node: ast.expr) -> bool:
    """Whether evaluating an annotation calls something; most are a name or a few."""
    match node:
        case ast.Name() | ast.Constant():
            return False
        case ast.Attribute(value=inner):
            return makes_calls(inner)
        case ast.Subscript(value=one, slice=other) | ast.BinOp(left=one, right=other):
            return makes_calls(one) or makes_calls(other)
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return any(map(makes_calls, elts))
        case _:
            return any(isinstance(part, ast.Call) for part in ast.walk(node))
