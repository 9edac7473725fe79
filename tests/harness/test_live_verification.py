"""Every patch in a real vLLM on a CPU: its test is green there, and each mutant red.

Give the interpreter that has it, and pytest, in ``DRAFTAUDIT_TEST_VLLM_PYTHON``.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest
from harness.sdists import own_tests

from auditor.api import Request, Resources
from auditor.live.asking import interpreter
from auditor.sources.open import open_source
from codemods.harness.document import Verified
from codemods.harness.overlay import overlay
from codemods.harness.verify import _Ran, _tests, verified
from codemods.planning import plan

VARIABLE = "DRAFTAUDIT_TEST_VLLM_PYTHON"
PYTHON = os.environ.get(VARIABLE)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason=f"{VARIABLE} names no interpreter that has vLLM"),
]


@cache
def results() -> tuple[Verified, ...]:
    """What came of every class that is patched on the CPU."""
    assert PYTHON is not None
    asked = interpreter(Path(PYTHON), "vllm", os.environ, 600)
    source = open_source(str(asked.folder), cwd=Path.cwd())
    done = plan(source, Request(platforms=("cpu",)), Resources())
    found = verified(done, source, asked, print)
    return tuple(one for one in found if one.patch)


def test_every_class_that_can_be_built_there_passes_its_test() -> None:
    for one in results():
        assert one.live in ("passed", "not importable"), (one.cls, one.reason)
        assert one.reason or one.live == "passed"
    assert sum(one.live == "passed" for one in results()) > 20


def test_what_cannot_be_imported_there_lacks_a_module_outside_vllm() -> None:
    for one in results():
        if one.live == "not importable":
            assert "No module named" in one.reason
            assert "No module named 'vllm" not in one.reason


def test_every_mutant_is_killed() -> None:
    mutants = [(one.cls, mutant) for one in results() for mutant in one.mutants]
    assert [(cls, mutant.fault) for cls, mutant in mutants if not mutant.killed] == []
    assert {mutant.fault for _, mutant in mutants} >= {
        "transform dropped", "step ignored", "another step",
    }  # fmt: skip


def test_two_ranks_pick_what_the_whole_row_of_logits_has_first() -> None:
    assert {one.ranks for one in results() if one.live == "passed"} == {"agree"}


@pytest.mark.network
def test_vllms_own_tests_of_the_method_pass_in_the_patched_copy(tmp_path: Path) -> None:
    """All of them that run here: but for cases that download a model, and other platforms'."""
    assert PYTHON is not None
    asked = interpreter(Path(PYTHON), "vllm", os.environ, 600)
    installed = open_source(str(asked.folder), cwd=Path.cwd())
    assert installed.version is not None
    own = own_tests(
        installed.version,
        lambda text: b"get_top_tokens" in text or b"use_local_argmax_reduction" in text,
    )
    wanted = []
    for path, text in own.items():
        place = tmp_path / path.replace("/", "_")
        place.write_bytes(text)
        wanted.append({"name": path, "path": str(place), "mutants": [], "only": "not e2e"})
    done = plan(installed, Request(platforms=("cpu",)), Resources())
    changed = {path: text for family in done.families for path, text in family.after.items()}
    package = overlay(asked.folder / "vllm", tmp_path / "overlay", changed)
    found: dict[str, _Ran] = {}
    _tests(asked, package, wanted, found)
    assert set(found) == set(own)
    for path, one in found.items():
        # A file for one platform alone says so when it is collected.
        assert one.live == "passed" or (one.live == "not run" and " only" in one.reason), (
            path,
            one.live,
            one.reason,
        )
    assert found["tests/v1/sample/test_head_dtype.py"].passed >= 5


def test_a_shared_head_that_is_left_out_is_seen_where_the_architecture_has_one() -> None:
    (one,) = [one for one in results() if one.architecture == "DeepSeekMTPModel"]
    dropped = [mutant for mutant in one.mutants if mutant.fault == "transform dropped"]
    assert one.live == "passed"
    assert dropped
    assert all(mutant.killed for mutant in dropped)
