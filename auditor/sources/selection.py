"""Which files of a source belong to a tree, which have contents, and how much is read at most.

The same rule holds for every kind of source, so that one release gives the same set of files
however it is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

PACKAGE_MARKER = "vllm/__init__.py"

_FOLDERS = ("vllm", "requirements")

# Compiled or rendered files: their names are facts, their bytes are none that can be audited.
_WITHOUT_CONTENTS = (
    ".so", ".pyd", ".dll", ".dylib", ".a", ".o", ".lib", ".exe", ".pyc", ".pyo",
    ".cubin", ".fatbin", ".hsaco", ".ptx", ".bin", ".pt", ".pth", ".safetensors", ".npy",
    ".jpg", ".jpeg", ".png", ".gif", ".svg", ".ico", ".webp", ".pdf", ".mp4", ".wav",
    ".woff", ".woff2", ".ttf", ".css", ".js", ".map",
    ".whl", ".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst",
)  # fmt: skip


def is_listed(path: str) -> bool:
    """Whether an audit can use ``path``, a POSIX path relative to the folder holding ``vllm/``."""
    head, separator, rest = path.partition("/")
    if not separator:
        return True
    return is_listed_folder(head) and "__pycache__" not in rest.split("/")


def is_listed_folder(name: str) -> bool:
    """Whether the files below the top-level folder ``name`` belong to a tree."""
    return name in _FOLDERS or name.endswith(".dist-info")


def has_contents(path: str) -> bool:
    """Whether the bytes of ``path`` are kept: false for compiled files, images and archives."""
    return not path.lower().endswith(_WITHOUT_CONTENTS) and ".so." not in path.rpartition("/")[2]


def _enters(path: str) -> bool:
    return path.rpartition("/")[2] != "__pycache__" if "/" in path else is_listed_folder(path)


def _package_roots(members: Iterable[str]) -> list[str]:
    """The prefixes of the folders that hold ``vllm/``, the likeliest one first.

    PEP 625 gives an sdist one top-level folder. Where several folders hold the package, the one
    with a ``PKG-INFO`` is taken, else the first by name.
    """
    names = frozenset(members)
    return sorted(
        (path.removesuffix(PACKAGE_MARKER) for path in names if _is_marker(path)),
        key=lambda root: (root.count("/"), root + "PKG-INFO" not in names, root),
    )


def _is_marker(path: str) -> bool:
    return path == PACKAGE_MARKER or (path.endswith(f"/{PACKAGE_MARKER}") and path.count("/") == 2)


class Selection(NamedTuple):
    """Which files of a folder or an archive make up a tree.

    Attributes:
        name: of the selection, for the cache.
        lists: whether a path, relative to the tree's root, belongs to the tree.
        enters: whether anything below a folder may belong to it.
        roots: the prefixes in an archive that may be the tree's root, the likeliest one first.
        marker: the file by which a root is known, relative to it.
        missing: what an archive without a root does not hold, in a clause.
    """

    name: str
    lists: Callable[[str], bool]
    enters: Callable[[str], bool]
    roots: Callable[[Iterable[str]], list[str]]
    marker: str
    missing: str


VLLM = Selection(
    "",
    is_listed,
    _enters,
    _package_roots,
    PACKAGE_MARKER,
    f"no vLLM: neither {PACKAGE_MARKER} nor */{PACKAGE_MARKER} is in it",
)


class Limits(NamedTuple):
    """Bounds on a source, against one that was built to exhaust memory; sizes are in bytes.

    Attributes:
        member: a single file after decompression; a larger one is left out and reported.
        kept: all files whose contents are kept; an archive with more is refused.
        total: everything that has to be decompressed, and the archive itself as it is fetched.
        members: how many files an archive can hold.
    """

    member: int = 64 << 20
    kept: int = 512 << 20
    total: int = 2 << 30
    members: int = 200_000


DEFAULT_LIMITS = Limits()
