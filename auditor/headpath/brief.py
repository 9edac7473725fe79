"""A head path in a few words, for people: ``lm_head ∘ norm``.

What is left out is what every path has: ``self``, ``model.``, the hidden states at the end, the
arithmetic that picks the layer of a draft step. The whole terms stand beside it in every document.
"""

from __future__ import annotations

from msgspec.structs import replace

from auditor.headpath.path import Branch, HeadPath, show_guard
from auditor.headpath.state import Guard
from auditor.headpath.terms import (
    Apply,
    Constant,
    Global,
    Item,
    Module,
    Operation,
    Param,
    Part,
    Self,
    Term,
    TopTokens,
    rebuilt,
    show,
    walk,
)

#: Longer than this, an expression says no more to a reader than its name.
_SHORT = 60


def brief(path: HeadPath) -> str:
    """The path in one line; ways that differ are told apart by their guards."""
    ways: dict[str, list[str]] = {}
    for branch in path.branches:
        guards = " and ".join(_guard(guard) for guard in branch.guards if not guard.asserted)
        ways.setdefault(_way(branch), []).append(guards)
    if len(ways) == 1:
        return next(iter(ways))
    return " | ".join(
        f"{text} if {' or '.join(guards)}" if any(guards) else text for text, guards in ways.items()
    )


def _way(branch: Branch) -> str:
    if branch.unknown:
        one = branch.unknown[0]
        return f"? ({one.reason} at {one.where})"
    term = branch.head_term
    if term is None:
        return compose(branch.result)
    parts = [f"{post.kind}({_cut(post.text)})" for post in reversed(branch.post)]
    if isinstance(term, TopTokens):
        parts.append("argmax")
    bias = "" if term.bias is None else f" + {name_of(term.bias)}"
    parts.append(f"{name_of(term.head)}{bias}")
    hidden = compose(term.hidden)
    return " ∘ ".join([*parts, hidden] if hidden else parts)


def compose(term: Term) -> str:
    """Functions applied to one input, as a composition; the input itself is left out."""
    names: list[str] = []
    while not isinstance(term, Param):
        match term:
            case Module(module=module, arguments=(inner, *_)):
                names.append(name_of(module))
            case Apply(function=Part(owner=owner, name=name)) if _depends(owner):
                names.append(name)
                inner = owner
            case Apply(function=function, arguments=arguments) if any(map(_depends, arguments)):
                names.append(name_of(function))
                inner = next(filter(_depends, arguments))
            case Item(owner=owner, index=index):
                names.append(f"[{_cut(show(index))}]")
                inner = owner
            case _:
                return " ∘ ".join([*names, _cut(show(term))])
        term = inner
    return " ∘ ".join(names)


def _depends(term: Term) -> bool:
    return any(isinstance(part, Param) for part in walk(term))


def name_of(term: Term) -> str:
    """A head or module by its path from the model; the choice of a layer by what chooses it."""
    match term:
        case Self():
            return "self"
        case (
            Part(owner=Self(), name=name) | Part(owner=Part(owner=Self(), name="model"), name=name)
        ):
            return name
        case Part(owner=owner, name=name):
            return f"{name_of(owner)}.{name}"
        case Item(owner=owner, index=index):
            return f"{name_of(owner)}[{_index(index)}]"
        case Global():
            return show(term)
        case Constant() | Operation():
            return _cut(show(term))
        case _:
            return _cut(show(term))


def _index(index: Term) -> str:
    """``step`` for an index that is computed from parameters, else the index."""
    names = sorted({part.name for part in walk(index) if isinstance(part, Param)})
    return ", ".join(names) if names else _cut(show(index))


def _guard(guard: Guard) -> str:
    return _cut(show_guard(replace(guard, test=rebuilt(guard.test, _abbreviated))))


def _abbreviated(term: Term) -> Term:
    match term:
        case Part(owner=Part(owner=Self(), name="model"), name=name):
            return Part(Self(), name)
        case Item(owner=owner, index=index) if _depends(index):
            return Item(owner, Param(_index(index)))
        case _:
            return term


def _cut(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"
