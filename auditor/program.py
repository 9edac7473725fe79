"""The files of a source, and what is read off them.

The parser is imported where something is parsed: a run over files that are all known parses none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from auditor import facts as f
from auditor.errors import SourceError
from auditor.factcache import FactCache, Parsed, decode, encode, facts_key
from auditor.sources.tree import Tree, key_of

if TYPE_CHECKING:
    from auditor.processes import Worker

#: Fewer bytes than this are parsed faster than they are handed over.
_WORTH_SHARING = 200_000

#: What can be read off a file as a whole: its facts, or whether its grammar is right.
_FACTS, _GRAMMAR = "facts", "grammar"

#: What was asked of a file: its facts, its grammar, a function (name, line, start, end), a block
#: of its lines, its guards, the attributes it sets with lines (stores) or without (sets), its text.
Probe = tuple[str, str, int, int, int]

_Known = TypeVar("_Known")

#: A file to parse: the key of the outcome, what is wanted of it, its path and its bytes.
Job = tuple[bytes, str, str, bytes]


class Files:
    """Reads files of a tree once, and keeps what failed."""

    def __init__(self, tree: Tree, cache: FactCache | None = None) -> None:
        self._tree = tree
        self._cache = cache or FactCache(None)
        self._sources: dict[str, bytes | f.Unparsed] = {}
        self._lines: dict[str, list[bytes]] = {}
        self._parsed: dict[str, dict[str, Parsed]] = {_FACTS: {}, _GRAMMAR: {}}
        self._functions: dict[tuple[str, int], f.FunctionFacts | f.Unparsed] = {}
        self._keys: dict[str, bytes] = {}
        self._probes: dict[str, set[Probe]] = {}
        self._noted: list[tuple[str, Probe]] = []

    def over(self, tree: Tree, changed: Iterable[str]) -> Files:
        """Files of a tree that differs from this one in ``changed`` alone: the rest is known."""
        files = Files(tree, self._cache)
        skipped = frozenset(changed)

        def kept(known: Mapping[str, _Known]) -> dict[str, _Known]:
            return {path: one for path, one in known.items() if path not in skipped}

        files._sources, files._lines, files._keys = (
            kept(self._sources),
            kept(self._lines),
            kept(self._keys),
        )
        files._parsed = {kind: kept(known) for kind, known in self._parsed.items()}
        files._functions = {k: one for k, one in self._functions.items() if k[0] not in skipped}
        return files

    def probes(self) -> dict[str, tuple[Probe, ...]]:
        """What was asked of each file so far, single lines apart."""
        return {path: tuple(sorted(asked)) for path, asked in self._probes.items()}

    def note(self, path: str, probe: Probe) -> None:
        """Take note that something was asked of a file."""
        asked = self._probes.setdefault(path, set())
        if probe not in asked:
            asked.add(probe)
            self._noted.append((path, probe))

    def noted(self, start: int) -> list[tuple[str, Probe]]:
        """What was asked since so many things had been, in order, each with its file."""
        return self._noted[start:]

    def key(self, path: str) -> bytes:
        """The content key of a file; empty when it cannot be read."""
        key = self._keys.get(path)
        if key is None:
            known = getattr(self._tree, "content_key", None)
            try:
                key = known(path) if known is not None else key_of(self._tree.read(path))
            except SourceError:
                key = b""
            self._keys[path] = key
        return key

    def trust(self, path: str, key: bytes) -> None:
        """Take it that a file has this key, since its identity has not changed."""
        self._keys[path] = key

    def source(self, path: str) -> bytes | f.Unparsed:
        """The bytes of a file, or why they cannot be read."""
        self.note(path, ("text", "", 0, 0, 0))
        return self.text(path)

    def text(self, path: str) -> bytes | f.Unparsed:
        """The bytes of a file for one who notes himself what he asks of it."""
        source = self._sources.get(path)
        if source is None:
            try:
                source = self._tree.read(path)
            except SourceError as error:
                source = f.Unparsed(f"cannot be read: {error.what}", 0)
            self._sources[path] = source
            if path not in self._keys:
                self._keys[path] = key_of(source) if isinstance(source, bytes) else b""
        return source

    def facts(self, path: str) -> Parsed:
        """The facts of a module."""
        self.note(path, (_FACTS, "", 0, 0, 0))
        facts = self._parsed[_FACTS].get(path)
        if facts is None:
            self.load([path], None)
            facts = self._parsed[_FACTS][path]
        return facts

    def facts_before(self, path: str, key: bytes) -> Parsed | None:
        """The facts that a file had when its content key was ``key``, if they are still kept."""
        wanted = _key_of(_FACTS, key, path)
        return dict(self._cache.load([wanted])).get(wanted)

    def grammar(self, path: str) -> f.Unparsed | None:
        """Why a file does not parse, function bodies included; None when it does."""
        self.note(path, (_GRAMMAR, "", 0, 0, 0))
        if path not in self._parsed[_GRAMMAR]:
            self.check([path], None)
        outcome = self._parsed[_GRAMMAR][path]
        return outcome if isinstance(outcome, f.Unparsed) else None

    def load(self, paths: Sequence[str], worker: Worker | None) -> None:
        """Have the facts of several files at hand: from the cache, or parsed, in two processes."""
        self._have(_FACTS, paths, worker)

    def check(self, paths: Sequence[str], worker: Worker | None) -> None:
        """Have it at hand whether several files parse, in the same way as their facts."""
        self._have(_GRAMMAR, paths, worker)

    def begin(self, paths: Sequence[str], worker: Worker | None) -> Callable[[], None]:
        """Have a second process parse several files; what comes back waits until it has."""
        keys, jobs = self._wanted(_FACTS, paths)
        if worker is None or not jobs:
            return lambda: self._parse(_FACTS, keys, jobs, None)
        sent = worker.send([job[1:] for job in jobs])

        def end() -> None:
            blobs = worker.receive() if sent else None
            self._keep(_FACTS, keys, jobs, blobs or parse_batch([job[1:] for job in jobs]))

        return end

    def _have(self, kind: str, paths: Sequence[str], worker: Worker | None) -> None:
        self._parse(kind, *self._wanted(kind, paths), worker)

    def _wanted(self, kind: str, paths: Sequence[str]) -> tuple[dict[bytes, list[str]], list[Job]]:
        """What is not at hand and in no cache: the files by key, and one job for each key."""
        known = self._parsed[kind]
        keys: dict[bytes, list[str]] = {}
        for path in paths:
            if path not in known:
                keys.setdefault(_key_of(kind, self.key(path), path), []).append(path)
        for key, parsed in self._cache.load(keys):
            known.update(dict.fromkeys(keys.pop(key), parsed))
        jobs: list[Job] = []
        for key, same in keys.items():
            source = self.text(same[0])
            if isinstance(source, bytes):
                jobs.append((key, kind, same[0], source))
            else:
                known.update(dict.fromkeys(same, source))
        return keys, jobs

    def _parse(
        self, kind: str, keys: dict[bytes, list[str]], jobs: list[Job], worker: Worker | None
    ) -> None:
        mine, theirs = _shared(jobs) if worker is not None else (jobs, [])
        sent = bool(theirs) and worker is not None and worker.send([job[1:] for job in theirs])
        blobs = parse_batch([job[1:] for job in mine])
        answer = worker.receive() if sent and worker is not None else None
        blobs += answer or parse_batch([job[1:] for job in theirs])
        self._keep(kind, keys, [*mine, *theirs], blobs)

    def _keep(
        self, kind: str, keys: dict[bytes, list[str]], jobs: list[Job], blobs: list[bytes]
    ) -> None:
        """Keep the outcome of jobs, for this run and the next."""
        done = [(job[0], blob) for job, blob in zip(jobs, blobs, strict=True)]
        for key, blob in done:
            self._parsed[kind].update(dict.fromkeys(keys[key], decode(blob)))
        self._cache.store(done)

    def function(self, path: str, func: f.Func) -> f.FunctionFacts | f.Unparsed:
        """The body of a function that stands in ``path``."""
        key = (path, func.line)
        if key not in self._functions:
            self.note(path, ("function", func.name, func.line, func.start, func.end))
            from auditor.syntax import function_facts

            source = self.text(path)
            self._functions[key] = (
                source
                if isinstance(source, f.Unparsed)
                else function_facts(source, func.start, func.end, func.name)
            )
        return self._functions[key]

    def lines(self, path: str) -> list[bytes]:
        """The lines of a file; none where it cannot be read."""
        self.note(path, ("text", "", 0, 0, 0))
        return self._split(path)

    def block(self, path: str, start: int, end: int) -> bytes:
        """Lines ``start`` to ``end`` of a file, counted from 1; fewer where it has fewer."""
        self.note(path, ("block", "", start, start, end))
        return b"\n".join(self._split(path)[start - 1 : end])

    def _split(self, path: str) -> list[bytes]:
        if path not in self._lines:
            source = self.text(path) if path else b""
            self._lines[path] = source.splitlines() if isinstance(source, bytes) else []
        return self._lines[path]

    def line(self, path: str, number: int) -> str:
        """The source of a line, without the white space around it; empty where there is none."""
        lines = self._split(path)
        if not 0 < number <= len(lines):
            return ""
        return lines[number - 1].decode("utf-8", "replace").strip()


def _key_of(kind: str, content_key: bytes, path: str) -> bytes:
    return facts_key(content_key, f"{kind} {_root(path)}")


def _root(path: str) -> str:
    return path.partition("/")[0]


def parse_batch(batch: Sequence[tuple[str, str, bytes]]) -> list[bytes]:
    """What each file is read as, encoded; what a worker process does.

    A file whose grammar is right says so by facts of nothing.
    """
    from auditor.syntax import grammar, module_facts

    return [
        encode(
            module_facts(source, _root(path))
            if kind == _FACTS
            else grammar(source) or f.ModuleFacts(())
        )
        for kind, path, source in batch
    ]


def _shared(jobs: list[Job]) -> tuple[list[Job], list[Job]]:
    """Two halves of about the same number of bytes."""
    total = sum(len(job[3]) for job in jobs)
    if total < _WORTH_SHARING:
        return jobs, []
    halves: tuple[list[Job], list[Job]] = ([], [])
    sizes = [0, 0]
    for job in sorted(jobs, key=lambda job: -len(job[3])):
        lighter = sizes.index(min(sizes))
        halves[lighter].append(job)
        sizes[lighter] += len(job[3])
    return halves
