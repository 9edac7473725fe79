"""The summary of a job on GitHub: problems as a Markdown table, within the limit of its size.

A step may write 1 MiB (GitHub, "Adding a job summary"); what is larger is not shown at all. So it
is cut between two lines, and says what was cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.coverage import INPUT_KINDS, UndecidedItem
from auditor.reports import rows as view
from auditor.reports.markdown import code
from auditor.reports.problems import Problem, Report, on_platforms

#: In bytes, of UTF-8.
LIMIT = 1024 * 1024
#: Bytes kept for the sentence that says what was cut.
_RESERVED = 200
#: So many items that were not decided are written out.
_UNDECIDED = 50


def render(report: Report, *, room: int = LIMIT) -> str:
    """The summary in at most ``room`` bytes; empty where not even its heading has room.

    Args:
        report: what to write.
        room: in bytes of UTF-8.
    """
    rows = [_row(problem) for problem in report.problems]
    head, tail = list(_head(report)), list(_tail(report.undecided))
    left = room - _size(head) - _size(tail) - _RESERVED
    if left < 0:
        return ""
    table, cut = _fitting(rows, left)
    lines = [*head, *table]
    if cut:
        lines += ["", f"Cut to keep the limit of {LIMIT} bytes: {cut} of {len(rows)} rows are left "
                      "out, the least severe ones."]  # fmt: skip
    return "".join(f"{line}\n" for line in [*lines, *tail])


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _fitting(rows: Sequence[str], room: int) -> tuple[Sequence[str], int]:
    """As many rows as have room, and how many have none."""
    for index, row in enumerate(rows):
        room -= _size([row])
        if room < 0:
            return rows[:index], len(rows) - index
    return rows, 0


def _head(report: Report) -> Iterator[str]:
    yield f"### draftaudit: {code(report.title)}"
    yield ""
    yield from (f"- {code(line)}" for line in report.lines)
    yield ""
    if not report.problems:
        yield "No problem was found."
        return
    yield "| severity | code | what | where |"
    yield "| --- | --- | --- | --- |"


def _row(problem: Problem) -> str:
    place = code(view.place(problem.path, problem.line))
    return f"| {problem.severity} | {problem.code} | {code(problem.message)} | {place} |"


def _tail(undecided: Sequence[UndecidedItem]) -> Iterator[str]:
    """What was not decided, always."""
    yield ""
    if not undecided:
        yield "Nothing was left open."
        return
    # What a cell rests on, and input that was not read, before conditions that change nothing.
    first = sorted(undecided, key=lambda i: (i.kind not in INPUT_KINDS, not i.architectures))
    yield f"<details><summary>Not decided: {len(undecided)}</summary>"
    yield ""
    for item in first[:_UNDECIDED]:
        scope = f" ({on_platforms(item.platforms, ())})" if item.platforms else ""
        text = f"{item.text}: {item.reason}" if item.text else item.reason
        yield f"- {code(f'{view.place(item.path, item.line)} {text}{scope}'.strip())}"
    if len(first) > _UNDECIDED:
        yield f"- and {len(first) - _UNDECIDED} more; the JSON document lists all"
    yield ""
    yield "</details>"
