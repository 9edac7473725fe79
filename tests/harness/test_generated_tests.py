"""The pytest file that is generated for a patched class: what it builds, and what it asks."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest
from msgspec import structs
from trees.heads import IMPORTS
from trees.lacking import STEP, draft, engine, planned, tree
from trees.minivllm import INIT

from codemods.harness.files import FOLDER, files_of
from codemods.plans import Plan
from codemods.reports import untested

FLAT = """
def compute_logits(self, hidden_states):
    return self.logits_processor(self.lm_head, hidden_states)
"""
NORMED = """
def compute_logits(self, hidden_states):
    return self.logits_processor(self.lm_head, self.norm(hidden_states))
"""
INITIAL = """
def __init__(self, config):
    super().__init__()
    self.lm_head = ParallelLMHead(config.vocab_size, config.hidden_size)
    self.logits_processor = LogitsProcessor(config.vocab_size)
    self.norm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
"""
PER_STEP = """
class SharedHead(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.head = ParallelLMHead(config.vocab_size, config.hidden_size)

    def forward(self, hidden_states):
        return self.norm(hidden_states)


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.shared_head = SharedHead(config)


class Predictor(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.start = config.num_hidden_layers
        self.count = config.num_nextn_predict_layers
        self.layers = nn.ModuleDict({str(i): Layer(config) for i in range(2)})
        self.logits_processor = LogitsProcessor(config.vocab_size)

    def compute_logits(self, hidden_states, spec_step_idx: int = 0):
        layer = self.layers[str(self.start + spec_step_idx % self.count)]
        return self.logits_processor(
            layer.shared_head.head, layer.shared_head(hidden_states)
        )
"""
OWN = "self.own_head = ParallelLMHead(config.vocab_size, config.hidden_size)"
FORWARDING = """
def compute_logits(self, hidden_states, spec_step_idx: int = 0):
    return self.model.compute_logits(hidden_states, spec_step_idx)
"""
MODEL = """
def __init__(self, config):
    super().__init__()
    self.model = Predictor(config)
"""


def only(plan: Plan) -> str:
    """The source of the one test of a plan, which is Python that a formatter leaves alone."""
    (content,) = files_of(plan.trials).values()
    source = content.decode()
    ast.parse(source)
    for command in (("check", "--select", "E,F,W,I"), ("format", "--check", "--diff")):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "88",
             "--config", 'lint.isort.known-first-party = ["vllm"]', "-"],
            input=content, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout.decode()
    return source


def test_a_file_stands_where_vllm_keeps_such_tests_and_needs_vllm_alone() -> None:
    plan = planned(tree(draft(FLAT, init=INITIAL)))
    (path,) = files_of(plan.trials)
    assert path == f"{FOLDER}/test_draft_local_argmax.py"
    source = only(plan)
    imported = {
        node.module.partition(".")[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    assert imported <= {"unittest", "torch", "vllm"}
    assert "draftaudit" not in source


def test_a_flat_head_is_built_with_its_processor_and_nothing_else() -> None:
    source = only(planned(tree(draft(FLAT, init=INITIAL))))
    assert "model.lm_head = _make_head(ParallelLMHead, shard, 0)" in source
    assert "model.logits_processor = LogitsProcessor(vocab_size)" in source
    assert "RMSNorm" not in source
    assert "step" not in source


def test_a_norm_before_the_head_is_real_and_has_gains_that_differ() -> None:
    source = only(planned(tree(draft(NORMED, init=INITIAL))))
    assert "model.norm = _randomized(RMSNorm(HIDDEN_SIZE, eps=EPSILON), 0)" in source
    assert "normal_(1.0, 0.5" in source


def test_a_head_a_step_is_built_for_every_step_under_the_key_that_is_asked_for() -> None:
    plan = planned(tree(draft(FORWARDING, init=MODEL, before=PER_STEP), STEP))
    source = only(plan)
    assert "model.model = _bare(Predictor)" in source
    assert "layer.shared_head = _bare(SharedHead)" in source
    assert "layer.shared_head.head = _make_head(ParallelLMHead, shard, step)" in source
    assert "model.model.layers[str(FIRST_LAYER + step)] = layer" in source
    assert "model.model.count = NUM_STEPS" in source
    assert '@pytest.mark.parametrize("step", range(NUM_STEPS))' in source
    assert "spec_step_idx=step" in source
    assert "test_a_caller_may_leave_out_the_step" in source


def test_every_way_to_the_head_has_a_model_of_its_own() -> None:
    init = f"{INITIAL}    self.own_head = None\n    if config.own:\n        {OWN}\n"
    body = """
    def compute_logits(self, hidden_states):
        head = self.lm_head if self.own_head is None else self.own_head
        return self.logits_processor(head, hidden_states)
    """
    source = only(planned(tree(draft(body, init=init))))
    assert "model.own_head = None" in source
    assert "model.own_head = _make_head(ParallelLMHead, shard, 0)" in source
    assert '@pytest.mark.parametrize("make_model", [_make_model_0, _make_model_1])' in source


def test_a_part_that_is_read_and_not_used_is_built_too() -> None:
    body = """
    def compute_logits(self, hidden_states):
        unused = self.norm
        return self.logits_processor(self.lm_head, hidden_states)
    """
    assert "model.norm = _randomized(" in only(planned(tree(draft(body, init=INITIAL))))


def test_a_class_of_some_platforms_is_tested_there_alone() -> None:
    init = "from vllm.platforms import current_platform\n\nif current_platform.is_rocm():\n"
    given = {
        INIT: f"{init}    from .amd import Draft\nelse:\n    from .other import Draft\n",
        "vllm/models/draft/amd.py": draft(FLAT, init=INITIAL),
        "vllm/models/draft/other.py": draft(NORMED, init=INITIAL),
    }
    files = files_of(planned(tree(given)).trials)
    source = files[f"{FOLDER}/test_draft_amd_local_argmax.py"].decode()
    assert "if not current_platform.is_rocm():\n    pytest.skip(" in source
    late = source.index("from vllm.models.draft.amd import Draft  # noqa: E402")
    assert late > source.index("pytest.skip(")
    other = files[f"{FOLDER}/test_draft_other_local_argmax.py"].decode()
    assert "if not (\n    current_platform.is_cuda()\n    or current_platform.is_" in other
    assert max(map(len, other.splitlines())) <= 88


HEADS = "self.heads = nn.ModuleList([ParallelLMHead(config.vocab_size, 8) for _ in range(3)])"
NORMS = "self.norms = nn.ModuleDict({str(i): RMSNorm(config.hidden_size) for i in range(3)})"
LAYERS = "self.layers = nn.ModuleDict({'a': Layer(config), 'b': Layer(config)})"
LAYER = """
class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm = RMSNorm(config.hidden_size)
        self.head = ParallelLMHead(config.vocab_size, config.hidden_size)
"""


def test_a_container_may_hold_the_heads_themselves() -> None:
    body = """
    def compute_logits(self, hidden_states, spec_step_idx: int = 0):
        return self.logits_processor(self.heads[spec_step_idx], hidden_states)
    """
    source = only(planned(tree(draft(body, init=f"{INITIAL}    {HEADS}\n"), STEP)))
    assert "layer = _make_head(ParallelLMHead, shard, step)\n" in source
    assert "model.heads.append(layer)" in source


def test_a_container_may_hold_the_norms_themselves() -> None:
    body = """
    def compute_logits(self, hidden_states, spec_step_idx: int = 0):
        hidden_states = self.norms[str(spec_step_idx)](hidden_states)
        return self.logits_processor(self.lm_head, hidden_states)
    """
    source = only(planned(tree(draft(body, init=f"{INITIAL}    {NORMS}\n"), STEP)))
    assert "layer = _randomized(RMSNorm(HIDDEN_SIZE), step)\n" in source
    assert "model.norms[str(step)] = layer" in source
    assert "def _randomized(" in source


def test_an_item_that_is_looked_up_for_nothing_needs_no_parts() -> None:
    body = """
    def compute_logits(self, hidden_states):
        self.layers["a"]
        return self.logits_processor(self.lm_head, hidden_states)
    """
    init = f"{INITIAL}    {LAYERS}\n"
    source = only(planned(tree(draft(body, init=init, before=LAYER))))
    assert "layer = _bare(Layer)\n" in source


def test_two_classes_of_one_name_have_two_names() -> None:
    body = """
    def compute_logits(self, hidden_states):
        return self.logits_processor(self.inner.head, self.inner.norm(hidden_states))
    """
    init = f"{INITIAL}    self.inner = Inner(config)\n"
    given = {
        INIT: draft(body, init=init, before="from vllm.models.other import Draft as Inner"),
        "vllm/models/other.py": IMPORTS + LAYER.replace("class Layer", "class Draft"),
    }
    source = only(planned(tree(given)))
    assert "from vllm.models.draft import Draft\n" in source
    assert "from vllm.models.other import Draft as OtherDraft\n" in source
    assert "model = _bare(Draft)\n" in source
    assert "model.inner = _bare(OtherDraft)\n" in source


def test_a_bias_of_the_head_has_values() -> None:
    body = """
    def compute_logits(self, hidden_states):
        return self.logits_processor(self.lm_head, hidden_states, self.lm_head.bias)
    """
    init = INITIAL.replace("config.hidden_size)", "config.hidden_size, bias=True)", 1)
    source = only(planned(tree(draft(body, init=init))))
    assert "_make_head(ParallelLMHead, shard, 0, bias=True)" in source
    assert "head.weight_loader(head.bias, " in source
    assert "head.bias" not in only(planned(tree(draft(FLAT, init=INITIAL))))


UNBUILT = {
    "a container that is not known": (
        """
        def compute_logits(self, hidden_states):
            return self.logits_processor(self.heads[0], hidden_states)
        """,
        "self.heads = make_heads()",
        "what kind of container heads is, is not known",
    ),
    "items under two keys": (
        """
        def compute_logits(self, hidden_states):
            hidden_states = self.layers["a"].norm(hidden_states)
            return self.logits_processor(self.layers["b"].head, hidden_states)
        """,
        LAYERS,
        'a test has no item "b" of a torch.nn.ModuleDict',
    ),
    "an item behind the last step": (
        """
        def compute_logits(self, hidden_states):
            return self.logits_processor(self.heads[4], hidden_states)
        """,
        HEADS.replace("range(3)", "range(5)"),
        "a test has no item 4 of a torch.nn.ModuleList",
    ),
    "an item with arguments that nothing tells": (
        """
        def compute_logits(self, hidden_states):
            return self.logits_processor(self.lm_head, self.norms["0"](hidden_states))
        """,
        NORMS.replace("config.hidden_size", "config.something"),
        "nothing says how norms['0'] is built",
    ),
    "a class inside a class": (
        """
        def compute_logits(self, hidden_states):
            return self.logits_processor(self.lm_head, self.inner.norm(hidden_states))
        """,
        "self.inner = Outer.Layer(config)",
        "vllm.models.draft.Outer.Layer cannot be imported by its name",
    ),
    "a value that nothing tells": (
        """
        def compute_logits(self, hidden_states):
            return self.logits_processor(self.lm_head, hidden_states * self.factor)
        """,
        "self.factor = config.something",
        "nothing says what factor is",
    ),
}


@pytest.mark.parametrize("case", UNBUILT)
def test_what_cannot_be_built_alone_is_said_with_the_reason(case: str) -> None:
    body, line, reason = UNBUILT[case]
    before = f"{LAYER}\nclass Outer:\n{indent(LAYER, '    ')}"
    plan = planned(tree(draft(body, init=f"{INITIAL}    {line}\n", before=before)))
    assert plan.families, "the patch itself does not depend on a test"
    assert not files_of(plan.trials)
    assert untested(plan) == [f"no test for vllm.models.draft.Draft: {reason}"]


def test_two_classes_of_a_module_have_two_files() -> None:
    one = draft(FLAT, init=INITIAL)
    other = one.replace(IMPORTS.strip(), "").replace("class Draft(", "class OtherDraft(")
    from trees.minivllm import REGISTRY, registry

    rows = {"DraftModel": ("draft", "Draft"), "OtherModel": ("draft", "OtherDraft")}
    entries = {name: ("vllm.models.draft", cls) for name, (_, cls) in rows.items()}
    plan = planned(tree({INIT: f"{one}\n{other}", REGISTRY: registry(entries)}, engine()))
    assert set(files_of(plan.trials)) == {
        f"{FOLDER}/test_draft_local_argmax.py",
        f"{FOLDER}/test_draft_other_draft_local_argmax.py",
    }


def test_no_two_classes_share_a_file() -> None:
    from codemods.harness.files import named

    (trial,) = planned(tree(draft(FLAT, init=INITIAL))).trials
    classes = ("vllm.models.draft.A", "vllm.models.draft.Draft",
               "vllm.model_executor.models.draft.Draft")  # fmt: skip
    found = named([structs.replace(trial, cls=cls) for cls in classes])
    assert [one.cls for one in found.values()] == list(classes)


def test_apply_with_tests_adds_them_as_new_files(tmp_path: Path) -> None:
    from codemods.diff import file_diff

    plan = planned(tree(draft(FLAT, init=INITIAL)))
    ((path, content),) = files_of(plan.trials).items()
    diff = file_diff(path, None, content)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "--check", "-"], input=diff, cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "-"], input=diff, cwd=tmp_path, check=True)
    assert (tmp_path / path).read_bytes() == content
