"""Reads a zip file (a wheel, PEP 427, or a zipped sdist), keeping only what a tree wants."""

from __future__ import annotations

import re
import stat
from typing import IO, TYPE_CHECKING

from auditor.sources.gathering import DamagedArchiveError, Gathering

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

_UTF8_NAME = 0x800
_STORED_OR_DEFLATED = (0, 8)
_SPREAD = re.compile(r"[^/]+\.data/(?:purelib|platlib)/")


def gather_zip(file: IO[bytes], gathering: Gathering, *, is_wheel: bool) -> None:
    """Hand every member of the zip archive ``file`` to ``gathering``.

    Raises:
        DamagedArchiveError: truncated, corrupt, encrypted, or too large.
    """
    import struct
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                _gather_member(archive, member, _name_of(member, is_wheel), gathering)
    except (
        zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError,
        struct.error, OverflowError, ValueError,
    ) as error:  # fmt: skip
        told = str(error) or "a member ends too early"
        raise DamagedArchiveError(f"is a damaged zip file ({told})") from error


def _name_of(member: ZipInfo, is_wheel: bool) -> str:
    # zipfile cuts a name at its first NUL; what the archive says is what is checked.
    name = member.orig_filename
    if not member.flag_bits & _UTF8_NAME and not name.isascii():
        # By the specification this is code page 437; what is there in fact is mostly UTF-8.
        name = name.encode("cp437").decode("utf-8", "surrogateescape")
    # An installer spreads these folders over the one that holds the package (PEP 427).
    return _SPREAD.sub("", name, count=1) if is_wheel and _SPREAD.match(name) else name


def _gather_member(archive: ZipFile, member: ZipInfo, name: str, gathering: Gathering) -> None:
    mode = member.external_attr >> 16
    if name.endswith("/"):
        return
    if stat.S_ISLNK(mode):
        gathering.refuse(name, "a symbolic link, which is not followed")
    elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        gathering.refuse(name, "not a regular file")
    elif member.compress_type not in _STORED_OR_DEFLATED:
        gathering.refuse(name, "compressed by a method that no wheel uses")
    else:
        _gather_file(archive, member, name, gathering)


def _gather_file(archive: ZipFile, member: ZipInfo, name: str, gathering: Gathering) -> None:
    path = gathering.claim(name)
    if path is not None and gathering.wants_contents(path, member.file_size):
        gathering.consider(member.file_size)
        with archive.open(member) as content:
            # Asked for one byte more than is declared, ZipExtFile gives what is declared and
            # compares the CRC. Asked for everything, it would decompress whatever there is.
            gathering.add(path, content.read(member.file_size + 1))
