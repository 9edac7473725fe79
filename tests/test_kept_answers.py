"""No answer depends on the cache, on the order of entries, or on the number of processes."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from trees.minivllm import (
    CLASS,
    GUARD,
    INIT,
    MODULE,
    REGISTRY,
    RUNNER,
    SPECULATIVE,
    WITH_METHOD,
    WITHOUT_METHOD,
    files,
    write,
)

from auditor import engine_reading, job, memo, processes, tables
from auditor.answers import resolve
from auditor.api import Request, Resources, audit
from auditor.contracts.contract import Engine
from auditor.coverage import to_json
from auditor.engine_reading import EngineReading
from auditor.errors import SourceError
from auditor.factcache import FactCache
from auditor.facts import Unparsed
from auditor.job import Job
from auditor.memo import Grounds, Memo, answer_digest
from auditor.prefetch import Prefetch
from auditor.program import Files
from auditor.registry import read_tables
from auditor.sources.open import open_source
from auditor.sources.tree import Source

NVIDIA, AMD = "vllm/models/draft/nvidia.py", "vllm/models/draft/amd.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A mini vLLM on the disk."""
    dispatch = (
        "from vllm.platforms import current_platform\n"
        "if current_platform.is_rocm():\n    from .amd import Draft\n"
        "else:\n    from .nvidia import Draft\n"
    )
    return write(tmp_path / "tree", {INIT: dispatch, NVIDIA: WITH_METHOD, AMD: WITHOUT_METHOD})


def opened(tree: Path) -> Source:
    return open_source(str(tree), cwd=tree)


def document(tree: Path, cache: Path | None = None, processes: int = 1) -> bytes:
    return to_json(audit(opened(tree), Request(), Resources(cache, processes)))


def test_two_processes_give_the_same_bytes_as_one(tree: Path) -> None:
    assert document(tree, processes=2) == document(tree, processes=1)


def test_who_calls_is_asked_again_where_a_later_platform_has_more_drafts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = (
        "from vllm.platforms import current_platform\n"
        f"_SPECULATIVE_DECODING_MODELS = {{'First': {(MODULE, CLASS)}}}\n"
        "if current_platform.is_rocm():\n"
        f"    _SPECULATIVE_DECODING_MODELS['Second'] = {(MODULE, CLASS)}\n"
    )
    tree = write(tmp_path / "tree", {INIT: WITH_METHOD, REGISTRY: table})
    expected = document(tree, processes=1)
    read: list[str] = []
    worker = processes.Worker

    def counted(function: Callable[[Sequence[object]], list[bytes]]) -> object:
        read.append(function.__name__)
        return worker(function)

    monkeypatch.setattr(engine_reading, "Worker", counted)
    assert document(tree, processes=2) == expected
    assert b'"Second"' in expected
    assert read == ["_answered", "_answered"]


def test_two_processes_give_the_same_bytes_as_one_for_a_single_platform(tree: Path) -> None:
    for imports in (True, False):
        request = Request(platforms=("rocm",), run_imports=imports)
        one, two = (to_json(audit(opened(tree), request, Resources(None, n))) for n in (1, 2))
        assert one == two


def test_a_kept_answer_has_the_same_bytes_and_runs_nothing(
    tree: Path, tmp_path: Path, runs: list[str]
) -> None:
    first = document(tree, tmp_path / "cache")
    assert runs
    runs.clear()
    assert document(tree, tmp_path / "cache") == first
    assert runs == []


def test_what_is_kept_is_the_same_whoever_read_the_engine(tree: Path, tmp_path: Path) -> None:
    """A second process, this one, or an earlier run whose reading of the engine was kept."""
    caches = [tmp_path / name for name in ("one", "two", "again")]
    document(tree, caches[0], processes=1)
    document(tree, caches[1], processes=2)
    shutil.copytree(caches[0] / "contracts", caches[2] / "contracts")
    document(tree, caches[2], processes=2)
    one, two, again = (
        {path.name: path.read_bytes() for path in (cache / "answers").iterdir()} for cache in caches
    )
    assert one == two == again


def test_what_the_engine_answered_is_kept_as_its_files_say_it(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Grounds] = []
    store = Memo.store

    def noted(memo: Memo, *args: object) -> None:
        seen.extend(one for one in args if isinstance(one, Grounds))
        store(memo, *args)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(Memo, "store", noted)
    document(tree, tmp_path / "cache", processes=2)
    (grounds,) = seen
    files = Files(opened(tree).tree)
    kinds = {probe[0] for _, probe in grounds.digests}
    assert kinds == {"text", "mentions", "guards", "stores"}
    for (path, probe), digest in grounds.digests.items():
        assert probe in grounds.probes[path]
        assert digest == answer_digest(files, path, probe)
    assert all(key == files.key(path) for path, key in grounds.keys.items())


def test_a_kept_answer_serves_the_same_tree_at_another_place(
    tree: Path, tmp_path: Path, runs: list[str]
) -> None:
    first = document(tree, tmp_path / "cache")
    tree.rename(tmp_path / "moved")
    runs.clear()
    assert document(tmp_path / "moved", tmp_path / "cache") == first
    assert runs == []


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (NVIDIA, "def get_top_tokens", "def get_bottom_tokens"),
        (INIT, "is_rocm", "is_cuda"),
        (GUARD, "get_top_tokens", "get_other_tokens"),
        (NVIDIA, "        return None", "        return hidden_states"),
    ],
)
def test_a_change_that_matters_is_seen(
    tree: Path, tmp_path: Path, path: str, old: str, new: str
) -> None:
    before = document(tree, tmp_path / "cache")
    text = (tree / path).read_text()
    assert old in text
    (tree / path).write_text(text.replace(old, new))
    after = document(tree, tmp_path / "cache")
    assert after == document(tree)
    assert after != before


def test_a_comment_keeps_the_rows_and_changes_the_digest(
    tree: Path, tmp_path: Path, runs: list[str]
) -> None:
    before = document(tree, tmp_path / "cache")
    with (tree / NVIDIA).open("a") as file:
        file.write("\n# a comment\n")
    runs.clear()
    after = document(tree, tmp_path / "cache")
    assert runs == []
    assert after != before
    assert after == document(tree)


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The engines whose contracts were really read."""
    read: list[object] = []
    real = Engine.contracts

    def counted(self: Engine, *args: object) -> object:
        read.append(self)
        return real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Engine, "contracts", counted)
    return read


def test_contracts_are_kept_while_the_engine_says_the_same(
    tree: Path, tmp_path: Path, engines: list[object]
) -> None:
    cache = tmp_path / "cache"
    document(tree, cache)
    engines.clear()
    text = (tree / NVIDIA).read_text()
    (tree / NVIDIA).write_text(text.replace("def get_top_tokens", "def get_bottom_tokens"))
    after = document(tree, cache)
    assert engines == []
    assert after == document(tree)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (GUARD, "self.model.get_top_tokens(hidden_states)", "self.model.get_top_tokens()"),
        (RUNNER, "self.drafter = Proposer", "self.drafter = Other"),
        (SPECULATIVE, 'Literal["mtp"]', 'Literal["draft_model"]'),
    ],
)
def test_a_change_of_the_engine_is_seen(
    tree: Path, tmp_path: Path, path: str, old: str, new: str
) -> None:
    cache = tmp_path / "cache"
    before = document(tree, cache)
    text = (tree / path).read_text()
    assert old in text
    (tree / path).write_text(text.replace(old, new))
    after = document(tree, cache)
    assert after == document(tree)
    assert after != before


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b"x" * len(b)])
def test_damaged_contracts_are_read_again(
    tree: Path, tmp_path: Path, damage: Callable[[bytes], bytes], engines: list[object]
) -> None:
    cache = tmp_path / "cache"
    first = document(tree, cache)
    for path in [*(cache / "answers").iterdir(), *(cache / "contracts").iterdir()]:
        path.write_bytes(damage(path.read_bytes()))
    engines.clear()
    assert document(tree, cache) == first
    assert engines


def test_a_comment_on_a_cited_line_is_seen(tree: Path, tmp_path: Path) -> None:
    document(tree, tmp_path / "cache")
    text = (tree / NVIDIA).read_text()
    assert "class Draft(nn.Module):" in text
    changed = text.replace("class Draft(nn.Module):", "class Draft(nn.Module):  # ours")
    (tree / NVIDIA).write_text(changed)
    assert document(tree, tmp_path / "cache") == document(tree)


FAST = (
    "from vllm.platforms import current_platform\n"
    "def other():\n    return 1\n"
    "def fast():\n    return current_platform.is_cuda()\n"
    "if fast():\n    from .nvidia import Draft\nelse:\n    from .amd import Draft\n"
)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (NVIDIA, "import torch.nn as nn", "# a comment\n\nimport torch.nn as nn"),
        (INIT, "from vllm", "# above\nfrom vllm"),
        (INIT, "    return 1\n", "    x = 1\n    return x\n"),
        (INIT, "def fast():\n", "\n\ndef fast():\n"),
    ],
)
def test_lines_that_only_moved_run_nothing(
    tree: Path, tmp_path: Path, runs: list[str], path: str, old: str, new: str
) -> None:
    (tree / INIT).write_text(FAST)
    before = document(tree, tmp_path / "cache")
    text = (tree / path).read_text()
    assert old in text
    (tree / path).write_text(text.replace(old, new))
    runs.clear()
    after = document(tree, tmp_path / "cache")
    assert runs == []
    assert after != before
    assert after == document(tree)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return current_platform", "    # why\n    return current_platform"),
        ("def fast", "X = other()\ndef fast"),
        ("if fast():", "if not fast():"),
        ("\nif fast():", "; Y = 2\nif fast():"),
    ],
)
def test_lines_that_moved_and_say_more_are_run_again(
    tree: Path, tmp_path: Path, runs: list[str], old: str, new: str
) -> None:
    (tree / INIT).write_text(FAST)
    document(tree, tmp_path / "cache")
    assert old in FAST
    (tree / INIT).write_text(FAST.replace(old, new))
    runs.clear()
    after = document(tree, tmp_path / "cache")
    assert runs
    assert after == document(tree)


def test_a_body_that_the_analysis_reads_is_read_again(
    tree: Path, tmp_path: Path, runs: list[str]
) -> None:
    document(tree, tmp_path / "cache")
    text = (tree / NVIDIA).read_text()
    (tree / NVIDIA).write_text(text.replace("return None", "return hidden_states", 1))
    runs.clear()
    assert document(tree, tmp_path / "cache") == document(tree)
    assert runs


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (INIT, "        return False\n", "        return False\n    return True\n"),
        (INIT, "        x = True\n", "        x = True\n        return False\n"),
        (INIT, "    x = True\n    return x\n", "    x = True\n        return x\n"),
        (NVIDIA, "        return None\n", "        return None\n        return None\n"),
        (NVIDIA, "        y = 1\n", "        y = 1\n        return hidden_states\n"),
    ],
)
def test_a_body_that_is_longer_or_indented_otherwise_is_read_again(
    tree: Path, tmp_path: Path, runs: list[str], path: str, old: str, new: str
) -> None:
    """The lines that it had are there as before."""
    (tree / INIT).write_text(
        "from vllm.platforms import current_platform\n"
        "def fast():\n    x = current_platform.is_cuda()\n    if x:\n        x = True\n"
        "    return x\n"
        "def slow():\n    if current_platform.is_rocm():\n        return False\n"
        "if fast() or slow():\n    from .nvidia import Draft\nelse:\n    from .amd import Draft\n"
    )
    (tree / NVIDIA).write_text((tree / NVIDIA).read_text() + "        y = 1\n")
    document(tree, tmp_path / "cache")
    text = (tree / path).read_text()
    assert old in text
    head, _, tail = text.rpartition(old)
    (tree / path).write_text(head + new + tail)
    runs.clear()
    assert document(tree, tmp_path / "cache") == document(tree)
    assert len(runs) == 12


def test_an_edit_moves_no_place_that_the_tree_wrote(tree: Path, tmp_path: Path) -> None:
    (tree / INIT).write_text(f"from .nvidia import Draft\nraise OSError('see {NVIDIA}:3')\n")
    document(tree, tmp_path / "cache")
    (tree / NVIDIA).write_text("# a comment\n" + (tree / NVIDIA).read_text())
    assert document(tree, tmp_path / "cache") == document(tree)


def test_the_place_of_a_default_moves_with_it(tree: Path, tmp_path: Path) -> None:
    method = (
        "import torch.nn as nn\n\nclass Draft(nn.Module):\n"
        "    def __init__(self):\n        self.lm_head = nn.Linear(2, 3)\n\n"
        "    def pick(self, h, k=[1]):\n        return h * k\n\n"
        "    def compute_logits(self, hidden_states):\n"
        "        return self.lm_head(self.pick(hidden_states))\n"
    )
    (tree / NVIDIA).write_text(method)
    before = document(tree, tmp_path / "cache")
    assert f"one object for all calls at {NVIDIA}:7".encode() in before
    (tree / NVIDIA).write_text("# a comment\n" + method)
    assert document(tree, tmp_path / "cache") == document(tree)


def test_zero_and_minus_zero_are_two_constants(tree: Path, tmp_path: Path) -> None:
    text = (
        "ZERO = 0.0\nif str(ZERO) == '-0.0':\n    raise OSError('no')\nfrom .nvidia import Draft\n"
    )
    (tree / INIT).write_text(text)
    before = document(tree, tmp_path / "cache")
    (tree / INIT).write_text(text.replace("= 0.0", "= -0.0"))
    after = document(tree, tmp_path / "cache")
    assert after == document(tree)
    assert b"OSError" in after
    assert b"OSError" not in before


def test_an_expression_that_is_nested_too_deeply_to_be_compared(tree: Path, tmp_path: Path) -> None:
    deep = f"DEEP = {'+'.join(['1'] * 3500)}\n"
    (tree / NVIDIA).write_text(deep + (tree / NVIDIA).read_text())
    document(tree, tmp_path / "cache")
    (tree / NVIDIA).write_text("# a comment\n" + (tree / NVIDIA).read_text())
    assert document(tree, tmp_path / "cache") == document(tree)


def test_lines_of_a_chain_of_imports_that_moved(tree: Path, tmp_path: Path) -> None:
    (tree / NVIDIA).write_text("import torch\n\n\ndef f():\n    pass\n\n\nraise OSError('no')\n")
    document(tree, tmp_path / "cache")
    (tree / NVIDIA).write_text(
        "import torch\n\n\ndef f():\n    x = 1\n    return x\n\n\nraise OSError('no')\n"
    )
    assert document(tree, tmp_path / "cache") == document(tree)


def test_lines_that_moved_without_the_facts_of_before(
    tree: Path, tmp_path: Path, runs: list[str]
) -> None:
    document(tree, tmp_path / "cache")
    (tmp_path / "cache" / "facts.sqlite3").unlink()
    (tree / NVIDIA).write_text("# a comment\n" + (tree / NVIDIA).read_text())
    runs.clear()
    assert document(tree, tmp_path / "cache") == document(tree)
    assert runs


def test_a_function_that_was_run_and_changed_is_seen(tree: Path, tmp_path: Path) -> None:
    dispatch = (
        "from vllm.platforms import current_platform\n"
        "def fast():\n    return current_platform.is_cuda()\n"
        "if fast():\n    from .nvidia import Draft\nelse:\n    from .amd import Draft\n"
    )
    (tree / INIT).write_text(dispatch)
    document(tree, tmp_path / "cache")
    (tree / INIT).write_text(dispatch.replace("is_cuda", "is_rocm"))
    assert document(tree, tmp_path / "cache") == document(tree)


def test_a_new_file_that_hides_another_is_seen(tree: Path, tmp_path: Path) -> None:
    document(tree, tmp_path / "cache")
    package = tree / "vllm" / "models" / "draft" / "nvidia"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('gone')\n")
    after = document(tree, tmp_path / "cache")
    assert b"gone" in after
    assert after == document(tree)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _garble(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for index in range(len(content) // 3, len(content), 7):
        content[index] ^= 0x5A
    path.write_bytes(content)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [_truncate, _garble, _empty])
def test_a_damaged_cache_changes_no_answer_and_is_made_anew(
    tree: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    cache = tmp_path / "cache"
    first = document(tree, cache)
    damaged = [path for path in cache.rglob("*") if path.is_file()]
    assert len(damaged) >= 2
    for path in damaged:
        damage(path)
    assert document(tree, cache) == first
    assert document(tree, cache) == first
    with closing(sqlite3.connect(cache / "facts.sqlite3")) as connection:
        assert connection.execute("SELECT count(*) FROM facts").fetchone()[0] > 0


@pytest.mark.parametrize("value", ["x'c0'", "NULL", "5", "'text'"])
def test_an_entry_of_the_fact_cache_that_is_not_intact_is_parsed_again(
    tree: Path, tmp_path: Path, value: str
) -> None:
    cache = tmp_path / "cache"
    first = document(tree, cache)
    connection = sqlite3.connect(cache / "facts.sqlite3")
    with connection:
        connection.execute(f"UPDATE facts SET value = {value}")
    connection.close()
    for path in (cache / "answers").iterdir():
        path.unlink()
    assert document(tree, cache) == first


def test_a_cache_that_cannot_be_made_changes_no_answer(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert document(tree, tmp_path / "file" / "cache") == document(tree)


def test_an_answer_of_another_tool_version_is_not_taken(
    tree: Path, tmp_path: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    document(tree, tmp_path / "cache")
    runs.clear()
    monkeypatch.setattr(memo, "tool_digest", lambda: b"another")
    document(tree, tmp_path / "cache")
    assert runs


def test_only_so_many_answers_are_kept(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memo, "_KEPT", 3)
    source = opened(tree)
    for number in range(6):
        request = Request(env={"NUMBER": str(number)})
        audit(source, request, Resources(tmp_path / "cache", 1))
    assert len(list((tmp_path / "cache" / "answers").iterdir())) == 3


class _Partly:
    """A tree some files of which cannot be read, each for a reason of its own."""

    def __init__(self, reasons: dict[str, str]) -> None:
        self._files = files(
            {INIT: "from .nvidia import Draft\n", NVIDIA: "from .amd import Draft\n"}
        )
        self._reasons = reasons

    def files(self) -> frozenset[str]:
        return frozenset(self._files)

    def read(self, path: str) -> bytes:
        if path in self._reasons:
            raise SourceError(self._reasons[path], where=path)
        return self._files[path]


def partly(reasons: dict[str, str], cache: Path | None = None, processes: int = 1) -> bytes:
    source = Source("folder", "0.33.0", "a mini tree", "given by a test", _Partly(reasons))
    return to_json(audit(source, Request(), Resources(cache, processes)))


def test_each_file_that_cannot_be_read_has_its_own_reason() -> None:
    reasons = {AMD: "it is too large", NVIDIA: "permission denied"}
    known = Files(_Partly(reasons))
    known.load(list(reasons))
    for path, reason in reasons.items():
        facts = known.facts(path)
        assert isinstance(facts, Unparsed)
        assert reason in facts.reason


def test_a_file_that_cannot_be_read_for_another_reason_is_seen(tmp_path: Path) -> None:
    first = partly({AMD: "permission denied"}, tmp_path)
    assert b"permission denied" in first
    assert partly({AMD: "permission denied"}, tmp_path) == first
    assert partly({AMD: "it is too large"}, tmp_path) == partly({AMD: "it is too large"})
    assert partly({}, tmp_path) == partly({})


@pytest.mark.parametrize("where", [(Prefetch, "read"), (Job, "_asked")])
def test_no_second_process_is_left_behind_an_error(
    tree: Path, monkeypatch: pytest.MonkeyPatch, where: tuple[object, str]
) -> None:
    def fails(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(*where, fails)
    monkeypatch.setattr(EngineReading, "_read", lambda *_: time.sleep(600))
    with pytest.raises(KeyboardInterrupt):
        document(tree, processes=2)
    assert multiprocessing.active_children() == []


def test_a_second_process_that_dies_changes_no_answer(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = document(tree, processes=1)
    parent = os.getpid()

    def dies_in_a_child(*args: object) -> object:
        if os.getpid() != parent:
            os._exit(9)
        return resolve(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(job, "resolve", dies_in_a_child)
    assert document(tree, processes=2) == expected


def test_a_second_process_that_dies_reading_the_engine_changes_no_answer(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = document(tree, processes=1)
    asked: list[object] = []
    read = EngineReading._read

    def noted(reading: EngineReading, drafts: engine_reading.Drafts) -> bytes:
        asked.append(drafts)
        return read(reading, drafts)

    monkeypatch.setattr(EngineReading, "_answered", lambda *_: os._exit(9))
    monkeypatch.setattr(EngineReading, "_read", noted)
    assert document(tree, processes=2) == expected
    assert len(asked) == 1
    assert multiprocessing.active_children() == []


def test_facts_are_the_same_from_the_cache_and_from_the_file(tree: Path, tmp_path: Path) -> None:
    source = opened(tree)
    fresh = Files(source.tree)
    paths = sorted(path for path in source.tree.files() if path.endswith(".py"))
    for _ in range(2):
        with closing(FactCache(tmp_path / "cache")) as cache:
            cached = Files(source.tree, cache)
            cached.load(paths)
            assert [cached.facts(path) for path in paths] == [fresh.facts(path) for path in paths]


@pytest.mark.network
def test_the_order_of_entries_decides_nothing_on_a_real_release(
    release: Callable[[str], Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, request = release("0.32.0"), Request(platforms=("rocm", "xpu"))
    expected = {
        (row.architecture, row.platform): (row.verdict, row.module, row.owner, row.error)
        for row in audit(source, request, Resources(None, 1)).rows
    }

    def shuffled(*args: object) -> object:
        table = read_tables(*args)  # type: ignore[arg-type]
        entries = list(table.entries)
        random.Random(20).shuffle(entries)
        return type(table)(tuple(entries), table.unread)

    monkeypatch.setattr(tables, "read_tables", shuffled)
    found = {
        (row.architecture, row.platform): (row.verdict, row.module, row.owner, row.error)
        for row in audit(source, request, Resources(None, 1)).rows
    }
    assert found == expected
