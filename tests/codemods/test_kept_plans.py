"""A second run over the same files takes the plan from the cache, and gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from trees.heads import LAYERS
from trees.lacking import draft, engine
from trees.minivllm import INIT, write

from auditor.main import run
from codemods import jobs, planning
from codemods.cli import codemod

FLAT = """
def compute_logits(self, hidden_states):
    return self.logits_processor(self.lm_head, hidden_states)
"""
SETTINGS = "[tool.ruff]\nline-length = 60\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "tree", {**LAYERS, **engine(), INIT: draft(FLAT)})
    (tmp_path / "tree" / "pyproject.toml").write_text("")
    return tmp_path / "tree"


def called(folder: Path, *args: str, cached: bool = True) -> int:
    where = ["--cache-dir", str(folder.parent / "cache")] if cached else ["--no-cache"]
    return run(codemod, [*args, "--vllm", str(folder), *where], "codemod")


def printed(folder: Path, capfd: pytest.CaptureFixture[str], cached: bool = True) -> str:
    capfd.readouterr()
    assert called(folder, "apply", "--format", "json", cached=cached) == 0
    return capfd.readouterr().out


@contextmanager
def _counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How often a plan is made."""
    made: list[int] = []
    make = planning.plan_with_grounds

    def counting(*args: object) -> object:
        made.append(1)
        return make(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(planning, "plan_with_grounds", counting)
        yield made


def test_the_cache_changes_no_byte(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    without = printed(folder, capfd, cached=False)
    assert printed(folder, capfd) == without
    assert printed(folder, capfd) == without


def test_a_second_run_makes_no_plan(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with _counted(monkeypatch) as made:
        first = printed(folder, capfd)
        assert (printed(folder, capfd), made) == (first, [1])
        assert called(folder, "list", "--platform", "rocm") == 0
        assert made == [1, 1], "another request is another plan"
        assert called(folder, "check", "--platform", "rocm") == 1
        assert made == [1, 1], "the commands share it"


CHANGES: dict[str, tuple[str, Callable[[str], str]]] = {
    "the draft": (
        INIT,
        lambda text: text.replace("self.lm_head, hidden", "self.lm_head, 1 + hidden"),
    ),
    "a comment in the draft": (INIT, lambda text: text + "# more\n"),
    "the engine": (
        "vllm/v1/spec_decode/proposer.py",
        lambda text: text.replace("get_top_tokens(hidden_states)", "other(hidden_states)"),
    ),
    "the settings of the formatter": ("pyproject.toml", lambda _: SETTINGS),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_has_changed_makes_it_anew(
    name: str, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, change = CHANGES[name]
    printed(folder, capfd)
    (folder / path).write_text(change((folder / path).read_text()))
    with _counted(monkeypatch) as made:
        again = printed(folder, capfd)
        assert made == [1]
    assert again == printed(folder, capfd, cached=False)


def test_a_file_that_is_new_makes_it_anew(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed(folder, capfd)
    (folder / "vllm" / "models" / "more.py").write_text("")
    with _counted(monkeypatch) as made:
        printed(folder, capfd)
        assert made == [1]


def test_a_damaged_entry_is_made_again(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = printed(folder, capfd)
    for place in (folder.parent / "cache" / "answers").iterdir():
        data = bytearray(place.read_bytes())
        data[len(data) // 2] ^= 1
        place.write_bytes(bytes(data))
    assert printed(folder, capfd) == first


def test_a_kept_audit_serves_the_plan(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document of an audit before, or of the plan itself, is the same to the other."""
    from auditor.main import command

    audited: list[object] = []
    real = jobs.Jobs.run

    def counting(self: jobs.Jobs, look: jobs.Look) -> object:
        audited.append(self)
        return real(self, look)

    monkeypatch.setattr(jobs.Jobs, "run", counting)
    without = printed(folder, capfd, cached=False)
    given = ["--vllm", str(folder), "--cache-dir", str(folder.parent / "cache"), "-f", "json"]
    assert run(command, given, "audit") == 0
    document = capfd.readouterr().out
    audited.clear()
    assert printed(folder, capfd) == without
    assert audited == []
    assert run(command, given, "audit") == 0
    assert capfd.readouterr().out == document
