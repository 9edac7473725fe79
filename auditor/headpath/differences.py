"""How two terms differ: surely in value, or perhaps only in how the value is computed."""

from __future__ import annotations

import msgspec

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
    may_be_same,
    walk,
)


class Difference(msgspec.Struct, frozen=True):
    """In what two head paths differ, and whether the values are sure to differ with it."""

    text: str
    certain: bool


def difference(left: Term | None, right: Term | None) -> bool | None:
    """None where two terms are equal; else whether their values are sure to differ.

    They are where one side lacks a module or function that the other applies to the same input,
    where they use other attributes of the model, other constants, or a parameter against
    something without it. Two unlike functions may compute the same.
    """
    if left == right:
        return None
    if left is None or right is None:
        return True
    if _weighs(left, right) or _weighs(right, left):
        return True
    if is_model_part(left) and is_model_part(right):
        return _other_part(left, right)
    if type(left) is not type(right) or _symbol(left) != _symbol(right):
        return False
    parts = list(zip(left.parts(), right.parts(), strict=False))
    if len(left.parts()) != len(right.parts()):
        return False
    found = [difference(a, b) for a, b in parts]
    return any(one is True for one in found) and False not in found


def _weighs(outer: Term, inner: Term) -> bool:
    """Whether ``outer`` is ``inner`` after modules, or functions that are handed weights.

    A function without weights may give back its input (a gather over one rank, a cast), so one
    such alone is no difference that is sure.
    """
    if isinstance(outer, Module):
        inputs: tuple[Term, ...] = outer.arguments
        weighed = outer.kind != "perhaps"
    elif isinstance(outer, Apply):
        receiver = (outer.function.owner,) if isinstance(outer.function, Part) else ()
        inputs = (*receiver, *outer.arguments)
        weighed = any(_has_part(one) for one in outer.arguments if not _contains(one, inner))
    elif isinstance(outer, Item):
        inputs, weighed = (outer.owner,), False
    else:
        return False
    if inner in inputs:
        return weighed
    holding = [one for one in inputs if _contains(one, inner)]
    return any(_weighs(one, inner) or (weighed and _reaches(one, inner)) for one in holding)


def _reaches(outer: Term, inner: Term) -> bool:
    """Whether ``inner`` goes through applications alone into ``outer``."""
    match outer:
        case Module(arguments=inputs):
            return inner in inputs or any(_reaches(one, inner) for one in inputs)
        case Apply(function=Part(owner=owner), arguments=arguments):
            inputs = (owner, *arguments)
            return inner in inputs or any(_reaches(one, inner) for one in inputs)
        case Apply(arguments=inputs):
            return inner in inputs or any(_reaches(one, inner) for one in inputs)
        case Item(owner=owner):
            return owner == inner or _reaches(owner, inner)
        case _:
            return False


def _contains(term: Term, part: Term) -> bool:
    return any(one == part for one in walk(term))


def _has_part(term: Term) -> bool:
    return any(isinstance(part, Part) and is_model_part(part) for part in walk(term))


def _other_part(left: Term, right: Term) -> bool:
    """Two attributes of the model: other names, or items by another index, are other modules."""
    match left, right:
        case Item(owner=a, index=i), Item(owner=b, index=j) if a == b:
            return _other_index(i, j)
        case Part(owner=a, name=x), Part(owner=b, name=y) if x == y:
            return difference(a, b) is True
        case _:
            return not may_be_same(left, right)


def _other_index(left: Term, right: Term) -> bool:
    """Whether one index depends on a parameter that the other does not, or both are constants."""
    names = [{part.name for part in walk(i) if isinstance(part, Param)} for i in (left, right)]
    if names[0] != names[1]:
        return True
    return isinstance(left, Constant) and isinstance(right, Constant)


def _symbol(term: Term) -> object:
    match term:
        case Global(name=name) | Param(name=name):
            return name
        case Apply(function=function, keywords=keywords):
            return (function, tuple(key for key, _ in keywords))
        case Module(module=module):
            return module if not is_model_part(module) else type(module)
        case Constant(value=value):
            return value
        case _:
            return getattr(term, "name", None)
