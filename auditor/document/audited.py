"""What a document is about: the tree, what was asked of it, and what holds on every platform."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from auditor.contracts.contract import Contracts
from auditor.engine import has_setting
from auditor.environment import Environment
from auditor.evaluation.import_statements import Program
from auditor.program import Files
from auditor.request import Request
from auditor.ruleset.capabilities import Capability
from auditor.sources.tree import Source
from auditor.tables import Tables

if TYPE_CHECKING:
    from auditor.plugins.account import Account
    from auditor.plugins.session import Session


@dataclass(frozen=True)
class Audited:
    """One audit, once every platform is answered.

    Attributes:
        source: what is audited.
        request: what is asked of it.
        capability: the method of interest.
        files: the files of the source.
        paths: all of their names.
        program: its modules.
        environment: what it says of what exists where.
        tables: the entries that are asked for.
        contracts: who calls the capability.
        platforms: the names of the platforms, in the order of reports.
        plugins: plugins over the source.
    """

    source: Source
    request: Request
    capability: Capability
    files: Files
    paths: Collection[str]
    program: Program
    environment: Environment
    tables: Tables
    contracts: Contracts
    platforms: tuple[str, ...]
    plugins: Session | None

    def has_setting(self, holder: str, name: str) -> bool:
        """Whether a class of the tree has a setting of this name."""
        return has_setting(self.files, self.program.modules, holder, name)

    @cached_property
    def account(self) -> Account | None:
        """What is to be told of the plugins, where there are any."""
        if self.plugins is None:
            return None
        from auditor.plugins.account import Account

        return Account(self.plugins, self.files)
