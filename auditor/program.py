"""The files of a source as modules, with their facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor import facts as f
from auditor.errors import SourceError
from auditor.evaluation.import_statements import Program
from auditor.factcache import FactCache, Parsed, decode, encode, facts_key
from auditor.processes import Worker
from auditor.sources.tree import Tree, key_of
from auditor.syntax import function_facts, module_facts

#: Fewer bytes than this are parsed faster than they are handed over.
_WORTH_SHARING = 200_000


#: What was asked of a file: its facts, a function (name, line, start, end), a block of its lines,
#: its guards, the attributes it sets, its text.
Probe = tuple[str, str, int, int, int]


class Files:
    """Reads files of a tree once, and keeps what failed."""

    def __init__(self, tree: Tree, cache: FactCache | None = None) -> None:
        self._tree = tree
        self._cache = cache or FactCache(None)
        self._sources: dict[str, bytes | f.Unparsed] = {}
        self._lines: dict[str, list[bytes]] = {}
        self._facts: dict[str, Parsed] = {}
        self._functions: dict[tuple[str, int], f.FunctionFacts | f.Unparsed] = {}
        self._keys: dict[str, bytes] = {}
        self._probes: dict[str, set[Probe]] = {}

    def probes(self) -> dict[str, tuple[Probe, ...]]:
        """What was asked of each file so far, single lines apart."""
        return {path: tuple(sorted(asked)) for path, asked in self._probes.items()}

    def note(self, path: str, probe: Probe) -> None:
        """Take note that something was asked of a file."""
        self._probes.setdefault(path, set()).add(probe)

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
        self.note(path, ("facts", "", 0, 0, 0))
        facts = self._facts.get(path)
        if facts is None:
            self.load([path], None)
            facts = self._facts[path]
        return facts

    def load(self, paths: Sequence[str], worker: Worker | None) -> None:
        """Have the facts of several files at hand: from the cache, or parsed, in two processes."""
        keys: dict[bytes, list[str]] = {}
        for path in paths:
            if path not in self._facts:
                keys.setdefault(facts_key(self.key(path), _root(path)), []).append(path)
        for key, facts in self._cache.load(keys):
            for path in keys.pop(key):
                self._facts[path] = facts
        self._parse(keys, worker)

    def _parse(self, keys: dict[bytes, list[str]], worker: Worker | None) -> None:
        """Parse one file for each key, and keep the facts for the next run."""
        jobs: list[tuple[bytes, str, bytes]] = []
        for key, paths in keys.items():
            source = self.text(paths[0])
            if isinstance(source, bytes):
                jobs.append((key, paths[0], source))
            else:
                self._facts.update(dict.fromkeys(paths, source))
        mine, theirs = _shared(jobs) if worker is not None else (jobs, [])
        sent = bool(theirs) and worker is not None and worker.send([job[1:] for job in theirs])
        blobs = [encode(_parsed(path, source)) for _, path, source in mine]
        answer = worker.receive() if sent and worker is not None else None
        blobs += answer or parse_batch([job[1:] for job in theirs])
        done = [job[0] for job in (*mine, *theirs)]
        for key, blob in zip(done, blobs, strict=True):
            facts = decode(blob)
            for path in keys[key]:
                self._facts[path] = facts
        self._cache.store(zip(done, blobs, strict=True))

    def function(self, path: str, func: f.Func) -> f.FunctionFacts | f.Unparsed:
        """The body of a function that stands in ``path``."""
        key = (path, func.line)
        if key not in self._functions:
            self.note(path, ("function", func.name, func.line, func.start, func.end))
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


def _root(path: str) -> str:
    return path.partition("/")[0]


def _parsed(path: str, source: bytes) -> Parsed:
    return module_facts(source, _root(path))


def parse_batch(batch: Sequence[tuple[str, bytes]]) -> list[bytes]:
    """Encoded facts of each file; what a worker process does."""
    return [encode(_parsed(path, source)) for path, source in batch]


def _shared(
    jobs: list[tuple[bytes, str, bytes]],
) -> tuple[list[tuple[bytes, str, bytes]], list[tuple[bytes, str, bytes]]]:
    """Two halves of about the same number of bytes."""
    total = sum(len(source) for _, _, source in jobs)
    if total < _WORTH_SHARING:
        return jobs, []
    halves: tuple[list[tuple[bytes, str, bytes]], list[tuple[bytes, str, bytes]]] = ([], [])
    sizes = [0, 0]
    for job in sorted(jobs, key=lambda job: -len(job[2])):
        lighter = sizes.index(min(sizes))
        halves[lighter].append(job)
        sizes[lighter] += len(job[2])
    return halves


def locate_modules(
    files: Iterable[str], roots: Iterable[str]
) -> tuple[dict[str, tuple[str, bool]], frozenset[str]]:
    """Dotted names of the modules below ``roots``, and of folders without ``__init__.py``.

    A package hides a module of the same name, as in Python's ``FileFinder``.
    """
    wanted = tuple(f"{root}/" for root in roots)
    modules: dict[str, tuple[str, bool]] = {}
    folders: set[str] = set()
    for path in files:
        if not path.endswith(".py") or not path.startswith(wanted):
            continue
        folder, _, name = path.rpartition("/")
        folders.add(folder)
        if name == "__init__.py":
            modules[folder.replace("/", ".")] = (path, True)
        else:
            modules.setdefault(path[:-3].replace("/", "."), (path, False))
    for folder in list(folders):
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            folders.add(folder)
    names = {folder.replace("/", ".") for folder in folders}
    return modules, frozenset(names - modules.keys())


def program_of(files: Files, paths: Iterable[str], roots: Iterable[str]) -> Program:
    """The program that an import run works on."""
    modules, namespaces = locate_modules(sorted(paths), roots)
    return Program(modules, namespaces, files.facts, files.function)
