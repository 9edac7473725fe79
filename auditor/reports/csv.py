"""One line a row, for spreadsheets."""

from __future__ import annotations

import csv
import io

from auditor.coverage import Coverage, Row
from auditor.reports.text import literal

HEADER = (
    "architecture",
    "platform",
    "verdict",
    "hasattr",
    "module",
    "class",
    "owner",
    "error_type",
    "error_message",
    "reason",
    "findings",
)

_HASATTR = {True: "true", False: "false", None: ""}


def cell(text: str | None) -> str:
    """One field; a leading apostrophe keeps a spreadsheet from running it as a formula.

    The list of first characters is the one of OWASP, "CSV Injection".
    """
    shown = literal(text or "")
    return f"'{shown}" if shown.lstrip().startswith(("=", "+", "-", "@", "\\t", "\\r")) else shown


def _line(row: Row) -> list[str]:
    error = row.error
    fields = (
        row.architecture,
        row.platform,
        row.verdict,
        _HASATTR[row.hasattr],
        row.module,
        row.class_,
        row.owner,
        error.type if error else None,
        error.message if error else None,
        row.reason,
        " ".join(row.findings),
    )
    return [cell(field) for field in fields]


def render(coverage: Coverage) -> str:
    """RFC 4180 with a header line; lines end in a bare line feed so that diffs stay readable."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(_line(row) for row in coverage.rows)
    return out.getvalue()
