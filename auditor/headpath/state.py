"""Where a branch of a symbolic run stands, and how a method ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from auditor.headpath.terms import (
    Term,
    Unknown,
)
from auditor.values import ClassValue, Place


class Guard(msgspec.Struct, frozen=True, eq=False):
    """A condition of a branch, and how it comes out on it; ``asserted`` where else it raises.

    Equal where both are the same, wherever it is asked.
    """

    test: Term
    holds: bool
    place: Place
    asserted: bool = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Guard):
            return False
        return self.holds == other.holds and self.test == other.test

    def __hash__(self) -> int:
        return hash((self.test, self.holds))


class Check(msgspec.Struct, frozen=True, eq=False):
    """Something that a method asserts or raises on the way; equal by its text."""

    text: str
    place: Place

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Check) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class Entered(msgspec.Struct, frozen=True):
    """A method or function that was entered: its name, and the line that defines it."""

    name: str
    where: Place


class State(msgspec.Struct, frozen=True, eq=False):
    """Where a branch of the run stands; ``raised`` is what it raises, when it does.

    ``passed`` are the parts of the model that were handed to a method as arguments. ``lost`` is why
    no attribute of the model is known any more, where that is so. ``entered`` are the methods of
    ``hops``. ``held`` are the terms of an expression of which more is to be evaluated, ``callers``
    the names of the methods that called: both out of reach, and yet changed by what changes an
    object in place.
    """

    names: Mapping[str, Term]
    stores: Mapping[Term, Term] = {}
    guards: tuple[Guard, ...] = ()
    checks: tuple[Check, ...] = ()
    hops: tuple[Place, ...] = ()
    raised: Check | None = None
    passed: tuple[Term, ...] = ()
    lost: Unknown | None = None
    entered: tuple[Entered, ...] = ()
    held: tuple[Term, ...] = ()
    callers: tuple[Mapping[str, Term], ...] = ()

    def bound(self, name: str, term: Term) -> State:
        """The state after ``name = term``."""
        # Not by ``replace``, which takes twice as long: this is done most.
        return State(
            {**self.names, name: term},
            self.stores,
            self.guards,
            self.checks,
            self.hops,
            self.raised,
            self.passed,
            self.lost,
            self.entered,
            self.held,
            self.callers,
        )

    def holding(self, term: Term) -> State:
        """The state while the rest of an expression is evaluated, of which ``term`` is a part."""
        return replace(self, held=(*self.held, term))

    def released(self, count: int) -> State:
        """The state once all of an expression is evaluated, of which so many parts were held."""
        return replace(self, held=self.held[:-count])

    def rests_alike(self, other: State, names: Iterable[str]) -> bool:
        """Whether these names stand for the same terms, and all attributes for what they did."""
        return (
            self.stores is other.stores
            and self.lost is other.lost
            and all(self.names.get(name) is other.names.get(name) for name in names)
        )


class Outcome(msgspec.Struct, frozen=True, eq=False):
    """One end of a method: what it returns, or None in ``value`` where it raises."""

    value: Term | None
    state: State


class Frame(msgspec.Struct, frozen=True, eq=False):
    """The method that runs: the class that defines it, and what ``self`` is in it."""

    owner: ClassValue | None
    scope: ClassValue
    self_term: Term
    depth: int


Ends = list[tuple[str, Term | None, State]]


Values = list[tuple[Term, State]]


class TooManyPaths(Exception):  # noqa: N818 - an outcome, told to the caller
    """A method forks more often than is followed."""
