"""The whole question: a source and a request to a Coverage document."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import closing, contextmanager

from auditor.coverage import Coverage
from auditor.factcache import FactCache
from auditor.memo import Memo
from auditor.program import Files
from auditor.request import Request, Resources
from auditor.rulesdata import digest_over, laid_over, platform_names
from auditor.sources.tree import Source

__all__ = ["Request", "Resources", "audit", "collector_paused", "platform_names"]


def audit(source: Source, request: Request, resources: Resources | None = None) -> Coverage:
    """Resolve every entry on every platform asked for.

    Raises:
        DraftauditError: an unknown platform or architecture, or a registry that cannot be read.
    """
    resources = resources or Resources()
    with (
        collector_paused(),
        laid_over(request.rules),
        closing(FactCache(resources.cache)) as cache,
    ):
        memo = Memo(resources.cache)
        files = Files(source.tree, cache)
        asked = (request, digest_over(request.rules))
        name = memo.name(source, asked) if resources.cache is not None else ""
        kept = memo.load(name, files, source) if name else None
        if kept is not None:
            return kept
        # A kept answer needs none of what an answer is made with.
        from auditor.job import Job

        coverage, grounds = Job(source, request, files, resources.cache).run(resources.processes)
        if name:
            memo.store(name, coverage, files, source, grounds)
        return coverage


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the cyclic collector: syntax trees are large, and hold no cycles worth a search."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
