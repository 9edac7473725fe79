"""Expressions of configuration code, over values that are known in part."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial

from auditor.contracts.interpreter import Interpreter
from auditor.contracts.names import Named, Names, Outside, Ref
from auditor.contracts.things import (
    UNBOUND,
    Bound,
    Code,
    Each,
    Frame,
    Raised,
    Thing,
    Value,
    certain,
    holds_each,
    in_turn,
    is_known,
    is_open,
    opposite,
    shown,
    text_of,
)
from auditor.values import Place

_COMPARED: Mapping[type[ast.cmpop], tuple[str, Callable[[Value, Value], Value]]] = {
    ast.Eq: ("==", lambda a, b: a == b),
    ast.Lt: ("<", lambda a, b: a < b),
    ast.LtE: ("<=", lambda a, b: a <= b),
    ast.Gt: (">", lambda a, b: a > b),
    ast.GtE: (">=", lambda a, b: a >= b),
    ast.In: ("in", lambda a, b: a in b),
    ast.Is: ("is", lambda a, b: a is b),
}
#: Operators that are the opposite of another, so that one question serves both.
_OPPOSITE: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.NotEq: ast.Eq,
    ast.NotIn: ast.In,
    ast.IsNot: ast.Is,
}
BUILTINS: Mapping[str, Callable[..., Value]] = {
    "set": set, "frozenset": frozenset, "list": list, "tuple": tuple, "dict": dict,
    "len": len, "min": min, "max": max, "sorted": sorted, "str": str, "int": int, "bool": bool,
}  # fmt: skip


class Expressions(Interpreter):
    """Evaluates expressions."""

    def __init__(
        self,
        names: Names,
        interest: Iterable[str],
        config_bases: Iterable[str] = (),
        updaters: Iterable[str] = (),
    ) -> None:
        super().__init__(names, interest, config_bases, updaters)
        self._answers: dict[object, Each] = {}
        self._kept: list[object] = []

    def expr(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._name(name, frame)
            case ast.Attribute(value=owner, attr=attr):
                return self.attribute(self.expr(owner, frame), attr, node, frame)
            case ast.Call():
                return self._call(node, frame)
            case ast.Compare():
                return self._compare(node, frame)
            case ast.BoolOp():
                return self._bool_op(node, frame)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.each(_denied, self.expr(operand, frame))
            case ast.IfExp():
                return self._if_exp(node, frame)
            case ast.List(elts=elts):
                return self._display(elts, frame)
            case ast.Tuple(elts=elts):
                return tuple(self._display(elts, frame))
            case ast.Set(elts=elts):
                return set(self._display(elts, frame))
            case ast.Dict(keys=keys, values=values):
                return self._dict(keys, values, frame)
            case ast.JoinedStr(values=values):
                return self._joined(values, frame)
            case ast.Subscript(value=owner, slice=index):
                return self._item(self.expr(owner, frame), index, node, frame)
            case ast.NamedExpr(target=target, value=value):
                given = self.expr(value, frame)
                self.assign(target, given, frame)
                return given
            case ast.ListComp(elt=elt, generators=[generator]):
                return self._comprehension(elt, generator, node, frame)
            case ast.SetComp(elt=elt, generators=[generator]):
                found = self._comprehension(elt, generator, node, frame)
                return set(found) if isinstance(found, list) else found
            case ast.GeneratorExp(elt=elt, generators=[generator]):
                return self._comprehension(elt, generator, node, frame)
            case ast.DictComp(key=key, value=value, generators=[generator]):
                pair = ast.copy_location(ast.Tuple([key, value], ast.Load()), node)
                found = self._comprehension(pair, generator, node, frame)
                return dict(found) if isinstance(found, list) else found
            case _:
                return self._other(node, frame)

    def each(self, function: Callable[..., Value], *values: Value) -> Value:
        """Apply a function, for each checkpoint apart where they differ; one that raises is out."""
        if not any(map(holds_each, values)):
            return function(*values)
        found: dict[int, Value] = {}
        for number, given in zip(self.path.alive, in_turn(values, self.path.alive), strict=True):
            try:
                found[number] = function(*given)
            except Raised:
                continue
        if not found:
            raise Raised()
        self.path.alive = tuple(found)
        first = next(iter(found.values()))
        if is_known(first) and all(is_known(one) and one == first for one in found.values()):
            return first
        most = max(found) + 1
        return Each(tuple(found.get(number, UNBOUND) for number in range(most)))

    def _if_exp(self, node: ast.IfExp, frame: Frame) -> Value:
        """``a if test else b``; where nothing is known of either, the test is not asked."""
        test = self.expr(node.test, frame)
        if is_open(test) or isinstance(test, Each):
            sides = [self.expr(side, frame) for side in (node.body, node.orelse)]
            if isinstance(test, Each) and not any(map(is_open, test.values)):
                return self.each(lambda t, a, b: a if t else b, test, *sides)
            if all(map(is_open, sides)):
                return Thing(text_of(node), self._reason(sides))
        return self.expr(node.body if self.holds(node.test, frame) else node.orelse, frame)

    def _other(self, node: ast.expr, frame: Frame) -> Value:
        """An expression that is not followed: unknown, as its parts are."""
        parts = [self.expr(n, frame) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            left, right = parts
            if isinstance(left, dict) and isinstance(right, dict):
                return {**left, **right}
        return Thing(text_of(node), self._reason(parts))

    @staticmethod
    def _reason(parts: Iterable[Value]) -> str:
        """Why a value made of ``parts`` is not known; empty where a user's choice is the cause."""
        return next((p.reason for p in parts if isinstance(p, Thing) and p.reason), "")

    # --- truth

    def holds(self, node: ast.expr, frame: Frame) -> bool:
        """Whether a test holds on this path; asks what is not known, and no more than Python."""
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                return all(self.holds(value, frame) for value in values)
            case ast.BoolOp(op=ast.Or(), values=values):
                return any(self.holds(value, frame) for value in values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.holds(operand, frame)
            case _:
                return self._truth(self.expr(node, frame), node, frame)

    def _truth(self, value: Value, node: ast.AST, frame: Frame) -> bool:
        if isinstance(value, Each):
            return self._truth_of_each(value, node, frame)
        if is_open(value):
            where = Place(self.names.path(frame.module), getattr(node, "lineno", 0))
            return self.path.ask(value, where)
        return certain(value)

    def _truth_of_each(self, value: Each, node: ast.AST, frame: Frame) -> bool:
        """Go on with the checkpoints for which it is true, false, or not known."""
        where = Place(self.names.path(frame.module), getattr(node, "lineno", 0))
        held = {number: value.values[number] for number in self.path.alive}
        for text in dict.fromkeys(one.text for one in held.values() if is_open(one)):
            same = [n for n in self.path.alive if is_open(held[n]) and held[n].text == text]
            if self.path.split(same, where):
                return self.path.ask(held[same[0]], where)
        true = [n for n in self.path.alive if held[n] is not UNBOUND and bool(held[n])]
        return self.path.split(true, where)

    def _bool_op(self, node: ast.BoolOp, frame: Frame) -> Value:
        """``a and b``, ``a or b``: Python's value where it is known, else one unknown."""
        values: list[Value] = []
        for operand in node.values:
            value = self.expr(operand, frame)
            values.append(value)
            known = not is_open(value) and not isinstance(value, Each)
            if known and certain(value) is isinstance(node.op, ast.Or):
                # Python asks no further here, and what follows may rest on it.
                break
        return self.each(lambda *given: self._combined(given, node), *values)

    def _combined(self, values: Sequence[Value], node: ast.BoolOp) -> Value:
        decisive = isinstance(node.op, ast.Or)
        unknown: list[Value] = []
        for value in values:
            if is_open(value):
                unknown.append(value)
            elif certain(value) is decisive:
                return value if not unknown or not decisive else self._join([*unknown, value], node)
        return self._join(unknown, node) if unknown else values[-1]

    def _join(self, values: Sequence[Value], node: ast.BoolOp) -> Value:
        if len(values) == 1:
            return values[0]
        word = " or " if isinstance(node.op, ast.Or) else " and "
        return Thing(word.join(map(shown, values)), self._reason(values))

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        left = self.expr(node.left, frame)
        answers = []
        for op, operand in zip(node.ops, node.comparators, strict=True):
            right = self.expr(operand, frame)
            answers.append(self._compared_each(type(op), left, right))
            left = right
        return answers[0] if len(answers) == 1 else self.each(_all_of, *answers)

    def _compared_each(self, op: type[ast.cmpop], left: Value, right: Value) -> Value:
        """A comparison for all checkpoints at once; each is made once, whatever the path."""
        if not (holds_each(left) or holds_each(right)):
            return self._compared(op, left, right)
        key = (op, _identity(left), _identity(right))
        if None in key:
            return self.each(partial(self._compared, op), left, right)
        if key not in self._answers:
            numbers = range(max(_size(left), _size(right)))
            pairs = in_turn((left, right), numbers)
            self._answers[key] = Each(tuple(self._compared(op, a, b) for a, b in pairs))
            self._kept.append((left, right))  # so that no identity is used again
        answer = self._answers[key]
        found = {answer.values[number] for number in self.path.alive}
        return found.pop() if len(found) == 1 else answer

    def _compared(self, op: type[ast.cmpop], left: Value, right: Value) -> Value:
        if op in _OPPOSITE:
            answer = self._compared(_OPPOSITE[op], left, right)
            return opposite(answer) if isinstance(answer, Thing) else not answer
        sign, function = _COMPARED[op]
        for thing, other in ((left, right), (right, left)):
            certain = isinstance(thing, Thing) and not is_open(thing)
            if sign in ("is", "==") and other is None and certain:
                return False
        if left is right and sign in ("is", "=="):
            return True
        most = left.most if isinstance(left, Thing) and sign in (">", ">=") else None
        if most is not None and isinstance(right, int) and not function(most, right):
            return False
        if not (is_known(left) and is_known(right)):
            text = f"{shown(left)} {sign} {shown(right)}"
            return Thing(text, self._reason([left, right]))
        try:
            return function(left, right)
        except TypeError:
            raise Raised() from None

    # --- names and attributes

    def _name(self, name: str, frame: Frame) -> Value:
        if name in frame.names:
            return frame.names[name]
        found = self.names.resolve(frame.module, name)
        if isinstance(found, Outside) and not found.bound:
            if name in BUILTINS:
                return Bound(None, name)
            if not hasattr(builtins, name):
                return Thing(name, f"what {name} is was not followed")
        return self._named(found)

    def _named(self, found: Named) -> Value:
        """The value of a name of a module."""
        if isinstance(found, Outside):
            return found
        if found not in self._values:
            self._values[found] = found  # while it is read, it stands for itself
            sketch = self.names.sketch(found.module)
            value = sketch.value(found.name) if sketch is not None and found.name else None
            if isinstance(value, ast.Constant) and value.value is None:
                self._values[found] = Thing(found.name, "a global that is None may be set later")
            elif value is not None:
                self._values[found] = self._of_module(found, value)
        return self._values[found]

    def _of_module(self, found: Ref, node: ast.expr) -> Value:
        """What a module computes for a name; a module that cannot compute it is not judged here."""
        try:
            return self.expr(node, Frame(found.module, None, {}, 0))
        except Raised:
            return Thing(found.name, f"computing {found.name} raises an exception")

    def attribute(self, owner: Value, attr: str, node: ast.AST, frame: Frame) -> Value:
        """``owner.attr``."""
        match owner:
            case Thing():
                return self._of_thing(owner, attr, frame)
            case Ref():
                return self._of_ref(owner, attr)
            case Outside(dotted=dotted):
                return Outside(f"{dotted}.{attr}")
            case _:
                return Bound(owner, attr)

    def _of_thing(self, owner: Thing, attr: str, frame: Frame) -> Value:
        if attr in owner.attrs or attr in owner.aliases:
            return owner.get(attr)
        found = self.names.method(owner.cls, attr) if isinstance(owner.cls, Ref) else None
        if found is not None:
            code = Code(found[0].module, found[1], found[0])
            marks = _marks(code.node)
            if marks & {"property", "cached_property", "functools.cached_property"}:
                return self.call(code, [owner], {}, frame.depth + 1)
            return Bound(None if "staticmethod" in marks else owner, attr, code)
        if attr in self.updaters or attr == "get":
            return Bound(owner, attr)
        return self.fixed[attr] if attr in self.fixed else owner.get(attr)

    def _of_ref(self, owner: Ref, attr: str) -> Value:
        if not owner.name:
            return self._named(self.names.member(owner.module, attr))
        found = self.names.method(owner, attr)
        if found is None:
            return Thing(f"{owner.name}.{attr}", "a class attribute is not followed")
        code = Code(found[0].module, found[1], found[0])
        marks = _marks(code.node)
        return Bound(owner if "classmethod" in marks else None, attr, code)

    # --- displays and items

    def _display(self, elts: Sequence[ast.expr], frame: Frame) -> list[Value]:
        found: list[Value] = []
        for one in elts:
            if isinstance(one, ast.Constant):
                found.append(one.value)
            elif isinstance(one, ast.Starred):
                items = self.items(self.expr(one.value, frame))
                found += items if items is not None else [Thing(ast.unparse(one))]
            else:
                found.append(self.expr(one, frame))
        return found

    def _dict(
        self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr], frame: Frame
    ) -> dict[Value, Value]:
        found: dict[Value, Value] = {}
        for key, value in zip(keys, values, strict=True):
            given = self.expr(value, frame)
            if key is None:
                found.update(given if isinstance(given, dict) else {})
            else:
                found[self.expr(key, frame)] = given
        return found

    def _joined(self, values: Sequence[ast.expr], frame: Frame) -> Value:
        parts = [
            self.expr(v.value if isinstance(v, ast.FormattedValue) else v, frame) for v in values
        ]
        return self.each(self._text_of, *parts)

    def _text_of(self, *parts: Value) -> Value:
        if all(isinstance(part, str | int) for part in parts):
            return "".join(map(str, parts))
        return Thing("".join(map(shown, parts)), self._reason(parts))

    def _item(self, owner: Value, index: ast.expr, node: ast.expr, frame: Frame) -> Value:
        if isinstance(owner, Outside) and owner.dotted.rpartition(".")[2] == "Literal":
            elts = index.elts if isinstance(index, ast.Tuple) else [index]
            return _flat(self._display(elts, frame))
        key = self.expr(index, frame)
        if isinstance(key, Each):
            return self.each(lambda held, one: self._at(held, one, node, frame), owner, key)
        return self._at(owner, key, node, frame)

    def _at(self, owner: Value, key: Value, node: ast.expr, frame: Frame) -> Value:
        if isinstance(owner, dict) and isinstance(key, Thing):
            return self._choose(owner, key, node, frame)
        if isinstance(owner, list | tuple | dict | str) and is_known(key):
            try:
                return owner[key]
            except (LookupError, TypeError):
                raise Raised() from None
        if isinstance(owner, Thing) and isinstance(key, str):
            return owner.get(key)
        return Thing(text_of(node), self._reason([owner, key]))

    def _choose(self, table: dict[Value, Value], key: Thing, node: ast.expr, frame: Frame) -> Value:
        """The item of a table under a key that is not known: any of them."""
        for known, value in table.items():
            if self._truth(self._compared(ast.Eq, key, known), node, frame):
                return value
        raise Raised()

    def items(self, value: Value) -> list[Value] | None:
        """The items of a value that is iterated over; None where they are not known."""
        if isinstance(value, list | tuple | set | frozenset | dict):
            return list(value)
        return None

    def _comprehension(
        self, elt: ast.expr, generator: ast.comprehension, node: ast.expr, frame: Frame
    ) -> Value:
        source = self.expr(generator.iter, frame)
        items = self.items(source)
        if items is None:
            return Thing(text_of(node), self._reason([source]))
        inner = Frame(frame.module, frame.owner, dict(frame.names), frame.depth, frame.wanted)
        found = []
        for item in items:
            self.assign(generator.target, item, inner)
            if all(self.holds(test, inner) for test in generator.ifs):
                found.append(self.expr(elt, inner))
        return found

    # --- to be given by the other half

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        raise NotImplementedError


@lru_cache(maxsize=1024)
def _marks(function: ast.FunctionDef) -> frozenset[str]:
    """The decorators of a function."""
    return frozenset(map(ast.unparse, function.decorator_list))


def _identity(value: Value) -> object:
    """What is the same for the same value on every path; None where nothing is."""
    match value:
        case Each():
            return id(value)
        case str() | int() | None:
            return ("constant", value)
        case list() | tuple() | set() | frozenset():
            parts = tuple(map(_identity, value))
            return None if None in parts else (type(value), frozenset(parts), len(parts))
        case _:
            return None


def _size(value: Value) -> int:
    """For how many checkpoints a value is given."""
    if isinstance(value, Each):
        return len(value.values)
    return max(map(_size, value), default=0) if isinstance(value, list | tuple | set) else 0


def _denied(value: Value) -> Value:
    return opposite(value) if is_open(value) else not certain(value)


def _all_of(*answers: Value) -> Value:
    """A chain of comparisons: false if one is, else unknown if one is."""
    if any(answer is False for answer in answers):
        return False
    return next((answer for answer in answers if is_open(answer)), True)


def _flat(values: Iterable[Value]) -> tuple[Value, ...]:
    """The members of a ``Literal``, nested ones included (PEP 586)."""
    found: list[Value] = []
    for value in values:
        found.extend(value if isinstance(value, tuple) else [value])
    return tuple(found)
