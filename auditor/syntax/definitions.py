"""Definitions of functions and classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from auditor.facts import Assign, Bind, Class, Const, Expr, Func, Name, Stmt
from auditor.syntax.annotations import annotations_of, makes_calls
from auditor.syntax.compound_statements import CompoundStatements
from auditor.syntax.parameters import with_defaults


class Definitions(CompoundStatements):
    """Turns ``def`` and ``class`` into facts; the body of a function is not among them."""

    def _functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Stmt]:
        arguments = node.args
        read: list[ast.expr] = [*node.decorator_list, *arguments.defaults]
        read += [default for default in arguments.kw_defaults if default is not None]
        annotations = [] if self._postponed else annotations_of(node)
        for annotation in annotations:
            if makes_calls(annotation):
                yield from self._annotation(annotation)
        read += annotations
        yield Func(
            node.name,
            node.lineno,
            node.decorator_list[0].lineno if node.decorator_list else node.lineno,
            node.end_lineno or node.lineno,
            tuple(self.expr(decorator) for decorator in node.decorator_list),
            self._uses(read),
            self._late_defaults(arguments),
        )
        self._bind([node.name])

    def _late_defaults(self, arguments: ast.arguments) -> tuple[tuple[str, Expr], ...]:
        """Default values other than constants and what a foreign module has."""
        if not arguments.defaults and not arguments.kw_defaults:
            return ()  # as most functions have it
        return tuple(
            (parameter.arg, self.expr(default))
            for parameter, default in with_defaults(arguments)
            if not isinstance(default, ast.Constant | ast.Attribute | ast.UnaryOp)
        )

    def _classdef(self, node: ast.ClassDef) -> Iterator[Stmt]:
        body = self._class_body(node.body)
        plain = all(isinstance(fact, Func | Assign | Bind) and _is_plain(fact) for fact in body)
        yield Class(
            name=node.name,
            line=node.lineno,
            start=node.decorator_list[0].lineno if node.decorator_list else node.lineno,
            end=node.end_lineno or node.lineno,
            bases=tuple(self.expr(base) for base in node.bases),
            keywords=tuple((k.arg or "**", self.expr(k.value)) for k in node.keywords),
            decorators=tuple(self.expr(decorator) for decorator in node.decorator_list),
            body=body,
            uses=(),
            plain=plain,
        )
        self._bind([node.name])


def _is_plain(fact: Func | Assign | Bind) -> bool:
    """Whether running ``fact`` in a class body can only bind names."""
    if isinstance(fact, Func):
        return not fact.uses and all(isinstance(node, Name) for _, node in fact.defaults)
    if isinstance(fact, Assign):
        return isinstance(fact.value, Const) and all(isinstance(t, Name) for t in fact.targets)
    return True
