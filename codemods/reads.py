"""What a method does with the logits beyond giving them back, and what it keeps on ``self``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

_Parents = Mapping[ast.AST, ast.AST]
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def other_use(function: ast.FunctionDef, calls: Sequence[ast.Call]) -> ast.expr | ast.stmt | None:
    """The first use of the logits that would not be the same with token ids in their place.

    Returning them, asking whether they are None, and giving them another local name would be. The
    answer is read off the syntax alone, so that it may name a use that does no harm.

    Args:
        function: the method.
        calls: the calls in it that give the logits.
    """
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    pending: list[ast.expr] = list(calls)
    first = min(map(_end, calls), default=(0, 0))
    seen: set[str] = set()
    while pending:
        value = pending.pop(0)
        names = _goes_to(value, parents)
        if names is None:
            return value
        for name in sorted(names - seen):
            for node in ast.walk(function):
                if isinstance(node, ast.Global | ast.Nonlocal) and name in node.names:
                    return node
                if not isinstance(node, ast.Name) or node.id != name or not _reads(node, parents):
                    continue
                # Before the first call, the name holds something else.
                if _end(node) > first or _is_inner(node, function, parents):
                    pending.append(node)
        seen |= names
    return None


def keeps_on_self(function: ast.FunctionDef) -> bool:
    """Whether a method assigns to, or deletes, an attribute or an item of anything."""
    return any(
        isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
        for node in ast.walk(function)
    )


def _goes_to(value: ast.expr, parents: _Parents) -> frozenset[str] | None:
    """The local names that get a value; None where something else is done with it."""
    user = parents[value]
    match user:
        case ast.Return():
            return frozenset()
        case ast.IfExp(test=test) if test is not value:
            return _goes_to(user, parents)
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return frozenset()
        case ast.Assign(targets=targets):
            return _names(targets)
        case ast.AnnAssign(target=target):
            return _names([target])
        case ast.NamedExpr(target=target):
            further = _goes_to(user, parents)
            return None if further is None else further | {target.id}
        case _:
            return None


def _names(targets: Sequence[ast.expr]) -> frozenset[str] | None:
    names = frozenset(_each(targets))
    return names if all(isinstance(target, ast.Name) for target in targets) else None


def _each(targets: Sequence[ast.expr]) -> Iterator[str]:
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id


def _reads(node: ast.Name, parents: _Parents) -> bool:
    """Whether a name is read here, or changed in place, or taken away."""
    return not isinstance(node.ctx, ast.Store) or isinstance(parents[node], ast.AugAssign)


def _is_inner(node: ast.AST, function: ast.FunctionDef, parents: _Parents) -> bool:
    """Whether a node stands in a function inside the function, which may run later."""
    while node is not function:
        node = parents[node]
        if node is not function and isinstance(node, _SCOPES):
            return True
    return False


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
