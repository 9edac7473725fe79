"""The files that may define a class and its bases, read off statements alone.

Whatever the branch, a class statement, an import and a plain assignment of the name count; what
binds a name in any other way is not followed. An import run says for certain where a class comes
from; this says ahead of it which files are worth parsing in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from auditor import facts as f
from auditor.program import FACTS, Files

#: A module, and a name that is bound in it.
Bound = tuple[str, str]


class Defining:
    """Finds the files of some classes and of their bases, as their facts come to hand.

    Args:
        files: what is read.
        modules: the path of each module, and whether it is a package.
        classes: each by a module that has it, and its name there.
    """

    def __init__(
        self, files: Files, modules: Mapping[str, tuple[str, bool]], classes: Iterable[Bound]
    ) -> None:
        self._files = files
        self._modules = modules
        self._pending = list(classes)
        self._seen: set[Bound] = set()
        self._found: set[str] = set()

    def more(self) -> set[str]:
        """The files that were not told before, as far as facts are at hand by now."""
        before, unread = set(self._found), []
        while self._pending:
            bound = self._pending.pop()
            if bound in self._seen or bound[0] not in self._modules:
                continue
            if not self._files.has(FACTS, self._modules[bound[0]][0]):
                unread.append(bound)
                continue
            self._seen.add(bound)
            self._pending += self._stands_for(*bound)
        self._pending = unread
        return self._found - before

    def _stands_for(self, module: str, name: str) -> Iterator[Bound]:
        """What a name of a module may stand for, or be a class with as a base."""
        path, is_package = self._modules[module]
        facts = self._files.facts(path)
        package = module if is_package else module.rpartition(".")[0]
        body = facts.body if isinstance(facts, f.ModuleFacts) else ()
        for stmt in _statements((*body, *hooked(self._files, path, body))):
            match stmt:
                case f.Class(name=defined, bases=bases) if defined == name:
                    self._found.add(path)
                    yield from (one for base in bases for one in _read(module, base))
                case f.Assign(targets=[f.Name(id=assigned)], value=value) if assigned == name:
                    yield from _read(module, value)
                case f.ImportFrom(names=names):
                    source = f.absolute_name(stmt, package)
                    yield from ((source, asked) for asked, local in names if local == name)
                case _:
                    continue


def hooked(files: Files, path: str, body: Iterable[f.Stmt]) -> Iterator[f.Stmt]:
    """What runs where a module is asked for a name that it does not have (PEP 562)."""
    for stmt in body:
        if isinstance(stmt, f.Func) and stmt.name == "__getattr__":
            hook = files.function(path, stmt)
            if isinstance(hook, f.FunctionFacts):
                yield from hook.body


def _read(module: str, node: f.Expr) -> list[Bound]:
    """What a base stands for: a name of the module, in brackets or not."""
    if isinstance(node, f.Subscript):
        node = node.value
    return [(module, node.id)] if isinstance(node, f.Name) else []


def _statements(body: Iterable[f.Stmt]) -> Iterator[f.Stmt]:
    """The statements that may run as part of a block, those of inner blocks too."""
    for stmt in body:
        yield stmt
        match stmt:
            case f.If(body=inner, orelse=orelse):
                yield from _statements((*inner, *orelse))
            case f.Try(body=inner, handlers=handlers, orelse=orelse, final=final):
                caught = [one for handler in handlers for one in handler.body]
                yield from _statements((*inner, *caught, *orelse, *final))
            case f.With(body=inner):
                yield from _statements(inner)
            case _:
                continue
