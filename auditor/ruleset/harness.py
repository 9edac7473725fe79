"""With what a generated test builds models: ``rules/harness.toml``."""

from __future__ import annotations

from functools import cache

from auditor.ruleset.files import Strict, load, rules_folder


class FieldRule(Strict, frozen=True):
    """Configuration fields by a glob, and the constant of a generated test that stands for them."""

    name: str
    constant: str


class ArgumentsRule(Strict, frozen=True):
    """Arguments of constructors that a part that stands alone does without."""

    dropped: tuple[str, ...]


class HarnessRule(Strict, frozen=True):
    """``rules/harness.toml``: with what a generated test builds the parts of a draft model."""

    fields: tuple[FieldRule, ...]
    constants: dict[str, int | float]
    arguments: ArgumentsRule


@cache
def harness_rule() -> HarnessRule:
    """With what generated tests build models."""
    return load(rules_folder() / "harness.toml", HarnessRule)
