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


def defining(
    files: Files, modules: Mapping[str, tuple[str, bool]], classes: Iterable[Bound]
) -> set[str]:
    """The files of some classes and of their bases, as far as their facts are at hand.

    Args:
        files: what was read.
        modules: the path of each module, and whether it is a package.
        classes: each by a module that has it, and its name there.
    """
    found: set[str] = set()
    seen: set[Bound] = set()
    pending = list(classes)
    while pending:
        bound = pending.pop()
        module, name = bound
        if bound in seen or module not in modules or not files.has(FACTS, modules[module][0]):
            continue
        seen.add(bound)
        path, is_package = modules[module]
        facts = files.facts(path)
        package = module if is_package else module.rpartition(".")[0]
        body = facts.body if isinstance(facts, f.ModuleFacts) else ()
        for stmt in _statements((*body, *hooked(files, path, body))):
            match stmt:
                case f.Class(name=defined, bases=bases) if defined == name:
                    found.add(path)
                    pending += [one for base in bases for one in _read(module, base)]
                case f.Assign(targets=[f.Name(id=assigned)], value=value) if assigned == name:
                    pending += _read(module, value)
                case f.ImportFrom(names=names):
                    source = f.absolute_name(stmt, package)
                    pending += [(source, asked) for asked, local in names if local == name]
                case _:
                    continue
    return found


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
