"""What only one of two methods checks: an assert or a raise that the other does not have.

The logits processor's own methods are compared in the same way, since one of them may refuse a
setting that the other takes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from auditor.headpath.equivalence import refused_alone
from auditor.headpath.path import HeadPath
from auditor.headpath.state import Check
from auditor.headpath.terms import Term
from auditor.headpath.things import Things
from auditor.nodes import nodes_of
from auditor.ruleset.heads import HeadRule
from auditor.values import ClassValue, Place


class OneSided(msgspec.Struct, frozen=True):
    """A check that one method makes and the other does not."""

    method: str
    text: str
    where: Place


def one_sided(logits: HeadPath, tokens: HeadPath) -> tuple[OneSided, ...]:
    """The checks of either method that the other lacks."""
    own = {path.method: _checks(path) for path in (logits, tokens)}
    found: list[OneSided] = []
    for path, other in ((logits, tokens), (tokens, logits)):
        texts = {check.text for check in own[other.method]}
        missing = (check for check in own[path.method] if check.text not in texts)
        found.extend(OneSided(path.method, check.text, check.place) for check in missing)
        for refusal, _ in refused_alone(path, other):
            found.append(OneSided(path.method, refusal.check.text, refusal.check.place))
    return tuple(dict.fromkeys(found))


def _checks(path: HeadPath) -> list[Check]:
    made = [check for branch in path.branches for check in branch.checks]
    return [*made, *(refusal.check for refusal in path.refusals if _is_raise(refusal.check))]


def _is_raise(check: Check) -> bool:
    return check.text.startswith("raise")


def of_processor(things: Things, processor: Term, rule: HeadRule) -> tuple[OneSided, ...]:
    """What the logits processor's top-tokens method refuses that its ``forward`` takes."""
    cls = things.class_of(processor)
    if not isinstance(cls, ClassValue):
        return ()
    forward = things.method(cls, "forward")
    usual = {text for text, _ in _raises(forward[1])} if forward is not None else set()
    found: list[OneSided] = []
    for name in rule.top_tokens_methods:
        method = things.method(cls, name)
        for text, line in _raises(method[1]) if method is not None else ():
            if method is not None and text not in usual:
                where = Place(method[0].module.path, line)
                found.append(OneSided(f"{cls.facts.name}.{name}", text, where))
    return tuple(found)


@lru_cache(maxsize=64)  # the processor is the same for nearly all
def _raises(function: ast.FunctionDef) -> tuple[tuple[str, int], ...]:
    """``raise ValueError if <test>`` for each conditional raise and assert of a function."""
    return tuple(_raised(function))


def _raised(function: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    for node in nodes_of(function):
        match node:
            case ast.If(test=test, body=[*_, ast.Raise(exc=ast.Call(func=func)) as raised]):
                yield f"raise {ast.unparse(func)} if {ast.unparse(test)}", raised.lineno
            case ast.Assert(test=test):
                yield f"assert {ast.unparse(test)}", node.lineno
