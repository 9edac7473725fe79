"""Where statements run, and how values of several branches become one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import chain

import msgspec
from msgspec import structs

from auditor.evaluation.containers import Containers
from auditor.values import (
    UNBOUND,
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
    Instance,
    Iterated,
    ModuleValue,
    Opaque,
    Place,
    PlatformMethod,
    PlatformObject,
    PythonError,
    Spec,
    Trace,
    Undecided,
    Value,
)

CONSTANT_TYPES = (bool, int, float, str, bytes, type(None))

_CONSTANTS = frozenset(CONSTANT_TYPES)

#: A width, or a precision, of five digits.
_WIDE = re.compile(r"\d{5}")

_NUMBERS = frozenset((bool, int, float))

CONTAINERS = (tuple, list, set, frozenset, dict)

IDENTITIES = (ModuleValue, ClassValue, Function, Builtin, PlatformObject, Closure, Spec)

_CHANGEABLE = frozenset((list, dict, set))

_OF_TREE = (ClassValue, Function, Instance, Closure)

_MAX_OPTIONS = 8


class Frame(msgspec.Struct):
    """Where statements run: a module, a class body, or a call.

    Attributes:
        module: the module whose globals are read.
        names: where names are bound.
        scopes: namespaces searched before the module's, innermost first.
        guards: the conditions that led here.
        doubts: exceptions that may have been raised so far, by open conditions.
        returns: values returned on branches that stayed open.
        shared: names declared ``global`` or ``nonlocal``, each with the namespace meant.
        trace: steps taken, kept for calls that serve a name.
        handling: the exception that an ``except`` block handles.
        caught_as: names that the ``except`` blocks around the statement bind, and unbind at their
            ends.
        jumps: ``break`` and ``continue`` on branches that stayed open, in the loop that runs.
        outer: where ``:=`` binds in a comprehension.
        perhaps: the open condition under which the operand that is evaluated is.
        trying: how many blocks around the statement would handle an exception.
        probing: how many of them name ``AttributeError``.
        prefix: what stands before the name of a class or function that is defined here, in its
            qualified name.
        effects: the call is run for its effects, and not for its value alone.
        unusual: what runs here now runs only where an environment variable is set.
        local: names that the text of the function that is called binds.
        wild: names that are not known may have been bound here (``exec``).
    """

    module: ModuleValue
    names: dict[str, Value]
    scopes: tuple[dict[str, Value], ...] = ()
    guards: tuple[Guard, ...] = ()
    doubts: Doubts = msgspec.field(default_factory=Doubts)
    returns: list[tuple[Guard, Value]] = msgspec.field(default_factory=list)
    shared: dict[str, dict[str, Value]] = msgspec.field(default_factory=dict)
    trace: list[Trace] | None = None
    handling: Error | None = None
    caught_as: tuple[str, ...] = ()
    jumps: list[Stop] = msgspec.field(default_factory=list)
    outer: dict[str, Value] | None = None
    perhaps: Guard | None = None
    trying: int = 0
    probing: int = 0
    is_call: bool = False
    depth: int = 0
    prefix: str = ""
    effects: bool = True
    unusual: bool = False
    local: frozenset[str] = frozenset()
    wild: Opaque | None = None

    @property
    def enclosing(self) -> tuple[dict[str, Value], ...]:
        """The namespaces that functions defined here read: not that of a class body."""
        if not self.scopes or self.is_call or self.outer is not None:
            return self.scopes
        return self.scopes[1:]

    def place(self, line: int) -> Place:
        """A line of the file that runs here."""
        return Place(self.module.path, line)

    def doubt(self, doubt: Doubt) -> None:
        """Note an exception that may be raised here, once.

        A call that checks objects of the tree itself, in a way that is not followed, is taken to
        find nothing wrong with them: nobody releases a tree that does not load anywhere.
        """
        if self.is_call and doubt.condition.own:
            return
        if self.unusual and not doubt.unusual:
            doubt = structs.replace(doubt, unusual=True)
        self.doubts.add(doubt)


def is_plain(value: Value) -> bool:
    """Whether ``value`` is a Python constant, or a container of constants, through and through."""
    kind = type(value)
    if kind in _CONSTANTS:
        return True
    if kind is dict:
        return _are_plain(value) and _are_plain(value.values())
    return isinstance(value, CONTAINERS) and _are_plain(value)


def is_wide(layout: Value, given: Collection[Value] = ()) -> bool:
    """Whether a text that values are formatted by may ask for more room than any module needs."""
    text = layout.decode("latin-1") if isinstance(layout, bytes) else layout
    if not isinstance(text, str):
        return False
    widths = any(isinstance(value, int) and abs(value) > 9_999 for value in given)
    return _WIDE.search(text) is not None or (widths and ("*" in text or "{:" in text))


def is_unordered(value: Value) -> bool:
    """Whether the order of what is in a set is another in each process, by hashes of texts."""
    if type(value) in _CONSTANTS:
        return False
    if isinstance(value, set | frozenset):
        return len(value) > 1 and not all(type(item) in _NUMBERS for item in value)
    if isinstance(value, Iterated):
        return value.unordered
    return isinstance(value, list | tuple) and any(map(is_unordered, value))


def _are_plain(values: Collection[Value]) -> bool:
    return _CONSTANTS.issuperset(map(type, values)) or all(map(is_plain, values))


def is_own(value: Value) -> bool:
    """Whether a value is an object of the tree, or comes from one in a way not followed."""
    if isinstance(value, Opaque):
        return value.own
    if isinstance(value, tuple | list):
        return any(map(is_own, value))
    if isinstance(value, Either):
        return any(map(is_own, value.values()))
    if isinstance(value, Iterated):
        return any(map(is_own, value.items))
    return isinstance(value, _OF_TREE)


def join(options: Iterable[tuple[Guard, Value]]) -> Value:
    """One value for several branches: the value itself where all agree."""
    flat: list[tuple[Guard, Value]] = []
    for guard, value in options:
        for option in value.options if isinstance(value, Either) else ((guard, value),):
            for _, known in flat:
                if same(option[1], known):
                    break
            else:
                flat.append(option)
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
    place: Place, text: str, usual: bool | None = None, key: str = "", own: bool = False
) -> tuple[Guard, Guard]:
    """The guards of the two branches of an open condition: where it holds, and where not."""
    flipped, name = key.startswith("!"), key.removeprefix("!")
    unusual = None if usual is None else not usual
    return (
        Guard(place, text, None, flipped, usual, name, own),
        Guard(place, text, None, not flipped, unusual, name, own),
    )


def opposite(guard: Guard) -> Guard:
    """The guard of the other branch."""
    usual = None if guard.usual is None else not guard.usual
    return structs.replace(guard, negated=not guard.negated, usual=usual)


def doubtful(raising: Guard, reason: str) -> Undecided:
    """The condition of a doubt that arises where ``raising`` is the case: that it is not."""
    key = raising.identity if raising.negated else f"!{raising.identity}"
    return Undecided(reason, raising.where, raising.text, key, raising.own)


#: Namespaces at the ends of branches, each with the branch's guard.
Ends = list[tuple[Guard, dict[str, Value]]]


def joined(ends: Ends) -> dict[str, Value]:
    """The namespace after several branches: one value a name, or one by each condition."""
    if len(ends) == 1:
        return ends[0][1]
    first, *others = [names for _, names in ends]
    result: dict[str, Value] = {}
    for name in dict.fromkeys(chain(first, *others)):
        value = first.get(name, UNBOUND)
        for names in others:
            other = names.get(name, UNBOUND)
            # Most names are bound before the branches, and by none of them.
            if other is not value and not same(value, other):
                value = join([(guard, names.get(name, UNBOUND)) for guard, names in ends])
                break
        result[name] = value
    return result


def replace_names(names: dict[str, Value], state: dict[str, Value]) -> None:
    """Make ``state`` what a namespace holds; the namespace stays the same object."""
    if names is not state:
        names.clear()
        names.update(state)


class Snapshot:
    """A namespace before a branch.

    Each branch gets copies of the containers, since it may change them; one that all branches
    leave behind alike is the object it was, which other names and modules may share.
    """

    def __init__(self, names: dict[str, Value], containers: Containers) -> None:
        self._names = dict(names)
        self._held = [item for item in names.items() if type(item[1]) in _CHANGEABLE]
        self._containers = containers
        self._originals: dict[int, tuple[Value, Value]] = {}

    def copy(self, guards: tuple[Guard, ...] = ()) -> dict[str, Value]:
        """The namespace with copies of the containers; names that share one share the copy.

        ``guards`` are the open conditions of the branch that the copies are for.
        """
        copies: dict[int, Value] = {}
        names = dict(self._names)
        for name, value in self._held:
            names[name] = copy = copies.setdefault(id(value), type(value)(value))
            self._originals[id(copy)] = (copy, value)
            self._containers.copied(value, copy, guards)
        return names

    def restore(self, names: dict[str, Value], guards: tuple[Guard, ...]) -> None:
        """Set ``names`` back, with copies of the containers for a branch."""
        replace_names(names, self.copy(guards))

    def adopt(self, names: dict[str, Value], after: dict[str, Value]) -> None:
        """Set ``names`` to what branches left behind, in the containers that there were."""
        for name, value in after.items() if self._originals else ():
            if id(value) in self._originals:
                after[name] = _refilled(self._originals[id(value)][1], value)
            elif type(value) is Either:
                after[name] = Either(tuple([(g, self._outside(g, v)) for g, v in value.options]))
        replace_names(names, after)

    def _outside(self, guard: Guard, value: Value) -> Value:
        """What a branch leaves of a container: itself, where it was left alone.

        One that branches leave in different states is not known to others that hold it.
        """
        if id(value) not in self._originals:
            return value
        original = self._originals[id(value)][1]
        if same(value, original):
            return original
        why = Opaque("changed on an open branch", guard.where, guard.text, own=guard.own)
        self._containers.lose(original, why)
        return value


def _refilled(container: Value, content: Value) -> Value:
    if isinstance(container, list):
        container[:] = content
    else:
        items = type(content)(content)
        container.clear()
        container.update(items)
    return container


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


class UnfollowedError(Exception):
    """A call asks too many open questions about objects of the tree to be followed."""


class Stop(msgspec.Struct, frozen=True):
    """A branch that did not run through: how it ended, and the namespace it had by then."""

    guard: Guard
    signal: Exception
    names: dict[str, Value]


#: How a branch can end other than by running through.
SIGNALS = (PythonError, Returning, Jumping)
