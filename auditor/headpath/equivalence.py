"""Whether a method picks the token that the method which gives logits would.

What the logits processor has for it is the argmax of the logits of the same head and hidden
states. So a method agrees with the one for logits when, on every pair of branches that can hold at
once, the heads, hidden states and biases are the same terms, and what happens afterwards
corresponds: a remap to a remap by the same table, and else only what leaves the argmax alone.

Terms that differ are not yet different values: the answer is ``different`` only where something is
applied on one side and left out on the other, or another part of the model is used; two unlike
functions of the same input stay ``unproven``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import msgspec

from auditor.headpath.differences import Difference, difference
from auditor.headpath.path import Branch, HeadPath, Post, Refusal, show_guard
from auditor.headpath.state import Guard
from auditor.headpath.terms import (
    Changed,
    Constant,
    Item,
    Logits,
    Part,
    Stored,
    Term,
    TopTokens,
    show,
)

Answer = Literal["equivalent", "different", "conditional", "unproven"]

#: What happens to logits that may move the argmax.
_MATTERS = ("remap", "rows", "mask", "change")

#: A condition longer than this is cut in a sentence; the document has it whole.
_READABLE = 80

#: From the worst to the best: one branch that is different makes the whole different.
_ORDER: tuple[Answer, ...] = ("different", "unproven", "conditional", "equivalent")


class Equivalence(msgspec.Struct, frozen=True):
    """The answer, why, and the two terms side by side where they differ."""

    answer: Answer
    reason: str
    logits: str = ""
    tokens: str = ""


def compare(logits: HeadPath, tokens: HeadPath) -> Equivalence:
    """Compare the two head paths, branch by branch."""
    if logits.branches and tokens.refusals and not tokens.branches:
        check = tokens.refusals[0].check
        reason = f"{tokens.method} raises on every way: {check.text} ({check.place})"
        return Equivalence("different", reason, show(logits.branches[0].result))
    verdicts = [
        *_pairs(logits, tokens),
        *_ignored_changes(logits, tokens),
        *_one_sided(logits, tokens),
    ]
    if not verdicts:
        return Equivalence("unproven", "no branch of the one can hold with a branch of the other")
    return min(verdicts, key=lambda verdict: _ORDER.index(verdict.answer))


def _pairs(logits: HeadPath, tokens: HeadPath) -> Iterator[Equivalence]:
    for left in logits.branches:
        for right in tokens.branches:
            if together(left.guards, right.guards):
                yield _compare(left, right, (logits.method, tokens.method))


def together(left: tuple[Guard, ...], right: tuple[Guard, ...]) -> bool:
    """Whether the conditions of two branches can all hold at once."""
    known = {guard.test: guard.holds for guard in left}
    return all(known.get(guard.test, guard.holds) == guard.holds for guard in right)


def _compare(logits: Branch, tokens: Branch, names: tuple[str, str]) -> Equivalence:
    for branch in (logits, tokens):
        if branch.unknown:
            one = branch.unknown[0]
            return Equivalence("unproven", f"{one.reason} at {one.where}")
    left, right = logits.head_term, tokens.head_term
    sides = (show(logits.result), show(tokens.result))
    for term, kind, branch, name in (
        (left, Logits, logits, names[0]),
        (right, TopTokens, tokens, names[1]),
    ):
        if not isinstance(term, kind):
            reason = f"{name} does not go through the logits processor{_where(branch)}"
            return Equivalence("unproven", reason, *sides)
    assert isinstance(left, Logits)
    assert isinstance(right, TopTokens)
    found = _difference(left, right) or _post_difference(logits.post, tokens.post, names)
    if found is not None:
        correlated = found.certain and _may_exclude(logits.guards, tokens.guards)
        if not found.certain or correlated:
            why = " (whether both conditions can hold is not known)" if correlated else ""
            return Equivalence("unproven", f"{found.text}{why}{_where(logits, tokens)}", *sides)
        return Equivalence("different", f"{found.text}{_where(logits, tokens)}", *sides)
    return _on_condition(logits, sides)


def _where(*branches: Branch) -> str:
    """On which condition, for a reason that does not hold everywhere."""
    guards = dict.fromkeys(g for b in branches for g in b.guards if not g.asserted)
    if not guards:
        return ""
    return " if " + " and ".join(map(_short, guards))


def _short(guard: Guard) -> str:
    text = show_guard(guard)
    return text if len(text) <= _READABLE else f"{text[: _READABLE - 1]}…"


def _may_exclude(left: tuple[Guard, ...], right: tuple[Guard, ...]) -> bool:
    """Whether a condition of one side, not asked by the other, may exclude one of the other side.

    That is so where both ask about the same attribute in different words.
    """
    tests = {guard.test for guard in left} & {guard.test for guard in right}
    subjects = [
        {part for guard in side if guard.test not in tests for part in _subjects(guard.test)}
        for side in (left, right)
    ]
    return bool(subjects[0] & subjects[1])


def _subjects(test: Term) -> set[Term]:
    """The attributes that a condition asks about; not their owners, nor what chooses an item."""
    match test:
        case Part():
            return {test}
        case Item(owner=owner):
            return _subjects(owner)
        case _:
            return {subject for part in test.parts() for subject in _subjects(part)}


def _difference(left: Logits, right: TopTokens) -> Difference | None:
    pairs: list[tuple[str, Term | None, Term | None]] = [
        ("logits processors", left.processor, right.processor),
        ("heads", left.head, right.head),
        ("hidden states", left.hidden, right.hidden),
        ("biases", left.bias, right.bias),
    ]
    for what, a, b in pairs:
        certain = difference(a, b)
        if certain is not None:
            shown = " against ".join("none" if term is None else show(term) for term in (a, b))
            return Difference(f"the {what} differ: {shown}", certain)
    return None


def _post_difference(
    logits: tuple[Post, ...], tokens: tuple[Post, ...], names: tuple[str, str]
) -> Difference | None:
    """What happens afterwards, less what leaves the argmax alone."""
    left = [post for post in logits if post.kind in _MATTERS]
    # Logits may be scaled, token ids may not: there, every step counts.
    right = list(tokens)
    for name, side in zip(names, (left, right), strict=True):
        for post in side:
            if post.kind not in ("remap", "rows"):
                text = f"{name} changes the result afterwards: {post.text}"
                return Difference(text, post.kind == "mask")
    for kind in ("remap", "rows"):
        tables = [[post.by for post in side if post.kind == kind] for side in (left, right)]
        if tables[0] != tables[1]:
            shown = [", ".join(show(t) for t in side if t is not None) or "none" for side in tables]
            what = "remaps" if kind == "remap" else kind
            return Difference(f"the {what} differ: {shown[0]} against {shown[1]}", True)
    return None


def _on_condition(logits: Branch, sides: tuple[str, str]) -> Equivalence:
    """Equal, perhaps only where a factor is positive or what is cut off is padding."""
    for post in logits.post:
        if post.kind == "slice":
            text = f"as long as {post.text} drops nothing but padding"
            return Equivalence("conditional", text, *sides)
        if post.kind == "scale" and not _is_positive(post.by):
            return Equivalence("conditional", f"as long as {post.text} is positive", *sides)
    return Equivalence("equivalent", "the same head, hidden states and remap on every branch")


def _is_positive(term: Term | None) -> bool:
    number = term.value if isinstance(term, Constant) else None
    return isinstance(number, int | float) and 0 < number < math.inf


def _ignored_changes(logits: HeadPath, tokens: HeadPath) -> Iterator[Equivalence]:
    """Changes that the method for logits makes on a condition that the capability never looks at.

    Where a change depends on a condition, and the tokens are the same term whether it holds or
    not, they cannot be the argmax of both; which tokens they are need not be known for that.
    """
    for changed in logits.branches:
        change = _masking(changed.result)
        if change is None or changed.unknown:
            continue
        for plain in logits.branches:
            unlike = _differ_by_one(changed, plain)
            if plain.result != change.base or unlike is None:
                continue
            for right in tokens.branches:
                both = (changed, plain)
                if not right.unknown and all(together(b.guards, right.guards) for b in both):
                    reason = (
                        f"{logits.method} changes the logits afterwards: {_change_text(change)}"
                        f" if {_short(unlike)}; {tokens.method} is the same either way"
                    )
                    yield Equivalence("different", reason, show(changed.result), show(right.result))


def _masking(term: Term) -> Changed | Stored | None:
    return term if isinstance(term, Changed | Stored) else None


def _change_text(change: Changed | Stored) -> str:
    if isinstance(change, Changed):
        return f"{change.method}({', '.join(map(show, change.arguments))})"
    return f"[{show(change.index)}] = {show(change.value)}"


def _differ_by_one(left: Branch, right: Branch) -> Guard | None:
    """The one condition that two branches differ in, as the first has it."""
    theirs = {(guard.test, guard.holds) for guard in right.guards}
    unlike = [guard for guard in left.guards if (guard.test, not guard.holds) in theirs]
    return unlike[0] if len(unlike) == 1 else None


def _one_sided(logits: HeadPath, tokens: HeadPath) -> Iterator[Equivalence]:
    """Branches of the method for logits on which the capability raises instead of answering."""
    for refusal, left in refused_alone(tokens, logits):
        reason = f"{tokens.method} raises on one condition: {refusal.check.text}"
        where = f"({refusal.check.place})"
        yield Equivalence("conditional", f"{reason} {where}", show(left.result), "")


def refused_alone(refusing: HeadPath, other: HeadPath) -> Iterator[tuple[Refusal, Branch]]:
    """Ways on which one method raises, each with a way on which the other returns something.

    Left out are ways on which the other makes the same check.
    """
    for refusal in refusing.refusals:
        for branch in other.branches:
            checked = any(check.text == refusal.check.text for check in branch.checks)
            if not checked and together(branch.guards, refusal.guards):
                yield refusal, branch
