"""Architectures that the checkpoints of one family ask for, by the tree's own configuration code.

``hf_config_override`` rewrites several model types alike, and then gives each its architecture.
Where one of its conditions lists two types together, and both come to the same model type
afterwards with different architectures, those are two drafts of one family: who replaces one draft
and not the other has replaced half.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from auditor.contracts.checkpoints import OTHER, Checkpoints
from auditor.contracts.names import Names
from auditor.ruleset.engine import EngineRule
from auditor.values import Place


class Family(msgspec.Struct, frozen=True):
    """Drafts of one family.

    Attributes:
        model_type: what their checkpoints become.
        drafts: each architecture with the model types whose checkpoints ask for it.
        where: the condition that treats them alike.
    """

    model_type: str
    drafts: tuple[tuple[str, tuple[str, ...]], ...]
    where: Place


def families(names: Names, rule: EngineRule, architectures: Iterable[str]) -> tuple[Family, ...]:
    """Every family with more than one draft in the table."""
    table = frozenset(architectures)
    checkpoints = Checkpoints(names, rule, table)
    becomes = checkpoints.by_type()
    found: dict[Family, None] = {}
    for kinds, where in checkpoints.alike():
        groups: dict[str, dict[str, list[str]]] = {}
        for kind in sorted(kinds):
            for one in becomes.get(kind, ()):
                if one.architecture in table and one.model_type != OTHER:
                    drafts = groups.setdefault(one.model_type, {})
                    drafts.setdefault(one.architecture, []).append(kind)
        for model_type, drafts in groups.items():
            if len(drafts) > 1:
                listed = tuple((name, tuple(of)) for name, of in sorted(drafts.items()))
                found[Family(model_type, listed, where)] = None
    return tuple(found)
