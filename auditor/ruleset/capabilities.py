"""What the engine probes a model for: ``rules/capabilities/*.toml``."""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec

from auditor.errors import RuleError
from auditor.ruleset.files import Folder, Strict, folders_over, load_all
from auditor.ruleset.target import Flag, target


class GuardRule(Strict, frozen=True):
    """Where the engine asks a model.

    Attributes:
        search: the folder below which it is looked for.
        functions: names of functions of the tree that ask for it, given a model.
    """

    search: str
    functions: tuple[str, ...] = ()


class WithoutRule(Strict, frozen=True):
    """What the engine does with a model that lacks a capability, and the same in a sentence."""

    does: Literal["raises", "falls back", "skips"]
    text: str


class Capability(Strict, frozen=True):
    """``rules/capabilities/*.toml``: something that the engine probes a model for.

    Attributes:
        name: what it is called on the command line.
        summary: what a model with it can do.
        registry: the table or tables whose entries are asked, as ``module.NAME``.
        without: what follows where a model lacks it.
        attribute: what is probed; the name itself unless given.
        part: the attribute of the model that is asked in its stead (``model`` for
            ``hasattr(draft.model, …)``).
        model: whether the draft or the target is asked.
        agrees_with: the method that it must pick the same token as; without one, ``hasattr``
            alone decides.
        mixin: the class that provides it to whoever inherits it.
        flag: the setting that makes the engine ask.
        guard: where the engine asks.
        verdicts: other words for a cell than the usual ones.
        valid: sources with a class ``Draft`` that has it.
        invalid: sources with one that lacks it.
    """

    name: str
    summary: str
    registry: str | tuple[str, ...]
    without: WithoutRule
    attribute: str = ""
    part: str | None = None
    model: Literal["draft", "target"] = "draft"
    agrees_with: str | None = None
    mixin: str | None = None
    flag: Flag | None = None
    guard: GuardRule | None = None
    verdicts: dict[str, str] = msgspec.field(default_factory=dict)
    valid: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()

    @property
    def probed(self) -> str:
        """The attribute that ``hasattr`` is asked for."""
        return self.attribute or self.name

    @property
    def tables(self) -> tuple[str, ...]:
        """The registry tables."""
        return (self.registry,) if isinstance(self.registry, str) else self.registry


def capabilities() -> tuple[Capability, ...]:
    """Every capability, by name."""
    return _capabilities(folders_over())


@cache
def _capabilities(over: tuple[Folder, ...]) -> tuple[Capability, ...]:
    rules = map(_with_full_tables, load_all("capabilities", Capability, over))
    return tuple(sorted(rules, key=lambda rule: rule.name))


def _with_full_tables(rule: Capability) -> Capability:
    """The rule with its tables as ``module.NAME``; a name alone is one of the registry."""
    module = target().registry.module
    tables = tuple(name if "." in name else f"{module}.{name}" for name in rule.tables)
    return msgspec.structs.replace(rule, registry=tables if len(tables) > 1 else tables[0])


def capability(name: str = "") -> Capability:
    """The capability of this name; without one, what an audit asks for when it is not told.

    Raises:
        RuleError: no rule file describes it.
    """
    wanted = name or target().question.capability
    for rule in capabilities():
        if rule.name == wanted:
            return rule
    raise RuleError(f"no capability named {name!r}", where="rules/capabilities")


def capability_names() -> tuple[str, ...]:
    """The known capabilities."""
    return tuple(rule.name for rule in capabilities())
