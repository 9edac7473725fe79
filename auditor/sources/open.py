"""Opens whatever ``--vllm`` names, or finds a vLLM when it names nothing.

An existing path wins over every other reading, so ``./0.30.0`` and ``latest`` can be folders.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.errors import SourceError
from auditor.sources.cache import Cache, CacheConfig
from auditor.sources.selection import PACKAGE_MARKER
from auditor.sources.tree import Source, SourceKind, SourceProblem, Tree

if TYPE_CHECKING:
    from packaging.version import Version

    from auditor.sources.progress import Progress

_GIVEN = "given by --vllm"
_PROJECT_FILES = ("pyproject.toml", "setup.py")


def open_source(
    spec: str | None,
    *,
    cwd: Path,
    cache: CacheConfig | None = None,
    progress: Progress | None = None,
) -> Source:
    """The vLLM tree that ``spec``, the value of ``--vllm``, names.

    Args:
        spec: a folder, an archive, ``PATH@REVISION``, an interpreter or virtualenv, ``installed``,
            a version, ``latest``; None takes the checkout around ``cwd``, else the vLLM installed
            with this interpreter, else the latest release.
        cwd: what relative paths are relative to.
        cache: where archives are kept between runs; None is :meth:`CacheConfig.default`.
        progress: who is told about a download; None tells nobody.

    Raises:
        SourceError: nothing of that name, or it cannot be read as a vLLM tree.
    """
    opener = _Opener(cwd, Cache(CacheConfig.default() if cache is None else cache), progress)
    return opener.without_spec() if spec is None else opener.with_spec(spec)


def checkout_around(cwd: Path) -> Path | None:
    """The vLLM checkout ``cwd`` is in.

    The nearest folder with ``vllm/`` that has a project file, or is the root of a git repository
    (of which ``.git`` is a folder, or a file in a further working tree).
    """
    for folder in (cwd, *cwd.parents):
        if (folder / PACKAGE_MARKER).is_file() and (
            any((folder / name).is_file() for name in _PROJECT_FILES)
            or os.path.lexists(folder / ".git")
        ):
            return folder
    return None


class _Opener:
    """One call of :func:`open_source`."""

    def __init__(self, cwd: Path, cache: Cache, progress: Progress | None) -> None:
        self.cwd = Path(os.path.abspath(cwd))
        self.cache = cache
        self.progress = progress

    def without_spec(self) -> Source:
        why = "no --vllm given"
        checkout = checkout_around(self.cwd)
        if checkout is not None:
            return self._folder(
                checkout, "folder", f"{why}, the current folder is in this checkout"
            )
        installed = self._find_installed()
        if installed is not None:
            why = f"{why}, no checkout here, vllm is installed with this Python"
            return self._folder(installed, "installed", why)
        return self._release(None, f"{why}, no checkout here, no vllm installed")

    def with_spec(self, spec: str) -> Source:
        from auditor.sources.spec import split_revision, unknown_spec

        if not spec.strip() or "\0" in spec:
            raise unknown_spec(spec, self.cwd)
        path = self.cwd / os.path.expanduser(spec)
        if os.path.lexists(path):
            return self._path(path)
        revision = split_revision(spec, self.cwd)
        if revision is not None:
            return self._revision(*revision)
        if spec == "installed":
            return self._installed()
        if spec == "latest":
            return self._release(None, _GIVEN)
        version = _version(spec)
        if version is None:
            raise unknown_spec(spec, self.cwd)
        return self._release(version, _GIVEN)

    def _path(self, path: Path) -> Source:
        from auditor.sources.interpreters import is_interpreter

        try:
            if path.is_dir():
                return self._given_folder(path)
            if not path.is_file():
                raise _not_a_source(path)
        except OSError as error:
            raise SourceError(
                f"this path cannot be read ({error.strerror})",
                where=str(path),
                next_step="Check its permissions.",
            ) from error
        if is_interpreter(path):
            return self._environment(path)
        return self._archive(path)

    def _given_folder(self, path: Path) -> Source:
        from auditor.sources.folder import package_root
        from auditor.sources.interpreters import is_environment

        root = package_root(path)
        if root is not None:
            return self._folder(root, "folder", _GIVEN)
        if is_environment(path):
            return self._environment(path)
        return self._editable(path)

    def _editable(self, path: Path) -> Source:
        from auditor.sources.installed import find_installed

        root = find_installed([path]) if path.name in ("site-packages", "dist-packages") else None
        if root is None:
            raise _no_package(path)
        return self._folder(root, "installed", _GIVEN)

    def _folder(self, root: Path, kind: SourceKind, why: str) -> Source:
        from auditor.sources.folder import list_folder
        from auditor.sources.versions import version_of

        tree, problems = list_folder(root)
        version = version_of(tree)
        if version is None and (root / ".git").exists():
            from auditor.sources.release_tags import release_tag_of_checkout

            version = release_tag_of_checkout(root)
        return self._source(kind, version, str(root), why, tree, problems)

    def _archive(self, path: Path) -> Source:
        from auditor.sources.packed import open_archive
        from auditor.sources.versions import version_of

        archive = open_archive(path, self.cache)
        version = version_of(archive.tree)
        return self._source(
            archive.kind, version, path.name, _GIVEN, archive.tree, archive.problems
        )

    def _revision(self, folder: Path, revision: str) -> Source:
        from auditor.sources.git import open_revision
        from auditor.sources.versions import version_of

        opened = open_revision(folder, revision)
        version = version_of(opened.tree) or opened.tag
        origin = f"{revision or 'HEAD'}, commit {opened.commit[:12]}"
        return self._source("git", version, origin, _GIVEN, opened.tree, opened.problems)

    def _environment(self, target: Path) -> Source:
        from auditor.sources.installed import find_installed
        from auditor.sources.interpreters import site_folders_of

        folders = site_folders_of(target)
        root = find_installed(folders)
        if root is None:
            looked = ", ".join(map(str, folders)) or "no package folder was found"
            raise SourceError(
                f"no vLLM is installed in this Python environment (looked in: {looked})",
                where=str(target),
                next_step="Install vllm there, or give a folder, an archive or a version.",
            )
        return self._folder(root, "installed", _GIVEN)

    def _installed(self) -> Source:
        root = self._find_installed()
        if root is None:
            raise SourceError(
                "no vLLM is installed with the Python that runs this audit",
                where="--vllm installed",
                next_step="Give the path of another Python or virtualenv, or a version.",
            )
        return self._folder(root, "installed", _GIVEN)

    def _find_installed(self) -> Path | None:
        from auditor.sources.installed import find_installed
        from auditor.sources.interpreters import own_site_folders

        return find_installed(own_site_folders())

    def _release(self, version: Version | None, why: str) -> Source:
        from auditor.sources.indexed import open_release
        from auditor.sources.versions import version_of

        opened = open_release(version, self.cache, self.progress)
        archive = opened.archive
        release = version_of(archive.tree) or (None if version is None else str(version))
        return self._source(
            "index", release, opened.filename, why, archive.tree, archive.problems, opened.notes
        )

    def _source(
        self,
        kind: SourceKind,
        version: str | None,
        origin: str,
        why: str,
        tree: Tree,
        problems: tuple[SourceProblem, ...],
        notes: tuple[str, ...] = (),
    ) -> Source:
        for note in notes:
            self.cache.note(note)
        # The list itself: what is found while files are read is added to it.
        return Source(kind, version, origin, why, tree, problems, self.cache.notes)


def _version(spec: str) -> Version | None:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(spec)
    except InvalidVersion:
        return None


def _no_package(path: Path) -> SourceError:
    return SourceError(
        f"this folder holds no vLLM: neither {PACKAGE_MARKER} nor pyvenv.cfg is in it, "
        "and it is not the package folder vllm/ itself",
        where=str(path),
        next_step="Give a vLLM checkout, a site-packages folder or a virtualenv.",
    )


def _not_a_source(path: Path) -> SourceError:
    what = (
        "this symbolic link leads nowhere" if path.is_symlink() else "this is no file and no folder"
    )
    return SourceError(what, where=str(path), next_step="Give a folder, an archive or a version.")
