"""Reports for a host, asked for on the command line, of a small tree in a git checkout."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from trees import minivllm
from trees.minivllm import INIT, WITH_MIXIN, WITHOUT_METHOD

from auditor import main
from auditor.reports.summary import LIMIT

PAGE = b"# Page\n<!-- gen:draftaudit -->\n<!-- /gen:draftaudit -->\nend\n"

Capture = pytest.CaptureFixture[str]
Audit = Callable[..., int]


def git(folder: Path, *args: str) -> None:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", *args]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository that holds a vLLM below ``third_party/vllm``; its draft lacks the method."""
    place = tmp_path / "repository"
    minivllm.write(place / "third_party" / "vllm", {INIT: WITHOUT_METHOD})
    git(place, "init", "-q")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    return place


@pytest.fixture
def audit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Audit:
    monkeypatch.chdir(checkout)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    source = ("--vllm", str(checkout / "third_party" / "vllm"), "--no-cache")

    def run(*args: str) -> int:
        given = args if "--vllm" in args else (*source, *args)
        return main.run(main.command, [*given, "--quiet"], "audit")

    return run


def test_annotations_name_the_file_from_the_root_of_the_repository(
    audit: Audit, capsys: Capture
) -> None:
    assert audit("--format", "github") == 0
    lines = capsys.readouterr().out.splitlines()
    place = f"file=third_party/vllm/{INIT},line=3,title=SD001 lacks the method"
    assert lines[0].startswith(f"::warning {place}::DraftModel lacks get_top_tokens on every")
    assert lines[-1].startswith("::notice title=draftaudit::")


def test_annotations_of_cells_that_fail_the_command_are_errors(
    audit: Audit, capsys: Capture
) -> None:
    assert audit("--format", "github", "--fail-on", "no") == 1
    assert capsys.readouterr().out.startswith("::error file=")


def test_a_revision_has_the_same_paths(audit: Audit, checkout: Path, capsys: Capture) -> None:
    spec = f"{checkout / 'third_party' / 'vllm'}@HEAD"
    assert audit("--vllm", spec, "--no-cache", "--format", "github") == 0
    assert f"file=third_party/vllm/{INIT},line=3" in capsys.readouterr().out


def test_sarif_names_the_file_from_the_root_of_the_repository(
    audit: Audit, capsys: Capture
) -> None:
    assert audit("--format", "sarif") == 0
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == f"third_party/vllm/{INIT}"
    assert place["region"]["startLine"] == 3


def test_the_mark_of_a_result_stays_when_the_class_moves_down(
    audit: Audit, checkout: Path, capsys: Capture
) -> None:
    file = checkout / "third_party" / "vllm" / INIT
    marks = []
    for text in (file.read_text(), "# one\n# two\n" + file.read_text()):
        file.write_text(text)
        audit("--format", "sarif")
        (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
        line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
        marks.append((line, result["partialFingerprints"]))
    assert [line for line, _ in marks] == [3, 5]
    assert marks[0][1] == marks[1][1]


def test_a_rule_of_a_project_takes_the_place_of_that_of_the_same_code(
    audit: Audit, checkout: Path, capsys: Capture
) -> None:
    folder = checkout / "more" / "findings"
    folder.mkdir(parents=True)
    text = 'code = "SD101"\nseverity = "note"\nwhat = "W."\nwhy = "Y."\nfix = "F."\n'
    (folder / "SD101.toml").write_text(text)
    (checkout / "pyproject.toml").write_text('[tool.draftaudit]\nrules = "more"\n')
    assert audit("--format", "sarif") == 0
    rules = json.loads(capsys.readouterr().out)["runs"][0]["tool"]["driver"]["rules"]
    told = {rule["id"]: (rule["name"], rule["shortDescription"]["text"]) for rule in rules}
    assert told["SD101"] == ("Sd101", "W.")


def test_the_source_may_be_that_of_the_configuration(
    audit: Audit, checkout: Path, capsys: Capture
) -> None:
    (checkout / "pyproject.toml").write_text('[tool.draftaudit]\nvllm = "third_party/vllm"\n')
    assert main.run(main.command, ["--no-cache", "-q", "--format", "github"], "audit") == 0
    assert f"file=third_party/vllm/{INIT},line=3" in capsys.readouterr().out


# ---- the summary -----------------------------------------------------------------------------


def test_the_summary_is_appended_to_the_file_of_the_step(
    audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    assert audit("--format", "github") == 0
    assert file.read_text() == "before\n"
    assert audit("--format", "github", "--summary") == 0
    assert file.read_text().startswith("before\n### draftaudit")
    assert "| warning | SD001 |" in file.read_text()


def test_the_summary_is_written_to_the_file_that_is_named(audit: Audit, tmp_path: Path) -> None:
    assert audit("--summary", str(tmp_path / "s.md")) == 0
    assert (tmp_path / "s.md").read_text().startswith("### draftaudit")


def test_what_the_file_holds_already_counts(audit: Audit, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "s.md"
    file.write_bytes(b"x" * (LIMIT - 50))
    assert audit("--summary", str(file)) == 0
    assert file.stat().st_size == LIMIT - 50
    assert "no room" in capsys.readouterr().err


def test_a_summary_without_a_place_is_wrong_usage(audit: Audit, capsys: Capture) -> None:
    assert audit("--summary") == 2
    assert "GITHUB_STEP_SUMMARY is not set" in capsys.readouterr().err


def test_a_summary_that_cannot_be_written_is_told(audit: Audit, capsys: Capture) -> None:
    assert audit("--summary", "no/such/folder/s.md") == 2
    assert "no/such/folder/s.md: cannot be written" in capsys.readouterr().err


# ---- a section of a page ---------------------------------------------------------------------


@pytest.fixture
def page(checkout: Path) -> Path:
    file = checkout / "page.md"
    file.write_bytes(PAGE)
    return file


def test_a_page_is_written_and_then_up_to_date(audit: Audit, page: Path, capsys: Capture) -> None:
    assert audit("--into", "page.md", "--check") == 1
    assert page.read_bytes() == PAGE
    assert audit("--into", "page.md") == 0
    text = page.read_bytes()
    assert text.startswith(b"# Page\n<!-- gen:draftaudit -->\n\n**`get_top_tokens in vllm")
    assert text.endswith(b"\n\n<!-- /gen:draftaudit -->\nend\n")
    capsys.readouterr()
    assert audit("--into", "page.md", "--check") == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "page.md: up to date\n")
    assert page.read_bytes() == text


def test_a_page_follows_the_tree(audit: Audit, checkout: Path, page: Path) -> None:
    audit("--into", "page.md")
    before = page.read_text()
    minivllm.write(checkout / "third_party" / "vllm", {INIT: WITH_MIXIN})
    assert audit("--into", "page.md", "--check") == 1
    audit("--into", "page.md")
    assert re.search(r"`DraftModel` \| no ", before)
    assert not re.search(r"`DraftModel` \| no ", page.read_text())


def test_a_page_may_have_sections_by_name(audit: Audit, page: Path) -> None:
    page.write_bytes(PAGE.replace(b"draftaudit", b"drafts.table"))
    assert audit("--into", "page.md", "--marker", "drafts.table", "--only", "no") == 0
    assert b"those with no" in page.read_bytes()


def test_a_page_through_a_link_stays_a_link(audit: Audit, checkout: Path, page: Path) -> None:
    (checkout / "link.md").symlink_to(page)
    assert audit("--into", "link.md") == 0
    assert (checkout / "link.md").is_symlink()
    assert b"DraftModel" in page.read_bytes()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--into", "none.md"], "none.md: cannot be read or written: No such file"),
        (["--into", "."], "cannot be read or written"),
        (["--into", "page.md", "--marker", "other"], "page.md: no line is <!-- gen:other -->"),
        (["--into", "page.md", "--marker", ""], "is not a name"),
        (["--into", "page.md", "--format", "json"], "--into: writes Markdown, not json"),
        (["--into", "page.md", "-o", "x"], "--into: cannot be combined with -o"),
        (["--check"], "--check: has a meaning only with --into"),
        (["--marker", "x"], "--marker: has a meaning only with --into"),
        (["--check", "explain", "DraftModel"], "--check has no meaning for explain"),
        (["--summary=x", "shape"], "--summary has no meaning for shape"),
    ],
)
def test_wrong_usage_of_a_section(
    args: list[str], told: str, audit: Audit, page: Path, capsys: Capture
) -> None:
    assert audit(*args) == 2
    assert told in capsys.readouterr().err
    assert page.read_bytes() == PAGE


def test_a_page_with_a_broken_marker_is_named_with_its_line(
    audit: Audit, page: Path, capsys: Capture
) -> None:
    page.write_bytes(PAGE.replace(b"<!-- /gen:draftaudit -->", b""))
    assert audit("--into", "page.md") == 2
    assert "page.md:2: <!-- gen:draftaudit --> has no" in capsys.readouterr().err
