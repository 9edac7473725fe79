"""Source of a draft model in, cell and head record out."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
from trees.heads import HEAD, LAYERS
from trees.minivllm import INIT, coverage, row_of

from auditor.api import Request
from auditor.coverage import Coverage, Row, from_json, to_json
from auditor.reports import explain

FLAT = "return self.logits_processor(self.lm_head, hidden_states)"
TOP = "return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)"
NORMED = "return self.logits_processor(self.lm_head, self.norm(hidden_states))"


def _audited(logits: str | None, tokens: str | None) -> Coverage:
    methods = {"compute_logits": logits, "get_top_tokens": tokens}
    bodies = [
        f"def {name}(self, hidden_states):\n{indent(dedent(body), '    ')}\n"
        for name, body in methods.items()
        if body is not None
    ]
    init = """
    def __init__(self):
        self.lm_head = nn.Linear(8, 8)
        self.logits_processor = LogitsProcessor(8)
        self.norm = RMSNorm(8)
    """
    body = indent(f"{dedent(init)}\n{''.join(bodies)}", "    ")
    draft = f"{HEAD}\nclass Draft(nn.Module):\n{body}"
    return coverage({**LAYERS, INIT: draft}, Request(platforms=("rocm", "cuda")))


def _row(logits: str | None, tokens: str | None) -> Row:
    return row_of(_audited(logits, tokens), "rocm")


@pytest.mark.parametrize(
    ("logits", "tokens", "verdict", "equivalence", "reason"),
    [
        (FLAT, TOP, "yes", "equivalent", None),
        (
            NORMED,
            TOP,
            "unsafe",
            "different",
            "the hidden states differ: norm(hidden_states) against hidden_states",
        ),
        (
            f"{FLAT} * self.factor",
            TOP,
            "yes?",
            "conditional",
            "as long as self.factor is positive",
        ),
        (
            "return self.lm_head(hidden_states)",
            TOP,
            "yes?",
            "unproven",
            "compute_logits does not go through the logits processor",
        ),
        (None, TOP, "yes?", None, "the class has no method to compare it with"),
        (FLAT, None, "no", None, None),
        (None, None, "n/a", None, "no compute_logits"),
    ],
)
def test_a_cell_says_yes_only_where_the_methods_are_proven_equal(
    logits: str | None,
    tokens: str | None,
    verdict: str,
    equivalence: str | None,
    reason: str | None,
) -> None:
    row = _row(logits, tokens)
    assert (row.verdict, row.equivalence, row.hasattr) == (verdict, equivalence, tokens is not None)
    assert row.reason == (reason.replace("self.", "") if reason else None)


def _equivalence(source: str) -> str | None:
    draft = f"{HEAD}\n{dedent(source)}"
    files = {**LAYERS, INIT: draft}
    return row_of(coverage(files, Request(platforms=("rocm",))), "rocm").equivalence


DRAFT = """
class Own(LogitsProcessor):
    {own}

class Draft(nn.Module):
    def __init__(self):
        self.lm_head = nn.Linear(8, 8)
        self.logits_processor = {processor}(8)

    def compute_logits(self, hidden_states):
        return self.logits_processor(self.lm_head, hidden_states{more})

    def get_top_tokens(self, {first}):
        return self.logits_processor.get_top_tokens(self.lm_head, {first})
"""


@pytest.mark.parametrize(
    ("changed", "equivalence"),
    [
        ({}, "equivalent"),
        ({"first": "h"}, "equivalent"),
        ({"processor": "Own"}, "equivalent"),
        ({"processor": "Own", "own": "def forward(self, head, h): return -head(h)"}, "unproven"),
        ({"more": ", skip_gather=True"}, "unproven"),
        ({"more": ", None, True"}, "unproven"),
    ],
)
def test_only_a_plain_call_of_the_known_processor_counts(
    changed: dict[str, str], equivalence: str
) -> None:
    plain = {"own": "pass", "processor": "LogitsProcessor", "more": "", "first": "hidden_states"}
    assert _equivalence(DRAFT.format(**{**plain, **changed})) == equivalence


def test_a_class_that_is_the_same_on_two_platforms_has_one_record() -> None:
    document = _audited(NORMED, TOP)
    (head,) = document.heads
    assert head.platforms == ("cuda", "rocm")
    assert head.logits is not None
    assert head.logits.brief == "lm_head ∘ norm"
    assert head.terms == (
        "logits(lm_head, norm(hidden_states))",
        "top_tokens(lm_head, hidden_states)",
    )
    assert from_json(to_json(document)) == document


def test_explain_shows_both_paths_and_the_terms_side_by_side() -> None:
    text = explain.render(_audited(NORMED, TOP), "DraftModel", width=120)
    for line in (
        "compute_logits = lm_head ∘ norm",
        "get_top_tokens = argmax ∘ lm_head",
        "different: the hidden states differ: norm(hidden_states) against hidden_states",
        "compute_logits: logits(lm_head, norm(hidden_states))",
        "get_top_tokens: top_tokens(lm_head, hidden_states)",
    ):
        assert line in text


def test_what_could_not_be_followed_is_named_with_its_place() -> None:
    loop = f"while self.more:\n    hidden_states = self.norm(hidden_states)\n{FLAT}"
    document = _audited(loop, TOP)
    row = row_of(document, "rocm")
    assert (row.verdict, row.equivalence) == ("yes?", "unproven")
    assert row.reason is not None
    assert "while" in row.reason
    (head,) = document.heads
    assert head.logits is not None
    (unknown,) = {step for way in head.logits.ways for step in way.unknown}
    assert unknown.path == INIT
    assert unknown.text == "while self.more:"


@pytest.mark.parametrize(
    ("logits", "tokens"),
    [
        (FLAT, f"{TOP} * 2"),
        (FLAT, f"{TOP}[:, :1]"),
        (f"{FLAT}[:, :4]", TOP),
        (f"{FLAT}[1:, :4]", TOP),
        (FLAT, f"for _ in range(1):\n    self.swap()\n{TOP}"),
        (FLAT, f"[self.swap() for _ in range(1)]\n{TOP}"),
        (FLAT, f"with self.swap():\n    {TOP}"),
        (FLAT, f"yield 1\n{TOP}"),
        (f"if self.training or None:\n    {NORMED}\n{FLAT}", TOP),
    ],
)
def test_what_is_not_sure_is_not_yes(logits: str, tokens: str) -> None:
    assert _row(logits, tokens).verdict in ("yes?", "unsafe")
