"""Which names are bound for certain where a statement runs (*definite assignment*).

A name that surely exists cannot make an import fail, and need not be among the facts.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from auditor.facts import (
    Assign,
    Bind,
    Class,
    Delete,
    Func,
    If,
    Import,
    ImportFrom,
    Loop,
    Name,
    Stmt,
    Switch,
    Try,
    With,
)
from auditor.syntax.names import names_read

_BUILTINS = frozenset(dir(builtins))


class DefiniteAssignment:
    """Keeps account of the names that are bound for certain.

    Args:
        prune: leave out names that surely exist; otherwise every read counts.
    """

    def __init__(self, prune: bool) -> None:
        self._prune = prune
        self._sure: set[str] = set()
        #: Names of things outside the tree, whose attributes are taken to exist.
        self._foreign: set[str] = set()

    def _bind(self, names: Iterable[str], foreign: bool = False) -> None:
        for name in names:
            self._sure.add(name)
            (self._foreign.add if foreign else self._foreign.discard)(name)

    def _unbind(self, names: Iterable[str]) -> None:
        gone = set(names)
        self._sure -= gone
        self._foreign -= gone

    def _uses(self, nodes: Iterable[ast.AST]) -> tuple[str, ...]:
        """Dotted names read when ``nodes`` are evaluated, less those that surely exist."""
        found: list[str] = []
        for node in nodes:
            names_read(node, found)
        return self._unsure(found)

    def _unsure(self, read: Iterable[str]) -> tuple[str, ...]:
        """Those of some dotted names that do not surely exist, each once."""
        found: dict[str, None] = {}
        for dotted in read:
            if not (self._prune and self._surely_exists(dotted)):
                found[dotted] = None
        return tuple(found)

    def _surely_exists(self, dotted: str) -> bool:
        head, _, rest = dotted.partition(".")
        if head in self._sure:
            return not rest or head in self._foreign
        return not rest and head in _BUILTINS


def may_bind(facts: Iterable[Stmt]) -> set[str]:
    """Names that a block may bind or delete, at any depth."""
    names: set[str] = set()
    for fact in facts:
        match fact:
            case Import(module=module, asname=asname):
                names.add(asname or module.partition(".")[0])
            case ImportFrom(names=pairs):
                names.update(bound for _, bound in pairs)
            case Func(name=name) | Class(name=name):
                names.add(name)
            case Bind(names=bound):
                names.update(bound)
            case Assign(targets=targets) | Delete(targets=targets):
                names.update(t.id for t in targets if isinstance(t, Name))
            case If(body=body, orelse=orelse) | Loop(body=body, orelse=orelse):
                names |= may_bind(body) | may_bind(orelse)
            case Try(body=body, handlers=handlers, orelse=orelse, final=final):
                names |= may_bind(body) | may_bind(orelse) | may_bind(final)
                for handler in handlers:
                    names |= may_bind(handler.body) | ({handler.name} if handler.name else set())
            case With(body=body, names=bound):
                names |= may_bind(body) | set(bound)
            case Switch(cases=cases, bodies=bodies):
                for case in cases:
                    names |= set(case.binds)
                for inner in bodies:
                    names |= may_bind(inner)
            case _:
                pass
    return names
