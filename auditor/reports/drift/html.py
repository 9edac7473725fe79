"""A drift as one page for a browser: a table that needs neither network nor script."""

from __future__ import annotations

from auditor.changes import Drift
from auditor.reports.drift import groups as view
from auditor.reports.html import filled


def render(drift: Drift) -> str:
    """The page: one line a change and group of platforms; those that fail first."""
    return filled(
        "drift.html",
        "drift.css",
        drift=drift,
        heading=view.heading(drift),
        groups=view.groups(drift),
        kinds=view.kinds_shown(drift),
        advice=view.advice(drift),
        undecided=view.undecided_lines(drift),
    )
