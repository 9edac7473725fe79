"""The nodes of a piece of syntax, walked once: every question about a function asks for them."""

from __future__ import annotations

import ast
from functools import lru_cache


def children(node: ast.AST) -> list[ast.AST]:
    """What is directly in ``node``, in the order of :func:`ast.iter_child_nodes`."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found.extend(inner for inner in value if isinstance(inner, ast.AST))
    return found


@lru_cache(maxsize=8192)
def nodes_of(node: ast.AST) -> tuple[ast.AST, ...]:
    """``node`` and all that is in it, in the order of :func:`ast.walk`."""
    found = [node]
    for one in found:
        found.extend(children(one))
    return tuple(found)
