"""The files of a source as modules: their names, and the program that an import run works on."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from auditor.evaluation.import_statements import Program
from auditor.program import ATTRIBUTE, NAMESPACE, Files
from auditor.sources.tree import SourceProblem


def locate_modules(
    files: Collection[str], roots: Iterable[str]
) -> tuple[dict[str, tuple[str, bool]], frozenset[str]]:
    """Dotted names of the modules below ``roots``, and of folders without ``__init__.py``.

    A package hides a module of the same name, as in Python's ``FileFinder``.
    """
    roots = tuple(roots)
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
    present = frozenset(files) if len(roots) > 1 else frozenset()
    for root in roots:
        # A plugin can be one file, beside no package of its name.
        if f"{root}.py" in present:
            modules.setdefault(root, (f"{root}.py", False))
    for folder in list(folders):
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            folders.add(folder)
    names = {folder.replace("/", ".") for folder in folders}
    return modules, frozenset(names - modules.keys())


def left_out_modules(
    problems: Iterable[SourceProblem], roots: Iterable[str]
) -> dict[str, tuple[str, str]]:
    """The modules and packages whose files or folders were left out of a source, and why."""
    wanted = tuple(f"{root}/" for root in roots)
    found: dict[str, tuple[str, str]] = {}
    for path, reason in problems:
        if path.startswith(wanted):
            module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            found.setdefault(module, (path, reason))
    return found


def program_of(
    files: Files,
    paths: Iterable[str],
    roots: Iterable[str],
    problems: Iterable[SourceProblem] = (),
) -> Program:
    """The program that an import run works on; ``problems`` are what the source left out."""
    left_out = left_out_modules(problems, roots)
    modules, namespaces = locate_modules(sorted(paths), roots)
    # A package hides a module of its name, and is not hidden by one.
    for name in [name for name, (path, _) in left_out.items() if path.endswith(".py")]:
        hidden = modules.get(name, ("", False))[1] and not left_out[name][0].endswith(
            "/__init__.py"
        )
        if hidden:
            del left_out[name]
    return Program(
        modules,
        namespaces,
        files.facts,
        files.function,
        left_out,
        lambda path: files.note(path, (NAMESPACE, "", 0, 0, 0)),
        lambda path, name: files.note(path, (ATTRIBUTE, name, 0, 0, 0)),
    )
