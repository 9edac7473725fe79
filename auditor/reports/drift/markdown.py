"""A drift as GitHub-flavoured Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.changes import Drift
from auditor.reports.drift import groups as view
from auditor.reports.drift.groups import Group
from auditor.reports.markdown import code
from auditor.reports.text import literal


def render(drift: Drift) -> str:
    """A table, one line a change and group of platforms; those that fail first."""
    return "".join(f"{line}\n" for line in _lines(drift))


def _lines(drift: Drift) -> Iterator[str]:
    yield f"**{code(view.heading(drift))}**"
    yield ""
    told = view.groups(drift)
    if told:
        yield _row(["", "architecture", "platforms", "before", "after", "what"])
        yield _row(["---"] * 6)
        yield from (_row(_cells(group, drift)) for group in told)
        yield ""
        for kind, meaning in view.kinds_shown(drift):
            yield f"* **{kind}**: {meaning}"
        yield ""
    for sentence in view.advice(drift):
        yield f"> {code(sentence)}"
        yield ""
    undecided = view.undecided_lines(drift)
    if undecided:
        yield f"Not decided: {len(undecided)}"
        yield ""
        yield from (f"* {code(line)}" for line in undecided)


def _cells(group: Group, drift: Drift) -> list[str]:
    change = group.change
    everywhere = len(drift.platforms) > 1 and set(group.platforms) == set(drift.platforms)
    what = [code(change.message)]
    if change.path:
        what.append(code(f"{change.path}:{change.line}" if change.line else change.path))
    if change.accepted is not None:
        what.append(f"accepted: {code(change.accepted)}")
    if change.note is not None:
        what.append(f"note: {code(change.note)}")
    return [
        f"**{change.kind}**" if change.failing else change.kind,
        code(change.architecture),
        "all" if everywhere else literal(", ".join(group.platforms)),
        code(change.before or ""),
        code(change.after or ""),
        "<br>".join(what),
    ]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
