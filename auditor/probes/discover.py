"""Every probe of the engine: where it stands, what it asks, and what follows."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from auditor.facts import Unparsed
from auditor.probes.consequences import Consequences, Value, default_value
from auditor.probes.document import Probe, Receiver
from auditor.probes.receivers import At, Receivers, argument
from auditor.probes.trees import Module, Trees, last_name
from auditor.program import Files
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.engine import ModelsRule
from auditor.syntax.parsing import parse

_ASKING = ("hasattr", "getattr", "callable", "isinstance")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A probe before it is said of what: the call, and what it gives without the attribute."""

    node: ast.Call
    attribute: str
    form: str
    through: str | None
    receiver: ast.expr
    value: Value


class Interfaces:
    """What the functions and protocols of the models' interfaces ask of a model.

    Attributes:
        functions: of each function what it asks for.
        protocols: the names of the protocols.
    """

    def __init__(self, files: Files, paths: Iterable[str]) -> None:
        self.functions: dict[str, str] = {}
        self.protocols: set[str] = set()
        for path in paths:
            source = files.source(path)
            tree = source if isinstance(source, Unparsed) else parse(source)
            if not isinstance(tree, Unparsed):
                self._read(tree)

    def _read(self, tree: ast.Module) -> None:
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                self.protocols.add(node.name)
            if isinstance(node, ast.FunctionDef) and node.args.args:
                asked = _asked_by(node)
                if asked is not None:
                    self.functions[node.name] = asked


def _asked_by(function: ast.FunctionDef) -> str | None:
    """What a function asks its first parameter for, where it returns the answer."""
    first = function.args.args[0].arg
    answers = [
        inner
        for node in ast.walk(function)
        if isinstance(node, ast.Return) and node.value is not None
        for inner in ast.walk(node.value)
    ]
    for node in answers:
        match node:
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr"),
                args=[ast.Name(id=asked), ast.Constant(value=str() as name), *_],
            ) if asked == first:
                return name
            case ast.Call(
                func=ast.Name(id="isinstance" | "issubclass"), args=[ast.Name(id=asked), kind]
            ) if asked == first:
                return ast.unparse(kind)
            case _:
                continue
    return None


class Discover:
    """Finds the probes below a folder of a tree.

    Args:
        trees: the modules of the engine.
        interfaces: what the models' interfaces ask.
        rule: by what a model is told.
        rules: the capabilities that are known.
    """

    def __init__(
        self,
        trees: Trees,
        interfaces: Interfaces,
        rule: ModelsRule,
        rules: Sequence[Capability],
    ) -> None:
        self._trees = trees
        self._interfaces = interfaces
        self._receivers = Receivers(trees, rule)
        self._consequences = Consequences(trees)
        self._rules = rules

    def all(self, words: Sequence[str] = ()) -> Iterator[Probe]:
        """Every probe; with ``words`` only those in modules that hold one of them."""
        names = words or (*_ASKING[:2], *self._interfaces.functions, *self._interfaces.protocols)
        for module in self._trees.mentioning(names):
            for asked in self._in(module):
                yield self._probe(asked, module)

    def _in(self, module: Module) -> Iterator[_Asked]:
        names = (*_ASKING, *self._interfaces.functions)
        for node in (call for name in names for call in module.calls.get(name, ())):
            yield from self._asked(node, module)

    def _asked(self, node: ast.Call, module: Module) -> Iterator[_Asked]:
        no = Value("False", False)
        match node:
            case ast.Call(
                func=ast.Name(id="hasattr"), args=[receiver, ast.Constant(value=str() as name)]
            ):
                yield _Asked(node, name, "hasattr", None, receiver, no)
            case ast.Call(
                func=ast.Name(id="getattr"),
                args=[receiver, ast.Constant(value=str() as name), default],
            ):
                parent = module.parents.get(node)
                callable_ = isinstance(parent, ast.Call) and last_name(parent.func) == "callable"
                form = "callable" if callable_ else "getattr"
                yield _Asked(node, name, form, None, receiver, default_value(default))
            case ast.Call(
                func=ast.Name(id="hasattr" | "getattr" as form), args=[receiver, name, *_]
            ):
                if form == "hasattr" or len(node.args) > 2:
                    value = no if form == "hasattr" else default_value(node.args[2])
                    for text in self._spelled(name, module):
                        yield _Asked(node, text, form, None, receiver, value)
            case ast.Call(func=ast.Name(id="isinstance"), args=[receiver, kinds]):
                every = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
                for kind in every:
                    if self._is_protocol(last_name(kind), module):
                        yield _Asked(node, last_name(kind), "isinstance", None, receiver, no)
            case ast.Call(func=func, args=[receiver, *_]):
                name = last_name(func)
                asked = self._interfaces.functions.get(name)
                if asked is not None and self._is_interface(name, module):
                    form = "isinstance" if asked in self._interfaces.protocols else "getattr"
                    yield _Asked(node, asked, form, name, receiver, no)
            case _:
                return

    def _spelled(self, name: ast.expr, module: Module) -> list[str]:
        """The names that an expression stands for: a constant, or what callers hand over."""
        function = module.function(name)
        found: list[str] = []
        for _, value in module.bound(module.tree, name.id) if isinstance(name, ast.Name) else ():
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found.append(value.value)
        if function is not None and isinstance(name, ast.Name):
            method = module.cls(function) is not None
            for _, call in self._trees.calls(function.name):
                match argument(call, function, name.id, method=method):
                    case ast.Constant(value=str() as text):
                        found.append(text)
                    case _:
                        continue
        return list(dict.fromkeys(found)) or [f"<{ast.unparse(name)}>"]

    def _is_protocol(self, name: str, module: Module) -> bool:
        return name in self._interfaces.protocols and self._is_interface(name, module)

    @staticmethod
    def _is_interface(name: str, module: Module) -> bool:
        """Whether a name of the module is imported from where models are defined."""
        return ".models." in module.imported.get(name, "")

    def _probe(self, asked: _Asked, module: Module) -> Probe:
        kind = self._receivers.of(asked.receiver, At(module))
        asks: Receiver = kind.asks
        line = self._trees.line(module.path, asked.node.lineno)
        return Probe(
            attribute=asked.attribute,
            form=asked.form,  # type: ignore[arg-type]
            through=asked.through,
            receiver=ast.unparse(asked.receiver),
            asks=asks,
            because=kind.because,
            path=module.path,
            line=asked.node.lineno,
            text=line,
            holder=module.holder(asked.node),
            without=self._consequences.of(asked.node, asked.value, module),
            rule=self._rule_of(asked) if asks != "other" else None,
        )

    def _rule_of(self, asked: _Asked) -> str | None:
        for rule in self._rules:
            functions = rule.guard.functions if rule.guard is not None else ()
            if asked.through in functions or (
                asked.through is None and asked.attribute == rule.probed
            ):
                return rule.name
        return None
