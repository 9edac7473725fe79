"""Architectures that no table of the tree has: registered by the user, or by a plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checkpoints.minitree import TREE
from trees import plugins
from trees.minivllm import source

from auditor.api import Request, Resources
from auditor.checkpoints import library as library_module
from auditor.checkpoints.command import document
from auditor.checkpoints.document import Result
from auditor.checkpoints.reading import Given
from auditor.main import command, run
from auditor.sources.plugin import Plugin

Json = dict[str, Any]
EAGLE: Json = {"model_type": "llama", "architectures": ["Mine"], "vocab_size": 9}


@pytest.fixture(autouse=True)
def _without_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_module, "library_of", lambda _: library_module.NoLibrary())


def _result(request: Request, *over: Plugin) -> Result:
    tree = source({**TREE, **plugins.VLLM} if over else TREE)
    given = [Given("x", "org/x", EAGLE)]
    made = document(tree, request, Resources(processes=1), given, "eagle", None, over)
    return made.results[0]


def test_a_class_of_the_user_is_registered() -> None:
    request = Request(platforms=("rocm",), overrides={"EagleMine": "vllm.models.has:Draft"})
    result = _result(request)
    assert (result.architecture, result.registered) == ("EagleMine", True)
    assert [(row.platform, row.verdict) for row in result.rows] == [("rocm", "yes?")]
    assert _result(Request(platforms=("rocm",))).registered is False


def test_a_class_of_a_plugin_is_registered(tmp_path: Path) -> None:
    body = """
        from vllm import ModelRegistry
        ModelRegistry.register_model("EagleMine", "mine.models:Mine")
        """
    plugin = plugins.opened(tmp_path, plugins.general(body))
    result = _result(Request(platforms=("rocm",)), plugin)
    assert (result.architecture, result.registered) == ("EagleMine", True)
    assert [row.class_ for row in result.rows] == ["Mine"]


def test_the_table_is_none_of_the_users_choice(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, ["checkpoint", "--registry", "x", "config.json"], "audit") == 2
    assert "--registry" in capsys.readouterr().err
