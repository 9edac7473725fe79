"""Reads the import closure of some modules ahead of the run, in two processes.

What a module may import is read off its statements, whatever the branch; only blocks for type
checkers are left out. A module that the run needs and this has missed is read when it is asked
for, so the closure here decides nothing but time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from auditor import facts as f
from auditor.bases import Bound, Defining, hooked
from auditor.processes import Worker, can_fork
from auditor.program import FACTS, GRAMMAR, Files, Job, parse_batch

#: How many bytes of source are handed over at once, at most: a tenth of a second's work.
_SHARE = 1_000_000
#: With fewer files than this to parse, it is time to see what those that are parsed import.
_FEW = 16
#: So many outcomes are saved at once, and the rest in the end.
_MANY = 200


class Prefetch:
    """Reads the facts of modules and of all that they may import, with a second process.

    Neither process waits for the other while there are files to parse, and what a file imports
    may be parsed by either as soon as the file is. A context: the second process ends with it.

    Args:
        files: what is read.
        modules: the path of each module, and whether it is a package.
        processes: the user's number of processes, or None.
    """

    def __init__(
        self, files: Files, modules: Mapping[str, tuple[str, bool]], processes: int | None
    ) -> None:
        self._files = files
        self._modules = modules
        self._worker = Worker(parse_batch) if can_fork(processes) else None
        #: Names that were come across, whether they are modules or not.
        self._seen: set[str] = set()
        #: Modules whose imports were not looked at yet.
        self._new: set[str] = set()
        #: What this process is to parse in full: syntax trees cannot be sent.
        self._whole: list[Job] = []
        self._defining = Defining(files, modules, ())
        #: What else is to be parsed, and what the second process parses.
        self._waiting: list[Job] = []
        self._sent: list[Job] = []

    def __enter__(self) -> Prefetch:
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker is not None:
            self._worker.close()
        self._files.save()

    def begin(self, names: Iterable[str]) -> None:
        """Have the second process read these modules, and go on with something else."""
        self._want(names)
        if not self._sent:
            self._hand_over(self._waiting)

    def go_on(self) -> None:
        """Give the second process more where it has done its share, in between something else."""
        if self._sent and self._is_answered():
            self._take_back()
        if not self._sent:
            self._hand_over(self._share())

    def read(self, names: Iterable[str], classes: Iterable[Bound] = ()) -> None:
        """Have the facts of these modules and of all that they may import at hand.

        Of some classes, each in a module that has its name, it also is at hand whether the files
        parse that define them and their bases: those that are reported have to parse in full.
        This process does that, so that the syntax is there for the analysis of those classes.
        """
        self._want(names)
        self._defining = Defining(self._files, self._modules, classes)
        self._want_whole()
        while self._new or self._waiting or self._whole or self._sent:
            if len(self._waiting) < _FEW:
                self._follow()
            if self._sent and (not (self._waiting or self._whole) or self._is_answered()):
                self._take_back()
            elif self._waiting or self._whole:
                self._parse_one()

    def _want(self, names: Iterable[str]) -> None:
        """Have these modules parsed that were not come across before, with their parents."""
        new = _with_parents(names, self._modules, self._seen)
        self._new |= new
        self._waiting += self._files.wanted(FACTS, self._paths(new))

    def _want_whole(self) -> None:
        """Have those files parsed in full that are known by now to define a class or its bases."""
        paths = sorted(self._defining.more())
        self._whole += self._files.wanted(GRAMMAR, paths)

    def _follow(self) -> None:
        """Want what those modules import that are at hand by now."""
        while ready := {name for name in self._new if self._files.has(FACTS, self._path(name))}:
            self._new -= ready
            self._want(
                target for name in ready for target in _imports(self._files, name, self._modules)
            )
            self._want_whole()

    def _parse_one(self) -> None:
        """Parse a file here, once the other process has something to do."""
        if not self._sent:
            self._hand_over(self._share())
        jobs = self._whole or self._waiting
        self._files.parse([jobs.pop()])

    def _share(self) -> list[Job]:
        """What the second process should parse next: less than is left for this one."""
        if self._worker is None:
            return []
        room = min(_SHARE, sum(len(job.source) for job in self._waiting) // 3)
        share: list[Job] = []
        for job in self._waiting:
            if len(job.source) <= room:
                room -= len(job.source)
                share.append(job)
        return share

    def _hand_over(self, jobs: list[Job]) -> None:
        """Have the second process, if there is one, parse some of those that wait."""
        if jobs and self._worker is not None and self._worker.send([job.asked for job in jobs]):
            # Two jobs may be equal but for their paths: files of the same bytes.
            handed = set(map(id, jobs))
            self._waiting = [job for job in self._waiting if id(job) not in handed]
            self._sent = jobs

    def _is_answered(self) -> bool:
        return self._worker is not None and self._worker.is_done()

    def _take_back(self) -> None:
        """What the second process has made of its share; it gets another before that is kept.

        Then is the time to see what the share imports: the other one is busy.
        """
        jobs, self._sent = self._sent, []
        blobs = self._worker.receive() if self._worker is not None else None
        if blobs is None:
            self._files.parse(jobs)
        else:
            self._hand_over(self._share())
            self._files.keep(jobs, blobs)
        self._follow()
        if self._sent:  # while the other one is busy
            self._files.save(_MANY)

    def _path(self, name: str) -> str:
        return self._modules[name][0]

    def _paths(self, names: Iterable[str]) -> list[str]:
        return sorted(map(self._path, names))


def _with_parents(
    names: Iterable[str], modules: Mapping[str, tuple[str, bool]], seen: set[str]
) -> set[str]:
    """The modules among some names and their parents, less those seen; all are seen afterwards."""
    found: set[str] = set()
    for name in names:
        while name and name not in seen:
            seen.add(name)
            if name in modules:
                found.add(name)
            name = name.rpartition(".")[0]
    return found


def _imports(files: Files, name: str, modules: Mapping[str, tuple[str, bool]]) -> Iterator[str]:
    path, is_package = modules[name]
    facts = files.facts(path)
    if isinstance(facts, f.Unparsed):
        return
    package = name if is_package else name.rpartition(".")[0]
    yield from _of_block(facts.body, package)
    yield from _of_block(hooked(files, path, facts.body), package)


def _of_block(body: Iterable[f.Stmt], package: str) -> Iterator[str]:
    for stmt in body:
        match stmt:
            case f.Import(module=module):
                yield module
            case f.ImportFrom(names=names):
                module = f.absolute_name(stmt, package)
                yield module
                yield from (f"{module}.{name}" for name, _ in names)
            case f.If(
                test=f.Name(id="TYPE_CHECKING") | f.Attr(attr="TYPE_CHECKING"), orelse=orelse
            ):
                yield from _of_block(orelse, package)
            case f.If(body=inner, orelse=orelse) | f.Loop(body=inner, orelse=orelse):
                yield from _of_block((*inner, *orelse), package)
            case f.Try(body=inner, handlers=handlers, orelse=orelse, final=final):
                yield from _of_block((*inner, *orelse, *final), package)
                for handler in handlers:
                    yield from _of_block(handler.body, package)
            case f.With(body=inner):
                yield from _of_block(inner, package)
            case _:
                continue
