"""The interpreter against the real function: the same result, or none.

With ``DRAFTAUDIT_TEST_VLLM_PYTHON``, a Python with vLLM; its installed files are what is read.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from checkpoints.random_configs import configs, words_of

from auditor.checkpoints.engine import bare, new_run, override, override_function, read
from auditor.checkpoints.library import NoLibrary
from auditor.checkpoints.values import CannotFollow, Raised
from auditor.contracts.names import Names
from auditor.modules import locate_modules
from auditor.program import Files
from auditor.sources.cache import CacheConfig
from auditor.sources.open import open_source

PYTHON = os.environ.get("DRAFTAUDIT_TEST_VLLM_PYTHON")
COUNT = 4000
#: How many of a thousand may end without an answer.
OPEN = 60

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason="no DRAFTAUDIT_TEST_VLLM_PYTHON"),
]


def _names(python: str) -> Names:
    code = "import importlib.util as u; print(u.find_spec('vllm').submodule_search_locations[0])"
    said = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    folder = Path(said.stdout.strip()).parent
    source = open_source(str(folder), cwd=Path.cwd(), cache=CacheConfig.off())
    modules = locate_modules(sorted(source.tree.files()), {"vllm"})[0]
    return Names(Files(source.tree), modules)


def _said(names: Names, given: dict[str, Any]) -> list[Any] | None:
    """What the interpreter says, in the words of the script; None where it cannot follow."""
    run = new_run(names, NoLibrary())
    try:
        made = override(run, bare(run, copy.deepcopy(given)))
    except Raised as raised:
        return ["raised", raised.type, raised.message]
    except CannotFollow:
        return None
    held = [read(made, key) for key in ("architectures", "n_predict", "model_type")]
    return ["made", *(json.loads(json.dumps(one, default=lambda _: "?")) for one in held)]


def _agree(static: list[Any], live: list[Any]) -> bool:
    # What an exception says may be another sentence in another Python; its class may not.
    return static[:2] == live[:2] if static[0] == "raised" else static == live


def test_random_configurations_come_to_what_the_function_makes_of_them(tmp_path: Path) -> None:
    assert PYTHON is not None
    names = _names(PYTHON)
    words = words_of(override_function(new_run(names, NoLibrary())))
    assert len(words.fields) > 10
    given = list(configs(words, COUNT, seed=8))
    asked, answers = tmp_path / "asked.json", tmp_path / "answers.jsonl"
    asked.write_text(json.dumps(given))
    script = Path(__file__).with_name("live_override.py")
    subprocess.run([PYTHON, script, asked, answers], check=True, capture_output=True)
    live = [json.loads(line) for line in answers.read_text().splitlines()]
    assert len(live) == COUNT
    static = [_said(names, one) for one in given]
    wrong = [
        (config, mine, theirs)
        for config, mine, theirs in zip(given, static, live, strict=True)
        if mine is not None and not _agree(mine, theirs)
    ]
    assert not wrong, wrong[:3]
    assert sum(one is None for one in static) * 1000 < OPEN * COUNT
    made = [one for one in static if one is not None and one[0] == "made"]
    assert len(made) > COUNT // 4
    assert len({json.dumps(one[1]) for one in made}) > 40
