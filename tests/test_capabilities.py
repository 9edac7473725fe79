"""Capabilities by rule: any of them, of any registry table, and of classes registered by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trees.minivllm import (
    ARCHITECTURE,
    GUARD,
    INIT,
    REGISTRY,
    WITH_METHOD,
    WITHOUT_METHOD,
    coverage,
    line_of,
    row_of,
    write,
)

from auditor import main
from auditor.api import Request, audit
from auditor.coverage import Coverage, Row, from_json, to_json
from auditor.ruleset.capabilities import capabilities
from auditor.ruleset.checks import check
from auditor.ruleset.files import rules_folder
from auditor.sources.tree import Source

Capture = pytest.CaptureFixture[str]
HEADER = "import torch.nn as nn\n"


def _row(text: str, capability: str, **more: Any) -> Row:
    asked = Request(capability=capability, platforms=("rocm",), **more)
    return row_of(coverage({INIT: HEADER + text}, asked), "rocm")


def test_every_rule_has_examples_of_both_kinds_and_they_hold(tmp_path: Path) -> None:
    """As those of a user: each rule is copied under another name, and checked as his would be."""
    for rule in capabilities():
        assert rule.valid, rule.name
        assert rule.invalid, rule.name
        text = (rules_folder() / "capabilities" / f"{rule.name}.toml").read_text("utf-8")
        renamed = text.replace(
            f'name = "{rule.name}"', f'name = "own_{rule.name}"\nattribute = "{rule.probed}"', 1
        )
        target = tmp_path / rule.name / "capabilities" / "own.toml"
        target.parent.mkdir(parents=True)
        target.write_text(renamed, "utf-8")
        check([tmp_path / rule.name])


# --- hasattr alone


HAS = "class Draft(nn.Module):\n    def combine_hidden_states(self, h):\n        return h\n"
LACKS = "class Draft(nn.Module):\n    def forward(self, h):\n        return h\n"


def test_what_has_it_is_yes_and_what_lacks_it_is_no() -> None:
    has, lacks = _row(HAS, "combine_hidden_states"), _row(LACKS, "combine_hidden_states")
    assert (has.verdict, has.hasattr, has.owner) == ("yes", True, "vllm.models.draft.Draft")
    assert (lacks.verdict, lacks.hasattr, lacks.owner) == ("no", False, None)
    assert (has.shape, has.equivalence, has.findings) == (None, None, ())


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("raise ImportError('not here')", "import"),
        ("class Other: pass", "absent"),
        ("class Draft:\n    def __init__(self):\n        raise NotImplementedError", "stub"),
        ("import torch\nDraft = torch.make()", "?"),
    ],
)
def test_other_verdicts_are_as_for_any_capability(text: str, verdict: str) -> None:
    assert _row(text, "combine_hidden_states").verdict == verdict


SET = "class Draft(nn.Module):\n    def {method}(self):\n        {body}\n"


@pytest.mark.parametrize(
    ("method", "body", "verdict"),
    [
        ("__init__", "self.combine_hidden_states = None", "yes"),
        ("__init__", "super().__init__()\n        self.combine_hidden_states = None", "yes"),
        ("load", "self.combine_hidden_states = None", "?"),
        ("load", "setattr(self, 'combine_hidden_states', None)", "?"),
        ("__getattr__", "return None", "?"),
        ("load", "self.other = None", "no"),
    ],
)
def test_what_is_set_on_an_instance_counts(method: str, body: str, verdict: str) -> None:
    row = _row(SET.format(method=method, body=body), "combine_hidden_states")
    assert row.verdict == verdict, row.reason


def test_what_init_sets_on_a_condition_is_undecided() -> None:
    text = SET.format(method="__init__", body="if x: self.combine_hidden_states = None")
    row = _row(text, "combine_hidden_states")
    assert row.verdict == "?"
    assert "not on each" in (row.reason or "")


# --- a part of the model


PART = """
class Inner(nn.Module):
    {inner}

class Other(nn.Module):
    pass

class Draft(nn.Module):
    {cls}

    def __init__(self, config):
        super().__init__()
        {model}
"""
METHOD = "def set_skip_topk(self, skip): pass"


@pytest.mark.parametrize(
    ("inner", "cls", "model", "verdict"),
    [
        (METHOD, "pass", "self.model = Inner()", "yes"),
        ("pass", METHOD, "self.model = Inner()", "no"),
        (METHOD, "pass", "self.model = make(config)", "?"),
        (METHOD, "pass", "self.model = nn.Linear(8, 8)", "?"),
        (METHOD, "pass", "self.inner = Inner()", "?"),
        (METHOD, "pass", "self.model = Inner() if config.a else Other()", "?"),
        ("pass", "pass", "self.model = Inner() if config.a else Other()", "no"),
        (METHOD, "def load(self): self.model = make()", "self.model = Inner()", "?"),
        (METHOD, "model_cls = Inner", "self.model = self.model_cls()", "yes"),
        ("pass", "model_cls = Inner", "self.model = self.model_cls()", "no"),
        (METHOD, "def model_cls(self): pass", "self.model = self.model_cls()", "?"),
        (METHOD, "model_cls = Inner", "self.model_cls = Other; self.model = self.model_cls()", "?"),
    ],
)
def test_a_part_is_asked_in_the_place_of_the_model(
    inner: str, cls: str, model: str, verdict: str
) -> None:
    row = _row(PART.format(inner=inner, cls=cls, model=model), "set_skip_topk")
    assert row.verdict == verdict, row.reason
    assert row.hasattr is {"yes": True, "no": False}.get(verdict)


def test_the_evidence_goes_through_the_part() -> None:
    text = HEADER + PART.format(inner=METHOD, cls="pass", model="self.model = Inner()")
    row = row_of(coverage({INIT: text}, Request(capability="set_skip_topk")), "rocm")
    (step,) = [step for step in row.evidence if step.kind == "part"]
    assert step.line == line_of({INIT: text}, INIT, "self.model = Inner()")
    assert row.owner == "vllm.models.draft.Inner"


# --- what the document and the reports say


def test_the_document_says_what_was_asked_and_round_trips() -> None:
    document = coverage({INIT: HEADER + HAS}, Request(capability="combine_hidden_states"))
    question = document.question
    assert document.capability == "combine_hidden_states"
    assert question is not None
    assert (question.agrees_with, question.without) == (None, "raises")
    assert "hasattr alone" in document.legend["yes"]
    assert from_json(to_json(document)) == document


def test_a_document_without_a_question_is_still_read() -> None:
    document = json.loads(to_json(coverage({})))
    del document["question"], document["legend"]
    assert from_json(json.dumps(document).encode()).question is None


def _run(tmp_path: Path, files: dict[str, str], *args: str) -> int:
    folder = write(tmp_path / "tree", files)
    return main.run(main.command, ["--vllm", str(folder), "-q", "--no-cache", *args], "audit")


def test_the_legend_says_what_no_means(tmp_path: Path, capsys: Capture) -> None:
    assert _run(tmp_path, {INIT: HEADER + LACKS}, "--capability", "get_mtp_target_hidden_states",
                "--registry", "speculative") == 0  # fmt: skip
    out = capsys.readouterr().out
    assert "the engine falls back: the drafter gets the hidden states" in out


def test_explain_says_it_as_well(tmp_path: Path, capsys: Capture) -> None:
    files = {INIT: HEADER + LACKS}
    assert _run(tmp_path, files, "-c", "set_skip_topk", "explain", ARCHITECTURE) in (0, 3)
    _run(tmp_path, files, "-c", "combine_hidden_states", "explain", ARCHITECTURE)
    assert "lacks it: the engine raises" in capsys.readouterr().out


def test_shape_has_nothing_to_say_where_nothing_is_compared(
    tmp_path: Path, capsys: Capture
) -> None:
    assert _run(tmp_path, {}, "shape", "--capability", "set_skip_topk") == 2
    assert "--capability" in capsys.readouterr().err


def test_an_unknown_capability_names_the_nearest(tmp_path: Path, capsys: Capture) -> None:
    assert _run(tmp_path, {}, "--capability", "set_skip_top") == 2
    assert "Did you mean set_skip_topk?" in capsys.readouterr().err


def test_a_guard_by_a_function_of_the_tree_is_evidence() -> None:
    guard = """
def run(model):
    if not supports_eagle3(model):
        raise RuntimeError("no interface")
"""
    asked = Request(
        capability="set_aux_hidden_state_layers", registry=("speculative",), platforms=("rocm",)
    )
    row = row_of(coverage({GUARD: guard, INIT: HEADER + LACKS}, asked), "rocm")
    (step,) = [step for step in row.evidence if step.kind == "guard"]
    assert step.note == "RuntimeError: no interface"


def test_a_release_whose_engine_does_not_ask_says_so() -> None:
    asking = {GUARD: "def run(model):\n    return hasattr(model, 'combine_hidden_states')\n"}
    asked = Request(capability="combine_hidden_states", platforms=("rocm",))
    silent = coverage({GUARD: "def run(model):\n    return model()\n"}, asked)
    assert any("names combine_hidden_states" in note for note in silent.notes)
    assert coverage(asking, asked).notes == ()


# --- registry tables


TABLES = """
_TEXT_GENERATION_MODELS = {
    "DraftModel": ("vllm.models.draft.nvidia", "Draft"),
    "PlainModel": ("vllm.models.draft.amd", "Draft"),
}
_TEXT_EMBEDDING_MODELS = {"PlainModel": ("vllm.models.draft.nvidia", "Draft")}
_SPECULATIVE_DECODING_MODELS = {"DraftModel": ("vllm.models.draft.amd", "Draft")}
_VLLM_MODELS = {**_TEXT_GENERATION_MODELS, **_SPECULATIVE_DECODING_MODELS}
_PREVIOUS = {"Gone": "0.9"}
"""


def _asked(*names: str) -> Coverage:
    return coverage({REGISTRY: TABLES}, Request(registry=names, platforms=("rocm",)))


@pytest.mark.parametrize(
    "name",
    ["_TEXT_GENERATION_MODELS", "text_generation", "text-generation", "Text Generation", "text_g",
     "vllm.model_executor.models.registry._TEXT_GENERATION_MODELS", "TEXT_GENERATION_MODELS"],
)  # fmt: skip
def test_a_table_goes_by_several_names(name: str) -> None:
    document = _asked(name)
    assert document.registry == "vllm.model_executor.models.registry._TEXT_GENERATION_MODELS"
    assert {row.architecture: row.hasattr for row in document.rows} == {
        "DraftModel": True,
        "PlainModel": False,
    }


def test_the_last_of_several_tables_counts_as_in_a_merged_dict(
    tmp_path: Path, capsys: Capture
) -> None:
    document = _asked("text_generation", "text_embedding")
    assert document.registry.count("_MODELS") == 2
    assert {row.architecture: row.hasattr for row in document.rows}["PlainModel"] is True
    assert _run(tmp_path, {REGISTRY: TABLES}, "--registry", "text_generation,text_embedding") == 0
    assert "registry._TEXT_GENERATION_MODELS, registry._TEXT_EMB" in capsys.readouterr().out
    merged = _asked("vllm")
    assert {row.architecture: row.hasattr for row in merged.rows}["DraftModel"] is False


def test_an_entry_of_a_merged_table_is_cited_where_it_stands() -> None:
    row = row_of(_asked("vllm"), "rocm", "PlainModel")
    assert row.evidence[0].line == line_of({REGISTRY: TABLES}, REGISTRY, 'draft.amd", "Draft"),')


@pytest.mark.parametrize("name", ["text", "_PREVIOUS", "nothing", ""])
def test_what_is_no_table_or_two_names_those_that_there_are(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    assert _run(tmp_path, {REGISTRY: TABLES}, "--registry", name) == 2
    error = capsys.readouterr().err
    assert "--registry: no registry table is called" in error
    assert "_TEXT_GENERATION_MODELS, _TEXT_EMBEDDING_MODELS" in error
    assert "_PREVIOUS" not in error.partition("There are")[2]


# --- classes registered by hand


def _override(target: str, name: str = ARCHITECTURE, **files: str) -> Row:
    asked = Request(overrides={name: target}, platforms=("rocm",))
    return row_of(coverage({**files}, asked), "rocm", name)


def test_an_override_is_what_the_row_resolves_to() -> None:
    row = _override("vllm.models.draft.nvidia:Draft")
    assert (row.module, row.hasattr) == ("vllm.models.draft.nvidia", True)
    given = f"--override {ARCHITECTURE}=vllm.models.draft.nvidia:Draft"
    assert [step.text for step in row.evidence if step.kind == "registry"][1] == given
    assert row.evidence[0].note == f"overridden by {given}"


def test_an_architecture_that_is_in_no_table_is_added_and_said() -> None:
    asked = Request(overrides={"New": "vllm.models.draft.nvidia:Draft"}, platforms=("rocm",))
    document = coverage({}, asked)
    assert row_of(document, "rocm", "New").hasattr is True
    assert any("New is in none of the tables" in note for note in document.notes)


@pytest.mark.parametrize(
    ("target", "verdict", "type_"),
    [
        ("vllm.nowhere:Draft", "import", "ModuleNotFoundError"),
        ("vllm.models.draft.nvidia:Nobody", "absent", "AttributeError"),
    ],
)
def test_what_is_not_there_is_the_error_that_loading_it_raises(
    target: str, verdict: str, type_: str
) -> None:
    row = _override(target)
    assert row.verdict == verdict
    assert row.error is not None
    assert row.error.type == type_


def test_a_class_outside_the_tree_is_undecided() -> None:
    row = _override("somewhere.else_:Draft")
    assert (row.verdict, row.hasattr) == ("?", None)
    assert "somewhere.else_" in (row.reason or "")


@pytest.mark.parametrize("given", ["Draft", "Draft=module", "Draft=a:b:c", "=a:B", "Draft=a:b.c",
                                   "Draft=a/b:C", "Draft=:C", "Draft=a:"])  # fmt: skip
def test_what_names_no_class_is_wrong_usage(given: str, tmp_path: Path, capsys: Capture) -> None:
    assert _run(tmp_path, {}, "--override", given) == 2
    assert "--override" in capsys.readouterr().err


def test_an_override_on_the_command_line(tmp_path: Path, capsys: Capture) -> None:
    override = f"{ARCHITECTURE}=vllm.models.draft.nvidia:Draft"
    files = {INIT: WITHOUT_METHOD}
    _run(tmp_path, files, "--override", override, "explain", ARCHITECTURE, "--format", "json")
    document = from_json(capsys.readouterr().out.encode())
    assert {row.module for row in document.rows} == {"vllm.models.draft.nvidia"}


def test_two_classes_of_one_name_that_differ_are_undecided() -> None:
    has, lacks = _indented(WITH_METHOD), _indented(WITHOUT_METHOD)
    text = f"import os\nif os.environ.get('X'):\n{has}\nelse:\n{lacks}\n"
    row = row_of(coverage({INIT: text}, Request(platforms=("rocm",))), "rocm")
    assert row.verdict == "?"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


# --- real releases


@pytest.mark.slow
@pytest.mark.network
def test_ordinary_models_of_a_release_can_draft(release: Callable[[str], Source]) -> None:
    asked = Request(registry=("_TEXT_GENERATION_MODELS",), platforms=("cuda", "rocm"))
    document = audit(release("0.33.0"), asked)
    able = {row.architecture for row in document.rows if row.verdict == "yes"}
    assert {"LlamaForCausalLM", "Qwen3ForCausalLM", "Llama4ForCausalLM"} <= able
    assert {caller.method for caller in document.callers} == {"draft_model"}
    refused = {row.architecture for row in document.rows if row.verdict == "no"}
    assert {"GPT2LMHeadModel", "Gemma2ForCausalLM"} <= refused
