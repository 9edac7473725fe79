"""Where a report goes: to the terminal, or to a file that is whole or untouched."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from pathlib import Path

import click

from auditor.errors import DraftauditError, UsageError
from auditor.options import Options


def deliver(text: str, options: Options) -> None:
    """Write a report to stdout, or as UTF-8 to a file that is whole or untouched.

    A reader of stdout that has seen enough (``audit | head``) ends the output, not the audit.

    Raises:
        UsageError: the file cannot be written.
    """
    if options.output is None or options.to_stdout:
        _print(encodable(text) if options.for_people else text.encode())
        return
    write(options.output, text)


def write(path: str, text: str) -> None:
    """Write UTF-8 to a file that is whole or untouched; what a link leads to, not the link.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        replace_file(Path(os.path.realpath(path)), text.encode())
    except OSError as error:
        where = path or "--output"
        raise UsageError(f"cannot be written: {error.strerror}", where=where) from error


def _print(text: str | bytes) -> None:
    try:
        click.echo(text, nl=False)
    except BrokenPipeError:
        # What is still buffered must not fail again at exit (Python docs, "Note on SIGPIPE").
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise DraftauditError(
            f"the report cannot be written: {error.strerror}",
            where="standard output",
            next_step="Make room, or write to a file with -o.",
        ) from error


def encodable(text: str) -> str:
    """``text`` with that replaced for which the terminal's encoding has no sign."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        simple = text.translate({ord("\u2014"): "-", ord("\u2500"): "-", ord("\u00b5"): "u"})
        return simple.encode(encoding, "backslashreplace").decode(encoding)
    return text


def replace_file(path: Path, data: bytes) -> None:
    """Write beside ``path``, then rename; a device or a pipe is written to directly.

    Raises:
        OSError: it cannot be written, and is as it was.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=".draftaudit-")
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.chmod(beside, _mode(path))
        os.replace(beside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):  # renamed, unless something failed
            os.unlink(beside)


def _mode(path: Path) -> int:
    """The permissions ``path`` has, or those a new file would get."""
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
