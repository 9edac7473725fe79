"""Truth, in three values, and what the special methods of a class give.

What is not known is :class:`~auditor.values.Undecided`, with the name of the condition where it has
one, so that the branch being followed can settle it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import structs

from auditor.classes import Missing, linearise, lookup
from auditor.evaluation.frame import (
    CONSTANT_TYPES,
    CONTAINERS,
    IDENTITIES,
    Frame,
    is_own,
    is_unordered,
)
from auditor.evaluation.machine import Machine
from auditor.evaluation.standins import (
    has_no_hash,
    is_key,
    makes_itself,
    may_define,
    outside,
    stand_in,
)
from auditor.values import (
    UNBOUND,
    ClassValue,
    Doubt,
    Either,
    Error,
    Foreign,
    Guard,
    Instance,
    Iterated,
    Method,
    Opaque,
    Place,
    PlatformMethod,
    PythonError,
    Release,
    Spec,
    Undecided,
    Value,
    Version,
    builtin_error,
)

OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
    "+": operator.add, "-": operator.sub, "*": operator.mul, "%": operator.mod,
    "//": operator.floordiv, "|": operator.or_, "&": operator.and_, "^": operator.xor,
    "/": operator.truediv, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip

#: ``left op= right``: a list, set or dict changes itself, which other names may share.
IN_PLACE: dict[str, Callable[[Value, Value], Value]] = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "%": operator.imod,
    "//": operator.ifloordiv, "|": operator.ior, "&": operator.iand, "^": operator.ixor,
    "/": operator.itruediv, "**": operator.ipow, "<<": operator.ilshift, ">>": operator.irshift,
}  # fmt: skip


_Result = TypeVar("_Result")
#: Special methods that compute: of both operands, and in place.
COMPUTING = {
    op: (f"__{name}__", f"__r{name}__", f"__i{name}__")
    for op, name in {
        "+": "add", "-": "sub", "*": "mul", "%": "mod", "//": "floordiv", "|": "or", "&": "and",
        "^": "xor", "/": "truediv", "**": "pow", "<<": "lshift", ">>": "rshift",
    }.items()
}  # fmt: skip
ITERATING = ("__iter__", "__getitem__")
#: The longest range whose items are listed: no module needs more, and a short text may name any.
_MOST_ITEMS = 10_000


def _derived(order: list[tuple[Value, str, Value]], index: int) -> bool:
    """Whether a later operand may be asked first: one whose class derives from this one's."""
    mine = order[index][0]
    return isinstance(mine, Instance) and any(
        isinstance(other, Instance)
        and other.cls is not mine.cls
        and mine.cls in linearise(other.cls)
        for other, _, _ in order[index + 1 :]
    )


class Passage:
    """A part of a run; what is settled on the way, and ``guard`` from the start, ends with it.

    A class rather than a generator: every call of a function of the tree goes through one.
    """

    __slots__ = ("_before", "_guard", "_mark", "_run")

    def __init__(self, run: Machine, guard: Guard | None = None) -> None:
        self._run, self._guard = run, guard

    def __enter__(self) -> None:
        run, guard = self._run, self._guard
        self._before, self._mark = (run.known, run.open_guards), run.containers.mark()
        if guard is not None:
            run.known = {**run.known, guard.identity: not guard.negated}
            run.open_guards = (*run.open_guards, guard)

    def __exit__(self, *raised: object) -> None:
        known, guards = self._before
        if self._run.open_guards is not guards:
            self._run.known, self._run.open_guards = known, guards
            self._run.containers.leave(self._mark)


class Truth(Machine):
    """Decides conditions."""

    def alive(self, either: Either) -> tuple[tuple[Guard, Value], ...]:
        """The options that the branch being followed leaves possible."""
        options = either.options
        for guard, _ in options:
            if guard.usual is False:
                self.environment_asked += 1
                if self.bare_environment:
                    options = tuple([o for o in options if o[0].usual is not False]) or options
                break
        if self.known:
            options = tuple([o for o in options if self._possible(o[0])]) or options
        return options

    def branch(self, guard: Guard) -> Passage:
        """Follow one branch of an open condition."""
        return Passage(self, guard)

    def passage(self) -> Passage:
        """Run a call, or a round of a loop: what it finds settled on its way ends with it."""
        return Passage(self)

    def _possible(self, guard: Guard) -> bool:
        settled = self.known.get(guard.identity)
        return settled is None or settled is not guard.negated

    def settled(self, key: str) -> bool | None:
        """What the branch being followed says of a named condition."""
        if not key or not self.known:
            return None
        value = self.known.get(key.removeprefix("!"))
        return value if value is None or not key.startswith("!") else not value

    def truth(self, value: Value, frame: Frame) -> bool | Undecided:
        """``bool(value)``, or why it is open."""
        value = self.force(value, frame)
        if isinstance(value, bool):
            return value
        match value:
            case Undecided():
                return value
            case Opaque(truth=bool() as settled):
                return settled
            case Opaque(key=key) as opaque:
                known = self.settled(key)
                return opaque.why() if known is None else known
            case Either():
                options = self.alive(value)
                return self._agreed(
                    [(guard, self.truth(option, frame)) for guard, option in options]
                )
            case Foreign(name=name):
                return Undecided(f"the value of {name} is not known", None, name)
            case PlatformMethod() | Method() | Spec() | Version() | Release():
                return True
            case Instance():
                return self._instance_truth(value, frame)
            case Iterated(items=items, over=over):
                return over is UNBOUND or bool(items)
            case ClassValue() if may_define(value, "__bool__", "__len__"):
                answer = self._special_truth(value, frame)
                unknown = Undecided(f"the truth of {value.qualname} is not known", own=True)
                return unknown if answer is None else answer
            case _ if isinstance(value, IDENTITIES):
                return True
            case _ if isinstance(value, (*CONSTANT_TYPES, *CONTAINERS)):
                return bool(value)
            case _:
                return Undecided(f"the truth of a {type(value).__name__} is not known")

    def _agreed(self, truths: list[tuple[Guard, bool | Undecided]]) -> bool | Undecided:
        """One truth where all options agree; else the condition that tells them apart."""
        first = truths[0][1]
        if isinstance(first, bool) and all(truth is first for _, truth in truths):
            return first
        guard = truths[0][0]
        key = ""
        if len(truths) == 2 and truths[0][0].identity == truths[1][0].identity:
            answers = {guard.negated: truth for guard, truth in truths}
            if answers.get(False) is True and answers.get(True) is False:
                key = guard.identity
            elif answers.get(False) is False and answers.get(True) is True:
                key = f"!{guard.identity}"
        why = f"depends on `{guard.text}` at {guard.where}, which is open"
        return Undecided(why, guard.where, guard.text, key, guard.own)

    def first_of(self, order: list[tuple[Value, str, Value]], frame: Frame, line: int) -> Value:
        """What the first special method of the tree gives; UNBOUND where there is none.

        One that is not followed may leave it to those behind it (``NotImplemented``).
        """
        made: Value = UNBOUND
        for index, (owner, name, other) in enumerate(order):
            if made is not UNBOUND:
                self.special(owner, name, (other,), frame, line, run=False)
                continue
            before = _derived(order, index)
            found = self.special(owner, name, (other,), frame, line, run=not before)
            made = self.force(found, frame)
            if made is not UNBOUND and not isinstance(made, Opaque | Either):
                return made
        return made

    def lose_items(self, values: Value, names: tuple[str, ...], frame: Frame, line: int) -> None:
        """Nothing is known of what special methods of the objects in a container do."""
        for value in values if isinstance(values, CONTAINERS) else ():
            if isinstance(value, Instance):
                for name in names:
                    self.special(value, name, (), frame, line, run=False)

    def _special_truth(self, value: Value, frame: Frame) -> bool | Undecided | None:
        """What ``__bool__`` or else ``__len__`` of the tree say; None where it has neither."""
        for name in ("__bool__", "__len__"):
            answer = self.special(value, name, (), frame, 0)
            if answer is not UNBOUND:
                answer = self.force(answer, frame)
                kinds = (bool, int) if name == "__len__" else (bool,)
                known = type(answer) in kinds and not (type(answer) is int and answer < 0)
                return bool(answer) if known else Undecided(f"what {name}() gives is not known")
        return None

    def iterates(self, value: Value, frame: Frame, line: int) -> None:
        """Run what iterating over an object of the tree runs first."""
        if isinstance(value, Instance | ClassValue):
            self.special(value, "__iter__", (), frame, line)

    def _instance_truth(self, made: Instance, frame: Frame) -> bool | Undecided:
        answer, cls, where = self._special_truth(made, frame), made.cls, made.where
        if answer is not None:
            return answer
        for special in ("__bool__", "__len__"):
            found = lookup(cls, special)
            if not isinstance(found, Missing) or found.foreign:
                return Undecided(f"the truth of a {cls.qualname} object is not known", where)
        if not makes_itself(cls):
            return Undecided(f"what {cls.qualname}() gives is not known", where)
        return True

    def _of_each(
        self, either: Either, function: Callable[[Value], _Result], frame: Frame
    ) -> list[tuple[Guard, _Result]]:
        """What ``function`` gives for each option; where it raises on some, a doubt remains."""
        results: list[tuple[Guard, _Result]] = []
        errors: list[tuple[Guard, PythonError]] = []
        for guard, option in self.alive(either):
            try:
                results.append((guard, function(option)))
            except PythonError as raised:
                errors.append((guard, raised))
        for guard, failed in errors if results else errors[1:]:
            why = Undecided("one of several values", guard.where, str(guard), "", guard.own)
            frame.doubt(Doubt(failed.error, why))
        if not results:
            raise errors[0][1]
        return results

    def listed(self, value: Value, frame: Frame, *, ordered: bool = False) -> Value:
        """What is iterated over: of an iterator or a view the items, as far as they are known.

        Where the result is ``ordered``, nothing is known of those of a set.
        """
        value = self.force(value, frame)
        if ordered and isinstance(value, set | frozenset | Iterated) and is_unordered(value):
            return Opaque("the order of a set", own=is_own(value))
        if type(value) is range and value[_MOST_ITEMS:]:
            return Opaque("more items than are followed")
        if type(value) is not Iterated:
            return value
        over = value.over
        unchanged = over is not UNBOUND and not self.containers.changed_since(over, value.step)
        if unchanged or value.step == self.steps:
            return value.items
        return Opaque("an iterator that may be used up", own=is_own(value))

    def hashed(self, value: Value, frame: Frame, line: int) -> bool:
        """Whether a value is told apart from others, as a key, as it is in the run.

        Raises:
            PythonError: ``TypeError``, where it surely has no hash.
        """
        if type(value) is str:
            return True
        if has_no_hash(value):
            message = f"unhashable type: {value.cls.facts.name!r}"
            raise PythonError(builtin_error("TypeError", message, frame.place(line)))
        return is_key(value)

    def refuse(
        self,
        function: Callable[[Any], object],
        value: Value,
        asked: tuple[str, ...],
        frame: Frame,
        line: int,
    ) -> None:
        """Raise what Python does where the type of a value does not support ``function``.

        ``asked`` are the special methods by which a class of the tree would.
        """
        if type(value) is Either:
            self._of_each(value, lambda v: self.refuse(function, v, asked, frame, line), frame)
            return
        stand = stand_in(value, asked)
        if stand is UNBOUND:
            return
        # What is done to it is not done to the value.
        stand = type(stand)() if isinstance(stand, list | dict | set) else outside(stand)
        try:
            function(stand)
        except TypeError as error:
            raise PythonError(self.raised(error, frame.place(line))) from error
        except (ValueError, LookupError):
            return

    def _python(
        self,
        function: Callable[[Value, Value], Value],
        left: Value,
        right: Value,
        frame: Frame,
        line: int,
    ) -> Value:
        """Let Python compute on constants, and turn its exception into one of the run."""
        try:
            return function(left, right)
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
            raise PythonError(self.raised(error, frame.place(line))) from error

    @staticmethod
    def raised(error: Exception, place: Place) -> Error:
        """The exception of the run for one that Python raised on constants."""
        message = str(error.args[0]) if error.args else ""
        if isinstance(error, KeyError):
            message = repr(error.args[0])
        return builtin_error(type(error).__name__, message, place)

    def _placed(self, why: Undecided, frame: Frame, line: int) -> Undecided:
        return why if why.where else structs.replace(why, where=frame.place(line))
