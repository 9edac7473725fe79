"""Mini packages written at random, imported by real Python and by an import run.

The answers are the same, binding by binding, or ours is undecided; a different decided answer is
a bug of the evaluation. ``DRAFTAUDIT_DIFFERENTIAL_EXAMPLES`` sets how many packages are tried.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from differential.agreement import Comparison
from differential.cpython import CPython
from differential.ours import answers
from differential.strategies import trees
from differential.trees import Tree, outcomes

#: Shrinking a package takes minutes, and the first that differs tells as much.
PHASES = (Phase.generate,)
EXAMPLES = int(os.environ.get("DRAFTAUDIT_DIFFERENTIAL_EXAMPLES", "2000"))


@pytest.fixture(scope="module")
def cpython() -> Iterator[CPython]:
    with CPython() as worker:
        yield worker


def compared(tree: Tree, cpython: CPython) -> list[Comparison]:
    """One comparison for each way in which the open conditions of a tree come out."""
    every = tuple(outcomes(tree))
    cpython.ask(tree, every)
    try:
        ours = answers(tree)
    finally:
        theirs = cpython.answers()
    return [
        Comparison(tree, ours, report, bool(outcome.environment)).run()
        for outcome, report in zip(every, theirs, strict=True)
    ]


def hold(tree: Tree, cpython: CPython, tally: Counter[str]) -> None:
    for comparison in compared(tree, cpython):
        assert not comparison.problems, "\n".join(comparison.problems)
        tally["decided"] += comparison.decided
        tally["open"] += comparison.left_open
        tally["processes"] += 1
        tally["excused"] += comparison.excused


def examples_of(count: int) -> settings:
    """The same packages in every run, and no time spent on smaller ones."""
    return settings(
        phases=PHASES,
        max_examples=count,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def check(cpython: CPython, examples: int, *, open_conditions: bool) -> Counter[str]:
    """Compare that many packages; how many answers were decided, and how many not."""
    tally: Counter[str] = Counter()

    @examples_of(examples)
    @given(trees(open_conditions))
    def every(tree: Tree) -> None:
        hold(tree, cpython, tally)

    every()
    return tally


@pytest.mark.parametrize("open_conditions", [False, True])
def test_no_decided_answer_differs_from_cpython_in_a_few_packages(
    cpython: CPython, open_conditions: bool
) -> None:
    tally = check(cpython, 75, open_conditions=open_conditions)
    assert tally["decided"] > tally["open"]


@pytest.mark.slow
def test_no_decided_answer_differs_from_cpython(cpython: CPython) -> None:
    tally = check(cpython, EXAMPLES * 4 // 5, open_conditions=False)
    assert tally["decided"] > 100 * tally["open"], "nearly all of it can be decided"


@pytest.mark.slow
def test_every_real_outcome_of_an_open_condition_is_covered(cpython: CPython) -> None:
    tally = check(cpython, EXAMPLES // 5, open_conditions=True)
    assert tally["decided"] > 5 * tally["open"]
    assert tally["processes"] > 50 * tally["excused"], "what is not followed is rare"
