"""What a release's build files say, for a tree that does not hold them.

A wheel and an installed package have neither ``requirements/`` nor ``setup.py``, and yet an
installation of that release brings what they say. ``rules/builds.toml`` records it release by
release, in their own words, so that a release answers the same in every form it comes in.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from packaging.version import InvalidVersion, Version

from auditor.ruleset.builds import RecordedLine, builds


class RecordedBuild:
    """The record for one release; for one that is not recorded, the nearest before it.

    Args:
        version: the release (PEP 440); None or unreadable stands for the newest.
    """

    def __init__(self, version: str | None) -> None:
        self._version = parsed(version)

    def requirements(self, path: str) -> tuple[str, ...] | None:
        """The lines of a requirement file, or None where the release has no such file."""
        for recorded in builds().requirements:
            if recorded.file == path:
                return self._kept(recorded.lines) or None
        return None

    def extensions(self, platform: str) -> tuple[str, ...]:
        """The extension modules that the release builds for a platform."""
        for recorded in builds().extensions:
            if recorded.platform == platform:
                return self._kept(recorded.lines)
        return ()

    def _kept(self, lines: Iterable[RecordedLine]) -> tuple[str, ...]:
        return tuple(
            line.text for line in lines if counts(self._version, line.since, line.until)
        )  # fmt: skip


@lru_cache(maxsize=512)
def parsed(version: str | None) -> Version | None:
    """A release as PEP 440 orders it; None where there is none to be read."""
    try:
        return Version(version) if version else None
    except InvalidVersion:
        return None


def counts(version: Version | None, since: str, until: str) -> bool:
    """Whether what holds from ``since`` on, up to and without ``until``, holds for a release.

    An empty bound is none. No version stands for the newest release, which has no ``until``.
    """
    lowest, highest = parsed(since), parsed(until)
    if version is None:
        return highest is None
    return (lowest is None or version >= lowest) and (highest is None or version < highest)
