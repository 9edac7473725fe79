"""``docs/ci.md`` and the hooks: what they name exists, and works as it is written there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from test_action import ACTION, workflows
from test_drift_command import git
from trees.drifting import BARE, DRAFT, PAIR, tree
from trees.minivllm import write

from auditor.main import command
from auditor.options import Options
from codemods.cli import group

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "ci.md").read_text()
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
BASELINE = "draftaudit-baseline.toml"


def _fenced(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.M | re.S)


def _parsed(words: list[str]) -> None:
    """Read a command line as the program does, without running it; raises where it is wrong."""
    name = words[0] if words else ""
    if name in command.commands:
        command.commands[name].make_context(name, words[1:], parent=click.Context(command))
    else:
        command.make_context("audit", words)


def test_there_is_a_workflow_and_its_steps_use_what_the_action_has() -> None:
    (text,) = workflows()
    (job,) = yaml.safe_load(text)["jobs"].values()
    (step,) = [one for one in job["steps"] if one.get("id") == "draftaudit"]
    assert step["uses"].startswith("./")
    assert set(step["with"]) <= set(ACTION["inputs"])
    used = set(re.findall(r"steps\.draftaudit\.outputs\.([\w-]+)", text))
    assert used
    assert used <= set(ACTION["outputs"])


def test_the_tables_list_every_input_and_output() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|", TEXT, re.M)
    assert rows == [*ACTION["inputs"], *ACTION["outputs"], *(hook["id"] for hook in HOOKS)]


def _commands() -> list[str]:
    lines = [line for block in _fenced("console") for line in block.splitlines()]
    assert lines
    assert all(line.startswith("$ ") for line in lines)
    return [line[2:] for line in lines if line.startswith("$ audit ")]


@pytest.mark.parametrize("line", _commands())
def test_every_command_is_one_that_the_program_takes(line: str) -> None:
    _parsed(shlex.split(line)[1:])


def test_a_command_with_an_unknown_option_would_be_seen() -> None:
    with pytest.raises(click.UsageError, match="No such option"):
        _parsed(["drift", "--agianst", "x"])


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_every_hook_is_a_command_that_the_program_takes(hook: dict[str, Any]) -> None:
    more = ["--into", "page.md"] if hook["id"].endswith("docs") else []
    _parsed(shlex.split(hook["entry"])[1:] + hook.get("args", []) + more)
    assert hook["pass_filenames"] is False


def test_the_configuration_of_the_hooks_names_hooks_that_exist() -> None:
    (config,) = [yaml.safe_load(block) for block in _fenced("yaml") if block.startswith("repos:")]
    for hook in config["repos"][0]["hooks"]:
        (entry,) = [one["entry"] for one in HOOKS if one["id"] == hook["id"]]
        _parsed(shlex.split(entry)[1:] + hook["args"])


@pytest.mark.parametrize(
    ("hook", "path", "asked"),
    [
        ("draftaudit", DRAFT, True),
        ("draftaudit", "requirements/rocm.txt", True),
        ("draftaudit", "docs/a.md", False),
        ("draftaudit", "tests/vllm/a.py", False),
        ("draftaudit-drift", BASELINE, True),
        ("draftaudit-docs", "docs/a/b.md", True),
    ],
)
def test_a_hook_runs_when_a_file_of_its_own_changes(hook: str, path: str, asked: bool) -> None:
    (files,) = [one["files"] for one in HOOKS if one["id"] == hook]
    assert bool(re.search(files, path)) is asked


def test_the_options_that_are_told_exist() -> None:
    known = {option for each in (command, *command.commands.values()) for param in each.params
             for option in param.opts}  # fmt: skip
    told = set(re.findall(r"`(--[\w-]+)", TEXT))
    assert told
    assert told <= known
    assert "summary" in Options.__slots__
    assert set(group.commands) == {"audit", "codemod"}


# ---- pre-commit itself -----------------------------------------------------------------------


def _pre_commit(folder: Path, home: Path, *args: str | Path) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH",)}
    env = {**kept, "PRE_COMMIT_HOME": str(home), "GIT_CONFIG_GLOBAL": os.devnull,
           "PRE_COMMIT_COLOR": "never", "XDG_CACHE_HOME": str(home / "cache")}  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", *map(str, args)],
        cwd=folder,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


def test_the_manifest_is_what_pre_commit_takes(tmp_path: Path) -> None:
    done = _pre_commit(ROOT, tmp_path, "validate-manifest", ".pre-commit-hooks.yaml")
    assert done.returncode == 0, done.stdout


PAGE = "# Drafts\n<!-- gen:draftaudit -->\n<!-- /gen:draftaudit -->\n"
CONFIG = """
repos:
  - repo: {repository}
    rev: {revision}
    hooks:
      - id: draftaudit
      - id: draftaudit-drift
      - id: draftaudit-docs
        args: [--into, docs/page.md]
"""


@pytest.mark.slow
@pytest.mark.network
def test_pre_commit_runs_the_hooks_of_the_repository(tmp_path: Path) -> None:
    # A copy of what is shipped, as the repository that a user names.
    hooks, home, work = (tmp_path / name for name in ("hooks", "home", "work"))
    hooks.mkdir()
    for name in ("auditor", "codemods", "rules", "pyproject.toml", "README.md", "LICENSE",
                 ".pre-commit-hooks.yaml"):  # fmt: skip
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, hooks / name)
    git(hooks, "init", "-q")
    git(hooks, "add", ".")
    git(hooks, "commit", "-q", "-m", "hooks")
    revision = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=hooks, capture_output=True, text=True, check=True
    ).stdout.strip()

    write(work, tree(PAIR))
    (work / "pyproject.toml").touch()
    (work / "docs").mkdir()
    (work / "docs" / "page.md").write_text(PAGE)
    config = CONFIG.format(repository=hooks, revision=revision)
    (work / ".pre-commit-config.yaml").write_text(config)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(home / "cache")}
    baseline = [sys.executable, "-c", "from auditor.main import audit; audit()", "baseline"]
    subprocess.run([*baseline, "-o", BASELINE], cwd=work, env=env, check=True, capture_output=True)
    git(work, "init", "-q")
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", "first")

    # The page is written, which a hook says by failing; the second time all pass.
    first = _pre_commit(work, home, "run", "--all-files")
    assert _results(first.stdout) == ["Passed", "Passed", "Failed"], first.stdout
    assert "files were modified by this hook" in first.stdout
    assert "`DraftModel` | yes" in (work / "docs" / "page.md").read_text()
    git(work, "add", ".")
    second = _pre_commit(work, home, "run", "--all-files")
    assert _results(second.stdout) == ["Passed", "Passed", "Passed"], second.stdout

    write(work, tree(BARE))
    git(work, "add", ".")
    third = _pre_commit(work, home, "run")
    assert _results(third.stdout) == ["Passed", "Failed", "Failed"], third.stdout
    assert "lost: DraftModel" in third.stdout
    assert "`DraftModel` | no" in (work / "docs" / "page.md").read_text()

    tried = _pre_commit(work, home, "try-repo", hooks, "draftaudit-drift", "--all-files")
    assert _results(tried.stdout) == ["Failed"], tried.stdout


def _results(text: str) -> list[str]:
    return re.findall(r"^draftaudit.*?\.+.*?(Passed|Failed|Skipped)$", text, re.M)
