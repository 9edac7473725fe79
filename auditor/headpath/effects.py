"""What changes a value in place: methods such as ``fill_``, item assignment, calls for effect.

A tensor that is changed is changed under every name it has. Names for a view of it may show the
change as well; what they stand for is then unknown rather than what it was.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from msgspec.structs import replace

from auditor.headpath.state import State
from auditor.headpath.terms import (
    Apply,
    Changed,
    Constant,
    Global,
    Item,
    Operation,
    Part,
    Self,
    Stored,
    Term,
    Unknown,
)
from auditor.nodes import nodes_of
from auditor.ruleset.heads import HeadRule
from auditor.values import Place


def in_place(method: str) -> bool:
    """Whether a method of a tensor changes it, by PyTorch's convention of a trailing ``_``."""
    return method.endswith("_") and not method.endswith("__") and method != "requires_grad_"


def changed_to(state: State, before: Term, after: Term, place: Place, rule: HeadRule) -> State:
    """The state after the object behind ``before`` has become ``after``."""
    why = Unknown("may have been changed through another view", str(place), place=place)

    # What is not known may be any object that something else is a name for.
    anything = any(isinstance(base, Unknown) for base in _bases(before, rule))

    def now(term: Term) -> Term:
        if anything and not isinstance(term, Constant | Global | Self):
            return why
        if term == before:
            return after
        if isinstance(term, Operation) and term.name in ("tuple", "list"):
            return replace(term, operands=tuple(map(now, term.operands)))
        return why if _may_share(term, before, rule) else term

    names = {name: now(term) for name, term in state.names.items()}
    stores = {part: now(term) for part, term in state.stores.items()}
    held = tuple(map(now, state.held))
    callers = tuple({name: now(term) for name, term in one.items()} for one in state.callers)
    for base in _bases(before, rule):
        if isinstance(base, Part):
            # An attribute is read again by its name, whoever holds its value meanwhile.
            stores.setdefault(base, after if base == before else why)
    return replace(state, names=names, stores=stores, held=held, callers=callers)


def _may_share(left: Term, right: Term, rule: HeadRule) -> bool:
    """Whether one of two terms is a view of the other, or both are views of a third."""
    bases = set(_bases(left, rule))
    return any(base in bases for base in _bases(right, rule))


def _bases(term: Term, rule: HeadRule) -> Iterable[Term]:
    """The term, and what it is a view or an item of."""
    yield term
    match term:
        case Item(owner=owner) if not _is_module_like(owner):
            yield from _bases(owner, rule)
        case Apply(function=Part(owner=owner, name=name)) if name in rule.views:
            yield from _bases(owner, rule)
        case Apply(function=Global(name=name), arguments=(first, *_)) if _is_view(name, rule):
            yield from _bases(first, rule)
        case Apply(function=Global(name=name), arguments=held, keywords=keywords) if (
            name in _HOLDERS
        ):
            for one in (*held, *(value for _, value in keywords)):
                yield from _bases(one, rule)
        case Operation(name="tuple" | "list" | "and" | "or" | "*", operands=operands):
            for one in operands:
                yield from _bases(one, rule)
        case Part(owner=owner, name="T" | "mT" | "H" | "data"):
            yield from _bases(owner, rule)
        case Changed(base=base) | Stored(base=base):
            yield from _bases(base, rule)


#: Functions of Python that give something that holds, or is, what they are handed.
_HOLDERS = frozenset("dict list tuple set zip enumerate reversed sorted max min getattr".split())


def _is_view(function: str, rule: HeadRule) -> bool:
    """Whether a function of PyTorch may give a view of its first argument."""
    package, _, last = function.rpartition(".")
    return package == "torch" and last in rule.views


def _is_module_like(term: Term) -> bool:
    """Whether a term is an attribute of the model: its items are submodules, not views."""
    return isinstance(term, Part | Self)


def touched_names(node: ast.AST) -> frozenset[str]:
    """Local names that a statement may bind, or whose objects it may change."""
    found = set(stored_names(node))
    nodes = list(nodes_of(node))
    if any(isinstance(inner, _CHANGING) for inner in nodes) or any(
        isinstance(getattr(inner, "ctx", None), ast.Store | ast.Del)
        for inner in nodes
        if not isinstance(inner, ast.Name)
    ):
        # What is changed may be reached by another name that the statement gives it.
        found |= {inner.id for inner in nodes if isinstance(inner, ast.Name)}
    return frozenset(found - {"self"})


#: What may change an object that it is handed.
_CHANGING = (ast.Call, ast.AugAssign, ast.Await, ast.Yield, ast.YieldFrom, ast.With)


def stored_names(node: ast.AST) -> frozenset[str]:
    """Local names that a statement binds."""
    found: set[str] = set()
    for inner in nodes_of(node):
        match inner:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
                found.add(name)
            case ast.MatchStar(name=str() as name) | ast.MatchMapping(rest=str() as name):
                found.add(name)
            case ast.alias(name=name, asname=asname):
                found.add(asname or name.partition(".")[0])
    return frozenset(found)
