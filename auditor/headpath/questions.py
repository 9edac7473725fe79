"""What an analysis asked of an import run, so that another run that answers the same can share it.

The syntax of a class is the same on every platform; what its names stand for need not be. An
analysis rests on the syntax, and on the values of the names that it looked up: where another
platform gives the same values, it gives the same analysis.
"""

from __future__ import annotations

from collections.abc import Hashable

from auditor.classes import body_namespace, linearise
from auditor.values import (
    UNBOUND,
    Builtin,
    ClassValue,
    Either,
    Foreign,
    Function,
    ModuleValue,
    Value,
)

#: A module, and a dotted name in it.
Question = tuple[str, str]
Answers = dict[Question, Hashable]


def fingerprint(value: Value) -> Hashable:
    """What an analysis can see of a value; equal only where it sees the same."""
    match value:
        case ClassValue():
            return (value.dotted, *map(_member, linearise(value)))
        case Foreign(name=name) | Builtin(name=name):
            return (type(value).__name__, name)
        case Function():
            return ("function", value.module.path, value.facts.name, value.facts.line)
        case ModuleValue():
            return ("module", value.name)
        case Either():
            return ("either", *map(fingerprint, value.values()))
        case _:
            # Of anything else an analysis sees no more than a name (``Expressions._dotted``).
            return ("other", str(getattr(value, "name", "")))


def mentions(asked: Hashable, paths: frozenset[str]) -> bool:
    """Whether a fingerprint holds one of these files."""
    if isinstance(asked, tuple):
        return any(mentions(part, paths) for part in asked)
    return isinstance(asked, str) and asked in paths


def _member(member: Value) -> Hashable:
    if not isinstance(member, ClassValue):
        return fingerprint(member)
    # Decorators that were put off run now, on every run that asks: what they do, and which
    # conditions they leave open, must not rest on which run makes the analysis.
    member.finish()
    names = frozenset(body_namespace(member))
    wild = member.wild and (member.wild.reason, str(member.wild.where), member.wild.text)
    extra = frozenset(
        (name, value is UNBOUND, str(where)) for name, (value, where) in member.extra.items()
    )
    return (member.dotted, member.module.path, member.facts.start, names, extra, wild)
