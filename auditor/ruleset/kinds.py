"""The kinds of rule that a user may write, and the files that a folder of theirs holds."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from auditor.errors import RuleError
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.files import load, rule_files
from auditor.ruleset.findings import FindingRule
from auditor.ruleset.lines import Key, line_of
from auditor.ruleset.parsing import text_of
from auditor.ruleset.platforms import PlatformRule
from auditor.ruleset.shapes import ShapeRule

_Rule = Capability | PlatformRule | ShapeRule | FindingRule

#: What each folder of rules holds.
KINDS: dict[str, type[_Rule]] = {
    "capabilities": Capability,
    "findings": FindingRule,
    "platforms": PlatformRule,
    "shapes": ShapeRule,
}


class RuleFile(msgspec.Struct, frozen=True):
    """A rule file that was read."""

    kind: str
    path: Path
    rule: _Rule

    @property
    def name(self) -> str:
        """By what a rule is known among those of its kind."""
        return self.rule.code if isinstance(self.rule, FindingRule) else self.rule.name

    def wrong(self, key: tuple[Key, ...], what: str, next_step: str = "") -> RuleError:
        """An error at a key of the file."""
        line = line_of(text_of(self.path, self.path.name), key)
        return RuleError(what, where=f"{self.path.as_posix()}:{line}", next_step=next_step)


def files_in(root: Path, named: str) -> Iterator[RuleFile]:
    """The rules in a folder of a user.

    Args:
        root: the folder.
        named: by what the user named it.

    Raises:
        RuleError: there is no such folder, it holds no rule, the folder of a rule is not one of
            :data:`KINDS`, or as :func:`auditor.ruleset.files.load`.
    """
    if not root.is_dir():
        raise RuleError("there is no such folder", where=f"{named} {root.as_posix()}")
    found = sorted(root.rglob("*.toml"))
    for path in found:
        kind = path.parent.name
        if path.parent.parent != root or kind not in KINDS:
            near = difflib.get_close_matches(kind, KINDS, n=1)
            hint = f"Did you mean {near[0]}/? " if near and path.parent != root else ""
            raise RuleError(
                "the folder does not say what kind of rule this is",
                where=path.as_posix(),
                next_step=f"{hint}Rules are kept in {', '.join(f'{one}/' for one in KINDS)}.",
            )
        yield RuleFile(kind, path, load(path, KINDS[kind]))
    if not found:
        raise RuleError(
            "the folder holds no rule",
            where=f"{named} {root.as_posix()}",
            next_step=f"Rules are kept in {', '.join(f'{one}/*.toml' for one in KINDS)}.",
        )


def shipped() -> Iterator[RuleFile]:
    """The rules of the project that are of such a kind.

    Raises:
        RuleError: as :func:`auditor.ruleset.files.load`.
    """
    for kind, type_ in KINDS.items():
        for path in rule_files(kind):
            yield RuleFile(kind, path, load(path, type_))
