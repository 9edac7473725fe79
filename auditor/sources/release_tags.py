"""Which release a commit is, by the tags on it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.errors import SourceError
from auditor.sources.revisions import close, damage, find_commit, open_repository, peeled

if TYPE_CHECKING:
    from dulwich.objects import Commit, ObjectID
    from dulwich.refs import Ref, RefsContainer
    from dulwich.repo import Repo

_RELEASE_TAG = re.compile(r"v?\d+(\.\d+)*.*")


def release_tag(repository: Repo, commit: Commit) -> str | None:
    """The release that a tag on exactly this commit names (``v0.30.0`` gives ``0.30.0``).

    Of several, the newest counts: a release candidate's commit often becomes the release.
    """
    return _newest(
        name for name in _tags(repository.refs) if _peels_to(repository, name, commit.id)
    )


def release_tag_of_checkout(folder: Path) -> str | None:
    """The release a tag on the commit that is checked out at ``folder`` names, or None.

    None also where ``folder`` is not the top of a readable checkout.
    """
    git = folder / ".git"
    if not git.exists():
        return None
    from dulwich.refs import DiskRefsContainer

    try:
        if _is_fully_peeled(git):
            # The usual clone needs no object, and is known in half the time.
            refs = DiskRefsContainer(git)
            head = refs[_ref("HEAD")]
            commits = {name: refs.get_peeled(_tag_ref(name)) for name in _tags(refs)}
            if None not in commits.values():
                return _newest(name for name, commit in commits.items() if commit == head)
        repository = open_repository(folder)
        try:
            return release_tag(repository, find_commit(repository, "HEAD"))
        finally:
            close(repository)
    except (SourceError, KeyError):
        return None
    except damage():
        # A checkout can be read as a folder without its repository.
        return None


def _is_fully_peeled(git: Path) -> bool:
    """Whether the file of packed refs says of every tag in it which commit it leads to.

    Git writes it so; dulwich writes "peeled" and does not mean it.
    """
    try:
        with open(git / "packed-refs", "rb") as file:
            return b"fully-peeled" in file.readline(200) and not (git / "reftable").exists()
    except OSError:
        # No refs are packed, or this is a worktree: the longer way knows.
        return False


def _ref(name: str) -> Ref:
    from dulwich.refs import Ref

    return Ref(name.encode("utf-8", "surrogateescape"))


def _tag_ref(tag: str) -> Ref:
    return _ref(f"refs/tags/{tag}")


def _tags(refs: RefsContainer) -> list[str]:
    """The tags that look like those of a release."""
    names = (name.decode("utf-8", "surrogateescape") for name in refs.subkeys(_ref("refs/tags")))
    return sorted(filter(_RELEASE_TAG.fullmatch, names))


def _peels_to(repository: Repo, tag: str, commit: ObjectID) -> bool:
    try:
        target = repository.refs.get_peeled(_tag_ref(tag)) or repository.refs[_tag_ref(tag)]
        return target == commit or peeled(repository, repository[target]).id == commit
    except KeyError:
        return False
    except damage():
        # As above, the object is not in this clone: nothing else is worth saying of a label.
        return False


def _newest(tags: Iterable[str]) -> str | None:
    from packaging.version import InvalidVersion, Version

    versions: list[Version] = []
    for tag in tags:
        with contextlib.suppress(InvalidVersion):
            versions.append(Version(tag))
    return str(max(versions)) if versions else None
