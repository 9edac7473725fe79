"""The cache of module facts, keyed by the content of a file and the version of the tool.

One SQLite file in the cache folder. It may be deleted, shared between processes, or damaged at any
time: every entry carries a digest, and what cannot be read or written is computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec

from auditor import __version__
from auditor import facts as f

_SCHEMA = "CREATE TABLE IF NOT EXISTS facts (key BLOB PRIMARY KEY, digest BLOB, value BLOB)"
_CHUNK = 500
_FILE = "facts.sqlite3"

#: What a file of the tree is read as.
Parsed = f.ModuleFacts | f.Unparsed
_DECODER = msgspec.msgpack.Decoder(Parsed)
encode = msgspec.msgpack.Encoder().encode


def decode(blob: bytes) -> Parsed:
    """The facts in ``blob``.

    Raises:
        msgspec.DecodeError: it does not hold facts of this version.
    """
    return _DECODER.decode(blob)


@cache
def tool_salt() -> bytes:
    """What tells facts of one tool version and Python release from those of another.

    The code that makes facts takes part, so that a checkout under development needs no new
    version for each change.
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{__version__} {sys.version_info[:2]}".encode())
    package = Path(__file__).parent
    code = [package / "facts.py", *(package / "syntax").glob("*.py")]
    for path in sorted(code):
        digest.update(path.read_bytes())
    return digest.digest()


def facts_key(content_key: bytes, subject: str) -> bytes:
    """The key of what is read off a file: 16 bytes over its content key, the tool and ``subject``.

    Args:
        content_key: the key of the file's bytes.
        subject: what is read off it, and for which root package.
    """
    digest = hashlib.blake2b(content_key, digest_size=16, key=tool_salt())
    digest.update(subject.encode())
    return digest.digest()


class FactCache:
    """Facts by key. Without a folder it keeps nothing; it never raises.

    A forked child keeps nothing either: SQLite forbids the use of a connection across a fork.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._connection: sqlite3.Connection | None = None
        self._dropped = False
        self._process = os.getpid()
        if folder is not None:
            self._open(folder)

    def _open(self, folder: Path) -> None:
        """Open the file; one that is not a database any more is made anew."""
        path = folder / _FILE
        for attempt in (1, 2):
            connection: sqlite3.Connection | None = None
            try:
                folder.mkdir(parents=True, exist_ok=True)
                connection = sqlite3.connect(path, timeout=5, isolation_level=None)
                connection.execute("PRAGMA synchronous=OFF")
                connection.execute(_SCHEMA)
            except (sqlite3.Error, OSError):
                if connection is not None:
                    connection.close()
                if attempt == 1:
                    with contextlib.suppress(OSError):
                        path.unlink()
                continue
            self._connection = connection
            return

    def load(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, Parsed, bytes]]:
        """The entries among ``keys`` that are there and intact, each with its digest."""
        if self._connection is None or os.getpid() != self._process:
            return
        wanted = list(keys)
        for start in range(0, len(wanted), _CHUNK):
            chunk = wanted[start : start + _CHUNK]
            for key, digest, blob in self._select(self._connection, chunk):
                # Whatever a damaged database gives, a number or nothing at all.
                if isinstance(blob, bytes) and digest_of(blob) == digest:
                    with contextlib.suppress(msgspec.DecodeError):
                        yield key, decode(blob), digest

    def _select(
        self, connection: sqlite3.Connection, keys: list[bytes]
    ) -> list[tuple[bytes, bytes, bytes]]:
        marks = ",".join("?" * len(keys))
        query = f"SELECT key, digest, value FROM facts WHERE key IN ({marks})"
        try:
            return connection.execute(query, keys).fetchall()
        except sqlite3.Error:
            self._drop()
            return []

    def store(self, rows: Sequence[tuple[bytes, bytes, bytes]]) -> None:
        """Keep facts, each by key with digest and encoding; where that fails, none of them."""
        if self._connection is None or not rows or os.getpid() != self._process:
            return
        try:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", rows)
        except sqlite3.Error:
            self._drop()

    def _drop(self) -> None:
        """A database that cannot be used is made anew, once; after that it is done without."""
        self.close()
        if self._folder is not None and not self._dropped:
            self._dropped = True
            with contextlib.suppress(OSError):
                (self._folder / _FILE).unlink()
            self._open(self._folder)

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def digest_of(blob: bytes) -> bytes:
    """What tells encoded facts from others: 8 bytes."""
    return hashlib.blake2b(blob, digest_size=8).digest()
