"""``audit capabilities``: what rules describe, every probe, and what two releases differ in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from trees.minivllm import BASE, GUARD, INTERFACES, line_of, write

from auditor import main
from auditor.probes.command import discovered
from auditor.probes.document import Discovery, json_schema
from auditor.ruleset.capabilities import capabilities
from auditor.sources.tree import Source

PROBING = "vllm/v1/worker/probing.py"
PLAIN = """
from vllm.model_executor.models.interfaces import supports_spin

def run(model, thing):
    if hasattr(model, "rare_thing"):
        model.rare_thing()
    if not supports_spin(model):
        raise ValueError("no spin")
    if hasattr(thing, "odd"):
        return
    if hasattr(run, "cache"):
        return
"""
HELPER = (
    BASE[INTERFACES]
    + """
        class SupportsSpin:
            spin = True

        def supports_spin(model):
            return isinstance(model, SupportsSpin)
        """
)
FILES = {PROBING: PLAIN, INTERFACES: HELPER}
Capture = pytest.CaptureFixture[str]


def _run(tmp_path: Path, files: dict[str, str], *args: str) -> int:
    folder = write(tmp_path / "tree", files)
    given = ["capabilities", "--vllm", str(folder), "-q", "--no-cache", *args]
    return main.run(main.command, given, "audit")


def _json(tmp_path: Path, capsys: Capture, files: dict[str, str], *args: str) -> dict[str, Any]:
    assert _run(tmp_path, files, "--format", "json", *args) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_every_rule_is_listed_with_where_the_source_asks(tmp_path: Path, capsys: Capture) -> None:
    document = _json(tmp_path, capsys, {})
    assert [one["name"] for one in document["capabilities"]] == [r.name for r in capabilities()]
    (ours,) = [one for one in document["capabilities"] if one["name"] == "get_top_tokens"]
    (probe,) = ours["probes"]
    asked = line_of({}, GUARD, 'hasattr(self.model, "get_top_tokens")')
    assert (probe["path"], probe["line"]) == (GUARD, asked)
    assert probe["without"]["does"] == "raises"
    assert ours["agrees_with"] == "compute_logits"
    assert document["probes"] is None


def test_a_capability_that_is_called_and_not_asked_for_says_where(
    tmp_path: Path, capsys: Capture
) -> None:
    calling = "def run(model, h):\n    return model.combine_hidden_states(h)\n"
    document = _json(tmp_path, capsys, {PROBING: calling})
    (ours,) = [one for one in document["capabilities"] if one["name"] == "combine_hidden_states"]
    assert (ours["probes"], ours["uses"]) == ([], [f"{PROBING}:2"])


def test_the_table_lists_them_too(tmp_path: Path, capsys: Capture) -> None:
    assert _run(tmp_path, {}) == 0
    out = capsys.readouterr().out
    assert "get_top_tokens: argmax over the vocabulary shards" in out
    assert "no probe for it in this source" in out


def test_discover_lists_every_probe_and_marks_what_a_rule_knows(
    tmp_path: Path, capsys: Capture
) -> None:
    document = _json(tmp_path, capsys, FILES, "--discover")
    found = {one["attribute"]: one for one in document["probes"]}
    assert found["rare_thing"]["rule"] is None
    assert found["get_top_tokens"]["rule"] == "get_top_tokens"
    assert {name: one["asks"] for name, one in found.items()} == {
        "rare_thing": "model",
        "SupportsSpin": "model",
        "odd": "undecided",
        "cache": "other",
        "get_top_tokens": "model",
    }
    assert found["rare_thing"]["without"]["does"] == "skips"
    line = line_of(FILES, PROBING, "rare_thing()") - 1
    assert (found["rare_thing"]["path"], found["rare_thing"]["line"]) == (PROBING, line)
    assert found["rare_thing"]["text"] == 'if hasattr(model, "rare_thing"):'


def test_a_function_of_the_interfaces_asks_for_what_it_says(
    tmp_path: Path, capsys: Capture
) -> None:
    document = _json(tmp_path, capsys, FILES, "--discover")
    (probe,) = [one for one in document["probes"] if one["through"] == "supports_spin"]
    assert (probe["form"], probe["attribute"]) == ("isinstance", "SupportsSpin")
    assert probe["without"]["text"] == "ValueError: no spin"


def test_a_name_that_callers_give_is_spelled_out(tmp_path: Path, capsys: Capture) -> None:
    text = """
def has(model, flag):
    if getattr(model, flag, False):
        return 1

def run(model):
    has(model, "own_head")
    has(model, flag="own_embed")
"""
    document = _json(tmp_path, capsys, {PROBING: text}, "--discover")
    assert {"own_head", "own_embed"} <= {one["attribute"] for one in document["probes"]}


def test_a_name_that_a_constant_spells_is_that_name(tmp_path: Path, capsys: Capture) -> None:
    text = "NAME = 'spelled'\n\ndef run(model):\n    return hasattr(model, NAME)\n"
    document = _json(tmp_path, capsys, {PROBING: text}, "--discover")
    assert "spelled" in {one["attribute"] for one in document["probes"]}


def test_a_name_that_nobody_spells_is_listed_as_it_stands(tmp_path: Path, capsys: Capture) -> None:
    text = "def run(model, flag):\n    return hasattr(model, flag + '_x')\n"
    document = _json(tmp_path, capsys, {PROBING: text}, "--discover")
    assert "<flag + '_x'>" in {one["attribute"] for one in document["probes"]}


def test_the_table_names_what_is_undecided_and_counts_the_rest(
    tmp_path: Path, capsys: Capture
) -> None:
    assert _run(tmp_path, FILES, "--discover") == 0
    out = capsys.readouterr().out
    assert 'hasattr(model, "rare_thing")  [new]' in out
    assert 'hasattr(self.model, "get_top_tokens")  [rule get_top_tokens]' in out
    assert f"{PROBING}:{line_of(FILES, PROBING, 'odd')}" in out
    assert "1 more ask objects that are no models" in out


def test_two_sources_differ_in_what_one_alone_asks(tmp_path: Path, capsys: Capture) -> None:
    before = write(tmp_path / "before", {PROBING: PLAIN.replace("rare_thing", "old_thing")})
    after = {PROBING: PLAIN.replace("rare_thing", "new_thing"), INTERFACES: HELPER}
    document = _json(tmp_path, capsys, after, "--discover", "--against", str(before))
    changes = {(c["kind"], c["probe"]["attribute"]): c["new"] for c in document["changes"]}
    assert changes[("added", "new_thing")] is True
    assert changes[("removed", "old_thing")] is True
    assert document["against"]["label"] == "vllm (unknown version)"
    assert not [key for key in changes if key[1] == "get_top_tokens"]


def test_a_probe_on_another_line_is_the_same(tmp_path: Path, capsys: Capture) -> None:
    before = write(tmp_path / "before", FILES)
    after = {**FILES, PROBING: f"# A line more.\n{PLAIN}"}
    document = _json(tmp_path, capsys, after, "--discover", "--against", str(before))
    assert document["changes"] == []


def test_a_probe_that_ends_otherwise_is_told(tmp_path: Path, capsys: Capture) -> None:
    before = write(tmp_path / "before", FILES)
    after = {**FILES, PROBING: PLAIN.replace('raise ValueError("no spin")', "return")}
    document = _json(tmp_path, capsys, after, "--discover", "--against", str(before))
    (change,) = document["changes"]
    assert (change["kind"], change["before"]["does"]) == ("changed", "raises")
    assert change["probe"]["without"]["does"] == "skips"


def test_a_file_that_does_not_parse_is_named_and_ends_with_3(
    tmp_path: Path, capsys: Capture
) -> None:
    assert _run(tmp_path, {PROBING: "def run(:\n    hasattr(model, 'x')\n"}, "--discover") == 3
    assert PROBING in capsys.readouterr().out


def test_a_tree_without_an_engine_is_an_error(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "vllm-1"
    (folder / "vllm").mkdir(parents=True)
    (folder / "vllm" / "__init__.py").touch()
    args = ["capabilities", "--vllm", str(folder), "-q", "--no-cache"]
    assert main.run(main.command, args, "audit") == 2
    assert "has no vllm/v1/" in capsys.readouterr().err


def test_the_document_round_trips_and_has_a_schema(tmp_path: Path, capsys: Capture) -> None:
    assert _run(tmp_path, FILES, "--format", "json", "--discover") == 0
    text = capsys.readouterr().out
    document = msgspec.json.decode(text, type=Discovery)
    again = msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
    assert again == text
    assert json_schema()["title"] == "draftaudit capabilities"


@pytest.mark.slow
@pytest.mark.network
def test_a_real_release_asks_for_what_the_rules_say(release: Callable[[str], Source]) -> None:
    document = discovered(release("0.33.0"), None, every=True, against=release("0.30.0"))
    asked = {one.name: {probe.path for probe in one.probes} for one in document.capabilities}
    without = {name for name, paths in asked.items() if not paths}
    assert without == {"combine_hidden_states"}
    assert {one.name for one in document.capabilities if one.uses} >= {"combine_hidden_states"}
    added = {c.probe.attribute for c in document.changes if c.kind == "added" and c.new}
    assert {"sample_sequential", "apply_output_logit_transform"} <= added
    models = [p for p in document.probes or () if p.asks in ("model", "part")]
    assert len(models) > 100
    assert not [p for p in models if p.without.does == "undecided"]
