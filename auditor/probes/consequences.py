"""What the engine does where the answer to a probe is no, read off the statements around it.

From the probe outwards: what its value is without the attribute, what the expressions around make
of it, and which branch that takes. A value that is kept under a name is followed to the test on
that name, and one that a function returns to the tests of its callers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from auditor.probes.document import Does, Without
from auditor.probes.trees import Function, Module, Trees, last_name

_DEPTH = 4
_WIDTH = 120


@dataclass(frozen=True, slots=True)
class Value:
    """What a probe gives without the attribute: as source, and whether it is true if known."""

    text: str
    true: bool | None


def default_value(node: ast.expr) -> Value:
    """The value of a default."""
    match node:
        case ast.Constant(value=value):
            return Value(ast.unparse(node), bool(value))
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]) | ast.Set(elts=[]):
            return Value(ast.unparse(node), False)
        case ast.Lambda():
            return Value(ast.unparse(node), True)
        case _:
            return Value(ast.unparse(node), None)


class Consequences:
    """Follows probes through the modules of the engine.

    Args:
        trees: those modules.
    """

    def __init__(self, trees: Trees) -> None:
        self._trees = trees

    def of(self, node: ast.expr, value: Value, module: Module, depth: int = 0) -> Without:
        """What follows where the expression ``node`` has ``value``."""
        at: ast.AST = node
        note = ""
        for parent in module.above(node):
            match parent:
                case ast.expr():
                    if isinstance(parent, ast.NamedExpr):
                        at = parent
                        continue
                    step = self._outwards(at, value, parent, module)
                    if isinstance(step, Without):
                        return step
                    value, more = step
                    note = note or more
                case ast.comprehension() if value.true and at in parent.ifs:
                    return self._made("falls back", f"takes the item: {_short(parent)}", at, module)
                case ast.comprehension():
                    return self._made("skips", f"leaves the item out: {_short(parent)}", at, module)
                case ast.keyword():
                    pass
                case _:
                    return self._statement(at, value, parent, module, note, depth)
            at = parent
        return self._made("undecided", "nothing around it was understood", node, module)

    def _made(self, does: Does, text: str, node: ast.AST, module: Module) -> Without:
        line = int(getattr(node, "lineno", 0))
        return Without(does, " ".join(text.split()), module.path, line)

    # --- expressions

    def _outwards(
        self, at: ast.AST, value: Value, parent: ast.expr, module: Module
    ) -> Without | tuple[Value, str]:
        """The value of an expression by that of a part of it, with what else it depends on."""
        match parent:
            case ast.UnaryOp(op=ast.Not()):
                true = None if value.true is None else not value.true
                return Value(str(true), true), ""
            case ast.BoolOp(op=op, values=values):
                return self._boolean(at, value, op, values, parent, module)
            case ast.Compare():
                return _compared(at, value, parent), ""
            case ast.IfExp(test=test, body=body, orelse=orelse) if test is at:
                if value.true is None:
                    return self._made("falls back", f"uses {value.text}", parent, module)
                taken = body if value.true else orelse
                if isinstance(taken, ast.Constant):
                    return default_value(taken), ""
                return self._made("falls back", f"uses {_short(taken)}", taken, module)
            case ast.Call(func=func) if func is at:
                return self._called(value, parent, module)
            case ast.Call():
                return self._handed(value, parent, module)
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) if inner is at:
                if value.text == "None":
                    text = f"AttributeError or TypeError: None in {_short(parent)}"
                    return self._made("raises", text, parent, module)
                return Value(f"{value.text} in {_short(parent)}", None), ""
            case ast.GeneratorExp(elt=elt) | ast.ListComp(elt=elt) if elt is at:
                return value, ""
            case ast.Lambda():
                return self._made("undecided", f"is kept in {_short(parent)}", parent, module)
            case _:
                return Value(value.text, None), ""

    def _boolean(
        self,
        at: ast.AST,
        value: Value,
        op: ast.boolop,
        values: list[ast.expr],
        parent: ast.expr,
        module: Module,
    ) -> Without | tuple[Value, str]:
        """``and`` and ``or``: decided by this operand, or by the others."""
        others = [one for one in values if one is not at]
        if isinstance(op, ast.And):
            if value.true is False:
                return value, ""
            return Value("the rest", value.true), f"where {_joined(others, ' and ')}"
        if value.true is True:
            return value, ""
        if not self._is_test(parent, module) and at is not values[-1]:
            rest = values[values.index(at) + 1 :] if at in values else others
            return self._made("falls back", f"uses {_joined(rest, ' or ')}", parent, module)
        return Value(value.text, value.true), f"unless {_joined(others, ' or ')}"

    def _is_test(self, node: ast.expr, module: Module) -> bool:
        """Whether an expression is asked for its truth alone."""
        at: ast.AST = node
        for parent in module.above(node):
            match parent:
                case (
                    ast.If(test=test)
                    | ast.While(test=test)
                    | ast.Assert(test=test)
                    | ast.IfExp(test=test)
                ):
                    return test is at
                case ast.UnaryOp(op=ast.Not()):
                    return True
                case ast.BoolOp():
                    at = parent
                case _:
                    return False
        return False

    def _called(
        self, value: Value, parent: ast.Call, module: Module
    ) -> Without | tuple[Value, str]:
        """The default itself is called: a lambda gives its body, None cannot be."""
        if value.text == "None":
            text = f"TypeError: None is called in {_short(parent)}"
            return self._made("raises", text, parent, module)
        if value.text.startswith("lambda"):
            body = value.text.partition(":")[2].strip()
            return default_value(ast.parse(body, mode="eval").body), ""
        return Value(f"{value.text}()", None), ""

    def _handed(
        self, value: Value, parent: ast.Call, module: Module
    ) -> Without | tuple[Value, str]:
        name = last_name(parent.func)
        if name in ("bool", "callable", "any", "all"):
            return Value(str(value.true), value.true), ""
        if name == "isinstance":
            return Value("False", False if value.text == "None" else None), ""
        if name in ("cast", "int", "float", "str", "list", "tuple", "set", "dict", "len", "max"):
            return value, ""
        text = f"hands {value.text} to {_short(parent.func)}()"
        return self._made("falls back", text, parent, module)

    # --- statements

    def _statement(
        self, at: ast.AST, value: Value, node: ast.AST, module: Module, note: str, depth: int
    ) -> Without:
        """What a statement does with a value of an expression in it."""
        match node:
            case ast.If(test=test) if test is at:
                return self._branch(node, value, module, note)
            case ast.While(test=test) if test is at:
                return self._made("skips", f"does not run `while {_short(test)}`", node, module)
            case ast.Assert(test=test) if test is at:
                return self._assert(node, value, module)
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                return self._kept(target, value, node, module, depth)
            case ast.Return():
                return self._returned(value, node, module, depth)
            case ast.For():
                does: Does = "skips" if value.true is False else "undecided"
                return self._made(does, f"goes through {value.text}", node, module)
            case ast.Expr():
                return self._made("skips", "nothing is done", node, module)
            case ast.Raise():
                return self._made("raises", _short(node), node, module)
            case _:
                text = f"uses {value.text} in `{_short(node)}`"
                return self._made("falls back", text, node, module)

    def _assert(self, node: ast.Assert, value: Value, module: Module) -> Without:
        if value.true is False:
            return self._made("raises", f"AssertionError: {_short(node.test)}", node, module)
        does: Does = "skips" if value.true else "undecided"
        return self._made(does, f"{_short(node)} holds", node, module)

    def _branch(self, node: ast.If, value: Value, module: Module, note: str) -> Without:
        """The branch of an ``if`` that is taken."""
        if value.true is None:
            text = f"`if {_short(node.test)}` depends on {value.text}"
            return self._made("undecided", text, node, module)
        taken = node.body if value.true else node.orelse
        tail = f" ({note})" if note else ""
        if taken:
            does, text = _block(taken)
            return self._made(does, text + tail, taken[0], module)
        return self._passed_by(node, module, tail)

    def _passed_by(self, node: ast.If, module: Module, tail: str) -> Without:
        """No branch is taken: what follows stands in for the body where that ends the way."""
        last = node.body[-1]
        if isinstance(last, ast.Return | ast.Continue | ast.Break):
            after = _after(node, module)
            if after is not None and isinstance(last, ast.Return):
                does, text = _block([after])
                does = "raises" if does == "raises" else "falls back"
                return self._made(does, f"goes on with `{text}`{tail}", after, module)
        return self._made("skips", f"leaves out `{_short(node.body[0])}`{tail}", node, module)

    def _kept(
        self, target: ast.expr, value: Value, node: ast.AST, module: Module, depth: int
    ) -> Without:
        """A value under a name, or in an attribute: what the tests on it do."""
        found_uses = self._uses(target, node, module) if depth < _DEPTH else ()
        uses = sorted(found_uses, key=lambda one: (one.lineno, one.col_offset))
        tests = {module.function(one): one for one in reversed(uses) if _tested(one, module)}
        found = [self.of(use, value, module, depth + 1) for use in tests.values()]
        for does in ("raises", "falls back", "skips"):
            for one in reversed(found):
                if one.does == does:
                    return one
        text = f"{_short(target)} is {value.text}"
        raised = next((one for one in self._misused(uses, value, module)), None)
        return raised or self._made("falls back", text, node, module)

    def _misused(self, uses: list[ast.expr], value: Value, module: Module) -> Iterator[Without]:
        """Uses that None does not bear, where no test stands before them."""
        for use in uses if value.text == "None" else ():
            parent = module.parents.get(use)
            match parent:
                case ast.Attribute(value=inner) | ast.Call(func=inner) if inner is use:
                    text = f"AttributeError or TypeError: None in {_short(parent)}"
                    yield self._made("raises", text, parent, module)
                case _:
                    continue

    def _uses(self, target: ast.expr, node: ast.AST, module: Module) -> Iterator[ast.expr]:
        """Where a name or attribute is read after it is set."""
        match target:
            case ast.Name(id=name):
                scope: ast.AST = module.function(node) or module.tree
                line = int(getattr(node, "lineno", 0))
                for one in ast.walk(scope):
                    if isinstance(one, ast.Name) and one.id == name and one.lineno > line:
                        loaded = isinstance(one.ctx, ast.Load)
                        yield from [one] if loaded else []
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                scope = module.cls(node) or module.tree
                for one in ast.walk(scope):
                    match one:
                        case ast.Attribute(
                            value=ast.Name(id="self"), attr=read, ctx=ast.Load()
                        ) if read == attr:
                            yield one
                        case _:
                            continue
            case _:
                return

    def _returned(self, value: Value, node: ast.Return, module: Module, depth: int) -> Without:
        """A value that a function returns: what its callers in the engine do with it."""
        function = module.function(node)
        text = f"returns {value.text}"
        if function is None or depth >= _DEPTH:
            return self._made("undecided", text, node, module)
        found = [
            self.of(call, value, where, depth + 1)
            for where, call in self._trees.calls(function.name)
            if where.function(call) is not function
        ]
        for does in ("raises", "falls back", "skips"):
            for one in found:
                if one.does == does:
                    return one
        if value.true is not None and not _is_question(function, node):
            return self._made("falls back", text, node, module)
        return self._made("undecided", text, node, module)


def _is_question(function: Function, node: ast.Return) -> bool:
    """Whether the probe is all that a function returns."""
    return function.body[-1] is node


def _compared(at: ast.AST, value: Value, node: ast.Compare) -> Value:
    """A comparison with a constant; of anything else nothing is known."""
    if len(node.ops) != 1:
        return Value(value.text, None)
    other = node.comparators[0] if node.left is at else node.left
    op = node.ops[0]
    if not isinstance(other, ast.Constant):
        return Value(f"the comparison of {value.text}", None)
    same: bool | None = ast.unparse(other) == value.text
    known = value.true is not None and not value.text.startswith("lambda")
    if other.value is None and value.true:
        same, known = False, True
    if not known:
        return Value(f"the comparison of {value.text}", None)
    match op:
        case ast.Is() | ast.Eq():
            return Value(str(same), same)
        case ast.IsNot() | ast.NotEq():
            return Value(str(not same), not same)
        case ast.Gt() if value.text in ("0", "None", "False"):
            return Value("False", False)
        case _:
            return Value(f"the comparison of {value.text}", None)


def _tested(node: ast.expr, module: Module) -> bool:
    """Whether a use stands in a test, or in one that is itself kept under a name."""
    at: ast.AST = node
    asked = True
    for parent in module.above(node):
        match parent:
            case ast.Assign(targets=[ast.Name()]):
                return at is not node and asked
            case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test):
                return test is at
            case ast.IfExp(test=test):
                if test is at:
                    return True
            case ast.comprehension(ifs=ifs):
                return at in ifs
            case ast.stmt():
                return False
        asked = asked and (isinstance(parent, ast.Compare | ast.BoolOp) or _is_negated(parent))
        at = parent
    return False


def _is_negated(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _block(body: list[ast.stmt]) -> tuple[Does, str]:
    """What a branch does."""
    for statement in body:
        if isinstance(statement, ast.Raise):
            return "raises", _raised(statement)
        if isinstance(statement, ast.Assert) and _is_false(statement.test):
            return "raises", f"AssertionError: {_short(statement)}"
    telling = [one for one in body if not _says_something(one)]
    if not telling:
        return "skips", _short(body[0])
    first = telling[0]
    match first:
        case ast.Pass() | ast.Continue() | ast.Break():
            return "skips", _short(first)
        case ast.Return(value=None) | ast.Return(value=ast.Constant(value=None)):
            return "skips", _short(first)
        case ast.If(test=test):
            return "falls back", f"asks `{_short(test)}`"
        case _:
            return "falls back", _short(first)


def _is_false(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and not test.value


def _raised(node: ast.Raise) -> str:
    match node.exc:
        case ast.Call(func=func, args=[first, *_]):
            return f"{ast.unparse(func)}: {_sentence(first)}"
        case None:
            return "the exception that is handled"
        case other:
            return ast.unparse(other)


def _sentence(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            return "".join(
                str(one.value) if isinstance(one, ast.Constant) else f"{{{ast.unparse(one.value)}}}"
                for one in values
                if isinstance(one, ast.Constant | ast.FormattedValue)
            )
        case _:
            return _short(node)


def _says_something(node: ast.stmt) -> bool:
    """Whether a statement only tells something to a log."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner))):
            return last_name(owner) in ("logger", "log", "warnings", "logging")
        case ast.Expr(value=ast.Constant()):
            return True
        case _:
            return False


def _after(node: ast.If, module: Module) -> ast.stmt | None:
    """The statement behind an ``if`` in its block."""
    parent = module.parents.get(node)
    for block in ("body", "orelse", "finalbody"):
        body = getattr(parent, block, None)
        if isinstance(body, list) and node in body:
            place = body.index(node) + 1
            return body[place] if place < len(body) else None
    return None


def _joined(nodes: list[ast.expr], sign: str) -> str:
    return sign.join(_short(node) for node in nodes)


def _short(node: ast.AST) -> str:
    """The first line of the source of a node."""
    text = ast.unparse(node).partition("\n")[0]
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
