"""Real releases against CPython: every row of every platform (``tests/truth/README.md``)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from trees.minivllm import MIXIN, PLATFORMS, Answer

from auditor.api import Request, audit
from auditor.coverage import Coverage, Row
from auditor.reports.rows import platform_summary
from auditor.sources.tree import Source

pytestmark = [pytest.mark.network, pytest.mark.slow]

TRUTH = Path(__file__).parent / "truth"
RELEASES = sorted(path.stem for path in TRUTH.glob("[0-9]*.jsonl"))
Release = Callable[[str], Source]
Key = tuple[str, str]
Said = tuple[str | None, str | None, bool | None, str | None, tuple[str, str] | None]

FLASH = "vllm.vllm_flash_attn requires the CUDA flash attention extensions"


def _expected(version: str) -> dict[Key, Said]:
    return dict(_lines(version))


def _lines(version: str) -> Iterator[tuple[Key, Said]]:
    for line in (TRUTH / f"{version}.jsonl").read_text().splitlines():
        fact = json.loads(line)
        error = (fact["error"], fact["message"]) if "error" in fact else None
        said = (*(fact.get(key) for key in ("module", "class", "hasattr", "owner")), error)
        for platform in fact["platforms"]:
            yield (platform, fact["architecture"]), said


def _said(row: Row) -> Said:
    error = (row.error.type, row.error.message) if row.error else None
    return (row.module, row.class_, row.hasattr, row.owner, error)


def _found(coverage: Coverage) -> dict[Key, Said]:
    return {(row.platform, row.architecture): _said(row) for row in coverage.rows}


@cache
def _audited(release: Release, version: str, run_imports: bool = True) -> Coverage:
    return audit(release(version), Request(run_imports=run_imports))


def _row(coverage: Coverage, platform: str, architecture: str) -> Row:
    return next(
        row
        for row in coverage.rows
        if (row.platform, row.architecture) == (platform, architecture)
    )  # fmt: skip


def test_the_expectations_are_whole() -> None:
    assert RELEASES == ["0.30.0", "0.32.0"]
    for version, architectures in (("0.30.0", 62), ("0.32.0", 63)):
        counted = Counter(platform for platform, _ in _expected(version))
        assert counted == dict.fromkeys(PLATFORMS, architectures)


@pytest.mark.parametrize("version", RELEASES)
def test_every_row_of_every_platform_is_what_python_says(release: Release, version: str) -> None:
    assert _found(_audited(release, version)) == _expected(version)


@pytest.mark.parametrize("version", RELEASES)
def test_without_the_import_run_only_deep_import_errors_are_not_seen(
    release: Release, version: str
) -> None:
    found, expected = _found(_audited(release, version, run_imports=False)), _expected(version)
    differing = {key for key, said in expected.items() if found[key] != said}
    deep = {key for key, said in expected.items() if said[4] and said[4][1].startswith(FLASH)}
    assert found.keys() == expected.keys()
    assert differing == deep
    assert {architecture for _, architecture in deep} == {"Dots3NoteMTPModel"}
    assert {platform for platform, _ in deep} == set(PLATFORMS) - {"cuda"}
    assert {found[key][2] for key in deep} == {True}


@pytest.mark.parametrize("version", RELEASES)
def test_an_error_is_import_and_a_name_that_is_missing_is_absent(
    release: Release, version: str
) -> None:
    rows = [row for row in _audited(release, version).rows if row.error is not None]
    for row in rows:
        assert row.error is not None
        assert (row.verdict == "absent") is (row.error.type == "AttributeError")
        assert row.verdict in ("absent", "import")
        assert row.error.chain or row.verdict == "absent"
        assert "__init__.py" in "".join(step.path for step in row.evidence)


# ---- the figures of 0.30.0 ----------------------------------------------------------------------

FIGURES = {
    "cuda": (29, 33, 0),
    "rocm": (27, 34, 1),
    "xpu": (26, 32, 4),
    "cpu": (27, 34, 1),
    "tpu": (27, 32, 3),
    "oot": (27, 34, 1),
}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_summary_of_0_30_0(release: Release, platform: str) -> None:
    satisfy, lack, fail = FIGURES[platform]
    assert platform_summary(_audited(release, "0.30.0"), platform) == (
        f"{platform}: {satisfy} of 62 satisfy the guard, {lack} lack it, {fail} cannot be loaded"
    )


def test_most_classes_of_0_30_0_get_it_from_the_mixin(release: Release) -> None:
    rows = [row for row in _audited(release, "0.30.0").rows if row.platform == "cpu"]
    assert sum(row.owner == MIXIN for row in rows if row.hasattr) == 24


DEEPSEEK = "DeepseekV32MTPModel"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_deepseek_v32_is_another_class_on_cuda(release: Release, platform: str) -> None:
    row = _row(_audited(release, "0.30.0"), platform, DEEPSEEK)
    on_cuda = ("vllm.models.deepseek_v32.nvidia.mtp", "DeepseekV32MTP")
    elsewhere = ("vllm.model_executor.models.deepseek_mtp", "DeepSeekMTP")
    assert (row.module, row.class_) == (on_cuda if platform == "cuda" else elsewhere)


def test_deepseek_v32_of_0_32_0_on_rocm_lacks_the_method(release: Release) -> None:
    row = _row(_audited(release, "0.32.0"), "rocm", DEEPSEEK)
    cls = "vllm.models.deepseek_v32.amd.mtp.DeepseekV32MTP"
    assert Answer.of(row) == Answer("no", False, cls)
    branches = [(step.text, step.note) for step in row.evidence if step.kind == "branch"]
    assert any(note == "true on rocm: taken" for _, note in branches)
    assert row.evidence[-1].kind == "guard"
    assert row.evidence[-1].note.startswith("ValueError: ")


# ---- the class that cannot be imported ----------------------------------------------------------


@pytest.mark.parametrize("version", RELEASES)
def test_the_chain_of_dots3_note_ends_in_the_raise_and_the_missing_extensions(
    release: Release, version: str
) -> None:
    row = _row(_audited(release, version), "rocm", "Dots3NoteMTPModel")
    assert row.error is not None
    kinds = [step.kind for step in row.error.chain]
    hops = kinds.index("branch")
    assert kinds == ["import"] * hops + ["branch", "raise", "fact", "fact"]
    assert hops >= 4
    assert row.error.chain[hops + 1].path == "vllm/vllm_flash_attn/__init__.py"
    for name, step in zip(("_vllm_fa2_C", "_vllm_fa3_C"), row.error.chain[-2:], strict=True):
        assert step.note.endswith(
            f"the tree has no vllm.vllm_flash_attn.{name}, and nothing builds it on rocm"
        )


@pytest.mark.parametrize("version", RELEASES)
def test_nothing_is_open_on_any_platform(release: Release, version: str) -> None:
    coverage = _audited(release, version)
    assert [row for row in coverage.rows if row.verdict == "?"] == []
    # What drafts for an architecture may not be known; whether the class has the method is.
    conditions = [item for item in coverage.undecided if item.kind != "caller"]
    assert {item.kind for item in conditions} == {"condition"}
    assert [item for item in conditions if item.architectures] == []
    assert coverage.notes == ()
