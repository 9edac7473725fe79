"""Lists, dicts and sets that the run changes: who shares them, and what is known of them.

A container can be changed on a branch of an open condition while others hold it too. The branch
that changes it sees what it did; afterwards nobody knows what is in it. Only a container that was
made on the branch itself, such as a copy of a namespace's, is changed there without leaving a
doubt.
"""

from __future__ import annotations

from auditor.values import Guard, Opaque, Value

_Guards = tuple[Guard, ...]

#: Methods of containers that change them.
MUTATING_METHODS = frozenset(
    ("append extend insert remove add discard update setdefault pop clear sort reverse").split()
)


class Containers:
    """What one run knows of its containers, by their identity.

    Each entry holds the container itself, so that no other object can take its identity.
    """

    def __init__(self) -> None:
        self._made: dict[int, tuple[Value, _Guards]] = {}
        self._changed: dict[int, tuple[Value, int]] = {}
        self._lost: dict[int, tuple[Value, Opaque]] = {}
        self._on_branch: list[tuple[Value, Guard]] = []

    def made(self, container: Value, guards: _Guards) -> None:
        """A container is made under these open conditions."""
        if guards:
            self._made[id(container)] = (container, guards)

    def changes(self, container: Value, guards: _Guards, step: int) -> None:
        """A container is changed in statement ``step``, under these open conditions."""
        self._changed[id(container)] = (container, step)
        if len(self._guards_of(container)) < len(guards):
            self._on_branch.append((container, guards[-1]))

    def _guards_of(self, container: Value) -> _Guards:
        entry = self._made.get(id(container))
        return entry[1] if entry is not None else ()

    def mark(self) -> int:
        """A position for :meth:`leave`."""
        return len(self._on_branch)

    def leave(self, mark: int) -> None:
        """A branch ends: what it changed and others hold is not known any more."""
        reason = "changed on an open branch"
        for container, guard in self._on_branch[mark:]:
            self.lose(container, Opaque(reason, guard.where, guard.text, own=guard.own))
        del self._on_branch[mark:]

    def lose(self, container: Value, why: Opaque) -> None:
        """What is in a container is not known any more, by whatever name it is read."""
        self._lost[id(container)] = (container, why)

    def lose_lists(self, step: int, why: Opaque) -> None:
        """Of lists that were changed after statement ``step`` it is not known what is in them."""
        for container, changed in list(self._changed.values()):
            if changed > step and isinstance(container, list):
                self.lose(container, why)

    def lost(self, container: Value) -> Opaque | None:
        """Why it is not known what is in a container; None where it is known."""
        if not self._lost:
            return None
        entry = self._lost.get(id(container))
        return entry[1] if entry is not None else None

    def changed_since(self, container: Value, step: int) -> bool:
        """Whether a container was changed after statement ``step``, or is not known any more."""
        entry = self._changed.get(id(container))
        return (entry is not None and entry[1] > step) or id(container) in self._lost

    def copied(self, container: Value, copy: Value, guards: _Guards) -> None:
        """A container is copied for a branch, and its copy known as far as it is."""
        self.made(copy, guards)
        why = self.lost(container)
        if why is not None:
            self.lose(copy, why)


def beyond(guards: _Guards, known: _Guards) -> _Guards:
    """The open conditions of ``guards`` that are not among those of ``known``, its beginning."""
    common = 0
    for left, right in zip(guards, known, strict=False):
        if left != right:
            break
        common += 1
    return guards[common:]


def as_one(guards: _Guards) -> Guard:
    """One guard for several conditions that must all hold."""
    if len(guards) == 1:
        return guards[0]
    text = " and ".join(map(str, guards))
    return Guard(guards[-1].where, text, None)
