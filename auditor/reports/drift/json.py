"""The Drift document itself, for machines."""

from __future__ import annotations

from auditor.changes import Drift, to_json
from auditor.reports.json import escaped


def render(drift: Drift) -> str:
    """The document as indented JSON with a final newline, which reads back as it was."""
    return escaped(to_json(drift))
