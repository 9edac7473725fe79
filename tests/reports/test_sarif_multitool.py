"""SARIF as the SARIF multitool judges it, with the rules of the standard and those of GitHub.

Give the program (the npm package ``@microsoft/sarif-multitool``) in ``DRAFTAUDIT_TEST_SARIF_TOOL``.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor.api import Request, Resources, audit
from auditor.changes import KINDS, Drift
from auditor.coverage import Coverage
from auditor.drift import drift
from auditor.reports import sarif
from auditor.reports.drifted import report_of_drift
from auditor.sources.tree import Source

from .hosting import TEXTS, report, with_findings
from .samples import decided, document, named
from .test_drift_reports import changed
from .test_drift_reports import document as drift_document
from .test_github_report import HOSTILE

VARIABLE = "DRAFTAUDIT_TEST_SARIF_TOOL"
TOOL = os.environ.get(VARIABLE)
#: The project has no page, so there is none to name.
ALLOWED = {"SARIF2005"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(TOOL is None, reason=f"{VARIABLE} names no SARIF multitool"),
]


def judged(text: str, folder: Path) -> set[tuple[str, str]]:
    """Rule and level of each error and warning."""
    log, verdict = folder / "log.sarif", folder / "verdict.sarif"
    log.write_text(text)
    done = subprocess.run(
        [
            str(TOOL),
            "validate",
            str(log),
            "--rule-kind",
            "Sarif;Gh",
            "--output",
            str(verdict),
            "--log",
            "ForceOverwrite",
        ],
        env={**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Analysis completed successfully" in done.stdout, done.stdout + done.stderr
    (run,) = json.loads(verdict.read_text())["runs"]
    return {(one["ruleId"], one.get("level", "warning")) for one in run.get("results", [])}


def _drift() -> Drift:
    return drift_document(*(changed(kind, f"M{n}") for n, kind in enumerate(KINDS)))


@pytest.mark.parametrize(
    "coverage",
    [decided(), document(), with_findings(500), named(HOSTILE, "import")],
    ids=["decided", "empty", "500 findings", "hostile"],
)
def test_a_coverage_breaks_no_rule(coverage: Coverage, tmp_path: Path) -> None:
    text = sarif.render(report(coverage), TEXTS, prefix="third party/")
    assert {rule for rule, _ in judged(text, tmp_path)} <= ALLOWED


def test_a_drift_of_every_kind_breaks_no_rule(tmp_path: Path) -> None:
    text = sarif.render(report_of_drift(_drift(), TEXTS), TEXTS)
    assert {rule for rule, _ in judged(text, tmp_path)} <= ALLOWED


@pytest.mark.network
def test_real_releases_break_no_rule(release: Callable[[str], Source], tmp_path: Path) -> None:
    before, after = (audit(release(v), Request(), Resources()) for v in ("0.32.0", "0.33.0"))
    texts = [
        sarif.render(report(after), TEXTS),
        sarif.render(report_of_drift(drift(before, after), TEXTS), TEXTS),
    ]
    for text in texts:
        assert len(json.loads(text)["runs"][0]["results"]) > 5
        assert {rule for rule, _ in judged(text, tmp_path)} <= ALLOWED


def _without_help(run: dict[str, Any]) -> None:
    del run["tool"]["driver"]["rules"][0]["help"]


def _without_a_place(run: dict[str, Any]) -> None:
    del run["results"][0]["locations"]


@pytest.mark.parametrize("spoil", [_without_help, _without_a_place])
def test_the_rules_of_github_are_asked(
    spoil: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    log = json.loads(sarif.render(report(decided()), TEXTS))
    spoil(log["runs"][0])
    rules = judged(json.dumps(log), tmp_path)
    assert any(rule.startswith("GH") and level == "error" for rule, level in rules), rules
