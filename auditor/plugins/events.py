"""What plugins do to the audited package, as a list in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from auditor.values import ClassValue, Guard, Place, Value

Kind = Literal[
    "architecture", "table", "attribute", "module", "config", "hook", "entry", "worker", "call"
]
Outcome = Literal["applied", "undecided", "dead", "failed"]


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One thing that a plugin does.

    Attributes:
        plugin: the name of the plugin.
        kind: see :class:`auditor.coverage.PluginEvent`.
        target: the architecture, or a dotted name; empty where it is not known.
        value: what is put there.
        where: the statement.
        outcome: whether it is done.
        reason: why it is undecided, dead or failed; or a remark.
        guards: the conditions above it.
        owner: the class whose attribute it is, for events of kind ``attribute``.
        table: the dotted name of the table, for events of kind ``table``.
    """

    plugin: str
    kind: Kind
    target: str
    value: Value
    where: Place
    outcome: Outcome = "applied"
    reason: str = ""
    guards: tuple[Guard, ...] = ()
    owner: ClassValue | None = None
    table: str = ""

    def failed(self, reason: str) -> Event:
        """The same, where it is not done because of an exception."""
        return replace(self, outcome="failed", reason=reason)

    def open(self, reason: str) -> Event:
        """The same, where it cannot be said whether or with what it is done."""
        return replace(self, outcome="undecided", reason=reason)
