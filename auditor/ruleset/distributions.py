"""Which modules exist, whatever no file of a tree says: ``rules/distributions.toml``."""

from __future__ import annotations

from functools import cache

from auditor.ruleset.files import Strict, load, rules_folder


class ModuleRule(Strict, frozen=True):
    """Whether modules exist on a platform, and why that is so."""

    names: tuple[str, ...]
    exist: bool
    reason: str


class DistributionRule(Strict, frozen=True):
    """``rules/distributions.toml``: the modules that a distribution brings."""

    name: str
    modules: tuple[str, ...]
    reason: str = ""


class VendoredRule(Strict, frozen=True):
    """Python packages that building an extension copies into the tree.

    ``compiled`` says whether a module of the extension's own name exists as well; ``until`` is
    the first release that has the packages in its own tree.
    """

    extension: str
    provides: tuple[str, ...]
    compiled: bool
    until: str = ""


class _Distributions(Strict, frozen=True):
    distribution: tuple[DistributionRule, ...]
    vendored: tuple[VendoredRule, ...]
    generated: tuple[ModuleRule, ...]
    optional: tuple[ModuleRule, ...]


@cache
def distributions() -> tuple[DistributionRule, ...]:
    """Distributions whose modules are not named like them."""
    return load(rules_folder() / "distributions.toml", _Distributions).distribution


@cache
def vendored() -> tuple[VendoredRule, ...]:
    """Packages that come with an extension."""
    return load(rules_folder() / "distributions.toml", _Distributions).vendored


@cache
def generated() -> tuple[ModuleRule, ...]:
    """Modules of the package that building it writes, on every platform."""
    return load(rules_folder() / "distributions.toml", _Distributions).generated


@cache
def optional_modules() -> tuple[ModuleRule, ...]:
    """Modules that no requirement file names, and what holds for them on every platform."""
    return load(rules_folder() / "distributions.toml", _Distributions).optional
