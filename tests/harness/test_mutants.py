"""Each fault is the one that it says, in a method that is otherwise as it was."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from codemods.harness.mutants import distinct, mutants_of

STEPPED = """
class Draft:
    def get_top_tokens(self, hidden_states, spec_step_idx: int = 0):
        '''What it does.'''
        layer = self.layers[spec_step_idx]
        hidden_states = layer.norm(hidden_states)
        return self.logits_processor.get_top_tokens(layer.head, hidden_states)
"""
INLINE = """
class Draft:
    def get_top_tokens(self, hidden_states):
        return self.logits_processor.get_top_tokens(self.lm_head, self.norm(hidden_states))
"""
MAPPED = """
class Mixin:
    def get_top_tokens(self, hidden_states):
        top = self.logits_processor.get_top_tokens(self.lm_head, hidden_states)
        table = self.draft_id_to_target_id
        return top if table is None else top + table[top]
"""
FORWARDED = """
class Draft:
    def get_top_tokens(self, hidden_states, spec_step_idx: int = 0):
        return self.model.get_top_tokens(hidden_states, spec_step_idx)
"""


def faults(source: str, cls: str = "a.Draft", step: str = "spec_step_idx") -> dict[str, str]:
    """The lines of each mutant by its fault."""
    found = mutants_of(dedent(source).encode(), cls, "get_top_tokens", step)
    return {mutant.fault: mutant.source for mutant in found}


def test_the_transform_before_the_head_is_left_out_as_a_statement_and_in_the_call() -> None:
    assert "layer.norm" not in faults(STEPPED)["transform dropped"]
    assert "(self.lm_head, hidden_states)" in faults(INLINE, step="")["transform dropped"]


TRANSFORMS = {
    "hidden_states, more = self.norm(hidden_states)\nself.note(more)": "_, more = self.norm(",
    "if self.norm is not None:\n    hidden_states = self.norm(hidden_states)": "        pass\n",
    "hidden_states: Tensor = self.norm(hidden_states)": "    pass\n",
}


@pytest.mark.parametrize("statement", TRANSFORMS)
def test_a_transform_in_another_form_is_left_out_too(statement: str) -> None:
    call = "return self.logits_processor.get_top_tokens(self.lm_head, hidden_states)"
    body = indent(f"{statement}\n{call}", "        ")
    source = f"class Draft:\n    def get_top_tokens(self, hidden_states):\n{body}\n"
    mutant = faults(source, step="")["transform dropped"]
    assert TRANSFORMS[statement] in mutant
    assert "    hidden_states = " not in mutant
    compile(mutant, "mutant", "exec")


def test_a_transform_in_an_argument_by_name_is_left_out_too() -> None:
    source = INLINE.replace("self.norm(hidden_states)", "hidden_states=self.norm(hidden_states)")
    assert "hidden_states=hidden_states)" in faults(source, step="")["transform dropped"]


def test_a_head_that_takes_its_input_as_it_is_has_no_transform_to_drop() -> None:
    assert "transform dropped" not in faults(MAPPED, "a.Mixin")
    assert "transform dropped" not in faults(FORWARDED)


@pytest.mark.parametrize("source", [STEPPED, FORWARDED])
def test_the_step_is_ignored_or_another(source: str) -> None:
    found = faults(source)
    assert "spec_step_idx = 0\n" in found["step ignored"]
    assert "spec_step_idx = spec_step_idx + 1" in found["another step"]
    first = found["step ignored"].splitlines()
    assert first.index("    spec_step_idx = 0") == (2 if "What it does" in source else 1)


def test_without_a_step_that_matters_none_is_mistaken() -> None:
    assert not {"step ignored", "another step"} & faults(STEPPED, step="").keys()
    assert not {"step ignored", "another step"} & faults(INLINE).keys()


def test_the_remap_is_forgotten() -> None:
    mutant = faults(MAPPED, "a.Mixin")["remap forgotten"]
    assert mutant.splitlines()[-1] == "    return top if table is None else top"
    assert "remap forgotten" not in faults(STEPPED)


def test_a_remap_in_place_is_forgotten() -> None:
    source = MAPPED.replace("return top if table is None else top + table[top]",
                            "top += table[top]\n        return top")  # fmt: skip
    assert "table[top]" not in faults(source, "a.Mixin")["remap forgotten"]


def test_any_method_can_give_another_token() -> None:
    assert "^ 1" in faults(FORWARDED)["another token"]


def test_a_method_that_is_not_there_has_no_mutants() -> None:
    assert not faults(STEPPED, "a.Other")
    assert not faults("class Draft:\n    pass\n")
    assert not faults("class Draft(:\n")


def test_each_mutant_counts_once() -> None:
    found = list(mutants_of(dedent(STEPPED).encode(), "a.Draft", "get_top_tokens", ""))
    assert len(distinct([*found, *found])) == len(found)
