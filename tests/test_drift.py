from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from trees.drifting import (
    BARE,
    BOTH_NORMED,
    DRAFT,
    ENTRY,
    INTERFACES,
    MIXED,
    NORMED,
    OTHER,
    PAIR,
    REGISTRY,
    REWRITTEN,
    WRAPPED,
    tree,
)
from trees.minivllm import BASE, coverage, line_of

from auditor import changes
from auditor.api import Request
from auditor.changes import FAILING, KINDS, Change, Drift
from auditor.drift import drift, kinds_of

Tree = dict[str, str]
CUDA = Request(platforms=("cuda",))


def drifted(before: Tree, after: Tree, request: Request = CUDA, **how: Any) -> Drift:
    return drift(coverage(before, request), coverage(after, request), **how)


def only(document: Drift) -> Change:
    (change,) = document.changes
    return change


def kinds(document: Drift) -> list[str]:
    return [change.kind for change in document.changes]


# ---- what an edit does ----------------------------------------------------------------------


def test_a_method_that_is_dropped_is_lost() -> None:
    change = only(drifted(tree(PAIR), tree(BARE)))
    assert (change.kind, change.before, change.after, change.failing) == ("lost", "yes", "no", True)
    assert (change.architecture, change.platform) == ("DraftModel", "cuda")
    assert (change.path, change.line) == (DRAFT, line_of(tree(BARE), DRAFT, "class Draft"))
    assert change.severity == "error"


def test_a_method_that_is_added_is_gained() -> None:
    change = only(drifted(tree(BARE), tree(PAIR)))
    assert (change.kind, change.before, change.after, change.failing) == (
        "gained", "no", "yes", False,
    )  # fmt: skip
    assert (change.path, change.line) == (DRAFT, line_of(tree(), DRAFT, "def get_top_tokens"))


def test_a_base_that_drops_the_method_is_where_to_look() -> None:
    sub = "from vllm.model_executor.models.draft import Draft\n\nclass Sub(Draft):\n    pass\n"
    entries = {"SubModel": ("other", "Sub")}
    before = {**tree(PAIR, **entries), OTHER: sub}
    change = only(drifted(before, {**tree(BARE, **entries), OTHER: sub}))
    assert change.kind == "lost"
    assert (change.path, change.line) == (DRAFT, line_of(tree(BARE), DRAFT, "class Draft"))


@pytest.mark.parametrize("before", [PAIR, MIXED])
def test_a_norm_in_compute_logits_alone_is_the_silent_change(before: str) -> None:
    after = before.replace("(self.lm_head, hidden", "(self.lm_head, self.norm(hidden", 1)
    after = after.replace("hidden_states)\n", "hidden_states))\n", 1)
    document = drifted(tree(before), tree(after))
    (change,) = [one for one in document.changes if one.kind == "silent"]
    assert change.failing
    assert (change.before, change.after) == ("lm_head", "lm_head ∘ norm")
    assert (change.verdict_before, change.verdict_after) == ("yes", "unsafe")
    assert change.also == ("unsafe",)
    assert change.path == DRAFT
    assert change.line == line_of(tree(after), DRAFT, "def compute_logits")
    assert [one.code for one in document.changes if one.kind == "finding"] == ["SD201"]


def test_of_two_findings_of_a_code_the_one_that_is_new_is_told() -> None:
    before = coverage(tree(NORMED), CUDA)
    old = next(finding for finding in before.findings if finding.code == "SD201")
    new = msgspec.structs.replace(old, message="another", line=99)
    after = msgspec.structs.replace(before, findings=(*before.findings, new))
    change = only(drift(before, after))
    assert (change.kind, change.before, change.after) == ("finding", "1", "2")
    assert (change.line, change.message) == (99, "SD201, 2 instead of 1: another")


def test_where_the_methods_hand_on_the_place_is_where_the_edit_is() -> None:
    after = WRAPPED.replace("(self.lm_head, hid", "(self.lm_head, self.norm(hid", 1)
    after = after.replace("hidden_states)\n", "hidden_states))\n", 1)
    document = drifted(tree(WRAPPED), tree(after))
    (change,) = [one for one in document.changes if one.kind == "silent"]
    inner = line_of(tree(after), DRAFT, "self.norm(hidden_states)") - 1
    assert (change.path, change.line) == (DRAFT, inner)


def test_a_method_that_hands_on_to_one_that_is_dropped_is_unsafe() -> None:
    inner, outer = WRAPPED.split("class Draft")
    after = f"{inner.split('    def get_top_tokens')[0]}\n\nclass Draft{outer}"
    document = drifted(tree(WRAPPED), tree(after))
    change = document.changes[0]
    assert (change.kind, change.before, change.after, change.failing) == (
        "unsafe", "yes", "unsafe", True,
    )  # fmt: skip
    assert (change.path, change.line) == (DRAFT, line_of(tree(after), DRAFT, "def get_top_tokens"))
    assert "Inner has no get_top_tokens" in change.message


def test_the_silent_change_fails_by_the_verdict_that_it_brings_too() -> None:
    assert drifted(tree(PAIR), tree(NORMED), fail_on=["unsafe"]).failing
    assert not drifted(tree(PAIR), tree(NORMED), fail_on=["lost"]).failing


def test_a_norm_in_both_methods_changes_the_head_path_and_nothing_else() -> None:
    change = only(drifted(tree(PAIR), tree(BOTH_NORMED)))
    assert (change.kind, change.failing) == ("head-path", False)
    assert "get_top_tokens with it" in change.message


def test_what_is_proven_to_agree_all_the_same_is_not_silent() -> None:
    sliced = PAIR.replace("return self.logits_processor(", "logits = self.logits_processor(", 1)
    sliced = sliced.replace("hidden_states)\n", "hidden_states)\n        return logits * 2.0\n", 1)
    change = only(drifted(tree(PAIR), tree(sliced)))
    assert (change.kind, change.verdict_after) == ("head-path", "yes")
    assert "still agrees" in change.message


def test_a_method_that_changes_alone_is_told() -> None:
    after = PAIR.replace("get_top_tokens(self.lm_head, hid", "get_top_tokens(self.norm, hid")
    found = kinds(drifted(tree(PAIR), tree(after)))
    assert {"unsafe", "method-path"} <= set(found)
    assert "silent" not in found


def test_a_class_of_another_name_is_moved() -> None:
    after = tree(PAIR.replace("class Draft", "class Renamed"), DraftModel=("draft", "Renamed"))
    change = only(drifted(tree(PAIR), after))
    assert (change.kind, change.failing) == ("moved", False)
    assert change.after == "vllm.model_executor.models.draft.Renamed"
    assert (change.path, change.line) == (DRAFT, line_of(after, DRAFT, "class Renamed"))


def test_a_class_in_another_file_is_moved_and_its_own_method_with_it() -> None:
    after = {**tree("", DraftModel=("other", "Draft")), OTHER: PAIR}
    change = only(drifted(tree(PAIR), after))
    assert (change.kind, change.path) == ("moved", OTHER)


def test_a_module_that_moves_below_a_head_is_no_change_of_the_head() -> None:
    """Its class is in another file; what the class is called has not changed."""
    shift, models = "import torch.nn as nn\n\nclass Shift(nn.Module):\n    pass\n", OTHER
    shifting = BOTH_NORMED.replace("RMSNorm(8)", "Shift()")
    before = {
        **tree(f"from vllm.model_executor.models.other import Shift\n{shifting}"),
        models: shift,
    }
    after = {
        **tree(f"from vllm.model_executor.models.shifts import Shift\n{shifting}"),
        models.replace("other", "shifts"): shift,
    }
    assert not drifted(before, after).changes
    other = {path: text.replace("Shift", "Scale") for path, text in after.items()}
    assert kinds(drifted(before, other)) == ["head-path"]


def test_a_method_that_another_class_provides_has_another_owner() -> None:
    change = only(drifted(tree(PAIR), tree(MIXED)))
    assert (change.kind, change.failing) == ("owner", False)
    assert change.after == "vllm.model_executor.models.interfaces.LocalArgmaxMixin"
    assert (change.path, change.line) == (
        INTERFACES,
        line_of({INTERFACES: BASE[INTERFACES]}, INTERFACES, "def get_top_tokens"),
    )


@pytest.mark.parametrize("after", [REWRITTEN, f"\n\n# moved down\n{PAIR}", PAIR])
def test_what_is_only_written_otherwise_is_no_change(after: str) -> None:
    assert drifted(tree(PAIR), tree(after)).changes == ()


# ---- entries --------------------------------------------------------------------------------


def test_a_new_entry_without_the_method_fails() -> None:
    entries = {"DraftModel": ENTRY, "NewModel": ("other", "Draft")}
    before = {**tree(PAIR), OTHER: BARE}
    after = {**tree(PAIR, **entries), OTHER: BARE}
    change = only(drifted(before, after))
    assert (change.kind, change.before, change.after) == ("added-without", None, "no")
    assert change.failing
    assert (change.path, change.line) == (REGISTRY, line_of(after, REGISTRY, "NewModel"))


def test_a_new_entry_with_the_method_and_one_that_is_gone_are_told() -> None:
    before = tree(PAIR, DraftModel=ENTRY, Old=ENTRY)
    added, gone = drifted(before, tree(PAIR, DraftModel=ENTRY, New=ENTRY)).changes
    assert (added.kind, added.after, added.failing) == ("added", "yes", False)
    assert (gone.kind, gone.before, gone.after, gone.failing) == ("removed", "yes", None, False)
    assert (gone.side, gone.path, gone.line) == (
        "before",
        REGISTRY,
        line_of(before, REGISTRY, "Old"),
    )


def test_a_class_that_cannot_be_imported_any_more_is_lost_too() -> None:
    after = tree(f"import deep_nonsense\n{PAIR}")
    request = Request(platforms=("cuda",), without_modules=("deep_nonsense",))
    change = only(drifted(tree(PAIR), after, request))
    assert (change.kind, change.after, change.also) == ("unimportable", "import", ("lost",))
    assert change.failing
    assert (change.path, change.line) == (DRAFT, line_of(after, DRAFT, "import deep_nonsense"))
    again = only(drifted(after, tree(PAIR), request))
    assert (again.kind, again.failing) == ("importable", False)


def test_what_cannot_be_said_any_more_is_told_and_listed() -> None:
    open_ = f"import os\nif os.environ.get('VLLM_X'):\n    raise ImportError\n{PAIR}"
    after = tree(open_.replace("if os.environ.get('VLLM_X')", "if unknown_thing()"))
    after[DRAFT] = after[DRAFT].replace("import os", "from elsewhere import unknown_thing")
    document = drifted(tree(PAIR), after)
    change = only(document)
    assert (change.kind, change.before, change.after) == ("undecided", "yes", "?")
    (item,) = document.undecided
    assert (item.side, item.architecture, item.platform) == ("after", "DraftModel", "cuda")


# ---- the document ---------------------------------------------------------------------------


def test_the_document_round_trips_and_fits_its_schema() -> None:
    document = drifted(tree(PAIR), tree(NORMED, DraftModel=ENTRY, New=ENTRY))
    data = changes.to_json(document)
    assert changes.from_json(data) == document
    assert changes.to_json(changes.from_json(data)) == data
    jsonschema.validate(msgspec.json.decode(data), changes.json_schema())
    fixed = {"kind", "architecture", "platform", "before", "after", "failing"}
    assert all(fixed <= change.keys() for change in msgspec.json.decode(data)["changes"])


def test_every_kind_has_a_meaning_and_every_default_is_a_kind() -> None:
    (names,) = [field.type for field in msgspec.structs.fields(Change) if field.name == "kind"]
    assert set(KINDS) == set(names.__args__)
    assert set(FAILING) <= set(KINDS)


@pytest.mark.parametrize(
    ("was", "verdict", "kinds"),
    [
        ("yes", "no", ["lost"]),
        ("yes", "stub", ["lost"]),
        ("no", "yes?", ["gained"]),
        ("yes", "yes?", ["verdict"]),
        ("unsafe", "yes", ["verdict"]),
        ("yes?", "unsafe", ["unsafe"]),
        ("no", "unsafe", ["unsafe", "gained"]),
        ("yes", "absent", ["unimportable", "lost"]),
        ("no", "import", ["unimportable"]),
        ("import", "absent", ["verdict"]),
        ("import", "no", ["importable"]),
        ("import", "unsafe", ["unsafe", "importable", "gained"]),
        ("yes", "?", ["undecided"]),
        ("?", "unsafe", ["unsafe", "decided"]),
        ("?", "no", ["decided"]),
        ("no", "stub", ["verdict"]),
    ],
)
def test_the_kind_of_a_change_of_verdict(was: str, verdict: str, kinds: list[str]) -> None:
    assert list(kinds_of(was, verdict)) == kinds
