"""Statements and calls of configuration code, over concrete values, as Python runs them.

What is not followed ends the run with :class:`CannotFollow`. In a *lenient* frame such a statement
is left out where it can change nothing that is asked about: the engine's own settling of a
configuration also says how to start a server, of which a checkpoint knows nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from auditor.checkpoints import operations as ops
from auditor.checkpoints.scopes import locals_of
from auditor.checkpoints.values import (
    CannotFollow,
    Frame,
    Function,
    Object,
    Raised,
    Unknown,
    Value,
)
from auditor.contracts.names import Names
from auditor.values import Place

_MAX_STEPS = 100_000
_MAX_DEPTH = 24


class Returned(BaseException):
    """A function returns."""

    def __init__(self, value: Value) -> None:
        self.value = value


class Broke(BaseException):
    """``break``."""


class Continued(BaseException):
    """``continue``."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A line that decided or changed something: its place, its text, and what came of it."""

    where: Place
    text: str
    note: str


class Statements:
    """Runs functions of a tree.

    Args:
        names: the definitions of the tree.
        interest: attributes whose assignment is noted, and never left out.
    """

    def __init__(self, names: Names, interest: Iterable[str]) -> None:
        self.names = names
        self.interest = frozenset(interest)
        self.steps = 0
        self.depth = 0
        #: The conditions that held on the way, and the assignments of interest.
        self.taken: list[Taken] = []
        #: What was left out in lenient frames, and why.
        self.left_out: list[CannotFollow] = []
        #: Functions whose frames are lenient, by their own name.
        self.lenient: frozenset[str] = frozenset()
        self._waiting: list[Taken] = []
        self._handled: list[Raised] = []

    # --- calls

    def call_function(
        self, function: Function, args: Sequence[Value], named: Mapping[str, Value]
    ) -> Value:
        """The value that a function of the tree returns."""
        node = function.node
        where = self.place(node, function.module)
        if self.depth >= _MAX_DEPTH:
            raise CannotFollow("calls are nested too deeply", where)
        bound = self._bind(function, args, named, where)
        first = next((one.arg for one in (*node.args.posonlyargs, *node.args.args)), "")
        lenient = function.name in self.lenient
        frame = Frame(
            function.module, bound, locals_of(node), function.outer, function.owner, first, lenient
        )
        return self.run(node, frame)

    def run(self, node: ast.FunctionDef | ast.Lambda, frame: Frame) -> Value:
        """Run the body of a function in a frame that holds its arguments."""
        if isinstance(node, ast.Lambda):
            return self._deeper(lambda: self.expr(node.body, frame))
        if any(isinstance(one, ast.Yield | ast.YieldFrom) for one in ast.walk(node)):
            raise CannotFollow("a generator function", self.place(node, frame.module))
        return self._deeper(lambda: self._body(node.body, frame))

    def _deeper(self, run: Callable[[], Value]) -> Value:
        self.depth += 1
        try:
            return run()
        finally:
            self.depth -= 1

    def _body(self, body: Sequence[ast.stmt], frame: Frame) -> Value:
        try:
            self.block(body, frame)
        except Returned as returned:
            return returned.value
        return None

    def _bind(
        self, function: Function, args: Sequence[Value], named: Mapping[str, Value], where: Place
    ) -> dict[str, Value]:
        """The parameters of a call, by Python's rules."""
        given, name = function.node.args, function.name
        positional = [one.arg for one in (*given.posonlyargs, *given.args)]
        keyword = [one.arg for one in (*given.args, *given.kwonlyargs)]
        bound: dict[str, Value] = dict(zip(positional, args, strict=False))
        if len(args) > len(positional) and given.vararg is None:
            raise _bad_call(f"{name}() takes {len(positional)} positional arguments", where)
        if given.vararg is not None:
            bound[given.vararg.arg] = tuple(args[len(positional) :])
        rest: dict[str, Value] = {}
        for key, value in named.items():
            if key in keyword and key in bound:
                raise _bad_call(f"{name}() got multiple values for argument {key!r}", where)
            if key not in keyword and given.kwarg is None:
                raise _bad_call(f"{name}() got an unexpected keyword argument {key!r}", where)
            (bound if key in keyword else rest)[key] = value
        if given.kwarg is not None:
            bound[given.kwarg.arg] = rest
        self._fill_defaults(function, positional, bound)
        for key in (*positional, *(one.arg for one in given.kwonlyargs)):
            if key not in bound:
                raise _bad_call(f"{name}() missing a required argument: {key!r}", where)
        return bound

    def _fill_defaults(
        self, function: Function, positional: list[str], bound: dict[str, Value]
    ) -> None:
        given = function.node.args
        late = positional[len(positional) - len(given.defaults) :]
        frame = function.outer or Frame(function.module, {}, owner=function.owner)
        pairs = [
            *zip(late, given.defaults, strict=True),
            *zip((one.arg for one in given.kwonlyargs), given.kw_defaults, strict=True),
        ]
        for key, default in pairs:
            if key not in bound and default is not None:
                bound[key] = self.expr(default, frame)

    # --- statements

    def block(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        """Run statements in order."""
        for node in body:
            self.step(node, frame)
            try:
                self.statement(node, frame)
            except CannotFollow as problem:
                problem.where = problem.where or self.place(node, frame.module)
                if not frame.lenient:
                    raise
                self._leave_out(node, frame, problem)

    def step(self, node: ast.AST, frame: Frame) -> None:
        """Count one step of the run.

        Raises:
            CannotFollow: there were too many.
        """
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise CannotFollow("the run takes too many steps", self.place(node, frame.module))

    def _leave_out(self, node: ast.stmt, frame: Frame, problem: CannotFollow) -> None:
        """Go on behind a statement that was not followed, unless it may change what is asked."""
        bound = {one for inner in ast.walk(node) for one in _bound_by(inner)}
        if bound & self.interest or any(isinstance(n, ast.Return) for n in ast.walk(node)):
            raise problem
        for inner in ast.walk(node):
            match inner:
                case ast.Name(id=name, ctx=ast.Store()):
                    frame.names[name] = Unknown(problem.reason, problem.where)
                case ast.Attribute(value=owner, attr=attr, ctx=ast.Store()):
                    holder = self._quietly(owner, frame)
                    if isinstance(holder, Object):
                        unknown = Unknown(problem.reason, problem.where)
                        self.set_attribute(holder, attr, unknown, None)
                case _:
                    continue
        self.left_out.append(problem)

    def _quietly(self, node: ast.expr, frame: Frame) -> Value:
        """The value of a plain name or attribute; None of anything else."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        try:
            return self.expr(node, frame)
        except (CannotFollow, Raised):
            return None

    def statement(self, node: ast.stmt, frame: Frame) -> None:
        """Run one statement."""
        match node:
            case ast.Assign(targets=targets, value=value):
                given = self.expr(value, frame)
                for target in targets:
                    self.assign(target, given, frame)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.expr(value, frame), frame)
            case ast.AnnAssign() | ast.Pass() | ast.Global() | ast.Nonlocal():
                return
            case ast.AugAssign():
                self._in_place(node, frame)
            case ast.Expr(value=value):
                self.expr(value, frame)
            case ast.If():
                self._if(node, frame)
            case ast.Return(value=value):
                raise Returned(None if value is None else self.expr(value, frame))
            case ast.Raise():
                self._raise(node, frame)
            case ast.Assert():
                self._assert(node, frame)
            case ast.For():
                self._for(node, frame)
            case ast.While():
                self._while(node, frame)
            case ast.Break():
                raise Broke()
            case ast.Continue():
                raise Continued()
            case ast.Try():
                self._try(node, frame)
            case ast.Delete(targets=targets):
                for target in targets:
                    self.delete(target, frame)
            case ast.Import() | ast.ImportFrom():
                self.imports(node, frame)
            case ast.FunctionDef():
                if node.decorator_list:
                    raise CannotFollow("a decorated inner function", self.place(node, frame.module))
                function = Function(node, frame.module, frame.owner, frame)
                self.bind_name(node.name, function, frame)
            case _:
                kind = type(node).__name__.lower()
                raise CannotFollow(f"a {kind} statement", self.place(node, frame.module))

    def _if(self, node: ast.If, frame: Frame) -> None:
        try:
            holds = self.holds(node.test, frame)
        except CannotFollow:
            if frame.lenient and _only_refuses(node):
                self.left_out.append(
                    CannotFollow("a user's choice", self.place(node, frame.module))
                )
                return
            raise
        if holds:
            self._waiting.append(self._taken(node.test, frame, "holds"))
            depth = len(self._waiting)
            try:
                self.block(node.body, frame)
            finally:
                del self._waiting[depth - 1 :]
        else:
            self.block(node.orelse, frame)

    def _taken(self, node: ast.AST, frame: Frame, note: str) -> Taken:
        return Taken(self.place(node, frame.module), ast.unparse(node), note)

    def note(self, node: ast.AST, frame: Frame, what: str) -> None:
        """Keep that a line changed something of interest, with the conditions that led there."""
        self.taken += [one for one in self._waiting if one not in self.taken]
        self.taken.append(self._taken(node, frame, what))

    def _in_place(self, node: ast.AugAssign, frame: Frame) -> None:
        where = self.place(node, frame.module)
        load = ast.copy_location(_as_load(node.target), node.target)
        left, right = self.expr(load, frame), self.expr(node.value, frame)
        ops.check_binary(node.op, left, right)
        made = ops.native(where, ops.IN_PLACE.get(type(node.op), _no_operator), left, right)
        self.assign(node.target, made, frame)

    def _raise(self, node: ast.Raise, frame: Frame) -> None:
        where = self.place(node, frame.module)
        if node.exc is None:
            if not self._handled:
                raise Raised(RuntimeError("No active exception to reraise"), where)
            raise self._handled[-1]
        error = self.expr(node.exc, frame)
        if isinstance(error, type) and issubclass(error, BaseException):
            error = error()
        if not isinstance(error, BaseException):
            raise CannotFollow("an exception of a class that is not built in", where)
        self.note(node, frame, "raised")
        raise Raised(error, where)

    def _assert(self, node: ast.Assert, frame: Frame) -> None:
        if not self.holds(node.test, frame):
            said = () if node.msg is None else (self.expr(node.msg, frame),)
            self.note(node, frame, "does not hold")
            raise Raised(AssertionError(*said), self.place(node, frame.module))

    def _for(self, node: ast.For, frame: Frame) -> None:
        for item in self.iterate(self.expr(node.iter, frame), node.iter, frame):
            self.step(node, frame)
            self.assign(node.target, item, frame)
            try:
                self.block(node.body, frame)
            except Broke:
                return
            except Continued:
                continue
        self.block(node.orelse, frame)

    def _while(self, node: ast.While, frame: Frame) -> None:
        while self.holds(node.test, frame):
            self.step(node, frame)
            try:
                self.block(node.body, frame)
            except Broke:
                return
            except Continued:
                continue
        self.block(node.orelse, frame)

    def _try(self, node: ast.Try, frame: Frame) -> None:
        try:
            try:
                self.block(node.body, frame)
            except Raised as raised:
                self._handle(node, raised, frame)
            else:
                self.block(node.orelse, frame)
        finally:
            self.block(node.finalbody, frame)

    def _handle(self, node: ast.Try, raised: Raised, frame: Frame) -> None:
        for handler in node.handlers:
            if handler.type is not None and not self._catches(handler.type, raised, frame):
                continue
            if handler.name is not None:
                self.bind_name(handler.name, raised.error, frame)
            self._handled.append(raised)
            try:
                self.block(handler.body, frame)
            finally:
                self._handled.pop()
                if handler.name is not None:
                    frame.names.pop(handler.name, None)
            return
        raise raised

    def _catches(self, node: ast.expr, raised: Raised, frame: Frame) -> bool:
        caught = self.expr(node, frame)
        for one in caught if isinstance(caught, tuple) else (caught,):
            if not (isinstance(one, type) and issubclass(one, BaseException)):
                raise CannotFollow(
                    "a handler of an exception that is not built in",
                    self.place(node, frame.module),
                )
            if isinstance(raised.error, one):
                return True
        return False

    # --- to be given by the other halves

    def place(self, node: ast.AST, module: str) -> Place:
        """Where a node of a module stands."""
        return Place(self.names.path(module), getattr(node, "lineno", 0))

    def expr(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression."""
        raise NotImplementedError

    def holds(self, node: ast.expr, frame: Frame) -> bool:
        """Whether a test holds."""
        raise NotImplementedError

    def iterate(self, value: Value, node: ast.AST, frame: Frame) -> Iterable[Value]:
        """The items of a value, one by one."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """``target = value``."""
        raise NotImplementedError

    def delete(self, target: ast.expr, frame: Frame) -> None:
        """``del target``."""
        raise NotImplementedError

    def set_attribute(self, owner: Value, name: str, value: Value, where: Place | None) -> None:
        """``owner.name = value``."""
        raise NotImplementedError

    def imports(self, node: ast.Import | ast.ImportFrom, frame: Frame) -> None:
        """An import inside a function."""
        raise NotImplementedError

    def bind_name(self, name: str, value: Value, frame: Frame) -> None:
        """Bind a name of the scope that it belongs to."""
        raise NotImplementedError


def _bad_call(what: str, where: Place) -> Raised:
    return Raised(TypeError(what), where)


def _no_operator(*_: Value) -> Value:
    raise CannotFollow("an operator that is not followed")


def _as_load(node: ast.expr) -> ast.expr:
    match node:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=owner, attr=attr):
            return ast.copy_location(ast.Attribute(owner, attr, ast.Load()), node)
        case ast.Subscript(value=owner, slice=index):
            return ast.copy_location(ast.Subscript(owner, index, ast.Load()), node)
        case _:
            return node


def _bound_by(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case _:
            return


def _only_refuses(node: ast.If) -> bool:
    """Whether all that a branch can do is to refuse the configuration."""
    return not node.orelse and all(isinstance(one, ast.Raise) for one in node.body)
