"""Documents with many problems, and what their codes mean."""

from __future__ import annotations

from msgspec.structs import replace

from auditor.coverage import Coverage, Finding, Row
from auditor.publishing import catalogue
from auditor.reports.problems import Catalogue, Report, report_of

from .samples import decided, document, mtp

TEXTS: Catalogue = catalogue()
#: Findings of each severity, so that the least severe come first in the document.
MIXED = ("SD203", "SD102", "SD101")


def finding(number: int, code: str, message: str = "calls it wrongly") -> Finding:
    return Finding(
        code=code,
        severity=TEXTS.rules[code].severity,
        message=f"Proposer{number} {message}",
        path=f"vllm/v1/spec_decode/p{number:03}.py",
        line=number + 1,
        architectures=("DeepSeekMTPModel",),
        platforms=("cuda", "rocm"),
    )


def with_findings(count: int, message: str = "calls it wrongly") -> Coverage:
    found = tuple(finding(number, MIXED[number % 3], message) for number in range(count))
    return replace(decided(), findings=found)


def lacking(count: int) -> Coverage:
    rows = [_renamed(mtp("cuda"), f"Model{number}") for number in range(count)]
    return document(*rows, platforms=("cuda",))


def _renamed(row: Row, name: str) -> Row:
    return replace(row, architecture=name, evidence=())


def report(coverage: Coverage) -> Report:
    return report_of(coverage, TEXTS)
