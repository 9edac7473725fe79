"""HTTP for the package index: unearth's session, set up as pip would set up its own."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from auditor.errors import SourceError
from auditor.sources.pip_settings import PipSettings

if TYPE_CHECKING:
    from unearth.fetchers import PyPIClient

Answer = TypeVar("Answer")

NEXT_STEP_OFFLINE = (
    "Check the network and pip's settings (pip config list), "
    "or give a folder or an archive with --vllm."
)

_DEFAULT_RETRIES = 3
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 4.0
_PASSING_STATUS = (429, 500, 502, 503, 504, 520, 524)


class NetworkError(Exception):
    """A server that could not be used; the message is a clause without its address.

    Attributes:
        passing: whether trying again may help.
    """

    def __init__(self, what: str, *, passing: bool = False) -> None:
        super().__init__(what)
        self.passing = passing


@contextlib.contextmanager
def open_session(settings: PipSettings) -> Iterator[PyPIClient]:
    """A client with the user's certificates, proxy, timeout and credentials.

    Raises:
        SourceError: a certificate file, a proxy or a trusted host cannot be used.
    """
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers import PyPIClient

    _silence_unearth()
    verify = _tls_context(settings)
    http = http_library()
    try:
        session = PyPIClient(
            trusted_hosts=settings.trusted_hosts,
            verify=verify,
            timeout=settings.timeout,
            follow_redirects=True,
            proxy=settings.proxy,
            mounts=_trusted_through_proxy(settings),
            event_hooks={"response": [_refuse_leaving_http]},
        )
    except (ValueError, http.InvalidURL, ImportError) as error:
        raise SourceError(
            "the proxy or the trusted-host setting of pip or of the environment cannot be used",
            where="pip config list",
            next_step="Write a proxy as http://host:port and a trusted host as host or host:port.",
        ) from error
    indexes = [url for url in (settings.index_url, *settings.extra_index_urls) if url]
    session.auth = MultiDomainBasicAuth(prompting=False, index_urls=indexes)
    with session:
        yield session


def http_library() -> ModuleType:
    """The HTTP library unearth is built on: httpx before its release 0.19, httpx2 since."""
    from unearth.fetchers import PyPIClient

    return importlib.import_module(PyPIClient.__mro__[1].__module__.partition(".")[0])


def retried(settings: PipSettings, attempt: Callable[[], Answer]) -> Answer:
    """What ``attempt`` answers, tried again after each passing failure, as pip does.

    Raises:
        NetworkError: the last failure.
    """
    retries = _DEFAULT_RETRIES if settings.retries is None else settings.retries
    for failed in range(retries):
        try:
            return attempt()
        except NetworkError as error:
            if not error.passing:
                raise
        time.sleep(min(_FIRST_PAUSE * 2**failed, _LONGEST_PAUSE))
    return attempt()


@contextlib.contextmanager
def explained(settings: PipSettings) -> Iterator[None]:
    """Turn the errors of the HTTP library into a :class:`NetworkError` that a person can read."""
    http = http_library()
    try:
        yield
    except (http.HTTPError, http.InvalidURL, http.StreamError, OSError, UnicodeError) as error:
        raise _network_error(error, settings) from error


def status_error(status: int) -> NetworkError:
    """The error for an answer other than success."""
    told = {401: "it wants credentials", 403: "it refuses access", 404: "it has no such page"}
    why = told.get(status, "it is overloaded or broken" if status >= 500 else "it refused")
    return NetworkError(f"{why} (HTTP {status})", passing=status in _PASSING_STATUS)


def _refuse_leaving_http(answer: Any) -> None:
    """Let no server redirect to a file of this machine, which the client would open."""
    if answer.has_redirect_location:
        target = urljoin(str(answer.url), answer.headers["Location"])
        if urlsplit(target).scheme not in ("http", "https"):
            raise NetworkError("it redirects to something that is not HTTP")


def _silence_unearth() -> None:
    """Keep what unearth logs (a netrc it cannot read, a page it skips) off the user's screen."""
    logger = logging.getLogger("unearth")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def _tls_context(settings: PipSettings) -> ssl.SSLContext | bool:
    if settings.cert is None and settings.client_cert is None:
        return True
    try:
        folder = settings.cert if settings.cert and os.path.isdir(settings.cert) else None
        context = ssl.create_default_context(
            cafile=settings.cert if folder is None else None, capath=folder
        )
        if settings.client_cert is not None:
            context.load_cert_chain(settings.client_cert)
    except (OSError, ssl.SSLError) as error:
        raise SourceError(
            f"pip's cert or client-cert setting cannot be used ({error})",
            where="pip config list",
            next_step="Let it name a PEM file.",
        ) from error
    return context


def _trusted_through_proxy(settings: PipSettings) -> dict[str, object]:
    """Transports for the trusted hosts; unearth's own would go around the proxy."""
    mounts: dict[str, object] = {}
    for host in settings.trusted_hosts:
        proxy = settings.proxy or _proxy_of_environment(host)
        if proxy:
            transport = http_library().HTTPTransport(verify=False, proxy=proxy)
            mounts[f"all://{host}"] = transport
    return mounts


def _proxy_of_environment(host: str) -> str | None:
    name = urlsplit(f"//{host}").hostname or host
    return None if proxy_bypass(name) else getproxies().get("https")


def _network_error(error: BaseException, settings: PipSettings) -> NetworkError:
    http = http_library()
    through = " through the proxy" if settings.proxy or getproxies().get("https") else ""
    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return NetworkError("its TLS certificate is not trusted here (pip's setting is cert)")
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return NetworkError(f"no TLS connection could be made{through}")
    if isinstance(error, http.ProxyError):
        return NetworkError("the proxy refused the connection")
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return NetworkError(f"its name cannot be resolved{through}: no network?", passing=True)
    if isinstance(error, http.TimeoutException):
        return NetworkError(f"no answer{through} in {settings.timeout:g} s", passing=True)
    if isinstance(error, http.ConnectError):
        return NetworkError(f"no connection could be made{through}", passing=True)
    if isinstance(error, http.InvalidURL | http.UnsupportedProtocol):
        return NetworkError("its address in pip's settings is not a URL that can be used")
    if isinstance(error, http.TransportError):
        return NetworkError("the connection broke", passing=True)
    if isinstance(error, OSError):
        return NetworkError(f"it cannot be read ({error.strerror})")
    return NetworkError(f"it could not be used ({type(error).__name__})")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
