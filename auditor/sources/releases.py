"""The releases that package indexes offer, and which archive of them to take.

Versions are ordered and matched as PEP 440 says; a release can be yanked (PEP 592).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from auditor.errors import SourceError
from auditor.sources.network import NEXT_STEP_OFFLINE

if TYPE_CHECKING:
    from pathlib import Path

    from packaging.version import Version

_WHERE = "package index"


class Release(NamedTuple):
    """One archive that an index offers.

    Attributes:
        version: which release it is.
        filename: the name of the archive.
        url: where it is, without fragment.
        path: where it is on this machine; None when it has to be fetched.
        hashes: those the index states, in lower case, by the name of their algorithm.
        yanked: why it was withdrawn (PEP 592); empty without a reason, None when it was not.
        project: what it is a release of, for a person.
    """

    version: Version
    filename: str
    url: str
    path: Path | None
    hashes: Mapping[str, str]
    yanked: str | None
    project: str = "vLLM"

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel (PEP 427) and not an sdist."""
        return self.filename.endswith(".whl")


class Offer(NamedTuple):
    """All archives found, and the indexes that could not be asked with the reason."""

    releases: tuple[Release, ...]
    failures: tuple[str, ...]
    project: str = "vLLM"


def choose(offer: Offer, wanted: Version | None) -> Release:
    """The archive to take: of release ``wanted``, or of the latest when it is None.

    The latest is the newest that is neither a pre-release nor yanked and has an sdist; if there
    is none such, the newest of what there is. The sdist is preferred: it is a tenth of a wheel.

    Raises:
        SourceError: there is no such release, or an index that may have it cannot be asked.
    """
    if wanted is None:
        return _best(_latest(offer))
    matching = [release for release in offer.releases if release.version == wanted] or [
        # ``0.30.0`` also means ``0.30.0+cu129`` (PEP 440, version matching).
        release
        for release in offer.releases
        if release.version.public == str(wanted)
    ]
    if not matching:
        raise _no_such_release(offer, wanted)
    return _best(matching)


def _latest(offer: Offer) -> Sequence[Release]:
    if offer.failures:
        raise _cannot_ask(offer, f"the latest release of {offer.project} cannot be looked up")
    if not offer.releases:
        raise _nothing_offered(offer)
    every = list(offer.releases)
    standing = [release for release in every if release.yanked is None] or every
    final = [release for release in standing if not release.version.is_prerelease] or standing
    return [release for release in final if not release.is_wheel] or final


def _best(releases: Sequence[Release]) -> Release:
    def rank(release: Release) -> tuple[bool, bool, bool, str]:
        gzipped = release.filename.endswith(".tar.gz")
        return (release.yanked is not None, release.is_wheel, not gzipped, release.filename)

    newest = max(release.version for release in releases)
    return min((release for release in releases if release.version == newest), key=rank)


def _no_such_release(offer: Offer, wanted: Version) -> SourceError:
    if offer.failures:
        return _cannot_ask(offer, f"{offer.project} {wanted} was not found")
    if not offer.releases:
        return _nothing_offered(offer)
    near = ", ".join(nearest(offer.releases, wanted))
    is_vllm = offer.project == Offer((), ()).project
    return SourceError(
        f"there is no {offer.project} {wanted}; the index has {near}",
        where=_WHERE,
        next_step=(
            "Give one of these with --vllm, or latest."
            if is_vllm
            else f"Give {offer.project}==VERSION with one of these."
        ),
    )


def nearest(releases: Iterable[Release], wanted: Version) -> list[str]:
    """The final releases next to ``wanted``: one below and one above, or two at an end."""
    versions = sorted({release.version for release in releases})
    final = [version for version in versions if not version.is_prerelease] or versions
    below = [version for version in final if version < wanted]
    above = [version for version in final if version > wanted]
    if below and above:
        return [str(below[-1]), str(above[0])]
    return [str(version) for version in below[-2:] + above[:2]]


def _cannot_ask(offer: Offer, what: str) -> SourceError:
    return SourceError(
        f"{what}: {'; '.join(offer.failures)}", where=_WHERE, next_step=NEXT_STEP_OFFLINE
    )


def _nothing_offered(offer: Offer) -> SourceError:
    return SourceError(
        f"none of the package indexes in pip's settings has {offer.project}",
        where=_WHERE,
        next_step="Check index-url, find-links and no-index in: pip config list",
    )
