"""Source of a draft model in, head path and equivalence out."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
from trees.heads import HEAD, LAYERS, STEP
from trees.minivllm import source

from auditor.api import Request
from auditor.headpath.attributes import Attributes
from auditor.headpath.bodies import SourceBodies, Syntax
from auditor.headpath.equivalence import Equivalence, compare
from auditor.headpath.path import HeadPath, head_path
from auditor.headpath.symbolic import Symbolic
from auditor.headpath.terms import show
from auditor.imports import ImportRun
from auditor.job import Job
from auditor.program import Files
from auditor.ruleset.heads import head_rule
from auditor.values import ClassValue


def _symbolic(body: str) -> Symbolic:
    """A draft class with this body, after an ``__init__`` that makes what models have."""
    init = """
    def __init__(self):
        self.lm_head = nn.Linear(8, 8)
        self.logits_processor = LogitsProcessor(8)
        self.model = Predictor()
        self.norm = RMSNorm(8)
        self.same = nn.Identity()
        self.d2t = nn.Parameter(torch.zeros(8))
        self.never = None
    """
    inner = indent(f"{dedent(init)}\n{dedent(body)}", "    ")
    draft = f"{HEAD}\nclass Draft(nn.Module):\n{inner}"
    tree = source({**LAYERS, "vllm/models/draft/__init__.py": draft})
    job = Job(tree, Request(), Files(tree.tree))
    run = ImportRun(job.program, next(iter(job.platforms)), job.conventions)
    value, doubts = run.get(run.load("vllm.models.draft"), "Draft", [])
    assert isinstance(value, ClassValue)
    assert not list(doubts)
    return Symbolic(value, SourceBodies(run, Syntax(job.files)), head_rule())


def _path(body: str, method: str = "compute_logits") -> HeadPath:
    return head_path(method, _symbolic(body).run(method))


def _compared(logits: str, tokens: str) -> Equivalence:
    texts = []
    for name, body in (("compute_logits", logits), ("get_top_tokens", tokens)):
        inner = indent(dedent(body), "    ")
        texts.append(f"def {name}(self, hidden_states, spec_step_idx=0):\n{inner}\n")
    symbolic = _symbolic("".join(texts))
    names = ("compute_logits", "get_top_tokens")
    return compare(*(head_path(name, symbolic.run(name)) for name in names))


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("return self.logits_processor(self.lm_head, hidden_states)", "lm_head ∘ hidden_states"),
        (
            "return self.logits_processor(self.lm_head, self.norm(hidden_states))",
            "lm_head ∘ norm(hidden_states)",
        ),
        (
            "return self.logits_processor(self.lm_head, self.same(hidden_states))",
            "lm_head ∘ hidden_states",
        ),
        (
            "return self.model.compute_logits(hidden_states, spec_step_idx)",
            f"{STEP}.head ∘ {STEP}.norm(hidden_states)",
        ),
        (
            "return self.model.passed(hidden_states, self.lm_head, spec_step_idx)",
            "lm_head ∘ hidden_states",
        ),
        (
            "return self.model.passed(hidden_states, lm_head=self.lm_head)",
            "lm_head ∘ hidden_states",
        ),
        (
            "self.model.spec_step_idx = spec_step_idx\nreturn self.model.stateful(hidden_states)",
            f"{STEP}.head ∘ {STEP}.norm(hidden_states)",
        ),
        (
            "logits = self.logits_processor(self.lm_head, hidden_states)\nreturn logits * 0.5",
            "scale[0.5] ∘ lm_head ∘ hidden_states",
        ),
        (
            "logits = self.logits_processor(self.lm_head, hidden_states)\n"
            "logits.index_fill_(1, self.d2t, 0.0)\nreturn logits",
            "mask[index_fill_(1, d2t, 0.0)] ∘ lm_head ∘ hidden_states",
        ),
        (
            "if self.never is None:\n    hidden_states = self.norm(hidden_states)\n"
            "return self.logits_processor(self.lm_head, hidden_states)",
            "lm_head ∘ norm(hidden_states)",
        ),
        (
            "if self.flag:\n    hidden_states = self.norm(hidden_states)\n"
            "return self.logits_processor(self.lm_head, hidden_states)",
            "lm_head ∘ norm(hidden_states) if flag | lm_head ∘ hidden_states if not flag",
        ),
        (
            "while spec_step_idx:\n    hidden_states = self.norm(hidden_states)\n"
            "return self.logits_processor(self.lm_head, hidden_states)",
            "<unknown: a while loop is not followed>",
        ),
    ],
)
def test_a_method_is_read_as_the_path_that_it_takes(body: str, path: str) -> None:
    text = f"def compute_logits(self, hidden_states, spec_step_idx=0):\n{indent(body, '    ')}"
    assert _path(text).show() == path


STATES = "hidden_states"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"{STATES} = {STATES} + {STATES}\n" * 60, "too large to be written out"),
        (
            "".join(f"if self.a{n}:\n    {STATES} = self.norm({STATES})\n" for n in range(30)),
            "forks into more than",
        ),
        (f"x = self{'.a' * 150}\n", "not a plain method that can be followed"),
        (f"x = {'-' * 150}1\n", "not a plain method that can be followed"),
        (f"{STATES} = self.compute_logits({STATES})\n", "nested too deeply"),
    ],
)
def test_what_would_take_for_ever_is_given_up_with_a_reason(body: str, reason: str) -> None:
    inner = indent(f"{body}return self.logits_processor(self.lm_head, {STATES})", "    ")
    found, *_ = _path(f"def compute_logits(self, {STATES}):\n{inner}").branches
    assert reason in found.unknown[0].reason


FLAT = "return self.logits_processor(self.lm_head, self.norm(hidden_states))"
STEPPED = "return self.model.compute_logits(hidden_states, spec_step_idx)"
REMAPPED = """
logits = self.logits_processor(self.lm_head, hidden_states)
targets = torch.arange(8) + self.d2t
out = logits.new_full((1, 8), float("-inf"))
out[:, targets] = logits
return out
"""


@pytest.mark.parametrize(
    ("logits", "tokens", "answer"),
    [
        (
            FLAT,
            "return self.logits_processor.get_top_tokens(self.lm_head, self.norm(hidden_states))",
            "equivalent",
        ),
        (
            FLAT,
            "return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)",
            "different",
        ),
        (
            FLAT,
            "hidden = self.norm(hidden_states)\n"
            "return self.logits_processor.get_top_tokens(self.model.head, hidden)",
            "different",
        ),
        (
            STEPPED,
            "layer = self.model.layer(spec_step_idx)\n"
            "return self.model.logits_processor.get_top_tokens(\n"
            "    layer.shared_head.head, layer.shared_head(hidden_states))",
            "equivalent",
        ),
        (
            STEPPED,
            "layer = self.model.layer(0)\n"
            "return self.model.logits_processor.get_top_tokens(\n"
            "    layer.shared_head.head, layer.shared_head(hidden_states))",
            "different",
        ),
        (
            REMAPPED,
            "top = self.logits_processor.get_top_tokens(self.lm_head, hidden_states)\n"
            "return top + self.d2t[top]",
            "equivalent",
        ),
        (
            REMAPPED,
            "return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)",
            "different",
        ),
        (
            f"{FLAT} * self.scale",
            "return self.logits_processor.get_top_tokens(self.lm_head, self.norm(hidden_states))",
            "conditional",
        ),
        (
            "for _ in range(2):\n    hidden_states = self.norm(hidden_states)\n" + FLAT,
            "return self.logits_processor.get_top_tokens(self.lm_head, self.norm(hidden_states))",
            "unproven",
        ),
    ],
)
def test_two_methods_agree_exactly_when_their_terms_do(
    logits: str, tokens: str, answer: str
) -> None:
    assert _compared(logits, tokens).answer == answer


def test_an_expression_is_evaluated_anew_where_an_attribute_was_set_on_one_way_alone() -> None:
    path = _path(
        "def compute_logits(self, hidden_states):\n"
        "    if self.flag:\n        self.norm = self.same\n"
        "    hidden_states = self.norm(hidden_states)\n"
        "    return self.logits_processor(self.lm_head, hidden_states)"
    )
    first, second = path.branches
    assert first.guards != second.guards
    assert first.result != second.result


def test_a_part_of_an_expression_that_a_later_part_changes_in_place_is_what_it_became() -> None:
    (branch,) = _path(
        "def compute_logits(self, hidden_states):\n"
        "    return self.logits_processor(self.lm_head, hidden_states + hidden_states.fill_(0))"
    ).branches
    assert branch.head_term is not None
    assert show(branch.head_term.hidden) == "(hidden_states.fill_(0) + hidden_states.fill_(0))"


def test_what_was_found_for_one_analysis_counts_as_asked_by_the_next() -> None:
    symbolic = _symbolic("def compute_logits(self, hidden_states):\n    return hidden_states")
    bodies, root = symbolic._bodies, symbolic._root
    assert isinstance(bodies, SourceBodies)
    asked = []
    for _ in range(2):
        bodies.asked = {}
        assert Attributes(bodies).of(root, "logits_processor")
        asked.append(bodies.asked)
    assert asked[0] == asked[1] != {}
