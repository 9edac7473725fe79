"""Shapes: named patterns over head paths, read from ``rules/shapes/*.toml``.

A pattern is written as the expression it stands for: ``_model.embed_tokens``,
``norm(_shared.norm, _hidden)``. A name that starts with an underscore stands for any term, the
same one wherever it occurs in the shape. ``param`` is a parameter of the engine's call,
``norm(m, x)`` the norm ``m`` applied to ``x`` (as a module, or by a kernel that is handed its
weight), ``flat(x)`` a part of the model that no parameter chooses, and ``step(x)`` one that a
parameter does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from auditor.errors import RuleError
from auditor.headpath.path import Branch, HeadPath
from auditor.headpath.terms import (
    Apply,
    Constant,
    Global,
    Item,
    Module,
    Param,
    Part,
    Term,
    is_model_part,
    walk,
)
from auditor.ruleset.heads import head_rule
from auditor.ruleset.shapes import ShapeRule

Bindings = dict[str, Term]


def shape_of(path: HeadPath, rules: Sequence[ShapeRule]) -> ShapeRule | None:
    """The first shape that the head path fits, or None."""
    if not path.branches or any(branch.unknown for branch in path.branches):
        return None
    return next((rule for rule in rules if fits(path, rule)), None)


def fits(path: HeadPath, rule: ShapeRule) -> bool:
    """Whether a head path without unknowns has this shape."""
    if rule.special is not None:
        return False
    through_processor = all(branch.head_term is not None for branch in path.branches)
    if rule.processor == "missing" or not through_processor:
        return rule.processor == "missing" and not through_processor
    if rule.some_post:
        return any(p.kind in rule.some_post for branch in path.branches for p in branch.post)
    if rule.passed and not any(_is_passed(branch) for branch in path.branches):
        return False
    return all(_fits(branch, rule) for branch in path.branches)


def _is_passed(branch: Branch) -> bool:
    return branch.head_term is not None and branch.head_term.head in branch.passed


def _fits(branch: Branch, rule: ShapeRule) -> bool:
    term = branch.head_term
    if term is None or any(post.kind in ("mask", "change") for post in branch.post):
        return False
    if rule.stored and not branch.stored:
        return False
    if rule.through and not _passes(term.hidden, rule.through):
        return False
    return any(
        True
        for head in rule.head
        for bindings in match(_parsed(head, rule), term.head, {})
        for hidden in rule.hidden
        for _ in match(_parsed(hidden, rule), term.hidden, bindings)
    )


def _passes(term: Term, globs: Sequence[str]) -> bool:
    """Whether an attribute or function of one of these names takes part in a term."""
    names = [part.name for part in walk(term) if isinstance(part, Part | Global)]
    return any(fnmatchcase(n.rpartition(".")[2], glob) for n in names for glob in globs)


def match(pattern: ast.expr, term: Term, bindings: Bindings) -> Iterator[Bindings]:
    """Every way in which a term fits a pattern, as what its metavariables stand for."""
    match pattern:
        case ast.Name(id="param"):
            if isinstance(term, Param):
                yield bindings
        case ast.Name(id=name) if name.startswith("_"):
            if bindings.get(name, term) == term:
                yield {**bindings, name: term}
        case ast.Attribute(value=owner, attr=attr):
            if isinstance(term, Part) and term.name == attr:
                yield from match(owner, term.owner, bindings)
        case ast.Call(func=ast.Name(id=function), args=args):
            yield from _match_call(function, args, term, bindings)
        case _:
            return


def _match_call(
    function: str, args: Sequence[ast.expr], term: Term, bindings: Bindings
) -> Iterator[Bindings]:
    match function:
        case "norm":
            for norm, hidden in _norms(term):
                for inner in match(args[0], norm, bindings):
                    yield from match(args[1], hidden, inner)
        case "step" if _is_chosen(term):
            yield from match(args[0], term, bindings)
        case "flat" if is_model_part(term) and not _is_chosen(term):
            yield from match(args[0], term, bindings)
        case _:
            return


def _norms(term: Term) -> Iterator[tuple[Term, Term]]:
    """The norm that a term is the result of, and its input."""
    found = norm_of(term)
    if found is not None:
        yield found


def norm_of(term: Term) -> tuple[Term, Term] | None:
    """The norm that a term is the result of, and its input; None for another term.

    A kernel counts by its name (``rules/head.toml``); its norm is the module whose weight it is
    handed, or the kernel itself.
    """
    match term:
        case Item(owner=owner, index=Constant(value=0)):
            # A norm that adds a residual gives back the normed states and the sum.
            return norm_of(owner)
        case Module(kind="norm", module=module, arguments=(hidden, *_)):
            return module, hidden
        case Apply(function=Global(name=name), arguments=(hidden, *rest)) if _is_kernel(name):
            return _norm_in(rest) or term.function, hidden
        case _:
            return None


def _norm_in(arguments: Sequence[Term]) -> Term | None:
    """The norm whose weight a kernel is handed, or that it is handed itself."""
    parts = [p for one in arguments for p in walk(one) if isinstance(p, Part) and is_model_part(p)]
    for part in parts:
        if part.name == "weight":
            return part.owner
    return next((part for part in parts if fnmatchcase(part.name, head_rule().norm_names)), None)


def _is_kernel(name: str) -> bool:
    last = name.rpartition(".")[2].lower()
    return any(fnmatchcase(last, glob) for glob in head_rule().norm_functions)


def _is_chosen(term: Term) -> bool:
    """Whether a parameter of the engine's call chooses which part of the model a term is."""
    while isinstance(term, Part | Item):
        if isinstance(term, Item) and any(isinstance(part, Param) for part in walk(term.index)):
            return True
        term = term.owner
    return False


@lru_cache(maxsize=1024)
def _parsed(text: str, rule: ShapeRule) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise RuleError(
            f"{text!r} is not a pattern: {error.msg}",
            where=f"rules/shapes/{rule.name}.toml",
            next_step="Write it as the expression that it stands for.",
        ) from error
