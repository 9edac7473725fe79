"""Asks the package indexes of the user's settings which releases of vLLM they have.

Indexes speak the simple repository API (PEP 503, PEP 691); find-links are folders and pages.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from auditor.sources.network import NetworkError, explained, retried, status_error
from auditor.sources.pip_settings import PipSettings
from auditor.sources.releases import Offer, Release

if TYPE_CHECKING:
    from unearth.fetchers import Fetcher, PyPIClient
    from unearth.finder import Source as Location

_PROJECT = "vllm"
_NO_SUCH_PROJECT = ("404", "410")


def find_releases(session: PyPIClient, settings: PipSettings) -> Offer:
    """Every archive of vLLM on the indexes and find-links pages of the user's settings.

    An index without such a project is no failure; one that cannot be asked is.
    """
    releases: dict[str, Release] = {}
    failures: list[str] = []
    for name, location in _locations(settings):
        try:
            for release in retried(settings, partial(_ask, session, location, settings)):
                releases.setdefault(release.filename, release)
        except NetworkError as error:
            failures.append(f"{name}: {error}")
    return Offer(tuple(releases.values()), tuple(failures))


def _locations(settings: PipSettings) -> list[tuple[str, Location]]:
    """Where to look, each with a name for a person that is not its address."""
    from unearth import PackageFinder
    from unearth.finder import Source as Location

    found: list[tuple[str, Location]] = []
    if not settings.no_index:
        # A finder that is given no index has the default one, whose address is unearth's to know.
        main = [] if settings.index_url is None else [settings.index_url]
        found += [("the index", location) for location in PackageFinder(index_urls=main).sources]
        found += [
            (f"extra-index-url {number}", Location(url=url, type="index"))
            for number, url in enumerate(settings.extra_index_urls, 1)
        ]
    places = [os.path.expanduser(place) for place in settings.find_links]
    # Like pip, pass over a folder that is not there.
    return found + [
        (f"find-links {number}", Location(url=place, type="find_links"))
        for number, place in enumerate(places, 1)
        if "://" in place or os.path.exists(place)
    ]


def _ask(session: PyPIClient, location: Location, settings: PipSettings) -> list[Release]:
    from packaging.version import Version
    from unearth import PackageFinder

    # unearth's own client does not match unearth's own protocol of one in the letter.
    finder = PackageFinder(session=cast("Fetcher", session), ignore_compatibility=True)
    finder.sources = [location]
    with _collected_failures() as failures, explained(settings):
        try:
            packages = list(finder.find_all_packages(_PROJECT, allow_yanked=True))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # The text of such an error may hold the address, and with it a password.
            raise NetworkError("its page is not that of an index") from error
    if failures and not packages:
        raise failures[0]
    return [
        Release(Version(package.version), package.link.filename, package.link)
        for package in packages
        if package.version is not None
    ]


@contextlib.contextmanager
def _collected_failures() -> Iterator[list[NetworkError]]:
    """What unearth would only log about pages it could not read."""
    collector = _Collector()
    logger = logging.getLogger("unearth.collector")
    logger.addHandler(collector)
    try:
        yield collector.failures
    finally:
        logger.removeHandler(collector)


class _Collector(logging.Handler):
    """Takes the warnings of :mod:`unearth.collector`, the only trace it leaves of a bad page."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.failures: list[NetworkError] = []
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the reason of a failure; its address stays out of every message."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        reason = arguments[-1] if arguments else None
        if record.thread != self._thread:
            return
        if isinstance(reason, Exception):
            self._keep(str(reason))
        elif str(record.msg).startswith("Skipping"):
            self.failures.append(NetworkError("it is plain HTTP and no trusted-host of pip"))

    def _keep(self, reason: str) -> None:
        status = re.match(r"\w+ Error\((\d+)\)", reason)
        if status is None:
            self.failures.append(NetworkError(f"its page is not that of an index ({reason})"))
        elif status.group(1) not in _NO_SUCH_PROJECT:
            self.failures.append(status_error(int(status.group(1))))
