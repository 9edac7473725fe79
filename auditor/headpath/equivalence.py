"""Whether ``get_top_tokens`` picks the token that ``compute_logits`` would.

``get_top_tokens`` of the logits processor is the argmax of the logits of the same head and hidden
states. So a method agrees with ``compute_logits`` when, on every pair of branches that can hold at
once, the heads, hidden states and biases are the same terms, and what happens afterwards
corresponds: a remap to a remap by the same table, and else only what leaves the argmax alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from auditor.headpath.path import Branch, HeadPath, Post
from auditor.headpath.state import Guard
from auditor.headpath.terms import Constant, Logits, Term, TopTokens, show

_NO_PROCESSOR = "{} does not go through the logits processor"

Answer = Literal["equivalent", "different", "conditional", "unproven"]


@dataclass(frozen=True, slots=True)
class Equivalence:
    """The answer, why, and the two terms side by side where they differ."""

    answer: Answer
    reason: str
    logits: str = ""
    tokens: str = ""


def compare(logits: HeadPath, tokens: HeadPath) -> Equivalence:
    """Compare the two head paths, branch by branch."""
    verdicts = [
        _compare(left, right)
        for left in logits.branches
        for right in tokens.branches
        if _together(left.guards, right.guards)
    ]
    if not verdicts:
        return Equivalence("unproven", "no branch of the one can hold with a branch of the other")
    for answer in ("different", "unproven", "conditional"):
        for verdict in verdicts:
            if verdict.answer == answer:
                return verdict
    return verdicts[0]


def _together(left: tuple[Guard, ...], right: tuple[Guard, ...]) -> bool:
    """Whether the conditions of two branches can all hold at once."""
    known = {guard.test: guard.holds for guard in left}
    return all(known.get(guard.test, guard.holds) == guard.holds for guard in right)


def _compare(logits: Branch, tokens: Branch) -> Equivalence:
    for branch in (logits, tokens):
        if branch.unknown:
            one = branch.unknown[0]
            return Equivalence("unproven", f"{one.reason} at {one.where}")
    left, right = logits.head_term, tokens.head_term
    sides = (show(logits.result), show(tokens.result))
    if not isinstance(left, Logits):
        return Equivalence(
            "unproven", "compute_logits does not go through the logits processor", *sides
        )
    if not isinstance(right, TopTokens):
        return Equivalence(
            "unproven", "get_top_tokens does not go through the logits processor", *sides
        )
    difference = _difference(left, right) or _post_difference(logits.post, tokens.post)
    if difference is not None:
        return Equivalence("different", difference, *sides)
    return _on_condition(logits, sides)


def _difference(left: Logits, right: TopTokens) -> str | None:
    pairs: list[tuple[str, Term | None, Term | None]] = [
        ("logits processors", left.processor, right.processor),
        ("heads", left.head, right.head),
        ("hidden states", left.hidden, right.hidden),
        ("biases", left.bias, right.bias),
    ]
    for what, a, b in pairs:
        if a != b:
            shown = " against ".join("none" if term is None else show(term) for term in (a, b))
            return f"the {what} differ: {shown}"
    return None


def _post_difference(logits: tuple[Post, ...], tokens: tuple[Post, ...]) -> str | None:
    """What happens afterwards, less what leaves the argmax alone."""
    left = [post for post in logits if post.kind in ("remap", "change")]
    right = [post for post in tokens if post.kind in ("remap", "change")]
    for post in (*left, *right):
        if post.kind == "change":
            where = "compute_logits" if post in left else "get_top_tokens"
            return f"{where} changes the result afterwards: {post.text}"
    tables = [[post.by for post in side] for side in (left, right)]
    if tables[0] != tables[1]:
        shown = [", ".join(show(t) for t in side if t is not None) or "none" for side in tables]
        return f"the remaps differ: {shown[0]} against {shown[1]}"
    return None


def _on_condition(logits: Branch, sides: tuple[str, str]) -> Equivalence:
    """Equal, perhaps only where a factor is positive."""
    for post in logits.post:
        if post.kind == "scale" and not _is_positive(post.by):
            return Equivalence("conditional", f"as long as {post.text} is positive", *sides)
    return Equivalence("equivalent", "the same head, hidden states and remap on every branch")


def _is_positive(term: Term | None) -> bool:
    return isinstance(term, Constant) and isinstance(term.value, int | float) and term.value > 0
