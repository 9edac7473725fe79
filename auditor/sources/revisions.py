"""Finds a commit of a checkout by the names ``git rev-parse`` knows (gitrevisions(7))."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.errors import SourceError

if TYPE_CHECKING:
    from dulwich.objects import Commit, ShaFile
    from dulwich.repo import Repo

_SUFFIX = re.compile(r"[~^]|@\{")
_PEELING = re.compile(r"\^\{(commit)?\}")
_DESCRIBED = re.compile(r".+-\d+-g([0-9a-f]{4,40})")
_SHORT_SHA = re.compile(r"[0-9a-fA-F]{4,39}")
_FULL_SHA = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")
_RELEASE_TAG = re.compile(r"v?\d+(\.\d+)*.*")


def open_repository(folder: Path) -> Repo:
    """The repository ``folder`` belongs to: a checkout, a subfolder, a worktree, a bare one.

    Raises:
        SourceError: there is none, or it is of a kind that cannot be read.
    """
    from dulwich.errors import NotGitRepository
    from dulwich.repo import Repo, UnsupportedExtension, UnsupportedVersion

    try:
        return Repo.discover(str(folder))
    except NotGitRepository as error:
        raise SourceError(
            "this folder is not in a git checkout, so it has no revisions",
            where=str(folder),
            next_step="Give the folder without @REVISION, or the path of a checkout.",
        ) from error
    except (UnsupportedExtension, UnsupportedVersion, ValueError, OSError) as error:
        raise SourceError(
            f"this git repository cannot be opened ({error})", where=str(folder)
        ) from error


def find_commit(repository: Repo, revision: str) -> Commit:
    """The commit that ``revision`` names: a branch, a tag, a hash, or one with ``~N`` or ``^N``.

    Raises:
        SourceError: there is no such commit, the hash is ambiguous, or history is missing.
    """
    from dulwich.errors import ChecksumMismatch
    from dulwich.objects import Commit
    from dulwich.objectspec import AmbiguousShortId

    try:
        found = _peeled(repository, _named_object(repository, revision or "HEAD"))
    except AmbiguousShortId as error:
        raise SourceError(
            f"more than one commit starts with {revision}",
            where=str(repository.path),
            next_step="Give more of the hash.",
        ) from error
    except (KeyError, ValueError, NotImplementedError, UnicodeEncodeError) as error:
        raise _no_such_revision(repository, revision) from error
    except (ChecksumMismatch, OSError, AssertionError) as error:
        raise SourceError(
            f"the git objects of {revision} cannot be read ({error})",
            where=str(repository.path),
            next_step="Check the repository with: git fsck",
        ) from error
    if not isinstance(found, Commit):
        raise SourceError(
            f"revision {revision} is not a commit but a {found.type_name.decode()}",
            where=str(repository.path),
            next_step="Give a branch, a tag or the hash of a commit.",
        )
    return found


def release_tag(repository: Repo, commit: Commit) -> str | None:
    """The release that a tag on exactly this commit names (``v0.30.0`` gives ``0.30.0``).

    Of several, the newest counts: a release candidate's commit often becomes the release.
    """
    from packaging.version import InvalidVersion, Version

    versions: list[Version] = []
    for name in sorted(repository.refs.keys()):
        tag = name.removeprefix(b"refs/tags/").decode("utf-8", "replace")
        if not name.startswith(b"refs/tags/") or not _RELEASE_TAG.fullmatch(tag):
            continue
        try:
            if repository.get_peeled(name) == commit.id:
                versions.append(Version(tag))
        except (InvalidVersion, KeyError):
            # Not the name of a release, or the tag's object is not in this clone.
            continue
    return str(max(versions)) if versions else None


def _named_object(repository: Repo, revision: str) -> ShaFile:
    from dulwich.objectspec import parse_object

    match = _SUFFIX.search(revision)
    if match is None:
        return _base_object(repository, revision)
    if match.group() == "@{":
        return parse_object(repository, revision)
    base = _peeled(repository, _base_object(repository, revision[: match.start()] or "HEAD"))
    suffix = _PEELING.sub("", revision[match.start() :])
    return parse_object(repository, base.id + suffix.encode("ascii"))


def _base_object(repository: Repo, name: str) -> ShaFile:
    from dulwich.objects import ObjectID
    from dulwich.objectspec import parse_commit, parse_ref

    encoded = ("HEAD" if name == "@" else name).encode("utf-8")
    if _FULL_SHA.fullmatch(name):
        return repository[ObjectID(encoded.lower())]
    try:
        return repository[parse_ref(repository.refs, encoded)]
    except KeyError:
        described = _DESCRIBED.fullmatch(name)
        if described is not None:
            return _base_object(repository, described.group(1))
        if not _SHORT_SHA.fullmatch(name):
            raise
        return parse_commit(repository, encoded.lower())


def _peeled(repository: Repo, found: ShaFile) -> ShaFile:
    from dulwich.objects import Tag

    while isinstance(found, Tag):
        found = repository[found.object[1]]
    return found


def _no_such_revision(repository: Repo, revision: str) -> SourceError:
    names = _ref_names(repository)
    near = difflib.get_close_matches(revision, names, n=3, cutoff=0.4)
    if near:
        next_step = f"The nearest names here are {', '.join(near)}."
    elif names:
        next_step = f"This checkout has {len(names)} branches and tags, none of a similar name."
    else:
        next_step = "This repository has no branches and no tags yet."
    return SourceError(
        f"there is no commit {revision} in this clone",
        where=str(repository.path),
        next_step=f"{next_step} A shallow clone holds only part of the history: fetch first.",
    )


def _ref_names(repository: Repo) -> list[str]:
    prefixes = (b"refs/heads/", b"refs/tags/", b"refs/remotes/")
    return sorted(
        {
            name.removeprefix(prefix).decode("utf-8", "replace")
            for name in repository.refs.keys()  # noqa: SIM118 - not a dict
            for prefix in prefixes
            if name.startswith(prefix)
        }
    )
