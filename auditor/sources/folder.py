"""A folder as a tree: only what an audit can use is listed, links never lead out of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from auditor.errors import SourceError
from auditor.sources.limits import DEFAULT_LIMITS
from auditor.sources.names import is_utf8, printable
from auditor.sources.selection import PACKAGE_MARKER, has_contents, is_listed_folder
from auditor.sources.tree import SourceProblem, contents_not_kept


@dataclass(frozen=True, slots=True)
class FolderTree:
    """The listed files below ``root``, read from the disk when they are asked for."""

    root: Path
    names: frozenset[str]

    def files(self) -> frozenset[str]:
        """See :meth:`auditor.sources.tree.Tree.files`."""
        return self.names

    def read(self, path: str) -> bytes:
        """See :meth:`auditor.sources.tree.Tree.read`."""
        if path not in self.names:
            raise KeyError(path)
        if not has_contents(path):
            raise contents_not_kept(path)
        try:
            with open(self.root / path, "rb") as file:
                return _capped(file.read(DEFAULT_LIMITS.member + 1), path)
        except OSError as error:
            raise SourceError(f"cannot be read ({error.strerror})", where=path) from error


def package_root(folder: Path) -> Path | None:
    """The folder holding ``vllm/``: ``folder`` itself, or its parent when it is the package."""
    if (folder / PACKAGE_MARKER).is_file():
        return folder
    if folder.name == "vllm" and (folder / "__init__.py").is_file():
        return folder.parent
    return None


def list_folder(root: Path) -> tuple[FolderTree, tuple[SourceProblem, ...]]:
    """The tree below ``root``, and what was left out of it, in order of path.

    Raises:
        SourceError: ``root`` or its ``vllm`` folder cannot be listed.
    """
    listing = _Listing(root)
    listing.walk()
    return FolderTree(root, frozenset(listing.names)), tuple(sorted(listing.problems))


class _Listing:
    """One walk over a folder with :func:`os.scandir`; no entry is opened."""

    def __init__(self, root: Path) -> None:
        self.root = os.fspath(root)
        self.real_root = os.path.realpath(root)
        self.names: list[str] = []
        self.problems: list[SourceProblem] = []

    def walk(self) -> None:
        pending = [""]
        while pending:
            folder = pending.pop()
            for entry in self._entries(folder):
                name = folder + entry.name
                if self._is_folder_to_enter(entry, folder, name):
                    pending.append(name + "/")

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(os.path.join(self.root, folder)) as entries:
                yield from entries
        except OSError as error:
            if folder in ("", "vllm/"):
                raise SourceError(
                    f"this folder cannot be listed ({error.strerror})",
                    where=os.path.join(self.root, folder),
                    next_step="Check its permissions.",
                ) from error
            self._leave_out(folder.rstrip("/"), f"the folder cannot be listed ({error.strerror})")

    def _is_folder_to_enter(self, entry: os.DirEntry[str], folder: str, name: str) -> bool:
        if not folder and not entry.is_file(follow_symlinks=False):
            if not is_listed_folder(entry.name) and not entry.is_symlink():
                return False
        elif entry.name == "__pycache__":
            return False
        if not is_utf8(name):
            self._leave_out(printable(name), "its name is not UTF-8")
        elif entry.is_symlink():
            self._add_link(entry, folder, name)
        elif entry.is_file(follow_symlinks=False):
            self.names.append(name)
        elif entry.is_dir(follow_symlinks=False):
            return True
        else:
            self._leave_out(name, "not a regular file")
        return False

    def _add_link(self, entry: os.DirEntry[str], folder: str, name: str) -> None:
        target = os.path.realpath(entry.path)
        if os.path.isdir(target):
            # At the top level only a link in the place of a listed folder hides something.
            if folder or is_listed_folder(name):
                self._leave_out(name, "a symbolic link to a folder is not followed")
        elif not target.startswith(self.real_root.rstrip(os.sep) + os.sep):
            self._leave_out(name, "a symbolic link out of the folder is not followed")
        elif os.path.isfile(target):
            self.names.append(name)
        else:
            self._leave_out(name, "a symbolic link to nothing that can be read")

    def _leave_out(self, path: str, reason: str) -> None:
        self.problems.append(SourceProblem(path, reason))


def _capped(content: bytes, path: str) -> bytes:
    if len(content) > DEFAULT_LIMITS.member:
        raise SourceError(
            f"larger than {DEFAULT_LIMITS.member >> 20} MiB, which no vLLM source file is",
            where=path,
        )
    return content
