"""The packages of a project, as a tree with each package at its root.

A project keeps its packages at its root, below ``src/``, or below another folder. Where they are
follows from the modules that its entry points name; the tree is the one that an installation gives,
so that a checkout, an sdist and a wheel of one release name their files alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from auditor.sources.selection import Selection, has_contents
from auditor.sources.tree import SourceProblem, Tree, content_key, stamp

#: Folders of a project that hold no package of it.
_ASIDE = frozenset(
    ("tests", "test", "docs", "doc", "examples", "example", "benchmarks", "benchmark", "tools",
     "scripts", "csrc", "build", "dist", "node_modules", "cmake", "docker")
)  # fmt: skip
_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", "PKG-INFO")
_AT_THE_TOP = frozenset((*_MARKERS, "CMakeLists.txt"))
_OF_METADATA = frozenset(
    ("METADATA", "PKG-INFO", "entry_points.txt", "top_level.txt", "RECORD", "direct_url.json")
)
_COMPILED = (".so", ".pyd")


def _lists(path: str) -> bool:
    """Python files, the names of compiled ones, and what a project says of itself."""
    *folders, name = path.split("/")
    if any(part.startswith(".") or part == "__pycache__" for part in folders):
        return False
    if not folders and name in _AT_THE_TOP:
        return True
    if folders and folders[-1].endswith((".dist-info", ".egg-info")):
        return name in _OF_METADATA
    if folders and folders[0] in _ASIDE:
        return False
    return name.endswith((".py", *_COMPILED))


def _enters(path: str) -> bool:
    folder = path.rpartition("/")[2]
    aside = "/" not in path and path in _ASIDE
    return not (aside or folder.startswith(".") or folder in ("__pycache__", "node_modules"))


def _roots(members: Iterable[str]) -> list[str]:
    """``""`` for a wheel, and for an sdist its one top-level folder (PEP 625)."""
    names = tuple(members)
    found = {
        path[: len(path) - len(name)]
        for path in names
        if path.count("/") < 2 and (name := path.rpartition("/")[2]) in _MARKERS
    }
    found |= {"" for path in names if path.count("/") == 1 and path.endswith(".dist-info/METADATA")}
    found = {root for root in found if not root.endswith((".egg-info/", ".dist-info/"))}
    if not found and any(path.endswith(".py") for path in names):
        return [""]
    return sorted(found, key=lambda root: (root.count("/"), root))


PROJECT = Selection(
    "project",
    _lists,
    _enters,
    _roots,
    "pyproject.toml",
    "no Python project: no pyproject.toml, setup.py, PKG-INFO or *.dist-info is in it",
)


@dataclass(frozen=True, slots=True)
class Packages:
    """A tree of packages: each path, and the path of the project that it stands for."""

    project: Tree
    names: Mapping[str, str]

    def files(self) -> frozenset[str]:
        """See :meth:`auditor.sources.tree.Tree.files`."""
        return frozenset(self.names)

    def read(self, path: str) -> bytes:
        """See :meth:`auditor.sources.tree.Tree.read`."""
        return self.project.read(self.names[path])

    def content_key(self, path: str) -> bytes:
        """See :func:`auditor.sources.tree.content_key`."""
        return content_key(self.project, self.names[path])

    def stamp(self, path: str) -> bytes | None:
        """See :func:`auditor.sources.tree.stamp`."""
        return stamp(self.project, self.names[path])


@dataclass(frozen=True, slots=True)
class Joined:
    """Trees side by side: of one path, the first tree that has it counts."""

    trees: tuple[Tree, ...]

    def files(self) -> frozenset[str]:
        """See :meth:`auditor.sources.tree.Tree.files`."""
        return frozenset().union(*(tree.files() for tree in self.trees))

    def read(self, path: str) -> bytes:
        """See :meth:`auditor.sources.tree.Tree.read`."""
        return self._holder(path).read(path)

    def content_key(self, path: str) -> bytes:
        """See :func:`auditor.sources.tree.content_key`."""
        return content_key(self._holder(path), path)

    def stamp(self, path: str) -> bytes | None:
        """See :func:`auditor.sources.tree.stamp`."""
        return stamp(self._holder(path), path)

    def _holder(self, path: str) -> Tree:
        for tree in self.trees:
            if path in tree.files():
                return tree
        raise KeyError(path)


def packages_of(
    project: Tree, name: str, modules: Iterable[str], taken: str, *, installed: bool = False
) -> tuple[Packages, frozenset[str], tuple[SourceProblem, ...]]:
    """The packages of a project, their names, and what was left out.

    Args:
        project: the files of the project.
        name: the name of the project; what says something of it goes below a folder of that name.
        modules: the modules that its entry points name.
        taken: the package that the project is a plugin of; a copy of it is no package of its own.
        installed: every module at the top belongs to it, as in a wheel.
    """
    paths = project.files()
    wanted = sorted({module.partition(".")[0] for module in modules} - {taken, ""})
    prefixes = list(dict.fromkeys(p for root in wanted for p in _places(root, paths)))
    prefixes = prefixes or ["", "src/"]
    names = {f"{name}/{path}": path for path in paths if _says(path)}
    roots: set[str] = set()
    for prefix in prefixes:
        for root in _packages_below(prefix, paths, wanted, installed=installed):
            roots.add(root)
            inside = (f"{prefix}{root}/", f"{prefix}{root}.")
            for path in paths:
                if path.startswith(inside) and (path.endswith(".py") or not has_contents(path)):
                    names.setdefault(path.removeprefix(prefix), path)
    problems = []
    if taken in roots:
        roots.discard(taken)
        names = {new: old for new, old in names.items() if not new.startswith(f"{taken}/")}
        why = f"a copy of files of {taken} itself, which an installation would write over it"
        problems.append(SourceProblem(taken, why))
    return Packages(project, names), frozenset(roots), tuple(problems)


def _says(path: str) -> bool:
    """Whether a file says something of its project."""
    folder, _, name = path.rpartition("/")
    if folder:
        return folder.endswith((".dist-info", ".egg-info")) and name in _OF_METADATA
    return name in _AT_THE_TOP


def _places(name: str, paths: frozenset[str]) -> list[str]:
    """The folders that hold a package or module of this name, the nearest to the root."""
    found = {
        path.removesuffix(end)
        for end in (f"{name}/__init__.py", f"{name}.py")
        for path in paths
        if path == end or path.endswith(f"/{end}")
    }
    found = found or {
        path[: path.index(f"{name}/")]
        for path in paths
        if path.startswith(f"{name}/") or f"/{name}/" in path
    }
    return sorted(found, key=lambda prefix: (prefix.count("/"), prefix))[:1]


def _packages_below(
    prefix: str, paths: frozenset[str], wanted: list[str], *, installed: bool
) -> set[str]:
    found = set()
    for path in paths:
        if not path.startswith(prefix) or not path.endswith(".py"):
            continue
        head, separator, rest = path.removeprefix(prefix).partition("/")
        if separator:
            if head in wanted or (rest == "__init__.py" and head not in _ASIDE):
                found.add(head)
        elif (installed or head.removesuffix(".py") in wanted) and head not in _AT_THE_TOP:
            found.add(head.removesuffix(".py"))
    return found
