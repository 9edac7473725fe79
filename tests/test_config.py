"""``[tool.draftaudit]`` in a ``pyproject.toml``: what it may say, and what counts more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from trees.drifting import BARE, PAIR, tree
from trees.minivllm import write

from auditor import config, main
from auditor.config import ConfigError
from auditor.ruleset.files import rules_folder

Capture = pytest.CaptureFixture[str]
Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``audit`` in a project's folder, which holds a small vLLM beside it."""
    write(tmp_path / "project" / "tree", tree())
    monkeypatch.chdir(tmp_path / "project")

    def audit(*args: str) -> int:
        return main.run(main.command, [*args, "--cache-dir", str(tmp_path / "cache")], "audit")

    return audit


def says(text: str, folder: Path = Path()) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(f"[project]\nname = 'x'\n\n[tool.draftaudit]\n{text}\n")
    return path


def report(capsys: Capture) -> tuple[list[str], str]:
    """The platforms of the last report, and what was said beside it."""
    said = capsys.readouterr()
    return json.loads(said.out)["platforms"], said.err


def test_the_source_and_the_platforms_come_from_the_nearest_file(
    run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    says('platforms = ["rocm"]\nvllm = "tree"')
    Path("deep/er").mkdir(parents=True)
    Path("deep/pyproject.toml").write_text("[project]\nname = 'of another tool'\n")
    monkeypatch.chdir("deep/er")
    assert run("-f", "json") == 0
    platforms, err = report(capsys)
    assert platforms == ["rocm"]
    assert f"given by {Path('../../pyproject.toml')}" in err


def test_the_command_line_counts_more(run: Run, capsys: Capture) -> None:
    says('platforms = ["rocm"]\nvllm = "nowhere"')
    assert run("-f", "json", "--vllm", "tree", "--platform", "cpu") == 0
    assert report(capsys)[0] == ["cpu"]


@pytest.mark.parametrize(
    "where", [["--config", "none"], ["explain", "DraftModel", "--config=none"]]
)
def test_none_is_no_configuration_not_even_a_wrong_one(
    where: list[str], run: Run, capsys: Capture
) -> None:
    says("nonsense = 1")
    assert run(*where, "--vllm", "tree", "-f", "json") == 0
    assert len(report(capsys)[0]) > 1


def test_a_file_can_be_named(run: Run, capsys: Capture, tmp_path: Path) -> None:
    says("nonsense = 1")
    other = tmp_path / "other.toml"
    other.write_text('[tool.draftaudit]\nplatforms = ["tpu"]\nvllm = "project/tree"\n')
    for before, after in ((["--config", str(other)], []), ([], ["--config", str(other)])):
        assert run(*before, "explain", "DraftModel", "-f", "json", *after) == 0
        assert report(capsys)[0] == ["tpu"]


def test_modules_that_are_there_or_not(run: Run, capsys: Capture) -> None:
    says('vllm = "tree"\nplatforms = ["cuda"]\nwithout = ["torch"]')
    assert run("--fail-on", "import", "-q") == 1
    assert run("--fail-on", "import", "--with", "torch", "-q") == 0
    says('vllm = "tree"\nplatforms = ["cuda"]\nwith = ["torch"]')
    assert run("--fail-on", "import", "-q", "--without", "torch") == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    ("text", "line", "says_"),
    [
        ('platform = ["rocm"]', 5, "has no key 'platform'. Did you mean platforms?"),
        ('fail_on = ["lost"]', 5, "has no key 'fail_on'. Did you mean fail-on?"),
        ('vllm = "tree"\nplatforms = "rocm"', 6, "platforms: expected list, got str"),
        ("platforms = [1]", 5, "platforms: expected str, got int"),
        ("baseline = true", 5, "baseline: expected str, got bool"),
        ('baseline = ""', 5, "baseline is empty"),
        ('fail-on = ["lots"]', 5, "no kind of change is called 'lots'. Did you mean lost?"),
        ('with = ["a"]\nwithout = ["a"]', 6, "with and without both name a"),
    ],
)
def test_what_it_may_not_say(text: str, line: int, says_: str, run: Run, capsys: Capture) -> None:
    says(text)
    assert run("--vllm", "tree") == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: pyproject.toml:{line}: ")
    assert says_ in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "says_"),
    [
        ('[tool.draftaudit]\nplatforms = ["rcom"]', "'rcom'. Did you mean rocm?"),
        ("[tool.draftaudit\n", "not valid TOML"),
        ("[tool]\ndraftaudit = 1\n", "no table"),
        ('[tool.draftaudit]\nrules = "nowhere"', "pyproject.toml: rules "),
    ],
)
def test_what_it_may_not_be(text: str, says_: str, run: Run, capsys: Capture) -> None:
    Path("pyproject.toml").write_text(text)
    assert run("--vllm", "tree") == 2
    assert says_ in capsys.readouterr().err


def test_a_file_that_is_named_has_to_be_there_and_to_have_the_section(
    run: Run, capsys: Capture
) -> None:
    assert run("--vllm", "tree", "--config", "nowhere.toml") == 2
    assert "nowhere.toml: cannot be read" in capsys.readouterr().err
    Path("pyproject.toml").write_text("[project]\n")
    assert run("--vllm", "tree", "--config", "pyproject.toml") == 2
    assert "has no [tool.draftaudit]" in capsys.readouterr().err


def test_another_tools_file_need_not_be_toml(run: Run, capsys: Capture) -> None:
    Path("pyproject.toml").write_text("<<<<<<< not ours\n")
    assert run("--vllm", "tree", "-q") == 0
    capsys.readouterr()


def test_the_section_is_found_where_it_is(tmp_path: Path) -> None:
    assert config.find(tmp_path) is None or not config.find(tmp_path).is_relative_to(tmp_path)  # type: ignore[union-attr]
    path = says("", tmp_path)
    assert config.find(tmp_path / "a" / "b") == path
    with pytest.raises(ConfigError):
        config.read(tmp_path / "a")


# ---- with a baseline ------------------------------------------------------------------------


def test_the_baseline_and_what_fails_come_from_it(run: Run, capsys: Capture) -> None:
    says('vllm = "tree"\nbaseline = "base.toml"\nplatforms = ["cuda"]\nfail-on = ["gained"]')
    write(Path("tree"), tree(BARE))
    assert run("baseline", "-q") == 0
    assert Path("base.toml").is_file()
    write(Path("tree"), tree(PAIR))
    assert run("drift", "-q") == 1
    assert "FAIL gained" in capsys.readouterr().out
    assert run("drift", "-q", "--fail-on", "lost") == 0
    assert run("drift", "-q", "--fail-on", "none") == 0
    assert run("drift", "-q", "--against", "tree") == 0


def test_a_baseline_is_found_from_a_folder_below(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    says('vllm = "tree"\nbaseline = "base.toml"\nplatforms = ["cuda"]')
    assert run("baseline", "-q") == 0
    Path("deep").mkdir()
    monkeypatch.chdir("deep")
    assert run("drift", "-q") == 0
    assert "../base.toml" in capsys.readouterr().out


# ---- further rules --------------------------------------------------------------------------

PLATFORM = """\
name = "ascend"
summary = "A platform of a plugin."
order = 50
[attributes]
device_type = "npu"
device_name = "npu"
[predicates]
is_cuda = false
is_rocm = false
is_xpu = false
is_cpu = false
is_tpu = false
is_cuda_alike = false
is_out_of_tree = true
[[modules]]
names = ["torch"]
exist = true
reason = "The plugin requires it."
[[examples]]
condition = "current_platform.is_out_of_tree()"
is = "true"
"""


def test_a_folder_of_rules_brings_a_platform(run: Run, capsys: Capture) -> None:
    says('vllm = "tree"\nrules = "ours"\nplatforms = ["ascend", "cpu"]')
    Path("ours/platforms").mkdir(parents=True)
    Path("ours/platforms/ascend.toml").write_text(PLATFORM)
    assert run("-f", "json") == 0
    assert report(capsys)[0] == ["cpu", "ascend"]
    assert run("-f", "json", "--platform", "ascend") == 0
    assert report(capsys)[0] == ["ascend"]


def test_a_rule_that_changes_is_another_answer(run: Run, capsys: Capture) -> None:
    """What was kept with the former rules is not an answer any more."""
    says('vllm = "tree"\nrules = ["ours"]\nplatforms = ["mine"]')
    Path("ours/platforms").mkdir(parents=True)
    cpu = (rules_folder() / "platforms" / "cpu.toml").read_text()
    own = cpu.replace('name = "cpu"', 'name = "mine"')
    rule = Path("ours/platforms/mine.toml")
    rule.write_text(own)
    assert run("--fail-on", "import", "-q") == 0
    missing = 'modules = [{ names = ["torch"], exist = false, reason = "a test" }]\n'
    rule.write_text(missing + own.replace("[[modules]]", "[[fallback]]"))
    assert run("--fail-on", "import", "-q") == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    ("path", "says_"),
    [
        ("ours/platform/x.toml", "does not say what kind of rule"),
        ("ours/platforms/x.toml", "x.toml"),
    ],
)
def test_a_rule_that_is_wrong(path: str, says_: str, run: Run, capsys: Capture) -> None:
    says('vllm = "tree"\nrules = "ours"')
    Path(path).parent.mkdir(parents=True)
    Path(path).write_text("nonsense = 1\n")
    assert run() == 2
    assert says_ in capsys.readouterr().err
