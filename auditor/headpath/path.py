"""The head path: how a method gets from hidden states to logits, or to tokens.

It is read off the term that the method returns on each branch: which head, which hidden states,
which bias, and what happens to the logits afterwards. What happens afterwards is *neutral* when it
cannot change the argmax, a *remap* when it moves draft ids to target ids, else a *change*.
"""

from __future__ import annotations

import msgspec

from auditor.headpath.state import Check, Entered, Guard, Outcome
from auditor.headpath.terms import (
    Apply,
    Changed,
    Constant,
    Global,
    Item,
    Logits,
    Module,
    Operation,
    Param,
    Part,
    Stored,
    Term,
    TopTokens,
    Unknown,
    show,
    unknowns,
    walk,
)
from auditor.values import Place


class Post(msgspec.Struct, frozen=True):
    """What happens to logits (or to tokens) after the head.

    ``kind`` is ``slice``, ``scale``, ``remap``, ``rows`` (some of the rows are taken), ``mask``
    (values set in place) or ``change`` (anything else); ``by`` is the factor of a scale, the table
    of a remap, or the index of the rows.
    """

    kind: str
    by: Term | None
    text: str


class Branch(msgspec.Struct, frozen=True):
    """One way through the method.

    Attributes:
        guards: the conditions on this way.
        head_term: the logits or top tokens that it computes; None where it returns none.
        post: what happens afterwards, in order.
        checks: what it asserts on the way.
        result: the whole term that it returns.
        hops: the calls on the way to the head, outermost first.
        passed: parts of the model that were handed to a method as arguments.
        stored: attributes that it sets to something that depends on a parameter.
        entered: the methods that ``hops`` call.
    """

    guards: tuple[Guard, ...]
    head_term: Logits | TopTokens | None
    post: tuple[Post, ...]
    checks: tuple[Check, ...]
    result: Term
    hops: tuple[Place, ...]
    passed: tuple[Term, ...] = ()
    stored: tuple[Term, ...] = ()
    entered: tuple[Entered, ...] = ()

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """What was not followed on this way."""
        return unknowns(self.result)


class Refusal(msgspec.Struct, frozen=True):
    """One way through a method that raises."""

    guards: tuple[Guard, ...]
    check: Check


class HeadPath(msgspec.Struct, frozen=True):
    """Every way through a method: those that return something, and those that raise."""

    method: str
    branches: tuple[Branch, ...]
    refusals: tuple[Refusal, ...] = ()

    def show(self) -> str:
        """The path as a readable expression; branches are told apart by their guards."""
        texts = dict.fromkeys(_show_branch(branch) for branch in self.branches)
        return " | ".join(texts)


def head_path(method: str, outcomes: tuple[Outcome, ...]) -> HeadPath:
    """The head path of a method from all its ends."""
    branches = [
        _branch(outcome, outcome.value) for outcome in outcomes if outcome.value is not None
    ]
    refusals = [
        Refusal(outcome.state.guards, outcome.state.raised)
        for outcome in outcomes
        if outcome.state.raised is not None
    ]
    return HeadPath(method, tuple(branches), tuple(refusals))


def _branch(outcome: Outcome, result: Term) -> Branch:
    head_term, post = _peel(result)
    if head_term is None and isinstance(result, Module) and not result.label:
        reason = f"what {show(result.module)}(…) does is not followed: its class is not known"
        where = str(result.place) if result.place is not None else ""
        result = Unknown(reason, where, place=result.place)
    state = outcome.state
    stored = tuple(part for part, value in state.stores.items() if step_parameters(value))
    return Branch(
        state.guards,
        head_term,
        post,
        state.checks,
        result,
        state.hops,
        state.passed,
        stored,
        state.entered,
    )


def _peel(term: Term) -> tuple[Logits | TopTokens | None, tuple[Post, ...]]:
    """Take what happens after the head off a term, until the head is reached."""
    post: list[Post] = []
    while not isinstance(term, Logits | TopTokens):
        inner, step = _outermost(term)
        if inner is None:
            return None, tuple(reversed(post))
        post.append(step)
        term = inner
    return term, tuple(reversed(post))


def _outermost(term: Term) -> tuple[Term | None, Post]:
    """The last thing that happened to a term: what it happened to, and how it is classed."""
    match term:
        case Stored(base=base, index=index, value=value) if _has_head(value):
            table = _remap_table(index)
            if table is not None and _is_lowest(base):
                return value, Post("remap", table, show(table))
            return value, Post("change", None, show(term))
        case Operation(name="+", operands=(left, Item(owner=table, index=index))) if left == index:
            return left, Post("remap", table, show(table))
        case Operation(name="*" | "/", operands=(left, right)) if _has_head(left):
            return left, Post("scale", right, show(right))
        case Operation(name="*", operands=(left, right)) if _has_head(right):
            return right, Post("scale", left, show(left))
        case Item(owner=owner, index=index) if _has_head(owner) and _is_padding_slice(index):
            return owner, Post("slice", None, show(index))
        case Item(owner=owner, index=Operation(name="slice") as index) if _has_head(owner):
            return owner, Post("rows", index, show(index))
        case Changed(base=base) if _has_head(base):
            text = f"{term.method}({', '.join(map(show, term.arguments))})"
            return base, Post("mask", None, text)
        case Stored(base=base, index=index, value=value) if _has_head(base):
            return base, Post("mask", None, f"[{show(index)}] = {show(value)}")
        case _:
            inner = next(
                (part for part in walk(term) if isinstance(part, Logits | TopTokens)), None
            )
            return inner, Post("change", None, show(term))


def _has_head(term: Term) -> bool:
    return any(isinstance(part, Logits | TopTokens) for part in walk(term))


def _is_lowest(base: Term) -> bool:
    """Whether ``base`` is a tensor of minus infinity, which no other logit is below."""
    match base:
        case Apply(function=Part(name="new_full"), arguments=(_, fill)):
            return _is_minus_infinity(fill)
        case Apply(function=Global(name="torch.full"), arguments=(_, fill)):
            return _is_minus_infinity(fill)
        case Apply(
            function=Part(name="new_full") | Global(name="torch.full"),
            keywords=keywords,
        ):
            return any(key == "fill_value" and _is_minus_infinity(fill) for key, fill in keywords)
        case Changed(method="fill_", arguments=(fill,)):
            return _is_minus_infinity(fill)
        case _:
            return False


def _is_minus_infinity(term: Term) -> bool:
    match term:
        case Apply(function=Global(name="float"), arguments=(Constant(value=str() as text),)):
            return text.strip().lower() in ("-inf", "-infinity")
        case Operation(name="-", operands=(Global(name="torch.inf" | "math.inf" | "numpy.inf"),)):
            return True
        case Operation(
            name="-",
            operands=(
                Apply(function=Global(name="float"), arguments=(Constant(value=str() as text),)),
            ),
        ):
            return text.strip().lower() in ("inf", "infinity", "+inf", "+infinity")
        case Part(owner=Apply(function=Global(name="torch.finfo")), name="min"):
            return True
        case _:
            return False


def _remap_table(index: Term) -> Term | None:
    """The table of ``[:, arange + table]``: draft ids moved to target ids."""
    match index:
        case Operation(name="tuple", operands=(rows, targets)) if _is_whole(rows):
            match targets:
                case Operation(name="+", operands=(left, Part() as table)) if _is_arange(left):
                    return table
                case Operation(name="+", operands=(Part() as table, right)) if _is_arange(right):
                    return table
    return None


def _is_arange(term: Term) -> bool:
    """Whether ``arange(n)``: each draft id at its own place."""
    match term:
        case Apply(function=Global(name=name), arguments=arguments, keywords=keywords):
            counts = [
                *arguments,
                *(value for key, value in keywords if key in ("start", "end", "step")),
            ]
            from_zero = len(counts) == 1 or (len(counts) == 2 and counts[0] == Constant(0))
            return name.rpartition(".")[2] == "arange" and from_zero and len(counts) < 3
        case _:
            return False


def _is_whole(index: Term) -> bool:
    """Whether an index leaves all rows as they are."""
    nothing = Constant(None)
    return index in (Global("..."), Operation("slice", (nothing, nothing, nothing)))


def _is_padding_slice(index: Term) -> bool:
    """Whether ``[…, :n]`` or ``[:, :n]``: it drops columns at the end of the vocabulary."""
    match index:
        case Operation(name="tuple", operands=(first, Operation(name="slice", operands=last))):
            from_start = isinstance(last[0], Constant) and last[0].value in (None, 0)
            no_step = isinstance(last[2], Constant) and last[2].value is None
            return from_start and _is_whole(first) and no_step
        case _:
            return False


def step_parameters(term: Term) -> frozenset[str]:
    """Parameters of the engine's call that a term depends on."""
    return frozenset(part.name for part in walk(term) if isinstance(part, Param))


def _show_branch(branch: Branch) -> str:
    if branch.unknown:
        return show(branch.unknown[0])
    term = branch.head_term
    if term is None:
        return show(branch.result)
    parts = [f"{post.kind}[{post.text}]" for post in reversed(branch.post)]
    bias = "" if term.bias is None else f" + {show(term.bias)}"
    parts.append(f"{show(term.head)}{bias}")
    parts.append(show(term.hidden))
    if isinstance(term, TopTokens):
        parts.insert(len(branch.post), "argmax")
    text = " ∘ ".join(parts)
    guards = [show_guard(guard) for guard in branch.guards]
    return f"{text} if {' and '.join(guards)}" if guards else text


def show_guard(guard: Guard) -> str:
    """A condition as it holds on a branch: ``table is not None``."""
    match guard.test:
        case Operation(name="is", operands=(left, right)):
            return f"{show(left)} is {'' if guard.holds else 'not '}{show(right)}"
        case test:
            return show(test) if guard.holds else f"not {show(test)}"
