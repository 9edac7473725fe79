"""``audit --format html``, from arguments to exit code, over trees on the disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trees.minivllm import ARCHITECTURE, INIT, REGISTRY, WITH_MIXIN, WITHOUT_METHOD, registry, write

from auditor import main

from .page import Elements, data_of

Audit = Callable[..., int]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A tree whose one draft lacks the method."""
    return write(tmp_path / "old", {INIT: WITHOUT_METHOD})


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """A tree in which it has the method, and there is one more."""
    entries = {ARCHITECTURE: ("vllm.models.draft", "Draft"), "OtherDraft": ("vllm.models", "No")}
    return write(tmp_path / "new", {INIT: WITH_MIXIN, REGISTRY: registry(entries)})


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    cache = ("--cache-dir", str(tmp_path / "cache"), "--platform", "cuda,rocm")

    def run(*args: object) -> int:
        return main.run(main.command, [*cache, *map(str, args)], "audit")

    return run


def test_the_page_goes_to_stdout_alone_and_the_source_is_named_beside_it(
    audit: Audit, new: Path, capsys: Capture
) -> None:
    assert audit("--vllm", new, "--format", "html") == 0
    out, err = capsys.readouterr()
    assert out.startswith("<!doctype html>\n")
    assert "given by --vllm" in err
    assert str(new.parent) not in out


def test_sources_given_one_after_another_are_compared(
    audit: Audit, old: Path, new: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    assert audit("--vllm", old, "--vllm", new, "--format", "html", "-q", "-o", page) == 0
    data = data_of(page.read_text("utf-8"))
    assert len(data["versions"]) == 2
    (pair,) = data["changes"]
    assert {(change["kind"], change["architecture"]) for change in pair["changes"]} == {
        ("gained", ARCHITECTURE),
        ("added", "OtherDraft"),
    }


@pytest.mark.parametrize("args", [(), ("--format", "json"), ("--format", "csv"), ("--live",)])
def test_several_sources_in_another_report_are_an_error(
    args: tuple[str, ...], audit: Audit, old: Path, new: Path, capsys: Capture
) -> None:
    assert audit("--vllm", old, "--vllm", new, *args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "--vllm" in err


def test_a_subcommand_is_about_one_source(
    audit: Audit, old: Path, new: Path, capsys: Capture
) -> None:
    assert audit("--vllm", old, "--vllm", new, "explain", ARCHITECTURE) == 2
    assert "explain is about one --vllm" in capsys.readouterr().err
    assert audit("--format", "html", "explain", ARCHITECTURE, "--vllm", old) == 2


def test_an_architecture_that_only_one_source_has_is_new_there(
    audit: Audit, old: Path, new: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    both = ("--vllm", old, "--vllm", new)
    assert audit(*both, "--arch", "Other*", "--format", "html", "-q", "-o", page) == 0
    text = page.read_text("utf-8")
    first, second = data_of(text)["versions"]
    assert (len(first["rows"]), len(second["rows"])) == (0, 1)
    notes = [said for attrs, said in Elements(text).of("p") if attrs.get("class") == "remark"]
    assert len(notes) == 1
    assert "is called Other*" in notes[0]


def test_an_architecture_that_no_source_has_is_an_error_with_the_nearest_name(
    audit: Audit, old: Path, new: Path, capsys: Capture
) -> None:
    both = ("--vllm", old, "--vllm", new)
    assert audit(*both, "--arch", "OtherDraf", "--format", "html", "-q") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Did you mean OtherDraft?" in err
    assert audit(*both, "--arch", "Other*", "--arch", "None*", "--format", "html", "-q") == 2


def test_one_cell_in_any_source_is_enough_for_fail_on(
    audit: Audit, old: Path, new: Path, tmp_path: Path
) -> None:
    page = ("--format", "html", "-q", "-o", tmp_path / "page.html")
    both = ("--vllm", old, "--vllm", new)
    assert audit(*both, *page, "--fail-on", "no") == 1
    assert audit(*both, *page, "--fail-on", "stub") == 0
    assert audit("--vllm", new, *page, "--fail-on", "no") == 0


def test_a_source_that_cannot_be_read_writes_nothing(
    audit: Audit, new: Path, tmp_path: Path, capsys: Capture
) -> None:
    page = tmp_path / "page.html"
    assert audit("--vllm", new, "--vllm", tmp_path / "none", "-f", "html", "-o", page) == 2
    assert not page.exists()
    assert "error: " in capsys.readouterr().err


def test_a_file_that_cannot_be_parsed_ends_with_3_and_is_on_the_page(
    audit: Audit, old: Path, new: Path, tmp_path: Path
) -> None:
    (old / INIT).write_text("class Draft(:\n")
    page = tmp_path / "page.html"
    assert audit("--vllm", old, "--vllm", new, "-f", "html", "-q", "-o", page) == 3
    assert "files that could not be read or parsed" in page.read_text("utf-8")
