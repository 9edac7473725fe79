"""Every spelling of a dispatch, each beside a twin that answers otherwise."""

from __future__ import annotations

import pytest
from trees import bases, calls, dispatch, members, reexports
from trees.minivllm import (
    PLATFORMS,
    Answer,
    Case,
    Side,
    coverage,
    row_of,
    sides,
)

from auditor.api import Request

CASES: tuple[Case, ...] = (
    *dispatch.CASES,
    *reexports.CASES,
    *members.CASES,
    *bases.CASES,
    *calls.CASES,
)
SIDES = sides(CASES)


@pytest.mark.parametrize(("sentence", "side"), SIDES, ids=[sentence for sentence, _ in SIDES])
@pytest.mark.parametrize("run_imports", [True, False], ids=["imports run", "imports skipped"])
def test_every_spelling_is_what_python_makes_of_it(
    sentence: str, side: Side, run_imports: bool
) -> None:
    document = coverage(side.files, Request(run_imports=run_imports), side.entry)
    found = {name: Answer.of(row_of(document, name)) for name in PLATFORMS}
    assert found == side.expected(), sentence


@pytest.mark.parametrize("case", CASES, ids=[case.sentence for case in CASES])
def test_a_twin_answers_otherwise_on_some_platform(case: Case) -> None:
    assert case.side.expected() != case.twin.expected()


def test_each_sentence_is_said_once() -> None:
    sentences = [case.sentence for case in CASES]
    assert len(sentences) == len(set(sentences))
