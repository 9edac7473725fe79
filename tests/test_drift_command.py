"""``audit baseline`` and ``audit drift`` as they are typed, over trees of a few files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trees.drifting import (
    BARE,
    BOTH_NORMED,
    DRAFT,
    ENTRY,
    NORMED,
    OTHER,
    PAIR,
    REGISTRY,
    REWRITTEN,
    tree,
)
from trees.minivllm import line_of, write

from auditor import main
from auditor.changes import KINDS
from auditor.coverage import VerdictName

Capture = pytest.CaptureFixture[str]
Tree = dict[str, str]
Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``audit`` in a folder of its own, which holds no configuration."""
    monkeypatch.chdir(tmp_path)

    def audit(*args: str) -> int:
        command, *rest = args
        more = ["--cache-dir", str(tmp_path / "cache"), "-q", "--platform", "cuda,rocm"]
        return main.run(main.command, [command, *more, *rest], "audit")

    return audit


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    return write(tmp_path / "vllm-tree", tree())


def changed(folder: Path, files: Tree) -> None:
    """The folder with these files in the place of its own."""
    write(folder, files)


def changes(capsys: Capture) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["changes"]
    return found


# ---- a checkout, commit by commit -----------------------------------------------------------


def git(folder: Path, *args: str) -> None:
    alone = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *args], cwd=folder, check=True, capture_output=True, env=alone)


MOVED = {**tree("", DraftModel=("other", "Draft")), OTHER: PAIR}
RENAMED = tree(PAIR.replace("class Draft", "class Renamed"), DraftModel=("draft", "Renamed"))
COMMITS: dict[str, tuple[Tree, int, str | None, str, str]] = {
    "drops a get_top_tokens": (tree(BARE), 1, "lost", DRAFT, "class Draft"),
    "adds a norm to compute_logits only": (tree(NORMED), 1, "silent", DRAFT, "def compute_logits"),
    "renames the class": (RENAMED, 0, "moved", DRAFT, "class Renamed"),
    "moves the file": (MOVED, 0, "moved", OTHER, "class Draft"),
    "adds a norm to both": (tree(BOTH_NORMED), 0, "head-path", DRAFT, "def compute_logits"),
    "only reformats": (tree(REWRITTEN), 0, None, "", ""),
}


@pytest.mark.parametrize("commit", COMMITS)
def test_a_commit_against_the_one_before(
    commit: str, run: Run, tmp_path: Path, capsys: Capture
) -> None:
    files, code, kind, path, text = COMMITS[commit]
    checkout = write(tmp_path / "checkout", tree())
    git(checkout, "init", "-q", "-b", "main")
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "first")
    changed(checkout, files)
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", commit)
    before, after = f"{checkout}@HEAD~1", f"{checkout}@HEAD"
    assert run("drift", "--vllm", after, "--against", before, "--format", "json") == code
    found = [change for change in changes(capsys) if change["kind"] != "finding"]
    assert {(change["kind"], change["platform"]) for change in found} == (
        {(kind, "cuda"), (kind, "rocm")} if kind else set()
    )
    line = line_of(files, path, text) if kind else 0
    assert {(change["path"], change["line"]) for change in found} == (
        {(path, line)} if kind else set()
    )


def test_a_repository_of_the_package_alone_is_audited_from_within(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    checkout = write(tmp_path / "checkout", tree())
    for name in ("pyproject.toml", "setup.py"):
        (checkout / name).unlink(missing_ok=True)
    git(checkout, "init", "-q", "-b", "main")
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "first")
    changed(checkout, tree(BARE))
    monkeypatch.chdir(checkout)
    assert run("drift", "--against", ".@HEAD", "--format", "json") == 1
    assert {change["kind"] for change in changes(capsys)} == {"lost"}


# ---- a baseline -----------------------------------------------------------------------------


def baseline(run: Run, vllm: Path, name: str = "base.toml") -> Path:
    assert run("baseline", "--vllm", str(vllm), "-o", name) == 0
    return vllm.parent / name


def test_a_baseline_says_the_same_whoever_writes_it(run: Run, vllm: Path, capsys: Capture) -> None:
    first = baseline(run, vllm).read_bytes()
    capsys.readouterr()
    assert run("baseline", "--vllm", str(vllm)) == 0
    assert capsys.readouterr().out.encode() == first
    assert str(vllm.parent).encode() not in first
    assert first.count(b"\nDraftModel.") == 2


def test_nothing_changed_is_exit_0(run: Run, vllm: Path, capsys: Capture) -> None:
    base = baseline(run, vllm)
    changed(vllm, tree(REWRITTEN))
    assert run("drift", "--vllm", str(vllm), "--baseline", str(base)) == 0
    assert "no change in 2 rows" in capsys.readouterr().out


def test_what_changed_since_is_told_until_it_is_taken_in(
    run: Run, vllm: Path, capsys: Capture
) -> None:
    base = baseline(run, vllm)
    changed(vllm, tree(BARE))
    drift = ("drift", "--vllm", str(vllm), "--baseline", str(base))
    was = base.read_bytes()
    assert run(*drift) == 1
    assert "FAIL lost: DraftModel on every platform (yes -> no)" in capsys.readouterr().out
    assert base.read_bytes() == was
    assert run(*drift, "--update") == 0
    assert base.read_bytes() != was
    capsys.readouterr()
    assert run(*drift) == 0
    assert "no change" in capsys.readouterr().out


def test_what_cannot_be_said_is_exit_3_and_listed(run: Run, vllm: Path, capsys: Capture) -> None:
    base = baseline(run, vllm)
    unread = "from elsewhere import asked\nif asked():\n    raise ImportError\n"
    write(vllm, tree(f"{unread}{PAIR}"))
    drift = ("drift", "--vllm", str(vllm), "--baseline", str(base))
    assert run(*drift) == 3
    assert "undecided: DraftModel on every platform (yes -> ?)" in capsys.readouterr().out
    assert run(*drift, "--fail-on", "undecided") == 1
    assert run(*drift, "--update") == 3
    capsys.readouterr()
    assert run(*drift, "--format", "json") == 3
    document = json.loads(capsys.readouterr().out)
    assert document["changes"] == []
    assert {item["platform"] for item in document["undecided"]} == {"cuda", "rocm"}


@pytest.mark.parametrize("seed", ["1", "2"])
def test_another_process_writes_the_same(seed: str, run: Run, vllm: Path, capsys: Capture) -> None:
    text = baseline(run, vllm).read_text()
    capsys.readouterr()
    code = "from auditor.main import audit; audit()"
    args = ["baseline", "-q", "--no-cache", "--vllm", str(vllm), "-p", "cuda,rocm"]
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        check=True, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": seed},
    )  # fmt: skip
    assert done.stdout == text


VERDICT: VerdictName = "no"


def test_entries_come_and_go(run: Run, vllm: Path, capsys: Capture) -> None:
    write(vllm, tree(PAIR, DraftModel=ENTRY, OldModel=ENTRY))
    base = baseline(run, vllm)
    files = {**tree(PAIR, DraftModel=ENTRY, NewModel=("other", "Draft")), OTHER: BARE}
    changed(vllm, files)
    drift = ("drift", "--vllm", str(vllm), "--baseline", str(base))
    assert run(*drift, "--format", "json", "--platform", "cuda") == 1
    new, gone = changes(capsys)[::2]
    assert (new["kind"], new["after"], new["path"], new["line"]) == (
        "added-without", VERDICT, REGISTRY, line_of(files, REGISTRY, "NewModel"),
    )  # fmt: skip
    assert (gone["kind"], gone["also"], gone["side"]) == ("removed", ["stale"], "baseline")
    assert base.read_text().splitlines()[gone["line"] - 1].startswith("OldModel.cuda")
    assert gone["path"] == base.name
    assert run(*drift, "--prune") == 1
    assert "OldModel" not in base.read_text()
    assert "NewModel" not in base.read_text()
    assert run(*drift, "--update", "--accept", "nobody drafts with it yet") == 0
    assert base.read_text().count('accepted = "nobody drafts with it yet"') == 2
    capsys.readouterr()
    assert run(*drift) == 0


def test_the_help_names_every_kind_in_order(capsys: Capture) -> None:
    assert main.run(main.command, ["drift", "--help"], "audit") == 0
    out = capsys.readouterr().out
    named = out.partition("Kinds of change:")[2].partition("Exit codes:")[0].split()
    assert named == list(KINDS)
