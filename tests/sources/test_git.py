from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dulwich.objects import ObjectID
from dulwich.refs import Ref
from dulwich.repo import Repo

from auditor.errors import SourceError
from auditor.sources.git import OpenedRevision, open_revision, release_tag_of_checkout

from .minitree import CHECKOUT, PACKAGE, snapshot, write_files
from .repositories import Entry, annotated_tag, commit, new_repository

OLD: dict[str, Entry] = {**CHECKOUT, "vllm/envs.py": b"old\n"}


@dataclass(frozen=True)
class Checkout:
    """Two commits: the first tagged v0.29.0, the second v0.30.0; then a side branch."""

    folder: Path
    repository: Repo
    first: ObjectID
    second: ObjectID

    def open(self, revision: str, inside: str = "") -> OpenedRevision:
        return open_revision(self.folder / inside, revision)


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    folder = tmp_path / "checkout"
    repository = new_repository(folder)
    first = commit(repository, OLD)
    second = commit(repository, CHECKOUT, (first,))
    repository.refs[Ref(b"refs/tags/v0.29.0")] = first
    annotated_tag(repository, "v0.30.0rc1", second)
    annotated_tag(repository, "v0.30.0", second)
    repository.refs[Ref(b"refs/heads/feature/x")] = first
    repository.refs[Ref(b"refs/remotes/origin/main")] = second
    write_files(folder, {**CHECKOUT, "vllm/envs.py": b"not committed\n"})
    yield Checkout(folder, repository, first, second)
    repository.close()


NAMES_OF_FIRST = (
    "v0.29.0", "feature/x", "HEAD~1", "HEAD~", "HEAD^", "main^1", "v0.30.0~1", "v0.30.0^{}~1",
    "refs/heads/feature/x", "heads/feature/x", "@~1",
)  # fmt: skip
NAMES_OF_SECOND = (
    "", "HEAD", "@", "main", "v0.30.0", "origin/main", "HEAD~0", "HEAD^0", "tags/v0.30.0",
)  # fmt: skip


@pytest.mark.parametrize("revision", NAMES_OF_FIRST)
def test_a_name_of_the_first_commit_finds_it(checkout: Checkout, revision: str) -> None:
    opened = checkout.open(revision)
    assert opened.commit == checkout.first.decode()
    assert opened.tree.read("vllm/envs.py") == b"old\n"
    assert opened.tag == "0.29.0"


@pytest.mark.parametrize("revision", NAMES_OF_SECOND)
def test_a_name_of_the_second_commit_finds_it(checkout: Checkout, revision: str) -> None:
    opened = checkout.open(revision)
    assert opened.commit == checkout.second.decode()
    assert opened.tag == "0.30.0"


@pytest.mark.parametrize("length", [7, 12, 40])
def test_a_hash_can_be_short_or_in_capitals(checkout: Checkout, length: int) -> None:
    name = checkout.first.decode()[:length]
    for revision in (name, name.upper(), f"{name}~0", f"v0.1-3-g{name}"):
        assert checkout.open(revision).commit == checkout.first.decode()


def test_packed_objects_and_refs_are_read_as_loose_ones(checkout: Checkout) -> None:
    before = checkout.open("main")
    checkout.repository.object_store.pack_loose_objects()
    checkout.repository.refs.pack_refs(all=True)
    assert not list((checkout.folder / ".git/refs/tags").iterdir())
    after = checkout.open("v0.30.0")
    assert after.commit == before.commit
    assert after.tree.files() == before.tree.files()
    assert after.tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"]
    assert checkout.open(checkout.first.decode()[:8]).tag == "0.29.0"


def test_only_what_an_audit_uses_is_listed(checkout: Checkout) -> None:
    listed = {name for name in CHECKOUT if not name.startswith(("tests/", "docs/"))}
    assert checkout.open("HEAD").tree.files() == listed


@pytest.mark.parametrize("inside", ["vllm", "vllm/config", "docs"])
def test_a_subfolder_stands_for_its_checkout(checkout: Checkout, inside: str) -> None:
    assert checkout.open("v0.29.0", inside).tree.read("vllm/envs.py") == b"old\n"


def test_vllm_in_a_folder_of_a_larger_repository_is_found(tmp_path: Path) -> None:
    with new_repository(tmp_path) as repository:
        commit(repository, {f"third/vllm/{name}": data for name, data in PACKAGE.items()})
    write_files(tmp_path / "third/vllm", PACKAGE)
    for inside in ("third/vllm", "third/vllm/vllm/config"):
        opened = open_revision(tmp_path / inside, "HEAD")
        assert opened.tree.files() == set(PACKAGE)
    with pytest.raises(SourceError, match="holds no vLLM"):
        open_revision(tmp_path / "third", "HEAD")


def test_a_worktree_shares_the_objects_of_its_repository(
    checkout: Checkout, tmp_path: Path
) -> None:
    worktree = tmp_path / "worktree"
    control = checkout.folder / ".git/worktrees/worktree"
    write_files(
        control,
        {
            "HEAD": b"ref: refs/heads/feature/x\n",
            "commondir": b"../..\n",
            "gitdir": os.fsencode(worktree / ".git") + b"\n",
        },
    )
    write_files(worktree, {**CHECKOUT, ".git": b"gitdir: " + os.fsencode(control) + b"\n"})
    assert open_revision(worktree, "HEAD").commit == checkout.first.decode()
    assert open_revision(worktree / "vllm", "main").commit == checkout.second.decode()


def test_a_bare_repository_has_revisions_too(checkout: Checkout, tmp_path: Path) -> None:
    shutil.copytree(checkout.folder / ".git", tmp_path / "bare.git")
    assert open_revision(tmp_path / "bare.git", "v0.29.0").commit == checkout.first.decode()


def test_nothing_is_written_to_the_repository(checkout: Checkout) -> None:
    before = snapshot(checkout.folder)
    opened = checkout.open("v0.29.0")
    for path in opened.tree.files():
        opened.tree.read(path)
    assert release_tag_of_checkout(checkout.folder) == "0.30.0"
    assert snapshot(checkout.folder) == before


def test_a_commit_without_a_release_tag_has_none(checkout: Checkout) -> None:
    checkout.repository.refs[Ref(b"refs/tags/nightly")] = commit(
        checkout.repository, OLD, (checkout.second,), branch="next"
    )
    assert checkout.open("nightly").tag is None


@pytest.mark.parametrize(
    "revision", ["v0.30.1", "maim", "HEAD~9", "0" * 40, "abcd", "HEAD^7", "@{9}"]
)
def test_a_revision_that_is_not_there_is_an_error(checkout: Checkout, revision: str) -> None:
    with pytest.raises(SourceError, match="there is no commit") as raised:
        checkout.open(revision)
    assert raised.value.where
    assert raised.value.next_step


def test_the_error_names_the_nearest_refs(checkout: Checkout) -> None:
    with pytest.raises(SourceError, match=r"nearest names here are v0\.30\.0"):
        checkout.open("v0.30.9")


def test_a_revision_that_is_no_commit_is_an_error(checkout: Checkout) -> None:
    tree = checkout.repository[checkout.first].tree  # type: ignore[attr-defined]
    with pytest.raises(SourceError, match="not a commit but a tree"):
        checkout.open(tree.decode())


def test_an_empty_repository_is_an_error(tmp_path: Path) -> None:
    new_repository(tmp_path).close()
    with pytest.raises(SourceError, match="no branches and no tags"):
        open_revision(tmp_path, "HEAD")


def test_a_folder_outside_any_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not in a git checkout"):
        open_revision(tmp_path, "HEAD")


def test_an_object_missing_from_a_partial_clone_is_an_error_of_that_file(
    checkout: Checkout,
) -> None:
    opened = checkout.open("HEAD")
    blob = opened.tree._blobs["vllm/envs.py"].decode()
    (checkout.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(SourceError, match=r"of vllm/envs\.py is not in this clone"):
        opened.tree.read("vllm/envs.py")
    assert opened.tree.read("vllm/__init__.py") == PACKAGE["vllm/__init__.py"]


def test_a_damaged_object_is_an_error_of_that_file(checkout: Checkout) -> None:
    opened = checkout.open("HEAD")
    blob = opened.tree._blobs["vllm/envs.py"].decode()
    path = checkout.folder / ".git/objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(b"garbage")
    with pytest.raises(SourceError, match="cannot be read"):
        opened.tree.read("vllm/envs.py")


def test_links_follow_the_rule_for_folders(tmp_path: Path) -> None:
    files: dict[str, Entry] = {
        **CHECKOUT,
        "CLAUDE.md": (0o120000, b"docs/index.md"),
        "vllm/inside.py": (0o120000, b"envs.py"),
        "vllm/twice.py": (0o120000, b"inside.py"),
        "vllm/outside.py": (0o120000, b"../../secret.py"),
        "vllm/absolute.py": (0o120000, b"/etc/passwd"),
        "vllm/broken.py": (0o120000, b"nothing.py"),
        "vllm/circle.py": (0o120000, b"circle.py"),
        "vllm/folder": (0o120000, b"../docs"),
        "vllm/module": (0o160000, b"1" * 40),
    }
    with new_repository(tmp_path) as repository:
        commit(repository, files)
    opened = open_revision(tmp_path, "HEAD")
    assert opened.tree.read("vllm/twice.py") == PACKAGE["vllm/envs.py"]
    assert opened.tree.read("CLAUDE.md") == CHECKOUT["docs/index.md"]
    assert {problem.path: problem.reason for problem in opened.problems} == {
        "vllm/absolute.py": "a symbolic link out of the folder is not followed",
        "vllm/broken.py": "a symbolic link to nothing that can be read",
        "vllm/circle.py": "a symbolic link that leads in a circle",
        "vllm/folder": "a symbolic link to a folder is not followed",
        "vllm/module": "a submodule is not part of the commit",
        "vllm/outside.py": "a symbolic link out of the folder is not followed",
    }
