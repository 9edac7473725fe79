"""What is known of a class's head: two head paths, and what follows from them."""

from __future__ import annotations

import msgspec

from auditor.headpath.checks import OneSided
from auditor.headpath.conditions import Premise
from auditor.headpath.equivalence import Equivalence
from auditor.headpath.norms import Convention
from auditor.headpath.path import HeadPath
from auditor.ruleset.shapes import ShapeRule
from auditor.values import ClassValue


class Analysis(msgspec.Struct, frozen=True):
    """What is known of a class's head.

    Attributes:
        cls: the class.
        logits: the head path of the method that the capability must agree with; None without one.
        tokens: the head path of the capability; None where the class lacks it.
        shape: the rule that ``logits`` fits; None where none does, or it could not be followed.
        equivalence: whether the two agree; None where either is missing.
        premises: what their equality rests on beside the two terms.
        checks: what only one of the two methods, or of the processor's two, checks.
        convention: what ``forward`` returns normed or raw, against what ``logits`` applies.
        first: how the terms of both methods name their first parameter.
    """

    cls: ClassValue
    logits: HeadPath | None
    tokens: HeadPath | None
    shape: ShapeRule | None
    equivalence: Equivalence | None
    premises: tuple[Premise, ...] = ()
    convention: Convention | None = None
    checks: tuple[OneSided, ...] = ()
    first: str | None = None

    @property
    def shape_name(self) -> str | None:
        """The shape's name; ``unnamed`` where none fits; None where the path is not known."""
        if self.shape is not None:
            return self.shape.name
        known = self.logits is not None and not any(b.unknown for b in self.logits.branches)
        return "unnamed" if known else None
