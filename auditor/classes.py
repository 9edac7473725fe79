"""Classes: the linearisation across modules, and attribute lookup as ``hasattr`` does it.

The C3 algorithm is Python's own (Simionato, "The Python 2.3 Method Resolution Order"). Bases
outside the tree take part as classes without known bases: they are named, and taken not to
provide a capability of the tree. A base that could not be resolved stays in the result as a
value, and makes a lookup that reaches it undecided.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from auditor.facts import Assign, Bind, Class, Delete, Func, Handler, Name, Stmt
from auditor.facts import Sequence as Display
from auditor.values import (
    UNBOUND,
    Builtin,
    ClassValue,
    Either,
    Foreign,
    Opaque,
    Place,
    Undecided,
    Value,
)

_Item = TypeVar("_Item")

_OBJECT = Builtin("object")


class InconsistentOrder(Exception):  # noqa: N818 - an outcome that Python names so
    """No linearisation satisfies all bases (Python raises ``TypeError`` there)."""

    def __init__(self, candidates: Sequence[object]) -> None:
        names = ", ".join(member_name(one).rpartition(".")[2] for one in dict.fromkeys(candidates))
        # The words of CPython, line break and all (Objects/typeobject.c, set_mro_error).
        super().__init__(
            f"Cannot create a consistent method resolution\norder (MRO) for bases {names}"
        )
        self.candidates = candidates


def merge(sequences: Iterable[Sequence[_Item]]) -> list[_Item]:
    """C3's merge: take the first head that is in no tail, until nothing is left.

    Raises:
        InconsistentOrder: every head stands in some tail.
    """
    pending = [list(sequence) for sequence in sequences if sequence]
    result: list[_Item] = []
    while pending:
        tails = [sequence[1:] for sequence in pending]
        for sequence in pending:
            head = sequence[0]
            if not [tail for tail in tails if head in tail]:
                break
        else:
            raise InconsistentOrder([sequence[0] for sequence in pending])
        result.append(head)
        pairs = zip(pending, tails, strict=True)
        pending = [rest for other, tail in pairs if (rest := tail if other[0] == head else other)]
    return result


def linearise(cls: ClassValue) -> tuple[Value, ...]:
    """The MRO of ``cls``: classes of the tree, foreign ones, and unresolved values, in order.

    Raises:
        InconsistentOrder: as Python's ``TypeError`` at class creation.
    """
    if cls.mro is None:
        if len(cls.bases) == 1:
            order = _mro_of(cls.bases[0])
        else:
            order = merge([*map(_mro_of, cls.bases), cls.bases])
        # ``object`` is last in every MRO; leaving it out keeps foreign classes comparable.
        cls.mro = (cls, *(member for member in order if member != _OBJECT))
    result: tuple[Value, ...] = cls.mro
    return result


class Order:
    """The MRO of a class as a key; its members are told apart as objects.

    A base may turn out to be anything, a list too, which has no hash. The key keeps them alive.
    """

    __slots__ = ("_members",)

    def __init__(self, cls: ClassValue) -> None:
        self._members = linearise(cls)

    def __hash__(self) -> int:
        return hash(tuple(map(id, self._members)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Order) or len(self._members) != len(other._members):
            return False
        return all(map(operator.is_, self._members, other._members))


def _mro_of(base: Value) -> Sequence[Value]:
    if base == _OBJECT:
        return (base,)
    return (*linearise(base), _OBJECT) if isinstance(base, ClassValue) else (base, _OBJECT)


class Found(msgspec.Struct, frozen=True):
    """An attribute that the class has: who provides it, where, and how it got there."""

    owner: ClassValue
    where: Place
    how: str


class Missing(msgspec.Struct, frozen=True):
    """No class of the MRO has the attribute. ``foreign`` are the bases not looked into."""

    foreign: tuple[Foreign, ...]


class Open(msgspec.Struct, frozen=True):
    """It cannot be said whether the class has the attribute."""

    why: Undecided


Lookup = Found | Missing | Open


def lookup(cls: ClassValue, name: str) -> Lookup:
    """What ``hasattr(cls, name)`` would find, and where.

    An attribute set to None exists; an annotation without a value does not (both as Python).
    """
    foreign: list[Foreign] = []
    still_open: Open | None = None
    for member in linearise(cls):
        if isinstance(member, ClassValue):
            found = own_attribute(member, name)
            if isinstance(found, Found):
                # An open base before it may hide it with its own, but cannot take it away.
                return found
            still_open = still_open or found
        elif isinstance(member, Foreign):
            foreign.append(member)
        elif not isinstance(member, Builtin):
            still_open = still_open or Open(_why_open(cls, member))
    return still_open or Missing(tuple(foreign))


def _why_open(cls: ClassValue, base: Value) -> Undecided:
    match base:
        case Opaque(reason=reason, where=where, text=text):
            return Undecided(f"a base of {cls.dotted} is not known: {reason}", where, text)
        case Either(options=options):
            guard = options[0][0]
            why = f"a base of {cls.dotted} depends on an open condition"
            return Undecided(why, guard.where, guard.text)
        case _:
            where = Place(cls.module.path, cls.facts.line)
            return Undecided(f"a base of {cls.dotted} is a {type(base).__name__}", where)


def member_name(member: Value) -> str:
    """The name of a member of an MRO, for a person."""
    match member:
        case ClassValue():
            return member.dotted
        case Foreign(name=name) | Builtin(name=name):
            return name
        case Opaque(text=text):
            return text or "an unresolved base"
        case _:
            return "an unresolved base"


def derives(cls: Value, base: Value) -> bool | None:
    """``issubclass(cls, base)``, or None where a base outside the tree may decide it."""
    if isinstance(cls, Builtin) and isinstance(base, Builtin):
        left, right = (getattr(builtins, one.name, None) for one in (cls, base))
        return (
            issubclass(left, right) if isinstance(left, type) and isinstance(right, type) else None
        )
    if isinstance(cls, Builtin) and isinstance(base, ClassValue):
        return False
    if not isinstance(cls, ClassValue) or not isinstance(base, ClassValue | Builtin | Foreign):
        return None
    members = linearise(cls)
    if base == _OBJECT or base in members:
        return True
    answers = [derives(one, base) for one in members if isinstance(one, Builtin)]
    if True in answers:
        return True
    open_ones = any(not isinstance(one, ClassValue | Builtin) for one in members)
    return None if open_ones else False


def own_attribute(cls: ClassValue, name: str) -> Found | Open | None:
    """The attribute as ``cls`` itself has it: from its body, or set from outside."""
    cls.finish()
    if name in cls.extra:
        value, where = cls.extra[name]
        return _presence(cls, value, where, "assigned from outside the class body")
    namespace = body_namespace(cls)
    if name[:1] == "_" and name[-2:] != "__" and name[name.find("__") :] in namespace:
        private = name.find("__")
        if private >= 0:
            # ``__x`` in a class body is bound, and read, as ``_Class__x``.
            where = Place(cls.module.path, body_lines(cls).get(name[private:], cls.facts.line))
            return Open(Undecided(f"{name[private:]} is a private name", where))
    if name in namespace:
        where = Place(cls.module.path, body_lines(cls).get(name, cls.facts.line))
        return _presence(cls, namespace[name], where, "defined in the class body")
    slots = namespace.get("__slots__")
    if slots is not None and (
        slots == name or (isinstance(slots, tuple | list | dict) and name in slots)
    ):
        return Found(cls, Place(cls.module.path, cls.facts.line), "a slot")
    if cls.wild is not None:
        return Open(Undecided(cls.wild.reason, cls.wild.where, cls.wild.text))
    return None


def own_value(cls: ClassValue, name: str) -> Value:
    """The value of an attribute that ``cls`` itself has, or UNBOUND."""
    if name in cls.extra:
        return cls.extra[name][0]
    return body_namespace(cls).get(name, UNBOUND)


def _presence(cls: ClassValue, value: Value, where: Place, how: str) -> Found | Open | None:
    if value is UNBOUND:
        return None
    if isinstance(value, Either) and any(option is UNBOUND for option in value.values()):
        guard = value.options[0][0]
        why = f"whether {cls.dotted} has it depends on an open condition"
        return Open(Undecided(why, guard.where, guard.text))
    return Found(cls, where, how)


def body_namespace(cls: ClassValue) -> dict[str, Value]:
    """The namespace of the class body; for a plain body, read off its facts when first asked."""
    if cls.namespace is None:
        cls.namespace = {}
        for fact in cls.facts.body:
            for name, value in _plain_bindings(fact):
                cls.namespace[name] = value
    return cls.namespace


def body_lines(cls: ClassValue) -> dict[str, int]:
    """The line of the last statement of the class body that binds each name, branches included.

    Read off the facts when first asked, and kept: a class is asked for many names.
    """
    if cls.lines is None:
        cls.lines = dict(_binding_lines(cls.facts.body))
    return cls.lines


def _binding_lines(body: Iterable[Stmt | Handler]) -> Iterator[tuple[str, int]]:
    for stmt in body:
        match stmt:
            case Func(name=name, line=line) | Class(name=name, line=line):
                yield name, line
            case Assign(targets=targets, line=line) | Delete(targets=targets, line=line):
                yield from ((target.id, line) for target in targets if isinstance(target, Name))
            case Handler(name=str() as name, line=line, body=inner):
                yield name, line
                yield from _binding_lines(inner)
            case _:
                for block in ("body", "handlers", "orelse", "final"):
                    yield from _binding_lines(getattr(stmt, block, ()))


def _plain_bindings(fact: object) -> Iterator[tuple[str, Value]]:
    match fact:
        case Func(name=name):
            yield name, Opaque(f"method {name}")
        case Assign(targets=targets, value=value):
            constant = getattr(value, "value", None)
            for target in targets:
                if isinstance(target, Name):
                    yield target.id, constant
                elif isinstance(target, Display):
                    yield from (
                        (item.id, Opaque("unpacked"))
                        for item in target.items
                        if isinstance(item, Name)
                    )
        case Bind(names=names):
            yield from ((name, Opaque("bound")) for name in names)
        case _:
            return
