"""What a generated package consists of, and the decisions it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

_Item = TypeVar("_Item")

CLASSES = ("Foo", "Bar", "Base", "Mixin")
CONSTANTS = ("x", "y", "flag", "b")
FUNCTIONS = ("probe", "supported")
#: Names served by a module's ``__getattr__``, or looked for on modules.
LAZY = ("Foo", "Lazy", "flag", "b")


class Choices:
    """Decisions read off a string of bytes; the first item, and no, where it is zero or over.

    One string is drawn at once, and made smaller at once: hundreds of single draws an example
    would take longer than importing it.
    """

    def __init__(self, data: bytes) -> None:
        self._bytes = iter(data)

    def pick(self, items: Sequence[_Item]) -> _Item:
        """One of a few items."""
        return items[next(self._bytes, 0) % len(items)] if len(items) > 1 else items[0]

    def chance(self, percent: int) -> bool:
        """Yes in so many of a hundred cases."""
        return next(self._bytes, 0) * 100 >= (100 - percent) * 256

    def order(self, items: Sequence[_Item]) -> list[_Item]:
        """The items in some order."""
        left, result = list(items), []
        while left:
            result.append(self.pick(left))
            left.remove(result[-1])
        return result


@dataclass
class World:
    """All modules of a package, and what those written so far bind."""

    choices: Choices
    packages: dict[str, bool]
    open: tuple[str, ...]
    exports: dict[str, dict[str, str]] = field(default_factory=dict)
