"""Reads the import closure of some modules ahead of the run, in two processes.

What a module may import is read off its statements, whatever the branch; only blocks for type
checkers are left out. A module that the run needs and this has missed is read when it is asked
for, so the closure here decides nothing but time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from auditor import facts as f
from auditor.processes import Worker, can_fork
from auditor.program import Files, parse_batch


class Prefetch:
    """Reads the facts of modules and of all that they may import, with a second process.

    A context: the process ends with it.

    Args:
        files: what is read.
        modules: the path of each module, and whether it is a package.
        processes: the user's number of processes, or None.
    """

    def __init__(
        self, files: Files, modules: Mapping[str, tuple[str, bool]], processes: int | None
    ) -> None:
        self._files = files
        self._modules = modules
        self._worker = Worker(parse_batch) if can_fork(processes) else None
        self._begun: Callable[[], None] | None = None

    def __enter__(self) -> Prefetch:
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker is not None:
            self._worker.close()

    def begin(self, names: Iterable[str]) -> None:
        """Have the second process read these modules, and go on with something else."""
        paths = self._paths(_with_parents(names, self._modules))
        self._begun = self._files.begin(paths, self._worker)

    def read(self, names: Iterable[str]) -> None:
        """Have the facts of these modules and of all that they may import at hand."""
        if self._begun is not None:
            self._begun()
        seen: set[str] = set()
        wave = _with_parents(names, self._modules)
        # Most of these define a class that will be reported, and then have to parse in full.
        self._files.check(self._paths(wave), self._worker)
        while wave:
            seen |= wave
            self._files.load(self._paths(wave), self._worker)
            named = {
                target for name in wave for target in _imports(self._files, name, self._modules)
            }
            wave = _with_parents(named, self._modules) - seen

    def _paths(self, names: Iterable[str]) -> list[str]:
        return sorted(self._modules[name][0] for name in names)


def _with_parents(names: Iterable[str], modules: Mapping[str, tuple[str, bool]]) -> set[str]:
    found: set[str] = set()
    for name in names:
        while name and name not in found:
            if name in modules:
                found.add(name)
            name = name.rpartition(".")[0]
    return found


def _imports(files: Files, name: str, modules: Mapping[str, tuple[str, bool]]) -> Iterator[str]:
    path, is_package = modules[name]
    facts = files.facts(path)
    if isinstance(facts, f.Unparsed):
        return
    package = name if is_package else name.rpartition(".")[0]
    yield from _of_block(facts.body, package)
    for stmt in facts.body:
        if isinstance(stmt, f.Func) and stmt.name == "__getattr__":
            hook = files.function(path, stmt)
            if isinstance(hook, f.FunctionFacts):
                yield from _of_block(hook.body, package)


def _of_block(body: Iterable[f.Stmt], package: str) -> Iterator[str]:
    for stmt in body:
        match stmt:
            case f.Import(module=module):
                yield module
            case f.ImportFrom(names=names):
                module = f.absolute_name(stmt, package)
                yield module
                yield from (f"{module}.{name}" for name, _ in names)
            case f.If(
                test=f.Name(id="TYPE_CHECKING") | f.Attr(attr="TYPE_CHECKING"), orelse=orelse
            ):
                yield from _of_block(orelse, package)
            case f.If(body=inner, orelse=orelse) | f.Loop(body=inner, orelse=orelse):
                yield from _of_block((*inner, *orelse), package)
            case f.Try(body=inner, handlers=handlers, orelse=orelse, final=final):
                yield from _of_block((*inner, *orelse, *final), package)
                for handler in handlers:
                    yield from _of_block(handler.body, package)
            case f.With(body=inner):
                yield from _of_block(inner, package)
            case _:
                continue
