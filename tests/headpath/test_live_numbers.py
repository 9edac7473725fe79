"""Where a real vLLM can be run, ``equivalent`` agrees with its numbers.

Give the interpreter that has it in ``DRAFTAUDIT_TEST_VLLM_PYTHON``; the audit is of that vLLM too.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from auditor.api import Request, Resources, audit
from auditor.coverage import Coverage, Head
from auditor.sources.open import open_source

VARIABLE = "DRAFTAUDIT_TEST_VLLM_PYTHON"
PYTHON = os.environ.get(VARIABLE)
SCRIPT = Path(__file__).parent / "live_heads.py"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason=f"{VARIABLE} names no interpreter with vLLM"),
]


def _installed() -> Coverage:
    """The audit of the vLLM that the interpreter imports, on the CPU."""
    find = "import importlib.util as u; print(u.find_spec('vllm').submodule_search_locations[0])"
    found = subprocess.run([str(PYTHON), "-c", find], capture_output=True, text=True, check=True)
    folder = Path(found.stdout.strip().splitlines()[-1]).parent
    return audit(
        open_source(str(folder), cwd=folder), Request(platforms=("cpu",)), Resources(None, 1)
    )


def _remaps(head: Head) -> bool:
    ways = head.logits.ways if head.logits is not None else ()
    return any(post.startswith("remap") for way in ways for post in way.post)


def test_what_is_proven_equivalent_picks_the_same_tokens_when_it_is_run() -> None:
    heads = {
        head.class_: head
        for head in _installed().heads
        if head.equivalence == "equivalent" and head.shape == "flat"
    }
    ran = subprocess.run(
        [str(PYTHON), str(SCRIPT)],
        input=json.dumps(sorted(heads)),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = json.loads(ran.stdout.strip().splitlines()[-1])
    tried = 0
    for name, by_table in answers.items():
        for with_table in ("False", "True") if _remaps(heads[name]) else ("False",):
            same = by_table[with_table]
            assert same is not False, f"{name} with table: {with_table}"
            tried += same is True
    assert tried >= 8, answers
