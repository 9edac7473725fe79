"""The user's settings for package indexes: those of pip, asked from pip itself.

``pip config list`` prints one ``section.key='value'`` line for each setting it would use, from its
configuration files and from the environment. Where a key is in several sections the order is
``global``, then that of the command (``download``), then ``:env:`` (pip, "Configuration"). Where no
certificates are set, pip looks at two variables of the environment (pip, "HTTPS Certificates").
"""

from __future__ import annotations

import ast
import math
import os
import re
import subprocess
import sys
from typing import NamedTuple

from auditor.errors import SourceError

_SECTIONS = ("global", "download", ":env:")
_SECONDS_FOR_PIP = 60
_TRUE = ("y", "yes", "t", "true", "on", "1")
_FALSE = ("n", "no", "f", "false", "off", "0")
_ALIASES = {"default-timeout": "timeout", "pypi-url": "index-url"}
_CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_CREDENTIALS = re.compile(r"(?<=//)\S*@")


class PipSettings(NamedTuple):
    """Where to look for releases, and how to talk to the servers.

    Attributes:
        index_url: the main index; None is pip's default.
        extra_index_urls: further indexes.
        find_links: folders and pages to look for archives in.
        no_index: whether only ``find_links`` counts.
        trusted_hosts: hosts whose certificate is not checked, or that may speak plain HTTP.
        cert: a file or folder of certificates to trust.
        client_cert: a PEM file with the user's own certificate and key.
        proxy: the proxy's address.
        timeout: seconds until a silent server counts as unreachable.
        retries: how often a broken connection is tried again; None is our default.
    """

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    trusted_hosts: tuple[str, ...] = ()
    cert: str | None = None
    client_cert: str | None = None
    proxy: str | None = None
    timeout: float = 15.0
    retries: int | None = None


def read_pip_settings() -> PipSettings:
    """The settings that pip would use in this environment.

    Raises:
        SourceError: pip is not installed here or does not answer, or a setting makes no sense.
    """
    return parse_pip_settings(_pip_config_list())


def parse_pip_settings(listing: str) -> PipSettings:
    """The settings in the output of ``pip config list``.

    Raises:
        SourceError: a number is not one, or a switch is neither on nor off.
    """
    values = _merged(listing)
    retries, proxy = values.get("retries"), values.get("proxy")
    return PipSettings(
        index_url=values.get("index-url"),
        extra_index_urls=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(values.get("find-links", "").split()),
        no_index=_switch(values, "no-index"),
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        cert=values.get("cert") or next(filter(None, map(os.environ.get, _CERTIFICATES)), None),
        client_cert=values.get("client-cert"),
        proxy=proxy if proxy is None or "://" in proxy else f"http://{proxy}",
        timeout=_number(values, "timeout", 15.0),
        retries=None if retries is None else int(_number(values, "retries", 0)),
    )


def _pip_config_list() -> str:
    # Without -P, ``-m`` would run a pip.py that lies in the folder one stands in.
    safely = "-I" if sys.flags.isolated else "-P"
    command = [sys.executable, safely, "-m", "pip", "config", "list"]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONIOENCODING": "utf-8"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            encoding="utf-8",
            env=environment,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS_FOR_PIP,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _pip_failed("pip could not be run to read its settings") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        # The line may quote the configuration, and with it a password.
        told = _CREDENTIALS.sub("***@", last.removeprefix("ERROR: "))
        raise _pip_failed(f"pip could not read its settings ({told})")
    return done.stdout


def _pip_failed(what: str) -> SourceError:
    return SourceError(
        what,
        where="pip config list",
        next_step="Repair pip in this environment, or give a folder or an archive with --vllm.",
    )


def _merged(listing: str) -> dict[str, str]:
    sections: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in listing.splitlines():
        name, separator, literal = line.partition("=")
        section, _, key = name.rpartition(".")
        if separator and section in sections:
            value = _literal(literal)
            if value:
                sections[section][_ALIASES.get(key, key)] = value
    return sections["global"] | sections["download"] | sections[":env:"]


def _literal(text: str) -> str:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        # Not a setting but a further line of something pip printed.
        return ""
    return value.strip() if isinstance(value, str) else ""


def _number(values: dict[str, str], key: str, default: float) -> float:
    text = values.get(key)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise _no_sense(key, text, "a number that is not negative")
    return number


def _switch(values: dict[str, str], key: str) -> bool:
    text = values.get(key, "no")
    if text.lower() not in _TRUE + _FALSE:
        raise _no_sense(key, text, "true or false")
    return text.lower() in _TRUE


def _no_sense(key: str, text: str, wanted: str) -> SourceError:
    return SourceError(
        f"pip's setting {key} is {text!r}, which is not {wanted}",
        where="pip config list",
        next_step=f"Correct it with: pip config set global.{key} VALUE",
    )
