"""The files of a source as modules, with their facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from auditor import facts as f
from auditor.errors import SourceError
from auditor.evaluation.import_statements import Program
from auditor.sources.tree import Tree
from auditor.syntax import function_facts, module_facts


class Files:
    """Reads files of a tree once, and keeps what failed."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._sources: dict[str, bytes | f.Unparsed] = {}
        self._facts: dict[str, f.ModuleFacts | f.Unparsed] = {}
        self._functions: dict[tuple[str, int], f.FunctionFacts | f.Unparsed] = {}

    def source(self, path: str) -> bytes | f.Unparsed:
        """The bytes of a file, or why they cannot be read."""
        if path not in self._sources:
            try:
                self._sources[path] = self._tree.read(path)
            except SourceError as error:
                self._sources[path] = f.Unparsed(f"cannot be read: {error.what}", 0)
        return self._sources[path]

    def facts(self, path: str) -> f.ModuleFacts | f.Unparsed:
        """The facts of a module."""
        if path not in self._facts:
            source = self.source(path)
            self._facts[path] = (
                source
                if isinstance(source, f.Unparsed)
                else module_facts(source, path.partition("/")[0])
            )
        return self._facts[path]

    def function(self, path: str, func: f.Func) -> f.FunctionFacts | f.Unparsed:
        """The body of a function that stands in ``path``."""
        key = (path, func.line)
        if key not in self._functions:
            source = self.source(path)
            self._functions[key] = (
                source
                if isinstance(source, f.Unparsed)
                else function_facts(source, func.start, func.end, func.name)
            )
        return self._functions[key]

    def line(self, path: str, number: int) -> str:
        """The source of a line, without the white space around it; empty where there is none."""
        source = self.source(path) if path else b""
        lines = source.splitlines() if isinstance(source, bytes) else []
        if not 0 < number <= len(lines):
            return ""
        return lines[number - 1].decode("utf-8", "replace").strip()


def locate_modules(
    files: Iterable[str], roots: Iterable[str]
) -> tuple[dict[str, tuple[str, bool]], frozenset[str]]:
    """Dotted names of the modules below ``roots``, and of folders without ``__init__.py``.

    A package hides a module of the same name, as in Python's ``FileFinder``.
    """
    wanted = tuple(f"{root}/" for root in roots)
    modules: dict[str, tuple[str, bool]] = {}
    folders: set[str] = set()
    for path in files:
        if not path.endswith(".py") or not path.startswith(wanted):
            continue
        folder, _, name = path.rpartition("/")
        folders.add(folder)
        if name == "__init__.py":
            modules[folder.replace("/", ".")] = (path, True)
        else:
            modules.setdefault(path[:-3].replace("/", "."), (path, False))
    for folder in list(folders):
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            folders.add(folder)
    names = {folder.replace("/", ".") for folder in folders}
    return modules, frozenset(name for name in names if not modules.get(name, ("", False))[1])


def program_of(files: Files, paths: Iterable[str], roots: Iterable[str]) -> Program:
    """The program that an import run works on."""
    modules, namespaces = locate_modules(sorted(paths), roots)
    facts: Callable[[str], f.ModuleFacts | f.Unparsed] = files.facts
    return Program(modules, namespaces - modules.keys(), facts, files.function)
