"""Opens a release of vLLM from the package index, or from the cache when it is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from auditor.errors import SourceError
from auditor.sources.cache import Cache
from auditor.sources.packed import (
    OpenedArchive,
    open_archive,
    open_cached,
    open_stream,
    read_record,
    write_record,
)
from auditor.sources.progress import Progress
from auditor.sources.selection import VLLM, Selection
from auditor.sources.tree import SourceProblem

if TYPE_CHECKING:
    from packaging.version import Version

    from auditor.sources.download import Download
    from auditor.sources.releases import Release


class KnownRelease(msgspec.Struct, frozen=True):
    """A release fetched from the package index: the archive's name, its hash, remarks on it."""

    filename: str
    sha256: str
    unchecked: bool = False
    yanked: str | None = None


class Project(NamedTuple):
    """What is looked for on the index: its normalised name, and which of its files make a tree."""

    name: str
    selection: Selection


_VLLM = Project("vllm", VLLM)


class OpenedRelease(NamedTuple):
    """A release as a tree, with the name of its archive and remarks for the user."""

    archive: OpenedArchive
    filename: str
    notes: tuple[str, ...]


def open_release(
    wanted: Version | None,
    cache: Cache,
    progress: Progress | None = None,
    project: Project = _VLLM,
) -> OpenedRelease:
    """The tree of release ``wanted``, or of the latest when it is None.

    A release that is in the cache is opened without network. What the latest is, only the index
    knows.

    Raises:
        SourceError: no such release, no network, an archive that is damaged or not the one the
            index states, or settings of pip that cannot be used.
    """
    cached = None if wanted is None else _from_cache(wanted, cache, progress, project)
    if cached is not None:
        return cached
    with _cached_versions_named(cache, wanted, project):
        return _from_index(wanted, cache, progress, project)


def cached_versions(cache: Cache, project: Project = _VLLM) -> list[str]:
    """The releases that can be opened without network, oldest first."""
    from packaging.version import Version

    names = (name.removesuffix(".json") for name in cache.names(_records(project)))
    return [str(version) for version in sorted(map(Version, filter(_is_version, names)))]


def _from_cache(
    version: Version, cache: Cache, progress: Progress | None, project: Project
) -> OpenedRelease | None:
    record = read_record(cache, _record_name(version, project), KnownRelease)
    if record is None:
        return None
    again = partial(_fetch_again, version, cache, progress, project)
    archive = open_cached(record.sha256, cache, again, project.selection)
    return None if archive is None else _opened(archive, record)


def _fetch_again(
    version: Version, cache: Cache, progress: Progress | None, project: Project
) -> OpenedArchive:
    return _from_index(version, cache, progress, project).archive


def _from_index(
    wanted: Version | None, cache: Cache, progress: Progress | None, project: Project
) -> OpenedRelease:
    from auditor.sources.download import Download
    from auditor.sources.index import find_releases
    from auditor.sources.network import open_session
    from auditor.sources.pip_settings import read_pip_settings
    from auditor.sources.releases import choose

    settings = read_pip_settings()
    with open_session(settings) as session:
        release = choose(find_releases(session, settings, project.name), wanted)
        archive, record = _obtain(release, Download(session, settings, progress), cache, project)
    if release.path is None:
        write_record(cache, _record_name(wanted or release.version, project), record)
    return _opened(archive, record)


def _obtain(
    release: Release, download: Download, cache: Cache, project: Project
) -> tuple[OpenedArchive, KnownRelease]:
    from auditor.sources.download import is_checkable

    again = partial(_fetch_again, release.version, cache, download.progress, project)
    archive = open_cached(release.hashes.get("sha256", ""), cache, again, project.selection)
    if archive is None:
        archive = _read(release, download, cache, project.selection)
    unchecked = release.path is None and not is_checkable(release)
    return archive, KnownRelease(release.filename, archive.sha256, unchecked, release.yanked)


def _read(
    release: Release, download: Download, cache: Cache, selection: Selection
) -> OpenedArchive:
    from auditor.sources.download import check_hashes, temporary_file
    from auditor.sources.packed import hash_file

    if release.path is not None:
        if release.hashes:
            check_hashes(release, {"sha256": hash_file(release.path)})
        return open_archive(release.path, cache, selection)
    with temporary_file() as file:
        digest = download.fetch(release, file)
        return open_stream(file, release.filename, digest, cache, selection=selection)


def _opened(archive: OpenedArchive, record: KnownRelease) -> OpenedRelease:
    notes: tuple[str, ...] = ()
    if record.yanked is not None:
        reason = f": {record.yanked}" if record.yanked else ""
        notes = (f"{record.filename} was yanked from the package index{reason}",)
    if record.unchecked:
        problem = SourceProblem(
            record.filename, "the package index states no SHA-2 hash, so it could not be checked"
        )
        archive = archive._replace(problems=tuple(sorted((*archive.problems, problem))))
    return OpenedRelease(archive, record.filename, notes)


@contextmanager
def _cached_versions_named(
    cache: Cache, wanted: Version | None, project: Project
) -> Iterator[None]:
    """Add to an error of ``latest`` what could be opened without network."""
    try:
        yield
    except SourceError as error:
        versions = cached_versions(cache, project)
        if wanted is not None or not versions:
            raise
        raise SourceError(
            error.what,
            where=error.where,
            next_step=f"{error.next_step} In the cache: {', '.join(versions)}.".strip(),
        ) from error


def _records(project: Project) -> str:
    return "releases" if project is _VLLM else f"releases/{project.name}"


def _record_name(version: Version, project: Project) -> str:
    return f"{_records(project)}/{version}.json"


def _is_version(text: str) -> bool:
    from packaging.version import InvalidVersion, Version

    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
