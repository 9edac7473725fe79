"""Expressions, with Python's semantics: short circuits, exceptions and all.

Where a value cannot be known it is :class:`~auditor.values.Opaque`, with reason and place.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from auditor import facts as f
from auditor.evaluation.frame import CONSTANT_TYPES, CONTAINERS, Frame, is_plain
from auditor.evaluation.names import Names
from auditor.evaluation.truth import OPERATORS
from auditor.values import (
    ClassValue,
    Closure,
    Either,
    Foreign,
    Guard,
    Opaque,
    Pending,
    PythonError,
    Undecided,
    Value,
    Version,
    builtin_error,
)

_MAX_REPEAT = 10_000


class Expressions(Names):
    """Evaluates expressions."""

    def evaluate(self, node: f.Expr, frame: Frame, line: int) -> Value:
        """The value of an expression.

        Raises:
            PythonError: what evaluating it in Python would raise.
        """
        match node:
            case f.Const(value=value):
                return value
            case f.Name(id=name):
                return self.name(frame, name, line)
            case f.Attr(value=owner, attr=attr):
                return self._attr(owner, attr, frame, line)
            case f.Call(func=func):
                return self._assumed(node.text, lambda: self._call(func, node, frame, line))
            case f.BoolOp(op=op, values=values):
                return self._bool_op(op, values, frame, line)
            case f.Not(value=inner):
                return self._not(self.truth(self.evaluate(inner, frame, line), frame), frame, line)
            case f.Compare(left=left, ops=ops, rights=rights):
                return self._compare(self.evaluate(left, frame, line), ops, rights, frame, line)
            case f.BinOp(op=op, left=left, right=right):
                a, b = self.evaluate(left, frame, line), self.evaluate(right, frame, line)
                return self.binary(op, a, b, frame, line)
            case f.Sequence(kind=kind, items=items):
                return self._display(
                    kind, [self.evaluate(i, frame, line) for i in items], frame, line
                )
            case f.Mapping(keys=keys, values=values):
                return self._mapping(keys, values, frame, line)
            case f.Subscript(value=owner, index=index):
                base = self.evaluate(owner, frame, line)
                return self.item(base, self.evaluate(index, frame, line), frame, line)
            case f.IfExp(test=test, body=body, orelse=orelse):
                return self._if_exp(test, body, orelse, frame, line)
            case f.FString(parts=parts):
                return self._fstring(parts, frame, line)
            case f.Lambda():
                return Closure(frame.module, node, frame.names if frame.is_call else None)
            case f.Walrus(name=name, value=inner):
                value = self.evaluate(inner, frame, line)
                frame.names[name] = value
                return value
            case f.Unknown(text=text, uses=uses):
                for dotted in uses:
                    self.use(frame, dotted, line)
                return self._assumed(text, lambda: Opaque("not evaluated", frame.place(line), text))
            case _:
                raise TypeError(f"no such expression: {node!r}")

    def _assumed(self, text: str, otherwise: Callable[[], Value]) -> Value:
        """The user's ``--assume`` for this source text, or else the evaluation."""
        if self.platform.assumed:
            for candidate in (text, _normal(text)):
                if candidate in self.platform.assumed:
                    return self.platform.assumed[candidate]
        return otherwise()

    def _attr(self, owner: f.Expr, attr: str, frame: Frame, line: int) -> Value:
        if self.platform.assumed:
            text = dotted_text(owner, attr)
            if text in self.platform.assumed:
                return self.platform.assumed[text]
        return self.attribute(self.evaluate(owner, frame, line), attr, frame, line)

    def _call(self, func: f.Expr, node: f.Call, frame: Frame, line: int) -> Value:
        """Evaluate the function, then call it.

        A method of a call's result (``logger.info(…)``) is not followed: running the function
        behind it only to find a method that is opaque anyway would cost more than all the rest.
        """
        if isinstance(func, f.Attr):
            owner = self.evaluate(func.value, frame, line)
            if isinstance(owner, Pending):
                return Opaque("a method of a call's result", frame.place(line), node.text)
            return self.call(self.attribute(owner, func.attr, frame, line), node, frame, line)
        return self.call(self.evaluate(func, frame, line), node, frame, line)

    def _bool_op(self, op: str, values: tuple[f.Expr, ...], frame: Frame, line: int) -> Value:
        """``and``/``or``: the first value that settles it; later ones are not evaluated then."""
        settles = op == "or"
        open_ones: list[Undecided] = []
        value: Value = None
        for node in values:
            value = self.evaluate(node, frame, line)
            truth = self.truth(value, frame)
            if isinstance(truth, Undecided):
                open_ones.append(self._placed(truth, frame, line))
            elif truth is settles:
                # The truth is settled whatever the open ones are; the value only without them.
                return value if not open_ones else settles
        if not open_ones:
            return value
        why = open_ones[0]
        return Opaque(why.reason, why.where, why.text, why.key if len(open_ones) == 1 else "")

    def _not(self, truth: bool | Undecided, frame: Frame, line: int) -> Value:
        if isinstance(truth, Undecided):
            key = (
                truth.key.removeprefix("!")
                if truth.key.startswith("!")
                else truth.key and f"!{truth.key}"
            )
            return Opaque(truth.reason, truth.where or frame.place(line), truth.text, key)
        return not truth

    def _compare(
        self, left: Value, ops: tuple[str, ...], rights: tuple[f.Expr, ...], frame: Frame, line: int
    ) -> Value:
        """A chain of comparisons: ``a < b < c`` stops at the first that is false."""
        still_open: Undecided | None = None
        for op, node in zip(ops, rights, strict=True):
            right = self.evaluate(node, frame, line)
            result = self.compare(op, left, right, frame, line)
            if result is False:
                return False
            if isinstance(result, Undecided):
                still_open = still_open or self._placed(result, frame, line)
            left = right
        if still_open is None:
            return True
        key = still_open.key if len(ops) == 1 else ""
        return Opaque(still_open.reason, still_open.where, still_open.text, key)

    def binary(self, op: str, left: Value, right: Value, frame: Frame, line: int) -> Value:
        """``left op right`` of constants and containers; anything else is opaque."""
        left, right = self.force(left, frame), self.force(right, frame)
        usable = (*CONSTANT_TYPES, *CONTAINERS)
        if op in OPERATORS and isinstance(left, usable) and isinstance(right, usable):
            if op == "*" and any(
                isinstance(v, int) and abs(v) > _MAX_REPEAT for v in (left, right)
            ):
                return Opaque("a large product", frame.place(line))
            return self._python(OPERATORS[op], left, right, frame, line)
        for value in (left, right):
            if isinstance(value, Opaque):
                return value
        return Opaque(f"result of {op}", frame.place(line))

    def _display(self, kind: str, items: list[Value], frame: Frame, line: int) -> Value:
        if kind == "list":
            return items
        if kind == "tuple":
            return tuple(items)
        return self._python(lambda values, _: set(values), items, None, frame, line)

    def _mapping(
        self, keys: tuple[f.Expr | None, ...], values: tuple[f.Expr, ...], frame: Frame, line: int
    ) -> Value:
        result: dict[Value, Value] = {}
        for key, node in zip(keys, values, strict=True):
            if key is None:
                inner = self.force(self.evaluate(node, frame, line), frame)
                if not isinstance(inner, dict):
                    return Opaque("a dict with unknown entries", frame.place(line))
                result.update(inner)
            else:
                at = self.evaluate(key, frame, line)
                value = self.evaluate(node, frame, line)
                self._python(result.__setitem__, at, value, frame, line)
        return result

    def item(self, owner: Value, index: Value, frame: Frame, line: int) -> Value:
        """``owner[index]``."""
        owner, index = self.force(owner, frame), self.force(index, frame)
        match owner:
            case ClassValue() | Foreign():
                # ``Base[T]``: an alias of the class (PEP 560); as a base it stands for itself.
                return owner
            case Either():
                return self._each(
                    self.alive(owner), frame, lambda v: self.item(v, index, frame, line)
                )
            case Version(possible=possible) if isinstance(index, slice):
                return Version(tuple(version[index] for version in possible))
            case Version(possible=possible) if isinstance(index, int) and 0 <= index < 2:
                numbers = {version[index] for version in possible}
                return (
                    numbers.pop()
                    if len(numbers) == 1
                    else Opaque("the Python release", frame.place(line))
                )
            case str() | bytes() | tuple() | list() | dict():
                if isinstance(index, slice) or is_plain(index):
                    return self._python(operator.getitem, owner, index, frame, line)
                return Opaque("an item by an unknown index", frame.place(line))
            case Opaque():
                return owner
            case None | bool() | int() | float():
                message = f"{type(owner).__name__!r} object is not subscriptable"
                raise PythonError(builtin_error("TypeError", message, frame.place(line)))
            case _:
                return Opaque("an item", frame.place(line))

    def _if_exp(self, test: f.Expr, body: f.Expr, orelse: f.Expr, frame: Frame, line: int) -> Value:
        truth = self.truth(self.evaluate(test, frame, line), frame)
        if not isinstance(truth, Undecided):
            return self.evaluate(body if truth else orelse, frame, line)
        why = self._placed(truth, frame, line)
        self.open_condition(why, frame)
        place = why.where or frame.place(line)
        guard = Guard(place, why.text, None)
        other = Guard(place, why.text, None, negated=True)
        return self._each(
            ((guard, body), (other, orelse)), frame, lambda node: self.evaluate(node, frame, line)
        )

    def _fstring(self, parts: tuple[f.Expr, ...], frame: Frame, line: int) -> Value:
        texts: list[str] = []
        for part in parts:
            value = self.force(self.evaluate(part, frame, line), frame)
            if not isinstance(value, CONSTANT_TYPES):
                return Opaque("a string with an unknown part", frame.place(line))
            texts.append(str(value))
        return "".join(texts)


def _normal(text: str) -> str:
    try:
        return ast.unparse(ast.parse(text, mode="eval"))
    except SyntaxError:
        return text


def dotted_text(owner: f.Expr, attr: str) -> str:
    """``a.b.attr`` as source, or "" where the owner is more than a dotted name."""
    parts = [attr]
    while isinstance(owner, f.Attr):
        parts.append(owner.attr)
        owner = owner.value
    return ".".join([owner.id, *reversed(parts)]) if isinstance(owner, f.Name) else ""
