"""What a run has read off the functions of the tree that it came across."""

from __future__ import annotations

import msgspec

from auditor.values import ClassValue, Function, Read, Value


class Summary(msgspec.Struct, frozen=True, gc=False):
    """Whether calling a function can be put off, and what its value rests on then.

    ``texts`` are the parameters that must be strings for that.
    """

    harmless: bool
    reads: tuple[Read, ...] = ()
    texts: tuple[str, ...] = ()


class Readings(msgspec.Struct):
    """Summaries by the place of the function, those that are being made, and how often in vain.

    ``makers`` are the ``__init__`` of classes whose instances were made, ``specials`` their other
    special methods. ``kept`` is what calls under ``functools.cache`` gave, by function and
    arguments. ``unordered`` says that the comprehension that is evaluated takes the items of a set.
    """

    summaries: dict[tuple[str, int], Summary] = msgspec.field(default_factory=dict)
    being_made: set[tuple[str, int]] = msgspec.field(default_factory=set)
    attempts: dict[tuple[str, int], int] = msgspec.field(default_factory=dict)
    makers: dict[ClassValue, Function | None] = msgspec.field(default_factory=dict)
    specials: dict[tuple[ClassValue, str], Function | None] = msgspec.field(default_factory=dict)
    kept: dict[tuple[Value, ...], tuple[Function, Value]] = msgspec.field(default_factory=dict)
    unordered: bool = False
