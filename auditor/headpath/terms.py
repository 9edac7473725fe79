"""Terms: what an expression of a method stands for, without a value for any tensor.

Two terms are equal when they are built alike; where they stand in the source takes no part. A
term is readable (:func:`show`), and holds the place of its outermost part.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from auditor.values import Place

#: Python constants that a term may hold.
Scalar = None | bool | int | float | str | bytes


class _Placed(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What all terms have: a place, direct parts, and equality by what they are built of.

    A structure, since terms are made more often than anything else.
    """

    place: Place | None = None

    def parts(self) -> tuple[Term, ...]:
        """The direct parts of the term."""
        return ()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and self._built() == other._built()

    def __hash__(self) -> int:
        return hash(self._built())

    def _built(self) -> Any:
        """What tells a term from others of its kind."""
        return _COMPARED[type(self)](self)


#: Fields that say where a term stands, or what is known of it, and not what it is.
_APART = ("place", "loose", "unset")


class _Compared(dict[type[_Placed], Callable[[_Placed], Any]]):
    """How the fields that tell terms of a kind apart are read; found once for each kind."""

    def __missing__(self, kind: type[_Placed]) -> Callable[[_Placed], Any]:
        names = [name for name in kind.__struct_fields__ if name not in _APART]
        found = self[kind] = attrgetter(*names) if names else type
        return found


_COMPARED = _Compared()


class Self(_Placed, frozen=True, eq=False):
    """The draft model."""


class Param(_Placed, frozen=True, eq=False):
    """A parameter of the method that the engine calls."""

    name: str


class Constant(_Placed, frozen=True, eq=False):
    """A literal. ``True``, ``1`` and ``1.0`` are three, though Python takes them for equal."""

    value: Scalar

    def _built(self) -> tuple[type, str]:
        return type(self.value), repr(self.value)


class Global(_Placed, frozen=True, eq=False):
    """A function, class or constant of a module, by its dotted name."""

    name: str


class Part(_Placed, frozen=True, eq=False):
    """An attribute (``self.model.lm_head``).

    ``loose`` where it may be another name for what some other attribute holds; ``unset`` where
    nothing in the tree sets it, so that it is no name for anything that the tree made.
    """

    owner: Term
    name: str
    loose: bool = False
    unset: bool = False

    def parts(self) -> tuple[Term, ...]:
        """The object that has it."""
        return (self.owner,)


class Item(_Placed, frozen=True, eq=False):
    """``owner[index]``."""

    owner: Term
    index: Term

    def parts(self) -> tuple[Term, ...]:
        """Owner and index."""
        return (self.owner, self.index)


class Operation(_Placed, frozen=True, eq=False):
    """An operator, or a display, over terms (``%``, ``tuple``, ``slice``, ``f-string``)."""

    name: str
    operands: tuple[Term, ...]

    def parts(self) -> tuple[Term, ...]:
        """The operands."""
        return self.operands


class Apply(_Placed, frozen=True, eq=False):
    """A call that is not looked into: a kernel, a method of a tensor, a free function."""

    function: Term
    arguments: tuple[Term, ...]
    keywords: tuple[tuple[str, Term], ...] = ()

    def parts(self) -> tuple[Term, ...]:
        """The function, then the arguments."""
        return (self.function, *self.arguments, *[value for _, value in self.keywords])


class Module(_Placed, frozen=True, eq=False):
    """A submodule applied to its input; ``label`` is its class.

    ``kind`` is ``norm``, ``perhaps`` for what may give its input back, or ``other``.
    """

    module: Term
    kind: str
    label: str
    arguments: tuple[Term, ...]

    def parts(self) -> tuple[Term, ...]:
        """The submodule, then its input."""
        return (self.module, *self.arguments)


class _OfHead(_Placed, frozen=True, eq=False):
    """Something that is computed from a head and hidden states."""

    processor: Term
    head: Term
    hidden: Term
    bias: Term | None = None

    def parts(self) -> tuple[Term, ...]:
        """Processor, head, hidden states, and the bias where there is one."""
        bias = () if self.bias is None else (self.bias,)
        return (self.processor, self.head, self.hidden, *bias)


class Logits(_OfHead, frozen=True, eq=False):
    """The logits processor applied to a head and hidden states."""


class TopTokens(_OfHead, frozen=True, eq=False):
    """What the logits processor has for tokens: the argmax of the same :class:`Logits`."""


class Stored(_Placed, frozen=True, eq=False):
    """``base`` after ``base[index] = value``."""

    base: Term
    index: Term
    value: Term

    def parts(self) -> tuple[Term, ...]:
        """What it was, at which index, and what is there now."""
        return (self.base, self.index, self.value)


class Changed(_Placed, frozen=True, eq=False):
    """``base`` after a method that changes it in place (``index_fill_``)."""

    base: Term
    method: str
    arguments: tuple[Term, ...]

    def parts(self) -> tuple[Term, ...]:
        """What it was, then the arguments of the method."""
        return (self.base, *self.arguments)


class Unknown(_Placed, frozen=True, eq=False):
    """Something that was not followed, and why; equal only by the same reason and place."""

    reason: str
    where: str


Term = (
    Self | Param | Constant | Global | Part | Item | Operation | Apply | Module | Logits | TopTokens
    | Stored | Changed | Unknown
)  # fmt: skip


def walk(term: Term) -> list[Term]:
    """The term and all its parts, outermost first."""
    found = [term]
    for one in found:  # which grows meanwhile
        found.extend(one.parts())
    return found


def rebuilt(term: Term, change: Callable[[Term], Term]) -> Term:
    """The term with ``change`` applied to each part, the innermost first."""

    def of(one: Term) -> Term:
        return rebuilt(one, change)

    def all_of(terms: tuple[Term, ...]) -> tuple[Term, ...]:
        return tuple(map(of, terms))

    match term:
        case Part(owner=owner):
            new: Term = replace(term, owner=of(owner))
        case Item(owner=owner, index=index):
            new = replace(term, owner=of(owner), index=of(index))
        case Operation(operands=operands):
            new = replace(term, operands=all_of(operands))
        case Apply(function=function, arguments=arguments, keywords=keywords):
            pairs = tuple((key, of(value)) for key, value in keywords)
            new = replace(term, function=of(function), arguments=all_of(arguments), keywords=pairs)
        case Module(module=module, arguments=arguments):
            new = replace(term, module=of(module), arguments=all_of(arguments))
        case (
            Logits(processor=processor, head=head, hidden=hidden, bias=bias)
            | TopTokens(processor=processor, head=head, hidden=hidden, bias=bias)
        ):
            new_bias = None if bias is None else of(bias)
            new = replace(
                term, processor=of(processor), head=of(head), hidden=of(hidden), bias=new_bias
            )
        case Stored(base=base, index=index, value=value):
            new = replace(term, base=of(base), index=of(index), value=of(value))
        case Changed(base=base, arguments=arguments):
            new = replace(term, base=of(base), arguments=all_of(arguments))
        case _:
            new = term
    return change(new)


def is_model_part(term: Term) -> bool:
    """Whether a term is an attribute of the model, through names and items alone."""
    while isinstance(term, Part | Item):
        term = term.owner
    return isinstance(term, Self)


def may_be_same(left: Term, right: Term, aliases: bool = True) -> bool:
    """Whether two parts of the model may be one object.

    Without ``aliases``, attributes of other names are taken to hold other objects.
    """
    match left, right:
        case Item(owner=a, index=i), Item(owner=b, index=j):
            apart = isinstance(i, Constant) and isinstance(j, Constant) and i != j
            return not apart and may_be_same(a, b, aliases)
        case Part(owner=a, name=x), Part(owner=b, name=y) if x == y:
            return may_be_same(a, b, aliases)
        case _:
            named = [one for one in (left, right) if isinstance(one, Part)]
            loose = any(one.loose for one in named) and not any(one.unset for one in named)
            return (aliases and loose) or left == right


class Sizes:
    """How many parts terms have when they are written out; shared parts count each time."""

    def __init__(self) -> None:
        # By identity, with the term kept alive: hashing a term would walk all of it.
        self._known: dict[int, tuple[Term, int]] = {}

    def of(self, term: Term) -> int:
        """The number of parts of ``term``, itself included."""
        if isinstance(term, Param | Constant | Global):
            return 1
        known = self._known.get(id(term))
        if known is None:
            known = self._known[id(term)] = (term, 1 + sum(map(self.of, term.parts())))
        return known[1]


def unknowns(term: Term) -> tuple[Unknown, ...]:
    """What was not followed in a term."""
    return tuple(part for part in walk(term) if isinstance(part, Unknown))


def show(term: Term) -> str:
    """The term as a short expression, close to its source."""
    match term:
        case Self():
            return "self"
        case Param(name=name):
            return name
        case Global(name=name):
            return name.rpartition(".")[2]
        case Constant(value=value):
            return repr(value)
        case Part(owner=owner, name=name):
            return name if isinstance(owner, Self) else f"{show(owner)}.{name}"
        case Item(owner=owner, index=index):
            return f"{show(owner)}[{show(index)}]"
        case Operation(name=name, operands=operands):
            return _operation(name, operands)
        case Apply(function=function, arguments=arguments, keywords=keywords):
            inner = [*map(show, arguments), *(f"{key}={show(value)}" for key, value in keywords)]
            return f"{show(function)}({', '.join(inner)})"
        case Module(module=module, arguments=arguments):
            return f"{show(module)}({', '.join(map(show, arguments))})"
        case Logits() | TopTokens():
            name = "logits" if isinstance(term, Logits) else "top_tokens"
            bias = "" if term.bias is None else f", {show(term.bias)}"
            return f"{name}({show(term.head)}, {show(term.hidden)}{bias})"
        case Stored(base=base, index=index, value=value):
            return f"{show(base)}[{show(index)} := {show(value)}]"
        case Changed(base=base, method=method, arguments=arguments):
            return f"{show(base)}.{method}({', '.join(map(show, arguments))})"
        case Unknown(reason=reason):
            return f"<unknown: {reason}>"


def _operation(name: str, operands: tuple[Term, ...]) -> str:
    texts = [show(operand) for operand in operands]
    match name:
        case "tuple":
            return ", ".join(texts)
        case "slice":
            return ":".join("" if text == "None" else text for text in texts[:2])
        case "not" | "-":
            return f"{name} {texts[0]}" if len(texts) == 1 else f"({texts[0]} {name} {texts[1]})"
        case _ if len(texts) == 2:
            return f"({texts[0]} {name} {texts[1]})"
        case _:
            return f"{name}({', '.join(texts)})"
