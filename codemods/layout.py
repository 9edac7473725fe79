"""Lines as vLLM's formatter lays them out: on one line where it fits, else broken at the brackets.

Only what a codemod generates is laid out here; nothing else of a file is touched. A display with a
trailing comma stays one item a line, as ruff and black keep it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import libcst as cst

_Node = TypeVar("_Node", bound=cst.CSTNode)

_EMPTY = cst.SimpleWhitespace("")
_SPACE = cst.SimpleWhitespace(" ")


def code(node: cst.CSTNode) -> str:
    """The source of a node, without what stands around it."""
    return cst.Module(body=[]).code_for_node(node)


def has_comment(node: cst.CSTNode) -> bool:
    """Whether a comment stands in a node."""
    found: list[bool] = []

    class Search(cst.CSTVisitor):
        def visit_Comment(self, node: cst.Comment) -> None:  # noqa: N802
            found.append(True)

    node.visit(Search())
    return bool(found)


def flat(node: _Node) -> _Node:
    """The node on one line: line breaks inside its brackets taken out."""
    result = node.visit(_Flatten())
    assert isinstance(result, cst.CSTNode)
    return result


class _Flatten(cst.CSTTransformer):
    """Takes out breaks, and commas that stand only for them."""

    def leave_ParenthesizedWhitespace(  # noqa: N802
        self, original_node: cst.ParenthesizedWhitespace, updated_node: cst.ParenthesizedWhitespace
    ) -> cst.BaseParenthesizableWhitespace:
        return _EMPTY

    def leave_Comma(  # noqa: N802
        self, original_node: cst.Comma, updated_node: cst.Comma
    ) -> cst.Comma:
        return updated_node.with_changes(whitespace_before=_EMPTY, whitespace_after=_SPACE)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:  # noqa: N802
        return updated_node.with_changes(
            whitespace_before_args=_EMPTY, args=_flat_items(updated_node.args)
        )

    def leave_Parameters(  # noqa: N802
        self, original_node: cst.Parameters, updated_node: cst.Parameters
    ) -> cst.Parameters:
        return updated_node


def _flat_items(args: Sequence[cst.Arg]) -> list[cst.Arg]:
    last = len(args) - 1
    return [
        arg.with_changes(
            whitespace_after_arg=_EMPTY,
            comma=cst.Comma(whitespace_after=_SPACE) if i < last else cst.MaybeSentinel.DEFAULT,
        )
        for i, arg in enumerate(args)
    ]


def _break(indent: str) -> cst.ParenthesizedWhitespace:
    return cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(indent))


def is_exploded(args: Sequence[cst.Arg]) -> bool:
    """Whether a call ends in a trailing comma, which keeps it one item a line."""
    return bool(args) and isinstance(args[-1].comma, cst.Comma)


def broken(args: Sequence[cst.Arg], each: bool, step: str) -> tuple[cst.ParenthesizedWhitespace,
                                                                   list[cst.Arg]]:  # fmt: skip
    """Arguments below their bracket: all on one line, or each on its own with a trailing comma."""
    items = _flat_items(args)
    if each:
        inner = cst.Comma(whitespace_after=_break(step))
        items = [
            *(arg.with_changes(comma=inner) for arg in items[:-1]),
            items[-1].with_changes(comma=cst.Comma(whitespace_after=_break(""))),
        ]
    else:
        items[-1] = items[-1].with_changes(whitespace_after_arg=_break(""))
    return _break(step), items


def fit(
    line: cst.SimpleStatementLine, indent: str, step: str, width: int
) -> cst.SimpleStatementLine:
    """A statement of one call (``return f(…)``, ``x = f(…)``), laid out anew."""
    small = line.body[0]
    call = getattr(small, "value", None)
    if len(line.body) != 1 or not isinstance(call, cst.Call) or has_comment(call):
        return line
    if is_exploded(call.args):
        return line
    one = small.with_changes(value=flat(call))
    if len(indent) + len(code(one)) <= width or not call.args:
        return line.with_changes(body=[one])
    inside = ", ".join(code(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT))
                       for arg in _flat_items([flat(arg) for arg in call.args]))  # fmt: skip
    each = len(indent) + len(step) + len(inside) > width
    before, args = broken([flat(arg) for arg in call.args], each, step)
    return line.with_changes(
        body=[one.with_changes(value=call.with_changes(
            func=flat(call.func), whitespace_before_args=before, args=args))]
    )  # fmt: skip


class Fit:
    """Lays out the statements that a rewrite has marked as changed."""

    def __init__(self, indent: str, step: str, width: int) -> None:
        self._indent = indent
        self._step = step
        self._width = width

    def of(self, node: cst.CSTNode) -> cst.CSTNode:
        """The statement as the formatter lays it out; one that is not marked is as it was."""
        if isinstance(node, cst.SimpleStatementLine):
            return fit(node, self._indent, self._step, self._width) if _is_turned(node) else node
        if isinstance(node, cst.If):
            inner = Fit(self._indent + self._step, self._step, self._width)
            orelse = node.orelse
            body = node.body.with_changes(body=[inner.of(one) for one in node.body.body])
            if isinstance(orelse, cst.Else):
                block = orelse.body
                orelse = orelse.with_changes(
                    body=block.with_changes(body=[inner.of(one) for one in block.body])
                )
            elif isinstance(orelse, cst.If):
                changed = self.of(orelse)
                assert isinstance(changed, cst.If)
                orelse = changed
            return node.with_changes(body=body, orelse=orelse)
        return node


def _is_turned(line: cst.SimpleStatementLine) -> bool:
    value = getattr(line.body[0], "value", None) if len(line.body) == 1 else None
    return isinstance(value, cst.Call)


def with_argument(call: cst.Call, keyword: str, value: str, line: str, width: int) -> cst.Call:
    """A call with one more keyword argument; ``line`` is the line of source that it starts in."""
    last = cst.Arg(
        value=cst.parse_expression(value),
        keyword=cst.Name(keyword),
        equal=cst.AssignEqual(whitespace_before=_EMPTY, whitespace_after=_EMPTY),
    )
    if is_exploded(call.args):
        before = call.args[-1]
        between = call.args[-2].comma if len(call.args) > 1 else before.comma
        own = last.with_changes(comma=before.comma)
        return call.with_changes(args=[*call.args[:-1], before.with_changes(comma=between), own])
    longer = call.with_changes(args=_flat_items([*call.args, last]))
    on_one_line = not isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace)
    if on_one_line and len(line) + len(f", {keyword}={value}") <= width:
        return longer
    step = "    "
    indent = len(line) - len(line.lstrip())
    inside = "".join(code(arg) for arg in longer.args)
    before_args, args = broken(longer.args, indent + len(step) + len(inside) > width, step)
    return longer.with_changes(whitespace_before_args=before_args, args=args)


def fit_signature(
    function: cst.FunctionDef, extra: Sequence[cst.Param], indent: str, step: str, width: int
) -> cst.FunctionDef:
    """A ``def`` with ``extra`` after its positional parameters.

    It goes on one line where it fits and no trailing comma keeps it broken; else its parameters go
    below the bracket, on one line or each on its own. Comments among them keep it as it is.
    """
    every = _parameters(function)
    if has_comment(function.params) or not (every or extra):
        return function
    broken_now = isinstance(function.whitespace_before_params, cst.ParenthesizedWhitespace)
    exploded = isinstance(getattr(_last(function.params), "comma", None), cst.Comma)
    if exploded and not extra:
        return function
    items = _signature_items(function.params, extra)
    one = _with_signature(function, ", ".join(items))
    if not exploded and len(indent) + len(_head(one)) <= width:
        return one
    if broken_now and not extra:
        return function
    inside = ", ".join(items)
    if not exploded and len(indent) + len(step) + len(inside) <= width:
        return _with_signature(function, f"\n{step}{inside}\n")
    return _with_signature(function, "".join(f"\n{step}{item}," for item in items) + "\n")


def _last(params: cst.Parameters) -> cst.CSTNode | None:
    """What stands last between the brackets."""
    kinds = (
        [params.star_kwarg] if params.star_kwarg is not None else [],
        params.kwonly_params,
        [params.star_arg] if isinstance(params.star_arg, cst.Param) else [],
        params.params,
        [params.posonly_ind] if isinstance(params.posonly_ind, cst.ParamSlash) else [],
    )
    return next((kind[-1] for kind in kinds if kind), None)


def _signature_items(params: cst.Parameters, extra: Sequence[cst.Param]) -> list[str]:
    """The parameters as text, with the marks between their kinds."""

    def text(param: cst.Param, star: str = "") -> str:
        alone = param.with_changes(star=star, comma=cst.MaybeSentinel.DEFAULT)
        return code(flat(alone.with_changes(whitespace_after_param=_EMPTY)))

    items = [text(param) for param in params.posonly_params]
    items += ["/"] if items else []
    items += [text(param) for param in (*params.params, *extra)]
    if isinstance(params.star_arg, cst.Param):
        items.append(text(params.star_arg, "*"))
    elif params.kwonly_params:
        items.append("*")
    items += [text(param) for param in params.kwonly_params]
    if params.star_kwarg is not None:
        items.append(text(params.star_kwarg, "**"))
    return items


def _with_signature(function: cst.FunctionDef, inside: str) -> cst.FunctionDef:
    parsed = cst.parse_statement(f"def f({inside}): pass")
    assert isinstance(parsed, cst.FunctionDef)
    return function.with_changes(
        params=parsed.params, whitespace_before_params=parsed.whitespace_before_params
    )


def _parameters(function: cst.FunctionDef) -> list[cst.Param]:
    """Every named parameter, in order."""
    params = function.params
    starred = [params.star_arg] if isinstance(params.star_arg, cst.Param) else []
    last = [params.star_kwarg] if params.star_kwarg is not None else []
    return [*params.posonly_params, *params.params, *starred, *params.kwonly_params, *last]


def _head(function: cst.FunctionDef) -> str:
    """The line of a ``def`` alone."""
    alone = function.with_changes(
        decorators=[], leading_lines=[], body=cst.SimpleStatementSuite(body=[cst.Pass()])
    )
    return code(alone).rstrip("\n").removesuffix(" pass")


def fit_bases(cls: cst.ClassDef, indent: str, step: str, width: int) -> cst.ClassDef:
    """The bases of a class on one line, or below it."""
    args = [*cls.bases, *cls.keywords]
    if is_exploded(args) or any(map(has_comment, args)):
        return cls
    count = len(cls.bases)

    def with_args(before: cst.BaseParenthesizableWhitespace, items: list[cst.Arg]) -> cst.ClassDef:
        result = cls.with_changes(bases=items[:count], keywords=items[count:])
        if isinstance(before, cst.ParenthesizedWhitespace):
            return result.with_changes(
                lpar=cst.LeftParen(whitespace_after=before), rpar=cst.RightParen()
            )
        return result.with_changes(lpar=cst.LeftParen(), rpar=cst.RightParen())

    items = _flat_items([flat(arg) for arg in args])
    inside = "".join(code(arg) for arg in items)
    if len(indent) + len(f"class {cls.name.value}({inside}):") <= width:
        return with_args(_EMPTY, items)
    return with_args(*broken(items, len(indent) + len(step) + len(inside) > width, step))
