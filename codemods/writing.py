"""Files edited in place: all of them or none, and recoverable whenever the process is killed.

Every new file is written beside the old one, with its mode, and synced. Then a journal beside the
package names the set: from here on the set is decided. The files are replaced one by one
(:func:`os.replace`, atomic on one file system), and the journal goes last. Killed before the
journal is there, every file is the old one; killed after, each is old or new, and :func:`recover`
finishes the set.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from auditor.errors import DraftauditError

JOURNAL = ".codemod-journal"
_SUFFIX = ".codemod-new"
#: The mode of a file that is made.
_NEW_MODE = 0o644
#: What a journal says of the content of a file that there was not.
_NOTHING = ""


class WriteError(DraftauditError):
    """A file that is not edited, and why; nothing else is edited either."""


class _Entry(msgspec.Struct, frozen=True):
    path: str
    before: str
    after: str


class _Journal(msgspec.Struct, frozen=True):
    entries: tuple[_Entry, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One file: the bytes that were analysed, and those that replace them.

    ``before`` is None for a file that is made.
    """

    path: str
    before: bytes | None
    after: bytes


def changes_of(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[Change, ...]:
    """The files that change, in order of path."""
    return tuple(
        Change(path, before[path], after[path])
        for path in sorted(after)
        if before[path] != after[path]
    )


def write(root: Path, changes: tuple[Change, ...]) -> None:
    """Replace the files of all changes, or none.

    Raises:
        WriteError: a file may not be edited, is not what was analysed, or cannot be written.
    """
    if (root / JOURNAL).exists():
        raise WriteError(
            "an earlier edit was interrupted while it replaced files",
            where=str(root / JOURNAL),
            next_step="Run codemod recover to finish it first.",
        )
    for change in changes:
        check(root, change)
    try:
        for change in changes:
            _write_beside(root, change)
        _write_journal(root, changes)
    except OSError as error:
        _discard(root, changes)
        raise _failed(error) from error
    _replace_all(root, changes)


def check(root: Path, change: Change) -> None:
    """Raise unless a file can be replaced, and holds what was analysed.

    Raises:
        WriteError: with the reason.
    """
    place = root / change.path
    where = str(place)
    if not place.resolve().is_relative_to(root.resolve()):
        raise WriteError("lies outside the tree", where=where, next_step="It is not edited.")
    if change.before is None:
        _check_new(place)
        return
    try:
        status = os.lstat(place)
    except OSError as error:
        raise WriteError(f"cannot be edited ({error.strerror})", where=where) from error
    if stat.S_ISLNK(status.st_mode):
        raise WriteError(
            "is a symbolic link", where=where, next_step="Edit the file that it points to."
        )
    if not stat.S_ISREG(status.st_mode):
        raise WriteError("is not a regular file", where=where)
    if not status.st_mode & stat.S_IWUSR or not os.access(place, os.W_OK):
        raise WriteError("is read-only", where=where, next_step="Make it writable first.")
    if not os.access(place.parent, os.W_OK):
        raise WriteError("its folder is read-only", where=where, next_step="Make it writable.")
    if place.read_bytes() != change.before:
        raise WriteError(
            "has changed since it was analysed", where=where, next_step="Run the command again."
        )


def _check_new(place: Path) -> None:
    """Raise unless a file can be made where none is."""
    where = str(place)
    if os.path.lexists(place):
        raise WriteError("exists already", where=where, next_step="Move it out of the way.")
    folder = place.parent
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise WriteError("is not a folder", where=str(folder))
    if not os.access(folder, os.W_OK):
        raise WriteError("is read-only", where=str(folder), next_step="Make it writable.")


def recover(root: Path) -> tuple[str, ...]:
    """Finish an interrupted edit; gives the files that were replaced now.

    Raises:
        WriteError: a file is neither the old nor the new one, or cannot be replaced.
    """
    journal = _read_journal(root)
    if journal is None:
        return ()
    pending = [entry for entry in journal.entries if _is_pending(root, entry)]
    for entry in pending:
        place = root / entry.path
        try:
            os.replace(_beside(place), place)
        except OSError as error:
            raise WriteError(f"cannot be replaced ({error.strerror})", where=str(place)) from error
    _sync_folders(root, [entry.path for entry in journal.entries])
    for entry in journal.entries:
        _beside(root / entry.path).unlink(missing_ok=True)
    (root / JOURNAL).unlink()
    return tuple(entry.path for entry in pending)


def _read_journal(root: Path) -> _Journal | None:
    """The journal of an interrupted edit; None where there is none."""
    where = str(root / JOURNAL)
    next_step = "Compare the files with what they should be, then delete it."
    try:
        data = (root / JOURNAL).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = f"cannot be read ({error.strerror})"
        raise WriteError(reason, where=where, next_step=next_step) from error
    try:
        journal = msgspec.json.decode(data, type=_Journal)
        for entry in journal.entries:
            # Paths that no system call takes: with NUL, or half of a surrogate pair.
            if b"\0" in os.fsencode(_beside(root / entry.path)):
                raise ValueError("a path holds NUL")
    except (msgspec.DecodeError, ValueError) as error:
        raise WriteError("is damaged", where=where, next_step=next_step) from error
    return journal


def _is_pending(root: Path, entry: _Entry) -> bool:
    """Whether a file of a journal is still the old one."""
    place = root / entry.path
    if not place.resolve().is_relative_to(root.resolve()):
        raise WriteError("lies outside the tree", where=str(place))
    digest = _digest(place) if entry.before or os.path.lexists(place) else _NOTHING
    if digest == entry.after:
        return False
    beside = _beside(place)
    if digest == entry.before and beside.is_file() and _digest(beside) == entry.after:
        return True
    raise WriteError(
        "is neither the file before the interrupted edit nor the one after it",
        where=str(place),
        next_step=f"Restore it, then delete {root / JOURNAL}.",
    )


def _digest(place: Path) -> str:
    try:
        return sha256(place.read_bytes()).hexdigest()
    except OSError as error:
        raise WriteError(f"cannot be read ({error.strerror})", where=str(place)) from error


def _beside(place: Path) -> Path:
    return place.with_name(f".{place.name}{_SUFFIX}")


def _write_beside(root: Path, change: Change) -> None:
    place = root / change.path
    if change.before is None:
        place.parent.mkdir(parents=True, exist_ok=True)
        _write_new(_beside(place), change.after, _NEW_MODE)
        return
    mode = stat.S_IMODE(os.stat(place).st_mode)
    _write_new(_beside(place), change.after, mode)


def _write_new(place: Path, content: bytes, mode: int) -> None:
    """A new file, complete on the disk when this returns; what is in its place goes first."""
    place.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(place, flags, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(place, mode)


def _write_journal(root: Path, changes: tuple[Change, ...]) -> None:
    entries = tuple(
        _Entry(
            change.path,
            _NOTHING if change.before is None else sha256(change.before).hexdigest(),
            sha256(change.after).hexdigest(),
        )
        for change in changes
    )
    partial = root / f"{JOURNAL}{_SUFFIX}"
    _write_new(partial, msgspec.json.encode(_Journal(entries)), 0o600)
    os.replace(partial, root / JOURNAL)
    _sync_folders(root, [])


def _replace_all(root: Path, changes: tuple[Change, ...]) -> None:
    done: list[Change] = []
    try:
        for change in changes:
            place = root / change.path
            check(root, change)
            os.replace(_beside(place), place)
            done.append(change)
    except (OSError, WriteError) as error:
        _undo(root, done)
        _discard(root, changes)
        raise error if isinstance(error, WriteError) else _failed(error) from error
    _sync_folders(root, [change.path for change in changes])
    (root / JOURNAL).unlink()


def _undo(root: Path, done: list[Change]) -> None:
    """Put the old bytes back."""
    for change in done:
        place = root / change.path
        if change.before is None:
            place.unlink()
            continue
        mode = stat.S_IMODE(os.stat(place).st_mode)
        _write_new(_beside(place), change.before, mode)
        os.replace(_beside(place), place)


def _discard(root: Path, changes: tuple[Change, ...]) -> None:
    """Take away what was written beside the files."""
    for change in changes:
        with suppress(OSError):
            _beside(root / change.path).unlink(missing_ok=True)
    for name in (f"{JOURNAL}{_SUFFIX}", JOURNAL):
        (root / name).unlink(missing_ok=True)


def _sync_folders(root: Path, paths: list[str]) -> None:
    """Make the names in the folders of these files last; where a system cannot, they need not."""
    for folder in {root, *((root / path).parent for path in paths)}:
        for descriptor in _opened(folder):
            with suppress(OSError):
                os.fsync(descriptor)


def _opened(folder: Path) -> Iterator[int]:
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _failed(error: OSError) -> WriteError:
    where = os.fspath(error.filename) if error.filename is not None else ""
    return WriteError(
        f"cannot be written ({error.strerror})", where=str(where), next_step="Nothing was changed."
    )
