"""A Drift with one line a change, for spreadsheets."""

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
    "also",
    "accepted",
)


def render(drift: Drift) -> str:
    """RFC 4180 with a header line; lines end in a bare line feed so that diffs stay readable."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(_line(change) for change in drift.changes)
    return out.getvalue()


def _line(change: Change) -> list[str]:
    fields = (
        change.kind,
        change.architecture,
        change.platform,
        change.before,
        change.after,
        "true" if change.failing else "false",
        change.severity,
        change.message,
        change.path,
        str(change.line) if change.line else None,
        " ".join(change.also),
        change.accepted,
    )
    return [cell(field) for field in fields]
