"""Where statements run, and how values of several branches become one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from auditor.values import (
    Builtin,
    ClassValue,
    Closure,
    Doubt,
    Doubts,
    Either,
    Error,
    Foreign,
    Function,
    Guard,
    ModuleValue,
    Opaque,
    Place,
    PlatformMethod,
    PlatformObject,
    PythonError,
    Trace,
    Value,
)

CONSTANT_TYPES = (bool, int, float, str, bytes, type(None))

CONTAINERS = (tuple, list, set, frozenset, dict)

IDENTITIES = (ModuleValue, ClassValue, Function, Builtin, PlatformObject, Closure)

_MAX_OPTIONS = 8


@dataclass(slots=True)
class Frame:
    """Where statements run: a module, a class body, or a call.

    Attributes:
        module: the module whose globals are read.
        names: where names are bound.
        scopes: namespaces searched before the module's, innermost first.
        guards: the conditions that led here.
        doubts: exceptions that may have been raised so far, by open conditions.
        returns: values returned on branches that stayed open.
        shared: names declared ``global`` or ``nonlocal``.
        trace: steps taken, kept for calls that serve a name.
        handling: the exception that an ``except`` block handles.
        trying: how many blocks around the statement would handle an exception.
    """

    module: ModuleValue
    names: dict[str, Value]
    scopes: tuple[dict[str, Value], ...] = ()
    guards: tuple[Guard, ...] = ()
    doubts: Doubts = field(default_factory=lambda: Doubts())
    returns: list[tuple[Guard, Value]] = field(default_factory=list)
    shared: set[str] = field(default_factory=set)
    trace: list[Trace] | None = None
    handling: Error | None = None
    trying: int = 0
    is_call: bool = False
    depth: int = 0

    def place(self, line: int) -> Place:
        """A line of the file that runs here."""
        return Place(self.module.path, line)

    def doubt(self, doubt: Doubt) -> None:
        """Note an exception that may be raised here, once."""
        self.doubts.add(doubt)


def is_plain(value: Value) -> bool:
    """Whether ``value`` is a Python constant, or a container of constants, through and through."""
    if isinstance(value, CONSTANT_TYPES):
        return True
    if isinstance(value, dict):
        return all(is_plain(k) and is_plain(v) for k, v in value.items())
    return isinstance(value, CONTAINERS) and all(map(is_plain, value))


def join(options: Iterable[tuple[Guard, Value]]) -> Value:
    """One value for several branches: the value itself where all agree."""
    flat: list[tuple[Guard, Value]] = []
    for guard, value in options:
        inner = value.options if isinstance(value, Either) else ((guard, value),)
        flat.extend(option for option in inner if not any(same(option[1], v) for _, v in flat))
    if len(flat) == 1:
        return flat[0][1]
    if len(flat) > _MAX_OPTIONS:
        guard = flat[0][0]
        return Opaque(f"one of {len(flat)} values", guard.where, guard.text)
    return Either(tuple(flat))


def same(left: Value, right: Value) -> bool:
    """Whether two values are surely the same object or equal constants of one type."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, Foreign | Builtin | PlatformMethod | PlatformObject):
        return bool(left == right)
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return is_plain(left) and is_plain(right) and bool(left == right)


def guard_pair(
    place: Place, text: str, usual: bool | None = None, key: str = ""
) -> tuple[Guard, Guard]:
    """The guards of the two branches of an open condition: where it holds, and where not."""
    flipped, name = key.startswith("!"), key.removeprefix("!")
    unusual = None if usual is None else not usual
    return (
        Guard(place, text, None, flipped, usual, name),
        Guard(place, text, None, not flipped, unusual, name),
    )


class Returning(Exception):  # noqa: N818 - not an error
    """``return`` on its way to the call."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Jumping(Exception):  # noqa: N818 - not an error
    """``break`` or ``continue`` on its way to the loop."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind


#: How a branch can end other than by running through.
SIGNALS = (PythonError, Returning, Jumping)
