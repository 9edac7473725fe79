"""Any statement to its facts."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator

from auditor.facts import Do, Stmt
from auditor.syntax.definitions import Definitions


class Statements(Definitions):
    """Turns statements into facts: the whole of what this package's classes are parts of."""

    def _statement(self, node: ast.stmt) -> Iterable[Stmt]:
        method = _STATEMENTS.get(type(node))
        return method(self, node) if method is not None else self._unknown_statement(node)

    def _unknown_statement(self, node: ast.stmt) -> Iterator[Stmt]:
        yield Do(self._unknown(node), node.lineno)


_STATEMENTS: dict[type[ast.stmt], Callable[..., Iterable[Stmt]]] = {
    ast.Import: Statements._import, ast.ImportFrom: Statements._importfrom,
    ast.FunctionDef: Statements._functiondef, ast.AsyncFunctionDef: Statements._functiondef,
    ast.ClassDef: Statements._classdef, ast.Assign: Statements._assign,
    ast.AnnAssign: Statements._annassign, ast.AugAssign: Statements._augassign,
    ast.Delete: Statements._delete, ast.Expr: Statements._expr, ast.If: Statements._if,
    ast.Try: Statements._try, ast.TryStar: Statements._try_star, ast.With: Statements._with,
    ast.AsyncWith: Statements._with, ast.For: Statements._for, ast.AsyncFor: Statements._for,
    ast.While: Statements._while, ast.Match: Statements._match, ast.Raise: Statements._raise,
    ast.Assert: Statements._assert, ast.Return: Statements._return, ast.Pass: Statements._pass,
    ast.Break: Statements._break, ast.Continue: Statements._continue,
    ast.Global: Statements._global, ast.Nonlocal: Statements._nonlocal,
}  # fmt: skip
if sys.version_info >= (3, 12):
    _STATEMENTS[ast.TypeAlias] = Statements._typealias
