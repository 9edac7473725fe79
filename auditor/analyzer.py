"""Class by platform to its head path, and whether the capability agrees with it.

The method that the capability must agree with (``agrees_with`` of its rule) and the capability
itself are run over terms; equivalence is read off the two head paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from auditor.classes import Found, Open, lookup
from auditor.headpath.bodies import SourceBodies, Syntax
from auditor.headpath.equivalence import Equivalence, compare
from auditor.headpath.path import HeadPath, head_path
from auditor.headpath.symbolic import Symbolic
from auditor.imports import ImportRun
from auditor.rulesdata import Capability, head_rule
from auditor.values import ClassValue, Place


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is known of a class's head.

    Attributes:
        cls: the class.
        logits: the head path of the method that the capability must agree with; None without one.
        tokens: the head path of the capability; None where the class lacks it.
        equivalence: whether the two agree; None where either is missing.
    """

    cls: ClassValue
    logits: HeadPath | None
    tokens: HeadPath | None
    equivalence: Equivalence | None


class Analyzer:
    """Analyses the classes of one import run, each once."""

    def __init__(
        self,
        run: ImportRun,
        syntax: Syntax,
        outside: Mapping[str, Place],
        capability: Capability,
    ) -> None:
        self._bodies = SourceBodies(run, syntax, outside)
        self._capability = capability
        self._known: dict[int, Analysis] = {}

    def analyse(self, cls: ClassValue) -> Analysis:
        """The analysis of a class."""
        if id(cls) not in self._known:
            self._known[id(cls)] = self._analyse(cls)
        return self._known[id(cls)]

    def _analyse(self, cls: ClassValue) -> Analysis:
        symbolic = Symbolic(cls, self._bodies, head_rule())
        agrees = self._capability.agrees_with
        logits = _path(cls, symbolic, agrees) if agrees is not None else None
        tokens = _path(cls, symbolic, self._capability.name)
        agree = compare(logits, tokens) if logits is not None and tokens is not None else None
        return Analysis(cls, logits, tokens, agree)


def _path(cls: ClassValue, symbolic: Symbolic, method: str) -> HeadPath | None:
    """The head path of a method that the class has, or may have."""
    if not isinstance(lookup(cls, method), Found | Open):
        return None
    return head_path(method, symbolic.run(method))
