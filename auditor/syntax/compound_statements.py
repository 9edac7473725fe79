"""Compound statements (the Python reference's term): blocks, and what decides whether they run."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from auditor.facts import (
    Bind,
    Case,
    Const,
    Delete,
    Expr,
    Handler,
    If,
    Loop,
    Name,
    Sequence,
    Stmt,
    Switch,
    Try,
    Unknown,
    With,
)
from auditor.syntax.definite_assignment import may_bind
from auditor.syntax.names import pattern_names, target_names
from auditor.syntax.simple_statements import SimpleStatements


class CompoundStatements(SimpleStatements, ABC):
    """Turns compound statements into facts, and the blocks in them."""

    @abstractmethod
    def _statement(self, node: ast.stmt) -> Iterable[Stmt]:
        """The facts of any statement."""

    def block(self, body: Iterable[ast.stmt]) -> tuple[Stmt, ...]:
        """The facts of statements that run one after the other."""
        facts: list[Stmt] = []
        for node in body:
            facts.extend(self._statement(node))
        return tuple(facts)

    def _branch(self, body: Iterable[ast.stmt]) -> tuple[Stmt, ...]:
        """A block that may not run: what it binds is not certain afterwards."""
        sure, foreign = set(self._sure), set(self._foreign)
        facts = self.block(body)
        # A name that only a branch binds may hide what was certain before: forget both.
        changed = (self._sure ^ sure) | (self._foreign ^ foreign) | may_bind(facts)
        self._sure, self._foreign = sure - changed, foreign - changed
        return facts

    def _class_body(self, body: Iterable[ast.stmt]) -> tuple[Stmt, ...]:
        """A block with a namespace of its own: what it binds is not bound outside."""
        sure, foreign = set(self._sure), set(self._foreign)
        loops, self._loops = self._loops, 0
        facts = self.block(body)
        self._sure, self._foreign, self._loops = sure, foreign, loops
        return facts

    def _repeated(self, body: Iterable[ast.stmt]) -> tuple[Stmt, ...]:
        """The body of a loop."""
        self._loops += 1
        facts = self._branch(body)
        self._loops -= 1
        return facts

    def _if(self, node: ast.If, is_elif: bool = False) -> Iterator[Stmt]:
        test = self.expr(node.test)
        body = self._branch(node.body)
        inner = node.orelse
        if len(inner) == 1 and isinstance(inner[0], ast.If) and self._spells_elif(inner[0]):
            orelse = tuple(self._if(inner[0], is_elif=True))
        else:
            orelse = self._branch(inner)
        yield If(test, self._source.text(node.test), node.test.lineno, body, orelse, is_elif)

    def _spells_elif(self, node: ast.If) -> bool:
        return self._source.line(node.lineno)[node.col_offset :].startswith(b"elif")

    def _try(self, node: ast.Try | ast.TryStar) -> Iterator[Stmt]:
        yield Try(
            self._branch(node.body),
            tuple(map(self._handler, node.handlers)),
            self._branch(node.orelse),
            self._branch(node.finalbody),
            node.lineno,
        )
        # A handler unbinds its name.
        self._unbind(handler.name for handler in node.handlers if handler.name)

    def _try_star(self, node: ast.TryStar) -> Iterator[Stmt]:
        """``except*``: which part of a group each handler takes is not followed."""
        for stmt in self._try(node):
            assert isinstance(stmt, Try)
            yield replace(stmt, handlers=tuple(map(self._of_group, stmt.handlers)))

    def _of_group(self, handler: Handler) -> Handler:
        line, name, body = handler.line, handler.name, handler.body
        if name is not None:
            body = (Bind((name,), line), *body, Delete((Name(name),), line))
        assert handler.types is not None
        return Handler(Sequence("list", (handler.types, Unknown("except*"))), None, body, line)

    def _handler(self, node: ast.ExceptHandler) -> Handler:
        caught = self.expr(node.type) if node.type is not None else None
        if node.name is not None:
            self._unbind([node.name])
        return Handler(caught, node.name, self._branch(node.body), node.lineno)

    def _with(self, node: ast.With | ast.AsyncWith) -> Iterator[Stmt]:
        names = tuple(
            name
            for item in node.items
            if item.optional_vars is not None
            for name in target_names(item.optional_vars)
        )
        items = tuple(self.expr(item.context_expr) for item in node.items)
        # What it is bound to now has attributes that nobody vouches for.
        self._unbind(names)
        yield With(items, names, self._branch(node.body), node.lineno)

    def _for(self, node: ast.For | ast.AsyncFor) -> Iterator[Stmt]:
        text = f"for {self._source.text(node.target)} in {self._source.text(node.iter)}"
        target, iterated = self.expr(node.target), self.expr(node.iter)
        self._unbind(target_names(node.target))
        body, orelse = self._repeated(node.body), self._branch(node.orelse)
        yield Loop(target, iterated, text, body, orelse, node.lineno)

    def _while(self, node: ast.While) -> Iterator[Stmt]:
        text = f"while {self._source.text(node.test)}"
        body, orelse = self._repeated(node.body), self._branch(node.orelse)
        yield Loop(None, self.expr(node.test), text, body, orelse, node.lineno)

    def _match(self, node: ast.Match) -> Iterator[Stmt]:
        subject = self.expr(node.subject)
        text = f"match {self._source.text(node.subject)}"
        cases = tuple(self._case(case) for case in node.cases)
        bodies = tuple(self._branch(case.body) for case in node.cases)
        yield Switch(subject, text, cases, bodies, node.lineno)

    def _case(self, case: ast.match_case) -> Case:
        names = pattern_names(case.pattern)
        self._unbind(names)
        always = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
        guard = self.expr(case.guard) if case.guard is not None else None
        return Case(self._pattern_values(case.pattern), always, names, guard)

    def _pattern_values(self, pattern: ast.pattern) -> tuple[Expr, ...] | None:
        match pattern:
            case ast.MatchValue(value=value):
                return (self.expr(value),)
            case ast.MatchSingleton(value=value):
                return (Const(value),)
            case ast.MatchOr(patterns=patterns):
                parts = [self._pattern_values(one) for one in patterns]
                known = [part for part in parts if part is not None]
                return (
                    tuple(v for part in known for v in part) if len(known) == len(parts) else None
                )
            case _:
                return None
