"""The whole question: a source and a request to a Coverage document."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from auditor.coverage import Coverage
from auditor.factcache import FactCache
from auditor.memo import Memo
from auditor.program import Files
from auditor.request import Request, Resources
from auditor.ruleset.files import laid_over
from auditor.ruleset.platforms import platform_names
from auditor.sources.tree import Source
from auditor.words import is_library

if TYPE_CHECKING:
    from auditor.sources.plugin import Plugin

__all__ = ["Request", "Resources", "audit", "collector_paused", "platform_names"]


def audit(
    source: Source,
    request: Request,
    resources: Resources | None = None,
    plugins: Sequence[Plugin] = (),
) -> Coverage:
    """Resolve every entry on every platform asked for, with plugins over the source.

    Raises:
        DraftauditError: an unknown platform or architecture, or a registry that cannot be read.
    """
    resources = resources or Resources()
    identities: tuple[object, ...] = ()
    if plugins:
        from auditor.plugins.session import identity, over

        source = over(source, plugins)
        identities = tuple(map(identity, plugins))
    with (
        collector_paused(),
        laid_over(request.rules),
        closing(FactCache(resources.cache)) as cache,
    ):
        memo = Memo(resources.cache)
        files = Files(source.tree, cache)
        name = memo.name(source, request, identities) if resources.cache is not None else ""
        own = (*request.failing_modules, *(root for plugin in plugins for root in plugin.roots))
        own_python = any(map(is_library, own))
        kept = memo.load(name, files, source, own_python=own_python) if name else None
        if kept is not None:
            return kept
        # A kept answer needs none of what an answer is made with.
        from auditor.job import Job

        job = Job(source, request, files, resources.cache, plugins=plugins)
        coverage, grounds = job.run(resources.processes)
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
