from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from auditor.errors import SourceError
from auditor.sources.archive import ArchiveContents, read_archive
from auditor.sources.bundle import SEALED_AT, open_bundle, pack
from auditor.sources.cache import Cache, CacheConfig
from auditor.sources.packed import OpenedArchive, open_archive, open_cached
from auditor.sources.tree import MemoryTree, SourceProblem, content_key, key_of, stamp

from .minitree import NEXT_VERSION, PACKAGE, VERSION, sdist_bytes, snapshot, stream, write_files

CONTENTS = ArchiveContents(
    "sdist",
    {"vllm/__init__.py": b"", "vllm/a.py": b"a\n", "vllm/_C.so": None},
    (SourceProblem("vllm/z", "a link"),),
)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(CacheConfig.at(tmp_path / "cache"))


def test_a_bundle_gives_back_what_was_packed(tmp_path: Path) -> None:
    path = tmp_path / "x.tree"
    path.write_bytes(pack(CONTENTS))
    bundle = open_bundle(path)
    assert bundle is not None
    memory = MemoryTree(CONTENTS.members)
    assert (bundle.kind, bundle.problems) == (CONTENTS.kind, CONTENTS.problems)
    assert bundle.tree.files() == memory.files()
    for name in ("vllm/__init__.py", "vllm/a.py"):
        assert bundle.tree.read(name) == memory.read(name)
        assert content_key(bundle.tree, name) == content_key(memory, name)
    for tree in (bundle.tree, memory):
        with pytest.raises(SourceError, match="only the name"):
            tree.read("vllm/_C.so")
        with pytest.raises(SourceError, match="only the name"):
            content_key(tree, "vllm/_C.so")
        with pytest.raises(KeyError):
            tree.read("nothing")


def test_the_same_contents_give_the_same_bundle() -> None:
    reversed_members = dict(reversed(list(CONTENTS.members.items())))
    assert pack(ArchiveContents("sdist", reversed_members, CONTENTS.problems)) == pack(CONTENTS)


def test_any_flipped_byte_of_a_bundle_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.tree"
    good = pack(CONTENTS)
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :])
        assert open_bundle(path) is None


def test_an_untouched_bundle_is_not_read_as_a_whole_but_each_file_is_checked(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.tree"
    good = pack(CONTENTS)
    path.write_bytes(good[:-1] + b"?")
    os.utime(path, (SEALED_AT, SEALED_AT))
    bundle = open_bundle(path)
    assert bundle is not None
    with pytest.raises(SourceError, match="damaged") as raised:
        bundle.tree.read("vllm/a.py")
    assert "--no-cache" in raised.value.next_step


def test_a_bundle_that_was_copied_is_sealed_again(tmp_path: Path) -> None:
    path = tmp_path / "x.tree"
    path.write_bytes(pack(CONTENTS))
    assert open_bundle(path) is not None
    assert path.stat().st_mtime == SEALED_AT


def test_a_bundle_deleted_while_it_is_open_can_still_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.tree"
    path.write_bytes(pack(CONTENTS))
    bundle = open_bundle(path)
    path.unlink()
    assert bundle is not None
    assert bundle.tree.read("vllm/a.py") == b"a\n"


def test_a_second_opening_of_an_archive_does_not_read_it(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_files(tmp_path, {"v.tar.gz": sdist_bytes()}) / "v.tar.gz"
    before = snapshot(tmp_path)
    first = open_archive(path, cache)
    monkeypatch.setattr("auditor.sources.packed.read_archive", None)
    second = open_archive(path, cache)
    assert second.tree.files() == first.tree.files()
    assert all(second.tree.read(name) == first.tree.read(name) for name in first.tree.files())
    after = snapshot(tmp_path)
    assert {name: after[name] for name in before} == before
    assert not cache.notes


def test_an_archive_that_changed_is_read_anew(tmp_path: Path, cache: Cache) -> None:
    path = write_files(tmp_path, {"v.tar.gz": sdist_bytes()}) / "v.tar.gz"
    open_archive(path, cache)
    path.write_bytes(sdist_bytes(NEXT_VERSION))
    assert NEXT_VERSION.encode() in open_archive(path, cache).tree.read("PKG-INFO")


def test_a_copy_of_an_archive_shares_its_bundle(tmp_path: Path, cache: Cache) -> None:
    for name in ("a.tar.gz", "b.tar.gz"):
        (tmp_path / name).write_bytes(sdist_bytes())
        open_archive(tmp_path / name, cache)
    assert len(cache.names("trees")) == 1
    assert len(cache.names("archives")) == 2


def test_without_a_cache_nothing_is_written(tmp_path: Path) -> None:
    path = write_files(tmp_path, {"v.tar.gz": sdist_bytes()}) / "v.tar.gz"
    before = snapshot(tmp_path)
    open_archive(path, Cache(CacheConfig.off()))
    assert snapshot(tmp_path) == before


def test_an_archive_that_cannot_be_opened_is_an_error(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SourceError, match="No such file"):
        open_archive(tmp_path / "v.tar.gz", cache)


def test_a_failed_write_leaves_nothing_behind_and_is_noted_once(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    cache.write("trees/a", b"1")
    cache.write("trees/b", b"2")
    assert len(cache.notes) == 1
    assert "No space left on device" in cache.notes[0]
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_write_replaces_the_whole_entry(tmp_path: Path, cache: Cache) -> None:
    cache.write("a/b", b"one")
    held = (tmp_path / "cache/a/b").open("rb")
    cache.write("a/b", b"two")
    with held:
        assert held.read() == b"one"
    assert cache.read("a/b") == b"two"


def test_what_a_killed_run_left_is_swept_away(tmp_path: Path, cache: Cache) -> None:
    cache.write("a/b", b"")
    old, new = tmp_path / "cache/a/.writing-old", tmp_path / "cache/a/.writing-new"
    old.touch()
    new.touch()
    os.utime(old, (time.time() - 90_000,) * 2)
    cache.write("a/c", b"")
    assert not old.exists()
    assert new.exists()
    assert cache.names("a") == ["b", "c"]


def test_an_entry_that_cannot_be_read_is_noted(tmp_path: Path, cache: Cache) -> None:
    (tmp_path / "cache/entry").mkdir(parents=True)
    assert cache.read("entry") is None
    assert "cannot be read" in cache.notes[0]


def test_the_default_cache_is_the_user_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = CacheConfig.default().folder
    assert folder is not None
    assert folder.name == "draftaudit"


def test_the_key_of_contents_is_the_same_in_every_tree() -> None:
    contents = read_archive(stream(sdist_bytes(VERSION)), "x.tar.gz")
    tree = MemoryTree(contents.members)
    assert content_key(tree, "vllm/envs.py") == key_of(tree.read("vllm/envs.py"))
    assert len(key_of(b"")) == 16


def corrupt(entry: Path, content: bytes) -> None:
    """Change what a bundle holds of ``content``, in a way that its size and time do not show."""
    status = entry.stat()
    data = entry.read_bytes()
    assert data.count(content) == 1
    entry.write_bytes(data.replace(content, content[::-1]))
    os.utime(entry, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_damage_found_when_a_file_is_read_is_made_good_with_a_note(
    tmp_path: Path, cache: Cache
) -> None:
    path = write_files(tmp_path, {"v.tar.gz": sdist_bytes()}) / "v.tar.gz"
    open_archive(path, cache)
    (entry,) = (tmp_path / "cache/trees").iterdir()
    good = entry.read_bytes()
    corrupt(entry, PACKAGE["vllm/envs.py"])
    archive = open_archive(path, cache)
    assert not cache.notes
    for _ in range(2):
        assert archive.tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"]
        assert archive.tree.read("vllm/__init__.py") == PACKAGE["vllm/__init__.py"]
    assert cache.notes == ["a damaged entry of the cache was discarded"]
    assert entry.read_bytes() == good
    later = Cache(CacheConfig.at(tmp_path / "cache"))
    assert open_archive(path, later).tree.read("vllm/envs.py") == PACKAGE["vllm/envs.py"]
    assert not later.notes


@pytest.mark.parametrize(
    ("now", "told"), [(None, "No such file"), (sdist_bytes(NEXT_VERSION), "now has another one")]
)
def test_damage_that_cannot_be_made_good_is_an_error_once_and_the_entry_is_gone(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch, now: bytes | None, told: str
) -> None:
    path = write_files(tmp_path, {"v.tar.gz": sdist_bytes()}) / "v.tar.gz"
    open_archive(path, cache)
    (entry,) = (tmp_path / "cache/trees").iterdir()
    corrupt(entry, PACKAGE["vllm/envs.py"])
    archive = open_archive(path, cache)
    path.unlink()
    if now is not None:
        path.write_bytes(now)
    for _ in range(2):
        with pytest.raises(SourceError, match=told):
            archive.tree.read("vllm/envs.py")
    assert archive.tree.read("vllm/__init__.py") == PACKAGE["vllm/__init__.py"]
    assert not entry.exists()


def test_the_identity_of_a_file_in_a_bundle_is_its_content_key(tmp_path: Path) -> None:
    path = tmp_path / "x.tree"
    path.write_bytes(pack(CONTENTS))
    bundle = open_bundle(path)
    assert bundle is not None
    assert stamp(bundle.tree, "vllm/a.py") == key_of(b"a\n")
    assert stamp(MemoryTree(CONTENTS.members), "vllm/a.py") is None


@pytest.mark.parametrize("digest", ["", "../x", "0" * 63, "0" * 64 + "\n", "\0"])
def test_a_hash_that_is_none_leads_to_no_file(tmp_path: Path, cache: Cache, digest: str) -> None:
    write_files(tmp_path, {"cache/x.tree": b"keep", "cache/trees/.tree": b"keep"})
    before = snapshot(tmp_path)

    def nothing() -> OpenedArchive:
        raise AssertionError("nothing is there to be opened again")

    assert open_cached(digest, cache, nothing) is None
    assert snapshot(tmp_path) == before


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert CacheConfig.default() == CacheConfig.off()


def test_what_another_user_left_does_not_stop_a_write(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write("a/b", b"")
    leftover = tmp_path / "cache/a/.writing-other"
    leftover.touch()
    os.utime(leftover, (1, 1))
    real = Path.unlink

    def unlink(self: Path, missing_ok: bool = False) -> None:
        if self == leftover:
            raise PermissionError(1, "Operation not permitted")
        real(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    cache.write("a/c", b"c")
    assert cache.read("a/c") == b"c"
    assert not cache.notes
