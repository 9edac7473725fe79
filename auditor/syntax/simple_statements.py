"""Simple statements (the Python reference's term: those that hold no other statements)."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from auditor.facts import (
    Assert,
    Assign,
    AugAssign,
    Bind,
    Delete,
    Do,
    Global,
    Import,
    ImportFrom,
    Jump,
    Raise,
    Return,
    Stmt,
    Unparsed,
    Uses,
)
from auditor.syntax.annotations import makes_calls
from auditor.syntax.expressions import Expressions
from auditor.syntax.names import target_names
from auditor.syntax.operators import BINARY
from auditor.syntax.text import SourceText


class SimpleStatements(Expressions):
    """Turns simple statements into facts.

    Args:
        source: the text of the file that they stand in.
        root: the top-level package of the file; names imported from elsewhere are foreign.
        postponed: whether annotations are not evaluated (PEP 563).
        prune: leave out names that surely exist; otherwise every read counts.
    """

    def __init__(self, source: SourceText, root: str, postponed: bool, prune: bool = True) -> None:
        super().__init__(source, prune)
        self._root = root
        self._postponed = postponed
        self._loops = 0
        #: Why the statements so far are not those of a module: a ``return``, or a ``break`` or
        #: ``continue`` outside a loop.
        self.misplaced: Unparsed | None = None

    def _import(self, node: ast.Import) -> Iterator[Stmt]:
        for alias in node.names:
            yield Import(alias.name, alias.asname, node.lineno)
            head = alias.name.partition(".")[0]
            self._bind([alias.asname or head], foreign=head != self._root)

    def _importfrom(self, node: ast.ImportFrom) -> Iterator[Stmt]:
        module = node.module or ""
        if module == "__future__" and not node.level:
            return
        names = tuple((alias.name, alias.asname or alias.name) for alias in node.names)
        yield ImportFrom(module, node.level, names, node.lineno)
        foreign = not node.level and module.partition(".")[0] != self._root
        self._bind((bound for _, bound in names if bound != "*"), foreign)

    def _assign(self, node: ast.Assign) -> Iterator[Stmt]:
        yield Assign(
            tuple(self.expr(target) for target in node.targets),
            self.expr(node.value),
            node.lineno,
        )
        self._bind(name for target in node.targets for name in target_names(target))

    def _annassign(self, node: ast.AnnAssign) -> Iterator[Stmt]:
        if node.value is not None:
            yield Assign((self.expr(node.target),), self.expr(node.value), node.lineno)
        if not self._postponed:
            # The value is stored before the annotation is evaluated.
            yield from self._annotation(node.annotation)
        if node.value is not None:
            self._bind(target_names(node.target))

    def _annotation(self, node: ast.expr) -> Iterator[Stmt]:
        """An annotation that is evaluated: for its calls, else for the names in it alone."""
        if makes_calls(node):
            yield Do(self.expr(node), node.lineno)
        elif uses := self._uses([node]):
            yield Uses(uses, node.lineno)

    def _augassign(self, node: ast.AugAssign) -> Iterator[Stmt]:
        op = BINARY.get(type(node.op), "other")
        yield AugAssign(self.expr(node.target), op, self.expr(node.value), node.lineno)

    def _delete(self, node: ast.Delete) -> Iterator[Stmt]:
        yield Delete(tuple(self.expr(target) for target in node.targets), node.lineno)
        self._unbind(name for target in node.targets for name in target_names(target))

    def _expr(self, node: ast.Expr) -> Iterator[Stmt]:
        if not isinstance(node.value, ast.Constant):
            yield Do(self.expr(node.value), node.lineno)

    def _raise(self, node: ast.Raise) -> Iterator[Stmt]:
        yield Raise(self.expr(node.exc) if node.exc is not None else None, node.lineno)

    def _assert(self, node: ast.Assert) -> Iterator[Stmt]:
        message = self.expr(node.msg) if node.msg is not None else None
        yield Assert(self.expr(node.test), self._source.text(node.test), node.lineno, message)

    def _return(self, node: ast.Return) -> Iterator[Stmt]:
        self._misplace("'return' outside function", node)
        yield Return(self.expr(node.value) if node.value is not None else None, node.lineno)

    def _pass(self, node: ast.Pass) -> Iterable[Stmt]:
        return ()

    def _break(self, node: ast.Break) -> Iterator[Stmt]:
        if not self._loops:
            self._misplace("'break' outside loop", node)
        yield Jump("break", node.lineno)

    def _continue(self, node: ast.Continue) -> Iterator[Stmt]:
        if not self._loops:
            self._misplace("'continue' not properly in loop", node)
        yield Jump("continue", node.lineno)

    def _misplace(self, why: str, node: ast.stmt) -> None:
        """The parser takes such a statement; the compiler, and so an import, does not."""
        if self.misplaced is None:
            self.misplaced = Unparsed(f"does not compile: {why}", node.lineno)

    def _global(self, node: ast.Global) -> Iterator[Stmt]:
        yield Global(tuple(node.names), node.lineno)

    def _nonlocal(self, node: ast.Nonlocal) -> Iterator[Stmt]:
        yield Global(tuple(node.names), node.lineno, nonlocal_=True)

    def _typealias(self, node: ast.stmt) -> Iterator[Stmt]:
        # ``type X = …`` (PEP 695) evaluates its value lazily: it only binds.
        name = getattr(node, "name", None)
        if isinstance(name, ast.Name):
            yield Bind((name.id,), node.lineno)
            self._bind([name.id])
