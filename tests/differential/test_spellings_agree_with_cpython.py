"""Spellings that were written by hand, imported by real Python and by an import run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from differential.cpython import CPython
from differential.spellings import DECIDED, OPEN
from differential.test_import_run_agrees_with_cpython import compared
from differential.trees import Tree


@pytest.fixture(scope="module")
def cpython() -> Iterator[CPython]:
    with CPython() as worker:
        yield worker


@pytest.mark.parametrize("tree", DECIDED.values(), ids=DECIDED.keys())
def test_every_name_is_what_cpython_binds(cpython: CPython, tree: Tree) -> None:
    (comparison,) = compared(tree, cpython)
    assert not comparison.problems
    assert (comparison.decided > 0, comparison.left_open) == (True, 0)


@pytest.mark.parametrize("tree", OPEN.values(), ids=OPEN.keys())
def test_what_is_not_followed_stays_open(cpython: CPython, tree: Tree) -> None:
    every = compared(tree, cpython)
    assert [comparison.problems for comparison in every] == [[]] * len(every)
    assert any(comparison.left_open for comparison in every)
