"""What the build files of each release say: ``rules/builds.toml``."""

from __future__ import annotations

from functools import cache

from auditor.ruleset.files import Strict, load, rules_folder


class RecordedLine(Strict, frozen=True):
    """A line that releases from ``since`` on have, up to and without ``until``."""

    text: str
    since: str = ""
    until: str = ""


class RecordedRequirements(Strict, frozen=True):
    """What a requirement file says, over all releases."""

    file: str
    lines: tuple[RecordedLine, ...]


class RecordedExtensions(Strict, frozen=True):
    """The extension modules that ``setup.py`` builds for a platform, over all releases."""

    platform: str
    lines: tuple[RecordedLine, ...]


class Builds(Strict, frozen=True):
    """``rules/builds.toml``: what the files say that a wheel does not hold."""

    requirements: tuple[RecordedRequirements, ...]
    extensions: tuple[RecordedExtensions, ...]


@cache
def builds() -> Builds:
    """What each release says of its builds."""
    return load(rules_folder() / "builds.toml", Builds)
