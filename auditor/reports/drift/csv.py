"""One line a change, for spreadsheets."""

from __future__ import annotations

import csv
import io

from auditor.changes import Change, Drift
from auditor.reports.csv import cell

HEADER = (
    "kind",
    "architecture",
    "platform",
    "before",
    "after",
    "failing",
    "severity",
    "message",
    "path",
    "line",
    "side",
    "also",
    "verdict_before",
    "verdict_after",
    "code",
    "accepted",
    "note",
)


def render(drift: Drift) -> str:
    """RFC 4180 with a header line; lines end in a bare line feed so that diffs stay readable."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(_line(change) for change in drift.changes)
    return out.getvalue()


def _line(change: Change) -> list[str]:
    return [cell(_text(getattr(change, name))) for name in HEADER]


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case tuple():
            return " ".join(map(str, value))
        case _:
            return str(value)
