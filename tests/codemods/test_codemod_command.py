"""The commands, from arguments to exit code, over trees on the disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from trees.heads import LAYERS
from trees.lacking import draft, engine
from trees.minivllm import ARCHITECTURE, INIT, SPECULATIVE, write

from auditor.main import run
from codemods.cli import codemod
from codemods.writing import JOURNAL

FLAT = """
def compute_logits(self, hidden_states):
    return self.logits_processor(self.lm_head, hidden_states)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "tree", {**LAYERS, **engine(), INIT: draft(FLAT)})
    return tmp_path / "tree"


def call(*args: str, folder: Path) -> int:
    return run(codemod, [*args, "--vllm", str(folder), "--no-cache"], "codemod")


def test_list_says_what_would_be_done(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("list", folder=folder) == 0
    out = capsys.readouterr().out
    assert out.startswith("DraftModel  mixin  (cuda, rocm, xpu, cpu, tpu, oot)\n")
    assert "1 architectures can be patched, in 1 patches; 0 refused" in out


def test_list_as_json_has_the_fields_that_others_build_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("list", "--format", "json", folder=folder) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["architecture"], item["action"], item["files"]) == (ARCHITECTURE, "mixin", [INIT])
    assert (item["code"], item["reason"]) == (None, None)
    assert item["platforms"] == ["cuda", "rocm", "xpu", "cpu", "tpu", "oot"]
    assert item["place"]["path"] == INIT


def test_a_refusal_has_a_code_and_a_reason(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / INIT).write_text(draft("def forward(self):\n    pass"))
    assert call("list", "--format", "json", folder=folder) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["action"], item["code"]) == ("refused", "no-logits")
    assert item["reason"] == "the class has no compute_logits"
    assert call("apply", folder=folder) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "refused: DraftModel (cuda, rocm, xpu, cpu, tpu, oot): no-logits: " in captured.err


def test_apply_prints_a_diff_and_changes_nothing(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = (folder / INIT).read_bytes()
    assert call("apply", "Draft*", folder=folder) == 0
    out = capfd.readouterr().out
    assert out.startswith(f"diff --git a/{INIT} b/{INIT}\n--- a/{INIT}\n+++ b/{INIT}\n@@ ")
    assert "+class Draft(LocalArgmaxMixin, nn.Module):\n" in out
    assert (folder / INIT).read_bytes() == before


def test_check_asks_for_a_patch_and_is_silent_after_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("check", folder=folder) == 1
    assert call("apply", "--write", folder=folder) == 0
    assert call("check", folder=folder) == 0
    assert call("apply", folder=folder) == 0
    assert "edited vllm/models/draft/__init__.py" in capsys.readouterr().out


def test_patches_go_to_a_folder(folder: Path, tmp_path: Path) -> None:
    assert call("apply", "-o", str(tmp_path / "out"), folder=folder) == 0
    (place,) = (tmp_path / "out").iterdir()
    assert place.name == "DraftModel.patch"
    subprocess.run(["git", "apply", "--check", str(place)], cwd=folder, check=True)


def test_apply_as_json_holds_the_diff(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("apply", "--format", "json", folder=folder) == 0
    (patch,) = json.loads(capsys.readouterr().out)["patches"]
    assert patch["files"] == [INIT]
    assert patch["diff"].startswith("diff --git ")


def test_the_text_for_a_pull_request_says_who_owns_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("apply", "--pr-text", folder=folder) == 0
    out = capsys.readouterr().out
    assert "Review every line" in out
    assert [line for line in out.splitlines() if line.startswith("## ")] == [
        "## Purpose",
        "## Why this form",
        "## Test Plan",
        "## Test Result",
    ]


def test_the_docstring_of_the_setting_says_that_it_is_a_trade(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call("apply", "--flag-docstring", "--write", folder=folder) == 0
    text = (folder / SPECULATIVE).read_text()
    assert "Use a local argmax.\n\n    This is a trade with a break-even" in text
    assert max(map(len, text.splitlines())) <= 88
    compile(text, SPECULATIVE, "exec")
    capfd.readouterr()
    assert call("apply", "--flag-docstring", folder=folder) == 0
    captured = capfd.readouterr()
    assert (captured.out, captured.err.splitlines()[-1]) == (
        "",
        "the docstring of the setting says so already",
    )


NO_SETTING = {
    "no setting": (
        "class SpeculativeConfig:\n    method: str = ''\n",
        f"{SPECULATIVE}:1: SpeculativeConfig has no setting use_local_argmax_reduction. "
        "vllm (unknown version) has no use_local_argmax_reduction: name a release that has it",
    ),
    "no class": ("x = 1\n", f"{SPECULATIVE}: there is no class SpeculativeConfig. "),
    "no docstring": (
        "class SpeculativeConfig:\n    use_local_argmax_reduction: bool = False\n",
        f"{SPECULATIVE}:1: SpeculativeConfig.use_local_argmax_reduction has no docstring of one "
        "plain string. Nothing was changed. Edit the docstring by hand.",
    ),
    "a file that does not parse": (
        "class SpeculativeConfig(:\n", f"{SPECULATIVE}: it cannot be parsed: "),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), NO_SETTING.values(), ids=NO_SETTING)
def test_a_setting_that_is_not_there_ends_with_two(
    text: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / SPECULATIVE).write_text(text)
    assert call("apply", "--flag-docstring", folder=folder) == 2
    assert f"error: {message}" in capsys.readouterr().err


def test_input_that_could_not_be_read_ends_with_three(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = folder / "vllm" / "models" / "loop.py"
    place.symlink_to(place)
    for args in (["list"], ["list", "--format", "json"], ["apply"]):
        assert call(*args, folder=folder) == 3
        captured = capsys.readouterr()
        assert "vllm/models/loop.py" in captured.out + captured.err
    assert call("check", folder=folder) == 1, "something to patch is told first"


WRONG = {
    "no such architecture": (["apply", "Nonsense"], "no architecture of"),
    "two outputs": (["apply", "--write", "-o", "out"], "-o: cannot be combined with --write"),
    "a flag without its other": (["apply", "--allow-dirty"], "only with --write"),
    "a platform that is none": (["list", "--platform", "vax"], "no platform is called 'vax'"),
}


@pytest.mark.parametrize(("args", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage_ends_with_two(
    args: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*args, folder=folder) == 2
    assert message in capsys.readouterr().err


def test_a_row_that_stays_open_ends_with_three(folder: Path) -> None:
    (folder / INIT).write_text(
        "import os\n\n" + draft(FLAT) + "\n\nif os.environ['X']:\n    Draft = object\n"
    )
    assert call("list", folder=folder) == 3


def _commit(folder: Path) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    for args in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", *args], cwd=folder, check=True)


def test_a_file_with_uncommitted_changes_is_not_edited(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _commit(folder)
    changed = draft(FLAT) + "\n# mine\n"
    (folder / INIT).write_text(changed)
    assert call("apply", "--write", folder=folder) == 2
    assert "has changes that are not committed" in capsys.readouterr().err
    assert (folder / INIT).read_text() == changed
    assert call("apply", "--write", "--allow-dirty", folder=folder) == 0
    assert (folder / INIT).read_text().endswith("# mine\n")


def test_a_committed_file_is_edited(folder: Path) -> None:
    _commit(folder)
    assert call("apply", "--write", folder=folder) == 0


def test_an_archive_is_patched_to_diffs_and_not_written(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import zipfile

    wheel = tmp_path / "vllm-0.33.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in folder.rglob("*"):
            archive.write(path, path.relative_to(folder))
        archive.writestr("vllm-0.33.0.dist-info/METADATA", "Name: vllm\nVersion: 0.33.0\n")
        archive.writestr("vllm-0.33.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr("vllm-0.33.0.dist-info/RECORD", "")
    assert call("apply", folder=wheel) == 0
    assert "+class Draft(LocalArgmaxMixin, nn.Module):" in capfd.readouterr().out
    assert call("apply", "--write", folder=wheel) == 2
    assert "is not a folder" in capfd.readouterr().err


def test_recover_finishes_what_was_interrupted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("recover", folder=folder) == 0
    assert "nothing to finish" in capsys.readouterr().err
    (folder / JOURNAL).write_text("{}")
    assert call("apply", "--write", folder=folder) == 2
    assert "Run codemod recover" in capsys.readouterr().err


def test_a_journal_that_cannot_be_read_ends_with_two(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / JOURNAL).mkdir()
    assert call("recover", folder=folder) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom auditor.main import run\nfrom codemods.cli import codemod\n"
        "run(codemod, ['apply', '--help'], 'codemod')\n"
        "assert not {'libcst', 'dulwich', 'auditor.api'} & sys.modules.keys(), sys.modules.keys()\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True)
