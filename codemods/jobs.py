"""The audits of one plan: of the tree as it is, and of the patched tree on top of it.

What the first has read and analysed serves the second wherever no patch touches it: the facts of
files, what was read of the engine, and analyses of classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager

from auditor.answers import Study
from auditor.api import Request, Resources, collector_paused
from auditor.coverage import Coverage
from auditor.factcache import FactCache
from auditor.job import Job
from auditor.memo import Grounds, Memo
from auditor.program import Files
from auditor.sources.tree import Source
from codemods.overlay import overlaid

Look = Callable[[Study], bytes]


class Jobs:
    """Audits of a source, each told apart by what the files of the tree say.

    Args:
        source: the tree as it is.
        request: what is asked of it: everything.
        resources: what may be used to answer.
        cache: facts of files.
    """

    def __init__(
        self, source: Source, request: Request, resources: Resources, cache: FactCache
    ) -> None:
        self._source = source
        self._request = request
        self._resources = resources
        self._memo = Memo(resources.cache)
        self._name = self._memo.name(source, request) if resources.cache is not None else ""
        self._base: Job | None = None
        self._read: set[str] = set()
        self.files = Files(source.tree, cache)

    @property
    def consulted(self) -> frozenset[str]:
        """The files that the answers so far rest on, patched or not."""
        return frozenset(self._read)

    def kept(self) -> Coverage | None:
        """The document of the tree, where an audit has left it in the cache."""
        if not self._name:
            return None
        coverage = self._memo.load(self._name, self.files, self._source)
        if coverage is not None:
            self._read.update(self._memo.consulted(self._name))
        return coverage

    def run(self, look: Look) -> tuple[Coverage, tuple[bytes, ...]]:
        """The document, and what ``look`` gave for each platform; the document is kept."""
        coverage, seen, grounds = self._run(self._request, look)
        if self._name:
            self._memo.store(self._name, coverage, self.files, self._source, grounds)
        return coverage, seen

    def look(self, request: Request, look: Look) -> tuple[bytes, ...]:
        """What ``look`` gives for each platform of a narrower request."""
        return self._run(request, look)[1]

    def _run(self, request: Request, look: Look) -> tuple[Coverage, tuple[bytes, ...], Grounds]:
        self._base = Job(self._source, request, self.files, self._resources.cache, look)
        coverage, grounds = self._base.run(self._resources.processes)
        self._read.update(grounds.probes)
        return coverage, self._base.seen, grounds

    def patched(self, changed: Mapping[str, bytes]) -> Coverage:
        """The document of the tree with other bytes for some files; it is not kept."""
        source = overlaid(self._source, changed)
        files = self.files.over(source.tree, changed)
        job = Job(source, self._request, files, base=self._base, changed=frozenset(changed))
        coverage, grounds = job.run(self._resources.processes)
        self._read.update(grounds.probes)
        return coverage


@contextmanager
def jobs_of(source: Source, request: Request, resources: Resources) -> Iterator[Jobs]:
    """The audits of a source; what they know of it is let go at the end."""
    with collector_paused(), closing(FactCache(resources.cache)) as cache:
        yield Jobs(source, request, resources, cache)
