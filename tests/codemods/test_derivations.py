"""Source of a draft in, the lines that are added out; or the code and reason of a refusal."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from trees.lacking import RUNNER, STEP, added, draft, engine, planned, tree
from trees.minivllm import GUARD, INIT, REGISTRY, registry

from auditor.api import Request, Resources, audit
from auditor.coverage import Coverage
from auditor.sources.tree import Source
from codemods.overlay import overlaid
from codemods.plans import REFUSALS as MEANINGS
from codemods.plans import Family, Plan, Refusal
from codemods.reads import other_use
from codemods.reports import unproven

FLAT = """
def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
    logits = self.logits_processor(self.lm_head, hidden_states)
    return logits
"""
STEPPED = """
def compute_logits(
    self,
    hidden_states: torch.Tensor,
    spec_step_idx: int = 0,
) -> torch.Tensor | None:
    return self.logits_processor(self.lm_head, hidden_states)
"""
SHARED = """
class SharedHead(nn.Module):
    def __init__(self):
        self.norm = RMSNorm(8)
        self.head = ParallelLMHead(8, 8)

    def forward(self, hidden_states):
        return {returns}


class Layer(nn.Module):
    def __init__(self):
        self.shared_head = SharedHead()

    def join(self, parts):
        return torch.sum(parts, 1)


class Predictor(nn.Module):
    def __init__(self):
        self.count = 2
        self.layers = nn.ModuleDict({{str(i): Layer() for i in range(2)}})
        self.logits_processor = LogitsProcessor(8)
        self.step = 0

{logits}
"""
PER_STEP = """
    def compute_logits(self, hidden_states: torch.Tensor, spec_step_idx: int = 0):
        layer = self.layers[str(spec_step_idx % self.count)]
        logits = self.logits_processor(
            layer.shared_head.head, layer.shared_head(hidden_states)
        )
        return logits
"""
FORWARDING = """
def compute_logits(self, hidden_states: torch.Tensor, spec_step_idx: int = 0):
    return self.model.compute_logits(hidden_states, spec_step_idx)
"""
MODEL = """
def __init__(self):
    super().__init__()
    self.model = Predictor()
    self.lm_head = ParallelLMHead(8, 8)
"""


def predictor(logits: str = PER_STEP, returns: str = "self.norm(hidden_states)") -> str:
    return SHARED.format(logits=logits.strip("\n"), returns=returns)


def refusal(result: Plan) -> Refusal:
    assert not result.families
    (item,) = {(item.architecture, item.outcome) for item in result.items}
    assert isinstance(item[1], Refusal)
    return item[1]


LOGITS_SIGNATURE = "def compute_logits(self, hidden_states: torch.Tensor, spec_step_idx: int = 0):"
SIGNATURE = LOGITS_SIGNATURE.replace("compute_logits", "get_top_tokens")
WHAT = '"""Greedy draft tokens by an argmax over each rank\'s vocabulary shard.'

CASES = {
    "a flat head inherits the mixin": (
        draft(FLAT),
        None,
        "class Draft(LocalArgmaxMixin, nn.Module):",
    ),
    "a flat head whose caller passes the step takes it": (
        draft(STEPPED),
        STEP,
        f"""
        def get_top_tokens(
            self,
            hidden_states: torch.Tensor,
            spec_step_idx: int = 0,
        ) -> torch.Tensor:
            {WHAT}

            ``hidden_states`` go to the head as they are: ``compute_logits`` applies no norm
            either.
            \"\"\"
            return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)
        """,
    ),
    "a flat head that takes the step inherits the mixin where no caller passes it": (
        draft(STEPPED),
        None,
        "class Draft(LocalArgmaxMixin, nn.Module):",
    ),
    "a caller's step is taken where compute_logits does not take it": (
        draft(FLAT),
        engine("hidden_states, spec_step_idx=spec_step_idx"),
        f"""
        def get_top_tokens(
            self, hidden_states: torch.Tensor, spec_step_idx: int = 0
        ) -> torch.Tensor:
            {WHAT}

            ``hidden_states`` go to the head as they are: ``compute_logits`` applies no norm
            either.
            \"\"\"
            return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)
        """,
    ),
    "a check before the head is kept, so that the mixin does not fit": (
        draft(
            """
            def compute_logits(self, hidden_states):
                assert self.lm_head is not None
                return self.logits_processor(self.lm_head, hidden_states)
            """
        ),
        None,
        f"""
        def get_top_tokens(self, hidden_states):
            {WHAT}

            ``hidden_states`` go to the head as they are: ``compute_logits`` applies no norm
            either.
            \"\"\"
            assert self.lm_head is not None
            return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)
        """,
    ),
    "a norm before the head is applied": (
        draft(
            """
            def compute_logits(self, hidden_states):
                return self.logits_processor(self.lm_head, self.norm(hidden_states))
            """
        ),
        None,
        f"""
        def get_top_tokens(self, hidden_states):
            {WHAT}

            Applies ``norm`` to ``hidden_states`` before the head, as ``compute_logits``
            does.
            \"\"\"
            return self.logits_processor.get_top_tokens(
                self.lm_head, self.norm(hidden_states)
            )
        """,
    ),
    "branches keep their shape, and the name says tokens": (
        draft(
            """
            def compute_logits(self, hidden_states):
                if self.fast:
                    logits = self.logits_processor(self.lm_head, hidden_states)
                else:
                    logits = self.logits_processor(self.lm_head, self.norm(hidden_states))
                return logits
            """
        ),
        None,
        f"""
        def get_top_tokens(self, hidden_states):
            {WHAT}

            Takes the same state to the head as ``compute_logits`` on either branch.
            \"\"\"
            if self.fast:
                top_tokens = self.logits_processor.get_top_tokens(
                    self.lm_head, hidden_states
                )
            else:
                top_tokens = self.logits_processor.get_top_tokens(
                    self.lm_head, self.norm(hidden_states)
                )
            return top_tokens
        """,
    ),
    "a head chosen by the step, normed by the shared head": (
        draft(FORWARDING, before=predictor(), init=MODEL),
        STEP,
        f"""
        {SIGNATURE}
            {WHAT}

            Applies ``shared_head.norm`` to ``hidden_states`` before the head, as
            ``compute_logits`` does.
            \"\"\"
            layer = self.layers[str(spec_step_idx % self.count)]
            return self.logits_processor.get_top_tokens(
                layer.shared_head.head, layer.shared_head(hidden_states)
            )

        {SIGNATURE}
            \"\"\"See ``Predictor.get_top_tokens``.\"\"\"
            return self.model.get_top_tokens(hidden_states, spec_step_idx)
        """,
    ),
    "the same without a norm": (
        draft(
            FORWARDING,
            before=predictor(PER_STEP.replace("layer.shared_head(hidden_states)", "hidden_states")),
            init=MODEL,
        ),
        STEP,
        f"""
        {SIGNATURE}
            {WHAT}

            ``hidden_states`` go to the head as they are: ``compute_logits`` applies no norm
            either.
            \"\"\"
            layer = self.layers[str(spec_step_idx % self.count)]
            return self.logits_processor.get_top_tokens(
                layer.shared_head.head, hidden_states
            )

        {SIGNATURE}
            \"\"\"See ``Predictor.get_top_tokens``.\"\"\"
            return self.model.get_top_tokens(hidden_states, spec_step_idx)
        """,
    ),
    "a head handed down as an argument is handed down": (
        draft(
            """
            def compute_logits(self, hidden_states, spec_step_idx=0):
                return self.model.compute_logits(hidden_states, self.lm_head, spec_step_idx)
            """,
            before=predictor(
                """
    def compute_logits(self, hidden_states, lm_head, spec_step_idx=0):
        return self.logits_processor(lm_head, hidden_states)
                """
            ),
            init=MODEL,
        ),
        STEP,
        f"""
        def get_top_tokens(self, hidden_states, lm_head, spec_step_idx=0):
            {WHAT}

            ``hidden_states`` go to the head as they are: ``compute_logits`` applies no norm
            either.
            \"\"\"
            return self.logits_processor.get_top_tokens(lm_head, hidden_states)

        def get_top_tokens(self, hidden_states, spec_step_idx=0):
            \"\"\"See ``Predictor.get_top_tokens``.\"\"\"
            return self.model.get_top_tokens(hidden_states, self.lm_head, spec_step_idx)
        """,
    ),
    "a step kept in an attribute is kept there": (
        draft(
            """
            def compute_logits(self, hidden_states, spec_step_idx=0):
                self.model.step = spec_step_idx
                return self.model.compute_logits(hidden_states)
            """,
            before=predictor(
                """
    def compute_logits(self, hidden_states):
        layer = self.layers[str(self.step % self.count)]
        return self.logits_processor(layer.shared_head.head, hidden_states)
                """
            ),
            init=MODEL,
        ),
        STEP,
        f"""
        def get_top_tokens(self, hidden_states):
            {WHAT}

            ``hidden_states`` go to the head as they are: ``compute_logits`` applies no norm
            either.
            \"\"\"
            layer = self.layers[str(self.step % self.count)]
            return self.logits_processor.get_top_tokens(
                layer.shared_head.head, hidden_states
            )

        def get_top_tokens(self, hidden_states, spec_step_idx=0):
            \"\"\"See ``Predictor.get_top_tokens``.\"\"\"
            self.model.step = spec_step_idx
            return self.model.get_top_tokens(hidden_states)
        """,
    ),
}


@pytest.mark.parametrize(("given", "callers", "expected"), CASES.values(), ids=CASES)
def test_the_method_follows_the_head_path(
    given: str, callers: dict[str, str] | None, expected: str
) -> None:
    one = tree(given, callers)
    result = planned(one)
    assert _unindented(added(result)) == _unindented(expected)
    (family,) = result.families
    assert {row.verdict for row in _audited(one, family).rows} == {"yes"}
    again = planned(overlaid(one, family.after))
    assert not again.items, "a second run finds nothing to do"


PRE_HEAD = """
    def compute_logits(self, hidden_states: torch.Tensor, spec_step_idx: int = 0):
        layer = self.layers[str(spec_step_idx % self.count)]
        # The layer returns a state of several parts.
        hidden_states = hidden_states.view(-1, layer.parts, 8)
        hidden_states = layer.join(hidden_states)
        hidden_states = layer.shared_head(hidden_states)
        logits = self.logits_processor(layer.shared_head.head, hidden_states)
        return logits
"""
FACTORED = """
    def _pre_head(
        self,
        layer: Layer,
        hidden_states: torch.Tensor,
    ) -> torch.Tensor:
        # The layer returns a state of several parts.
        hidden_states = hidden_states.view(-1, layer.parts, 8)
        hidden_states = layer.join(hidden_states)
        return layer.shared_head(hidden_states)

    def compute_logits(self, hidden_states: torch.Tensor, spec_step_idx: int = 0):
        layer = self.layers[str(spec_step_idx % self.count)]
        logits = self.logits_processor(
            layer.shared_head.head, self._pre_head(layer, hidden_states)
        )
        return logits

    def get_top_tokens(self, hidden_states: torch.Tensor, spec_step_idx: int = 0):
        \"\"\"Greedy draft tokens by an argmax over each rank's vocabulary shard.

        Shares ``_pre_head`` with ``compute_logits``, so that both take the same state
        to the head.
        \"\"\"
        layer = self.layers[str(spec_step_idx % self.count)]
        return self.logits_processor.get_top_tokens(
            layer.shared_head.head, self._pre_head(layer, hidden_states)
        )
"""


def test_a_long_pre_head_becomes_a_method_that_both_use() -> None:
    one = tree(draft(FORWARDING, before=predictor(PRE_HEAD), init=MODEL), STEP)
    (family,) = planned(one).families
    assert FACTORED in family.after[INIT].decode()
    assert {row.verdict for row in _audited(one, family).rows} == {"yes"}


def _audited(one: Source, family: Family) -> Coverage:
    return audit(overlaid(one, family.after), Request(), Resources(processes=1))


def _unindented(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


HEADS = "return self.logits_processor(self.lm_head, hidden_states)"


def method(*lines: str) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"def compute_logits(self, hidden_states):\n{body}\n"


REFUSALS = {
    "stub": (
        draft("", init="def __init__(self):\n    raise NotImplementedError"),
        None,
        "the class only raises NotImplementedError",
    ),
    "no-logits": (draft("def forward(self):\n    pass"), None, "the class has no compute_logits"),
    "unknown-term": (
        draft(method("for one in self.parts:", "    hidden_states = one(hidden_states)", HEADS)),
        None,
        "a for loop is not followed",
    ),
    "no-head": (
        draft(method("return hidden_states @ self.weight")),
        None,
        "compute_logits gives (hidden_states @ weight), and calls no logits processor",
    ),
    "logits-changed": (
        draft(
            method(
                "logits = self.logits_processor(self.lm_head, hidden_states)",
                "logits[:, 3] = -1e9",
                "return logits",
            )
        ),
        None,
        "after the head: [:, 3] = -1000000000.0",
    ),
    "post-processing": (
        draft(method("assert self.norm", f"{HEADS} * 2.0")),
        None,
        "scale: 2.0 comes after the head",
    ),
    "indirect-head": (
        draft(
            method("return logits_of(self.logits_processor, self.lm_head, hidden_states)"),
            before="def logits_of(processor, head, states):\n    return processor(head, states)\n",
        ),
        None,
        "Draft.compute_logits calls neither a logits processor nor compute_logits of a part of "
        "the model by itself",
    ),
    "caller": (
        draft(FORWARDING, before=predictor(), init=MODEL),
        {
            **engine("hidden_states"),
            GUARD: engine("hidden_states")[GUARD]
            + """
                def _other(self, hidden_states, step):
                    return self.model.compute_logits(hidden_states, spec_step_idx=step)

                def load_model(self):
                    return self._other
            """,
        },
        "Proposer passes spec_step_idx to compute_logits and not to "
        "get_top_tokens(hidden_states): the method would use the first head at every step",
    ),
    "norm-convention": (
        draft(
            "def forward(self, hidden_states):\n    return self.norm(hidden_states)\n\n"
            + method("return self.logits_processor(self.lm_head, self.norm(hidden_states))")
        ),
        None,
        "forward returns states normed by norm, and compute_logits norms again",
    ),
    "name-taken": (
        draft(
            FORWARDING,
            before=predictor(
                PRE_HEAD
                + "".join(
                    f"\n    def {name}(self):\n        pass\n"
                    for name in ("_pre_head", "_to_head", "_head_input")
                )
            ),
            init=MODEL,
        ),
        STEP,
        "Predictor has _pre_head, _to_head, _head_input",
    ),
    "not-editable": (
        draft(FLAT).replace("class Draft", "\fOTHER = 1\n\n\nclass Draft"),
        None,
        "the parser does not give its bytes back",
    ),
    "not-proven": (
        draft(FLAT),
        {RUNNER: ""},
        "DraftModel on cuda would be yes?: it is not known what calls it: no model runner that "
        "makes a drafter was found",
    ),
}


@pytest.mark.parametrize(("code", "case"), REFUSALS.items(), ids=REFUSALS)
def test_what_cannot_be_right_is_refused(
    code: str, case: tuple[str, dict[str, str] | None, str]
) -> None:
    given, callers, reason = case
    answer = refusal(planned(tree(given, callers)))
    assert (answer.code, answer.reason) == (code, reason)


LOGITS = "logits = self.logits_processor(self.lm_head, self.norm(hidden_states))"
USES = {
    "kept on self": ((LOGITS, "self.last = logits", "return logits"), "self.last = logits"),
    "kept on self at once": (
        ("logits = self.last = self.logits_processor(self.lm_head, hidden_states)",
         "return logits"),
        "logits = self.last = self.logits_processor(self.lm_head, hidden_states)",
    ),
    "asked for their shape": (
        (LOGITS, "self.count(logits.shape)", "return logits"), "self.count(logits.shape)"),
    "by another name": (
        (LOGITS, "x = logits", "self.last = x", "return logits"), "self.last = x"),
    "in a lambda": (
        (LOGITS, "self.hook = lambda: logits", "return logits"), "self.hook = lambda: logits"),
    "by a condition": (
        (LOGITS, "if logits.size(0) > 2:", "    self.seen = 1", "return logits"),
        "logits.size(0) > 2",
    ),
    "for a name that stays": (
        (LOGITS, "n = logits.shape[0]", "self.seen = n", "return logits"), "n = logits.shape[0]"),
    "beside something else": (
        (LOGITS, "n = logits.shape[0]; self.seen = 1", "return logits"), "n = logits.shape[0]"),
    "by a call that may do more": (
        (LOGITS, "n = self.rows(logits.shape)", "return logits"), "n = self.rows(logits.shape)"),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "shown"), USES.values(), ids=USES)
def test_logits_that_are_used_on_the_way_are_refused(lines: tuple[str, ...], shown: str) -> None:
    answer = refusal(planned(tree(draft(method(*lines)))))
    reason = f"Draft.compute_logits uses the logits it computes: {shown}"
    assert (answer.code, answer.reason) == ("logits-changed", reason)


def test_what_checks_the_logits_is_refused() -> None:
    answer = refusal(
        planned(tree(draft(method(LOGITS, "assert logits.ndim == 2", "return logits"))))
    )
    reason = "Draft.compute_logits checks the logits it computes: assert logits.ndim == 2"
    assert (answer.code, answer.reason) == ("logits-changed", reason)


LOOKS = {
    "for a name": ("rows = logits.shape[0]",),
    "for a name of a name": ("rows = logits.size(0)", "twice = rows * 2"),
    "for the log": ("kind = logits.dtype", 'logger.debug("%s %s", logits.shape, kind)'),
    "for nothing": ("logits.shape",),
}


@pytest.mark.parametrize("lines", LOOKS.values(), ids=LOOKS)
def test_what_only_looks_at_the_logits_is_left_out(lines: tuple[str, ...]) -> None:
    given = method("assert self.lm_head", LOGITS, *lines, "return logits")
    result = planned(tree(draft(given)))
    text = added(result)
    assert "self.logits_processor.get_top_tokens(" in text
    assert not any(line in text for line in lines)
    assert all(line in result.families[0].after[INIT].decode() for line in lines)


def test_what_a_part_gives_back_may_not_be_used_either() -> None:
    own = ("logits = self.model.compute_logits(hidden_states)", "self.last = logits",
           "return logits")  # fmt: skip
    given = draft(method(*own), before=predictor(), init=MODEL)
    assert refusal(planned(tree(given))).code == "logits-changed"


@pytest.mark.parametrize("kind", ["global", "nonlocal"])
def test_a_name_that_outlives_the_method_is_a_use(kind: str) -> None:
    source = f"def f(self):\n    {kind} logits\n    logits = self.p()\n    return logits\n"
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    assert isinstance(other_use(function, calls), ast.Global | ast.Nonlocal)


def test_logits_that_are_only_tested_and_renamed_are_no_use() -> None:
    lines = (LOGITS, "named = logits", "if named is None:", "    return None", "return named")
    assert "get_top_tokens(" in added(planned(tree(draft(method(*lines)))))


def test_what_is_kept_on_self_before_the_head_is_kept_by_a_method_and_not_by_the_mixin() -> None:
    text = added(planned(tree(draft(method("self.seen = 1", HEADS)))))
    assert "self.seen = 1" in text
    assert "LocalArgmaxMixin" not in text


def test_a_caller_that_drops_the_step_is_patched_in_the_same_patch() -> None:
    callers = engine("hidden_states", "hidden_states, spec_step_idx=spec_step_idx")
    one = tree(draft(FORWARDING, before=predictor(), init=MODEL), callers)
    (family,) = planned(one).families
    assert sorted(family.after) == [INIT, GUARD]
    assert added(planned(one), GUARD).strip() == (
        "return self.model.get_top_tokens(hidden_states, spec_step_idx=spec_step_idx)"
    )
    assert {row.verdict for row in _audited(one, family).rows} == {"yes"}
    assert not planned(overlaid(one, family.after)).items


def test_a_draft_that_nothing_asks_is_refused() -> None:
    callers = engine()
    never = callers["vllm/v1/spec_decode/proposer.py"].replace(
        "return self.model.get_top_tokens(hidden_states)", "pass"
    )
    given = tree(draft(FLAT), {**callers, "vllm/v1/spec_decode/proposer.py": never})
    assert refusal(planned(given)).code == "never-called"


TARGET = "vllm/model_executor/models/target.py"


def _with_target(body: str, target: str) -> dict[str, str]:
    tables = registry({"DraftModel": ("vllm.models.draft", "Draft")})
    return {
        INIT: draft(body, bases="Target", before=f"from {TARGET_MODULE} import Target\n"),
        TARGET: target,
        REGISTRY: f'{tables}_TEXT_GENERATION_MODELS = {{"T": ("target", "Target")}}\n',
    }


TARGET_MODULE = "vllm.model_executor.models.target"


@pytest.mark.parametrize("handed", ["hidden_states", "self.norm(hidden_states)"])
def test_a_draft_that_is_a_target_model_is_refused(handed: str) -> None:
    """Neither the mixin nor a method: the class is not the draft's alone."""
    table = '_TEXT_GENERATION_MODELS = {"T": ("vllm.models.draft", "Draft")}\n'
    given = {
        INIT: draft(method(f"return self.logits_processor(self.lm_head, {handed})")),
        REGISTRY: registry({"DraftModel": ("vllm.models.draft", "Draft")}) + table,
    }
    answer = refusal(planned(tree(given)))
    reason = "Draft computes the logits, and the registry has it for a target model"
    assert (answer.code, answer.reason) == ("target-class", reason)


def test_every_code_of_a_refusal_is_tried_and_documented() -> None:
    """Those that need a tree of their own are named in the test that has it."""
    own = {"target-class", "names-not-there", "platforms-disagree", "never-called"}
    assert REFUSALS.keys() | own == MEANINGS.keys()
    page = (Path(__file__).parents[2] / "docs" / "codemods.md").read_text()
    for code, meaning in MEANINGS.items():
        assert f"| `{code}` | {meaning} |" in page


def test_a_method_never_lands_on_the_class_of_a_target_model() -> None:
    target = draft(method("return self.logits_processor(self.lm_head, self.norm(hidden_states))"))
    result = planned(tree(_with_target("", target.replace("class Draft", "class Target"))))
    (family,) = result.families
    assert list(family.after) == [INIT]
    assert "self.norm(hidden_states)" in added(result)


def test_a_method_is_not_written_out_where_its_names_mean_something_else() -> None:
    body = method("return self.logits_processor(self.lm_head, twice(hidden_states))")
    target = draft(body, before="def twice(states):\n    return states + states\n")
    result = planned(tree(_with_target("", target.replace("class Draft", "class Target"))))
    assert refusal(result).code == "names-not-there"


def test_a_class_that_drafts_share_is_patched_once() -> None:
    tables = registry(
        {"A": ("vllm.models.draft", "Draft"), "B": ("vllm.models.draft.other", "Other")}
    )
    other = (
        "import torch.nn as nn\nfrom vllm.models.draft import Predictor\n\n\n"
        "class Other(nn.Module):\n    def __init__(self):\n        self.model = Predictor()\n\n"
        "    def compute_logits(self, hidden_states, spec_step_idx=0):\n"
        "        return self.model.compute_logits(hidden_states, spec_step_idx)\n"
    )
    given = {
        INIT: draft(FORWARDING, before=predictor(), init=MODEL),
        "vllm/models/draft/other.py": other,
        REGISTRY: tables,
    }
    (family,) = planned(tree(given, {**STEP})).families
    assert family.architectures == ("A", "B")
    counts = [content.count(b"def get_top_tokens") for content in family.after.values()]
    assert sorted(counts) == [1, 2]


def test_a_half_applied_patch_is_completed() -> None:
    """The predictor has the method, and the class around it does not forward to it."""
    (family,) = planned(tree(draft(FORWARDING, before=predictor(), init=MODEL), STEP)).families
    whole = family.after[INIT].decode()
    start = whole.rindex("\n    def get_top_tokens")
    half = whole[:start]
    (again,) = planned(tree(half, STEP)).families
    assert again.after[INIT].decode() == whole


def test_a_half_applied_patch_is_completed_from_the_other_end() -> None:
    """The class forwards to a method that the predictor does not have."""
    (family,) = planned(tree(draft(FORWARDING, before=predictor(), init=MODEL), STEP)).families
    whole = family.after[INIT].decode()
    start = whole.index("\n    def get_top_tokens")
    half = whole[:start].rstrip("\n") + whole[whole.index("\n\n\nclass Draft") :]
    (again,) = planned(tree(half, STEP)).families
    assert again.after[INIT].decode() == whole


def test_a_class_that_is_whole_and_not_proven_is_left_alone_and_named() -> None:
    body = FLAT + FLAT.replace("compute_logits", "get_top_tokens")
    result = planned(tree(draft(body)))
    assert not result.items
    assert {row.architecture for row in result.unproven} == {"DraftModel"}
    assert unproven(result) == [
        "left alone, since they have the method, though unproven (see audit): DraftModel"
    ]


def test_platforms_that_need_different_methods_on_one_class_are_refused() -> None:
    """The same two files, and another predictor behind the same name by platform."""
    part = (
        "from vllm.platforms import current_platform\n\nif current_platform.is_cuda():\n"
        "    from vllm.models.draft.one import Predictor\n"
        "else:\n    from vllm.models.draft.two import Predictor\n"
    )
    one = draft("", before=predictor())
    given = {
        INIT: draft(FORWARDING, before=part, init=MODEL),
        "vllm/models/draft/one.py": one,
        "vllm/models/draft/two.py": one.replace("Predictor", "Other") + "\nPredictor = Other\n",
    }
    result = planned(tree(given, STEP))
    codes = {item.outcome.code for item in result.items if isinstance(item.outcome, Refusal)}
    assert codes == {"platforms-disagree"}


@pytest.mark.parametrize(
    ("returned", "handed", "why"),
    [
        (
            "self.norm(hidden_states)",
            "hidden_states",
            "``hidden_states`` come normed from ``forward``, so the head takes them as they are.",
        ),
        (
            "hidden_states + self.residual",
            "self.norm(hidden_states)",
            "``forward`` returns ``hidden_states`` before ``norm``, so it is applied here, as in "
            "``compute_logits``.",
        ),
    ],
)
def test_the_docstring_says_why_a_norm_is_applied_or_not(
    returned: str, handed: str, why: str
) -> None:
    forward = f"def forward(self, hidden_states):\n    return {returned}\n\n"
    logits = method("assert self.lm_head", f"return self.logits_processor(self.lm_head, {handed})")
    text = added(planned(tree(draft(forward + logits))))
    assert why in " ".join(text.split())


def test_what_drafts_share_is_worded_so_that_it_is_true_of_each() -> None:
    shared = draft(FORWARDING, before=predictor(), init=MODEL)
    one = "\n    def forward(self, hidden_states):\n        return hidden_states + self.rest\n"
    other = (
        "import torch.nn as nn\nfrom vllm.models.draft import Predictor\n\n\n"
        "class Other(nn.Module):\n    def __init__(self):\n        self.model = Predictor()\n\n"
        "    def compute_logits(self, hidden_states, spec_step_idx=0):\n"
        "        return self.model.compute_logits(hidden_states, spec_step_idx)\n"
    )
    given = {
        INIT: shared + one,
        "vllm/models/draft/other.py": other,
        REGISTRY: registry(
            {"A": ("vllm.models.draft", "Draft"), "B": ("vllm.models.draft.other", "Other")}
        ),
    }
    (family,) = planned(tree(given, {**STEP})).families
    text = " ".join(family.after[INIT].decode().split())
    assert "Takes the same state to the head as ``compute_logits``, for the same argmax." in text
    (alone,) = planned(tree({**given, REGISTRY: registry({"A": ("vllm.models.draft", "Draft")})},
                            {**STEP})).families  # fmt: skip
    text = " ".join(alone.after[INIT].decode().split())
    assert "``forward`` returns ``hidden_states`` before ``shared_head.norm``" in text
