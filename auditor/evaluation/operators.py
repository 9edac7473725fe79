"""Operators of constants, containers and objects of the tree: what they give, or refuse."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from copy import copy

from msgspec.structs import replace

from auditor import facts as f
from auditor.evaluation.frame import (
    CONSTANT_TYPES,
    CONTAINERS,
    IDENTITIES,
    Frame,
    is_own,
    is_plain,
    is_unordered,
    is_wide,
)
from auditor.evaluation.names import Names
from auditor.evaluation.standins import stand_in
from auditor.evaluation.truth import COMPUTING, IN_PLACE, OPERATORS
from auditor.values import UNBOUND, ClassValue, Either, Instance, Opaque, Value

#: Numbers and powers beyond these are not computed.
_MAX_REPEAT = 10_000
_MAX_BITS = 128
#: Nor are longer texts and lists than this made.
_MAX_SIZE = 100_000
_SIZED = (str, bytes, list, tuple)

_UNARY: dict[str, Callable[[Value], Value]] = {
    "-": operator.neg, "+": operator.pos, "~": operator.invert,
}  # fmt: skip
_UNARY_METHODS = ("__neg__", "__pos__", "__invert__")

#: What may have special methods of the tree.
_MADE = (Instance, ClassValue)


class Operators(Names):
    """Evaluates ``a + b``, ``-a`` and ``a += b``."""

    def _bin_op(self, node: f.BinOp, frame: Frame, line: int) -> Value:
        left = self.evaluate(node.left, frame, line)
        return self.binary(node.op, left, self.evaluate(node.right, frame, line), frame, line)

    def _unary(self, node: f.Unary, frame: Frame, line: int) -> Value:
        value = self.force(self.evaluate(node.value, frame, line), frame)
        if isinstance(value, Either):
            options = self.alive(value)
            return self._each(options, frame, lambda one: self._negated(node, one, frame, line))
        return self._negated(node, value, frame, line)

    def _negated(self, node: f.Unary, value: Value, frame: Frame, line: int) -> Value:
        if isinstance(value, _MADE):
            made = self.special(value, _UNARY_METHODS["-+~".index(node.op)], (), frame, line)
            if made is not UNBOUND:
                return made
        stand = stand_in(value, _UNARY_METHODS)
        if stand is not UNBOUND:
            made = self._python(lambda v, _: _UNARY[node.op](v), stand, None, frame, line)
            return made if is_plain(value) else Opaque("a result", frame.place(line))
        return Opaque(f"result of {node.op}", frame.place(line), own=is_own(value))

    def binary(
        self,
        op: str,
        left: Value,
        right: Value,
        frame: Frame,
        line: int,
        table: Mapping[str, Callable[[Value, Value], Value]] = OPERATORS,
    ) -> Value:
        """``left op right`` of constants and containers; anything else is opaque."""
        left, right = self.force(left, frame), self.force(right, frame)
        if isinstance(left, Either):
            return self._each(
                self.alive(left), frame, lambda v: self.binary(op, v, right, frame, line, table)
            )
        if isinstance(right, Either):
            return self._each(
                self.alive(right), frame, lambda v: self.binary(op, left, v, frame, line, table)
            )
        usable = (*CONSTANT_TYPES, *CONTAINERS)
        if op in table and isinstance(left, usable) and isinstance(right, usable):
            if _asks_items(op, left) and not (_items_known(left) and _items_known(right)):
                own = is_own(left) or is_own(right)
                return Opaque(f"what {op} makes of values not known", frame.place(line), own=own)
            if op == "%" and is_unordered((right,)) and isinstance(left, str | bytes):
                return Opaque("the order of a set", frame.place(line))
            if _is_large(op, left, right):
                return Opaque("a large number", frame.place(line))
            if table is IN_PLACE and isinstance(left, list | dict | set):
                self.containers.changes(left, self.open_guards, self.steps)
            return self._python(table[op], left, right, frame, line)
        asked = COMPUTING.get(op, ())
        if asked and (isinstance(left, _MADE) or isinstance(right, _MADE)):
            order = [(left, asked[0], right), (right, asked[1], left)]
            order = [(left, asked[2], right), *order] if table is IN_PLACE else order
            made = self.first_of(order, frame, line)
            if made is not UNBOUND:
                return made
        a, b = stand_in(left, asked), stand_in(right, asked)
        unknown = next((value for value in (left, right) if isinstance(value, Opaque)), None)
        # What a text is formatted with depends on what it says.
        depends = op == "%" and unknown is left
        if op in table and a is not UNBOUND and b is not UNBOUND and not depends:
            self._python(table[op], _copied(a), b, frame, line)  # for its exception alone
        like = "a" if op == "%" and isinstance(left, str) else UNBOUND
        if unknown is not None:
            return unknown if like is UNBOUND else replace(unknown, like=like)
        own = is_own(left) or is_own(right)
        return Opaque(f"result of {op}", frame.place(line), own=own, like=like)


def _copied(stand: object) -> object:
    """A stand-in that may be changed."""
    return copy(stand) if isinstance(stand, list | dict | set) else stand


def _asks_items(op: str, left: Value) -> bool:
    """Whether Python looks at what is in a container, and does not only put it into another."""
    if isinstance(left, set | frozenset):
        return op in ("-", "&", "^")
    return op == "%" and isinstance(left, str | bytes)


def _items_known(value: Value) -> bool:
    if isinstance(value, set | frozenset):
        return all(is_plain(item) or isinstance(item, IDENTITIES) for item in value)
    return is_plain(value)


def _is_large(op: str, left: Value, right: Value) -> bool:
    """Whether a result may be too large to compute: no constant of a module is."""
    if op == "%":
        return is_wide(left, right if isinstance(right, tuple) else (right,))
    sizes = [len(value) for value in (left, right) if isinstance(value, _SIZED)]
    if op == "+" and sum(sizes) > _MAX_SIZE:
        return True
    if op == "*" and sizes:
        times = next((value for value in (left, right) if isinstance(value, int)), 1)
        return sizes[0] * times > _MAX_SIZE
    if op == "*":
        return any(isinstance(v, int) and abs(v) > _MAX_REPEAT for v in (left, right))
    if op in ("**", "<<"):
        small = isinstance(right, int) and abs(right) <= _MAX_BITS
        return isinstance(left, int) and not (small and abs(left) <= _MAX_REPEAT)
    return False
