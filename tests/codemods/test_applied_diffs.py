"""A diff is tried on the bytes that it is for, by git or without it, before it is given out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping

import pytest
from trees.lacking import draft, planned, tree
from trees.minivllm import INIT

from codemods import plans
from codemods.applying import BY_GIT, BY_OWN, applied, misapplied
from codemods.diff import diff_of
from codemods.plans import Refusal

FLAT = """
def compute_logits(self, hidden_states):
    return self.logits_processor(self.lm_head, hidden_states)
"""
WAYS = [
    pytest.param(BY_GIT, marks=pytest.mark.skipif(shutil.which("git") is None, reason="no git")),
    BY_OWN,
]


def _no_git(_: str) -> None:
    return None


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With git, and without it."""
    if request.param == BY_OWN:
        monkeypatch.setattr("codemods.applying.shutil.which", _no_git)
    return str(request.param)


def test_the_plan_says_who_tried_its_patches(way: str) -> None:
    result = planned(tree(draft(FLAT)))
    assert (len(result.families), result.applied_by) == (1, way)


def _with_another_context(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bytes:
    return re.sub(rb"\n ( *[a-z])", rb"\n \1x", diff_of(before, after), count=1)


def _with_another_line(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bytes:
    return diff_of(before, after).replace(b"+class Draft(Local", b"+class Draft(Total")


@pytest.mark.parametrize("broken", [_with_another_context, _with_another_line])
def test_a_diff_that_gives_something_else_is_not_given_out(
    broken: object, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "diff_of", broken)
    result = planned(tree(draft(FLAT)))
    assert not result.families
    (outcome,) = {item.outcome for item in result.items}
    assert isinstance(outcome, Refusal)
    assert outcome.code == "not-proven"
    assert "the diff" in outcome.reason


OLD = b"".join(b"line %d\n" % n for n in range(40))
CASES = {
    "two hunks": (OLD, OLD.replace(b"line 3\n", b"").replace(b"line 30\n", b"x\ny\n")),
    "at the start": (OLD, b"new\n" + OLD),
    "at the end": (OLD, OLD + b"new\n"),
    "the last newline goes": (OLD, OLD[:-1]),
    "the last newline comes": (OLD[:-1], OLD),
    "no last newline": (OLD[:-1], OLD[:-1].replace(b"line 38", b"x")),
    "carriage returns": (OLD.replace(b"\n", b"\r\n"), (OLD + b"x\n").replace(b"\n", b"\r\n")),
    "a carriage return inside": (b"a\rb\nc\n", b"a\rb\nd\n"),
    "lines like those of a diff": (b"--- a\n@@ -1 +1 @@\n", b"--- a\n+++ b\n@@ -1 +1 @@\n"),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_every_diff_of_ours_applies(before: bytes, after: bytes, way: str) -> None:
    assert misapplied({"a/b.py": before}, {"a/b.py": after}, diff_of({"a/b.py": before},
                      {"a/b.py": after})) is None  # fmt: skip


DIFF = diff_of({"b.py": OLD}, {"b.py": OLD.replace(b"line 20\n", b"x\n")})
BROKEN = {
    "another file": (DIFF.replace(b"b.py", b"c.py"), "there is no c.py"),
    "two names": (DIFF.replace(b"--- a/b", b"--- a/c"), "names more than one"),
    "no head": (DIFF.partition(b"\n")[2], "does not start with a file"),
    "another context": (DIFF.replace(b" line 18", b" line 17"), "is not what the hunk there says"),
    "another place": (DIFF.replace(b"@@ -18,7 +18", b"@@ -19,7 +19"), "is not what the hunk"),
    "another place afterwards": (DIFF.replace(b"+18,7", b"+19,7"), "does not start where it says"),
    "another length": (DIFF.replace(b"-18,7", b"-18,8"), "is not as long as it says"),
    "no hunk": (b"".join(DIFF.splitlines(keepends=True)[:3]), "has no hunk"),
    "a line of nothing": (DIFF.replace(b"+x\n", b"+x\nrest\n"), "that is no part of a hunk"),
    "a hunk twice": (
        DIFF + b"".join(DIFF.splitlines(keepends=True)[3:]), "starts before the one ahead ends"),
}  # fmt: skip


@pytest.mark.parametrize(("diff", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_diff_that_does_not_fit_is_told(diff: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        applied({"b.py": OLD}, diff)
    assert misapplied({"b.py": OLD}, {"b.py": OLD.replace(b"line 20", b"x")}, diff) is not None


def test_only_the_draft_file_is_in_the_patch(way: str) -> None:
    (family,) = planned(tree(draft(FLAT))).families
    assert applied(family.before, family.diff) == family.after
    assert list(family.after) == [INIT]
