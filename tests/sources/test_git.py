from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dulwich.objects import ObjectID, Tag
from dulwich.refs import Ref
from dulwich.reftable import ReftableRefsContainer
from dulwich.repo import Repo

from auditor.errors import SourceError
from auditor.sources import git
from auditor.sources.git import OpenedRevision, open_revision
from auditor.sources.release_tags import release_tag_of_checkout
from auditor.sources.selection import Limits
from auditor.sources.tree import stamp

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


@pytest.mark.parametrize(
    "revision",
    [
        "main@{upstream}", "@{u}", "@{push}", "@{-1}", "HEAD@{yesterday}", ":/change", "HEAD:vllm",
        "v0.29.0..main", "v0.29.0...main", "^HEAD", "HEAD^@", "HEAD^!", "HEAD^{/change}",
        "HEAD^{tree}",
    ],
)  # fmt: skip
def test_a_name_of_a_kind_that_is_not_read_is_an_error_that_says_so(
    checkout: Checkout, revision: str
) -> None:
    with pytest.raises(SourceError, match="a way to name a commit that is not read") as raised:
        checkout.open(revision)
    assert f"git rev-parse {revision}" in raised.value.next_step


def test_an_abbreviated_hash_of_two_commits_is_an_error(checkout: Checkout) -> None:
    seen: dict[bytes, int] = {}
    number = 0
    prefix = b""
    while not prefix:
        number += 1
        made = commit(checkout.repository, {"x": b"%d" % number}, branch="many")
        if made[:4] in seen:
            prefix = made[:4]
        seen[made[:4]] = number
    with pytest.raises(SourceError, match=f"more than one commit starts with {prefix.decode()}"):
        checkout.open(prefix.decode())


def test_only_a_shallow_clone_is_told_to_fetch(checkout: Checkout) -> None:
    with pytest.raises(SourceError) as raised:
        checkout.open("v0.1.0")
    assert "fetch the rest" not in raised.value.message
    (checkout.folder / ".git/shallow").write_bytes(checkout.second + b"\n")
    first = checkout.first.decode()
    (checkout.folder / ".git/objects" / first[:2] / first[2:]).unlink()
    assert checkout.open("main").commit == checkout.second.decode()
    for revision in ("main~1", "v0.29.0"):
        with pytest.raises(SourceError, match="shallow clone with only part of the history"):
            checkout.open(revision)


def test_a_clone_that_borrows_its_objects_is_read(checkout: Checkout, tmp_path: Path) -> None:
    with new_repository(tmp_path / "borrowing") as borrowing:
        borrowing.refs[Ref(b"refs/heads/main")] = checkout.second
        borrowing.refs.set_symbolic_ref(Ref(b"HEAD"), Ref(b"refs/heads/main"))
        alternates = os.fsencode(checkout.folder / ".git/objects") + b"\n"
        write_files(tmp_path / "borrowing/.git/objects/info", {"alternates": alternates})
    opened = open_revision(tmp_path / "borrowing", "main")
    assert opened.tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"]
    assert open_revision(tmp_path / "borrowing", "HEAD~1").commit == checkout.first.decode()


def test_a_submodule_is_a_checkout_of_its_own(checkout: Checkout, tmp_path: Path) -> None:
    with new_repository(tmp_path / "super"):
        shutil.copytree(checkout.folder / ".git", tmp_path / "super/.git/modules/sub")
    write_files(tmp_path / "super/sub", {**CHECKOUT, ".git": b"gitdir: ../.git/modules/sub\n"})
    assert open_revision(tmp_path / "super/sub", "v0.29.0").commit == checkout.first.decode()
    assert release_tag_of_checkout(tmp_path / "super/sub") == "0.30.0"


def test_a_tag_of_a_tag_leads_to_its_commit(checkout: Checkout) -> None:
    inner = annotated_tag(checkout.repository, "inner", checkout.first)
    outer = Tag()
    outer.object = (Tag, inner)
    outer.name, outer.message, outer.tagger = b"outer", b"", b"A <a@example.invalid>"
    outer.tag_time = outer.tag_timezone = 0
    checkout.repository.object_store.add_object(outer)
    checkout.repository.refs[Ref(b"refs/tags/v0.29.1")] = outer.id
    opened = checkout.open("v0.29.1")
    assert (opened.commit, opened.tag) == (checkout.first.decode(), "0.29.1")


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        (("extensions", "worldmodel", "true"), "uses the git extension worldmodel"),
        (("extensions", "refstorage", "papyrus"), "uses the git extension refStorage = papyrus"),
        (("core", "repositoryformatversion", "9"), "has the format version 9"),
    ],
)
def test_a_repository_of_an_unknown_kind_is_an_error_that_names_it(
    checkout: Checkout, setting: tuple[str, str, str], told: str
) -> None:
    section, name, value = setting
    config = checkout.repository.get_config()
    config.set("core", "repositoryformatversion", "1")
    config.set(section, name, value)
    config.write_to_path()
    with pytest.raises(SourceError, match=told) as raised:
        checkout.open("main")
    assert "without @REVISION" in raised.value.next_step
    assert release_tag_of_checkout(checkout.folder) is None


def test_refs_in_a_reftable_are_found(checkout: Checkout) -> None:
    config = checkout.repository.get_config()
    config.set("core", "repositoryformatversion", "1")
    config.set("extensions", "refstorage", "reftable")
    config.write_to_path()
    refs = ReftableRefsContainer(str(checkout.folder / ".git"))
    refs[Ref(b"refs/heads/topic")] = checkout.first
    refs[Ref(b"refs/tags/v0.29.0")] = checkout.first
    refs.set_symbolic_ref(Ref(b"HEAD"), Ref(b"refs/heads/topic"))
    for name in ("topic", "v0.29.0", "HEAD", checkout.first.decode()[:9]):
        opened = checkout.open(name)
        assert (opened.commit, opened.tag) == (checkout.first.decode(), "0.29.0")
    assert release_tag_of_checkout(checkout.folder) == "0.29.0"
    with pytest.raises(SourceError, match="there is no commit nothing"):
        checkout.open("nothing")


@pytest.mark.parametrize("branch", ["config", "0123abc", "v0.29.0"])
def test_a_branch_can_be_called_like_something_else(checkout: Checkout, branch: str) -> None:
    made = commit(checkout.repository, OLD, (checkout.second,), branch=branch)
    expected = checkout.first if branch == "v0.29.0" else made  # tags come first
    assert checkout.open(branch).commit == expected.decode()
    assert checkout.open(f"heads/{branch}").commit == made.decode()


def test_packed_tags_say_the_same_of_a_checkout_as_loose_ones(checkout: Checkout) -> None:
    refs = checkout.repository.refs
    for head, tag in ((checkout.first, "0.29.0"), (checkout.second, "0.30.0")):
        refs[Ref(b"refs/heads/main")] = head
        assert release_tag_of_checkout(checkout.folder) == tag
    refs.pack_refs(all=True)
    for head, tag in ((checkout.first, "0.29.0"), (checkout.second, "0.30.0")):
        refs[Ref(b"refs/heads/main")] = head
        assert release_tag_of_checkout(checkout.folder) == tag
    packed = checkout.folder / ".git/packed-refs"
    made = refs[Ref(b"refs/tags/v0.30.0")]
    line = made + b" refs/tags/v0.30.0\n"
    assert packed.read_bytes().count(line) == 1
    text = packed.read_bytes().replace(line, line + b"^" + checkout.second + b"\n")
    lines = [line for line in text.splitlines(keepends=True) if b"rc1" not in line]
    packed.write_bytes(b"# pack-refs with: peeled fully-peeled sorted\n" + b"".join(lines[1:]))
    (checkout.folder / ".git/objects" / made[:2].decode() / made[2:].decode()).unlink()
    assert release_tag_of_checkout(checkout.folder) == "0.30.0"  # as git packs them, unread
    annotated_tag(checkout.repository, "v0.30.0.post1", checkout.second)
    assert release_tag_of_checkout(checkout.folder) == "0.30.0.post1"


@pytest.mark.parametrize("name", ["packed-refs", "HEAD", "config", "refs/tags/v0.30.0"])
@pytest.mark.parametrize(
    "content",
    [b"", b"garbage\n", b"\xff\0" * 50, b"ref: HEAD\n"],
    ids=["empty", "words", "bytes", "circle"],
)
def test_a_damaged_repository_does_not_spoil_its_folder(
    checkout: Checkout, name: str, content: bytes
) -> None:
    checkout.repository.refs.pack_refs(all=True)
    write_files(checkout.folder / ".git", {name: content})
    assert release_tag_of_checkout(checkout.folder) in (None, "0.30.0", "0.30.0rc1")
    # Whatever else is found is an error that a person can read.
    with contextlib.suppress(SourceError):
        assert checkout.open("v0.29.0").commit == checkout.first.decode()


def test_a_damaged_pack_is_an_error(checkout: Checkout) -> None:
    checkout.repository.object_store.pack_loose_objects()
    checkout.repository.close()
    (pack,) = (checkout.folder / ".git/objects/pack").glob("*.pack")
    content = pack.read_bytes()
    pack.chmod(0o644)
    pack.write_bytes(content[:12] + bytes(len(content) - 12))
    with pytest.raises(SourceError, match=r"cannot be read|is not the"):
        checkout.open("v0.30.0")


def test_the_identity_of_a_file_is_the_name_of_its_blob(checkout: Checkout) -> None:
    old, new = checkout.open("v0.29.0").tree, checkout.open("v0.30.0").tree
    assert stamp(old, "vllm/__init__.py") == stamp(new, "vllm/__init__.py")
    assert stamp(old, "vllm/envs.py") != stamp(new, "vllm/envs.py")
    with pytest.raises(KeyError):
        stamp(new, "docs/index.md")


def test_a_huge_blob_is_not_read(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "DEFAULT_LIMITS", Limits(member=8))
    with pytest.raises(SourceError, match="larger than"):
        checkout.open("HEAD").tree.read("vllm/envs.py")
