"""Conditions on a platform, and what a user's options decide of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from trees.dispatch import AMD, NVIDIA
from trees.minivllm import INIT, PLATFORMS, Answer, coverage, row_of

from auditor.api import Request
from auditor.coverage import Coverage
from auditor.errors import UsageError
from auditor.platforms import build, literal, normal_text
from auditor.ruleset.platforms import platforms

HEAD = "from vllm.platforms import current_platform\nimport os\n\n"
DISPATCH = "if {condition}:\n    from .nvidia import Draft\nelse:\n    from .amd import Draft\n"
CAPABILITY = "current_platform.has_device_capability(90)"


def _dispatch(condition: str, before: str = "") -> dict[str, str]:
    return {INIT: HEAD + before + DISPATCH.format(condition=condition)}


def _ask(condition: str, before: str = "", **options: Any) -> Coverage:
    return coverage(_dispatch(condition, before), Request(platforms=("cuda",), **options))


def _answer(condition: str, before: str = "", **options: Any) -> Answer:
    return Answer.of(row_of(_ask(condition, before, **options), "cuda"))


# ---- a condition that stays open ---------------------------------------------------------------

OPEN = [
    (CAPABILITY, "depends on the device; --assume has_device_capability=VALUE decides it"),
    ("os.environ.get('VLLM_USE_X')", "--env VLLM_USE_X=VALUE decides it"),
    ("os.getenv('VLLM_USE_X', '0') == '1'", "--env VLLM_USE_X=VALUE decides it"),
    ("os.cpu_count() > 4", "the result of os.cpu_count()"),
    ("current_platform.get_device_name() == 'B200'", "--assume get_device_name=VALUE"),
]


@pytest.mark.parametrize(("condition", "reason"), OPEN)
def test_an_open_condition_gives_a_question_mark_with_place_and_what_decides_it(
    condition: str, reason: str
) -> None:
    document = _ask(condition)
    row = row_of(document, "cuda")
    assert (row.verdict, row.hasattr, row.module, row.class_) == ("?", None, None, None)
    (item,) = [item for item in document.undecided if item.path == INIT]
    assert (item.line, item.text, item.platforms) == (4, condition, ("cuda",))
    assert reason in item.reason
    assert "DraftModel" in item.architectures


def test_the_evidence_of_an_open_row_ends_at_the_condition() -> None:
    step = row_of(_ask(CAPABILITY), "cuda").evidence[-1]
    assert (step.kind, step.path, step.line, step.text) == ("branch", INIT, 4, CAPABILITY)
    assert step.note.startswith("open: ")


def test_an_open_condition_that_both_branches_agree_on_decides_nothing() -> None:
    same = f"if {CAPABILITY}:\n    from .amd import Draft\nelse:\n    from .amd import Draft\n"
    document = coverage({INIT: HEAD + same}, Request(platforms=("cuda",)))
    assert Answer.of(row_of(document, "cuda")) == AMD
    assert [item.architectures for item in document.undecided] == [()]


# ---- options -----------------------------------------------------------------------------------

ASSUMPTIONS: list[tuple[str, Mapping[str, str], Answer]] = [
    (CAPABILITY, {"has_device_capability": "true"}, NVIDIA),
    (CAPABILITY, {"has_device_capability": "False"}, AMD),
    (CAPABILITY, {CAPABILITY: "true"}, NVIDIA),
    (CAPABILITY, {"current_platform.has_device_capability( 90 )": "true"}, NVIDIA),
    (f"not {CAPABILITY}", {CAPABILITY: "true"}, AMD),
    (f"{CAPABILITY} and current_platform.is_rocm()", {CAPABILITY: "true"}, AMD),
    ("os.cpu_count() > 4", {"os.cpu_count() > 4": "true"}, NVIDIA),
    ("os.cpu_count() > 4", {"os.cpu_count()": "8"}, NVIDIA),
    ("os.cpu_count() > 4", {"os.cpu_count()": "2"}, AMD),
    ("current_platform.get_device_name() == 'B200'", {"get_device_name": "B200"}, NVIDIA),
    ("current_platform.get_device_name() == 'B200'", {"get_device_name": "'H100'"}, AMD),
    ("current_platform.is_cuda()", {"is_cuda": "false"}, AMD),
    ("current_platform.device_type == 'cuda'", {"device_type": "musa"}, AMD),
    ("current_platform.counts[0] is None", {"current_platform.counts": "[None]"}, NVIDIA),
]


@pytest.mark.parametrize(("condition", "assume", "answer"), ASSUMPTIONS)
def test_assume_decides_by_name_and_by_text(
    condition: str, assume: Mapping[str, str], answer: Answer
) -> None:
    assert _answer(condition, assume=assume) == answer


def test_an_assumption_about_another_condition_decides_nothing() -> None:
    assumed = {"current_platform.has_device_capability(80)": "true"}
    assert _answer(CAPABILITY, assume=assumed).verdict == "?"


ENVIRONMENT: list[tuple[str, Mapping[str, str], Answer]] = [
    ("os.environ.get('VLLM_USE_X')", {"VLLM_USE_X": "1"}, NVIDIA),
    ("os.environ.get('VLLM_USE_X')", {"VLLM_USE_X": ""}, AMD),
    ("os.getenv('VLLM_USE_X', '0') == '1'", {"VLLM_USE_X": "1"}, NVIDIA),
    ("int(os.environ.get('VLLM_USE_X', '0'))", {"VLLM_USE_X": "0"}, AMD),
    ("os.environ['VLLM_USE_X'] in ('1', 'true')", {"VLLM_USE_X": "true"}, NVIDIA),
    ("'VLLM_USE_X' in os.environ", {"VLLM_USE_X": "0"}, NVIDIA),
]


@pytest.mark.parametrize(("condition", "env", "answer"), ENVIRONMENT)
def test_env_decides_a_test_of_a_variable(
    condition: str, env: Mapping[str, str], answer: Answer
) -> None:
    assert _answer(condition, env=env) == answer


FOUND = "from importlib.util import find_spec\n"
TRIED = "try:\n    import aftermarket\n    OK = True\nexcept ImportError:\n    OK = False\n"
MODULES = [("find_spec('aftermarket')", FOUND), ("OK", TRIED)]


@pytest.mark.parametrize(("condition", "before"), MODULES)
def test_with_and_without_decide_whether_a_module_exists(condition: str, before: str) -> None:
    assert _answer(condition, before).verdict == "?"
    assert _answer(condition, before, with_modules=("aftermarket",)) == NVIDIA
    assert _answer(condition, before, without_modules=("aftermarket",)) == AMD


def test_without_takes_a_module_away_that_the_platform_has() -> None:
    tree = {INIT: "import triton\nfrom .nvidia import Draft\n"}
    have, lack = (
        coverage(tree, Request(platforms=("cuda",), without_modules=names)).rows[0]
        for names in ((), ("triton",))
    )
    assert have.verdict == "yes?"
    assert lack.error is not None
    assert (lack.error.type, lack.error.message) == (
        "ModuleNotFoundError", "No module named 'triton'",
    )  # fmt: skip
    assert lack.error.chain[-1].note.startswith("--without ")


def test_without_takes_the_submodules_away_as_well() -> None:
    tree = {INIT: "import triton.language\nfrom .nvidia import Draft\n"}
    request = Request(platforms=("cuda", "cpu"), without_modules=("triton",))
    assert {row.verdict for row in coverage(tree, request).rows} == {"import"}
    request = Request(platforms=("cuda", "cpu"), with_modules=("triton",))
    assert {row.verdict for row in coverage(tree, request).rows} == {"yes?"}


def test_a_module_nobody_knows_leaves_a_question_mark_and_says_what_decides_it() -> None:
    tree = {INIT: "import aftermarket\nfrom .nvidia import Draft\n"}
    (row,) = coverage(tree, Request(platforms=("cuda",))).rows
    assert row.verdict == "?"
    assert row.reason is not None
    assert "--with aftermarket or --without aftermarket decides it" in row.reason


# ---- the parts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("False", False), ("NONE", None), ("7", 7), ("-1.5", -1.5), ("'7'", "7"),
     ("(9, 0)", (9, 0)), ("B200", "B200"), ("", ""), ("a b", "a b")],
)  # fmt: skip
def test_the_value_of_an_option_is_a_literal_or_the_text(text: str, value: object) -> None:
    assert literal(text) == value
    assert type(literal(text)) is type(value)


def test_spacing_and_quotes_of_a_condition_are_free() -> None:
    assert normal_text(' a.b( "x" )') == normal_text("a.b('x')")


def test_text_that_is_no_expression_is_wrong_usage() -> None:
    with pytest.raises(UsageError) as caught:
        _answer(CAPABILITY, assume={"if x:": "true"})
    assert caught.value.where == "--assume"
    assert caught.value.next_step


def test_an_unknown_platform_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match=r"Did you mean rocm\? Known: cuda, rocm, xpu"):
        coverage({INIT: ""}, Request(platforms=("rocmm",)))


@pytest.mark.parametrize("name", PLATFORMS)
def test_each_platform_is_itself_and_no_other(name: str) -> None:
    (rule,) = [rule for rule in platforms() if rule.name == name]
    platform = build(rule, {}, {})
    own = "is_out_of_tree" if name == "oot" else f"is_{name}"
    others = {f"is_{other}" for other in (*PLATFORMS, "out_of_tree")} - {own, "is_oot"}
    assert platform.call(own, has_arguments=False) is True
    assert {platform.call(other, has_arguments=False) for other in others} == {False}
    assert platform.call("is_cuda_alike", has_arguments=False) is (name in ("cuda", "rocm"))


def test_an_option_that_decides_nothing_is_named() -> None:
    document = _ask(
        "OK",
        TRIED,
        with_modules=("aftermarket", "afternoon"),
        without_modules=("vllm._C",),
        assume={"x == 9": "true"},
        env={"NOBODY": "1"},
    )
    assert [note.partition(" decided nothing")[0] for note in document.notes] == [
        "--assume x == 9", "--env NOBODY", "--with afternoon", "--without vllm._C",
    ]  # fmt: skip


def test_options_that_decide_something_are_not_named() -> None:
    before = "x = os.cpu_count()\nif os.environ.get('SOMEBODY'):\n    y = 1\n"
    options = {"assume": {"x==9": "true"}, "env": {"SOMEBODY": "1"}}
    assert _ask("x == 9", before, **options).notes == ()
