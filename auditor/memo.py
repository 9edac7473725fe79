"""Keeps whole answers, so that a second run over the same files computes nothing.

An answer is kept with the content key of every file that was consulted for it. It counts as long
as all of them are the same. A module that changed without changing what its top level says (a
function's body, a comment) keeps the answer too, when neither the functions that were run nor the
lines that the evidence cites have changed; where they stand on other lines now, the document says
so (:mod:`auditor.moved`). So does one that defines more or less than before, where nothing speaks
of what that is (:mod:`auditor.unspoken`).

Everything here may be deleted, shared or damaged: an entry carries a digest, and one that is not
intact is computed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path

import msgspec

from auditor.coverage import Coverage, SourceInfo, sorted_coverage
from auditor.moved import Lines, NotMoved, cited_lines, relined
from auditor.program import FACTS, Files, Probe
from auditor.request import Request
from auditor.ruleset.files import digest_over, texts_in_force
from auditor.sources.cache import Cache, CacheConfig
from auditor.sources.tree import Source, stamp
from auditor.unspoken import Edit, edit_between, said, spoken
from auditor.words import mentioned, texts_of

_FOLDER = "answers"
#: The packages of code on which answers depend, beside the modules that stand alone.
_INNER = (
    "contracts", "document", "evaluation", "headpath", "plugins", "ruleset", "sources", "syntax",
)  # fmt: skip
_KEPT = 64
#: Probes that ask for lines of a file.
_LINES_OF = ("function", "block")
_DIGEST = 16


class Consulted(msgspec.Struct, frozen=True, array_like=True):
    """A file that an answer rests on.

    Attributes:
        key: the content key; empty when the file could not be read.
        stamp: an identity that is had without reading it, or empty.
        answers: what was asked of it, each with a digest of the answer.
        cited: lines that the document cites, each with a digest of its text.
    """

    path: str
    key: bytes
    stamp: bytes
    answers: tuple[tuple[Probe, bytes], ...]
    cited: tuple[tuple[int, bytes], ...]


class Grounds(msgspec.Struct, frozen=True):
    """What an answer rests on: the modules that were run, and what was asked of each file.

    ``keys`` and ``digests`` are the content keys of files that were read in another process, and
    digests of what they answered there.
    """

    read: frozenset[str]
    probes: Mapping[str, AbstractSet[Probe]]
    keys: Mapping[str, bytes] = msgspec.field(default_factory=dict)
    digests: Mapping[tuple[str, Probe], bytes] = msgspec.field(default_factory=dict)


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    read: tuple[str, ...]
    consulted: tuple[Consulted, ...]
    coverage: Coverage


@cache
def tool_digest() -> bytes:
    """A digest of the code and the rules that answers depend on."""
    package = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=16)
    folders = [package, *(package / name for name in _INNER)]
    rules = package / "rules" if (package / "rules").is_dir() else package.parent / "rules"
    files = [path for folder in folders for path in folder.glob("*.py")]
    for path in sorted([*files, *rules.rglob("*.toml")]):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.digest()


class Memo:
    """Answers by what was asked, in one folder; without a folder it keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._cache = Cache(CacheConfig(folder))

    def name(self, source: Source, request: Request, beside: object = ()) -> str:
        """The name of the entry for a request to a source with this list of files.

        ``beside`` is what else the answer depends on, such as plugins over the source.
        """
        digest = hashlib.blake2b(tool_digest(), digest_size=16)
        problems = [(problem.path, problem.reason) for problem in source.problems]
        asked = (request, digest_over(request.rules), beside)
        digest.update(msgspec.msgpack.encode((source.version, problems, asked)))
        digest.update("\0".join(sorted(source.tree.files())).encode("utf-8", "surrogateescape"))
        return f"{_FOLDER}/{digest.hexdigest()}"

    def load(
        self, name: str, files: Files, source: Source, *, own_python: bool = False
    ) -> Coverage | None:
        """The kept answer, if every file that it rests on still says the same.

        With ``own_python``, modules of Python itself are not what they are elsewhere.
        Where it is not, what was asked of files here is no ground of the answer that is made then.
        """
        blob = self._cache.read(name)
        entry = _opened(blob) if blob is not None else None
        if blob is None or entry is None:
            return None
        coverage = self._still_so(blob, entry, files, source, own_python)
        if coverage is None:
            files.forget_asked()
        return coverage

    def _still_so(
        self, blob: bytes, entry: _Entry, files: Files, source: Source, own_python: bool
    ) -> Coverage | None:
        modules = frozenset(entry.read)
        edits: dict[str, Edit] = {}
        for item in entry.consulted:
            edit = _edit_of(item, files, source, is_module=item.path in modules)
            if edit is None or (own_python and edit.names):
                return None
            if edit.names or edit.moves:
                edits[item.path] = edit
        names = frozenset[str]().union(*(edit.names for edit in edits.values()))
        if names:
            probes = {item.path: [probe for probe, _ in item.answers] for item in entry.consulted}
            said_here = any(name.encode() in blob for name in names)
            shown = texts_of(entry.coverage) if said_here else ()
            others = (*texts_in_force(), *shown)
            if spoken(edits, files, probes, others):
                return None
        moved = {path: edit.lines for path, edit in edits.items() if edit.moves}
        try:
            coverage: Coverage = relined(entry.coverage, moved)
        except NotMoved:
            return None
        digest = digest_of({path: files.key(path) for path in entry.read})
        info = SourceInfo(source.label, source.version, digest)
        return msgspec.structs.replace(
            sorted_coverage(coverage) if moved else coverage, source=info
        )

    def consulted(self, name: str) -> tuple[str, ...]:
        """The files that a kept answer rests on; none where there is none."""
        blob = self._cache.read(name)
        entry = _opened(blob) if blob is not None else None
        return tuple(item.path for item in entry.consulted) if entry is not None else ()

    def store(
        self,
        name: str,
        coverage: Coverage,
        files: Files,
        source: Source,
        grounds: Grounds,
    ) -> None:
        """Keep an answer with the files that it rests on."""
        lines: dict[str, set[int]] = {}
        for path, line in cited_lines(coverage):
            lines.setdefault(path, set()).add(line)
        consulted = tuple(
            Consulted(
                path,
                grounds.keys.get(path) or files.key(path),
                stamp(source.tree, path) or b"",
                tuple(
                    (probe, grounds.digests.get((path, probe)) or answer_digest(files, path, probe))
                    for probe in sorted(grounds.probes[path])
                ),
                tuple((n, _line_digest(files, path, n)) for n in sorted(lines.get(path, ()))),
            )
            for path in sorted(grounds.probes)
        )
        payload = msgspec.msgpack.encode(_Entry(tuple(sorted(grounds.read)), consulted, coverage))
        self._cache.write(name, hashlib.blake2b(payload, digest_size=_DIGEST).digest() + payload)
        self._prune()

    def _prune(self) -> None:
        """Keep the newest entries only."""
        folder = self._cache.folder
        if folder is None:
            return
        names = self._cache.names(_FOLDER)
        if len(names) > _KEPT:
            aged = sorted(names, key=lambda name: _modified(folder / _FOLDER / name))
            for name in aged[: len(names) - _KEPT]:
                (folder / _FOLDER / name).unlink(missing_ok=True)


def digest_of(keys: Mapping[str, bytes]) -> str:
    """The digest of a set of files: SHA-256 over their paths and content keys, in order."""
    digest = hashlib.sha256()
    for path in sorted(keys):
        digest.update(f"{path}\0".encode())
        digest.update(keys[path])
    return f"sha256:{digest.hexdigest()}"


def answer_digest(files: Files, path: str, probe: Probe) -> bytes:
    """A digest of what a file answers to a probe."""
    kind, name, _, start, end = probe
    match kind:
        case "facts" | "grammar":
            content = files.digest(kind, path)
        case "function" | "block":
            content = files.between(path, start, end)
        case "stores":
            from auditor.loading import stores_in

            content = repr(stores_in(files.text(path))).encode()
        case "sets":
            from auditor.loading import stores_in

            content = repr(sorted(name for name, _ in stores_in(files.text(path)))).encode()
        case "mentions":
            text = files.text(path)
            mentioned = isinstance(text, bytes) and name.encode() in text
            content = files.key(path) if mentioned else b""
        case "guards":
            from auditor.engine import guards_in

            content = repr(guards_in(files.text(path), path, name)).encode()
        case "namespace" | "attribute":
            # What a run looked for there, which no text of the file answers.
            content = b""
        case _:
            content = files.key(path)
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        # Another run has removed it already.
        return 0.0


def _opened(blob: bytes) -> _Entry | None:
    digest, payload = blob[:_DIGEST], blob[_DIGEST:]
    if hashlib.blake2b(payload, digest_size=_DIGEST).digest() != digest:
        return None
    try:
        return msgspec.msgpack.decode(payload, type=_Entry)
    except msgspec.DecodeError:
        # Written by another version of the structures.
        return None


def _edit_of(item: Consulted, files: Files, source: Source, *, is_module: bool) -> Edit | None:
    """What was done to a file, where what was asked of it has the same answers; None elsewhere."""
    # A file that could not be read has no key; whether it is still so, reading it says.
    if item.key and item.stamp and stamp(source.tree, item.path) == item.stamp:
        files.trust(item.path, item.key)
        return Edit({})
    if item.key and files.key(item.path) == item.key:
        return Edit({})
    edit: Edit | None = Edit({})
    for probe, answer in item.answers:
        if probe[0] == FACTS and answer_digest(files, item.path, probe) != answer:
            before = files.facts_before(item.path, item.key)
            edit = edit_between(before, files.facts(item.path)) if before is not None else None
    if edit is None:
        return None
    lines = edit.lines
    same = not edit.moves
    read: list[bytes] = []
    for probe, answer in item.answers:
        if probe[0] != FACTS:
            now = _probe_now(probe, lines, same)
            if now is None or answer_digest(files, item.path, now) != answer:
                return None
            if edit.names:
                read.extend(said(files, item.path, now))
    if edit.names and (not is_module or mentioned(edit.names, read)):
        return None
    for number, text in item.cited:
        now_at = lines.get(number, number if same else 0)
        if _line_digest(files, item.path, now_at) != text:
            return None
    return edit


def _probe_now(probe: Probe, lines: Lines, same: bool) -> Probe | None:
    """A probe where it is now; lines of a function or a class go where it went."""
    kind, name, line, start, end = probe
    if kind not in _LINES_OF:
        return probe
    moved = lines.get(start, start if same else None)
    if moved is None:
        return None
    by = moved - start
    if lines.get(end, end + by) != end + by:
        # What stands there is shorter or longer now.
        return None
    lines.update({number: number + by for number in range(start, end + 1)})
    return kind, name, line + by, start + by, end + by


def _line_digest(files: Files, path: str, number: int) -> bytes:
    return hashlib.blake2b(files.line(path, number).encode(), digest_size=8).digest()
