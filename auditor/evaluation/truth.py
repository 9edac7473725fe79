"""Truth and comparisons, in three values.

``x in "text"`` is a substring test, ``a < b < c`` stops early, and ``None`` is compared by
identity, as in Python. What is not known is :class:`~auditor.values.Undecided`, with the name of
the condition where it has one, so that the branch being followed can settle it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec import structs

from auditor import releases
from auditor.classes import Missing, linearise, lookup
from auditor.evaluation.frame import (
    CONSTANT_TYPES,
    CONTAINERS,
    IDENTITIES,
    Frame,
    is_own,
    is_plain,
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
    Function,
    Guard,
    Instance,
    Iterated,
    Method,
    ModuleValue,
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


#: Special methods that order, and those that compute; of both operands, and in place.
_METHODS = {
    "==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__",
}  # fmt: skip
_Result = TypeVar("_Result")
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDERING = ("__lt__", "__le__", "__gt__", "__ge__")
COMPUTING = {
    op: (f"__{name}__", f"__r{name}__", f"__i{name}__")
    for op, name in {
        "+": "add", "-": "sub", "*": "mul", "%": "mod", "//": "floordiv", "|": "or", "&": "and",
        "^": "xor", "/": "truediv", "**": "pow", "<<": "lshift", ">>": "rshift",
    }.items()
}  # fmt: skip
ITERATING = ("__iter__", "__getitem__")


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

    def _asked(
        self, op: str, left: Value, right: Value, frame: Frame, line: int
    ) -> bool | Undecided | None:
        """What special methods of the tree say to a comparison; None where there are none."""
        order = [(left, _METHODS[op], right), (right, _METHODS[_MIRRORED[op]], left)]
        answer = self.first_of(order, frame, line)
        if answer is UNBOUND and op == "!=":
            answer = self.first_of([(left, "__eq__", right), (right, "__eq__", left)], frame, line)
            answer = not answer if isinstance(answer, bool) else answer
        if isinstance(answer, bool):
            return answer
        if answer is UNBOUND:
            return None
        return Undecided(f"what {_METHODS[op]}() gives is not known", frame.place(line), own=True)

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

    def compare(
        self, op: str, left: Value, right: Value, frame: Frame, line: int
    ) -> bool | Undecided:
        """One comparison in three values."""
        left, right = self.force(left, frame), self.force(right, frame)
        for value, swapped in ((left, False), (right, True)):
            if isinstance(value, Either):
                return self._compare_each(op, left, right, swapped, frame, line)
        if op in ("is not", "not in"):
            positive = self.compare(op.replace("not", "").strip(), left, right, frame, line)
            if isinstance(positive, Undecided):
                key = positive.key
                key = key.removeprefix("!") if key.startswith("!") else key and f"!{key}"
                return structs.replace(positive, key=key)
            return not positive
        if op == "is":
            return self._identical(left, right)
        if op == "in":
            return self._contains(left, right, frame, line)
        return self._ordered(op, left, right, frame, line)

    def _compare_each(
        self, op: str, left: Value, right: Value, swapped: bool, frame: Frame, line: int
    ) -> bool | Undecided:
        def compared(option: Value) -> bool | Undecided:
            pair = (left, option) if swapped else (option, right)
            return self.compare(op, *pair, frame, line)

        return self._agreed(self._of_each(right if swapped else left, compared, frame))

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

    def _identical(self, left: Value, right: Value) -> bool | Undecided:
        for value in (left, right):
            if isinstance(value, Opaque):
                return Undecided(value.reason, value.where, value.text, "", value.own)
        if left is right and isinstance(left, list | dict | set | Instance):
            return True
        if left is None or right is None:
            other = right if left is None else left
            if isinstance(other, Foreign):
                return Undecided(f"whether {other.name} is None is not known", None, other.name)
            if isinstance(other, Instance) and not makes_itself(other.cls):
                return Undecided(f"what {other.cls.qualname}() gives is not known", other.where)
            return other is None
        if isinstance(left, bool) and isinstance(right, bool):
            return left is right
        if isinstance(left, Spec) and isinstance(right, Spec):
            return self._same_spec(left, right)
        if isinstance(left, (*IDENTITIES, Foreign)) and isinstance(right, (*IDENTITIES, Foreign)):
            if isinstance(left, Foreign) or isinstance(right, Foreign):
                return True if left == right else Undecided("objects outside the tree")
            return self._same_function(left, right, "is")
        return Undecided(f"identity of a {type(left).__name__} and a {type(right).__name__}")

    def _ordered(
        self, op: str, left: Value, right: Value, frame: Frame, line: int
    ) -> bool | Undecided:
        if isinstance(left, Instance | ClassValue) or isinstance(right, Instance | ClassValue):
            answer = self._asked(op, left, right, frame, line)
            if answer is not None:
                return answer
        for value in (left, right):
            if isinstance(value, Opaque):
                return Undecided(value.reason, value.where, value.text, "", value.own)
            if isinstance(value, Foreign):
                return Undecided(f"the value of {value.name} is not known", None, value.name)
        if isinstance(left, Version) and is_plain(right):
            return self._version(op, left, right, frame, line)
        if isinstance(left, Release) or isinstance(right, Release):
            return releases.compare(op, left, right)
        if is_plain(left) and is_plain(right):
            return bool(self._python(OPERATORS[op], left, right, frame, line))
        if op not in ("==", "!="):
            for kind in (tuple, list):
                if isinstance(left, kind) and isinstance(right, kind):
                    return self._by_items(op, left, right, frame, line)
            a, b = (outside(stand_in(value, _ORDERING)) for value in (left, right))
            if a is not UNBOUND and b is not UNBOUND:
                self._python(OPERATORS[op], a, b, frame, line)  # for its exception alone
        else:
            if isinstance(left, Spec) and isinstance(right, Spec):
                same = self._same_spec(left, right)
                return same if isinstance(same, Undecided) else same is (op == "==")
            for value in (left, right):
                if isinstance(value, ClassValue) and may_define(value, "__eq__", "__ne__"):
                    return Undecided(f"what {value.qualname} is equal to is not known", own=True)
            kinds = [isinstance(v, IDENTITIES) for v in (left, right)]
            if all(kinds):
                same = self._same_function(left, right, "==")
                return same if isinstance(same, Undecided) else same is (op == "==")
            if any(kinds) and (is_plain(left) or is_plain(right)):
                same = self._same_function(left, right, "==")
                return same if isinstance(same, Undecided) else op == "!="
            for value in (left, right):
                self.lose_items(value, ("__eq__",), frame, line)
        return Undecided(f"comparison of a {type(left).__name__} and a {type(right).__name__}")

    @staticmethod
    def _same_function(left: Value, right: Value, op: str) -> bool | Undecided:
        """Whether two values are one object, of which any may be a function.

        What decorates one may have made anything of it. Methods are bound anew each time that they
        are read, to be equal and not identical; and a definition that runs twice makes two.
        """
        if left == right:
            return True
        for value in (left, right):
            if isinstance(value, Function) and value.decorators:
                return Undecided(f"what decorates {value.facts.name} is not followed", own=True)
        if isinstance(left, Function) and isinstance(right, Function):
            alike = left.module is right.module and left.facts is right.facts
            if alike and not (op == "is" and left.bound and right.bound):
                return Undecided(f"whether both {left.facts.name} are one", own=True)
        return False

    def listed(self, value: Value, frame: Frame, *, ordered: bool = False) -> Value:
        """What is iterated over: of an iterator or a view the items, as far as they are known.

        Where the result is ``ordered``, nothing is known of those of a set.
        """
        value = self.force(value, frame)
        if ordered and isinstance(value, set | frozenset | Iterated) and is_unordered(value):
            return Opaque("the order of a set", own=is_own(value))
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

    @staticmethod
    def _same_spec(left: Spec, right: Spec) -> bool | Undecided:
        """Specs of one module are equal while nothing about it changes; once loaded, the same."""
        if left is right or left.name != right.name:
            return left is right
        return Undecided(f"whether two specs of {left.name} are the same")

    def _by_items(
        self, op: str, left: Sequence[Value], right: Sequence[Value], frame: Frame, line: int
    ) -> bool | Undecided:
        """``left < right`` of sequences: the first items that differ decide, then the lengths."""
        for one, other in zip(left, right, strict=False):
            same = self.compare("==", one, other, frame, line)
            if isinstance(same, Undecided):
                return same
            if not same:
                return self.compare(op, one, other, frame, line)
        return bool(OPERATORS[op](len(left), len(right)))

    def _version(
        self, op: str, left: Version, right: Value, frame: Frame, line: int
    ) -> bool | Undecided:
        results = {
            bool(self._python(OPERATORS[op], version, right, frame, line))
            for version in left.possible
        }
        if len(results) == 1:
            return results.pop()
        return Undecided("depends on the Python release", None, "sys.version_info")

    def _contains(self, item: Value, container: Value, frame: Frame, line: int) -> bool | Undecided:
        for value in (item, container):
            if isinstance(value, Opaque):
                return Undecided(value.reason, value.where, value.text, "", value.own)
        container = self.listed(container, frame)
        if isinstance(container, Opaque):
            return Undecided(container.reason, container.where, container.text)
        if id(container) in self.namespaces and isinstance(item, str):
            return self._bound_in(self.namespaces[id(container)], item)
        if isinstance(container, dict | set | frozenset):
            self._python(lambda a, _: hash(a), stand_in(item), None, frame, line)
        if is_plain(item) and is_plain(container):
            return bool(self._python(lambda a, b: a in b, item, container, frame, line))
        hashed = isinstance(container, dict | set | frozenset)
        if hashed and is_plain(item) and all(map(is_plain, container)):
            return bool(self._python(lambda a, b: a in b, item, container, frame, line))
        if isinstance(container, CONTAINERS):
            results = []
            for member in container:
                results.append(self.compare("==", item, member, frame, line))
                if results[-1] is True:
                    return True
            unsettled = next((r for r in results if isinstance(r, Undecided)), None)
            return unsettled if unsettled is not None else False
        if isinstance(container, Instance | ClassValue):
            said = self.special(container, "__contains__", (item,), frame, line)
            if said is not UNBOUND:
                return self.truth(said, frame)
            self.iterates(container, frame, line)
        answer = self.foreign_contains(item, container)
        if isinstance(answer, Undecided):
            asked = ("__contains__", *ITERATING)
            self.refuse(lambda stand: None in stand, container, asked, frame, line)
        return answer

    def _bound_in(self, module: ModuleValue, name: str) -> bool | Undecided:
        """``name in globals()``."""
        value = module.names.get(name, UNBOUND)
        if value is UNBOUND and module.wild is not None:
            return Undecided(module.wild.reason, module.wild.where, module.wild.text)
        bound = (
            [(g, v is not UNBOUND) for g, v in self.alive(value)]
            if isinstance(value, Either)
            else []
        )
        if len({there for _, there in bound}) == 2:
            guard = bound[0][0]
            return Undecided("a branch binds it", guard.where, str(guard))
        return value is not UNBOUND if not bound else bound[0][1]

    def foreign_contains(self, item: Value, container: Value) -> bool | Undecided:
        """``item in container`` for a container outside the tree (``sys.modules``)."""
        return Undecided(f"the contents of a {type(container).__name__} are not known")

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
