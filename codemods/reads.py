"""What a method does with the logits beyond giving them back, and what it keeps on ``self``.

A statement that only looks at what logits are (their shape or type), for a name that nothing else
needs or for the log, has nothing to look at where there are token ids: it is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

_Parents = Mapping[ast.AST, ast.AST]
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


#: What a tensor says of itself without its values (``torch.Tensor``).
_LOOKS = frozenset("shape dtype device ndim layout".split())
_LOOK_METHODS = frozenset("size dim ndimension numel stride element_size get_device".split())
_LOGGERS = frozenset({"logger", "logging", "log"})
_LEVELS = frozenset("debug debug_once info info_once warning warning_once".split())


def idle(function: ast.FunctionDef, calls: Sequence[ast.Call]) -> tuple[ast.stmt, ...]:
    """Statements behind the head that only look at what the logits are, and change nothing.

    Args:
        function: the method.
        calls: the calls in it that give the logits.
    """
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    first = min(map(_end, calls), default=(0, 0))
    logits = {name for call in calls for name in _goes_to(call, parents) or ()}
    if not logits or any(isinstance(n, ast.Global | ast.Nonlocal) for n in ast.walk(function)):
        return ()
    behind = [stmt for stmt in function.body if (stmt.lineno, stmt.col_offset) > first]
    found = [stmt for stmt in behind if _is_alone(stmt, function)]
    size = -1
    while size != len(found):
        size = len(found)
        bound = {name for stmt in found for name in _bound(stmt)}
        found = [
            stmt
            for stmt in found
            if _only_looks(stmt, logits, bound) and not _needed(stmt, found, function)
        ]
    return tuple(found)


def _is_alone(stmt: ast.stmt, function: ast.FunctionDef) -> bool:
    """Whether no other statement stands on its lines."""
    last = stmt.end_lineno or stmt.lineno
    return not any(
        other is not stmt and other.lineno <= last and stmt.lineno <= (other.end_lineno or 0)
        for other in function.body
    )


def _bound(stmt: ast.stmt) -> tuple[str, ...]:
    match stmt:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return (name,)
        case _:
            return ()


def _only_looks(stmt: ast.stmt, logits: Collection[str], bound: Collection[str]) -> bool:
    """Whether a statement looks at the logits, or at what others looked up, and does no more."""
    match stmt:
        case ast.Assign(targets=[ast.Name()], value=value):
            parts = [value]
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr=level), args=args, keywords=[]
            )
        ) if owner in _LOGGERS and level in _LEVELS:
            parts = args
        case ast.Expr(value=value):
            parts = [value]
        case _:
            return False
    read = {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
    return bool(read & ({*logits} | {*bound})) and all(_is_look(p, logits) for p in parts)


def _is_look(value: ast.expr, logits: Collection[str]) -> bool:
    """Whether an expression reads nothing of the logits but what they are, and calls nothing."""
    match value:
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in logits:
            return attr in _LOOKS
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=args, keywords=[]
        ) if name in logits:
            return attr in _LOOK_METHODS and all(_is_look(arg, logits) for arg in args)
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]):
            return name in logits
        case ast.Name(id=name):
            return name not in logits
        case ast.Constant():
            return True
        case ast.Attribute(value=inner):
            return _is_look(inner, logits)
        case ast.Subscript(value=inner, slice=index):
            return _is_look(inner, logits) and _is_look(index, logits)
        case ast.UnaryOp(operand=inner):
            return _is_look(inner, logits)
        case ast.BinOp(left=left, right=right):
            return _is_look(left, logits) and _is_look(right, logits)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(_is_look(part, logits) for part in parts)
        case _:
            return False


def _needed(stmt: ast.stmt, others: Sequence[ast.stmt], function: ast.FunctionDef) -> bool:
    """Whether a name that a statement binds is used by one that stays."""
    names = _bound(stmt)
    inside = {node for other in others for node in ast.walk(other)}
    return any(
        isinstance(node, ast.Name) and node.id in names and node not in inside
        for node in ast.walk(function)
    )


def other_use(
    function: ast.FunctionDef, calls: Sequence[ast.Call], dropped: Sequence[ast.stmt] = ()
) -> ast.expr | ast.stmt | None:
    """The first use of the logits that would not be the same with token ids in their place.

    Returning them, asking whether they are None, and giving them another local name would be. The
    answer is read off the syntax alone, so that it may name a use that does no harm.

    Args:
        function: the method.
        calls: the calls in it that give the logits.
        dropped: statements that are left out.
    """
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    left_out = {node for stmt in dropped for node in ast.walk(stmt)}
    pending: list[ast.expr] = list(calls)
    first = min(map(_end, calls), default=(0, 0))
    seen: set[str] = set()
    while pending:
        value = pending.pop(0)
        names = _goes_to(value, parents)
        if names is None:
            return _statement(value, parents)
        for name in sorted(names - seen):
            for node in ast.walk(function):
                if isinstance(node, ast.Global | ast.Nonlocal) and name in node.names:
                    return node
                if not isinstance(node, ast.Name) or node.id != name or not _reads(node, parents):
                    continue
                if node in left_out:
                    continue
                # Before the first call, the name holds something else.
                if _end(node) > first or _is_inner(node, function, parents):
                    pending.append(node)
        seen |= names
    return None


def _statement(value: ast.expr, parents: _Parents) -> ast.expr | ast.stmt:
    """The statement of a use, or its test where it holds other statements."""
    node: ast.AST = value
    while not isinstance(node, ast.stmt):
        parent = parents[node]
        if isinstance(parent, ast.If | ast.While | ast.For | ast.With | ast.Match):
            break
        node = parent
    assert isinstance(node, ast.expr | ast.stmt)
    return node


#: Methods and functions of PyTorch that give a tensor of its own, which nothing else sees yet.
_MAKERS = ("new_*", "clone", "full", "full_like", "zeros", "zeros_like", "ones", "ones_like",
           "empty", "empty_like")  # fmt: skip


def keeps_on_self(function: ast.FunctionDef) -> bool:
    """Whether a method assigns to, or deletes, an attribute or an item that outlives the call.

    An item of a tensor that the method has made itself does not.
    """
    own = _made_here(function)
    return any(
        not isinstance(node.ctx, ast.Load) and not _is_item_of(node, own)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute | ast.Subscript)
    )


def _is_item_of(node: ast.Attribute | ast.Subscript, names: Collection[str]) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in names
    )


def _made_here(function: ast.FunctionDef) -> frozenset[str]:
    """Local names that are only ever bound to a new tensor, by one assignment each."""
    made: dict[str, list[bool]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            made.setdefault(node.id, []).append(False)
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=called)):
                made.setdefault(name, []).append(_is_maker(called))
    parameters = {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
    # Each binding is counted by its name, and once more where it is a plain assignment.
    return frozenset(
        name
        for name, found in made.items()
        if sorted(found) == [False, True] and name not in parameters
    )


def _is_maker(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return any(fnmatchcase(name, pattern) for pattern in _MAKERS)


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
