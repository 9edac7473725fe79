from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from auditor.errors import SourceError
from auditor.sources.pip_settings import PipSettings, parse_pip_settings, read_pip_settings


@pytest.fixture(autouse=True)
def _no_certificates_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


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


@pytest.mark.parametrize(
    ("text", "expected"), [("1", True), ("True", True), ("0", False), ("no", False), ("", False)]
)
def test_no_index_is_a_boolean(text: str, expected: bool) -> None:
    assert parse_pip_settings(f":env:.no-index={text!r}").no_index is expected


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("timeout", "soon"), ("timeout", "nan"), ("timeout", "-1"), ("retries", "inf"),
        ("retries", "1e999"), ("no-index", "maybe"),
    ],
)  # fmt: skip
def test_a_value_that_makes_no_sense_is_an_error(key: str, text: str) -> None:
    with pytest.raises(SourceError, match=rf"{key} is '{text}'.*pip config set global\.{key}"):
        parse_pip_settings(f"global.{key}={text!r}")


def test_another_spelling_of_a_setting_has_the_place_of_its_section() -> None:
    listing = ":env:.default-timeout='7'\nglobal.timeout='9'\nglobal.pypi-url='https://a.invalid'"
    settings = parse_pip_settings(listing)
    assert settings.timeout == 7.0
    assert settings.index_url == "https://a.invalid"


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("proxy.invalid:3128", "http://proxy.invalid:3128"),
        ("u:p@proxy.invalid:3128", "http://u:p@proxy.invalid:3128"),
        ("https://proxy.invalid", "https://proxy.invalid"),
    ],
)
def test_a_proxy_without_a_scheme_speaks_http(given: str, used: str) -> None:
    assert parse_pip_settings(f"global.proxy={given!r}").proxy == used


def test_the_certificates_of_the_environment_count_after_those_of_pip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CURL_CA_BUNDLE", "/curl.pem")
    assert parse_pip_settings("").cert == "/curl.pem"
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/requests.pem")
    assert parse_pip_settings("").cert == "/requests.pem"
    assert parse_pip_settings("global.cert='/pip.pem'").cert == "/pip.pem"


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


def test_a_password_in_a_broken_configuration_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("index-url = https://user:se/cr@et@a.invalid/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    with pytest.raises(SourceError) as raised:
        read_pip_settings()
    assert "pip could not read its settings" in raised.value.message
    assert "et@" not in raised.value.message
    assert "user" not in raised.value.message


def test_a_pip_in_the_current_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.py").write_text("open('executed', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_RETRIES", "8")
    assert read_pip_settings().retries == 8
    assert not (tmp_path / "executed").exists()
    done = subprocess.run(
        [sys.executable, "-I", "-c", ISOLATED, str(Path(__file__).parents[2])],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("8\n", "")
    assert not (tmp_path / "executed").exists()


ISOLATED = """
import sys
sys.path.insert(0, sys.argv[1])
from auditor.sources.pip_settings import read_pip_settings
print(read_pip_settings().retries)
"""
