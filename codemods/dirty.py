"""Which files of a checkout differ from what git has of them.

Read from git's own objects with dulwich, so that no ``git`` need be installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from codemods.writing import Change


def dirty(root: Path, changes: Iterable[Change]) -> tuple[str, ...]:
    """The files that hold something no commit has; none where ``root`` is in no checkout."""
    from dulwich.errors import NotGitRepository
    from dulwich.object_store import tree_lookup_path
    from dulwich.objects import Blob, Commit
    from dulwich.repo import Repo

    try:
        repo = Repo.discover(str(root))
    except NotGitRepository:
        return ()
    with repo:
        try:
            commit = repo[repo.head()]
        except KeyError:
            return tuple(change.path for change in changes)
        assert isinstance(commit, Commit)
        top = Path(repo.path).resolve()
        tree = commit.tree
        prefix = root.resolve().relative_to(top) if root.resolve().is_relative_to(top) else None
        found: list[str] = []
        for change in changes:
            if prefix is None:
                return ()
            if change.before is None:
                continue  # that nothing stands in its place is looked at where it is written
            name = (prefix / change.path).as_posix().encode()
            try:
                _, digest = tree_lookup_path(repo.__getitem__, tree, name)
            except KeyError:
                found.append(change.path)
                continue
            blob = repo[digest]
            if not isinstance(blob, Blob) or not _same(blob.data, change.before):
                found.append(change.path)
    return tuple(found)


def _same(committed: bytes, held: bytes) -> bool:
    """Whether two contents are the same, line ends apart: a checkout may turn them."""
    return committed == held or committed == held.replace(b"\r\n", b"\n")
