"""Where upstream gave a class the method: is it what the codemod gives the release before?

Each case is a class that has no ``get_top_tokens`` in one release and has it in the next. The
codemod patches the earlier one; both methods are then compared as terms. Where they differ, the
test says in a sentence why, and checks the sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import pytest

from auditor.api import Request, Resources
from auditor.api import audit as audited
from auditor.coverage import Head, Row, Way
from auditor.sources.tree import Source
from codemods.overlay import overlaid
from codemods.planning import plan
from codemods.plans import Derivation, Plan, Refusal

pytestmark = [pytest.mark.network, pytest.mark.slow]

Open = Callable[[str], Source]

MODELS = "vllm/model_executor/models"
REGISTRY = f"{MODELS}/registry.py"
LLAMA4 = f"{MODELS}/llama4_eagle.py"
PROCESSOR = "vllm/model_executor/layers/logits_processor.py"
INTERFACES = f"{MODELS}/interfaces.py"
MIXIN = "vllm.model_executor.models.interfaces.LocalArgmaxMixin"
TABLE = "draft_id_to_target_id"

#: The files to which 0.24.0 added the mixin that it introduced.
MIXED_IN = tuple(
    f"{MODELS}/{name}.py" for name in ("llama", "qwen3", "deepseek_eagle3", "qwen3_5_mtp")
)


@dataclass(frozen=True)
class Case:
    """A class that got the method between two releases.

    Attributes:
        before, after: the trees, by their names in :func:`_tree`.
        architecture: what the registry calls it.
        cls: the class that loads.
        platform: one on which it loads.
        action: what the codemod does.
        owner: the class that upstream gave the method.
    """

    before: str
    after: str
    architecture: str
    cls: str
    platform: str
    action: str
    owner: str


LLAMA = "vllm.model_executor.models.llama_eagle.EagleLlamaForCausalLM"
QWEN = "vllm.model_executor.models.qwen3_5_mtp.Qwen3_5MTP"
V32 = "vllm.models.deepseek_v32.nvidia.mtp.DeepseekV32MTP"
V4 = "vllm.models.deepseek_v4.amd.mtp.DeepSeekV4MTP"
WITH_FILES = "0.24.0 with the files of 0.23.0"

#: Both say the same in the same form: a pair of methods, or the mixin where the tree has it.
SAME_FORM = (
    # No table of these releases has the class yet: it takes the row of its older implementation.
    Case("0.27.1 with a row", "0.28.0 with a row", "DeepSeekMTPModel", V32, "cuda", "pair", V32),
    Case("0.30.0", "0.31.0", "DeepSeekV4MTPModel", V4, "rocm", "pair", V4),
    Case(WITH_FILES, "0.24.0", "EagleLlamaForCausalLM", LLAMA, "cuda", "mixin", MIXIN),
    Case(WITH_FILES, "0.24.0", "Qwen3_5MTP", QWEN, "cuda", "mixin", MIXIN),
)
#: Upstream wrote the mixin in the same release; the release before has none, so that the codemod
#: writes a method with the same term.
METHOD_FOR_MIXIN = (
    Case("0.23.0", "0.24.0", "EagleLlamaForCausalLM", LLAMA, "cuda", "method", MIXIN),
    Case("0.23.0", "0.24.0", "Qwen3_5MTP", QWEN, "cuda", "method", MIXIN),
)
#: Drafts with a vocabulary of their own, which the method must map to that of the target.
REMAPPED = {
    "LlamaForCausalLMEagle3": "vllm.model_executor.models.llama_eagle3.Eagle3LlamaForCausalLM",
    "DFlashDraftModel": "vllm.model_executor.models.qwen3_dflash.DFlashQwen3ForCausalLM",
    "Eagle3DeepseekV2ForCausalLM": (
        "vllm.model_executor.models.deepseek_eagle3.Eagle3DeepseekV2ForCausalLM"
    ),
}


def _tree(release: Open, name: str) -> Source:
    """A release, or one with some files changed."""
    version, _, with_what = name.partition(" with ")
    source = release(version)
    if with_what == "a row":
        return overlaid(source, {REGISTRY: _with_row(source.tree.read(REGISTRY))})
    if with_what:
        older = release(with_what.rpartition(" ")[2]).tree
        files = {"0.17.0": (LLAMA4,), "0.24.0": MIXED_IN}[version]
        return overlaid(source, {path: older.read(path) for path in files})
    return source


def _with_row(registry: bytes) -> bytes:
    row = b'"DeepSeekMTPModel": ("deepseek_mtp", "DeepSeekMTP")'
    assert registry.count(row) == 1
    return registry.replace(
        row, b'"DeepSeekMTPModel": ("vllm.models.deepseek_v32", "DeepseekV32MTP")'
    )


ASKED: Mapping[str, tuple[str, ...]] = {
    "0.16.0": ("EagleLlama4ForCausalLM",),
    "0.17.0 with the file of 0.16.0": ("EagleLlama4ForCausalLM",),
    "0.23.0": ("EagleLlamaForCausalLM", "Qwen3_5MTP", *REMAPPED),
    WITH_FILES: ("EagleLlamaForCausalLM", "Qwen3_5MTP", *REMAPPED),
    "0.27.1 with a row": ("DeepSeekMTPModel",),
    "0.30.0": ("DeepSeekV4MTPModel",),
}


@cache
def _planned(release: Open, name: str) -> Plan:
    request = Request(architectures=ASKED[name])
    return plan(_tree(release, name), request, Resources())


def _outcome(done: Plan, architecture: str, platform: str) -> Derivation | Refusal:
    (item,) = [
        item
        for item in done.items
        if item.architecture == architecture and platform in item.platforms
    ]
    return item.outcome


def _patched(release: Open, name: str) -> Source:
    done = _planned(release, name)
    changed = {path: data for family in done.families for path, data in family.after.items()}
    return overlaid(_tree(release, name), changed)


def _read(source: Source, architecture: str, platform: str) -> tuple[Row, Head]:
    """The row of an architecture, and what is known of its class."""
    request = Request(platforms=(platform,), architectures=(architecture,))
    coverage = audited(source, request, Resources())
    (row,) = coverage.rows
    (head,) = [one for one in coverage.heads if one.class_ == f"{row.module}.{row.class_}"]
    return row, head


def _ways(head: Head) -> set[Way]:
    """The ways through the method as terms: without the places where they are written."""
    assert head.tokens is not None
    return {
        Way(way.guards, way.processor, way.head, way.hidden, way.bias, way.post, way.result)
        for way in head.tokens.ways
    }


def _checked(release: Open, case: Case) -> None:
    """The codemod's method and upstream's have the same term, and both are proven."""
    done = _planned(release, case.before)
    outcome = _outcome(done, case.architecture, case.platform)
    assert isinstance(outcome, Derivation)
    assert outcome.action == case.action
    ours, our_head = _read(_patched(release, case.before), case.architecture, case.platform)
    theirs, their_head = _read(_tree(release, case.after), case.architecture, case.platform)
    assert our_head.class_ == their_head.class_ == case.cls
    assert (ours.verdict, theirs.verdict) == ("yes", "yes")
    assert theirs.owner == case.owner
    assert _ways(our_head) == _ways(their_head)


@pytest.mark.parametrize("case", SAME_FORM, ids=lambda case: f"{case.after} {case.architecture}")
def test_the_method_is_what_upstream_wrote(release: Open, case: Case) -> None:
    _checked(release, case)


@pytest.mark.parametrize(
    "case", METHOD_FOR_MIXIN, ids=lambda case: f"{case.after} {case.architecture}"
)
def test_without_the_mixin_a_method_has_the_same_term(release: Open, case: Case) -> None:
    assert MIXIN.rpartition(".")[2].encode() not in release(case.before).tree.read(INTERFACES)
    _checked(release, case)


@pytest.mark.parametrize("architecture", REMAPPED)
def test_a_draft_vocabulary_is_refused_where_no_mixin_maps_it(
    release: Open, architecture: str
) -> None:
    """Upstream wrote the mixin for these: the method needs the table that follows the head."""
    assert MIXIN.rpartition(".")[2].encode() not in release("0.23.0").tree.read(INTERFACES)
    outcome = _outcome(_planned(release, "0.23.0"), architecture, "cuda")
    assert isinstance(outcome, Refusal)
    assert outcome.code == "post-processing"
    assert outcome.reason.startswith(f"remap: {TABLE}")
    row, head = _read(release("0.24.0"), architecture, "cuda")
    assert (head.class_, row.verdict, row.owner) == (REMAPPED[architecture], "yes", MIXIN)
    assert f"remap: {TABLE}" in {post for way in _ways(head) for post in way.post}


SHARED = (
    "PEagleDraftModel has the same class, of which it is not known what calls it, so that no patch "
    "of the class is proven for every architecture"
)


def _refused_too_often(architecture: str, reason: str) -> object:
    return pytest.param(
        architecture, marks=pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason)
    )


@pytest.mark.parametrize(
    "architecture",
    [
        _refused_too_often("LlamaForCausalLMEagle3", SHARED),
        "DFlashDraftModel",
        "Eagle3DeepseekV2ForCausalLM",
    ],
)
def test_a_draft_vocabulary_is_mapped_by_the_mixin_where_there_is_one(
    release: Open, architecture: str
) -> None:
    cls = REMAPPED[architecture]
    _checked(release, Case(WITH_FILES, "0.24.0", architecture, cls, "cuda", "mixin", MIXIN))


def test_upstreams_own_method_is_not_proven_where_the_caller_is_not_known(release: Open) -> None:
    row, _ = _read(release("0.24.0"), "PEagleDraftModel", "cuda")
    assert (row.verdict, f"{row.module}.{row.class_}") == (
        "yes?",
        REMAPPED["LlamaForCausalLMEagle3"],
    )
    assert row.reason is not None
    assert row.reason.startswith("it is not known what calls it")


# ---- the first of all ---------------------------------------------------------------------------


def test_before_there_was_a_caller_nothing_is_done(release: Open) -> None:
    """Upstream added the method of the processor, its caller and the first draft at once."""
    assert b"def get_top_tokens" not in release("0.16.0").tree.read(PROCESSOR)
    assert b"def get_top_tokens" in release("0.17.0").tree.read(PROCESSOR)
    outcome = _outcome(_planned(release, "0.16.0"), "EagleLlama4ForCausalLM", "cuda")
    assert isinstance(outcome, Refusal)
    assert outcome.code == "never-called"


def test_upstreams_first_method_also_asks_for_a_table_that_the_class_never_has(
    release: Open,
) -> None:
    """With its caller, the draft gets the same method but for that question.

    Upstream falls back on all logits where there is a table; no file of the class sets one, and
    with one ``compute_logits`` would not map either.
    """
    done = _planned(release, "0.17.0 with the file of 0.16.0")
    architecture = "EagleLlama4ForCausalLM"
    outcome = _outcome(done, architecture, "cuda")
    assert isinstance(outcome, Derivation)
    ours, our_head = _read(
        _patched(release, "0.17.0 with the file of 0.16.0"), architecture, "cuda"
    )
    theirs, their_head = _read(release("0.17.0"), architecture, "cuda")
    assert (outcome.action, ours.verdict, theirs.verdict) == ("method", "yes", "yes?")
    (way,) = _ways(our_head)
    others = _ways(their_head)
    with_table = {one for one in others if f"{TABLE} is not None" in one.guards}
    assert {(one.head, one.hidden, one.post, one.result) for one in others - with_table} == {
        (way.head, way.hidden, way.post, way.result)
    }
    (fallback,) = with_table
    assert fallback.result == "logits(lm_head, hidden_states).argmax(dim=-1)"
    for name in ("llama4_eagle", "mllama4", "llama4", "llama"):
        text = release("0.17.0").tree.read(f"{MODELS}/{name}.py")
        assert f"self.{TABLE} =".encode() not in text


# ---- the comparison itself ----------------------------------------------------------------------


def test_a_method_that_leaves_out_what_comes_before_the_head_is_another(release: Open) -> None:
    path = "vllm/models/deepseek_v4/amd/mtp.py"
    patched = _patched(release, "0.30.0")
    text = patched.tree.read(path)
    before, name, method = text.partition(b"def get_top_tokens")
    assert method.count(b"self._pre_head(mtp_layer, hidden_states)") == 1
    wrong = method.replace(b"self._pre_head(mtp_layer, hidden_states)", b"hidden_states")
    broken = overlaid(patched, {path: before + name + wrong})
    row, head = _read(broken, "DeepSeekV4MTPModel", "rocm")
    _, theirs = _read(release("0.31.0"), "DeepSeekV4MTPModel", "rocm")
    assert row.verdict == "unsafe"
    assert _ways(head) != _ways(theirs)
