"""Decompression in bounded steps: no input makes one step give more than 1 MiB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from auditor.sources.gathering import DamagedArchiveError

_STEP = 1 << 20
_INPUT = 1 << 16
_TRUNCATED = "ends in the middle of the compressed data (truncated)"


def decompressed(file: IO[bytes], magic: bytes) -> Iterator[bytes]:
    """The blocks of ``file``, decompressed by what its first bytes ``magic`` say it is.

    gzip (RFC 1952), bzip2 and xz are known; anything else is passed through as it is.

    Raises:
        DamagedArchiveError: truncated or corrupt data, checksums included.
    """
    if magic.startswith(b"\x1f\x8b"):
        return _gunzip(file)
    if magic.startswith(b"BZh"):
        return _unpack_bzip2(file)
    if magic.startswith(b"\xfd7zXZ\x00"):
        return _unpack_xz(file)
    return iter(lambda: file.read(_STEP), b"")


def _gunzip(file: IO[bytes]) -> Iterator[bytes]:
    import zlib

    rest = file.read(_INPUT)
    while rest.rstrip(b"\0"):
        decoder = zlib.decompressobj(wbits=31)
        while not decoder.eof:
            if not rest:
                raise DamagedArchiveError(_TRUNCATED)
            try:
                block = decoder.decompress(rest, _STEP)
            except zlib.error as error:
                raise DamagedArchiveError(f"holds corrupt gzip data ({error})") from error
            yield block
            rest = decoder.unconsumed_tail or decoder.unused_data or file.read(_INPUT)


def _unpack_bzip2(file: IO[bytes]) -> Iterator[bytes]:
    import bz2

    rest = file.read(_INPUT)
    while rest:
        decoder = bz2.BZ2Decompressor()
        while not decoder.eof:
            if not rest and decoder.needs_input:
                raise DamagedArchiveError(_TRUNCATED)
            try:
                yield decoder.decompress(rest, _STEP)
            except OSError as error:
                raise DamagedArchiveError("holds corrupt bzip2 data") from error
            rest = _next_input(file, decoder.eof, decoder.needs_input, decoder.unused_data)


def _unpack_xz(file: IO[bytes]) -> Iterator[bytes]:
    import lzma

    rest = file.read(_INPUT)
    while rest.rstrip(b"\0"):
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=256 << 20)
        while not decoder.eof:
            if not rest and decoder.needs_input:
                raise DamagedArchiveError(_TRUNCATED)
            try:
                yield decoder.decompress(rest, _STEP)
            except lzma.LZMAError as error:
                raise DamagedArchiveError(f"holds corrupt xz data ({error})") from error
            rest = _next_input(file, decoder.eof, decoder.needs_input, decoder.unused_data)


def _next_input(file: IO[bytes], eof: bool, needs_input: bool, unused: bytes) -> bytes:
    if eof:
        return unused or file.read(_INPUT)
    return file.read(_INPUT) if needs_input else b""
