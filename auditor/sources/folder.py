"""A folder as a tree: only what an audit can use is listed, links never lead out of it."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from auditor.errors import SourceError
from auditor.sources.names import is_utf8, printable
from auditor.sources.selection import (
    DEFAULT_LIMITS,
    PACKAGE_MARKER,
    VLLM,
    Selection,
    has_contents,
)
from auditor.sources.tree import SourceProblem, contents_not_kept

# On Windows a file is opened as text otherwise; elsewhere opening a pipe could wait for ever.
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_STEP = 1 << 20
_SETTLED = 2 * 10**9
"""Nanoseconds: the coarsest clock of a file system in use (FAT) ticks every two seconds."""


class FolderTree:
    """The listed files below ``root``, read from the disk when they are asked for."""

    def __init__(self, root: Path, names: frozenset[str]) -> None:
        self.root = root
        self._prefix = os.path.join(root, "")
        self._names = names

    def files(self) -> frozenset[str]:
        """See :meth:`auditor.sources.tree.Tree.files`."""
        return self._names

    def read(self, path: str) -> bytes:
        """See :meth:`auditor.sources.tree.Tree.read`."""
        place = self._place(path)
        try:
            return _contents(place, path)
        except OSError as error:
            raise SourceError(f"cannot be read ({error.strerror})", where=path) from error

    def stamp(self, path: str) -> bytes | None:
        """See :func:`auditor.sources.tree.stamp`."""
        place = self._place(path)
        try:
            status = os.stat(place)
        except OSError as error:
            raise SourceError(f"cannot be read ({error.strerror})", where=path) from error
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) < _SETTLED:
            return None
        return b"%d %d %d %d %d" % (
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )

    def _place(self, path: str) -> str:
        if path not in self._names:
            raise KeyError(path)
        if not has_contents(path):
            raise contents_not_kept(path)
        return self._prefix + path


def package_root(folder: Path) -> Path | None:
    """The folder holding ``vllm/``: ``folder`` itself, or its parent when it is the package."""
    if (folder / PACKAGE_MARKER).is_file():
        return folder
    if folder.name == "vllm" and (folder / "__init__.py").is_file():
        return folder.parent
    return None


def list_folder(
    root: Path, selection: Selection = VLLM
) -> tuple[FolderTree, tuple[SourceProblem, ...]]:
    """The tree below ``root``, and what was left out of it, in order of path.

    Raises:
        SourceError: ``root`` or its ``vllm`` folder cannot be listed.
    """
    listing = _Listing(root, selection)
    listing.walk()
    return FolderTree(root, frozenset(listing.names)), tuple(sorted(listing.problems))


class _Listing:
    """One walk over a folder with :func:`os.scandir`; no entry is opened."""

    def __init__(self, root: Path, selection: Selection) -> None:
        self.selection = selection
        self.root = os.path.join(root, "")
        self.real_root = os.path.join(os.path.realpath(root), "")
        self.names: list[str] = []
        self.problems: list[SourceProblem] = []

    def walk(self) -> None:
        pending = [""]
        while pending:
            folder = pending.pop()
            for entry in self._entries(folder):
                name = folder + entry.name
                if not is_utf8(name):
                    if folder or not entry.is_dir(follow_symlinks=False):
                        self._leave_out(printable(name), "its name is not UTF-8")
                elif entry.is_symlink():
                    self._add_link(entry, folder, name)
                elif entry.is_file(follow_symlinks=False):
                    if self.selection.lists(name):
                        self.names.append(name)
                elif entry.is_dir(follow_symlinks=False):
                    if self.selection.enters(name):
                        pending.append(name + "/")
                elif folder or self.selection.enters(name):
                    self._leave_out(name, "not a regular file")

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.root + folder) as entries:
                return list(entries)
        except OSError as error:
            if folder in ("", "vllm/"):
                raise SourceError(
                    f"this folder cannot be listed ({error.strerror})",
                    where=self.root + folder,
                    next_step="Check its permissions.",
                ) from error
            self._leave_out(folder.rstrip("/"), f"the folder cannot be listed ({error.strerror})")
            return []

    def _add_link(self, entry: os.DirEntry[str], folder: str, name: str) -> None:
        target = os.path.realpath(entry.path)
        if os.path.isdir(target):
            # At the top level only a link in the place of a listed folder hides something.
            if folder or self.selection.enters(name):
                self._leave_out(name, "a symbolic link to a folder is not followed")
        elif not target.startswith(self.real_root):
            self._leave_out(name, "a symbolic link out of the folder is not followed")
        elif os.path.isfile(target):
            if self.selection.lists(name):
                self.names.append(name)
        else:
            self._leave_out(name, "a symbolic link to nothing that can be read")

    def _leave_out(self, path: str, reason: str) -> None:
        self.problems.append(SourceProblem(path, reason))


def _contents(place: str, path: str) -> bytes:
    """The bytes of the file at ``place``, with no more system calls than it takes."""
    descriptor = os.open(place, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise SourceError("is not a regular file any more", where=path)
        limit = DEFAULT_LIMITS.member
        content = os.read(descriptor, min(status.st_size, limit) + 1)
        # A size that is not the one stated: the file is being written, or it is a virtual one.
        while len(content) != status.st_size and len(content) <= limit:
            more = os.read(descriptor, _STEP)
            if not more:
                break
            content += more
    finally:
        os.close(descriptor)
    if len(content) > limit:
        raise SourceError(
            f"larger than {limit >> 20} MiB, which no vLLM source file is", where=path
        )
    return content
