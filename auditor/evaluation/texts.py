"""What the text of a tree says by itself: the same on every platform, and each time it is run."""

from __future__ import annotations

from collections.abc import Mapping

from auditor import facts as f
from auditor.evaluation.once import Once
from auditor.evaluation.summaries import bindings
from auditor.evaluation.touches import Text, text_of

Methods = Mapping[str, tuple[f.Func, ...]]


class Texts:
    """Answers that rest on the facts of one node alone."""

    def __init__(self) -> None:
        #: What a function says that it changes.
        self.changes: Once[f.FunctionFacts, Text] = Once(text_of)
        #: The names that a function binds; see :func:`auditor.evaluation.summaries.bindings`.
        self.bindings: Once[f.FunctionFacts, tuple[tuple[str, bool], ...]] = Once(
            lambda facts: tuple(bindings(facts.body))
        )
        #: Their names alone.
        self.local: Once[f.FunctionFacts, frozenset[str]] = Once(
            lambda facts: frozenset([name for name, _ in self.bindings.of(facts)])
        )
        #: The functions that a class body defines at its top level, by name.
        self.methods: Once[f.Class, Methods] = Once(_methods)


def _methods(facts: f.Class) -> Methods:
    found: dict[str, tuple[f.Func, ...]] = {}
    for stmt in facts.body:
        if isinstance(stmt, f.Func):
            found[stmt.name] = (*found.get(stmt.name, ()), stmt)
    return found
