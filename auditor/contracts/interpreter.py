"""Runs plain Python of the tree over values that are known in part.

It answers what vLLM's configuration code would do with a checkpoint of which only a few fields are
given. A test on something unknown is a :class:`Question`; :func:`explore` runs the code once for
each way in which its questions can be answered, so that every path is a plain run of Python.
Only statements that bear on the names of interest count: the rest neither runs nor asks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from auditor.contracts.bearing import Bearing
from auditor.contracts.names import Named, Names, Outside, Ref
from auditor.contracts.things import (
    Code,
    Each,
    Frame,
    Question,
    Raised,
    Returned,
    Thing,
    TooMany,
    Value,
    certain,
    is_open,
)
from auditor.nodes import nodes_of
from auditor.values import Place

_Answer = TypeVar("_Answer")
Point = tuple[tuple[bool, ...], int]

_MAX_PATHS = 512
_MAX_DEPTH = 10
_MAX_STEPS = 20_000


class Path(msgspec.Struct):
    """The answers that one run was given, and the questions that it has asked.

    ``apart`` holds the points at which the ways through a call came to different ends, of all paths
    of one exploration: a run is the same up to a point where it was given the same answers.
    """

    planned: list[bool]
    asked: list[Question] = msgspec.field(default_factory=list)
    alive: tuple[int, ...] = (0,)
    known: dict[str, bool] = msgspec.field(default_factory=dict)
    steps: int = 0
    entered: int = 0
    apart: set[Point] = msgspec.field(default_factory=set)

    def enter(self) -> Point:
        """The point of a call: the answers so far, and how many calls there were before."""
        self.entered += 1
        return tuple(question.answer for question in self.asked), self.entered

    def ask(self, thing: Thing, where: Place) -> bool:
        """The truth of something unknown on this path; the same thing is asked once."""
        if thing.denies is not None:
            return not self.ask(thing.denies, where)
        if thing.text not in self.known:
            self.known[thing.text] = self._next(thing.text, where, thing.reason)
        return self.known[thing.text]

    def split(self, group: Sequence[int], where: Place) -> bool:
        """Go on with the checkpoints of a group, or with the others; whether it is the group."""
        chosen_ones = frozenset(group)
        rest = tuple(number for number in self.alive if number not in chosen_ones)
        if group and rest:
            chosen = self._next("", where, "")
            self.alive = tuple(group) if chosen else rest
            return chosen
        return bool(group)

    def _next(self, text: str, where: Place, reason: str) -> bool:
        number = len(self.asked)
        if number == len(self.planned):
            self.planned.append(True)
        answer = self.planned[number]
        self.asked.append(Question(text, where, answer, reason))
        return answer


def explore(
    run: Callable[[Path], _Answer], alive: tuple[int, ...] = (0,)
) -> Iterator[tuple[_Answer, tuple[Question, ...]]]:
    """Every end of ``run`` that does not raise, with the questions on the way to it.

    ``alive`` are the numbers of the checkpoints that are tried at once.

    Raises:
        TooMany: there are more ways than are followed.
    """
    planned: list[bool] = []
    apart: set[Point] = set()
    for _ in range(_MAX_PATHS):
        path = Path(planned, alive=alive, apart=apart)
        try:
            answer = run(path)
        except Raised:
            pass  # such a configuration is refused, and drafts nothing
        else:
            yield answer, tuple(question for question in path.asked if question.text)
        planned = path.planned[: len(path.asked)]
        while planned and not planned[-1]:
            planned.pop()
        if not planned:
            return
        planned[-1] = False
    raise TooMany(f"more than {_MAX_PATHS} combinations of conditions")


class Maker(msgspec.Struct, frozen=True):
    """Makes the instances of a class from the keyword ``argument`` of its constructor."""

    argument: str
    make: Callable[[Value], Thing]


class Interpreter(Bearing):
    """Runs functions of a tree.

    Args:
        names: the definitions of the tree.
        interest: names and attributes that statements must assign to be run.
        fixed: attributes that every object has which is not known to have others.
        config_bases: classes outside the tree whose constructor makes attributes of its keywords.
        updaters: methods that do the same to an object.

    ``fixed`` and ``makers`` are given for one run: attributes that hold a known object, and classes
    whose instances are made by the caller.
    """

    def __init__(
        self,
        names: Names,
        interest: Iterable[str],
        config_bases: Iterable[str] = (),
        updaters: Iterable[str] = (),
    ) -> None:
        super().__init__(names, interest, updaters)
        self.config_bases = frozenset(config_bases)
        self.fixed: Mapping[str, Value] = {}
        self.makers: Mapping[Ref, Maker] = {}
        self.path = Path([])
        #: How often an object was changed that there may have been before.
        self.changed = 0
        self._values: dict[Ref, Value] = {}

    # --- functions

    def call(
        self, code: Code, args: Sequence[Value], named: Mapping[str, Value], depth: int = 0
    ) -> Value:
        """The value that a function returns."""
        if depth > _MAX_DEPTH:
            return Thing(f"{code.node.name}()", "calls nested too deeply")
        frame = Frame(code.module, code.owner, self._bind(code, args, named), depth)
        frame.wanted = self.wanted_in(code.node)
        frame.whole = code.node.name == "__init__"
        try:
            self.block(code.node.body, frame)
        except Returned as returned:
            return returned.value
        return None

    def _bind(
        self, code: Code, args: Sequence[Value], named: Mapping[str, Value]
    ) -> dict[str, Value]:
        arguments = code.node.args
        positional = [p.arg for p in (*arguments.posonlyargs, *arguments.args)]
        bound: dict[str, Value] = dict(zip(positional, args, strict=False))
        rest: dict[str, Value] = {}
        known = {*positional, *(p.arg for p in arguments.kwonlyargs)}
        for name, value in named.items():
            (bound if name in known else rest)[name] = value
        late = positional[len(positional) - len(arguments.defaults) :]
        defaults = [
            *zip(late, arguments.defaults, strict=True),
            *zip((p.arg for p in arguments.kwonlyargs), arguments.kw_defaults, strict=True),
        ]
        outer = Frame(code.module, code.owner, {}, 0)
        for name, default in defaults:
            if name not in bound and default is not None:
                bound[name] = self.expr(default, outer)
        for name in known:
            bound.setdefault(name, Thing(name))
        if arguments.kwarg is not None:
            bound[arguments.kwarg.arg] = rest
        if arguments.vararg is not None:
            bound[arguments.vararg.arg] = tuple(args[len(positional) :])
        return bound

    def construct(self, cls: Ref, args: Sequence[Value], named: Mapping[str, Value]) -> Thing:
        """An instance; ``__init__`` is run for configurations, other objects are left alone."""
        made = Thing(f"{cls.name}()", cls=cls)
        order = self.names.order(cls)
        if any(isinstance(base, Outside) and self._is_config(base) for base in order):
            found = self.names.method(cls, "__init__")
            if found is not None:
                self.call(Code(found[0].module, found[1], found[0]), [made, *args], named)
            else:
                made.attrs.update(named)
        return made

    def _is_config(self, base: Outside) -> bool:
        return base.dotted.rpartition(".")[2] in self.config_bases

    # --- statements

    def block(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        """Run statements in order."""
        for node in body:
            self.path.steps += 1
            if self.path.steps > _MAX_STEPS:
                raise TooMany(f"more than {_MAX_STEPS} statements")
            if self.bears(node, frame):
                self.statement(node, frame)

    def statement(self, node: ast.stmt, frame: Frame) -> None:
        """Run one statement."""
        match node:
            case ast.If():
                self._if(node, frame)
            case ast.Assign(targets=targets, value=value):
                given = self.expr(value, frame)
                for target in targets:
                    self.assign(target, given, frame)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.expr(value, frame), frame)
            case ast.AugAssign(target=target):
                self.assign(target, Thing(ast.unparse(node)), frame)
            case ast.Expr(value=value):
                self.expr(value, frame)
            case ast.Return(value=value):
                raise Returned(None if value is None else self.expr(value, frame))
            case ast.Raise():
                raise Raised()
            case ast.For():
                self._for(node, frame)
            case ast.Import() | ast.ImportFrom():
                bound = self.names.bound_by(frame.module, [node])
                for name, found in bound.items():
                    frame.names[name] = self._named(self.names.follow(found))
            case ast.With(body=body) | ast.Try(body=body):
                self.block(body, frame)
            case _:
                self._forget(node, frame)

    def _if(self, node: ast.If, frame: Frame) -> None:
        if not self.matters(node, frame):
            value = self.expr(node.test, frame)
            if is_open(value):
                # Whichever way it goes, it can but refuse the configuration.
                return
            if not isinstance(value, Each):
                # Known as a whole (``unknown and False``): nothing of it need be asked.
                self.block(node.body if certain(value) else node.orelse, frame)
                return
        self.block(node.body if self.holds(node.test, frame) else node.orelse, frame)

    def _for(self, node: ast.For, frame: Frame) -> None:
        items = self.items(self.expr(node.iter, frame))
        if items is None:
            self._forget(node, frame)
            return
        for item in items:
            self.assign(node.target, item, frame)
            self.block(node.body, frame)

    def _forget(self, node: ast.stmt, frame: Frame) -> None:
        """What a statement that is not followed assigns is unknown from now on."""
        reason = f"a {type(node).__name__.lower()} statement is not followed"
        for inner in nodes_of(node):
            if isinstance(inner, ast.Name | ast.Attribute) and isinstance(inner.ctx, ast.Store):
                self.assign(inner, Thing(ast.unparse(inner), reason), frame)

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """``target = value``."""
        match target:
            case ast.Name(id=name):
                frame.names[name] = value
            case ast.Attribute(value=owner, attr=attr):
                holder = self.expr(owner, frame)
                if isinstance(holder, Thing):
                    self.set(holder, attr, value)
            case ast.Subscript(value=owner, slice=index):
                holder, key = self.expr(owner, frame), self.expr(index, frame)
                if isinstance(holder, dict) and not isinstance(key, Thing):
                    self.changed += 1
                    holder[key] = value
                elif isinstance(holder, Thing) and isinstance(key, str):
                    self.set(holder, key, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                items = self.items(value)
                if items is None or len(items) != len(targets):
                    items = [Thing(ast.unparse(one)) for one in targets]
                for one, item in zip(targets, items, strict=True):
                    self.assign(one, item, frame)
            case _:
                return

    def set(self, owner: Thing, name: str, value: Value) -> None:
        """``owner.name = value``."""
        self.changed += 1
        owner.set(name, value)

    # --- to be given by the other half

    def expr(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression."""
        raise NotImplementedError

    def holds(self, node: ast.expr, frame: Frame) -> bool:
        """Whether a test holds on this path; asks what is not known, and no more than Python."""
        raise NotImplementedError

    def items(self, value: Value) -> list[Value] | None:
        """The items of a value that is iterated over; None where they are not known."""
        raise NotImplementedError

    def _named(self, found: Named) -> Value:
        raise NotImplementedError
