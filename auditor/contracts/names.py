"""What a name of a module stands for: a definition of the tree, a module, or something outside.

Names are followed through imports at the top level of modules and those given by a function. An
import inside a branch of a module is not followed: what it binds is :class:`Outside` with no name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

import msgspec

from auditor.classes import InconsistentOrder, merge
from auditor.contracts.sketch import Sketch
from auditor.engine import Sources
from auditor.facts import ImportFrom, absolute_name

_MAX_HOPS = 12


class Ref(msgspec.Struct, frozen=True):
    """A definition of the tree by its module and name; a module where ``name`` is empty."""

    module: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


class Outside(msgspec.Struct, frozen=True):
    """Something that the tree does not define, by its dotted name as far as it is known.

    ``bound`` is false for a name that neither an import nor a definition binds.
    """

    dotted: str
    bound: bool = True

    def __str__(self) -> str:
        return self.dotted


Named = Ref | Outside


class Names:
    """Finds definitions across the modules of a tree."""

    def __init__(self, files: Sources, modules: Mapping[str, tuple[str, bool]]) -> None:
        self._files = files
        self._modules = modules
        self._sketches: dict[str, Sketch] = {}
        self._bound: dict[str, dict[str, Named]] = {}
        self._orders: dict[Ref, tuple[Named, ...]] = {}
        self._resolved: dict[tuple[str, str], Named] = {}
        self._methods: dict[tuple[Ref, str, Ref | None], tuple[Ref, ast.FunctionDef] | None] = {}

    def sketch(self, module: str) -> Sketch | None:
        """The definitions of a module; None where the tree has no such module."""
        located = self._modules.get(module)
        return None if located is None else self.sketch_of(located[0])

    def sketch_of(self, path: str) -> Sketch:
        """The definitions of the module in a file."""
        if path not in self._sketches:
            self._sketches[path] = Sketch(path, self._files.source(path))
        return self._sketches[path]

    def path(self, module: str) -> str:
        """The file of a module; empty where there is none."""
        return self._modules[module][0] if module in self._modules else ""

    def resolve(self, module: str, dotted: str) -> Named:
        """What ``dotted`` stands for in a module."""
        key = (module, dotted)
        if key not in self._resolved:
            self._resolved[key] = self._resolve(module, dotted)
        return self._resolved[key]

    def _resolve(self, module: str, dotted: str) -> Named:
        head, *rest = dotted.split(".")
        found = self._in_module(module, head)
        for name in rest:
            if isinstance(found, Ref) and not found.name:
                found = self.member(found.module, name)
            else:
                return Outside(f"{found}.{'.'.join(rest)}")
        return found

    def member(self, module: str, name: str, hops: int = 0) -> Named:
        """What ``from module import name`` binds."""
        inner = f"{module}.{name}" if module else name
        sketch = self.sketch(module)
        if sketch is not None and name in sketch.top:
            return Ref(module, name)
        if inner in self._modules:
            return Ref(inner)
        if sketch is None or hops >= _MAX_HOPS:
            return Outside(inner)
        found = self._imported(module).get(name)
        return self.follow(found, hops) if found is not None else Outside(inner)

    def _in_module(self, module: str, name: str) -> Named:
        sketch = self.sketch(module)
        if sketch is not None and name in sketch.top:
            return Ref(module, name)
        found = self._imported(module).get(name)
        return self.follow(found) if found is not None else Outside(name, bound=False)

    def follow(self, found: Named, hops: int = 0) -> Named:
        """What an imported name stands for, through modules that import it themselves."""
        if isinstance(found, Ref) and found.name and hops < _MAX_HOPS:
            return self.member(found.module, found.name, hops + 1)
        return found

    def _imported(self, module: str) -> dict[str, Named]:
        if module not in self._bound:
            sketch = self.sketch(module)
            nodes = sketch.imports if sketch is not None else ()
            self._bound[module] = self.bound_by(module, nodes)
        return self._bound[module]

    def bound_by(self, module: str, nodes: Iterable[ast.stmt]) -> dict[str, Named]:
        """The names that import statements in a module bind; a name of the tree is a Ref."""
        bound: dict[str, Named] = {}
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    target = alias.name if alias.asname else alias.name.partition(".")[0]
                    name = alias.asname or target
                    bound[name] = Ref(target) if target in self._modules else Outside(target)
            elif isinstance(node, ast.ImportFrom):
                source = self._absolute(module, node)
                inside = source in self._modules
                for alias in node.names:
                    where: Named = Ref(source, alias.name) if inside else _outside(source, alias)
                    bound[alias.asname or alias.name] = where
        return bound

    def _absolute(self, module: str, node: ast.ImportFrom) -> str:
        is_package = module in self._modules and self._modules[module][1]
        package = module if is_package else module.rpartition(".")[0]
        return absolute_name(ImportFrom(node.module or "", node.level, (), node.lineno), package)

    def order(self, cls: Ref) -> tuple[Named, ...]:
        """The classes that an attribute of ``cls`` is looked up in: its MRO (C3)."""
        if cls not in self._orders:
            self._orders[cls] = (cls,)  # a class that is its own base ends here
            bases = self._bases(cls)
            lines = [self.order(base) if isinstance(base, Ref) else (base,) for base in bases]
            try:
                self._orders[cls] = (cls, *merge([*lines, bases]))
            except InconsistentOrder:
                self._orders[cls] = (cls, Outside("an order of bases that Python refuses"))
        return self._orders[cls]

    def _bases(self, cls: Ref) -> tuple[Named, ...]:
        sketch = self.sketch(cls.module)
        header = sketch.header(cls.name) if sketch is not None else None
        if header is None:
            return ()
        found = (self.resolve(cls.module, ast.unparse(base)) for base in header.bases)
        return tuple(base for base in dict.fromkeys(found) if str(base) != "object")

    def is_a(self, cls: Named, names: Iterable[Named]) -> bool:
        """Whether a class is, or derives from, one of ``names``."""
        members = self.order(cls) if isinstance(cls, Ref) else (cls,)
        return any(name in members for name in names)

    def method(
        self, cls: Ref, name: str, after: Ref | None = None
    ) -> tuple[Ref, ast.FunctionDef] | None:
        """The method that ``cls().name`` finds; with ``after``, what ``super()`` there finds."""
        key = (cls, name, after)
        if key not in self._methods:
            self._methods[key] = self._method(cls, name, after)
        return self._methods[key]

    def _method(self, cls: Ref, name: str, after: Ref | None) -> tuple[Ref, ast.FunctionDef] | None:
        members = self.order(cls)
        if after is not None and after in members:
            members = members[members.index(after) + 1 :]
        for member in members:
            sketch = self.sketch(member.module) if isinstance(member, Ref) else None
            found = sketch.method(str(getattr(member, "name", "")), name) if sketch else None
            if found is not None and isinstance(member, Ref):
                return member, found
        return None


def _outside(source: str, alias: ast.alias) -> Outside:
    return Outside(f"{source}.{alias.name}" if source else alias.name)
