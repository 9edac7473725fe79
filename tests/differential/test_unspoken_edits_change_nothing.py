"""A definition that nothing speaks of changes nothing of an import run, in packages at random."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.modules import program_of
from auditor.program import Files
from auditor.sources.tree import MemoryTree
from auditor.unspoken import edit_between, said, spoken
from auditor.values import ModuleValue, Value
from auditor.words import mentioned
from differential.ours import Answers, answers
from differential.sameness import show
from differential.strategies import trees
from differential.test_import_run_agrees_with_cpython import examples_of
from differential.trees import ROOT, Tree
from differential.world import CLASSES, CONSTANTS, FUNCTIONS

_LINE = re.compile(r":\d+|\b(line|start|end)=\d+")
#: Names that the packages use, and two that they do not.
_NAMES = st.sampled_from((*CLASSES, *CONSTANTS, *FUNCTIONS, "Lazy", "never", "Nowhere"))
_DEFINED = st.sampled_from(
    (
        "{name} = 1",
        "{name} = [('a', None)]",
        "def {name}(a, b=1):\n    return a",
        "class {name}:\n    def m(self):\n        return 1",
        "{name} = {name}",
        "import json",
        "import os.path as {name}",
        "from typing import Any as {name}, {name} as Nowhere",
    )
)


@pytest.mark.parametrize(
    ("open_conditions", "examples"),
    [
        (False, 150),
        (True, 50),
        pytest.param(False, 2000, marks=pytest.mark.slow),
        pytest.param(True, 1000, marks=pytest.mark.slow),
    ],
)
def test_a_run_is_the_same_but_for_what_nothing_speaks_of(
    open_conditions: bool, examples: int
) -> None:
    tally: Counter[str] = Counter()
    # It raises the limit of recursion, which must not happen within an example.
    Files(MemoryTree({}))

    @examples_of(examples)
    @given(trees(open_conditions), st.integers(0, 99), st.integers(0, 99), _NAMES, _DEFINED)
    def every(tree: Tree, file: int, at: int, name: str, defined: str) -> None:
        path = sorted(tree.files)[file % len(tree.files)]
        edited = _edited(tree, path, at, defined.format(name=name))
        names = _unspoken(tree, edited, path)
        tally["other" if names is None else "unspoken"] += 1
        if names is not None:
            before, after = _shown(tree, path, names), _shown(edited, path, names)
            assert before == after, f"{path}: {names}\n{tree}"

    every()
    assert min(tally["unspoken"], tally["other"]) > examples // 20, tally


def _edited(tree: Tree, path: str, at: int, statement: str) -> Tree:
    """The tree with a statement at some place of the top level of a file."""
    lines = tree.files[path].splitlines()
    places = [n for n, line in enumerate(lines) if line[:1].isalpha() and not _continues(line)]
    places.append(len(lines))
    where = places[at % len(places)]
    text = "\n".join([*lines[:where], statement, *lines[where:]]) + "\n"
    return Tree({**tree.files, path: text}, tree.entries, tree.probes, tree.open)


def _continues(line: str) -> bool:
    return line.startswith(("else", "elif", "except", "finally"))


def _unspoken(tree: Tree, edited: Tree, path: str) -> frozenset[str] | None:
    """The names that the edit binds, if nothing that the run before rested on speaks of them."""
    before, files = _files(tree), _files(edited)
    noted = _files(tree)
    _run(tree, noted)
    facts = before.facts(path), files.facts(path)
    edit = edit_between(*facts)
    probes = noted.probes()
    if edit is None or path not in probes:
        return None
    own = [
        text for probe in probes[path] if probe[0] != "facts" for text in said(noted, path, probe)
    ]
    asked = [f"{name}.{attribute}".encode() for name, attribute in tree.probes]
    if mentioned(edit.names, own) or spoken({path: edit}, files, probes, asked):
        return None
    return edit.names


def _files(tree: Tree) -> Files:
    return Files(MemoryTree({path: text.encode() for path, text in tree.files.items()}))


def _run(tree: Tree, files: Files) -> Answers:
    return answers(tree, program_of(files, tree.files, [ROOT]))


def _shown(tree: Tree, path: str, names: frozenset[str]) -> object:
    """How every entry ends and what every name stands for, without the lines."""
    found = _run(tree, _files(tree))
    modules = {n: m for n, m in found.run.modules.items() if isinstance(m, ModuleValue)}
    return (
        [(_value(value), len(doubts)) for value, doubts in (*found.entries, *found.probes)],
        {
            (module, name): _value(value)
            for module, bound in found.names.items()
            for name, value in bound.items()
            if modules[module].path != path or name not in names
        },
        {name: module.state for name, module in modules.items()},
    )


def _value(value: Value) -> str:
    return _LINE.sub("", show(value))
