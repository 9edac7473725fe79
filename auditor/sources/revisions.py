"""Finds a commit of a checkout by the names ``git rev-parse`` knows (gitrevisions(7))."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.errors import SourceError
from auditor.sources.names import printable

if TYPE_CHECKING:
    from dulwich.objects import Commit, ObjectID, ShaFile
    from dulwich.repo import Repo

_SUFFIX = re.compile(r"[~^]|@\{")
_PEELING = re.compile(r"\^\{(commit)?\}")
_DESCRIBED = re.compile(r".+-\d+-g([0-9a-f]{4,40})")
_PLACES = (
    "{}", "refs/{}", "refs/tags/{}", "refs/heads/{}", "refs/remotes/{}", "refs/remotes/{}/HEAD"
)  # fmt: skip
_SHORT_SHA = re.compile(r"[0-9a-fA-F]{4,39}")
_FULL_SHA = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")
_NOT_READ = re.compile(
    r"\.\.|:|@\{(?!\d+\})|\^\{(?!(commit)?\})|\^[@!-]|^\^"  # ranges, dates, searches, upstreams
)


def open_repository(folder: Path) -> Repo:
    """The repository ``folder`` belongs to: a checkout, a subfolder, a worktree, a bare one.

    Raises:
        SourceError: there is none, or it is of a kind that cannot be read.
    """
    from dulwich.errors import FileFormatException, NotGitRepository
    from dulwich.repo import Repo, UnsupportedExtension, UnsupportedVersion

    try:
        return Repo.discover(str(folder))
    except NotGitRepository as error:
        raise SourceError(
            "this folder is not in a git checkout, so it has no revisions",
            where=str(folder),
            next_step="Give the folder without @REVISION, or the path of a checkout.",
        ) from error
    except UnsupportedExtension as error:
        extension = printable(os.fsdecode(error.extension))
        what = f"uses the git extension {extension}, which is not known here"
        raise _unreadable_repository(folder, what) from error
    except UnsupportedVersion as error:
        what = f"has the format version {error.version}, which is not known here"
        raise _unreadable_repository(folder, what) from error
    except (ValueError, OSError, FileFormatException) as error:
        raise _unreadable_repository(folder, f"cannot be opened ({error})") from error


def close(repository: Repo) -> None:
    """Let go of the files of ``repository``."""
    # While an exception is handled, its traceback can hold pieces of a pack that is mapped into
    # memory; dulwich then closes that pack when it is collected.
    with contextlib.suppress(BufferError):
        repository.close()


def find_commit(repository: Repo, revision: str) -> Commit:
    """The commit that ``revision`` names: a branch, a tag, a hash, or one with ``~N`` or ``^N``.

    Raises:
        SourceError: there is no such commit, the hash is ambiguous, or history is missing.
    """
    from dulwich.objects import Commit
    from dulwich.objectspec import AmbiguousShortId

    if _NOT_READ.search(revision):
        raise SourceError(
            f"{revision} is a way to name a commit that is not read here",
            where=str(repository.path),
            next_step=f"Give the hash that git prints for it: git rev-parse {revision}",
        )
    try:
        found = peeled(repository, _named_object(repository, revision or "HEAD"))
    except AmbiguousShortId as error:
        raise SourceError(
            f"more than one commit starts with {revision}",
            where=str(repository.path),
            next_step="Give more of the hash.",
        ) from error
    except (KeyError, ValueError, NotImplementedError) as error:
        raise _no_such_revision(repository, revision) from error
    except damage() as error:
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


def damage() -> tuple[type[Exception], ...]:
    """What dulwich raises for a repository that is damaged, besides KeyError for a gap in it."""
    import struct
    import zlib

    from dulwich import errors
    from dulwich.refs import SymrefLoop

    return (
        errors.ApplyDeltaError, errors.ChecksumMismatch, errors.FileFormatException,
        errors.ObjectMissing, errors.RefFormatError, SymrefLoop, zlib.error, struct.error,
        OSError, EOFError, ValueError, AssertionError, IndexError, TypeError, StopIteration,
        RuntimeError,
    )  # fmt: skip


def _named_object(repository: Repo, revision: str) -> ShaFile:
    from dulwich.objectspec import parse_object

    match = _SUFFIX.search(revision)
    if match is None:
        return _base_object(repository, revision)
    if match.group() == "@{":
        return parse_object(repository, revision)
    base = peeled(repository, _base_object(repository, revision[: match.start()] or "HEAD"))
    suffix = _PEELING.sub("", revision[match.start() :])
    return parse_object(repository, base.id + suffix.encode("ascii"))


def _base_object(repository: Repo, name: str) -> ShaFile:
    from dulwich.objects import ObjectID
    from dulwich.objectspec import parse_commit

    if _FULL_SHA.fullmatch(name):
        return repository[ObjectID(name.lower().encode())]
    found = _find_ref(repository, "HEAD" if name == "@" else name)
    if found is not None:
        return repository[found]
    described = _DESCRIBED.fullmatch(name)
    if described is not None:
        return _base_object(repository, described.group(1))
    if not _SHORT_SHA.fullmatch(name):
        raise KeyError(name)
    return parse_commit(repository, name.lower().encode())


def _find_ref(repository: Repo, name: str) -> ObjectID | None:
    """What the ref called ``name`` says, looked for in the places and the order of git."""
    from dulwich.refs import Ref

    for place in _PLACES:
        ref = place.format(name)
        if ref.isupper() or ref.startswith("refs/"):
            with contextlib.suppress(KeyError):
                return repository.refs[Ref(ref.encode())]
    return None


def peeled(repository: Repo, found: ShaFile) -> ShaFile:
    """What a tag leads to in the end; anything else as it is."""
    from dulwich.objects import Tag

    while isinstance(found, Tag):
        found = repository[found.object[1]]
    return found


def _unreadable_repository(folder: Path, what: str) -> SourceError:
    return SourceError(
        f"this git repository {what}",
        where=str(folder),
        next_step="Check the revision out, and give the folder without @REVISION.",
    )


def _no_such_revision(repository: Repo, revision: str) -> SourceError:
    import difflib

    names = _ref_names(repository)
    near = difflib.get_close_matches(revision, names, n=3, cutoff=0.4)
    if near:
        next_step = f"The nearest names here are {', '.join(near)}."
    elif names:
        next_step = f"This checkout has {len(names)} branches and tags, none of a similar name."
    else:
        next_step = "This repository has no branches and no tags yet."
    if repository.get_shallow():
        next_step += " This is a shallow clone with only part of the history: fetch the rest first."
    return SourceError(
        f"there is no commit {revision} in this clone",
        where=str(repository.path),
        next_step=next_step,
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
