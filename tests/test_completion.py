"""What a shell offers, asked as the scripts that click installs ask it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from trees import minivllm
from trees.minivllm import ARCHITECTURE, INIT, REGISTRY, WITHOUT_METHOD

ROOT = Path(__file__).parent.parent
PROGRAMS = {
    "audit": "from auditor.main import audit as run",
    "codemod": "from codemods.cli import main as run",
    "draftaudit": "from codemods.cli import draftaudit as run",
}


def offered(folder: Path, typed: str, shell: str = "bash") -> list[str]:
    """The words offered after ``typed``, whose last word is not typed to its end."""
    words = typed.split(" ")
    program = words[0]
    variables = {
        "PYTHONPATH": str(ROOT),
        f"_{program.upper()}_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", f"{PROGRAMS[program]}; run()"],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = minivllm.write(tmp_path_factory.mktemp("checkout"), {INIT: WITHOUT_METHOD})
    (folder / "pyproject.toml").touch()
    return folder


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("audit --platform r", ["rocm"]),
        ("audit --platform cuda,", ["cuda,rocm", "cuda,xpu", "cuda,cpu", "cuda,tpu", "cuda,oot"]),
        ("audit --only un", ["unsafe"]),
        ("audit --format s", ["sarif"]),
        ("audit exp", ["explain"]),
        ("audit explain ", [ARCHITECTURE]),
        ("audit shape Dra", [ARCHITECTURE]),
        ("audit --arch X", []),
        ("audit rules sd30", [f"SD30{n}" for n in range(1, 10)]),
        ("codemod list ", [ARCHITECTURE]),
        ("codemod apply --platform x", ["xpu"]),
        ("draftaudit codemod check D", [ARCHITECTURE]),
        ("draftaudit au", ["audit"]),
    ],
)
def test_names_are_offered(typed: str, words: list[str], checkout: Path) -> None:
    assert offered(checkout, typed) == words


def test_the_folder_that_is_named_counts(checkout: Path, tmp_path: Path) -> None:
    assert offered(tmp_path, "audit explain ") == []
    assert offered(tmp_path, f"audit --vllm {checkout} explain D") == [ARCHITECTURE]
    assert offered(tmp_path, f"audit explain --vllm {checkout} D") == [ARCHITECTURE]


@pytest.mark.parametrize("text", [b"\xff\xfe(", b"x = (", b"_SPECULATIVE_DECODING_MODELS = f()\n"])
def test_a_registry_that_cannot_be_read_offers_nothing(text: bytes, tmp_path: Path) -> None:
    folder = minivllm.write(tmp_path, {INIT: WITHOUT_METHOD, REGISTRY: text})
    assert offered(folder, f"audit --vllm {folder} explain ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("program", list(PROGRAMS))
def test_every_program_gives_the_script_for_each_shell(program: str, shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{PROGRAMS[program]}; run()"],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            f"_{program.upper()}_COMPLETE": f"{shell}_source",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"_{program.upper()}_COMPLETE={shell}_complete" in done.stdout
