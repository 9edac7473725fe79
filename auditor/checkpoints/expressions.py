"""Expressions of configuration code, over concrete values."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence

from auditor.checkpoints import operations as ops
from auditor.checkpoints.lookups import Lookups
from auditor.checkpoints.values import (
    CannotFollow,
    ClassValue,
    External,
    Frame,
    Function,
    ModuleValue,
    Object,
    Raised,
    Unknown,
    Value,
    class_of,
)
from auditor.contracts.names import Ref
from auditor.values import Place

_COMPARED: Mapping[type[ast.cmpop], Callable[[Value, Value], Value]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip


class Expressions(Lookups):
    """Evaluates expressions."""

    def expr(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression."""
        where = self.place(node, frame.module)
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self.lookup(name, frame, node)
            case ast.Attribute(value=owner, attr=attr):
                return self.attribute(self.expr(owner, frame), attr, node, frame)
            case ast.Call():
                return self.call_node(node, frame)
            case ast.Compare():
                return self._compare(node, frame)
            case ast.BoolOp():
                return self._bool_op(node, frame)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.truth(self.expr(operand, frame), where)
            case ast.UnaryOp(op=op, operand=operand):
                return ops.native(where, ops.UNARY[type(op)], self.expr(operand, frame))
            case ast.BinOp():
                return self._binary(node, frame)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.expr(body if self.holds(test, frame) else orelse, frame)
            case ast.Subscript(value=owner, slice=index):
                return self.item(self.expr(owner, frame), self.expr(index, frame), node, frame)
            case ast.Slice(lower=lower, upper=upper, step=step):
                parts = [one and self.expr(one, frame) for one in (lower, upper, step)]
                return slice(*parts)
            case ast.NamedExpr(target=target, value=value):
                given = self.expr(value, frame)
                self.assign(target, given, frame)
                return given
            case ast.Lambda():
                return Function(node, frame.module, frame.owner, frame)
            case _:
                return self._display(node, frame, where)

    def _display(self, node: ast.expr, frame: Frame, where: Place) -> Value:
        match node:
            case ast.List(elts=elts):
                return self.elements(elts, frame)
            case ast.Tuple(elts=elts):
                return tuple(self.elements(elts, frame))
            case ast.Set(elts=elts):
                return ops.native(where, set, self.elements(elts, frame))
            case ast.Dict(keys=keys, values=values):
                return self._dict(keys, values, frame)
            case ast.JoinedStr(values=values):
                return self._joined(values, frame)
            case ast.ListComp(elt=elt, generators=generators):
                return list(self._comprehend(elt, generators, frame))
            case ast.SetComp(elt=elt, generators=generators):
                return ops.native(where, set, list(self._comprehend(elt, generators, frame)))
            case ast.GeneratorExp(elt=elt, generators=generators):
                return self._comprehend(elt, generators, frame)
            case ast.DictComp(key=key, value=value, generators=generators):
                pair = ast.copy_location(ast.Tuple([key, value], ast.Load()), node)
                return ops.native(where, dict, list(self._comprehend(pair, generators, frame)))
            case _:
                kind = type(node).__name__
                raise CannotFollow(f"an expression of the kind {kind}", where)

    def elements(self, nodes: Sequence[ast.expr], frame: Frame) -> list[Value]:
        """The values of a display or of arguments, ``*`` taken apart."""
        found: list[Value] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found += self.iterate(self.expr(node.value, frame), node, frame)
                ops.bounded(len(found))
            else:
                found.append(self.expr(node, frame))
        return found

    def _dict(
        self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr], frame: Frame
    ) -> dict[Value, Value]:
        made: dict[Value, Value] = {}
        for key, value in zip(keys, values, strict=True):
            where = self.place(value, frame.module)
            if key is None:
                made.update(self.mapping(self.expr(value, frame), where))
            else:
                name = self.expr(key, frame)
                ops.native(where, made.__setitem__, name, self.expr(value, frame))
        return made

    def mapping(self, given: Value, where: Place) -> Mapping[Value, Value]:
        """What is taken apart by ``**``."""
        if isinstance(given, dict):
            return given
        if ops.is_data(given):
            said = f"{type(given).__name__!r} object is not a mapping"
            raise Raised(TypeError(said), where)
        raise CannotFollow("`**` of something that is not a dict", where)

    def _joined(self, values: Sequence[ast.expr], frame: Frame) -> str:
        parts: list[str] = []
        for node in values:
            match node:
                case ast.Constant(value=str(text)):
                    parts.append(text)
                case ast.FormattedValue(value=value, conversion=conversion, format_spec=spec):
                    where = self.place(node, frame.module)
                    shape = "" if spec is None else self.expr(spec, frame)
                    given = self.expr(value, frame)
                    parts.append(ops.native(where, ops.formatted, given, conversion, shape))
                case _:
                    raise CannotFollow("a part of a text", self.place(node, frame.module))
        ops.bounded(sum(map(len, parts)))
        return "".join(parts)

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.expr(node.left, frame), self.expr(node.right, frame)
        where = self.place(node, frame.module)
        function = ops.BINARY.get(type(node.op))
        if function is None:
            raise CannotFollow("an operator that is not followed", where)
        try:
            ops.check_binary(node.op, left, right)
        except CannotFollow as problem:
            problem.where = where
            raise
        return ops.native(where, function, left, right)

    def _bool_op(self, node: ast.BoolOp, frame: Frame) -> Value:
        value: Value = None
        stops_at = isinstance(node.op, ast.Or)
        for one in node.values:
            value = self.expr(one, frame)
            if one is not node.values[-1] and self.truth(value, self.place(one, frame.module)) is (
                stops_at
            ):
                return value
        return value

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        left = self.expr(node.left, frame)
        result: Value = True
        where = self.place(node, frame.module)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.expr(part, frame)
            result = self._compared(op, left, right, where)
            if part is not node.comparators[-1] and not self.truth(result, where):
                return result
            left = right
        return result

    def _compared(self, op: ast.cmpop, left: Value, right: Value, where: Place) -> Value:
        if isinstance(op, ast.Is | ast.IsNot):
            return _is(left, right, where) is isinstance(op, ast.Is)
        for one in (left, right):
            if isinstance(one, Object) and self._has_own(one, "__eq__", "__contains__"):
                raise CannotFollow("a comparison that a class of the tree defines", where)
        return ops.native(where, _COMPARED[type(op)], left, right)

    def _has_own(self, value: Object, *methods: str) -> bool:
        cls = class_of(value)
        return isinstance(cls, ClassValue) and any(
            self.names.method(cls.ref, name) is not None for name in methods
        )

    def truth(self, value: Value, where: Place | None) -> bool:
        """``bool(value)``."""
        if isinstance(value, Object) and self._has_own(value, "__bool__", "__len__"):
            raise CannotFollow("a truth that a class of the tree defines", where)
        return bool(ops.native(where, bool, value))

    def holds(self, node: ast.expr, frame: Frame) -> bool:
        """Whether a test holds."""
        return self.truth(self.expr(node, frame), self.place(node, frame.module))

    def call_node(self, node: ast.Call, frame: Frame) -> Value:
        """The value of a call expression; given by the other half."""
        raise NotImplementedError

    # --- items and iteration

    def item(self, owner: Value, key: Value, node: ast.AST, frame: Frame) -> Value:
        """``owner[key]``."""
        where = self.place(node, frame.module)
        match owner:
            case External():
                return External(f"{owner.dotted}[…]")
            case Unknown():
                return Unknown(owner.reason)
            case Object() if self._has_own(owner, "__getitem__"):
                method = self.attribute(owner, "__getitem__", node, frame)
                return self.call(method, (key,), {}, node, frame)
            case ClassValue() | type():
                return owner  # a class with type arguments is that class
            case _:
                return ops.native(where, operator.getitem, owner, key)

    def iterate(self, value: Value, node: ast.AST, frame: Frame) -> Iterator[Value]:
        """The items of a value, one by one."""
        where = self.place(node, frame.module)
        if isinstance(value, Object) and self._has_own(value, "__iter__"):
            raise CannotFollow("an iteration that a class of the tree defines", where)
        items = ops.native(where, iter, value)
        while True:
            try:
                item = ops.native(where, next, items)
            except Raised as raised:
                if isinstance(raised.error, StopIteration):
                    return
                raise
            self.step(node, frame)
            yield item

    def _comprehend(
        self, elt: ast.expr, generators: Sequence[ast.comprehension], frame: Frame
    ) -> Iterator[Value]:
        """The items of a comprehension; the first iterable is evaluated at once, as in Python."""
        targets = {
            inner.id
            for one in generators
            for inner in ast.walk(one.target)
            if isinstance(inner, ast.Name)
        }
        first = self.expr(generators[0].iter, frame)
        ops.native(self.place(elt, frame.module), iter, first)
        inside = Frame(
            frame.module, {}, frozenset(targets), frame, frame.owner, frame.first, lenient=False
        )
        return self._rounds(elt, generators, first, inside)

    def _rounds(
        self, elt: ast.expr, generators: Sequence[ast.comprehension], given: Value, frame: Frame
    ) -> Iterator[Value]:
        one, *rest = generators
        for item in self.iterate(given, one.iter, frame):
            self.assign(one.target, item, frame)
            if not all(self.holds(test, frame) for test in one.ifs):
                continue
            if rest:
                yield from self._rounds(elt, rest, self.expr(rest[0].iter, frame), frame)
            else:
                yield self.expr(elt, frame)

    # --- binding

    def bind_name(self, name: str, value: Value, frame: Frame) -> None:
        """Bind a name of the scope that it belongs to."""
        scope: Frame | None = frame
        while scope is not None and name not in scope.local:
            scope = scope.outer
        if scope is None:
            if not frame.lenient:
                raise CannotFollow(f"`{name}` of a module is bound by a function")
            scope = frame
        scope.names[name] = value

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """``target = value``."""
        where = self.place(target, frame.module)
        match target:
            case ast.Name(id=name):
                self.bind_name(name, value, frame)
            case ast.Attribute(value=owner, attr=attr):
                self.set_attribute(self.expr(owner, frame), attr, value, where)
                if attr in self.interest and ops.is_data(value):
                    self.note(target, frame, f"= {value!r}")
            case ast.Subscript(value=owner, slice=index):
                holder, key = self.expr(owner, frame), self.expr(index, frame)
                if isinstance(holder, Unknown):
                    return
                ops.native(where, operator.setitem, holder, key, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self._unpack(targets, value, target, frame)
            case _:
                raise CannotFollow("an assignment that is not followed", where)

    def _unpack(
        self, targets: Sequence[ast.expr], value: Value, node: ast.expr, frame: Frame
    ) -> None:
        where = self.place(node, frame.module)
        try:
            items = list(self.iterate(value, node, frame))
        except Raised as raised:
            if isinstance(raised.error, TypeError) and not hasattr(value, "__iter__"):
                said = f"cannot unpack non-iterable {type(value).__name__} object"
                raise Raised(TypeError(said), where) from raised
            raise
        starred = [n for n, one in enumerate(targets) if isinstance(one, ast.Starred)]
        needed = len(targets) - len(starred)
        if len(items) < needed:
            least = "at least " if starred else ""
            said = f"not enough values to unpack (expected {least}{needed}, got {len(items)})"
            raise Raised(ValueError(said), where)
        if len(items) > needed and not starred:
            said = f"too many values to unpack (expected {needed})"
            raise Raised(ValueError(said), where)
        for first in starred:
            last = len(items) - (len(targets) - first - 1)
            items[first:last] = [items[first:last]]
        for one, item in zip(targets, items, strict=True):
            self.assign(one.value if isinstance(one, ast.Starred) else one, item, frame)

    def delete(self, target: ast.expr, frame: Frame) -> None:
        """``del target``."""
        match target:
            case ast.Name(id=name) if name in frame.local:
                frame.names.pop(name, None)
            case ast.Subscript(value=owner, slice=index):
                where = self.place(target, frame.module)
                held, key = self.expr(owner, frame), self.expr(index, frame)
                ops.native(where, operator.delitem, held, key)
            case _:
                raise CannotFollow("a deletion", self.place(target, frame.module))

    def imports(self, node: ast.Import | ast.ImportFrom, frame: Frame) -> None:
        """An import inside a function: what it names is looked up where it stands."""
        bound = self.names.bound_by(frame.module, [node])
        for name, found in bound.items():
            if isinstance(found, Ref) and found.name:
                module = ModuleValue(found.module)
                where = self.place(node, frame.module)
                value = self.module_attribute(module, found.name, where)
            else:
                value = self.named(found)
            self.bind_name(name, value, frame)


def _is(left: Value, right: Value, where: Place) -> bool:
    """``left is right``; of an unknown value no more is known than that it may not be None."""
    if left is right:
        return True
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Unknown) and not (one.given and other is None):
            raise CannotFollow(one.reason, where)
    if isinstance(left, ClassValue) and isinstance(right, ClassValue):
        return left == right
    return left is right
