"""The read-only view of a vLLM tree that the rest of the auditor works on.

A tree is a mapping from a relative POSIX path (``vllm/envs.py``) to bytes. Nothing above this
layer opens a file on its own, so an archive, a git revision and a folder are the same to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

SourceKind = Literal["folder", "git", "installed", "wheel", "sdist", "index"]


class Tree(Protocol):
    """A read-only set of files, named by POSIX paths relative to the folder holding ``vllm/``."""

    def files(self) -> frozenset[str]:
        """Every regular file that can be read.

        Only what an audit can use is listed: everything below ``vllm/``, everything below
        ``requirements/``, the files at the top level, and ``*.dist-info`` metadata.
        """
        ...

    def read(self, path: str) -> bytes:
        """The bytes of ``path``.

        Raises:
            KeyError: ``path`` is not in :meth:`files`.
            SourceError: the file is listed but cannot be read (permissions, corrupt member).
        """
        ...


@dataclass(frozen=True, slots=True)
class SourceProblem:
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
    """

    kind: SourceKind
    version: str | None
    origin: str
    why: str
    tree: Tree
    problems: tuple[SourceProblem, ...] = field(default=())

    @property
    def label(self) -> str:
        """The name used in every report, the same for one release however it was opened."""
        return f"vllm {self.version}" if self.version else "vllm (unknown version)"
