"""Files edited in place: all or none, whenever the process ends."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codemods.writing import JOURNAL, Change, WriteError, recover, write

CHANGES = (
    Change("vllm/a.py", b"old a\n", b"new a\n"),
    Change("vllm/b/c.py", b"old c\n", b"new c\n"),
    Change("vllm/d.py", b"old d\n", b"new d\n"),
    Change("tests/made/e.py", None, b"made e\n"),
)
ROOT_USER = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    _make(tmp_path)
    (tmp_path / "vllm/a.py").chmod(0o755)
    return tmp_path


def _make(root: Path) -> None:
    for change in CHANGES:
        if change.before is not None:
            place = root / change.path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(change.before)


def contents(root: Path) -> list[bytes | None]:
    """What each file holds; None where there is none."""
    places = [root / change.path for change in CHANGES]
    return [place.read_bytes() if place.exists() else None for place in places]


OLD = [change.before for change in CHANGES]
NEW = [change.after for change in CHANGES]


def stray(root: Path) -> list[str]:
    """Files that no change is about."""
    known = {change.path for change in CHANGES}
    found = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(set(found) - known)


def test_every_file_is_replaced_and_keeps_its_mode(root: Path) -> None:
    write(root, CHANGES)
    assert contents(root) == NEW
    assert stat.S_IMODE((root / "vllm/a.py").stat().st_mode) == 0o755
    assert not stray(root)


SYSTEM_CALLS = ("open", "fsync", "chmod", "replace", "fdopen")


def _killed_at(root: Path, moment: int) -> bool:
    """Run the edit in a process that is killed before its n-th system call; whether it was."""
    child = os.fork()
    if child == 0:
        left = iter(range(moment))

        def counted(call: Callable[..., object]) -> Callable[..., object]:
            def made(*args: object, **kwargs: object) -> object:
                if next(left, None) is None:
                    os._exit(9)
                return call(*args, **kwargs)

            return made

        for name in SYSTEM_CALLS:
            setattr(os, name, counted(getattr(os, name)))
        Path.unlink = counted(Path.unlink)  # type: ignore[method-assign, assignment]
        write(root, CHANGES)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 9


def _moments(make: Callable[[int], Path]) -> Iterator[tuple[int, Path]]:
    """A tree for each moment at which an edit can be killed."""
    for moment in range(1000):
        root = make(moment)
        if not _killed_at(root, moment):
            return
        yield moment, root


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process to kill")
def test_killed_at_any_moment_each_file_is_old_or_new_and_the_set_is_recoverable(
    tmp_path: Path,
) -> None:
    def make(moment: int) -> Path:
        folder = tmp_path / str(moment)
        _make(folder)
        return folder

    seen: set[str] = set()
    for moment, folder in _moments(make):
        found = contents(folder)
        assert all(one in (c.before, c.after) for one, c in zip(found, CHANGES, strict=True))
        decided = (folder / JOURNAL).exists()
        seen.add("decided" if decided else "done" if found == NEW else "open")
        recover(folder)
        assert contents(folder) == (NEW if decided or found == NEW else OLD), moment
        if contents(folder) == OLD:
            write(folder, CHANGES)
        assert contents(folder) == NEW
        assert not stray(folder), moment
    assert {"decided", "open"} <= seen


def test_a_file_that_is_made_has_the_mode_of_a_new_one(root: Path) -> None:
    write(root, CHANGES)
    assert stat.S_IMODE((root / "tests/made/e.py").stat().st_mode) == 0o644


def test_a_file_in_the_place_of_one_that_is_made_stops_everything(root: Path) -> None:
    (root / "tests/made").mkdir(parents=True)
    (root / "tests/made/e.py").symlink_to("nowhere")
    with pytest.raises(WriteError, match=r"e\.py: exists already"):
        write(root, CHANGES)
    assert contents(root) == OLD
    assert (root / "tests/made/e.py").is_symlink()


def test_a_file_in_the_place_of_a_folder_stops_everything(root: Path) -> None:
    (root / "tests").write_bytes(b"mine\n")
    with pytest.raises(WriteError, match="is not a folder"):
        write(root, CHANGES)
    assert contents(root) == OLD


def test_a_second_edit_waits_until_the_first_is_finished(root: Path) -> None:
    (root / JOURNAL).write_bytes(b"{}")
    with pytest.raises(WriteError, match="codemod recover"):
        write(root, CHANGES)
    assert contents(root) == OLD


def test_a_file_that_changed_meanwhile_stops_everything(root: Path) -> None:
    (root / "vllm/d.py").write_bytes(b"mine\n")
    with pytest.raises(WriteError, match=r"d\.py: has changed since it was analysed"):
        write(root, CHANGES)
    assert contents(root) == [*OLD[:2], b"mine\n", None]
    assert not stray(root)


def test_a_file_that_changes_between_two_replacements_is_kept_and_the_others_go_back(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def replacing(source: Path, target: Path) -> None:
        replace(source, target)
        if Path(target).name == "a.py" and (root / "vllm/a.py").read_bytes() == b"new a\n":
            (root / "vllm/d.py").write_bytes(b"mine\n")

    monkeypatch.setattr(os, "replace", replacing)
    with pytest.raises(WriteError, match="has changed"):
        write(root, CHANGES)
    assert contents(root) == [*OLD[:2], b"mine\n", None]
    assert not stray(root)


def test_a_symbolic_link_is_not_edited(root: Path) -> None:
    (root / "vllm/d.py").rename(root / "elsewhere.py")
    (root / "vllm/d.py").symlink_to(root / "elsewhere.py")
    with pytest.raises(WriteError, match="is a symbolic link"):
        write(root, CHANGES)
    assert contents(root) == OLD


def test_a_folder_that_leads_out_of_the_tree_is_not_edited(root: Path, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    (root / "vllm/b").rename(outside)
    (root / "vllm/b").symlink_to(outside)
    with pytest.raises(WriteError, match="lies outside the tree"):
        write(root, CHANGES)
    assert contents(root) == OLD


def test_a_read_only_file_is_not_edited(root: Path) -> None:
    (root / "vllm/d.py").chmod(0o444)
    with pytest.raises(WriteError, match="is read-only"):
        write(root, CHANGES)
    assert contents(root) == OLD
    assert not stray(root)


@pytest.mark.skipif(ROOT_USER, reason="root may write everywhere")
def test_a_read_only_folder_is_not_edited(root: Path) -> None:
    (root / "vllm/b").chmod(0o555)
    with pytest.raises(WriteError, match="its folder is read-only"):
        write(root, CHANGES)
    (root / "vllm/b").chmod(0o755)
    assert contents(root) == OLD


def test_a_full_disk_leaves_everything_as_it_was(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter(range(2))

    def fsync(descriptor: int) -> None:
        if next(calls, None) is None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(WriteError, match="No space left on device"):
        write(root, CHANGES)
    assert contents(root) == OLD
    assert not stray(root)


def test_recovery_does_not_overwrite_what_someone_wrote_meanwhile(root: Path) -> None:
    moments = (n for n in range(1000) if _killed_at(root, n) and (root / JOURNAL).exists())
    next(moments)
    (root / "vllm/d.py").write_bytes(b"mine\n")
    with pytest.raises(WriteError, match="is neither the file before"):
        recover(root)
    assert (root / "vllm/d.py").read_bytes() == b"mine\n"


def test_a_damaged_journal_is_an_error(root: Path) -> None:
    (root / JOURNAL).write_bytes(b"{")
    with pytest.raises(WriteError, match="is damaged"):
        recover(root)


@pytest.mark.parametrize("path", ["a\\u0000b", "/"])
def test_a_journal_with_a_path_that_there_cannot_be_is_an_error(root: Path, path: str) -> None:
    entry = f'{{"path": "{path}", "before": "", "after": ""}}'
    (root / JOURNAL).write_text(f'{{"entries": [{entry}]}}')
    with pytest.raises(WriteError, match=r"is damaged\. Compare the files"):
        recover(root)


def test_a_folder_in_the_place_of_the_journal_is_an_error(root: Path) -> None:
    (root / JOURNAL).mkdir()
    with pytest.raises(WriteError, match=rf"{JOURNAL}: cannot be read .*\. Compare the files"):
        recover(root)


def test_there_is_nothing_to_recover_after_an_edit(root: Path) -> None:
    write(root, CHANGES)
    assert recover(root) == ()
