"""Operators as they are spelled."""

from __future__ import annotations

import ast

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
#: All but ``@``, which facts do not know.
BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Mod: "%", ast.FloorDiv: "//", ast.BitOr: "|",
    ast.BitAnd: "&", ast.BitXor: "^", ast.Pow: "**", ast.Div: "/", ast.LShift: "<<",
    ast.RShift: ">>",
}  # fmt: skip
#: All but ``not``, which is no operator on values.
UNARY: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
