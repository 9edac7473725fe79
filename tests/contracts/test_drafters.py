"""What a class that drafts calls on its model, and from where."""

from __future__ import annotations

import ast

import pytest
from trees.engine import CLASSES, DRAFTERS, contracts

from auditor.contracts.drafters import Drafter, calls_in


def _drafter(name: str, classes: str = CLASSES) -> Drafter:
    found = contracts({DRAFTERS: classes})
    (drafter,) = [one for one in found.drafters if one.cls.name == name]
    return drafter


def _forms(drafter: Drafter) -> list[str]:
    return [call.form for call in drafter.calls]


def test_a_call_of_a_base_counts_for_the_class() -> None:
    drafter = _drafter("Single")
    assert _forms(drafter) == ["get_top_tokens(hidden_states)"]
    assert drafter.calls[0].cls == "Base"
    assert drafter.guarded


def test_a_method_that_is_overridden_is_not_reached() -> None:
    assert _forms(_drafter("Many")) == [
        "get_top_tokens(hidden_states, spec_step_idx=step)",
        "compute_logits(hidden_states, spec_step_idx=step)",
    ]


def test_a_guard_that_is_overridden_does_not_guard() -> None:
    assert not _drafter("Beta").guarded
    supers = CLASSES.replace(
        "class Beta(Base):\n    def load_model(self):\n        pass",
        "class Beta(Base):\n    def load_model(self):\n        super().load_model()",
    )
    assert _drafter("Beta", supers).guarded


def test_a_method_that_nothing_calls_does_not_count() -> None:
    silent = CLASSES.replace("class Single(Base):\n    pass", "class Single(Base):\n"
                             "    def propose(self, hidden_states):\n"
                             "        return self.model(hidden_states)")  # fmt: skip
    assert _forms(_drafter("Single", silent)) == []
    handed = silent.replace("return self.model(hidden_states)", "return run(self.sample)")
    assert _forms(_drafter("Single", handed)) == ["get_top_tokens(hidden_states)"]


def test_a_base_that_is_not_found_leaves_it_open() -> None:
    drafter = _drafter("Single", CLASSES.replace("class Base:", "class Base(Somewhere):"))
    assert "the base Somewhere" in drafter.open


RECEIVERS = [
    ("self.model.get_top_tokens(x)", "self.model"),
    ("self.model.part.get_top_tokens(x)", "self.model.part"),
    ("model = self.model\n    model.get_top_tokens(x)", "self.model"),
    ("part = self.model.part\n    part.get_top_tokens(x)", "self.model.part"),
    ("m = self.model\n    p = m.part\n    p.get_top_tokens(x)", "self.model.part"),
    ("model = choose()\n    model.get_top_tokens(x)", "model"),
    ("model = self.model\n    model = other\n    model.get_top_tokens(x)", "model"),
]


@pytest.mark.parametrize(("body", "receiver"), RECEIVERS)
def test_a_local_name_is_what_it_was_assigned(body: str, receiver: str) -> None:
    (call,) = calls_in(ast.parse(f"def f(self, x):\n    {body}"), "f.py", ("get_top_tokens",))
    assert call.receiver == receiver


FORMS = [
    ("x", 1, (), False, False),
    ("x, y", 2, (), False, False),
    ("x, step=y", 1, ("step",), False, False),
    ("*x, step=y", 0, ("step",), True, False),
    ("x, **y", 1, (), False, True),
]


@pytest.mark.parametrize(("given", "positional", "keywords", "starred", "unpacked"), FORMS)
def test_the_form_of_a_call_is_kept(
    given: str, positional: int, keywords: tuple[str, ...], starred: bool, unpacked: bool
) -> None:
    (call,) = calls_in(ast.parse(f"self.model.m({given})"), "f.py", ("m",))
    assert (call.positional, call.keywords) == (positional, keywords)
    assert (call.starred, call.unpacked) == (starred, unpacked)
    assert call.form == f"m({given})"
