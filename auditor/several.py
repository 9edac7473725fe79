"""One request of several sources, for a report that compares them."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from auditor.errors import UsageError

if TYPE_CHECKING:
    from auditor.api import Request, Resources
    from auditor.coverage import Coverage
    from auditor.sources.tree import Source


def audit_each(sources: Iterable[Source], request: Request, resources: Resources) -> list[Coverage]:
    """A document for each source; they are opened as they are needed.

    A source in which no glob of the request matches has a document without rows, and a note that
    says so: an architecture is new in some release.

    Raises:
        UsageError: a glob that matches in no source, or a source without draft models.
        DraftauditError: a source that cannot be audited.
    """
    from auditor.api import audit

    found: list[Coverage] = []
    known: set[str] = set()
    for source in sources:
        try:
            coverage = audit(source, request, resources)
        except UsageError as error:
            if error.where != "--arch" or not request.architectures:
                raise
            whole = audit(source, replace(request, architectures=(), run_imports=False))
            known.update(row.architecture for row in whole.rows)
            coverage = _without_rows(whole, request)
        known.update(row.architecture for row in coverage.rows)
        found.append(coverage)
    _check(request.architectures, known)
    return found


def _without_rows(coverage: Coverage, request: Request) -> Coverage:
    """What is left of a document when none of its architectures was asked for."""
    globs = ", ".join(request.architectures)
    note = f"no architecture of {coverage.source.label} is called {globs}"
    return msgspec.structs.replace(
        coverage,
        imports="run" if request.run_imports else "skipped",
        notes=(*coverage.notes, note),
        rows=(),
        heads=(),
        findings=(),
        callers=(),
        undecided=(),
    )


def _check(globs: Iterable[str], known: set[str]) -> None:
    from auditor.reports.names import hint

    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in known):
            what = f"no architecture of these sources is called {glob!r}"
            raise UsageError(what, next_step=hint(glob, sorted(known)))
