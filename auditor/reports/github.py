"""Annotations on GitHub: workflow commands, which the log of a step is searched for.

Syntax and escapes are those of the runner (``actions/toolkit``, ``packages/core/src/command.ts``).
Of each type only the first ten of a step are shown, so the most severe stand first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from auditor.reports.problems import Catalogue, Problem, Report
from auditor.reports.text import literal

#: So many of each type are shown for one step.
SHOWN = 10

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report, catalogue: Catalogue, *, prefix: str = "") -> str:
    """One line an annotation, the most severe first; a last one says what else there is.

    Args:
        report: what to write.
        catalogue: what its codes mean.
        prefix: of every path: the folder within the repository that holds ``vllm/``.
    """
    return "".join(f"{line}\n" for line in _lines(report, catalogue, prefix))


def _lines(report: Report, catalogue: Catalogue, prefix: str) -> Iterator[str]:
    for severity, command in _COMMANDS.items():
        # The sentence at the end is a notice itself.
        room = SHOWN - (severity == "note")
        of_type = (problem for problem in report.problems if problem.severity == severity)
        for problem in islice(of_type, room):
            yield _annotation(command, problem, catalogue, prefix)
    yield message("notice", _in_all(report))


def message(command: str, text: str) -> str:
    """An annotation without a place."""
    return f"::{command} title=draftaudit::{_data(literal(text))}"


def _annotation(command: str, problem: Problem, catalogue: Catalogue, prefix: str) -> str:
    properties = {
        "file": problem.path_below(prefix),
        "line": str(problem.line),
        "title": f"{problem.code} {catalogue.names[problem.code].replace('-', ' ')}",
    }
    shown = ",".join(f"{key}={_property(literal(value))}" for key, value in properties.items())
    return f"::{command} {shown}::{_data(literal(problem.message))}"


def _in_all(report: Report) -> str:
    """``draftaudit: 2 errors, 530 warnings, 1 note, 10 more than shown; 4 not decided``."""
    count: Counter[str] = Counter(problem.severity for problem in report.problems)
    numbers = [
        f"{count[name]} {name}{'s' * (count[name] != 1)}" for name in _COMMANDS if count[name]
    ]
    limits = {name: SHOWN - (name == "note") for name in _COMMANDS}
    hidden = sum(max(count[name] - limit, 0) for name, limit in limits.items())
    rest = f"; {hidden} of them are not shown here" if hidden else ""
    undecided = f"; not decided: {len(report.undecided)}" if report.undecided else ""
    return f"{report.title}: {', '.join(numbers) or 'no problem'}{rest}{undecided}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
