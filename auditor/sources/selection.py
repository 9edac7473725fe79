"""Which files of a source belong to a tree, and which of those have contents.

The same rule holds for every kind of source, so that one release gives the same set of files
however it is opened.
"""

from __future__ import annotations

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
