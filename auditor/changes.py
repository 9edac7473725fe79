"""The Drift document: what changed between two audits, and which of it is a regression.

Every report of a drift is a function of the :class:`Drift` alone. It is sorted at one place
(:func:`sorted_drift`), holds no timestamps and no absolute paths, and round-trips through JSON;
``audit schema drift`` prints its JSON Schema. :mod:`auditor.drift` makes it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from auditor.coverage import SourceInfo, VerdictName

SCHEMA_VERSION = "1.0"

Kind = Literal[
    "lost",
    "unsafe",
    "silent",
    "added-without",
    "unimportable",
    "undecided",
    "removed",
    "stale",
    "verdict",
    "head-path",
    "method-path",
    "moved",
    "owner",
    "gained",
    "importable",
    "decided",
    "added",
    "finding",
    "finding-gone",
]
Severity = Literal["error", "warning", "note"]

#: Every kind of change, in the order of reports, and what it means.
KINDS: dict[Kind, str] = {
    "lost": "the class had the method, and has it no more",
    "unsafe": "the method picks other tokens now, or a caller's call would fail",
    "silent": "the logits go another way to their head, and the method does not follow",
    "added-without": "a new entry whose class lacks the method",
    "unimportable": "the class cannot be loaded now",
    "undecided": "it cannot be said any more",
    "removed": "the entry is gone",
    "stale": "a line of the baseline that means nothing any more",
    "verdict": "the verdict is another one",
    "head-path": "the logits go another way to their head",
    "method-path": "the method computes something else, and the logits are as they were",
    "moved": "the entry resolves to another class or module",
    "owner": "the method comes from another class",
    "gained": "the class has the method now",
    "importable": "the class can be loaded again",
    "decided": "it can be said now",
    "added": "a new entry",
    "finding": "a finding that was not there before",
    "finding-gone": "a finding that is there no more",
}
#: What fails a check unless ``--fail-on`` says otherwise.
FAILING: tuple[Kind, ...] = ("lost", "unsafe", "silent", "added-without")
#: The kinds that an accepted gap covers: what is wrong there is that the method is missing.
GAPS: frozenset[Kind] = frozenset({"lost", "added-without", "unimportable"})
#: Kinds that a reader should look at even where they do not fail the check.
_NOTABLE: frozenset[Kind] = GAPS | {"unsafe", "silent", "undecided", "stale", "method-path"}


class Change(msgspec.Struct, frozen=True):
    """One thing that is otherwise than before.

    Attributes:
        kind: what it is (:data:`KINDS`).
        architecture: the registry key.
        platform: the platform's name.
        before: what it was: a verdict, a dotted class or owner, a head path in brief, or how often
            a finding was there, by kind; null where there was nothing.
        after: what it is now; null where there is nothing.
        failing: whether the check fails by it.
        severity: ``error`` where it fails the check; else ``warning`` or ``note``.
        message: what happened, in one line that names neither architecture nor platform.
        path: where to look, relative to the folder that holds ``vllm/``; for a line of the
            baseline, the baseline file as it was given; empty where there is no place.
        line: 1-based, or 0.
        side: which source ``path`` is in: ``after``, ``before`` or ``baseline``.
        also: other kinds that the same change is of; it fails the check by any of them.
        verdict_before: the cell before; null for a new entry.
        verdict_after: the cell now; null for an entry that is gone.
        code: the code of the finding that it is about, or null.
        accepted: why a reader of the baseline accepts it, or null; then it does not fail.
        note: a reader's own note on the line of the baseline, or null.
    """

    kind: Kind
    architecture: str
    platform: str
    before: str | None
    after: str | None
    failing: bool
    severity: Severity
    message: str
    path: str = ""
    line: int = 0
    side: Literal["after", "before", "baseline"] = "after"
    also: tuple[Kind, ...] = ()
    verdict_before: VerdictName | None = None
    verdict_after: VerdictName | None = None
    code: str | None = None
    accepted: str | None = None
    note: str | None = None

    @property
    def kinds(self) -> frozenset[Kind]:
        """Every kind that it is of."""
        return frozenset({self.kind, *self.also})


class Undecided(msgspec.Struct, frozen=True):
    """Part of the comparison that could not be made.

    Attributes:
        side: the source in which it is open.
        architecture: the entry, or null where a whole file was not analysed.
        platform: the platform, or null for all.
        path: where; relative to the folder that holds ``vllm/``.
        line: 1-based, or 0.
        reason: what could not be evaluated, and what would decide it.
    """

    side: Literal["after", "before"]
    architecture: str | None
    platform: str | None
    path: str
    line: int
    reason: str


class Drift(msgspec.Struct, frozen=True):
    """Everything that is otherwise than before.

    Attributes:
        schema_version: of this document (``major.minor``; a new major breaks readers).
        capability: the method asked for.
        registry: dotted name of the table the entries come from.
        before: what is compared with.
        after: what was audited.
        baseline: the file that ``before`` was read from, or null.
        platforms: the platforms compared, in the order of reports.
        fail_on: the kinds that fail the check.
        compared: how many entries by platform were compared.
        changes: what changed, sorted by architecture, platform and kind.
        undecided: what could not be compared.
    """

    schema_version: str
    capability: str
    registry: str
    before: SourceInfo
    after: SourceInfo
    baseline: str | None
    platforms: tuple[str, ...]
    fail_on: tuple[Kind, ...]
    compared: int
    changes: tuple[Change, ...]
    undecided: tuple[Undecided, ...] = ()

    @property
    def failing(self) -> tuple[Change, ...]:
        """The changes that fail the check."""
        return tuple(change for change in self.changes if change.failing)


def sorted_drift(document: Drift) -> Drift:
    """The same document in its one canonical order. The only place that sorts."""
    position = {name: index for index, name in enumerate(document.platforms)}
    order = {kind: index for index, kind in enumerate(KINDS)}
    last = len(position)
    return msgspec.structs.replace(
        document,
        changes=tuple(
            sorted(
                document.changes,
                key=lambda c: (
                    c.architecture,
                    position.get(c.platform, last),
                    c.platform,
                    order[c.kind],
                    c.code or "",
                    c.path,
                    c.line,
                ),
            )
        ),
        undecided=tuple(
            sorted(
                document.undecided,
                key=lambda u: (
                    u.side,
                    u.architecture or "",
                    position.get(u.platform or "", last),
                    u.path,
                    u.line,
                    u.reason,
                ),
            )
        ),
    )


def judged(change: Change, fail_on: frozenset[Kind]) -> Change:
    """The change with whether it fails the check, and how severe it is by that."""
    by = change.kinds & fail_on
    if change.accepted is not None:
        by -= GAPS
    severity: Severity
    if by:
        severity = "error"
    elif change.accepted is None and change.kinds & _NOTABLE:
        severity = "warning"
    else:
        severity = "note"
    return msgspec.structs.replace(change, failing=bool(by), severity=severity)


def to_json(document: Drift) -> bytes:
    """The document as indented JSON with a final newline; same input, same bytes."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def from_json(data: bytes) -> Drift:
    """Read a document written by :func:`to_json`.

    Raises:
        msgspec.ValidationError: the document is not a Drift, with the JSON path at fault.
    """
    return msgspec.json.decode(data, type=Drift)


def json_schema() -> dict[str, object]:
    """The JSON Schema (2020-12) of the Drift document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "draftaudit drift",
        **msgspec.json.schema(Drift),
    }
