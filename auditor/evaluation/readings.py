"""What a run has read off the functions of the tree that it came across."""

from __future__ import annotations

import msgspec

from auditor.values import ClassValue, Function, Read


class Summary(msgspec.Struct, frozen=True, gc=False):
    """Whether calling a function can be put off, and what its value rests on then.

    ``texts`` are the parameters that must be strings for that.
    """

    harmless: bool
    reads: tuple[Read, ...] = ()
    texts: tuple[str, ...] = ()


class Readings(msgspec.Struct):
    """Summaries by the place of the function, those that are being made, and how often in vain.

    ``makers`` are the ``__init__`` of classes whose instances were made.
    """

    summaries: dict[tuple[str, int], Summary] = msgspec.field(default_factory=dict)
    being_made: set[tuple[str, int]] = msgspec.field(default_factory=set)
    attempts: dict[tuple[str, int], int] = msgspec.field(default_factory=dict)
    makers: dict[ClassValue, Function | None] = msgspec.field(default_factory=dict)
