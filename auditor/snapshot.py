"""What a later audit is compared with: one line an entry and platform.

A snapshot is taken of a Coverage (:func:`snapshot`), or read from a baseline file. It holds what
the comparison needs and nothing that an edit merely moves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from auditor.coverage import (
    Coverage,
    Finding,
    Head,
    MethodPath,
    Row,
    SourceInfo,
    VerdictName,
)

_POSITION = re.compile(r"(?<=\S):\d+\b")
#: A model with many ways to its head would fill the page.
_BRIEF = 100

#: An entry on a platform: the architecture, and the platform's name.
Key = tuple[str, str]


class Line(msgspec.Struct, frozen=True, omit_defaults=True, rename={"class_": "class"}):
    """What one entry was on one platform.

    Attributes:
        architecture: the registry key.
        platform: the platform's name.
        verdict: the cell; null where nothing is recorded, and a reader only left a note.
        class_: the dotted class it resolves to (in JSON: ``class``), or null.
        owner: the dotted class that provides the capability, or null.
        shape: name of the head path's shape, or null.
        head: the head path in brief, or null.
        logits: fingerprint of the head path, or null.
        tokens: fingerprint of the capability's own path, or null where the class lacks it.
        findings: codes of findings, one for each.
        note: a reader's own.
        accepted: why a reader accepts that the capability is missing here.
        path: where the line was read; the registry's file, or the baseline.
        line: 1-based.
    """

    architecture: str
    platform: str
    verdict: VerdictName | None = None
    class_: str | None = None
    owner: str | None = None
    shape: str | None = None
    head: str | None = None
    logits: str | None = None
    tokens: str | None = None
    findings: tuple[str, ...] = ()
    note: str | None = None
    accepted: str | None = None
    path: str = ""
    line: int = 0

    @property
    def key(self) -> Key:
        """The entry and the platform."""
        return self.architecture, self.platform


class Snapshot(msgspec.Struct, frozen=True):
    """The lines of one source, and what they are about.

    Attributes:
        capability: the method asked for.
        registry: dotted name of the table the entries come from.
        source: what was audited.
        platforms: the platforms asked for.
        lines: one an entry and platform.
        baseline: the file that it was read from; null for the snapshot of a Coverage.
    """

    capability: str
    registry: str
    source: SourceInfo
    platforms: tuple[str, ...]
    lines: tuple[Line, ...]
    baseline: str | None = None


def snapshot(coverage: Coverage) -> Snapshot:
    """What is remembered of a Coverage, in its order."""
    heads = heads_by_class(coverage)
    findings = findings_by_row(coverage)
    lines = tuple(_line(row, head_of(row, heads), findings) for row in coverage.rows)
    return Snapshot(
        coverage.capability, coverage.registry, coverage.source, coverage.platforms, lines
    )


def dotted(row: Row) -> str | None:
    """The dotted class that a row resolves to, or null."""
    return f"{row.module}.{row.class_}" if row.module and row.class_ else None


def heads_by_class(coverage: Coverage) -> Mapping[Key, Head]:
    """Each head by its dotted class and each of its platforms."""
    return {(head.class_, name): head for head in coverage.heads for name in head.platforms}


def head_of(row: Row, heads: Mapping[Key, Head]) -> Head | None:
    """What is known of the head of a row's class."""
    return heads.get((dotted(row) or "", row.platform))


def findings_by_row(coverage: Coverage) -> Mapping[Key, tuple[Finding, ...]]:
    """The findings on each entry and platform.

    A finding names entries and platforms apart; which pairs it is on is what the rows say.
    """
    codes = {(row.architecture, row.platform): frozenset(row.findings) for row in coverage.rows}
    found: dict[Key, list[Finding]] = {}
    for finding in coverage.findings:
        for architecture in finding.architectures:
            for platform in finding.platforms:
                key = (architecture, platform)
                if finding.code in codes.get(key, ()):
                    found.setdefault(key, []).append(finding)
    return {key: tuple(findings) for key, findings in found.items()}


def unplaced(text: str) -> str:
    """A sentence without the lines that it names, which every edit above them changes."""
    return _POSITION.sub("", text)


def brief_of(path: MethodPath | None) -> str | None:
    """A head path in one line of a few words; what is compared is its fingerprint."""
    if path is None:
        return None
    text = unplaced(path.brief)
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 1]}…"


def _line(row: Row, head: Head | None, findings: Mapping[Key, tuple[Finding, ...]]) -> Line:
    logits, tokens = (head.logits, head.tokens) if head is not None else (None, None)
    entry = next((step for step in row.evidence if step.kind == "registry"), None)
    key = (row.architecture, row.platform)
    return Line(
        architecture=row.architecture,
        platform=row.platform,
        verdict=row.verdict,
        class_=dotted(row),
        owner=row.owner,
        shape=row.shape,
        head=brief_of(logits),
        logits=logits.fingerprint if logits is not None else None,
        tokens=tokens.fingerprint if tokens is not None else None,
        findings=tuple(sorted(finding.code for finding in findings.get(key, ()))),
        path=entry.path if entry is not None else "",
        line=entry.line if entry is not None else 0,
    )
