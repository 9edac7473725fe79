"""A Drift as GitHub-flavoured Markdown, for an issue or a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.changes import Change, Drift
from auditor.reports import drifted
from auditor.reports import rows as view
from auditor.reports.markdown import code
from auditor.reports.problems import RANK, on_platforms

#: So many things that could not be compared are written out.
_SHOWN = 20


def render(drift: Drift) -> str:
    """The changes, the failing ones first, and what could not be compared."""
    return "".join(f"{line}\n" for line in _lines(drift))


def _lines(drift: Drift) -> Iterator[str]:
    yield f"**{code(drifted.title(drift))}**"
    yield ""
    yield from (f"- {code(line)}" for line in drifted.counts(drift))
    yield ""
    groups = sorted(drifted.gathered(drift), key=lambda group: RANK[group[0].severity])
    if groups:
        yield "| | kind | architecture | on | what | where |"
        yield "| --- | --- | --- | --- | --- | --- |"
        yield from (_row(drift, group) for group in groups)
        yield ""
    yield from _undecided(drift)


def _row(drift: Drift, changes: Sequence[Change]) -> str:
    first = changes[0]
    mark = "**fails**" if first.failing else first.severity
    where = on_platforms([change.platform for change in changes], drift.platforms)
    accepted = f" (accepted: {code(first.accepted)})" if first.accepted else ""
    cells = (
        mark,
        ", ".join((first.kind, *first.also)),
        code(first.architecture),
        code(where.removeprefix("on ")),
        f"{code(first.message)}{accepted}",
        code(view.place(first.path, first.line)) if first.path else "",
    )
    return f"| {' | '.join(cells)} |"


def _undecided(drift: Drift) -> Iterator[str]:
    """What could not be compared, always."""
    items = drift.undecided
    if not items:
        yield "Not decided: nothing was left open."
        return
    yield f"Not decided ({len(items)}):"
    yield ""
    for item in items[:_SHOWN]:
        subject = " on ".join(filter(None, (item.architecture, item.platform)))
        place = view.place(item.path, item.line)
        yield f"* {code(f'{item.side}: {place} {subject} {item.reason}')}"
    if len(items) > _SHOWN:
        yield f"* and {len(items) - _SHOWN} more; --format json lists all"
