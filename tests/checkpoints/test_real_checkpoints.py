"""Published checkpoints over real releases, against what those releases made of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from auditor.api import Request, Resources
from auditor.checkpoints.answer import Answers
from auditor.checkpoints.command import document
from auditor.checkpoints.document import Result
from auditor.checkpoints.engine import new_run
from auditor.checkpoints.library import library_of
from auditor.checkpoints.reading import Given
from auditor.checkpoints.tables import Tables
from auditor.contracts.names import Names
from auditor.modules import locate_modules
from auditor.program import Files
from auditor.sources.tree import Source

pytestmark = [pytest.mark.network, pytest.mark.slow]

TRUTH = Path(__file__).parent.parent / "truth" / "checkpoints.jsonl"
PYTHON = os.environ.get("DRAFTAUDIT_TEST_VLLM_PYTHON")
Release = Callable[[str], Source]
Json = dict[str, Any]


def _truth() -> list[Json]:
    return [json.loads(line) for line in TRUTH.read_text().splitlines()]


@cache
def _results(release: Release, version: str) -> tuple[tuple[Json, Result], ...]:
    """Every checkpoint of the file with its answer, without rows."""
    source, library = release(version), library_of(PYTHON)
    modules = locate_modules(sorted(source.tree.files()), {"vllm"})[0]
    names = Names(Files(source.tree), modules)
    tables = Tables(new_run(names, library), source, Request(), Resources())
    answers = Answers(names, library, tables)
    try:
        return tuple(
            (one, answers.result(Given(one["name"], "org/name", one["config"]), one["method"]))
            for one in _truth()
        )
    finally:
        library.close()


def _differ(version: str, line: Json) -> bool:
    return version in line["others"]


def _override(result: Result) -> list[object]:
    stage = result.override
    assert stage is not None
    assert stage.gap is None
    error = None if stage.error is None else stage.error.type
    return [stage.architecture, stage.n_predict, stage.model_type, error]


def test_the_file_is_whole() -> None:
    assert len(_truth()) == 43
    assert {one["method"] for one in _truth()} == {"mtp", "eagle", "eagle3", "dflash", "dspark"}


@pytest.mark.parametrize("version", ["0.32.0", "0.33.0"])
def test_the_override_is_what_the_release_makes_of_it(release: Release, version: str) -> None:
    for line, result in _results(release, version):
        if not _differ(version, line):
            assert _override(result) == line["override"], line["name"]


@pytest.mark.parametrize("version", ["0.28.0", "0.30.0"])
def test_other_releases_come_to_other_architectures(release: Release, version: str) -> None:
    differing = 0
    for line, result in _results(release, version):
        expected = line["others"].get(version, line["override"][0])
        differing += version in line["others"]
        stage = result.override
        assert stage is not None
        if isinstance(expected, dict):
            assert stage.error is not None
            assert stage.error.type == expected["error"], line["name"]
        else:
            assert stage.architecture == expected, line["name"]
    assert differing == {"0.28.0": 4, "0.30.0": 1}[version]


@pytest.mark.parametrize("version", ["0.32.0", "0.33.0"])
def test_the_engine_asks_for_what_stands_in_for_the_checkpoint(
    release: Release, version: str
) -> None:
    for line, result in _results(release, version):
        if PYTHON is not None or line["config"].get("architectures"):
            assert result.after_eagle_config == line["engine"], line["name"]


@pytest.mark.skipif(PYTHON is None, reason="no DRAFTAUDIT_TEST_VLLM_PYTHON")
@pytest.mark.parametrize("version", ["0.32.0"])
def test_loading_gives_what_the_release_loads(release: Release, version: str) -> None:
    # A configuration cut down to the fields that decide, which its class refuses as it stands.
    cut = {"SpecForge DeepSeek-V3 EAGLE3 draft"}
    for line, result in _results(release, version):
        stage, expected = result.loaded, line["loaded"]
        assert stage is not None
        if line["name"] in cut:
            assert stage.error is not None
        elif isinstance(expected, dict):
            assert stage.error is not None
            assert stage.error.type == expected["error"], line["name"]
        else:
            said = [stage.architecture, stage.n_predict, stage.model_type, stage.config_class]
            assert said == expected, line["name"]


def _classes(release: Release, version: str, config: Json) -> dict[str, str | None]:
    given = [Given("x", "org/name", config)]
    answer = document(release(version), Request(), Resources(), given, None, PYTHON)
    (result,) = answer.results
    assert result.method == "mtp"
    assert result.registered
    return {row.platform: row.module for row in result.rows}


def _config(model_type: str) -> Iterator[tuple[str, object]]:
    yield "model_type", model_type
    yield "architectures", ["AnyForCausalLM"]
    yield "num_nextn_predict_layers", 1


def test_the_class_differs_by_platform_where_the_module_does(release: Release) -> None:
    plain = _classes(release, "0.33.0", dict(_config("deepseek_v3")))
    assert set(plain.values()) == {"vllm.model_executor.models.deepseek_mtp"}
    for kind in ("deepseek_v32", "glm_moe_dsa"):
        sparse = _classes(release, "0.33.0", dict(_config(kind)))
        assert sparse["cuda"] != sparse["rocm"] != sparse["cpu"]
