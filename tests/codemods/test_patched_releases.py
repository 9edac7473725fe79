"""Real releases: every draft that lacks the method is patched, proven and formatted, or refused."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from auditor.api import Request, Resources, audit
from auditor.coverage import Coverage
from auditor.sources.tree import Source
from codemods.overlay import overlaid
from codemods.planning import plan
from codemods.plans import Plan, Refusal

pytestmark = [pytest.mark.network, pytest.mark.slow]

VERSIONS = ("0.30.0", "0.32.0", "0.33.0")
Open = Callable[[str], Source]

#: How many items each release has, by what is done; and the refusals, by code.
COUNTS = {
    "0.30.0": (
        {"mixin": 10, "method": 10, "pair": 20},
        {"stub": 2, "no-logits": 1, "unknown-term": 1},
    ),
    "0.32.0": (
        {"mixin": 4, "method": 16, "pair": 20},
        {"stub": 2, "no-logits": 1, "unknown-term": 1},
    ),
    "0.33.0": (
        {"mixin": 5, "method": 16, "pair": 20},
        {"stub": 2, "no-logits": 1, "indirect-head": 1},
    ),
}


@cache
def _planned(source_of: Open, version: str) -> Plan:
    return plan(source_of(version), Request(), Resources())


@cache
def _after(source_of: Open, version: str) -> Coverage:
    return audit(_patched(source_of, version), Request(), Resources())


def _patched(source_of: Open, version: str) -> Source:
    done = _planned(source_of, version)
    changed = {path: data for family in done.families for path, data in family.after.items()}
    return overlaid(source_of(version), changed)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_draft_that_lacks_the_method_is_patched_or_refused(
    release: Open, version: str
) -> None:
    done = _planned(release, version)
    rows = {
        (r.architecture, r.platform) for r in done.before.rows if r.hasattr is False and r.module
    }
    items = Counter((item.architecture, name) for item in done.items for name in item.platforms)
    assert items.keys() == rows
    assert set(items.values()) == {1}
    actions = Counter(getattr(item.outcome, "action", "") for item in done.patched)
    codes = Counter(item.outcome.code for item in done.refused if isinstance(item.outcome, Refusal))
    assert (dict(actions), dict(codes)) == COUNTS[version]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_patched_row_is_yes_and_nothing_else_has_changed(release: Open, version: str) -> None:
    done = _planned(release, version)
    patched = {(item.architecture, name) for item in done.patched for name in item.platforms}
    now = {(row.architecture, row.platform): row for row in _after(release, version).rows}
    for row in done.before.rows:
        new = now[row.architecture, row.platform]
        if (row.architecture, row.platform) in patched:
            assert new.verdict == "yes", (row.architecture, row.platform, new.reason)
        else:
            assert (new.verdict, new.hasattr, new.owner) == (row.verdict, row.hasattr, row.owner)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_patch_applies_by_itself_and_is_taken_back(
    release: Open, version: str, tmp_path: Path
) -> None:
    done = _planned(release, version)
    _written(tmp_path, done, release(version))
    for family in done.families:
        place = tmp_path / f"{family.name}.patch"
        place.write_bytes(family.diff)
        for arguments in (["--check"], []):
            _git(tmp_path, "apply", *arguments, place.name)
        for path, content in family.after.items():
            assert (tmp_path / path).read_bytes() == content
        _git(tmp_path, "apply", "-R", place.name)
        for path, content in family.before.items():
            assert (tmp_path / path).read_bytes() == content


def _written(folder: Path, done: Plan, source: Source) -> list[str]:
    """The files that change, and the settings of vLLM's formatter; the paths of the former."""
    before = {path: data for family in done.families for path, data in family.before.items()}
    for path in (*before, "pyproject.toml"):
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(source.tree.read(path))
    # Without these, ruff takes no module for one of the package, and sorts imports otherwise.
    for parent in {parent for path in before for parent in Path(path).parents if parent.name}:
        (folder / parent / "__init__.py").touch()
    return sorted(before)


def _git(folder: Path, *args: str) -> None:
    subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_ruff_with_the_settings_of_vllm_has_no_new_complaint(
    release: Open, version: str, tmp_path: Path
) -> None:
    done = _planned(release, version)
    paths = _written(tmp_path, done, release(version))
    before = _complaints(tmp_path, paths)
    for family in done.families:
        for path, content in family.after.items():
            (tmp_path / path).write_bytes(content)
    assert _complaints(tmp_path, paths) <= before


def _complaints(folder: Path, paths: list[str]) -> set[tuple[str, str]]:
    """What ruff says: a rule and a file for each complaint, and files that it would format."""
    ruff = [sys.executable, "-m", "ruff"]
    check = [*ruff, "check", "--no-cache", "--output-format", "concise", *paths]
    said = subprocess.run(check, cwd=folder, capture_output=True, text=True, check=False).stdout
    found = {(line.split(":")[0], line.split(" ")[1]) for line in said.splitlines() if ":" in line}
    form = [*ruff, "format", "--no-cache", "--check", *paths]
    said = subprocess.run(form, cwd=folder, capture_output=True, text=True, check=False).stdout
    return found | {(line, "format") for line in said.splitlines() if line.startswith("Would")}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_second_run_has_nothing_to_patch(release: Open, version: str) -> None:
    again = plan(_patched(release, version), Request(), Resources())
    assert not again.families
    assert not again.patched


def _lines(done: Plan, path: str) -> bytes:
    return next(family.after[path] for family in done.families if path in family.after)


def test_forms_of_the_newest_release(release: Open) -> None:
    """The forms that differ where a wrong one would draft other tokens without an error."""
    done = _planned(release, "0.33.0")
    models = "vllm/model_executor/models"
    normed = _method(_lines(done, f"{models}/deepseek_mtp.py"))
    assert b"mtp_layer.shared_head(hidden_states)" in normed
    plain = _method(_lines(done, "vllm/models/deepseek_v32/amd/mtp.py"))
    assert b"mtp_layer.shared_head.head, hidden_states" in plain
    for name in ("mimo_mtp", "ernie_mtp"):
        assert b"self.lm_head, spec_step_idx)" in _lines(done, f"{models}/{name}.py")
    for name in ("glm_ocr_mtp", "openpangu_mtp"):
        wrapper = _lines(done, f"{models}/{name}.py")
        assert wrapper.count(b"def get_top_tokens") == 1
    stateful = _lines(done, "vllm/models/hy_v4/nvidia/mtp.py").rpartition(b"def get_top_tokens")[2]
    assert b"self.model.spec_step_idx = spec_step_idx\n        return self.model.get_" in stateful
    for name in ("nvidia", "xpu"):
        shared = _lines(done, f"vllm/models/deepseek_v4/{name}/mtp.py")
        assert shared.count(b"self._pre_head(mtp_layer, hidden_states)") == 2
        assert shared.count(b"_MTP_SHARED_HEAD_RMSNORM_KERNEL(\n") == 1
    step = {item.family for item in done.patched if item.architecture == "Step3p5MTP"}
    (family,) = [family for family in done.families if family.name in step]
    assert "vllm/v1/spec_decode/step3p5.py" in family.after


def _method(content: bytes) -> bytes:
    """The first ``get_top_tokens`` of a file."""
    return content.partition(b"def get_top_tokens")[2].partition(b"\n\n\n")[0]
