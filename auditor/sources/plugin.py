"""Opens a vLLM plugin: a project whose entry points vLLM loads. Nothing of it is run.

A plugin is a folder, a wheel or an sdist, a name on the package index (``vllm-ascend``,
``vllm-ascend==0.30.0``), or what is installed (``installed``, ``installed:NAME``, or the path of an
environment, of its interpreter or of its site-packages).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from auditor.errors import SourceError
from auditor.sources.cache import Cache, CacheConfig
from auditor.sources.metadata import EntryPoint, Metadata, Unread, metadata_of
from auditor.sources.packages import PROJECT, Packages, packages_of
from auditor.sources.tree import SourceProblem, Tree

if TYPE_CHECKING:
    from auditor.sources.progress import Progress

_NAMED = re.compile(r"(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:==\s*(?P<version>\S+))?")
_INSTALLED = "installed"
_FORMS = (
    "Give a folder, a wheel, an sdist, a name on the package index (NAME or NAME==VERSION), "
    "installed or installed:NAME."
)
#: Files by which a project builds modules that are not Python source.
_BUILDS = ("setup.py", "CMakeLists.txt")


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin, opened.

    Attributes:
        name: its normalised name (PEP 503).
        version: its release, or None when it does not say.
        origin: as the user would recognise it, for people only.
        packages: its packages, each at the root of the tree.
        roots: their names.
        entry_points: those of the groups asked for, in the order of vLLM: by group, then as the
            files list them.
        requires: the distributions that it requires, as it writes them.
        builds: whether a build may make modules that its files do not hold.
        unread: places that may say more entry points, and cannot be read.
        problems: what was left out of it.
        notes: remarks on how it was opened.
    """

    name: str
    version: str | None
    origin: str
    packages: Packages
    roots: frozenset[str]
    entry_points: tuple[EntryPoint, ...]
    requires: tuple[str, ...] = ()
    builds: bool = False
    unread: tuple[Unread, ...] = ()
    problems: tuple[SourceProblem, ...] = ()
    notes: Sequence[str] = ()

    @property
    def label(self) -> str:
        """The name and the version, the same however it was opened."""
        return f"{self.name} {self.version}" if self.version else f"{self.name} (unknown version)"


def open_plugin(
    spec: str,
    groups: Sequence[str],
    taken: str,
    *,
    cwd: Path,
    cache: CacheConfig | None = None,
    progress: Progress | None = None,
) -> tuple[Plugin, ...]:
    """The plugins that ``spec``, a value of ``--plugin``, names; more than one for ``installed``.

    Args:
        spec: see the module.
        groups: the groups of entry points that make a project a plugin, in the order of loading.
        taken: the package that it is a plugin of.
        cwd: what relative paths are relative to.
        cache: where archives are kept between runs.
        progress: who is told about a download.

    Raises:
        SourceError: nothing of that name, or it cannot be read as a Python project.
    """
    opener = _Opener(cwd, Cache(cache or CacheConfig.default()), progress, tuple(groups), taken)
    return opener.open(spec)


class _Opener:
    """One call of :func:`open_plugin`."""

    def __init__(
        self,
        cwd: Path,
        cache: Cache,
        progress: Progress | None,
        groups: tuple[str, ...],
        taken: str,
    ) -> None:
        self.cwd, self.cache, self.progress = cwd, cache, progress
        self.groups, self.taken = groups, taken

    def open(self, spec: str) -> tuple[Plugin, ...]:
        where = f"--plugin {spec}"
        if not spec.strip() or "\0" in spec:
            raise SourceError("this names nothing", where=where, next_step=_FORMS)
        path = self.cwd / os.path.expanduser(spec)
        if os.path.lexists(path):
            return self._path(path)
        word, _, name = spec.partition(":")
        if word == _INSTALLED:
            from auditor.sources.interpreters import own_site_folders

            return self._distributions(own_site_folders(), where, name)
        named = _NAMED.fullmatch(spec.strip())
        if named is None or "/" in spec or spec.endswith((".whl", ".gz", ".zip")):
            raise SourceError(
                "there is no such file or folder, and it is no name on the package index",
                where=where,
                next_step=_FORMS,
            )
        return (self._release(named["name"], named["version"], where),)

    def _path(self, path: Path) -> tuple[Plugin, ...]:
        from auditor.sources.interpreters import is_environment, is_interpreter, site_folders_of

        where = str(path)
        if path.is_dir():
            if is_environment(path):
                return self._distributions(site_folders_of(path), where)
            if path.name in ("site-packages", "dist-packages"):
                return self._distributions([path], where)
            return (self._folder(path),)
        if is_interpreter(path):
            return self._distributions(site_folders_of(path), where)
        return (self._archive(path),)

    def _folder(self, path: Path) -> Plugin:
        from auditor.sources.folder import list_folder

        tree, problems = list_folder(path, PROJECT)
        if not any(name.endswith(".py") for name in tree.files()):
            raise SourceError(
                "this folder holds no Python project", where=str(path), next_step=_FORMS
            )
        return self._plugin(tree, str(path), problems, path.name)

    def _archive(self, path: Path) -> Plugin:
        from auditor.sources.packed import open_archive

        archive = open_archive(path, self.cache, PROJECT)
        complete = archive.kind == "wheel"
        name = path.name.partition("-")[0]
        return self._plugin(archive.tree, path.name, archive.problems, name, complete=complete)

    def _release(self, name: str, version: str | None, where: str) -> Plugin:
        from packaging.version import InvalidVersion, Version

        from auditor.sources.indexed import Project, open_release

        try:
            wanted = None if version is None else Version(version)
        except InvalidVersion as error:
            raise SourceError(
                f"{version!r} is no version", where=where, next_step=_FORMS
            ) from error
        project = Project(str(canonicalize_name(name)), PROJECT)
        opened = open_release(wanted, self.cache, self.progress, project)
        archive, complete = opened.archive, opened.archive.kind == "wheel"
        for note in opened.notes:
            self.cache.note(note)
        return self._plugin(
            archive.tree, opened.filename, archive.problems, name, complete=complete
        )

    def _distributions(
        self, folders: Iterable[Path], where: str, name: str = ""
    ) -> tuple[Plugin, ...]:
        """The installed distributions that have entry points of the groups, by name."""
        found: dict[str, Plugin] = {}
        for folder in folders:
            for plugin in self._in_site(folder):
                found.setdefault(plugin.name, plugin)
        wanted = canonicalize_name(name) if name else ""
        chosen = [found[one] for one in sorted(found) if wanted in ("", one)]
        if not chosen:
            which = f" called {name}" if name else ""
            raise SourceError(
                f"no plugin{which} is installed there: no distribution has an entry point of "
                f"{' or '.join(self.groups)}",
                where=where,
                next_step=_FORMS,
            )
        return tuple(chosen)

    def _in_site(self, folder: Path) -> Iterator[Plugin]:
        from auditor.sources.folder import FolderTree, list_folder
        from auditor.sources.installed import editable_target

        for info in sorted(folder.glob("*.dist-info")):
            names = frozenset(f"{info.name}/{path.name}" for path in info.iterdir())
            metadata = metadata_of(FolderTree(folder, names))
            own = self._own(metadata)
            if all(one.target.startswith((f"{self.taken}.", f"{self.taken}:")) for one in own):
                continue
            target = editable_target(info)
            if target is not None:
                yield self._folder(target)
                continue
            roots = _recorded_roots(info)
            only = PROJECT._replace(
                lists=partial(_lists_of, roots, info.name), enters=partial(_enters_of, roots)
            )
            tree, problems = list_folder(folder, only)
            tree = FolderTree(folder, tree.files() | names)
            yield self._plugin(tree, str(folder), problems, metadata.name, complete=True)

    def _own(self, metadata: Metadata) -> tuple[EntryPoint, ...]:
        every = metadata.entry_points.values()
        return tuple(one for group in self.groups for one in every if one.group == group)

    def _plugin(
        self,
        tree: Tree,
        origin: str,
        problems: tuple[SourceProblem, ...],
        fallback: str,
        *,
        complete: bool = False,
    ) -> Plugin:
        metadata = metadata_of(tree)
        entry_points = self._own(metadata)
        modules = [one.target.partition(":")[0] for one in entry_points]
        name = metadata.name or str(canonicalize_name(fallback))
        packages, roots, left_out = packages_of(tree, name, modules, self.taken, installed=complete)
        files = tree.files()
        return Plugin(
            name,
            metadata.version,
            origin,
            packages,
            roots,
            tuple(one._replace(path=f"{name}/{one.path}") for one in entry_points),
            metadata.requires,
            not complete and any(name in files for name in _BUILDS),
            tuple(one._replace(path=f"{name}/{one.path}") for one in metadata.unread),
            (*problems, *left_out),
            self.cache.notes,
        )


def _recorded_roots(info: Path) -> frozenset[str]:
    """The packages and modules at the top that ``RECORD`` (PEP 376) lists."""
    try:
        lines = (info / "RECORD").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        # An installation without a record: then the name of the distribution is all there is.
        return frozenset({info.name.partition("-")[0]})
    heads = (line.partition(",")[0].strip('"').partition("/")[0] for line in lines)
    return frozenset(head.removesuffix(".py") for head in heads if not head.endswith("-info"))


def _lists_of(roots: frozenset[str], info: str, path: str) -> bool:
    head = path.partition("/")[0]
    return PROJECT.lists(path) and (head == info or head.removesuffix(".py") in roots)


def _enters_of(roots: frozenset[str], path: str) -> bool:
    return PROJECT.enters(path) and path.partition("/")[0] in roots
