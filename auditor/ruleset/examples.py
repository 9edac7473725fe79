"""The tree that examples of rules stand in: ``rules/examples.toml``."""

from __future__ import annotations

from functools import cache

import msgspec

from auditor.ruleset.files import Strict, load, rules_folder


class ExamplesRule(Strict, frozen=True):
    """``rules/examples.toml``: the tree that examples of rules stand in.

    Attributes:
        module: the module of an example.
        class_: its class, which the registry names.
        entry: the key of that entry.
        imports: what stands before an example.
        condition: the module of a condition's example.
        files: the other files, by path.
    """

    module: str
    entry: str
    imports: str
    condition: str
    files: dict[str, str]
    class_: str = msgspec.field(name="class")


@cache
def examples_rule() -> ExamplesRule:
    """The tree that examples of rules stand in."""
    return load(rules_folder() / "examples.toml", ExamplesRule)
