"""What is read ahead: what a module may import when it runs, and nothing that it cannot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from auditor import prefetch, program
from auditor.factcache import FactCache
from auditor.prefetch import Prefetch
from auditor.processes import can_fork
from auditor.program import FACTS, Files, Job, parse_batch

FILES = {
    "pkg/__init__.py": "",
    "pkg/model.py": "",
    "pkg/layers.py": "Layer = None\n",
    "pkg/annotations.py": "Annotation = None\n",
}
MODULES = {
    "pkg": ("pkg/__init__.py", True),
    "pkg.model": ("pkg/model.py", False),
    "pkg.layers": ("pkg/layers.py", False),
    "pkg.annotations": ("pkg/annotations.py", False),
}


class Recorded:
    """A tree that remembers which of its files were read."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files
        self.asked: set[str] = set()

    def files(self) -> frozenset[str]:
        return frozenset(self._files)

    def read(self, path: str) -> bytes:
        self.asked.add(path)
        return self._files[path].encode()


def read_ahead(model: str, processes: int = 1, begun: tuple[str, ...] = ()) -> set[str]:
    tree = Recorded({**FILES, "pkg/model.py": model})
    with Prefetch(Files(tree), MODULES, processes) as ahead:
        if begun:
            ahead.begin(begun)
        ahead.read(["pkg.model"])
    return tree.asked


@pytest.mark.parametrize("test", ["TYPE_CHECKING", "typing.TYPE_CHECKING"])
def test_a_block_for_type_checkers_is_left_out(test: str) -> None:
    model = (
        "import typing\nfrom typing import TYPE_CHECKING\n"
        f"if {test}:\n    import pkg.annotations\nelse:\n    import pkg.layers\n"
    )

    assert read_ahead(model) == {"pkg/__init__.py", "pkg/model.py", "pkg/layers.py"}


def test_any_other_branch_may_run() -> None:
    model = "import sys\nif sys.platform == 'win32':\n    import pkg.annotations\n"

    assert "pkg/annotations.py" in read_ahead(model)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("begun", [("pkg.model",), ("pkg.layers",), ("pkg.annotations",)])
def test_what_was_begun_is_read_once_and_the_rest_after_it(
    processes: int, begun: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    keep = Files.keep

    def kept(self: Files, jobs: Sequence[Job], blobs: Sequence[bytes]) -> None:
        parsed.extend(path for job in jobs if job.kind == FACTS for path in job.paths)
        keep(self, jobs, blobs)

    monkeypatch.setattr(Files, "keep", kept)
    model = "from pkg import layers\n"
    extra = {f"pkg/{name.rpartition('.')[2]}.py" for name in begun}
    wanted = {"pkg/__init__.py", "pkg/model.py", "pkg/layers.py"} | extra
    assert read_ahead(model, processes, begun) == wanted
    assert sorted(parsed) == sorted(wanted)


def _chains() -> tuple[dict[str, str], dict[str, tuple[str, bool]]]:
    """Modules of all sizes: each imports the next one, one of another chain, and a twin.

    All twins have the same bytes, and are come across one after the other.
    """
    files, modules = {"pkg/__init__.py": ""}, {"pkg": ("pkg/__init__.py", True)}
    for number in range(120):
        imports = f"import pkg.m{number + 1}, pkg.t{number}\nfrom pkg import m{number * 7 % 120}\n"
        texts = {"m": imports + "x = 1\n" * (number * 37 % 300), "t": "y = 1\n" * 300}
        for kind, text in texts.items():
            path = f"pkg/{kind}{number}.py"
            files[path], modules[f"pkg.{kind}{number}"] = text, (path, False)
    return files, modules


def read_chains(ahead: Prefetch) -> None:
    with ahead:
        ahead.begin(["pkg.m0", "pkg.m60"])
        ahead.begin(["pkg.m30"])
        ahead.read(["pkg.m0"])


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("share", [1, 2_000, 5_000, 10**9])
def test_each_file_of_a_closure_is_parsed_once(
    processes: int, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "_SHARE", share)
    files, modules = _chains()
    known = Files(Recorded(files))
    parsed: list[str] = []
    keep = known.keep

    def kept(jobs: Sequence[Job], blobs: Sequence[bytes]) -> None:
        parsed.extend(path for job in jobs if job.kind == FACTS for path in job.paths)
        keep(jobs, blobs)

    monkeypatch.setattr(known, "keep", kept)
    read_chains(Prefetch(known, modules, processes))
    assert sorted(parsed) == sorted(files)
    alone = Files(Recorded(files))
    assert all(known.facts(path) == alone.facts(path) for path in files)


@pytest.mark.skipif(not can_fork(2), reason="there are no second processes here")
@pytest.mark.parametrize("lives_for", [0, 1, 3])
def test_what_a_second_process_leaves_undone_is_parsed_here(
    lives_for: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, batches = os.getpid(), 0

    def dies_in_a_child(batch: Sequence[tuple[str, bytes]]) -> list[bytes]:
        nonlocal batches
        batches += 1
        if os.getpid() != parent and batches > lives_for:
            os._exit(9)
        return parse_batch(batch)

    monkeypatch.setattr(prefetch, "parse_batch", dies_in_a_child)
    monkeypatch.setattr(prefetch, "_SHARE", 5_000)
    files, modules = _chains()
    known = Files(Recorded(files))
    read_chains(Prefetch(known, modules, 2))
    assert all(known.has(FACTS, path) for path in files)


@pytest.mark.parametrize("processes", [1, 2])
def test_what_was_read_is_known_to_the_next_run(
    processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[bytes] = []
    store = FactCache.store

    def counted(self: FactCache, rows: Sequence[tuple[bytes, bytes, bytes]]) -> None:
        stored.extend(row[0] for row in rows)
        store(self, rows)

    monkeypatch.setattr(FactCache, "store", counted)
    files, modules = _chains()
    with closing(FactCache(tmp_path)) as cache:
        known = Files(Recorded(files), cache)
        read_chains(Prefetch(known, modules, processes))
        assert stored
        stored.clear()
        known.save()
        assert not stored
    # The parser is not even imported where nothing is parsed.
    monkeypatch.setattr(program, "parse_batch", lambda _: pytest.fail("nothing is to be parsed"))
    with closing(FactCache(tmp_path)) as cache:
        again = Files(Recorded(files), cache)
        again.load(list(files))
        assert again.wanted(FACTS, files) == []
        assert [again.digest(FACTS, path) for path in files] == [
            known.digest(FACTS, path) for path in files
        ]


def test_a_tree_that_differs_in_one_file_has_the_digests_of_all_others() -> None:
    files, modules = _chains()
    known = Files(Recorded(files))
    read_chains(Prefetch(known, modules, 1))
    changed = Recorded({**files, "pkg/m0.py": "z = 1\n"})
    over = known.over(changed, ["pkg/m0.py"])
    differing = [p for p in files if over.digest(FACTS, p) != known.digest(FACTS, p)]
    assert differing == ["pkg/m0.py"]
    assert changed.asked == {"pkg/m0.py"}
