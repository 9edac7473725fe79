"""How much of a source is read at most, against archives built to exhaust memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, after decompression.

    Attributes:
        member: a single file; a larger one is left out and reported.
        total: everything that has to be decompressed; an archive with more is refused.
    """

    member: int = 64 << 20
    total: int = 2 << 30


DEFAULT_LIMITS = Limits()
