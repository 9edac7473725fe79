"""The values that the interpreter of configuration code works with.

Python's constants, lists, tuples, sets and dicts stand for themselves. A :class:`Thing` is an
object of which only some attributes are known; it has the text of the expression that it is, so
that a condition on it can be told to a person, and so that the same question is asked once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from auditor.contracts.names import Named, Ref
from auditor.values import Place

#: A Python constant or container, or a class of this module.
Value = Any


class Question(msgspec.Struct, frozen=True):
    """A condition that stayed open, and how it was answered on one path.

    ``reason`` is empty where it asks for what a user or a checkpoint may say either way; else it
    says what was not followed.
    """

    text: str
    where: Place
    answer: bool
    reason: str = ""

    def __str__(self) -> str:
        return self.text if self.answer else f"not ({self.text})"


class Thing(msgspec.Struct, eq=False):
    """An object that is known in part.

    Attributes:
        text: the expression that it is.
        reason: why it is not known, where that is for want of following it.
        cls: its class, where that is known.
        attrs: its attributes that are known.
        aliases: attributes that stand for another path from here (``a`` for ``b.a``).
        plain: it is an instance of no class of the tree.
        where: the call that made it.
        denies: the condition that this one is the opposite of.
        inherited: attributes of whatever is found inside it.
        most: a number that it is not above.
    """

    text: str
    reason: str = ""
    cls: Named | None = None
    attrs: dict[str, Value] = msgspec.field(default_factory=dict)
    aliases: Mapping[str, str] = msgspec.field(default_factory=dict)
    plain: bool = False
    where: Place | None = None
    denies: Thing | None = None
    inherited: Mapping[str, Value] = msgspec.field(default_factory=dict)
    most: int | None = None

    def set(self, name: str, value: Value) -> None:
        """``self.name = value``."""
        if name in self.aliases:
            owner, _, attr = self.aliases[name].rpartition(".")
            holder = self.get(owner)
            if isinstance(holder, Thing):
                holder.set(attr, value)
            return
        self.attrs[name] = value

    def get(self, name: str) -> Value:
        """``self.name`` where it is known, else what stands for it."""
        if name in self.aliases:
            value: Value = self
            for part in self.aliases[name].split("."):
                value = value.get(part) if isinstance(value, Thing) else UNBOUND
            return value
        if name not in self.attrs:
            # Kept, so that what is set on it is found again.
            self.attrs[name] = Thing(
                f"{self.text}.{name}" if self.text else name,
                self.reason,
                attrs=dict(self.inherited),
                inherited=self.inherited,
            )
        return self.attrs[name]

    def copied(self) -> Thing:
        """A copy with attributes of its own."""
        return replace(self, attrs=dict(self.attrs))


class Each(msgspec.Struct, frozen=True, eq=False):
    """A value that differs between the checkpoints that are tried at once, one for each of them."""

    values: tuple[Value, ...]


class _Unbound:
    """What stands for a value that there is not."""


UNBOUND = _Unbound()


def opposite(condition: Thing) -> Thing:
    """``not condition``."""
    if condition.denies is not None:
        return condition.denies
    return Thing(f"not ({condition.text})", condition.reason, denies=condition)


#: Types of values that hold no others which could differ between checkpoints: asked first.
_SINGLE = frozenset({str, int, float, bytes, bool, type(None), Thing})


def of_one(value: Value, number: int) -> Value:
    """A value as it is for one of the checkpoints."""
    if type(value) in _SINGLE:
        return value
    match value:
        case Each(values=values):
            return of_one(values[number], number)
        case list() | tuple() | set() | frozenset() if holds_each(value):
            return type(value)(of_one(item, number) for item in value)
        case dict() if holds_each(value):
            return {of_one(k, number): of_one(v, number) for k, v in value.items()}
        case _:
            return value


def in_turn(values: Sequence[Value], numbers: Iterable[int]) -> Iterator[tuple[Value, ...]]:
    """The values as they are for each of the checkpoints."""
    differing = tuple(map(holds_each, values))
    pairs = tuple(zip(values, differing, strict=True))
    for number in numbers:
        yield tuple([of_one(value, number) if differs else value for value, differs in pairs])


def holds_each(value: Value) -> bool:
    """Whether a value differs between checkpoints."""
    if type(value) in _SINGLE:
        return False
    match value:
        case Each():
            return True
        case list() | tuple() | set() | frozenset():
            return any(map(holds_each, value))
        case dict():
            return any(holds_each(one) for pair in value.items() for one in pair)
        case _:
            return False


def is_open(value: Value) -> bool:
    """Whether the truth of a value is not known; an object whose class is known is true."""
    return isinstance(value, Thing) and value.cls is None and not value.plain


class Code(msgspec.Struct, frozen=True, eq=False):
    """A function of the tree; ``owner`` is the class that defines it."""

    module: str
    node: ast.FunctionDef
    owner: Ref | None = None


class Bound(msgspec.Struct, frozen=True, eq=False):
    """A method of an object of the tree, or of a value (``[].append``).

    ``named`` are keyword arguments that it has been given already.
    """

    owner: Value
    name: str
    code: Code | None = None
    named: tuple[tuple[str, Value], ...] = ()


class Frame(msgspec.Struct, eq=False):
    """Where a statement runs: its module, the class around it, and the local names.

    ``wanted`` are the local names that matter; with ``whole``, every statement does.
    """

    module: str
    owner: Ref | None
    names: dict[str, Value]
    depth: int
    wanted: frozenset[str] = frozenset()
    whole: bool = False


class Returned(Exception):  # noqa: N818 - it is no error
    """Carries the value of ``return`` out of a function."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Raised(Exception):  # noqa: N818 - an outcome of the audited code
    """The audited code raises here."""


class TooMany(Exception):  # noqa: N818 - an outcome
    """There is more to follow than is followed; the message says what."""


#: Python's own constants and containers.
PLAIN = (str, int, float, bytes, bool, type(None), list, tuple, set, frozenset, dict)
_CONSTANT = _SINGLE - {Thing}


def is_known(value: Value) -> bool:
    """Whether a value is a constant, or holds nothing but constants."""
    if type(value) in _CONSTANT:
        return True
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(is_known, value))
    return isinstance(value, PLAIN)


def shown(value: Value) -> str:
    """A value as it stands in a condition."""
    return value.text if isinstance(value, Thing) else repr(value)


@lru_cache(maxsize=4096)
def text_of(node: ast.AST) -> str:
    """The source of an expression, on one line."""
    return " ".join(ast.unparse(node).split())


def certain(value: Value) -> bool:
    """The truth of a value whose truth is known."""
    return bool(value) if isinstance(value, PLAIN) else True
