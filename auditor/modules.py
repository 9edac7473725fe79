"""The files of a source as modules: their names, and the program that an import run works on."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.evaluation.import_statements import Program
from auditor.program import Files


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
    return modules, frozenset(names - modules.keys())


def program_of(files: Files, paths: Iterable[str], roots: Iterable[str]) -> Program:
    """The program that an import run works on."""
    modules, namespaces = locate_modules(sorted(paths), roots)
    return Program(modules, namespaces, files.facts, files.function)
