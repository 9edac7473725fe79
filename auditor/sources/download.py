"""Fetches one archive from an index into a temporary file, checked against the index's hash."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, NamedTuple

from auditor.errors import SourceError
from auditor.sources.network import (
    NEXT_STEP_OFFLINE,
    NetworkError,
    explained,
    retried,
    status_error,
)
from auditor.sources.pip_settings import PipSettings
from auditor.sources.progress import Progress
from auditor.sources.releases import Release
from auditor.sources.selection import DEFAULT_LIMITS

if TYPE_CHECKING:
    from unearth.fetchers import PyPIClient

_STEP = 1 << 16
_STRONG = ("sha256", "sha384", "sha512")


class Download(NamedTuple):
    """How to fetch: the connection, the user's settings, and who is told how far it is."""

    session: PyPIClient
    settings: PipSettings
    progress: Progress | None

    def fetch(self, release: Release, into: IO[bytes]) -> str:
        """Write the archive of ``release`` to ``into``; its SHA-256.

        Raises:
            SourceError: the server cannot be used, the disk is full, or a hash of the index is
                not that of the bytes received.
        """
        try:
            digests, is_encoded = self._retried(release, into, decode=False)
            if is_encoded and not _is_as_stated(release, digests):
                digests, _ = self._retried(release, into, decode=True)
        except NetworkError as error:
            raise SourceError(
                f"{release.filename} cannot be fetched from the package index: {error}",
                where=f"{release.project} {release.version}",
                next_step=NEXT_STEP_OFFLINE,
            ) from error
        check_hashes(release, digests)
        return digests["sha256"]

    def _retried(
        self, release: Release, into: IO[bytes], *, decode: bool
    ) -> tuple[dict[str, str], bool]:
        return retried(self.settings, lambda: self._attempt(release, into, decode=decode))

    def _attempt(
        self, release: Release, into: IO[bytes], *, decode: bool
    ) -> tuple[dict[str, str], bool]:
        """The hashes of what came, and whether the server says it is compressed once more.

        Some servers call a ``.tar.gz`` a tar in the encoding gzip, so pip hashes the bytes as they
        come; others compress whatever they send, even where they are asked not to.
        """
        into.seek(0)
        into.truncate()
        headers = {"Accept-Encoding": "identity"}
        stream = self.session.get_stream(release.url, headers=headers)
        with explained(self.settings), stream as answer:
            if answer.status_code >= 400:
                raise status_error(answer.status_code)
            blocks = answer.iter_bytes(_STEP) if decode else answer.iter_raw(_STEP)
            length = answer.headers.get("Content-Length", "")
            if self.progress is not None:
                total = int(length) if length.isdigit() and not decode else None
                self.progress.started(release.filename, total)
            try:
                digests = _receive(blocks, release, into, self.progress)
            finally:
                if self.progress is not None:
                    self.progress.finished()
            return digests, answer.headers.get("Content-Encoding", "identity") != "identity"


def temporary_file() -> IO[bytes]:
    """A file that disappears when it is closed.

    Raises:
        SourceError: the system's folder for temporary files cannot be written.
    """
    try:
        return tempfile.TemporaryFile(prefix="draftaudit-")
    except OSError as error:
        raise _not_stored(error) from error


def check_hashes(release: Release, digests: dict[str, str]) -> None:
    """Compare each hash that the index states with that of the bytes received.

    Raises:
        SourceError: one differs.
    """
    for name, stated in sorted(release.hashes.items()):
        found = digests.get(name)
        if found is not None and found != stated:
            raise SourceError(
                f"the {name} of {release.filename} is not the one the package index states "
                f"(stated {stated}, found {found}); the archive was refused, nothing was kept",
                where=f"{release.project} {release.version}",
                next_step="Try again; if it stays so, the index or a proxy serves a wrong file.",
            )


def _is_as_stated(release: Release, digests: dict[str, str]) -> bool:
    known = release.hashes.keys() & digests.keys()
    return bool(known) and all(release.hashes[name] == digests[name] for name in known)


def is_checkable(release: Release) -> bool:
    """Whether the index states a hash of ``release`` that cannot be forged (SHA-2)."""
    return any(name in release.hashes for name in _STRONG)


def _receive(
    blocks: Iterable[bytes], release: Release, into: IO[bytes], progress: Progress | None
) -> dict[str, str]:
    hashers = {name: hashlib.new(name) for name in _algorithms(release)}
    received = 0
    for block in blocks:
        _store(block, into)
        for hasher in hashers.values():
            hasher.update(block)
        received += len(block)
        if received > DEFAULT_LIMITS.total:
            raise SourceError(
                f"{release.filename} is larger than {DEFAULT_LIMITS.total >> 20} MiB, which no "
                "vLLM release is; the archive was refused, nothing was kept",
                where=f"{release.project} {release.version}",
            )
        if progress is not None:
            progress.advanced(received)
    return {name: hasher.hexdigest() for name, hasher in hashers.items()}


def _algorithms(release: Release) -> list[str]:
    # The SHAKE hashes have no fixed length, and no index uses them.
    known = {name for name in hashlib.algorithms_guaranteed if not name.startswith("shake")}
    return sorted({"sha256", *release.hashes} & known)


def _store(block: bytes, into: IO[bytes]) -> None:
    try:
        into.write(block)
    except OSError as error:
        raise _not_stored(error) from error


def _not_stored(error: OSError) -> SourceError:
    return SourceError(
        f"the archive cannot be stored while it is read ({error.strerror})",
        where=tempfile.gettempdir(),
        next_step="Make room there, or let TMPDIR name another folder.",
    )
