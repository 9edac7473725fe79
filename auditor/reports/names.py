"""What a mistyped name may have been meant to be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

#: Up to so many known names are all listed where none is near.
_FEW = 12


def nearest(name: str, known: Sequence[str]) -> list[str]:
    """Up to three of ``known``, the likeliest first; a name that differs in case alone wins.

    Of a glob the letters count. Where no whole name is near, names that begin like it are.
    """
    wanted = re.sub(r"[][*?]", "", name).lower()
    whole = {other.lower(): other for other in known}
    if wanted in whole:
        return [whole[wanted]]
    if close := get_close_matches(wanted, whole, cutoff=0.7):
        return [whole[match] for match in close]
    starts: dict[str, list[str]] = {}
    for other in known:
        starts.setdefault(other[: len(wanted)].lower(), []).append(other)
    close = get_close_matches(wanted, starts, cutoff=0.7)
    return [other for match in close for other in starts[match]][:3]


def hint(name: str, known: Sequence[str]) -> str:
    """What to type instead: the nearest names, or all of them where they are few."""
    if close := nearest(name, known):
        return f"Did you mean {' or '.join(close)}?"
    return f"Known: {', '.join(known)}." if 0 < len(known) <= _FEW else ""
