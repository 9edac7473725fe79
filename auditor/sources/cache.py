"""The cache folder: written atomically, never trusted, never needed.

Each entry can be deleted, damaged or shared between runs at any time. An entry is written to a
temporary file beside its place, flushed to the disk and renamed (``os.replace``), so another run
sees the whole entry or none. What cannot be written is done without, with a note.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_TEMPORARY = ".writing-"
_ABANDONED_AFTER = 24 * 3600.0


class CacheConfig(NamedTuple):
    """Where fetched and repacked archives are kept; None keeps nothing."""

    folder: Path | None

    @classmethod
    def default(cls) -> CacheConfig:
        """The user's cache folder for this tool, as the operating system has it.

        Nothing is kept for a user without a home, as in a container with a foreign user id.
        """
        from platformdirs import user_cache_path

        try:
            folder = user_cache_path("draftaudit", appauthor=False)
        except RuntimeError:
            return cls.off()
        # Before platformdirs raised that error, it took the tilde for the name of a folder.
        return cls(folder if folder.is_absolute() else None)

    @classmethod
    def at(cls, folder: Path) -> CacheConfig:
        """The folder the user named (``--cache-dir``); it is made when it is first written."""
        return cls(folder)

    @classmethod
    def off(cls) -> CacheConfig:
        """No cache (``--no-cache``)."""
        return cls(None)


class Cache:
    """Entries by name below one folder; remarks for the user collect in :attr:`notes`."""

    def __init__(self, config: CacheConfig) -> None:
        self.folder = config.folder
        self.notes: list[str] = []

    def read(self, name: str) -> bytes | None:
        """The entry ``name`` as it is on the disk, or None when there is none."""
        if self.folder is None:
            return None
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            self.note_unreadable(error)
            return None

    def note_unreadable(self, error: OSError) -> None:
        """Note that an entry could not be read, unless there is none."""
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            self.note(f"the cache folder {self.folder} cannot be read ({error.strerror})")

    def write(self, name: str, content: bytes, *, modified: float | None = None) -> None:
        """Keep ``content`` as ``name``, last modified at ``modified`` (seconds since the epoch).

        Where that fails, it is noted once.
        """
        if self.folder is None:
            return
        try:
            _replace(self.folder / name, content, modified)
        except OSError as error:
            self.note(
                f"the cache folder {self.folder} cannot be written ({error.strerror}): "
                "nothing is kept for the next run"
            )

    def discard(self, name: str, why: str) -> None:
        """Remove the damaged entry ``name``, and note ``why``."""
        if self.folder is None:
            return
        self.note(why)
        try:
            (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            self.note(f"{self.folder / name} cannot be removed ({error.strerror})")

    def names(self, folder: str) -> list[str]:
        """The names of the entries in ``folder``, sorted."""
        if self.folder is None:
            return []
        try:
            found = os.listdir(self.folder / folder)
        except OSError:
            # A folder that cannot be listed holds nothing that could be offered.
            return []
        return sorted(name for name in found if not name.startswith(_TEMPORARY))

    def note(self, text: str) -> None:
        """Add a remark for the user, once."""
        if text not in self.notes:
            self.notes.append(text)


def _replace(target: Path, content: bytes, modified: float | None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with _temporary_beside(target) as temporary:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if modified is not None:
            os.utime(temporary, (modified, modified))
        os.replace(temporary, target)


@contextlib.contextmanager
def _temporary_beside(target: Path) -> Iterator[Path]:
    _sweep(target.parent)
    temporary = target.with_name(f"{_TEMPORARY}{os.urandom(8).hex()}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove what runs that were killed while writing left behind."""
    for leftover in folder.glob(f"{_TEMPORARY}*"):
        # Another run may have been faster, and in a shared folder it may be another user's.
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _ABANDONED_AFTER:
                leftover.unlink()
