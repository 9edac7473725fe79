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
from pathlib import Path
from typing import TYPE_CHECKING, cast

from auditor.sources.names import printable
from auditor.sources.network import NetworkError, explained, retried, status_error
from auditor.sources.pip_settings import PipSettings
from auditor.sources.releases import Offer, Release

if TYPE_CHECKING:
    from unearth import Package
    from unearth.fetchers import Fetcher, PyPIClient
    from unearth.finder import Source as Location

VLLM = "vllm"
_NO_SUCH_PROJECT = ("404", "410")


def find_releases(session: PyPIClient, settings: PipSettings, project: str = VLLM) -> Offer:
    """Every archive of a project on the indexes and find-links pages of the user's settings.

    An index without such a project is no failure; one that cannot be asked is.
    """
    releases: dict[str, Release] = {}
    failures: list[str] = []
    for name, location in _locations(settings):
        try:
            for release in retried(settings, partial(_ask, session, location, settings, project)):
                releases.setdefault(release.filename, release)
        except NetworkError as error:
            failures.append(f"{name}: {error}")
    return Offer(tuple(releases.values()), tuple(failures), _shown(project))


def _locations(settings: PipSettings) -> list[tuple[str, Location]]:
    """Where to look, each with a name for a person that is not its address."""
    from unearth import PackageFinder
    from unearth.finder import Source as Location

    found: list[tuple[str, Location]] = []
    if not settings.no_index:
        # A finder that is given no index has the default one, whose address is unearth's to know.
        main = [] if settings.index_url is None else [_as_url(settings.index_url)]
        found += [("the index", location) for location in PackageFinder(index_urls=main).sources]
        found += [
            (f"extra-index-url {number}", Location(url=_as_url(url), type="index"))
            for number, url in enumerate(settings.extra_index_urls, 1)
        ]
    places = [os.path.expanduser(place) for place in settings.find_links]
    # Like pip, pass over a folder that is not there.
    return found + [
        (f"find-links {number}", Location(url=place, type="find_links"))
        for number, place in enumerate(places, 1)
        if "://" in place or os.path.exists(place)
    ]


def _as_url(index: str) -> str:
    """The address of an index; pip also takes the path of a folder."""
    return index if "://" in index else Path(os.path.abspath(index)).as_uri()


def _shown(project: str) -> str:
    """A project as its own pages write it."""
    return "vLLM" if project == VLLM else project


def _ask(
    session: PyPIClient, location: Location, settings: PipSettings, project: str
) -> list[Release]:
    from unearth import PackageFinder

    url = location["url"]
    is_here = "://" not in url or url.startswith("file:")
    # unearth's own client does not match unearth's own protocol of one in the letter.
    finder = PackageFinder(session=cast("Fetcher", session), ignore_compatibility=True)
    finder.sources = [location]
    with _collected_failures() as failures, explained(settings):
        try:
            packages = finder.find_all_packages(project, allow_yanked=True)
            found = [_release(package, is_here, project) for package in packages]
        except (
            ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError,
        ) as error:  # fmt: skip
            # What the parsers of HTML and JSON raise for a page made to break them. The text of
            # such an error may hold the address, and with it a password.
            raise NetworkError("its page is not that of an index") from error
    if failures and not found:
        raise failures[0]
    return [release for release in found if release is not None]


def _release(package: Package, is_here: bool, project: str) -> Release | None:
    """What an index or, where ``is_here``, a place on this machine offers; None if unusable."""
    from packaging.version import Version

    link = package.link
    path = link.file_path if link.is_file else None
    if path is None:
        usable = not link.is_vcs and link.parsed.scheme in ("http", "https")
    else:
        # The page of a server has no say over the files of this machine.
        usable = is_here and path.is_file()
    if package.version is None or not usable:
        return None
    stated = (link.hash_option or {}).items()
    return Release(
        version=Version(package.version),
        filename=printable(link.filename),
        url=link.url_without_fragment,
        path=path,
        hashes={name.lower(): values[0].lower() for name, values in stated},
        yanked=_yanked(link.yank_reason),
        project=_shown(project),
    )


def _yanked(reason: object) -> str | None:
    """Why an archive was withdrawn, in one line; PEP 691 also allows a plain true."""
    if reason is None:
        return None
    return printable(" ".join(reason.split())) if isinstance(reason, str) else ""


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
            self.failures.append(
                NetworkError(f"its page is not that of an index ({printable(reason)})")
            )
        elif status.group(1) not in _NO_SUCH_PROJECT:
            self.failures.append(status_error(int(status.group(1))))
