"""The files of a source, and what is read off them.

The parser is imported where something is parsed: a run over files that are all known parses none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from auditor import facts as f
from auditor.errors import SourceError
from auditor.factcache import FactCache, Parsed, decode, digest_of, encode, facts_key
from auditor.sources.tree import Tree, key_of

if TYPE_CHECKING:
    import ast

    from auditor.syntax.blocks import Blocks

#: What can be read off a file as a whole: its facts, or whether its grammar is right.
FACTS, GRAMMAR = "facts", "grammar"
#: What a run may note of a module: that all its names were looked at at once, or that its code
#: asked for an attribute by a text, which may be spelled in any way.
NAMESPACE, ATTRIBUTE = "namespace", "attribute"

#: What was asked of a file: its facts, its grammar, a function (name, line, start, end), a block
#: of its lines, its guards, the attributes it sets with lines (stores) or without (sets), its text.
Probe = tuple[str, str, int, int, int]

#: Frames of Python that reading files and following them may need: imports inside each other take
#: some frames each, and so do expressions. It is set before the first file is read, so that what
#: can be read does not depend on what was done before.
_FRAMES = 10_000

#: What a file is read as whose grammar is right: facts of nothing.
_IN_ORDER = f.ModuleFacts(())

_Known = TypeVar("_Known")


class Job(NamedTuple):
    """A file to parse: the key of the outcome, what is wanted of it, where it is, and its bytes.

    Files of the same bytes below one root have the same outcome.
    """

    key: bytes
    kind: str
    paths: tuple[str, ...]
    source: bytes

    @property
    def asked(self) -> tuple[str, bytes]:
        """What a parser of facts is told of it."""
        return self.paths[0], self.source


class Files:
    """Reads files of a tree once, and keeps what failed."""

    def __init__(self, tree: Tree, cache: FactCache | None = None) -> None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))
        self._tree = tree
        self._cache = cache or FactCache(None)
        self._sources: dict[str, bytes | f.Unparsed] = {}
        self._lines: dict[str, list[bytes]] = {}
        self._parsed: dict[str, dict[str, Parsed]] = {FACTS: {}, GRAMMAR: {}}
        self._functions: dict[tuple[str, int], f.FunctionFacts | f.Unparsed] = {}
        self._blocks: dict[str, Blocks] = {}
        self._keys: dict[str, bytes] = {}
        self._probes: dict[str, set[Probe]] = {}
        self._noted: list[tuple[str, Probe]] = []
        self._unsaved: list[tuple[bytes, bytes, bytes]] = []
        self._digests: dict[tuple[str, str], bytes] = {}

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
        files._digests = {k: one for k, one in self._digests.items() if k[1] not in skipped}
        files._blocks = kept(self._blocks)
        files._functions = {k: one for k, one in self._functions.items() if k[0] not in skipped}
        return files

    def probes(self) -> dict[str, frozenset[Probe]]:
        """What was asked of each file so far, single lines apart."""
        return {path: frozenset(asked) for path, asked in self._probes.items()}

    def note(self, path: str, probe: Probe) -> None:
        """Take note that something was asked of a file."""
        asked = self._probes.setdefault(path, set())
        if probe not in asked:
            asked.add(probe)
            self._noted.append((path, probe))

    def noted(self, start: int) -> list[tuple[str, Probe]]:
        """What was asked since so many things had been, in order, each with its file."""
        return self._noted[start:]

    def forget_asked(self) -> None:
        """Take it that nothing was asked so far."""
        self._probes.clear()
        self._noted.clear()

    def key(self, path: str) -> bytes:
        """The content key of a file; empty when it cannot be read."""
        if path not in self._keys:
            known = getattr(self._tree, "content_key", None)
            if known is None:
                self.text(path)
                return self._keys[path]
            try:
                self._keys[path] = known(path)
            except SourceError as error:
                self._sources[path] = _unreadable(error)
                self._keys[path] = b""
        return self._keys[path]

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
                source = _unreadable(error)
            self._sources[path] = source
            if path not in self._keys:
                self._keys[path] = key_of(source) if isinstance(source, bytes) else b""
        return source

    def facts(self, path: str) -> Parsed:
        """The facts of a module."""
        self.note(path, (FACTS, "", 0, 0, 0))
        facts = self._parsed[FACTS].get(path)
        if facts is None:
            self.load([path])
            facts = self._parsed[FACTS][path]
        return facts

    def has(self, kind: str, path: str) -> bool:
        """Whether what a file was parsed for is at hand."""
        return path in self._parsed[kind]

    def facts_before(self, path: str, key: bytes) -> Parsed | None:
        """The facts that a file had when its content key was ``key``, if they are still kept."""
        wanted = _key_of(FACTS, key, path)
        return next((facts for _, facts, _ in self._cache.load([wanted])), None)

    def grammar(self, path: str) -> f.Unparsed | None:
        """Why a file does not parse, function bodies included; None when it does."""
        self.note(path, (GRAMMAR, "", 0, 0, 0))
        if path not in self._parsed[GRAMMAR]:
            self.check([path])
        outcome = self._parsed[GRAMMAR][path]
        return outcome if isinstance(outcome, f.Unparsed) else None

    def digest(self, kind: str, path: str) -> bytes:
        """What tells the facts or the grammar of a file from those of another: 8 bytes."""
        if not self.has(kind, path):
            self._have(kind, [path])
        return self._digests[kind, path]

    def load(self, paths: Sequence[str]) -> None:
        """Have the facts of several files at hand."""
        self._have(FACTS, paths)

    def check(self, paths: Sequence[str]) -> None:
        """Have it at hand whether several files parse."""
        self._have(GRAMMAR, paths)

    def _have(self, kind: str, paths: Sequence[str]) -> None:
        jobs = self.wanted(kind, paths)
        if jobs:
            self.parse(jobs)
            self.save()

    def wanted(self, kind: str, paths: Iterable[str]) -> list[Job]:
        """What has to be parsed for it: neither at hand nor in the cache; one job for each key."""
        keys: dict[bytes, list[str]] = {}
        for path in paths:
            if self.has(kind, path):
                continue
            if self.key(path):
                keys.setdefault(_key_of(kind, self.key(path), path), []).append(path)
            else:
                why = self.text(path)
                assert isinstance(why, f.Unparsed)
                self._set(kind, [path], why, digest_of(encode(why)))
        for key, parsed, digest in self._cache.load(keys):
            self._set(kind, keys.pop(key), parsed, digest)
        jobs: list[Job] = []
        for key, same in keys.items():
            source = self.text(same[0])
            if isinstance(source, bytes):
                jobs.append(Job(key, kind, tuple(same), source))
            else:
                self._set(kind, same, source, digest_of(encode(source)))
        return jobs

    def parse(self, jobs: Iterable[Job]) -> None:
        """Have the outcome of jobs at hand by parsing them in this process.

        Of a file that is parsed in full, so are its classes and functions afterwards.
        """
        for job in jobs:
            if job.kind == FACTS:
                self.keep([job], parse_batch([job.asked]))
                continue
            from auditor.syntax.blocks import blocks

            found = blocks(job.source)
            if not isinstance(found, f.Unparsed):
                self._blocks[job.paths[0]] = found
            self.keep([job], [encode(found if isinstance(found, f.Unparsed) else _IN_ORDER)])

    def keep(self, jobs: Sequence[Job], blobs: Sequence[bytes]) -> None:
        """Have the outcome of jobs at hand, and for the next run once it is saved."""
        for job, blob in zip(jobs, blobs, strict=True):
            digest = digest_of(blob)
            self._set(job.kind, job.paths, decode(blob), digest)
            self._unsaved.append((job.key, digest, blob))

    def _set(self, kind: str, paths: Iterable[str], parsed: Parsed, digest: bytes) -> None:
        for path in paths:
            self._parsed[kind][path] = parsed
            self._digests[kind, path] = digest

    def save(self, at_least: int = 1) -> None:
        """Put what was parsed into the cache, where it is at least so many outcomes."""
        if len(self._unsaved) >= at_least:
            self._cache.store(self._unsaved)
            self._unsaved.clear()

    def function(self, path: str, func: f.Func) -> f.FunctionFacts | f.Unparsed:
        """The body of a function that stands in ``path``."""
        key = (path, func.line)
        if key not in self._functions:
            self.note(path, ("function", func.name, func.line, func.start, func.end))
            from auditor.syntax.function import function_facts

            source = self.text(path)
            self._functions[key] = (
                source
                if isinstance(source, f.Unparsed)
                else function_facts(self._split(path), func.start, func.end, func.name)
            )
        return self._functions[key]

    def lines(self, path: str) -> list[bytes]:
        """The lines of a file; none where it cannot be read."""
        self.note(path, ("text", "", 0, 0, 0))
        return self._split(path)

    def block(self, path: str, start: int, end: int) -> bytes:
        """Lines ``start`` to ``end`` of a file, counted from 1; fewer where it has fewer."""
        self.note(path, ("block", "", start, start, end))
        return self.between(path, start, end)

    def between(self, path: str, start: int, end: int) -> bytes:
        """As :meth:`block`, for one who notes himself what he asks."""
        return b"\n".join(self._split(path)[start - 1 : end])

    def definition(self, path: str, start: int, end: int) -> ast.stmt | None:
        """The class or function in a block of lines, where its file was parsed in full here.

        It counts as if the block had been asked for.
        """
        found = self._blocks.get(path, {}).get((start, end))
        if found is not None:
            self.note(path, ("block", "", start, start, end))
        return found

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


def _unreadable(error: SourceError) -> f.Unparsed:
    return f.Unparsed(f"cannot be read: {error.what}", 0)


def _key_of(kind: str, content_key: bytes, path: str) -> bytes:
    return facts_key(content_key, f"{kind} {_root(path)}")


def _root(path: str) -> str:
    return path.partition("/")[0]


def parse_batch(batch: Sequence[tuple[str, bytes]]) -> list[bytes]:
    """The facts of each file, encoded; what a worker process does."""
    from auditor.syntax.module import module_facts

    return [_encoded(module_facts(source, _root(path))) for path, source in batch]


def _encoded(parsed: Parsed) -> bytes:
    try:
        return encode(parsed)
    except RecursionError:
        return encode(f.Unparsed("is nested too deeply to be kept", 0))
