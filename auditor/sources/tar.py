"""Reads a tar stream once, keeping only the members a tree wants.

The format is POSIX pax (IEEE 1003.1, "pax Interchange Format") with ustar, V7 and the GNU long
name extension. :mod:`tarfile` builds an object of 20 fields for each of the 8,500 members of a
vLLM sdist, which costs more than decompressing it; a test holds the two to the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from auditor.sources.gathering import DamagedArchiveError, Gathering

_BLOCK = 512
_LONGEST_EXTENSION = 1 << 20
_REGULAR = b"0\x007"
_OTHER_KINDS = {
    b"1": "a hard link, which is not followed",
    b"2": "a symbolic link, which is not followed",
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a named pipe",
    b"S": "a sparse file",
}


def gather_tar(blocks: Iterator[bytes], gathering: Gathering) -> None:
    """Hand every member of the tar archive in ``blocks`` to ``gathering``.

    Raises:
        DamagedArchiveError: truncated, not a tar archive, a wrong header checksum, or too large.
    """
    stream = _Stream(blocks, gathering)
    extensions: dict[str, bytes] = {}
    defaults: dict[str, bytes] = {}
    while (header := _header(stream)) is not None:
        if header.kind in b"xXgLK":
            content = stream.take(_padded(_bounded(header.size)))[: header.size]
            if header.kind in b"xXg":
                (defaults if header.kind == b"g" else extensions).update(_records(content))
            elif header.kind == b"L":
                extensions["path"] = content.rstrip(b"\0")
        else:
            _gather_member(stream, header, defaults | extensions, gathering)
            extensions = {}
    stream.drain()


@dataclass(frozen=True, slots=True)
class _Header:
    name: bytes
    size: int
    kind: bytes


class _Stream:
    """Bytes out of a series of blocks, each counted against the limit."""

    def __init__(self, blocks: Iterator[bytes], gathering: Gathering) -> None:
        self._blocks = blocks
        self._gathering = gathering
        self._block = b""
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end <= len(self._block):
            taken = self._block[self._at : end]
            self._at = end
            return taken
        parts = [self._block[self._at :]]
        missing = size - len(parts[0])
        while missing > 0:
            self._next()
            parts.append(self._block[:missing])
            missing -= len(parts[-1])
        self._at = len(parts[-1])
        return b"".join(parts)

    def skip(self, size: int) -> None:
        self._at += size
        while self._at > len(self._block):
            left = self._at - len(self._block)
            self._next()
            self._at = left

    def drain(self) -> None:
        """Read to the end, so that the checksum of the compressed stream is checked."""
        for block in self._blocks:
            self._gathering.consider(len(block))

    def _next(self) -> None:
        block = next(self._blocks, None)
        if block is None:
            raise DamagedArchiveError("ends before the end-of-archive mark (truncated)")
        self._gathering.consider(len(block))
        self._block, self._at = block, 0


def _header(stream: _Stream) -> _Header | None:
    block = stream.take(_BLOCK)
    if not block.strip(b"\0"):
        return None
    if _number(block[148:156]) not in _checksums(block):
        raise DamagedArchiveError("holds a tar header with a wrong checksum")
    name = block[:100].partition(b"\0")[0]
    prefix = block[345:500].partition(b"\0")[0]
    if prefix and block[257:263] == b"ustar\0":
        name = prefix + b"/" + name
    kind = block[156:157]
    if kind == b"S" and block[482]:
        # The map of an old GNU sparse file goes on in blocks that its size does not count.
        while stream.take(_BLOCK)[504]:
            continue
    return _Header(name, _number(block[124:136]), kind)


def _checksums(block: bytes) -> tuple[int, int]:
    unsigned = sum(block[:148]) + sum(block[156:]) + 8 * 32
    high = sum(byte >> 7 for byte in block[:148] + block[156:])
    return unsigned, unsigned - 256 * high


def _number(text: bytes) -> int:
    if text[0] & 0x80:  # GNU base-256; a leading 0xff is a negative number
        value = int.from_bytes(text, "big", signed=text[0] == 0xFF)
        value = value if value < 0 else value & ~(1 << (8 * len(text) - 1))
    else:
        digits = text.partition(b"\0")[0].strip()
        if digits.strip(b"01234567"):
            raise DamagedArchiveError("holds a tar header that is not one")
        value = int(digits or b"0", 8)
    if value < 0:
        raise DamagedArchiveError("holds a tar member of negative size")
    return value


def _records(content: bytes) -> dict[str, bytes]:
    """The records of a pax extended header: a length, a key, ``=``, a value, an end of line.

    Only those that say something about a file are kept.
    """
    records: dict[str, bytes] = {}
    at = 0
    while at < len(content):
        length = content[at : at + 20].partition(b" ")[0]
        if not length.isdigit() or not at + int(length) <= len(content) or int(length) < 5:
            raise DamagedArchiveError("holds a malformed pax header")
        record = content[at + len(length) + 1 : at + int(length) - 1]
        key, _, value = record.partition(b"=")
        if key in (b"path", b"size"):
            records[key.decode("ascii")] = value
        elif key.startswith(b"GNU.sparse."):
            records["sparse"] = b""
        at += int(length)
    return records


def _gather_member(
    stream: _Stream, header: _Header, extensions: dict[str, bytes], gathering: Gathering
) -> None:
    size = _override(extensions, header.size)
    name = extensions.get("path", header.name).decode("utf-8", "surrogateescape")
    if header.kind not in _REGULAR:
        if header.kind != b"5":
            gathering.refuse(name, _OTHER_KINDS.get(header.kind, "a member of unknown kind"))
        # Links, devices and folders carry no data, whatever their size field says.
        stream.skip(0 if header.kind in b"123456" else _padded(size))
    elif "sparse" in extensions:
        gathering.refuse(name, _OTHER_KINDS[b"S"])
        stream.skip(_padded(size))
    else:
        _gather_file(stream, name, size, gathering)


def _gather_file(stream: _Stream, name: str, size: int, gathering: Gathering) -> None:
    path = None if name.endswith("/") else gathering.claim(name)
    if path is not None and gathering.wants_contents(path, size):
        gathering.add(path, stream.take(_padded(size))[:size])
    else:
        stream.skip(_padded(size))


def _override(extensions: dict[str, bytes], size: int) -> int:
    text = extensions.get("size")
    if text is None:
        return size
    if not text.isdigit() or len(text) > 20:
        raise DamagedArchiveError("holds a malformed pax header")
    return int(text)


def _bounded(size: int) -> int:
    if size > _LONGEST_EXTENSION:
        raise DamagedArchiveError("holds an extended header that is far too long")
    return size


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
