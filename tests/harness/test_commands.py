"""``codemod tests``, ``apply --tests`` and ``verify``: from arguments to exit code."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from trees.heads import LAYERS
from trees.lacking import draft, engine
from trees.minivllm import ARCHITECTURE, INIT, WITH_METHOD, write

from auditor.main import run
from codemods.cli import codemod
from codemods.harness.files import FOLDER

FLAT = """
def compute_logits(self, hidden_states):
    return self.logits_processor(self.lm_head, hidden_states)
"""
OTHER = """
def get_top_tokens(self, hidden_states):
    return self.logits_processor.get_top_tokens(self.lm_head, self.norm(hidden_states))
"""
TEST = f"{FOLDER}/test_draft_local_argmax.py"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "tree", {**LAYERS, **engine(), INIT: draft(FLAT)})
    return tmp_path / "tree"


def call(*args: str, folder: Path) -> int:
    return run(codemod, [*args, "--vllm", str(folder), "--no-cache", "--quiet"], "codemod")


def test_tests_are_printed_under_their_names(folder: Path, capsys: Capture) -> None:
    assert call("tests", folder=folder) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"# {TEST}\n# SPDX-License-Identifier: Apache-2.0\n")
    assert "def test_selects_what_the_full_argmax_selects(" in out


def test_tests_go_to_a_folder(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    assert call("tests", ARCHITECTURE, "-o", str(tmp_path / "out"), folder=folder) == 0
    (made,) = (tmp_path / "out").iterdir()
    assert made.name == Path(TEST).name
    assert call("tests", "-o", str(folder / INIT), folder=folder) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_apply_writes_the_test_with_the_patch(folder: Path, capsys: Capture) -> None:
    assert call("apply", "--tests", "--write", folder=folder) == 0
    assert f"edited {TEST}" in capsys.readouterr().out
    assert "get_top_tokens" in (folder / TEST).read_text()
    assert call("apply", "--tests", folder=folder) == 0
    assert capsys.readouterr().out == ""


def test_a_test_that_is_there_is_not_written_over(folder: Path, capsys: Capture) -> None:
    (folder / TEST).parent.mkdir(parents=True)
    (folder / TEST).write_text("mine\n")
    before = (folder / INIT).read_bytes()
    assert call("apply", "--tests", "--write", folder=folder) == 2
    assert "exists already" in capsys.readouterr().err
    assert (folder / INIT).read_bytes() == before
    assert (folder / TEST).read_text() == "mine\n"


@pytest.mark.parametrize("other", [["--pr-text"], ["--flag-docstring"], ["--format", "json"]])
def test_what_has_no_place_for_a_test_is_refused_with_it(other: list[str], folder: Path) -> None:
    assert call("apply", "--tests", *other, folder=folder) == 2


def test_verify_without_an_interpreter_tells_the_term_proofs(folder: Path, capsys: Capture) -> None:
    assert call("verify", folder=folder) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == [ARCHITECTURE, "yes,", "patched", "not", "run", "-", "-"]
    assert call("verify", "--format", "json", folder=folder) == 0
    document = json.loads(capsys.readouterr().out)
    (one,) = document["families"]
    assert (one["proof"], one["live"], one["mutants"]) == ("yes", "not run", [])


def test_verify_tells_the_proof_of_a_method_that_is_there(folder: Path, capsys: Capture) -> None:
    (folder / INIT).write_text(WITH_METHOD)
    assert call("verify", "--format", "json", folder=folder) == 0
    (one,) = json.loads(capsys.readouterr().out)["families"]
    assert (one["patch"], one["proof"]) == ("", "yes?")


def test_verify_fails_where_a_method_picks_other_tokens(folder: Path) -> None:
    (folder / INIT).write_text(draft(FLAT + OTHER))
    assert call("verify", folder=folder) == 1


@pytest.mark.parametrize("command", ["tests", "verify"])
def test_what_is_refused_is_told(command: str, folder: Path, capsys: Capture) -> None:
    (folder / INIT).write_text(draft("def forward(self):\n    return None\n"))
    assert call(command, folder=folder) == 0
    assert f"refused: {ARCHITECTURE} (" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["table", "json"])
def test_verify_tells_what_stays_open(form: str, folder: Path, capsys: Capture) -> None:
    text = "import os\n\n" + draft(FLAT) + "\n\nif os.environ['X']:\n    Draft = object\n"
    (folder / INIT).write_text(text)
    assert call("verify", "--format", form, folder=folder) == 3
    assert f"not decided: {ARCHITECTURE} on cpu: " in capsys.readouterr().err


def test_verify_wants_the_vllm_of_the_interpreter_alone(folder: Path, capsys: Capture) -> None:
    assert call("verify", "--live", sys.executable, folder=folder) == 2
    assert "cannot be combined with --live" in capsys.readouterr().err
    assert call("verify", "--live-timeout", "5", folder=folder) == 2


def test_verify_says_that_an_interpreter_has_no_vllm(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.fspath(tmp_path))
    assert run(codemod, ["verify", "--live", sys.executable, "--no-cache"], "codemod") == 2
    assert "no vllm is installed in this Python" in capsys.readouterr().err
