"""Names for head paths that are built alike: ``rules/shapes/*.toml``."""

from __future__ import annotations

from functools import cache
from typing import Literal

from auditor.ruleset.files import Folder, Strict, folders_over, load_all


class ShapeRule(Strict, frozen=True):
    """``rules/shapes/*.toml``: a name for head paths that are built alike.

    A head path has the shape when every way through the method does.

    Attributes:
        order: the first shape that fits, by this number, is the one.
        action: the kind of patch that provides the capability: ``mixin``, ``method``, ``pair``,
            ``none`` where nothing is missing, ``refuse`` where none can be derived.
        fix: what to do, in a sentence.
        head: patterns, one of which the head fits; see ``auditor/headpath/shapes.py``.
        hidden: patterns, one of which the hidden states fit.
        passed: on some way the head must have been handed to an inner method.
        stored: the method must set an attribute to a parameter.
        through: globs, one of which a name that takes part in the hidden states must fit.
        some_post: kinds of post-processing, one of which must occur on some way.
        processor: ``missing`` where some way must not go through the logits processor.
        special: ``missing`` (no method) or ``stub`` (only raises).
        valid: sources of draft models that have the shape.
        invalid: sources that do not.
    """

    name: str
    order: int
    summary: str
    action: Literal["mixin", "method", "pair", "none", "refuse"]
    fix: str
    valid: tuple[str, ...]
    invalid: tuple[str, ...]
    head: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    passed: bool = False
    stored: bool = False
    through: tuple[str, ...] = ()
    some_post: tuple[str, ...] = ()
    processor: Literal["missing"] | None = None
    special: Literal["missing", "stub"] | None = None


def shapes() -> tuple[ShapeRule, ...]:
    """Every shape, the first that fits first."""
    return _shapes(folders_over())


@cache
def _shapes(over: tuple[Folder, ...]) -> tuple[ShapeRule, ...]:
    return tuple(sorted(load_all("shapes", ShapeRule, over), key=lambda rule: rule.order))
