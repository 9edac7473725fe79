"""What each code means to a reader: remarks on rows, cells that are a remark, and changes."""

from __future__ import annotations

from auditor.changes import Kind
from auditor.coverage import VerdictName
from auditor.ruleset.findings import FindingRule, load_named


class CellRule(FindingRule, frozen=True, kw_only=True):
    """``rules/cells/*.toml``: a cell that is reported as a problem."""

    cell: VerdictName


class ChangeRule(FindingRule, frozen=True, kw_only=True):
    """``rules/changes/*.toml``: a kind of change; how severe one is, is said of each."""

    change: Kind


def cell_rules() -> tuple[CellRule, ...]:
    """The cells that are reported as problems, by code; each text on one line."""
    return tuple(load_named("cells", CellRule).values())


def change_rules() -> tuple[ChangeRule, ...]:
    """The kinds of change, by code; each text on one line."""
    return tuple(load_named("changes", ChangeRule).values())


def coded_rules() -> tuple[FindingRule, ...]:
    """Everything that has a code: the remarks first, then cells and changes."""
    return tuple(_named().values())


def rule_names() -> dict[str, str]:
    """Each code with a name in words (``SD101``: ``call-does-not-fit``), from its file's name."""
    named = _named().items()
    return {rule.code: stem.partition("-")[2] or rule.code.lower() for stem, rule in named}


def _named() -> dict[str, FindingRule]:
    return {
        **load_named("findings", FindingRule),
        **load_named("cells", CellRule),
        **load_named("changes", ChangeRule),
    }
