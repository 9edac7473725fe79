"""From ``compute_logits`` to the method that gives tokens: the calls turned, the names fitting."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import libcst as cst

#: What a local name for logits is called once it holds tokens.
_TOKENS = "top_tokens"

Handed = Mapping[cst.Call, tuple[str, cst.BaseExpression]]


def rewritten(
    source: cst.FunctionDef,
    calls: Mapping[cst.Call, str],
    name: str,
    handed: Handed,
    dropped: Collection[cst.CSTNode],
) -> cst.FunctionDef:
    """A method with some of its calls turned.

    Args:
        source: the method.
        calls: the calls to turn: of the ``processor`` (``p(…)`` to ``p.name(…)``), or a ``hop``
            (``part.method(…)`` to ``part.name(…)``).
        name: the method that they call then.
        handed: calls in which an argument that is a name becomes another expression.
        dropped: statements that are left out.
    """
    result = source.visit(_Turn(calls, name, handed, dropped))
    assert isinstance(result, cst.FunctionDef)
    return result


class _Turn(cst.CSTTransformer):
    def __init__(
        self,
        calls: Mapping[cst.Call, str],
        name: str,
        handed: Handed,
        dropped: Collection[cst.CSTNode],
    ) -> None:
        super().__init__()
        self._calls = calls
        self._name = name
        self._handed = handed
        self._dropped = dropped

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:  # noqa: N802
        kind = self._calls.get(original_node)
        if kind == "processor":
            func = cst.Attribute(value=updated_node.func, attr=cst.Name(self._name))
            updated_node = updated_node.with_changes(func=func)
        elif kind == "hop":
            assert isinstance(updated_node.func, cst.Attribute)
            func = updated_node.func.with_changes(attr=cst.Name(self._name))
            updated_node = updated_node.with_changes(func=func)
        old, new = self._handed.get(original_node, ("", None))
        if new is not None:
            args = [
                arg.with_changes(value=new)
                if isinstance(arg.value, cst.Name) and arg.value.value == old
                else arg
                for arg in updated_node.args
            ]
            updated_node = updated_node.with_changes(args=args)
        return updated_node

    def leave_SimpleStatementLine(  # noqa: N802
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        return cst.RemoveFromParent() if original_node in self._dropped else updated_node


def as_block(function: cst.FunctionDef) -> cst.FunctionDef:
    """The function with its body on lines of its own."""
    if isinstance(function.body, cst.IndentedBlock):
        return function
    line = cst.SimpleStatementLine(body=[*function.body.body])
    return function.with_changes(body=cst.IndentedBlock(body=[line]))


def merge_return(function: cst.FunctionDef) -> cst.FunctionDef:
    """``x = f(…)`` and ``return x`` as ``return f(…)``; else ``x`` gets a name for tokens."""
    body = list(function.body.body)
    name = _returned(body[-1]) if body else None
    if name is None:
        return function
    value = _assigned(body[-2], name) if len(body) > 1 else None
    if value is not None and not _has_remark(body[-1]) and _count(function, name) == 2:
        line = body[-2]
        assert isinstance(line, cst.SimpleStatementLine)
        body[-2:] = [line.with_changes(body=[cst.Return(value=value)])]
        return function.with_changes(body=function.body.with_changes(body=body))
    if _is_local(function, name) and not _count(function, _TOKENS):
        result = function.visit(_Rename(name, _TOKENS))
        assert isinstance(result, cst.FunctionDef)
        return result
    return function


def _returned(stmt: cst.CSTNode) -> str | None:
    match stmt:
        case cst.SimpleStatementLine(body=[cst.Return(value=cst.Name(name))]):
            return str(name)
        case _:
            return None


def _assigned(stmt: cst.CSTNode, name: str) -> cst.BaseExpression | None:
    match stmt:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(bound))], value=value)]
        ) if bound == name:
            return value if isinstance(value, cst.BaseExpression) else None
        case _:
            return None


def _has_remark(stmt: cst.CSTNode) -> bool:
    assert isinstance(stmt, cst.SimpleStatementLine)
    after: cst.Comment | None = stmt.trailing_whitespace.comment
    return after is not None or any(line.comment for line in stmt.leading_lines)


def _is_local(function: cst.FunctionDef, name: str) -> bool:
    given = function.params
    params = [*given.posonly_params, *given.params, *given.kwonly_params]
    return all(param.name.value != name for param in params)


def _count(function: cst.FunctionDef, name: str) -> int:
    found: list[cst.Name] = []

    class Search(cst.CSTVisitor):
        def visit_Name(self, node: cst.Name) -> None:  # noqa: N802
            if node.value == name:
                found.append(node)

    function.visit(Search())
    return len(found)


class _Rename(cst.CSTTransformer):
    """Gives a local variable another name; attributes and keywords of that name stay."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self._old = old
        self._new = new

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:  # noqa: N802
        if original_node.value != self._old:
            return updated_node
        return updated_node.with_changes(value=self._new)

    def leave_Attribute(  # noqa: N802
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:  # noqa: N802
        return updated_node.with_changes(keyword=original_node.keyword)
