"""Expressions, with Python's semantics: short circuits, exceptions and all.

Where a value cannot be known it is :class:`~auditor.values.Opaque`, with reason and place.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache

from msgspec.structs import replace

from auditor import facts as f
from auditor.classes import Found, Missing, lookup
from auditor.evaluation.containers import MUTATING_METHODS
from auditor.evaluation.frame import (
    Frame,
    doubtful,
    guard_pair,
    is_own,
    is_plain,
    is_unordered,
    join,
    opposite,
)
from auditor.evaluation.narrowing import Narrowing
from auditor.evaluation.operators import Operators
from auditor.evaluation.raised import error_text
from auditor.evaluation.standins import is_undecorated, may_define, stand_in
from auditor.evaluation.truth import ITERATING
from auditor.values import (
    UNBOUND,
    ClassValue,
    Closure,
    Doubt,
    Either,
    Error,
    Foreign,
    Instance,
    Opaque,
    Pending,
    PlatformMethod,
    PlatformObject,
    PythonError,
    Undecided,
    Value,
    Version,
)

#: Comparisons that give True or False, whatever they compare.
_GIVES_BOOL = frozenset(("is", "is not", "in", "not in"))


class Expressions(Operators, Narrowing):
    """Evaluates expressions."""

    def evaluate(self, node: f.Expr, frame: Frame, line: int) -> Value:
        """The value of an expression.

        Raises:
            PythonError: what evaluating it in Python would raise.
        """
        if type(node) is f.Name:
            return self.name(frame, node.id, line)
        return _EVALUATE[type(node)](self, node, frame, line)

    def _const(self, node: f.Const, frame: Frame, line: int) -> Value:
        return node.value

    def _name(self, node: f.Name, frame: Frame, line: int) -> Value:
        return self.name(frame, node.id, line)

    def _not_expr(self, node: f.Not, frame: Frame, line: int) -> Value:
        return self._not(self.truth(self.evaluate(node.value, frame, line), frame), frame, line)

    def _subscript(self, node: f.Subscript, frame: Frame, line: int) -> Value:
        owner = self.evaluate(node.value, frame, line)
        return self.item(owner, self.evaluate(node.index, frame, line), frame, line)

    def _slice(self, node: f.Slice, frame: Frame, line: int) -> Value:
        parts = [
            self.force(self.evaluate(part, frame, line), frame) if part is not None else None
            for part in (node.lower, node.upper, node.step)
        ]
        if all(map(is_plain, parts)):
            return slice(*parts)
        return Opaque("a slice with unknown ends", frame.place(line), own=any(map(is_own, parts)))

    def _comprehension(self, node: f.Comprehension, frame: Frame, line: int) -> Value:
        assumed = self._assumption(node.text)
        return assumed if assumed is not UNBOUND else self.comprehension(node, frame, line)

    def new(self, container: Value) -> Value:
        """A container that has just been made."""
        self.containers.made(container, self.open_guards)
        return container

    def _lambda(self, node: f.Lambda, frame: Frame, line: int) -> Value:
        return Closure(frame.module, node, frame.enclosing)

    def _walrus(self, node: f.Walrus, frame: Frame, line: int) -> Value:
        value = self.evaluate(node.value, frame, line)
        names = frame.names if frame.outer is None else frame.outer
        names = frame.shared.get(node.name, names)
        bound, guard = value, frame.perhaps
        if guard is not None:
            before = names.get(node.name, UNBOUND)
            bound = join(((guard, value), (opposite(guard), before)))
        names[node.name] = bound
        return value

    def _unknown(self, node: f.Unknown, frame: Frame, line: int) -> Value:
        read = [self.use(frame, dotted, line) for dotted in node.uses]
        own = any(map(is_own, read))
        assumed = self._assumption(node.text)
        if assumed is not UNBOUND:
            return assumed
        return Opaque("not evaluated", frame.place(line), node.text, own=own)

    def _assumption(self, text: str) -> Value:
        """The user's ``--assume`` for this source text, or UNBOUND."""
        if not self.platform.assumed:
            return UNBOUND
        for candidate in (text, _normal(text)):
            if candidate in self.platform.assumed:
                return self.platform.assumed[candidate]
        return UNBOUND

    def _attr(self, node: f.Attr, frame: Frame, line: int) -> Value:
        if self.platform.assumed:
            text = dotted_text(node.value, node.attr)
            if text in self.platform.assumed:
                return self.platform.assumed[text]
        return self.attribute(self.evaluate(node.value, frame, line), node.attr, frame, line)

    def _call(self, node: f.Call, frame: Frame, line: int) -> Value:
        """Evaluate the function, then call it.

        A method of a call's result (``logger.info(…)``) is not followed: running the function
        behind it only to find a method that is opaque anyway would cost more than all the rest.
        """
        assumed = self._assumption(node.text)
        if assumed is not UNBOUND:
            return assumed
        func = node.func
        if type(func) is not f.Attr:
            return self.call(self.evaluate(func, frame, line), node, frame, line)
        owner = self.evaluate(func.value, frame, line)
        if type(owner) is Pending and func.attr in MUTATING_METHODS:
            owner = self.force(owner, frame)
        if type(owner) is Pending:
            return Opaque("a method of a call's result", frame.place(line), node.text)
        if type(owner) is PlatformObject:
            # What is called is a method, whatever value is assumed for its result.
            return self.call(PlatformMethod(func.attr), node, frame, line)
        return self.call(self.attribute(owner, func.attr, frame, line), node, frame, line)

    def _bool_op(self, expr: f.BoolOp, frame: Frame, line: int) -> Value:
        """``and``/``or``: the first value that settles it; later ones are not evaluated then."""
        settles = expr.op == "or"
        open_ones: list[Undecided] = []
        values: list[Value] = []
        value: Value = None
        with ExitStack() as stack:
            for node in expr.values:
                value = self.evaluate(node, frame, line)
                values.append(value)
                truth = self.truth(value, frame)
                if isinstance(truth, Undecided):
                    open_ones.append(self._placed(truth, frame, line))
                    # The next one is evaluated only where this one does not settle it.
                    stack.enter_context(self._perhaps(frame, open_ones[-1], not settles, line))
                elif truth is settles:
                    break
            else:
                truth = None
        if not open_ones:
            return value
        why, own = open_ones[0], all(one.own for one in open_ones)
        key = why.key if len(open_ones) == 1 else ""
        usual = _usual(expr.op, values)
        if truth is settles:
            # The truth is settled whatever the open ones are; the value is not.
            return Opaque(why.reason, why.where, why.text, key, settles, own, usual)
        return Opaque(why.reason, why.where, why.text, key, None, own, usual)

    @contextmanager
    def _perhaps(self, frame: Frame, why: Undecided, outcome: bool, line: int) -> Iterator[None]:
        """Evaluate what is evaluated only if an open condition comes out so.

        An exception in it is a doubt, and what it binds is bound perhaps.
        """
        then, orelse = guard_pair(why.where or frame.place(line), why.text, None, why.key, why.own)
        guard = then if outcome else orelse
        outer = frame.perhaps
        frame.perhaps = guard
        try:
            with self.branch(guard):
                yield
        except PythonError as raised:
            frame.doubt(Doubt(raised.error, doubtful(guard, why.reason)))
        finally:
            frame.perhaps = outer

    def _not(self, truth: bool | Undecided, frame: Frame, line: int) -> Value:
        if isinstance(truth, Undecided):
            key = (
                truth.key.removeprefix("!")
                if truth.key.startswith("!")
                else truth.key and f"!{truth.key}"
            )
            where = truth.where or frame.place(line)
            return Opaque(truth.reason, where, truth.text, key, own=truth.own, like=True)
        return not truth

    def _compare(self, expr: f.Compare, frame: Frame, line: int) -> Value:
        """A chain of comparisons: ``a < b < c`` stops at the first that is false."""
        still_open: Undecided | None = None
        left = self.evaluate(expr.left, frame, line)
        if len(expr.ops) == 1:
            right = self.evaluate(expr.rights[0], frame, line)
            result = self.compare(expr.ops[0], left, right, frame, line)
            if not isinstance(result, Undecided):
                return result
            why = self._placed(result, frame, line)
            plain = stand_in(left) is not UNBOUND and stand_in(right) is not UNBOUND
            like = True if plain or expr.ops[0] in _GIVES_BOOL else UNBOUND
            return Opaque(why.reason, why.where, why.text, why.key, own=why.own, like=like)
        with ExitStack() as stack:
            for op, node in zip(expr.ops, expr.rights, strict=True):
                right = self.evaluate(node, frame, line)
                result = self.compare(op, left, right, frame, line)
                if result is False:
                    return False
                if isinstance(result, Undecided):
                    why = self._placed(result, frame, line)
                    still_open = why if still_open is None else still_open
                    stack.enter_context(self._perhaps(frame, why, True, line))
                left = right
        if still_open is None:
            return True
        return Opaque(still_open.reason, still_open.where, still_open.text, own=still_open.own)

    def _display(self, node: f.Sequence, frame: Frame, line: int) -> Value:
        items = self.items(node.items, frame, line, ordered=node.kind != "set")
        if isinstance(items, Opaque):
            return items
        if node.kind == "set" and not all(self.hashed(item, frame, line) for item in items):
            own = any(map(is_own, items))
            return Opaque("a set of values not known", frame.place(line), own=own, like=set())
        if node.kind == "list":
            return self.new(items)
        if node.kind == "tuple":
            return tuple(items)
        return self.new(self._python(lambda values, _: set(values), items, None, frame, line))

    def items(
        self, nodes: tuple[f.Expr, ...], frame: Frame, line: int, *, ordered: bool = True
    ) -> list[Value] | Opaque:
        """Values one after the other, with ``*values`` among them unpacked."""
        items: list[Value] = []
        for node in nodes:
            if type(node) is f.Unary and node.op == "*":
                value = self.evaluate(node.value, frame, line)
                several = self.listed(value, frame, ordered=ordered)
                if not isinstance(several, list | tuple | dict | set | frozenset | str | range):
                    self.iterates(several, frame, line)
                    self.refuse(lambda stand: [*stand], several, ITERATING, frame, line)
                    return Opaque("unknown items", frame.place(line), own=is_own(several))
                items.extend(several)
            else:
                items.append(_EVALUATE[type(node)](self, node, frame, line))
        return items

    def _mapping(self, display: f.Mapping, frame: Frame, line: int) -> Value:
        result: dict[Value, Value] = {}
        known = True
        for key, node in zip(display.keys, display.values, strict=True):
            if key is None:
                inner = self.force(self.evaluate(node, frame, line), frame)
                if not isinstance(inner, dict):
                    known = False
                    self.refuse(lambda stand: {**stand}, inner, ("keys",), frame, line)
                result.update(inner if isinstance(inner, dict) else {})
            else:
                at = self.force(self.evaluate(key, frame, line), frame)
                known = (type(at) is str or self.hashed(at, frame, line)) and known
                value = self.evaluate(node, frame, line)
                self._python(result.__setitem__, at, value, frame, line)
        if known:
            return self.new(result)
        return Opaque("a dict with unknown entries", frame.place(line))

    def item(self, owner: Value, index: Value, frame: Frame, line: int) -> Value:
        """``owner[index]``."""
        owner, index = self.force(owner, frame), self.force(index, frame)
        match owner:
            case ClassValue():
                return self._class_item(owner, index, frame, line)
            case Foreign():
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
                if not isinstance(owner, dict):
                    self.refuse(lambda at: type(owner)()[at], index, ("__index__",), frame, line)
                own = is_own(index) or is_own(
                    list(owner.values()) if isinstance(owner, dict) else owner
                )
                return Opaque("an item by an unknown index", frame.place(line), own=own)
            case Opaque():
                return owner
            case _:
                if isinstance(owner, Instance):
                    made = self.special(owner, "__getitem__", (index,), frame, line)
                    if made is not UNBOUND:
                        return made
                self.refuse(lambda stand: stand[0], owner, ("__getitem__",), frame, line)
                return Opaque("an item", frame.place(line), own=is_own(owner))

    def _class_item(self, cls: ClassValue, index: Value, frame: Frame, line: int) -> Value:
        """``Class[T]``: what the metaclass gives, or the class itself (PEP 560).

        That is mostly an alias, which stands for the class as a base, and where it is called.
        """
        place = frame.place(line)
        unknown = Opaque(f"an item of {cls.qualname}", place, own=True, alias=cls)
        if may_define(cls, "__getitem__"):
            made = self.special(cls, "__getitem__", (index,), frame, line)
            return unknown if made is UNBOUND else made
        given = lookup(cls, "__class_getitem__")
        if isinstance(given, Found):
            method = self.class_method(cls, given.owner, "__class_getitem__")
            if method is None and (plain := self.method(cls, "__class_getitem__")) is not None:
                method = None if plain.decorators else replace(plain, bound=(cls,))
            if method is None:
                return unknown
            made = self.force(self.invoke(method, (index,), (), frame, place, "[…]"), frame)
            return replace(made, alias=cls) if isinstance(made, Opaque) else made
        if isinstance(given, Missing) and is_undecorated(cls):
            self.refuse(lambda stand: stand[0], cls, (), frame, line)
        return unknown

    def _if_exp(self, node: f.IfExp, frame: Frame, line: int) -> Value:
        truth = self.truth(self.evaluate(node.test, frame, line), frame)
        if not isinstance(truth, Undecided):
            return self.evaluate(node.body if truth else node.orelse, frame, line)
        why = self._placed(truth, frame, line)
        self.open_condition(why, frame)
        then, orelse = guard_pair(why.where or frame.place(line), why.text, None, why.key, why.own)
        branches = ((then, (node.body, True)), (orelse, (node.orelse, False)))

        def follow(branch: tuple[f.Expr, bool]) -> Value:
            guard = then if branch[1] else orelse
            outer, frame.perhaps = frame.perhaps, guard
            try:
                with self.branch(guard):
                    narrowed = self.narrowed(frame, node.test, branch[1], line)
                    value = self.evaluate(branch[0], frame, line)
            finally:
                frame.perhaps = outer
            for scope, name, before, during in narrowed:
                if scope.get(name) is during:
                    scope[name] = before
            return value

        return self._each(branches, frame, follow)

    def shown(
        self, value: Value, frame: Frame, names: tuple[str, ...] = ("__str__", "__repr__")
    ) -> Value:
        """What ``str`` is asked to show: the text of an exception, else the value itself.

        Of an object of the tree, what the first of these methods gives.
        """
        value = self.force(value, frame)
        if isinstance(value, Instance):
            for name in names:
                made = self.special(value, name, ("",) * (name == "__format__"), frame, 0)
                if made is not UNBOUND:
                    made = self.force(made, frame)
                    return made if isinstance(made, str) else Opaque(f"what {name}() gives")
        text = error_text(value) if isinstance(value, Error) else None
        return value if text is None else text

    def _fstring(self, node: f.FString, frame: Frame, line: int) -> Value:
        asked = ("__format__", "__str__", "__repr__")
        values = [self.shown(self.evaluate(part, frame, line), frame, asked) for part in node.parts]
        if not is_plain(values) or is_unordered(values):
            return Opaque("a string with an unknown part", frame.place(line), like="a")
        return "".join(map(str, values))


def _usual(op: str, values: list[Value]) -> Value:
    """The value of ``and``/``or`` in a process that sets no variable, or UNBOUND."""
    for value in values:
        usual = value.usual if isinstance(value, Opaque) else value
        if not is_plain(usual):
            return UNBOUND
        if bool(usual) is (op == "or"):
            return usual
    return usual


@lru_cache(maxsize=4096)
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


_EVALUATE: dict[type, Callable[..., Value]] = {
    f.Const: Expressions._const,
    f.Name: Expressions._name,
    f.Attr: Expressions._attr,
    f.Call: Expressions._call,
    f.BoolOp: Expressions._bool_op,
    f.Not: Expressions._not_expr,
    f.Compare: Expressions._compare,
    f.BinOp: Expressions._bin_op,
    f.Sequence: Expressions._display,
    f.Mapping: Expressions._mapping,
    f.Subscript: Expressions._subscript,
    f.IfExp: Expressions._if_exp,
    f.FString: Expressions._fstring,
    f.Lambda: Expressions._lambda,
    f.Walrus: Expressions._walrus,
    f.Comprehension: Expressions._comprehension,
    f.Slice: Expressions._slice,
    f.Unary: Expressions._unary,
    f.Unknown: Expressions._unknown,
}
