"""What is shipped: the wheel, and the command run from it outside the checkout."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = [pytest.mark.slow, pytest.mark.network]

REGISTRY = """
_TEXT_GENERATION_MODELS = {}
_SPECULATIVE_DECODING_MODELS = {
    "EagleLlamaForCausalLM": ("llama_eagle", "EagleLlamaForCausalLM"),
    "DeepSeekMTPModel": ("deepseek_mtp", "DeepSeekMTP"),
}
_VLLM_MODELS = {**_TEXT_GENERATION_MODELS, **_SPECULATIVE_DECODING_MODELS}
"""
MODEL = """
class {name}:
    def compute_logits(self, hidden_states):
        return self.logits_processor(self.lm_head, hidden_states)
"""
METHOD = """
    def get_top_tokens(self, hidden_states):
        return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)
"""
MODELS = "vllm/model_executor/models"
MINI_TREE = {
    "vllm/__init__.py": "",
    "vllm/model_executor/__init__.py": "",
    f"{MODELS}/__init__.py": "",
    f"{MODELS}/registry.py": REGISTRY,
    f"{MODELS}/llama_eagle.py": MODEL.format(name="EagleLlamaForCausalLM") + METHOD,
    f"{MODELS}/deepseek_mtp.py": MODEL.format(name="DeepSeekMTP"),
}


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built in isolation, unless the backend is at hand."""
    out = tmp_path_factory.mktemp("dist")
    at_hand = importlib.util.find_spec("hatchling") is not None
    how = ["--no-isolation"] if at_hand else []
    done = run(sys.executable, "-m", "build", "--wheel", *how, "--outdir", out, ROOT, cwd=out)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_rule_is_shipped(names: set[str]) -> None:
    rules = [path.relative_to(ROOT).as_posix() for path in (ROOT / "rules").rglob("*.toml")]
    assert rules
    assert {f"auditor/{rule}" for rule in rules} <= names


def test_every_module_is_shipped_typed(names: set[str]) -> None:
    files = [path for name in ("auditor", "codemods") for path in (ROOT / name).rglob("*.py")]
    assert {path.relative_to(ROOT).as_posix() for path in files} <= names
    assert {"auditor/py.typed", "codemods/py.typed"} <= names


def test_nothing_else_is_shipped(names: set[str]) -> None:
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"auditor", "codemods"}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


@pytest.fixture(scope="module")
def commands(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands in a fresh virtualenv that has the wheel."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=True)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    done = run(scripts / "python", "-m", "pip", "install", "--quiet", wheel, cwd=home)
    assert done.returncode == 0, done.stderr
    return scripts


@pytest.mark.parametrize("command", ["audit", "draftaudit", "codemod"])
def test_the_installed_commands_start(command: str, commands: Path, tmp_path: Path) -> None:
    done = run(commands / command, "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {command}")


def test_the_installed_audit_reads_a_tree(commands: Path, tmp_path: Path) -> None:
    for path, text in MINI_TREE.items():
        (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / path).write_text(text)
    done = run(commands / "audit", "--platform", "rocm", "--vllm", "tree", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rocm: 1 of 2 satisfy the guard, 1 lack it, 0 cannot be loaded" in done.stdout
    args = ("audit", "--vllm", "tree", "--format", "json", "--platform", "rocm")
    document = json.loads(run(commands / "draftaudit", *args, cwd=tmp_path).stdout)
    assert {row["architecture"]: row["hasattr"] for row in document["rows"]} == {
        "EagleLlamaForCausalLM": True,
        "DeepSeekMTPModel": False,
    }
    page = run(commands / "audit", "--vllm", "tree", "--format", "html", cwd=tmp_path)
    assert page.stdout.startswith("<!doctype html>")
