"""The names that a piece of syntax reads and binds."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def target_names(target: ast.expr) -> Iterator[str]:
    """The names that an assignment to ``target`` binds."""
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            for item in elts:
                yield from target_names(item)
        case ast.Starred(value=value):
            yield from target_names(value)
        case _:
            return


def pattern_names(pattern: ast.pattern) -> tuple[str, ...]:
    """The names that a pattern of ``match`` captures."""
    return tuple(
        name
        for part in ast.walk(pattern)
        if (name := getattr(part, "name", None) or getattr(part, "rest", None)) is not None
    )


def names_read(node: ast.AST, found: list[str]) -> list[str]:
    """Add to ``found`` the dotted names that evaluating ``node`` reads at once.

    Bodies of lambdas, and all but the first iterable of a comprehension, run later or in a
    scope of their own, and what they read is not listed.
    """
    kind = type(node)
    if kind is ast.Name:
        found.append(node.id)  # type: ignore[attr-defined]
    elif kind is ast.Attribute:
        parts: list[str] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            found.append(".".join([inner.id, *reversed(parts)]))
        else:
            names_read(inner, found)
    elif isinstance(node, ast.Subscript):
        names_read(node.value, found)
        names_read(node.slice, found)
    elif isinstance(node, ast.BinOp):
        names_read(node.left, found)
        names_read(node.right, found)
    elif isinstance(node, ast.Lambda):
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            names_read(default, found)
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        names_read(node.generators[0].iter, found)
    elif kind is not ast.Constant:
        for child in ast.iter_child_nodes(node):
            names_read(child, found)
    return found
