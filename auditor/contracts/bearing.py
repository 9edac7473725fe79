"""Which statements of configuration code bear on what is of interest.

A statement counts when it assigns a name or attribute of interest, or something that those are made
of; when it returns; or when it refuses the configuration. The rest neither runs nor asks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from auditor.contracts.names import Names, Ref
from auditor.contracts.things import Code, Frame
from auditor.nodes import nodes_of


class Bearing:
    """Knows which statements count.

    Args:
        names: the definitions of the tree.
        interest: names and attributes whose assignment counts.
        updaters: methods that set attributes of an object.
    """

    def __init__(self, names: Names, interest: Iterable[str], updaters: Iterable[str]) -> None:
        self.names = names
        self.interest = frozenset(interest)
        self.updaters = frozenset(updaters)
        self._bears: dict[int, bool] = {}
        self._acting: dict[int, bool] = {}
        self._mattering: dict[int, bool] = {}
        self._changing: dict[int, bool] = {}
        self._wanted: dict[int, frozenset[str]] = {}

    def bears(self, node: ast.stmt, frame: Frame) -> bool:
        """Whether a statement can change, return or refuse what is of interest."""
        key = id(node)
        if key not in self._bears:
            self._bears[key] = self._does_bear(node, frame)
        return self._bears[key]

    def _does_bear(self, node: ast.stmt, frame: Frame) -> bool:
        match node:
            case _ if frame.whole:
                return True
            case ast.Return() | ast.Raise() | ast.Import() | ast.ImportFrom():
                return True
            case ast.Expr(value=ast.Call() as call):
                return self._call_bears(call, frame)
            case ast.Assign(targets=targets):
                return any(self._is_wanted(target, frame) for target in targets)
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                return self._is_wanted(target, frame)
            case ast.If() | ast.For() | ast.While() | ast.With() | ast.Try():
                return any(self.bears(one, frame) for one in _parts(node)[0])
            case _:
                return False

    def _is_wanted(self, target: ast.expr, frame: Frame) -> bool:
        match target:
            case ast.Attribute(attr=attr):
                return attr in self.interest
            case ast.Name(id=name):
                return name in frame.wanted
            case ast.Subscript(value=owner, slice=ast.Constant(value=str() as key)):
                return key in self.interest or self._is_wanted(owner, frame)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                return any(self._is_wanted(one, frame) for one in elts)
            case _:
                return False

    def _call_bears(self, call: ast.Call, frame: Frame) -> bool:
        if self._updates(call):
            return True
        match call.func:
            case ast.Name(id=name):
                found = self.names.resolve(frame.module, name)
                code = self._code(found) if isinstance(found, Ref) else None
                return code is not None and self.changes(code)
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if frame.owner is not None:
                method = self.names.method(frame.owner, name)
                if method is None:
                    return False
                return self.changes(Code(method[0].module, method[1], method[0]))
            case _:
                return False

    def _updates(self, call: ast.Call) -> bool:
        """Whether a call sets attributes of an object that it is given."""
        match call.func:
            case ast.Attribute(attr=name):
                return name in self.updaters or name == "__init__"
            case ast.Name(id=name):
                return name == "setattr"
            case _:
                return False

    def changes(self, code: Code) -> bool:
        """Whether calling a function for its effect changes an attribute of interest."""
        key = id(code.node)
        if key not in self._changing:
            self._changing[key] = any(map(self._is_stored, nodes_of(code.node)))
        return self._changing[key]

    def _is_stored(self, node: ast.AST) -> bool:
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store()):
                return name in self.interest
            case ast.Subscript(slice=ast.Constant(value=name), ctx=ast.Store()):
                return name in self.interest
            case _:
                return False

    def wanted_in(self, function: ast.FunctionDef) -> frozenset[str]:
        """Local names that tests, returns, and values of interest are made of."""
        key = id(function)
        if key not in self._wanted:
            self._wanted[key] = frozenset(self._closure(function))
        return self._wanted[key]

    def _closure(self, function: ast.FunctionDef) -> set[str]:
        """Names in what acts, and in what those names are made of, until there are no more."""
        frame = Frame("", None, {}, 0)
        wanted: set[str] = set()
        before = -1
        while len(wanted) != before:
            before = len(wanted)
            frame.wanted = frozenset(wanted)
            for node in function.body:
                self._collect(node, frame, wanted)
        return wanted

    def _collect(self, node: ast.stmt, frame: Frame, wanted: set[str]) -> bool:
        """Add the names that a statement reads, if it acts; whether it does."""
        inner, reads = _parts(node)
        found = [self._collect(one, frame, wanted) for one in inner]
        acts = any(found)
        match node:
            case ast.Return():
                acts = True
            case ast.Expr(value=ast.Call() as call):
                acts = self._updates(call)
            case ast.Assign(targets=targets):
                acts = any(self._is_wanted(target, frame) for target in targets)
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                acts = self._is_wanted(target, frame)
            case _:
                pass
        if acts:
            wanted |= reads
        return acts

    def matters(self, node: ast.If, frame: Frame) -> bool:
        """Whether a branch does more than to raise or to import."""
        key = id(node)
        if key not in self._mattering:
            branches = (*node.body, *node.orelse)
            self._mattering[key] = any(self._acts(inner, frame) for inner in branches)
        return self._mattering[key]

    def _acts(self, node: ast.stmt, frame: Frame) -> bool:
        key = id(node)
        if key not in self._acting:
            inner = _parts(node)[0]
            self._acting[key] = (
                any(self._acts(one, frame) for one in inner)
                if inner
                else self.bears(node, frame) and not _is_mere(node)
            )
        return self._acting[key]

    def _code(self, found: Ref) -> Code | None:
        """The function of the tree that a name stands for."""
        sketch = self.names.sketch(found.module)
        function = sketch.function(found.name) if sketch is not None else None
        return None if function is None else Code(found.module, function)


def _is_mere(node: ast.stmt) -> bool:
    return isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.Pass | ast.Assert)


@lru_cache(maxsize=4096)  # asked once more each time that a function's wanted names have grown
def _parts(node: ast.stmt) -> tuple[tuple[ast.stmt, ...], frozenset[str]]:
    """The statements directly in a statement, and the local names that its expressions read."""
    children = tuple(ast.iter_child_nodes(node))
    expressions = [one for one in children if isinstance(one, ast.expr)]
    return (
        tuple(one for one in children if isinstance(one, ast.stmt)),
        frozenset(
            name.id for one in expressions for name in nodes_of(one) if isinstance(name, ast.Name)
        ),
    )
