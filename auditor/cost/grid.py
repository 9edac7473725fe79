"""Whole numbers as one types them: ``512``, ``16,32,64``, ``1-1024``."""

from __future__ import annotations

from auditor.errors import UsageError

#: The largest number of each kind: more tokens than any vocabulary has, more rows than a device
#: holds. The product of all of them still is a number that JSON readers take.
LARGEST = {"vocabulary size": 2**31 - 1, "number of ranks": 2**16, "draft batch": 2**24}


def numbers(values: tuple[str, ...], kind: str) -> tuple[int, ...]:
    """The numbers of a list, in rising order, each once.

    ``LOW-HIGH`` stands for LOW and its doubles up to HIGH, and HIGH itself.

    Raises:
        UsageError: something in it is no whole number from 1 to the largest of its kind.
    """
    found = {
        number for value in values for item in value.split(",") for number in _item(item, kind)
    }
    return tuple(sorted(found))


def _item(text: str, kind: str) -> list[int]:
    low, dash, high = text.strip().partition("-")
    if not dash or not low:
        return [_number(text.strip(), kind)]
    first, last = _number(low.strip(), kind), _number(high.strip(), kind)
    if first > last:
        raise UsageError(f"the range {text.strip()!r} ends before it begins")
    return [*_doubles(first, last), last]


def _doubles(first: int, last: int) -> list[int]:
    steps = []
    while first < last:
        steps.append(first)
        first *= 2
    return steps


def _number(text: str, kind: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"{text[:40]!r} is no {kind}: a whole number from 1 is meant")
    number = int(text) if len(text) < 20 else LARGEST[kind] + 1
    if not 1 <= number <= LARGEST[kind]:
        raise UsageError(f"{text[:40]} is no {kind}: it goes from 1 to {LARGEST[kind]}")
    return number
