"""Tests, mutants and crashes in an interpreter with a vLLM of three files that really imports."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest
from msgspec import structs
from trees.lacking import draft, planned, tree

from auditor.live.asking import Interpreter
from auditor.live.interpreter import LiveError
from codemods.harness import verify
from codemods.harness.files import named
from codemods.harness.mutants import mutants_of
from codemods.harness.overlay import OverlayError, overlay
from codemods.harness.recipe import Bare, Recipe

INITIAL = """
def __init__(self, config):
    super().__init__()
    self.lm_head = ParallelLMHead(config.vocab_size, config.hidden_size)
    self.logits_processor = LogitsProcessor(config.vocab_size)
    self.norm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
"""
FLAT = """
def compute_logits(self, hidden_states):
    return self.logits_processor(self.lm_head, {})
"""
PACKAGE = {
    "vllm/__init__.py": "",
    "vllm/config.py": """
        from contextlib import contextmanager

        class VllmConfig:
            pass

        @contextmanager
        def set_current_vllm_config(config):
            yield
        """,
    "vllm/platforms.py": """
        class Platform:
            device_name = "cpu"

        current_platform = Platform()
        """,
    "vllm/draft.py": """
        class Processor:
            def get_top_tokens(self, head, hidden_states):
                return head * hidden_states

        class Draft:
            logits_processor = Processor()

            def get_top_tokens(self, hidden_states, spec_step_idx=0):
                doubled = hidden_states * 2
                return self.logits_processor.get_top_tokens(spec_step_idx, doubled)
        """,
}
GOOD = """
from vllm.draft import Draft

def test_it(default_vllm_config):
    assert Draft().get_top_tokens(3, spec_step_idx=5) == 30
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    for name, text in PACKAGE.items():
        place = tmp_path / "installed" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(dedent(text))
    return tmp_path / "installed" / "vllm"


def ran(
    installed: Path, tests: Mapping[str, str], seconds: float = 60, **environment: str
) -> dict[str, verify._Ran]:
    """What comes of tests with every mutant of the draft's method."""
    source = (installed / "draft.py").read_bytes()
    mutants = mutants_of(source, "vllm.draft.Draft", "get_top_tokens", "spec_step_idx")
    listed = [
        {"fault": m.fault, "cls": m.cls, "method": m.method, "source": m.source} for m in mutants
    ]
    folder = installed.parent.parent
    wanted = []
    for name, text in tests.items():
        path = folder / f"test_{name}.py"
        path.write_text(text)
        wanted.append({"name": name, "path": str(path), "mutants": listed})
    # As it is found: a package beside the interpreter's own folders.
    asked = Interpreter(
        Path(sys.executable), "Python", installed.parent, {**os.environ, **environment}, seconds
    )
    found: dict[str, verify._Ran] = {}
    verify._tests(asked, overlay(installed, folder / "overlay", {}), wanted, found)
    return found


def test_a_test_that_passes_kills_every_mutant(installed: Path) -> None:
    one = ran(installed, {"good": GOOD})["good"]
    assert (one.live, one.passed, one.failed) == ("passed", 1, 0)
    assert {mutant.fault for mutant in one.mutants} == {
        "transform dropped", "step ignored", "another step", "another token",
    }  # fmt: skip
    assert all(mutant.killed for mutant in one.mutants)


def test_a_mutant_that_a_test_does_not_see_is_alive(installed: Path) -> None:
    text = GOOD.replace("spec_step_idx=5", "spec_step_idx=0").replace("30", "0")
    one = ran(installed, {"blind": text})["blind"]
    alive = {mutant.fault for mutant in one.mutants if not mutant.killed}
    assert one.live == "passed"
    assert alive == {"transform dropped", "step ignored"}


def test_a_failing_test_is_told_and_no_mutant_is_tried(installed: Path) -> None:
    one = ran(installed, {"bad": GOOD.replace("30", "31")})["bad"]
    assert (one.live, one.passed, one.failed, one.mutants) == ("failed", 0, 1, [])
    assert "assert 30 == 31" in one.reason


def test_what_cannot_be_imported_is_no_failure_of_the_patch(installed: Path) -> None:
    one = ran(installed, {"gone": f"import absent_module\n{GOOD}"})["gone"]
    assert one.live == "not importable"
    assert "No module named 'absent_module'" in one.reason


@pytest.mark.parametrize(
    "line", ["from vllm.draft import Gone", "import vllm.gone", "raise ValueError('no')", "1 +"]
)
def test_a_file_that_is_broken_is_a_failure(line: str, installed: Path) -> None:
    assert ran(installed, {"broken": f"{line}\n{GOOD}"})["broken"].live == "failed"


def test_a_file_that_skips_itself_was_not_run(installed: Path) -> None:
    skip = "import pytest\npytest.skip('elsewhere', allow_module_level=True)\n"
    assert ran(installed, {"skipped": skip})["skipped"].live == "not run"


def test_a_test_that_ends_the_interpreter_loses_no_other(installed: Path) -> None:
    crash = GOOD.replace("    assert", "    import os\n    os._exit(9)\n    assert")
    found = ran(installed, {"first": GOOD, "second": crash, "third": GOOD})
    assert [found[name].live for name in ("first", "second", "third")] == [
        "passed", "crashed", "passed",
    ]  # fmt: skip
    assert "exit code 9" in found["second"].reason


def test_a_test_that_hangs_is_given_up(installed: Path) -> None:
    hang = GOOD.replace("    assert", "    import time\n    time.sleep(600)\n    assert")
    found = ran(installed, {"hangs": hang, "good": GOOD}, seconds=8)
    assert (found["hangs"].live, found["good"].live) == ("crashed", "passed")


def test_an_interpreter_without_pytest_is_told_so(installed: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "pytest.py").write_text("raise ImportError('hidden')\n")
    with pytest.raises(LiveError, match="pytest is not installed in this Python") as error:
        ran(installed, {"good": GOOD}, PYTHONPATH=str(hidden))
    assert "-m pip install pytest" in error.value.message


# ---- the copy of the package --------------------------------------------------------------------


def test_a_patched_file_is_a_file_of_the_copy_alone(installed: Path, tmp_path: Path) -> None:
    before = (installed / "draft.py").read_bytes()
    folder = overlay(installed, tmp_path / "copy", {"vllm/draft.py": b"x = 1\n"})
    assert (folder / "vllm/draft.py").read_bytes() == b"x = 1\n"
    assert not (folder / "vllm/draft.py").is_symlink()
    assert (folder / "vllm/config.py").resolve() == (installed / "config.py").resolve()
    assert (installed / "draft.py").read_bytes() == before


def test_a_patch_of_a_file_that_is_not_installed_is_refused(
    installed: Path, tmp_path: Path
) -> None:
    with pytest.raises(OverlayError, match="not there"):
        overlay(installed, tmp_path / "copy", {"vllm/gone.py": b""})
    assert not (tmp_path / "copy").exists()


# ---- which faults can be seen -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hidden", "faults"),
    [("hidden_states", {"another token"}), ("self.norm(hidden_states)", {"transform dropped"})],
)
def test_a_transform_is_dropped_only_where_there_is_one(hidden: str, faults: set[str]) -> None:
    plan = planned(tree(draft(FLAT.format(hidden), init=INITIAL)))
    (trial,) = plan.trials
    found = verify._mutants(plan, tree(draft(FLAT)), trial)
    assert {one.fault for one in found} == faults


def test_a_remap_is_forgotten_only_where_the_model_has_a_table() -> None:
    without = Recipe(Bare("a.Draft"), "", "", False, False, False)
    assert "remap forgotten" not in verify._telling([without])
    assert "remap forgotten" in verify._telling([without, structs.replace(without, remap=True)])


def test_what_the_environment_asks_of_pytest_does_not_count(installed: Path) -> None:
    one = ran(installed, {"good": GOOD}, PYTEST_ADDOPTS="-k nothing", PYTEST_PLUGINS="missing")
    assert (one["good"].live, one["good"].passed) == ("passed", 1)


WAITING = """
import pathlib
import time

folder = pathlib.Path({folder!r})
(folder / "started").touch()
time.sleep(20)
(folder / "finished").touch()
"""


def test_an_interrupt_ends_the_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "waiting.py"
    script.write_text(WAITING.format(folder=str(tmp_path)))
    monkeypatch.setattr(verify, "RANKS", script)
    trials = named(planned(tree(draft(FLAT.format("hidden_states"), init=INITIAL))).trials)
    asked = Interpreter(Path(sys.executable), "Python", tmp_path, os.environ, 60)

    def interrupt() -> None:
        while not (tmp_path / "started").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    # A shell that starts a job in the background has it ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            verify._ranks(asked, tmp_path, tmp_path, trials, dict.fromkeys(trials, script), {})
    finally:
        signal.signal(signal.SIGINT, before)
    assert not (tmp_path / "finished").exists()


RANK = """
import json
import sys

request = json.load(open(sys.argv[1]))
with open(sys.argv[2], "a") as answers:
    for test in request["tests"]:
        if test["name"] == "b.Draft" and request["rank"] == 0:
            print(json.dumps({"test": "b.Draft", "reason": "no such head"}), file=answers)
            sys.exit(1)
        if test["name"] == "b.Draft":
            sys.exit(1)
        print(json.dumps({"test": test["name"], "rows": 1}), file=answers)
"""


def test_a_rank_that_raises_loses_no_later_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    monkeypatch.setattr(verify, "RANKS", script)
    (trial,) = planned(tree(draft(FLAT.format("hidden_states"), init=INITIAL))).trials
    trials = {name: structs.replace(trial, cls=f"{name}.Draft") for name in "abc"}
    found = {one.cls: verify._Ran() for one in trials.values()}
    asked = Interpreter(Path(sys.executable), "Python", tmp_path, os.environ, 60)
    verify._ranks(asked, tmp_path, tmp_path, trials, dict.fromkeys(trials, script), found)
    assert {name: one.ranks for name, one in found.items()} == {
        "a.Draft": "agree", "b.Draft": "no such head", "c.Draft": "agree",
    }  # fmt: skip


def test_another_copy_than_the_patched_one_proves_nothing(installed: Path) -> None:
    (installed / "__init__.py").write_text("__file__ = '/elsewhere/vllm/__init__.py'\n")
    with pytest.raises(LiveError, match="imports /elsewhere/vllm and not the patched copy"):
        ran(installed, {"good": GOOD})


def test_a_mutant_that_cannot_be_made_kills_nothing(installed: Path) -> None:
    mutant = {"fault": "odd", "cls": "vllm.draft.Draft", "method": "gone", "source": "x = 1"}
    path = installed.parent.parent / "test_it.py"
    path.write_text(GOOD)
    asked = Interpreter(Path(sys.executable), "Python", installed.parent, os.environ, 60)
    found: dict[str, verify._Ran] = {}
    copy = overlay(installed, installed.parent.parent / "overlay", {})
    wanted = [{"name": "it", "path": str(path), "mutants": [mutant]}]
    verify._tests(asked, copy, wanted, found)
    (tried,) = found["it"].mutants
    assert (found["it"].live, tried.killed) == ("passed", False)
    assert tried.reason.startswith("cannot be built: NameError")


def test_a_full_disk_is_told_with_its_place(
    installed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(LiveError, match="temporary files cannot be kept") as error:
        ran(installed, {"good": GOOD})
    assert "TMPDIR" in error.value.message
