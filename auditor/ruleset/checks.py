"""Checks folders with rules of a user: every file is read, and every example is run.

A rule is worth as much as its examples: one without any is refused, and so is one of which an
example does not come out as it says. The mistake is told with file, line and key.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from auditor.ruleset.capabilities import Capability
from auditor.ruleset.files import laid_over, rules_folder, shown
from auditor.ruleset.findings import FindingRule, finding_rules
from auditor.ruleset.kinds import RuleFile, files_in, shipped
from auditor.ruleset.mistakes import mistakes
from auditor.ruleset.platforms import PlatformRule
from auditor.ruleset.shapes import ShapeRule
from auditor.ruleset.trials import check_examples


def check(folders: Iterable[str | Path], named: str = "--rules") -> None:
    """Check folders that are to be laid over the rules of the project.

    Args:
        folders: the folders.
        named: by what the user named them.

    Raises:
        RuleError: something is wrong with one of them.
    """
    roots = [Path(folder) for folder in folders]
    files = [file for root in roots for file in files_in(root, named)]
    known = {(file.kind, file.name): file.path for file in shipped()}
    for file in files:
        _check_name(file, known)
        known[file.kind, file.name] = file.path
        _check_kind(file)
    with laid_over(roots):
        for file in files:
            check_examples(file)


def _check_name(file: RuleFile, known: dict[tuple[str, str], Path]) -> None:
    """A name is given once; a finding is one that the audit makes, and may be reworded."""
    before = known.get((file.kind, file.name))
    if isinstance(file.rule, FindingRule):
        codes = [rule.code for rule in finding_rules()]
        if before is not None and before.is_relative_to(rules_folder()):
            return
        if before is None:
            near = difflib.get_close_matches(file.name, codes, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise file.wrong(
                ("code",),
                f"no check makes a finding with `code` {file.name!r}",
                f"{hint}A rule of yours can reword those that there are.",
            )
    if before is not None:
        raise file.wrong(
            ("code",) if isinstance(file.rule, FindingRule) else ("name",),
            f"`name` {file.name!r} is taken by {shown(before)}",
            "Give it another name.",
        )


def _check_kind(file: RuleFile) -> None:
    for mistake in mistakes(file.rule):
        raise file.wrong(mistake.key, mistake.what, mistake.next_step)
    match file.rule:
        case Capability(part=str(), agrees_with=str()):
            raise file.wrong(
                ("part",),
                "`part` cannot be combined with `agrees_with`: what a part of a model picks is not "
                "compared",
            )
        case Capability(valid=valid, invalid=invalid) | ShapeRule(valid=valid, invalid=invalid):
            for key, given in (("valid", valid), ("invalid", invalid)):
                if not given:
                    raise file.wrong(
                        (key,),
                        f"a rule without examples: `{key}` is empty or missing",
                        "Give a source with a class Draft.",
                    )
        case PlatformRule(examples=()):
            raise file.wrong(
                ("examples",),
                "a rule without examples: `examples` is missing",
                'Give [[examples]] with a condition and what it is: "true", "false", "undecided".',
            )
        case _:
            return
