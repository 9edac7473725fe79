from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from auditor.errors import SourceError
from auditor.sources.pip_settings import PipSettings, parse_pip_settings, read_pip_settings

LISTING = """\
:env:.default-timeout='180'
:env:.find-links='/wheels  https://a.invalid/l'
download.index-url='https://b.invalid/simple'
global.cert='/etc/ca.pem'
global.extra-index-url='file:///one\\nfile:///two'
global.find-links='/never'
global.index-url='https://a.invalid/simple'
global.no-index='false'
global.proxy='http://proxy.invalid:3128'
global.retries='7'
global.trusted-host='x.invalid y.invalid:8080'
install.index-url='https://never.invalid/simple'
a line that pip printed for another reason
global.broken='
"""


def test_the_order_of_the_sections_is_that_of_pip() -> None:
    assert parse_pip_settings(LISTING) == PipSettings(
        index_url="https://b.invalid/simple",
        extra_index_urls=("file:///one", "file:///two"),
        find_links=("/wheels", "https://a.invalid/l"),
        trusted_hosts=("x.invalid", "y.invalid:8080"),
        cert="/etc/ca.pem",
        proxy="http://proxy.invalid:3128",
        timeout=180.0,
        retries=7,
    )


def test_without_settings_the_defaults_of_pip_count() -> None:
    assert parse_pip_settings("") == PipSettings()


def test_timeout_comes_before_default_timeout() -> None:
    assert parse_pip_settings("global.default-timeout='1'\nglobal.timeout='2'").timeout == 2.0


@pytest.mark.parametrize(
    ("text", "expected"), [("1", True), ("true", True), ("0", False), ("", False)]
)
def test_no_index_is_a_boolean(text: str, expected: bool) -> None:
    assert parse_pip_settings(f":env:.no-index={text!r}").no_index is expected


def test_a_number_that_is_none_is_an_error() -> None:
    with pytest.raises(SourceError, match=r"timeout is 'soon'.*pip config set"):
        parse_pip_settings("global.timeout='soon'")


def test_the_settings_are_asked_from_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nretries = 2\nno-index = true\n[download]\ntimeout = 9\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_FIND_LINKS", "/a /b")
    settings = read_pip_settings()
    assert (settings.retries, settings.timeout, settings.no_index) == (2, 9.0, True)
    assert settings.find_links == ("/a", "/b")
    assert capfd.readouterr() == ("", "")


def test_a_broken_configuration_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("no section\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    with pytest.raises(SourceError, match="pip could not read its settings"):
        read_pip_settings()


@pytest.mark.parametrize("executable", ["/nowhere/python", "/bin/false"])
def test_a_python_without_pip_is_an_error(monkeypatch: pytest.MonkeyPatch, executable: str) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(SourceError, match="pip could not"):
        read_pip_settings()
