"""The document: rows, findings, callers and heads of all platforms, each thing once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from auditor.answers import PlatformAnswer, matches
from auditor.contracts.selection import Selected
from auditor.coverage import (
    SCHEMA_VERSION,
    Caller,
    Coverage,
    Finding,
    Head,
    Row,
    SourceInfo,
    Step,
    sorted_coverage,
)
from auditor.document.audited import Audited
from auditor.document.notes import notes
from auditor.document.undecided import undecided
from auditor.memo import digest_of
from auditor.ruleset.engine import engine_rule
from auditor.values import Place
from auditor.verdicts import legend, question


def document(
    audited: Audited, answers: Sequence[PlatformAnswer], read: Collection[str]
) -> Coverage:
    """What the platforms answer, as one document; ``read`` are the files that were run."""
    rows = tuple(row for answer in answers for row in answer.rows)
    rows, remarks = _with_remarks(audited, rows)
    source, account = audited.source, audited.account
    digest = digest_of({path: audited.files.key(path) for path in read})
    return sorted_coverage(
        Coverage(
            schema_version=SCHEMA_VERSION,
            capability=audited.capability.name,
            registry=", ".join(audited.tables.names),
            source=SourceInfo(source.label, source.version, digest),
            platforms=audited.platforms,
            imports="run" if audited.request.run_imports else "skipped",
            notes=tuple(notes(audited, answers)),
            rows=rows,
            findings=(*_findings(answers), *remarks),
            undecided=tuple(undecided(audited, answers)),
            callers=tuple(_callers(audited)),
            heads=tuple(_heads(answers)),
            plugins=account.infos(audited.platforms) if account is not None else (),
            question=question(audited.capability),
            legend=legend(audited.capability),
        )
    )


def _with_remarks(
    audited: Audited, rows: tuple[Row, ...]
) -> tuple[tuple[Row, ...], tuple[Finding, ...]]:
    """What is to be said of the plugins themselves, and the rows with the codes of that."""
    if audited.plugins is None:
        return rows, ()
    from auditor.plugins.remarks import On, Remarks, with_codes

    modules, capability = audited.program.modules, audited.capability
    on = On(audited.files, modules, audited.contracts, capability, engine_rule())
    remarks = Remarks(audited.plugins, on, rows).findings()
    return (with_codes(rows, remarks) if remarks else rows), remarks


def _findings(answers: Sequence[PlatformAnswer]) -> Iterator[Finding]:
    """Each finding once, with every architecture and platform that it is about."""
    found: dict[Finding, tuple[dict[str, None], dict[str, None]]] = {}
    for answer in answers:
        for finding in answer.findings:
            key = msgspec.structs.replace(finding, architectures=(), platforms=())
            names, platforms = found.setdefault(key, ({}, {}))
            names.update(dict.fromkeys(finding.architectures))
            platforms.update(dict.fromkeys(finding.platforms))
    for key, (names, platforms) in found.items():
        architectures = tuple(sorted(names))
        yield msgspec.structs.replace(key, architectures=architectures, platforms=tuple(platforms))


def _heads(answers: Sequence[PlatformAnswer]) -> Iterator[Head]:
    """What is known of each class's head, once for all platforms where it is the same."""
    found: dict[Head, list[str]] = {}
    for answer in answers:
        for head in answer.heads:
            anywhere = msgspec.structs.replace(head, platforms=())
            found.setdefault(anywhere, []).append(answer.platform)
    for head, names in found.items():
        yield msgspec.structs.replace(head, platforms=tuple(names))


def _callers(audited: Audited) -> Iterator[Caller]:
    """What drafts for the architectures asked for, each class once for all of them."""
    known = {drafter.cls: drafter for drafter in audited.contracts.drafters}
    found: dict[Selected, list[str]] = {}
    for name, selected in audited.contracts.selected.items():
        if matches(name, audited.request.architectures):
            for one in selected:
                found.setdefault(one, []).append(name)
    for one, names in found.items():
        drafter = known[one.drafter]
        calls = (_cited(audited, "call", call.where, call.form) for call in drafter.calls)
        yield Caller(
            str(one.drafter),
            one.runner,
            one.method,
            one.conditions,
            one.open or None,
            _cited(audited, "made", one.where, ""),
            tuple(calls),
            drafter.guarded,
            tuple(sorted(names)),
        )


def _cited(audited: Audited, kind: str, where: Place, note: str) -> Step:
    text = audited.files.line(where.path, where.line)
    return Step(kind, where.path, where.line, text, note)
