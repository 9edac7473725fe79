"""Definitions of functions and classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from auditor.facts import Assign, Bind, Class, Const, Expr, Func, Name, Stmt
from auditor.syntax.annotations import annotations_of, makes_calls
from auditor.syntax.compound_statements import CompoundStatements
from auditor.syntax.names import names_read
from auditor.syntax.outline import Definition
from auditor.syntax.parameters import with_defaults
from auditor.syntax.text import SourceText


class Definitions(CompoundStatements):
    """Turns ``def`` and ``class`` into facts; the body of a function is not among them.

    Args:
        source: the text of the file that they stand in.
        root: the top-level package of the file; names imported from elsewhere are foreign.
        postponed: whether annotations are not evaluated (PEP 563).
        prune: leave out names that surely exist; otherwise every read counts.
        outlined: the functions without their heads, by the line of what is left of them.
    """

    def __init__(
        self,
        source: SourceText,
        root: str,
        postponed: bool,
        prune: bool = True,
        outlined: Mapping[int, Definition] = MappingProxyType({}),
    ) -> None:
        super().__init__(source, root, postponed, prune)
        self._outlined = outlined

    def _pass(self, node: ast.Pass) -> Iterator[Stmt]:
        outlined = self._outlined.get(node.lineno)
        if outlined is not None:
            assert node.end_lineno is not None
            yield self._outlined_function(outlined, [], outlined.line, node.end_lineno)

    def _functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Stmt]:
        start = node.decorator_list[0].lineno if node.decorator_list else node.lineno
        end = node.end_lineno or node.lineno
        outlined = self._outlined.get(node.lineno)
        if outlined is not None:
            yield self._outlined_function(outlined, node.decorator_list, start, end)
            return
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
            start,
            end,
            self._exprs(node.decorator_list),
            self._uses(read),
            self._late_defaults(arguments),
        )
        self._bind([node.name])

    def _outlined_function(
        self, outlined: Definition, decorators: list[ast.expr], start: int, end: int
    ) -> Func:
        """A function whose head was not parsed."""
        line, name, head = outlined
        read = [name for decorator in decorators for name in names_read(decorator, [])]
        read += head.defaults
        if not self._postponed:
            read += head.annotations
        uses = self._unsure(read)
        function = Func(name, line, start, end, self._exprs(decorators), uses, head.late)
        self._bind([name])
        return function

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
