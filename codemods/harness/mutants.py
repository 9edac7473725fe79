"""Patches that are wrong on purpose: a test that does not fail on them proves nothing.

Each mutant is one method of the patch with one fault of the kind that raises nothing in a server:
a transform before the head left out, the head of another step, the step ignored, draft ids that are
not moved to target ids. One more gives another token outright, for methods that have none of these.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

import msgspec

from auditor.syntax.parsing import parse


class Mutant(msgspec.Struct, frozen=True):
    """A method with a fault.

    Attributes:
        fault: what is wrong with it, in words.
        cls: the dotted class that defines it.
        method: its name.
        source: its source, at the left margin.
    """

    fault: str
    cls: str
    method: str
    source: str


_Change = Callable[[ast.FunctionDef], bool]


def mutants_of(source: bytes, cls: str, method: str, step: str) -> Iterator[Mutant]:
    """The mutants of a method that ``source`` defines in the class ``cls`` (dotted).

    ``step`` is the parameter for the draft step, or empty where the tokens do not depend on it.
    """
    faults: list[tuple[str, _Change]] = [
        ("transform dropped", _without_transform(method)),
        ("another token", _another_token),
        ("remap forgotten", _without_remap),
    ]
    if step:
        faults.insert(1, ("step ignored", _with_step(step, "0")))
        faults.insert(2, ("another step", _with_step(step, f"{step} + 1")))
    for fault, change in faults:
        function = _function(source, cls.rpartition(".")[2], method)
        if function is not None and change(function):
            yield Mutant(fault, cls, method, ast.unparse(ast.fix_missing_locations(function)))


def _function(source: bytes, cls: str, method: str) -> ast.FunctionDef | None:
    """A fresh copy of the method, which a change may alter."""
    tree = parse(source)
    if not isinstance(tree, ast.Module):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == cls:
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name == method:
                    return inner
    return None


def _without_transform(method: str) -> _Change:
    """The head gets what the method was given, and not what was made of it."""

    def change(function: ast.FunctionDef) -> bool:
        given = function.args.args[1].arg if len(function.args.args) > 1 else ""
        changed = False
        for call in _calls(function, method):
            changed = _hand_over(call, given) or changed
        rebinding = _Rebinding(given)
        function.body = [rebinding.visit(stmt) for stmt in function.body]
        changed = changed or rebinding.found
        return changed and bool(_calls(function, method))

    return change


def _calls(function: ast.FunctionDef, method: str) -> list[ast.Call]:
    """Calls of the logits processor in a method: those that are handed a head."""
    return [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == method
        and "processor" in ast.unparse(node.func.value)
    ]


def _hand_over(call: ast.Call, given: str) -> bool:
    """Make ``given`` what the processor is handed as hidden states; whether it was another."""
    bare = ast.Name(given, ast.Load())
    if not given:
        return False
    if len(call.args) > 1:
        old, call.args[1] = call.args[1], bare
        return ast.dump(old) != ast.dump(bare)
    for keyword in call.keywords:
        if keyword.arg == given:
            old, keyword.value = keyword.value, bare
            return ast.dump(old) != ast.dump(bare)
    return False


class _Rebinding(ast.NodeTransformer):
    """Leaves a name as it is, wherever a statement gives it another value."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.found = False

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """``name = …`` is left out; of ``name, other = …`` the other is still given its value."""
        match node.targets:
            case [ast.Name(id=bound)] if bound == self._name:
                self.found = True
                return ast.Pass()
            case [ast.Tuple(elts=elements)]:
                for element in elements:
                    if isinstance(element, ast.Name) and element.id == self._name:
                        self.found, element.id = True, "_"
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """``name: type = …``."""
        if not (isinstance(node.target, ast.Name) and node.target.id == self._name):
            return node
        self.found = True
        return ast.Pass()


def _with_step(step: str, value: str) -> _Change:
    """The step is another one from the first statement on."""

    def change(function: ast.FunctionDef) -> bool:
        arguments = [*function.args.args, *function.args.kwonlyargs]
        if not any(argument.arg == step for argument in arguments):
            return False
        first = 1 if ast.get_docstring(function) is not None else 0
        function.body[first:first] = ast.parse(f"{step} = {value}").body
        return True

    return change


def _another_token(function: ast.FunctionDef) -> bool:
    """What is returned is the token beside the right one."""
    returned = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    for node in returned:
        if node.value is not None:
            node.value = ast.BinOp(node.value, ast.BitXor(), ast.Constant(1))
    return bool(returned)


def _without_remap(function: ast.FunctionDef) -> bool:
    """``top + table[top]`` is ``top``."""
    remap = _Remap()
    remap.visit(function)
    return remap.found


class _Remap(ast.NodeTransformer):
    def __init__(self) -> None:
        self.found = False

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """``top += table[top]``."""
        match node:
            case ast.AugAssign(
                target=ast.Name(id=name),
                op=ast.Add(),
                value=ast.Subscript(slice=ast.Name(id=index)),
            ) if name == index:
                self.found = True
                return ast.Pass()
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """An id plus the entry of a table at this id."""
        self.generic_visit(node)
        match node:
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Subscript(slice=index)):
                if ast.dump(left) == ast.dump(index):
                    self.found = True
                    return left
        return node


def distinct(mutants: Iterable[Mutant]) -> tuple[Mutant, ...]:
    """Each mutant once, in order."""
    return tuple(dict.fromkeys(mutants))
