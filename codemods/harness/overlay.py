"""A copy of an installed package with patched files in it; the installed files stay as they are.

The copy consists of links to the installed files, so that it costs a second and no space. A file
that a patch changes is a file of its own. Compiled modules are linked as well: they are taken for
fresh where the source behind the link is the one that they were made from.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from auditor.errors import DraftauditError


class OverlayError(DraftauditError):
    """A package that cannot be copied."""


def overlay(package: Path, folder: Path, changed: Mapping[str, bytes]) -> Path:
    """Make the copy below ``folder``, and give the folder to put on the import path.

    Args:
        package: the folder of the installed package.
        folder: an empty folder.
        changed: the bytes of files that differ, by their path from the folder of the package's
            parent (``vllm/config/speculative.py``).

    Raises:
        OverlayError: a changed file does not exist, or the copy cannot be made.
    """
    parent = package.parent
    for path in changed:
        if not (parent / path).is_file():
            raise OverlayError("a patch changes a file that is not there", where=str(parent / path))
    try:
        _link(package, folder / package.name)
        for path, content in changed.items():
            target = folder / path
            target.unlink()
            target.write_bytes(content)
    except OSError as error:
        raise OverlayError(
            f"a copy of the package cannot be made ({error.strerror})", where=str(folder)
        ) from error
    return folder


def _link(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=True):
                _link(Path(entry.path), target / entry.name)
            else:
                (target / entry.name).symlink_to(entry.path)
