"""Which class drafts for which architecture, by every form that a selection has in vLLM."""

from __future__ import annotations

import pytest
from trees.engine import CHOOSING, CONFIG, EAGLE, ENGINE, chosen, contracts
from trees.minivllm import RUNNER, SPECULATIVE

MANY = "min(hf_config.num_layers, num_speculative_tokens) > 1"


def test_the_override_the_method_and_the_runner_decide_together() -> None:
    found = contracts({})
    assert chosen(found, "AlphaModel") == [f"Many if {MANY}", f"Single if not ({MANY})"]
    assert chosen(found, "BetaModel") == ["Beta"]
    assert chosen(found, "EagleFirstModel") == ["Eagle"]
    assert found.problems == ()
    assert found.runners == ("vllm.v1.worker.gpu_model_runner.GPUModelRunner",)


def test_an_architecture_that_nothing_leads_to_says_so() -> None:
    found = contracts({})
    assert chosen(found, "FirstModel") == []
    assert found.unknown("FirstModel") == (
        "no configuration was found that leads to this architecture"
    )
    assert found.unknown("AlphaModel") is None
    assert set(found.selected) == {"AlphaModel", "BetaModel", "EagleFirstModel"}


def test_without_a_runner_nothing_is_known() -> None:
    found = contracts({RUNNER: ""})
    assert found.unknown("AlphaModel") == "no model runner that makes a drafter was found"


def test_a_value_of_the_module_whose_computing_raises_ends_nothing() -> None:
    raises = """
def made(number):
    number.update({"architectures": ["FirstModel"]})
    return number

OTHER = made(1)
"""
    found = contracts({SPECULATIVE: CONFIG + raises})
    assert chosen(found, "BetaModel") == ["Beta"]
    assert found.problems == ()


FUNCTION = """
def make(vllm_config, device):
    speculative_config = vllm_config.speculative_config
    assert speculative_config is not None
{body}
"""
CALLING = """
from vllm.v1.spec_decode.drafters import Beta, Eagle, Many, Single
from vllm.v1.worker.making import make

class GPUModelRunner:
    def __init__(self, vllm_config, device):
        self.vllm_config = vllm_config
        self.speculator = make(self.vllm_config, device)
"""


def _by_function(*lines: str) -> dict[str, str]:
    body = "\n".join(f"    {line}" for line in lines)
    return {RUNNER: CALLING, "vllm/v1/worker/making.py": FUNCTION.format(body=body)}


IMPORT = "from vllm.v1.spec_decode.drafters import Beta, Eagle, Many, Single"
FORMS = {
    "early returns": (
        IMPORT,
        "if speculative_config.use_beta():",
        "    return Beta(vllm_config)",
        "return Single(vllm_config)",
    ),
    "the architecture is in a list": (
        IMPORT,
        "if 'BetaModel' in speculative_config.draft_model_config.architectures:",
        "    return Beta(vllm_config)",
        "return Single(vllm_config)",
    ),
    "architectures and a set have something in common": (
        IMPORT,
        "names = speculative_config.draft_model_config.architectures",
        "if {'BetaModel', 'GammaModel'}.intersection(names):",
        "    return Beta(vllm_config)",
        "return Single(vllm_config)",
    ),
    "any architecture is in a constant": (
        IMPORT,
        "names = speculative_config.draft_model_config.architectures",
        "if any(name in ('BetaModel',) for name in names):",
        "    return Beta(vllm_config)",
        "return Single(vllm_config)",
    ),
    "a table by the model type": (
        IMPORT,
        "kind = speculative_config.draft_model_config.hf_config.model_type",
        "return Beta(vllm_config) if kind == 'beta_mtp' else Single(vllm_config)",
    ),
    "a refusal at the end": (
        IMPORT,
        "if speculative_config.use_beta():",
        "    return Beta(vllm_config)",
        "elif speculative_config.method in ('mtp', 'eagle'):",
        "    return Single(vllm_config)",
        "else:",
        "    raise NotImplementedError(speculative_config.method)",
    ),
}


@pytest.mark.parametrize("lines", FORMS.values(), ids=FORMS)
def test_a_function_may_choose(lines: tuple[str, ...]) -> None:
    found = contracts(_by_function(*lines))
    assert chosen(found, "BetaModel") == ["Beta"]
    assert chosen(found, "AlphaModel") == ["Single"]


def test_a_condition_that_is_not_followed_is_a_reason_and_no_condition() -> None:
    lines = (IMPORT, "if ask_the_host():", "    return Beta(vllm_config)",
             "return Single(vllm_config)")  # fmt: skip
    found = contracts(_by_function(*lines))
    reasons = {one.drafter.name: one.open for one, _ in found.of("AlphaModel")}
    assert reasons.keys() == {"Beta", "Single"}
    assert all("ask_the_host" in reason for reason in reasons.values())
    assert all(not one.conditions for one, _ in found.of("AlphaModel"))


def test_a_setting_that_is_constant_in_the_override_decides() -> None:
    config = CONFIG.replace('"n_predict": layers', '"num_layers": 1')
    assert chosen(contracts({SPECULATIVE: config}), "AlphaModel") == ["Single"]


def test_a_method_of_its_own_is_tried_by_itself() -> None:
    config = CONFIG.replace('Literal["eagle",', 'Literal["falcon", "eagle",').replace(
        'if self.method == "eagle":', 'if self.method == "falcon":\n            pass\n'
        '        elif self.method == "eagle":'
    )  # fmt: skip
    found = contracts({SPECULATIVE: config})
    assert chosen(found, "FirstModel") == ["Eagle"]
    assert {one.method for one, _ in found.of("FirstModel")} == {"falcon"}


def test_an_independent_draft_model_is_no_entry_of_the_table() -> None:
    found = contracts({})
    methods = {one.method for name in found.selected for one, _ in found.of(name)}
    assert methods == {"eagle", "mtp"}


def test_a_renaming_that_keeps_the_name_leads_there_too() -> None:
    renaming = ENGINE[EAGLE].replace('f"Eagle{arch}"', '"EagleFirstModel"')
    found = contracts({EAGLE: renaming}, ("EagleFirstModel", "EagleOther"))
    assert chosen(found, "EagleFirstModel") == ["Eagle"]
    assert chosen(found, "EagleOther") == ["Eagle"]


def test_too_many_conditions_are_a_problem_with_a_place() -> None:
    tests = "\n".join(
        f"            if vllm_config.a{n}:\n                self.drafter = Eagle({n})"
        for n in range(10)
    )
    runner = CHOOSING + tests
    (problem,) = contracts({RUNNER: runner}).problems
    assert "more than" in problem.reason
    assert problem.where.path == RUNNER


def test_what_is_false_whatever_is_unknown_in_it_is_not_asked() -> None:
    refusals = [
        line
        for n in range(10)
        for line in (f"if vllm_config.a{n} and 1 > 2:", f"    raise ValueError({n})")
    ]
    lines = (IMPORT, *refusals, "return Beta(vllm_config)")
    found = contracts(_by_function(*lines))
    assert chosen(found, "BetaModel") == ["Beta"]
    assert found.problems == ()


def test_what_is_true_whatever_is_unknown_in_it_refuses() -> None:
    refusal = ("if not (vllm_config.a and 1 > 2):", "    raise ValueError()")
    found = contracts(_by_function(IMPORT, *refusal, "return Beta(vllm_config)"))
    assert chosen(found, "BetaModel") == []


def test_two_runners_choose_each_for_itself() -> None:
    other = CHOOSING.replace("GPUModelRunner", "Second").replace("Single(vllm", "Eagle(vllm")
    found = contracts({"vllm/v1/worker/second.py": other})
    runners: dict[str, set[str]] = {}
    for one, _ in found.of("AlphaModel"):
        runners.setdefault(one.runner.rpartition(".")[2], set()).add(one.drafter.name)
    assert runners == {"GPUModelRunner": {"Many", "Single"}, "Second": {"Many", "Eagle"}}
