"""Drafts that are written in unusual ways: patched as a person would, or refused, never broken."""

from __future__ import annotations

import ast

import pytest
from trees.lacking import STEP, added, draft, planned, tree
from trees.minivllm import INIT, REGISTRY, registry

from auditor.api import Request, Resources, audit
from codemods.overlay import overlaid
from codemods.plans import Derivation, Plan, Refusal

HEAD = "return self.logits_processor(self.lm_head, hidden_states)"
NORMED = "return self.logits_processor(self.lm_head, self.norm(hidden_states))"
FLAT = f"def compute_logits(self, hidden_states):\n    {HEAD}\n"
METHOD = f"def compute_logits(self, hidden_states):\n    {NORMED}\n"
BASE = "vllm/models/draft/base.py"
IMPORTS, _, CLASS = draft(FLAT).partition("class Draft")


def _base(body: str = METHOD) -> str:
    return draft(body).replace("class Draft", "class Base")


def proven(result: Plan) -> str:
    """The lines that a plan adds to the draft's file, whose every row is proven with them."""
    assert {type(item.outcome) for item in result.items} == {Derivation}
    for family in result.families:
        for content in family.after.values():
            ast.parse(content)
    return added(result)


def test_a_base_of_the_same_name_in_another_file_is_left_alone() -> None:
    own = "from vllm.models.draft.base import Draft as _Draft\n\n\nclass Draft(_Draft):\n    pass\n"
    result = planned(tree({INIT: own, BASE: draft(METHOD)}))
    assert [list(family.after) for family in result.families] == [[INIT]]
    assert "def get_top_tokens" in proven(result)
    assert b"pass" not in result.families[0].after[INIT]


@pytest.mark.parametrize("body", [" pass", "\n    ...", "\n    pass"])
def test_a_class_without_a_body_gets_the_method_as_its_body(body: str) -> None:
    own = f"from vllm.models.draft.base import Base\n\n\nclass Draft(Base):{body}\n"
    table = registry({"DraftModel": ("vllm.models.draft", "Draft")}) + (
        '_TEXT_GENERATION_MODELS = {"T": ("vllm.models.draft.base", "Base")}\n'
    )
    result = planned(tree({INIT: own, BASE: _base(), REGISTRY: table}))
    assert "def get_top_tokens" in proven(result)
    (family,) = result.families
    assert family.after[INIT].startswith(
        b"from vllm.models.draft.base import Base\n\n\nclass Draft(Base):\n"
        b"    def get_top_tokens(self, hidden_states):\n"
    )


def test_two_classes_of_one_name_are_patched_each_in_its_own_way() -> None:
    def inner(body: str) -> str:
        text = draft(body).partition("class Draft")[2]
        return "".join(
            f"    {line}\n" if line else "\n" for line in f"class Draft{text}".split("\n")
        )

    text = f"{IMPORTS}from vllm.platforms import current_platform\n\n"
    text += f"if current_platform.is_cuda():\n{inner(FLAT)}\nelse:\n{inner(METHOD)}"
    result = planned(tree(text))
    forms = {item.platforms[0]: getattr(item.outcome, "form", "") for item in result.items}
    assert forms == {"cuda": "mixin", "rocm": "method"}
    assert "        def get_top_tokens(self, hidden_states):" in proven(result)


def test_the_last_of_two_classes_counts() -> None:
    text = draft(FLAT) + "\n\n" + draft(METHOD)
    (family,) = planned(tree(text)).families
    after = family.after[INIT].decode()
    assert after.index("def get_top_tokens") > after.rindex("class Draft")


CLASHES = {
    "a class": "class LocalArgmaxMixin:\n    pass\n",
    "a variable": "LocalArgmaxMixin = None\n",
}


@pytest.mark.parametrize("before", CLASHES.values(), ids=CLASHES)
def test_where_the_name_of_the_mixin_is_taken_a_method_does_it(before: str) -> None:
    text = proven(planned(tree(draft(FLAT, before=before))))
    assert "def get_top_tokens" in text
    assert "LocalArgmaxMixin" not in text


def test_a_mixin_that_is_imported_by_another_name_is_imported_by_its_own() -> None:
    line = "from vllm.model_executor.models.interfaces import LocalArgmaxMixin"
    text = draft(FLAT).replace(line, f"{line} as Other")
    after = planned(tree(text)).families[0].after[INIT].decode()
    assert "class Draft(LocalArgmaxMixin, nn.Module)" in after
    assert f"{line}\n{line} as Other\n" in after


def test_an_import_goes_after_a_docstring_where_all_other_names_come_by_a_star() -> None:
    text = f'"""Doc."""\nfrom vllm.models.draft.names import *\n\n\nclass Draft{CLASS}'
    result = planned(tree({INIT: text, "vllm/models/draft/names.py": IMPORTS.replace(
        "from vllm.model_executor.models.interfaces import LocalArgmaxMixin\n", "")}))  # fmt: skip
    after = result.families[0].after[INIT].decode()
    assert ast.get_docstring(ast.parse(after)) == "Doc."
    assert "import LocalArgmaxMixin\n" in after


def test_an_import_goes_after_the_future() -> None:
    text = f'"""Doc."""\n\nfrom __future__ import annotations\n\n{draft(FLAT)}'
    text = text.replace("from vllm.model_executor.models.interfaces import LocalArgmaxMixin\n", "")
    result = planned(tree(text))
    assert "+from vllm.model_executor.models.interfaces import LocalArgmaxMixin" in (
        result.families[0].diff.decode()
    )
    compile(result.families[0].after[INIT], INIT, "exec")


SIGNATURES = {
    "positional only": ("self, hidden_states, /", "self, hidden_states, /, spec_step_idx: int = 0"),
    "keyword only": (
        "self, hidden_states, *, more=None",
        "self, hidden_states, spec_step_idx: int = 0, *, more=None",
    ),
    "any keywords": ("self, hidden_states, **kwargs", "self, hidden_states, **kwargs"),
    "any": (
        "self, hidden_states, *args",
        "self, hidden_states, spec_step_idx: int = 0, *args",
    ),
}


@pytest.mark.parametrize(("given", "expected"), SIGNATURES.values(), ids=SIGNATURES)
def test_a_step_goes_among_parameters_of_every_kind(given: str, expected: str) -> None:
    result = planned(tree(draft(f"def compute_logits({given}):\n    {NORMED}\n"), STEP))
    (family,) = result.families
    text = " ".join(family.after[INIT].decode().split())
    assert f"def get_top_tokens({expected}):" in text.replace("( ", "(").replace(", )", ")")


def test_a_long_signature_is_broken_as_the_formatter_does() -> None:
    long = "hidden_states: torch.Tensor, spec_step_idx: int = 0, *, another: int | None = None"
    given = f"def compute_logits(self, {long}) -> torch.Tensor | None:\n    {NORMED}\n"
    assert """
    def get_top_tokens(
        self,
        hidden_states: torch.Tensor,
        spec_step_idx: int = 0,
        *,
        another: int | None = None,
    ) -> torch.Tensor:
""" in planned(tree(draft(given), STEP)).families[0].after[INIT].decode()


NOT_PLAIN = {
    "taken from another class": "compute_logits = Base.compute_logits\n",
    "another method by this name": f"def other(self, hidden_states):\n    {HEAD}\n\n"
    "compute_logits = other\n",
    "asynchronous": f"async {FLAT}",
}


@pytest.mark.parametrize("body", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_a_method_that_is_no_plain_one_is_refused(body: str) -> None:
    given = {INIT: draft(body, before="from vllm.models.draft.base import Base\n"), BASE: _base()}
    outcomes = {item.outcome for item in planned(tree(given)).items}
    assert {one.code for one in outcomes if isinstance(one, Refusal)} == {"unknown-term"}


PLAIN = {
    "a metaclass": draft(
        FLAT, bases="nn.Module, metaclass=Meta", before="class Meta(type):\n    pass\n"
    ),
    "overloads": draft(
        "@overload\ndef compute_logits(self, hidden_states: int): ...\n\n" + METHOD,
        before="from typing import overload\n",
    ),
    "a decorator": draft(f"@torch.inference_mode()\n{METHOD}"),
    "one line": draft(f"def compute_logits(self, hidden_states): {NORMED}\n"),
    "a comment between": draft(f"# before\n{METHOD}# after\n\n# more\nx = 1\n"),
    "in a try": "try:\n"
    + "".join(f"    {line}\n" if line else "\n" for line in draft(METHOD).split("\n"))
    + "except ImportError:\n    raise\n",
}


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_other_ways_to_write_it_are_patched(text: str) -> None:
    one = tree(text)
    result = planned(one)
    proven(result)
    (family,) = result.families
    after = audit(overlaid(one, family.after), Request(), Resources(processes=1))
    assert {row.verdict for row in after.rows} == {"yes"}
    assert not planned(overlaid(one, family.after)).items
