"""SARIF 2.1.0 (OASIS, errata 01), as code scanning on GitHub takes it.

GitHub's limits are those of its page "SARIF support for code scanning": 25,000 results a run, 20
tags a rule, 1,000 locations a result. Paths are relative to the root of the repository.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from urllib.parse import quote

from auditor.coverage import INPUT_KINDS, Step, UndecidedItem
from auditor.reports.findings import Rule
from auditor.reports.json import escaped
from auditor.reports.problems import Catalogue, Problem, Report
from auditor.reports.text import literal

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
VERSION = "2.1.0"

#: So many results a run are taken by GitHub; a file with more is refused.
MAX_RESULTS = 25_000
#: So many locations a result are taken.
_MAX_LOCATIONS = 1_000
#: So many items that were not decided are written out.
_MAX_NOTIFICATIONS = 1_000

_TAGS = ("speculative-decoding", "vllm")
_PROBLEM_SEVERITY = {"error": "error", "warning": "warning", "note": "recommendation"}
#: GitHub lists what is precise first. A note says that something could not be shown.
_PRECISION = {"error": "high", "warning": "high", "note": "medium"}
#: Id, name, level, what it says, what to do.
_NOTIFICATIONS = (
    (
        "undecided",
        "NotDecided",
        "note",
        "Something could not be evaluated.",
        "Decide a condition with --assume or --env; a cell that rests on it is a result.",
    ),
    (
        "cut",
        "LeftOut",
        "warning",
        "Results beyond the limit of the host were left out.",
        "Audit fewer platforms or architectures at once.",
    ),
)
_LINE_NUMBER = re.compile(r"(?<=\.py):\d+")

_Object = dict[str, object]


def render(report: Report, catalogue: Catalogue, *, prefix: str = "") -> str:
    """The log as indented JSON with a final newline; same input, same bytes.

    Args:
        report: what to write.
        catalogue: what its codes mean.
        prefix: of every path: the folder within the repository that holds ``vllm/``.
    """
    rules = list(catalogue.rules)
    kept = report.problems[:MAX_RESULTS]
    run: _Object = {
        "tool": {"driver": _driver(catalogue)},
        "originalUriBaseIds": {
            "%SRCROOT%": {"description": {"text": "The root of the repository."}}
        },
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": list(_notifications(report, prefix)),
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(problem, rules.index(problem.code), mark, prefix)
            for problem, mark in zip(kept, _fingerprints(kept, prefix), strict=True)
        ],
    }
    document = {"$schema": SCHEMA, "version": VERSION, "runs": [run]}
    return escaped(json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n")


def _driver(catalogue: Catalogue) -> _Object:
    return {
        "name": "draftaudit",
        "fullName": f"draftaudit {catalogue.version}",
        "version": catalogue.version,
        "semanticVersion": catalogue.version,
        "shortDescription": {"text": "Audits the draft models of vLLM for a capability."},
        "rules": [_rule(rule, catalogue.names[code]) for code, rule in catalogue.rules.items()],
        "notifications": [_descriptor(*texts) for texts in _NOTIFICATIONS],
    }


def _descriptor(id_: str, name: str, level: str, what: str, fix: str) -> _Object:
    return {
        "id": id_,
        "name": name,
        "shortDescription": {"text": what},
        "fullDescription": {"text": what},
        "help": {"text": fix, "markdown": fix},
        "defaultConfiguration": {"level": level},
    }


def _rule(rule: Rule, name: str) -> _Object:
    text, markdown = f"{rule.why} {rule.fix}", f"{rule.why}\n\n**What to do:** {rule.fix}"
    found: _Object = {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in name.split("-")),
        "shortDescription": {"text": rule.what},
        "fullDescription": {"text": f"{rule.what} {rule.why}"},
        "help": {"text": text, "markdown": markdown},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {
            "tags": list(_TAGS),
            "precision": _PRECISION[rule.severity],
            "problem.severity": _PROBLEM_SEVERITY[rule.severity],
        },
    }
    return {**found, "helpUri": rule.link} if rule.link else found


def _result(problem: Problem, index: int, mark: str, prefix: str) -> _Object:
    here = Step("problem", problem.path, problem.line, problem.text)
    result: _Object = {
        "ruleId": problem.code,
        "ruleIndex": index,
        "level": problem.severity,
        "message": {"text": _sentence(problem.message)},
        "locations": [_location(here, "" if problem.outside else prefix)],
        "partialFingerprints": {"primaryLocationLineHash": mark},
    }
    if problem.steps:
        result["codeFlows"] = [_code_flow(problem.steps[:_MAX_LOCATIONS], prefix)]
    if problem.places:
        result["relatedLocations"] = [
            {"id": number, **_location(step, prefix), "message": {"text": _about(step)}}
            for number, step in enumerate(problem.places[:_MAX_LOCATIONS], start=1)
        ]
    result["properties"] = {
        "architectures": [literal(name) for name in problem.architectures],
        "platforms": list(problem.platforms),
    }
    return result


def _code_flow(steps: Sequence[Step], prefix: str) -> _Object:
    """How the answer came about, from the registry line on."""
    locations = [
        {"location": {**_location(step, prefix), "message": {"text": _about(step)}}}
        for step in steps
    ]
    return {"threadFlows": [{"locations": locations}]}


def _location(step: Step, prefix: str) -> _Object:
    region: _Object = {"startLine": max(step.line, 1)}
    if step.text:
        region["snippet"] = {"text": literal(step.text)}
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(step.path, prefix), "uriBaseId": "%SRCROOT%"},
            "region": region,
        }
    }


def _uri(path: str, prefix: str) -> str:
    """A relative reference (RFC 3986, section 4.2) that has no scheme and no host."""
    return quote(f"{prefix}{path}".lstrip("/"), errors="surrogatepass")


def _about(step: Step) -> str:
    return _sentence(step.note or step.text or step.kind)


def _sentence(text: str) -> str:
    shown = literal(text)
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."


def _fingerprints(problems: Sequence[Problem], prefix: str) -> Iterator[str]:
    """A hash of what does not change when lines move, and a count for those that are alike.

    GitHub tells by it whether a result is one that it has seen. The hash it would compute itself
    is of the text around the line, which other edits change.
    """
    seen: Counter[str] = Counter()
    for problem in problems:
        identity = _LINE_NUMBER.sub("", problem.identity)
        parts = "\0".join((problem.code, problem.path_below(prefix), identity))
        digest = blake2b(parts.encode(errors="surrogatepass"), digest_size=8).hexdigest()
        seen[digest] += 1
        yield f"{digest}:{seen[digest]}"


def _notifications(report: Report, prefix: str) -> Iterator[_Object]:
    """What was cut, and what was not decided: never nothing where something stayed open."""
    if (cut := len(report.problems) - MAX_RESULTS) > 0:
        text = f"{cut} of {len(report.problems)} results were left out, the least severe ones."
        yield _notification("cut", "warning", text)
    items = report.undecided
    for item in items[:_MAX_NOTIFICATIONS]:
        yield _undecided(item, prefix)
    if len(items) > _MAX_NOTIFICATIONS:
        text = f"{len(items) - _MAX_NOTIFICATIONS} more were not decided."
        yield _notification("undecided", "note", text)


def _undecided(item: UndecidedItem, prefix: str) -> _Object:
    subject = f"{item.text} - {item.reason}" if item.text else item.reason
    found = _notification(
        "undecided", "warning" if item.kind in INPUT_KINDS else "note", _sentence(subject)
    )
    if item.path:
        found["locations"] = [_location(Step(item.kind, item.path, item.line, item.text), prefix)]
    return found


def _notification(id_: str, level: str, text: str) -> _Object:
    return {"descriptor": {"id": id_}, "level": level, "message": {"text": text}}
