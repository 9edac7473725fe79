"""What is told beside the head path: premises of the equality, norms, one-sided checks."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import pytest
from trees.heads import IMPORTS, LAYERS
from trees.minivllm import GUARD, INIT, coverage

from auditor.api import Request
from auditor.coverage import Coverage, Head
from auditor.reports import explain, shape
from auditor.ruleset.findings import finding_rules

PROCESSOR = {
    "vllm/model_executor/layers/logits_processor.py": """
        import torch.nn as nn

        class LogitsProcessor(nn.Module):
            def __init__(self, vocab_size, org_vocab_size=None, scale=1.0, soft_cap=None):
                self.scale = scale
                self.soft_cap = soft_cap

            def forward(self, lm_head, hidden_states, embedding_bias=None):
                return lm_head(hidden_states) * self.scale * self.soft_cap

            def get_top_tokens(self, lm_head, hidden_states, embedding_bias=None):
                if self.scale <= 0.0:
                    raise ValueError("a factor that is not positive")
                return (lm_head(hidden_states) * self.soft_cap).argmax(-1)
        """,
    "vllm/model_executor/layers/vocab_parallel_embedding.py": """
        import torch.nn as nn

        class VocabParallelEmbedding(nn.Module):
            def __init__(self, num_embeddings, embedding_dim, org_num_embeddings=None):
                pass

        class ParallelLMHead(VocabParallelEmbedding):
            pass
        """,
}
FLAT = "return self.logits_processor(self.lm_head, hidden_states)"
TOP = "return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)"
INNER = """
class Model(nn.Module):
    def __init__(self, cfg):
        self.norm = RMSNorm(8)
        self.lm_head = ParallelLMHead(cfg.vocab_size, 8)

    def forward(self, hidden_states):
        residual = hidden_states
        for layer in self.layers:
            hidden_states, residual = layer(hidden_states, residual)
        {returned}
"""


def _document(
    *,
    head: str = "ParallelLMHead(config.vocab_size, 8)",
    processor: str = "LogitsProcessor(config.vocab_size)",
    init: str = "",
    logits: str = FLAT,
    tokens: str | None = TOP,
    returned: str = "return hidden_states",
    engine: str = "",
    inner: str = INNER,
    norm: str = "self.norm = RMSNorm(8)",
) -> Coverage:
    methods = {"compute_logits": logits, "get_top_tokens": tokens}
    lines = [
        "def __init__(self, config):",
        "    size = config.vocab_size",
        f"    {norm}",
        "    self.model = Model(config)",
        f"    self.lm_head = {head}",
        f"    self.logits_processor = {processor}",
        *([f"    {init}"] if init else []),
        "def forward(self, hidden_states):",
        "    return self.model(hidden_states)",
    ]
    for name, body in methods.items():
        if body is not None:
            lines += [f"def {name}(self, hidden_states):", indent(dedent(body), "    ")]
    text = indent("\n".join(lines), "    ")
    inner = inner.format(returned=returned)
    files = {
        **LAYERS,
        **PROCESSOR,
        INIT: f"{IMPORTS}\n{inner}\nclass Draft(nn.Module):\n{text}\n",
        **({GUARD: engine} if engine else {}),
    }
    return coverage(files, Request(platforms=("rocm",)))


def _head(**given: Any) -> Head:
    (found,) = _document(**given).heads
    return found


def _messages(code: str, **given: Any) -> list[str]:
    """The messages of the findings of one code."""
    return [one.message for one in _document(**given).findings if one.code == code]


def _premises(head: Head, name: str) -> list[tuple[str, str]]:
    return [(premise.state, premise.text) for premise in head.conditions if premise.name == name]


@pytest.mark.parametrize(
    ("head", "processor", "state"),
    [
        ("ParallelLMHead(config.vocab_size, 8)", "LogitsProcessor(config.vocab_size)", "proven"),
        ("ParallelLMHead(size, 8)", "LogitsProcessor(vocab_size=config.vocab_size)", "proven"),
        ("ParallelLMHead(config.draft, 8)", "LogitsProcessor(config.vocab_size)", "assumed"),
        ("ParallelLMHead(32, 8)", "LogitsProcessor(32)", "proven"),
        ("ParallelLMHead(32, 8)", "LogitsProcessor(64)", "violated"),
        ("ParallelLMHead(64, 8, 32)", "LogitsProcessor(64, 32)", "proven"),
        ("make_head(config)", "LogitsProcessor(32)", "assumed"),
    ],
)
def test_the_vocabularies_of_processor_and_head_are_compared(
    head: str, processor: str, state: str
) -> None:
    found = _head(head=head, processor=processor)
    assert [one for one, _ in _premises(found, "vocabulary")] == [state]
    assert found.equivalence == ("different" if state == "violated" else "equivalent")


def test_a_size_is_traced_through_the_constructors_of_inner_models() -> None:
    inner = "return self.logits_processor(self.model.lm_head, hidden_states)"
    found = _head(logits=inner, tokens=None)
    assert _premises(found, "vocabulary") == [
        ("proven", "the logits processor and the head are built with config.vocab_size")
    ]


@pytest.mark.parametrize(
    ("given", "state"),
    [("scale=2.0", "proven"), ("scale=-1.0", "violated"), ("scale=config.scale", "assumed")],
)
def test_a_factor_must_be_positive(given: str, state: str) -> None:
    found = _head(processor=f"LogitsProcessor(config.vocab_size, {given})")
    assert [one for one, _ in _premises(found, "scale")] == [state]
    assert found.equivalence == ("different" if state == "violated" else "equivalent")


def test_a_soft_cap_is_proven_where_both_methods_of_the_processor_apply_it() -> None:
    found = _head(processor="LogitsProcessor(config.vocab_size, soft_cap=config.cap)")
    ((state, text),) = _premises(found, "soft cap")
    assert state == "proven"
    assert "config.cap" in text


REMAP = """
logits = self.logits_processor(self.lm_head, hidden_states)
full = logits.new_full((1, 64), float("-inf"))
full[:, torch.arange(32) + self.d2t] = logits
return full
"""
MAPPED = """
top = self.logits_processor.get_top_tokens(self.lm_head, hidden_states)
return top + self.d2t[top]
"""


@pytest.mark.parametrize(
    ("size", "state"), [("config.vocab_size", "proven"), ("config.other", "assumed")]
)
def test_a_table_needs_an_entry_for_each_row_of_the_head(size: str, state: str) -> None:
    table = f"self.d2t = nn.Parameter(torch.zeros({size}))"
    found = _head(init=table, logits=REMAP, tokens=MAPPED)
    assert found.equivalence == "equivalent"
    states = [one for one, text in _premises(found, "remap") if "entry for each" in text]
    assert states == [state]


def test_a_head_that_the_engine_replaces_is_named_with_the_place() -> None:
    engine = """
class Proposer:
    def load_model(self):
        self.model.lm_head = self.target.lm_head
        if not hasattr(self.model, "get_top_tokens"):
            raise ValueError("no")
"""
    found = _head(engine=engine)
    (premise,) = [one for one in found.conditions if one.name == "shared head"]
    assert (premise.state, premise.path, premise.line) == ("assumed", GUARD, 3)
    assert not [one for one in _head().conditions if one.name == "shared head"]


@pytest.mark.parametrize(
    ("returned", "logits", "returns", "norm"),
    [
        ("return self.norm(hidden_states)", FLAT, ("normed by norm",), "once"),
        ("return hidden_states + residual", FLAT, ("raw",), "never"),
        ("return self.norm(hidden_states, residual)[0]", FLAT, ("normed by norm",), "once"),
        (
            "hidden_states, _ = self.norm(hidden_states, residual)\n"
            "        return hidden_states, hidden_states",
            FLAT,
            ("normed by norm", "normed by norm"),
            "once",
        ),
        (
            "total = hidden_states + residual\n        return total, self.norm(total)",
            "return self.logits_processor(self.lm_head, self.norm(hidden_states))",
            ("raw", "normed by norm"),
            "once",
        ),
        (
            "return self.norm(hidden_states)",
            "return self.logits_processor(self.lm_head, self.norm(hidden_states))",
            ("normed by norm",),
            "double",
        ),
        ("return hidden_states", FLAT, ("unknown",), "unknown"),
    ],
)
def test_what_forward_returns_is_held_against_what_the_logits_apply(
    returned: str, logits: str, returns: tuple[str, ...], norm: str
) -> None:
    found = _head(returned=returned, logits=logits, tokens=None)
    assert (found.returns, found.norm) == (returns, norm)
    assert bool([one for one in found.remarks if one.kind == "norm"]) is (
        norm in ("double", "never")
    )


def test_a_check_of_one_method_alone_is_told_with_its_place() -> None:
    found = _head(tokens=f"assert hidden_states.shape[0] == 1\n{TOP}")
    told = {step.text: step.note for step in found.remarks if step.kind == "check"}
    assert told == {
        "assert hidden_states.shape[0] == 1": "only get_top_tokens checks this",
        "raise ValueError if self.scale <= 0.0": (
            "only LogitsProcessor.get_top_tokens checks this"
        ),
    }
    assert found.equivalence == "conditional"
    both = f"assert hidden_states.shape[0] == 1\n{FLAT}"
    same = _head(logits=both, tokens=f"assert hidden_states.shape[0] == 1\n{TOP}")
    assert same.equivalence == "equivalent"


def test_tokens_that_ignore_a_condition_by_which_logits_change_are_different() -> None:
    init = "self.banned = config.banned"
    masked = """
logits = self.logits_processor(self.lm_head, hidden_states)
if self.banned is not None:
    logits.index_fill_(1, self.banned, float("-inf"))
return logits
"""
    own = "return self.own_argmax(self.lm_head.weight, hidden_states)"
    found = _head(init=init, logits=masked, tokens=own)
    assert found.equivalence == "different"
    assert found.reason is not None
    assert "index_fill_" in found.reason
    assert "banned is not None" in found.reason


def test_the_reports_show_families_and_premises() -> None:
    files = {
        **LAYERS,
        **PROCESSOR,
        INIT: f"{IMPORTS}\n"
        "class Draft(nn.Module):\n"
        "    def __init__(self, config):\n"
        "        self.norm = RMSNorm(8)\n"
        "        self.lm_head = ParallelLMHead(32, 8)\n"
        "        self.logits_processor = LogitsProcessor(32)\n\n"
        "    def compute_logits(self, hidden_states):\n"
        "        return self.logits_processor(self.lm_head, self.norm(hidden_states))\n",
    }
    document = coverage(files, Request(platforms=("rocm", "cpu")))
    text = shape.render(document, width=100, detailed=True)
    assert "flat-pre-norm: argmax ∘ lm_head ∘ norm" in text
    assert "DraftModel" in text
    (family,) = shape.families(document)
    assert family.architectures == {"DraftModel": ("rocm", "cpu")}
    assert '"expression": "argmax ∘ lm_head ∘ norm"' in shape.render_json(document)
    told = explain.render(document, "DraftModel", width=120)
    assert "holds: the logits processor and the head are built with 32" in told
    assert "the mixin would leave it out" in told


UNUSED_ELSEWHERE = INNER.replace(
    "        for layer in self.layers:",
    "        residual = self.norm(residual)\n        for layer in ():",
)
NO_NORM = INNER.replace("        self.norm = RMSNorm(8)\n", "")
RAW = "return hidden_states + residual"
PLAIN_PROCESSOR = "vllm/model_executor/layers/logits_processor.py"
FINDINGS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    # code: what has the finding, what does not though it is close, and a part of the message
    "SD203": (
        {"tokens": f"self.prepare(*hidden_states)\n{TOP}"},
        {"tokens": f"print(hidden_states.shape)\n{TOP}"},
        "unpacked arguments",
    ),
    "SD205": (
        {"head": "ParallelLMHead(32, 8)", "processor": "LogitsProcessor(64)"},
        {"head": "ParallelLMHead(64, 8)", "processor": "LogitsProcessor(64)"},
        "with 64, the head with 32",
    ),
    "SD206": (
        {
            "returned": "return self.norm(hidden_states)",
            "logits": "return self.logits_processor(self.lm_head, self.norm(hidden_states))",
            "tokens": None,
        },
        {"returned": "return self.norm(hidden_states)", "tokens": None},
        "forward returns states normed by norm; norm norms again",
    ),
    "SD207": (
        {"returned": RAW, "tokens": None},
        {"returned": "return self.norm(hidden_states)", "tokens": None},
        "no norm between forward and the head; one is built at",
    ),
    "SD208": (
        {},
        {"tokens": "return hidden_states"},
        "only LogitsProcessor.get_top_tokens checks this",
    ),
}


@pytest.mark.parametrize("code", FINDINGS)
def test_what_is_wrong_with_a_head_is_a_finding_of_its_code(code: str) -> None:
    wrong, right, told = FINDINGS[code]
    (message,) = _messages(code, **wrong)
    assert told in message
    assert not _messages(code, **right)
    assert code in {rule.code for rule in finding_rules()}


def test_a_draft_that_builds_no_norm_of_its_own_is_trained_without() -> None:
    """A raw state is wrong only where a norm stands ready for it."""
    bare: dict[str, Any] = {"returned": RAW, "tokens": None}
    document = _document(**bare, inner=NO_NORM, norm="self.final = None")
    assert document.heads[0].norm == "never"
    assert not [one for one in document.findings if one.code == "SD207"]
    used = _document(**bare, inner=UNUSED_ELSEWHERE, norm="self.final = None")
    assert used.heads[0].norm == "never"
    assert not [one for one in used.findings if one.code == "SD207"]
    (rule,) = [rule for rule in finding_rules() if rule.code == "SD207"]
    assert rule.severity == "warning"
