"""The user's settings for package indexes: those of pip, asked from pip itself.

``pip config list`` prints one ``section.key='value'`` line for each setting it would use, from its
configuration files and from the environment. Where a key is in several sections the order is
``global``, then that of the command (``download``), then ``:env:`` (pip, "Configuration").
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import dataclass

from auditor.errors import SourceError

_SECTIONS = ("global", "download", ":env:")
_SECONDS_FOR_PIP = 60
_TRUE = ("y", "yes", "t", "true", "on", "1")


@dataclass(frozen=True, slots=True)
class PipSettings:
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
        SourceError: a number is not one.
    """
    values = _merged(listing)
    retries = values.get("retries")
    return PipSettings(
        index_url=values.get("index-url"),
        extra_index_urls=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(values.get("find-links", "").split()),
        no_index=values.get("no-index", "").lower() in _TRUE,
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        cert=values.get("cert"),
        client_cert=values.get("client-cert"),
        proxy=values.get("proxy"),
        timeout=_number(values, "timeout", _number(values, "default-timeout", 15.0)),
        retries=None if retries is None else int(_number(values, "retries", 0)),
    )


def _pip_config_list() -> str:
    command = [sys.executable, "-m", "pip", "config", "list"]
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
        raise _pip_failed(f"pip could not read its settings ({last.removeprefix('ERROR: ')})")
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
                sections[section][key] = value
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
        return float(text)
    except ValueError as error:
        raise SourceError(
            f"pip's setting {key} is {text!r}, which is not a number",
            where="pip config list",
            next_step=f"Correct it with: pip config set global.{key} NUMBER",
        ) from error
