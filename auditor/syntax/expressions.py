"""Expressions to facts; one that has none of its own is unknown, with the names it reads."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from auditor.facts import (
    Attr,
    BinOp,
    BoolOp,
    Call,
    Compare,
    Comprehension,
    Const,
    Expr,
    FString,
    Generator,
    IfExp,
    Lambda,
    Mapping,
    Name,
    Not,
    Sequence,
    Slice,
    Subscript,
    Unary,
    Unknown,
    Walrus,
)
from auditor.syntax.definite_assignment import DefiniteAssignment
from auditor.syntax.operators import BINARY, COMPARISONS, UNARY
from auditor.syntax.parameters import is_simple
from auditor.syntax.text import SourceText

_COMPREHENSIONS: dict[type[ast.expr], str] = {
    ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "generator",
}  # fmt: skip
_DISPLAYS: dict[type[ast.expr], str] = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}
#: The integers that facts can be kept with (those of MessagePack).
_LEAST, _MOST = -(2**63), 2**64 - 1
#: What may stand behind a value in an f-string, as ``ast`` has it: nothing, or a conversion.
_NO_CONVERSION = -1
_CONVERSIONS = {ord("r"): "repr", ord("s"): "str", ord("a"): "ascii"}


class Expressions(DefiniteAssignment):
    """Turns expressions into facts.

    Args:
        source: the text of the file that they stand in.
        prune: leave out names that surely exist; otherwise every read counts.
    """

    def __init__(self, source: SourceText, prune: bool) -> None:
        super().__init__(prune)
        self._source = source

    def expr(self, node: ast.expr) -> Expr:
        """The facts of an expression; what has none of its own is unknown."""
        method = _EXPRESSIONS.get(type(node))
        return method(self, node) if method is not None else self._unknown(node)

    def _exprs(self, nodes: Iterable[ast.expr]) -> tuple[Expr, ...]:
        return tuple([self.expr(node) for node in nodes])

    def _expr_or_none(self, node: ast.expr | None) -> Expr | None:
        return self.expr(node) if node is not None else None

    def _constant(self, node: ast.Constant) -> Expr:
        match node.value:
            case str() as text if text.isascii() or _is_encodable(text):
                return Const(text)
            case int() as number if _LEAST <= number <= _MOST:
                return Const(number)
            case (None | float()) as value:
                return Const(value)
            case _:
                return self._unknown(node)

    def _name(self, node: ast.Name) -> Expr:
        return Name(node.id)

    def _attribute(self, node: ast.Attribute) -> Expr:
        return Attr(self.expr(node.value), node.attr)

    def _bool_op(self, node: ast.BoolOp) -> Expr:
        return BoolOp("and" if isinstance(node.op, ast.And) else "or", self._exprs(node.values))

    def _unary_op(self, node: ast.UnaryOp) -> Expr:
        op, operand = node.op, node.operand
        if isinstance(op, ast.Not):
            return Not(self.expr(operand))
        if isinstance(op, ast.USub) and isinstance(operand, ast.Constant):
            number = operand.value
            if isinstance(number, float) or (isinstance(number, int) and number <= -_LEAST):
                return Const(-number)
        return Unary(UNARY[type(op)], self.expr(operand))

    def _comparison(self, node: ast.Compare) -> Expr:
        spelled = tuple(COMPARISONS[type(op)] for op in node.ops)
        return Compare(self.expr(node.left), spelled, self._exprs(node.comparators))

    def _bin_op(self, node: ast.BinOp) -> Expr:
        if type(node.op) not in BINARY:
            return self._unknown(node)
        return BinOp(BINARY[type(node.op)], self.expr(node.left), self.expr(node.right))

    def _display(self, node: ast.Tuple | ast.List | ast.Set) -> Expr:
        starred = any(isinstance(item, ast.Starred) for item in node.elts)
        if starred and not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return self._unknown(node)
        return Sequence(_DISPLAYS[type(node)], self._exprs(node.elts))

    def _dict(self, node: ast.Dict) -> Expr:
        return Mapping(tuple(map(self._expr_or_none, node.keys)), self._exprs(node.values))

    def _starred(self, node: ast.Starred) -> Expr:
        return Unary("*", self.expr(node.value))

    def _subscript(self, node: ast.Subscript) -> Expr:
        return Subscript(self.expr(node.value), self.expr(node.slice))

    def _slice(self, node: ast.Slice) -> Expr:
        return Slice(*map(self._expr_or_none, (node.lower, node.upper, node.step)))

    def _collected(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Expr:
        return self._comprehension(node, _COMPREHENSIONS[type(node)], node.elt, None)

    def _dict_comp(self, node: ast.DictComp) -> Expr:
        return self._comprehension(node, "dict", node.key, node.value)

    def _comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        kind: str,
        element: ast.expr,
        value: ast.expr | None,
    ) -> Expr:
        if any(one.is_async for one in node.generators):
            return self._unknown(node)
        generators = tuple(
            Generator(self.expr(one.target), self.expr(one.iter), tuple(map(self.expr, one.ifs)))
            for one in node.generators
        )
        made = self.expr(value) if value is not None else None
        return Comprehension(kind, self.expr(element), made, generators, self._source.text(node))

    def _if_exp(self, node: ast.IfExp) -> Expr:
        return IfExp(self.expr(node.test), self.expr(node.body), self.expr(node.orelse))

    def _lambda(self, node: ast.Lambda) -> Expr:
        if not is_simple(node.args):
            return self._unknown(node)
        return Lambda(tuple(argument.arg for argument in node.args.args), self.expr(node.body))

    def _named_expr(self, node: ast.NamedExpr) -> Expr:
        return Walrus(node.target.id, self.expr(node.value))

    def _call(self, node: ast.Call) -> Expr:
        return Call(
            self.expr(node.func),
            tuple(
                self.expr(argument.value if isinstance(argument, ast.Starred) else argument)
                for argument in node.args
            ),
            tuple((k.arg or "**", self.expr(k.value)) for k in node.keywords),
            self._source.text(node),
            tuple(i for i, argument in enumerate(node.args) if isinstance(argument, ast.Starred)),
        )

    def _fstring(self, node: ast.JoinedStr) -> Expr:
        parts: list[Expr] = []
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                inner = self.expr(value.value)
                if value.conversion != _NO_CONVERSION:
                    name = _CONVERSIONS[value.conversion]
                    inner = Call(Name(name), (inner,), (), f"{name}(…)")
                if value.format_spec is not None:
                    inner = Call(Name("format"), (inner, self.expr(value.format_spec)), (), "…")
                parts.append(inner)
            else:
                parts.append(self.expr(value))
        return FString(tuple(parts))

    def _unknown(self, node: ast.AST) -> Unknown:
        return Unknown(self._source.text(node), self._uses([node]))


def _is_encodable(text: str) -> bool:
    """Whether text can be kept: a lone surrogate has no encoding in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_EXPRESSIONS: dict[type[ast.expr], Callable[..., Expr]] = {
    ast.Constant: Expressions._constant, ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute, ast.Call: Expressions._call,
    ast.BoolOp: Expressions._bool_op, ast.UnaryOp: Expressions._unary_op,
    ast.Compare: Expressions._comparison, ast.BinOp: Expressions._bin_op,
    ast.Tuple: Expressions._display, ast.List: Expressions._display,
    ast.Set: Expressions._display, ast.Dict: Expressions._dict, ast.Starred: Expressions._starred,
    ast.Subscript: Expressions._subscript, ast.Slice: Expressions._slice,
    ast.ListComp: Expressions._collected, ast.SetComp: Expressions._collected,
    ast.GeneratorExp: Expressions._collected, ast.DictComp: Expressions._dict_comp,
    ast.IfExp: Expressions._if_exp, ast.JoinedStr: Expressions._fstring,
    ast.Lambda: Expressions._lambda, ast.NamedExpr: Expressions._named_expr,
}  # fmt: skip
