"""Reads a zip file (a wheel, PEP 427, or a zipped sdist), keeping only what a tree wants."""

from __future__ import annotations

import stat
from typing import IO, TYPE_CHECKING

from auditor.sources.gathering import DamagedArchiveError, Gathering

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo


def gather_zip(file: IO[bytes], gathering: Gathering) -> None:
    """Hand every member of the zip archive ``file`` to ``gathering``.

    Raises:
        DamagedArchiveError: truncated, corrupt, encrypted, a compression method this Python does
            not know, or too large.
    """
    import struct
    import zipfile
    import zlib
    from lzma import LZMAError

    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                _gather_member(archive, member, gathering)
    except (
        zipfile.BadZipFile, zlib.error, LZMAError, EOFError, NotImplementedError,
        RuntimeError, UnicodeDecodeError, struct.error, OverflowError, ValueError,
    ) as error:  # fmt: skip
        raise DamagedArchiveError(f"is a damaged zip file ({error})") from error


def _gather_member(archive: ZipFile, member: ZipInfo, gathering: Gathering) -> None:
    # zipfile cuts a name at its first NUL; what the archive says is what is checked.
    name = member.orig_filename
    mode = member.external_attr >> 16
    if name.endswith("/"):
        return
    if stat.S_ISLNK(mode):
        gathering.refuse_link(name, "a symbolic link")
    elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        gathering.refuse_link(name, "not a regular file")
    else:
        _gather_file(archive, member, name, gathering)


def _gather_file(archive: ZipFile, member: ZipInfo, name: str, gathering: Gathering) -> None:
    path = gathering.claim(name)
    if path is not None and gathering.wants_contents(path, member.file_size):
        # ZipExtFile stops at the declared size and then compares the CRC, so a member cannot
        # give more bytes than are counted here.
        gathering.consider(member.file_size)
        gathering.add(path, archive.read(member))
