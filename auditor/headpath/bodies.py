"""The syntax of class bodies and functions of a tree, parsed when first asked for.

Only the lines of the class or function are parsed, at the places where they stand in their file.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol, TypeVar

from auditor import facts as f
from auditor.headpath.questions import Answers, fingerprint
from auditor.headpath.stores import Stores, stores_of
from auditor.imports import ImportRun
from auditor.loading import stores_in
from auditor.nodes import depth_of
from auditor.program import Files
from auditor.syntax.parsing import parse
from auditor.values import ClassValue, Function, ModuleValue, Place, PythonError, Value

#: What is seen of a name that stands for nothing.
_NOTHING = fingerprint(None)

#: So deep may the syntax of a function nest; what people write stays below a third of it.
_MAX_NESTING = 100

Functions = dict[str, ast.FunctionDef]
_Found = TypeVar("_Found")


class Bodies(Protocol):
    """Gives the syntax of class bodies, and evaluates names of their modules."""

    def functions(self, cls: ClassValue) -> dict[str, ast.FunctionDef]:
        """The methods that the body of ``cls`` defines, the last of each name."""
        ...

    def stores(self, cls: ClassValue) -> Stores:
        """What the methods of ``cls`` set, on ``self`` and on others."""
        ...

    def beside(self, cls: ClassValue) -> Mapping[str, Place]:
        """Attributes that the file of ``cls`` sets on some object other than ``self``."""
        ...

    def outside(self, name: str) -> Place | None:
        """Where the engine sets an attribute of this name on some object, if it does."""
        ...

    def named(self, cls: ClassValue, dotted: str) -> Value | None:
        """The value of a dotted name in the module of ``cls``, or None."""
        ...

    def function(self, cls: ClassValue, dotted: str) -> tuple[ClassValue, ast.FunctionDef] | None:
        """A function of the tree by its dotted name, with a class that stands for its module."""
        ...

    def once(self, key: Hashable, find: Callable[[], _Found]) -> _Found:
        """What ``find`` gives, found for the first of those that ask for it."""
        ...


class Syntax:
    """Functions of a tree's files by the lines where they stand; the same on every platform."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._functions: dict[tuple[str, int], Functions] = {}
        self._stores: dict[tuple[str, int], Stores] = {}
        self._beside: dict[str, dict[str, Place]] = {}

    def functions(self, path: str, start: int, end: int) -> Functions:
        """Functions in lines ``start`` to ``end``: of the one class there, or the one function."""
        key = (path, start)
        if key not in self._functions:
            known = self._files.definition(path, start, end)
            if known is not None:
                self._functions[key] = _functions([known])
            else:
                block = self._files.block(path, start, end)
                self._functions[key] = _functions(_parse(block, start))
        return self._functions[key]

    def lines(self, path: str) -> list[bytes]:
        """The lines of a file."""
        return self._files.lines(path)

    def stores(self, path: str, start: int, end: int, name: str) -> Stores:
        """What the methods of the class of this name there set."""
        key = (path, start)
        if key not in self._stores:
            self._stores[key] = stores_of(self.functions(path, start, end), name)
        return self._stores[key]

    def beside(self, path: str) -> dict[str, Place]:
        """Attributes that a file sets on some object other than ``self``, and where first."""
        if path not in self._beside:
            self._files.note(path, ("sets", "", 0, 0, 0))
            found = stores_in(self._files.text(path))
            self._beside[path] = {name: Place(path, line) for name, line in found}
        return self._beside[path]


def _parse(block: bytes, start: int) -> list[ast.stmt]:
    """The statements in some lines of a file, at the places where they stand there."""
    indented = block[:1].isspace()
    head = b"\n" * (start - 2) + b"if 1:\n" if indented and start > 1 else b"\n" * (start - 1)
    tree = parse(head + block + b"\n")
    return [] if isinstance(tree, f.Unparsed) else tree.body


def _functions(body: list[ast.stmt]) -> Functions:
    """The functions of the one class among some statements, or those that are there themselves."""
    while len(body) == 1 and isinstance(body[0], ast.If | ast.ClassDef):
        body = body[0].body
    found = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    # Every __init__ is read; another function is asked where it is entered.
    if "__init__" in found and is_nested_deeply(found["__init__"]):
        del found["__init__"]
    return found


def is_nested_deeply(function: ast.FunctionDef) -> bool:
    """Whether a function nests deeper than a run over its syntax would want to follow."""
    return depth_of(function) > _MAX_NESTING


class SourceBodies:
    """Bodies of the classes that one import run has made."""

    def __init__(
        self, run: ImportRun, syntax: Syntax, outside: Mapping[str, Place] | None = None
    ) -> None:
        self._run = run
        self._syntax = syntax
        self._outside = outside or {}
        self.asked: Answers = {}
        # Known for as long as the run loads nothing: what names stand for and what is seen of it,
        # and what was found of classes with what was asked for it.
        self._loaded = (0, 0)
        self._names: dict[tuple[ModuleValue, str], tuple[Value | None, Hashable]] = {}
        self._found: dict[Hashable, tuple[Any, Answers]] = {}

    @property
    def run(self) -> ImportRun:
        """The run that made the classes."""
        return self._run

    def functions(self, cls: ClassValue) -> Functions:
        """The methods that the body of ``cls`` defines, the last of each name."""
        return self._syntax.functions(cls.module.path, cls.facts.start, cls.facts.end)

    def stores(self, cls: ClassValue) -> Stores:
        """What the methods of ``cls`` set, on ``self`` and on others."""
        name = cls.qualname.rpartition(".")[2]
        return self._syntax.stores(cls.module.path, cls.facts.start, cls.facts.end, name)

    def beside(self, cls: ClassValue) -> dict[str, Place]:
        """Attributes that the file of ``cls`` sets on some object other than ``self``."""
        return self._syntax.beside(cls.module.path)

    def outside(self, name: str) -> Place | None:
        """Where the engine sets an attribute of this name on some object, if it does."""
        return self._outside.get(name)

    def named(self, cls: ClassValue, dotted: str) -> Value | None:
        """The value of a dotted name in the module of ``cls``, or None."""
        value, answer = self._answer(cls.module, dotted)
        self.asked[cls.module.name, dotted] = answer
        return value

    def once(self, key: Hashable, find: Callable[[], _Found]) -> _Found:
        """What ``find`` gives, found for the first of the analyses that ask for it.

        It counts as asked for each of them. ``key`` holds all that it rests on beside names and
        the syntax of the tree.
        """
        self._forget_when_loaded()
        known = self._found.get(key)
        if known is None:
            before, self.asked = self.asked, {}
            try:
                known = find(), self.asked
            finally:
                before.update(self.asked)
                self.asked = before
            if not self._forget_when_loaded():
                self._found[key] = known
        else:
            self.asked.update(known[1])
        found: _Found = known[0]
        return found

    def _forget_when_loaded(self) -> bool:
        """Whether the run has loaded something since it was asked last; names may differ then."""
        loaded = (len(self._run.modules), len(self._run.paths_read))
        if loaded == self._loaded:
            return False
        self._loaded = loaded
        self._names.clear()
        self._found.clear()
        return True

    def _answer(self, module: ModuleValue, dotted: str) -> tuple[Value | None, Hashable]:
        """The value of a dotted name in a module, and what an analysis sees of it."""
        self._forget_when_loaded()
        known = self._names.get((module, dotted))
        if known is None:
            value = self._named(module, dotted)
            known = value, fingerprint(value)
            if not self._forget_when_loaded():
                self._names[module, dotted] = known
        return known

    def answers_alike(self, answers: Answers) -> bool:
        """Whether this run gives the same answers to what another was asked."""
        for (module_name, dotted), answer in answers.items():
            module = self._run.modules.get(module_name)
            if not isinstance(module, ModuleValue):
                # Of a module outside the tree, or one that is not there, nothing is seen.
                if answer != _NOTHING:
                    return False
                continue
            value, own = self._answer(module, dotted)
            if own is answer:
                continue
            if own != answer:
                return False
            if (module, dotted) in self._names:  # the next analysis has the same one
                self._names[module, dotted] = value, answer
        return True

    def _named(self, module: ModuleValue, dotted: str) -> Value | None:
        head, *rest = dotted.split(".")
        value: Value = module.names.get(head)
        try:
            for name in rest:
                value, _ = self._run.get(value, name, [])
            if value is not None:
                value, _ = self._run.forced(value)
            if isinstance(value, ClassValue):
                self._run.settle(value)
        except PythonError:
            return None
        return value

    def function(self, cls: ClassValue, dotted: str) -> tuple[ClassValue, ast.FunctionDef] | None:
        """A function of the tree by its dotted name, with a class that stands for its module."""
        module_name, _, name = dotted.rpartition(".")
        module = self._run.modules.get(module_name)
        value = module.names.get(name) if isinstance(module, ModuleValue) else None
        self.asked[module_name, name] = fingerprint(value)
        if not isinstance(value, Function):
            return None
        facts = value.facts
        found = self._syntax.functions(value.module.path, facts.start, facts.end).get(facts.name)
        if found is None or is_nested_deeply(found):
            return None
        stand_in = f.Class(facts.name, facts.line, facts.start, facts.end, (), (), (), (), (), True)
        return ClassValue(value.module, facts.name, stand_in, (), ()), found

    def lines(self, cls: ClassValue) -> list[bytes]:
        """The lines of the file that a class stands in."""
        return self._syntax.lines(cls.module.path)

    def place(self, cls: ClassValue) -> Place:
        """Where a class is defined."""
        return Place(cls.module.path, cls.facts.line)
