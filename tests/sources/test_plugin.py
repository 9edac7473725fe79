"""A plugin in every form it comes in, and where a project may say its entry points."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from auditor.errors import SourceError
from auditor.sources import network, pip_settings
from auditor.sources.cache import CacheConfig
from auditor.sources.metadata import metadata_of
from auditor.sources.plugin import Plugin, open_plugin
from auditor.sources.tree import MemoryTree

from .indexserver import running_index

GENERAL = "vllm.general_plugins"
GROUPS = ("vllm.platform_plugins", GENERAL)
TRAP = "open('executed', 'w').close()\n"
PYPROJECT = f"""
[project]
name = "VLLM_Mine"
version = "1.2"
dependencies = ["numpy>=2"]

[project.entry-points."{GENERAL}"]
mine = "mine:register"
"""
PACKAGE = {"mine/__init__.py": f"{TRAP}def register(): pass\n", "mine/ops/__init__.py": ""}
PROJECT = {"pyproject.toml": PYPROJECT, **PACKAGE, "tests/test_mine.py": "", "docs/conf.py": ""}
ENTRY_POINTS = f"[{GENERAL}]\nmine = mine:register\n\n[console_scripts]\nmine = mine:main\n"
INFO = "vllm_mine-1.2.dist-info"
METADATA = "Metadata-Version: 2.4\nName: vllm-mine\nVersion: 1.2\nRequires-Dist: numpy>=2\n\n"
WHEEL = {
    **PACKAGE,
    "mine/_ops.cpython-312-x86_64-linux-gnu.so": "\x7fELF",
    f"{INFO}/METADATA": METADATA,
    f"{INFO}/entry_points.txt": ENTRY_POINTS,
    f"{INFO}/RECORD": "mine/__init__.py,,\nmine/ops/__init__.py,,\n",
}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def wheel_bytes(files: Mapping[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


def sdist_bytes(files: Mapping[str, str], top: str = "vllm_mine-1.2") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, text in {**files, "PKG-INFO": METADATA}.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


def opened(spec: str | Path, folder: Path) -> Plugin:
    (plugin,) = open_plugin(str(spec), GROUPS, "vllm", cwd=folder, cache=CacheConfig.off())
    return plugin


def in_folder(folder: Path) -> Path:
    return write(folder / "checkout", PROJECT)


def in_src(folder: Path) -> Path:
    moved = {name.replace("mine/", "src/mine/"): text for name, text in PROJECT.items()}
    return write(folder / "checkout", moved)


def in_sdist(folder: Path) -> Path:
    path = folder / "vllm_mine-1.2.tar.gz"
    path.write_bytes(sdist_bytes(PROJECT))
    return path


def in_wheel(folder: Path) -> Path:
    path = folder / "vllm_mine-1.2-py3-none-any.whl"
    path.write_bytes(wheel_bytes(WHEEL))
    return path


def in_site(folder: Path) -> Path:
    other = {f"other-1.dist-info/{name}": "" for name in ("METADATA", "RECORD")}
    return write(folder / "site-packages", {**WHEEL, **other, "other/__init__.py": TRAP})


def in_environment(folder: Path) -> Path:
    lib = f"venv/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    write(folder / lib, WHEEL)
    return write(folder / "venv", {"pyvenv.cfg": "home = /nowhere\n"})


def editable(folder: Path) -> Path:
    target = in_folder(folder).as_uri()
    record = f'{{"url": "{target}", "dir_info": {{"editable": true}}}}'
    files = {name: text for name, text in WHEEL.items() if name.startswith(INFO)}
    return write(folder / "site-packages", {**files, f"{INFO}/direct_url.json": record})


FORMS: dict[str, Callable[[Path], Path]] = {
    "a folder": in_folder,
    "a folder with src": in_src,
    "an sdist": in_sdist,
    "a wheel": in_wheel,
    "site-packages": in_site,
    "an environment": in_environment,
    "an editable installation": editable,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_plugin_is_the_same_in_every_form(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plugin = opened(FORMS[form](tmp_path), tmp_path)
    assert (plugin.label, plugin.version, plugin.roots) == (
        "vllm-mine 1.2", "1.2", frozenset({"mine"}),
    )  # fmt: skip
    assert [(one.group, one.name, one.target) for one in plugin.entry_points] == [
        (GENERAL, "mine", "mine:register")
    ]
    python = {path for path in plugin.packages.files() if path.startswith("mine/")}
    assert {path for path in python if path.endswith(".py")} == set(PACKAGE)
    assert plugin.requires == ("numpy>=2",)
    assert not (tmp_path / "executed").exists()


def test_the_line_of_an_entry_point_is_that_of_its_file(tmp_path: Path) -> None:
    (entry,) = opened(in_folder(tmp_path), tmp_path).entry_points
    text = opened(in_folder(tmp_path), tmp_path).packages.read(entry.path).decode()
    assert text.splitlines()[entry.line - 1] == 'mine = "mine:register"'


SETUP = "from setuptools import setup\n"
SAYS = {
    "pyproject.toml": PYPROJECT,
    "poetry": f'[tool.poetry.plugins."{GENERAL}"]\nmine = "mine:register"\n',
    "setup.cfg": f"[options.entry_points]\n{GENERAL} =\n    mine = mine:register\n",
    "a literal": f'{SETUP}setup(entry_points={{"{GENERAL}": ["mine = mine:register"]}})\n',
    "another name of the function": "from setuptools import setup as s\n"
    f's(entry_points={{"{GENERAL}": ["mine = mine:register"]}})\n',
    "a name": f'{SETUP}E = {{"{GENERAL}": ["mine=mine:register"]}}\nsetup(entry_points=E)\n',
    "a text": f'{SETUP}setup(entry_points="[{GENERAL}]\\nmine = mine:register")\n',
    "keywords": (
        f'{SETUP}K = {{"entry_points": {{"{GENERAL}": "mine=mine:register"}}}}\nsetup(**K)\n'
    ),
    "an f-string": (
        f'{SETUP}N = "mine"\nsetup(entry_points={{"{GENERAL}": [f"mine = {{N}}:register"]}})\n'
    ),
    "a sum": f'{SETUP}A = []\nsetup(entry_points={{"{GENERAL}": A + ["mine = mine:register"]}})\n',
    "entry_points.txt": ENTRY_POINTS,
}
FILES = {
    "poetry": "pyproject.toml",
    "setup.cfg": "setup.cfg",
    "pyproject.toml": "pyproject.toml",
    "entry_points.txt": "vllm_mine.egg-info/entry_points.txt",
}


def said(text: str, path: str) -> MemoryTree:
    return MemoryTree({path: text.encode()})


@pytest.mark.parametrize("how", SAYS)
def test_entry_points_are_read_wherever_they_stand(how: str) -> None:
    found = metadata_of(said(SAYS[how], FILES.get(how, "setup.py")))
    assert [one.target for one in found.entry_points.values() if one.group == GENERAL] == [
        "mine:register"
    ]
    assert not found.unread


COMPUTED = {
    "a call": f"{SETUP}setup(entry_points=find())\n",
    "a name that is changed": f"{SETUP}E = {{}}\nE['{GENERAL}'] = ['m = m:r']\n"
    "setup(entry_points=E)\n",
    "a name that is updated": f"{SETUP}E = {{}}\nE.update(find())\nsetup(entry_points=E)\n",
    "a name that is bound twice": f"{SETUP}E = {{}}\nE = find()\nsetup(entry_points=E)\n",
    "an entry that is a call": f'{SETUP}setup(entry_points={{"{GENERAL}": [find()]}})\n',
    "keywords from a call": f"{SETUP}setup(**find())\n",
    "a file that does not parse": "setup(\n",
}


@pytest.mark.parametrize("how", COMPUTED)
def test_what_setup_computes_is_told_with_its_place(how: str) -> None:
    (unread,) = metadata_of(said(COMPUTED[how], "setup.py")).unread
    assert unread.path == "setup.py"
    assert unread.line > 0


def test_what_a_build_wrote_down_settles_what_setup_computes() -> None:
    files = {
        "setup.py": COMPUTED["a call"].encode(),
        "vllm_mine.egg-info/entry_points.txt": ENTRY_POINTS.encode(),
    }
    found = metadata_of(MemoryTree(files))
    assert not found.unread
    assert (GENERAL, "mine") in found.entry_points


def test_a_copy_of_the_package_itself_is_left_out(tmp_path: Path) -> None:
    files = {**PROJECT, "vllm/__init__.py": TRAP}
    plugin = opened(write(tmp_path / "checkout", files), tmp_path)
    assert plugin.roots == {"mine"}
    assert [problem.path for problem in plugin.problems] == ["vllm"]


def test_the_package_itself_is_no_plugin_of_its_own(tmp_path: Path) -> None:
    own = {
        "vllm/__init__.py": "",
        "vllm-1.dist-info/METADATA": "Name: vllm\nVersion: 1\n\n",
        "vllm-1.dist-info/entry_points.txt": f"[{GENERAL}]\nx = vllm.plugins.x:register\n",
    }
    site = write(in_site(tmp_path), own)
    assert opened(site, tmp_path).name == "vllm-mine"


REFUSED = {
    "nothing": "",
    "no such path": "nowhere/at/all",
    "no such archive": "mine.whl",
    "a version that is none": "vllm-mine==x.y",
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_names_nothing_is_refused_with_what_to_do(tmp_path: Path, how: str) -> None:
    with pytest.raises(SourceError) as raised:
        opened(REFUSED[how], tmp_path)
    assert "--plugin" in raised.value.where
    assert "NAME==VERSION" in raised.value.next_step


def test_an_empty_folder_and_a_broken_archive_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.whl").write_bytes(b"PK\x03\x04 and no more")
    for name in ("empty", "broken.whl"):
        with pytest.raises(SourceError):
            opened(tmp_path / name, tmp_path)


def test_a_name_is_looked_up_on_the_index_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "_FIRST_PAUSE", 0.0)
    cache = CacheConfig.at(tmp_path / "cache")
    with running_index() as index:
        index.add("vllm_mine-1.2.tar.gz", sdist_bytes(PROJECT))
        index.pages["/simple/vllm-mine/"] = index.pages.pop("/simple/vllm/")
        settings = f"global.index-url='{index.url}'\n"
        monkeypatch.setattr(pip_settings, "_pip_config_list", lambda: settings)
        for spec in ("VLLM_mine", "vllm-mine==1.2"):
            (plugin,) = open_plugin(spec, GROUPS, "vllm", cwd=tmp_path, cache=cache)
            assert plugin.label == "vllm-mine 1.2"
        asked = len(index.asked)
        open_plugin("vllm-mine==1.2", GROUPS, "vllm", cwd=tmp_path, cache=cache)
        assert len(index.asked) == asked
        with pytest.raises(SourceError, match=r"there is no vllm-mine 9; the index has 1\.2"):
            open_plugin("vllm-mine==9", GROUPS, "vllm", cwd=tmp_path, cache=cache)
