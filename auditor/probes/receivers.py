"""Whether an object that the engine asks is a model, a part of one, or something else.

Decided by where the object comes from: what a name is assigned, what is stored into an attribute,
what callers hand to a parameter. Names and annotations count where that ends. What all of it leaves
open is undecided, with what was not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from auditor.probes.document import Receiver
from auditor.probes.trees import Bound, Function, Module, Trees, bindings, last_name
from auditor.ruleset.engine import ModelsRule

#: So many steps is a value followed.
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Kind:
    """What an object is, and how that is known."""

    asks: Receiver
    because: str


@dataclass(frozen=True, slots=True)
class At:
    """An expression in its module, with how many steps led to it."""

    module: Module
    depth: int = 0

    def deeper(self, module: Module | None = None) -> At:
        """One step on."""
        return At(module or self.module, self.depth + 1)


class Receivers:
    """Says of expressions of the engine whether they are models.

    Args:
        trees: the modules of the engine.
        rule: the names that they go by.
    """

    def __init__(self, trees: Trees, rule: ModelsRule) -> None:
        self._trees = trees
        self._rule = rule
        self._busy: set[ast.AST] = set()

    def of(self, node: ast.expr, at: At) -> Kind:
        """What an expression is."""
        if at.depth > _DEPTH or node in self._busy:
            return Kind("undecided", f"{_text(node)} was not followed further")
        self._busy.add(node)
        try:
            return self._of(node, at)
        finally:
            self._busy.discard(node)

    def _of(self, node: ast.expr, at: At) -> Kind:
        match node:
            case ast.Name():
                return self._name(node, at)
            case ast.Attribute():
                return self._attribute(node, at)
            case ast.Call():
                return self._call(node, at)
            case ast.Subscript(value=value):
                return self._item(self.of(value, at.deeper()), node)
            case ast.IfExp(body=body, orelse=orelse):
                return self._joined([body, orelse], at)
            case ast.BoolOp(values=values):
                return self._joined(values, at)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return self.of(value, at.deeper())
            case ast.Constant(value=None):
                return Kind("other", "None")
            case _:
                return Kind("other", f"it is {type(node).__name__.lower()} and no name")

    def _joined(self, nodes: Iterable[ast.expr], at: At) -> Kind:
        """One of several; a model where one of them is, and undecided only where none is known."""
        return _first([self.of(node, at.deeper()) for node in nodes if node not in self._busy])

    @staticmethod
    def _item(kind: Kind, node: ast.expr) -> Kind:
        return Kind("part", f"an item of {kind.because}") if kind.asks == "model" else kind

    # --- names

    def _name(self, node: ast.Name, at: At) -> Kind:
        name = node.id
        function: Function | None = at.module.function(node)
        while function is not None:
            kinds = self._bound_kinds(at.module.bound(function, name), at)
            parameter = _parameter(function, name)
            if parameter is not None:
                kinds.append(self._parameter(function, parameter, at))
            if kinds:
                return _first(kinds)
            function = at.module.function(function)
        for outer in at.module.above(node):
            generators = getattr(outer, "generators", ())
            every = [one for generator in generators for one in bindings(generator)]
            values = [(how, value) for known, how, value in every if known == name]
            if values:
                return _first(self._bound_kinds(values, at))
        imported = at.module.imported.get(name)
        if imported is not None:
            return Kind("other", f"imported: {imported}")
        values = at.module.bound(at.module.tree, name)
        if values:
            return _first(self._bound_kinds(values, at))
        return Kind("other", f"{name} is defined by the module")

    def _bound_kinds(self, values: list[Bound], at: At) -> list[Kind]:
        """What each of the values is that a name is bound to, itself left out."""
        kinds = []
        for how, value in values:
            if value not in self._busy:
                kind = self.of(value, at.deeper())
                if how == "item" and kind.asks == "model":
                    kind = Kind("part", f"an item of {_text(value)}")
                kinds.append(kind)
        return kinds

    def _parameter(self, function: Function, parameter: ast.arg, at: At) -> Kind:
        if parameter.arg in ("self", "cls"):
            cls = at.module.cls(function)
            return Kind("other", f"an object of the engine: {cls.name if cls else 'self'}")
        annotated = self._annotated(parameter, at)
        if annotated is not None and annotated.asks != "undecided":
            return annotated
        by_name = self._named(parameter.arg)
        if by_name is not None:
            return by_name
        handed = self._handed(function, parameter.arg, at)
        if handed is not None and handed.asks != "undecided":
            return handed
        return Kind("undecided", f"parameter {parameter.arg} of {function.name}")

    def _annotated(self, parameter: ast.arg, at: At) -> Kind | None:
        """What an annotation says; None without one."""
        if parameter.annotation is None:
            return None
        text = ast.unparse(parameter.annotation).strip("'\"")
        words = [word.strip() for word in text.replace("|", " ").split() if word != "None"]
        for word in words:
            full = at.module.imported.get(word.partition(".")[0], "")
            dotted = word if not full else ".".join([full, *word.split(".")[1:]])
            if any(fnmatchcase(dotted, glob) for glob in self._rule.modules):
                named = self._named(parameter.arg)
                asks: Receiver = "model" if named is not None else "part"
                return Kind(asks, f"{parameter.arg}: {text}")
            if any(fnmatchcase(dotted, glob) for glob in self._rule.parts):
                return Kind("part", f"{parameter.arg}: {text}")
        if text in ("Any", "object", "typing.Any") or not words:
            return Kind("undecided", f"{parameter.arg}: {text}")
        if any(fnmatchcase(text.rpartition(".")[2], glob) for glob in self._rule.unsure):
            return Kind("undecided", f"{parameter.arg}: {text}")
        return Kind("other", f"{parameter.arg}: {text}")

    def _handed(self, function: Function, name: str, at: At) -> Kind | None:
        """What callers hand to a parameter; None where no call of the engine was found."""
        cls = at.module.cls(function)
        called = cls.name if cls is not None and function.name == "__init__" else function.name
        values = []
        for module, call in self._trees.calls(called):
            value = argument(call, function, name, method=cls is not None)
            if value is not None:
                values.append((module, value))
        kinds = [self.of(value, at.deeper(module)) for module, value in values]
        if not kinds:
            return None
        found = _first(kinds)
        return Kind(found.asks, f"{name} of {function.name}, handed {found.because}")

    def _named(self, name: str) -> Kind | None:
        """What a name alone says."""
        if any(fnmatchcase(name, glob) for glob in self._rule.not_models):
            return Kind("other", f"the name {name}")
        if any(fnmatchcase(name, glob) for glob in self._rule.names):
            return Kind("model", f"the name {name}")
        return None

    # --- attributes and calls

    def _attribute(self, node: ast.Attribute, at: At) -> Kind:
        return self._member(node.value, node.attr, node, at)

    def _member(self, owner: ast.expr, name: str, node: ast.AST, at: At) -> Kind:
        if any(fnmatchcase(name, glob) for glob in self._rule.not_models):
            return Kind("other", f"the name {name}")
        holder = self.of(owner, at.deeper())
        if holder.asks in ("model", "part"):
            return Kind("part", f"{name} of {_text(owner)}, which is a {holder.asks}")
        stored = self._stored(name, owner, node, at)
        if stored is not None and stored.asks in ("model", "part"):
            return stored
        by_name = self._named(name)
        if by_name is not None:
            return by_name
        if stored is not None:
            return stored
        if holder.asks == "other" and holder.because.startswith("imported"):
            return Kind("other", f"{holder.because}.{name}")
        if holder.asks == "other" and holder.because.startswith("the name"):
            return Kind("other", f"{name} of {_text(owner)}")
        return Kind("undecided", f"attribute {name} of {_text(owner)}")

    def _stored(self, name: str, owner: ast.expr, node: ast.AST, at: At) -> Kind | None:
        """What the classes of the file store into an attribute of ``self``; None for others."""
        if not (isinstance(owner, ast.Name) and owner.id == "self"):
            return None
        cls = at.module.cls(node)
        values: list[tuple[Module, ast.expr]] = []
        for module, member in self._family(at.module, cls) if cls is not None else ():
            values += [(module, value) for value in module.stored(member, name)]
        kinds = [self.of(value, at.deeper(module)) for module, value in values]
        return _first(kinds) if kinds else None

    def _family(self, module: Module, cls: ast.ClassDef) -> Iterator[tuple[Module, ast.ClassDef]]:
        """A class and its bases, as far as the engine defines them under their names."""
        todo, seen = [(module, cls)], {cls.name}
        while todo:
            at, one = todo.pop()
            yield at, one
            for base in one.bases:
                name = last_name(base)
                if name and name not in seen:
                    seen.add(name)
                    todo += self._trees.classes(name)

    def _call(self, node: ast.Call, at: At) -> Kind:
        match node:
            case ast.Call(
                func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str() as name), *_]
            ):
                return self._member(owner, name, node, at)
            case ast.Call(func=ast.Name(id="cast"), args=[_, value]):
                return self.of(value, at.deeper())
            case ast.Call(func=ast.Name(id="type" | "unwrap"), args=[value]):
                return self.of(value, at.deeper())
            case ast.Call(func=ast.Name(id=called), args=[value, *_]) if called in _HANDING_ON:
                return self.of(value, at.deeper())
        name = last_name(node.func)
        if name in self._rule.makers:
            return Kind("model", f"what {name}() gives")
        if name in self._rule.part_makers:
            return Kind("part", f"what {name}() gives")
        if isinstance(node.func, ast.Attribute) and name in _VIEWS:
            return self.of(node.func.value, at.deeper())
        if name[:1].isupper():
            return Kind("other", f"an instance of {name}")
        returned = self._returned(name, at)
        return returned or Kind("undecided", f"what {_text(node.func)}() gives")

    def _returned(self, name: str, at: At) -> Kind | None:
        """What a function of the engine returns; None where there is none of this name, or two."""
        found = self._trees.functions(name) if name else []
        if len(found) != 1:
            return None
        module, function = found[0]
        values = [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Return) and node.value is not None
        ]
        return self._joined(values, at.deeper(module)) if values else None


#: Functions that give the items that they are given.
_HANDING_ON = frozenset({"enumerate", "list", "tuple", "reversed", "sorted", "iter", "next"})

#: Methods of containers that give what is in them.
_VIEWS = frozenset({"items", "values", "get", "copy", "keys"})


def _first(kinds: list[Kind]) -> Kind:
    """One of several; a model where one of them is, and something else only where all are."""
    for asks in ("model", "part", "undecided"):
        found = next((one for one in kinds if one.asks == asks), None)
        if found is not None:
            return found
    return kinds[0] if kinds else Kind("undecided", "nothing was found that it is")


def _text(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _parameter(function: Function, name: str) -> ast.arg | None:
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return next((one for one in every if one.arg == name), None)


def argument(call: ast.Call, function: Function, name: str, *, method: bool) -> ast.expr | None:
    """The argument that a call hands to a parameter; None where it hands none."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    positional = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    static = any(last_name(mark) == "staticmethod" for mark in function.decorator_list)
    if method and not static:
        positional = positional[1:]
    if name not in positional:
        return None
    number = positional.index(name)
    starred = any(isinstance(one, ast.Starred) for one in call.args[: number + 1])
    return call.args[number] if number < len(call.args) and not starred else None
