"""The baseline file: what it holds, what stays through rewriting, and what it may not say."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees.drifting import BARE, ENTRY, NORMED, PAIR, tree
from trees.minivllm import coverage, write

from auditor import main
from auditor.api import Request
from auditor.baseline import Baseline, BaselineError, parse, render
from auditor.coverage import SourceInfo
from auditor.snapshot import Line, Snapshot, snapshot

Capture = pytest.CaptureFixture[str]
TWO = Request(platforms=("cuda", "rocm"))


def text(files: dict[str, str] | None = None, **how: Any) -> str:
    return render(Baseline(snapshot(coverage(files or tree(), TWO)), **how))


TEXT = text()


# ---- what it holds --------------------------------------------------------------------------


def test_it_is_toml_with_one_line_an_entry_and_platform() -> None:
    document = tomllib.loads(TEXT)
    row = document["rows"]["DraftModel"]["rocm"]
    cls = "vllm.model_executor.models.draft.Draft"
    assert (row["verdict"], row["class"], row["owner"], row["shape"], row["head"]) == (
        "yes", cls, cls, "flat", "lm_head",
    )  # fmt: skip
    assert all(re.fullmatch("[0-9a-f]{16}", row[name]) for name in ("logits", "tokens"))
    assert row["logits"] != row["tokens"]
    assert document["platforms"] == ["cuda", "rocm"]
    assert {"schema_version", "capability", "registry", "label", "digest"} <= document.keys()
    rows = TEXT.partition("[rows]\n")[2].splitlines()
    assert [row.partition(" ")[0] for row in rows] == ["DraftModel.cuda", "DraftModel.rocm"]


def test_it_reads_back_as_it_was_written() -> None:
    baseline = parse(TEXT.encode(), "base.toml")
    assert render(baseline) == TEXT
    assert [line.line for line in baseline.snapshot.lines] == [
        number for number, line in enumerate(TEXT.splitlines(), 1) if "verdict" in line
    ]


def test_an_entry_that_changes_is_one_line() -> None:
    before = text(tree(PAIR, A=ENTRY, B=("draft", "Draft"))).splitlines()
    after = text(tree(PAIR, A=ENTRY, B=("nowhere", "Draft"))).splitlines()
    different = [line for line in after if line not in before]
    assert [line.partition(" =")[0] for line in different if "verdict" in line] == [
        "B.cuda", "B.rocm",
    ]  # fmt: skip
    assert not any("verdict" in line for line in different if not line.startswith("B."))


def test_a_fingerprint_tells_what_is_computed_and_not_how_it_is_written() -> None:
    def prints(source: str) -> tuple[str | None, str | None]:
        (line, _) = snapshot(coverage(tree(source), TWO)).lines
        return line.logits, line.tokens

    spaced = PAIR.replace("hidden_states", "states").replace("self.lm_head, ", "\n  self.lm_head, ")
    swapped = PAIR.replace("logits_processor(self.lm_head,", "logits_processor(self.norm,", 1)
    assert prints(spaced) == prints(PAIR)
    assert prints(NORMED)[0] != prints(PAIR)[0]
    assert prints(NORMED)[1] == prints(PAIR)[1]
    assert prints(swapped)[0] not in (prints(PAIR)[0], prints(NORMED)[0])


def test_a_fingerprint_is_the_same_in_every_process_and_version_of_python() -> None:
    """So it may be written here."""
    rows = parse(TEXT.encode(), "base.toml").snapshot.lines
    assert {(row.logits, row.tokens) for row in rows} == {("00a29a0539047cce", "59a48b776a861baa")}


_texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
_words = _texts.filter(lambda text: bool(text.strip()))


@given(
    architecture=_texts,
    note=st.none() | _texts,
    accepted=st.none() | _words,
    head=st.none() | _texts,
    findings=st.lists(_texts, max_size=2),
)
def test_any_text_is_kept(
    architecture: str,
    note: str | None,
    accepted: str | None,
    head: str | None,
    findings: list[str],
) -> None:
    line = Line(
        architecture, "cuda", "no", head=head, findings=tuple(findings), note=note,
        accepted=accepted,
    )  # fmt: skip
    one = Snapshot("a", "b", SourceInfo("l", None, "d"), ("cuda",), (line,))
    (read,) = parse(render(Baseline(one)).encode(), "x").snapshot.lines
    assert msgspec.structs.replace(read, path="", line=0) == line
    assert tomllib.loads(render(Baseline(one)))["rows"][architecture]["cuda"]["verdict"] == "no"


# ---- what a reader writes -------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    write(tmp_path / "tree", tree())
    monkeypatch.chdir(tmp_path)

    def audit(*args: str) -> int:
        more = ["--cache-dir", str(tmp_path / "cache"), "-q", "--vllm", "tree"]
        return main.run(main.command, [*args, *more], "audit")

    return audit


Run = Callable[..., int]


def written(run: Run, *args: str) -> Path:
    assert run("baseline", "-p", "cuda,rocm", "-o", "base.toml", *args) == 0
    return Path("base.toml")


def edit(base: Path, old: str, new: str, count: int = 1) -> None:
    assert old in base.read_text()
    base.write_text(base.read_text().replace(old, new, count))


def test_notes_reasons_and_comments_stay_through_every_rewriting(run: Run) -> None:
    base = written(run)
    edit(base, "schema_version", "# ours, for the release\nschema_version")
    edit(base, "DraftModel.cuda", "# asked upstream\nDraftModel.cuda")
    edit(base, " }\nDraftModel.rocm", ', note = "see \\"the\\" talk" } # trailing\nDraftModel.rocm')
    base.write_text(f"{base.read_text()}# the end\n")
    write(Path("tree"), tree(BARE))
    words = (
        "# ours, for the release",
        "# asked upstream",
        "# trailing",
        'note = "see \\"the\\" talk"',
    )
    for args in (["baseline", "-p", "cuda,rocm", "-o", "base.toml"],
                 ["drift", "--baseline", "base.toml", "--update", "--prune"]):  # fmt: skip
        assert run(*args) == 0
        for word in (*words, "# the end"):
            assert base.read_text().count(word) == 1, (args, word)
    assert tomllib.loads(base.read_text())["rows"]["DraftModel"]["cuda"]["verdict"] == "no"


def test_a_gap_that_is_accepted_does_not_fail(run: Run, capsys: Capture) -> None:
    base = written(run)
    write(Path("tree"), tree(BARE))
    edit(base, " }\nDraftModel.rocm", ', accepted = "no kernel" }\nDraftModel.rocm')
    assert run("drift", "--baseline", "base.toml", "-p", "cuda") == 0
    assert "accepted: no kernel" in capsys.readouterr().out
    assert run("drift", "--baseline", "base.toml", "-p", "rocm") == 1


def test_a_gap_may_be_accepted_before_it_is_there(run: Run, capsys: Capture) -> None:
    base = written(run, "-a", "DraftModel")
    base.write_text(f'{base.read_text()}New.cuda = {{ accepted = "later" }}\n')
    write(Path("tree"), tree(BARE, DraftModel=ENTRY, New=ENTRY))
    assert run("drift", "--baseline", "base.toml", "-p", "cuda", "-a", "New") == 0
    assert run("drift", "--baseline", "base.toml", "-p", "rocm", "-a", "New") == 1
    capsys.readouterr()


def test_a_tokens_that_differ_are_no_gap(run: Run, capsys: Capture) -> None:
    base = written(run)
    edit(base, " }\nDraftModel.rocm", ', accepted = "no kernel" }\nDraftModel.rocm')
    write(Path("tree"), tree(NORMED))
    assert run("drift", "--baseline", "base.toml", "-p", "cuda") == 1
    assert "FAIL silent" in capsys.readouterr().out


def test_what_means_nothing_any_more_is_told_and_pruned(run: Run, capsys: Capture) -> None:
    base = written(run)
    edit(base, " }\nDraftModel.rocm", ', accepted = "no kernel", note = "n" }\nDraftModel.rocm')
    edit(base, '"rocm"]', '"rocm", "vpu"]')
    base.write_text(
        f'{base.read_text()}DraftModel.vpu = {{ verdict = "no" }}\nGone.cuda = {{ note = "x" }}\n'
    )
    clean = ("drift", "--baseline", "base.toml")
    assert run(*clean) == 0
    out = capsys.readouterr().out
    assert "the gap that is accepted is none: yes" in out
    assert "no platform is called vpu" in out
    assert "the registry has no such entry" in out
    assert run(*clean, "--fail-on", "stale") == 1
    assert run(*clean, "--prune") == 0
    assert "dropped with Gone on cuda: x" in capsys.readouterr().err
    left = base.read_text()
    assert "vpu" not in left and "Gone" not in left and 'accepted = "no' not in left  # noqa: PT018
    assert 'note = "n"' in left
    assert run(*clean, "--fail-on", "any") == 0
    assert "no change" in capsys.readouterr().out


def test_what_is_not_asked_about_stays_as_it_is(run: Run, capsys: Capture) -> None:
    base = written(run)
    was = base.read_text()
    write(Path("tree"), tree(BARE))
    assert run("drift", "--baseline", "base.toml", "-p", "rocm", "--update") == 0
    now = base.read_text().splitlines()
    assert next(line for line in was.splitlines() if "DraftModel.cuda" in line) in now
    assert 'DraftModel.rocm = { verdict = "no"' in base.read_text()
    capsys.readouterr()


def test_more_platforms_are_taken_in_when_asked(run: Run, capsys: Capture) -> None:
    base = written(run)
    assert run("drift", "--baseline", "base.toml", "-p", "cuda,xpu") == 2
    assert "it says nothing about xpu" in capsys.readouterr().err
    assert run("drift", "--baseline", "base.toml", "-p", "cuda,xpu", "--update") == 0
    assert tomllib.loads(base.read_text())["platforms"] == ["cuda", "rocm", "xpu"]
    capsys.readouterr()


def test_a_line_that_goes_with_a_note_is_told(run: Run, capsys: Capture) -> None:
    base = written(run)
    edit(base, " }\nDraftModel.rocm", ', note = "mine" }\nDraftModel.rocm')
    write(Path("tree"), tree(PAIR, Other=ENTRY))
    assert run("baseline", "-p", "cuda", "-o", "base.toml") == 0
    assert "dropped with DraftModel on cuda: mine" in capsys.readouterr().err


# ---- what it may not say --------------------------------------------------------------------

ROW = 'DraftModel.cuda = { verdict = "yes"'
BROKEN: dict[str, tuple[str, str, str, str]] = {
    "another schema version": (
        'schema_version = "1.0"', 'schema_version = "2.0"', "schema version 2.0", "schema_version",
    ),
    "a schema version that is none": (
        'schema_version = "1.0"', "schema_version = 1", "schema version 1", "schema_version",
    ),
    "a conflict": (ROW, f"<<<<<<< ours\n{ROW}", "a merge has left a conflict here", "<<<<<<<"),
    "the end of a conflict": (ROW, f">>>>>>> theirs\n{ROW}", "a conflict here", ">>>>>>>"),
    "half a line": (ROW, 'DraftModel.cuda = { verdict = "y', "not TOML", "DraftModel.cuda"),
    "no row": (ROW, f"what = 1\n{ROW}", "a line reads Architecture.platform", "what"),
    "no verdict of ours": (
        ROW, ROW.replace("yes", "maybe"), "no verdict is called 'maybe'", "DraftModel.cuda",
    ),
    "no verdict": (ROW, ROW.replace('verdict = "yes", ', "").replace('verdict = "yes"', "x = 1"),
                   "a line has no 'x'", "DraftModel.cuda"),
    "a word that is near one": (
        ROW, f'{ROW}, reson = "x"', "a line has no 'reson'", "DraftModel.cuda",
    ),
    "another type": (ROW, f"{ROW}, note = 3", "expected str, got int", "DraftModel.cuda"),
    "no reason": (ROW, f'{ROW}, accepted = " "', "without a reason", "DraftModel.cuda"),
    "a reason that is none": (
        ROW, f"{ROW}, accepted = true", "without a reason", "DraftModel.cuda",
    ),
    "no fingerprint": (
        'logits = "', 'logits = "x', "logits is no fingerprint: x", "DraftModel.cuda",
    ),
    "another platform": (
        ROW, ROW.replace("cuda", "cdua"), "'cdua'. Did you mean cuda?", "DraftModel.cdua",
    ),
    "a line twice": (
        ROW, f'DraftModel.cuda = {{ verdict = "no" }}\n{ROW}', "a second time; first in line",
        'DraftModel.cuda = { verdict = "yes"',
    ),
    "an unknown word in the header": (
        "digest", 'lable = "x"\ndigest', "the header has no 'lable'. Did you mean label?", "lable",
    ),
    "a header of another type": (
        'platforms = ["cuda", "rocm"]', 'platforms = "cuda"', "platforms: expected list",
        "platforms =",
    ),
    "a header twice": ("digest", 'digest = "x"\ndigest', "digest a second time", "digest = \"sha"),
    "no digest": ('digest = "', '# "', "does not say digest", "[rows]"),
    "no rows": ("[rows]\n", "", "the header has no 'DraftModel'", "DraftModel.cuda"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_wrong_in_it_is_told_with_its_line(what: str) -> None:
    old, new, says, where = BROKEN[what]
    assert old in TEXT
    broken = TEXT.replace(old, new, 1)
    with pytest.raises(BaselineError) as caught:
        parse(broken.encode(), "base.toml")
    numbers = [n for n, line in enumerate(broken.splitlines(), 1) if line.startswith(where)]
    assert says in caught.value.message
    assert caught.value.where == f"base.toml:{numbers[0]}"
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no baseline of draftaudit"),
        (b"[project]\nname = 'x'\n", "no baseline of draftaudit"),
        (b'schema_version = "1.0"\n', "there is no [rows]"),
        (b'schema_version = "1.0"\n# \xff\n', "base.toml:2: not UTF-8"),
        (b"\x00\x01", "no baseline of draftaudit"),
    ],
)
def test_what_is_no_baseline_is_told(data: bytes, says: str) -> None:
    with pytest.raises(BaselineError) as caught:
        parse(data, "base.toml")
    assert says in caught.value.message


def test_lines_may_end_in_another_way_and_stand_in_another_order() -> None:
    head, rows = TEXT.split("[rows]\n")
    mixed = head + "[rows]\n" + "".join(reversed(rows.splitlines(keepends=True)))
    windows = "\ufeff" + mixed.replace("\n", "\r\n")
    assert render(parse(windows.encode(), "x")) == TEXT


def test_broken_input_is_exit_2_and_leaves_the_file(run: Run, capsys: Capture) -> None:
    base = written(run)
    edit(base, "[rows]", "<<<<<<< HEAD\n[rows]")
    was = base.read_bytes()
    for args in (["drift", "--baseline", "base.toml", "--update"], ["baseline", "-o", "base.toml"]):
        assert run(*args) == 2
        err = capsys.readouterr().err
        assert err.startswith("error: base.toml:")
        assert "Traceback" not in err
        assert base.read_bytes() == was


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"get_top_tokens"', '"get_more"', "about another capability: get_more"),
        ("_SPECULATIVE", "_OTHER", "about another registry"),
        ('["cuda", "rocm"]', '["cuba"]', "none of its platforms is known: cuba"),
        ("DraftModel.", "Nobody.", "of another vLLM: none of its 1 architectures"),
        ("[rows]", 'given = ["--with x"]\n[rows]', "with other options: --with x; given now: none"),
    ],
)
def test_a_baseline_about_something_else(
    old: str, new: str, says: str, run: Run, capsys: Capture
) -> None:
    base = written(run)
    base.write_text(base.read_text().replace(old, new))
    if "cuba" in new:
        rows = base.read_text().splitlines(keepends=True)
        base.write_text("".join(line for line in rows if not line.startswith("DraftModel")))
    assert run("drift", "--baseline", "base.toml") == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.startswith("error: base.toml: ")


@pytest.mark.parametrize("option", ["--override=DraftModel=vllm.a:B", "--plugin=plugin"])
def test_a_baseline_rests_on_what_is_laid_over_the_source(
    option: str, run: Run, capsys: Capture
) -> None:
    written(run)
    assert run("drift", "--baseline", "base.toml", option) == 2
    assert f"given now: {option.replace('=', ' ', 1)}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "args",
    [
        ["drift"],
        ["drift", "--baseline", "base.toml", "--against", "tree"],
        ["drift", "--against", "tree", "--update"],
        ["drift", "--against", "tree", "--prune"],
        ["drift", "--baseline", "base.toml", "--accept", "x"],
        ["drift", "--baseline", "base.toml", "--update", "--accept", " "],
        ["drift", "--baseline", "base.toml", "--fail-on", "lots"],
        ["drift", "--baseline", "nowhere.toml"],
        ["drift", "--baseline", "."],
        ["drift", "--against", "nowhere"],
        ["drift", "--baseline", "base.toml", "--format", "pdf"],
        ["--fail-on", "no", "drift", "--baseline", "base.toml"],
        ["baseline", "-o", "no/such/folder/base.toml"],
        ["baseline", "-o", "tree/pyproject.toml"],
        ["baseline", "--format", "json"],
    ],
)
def test_wrong_usage_is_exit_2_with_one_line(args: list[str], run: Run, capsys: Capture) -> None:
    written(run)
    Path("tree/pyproject.toml").write_text("[project]\n")
    capsys.readouterr()
    assert run(*args) == 2
    err = capsys.readouterr().err
    assert sum(line.startswith("error: ") for line in err.splitlines()) == 1
    assert "Traceback" not in err
    assert Path("tree/pyproject.toml").read_text() == "[project]\n"


def test_what_is_wrong_with_against_is_told_by_its_name(run: Run, capsys: Capture) -> None:
    assert run("drift", "--against", "nowhere") == 2
    assert "error: --against nowhere: " in capsys.readouterr().err


def test_a_reason_is_told_where_it_is_about_the_gap_alone(run: Run, capsys: Capture) -> None:
    base = written(run)
    edit(base, " }\nDraftModel.rocm", ', accepted = "no kernel" }\nDraftModel.rocm')
    write(Path("tree"), tree(NORMED))
    run("drift", "--baseline", "base.toml", "-p", "cuda", "--fail-on", "none")
    assert "accepted: no kernel" not in capsys.readouterr().out
