"""What an import run says of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from auditor.evaluation.frame import Frame
from auditor.evaluation.import_statements import Conventions, Program
from auditor.facts import Func, ModuleFacts, Unparsed
from auditor.imports import ImportRun
from auditor.modules import locate_modules
from auditor.platforms import Platform
from auditor.syntax.function import function_facts
from auditor.syntax.module import module_facts
from auditor.values import (
    UNBOUND,
    Doubts,
    Either,
    Error,
    ModuleValue,
    Place,
    PythonError,
    Value,
    Version,
)
from differential.trees import DEVICE, LIBRARY, PREDICATES, ROOT, Tree

_CONVENTIONS = Conventions(
    frozenset({ROOT}),
    f"{ROOT}.platforms.current_platform",
    {"typing.TYPE_CHECKING": False},
    Version(((3, 11), (3, 12), (3, 13))),
)


def program(tree: Tree) -> Program:
    """The tree as the import run reads it."""
    modules, namespaces = locate_modules(sorted(tree.files), [ROOT])
    parsed = {path: module_facts(text.encode(), ROOT) for path, text in tree.files.items()}

    def function(path: str, func: Func) -> Any:
        return function_facts(
            tree.files[path].encode().splitlines(), func.start, func.end, func.name
        )

    broken = {path: facts for path, facts in parsed.items() if isinstance(facts, Unparsed)}
    assert not broken, f"the generator wrote what does not parse: {broken}"
    return Program(modules, namespaces - modules.keys(), parsed.__getitem__, function)


def platform(tree: Tree) -> Platform:
    """The platform's facts; they leave open what the tree leaves open."""
    missing = {"missing_lib": "it is missing", "present_lib.missing": "it is missing"}
    if LIBRARY not in tree.open:
        missing["maybe_lib"] = "it is missing"
    return Platform(
        "cuda", DEVICE, PREDICATES, present={"present_lib": "is there"}, missing=missing
    )


@dataclass
class Answers:
    """What an import run says of a tree: how each entry ends, every namespace, each probe."""

    run: ImportRun
    entries: list[tuple[Value, Doubts]]
    names: dict[str, dict[str, Value]]
    probes: list[tuple[Value, Doubts]]


def answers(tree: Tree, files: Program | None = None) -> Answers:
    """Import the entries of a tree in an import run, then ask the probes.

    ``files`` is the tree as the run reads it, where something takes note of that.
    """
    run = ImportRun(files or program(tree), platform(tree), _CONVENTIONS)
    entries = [_imported(run, name) for name in tree.entries]
    modules = {n: m for n, m in run.modules.items() if isinstance(m, ModuleValue)}
    names = {
        name: {key: _forced(run, value) for key, value in module.names.items()}
        for name, module in modules.items()
    }
    return Answers(run, entries, names, [_asked(run, m, n) for m, n in tree.probes])


def _frame() -> Frame:
    return Frame(ModuleValue("", "", False, ModuleFacts(())), {})


def _imported(run: ImportRun, name: str) -> tuple[Value, Doubts]:
    frame = _frame()
    try:
        return run.import_module(name, frame, Place("", 0)), frame.doubts
    except PythonError as raised:
        return raised.error, frame.doubts


def _asked(run: ImportRun, module: str, name: str) -> tuple[Value, Doubts]:
    frame = _frame()
    owner = run.modules.get(module, UNBOUND)
    if owner is UNBOUND:
        return Error("KeyError", repr(module), ("KeyError", "Exception"), ()), frame.doubts
    try:
        value = _forced(run, run.attribute(owner, name, frame, 0))
    except PythonError as raised:
        return raised.error, frame.doubts
    return value, frame.doubts


def _forced(run: ImportRun, value: Value) -> Value:
    if isinstance(value, Either):
        return Either(tuple((guard, _forced(run, option)) for guard, option in value.options))
    value = run.force(value, _frame())
    match value:
        case tuple() | list():
            return type(value)(_forced(run, item) for item in value)
        case dict():
            return {_forced(run, key): _forced(run, item) for key, item in value.items()}
    return value
