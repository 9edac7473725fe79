"""Which statements before the head are worth a method that both callers share."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from auditor.headpath.arguments import parameters
from auditor.headpath.bodies import SourceBodies
from auditor.headpath.state import Frame, State
from auditor.headpath.symbolic import Symbolic
from auditor.headpath.terms import Param
from auditor.values import ClassValue, Place
from codemods.chain import Link
from codemods.plans import Factor, Parameter, Refusal, Refused

#: So many statements are written out twice; more are factored out.
_FEW = 2

_NAMES = ("_pre_head", "_to_head", "_head_input")


def factor_of(link: Link, symbolic: Symbolic, bodies: SourceBodies) -> Factor | None:
    """The run of statements right before the head that each bind its hidden states anew.

    None where there are only a few of them, or where the head is called in more than one place.

    Raises:
        Refused: there is no name left for the method.
    """
    if link.inner is not None or len(link.calls) != 1:
        return None
    hidden = _hidden(link.calls[0])
    moved = _moved(link.function, link.calls[0], hidden) if hidden is not None else []
    if hidden is None or len(moved) <= _FEW:
        return None
    name = _free_name(link, bodies)
    before = {a.arg for a in parameters(link.function)} | set(_bound(link.function, moved[0]))
    used = dict.fromkeys(node.id for stmt in moved for node in _loads(stmt) if node.id in before)
    others = [one for one in used if one not in ("self", hidden)]
    annotations = dict(_annotations(link.function))
    types = {one: annotations.get(one) or _type(one, link, symbolic, bodies) for one in others}
    return Factor(
        name=name,
        parameters=(
            *(Parameter(one, types[one]) for one in others),
            Parameter(hidden, annotations.get(hidden, "")),
        ),
        annotation=annotations.get(hidden, ""),
        first=moved[0].lineno,
        last=moved[-1].end_lineno or moved[-1].lineno,
    )


def _hidden(call: ast.Call) -> str | None:
    """The name that is handed to the processor as hidden states."""
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    value = call.args[1] if len(call.args) > 1 else keywords.get("hidden_states")
    return value.id if isinstance(value, ast.Name) else None


def _moved(function: ast.FunctionDef, call: ast.Call, hidden: str) -> list[ast.Assign]:
    """The assignments to ``hidden`` right before the statement of the call."""
    body = function.body
    index = next((i for i, stmt in enumerate(body) if call in ast.walk(stmt)), 0)
    moved: list[ast.Assign] = []
    for stmt in reversed(body[:index]):
        match stmt:
            case ast.Assign(targets=[ast.Name(id=name)]) if name == hidden:
                moved.insert(0, stmt)
            case _:
                break
    return moved


def _bound(function: ast.FunctionDef, until: ast.stmt) -> Iterator[str]:
    """Local names that the statements before one bind."""
    for stmt in function.body[: function.body.index(until)]:
        for node in ast.walk(stmt):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _loads(stmt: ast.stmt) -> Iterator[ast.Name]:
    for node in ast.walk(stmt):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node


def _annotations(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    for arg in parameters(function):
        if arg.annotation is not None:
            yield arg.arg, ast.unparse(arg.annotation)


def _type(name: str, link: Link, symbolic: Symbolic, bodies: SourceBodies) -> str:
    """The class of a local name, where its module has that class under its own name; or ""."""
    state = State({p.arg: Param(p.arg) for p in parameters(link.function)[1:]})
    frame = Frame(link.owner, link.owner, link.scope, 0)
    for stmt in link.function.body:
        match stmt:
            case ast.Assign(targets=[ast.Name(id=bound)], value=value) if bound == name:
                for term, _ in symbolic.expr(value, state, frame):
                    cls = symbolic.class_of(term)
                    name_of = cls.qualname if isinstance(cls, ClassValue) else ""
                    if name_of and bodies.named(link.owner, name_of) is cls:
                        return name_of
    return ""


def _free_name(link: Link, bodies: SourceBodies) -> str:
    taken = bodies.functions(link.owner).keys() | bodies.stores(link.owner).own.keys()
    for name in _NAMES:
        if name not in taken:
            return name
    where = Place(link.owner.module.path, link.owner.facts.line)
    raise Refused(Refusal("name-taken", f"{link.owner.qualname} has {', '.join(_NAMES)}", where))
