"""The platforms that are answered for: ``rules/platforms/*.toml``."""

from __future__ import annotations

from functools import cache

import msgspec

from auditor.ruleset.distributions import ModuleRule
from auditor.ruleset.files import Folder, Strict, folders_over, load_all


class PlatformExample(Strict, frozen=True):
    """A condition and its truth on the platform: ``true``, ``false`` or ``undecided``."""

    condition: str
    is_: str = msgspec.field(name="is")


class PlatformRule(Strict, frozen=True):
    """``rules/platforms/*.toml``.

    Attributes:
        attributes: values of plain attributes of ``current_platform``.
        predicates: results of its methods that take no argument.
        requirements: files of the tree that list the platform's distributions; releases have had
            some of them under other names.
        constants: Python literals that dotted names outside the tree stand for there.
        target_device: the value of VLLM_TARGET_DEVICE that builds for it.
        build: what holds while ``setup.py`` runs for it (names to values).
        modules: modules outside the tree that count before what the tree says of them.
        fallback: modules outside the tree for which the tree may say nothing.
        order: position of the column in reports.
    """

    name: str
    summary: str
    order: int
    attributes: dict[str, str]
    predicates: dict[str, bool]
    requirements: tuple[str, ...] = ()
    constants: dict[str, str] = msgspec.field(default_factory=dict)
    target_device: str | None = None
    build: dict[str, bool | str] = msgspec.field(default_factory=dict)
    modules: tuple[ModuleRule, ...] = ()
    fallback: tuple[ModuleRule, ...] = ()
    examples: tuple[PlatformExample, ...] = ()


def platforms() -> tuple[PlatformRule, ...]:
    """Every platform, in the order of the report."""
    return _platforms(folders_over())


@cache
def _platforms(over: tuple[Folder, ...]) -> tuple[PlatformRule, ...]:
    return tuple(sorted(load_all("platforms", PlatformRule, over), key=lambda rule: rule.order))


def platform_names() -> tuple[str, ...]:
    """The known platforms, in the order of reports."""
    return tuple(rule.name for rule in platforms())
