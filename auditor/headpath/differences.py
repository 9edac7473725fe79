"""How two terms differ: surely in value, or perhaps only in how the value is computed."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.headpath.terms import (
    Apply,
    Constant,
    Global,
    Item,
    Module,
    Param,
    Part,
    Term,
    children,
    is_model_part,
    walk,
)


@dataclass(frozen=True, slots=True)
class Difference:
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
    if _applied_to(left, right) or _applied_to(right, left):
        return True
    if is_model_part(left) and is_model_part(right):
        return _other_part(left, right)
    if type(left) is not type(right) or _symbol(left) != _symbol(right):
        return False
    parts = list(zip(children(left), children(right), strict=False))
    if len(children(left)) != len(children(right)):
        return False
    found = [difference(a, b) for a, b in parts]
    return any(one is True for one in found) and False not in found


def _applied_to(outer: Term, inner: Term) -> bool:
    """Whether ``outer`` is a module or function of the model, applied to ``inner``."""
    match outer:
        case Module(arguments=arguments):
            return inner in arguments or any(_applied_to(one, inner) for one in arguments)
        case Apply(function=Part() | Global(), arguments=arguments):
            # A free function may give back its input (contiguous, a no-op all-gather); one that
            # is handed weights of the model as well computes with them.
            weighed = any(_has_part(one) for one in arguments if one != inner)
            return weighed and inner in arguments
        case _:
            return False


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
            return True


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
