"""Comparisons, in three values.

``x in "text"`` is a substring test, ``a < b < c`` stops early, and ``None`` is compared by
identity, as in Python.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from auditor import releases
from auditor.evaluation.frame import CONTAINERS, IDENTITIES, Frame, is_plain
from auditor.evaluation.standins import (
    makes_itself,
    may_define,
    outside,
    stand_in,
)
from auditor.evaluation.truth import ITERATING, OPERATORS, Truth
from auditor.values import (
    UNBOUND,
    ClassValue,
    Either,
    Foreign,
    Function,
    Instance,
    ModuleValue,
    Opaque,
    Release,
    Spec,
    Undecided,
    Value,
    Version,
)

#: Special methods that order; and what stands for an operator with its operands in turn.
_METHODS = {
    "==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__",
}  # fmt: skip
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDERING = ("__lt__", "__le__", "__gt__", "__ge__")


class Comparisons(Truth):
    """Compares values."""

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
