"""A wheel or an sdist as a tree, read in memory: never unpacked, nothing executed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import IO, Literal

from auditor.errors import SourceError
from auditor.sources.gathering import DamagedArchiveError, Gathering
from auditor.sources.selection import DEFAULT_LIMITS, VLLM, Limits, Selection
from auditor.sources.tree import SourceProblem

ArchiveKind = Literal["wheel", "sdist"]

ARCHIVE_SUFFIXES = (
    ".whl", ".zip", ".tar.gz", ".tgz", ".tar", ".tar.bz2", ".tbz", ".tbz2", ".tar.xz", ".txz",
)  # fmt: skip

_NOT_AN_ARCHIVE = "is not an archive that can be read"
_NEXT_ARCHIVE = "Give a wheel (.whl) or an sdist (.tar.gz, .zip, .tar.bz2, .tar.xz) of vLLM."
_NEXT_DAMAGED = "Download or build the archive again."


@dataclass(frozen=True, slots=True)
class ArchiveContents:
    """What an archive holds of a vLLM tree; None stands for contents that are not kept."""

    kind: ArchiveKind
    members: dict[str, bytes | None]
    problems: tuple[SourceProblem, ...]


def read_archive(
    file: IO[bytes],
    name: str,
    *,
    limits: Limits = DEFAULT_LIMITS,
    where: str = "",
    selection: Selection = VLLM,
) -> ArchiveContents:
    """The vLLM tree in the archive ``file``, whose file name is ``name``.

    The format is told from the first bytes, not from the name. A member that is a link or a
    device, is huge, or has a name that leads out of the archive is a problem, never followed.

    Raises:
        SourceError: empty, not an archive, truncated, corrupt, too large, or without ``vllm/``.
    """
    place = where or name
    gathering = Gathering(limits, selection)
    try:
        kind = _gather(file, name, gathering)
    except DamagedArchiveError as error:
        raise SourceError(f"this archive {error}", where=place, next_step=_NEXT_DAMAGED) from error
    except OSError as error:
        raise SourceError(f"cannot be read ({error.strerror})", where=place) from error
    root = gathering.root()
    if root is None:
        raise _without_package(gathering, place)
    return ArchiveContents(kind, gathering.tree(root), gathering.problems(root))


def looks_like_archive(name: str) -> bool:
    """Whether the file name ``name`` ends like that of a wheel or an sdist."""
    return name.lower().endswith(ARCHIVE_SUFFIXES)


def _gather(file: IO[bytes], name: str, gathering: Gathering) -> ArchiveKind:
    magic = file.read(512)
    file.seek(0, os.SEEK_SET)
    if not magic:
        raise DamagedArchiveError("is empty")
    if magic.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        from auditor.sources.zips import gather_zip

        is_wheel = name.lower().endswith(".whl")
        gather_zip(file, gathering, is_wheel=is_wheel)
        return "wheel" if is_wheel else "sdist"
    if not magic.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")) and not _is_tar(magic):
        raise DamagedArchiveError(f"{_NOT_AN_ARCHIVE}: it starts with {magic[:8]!r}")
    from auditor.sources.streams import decompressed
    from auditor.sources.tar import gather_tar

    gather_tar(decompressed(file, magic), gathering)
    return "sdist"


def _is_tar(magic: bytes) -> bool:
    return magic[257:262] == b"ustar" or (len(magic) == 512 and not magic.strip(b"\0"))


def _without_package(gathering: Gathering, where: str) -> SourceError:
    if not gathering.members:
        what = "this archive holds no file that belongs to a Python package"
    else:
        what = f"this archive holds {gathering.selection.missing}"
    return SourceError(what, where=where, next_step=_NEXT_ARCHIVE)
