"""An audit's job, opened for what a codemod asks of it beside the document."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from auditor.api import Request, Resources
from auditor.factcache import FactCache
from auditor.job import Job
from auditor.program import Files
from auditor.sources.tree import Source


@contextmanager
def job_of(source: Source, request: Request, resources: Resources) -> Iterator[Job]:
    """The job of a request; facts of files are taken from the cache, whole answers are not."""
    with closing(FactCache(resources.cache)) as cache:
        yield Job(source, request, Files(source.tree, cache), resources.cache)
