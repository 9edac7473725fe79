"""The remarks that an audit may make: all of them in a list, or one with why and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from auditor.reports.console import plain, to_text
from auditor.reports.json import escaped


class Rule(Protocol):
    """A remark: ``rules/findings/*.toml``."""

    @property
    def code(self) -> str:
        """Its code."""

    @property
    def severity(self) -> Literal["error", "warning", "note"]:
        """``error``, ``warning`` or ``note``."""

    @property
    def what(self) -> str:
        """The remark in a sentence."""

    @property
    def why(self) -> str:
        """What comes of it."""

    @property
    def fix(self) -> str:
        """What to do."""

    @property
    def link(self) -> str:
        """Public code or discussion about it, or empty."""


#: What a reader of a rule is told, in order.
_TOLD = ("code", "severity", "what", "why", "fix", "link")


def render(rules: Sequence[Rule], *, width: int, color: bool = False) -> str:
    """One line a rule: code, severity, sentence.

    Args:
        rules: the rules, in order.
        width: in terminal cells; no line is longer.
        color: whether to write ANSI colours.
    """
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in ("code", "severity"):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for rule in rules:
        table.add_row(Text(rule.code, "bold"), Text(rule.severity), plain(rule.what))
    return to_text(table, width=width, color=color)


def render_one(rule: Rule, *, width: int, color: bool = False) -> str:
    """A rule with why it matters and what to do."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in (("why", rule.why), ("fix", rule.fix), ("see", rule.link)):
        if text:
            table.add_row(Text(label), plain(text))
    title = plain(f"{rule.code} {rule.severity}: {rule.what}", "bold")
    return to_text(Group(title, table), width=width, color=color)


def render_json(rules: Sequence[Rule]) -> str:
    """The rules as an indented JSON list with a final newline, without their examples."""
    told = [{name: getattr(rule, name) for name in _TOLD} for rule in rules]
    return escaped(msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n")
