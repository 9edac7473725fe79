"""What is said of plugins: the examples of each rule, and what real releases show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trees.plugins import audited, general, pyproject, row
from trees.plugins import opened as opened_plugin

from auditor.api import Request, Resources, audit
from auditor.coverage import Coverage
from auditor.ruleset.findings import FindingRule, example_files, finding_rules
from auditor.sources.tree import Source

RULES = [rule for rule in finding_rules() if rule.valid or rule.invalid]
INVALID = [(rule, number) for rule in RULES for number in range(len(rule.invalid))]
VALID = [(rule, number) for rule in RULES for number in range(len(rule.valid))]


def _name(value: object) -> str:
    return value.code if isinstance(value, FindingRule) else str(value)


def _document(folder: Path, example: str) -> Coverage:
    given = example_files(example)
    vllm = {path: text for path, text in given.items() if path.startswith("vllm/")}
    files = {path: text for path, text in given.items() if path not in vllm}
    files.setdefault("pyproject.toml", pyproject(general="mine:register"))
    return audited(folder, files, vllm=vllm, request=Request(platforms=("rocm",)))


@pytest.mark.parametrize(("rule", "number"), INVALID, ids=_name)
def test_the_finding_is_made(tmp_path: Path, rule: FindingRule, number: int) -> None:
    document = _document(tmp_path, rule.invalid[number])
    found = [finding for finding in document.findings if finding.code == rule.code]
    assert found
    assert all(finding.path.startswith("mine/") or "vllm-mine" in finding.path for finding in found)
    assert all(finding.line > 0 for finding in found)


@pytest.mark.parametrize(("rule", "number"), VALID, ids=_name)
def test_the_finding_is_not_made(tmp_path: Path, rule: FindingRule, number: int) -> None:
    document = _document(tmp_path, rule.valid[number])
    assert rule.code not in {finding.code for finding in document.findings}


def test_a_rule_has_examples_of_both_kinds() -> None:
    assert {rule.code for rule in RULES} == {f"SD40{number}" for number in range(1, 6)}
    assert all(rule.valid and rule.invalid for rule in RULES)


def test_the_row_of_the_other_half_has_the_code(tmp_path: Path) -> None:
    (rule,) = [rule for rule in RULES if rule.code == "SD402"]
    document = _document(tmp_path, rule.invalid[0])
    assert "SD402" in row(document, "OtherDraftModel").findings
    assert "SD402" not in row(document).findings


HALF = """
from vllm import ModelRegistry
ModelRegistry.register_model("DeepSeekMTPModel", "mine.models:Mine")
"""


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "half"), [("0.28.0", False), ("0.30.0", True), ("0.33.0", True)]
)
def test_half_of_a_family_is_seen_since_the_family_was_split(
    tmp_path: Path, release: Callable[[str], Source], version: str, half: bool
) -> None:
    plugin = opened_plugin(tmp_path, general(HALF))
    request = Request(platforms=("oot",), architectures=("Deep*MTPModel",))
    document = audit(release(version), request, Resources(processes=1), [plugin])
    assert row(document, "DeepSeekMTPModel").module == "mine.models"
    found = [finding for finding in document.findings if finding.code == "SD402"]
    assert bool(found) is half
    if half:
        assert "DeepseekV32MTPModel" in found[0].architectures
