"""Each shape's own snippets: those that have it, and those that do not."""

from __future__ import annotations

import pytest
from trees.heads import IMPORTS, LAYERS
from trees.minivllm import INIT, coverage, row_of

from auditor.api import Request
from auditor.coverage import Row
from auditor.ruleset.shapes import ShapeRule, shapes

VALID = [(rule, source) for rule in shapes() for source in rule.valid]
INVALID = [(rule, source) for rule in shapes() for source in rule.invalid]


def _row(source: str) -> Row:
    files = {**LAYERS, INIT: f"{IMPORTS}\n{source}"}
    return row_of(coverage(files, Request(platforms=("rocm",))), "rocm")


def _name(value: object) -> str:
    return value.name if isinstance(value, ShapeRule) else "source"


@pytest.mark.parametrize(("rule", "source"), VALID, ids=_name)
def test_a_valid_snippet_has_the_shape(rule: ShapeRule, source: str) -> None:
    assert _row(source).shape == rule.name


@pytest.mark.parametrize(("rule", "source"), INVALID, ids=_name)
def test_an_invalid_snippet_has_another_shape(rule: ShapeRule, source: str) -> None:
    assert _row(source).shape not in (rule.name, None)


def test_every_shape_has_snippets_of_both_kinds_and_its_file_bears_its_name() -> None:
    assert all(rule.valid and rule.invalid for rule in shapes())
    assert len({rule.order for rule in shapes()}) == len(shapes())


def test_a_head_that_no_rule_describes_is_unnamed_and_still_has_its_term() -> None:
    source = """
class Draft(nn.Module):
    def __init__(self):
        self.lm_head = ParallelLMHead(8, 8)
        self.logits_processor = LogitsProcessor(8)
        self.mixer = nn.Linear(8, 8)

    def compute_logits(self, hidden_states):
        return self.logits_processor(self.lm_head, self.mixer(hidden_states))
"""
    files = {**LAYERS, INIT: f"{IMPORTS}\n{source}"}
    document = coverage(files, Request(platforms=("rocm",)))
    assert row_of(document, "rocm").shape == "unnamed"
    (head,) = document.heads
    assert head.logits is not None
    assert head.logits.brief == "lm_head ∘ mixer"
