"""Where a branch of a symbolic run stands, and how a method ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from auditor.headpath.terms import (
    Term,
    Unknown,
)
from auditor.values import ClassValue, Place


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition of a branch, and how it comes out on it; ``asserted`` where else it raises."""

    test: Term
    holds: bool
    place: Place = field(compare=False)
    asserted: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Check:
    """Something that a method asserts or raises on the way."""

    text: str
    place: Place = field(compare=False)


@dataclass(frozen=True, slots=True)
class Entered:
    """A method or function that was entered: its name, and the line that defines it."""

    name: str
    where: Place


@dataclass(frozen=True, slots=True)
class State:
    """Where a branch of the run stands; ``raised`` is what it raises, when it does.

    ``passed`` are the parts of the model that were handed to a method as arguments. ``lost`` is why
    no attribute of the model is known any more, where that is so. ``entered`` are the methods of
    ``hops``.
    """

    names: Mapping[str, Term]
    stores: Mapping[Term, Term] = field(default_factory=dict)
    guards: tuple[Guard, ...] = ()
    checks: tuple[Check, ...] = ()
    hops: tuple[Place, ...] = ()
    raised: Check | None = None
    passed: tuple[Term, ...] = ()
    lost: Unknown | None = None
    entered: tuple[Entered, ...] = ()

    def bound(self, name: str, term: Term) -> State:
        """The state after ``name = term``."""
        # Not by dataclasses.replace, which costs more than all else here: this is done most.
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
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """One end of a method: what it returns, or None in ``value`` where it raises."""

    value: Term | None
    state: State


@dataclass(frozen=True, slots=True)
class Frame:
    """The method that runs: the class that defines it, and what ``self`` is in it."""

    owner: ClassValue | None
    scope: ClassValue
    self_term: Term
    depth: int


Ends = list[tuple[str, Term | None, State]]


Values = list[tuple[Term, State]]


class TooManyPaths(Exception):  # noqa: N818 - an outcome, told to the caller
    """A method forks more often than is followed."""
