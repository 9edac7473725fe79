"""``action.yml``: its steps run in bash with the environment that the host gives them.

Only the installation is another one, except in the slow test: the interpreter that runs the tests
stands where the first step puts it. Most are slow, since each starts the program twice.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from reports.test_github_report import commands
from test_drift_command import COMMITS, git
from trees.drifting import BARE, DRAFT, PAIR, tree
from trees.minivllm import line_of, write

ROOT = Path(__file__).parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
INSTALL, AUDIT = ACTION["runs"]["steps"]
SARIF = "draftaudit.sarif"
_EXPRESSION = re.compile(r"\$\{\{\s*inputs\.([\w-]+)\s*\}\}")


@dataclass
class Outcome:
    """What a step left: its exit code, what it said, its outputs and its summary."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str

    @property
    def annotations(self) -> list[tuple[str, dict[str, str], str]]:
        return commands("\n".join(line for line in self.log.splitlines() if line[:2] == "::"))


@dataclass
class Host:
    """A runner: a workspace with a checkout, and the files that it gives to a step."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def step(self, step: dict[str, Any], inputs: dict[str, str]) -> Outcome:
        files = {name: self.folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        given = {name: one["default"] for name, one in ACTION["inputs"].items()} | inputs
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GIT_CONFIG_SYSTEM": os.devnull,
            "RUNNER_TEMP": str(self.folder / "temp"),
            "GITHUB_ACTION_PATH": str(ROOT),
            **{name: str(file) for name, file in files.items()},
            **{
                name: _EXPRESSION.sub(lambda match: given[match[1]], value)
                for name, value in step.get("env", {}).items()
            },
            **self.environ,
        }
        # The command line of GitHub for `shell: bash`.
        script = self.folder / "step.sh"
        script.write_text(step["run"])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.workspace,
            env=env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        outputs = _outputs(files["GITHUB_OUTPUT"].read_text())
        summary = files["GITHUB_STEP_SUMMARY"].read_text()
        return Outcome(done.returncode, done.stdout, outputs, summary)

    def audit(self, **inputs: str) -> Outcome:
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        return self.step(AUDIT, {"platforms": "cuda,rocm", **given})


def _outputs(text: str) -> dict[str, str]:
    """As the runner reads them: ``name<<mark``, lines, ``mark``."""
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        name, _, mark = line.partition("<<")
        value = []
        for inner in lines:
            if inner == mark:
                break
            value.append(inner)
        found[name] = "\n".join(value)
    return found


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A runner with a checkout of one commit, and the interpreter of the tests installed."""
    made = Host(tmp_path)
    write(made.workspace, tree(PAIR))
    git(made.workspace, "init", "-q", "-b", "main")
    _commit(made.workspace, "first")
    python = tmp_path / "temp" / "draftaudit" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return made


def _commit(folder: Path, message: str, files: dict[str, str] | None = None) -> None:
    write(folder, files or tree(PAIR))
    git(folder, "add", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


def _pull_request(host: Host, files: dict[str, str]) -> None:
    """The workspace as actions/checkout leaves it: the merge of a branch into its base."""
    git(host.workspace, "checkout", "-q", "-b", "topic")
    _commit(host.workspace, "topic", files)
    git(host.workspace, "checkout", "-q", "main")
    git(host.workspace, "merge", "-q", "--no-ff", "topic", "-m", "merge")
    git(host.workspace, "checkout", "-q", "--detach")
    git(host.workspace, "branch", "-q", "-D", "main", "topic")
    host.environ["GITHUB_BASE_REF"] = "main"
    host.environ["GITHUB_SHA"] = _commit_of(host.workspace, "HEAD")


def _commit_of(folder: Path, revision: str) -> str:
    command = ["git", "rev-parse", revision]
    return subprocess.check_output(command, cwd=folder, text=True).strip()


# ---- the file --------------------------------------------------------------------------------


def test_no_input_is_ever_part_of_a_script() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert "uses" not in step


def test_every_input_reaches_the_script_and_every_output_is_set(host: Host) -> None:
    used = {_EXPRESSION.fullmatch(value)[1] for value in AUDIT["env"].values()}  # type: ignore[index]
    assert used == set(ACTION["inputs"])
    named = {
        re.fullmatch(r"\$\{\{ steps\.audit\.outputs\.([\w-]+) \}\}", one["value"])[1]  # type: ignore[index]
        for one in ACTION["outputs"].values()
    }
    assert named == set(host.audit().outputs) == set(ACTION["outputs"])


@pytest.mark.parametrize(
    ("schema", "file"), [("github-actions", "action.yml"), ("github-workflows", None)]
)
def test_the_schema_of_github_is_kept(schema: str, file: str | None, tmp_path: Path) -> None:
    path = ROOT / file if file else tmp_path / "workflow.yml"
    if file is None:
        path.write_text(workflows()[0])
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


# ---- what it does ----------------------------------------------------------------------------


def test_a_push_is_audited_alone(host: Host) -> None:
    done = host.audit()
    assert done.code == 0, done.log
    assert done.outputs == {"sarif": "draftaudit.sarif", "compared-with": "", "exit-code": "0"}
    assert done.annotations[-1][2].startswith("get_top_tokens in vllm")
    assert done.summary.startswith("### draftaudit: `get_top_tokens in vllm")
    log = json.loads((host.workspace / "draftaudit.sarif").read_text())
    assert log["runs"][0]["tool"]["driver"]["name"] == "draftaudit"


@pytest.mark.slow
def test_a_push_fails_where_a_cell_is_one_of_those_named(host: Host) -> None:
    write(host.workspace, tree(BARE))
    assert host.audit().code == 0
    done = host.audit(fail_on="no")
    assert (done.code, done.outputs["exit-code"]) == (1, "1")
    assert done.annotations[0][:2] == (
        "error",
        {
            "file": DRAFT,
            "line": str(line_of(tree(BARE), DRAFT, "class Draft")),
            "title": "SD001 lacks the method",
        },
    )


@pytest.mark.parametrize(
    "commit",
    [
        pytest.param(commit, marks=() if number == 0 else pytest.mark.slow)
        for number, commit in enumerate(COMMITS)
    ],
)
def test_a_pull_request_is_compared_with_its_base(commit: str, host: Host) -> None:
    files, code, kind, path, text = COMMITS[commit]
    _pull_request(host, files)
    done = host.audit()
    assert done.code == code, done.log
    assert re.fullmatch(r"\.@[0-9a-f]{40}", done.outputs["compared-with"])
    placed = [
        one for one in done.annotations if "file" in one[1] and "SD312" not in one[1]["title"]
    ]
    assert {(one[1]["file"], one[1]["line"]) for one in placed} == (
        {(path, str(line_of(files, path, text)))} if kind else set()
    )
    assert [one[0] for one in placed][:1] == ([] if not kind else ["error" if code else "notice"])
    assert ("no change" in done.summary) is (kind is None)


@pytest.mark.slow
def test_a_checkout_without_the_base_fetches_it(host: Host, tmp_path: Path) -> None:
    _pull_request(host, tree(BARE))
    remote = tmp_path / "remote"
    host.workspace.rename(remote)
    git(remote, "branch", "main", "HEAD^1")
    git(remote, "checkout", "-q", "-b", "pull")
    url = f"file://{remote}"
    git(tmp_path, "clone", "-q", "--depth=1", "--branch=pull", url, str(host.workspace))
    done = host.audit()
    assert done.code == 1, done.log
    assert done.outputs["compared-with"]
    assert done.annotations[0][1]["title"] == "SD301 method lost"


@pytest.mark.slow
def test_the_head_of_a_branch_that_has_merged_its_base_is_compared_with_the_base(
    host: Host,
) -> None:
    # The first parent of such a merge is the branch itself.
    git(host.workspace, "checkout", "-q", "-b", "topic")
    _commit(host.workspace, "topic", tree(BARE))
    git(host.workspace, "checkout", "-q", "main")
    _commit(host.workspace, "meanwhile")
    git(host.workspace, "update-ref", "refs/remotes/origin/main", "main")
    git(host.workspace, "checkout", "-q", "topic")
    git(host.workspace, "merge", "-q", "--no-ff", "main", "-m", "merge")
    host.environ |= {"GITHUB_BASE_REF": "main", "GITHUB_SHA": "f" * 40}
    done = host.audit()
    assert done.outputs["compared-with"] == f".@{_commit_of(host.workspace, 'main')}"
    assert (done.code, done.annotations[0][1]["title"]) == (1, "SD301 method lost")


@pytest.mark.slow
def test_a_revision_that_cannot_be_fetched_is_not_the_last_one_that_was(host: Host) -> None:
    git(host.workspace, "fetch", "-q", ".", "HEAD")
    done = host.audit(base="nowhere")
    assert (done.code, done.outputs["compared-with"]) == (0, "")
    assert "nowhere is not in the checkout" in done.annotations[0][2]


@pytest.mark.slow
def test_a_base_that_cannot_be_had_is_said_and_the_checkout_audited_alone(host: Host) -> None:
    host.environ["GITHUB_BASE_REF"] = "main-of-elsewhere"
    done = host.audit()
    assert (done.code, done.outputs["compared-with"]) == (0, "")
    first = done.annotations[0]
    assert first[0] == "warning"
    assert "the base branch main-of-elsewhere is not in the checkout" in first[2]
    assert done.summary.startswith("### draftaudit: `get_top_tokens in vllm")


@pytest.mark.slow
def test_a_checkout_that_is_no_repository_is_audited_alone(host: Host) -> None:
    shutil.rmtree(host.workspace / ".git")
    host.environ["GITHUB_BASE_REF"] = "main"
    done = host.audit()
    assert (done.code, done.annotations[0][0]) == (0, "warning")


@pytest.mark.slow
def test_a_revision_may_be_named(host: Host) -> None:
    _commit(host.workspace, "second", tree(BARE))
    done = host.audit(base="HEAD~1", drift_fail_on="none")
    assert done.code == 0, done.log
    assert done.annotations[0][1]["title"] == "SD301 method lost"


@pytest.mark.slow
def test_a_branch_that_is_new_has_nothing_to_compare_with(host: Host) -> None:
    done = host.audit(base="0" * 40)
    assert (done.code, done.annotations[0][0]) == (0, "notice")


@pytest.mark.slow
def test_a_baseline_may_be_named(host: Host) -> None:
    command = [sys.executable, "-c", "from auditor.main import audit; audit()", "baseline",
               "--vllm", str(host.workspace), "-p", "cuda,rocm", "-o", "base.toml"]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(host.folder / "xdg")}
    subprocess.run(command, cwd=host.workspace, env=env, check=True, capture_output=True)
    host.environ["GITHUB_BASE_REF"] = "main"
    assert host.audit(baseline="base.toml").code == 0
    write(host.workspace, tree(BARE))
    done = host.audit(baseline="base.toml")
    assert (done.code, done.outputs["compared-with"]) == (1, "base.toml")


@pytest.mark.slow
def test_a_checkout_in_a_folder_of_the_workspace(host: Host) -> None:
    inner = host.folder / "inner"
    host.workspace.rename(inner)
    host.workspace.mkdir()
    inner.rename(host.workspace / "vllm checkout")
    write(host.workspace / "vllm checkout", tree(BARE))
    done = host.audit(path="vllm checkout", base="HEAD", sarif="")
    assert done.code == 1, done.log
    assert done.outputs["sarif"] == ""
    assert done.annotations[0][1]["file"] == DRAFT
    assert not (host.workspace / "draftaudit.sarif").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ACTION["inputs"]))
def test_an_input_is_never_run(name: str, host: Host) -> None:
    text = "$(touch ran)`touch ran`\"; touch ran; '\n--upload-pack=touch ran\nx=y"
    done = host.audit(**{name: text})
    assert not list(host.folder.rglob("ran"))
    assert done.outputs["exit-code"] == str(done.code or 0)
    sarif = done.outputs["sarif"]
    assert sarif == ("" if name in ("path", "platforms") else text if name == "sarif" else SARIF)
    assert not sarif or (host.workspace / sarif).is_file()


@pytest.mark.slow
def test_an_option_as_a_revision_is_not_an_option_of_git(host: Host) -> None:
    done = host.audit(base="--upload-pack=touch ran")
    assert not list(host.folder.rglob("ran"))
    assert done.annotations[0][0] == "warning"


@pytest.mark.slow
def test_wrong_usage_fails_the_step(host: Host) -> None:
    done = host.audit(platforms="rcom")
    assert (done.code, done.outputs["exit-code"]) == (2, "2")
    assert "Did you mean rocm?" in done.log
    assert done.annotations[-1][0] == "error"


@pytest.mark.slow
def test_what_could_not_be_analysed_is_a_warning(host: Host) -> None:
    (host.workspace / DRAFT).write_text("class Draft(:\n")
    done = host.audit()
    assert (done.code, done.outputs["exit-code"]) == (0, "3")
    assert "could not be analysed" in done.annotations[0][2]
    assert "could not be analysed" in host.audit(sarif="").annotations[-1][2]


@pytest.mark.slow
@pytest.mark.network
def test_the_action_as_a_whole(host: Host) -> None:
    shutil.rmtree(host.folder / "temp" / "draftaudit")
    for variable in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "PIP_FIND_LINKS"):
        if variable in os.environ:
            host.environ[variable] = os.environ[variable]
    _pull_request(host, tree(BARE))
    installed = host.step(INSTALL, {})
    assert installed.code == 0, installed.log
    done = host.audit()
    assert done.code == 1, done.log
    assert done.annotations[0][1]["title"] == "SD301 method lost"


# ---- the workflows of the documentation ------------------------------------------------------


def workflows() -> list[str]:
    """Every fenced YAML of docs/ci.md that is a workflow."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / "ci.md").read_text(), re.M | re.S)
    return [block for block in blocks if re.search(r"^jobs:", block, re.M)]
