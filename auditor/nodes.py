"""The nodes of a piece of syntax, walked once: every question about a function asks for them."""

from __future__ import annotations

import ast
from functools import lru_cache

#: Fields that hold a name, a number or a text in every kind of node that has them, or an operator
#: or the context of a name: a fifth of all nodes, and nobody asks for them but by their owner.
_PLAIN_FIELDS = frozenset(
    "id attr arg module asname level lineno type_comment kind conversion is_async simple "
    "ctx op ops".split()
)


class _NodeFields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields in which a kind of node may hold others; computed once for each kind."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        names = () if kind is ast.Constant else kind._fields
        fields = self[kind] = tuple(name for name in names if name not in _PLAIN_FIELDS)
        return fields


_NODE_FIELDS = _NodeFields()


def nodes_of(node: ast.AST) -> tuple[ast.AST, ...]:
    """``node`` and all in it but contexts and operators, in the order of :func:`ast.walk`."""
    return _walked(node)[0]


def depth_of(node: ast.AST) -> int:
    """How many nodes stand one inside the other, at most, with ``node`` as the first."""
    return _walked(node)[1]


@lru_cache(maxsize=8192)
def _walked(node: ast.AST) -> tuple[tuple[ast.AST, ...], int]:
    """The nodes layer by layer, and how many layers they are."""
    found = [node]
    depth, layer_end = 1, 1
    for at, one in enumerate(found):
        if at == layer_end:
            depth, layer_end = depth + 1, len(found)
        for name in _NODE_FIELDS[type(one)]:
            value = getattr(one, name, None)
            if value.__class__ is list:
                found.extend([inner for inner in value if isinstance(inner, ast.AST)])
            elif isinstance(value, ast.AST):
                found.append(value)
    return tuple(found), depth
