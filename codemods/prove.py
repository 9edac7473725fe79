"""The proof of a patch: the patched tree, in memory, goes through the audit that found the lack.

A family is proven when every row of its classes becomes ``yes`` on every platform that loads them,
no other row says anything else than before, and there is no finding that was not there before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from auditor.coverage import Coverage, Finding, Head, Row
from codemods.jobs import Jobs

#: Files and architectures that something is about, and what it says.
_Blame = tuple[frozenset[str], frozenset[str], str]


class Claim(msgspec.Struct, frozen=True):
    """What a family says it does: the files after it, and the classes that get the method.

    Attributes:
        name: the family.
        architectures: the registry keys that it is for.
        roots: dotted draft classes that must have the method afterwards.
        owners: dotted classes that may provide it.
        changed: the files that it changes, with their bytes afterwards.
    """

    name: str
    architectures: frozenset[str]
    roots: frozenset[str]
    owners: frozenset[str]
    changed: Mapping[str, bytes]


class Proof(msgspec.Struct, frozen=True):
    """What came out: why a family is not proven, and the document of the patched tree."""

    failures: Mapping[str, str]
    after: Coverage


def prove(jobs: Jobs, before: Coverage, claims: Sequence[Claim]) -> Proof:
    """Audit the tree with all claims applied at once.

    Two claims never change one file, so that each holds without the others as well.
    """
    changed = {path: content for claim in claims for path, content in claim.changed.items()}
    after = jobs.patched(changed)
    failures: dict[str, str] = {}
    for claim in claims:
        for reason in (*_unparsed(claim), *_not_reached(claim, before, after)):
            failures.setdefault(claim.name, reason)
    for paths, names, reason in (
        *_other_rows(claims, before, after),
        *_new_findings(before, after, frozenset(changed)),
    ):
        blamed = [c for c in claims if paths & c.changed.keys() or names & c.architectures]
        for claim in blamed or claims:
            failures.setdefault(claim.name, reason)
    return Proof(failures, after)


def _unparsed(claim: Claim) -> Iterator[str]:
    for path, content in claim.changed.items():
        try:
            ast.parse(content)
        except (SyntaxError, ValueError) as error:
            yield f"{path} does not parse any more: {error}"


def _class_of(row: Row) -> str:
    return f"{row.module}.{row.class_}"


def _by_key(coverage: Coverage) -> dict[tuple[str, str], Row]:
    return {(row.architecture, row.platform): row for row in coverage.rows}


def _not_reached(claim: Claim, before: Coverage, after: Coverage) -> Iterator[str]:
    """Rows of the family's classes that are not ``yes`` afterwards."""
    now = _by_key(after)
    for row in before.rows:
        if _class_of(row) not in claim.roots or row.verdict == "yes":
            continue
        new = now[row.architecture, row.platform]
        if new.verdict != "yes":
            why = f": {new.reason}" if new.reason else ""
            yield f"{row.architecture} on {row.platform} would be {new.verdict}{why}"
    for head in after.heads:
        if head.class_ in claim.roots:
            yield from _violated(head)


def _violated(head: Head) -> Iterator[str]:
    for condition in head.conditions:
        if condition.state == "violated":
            yield f"{condition.name}: {condition.text}"


def _other_rows(claims: Sequence[Claim], before: Coverage, after: Coverage) -> Iterator[_Blame]:
    """Rows that changed without being meant, each with the files that they come from."""
    roots = frozenset(root for claim in claims for root in claim.roots)
    owners = frozenset(owner for claim in claims for owner in claim.owners)
    now = _by_key(after)
    for row in before.rows:
        new = now.get((row.architecture, row.platform))
        same = new is not None and _says(row) == _says(new)
        if same or (_class_of(row) in roots and row.verdict != "yes"):
            continue
        gains = new is not None and row.hasattr is False and new.verdict == "yes"
        if gains and new is not None and new.owner in owners:
            continue
        text = f"{row.architecture} on {row.platform} would change from {row.verdict}"
        reached = f"{text} to {new.verdict if new is not None else 'nothing'}"
        yield _files_of(row), frozenset({row.architecture}), reached


def _says(row: Row) -> tuple[object, ...]:
    """What a row says, without the lines where it is written."""
    error = None if row.error is None else (row.error.type, row.error.message)
    return row.verdict, row.hasattr, row.module, row.class_, row.owner, row.equivalence, error


def _files_of(row: Row) -> frozenset[str]:
    return frozenset(step.path for step in row.evidence)


def _new_findings(before: Coverage, after: Coverage, changed: frozenset[str]) -> Iterator[_Blame]:
    """Errors that were not there, and anything in the changed files that was not.

    What is remarked at another place holds of every class that has the method: that the logits
    processor checks its scale, say. It is of the tree's making, and the row is ``yes`` with it.
    """
    known = {_name(finding) for finding in before.findings}
    for finding in after.findings:
        counts = finding.severity == "error" or finding.path in changed
        if counts and _name(finding) not in known:
            text = f"{finding.code}: {finding.message}"
            yield frozenset({finding.path}), frozenset(finding.architectures), text


def _name(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.path, finding.message
