"""The read-only view of a vLLM tree that the rest of the auditor works on.

A tree is a mapping from a relative POSIX path (``vllm/envs.py``) to bytes. Nothing above this
layer opens a file on its own, so an archive, a git revision and a folder are the same to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from auditor.errors import SourceError

SourceKind = Literal["folder", "git", "installed", "wheel", "sdist", "index"]


class Tree(Protocol):
    """A read-only set of files, named by POSIX paths relative to the folder holding ``vllm/``.

    A tree that knows them without reading the file also has methods ``content_key`` and ``stamp``;
    ask through :func:`content_key` and :func:`stamp`, which answer for every tree.
    """

    def files(self) -> frozenset[str]:
        """Every regular file of the tree that an audit can use.

        Listed are everything below ``vllm/``, everything below ``requirements/``, the files at
        the top level, and ``*.dist-info`` metadata (:mod:`auditor.sources.selection`). Compiled
        files (``.so``) are listed, because their names say which extensions exist, but have no
        contents.
        """
        ...

    def read(self, path: str) -> bytes:
        """The bytes of ``path``.

        Raises:
            KeyError: ``path`` is not in :meth:`files`.
            SourceError: the file is listed but cannot be read (permissions, compiled file).
        """
        ...


def content_key(tree: Tree, path: str) -> bytes:
    """A 16-byte key of the contents of ``path``: equal exactly when the bytes are.

    It is BLAKE2b-128 (RFC 7693) of the bytes, whatever kind of tree they come from, so that
    facts about a file can be cached across sources.

    Raises:
        KeyError: ``path`` is not in the tree.
        SourceError: the file cannot be read.
    """
    known: Callable[[str], bytes] | None = getattr(tree, "content_key", None)
    return key_of(tree.read(path)) if known is None else known(path)


def stamp(tree: Tree, path: str) -> bytes | None:
    """An identity of the contents of ``path`` that is had without reading them, or None.

    Files with equal stamps have equal bytes, today and in a later run, in this tree and in any
    other; files with equal bytes may have different stamps. For a file on the disk it is the
    device, inode, size, and times of last modification and change, and None for a file that
    changed less than two seconds ago: a further change might not show. For an archive in the cache
    it is the content key, for a git revision the name of the blob. A caller that keeps what it
    read takes the stamp first, then reads.

    Raises:
        KeyError: ``path`` is not in the tree.
        SourceError: the file cannot be read.
    """
    known: Callable[[str], bytes | None] | None = getattr(tree, "stamp", None)
    return None if known is None else known(path)


def key_of(content: bytes) -> bytes:
    """BLAKE2b-128 of ``content``: what :func:`content_key` answers for these bytes."""
    from hashlib import blake2b

    return blake2b(content, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class MemoryTree:
    """A tree whose files are held in memory; None stands for contents that are not kept."""

    contents: Mapping[str, bytes | None]

    def files(self) -> frozenset[str]:
        """See :meth:`Tree.files`."""
        return frozenset(self.contents)

    def read(self, path: str) -> bytes:
        """See :meth:`Tree.read`."""
        content = self.contents[path]
        if content is None:
            raise contents_not_kept(path)
        return content


def contents_not_kept(path: str) -> SourceError:
    """The error of reading a file of which only the name is part of a tree."""
    return SourceError(
        "only the name of this file is known, its contents are not text that an audit reads",
        where=path,
    )


class SourceProblem(NamedTuple):
    """A part of a source that was left out, and why. It is reported, never dropped silently."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where a vLLM tree came from.

    Attributes:
        kind: how it was opened.
        version: the release it is (``"0.30.0"``), or None when the tree does not say.
        origin: the source as the user would recognise it (``vllm-0.30.0.tar.gz``); for people
            only, it may hold a path and never goes into a machine-readable report.
        why: why this source was taken (``given by --vllm``).
        tree: the files.
        problems: members that were left out (a link, a name with ``..``), in order of path.
        notes: remarks on how the source was opened and read, for people (``a damaged entry of
            the cache was discarded``); the tree itself is complete. More can be added while files
            are read, so show them at the end.
    """

    kind: SourceKind
    version: str | None
    origin: str
    why: str
    tree: Tree
    problems: tuple[SourceProblem, ...] = ()
    notes: Sequence[str] = ()

    @property
    def label(self) -> str:
        """The name used in every report, the same for one release however it was opened."""
        return f"vllm {self.version}" if self.version else "vllm (unknown version)"

    @property
    def headline(self) -> str:
        """The first line for a person: ``vllm 0.33.0 (sdist from the package index): why``."""
        return f"{self.label} ({self._opened_as()}): {self.why}"

    def _opened_as(self) -> str:
        if self.kind == "index":
            form = "wheel" if self.origin.endswith(".whl") else "sdist"
            return f"{form} from the package index"
        if self.kind == "git":
            return f"git revision {self.origin}"
        if self.kind == "installed":
            return f"installed in {self.origin}"
        return f"{self.kind} {self.origin}"
