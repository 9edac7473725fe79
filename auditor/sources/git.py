"""A revision of a checkout as a tree, read from git objects; the work tree is never touched."""

from __future__ import annotations

import os
import posixpath
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from auditor.errors import SourceError
from auditor.sources.names import is_utf8, printable, unsafe_reason
from auditor.sources.release_tags import release_tag
from auditor.sources.revisions import close, damage, find_commit, open_repository
from auditor.sources.selection import (
    DEFAULT_LIMITS,
    PACKAGE_MARKER,
    has_contents,
    is_listed,
    is_listed_folder,
)
from auditor.sources.tree import SourceProblem, contents_not_kept

if TYPE_CHECKING:
    from dulwich.objects import ObjectID, Tree
    from dulwich.repo import Repo

_LONGEST_LINK_CHAIN = 10


class GitTree:
    """The listed files of one commit; blobs are read from the repository when asked for."""

    def __init__(self, repository: Repo, blobs: dict[str, ObjectID]) -> None:
        self._repository = repository
        self._blobs = blobs
        weakref.finalize(self, close, repository)

    def files(self) -> frozenset[str]:
        """See :meth:`auditor.sources.tree.Tree.files`."""
        return frozenset(self._blobs)

    def read(self, path: str) -> bytes:
        """See :meth:`auditor.sources.tree.Tree.read`."""
        blob = self._blobs[path]
        if not has_contents(path):
            raise contents_not_kept(path)
        return _blob(self._repository, blob, path)

    def stamp(self, path: str) -> bytes:
        """See :func:`auditor.sources.tree.stamp`; the name of a blob is a hash of its contents."""
        blob = self._blobs[path]
        if not has_contents(path):
            raise contents_not_kept(path)
        return b"blob " + blob


class OpenedRevision(NamedTuple):
    """A revision as a tree; ``tag`` is the release a tag on the commit names, if any."""

    tree: GitTree
    commit: str
    tag: str | None
    problems: tuple[SourceProblem, ...]


def open_revision(folder: Path, revision: str) -> OpenedRevision:
    """The vLLM tree at ``revision`` of the checkout ``folder`` is in.

    Raises:
        SourceError: not a checkout, no such revision, or no ``vllm/`` package in it.
    """
    repository = open_repository(folder)
    try:
        commit = find_commit(repository, revision)
        root = _package_tree(repository, commit.tree, folder, revision)
        listing = _Listing(repository, root)
        listing.walk()
        tag = release_tag(repository, commit)
    except BaseException:
        close(repository)
        raise
    tree = GitTree(repository, listing.blobs)
    return OpenedRevision(tree, commit.id.decode(), tag, tuple(sorted(listing.problems)))


class _Listing:
    """One walk over the tree objects of a commit that are listed."""

    def __init__(self, repository: Repo, root: Tree) -> None:
        self.repository = repository
        self.root = root
        self.blobs: dict[str, ObjectID] = {}
        self.problems: list[SourceProblem] = []

    def walk(self) -> None:
        pending = [("", self.root)]
        while pending:
            folder, tree = pending.pop()
            for name, mode, sha in _entries(tree):
                path = folder + name
                if stat.S_ISDIR(mode):
                    if is_listed_folder(path.partition("/")[0]) and name != "__pycache__":
                        pending.append((path + "/", _tree(self.repository, sha)))
                elif is_listed(path):
                    self._add(path, mode, sha)

    def _add(self, path: str, mode: int, sha: ObjectID) -> None:
        reason = None if is_utf8(path) else "its name is not UTF-8"
        if reason is None and stat.S_ISLNK(mode):
            reason = self._follow(path, sha)
        elif reason is None and stat.S_ISREG(mode):
            reason = unsafe_reason(path)
            self.blobs[path] = sha
        elif reason is None and is_listed_folder(path.partition("/")[0]):
            reason = "a submodule is not part of the commit"
        if reason is not None:
            self.blobs.pop(path, None)
            self.problems.append(SourceProblem(printable(path), reason))

    def _follow(self, path: str, sha: ObjectID) -> str | None:
        """Add what the symbolic link ``path`` leads to, or answer why it is left out."""
        place = path
        for _ in range(_LONGEST_LINK_CHAIN):
            target = _blob(self.repository, sha, place).decode("utf-8", "surrogateescape")
            place = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
            if place.startswith(("/", "../")) or place == "..":
                return "a symbolic link out of the folder is not followed"
            mode, found = _lookup(self.repository, self.root, place)
            if stat.S_ISREG(mode) and found is not None:
                self.blobs[path] = found
                return None
            if not stat.S_ISLNK(mode) or found is None:
                break
            sha = found
        else:
            return "a symbolic link that leads in a circle"
        if stat.S_ISDIR(mode):
            return "a symbolic link to a folder is not followed"
        return "a symbolic link to nothing that can be read"


def _package_tree(repository: Repo, root: ObjectID, folder: Path, revision: str) -> Tree:
    """The tree object holding ``vllm/``: at ``folder`` in the checkout, or nearest above it."""
    top = os.path.realpath(repository.path)
    relative = os.path.relpath(os.path.realpath(folder), top).replace(os.sep, "/")
    parts = [] if relative.startswith(".") else relative.split("/")
    commit_root = _tree(repository, root)
    for length in range(len(parts), -1, -1):
        place = "/".join(parts[:length])
        mode, sha = _lookup(repository, commit_root, posixpath.join(place, PACKAGE_MARKER))
        if sha is not None and stat.S_ISREG(mode):
            _, at = _lookup(repository, commit_root, place) if place else (0, root)
            return _tree(repository, at if at is not None else root)
    raise SourceError(
        f"revision {revision} of this checkout holds no vLLM: {PACKAGE_MARKER} is not in it",
        where=str(folder),
        next_step="Give the path of a vLLM checkout.",
    )


def _lookup(repository: Repo, root: Tree, path: str) -> tuple[int, ObjectID | None]:
    mode, sha = stat.S_IFDIR, root.id
    for part in path.split("/"):
        if not stat.S_ISDIR(mode):
            return 0, None
        tree = _tree(repository, sha)
        try:
            mode, sha = tree[part.encode("utf-8", "surrogateescape")]
        except KeyError:
            return 0, None
    return mode, sha


def _entries(tree: Tree) -> Iterator[tuple[str, int, ObjectID]]:
    for entry in tree.iteritems():
        yield entry.path.decode("utf-8", "surrogateescape"), entry.mode, entry.sha


def _tree(repository: Repo, sha: ObjectID) -> Tree:
    from dulwich.objects import Tree

    found = _object(repository, sha, "a folder")
    if not isinstance(found, Tree):
        raise SourceError(f"git object {sha.decode()} is not the folder it should be")
    return found


def _blob(repository: Repo, sha: ObjectID, path: str) -> bytes:
    from dulwich.objects import Blob

    found = _object(repository, sha, path)
    if not isinstance(found, Blob):
        raise SourceError(f"git object {sha.decode()} is not the file it should be", where=path)
    if len(found.data) > DEFAULT_LIMITS.member:
        raise SourceError(
            f"larger than {DEFAULT_LIMITS.member >> 20} MiB, which no vLLM source file is",
            where=path,
        )
    return found.data


def _object(repository: Repo, sha: ObjectID, what: str) -> object:
    try:
        return repository.object_store[sha]
    except KeyError as error:
        raise SourceError(
            f"git object {sha.decode()} of {what} is not in this clone",
            where=str(repository.path),
            next_step="A partial clone lacks files: fetch them, or give another source.",
        ) from error
    except damage() as error:
        raise SourceError(
            f"git object {sha.decode()} of {what} cannot be read ({error})",
            where=str(repository.path),
            next_step="Check the repository with: git fsck",
        ) from error
