"""What a head path is made of: ``rules/head.toml``."""

from __future__ import annotations

from functools import cache

from auditor.ruleset.files import Strict, load, rules_folder


class HeadRule(Strict, frozen=True):
    """``rules/head.toml``: classes that a head path is made of."""

    processors: tuple[str, ...]
    top_tokens_methods: tuple[str, ...]
    norms: tuple[str, ...]
    identities: tuple[str, ...]
    leaves: tuple[str, ...]
    norm_functions: tuple[str, ...]
    norm_names: str
    transparent_decorators: tuple[str, ...]
    views: tuple[str, ...]
    neutral_methods: tuple[str, ...]
    silent_calls: tuple[str, ...]
    pure_functions: tuple[str, ...]
    pure_methods: tuple[str, ...]
    pure_modules: tuple[str, ...]
    silent_contexts: tuple[str, ...]
    conversions: tuple[str, ...]
    chance: tuple[str, ...]
    compilers: tuple[str, ...]
    plain_bases: tuple[str, ...]
    module_attributes: tuple[str, ...]
    processor_inputs: tuple[str, ...]
    processor_sizes: tuple[str, ...]
    processor_factors: tuple[str, ...]
    processor_caps: tuple[str, ...]
    head_sizes: tuple[str, ...]
    handed_on: tuple[str, ...]
    gathers: tuple[str, ...]


@cache
def head_rule() -> HeadRule:
    """What a head path is made of."""
    return load(rules_folder() / "head.toml", HeadRule)
