from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from auditor.errors import SourceError
from auditor.sources import folder as folder_module
from auditor.sources.folder import list_folder, package_root
from auditor.sources.selection import Limits
from auditor.sources.tree import content_key, key_of, stamp

from .minitree import CHECKOUT, PACKAGE, write_files


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return write_files(tmp_path / "checkout", CHECKOUT)


def reasons(root: Path) -> dict[str, str]:
    _, problems = list_folder(root)
    assert list(problems) == sorted(problems)
    return {problem.path: problem.reason for problem in problems}


def test_only_what_an_audit_uses_is_listed(checkout: Path) -> None:
    write_files(
        checkout, {"vllm/__pycache__/envs.pyc": b"", ".git/config": b"", "a.dist-info/R": b""}
    )
    tree, problems = list_folder(checkout)
    listed = {name for name in CHECKOUT if not name.startswith(("tests/", "docs/"))}
    assert tree.files() == listed | {"a.dist-info/R"}
    assert not problems
    assert tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"]
    assert content_key(tree, "vllm/envs.py") == key_of(PACKAGE["vllm/envs.py"])


def test_the_package_folder_itself_has_its_parent_as_root(checkout: Path) -> None:
    assert package_root(checkout) == checkout
    assert package_root(checkout / "vllm") == checkout
    assert package_root(checkout / "docs") is None


def test_a_checkout_called_vllm_is_its_own_root(tmp_path: Path) -> None:
    root = write_files(tmp_path / "vllm", CHECKOUT)
    assert package_root(root) == root


def test_a_link_inside_is_read_and_one_out_of_the_folder_is_not(
    checkout: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("secret")
    (checkout / "vllm/inside.py").symlink_to("envs.py")
    (checkout / "CLAUDE.md").symlink_to("docs/index.md")
    (checkout / "vllm/outside.py").symlink_to(secret)
    (checkout / "vllm/broken.py").symlink_to("nothing.py")
    (checkout / "vllm/circle.py").symlink_to("circle.py")
    (checkout / "vllm/folder").symlink_to(checkout / "docs")
    (checkout / "elsewhere").symlink_to(tmp_path)
    tree, _ = list_folder(checkout)
    assert tree.read("vllm/inside.py") == PACKAGE["vllm/envs.py"]
    assert tree.read("CLAUDE.md") == CHECKOUT["docs/index.md"]
    assert reasons(checkout) == {
        "vllm/broken.py": "a symbolic link to nothing that can be read",
        "vllm/circle.py": "a symbolic link to nothing that can be read",
        "vllm/folder": "a symbolic link to a folder is not followed",
        "vllm/outside.py": "a symbolic link out of the folder is not followed",
    }
    assert "vllm/outside.py" not in tree.files()


def test_a_folder_whose_name_begins_like_the_root_is_outside(tmp_path: Path) -> None:
    root = write_files(tmp_path / "a", CHECKOUT)
    write_files(tmp_path / "a-secret", {"x.py": b"secret"})
    (root / "vllm/x.py").symlink_to(tmp_path / "a-secret/x.py")
    assert list(reasons(root)) == ["vllm/x.py"]


def test_a_package_behind_a_link_is_left_out(tmp_path: Path) -> None:
    write_files(tmp_path / "real", PACKAGE)
    root = write_files(tmp_path / "root", {"setup.py": b""})
    (root / "vllm").symlink_to(tmp_path / "real/vllm")
    assert list(reasons(root)) == ["vllm"]


def test_a_pipe_is_left_out_without_opening_it(checkout: Path) -> None:
    os.mkfifo(checkout / "vllm/pipe.py")
    assert reasons(checkout) == {"vllm/pipe.py": "not a regular file"}


def test_a_name_that_is_not_utf8_is_left_out(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not every file system allows such a name, so it is put into the answer.
    real = os.scandir

    @contextmanager
    def scandir(path: str) -> Iterator[list[Any]]:
        with real(path) as entries:
            in_package = os.path.normpath(path) == str(checkout / "vllm")
            yield [*entries, *([SimpleNamespace(name="caf\udce9.py")] if in_package else [])]

    monkeypatch.setattr(os, "scandir", scandir)
    assert reasons(checkout) == {"vllm/caf\\xe9.py": "its name is not UTF-8"}


def test_only_the_name_of_a_compiled_file_is_known(checkout: Path) -> None:
    write_files(checkout, {"vllm/_C.abi3.so": b"\x7fELF"})
    tree, _ = list_folder(checkout)
    assert "vllm/_C.abi3.so" in tree.files()
    with pytest.raises(SourceError, match="only the name"):
        tree.read("vllm/_C.abi3.so")


def test_a_path_that_is_not_listed_is_a_key_error(checkout: Path) -> None:
    tree, _ = list_folder(checkout)
    for path in ("docs/index.md", "../x", "/etc/passwd", "vllm"):
        with pytest.raises(KeyError):
            tree.read(path)


def test_a_file_that_went_away_is_a_source_error(checkout: Path) -> None:
    tree, _ = list_folder(checkout)
    (checkout / "vllm/envs.py").unlink()
    with pytest.raises(SourceError, match=r"vllm/envs\.py: cannot be read"):
        tree.read("vllm/envs.py")


def test_a_huge_file_is_not_read(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "DEFAULT_LIMITS", Limits(member=8))
    tree, _ = list_folder(checkout)
    with pytest.raises(SourceError, match="larger than"):
        tree.read("vllm/envs.py")


def deny(monkeypatch: pytest.MonkeyPatch, denied: Path) -> None:
    real = os.scandir

    def scandir(path: str) -> Any:
        if os.path.normpath(path) == str(denied):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)


def test_a_subfolder_that_cannot_be_listed_is_a_problem(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny(monkeypatch, checkout / "vllm/config")
    assert reasons(checkout) == {"vllm/config": "the folder cannot be listed (Permission denied)"}


@pytest.mark.parametrize("denied", ["", "vllm"])
def test_a_package_that_cannot_be_listed_is_an_error(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, denied: str
) -> None:
    deny(monkeypatch, checkout / denied)
    with pytest.raises(SourceError, match="cannot be listed"):
        list_folder(checkout)


def aged(path: Path, seconds: float = 10) -> None:
    """Make ``path`` look as if it had last been written that long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_file_that_changed_has_another_identity(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = checkout / "vllm/envs.py"
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 60 * 10**9)
    tree, _ = list_folder(checkout)
    first = stamp(tree, "vllm/envs.py")
    assert first is not None
    assert stamp(list_folder(checkout / ".")[0], "vllm/envs.py") == first
    assert stamp(tree, "vllm/__init__.py") != first
    content = path.read_bytes()
    times = path.stat()
    path.write_bytes(content[::-1])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    second = stamp(tree, "vllm/envs.py")
    assert second != first  # the time of change cannot be set back
    path.unlink()
    path.write_bytes(content)
    assert stamp(tree, "vllm/envs.py") not in (first, second)


def test_a_file_that_changed_just_now_has_no_identity(checkout: Path) -> None:
    tree, _ = list_folder(checkout)
    assert stamp(tree, "vllm/envs.py") is None
    aged(checkout / "vllm/envs.py")
    assert stamp(tree, "vllm/envs.py") is None  # its time of change is now
    os.utime(checkout / "vllm/envs.py", (2**33, 2**33))
    assert stamp(tree, "vllm/envs.py") is None


def test_a_file_without_contents_has_no_identity_but_the_error_of_reading_it(
    checkout: Path,
) -> None:
    write_files(checkout, {"vllm/_C.abi3.so": b"\x7fELF"})
    tree, _ = list_folder(checkout)
    with pytest.raises(SourceError, match="only the name"):
        stamp(tree, "vllm/_C.abi3.so")
    with pytest.raises(KeyError):
        stamp(tree, "docs/index.md")
    (checkout / "vllm/envs.py").unlink()
    with pytest.raises(SourceError, match="cannot be read"):
        stamp(tree, "vllm/envs.py")


def test_a_file_whose_size_is_not_the_one_stated_is_read_to_its_end(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, _ = list_folder(checkout)
    content = PACKAGE["vllm/envs.py"]
    for size in (0, 3, len(content) - 1, len(content) + 1, 1 << 20):
        status = SimpleNamespace(st_mode=stat.S_IFREG, st_size=size)
        monkeypatch.setattr(os, "fstat", lambda _, status=status: status)
        assert tree.read("vllm/envs.py") == content


def test_a_pipe_in_the_place_of_a_listed_file_is_an_error_and_no_wait(checkout: Path) -> None:
    tree, _ = list_folder(checkout)
    (checkout / "vllm/envs.py").unlink()
    os.mkfifo(checkout / "vllm/envs.py")
    with pytest.raises(SourceError, match="not a regular file"):
        tree.read("vllm/envs.py")


def test_what_lies_beside_the_package_is_not_walked_through(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(checkout, {f"data/{n}/{n}.py": b"" for n in range(50)})
    (checkout / "data/up").symlink_to("..")
    entered: list[str] = []
    real = os.scandir

    def scandir(path: str) -> Any:
        entered.append(os.path.relpath(path, checkout))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    list_folder(checkout)
    assert {path.partition(os.sep)[0] for path in entered} == {".", "vllm", "requirements"}


def test_a_folder_that_links_to_itself_is_not_walked_through(checkout: Path) -> None:
    (checkout / "vllm/self").symlink_to(".")
    (checkout / "vllm/a").symlink_to("b")
    (checkout / "vllm/b").symlink_to("a")
    assert reasons(checkout) == {
        "vllm/a": "a symbolic link to nothing that can be read",
        "vllm/b": "a symbolic link to nothing that can be read",
        "vllm/self": "a symbolic link to a folder is not followed",
    }


@pytest.fixture(autouse=True)
def _no_leftovers() -> Iterator[None]:
    before = os.listdir(".")
    yield
    assert os.listdir(".") == before
