"""Where a real vLLM can be run, its collectives carry the bytes that the formulas say.

Give the interpreter that has it in ``DRAFTAUDIT_TEST_VLLM_PYTHON``.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from auditor.cost.sizes import default_bytes, reduction_bytes

VARIABLE = "DRAFTAUDIT_TEST_VLLM_PYTHON"
PYTHON = os.environ.get(VARIABLE)
SCRIPT = Path(__file__).parent / "live_gather.py"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason=f"{VARIABLE} names no interpreter with vLLM"),
]

#: Batch, vocabulary, ranks, dtype; one vocabulary is no multiple of the head's padding.
CASES = [
    (1, 128, 2, "bfloat16"),
    (4, 4096, 2, "bfloat16"),
    (3, 100, 2, "float32"),
    (5, 4096, 8, "float16"),
]


def test_the_gathered_tensors_have_the_computed_sizes() -> None:
    found = subprocess.run(
        [str(PYTHON), str(SCRIPT)],
        input=json.dumps(CASES),
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(found.stdout.splitlines()[-1]) == [
        [default_bytes(batch, vocab_size, dtype), reduction_bytes(batch, tp)]
        for batch, vocab_size, tp, dtype in CASES
    ]
