"""What the reports for people have in common: rows grouped, named and counted.

Nothing here is formatted: no widths, no colours, no markup.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

import msgspec

from auditor.coverage import (
    INPUT_KINDS,
    Caller,
    Coverage,
    ErrorInfo,
    Finding,
    Head,
    Row,
    Step,
    UndecidedItem,
    VerdictName,
)

#: Where vLLM keeps its models; dropped from module names to make them readable.
_MODEL_PACKAGES = ("vllm.model_executor.models.", "vllm.models.")

#: Shown where there is no class or no method.
NOTHING = "—"

#: How the kinds of undecided items are announced, in the order of the report.
UNDECIDED_TITLES = {
    "source": "left out of the source",
    "table": "registry tables not read in full",
    "file": "files that could not be read or parsed",
    "caller": "callers that are not known",
    "plugin": "of what plugins do",
    "base": "base classes that could not be resolved",
    "condition": "conditions left open",
}


class Target(msgspec.Struct, frozen=True):
    """What some platforms of one architecture have in common.

    Attributes:
        platforms: on which platforms, in the order of the report.
        resolves_to: the shortened dotted class, or why there is none.
        method_from: who provides the method: ``own``, a class, or :data:`NOTHING`.
    """

    platforms: tuple[str, ...]
    resolves_to: str
    method_from: str


def filtered(coverage: Coverage, verdicts: Collection[str]) -> Coverage:
    """The same document with only the rows that have one of ``verdicts`` (all when empty)."""
    if not verdicts:
        return coverage
    rows = tuple(row for row in coverage.rows if row.verdict in verdicts)
    return msgspec.structs.replace(coverage, rows=rows)


def by_architecture(
    coverage: Coverage, verdicts: Collection[str] = ()
) -> Iterator[tuple[str, tuple[Row, ...]]]:
    """Each architecture with its rows; with ``verdicts``, if one of the rows has one of them."""
    for architecture, group in groupby(coverage.rows, key=lambda row: row.architecture):
        rows = tuple(group)
        if not verdicts or any(row.verdict in verdicts for row in rows):
            yield architecture, rows


def heading(coverage: Coverage, verdicts: Collection[str] = ()) -> str:
    """What was asked, of what, and how many architectures are shown."""
    total = sum(1 for _ in by_architecture(coverage))
    shown = sum(1 for _ in by_architecture(coverage, verdicts))
    tables = ", ".join(map(shortened, coverage.registry.split(", ")))
    head = f"{coverage.capability} in {coverage.source.label}, {tables}"
    wanted = ", ".join(verdicts)
    if not verdicts:
        return f"{head}: {total or 'no'} architecture{'s' * (total != 1)}"
    if not shown:
        return f"{head}: none of the {total} architectures has a cell with {wanted}"
    return f"{head}: {shown} of {total} architectures, those with {wanted}"


def notes(coverage: Coverage) -> Iterator[str]:
    """The sentences about the whole audit, one for imports that were not run among them."""
    yield from coverage.notes
    if coverage.imports == "skipped":
        yield "imports were not run, so a class that cannot be imported is not recognised"


def shortened(dotted: str) -> str:
    """``vllm.model_executor.models.llama`` as ``llama``; other names as they are."""
    for package in _MODEL_PACKAGES:
        dotted = dotted.removeprefix(package)
    return dotted


def resolves_to(row: Row) -> str:
    """The class the entry is, or the error or open condition that hides it."""
    if row.error is not None:
        return error_sentence(row.error)
    if row.verdict == "?" and row.reason:
        return f"undecided: {row.reason}"
    if row.module is None:
        return row.reason or NOTHING
    return f"{shortened(row.module)}.{row.class_}" if row.class_ else shortened(row.module)


def error_sentence(error: ErrorInfo) -> str:
    """As the last line of a traceback has it."""
    return f"{error.type}: {error.message}" if error.message else error.type


def method_from(row: Row) -> str:
    """Who provides the method, seen from the class: ``own``, ``Base``, ``Base in other.file``.

    A mixin is named alone: by its name one knows it, and its file says nothing about the model.
    """
    if row.owner is None:
        return NOTHING
    module, _, name = row.owner.rpartition(".")
    if row.module is not None and row.owner == f"{row.module}.{row.class_}":
        return "own"
    if module in ("", row.module) or name.endswith("Mixin"):
        return name
    return f"{name} in {shortened(module)}"


def head_of(coverage: Coverage, row: Row) -> Head | None:
    """What is known of the head of the class that a row resolves to."""
    wanted = f"{row.module}.{row.class_}"
    for head in coverage.heads:
        if head.class_ == wanted and row.platform in head.platforms:
            return head
    return None


def by_severity(coverage: Coverage) -> list[Finding]:
    """The findings, errors first."""
    rank = {"error": 0, "warning": 1, "note": 2}
    return sorted(coverage.findings, key=lambda finding: rank[finding.severity])


def findings_of(coverage: Coverage, row: Row) -> tuple[Finding, ...]:
    """The findings that are about a row, errors first."""
    return tuple(
        finding
        for finding in by_severity(coverage)
        if row.architecture in finding.architectures and row.platform in finding.platforms
    )


def callers_of(coverage: Coverage, architecture: str) -> tuple[Caller, ...]:
    """What may draft for an architecture."""
    return tuple(c for c in coverage.callers if architecture in c.architectures)


def impersonal(text: str, platform: str) -> str:
    """``text`` with ``here`` for ``on <platform>``, so that what is alike can be said once."""
    return re.sub(rf"\bon {re.escape(platform)}\b", "here", text)


def anywhere(row: Row) -> Row:
    """The row without its platform's name, so that the same evidence is equal.

    Notes that name the platform (``true on rocm: taken``) say ``here`` instead; whoever shows the
    row has its name. The imports that fail are shown with the error alone.
    """

    def here(steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(
            msgspec.structs.replace(step, note=impersonal(step.note, row.platform))
            for step in steps
        )

    error, reason, evidence = row.error, row.reason, row.evidence
    if error is not None:
        if error.chain and evidence[-len(error.chain) :] == error.chain:
            evidence = evidence[: -len(error.chain)]
        message = impersonal(error.message, row.platform)
        error = msgspec.structs.replace(error, message=message, chain=here(error.chain))
    if reason is not None:
        reason = impersonal(reason, row.platform)
    return msgspec.structs.replace(
        row, platform="", error=error, reason=reason, evidence=here(evidence)
    )


def targets(rows: Collection[Row]) -> tuple[Target, ...]:
    """The platforms of one architecture grouped by what they resolve to, in order."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        key = (impersonal(resolves_to(row), row.platform), method_from(row))
        groups.setdefault(key, []).append(row.platform)
    return tuple(Target(tuple(names), *key) for key, names in groups.items())


def _standing(row: Row) -> str:
    """Which number of :func:`platform_summary` the row counts to.

    A class that cannot be loaded has no methods, whatever else is known about it.
    """
    if row.error is not None or row.verdict in ("import", "absent"):
        return "unloadable"
    return {True: "satisfies", False: "lacks", None: "undecided"}[row.hasattr]


def platform_summary(coverage: Coverage, platform: str) -> str:
    """``rocm: 27 of 62 satisfy the guard, 34 lack it, 1 cannot be loaded``."""
    count = Counter(_standing(row) for row in coverage.rows if row.platform == platform)
    line = (
        f"{platform}: {count['satisfies']} of {count.total()} satisfy the guard, "
        f"{count['lacks']} lack it, {count['unloadable']} cannot be loaded"
    )
    return f"{line}, {count['undecided']} undecided" if count["undecided"] else line


def occurring(coverage: Coverage) -> frozenset[VerdictName]:
    """The verdicts that some row has."""
    return frozenset(row.verdict for row in coverage.rows)


def unproven_reasons(coverage: Coverage) -> list[tuple[str, int]]:
    """Why rows are ``yes?``, the most frequent reason first."""
    reasons = Counter(row.reason for row in coverage.rows if row.verdict == "yes?" and row.reason)
    return sorted(reasons.items(), key=lambda item: (-item[1], item[0]))


def undecided_by_kind(coverage: Coverage) -> Iterator[tuple[str, list[UndecidedItem]]]:
    """Each kind that occurs, by its title, with its items."""
    for kind, title in UNDECIDED_TITLES.items():
        if items := [item for item in coverage.undecided if item.kind == kind]:
            yield title, items


def is_complete(coverage: Coverage) -> bool:
    """Whether every entry has a verdict and all of the input was analysed (else: exit code 3)."""
    return "?" not in occurring(coverage) and not any(
        item.kind in INPUT_KINDS for item in coverage.undecided
    )


def place(path: str, line: int) -> str:
    """``path:line``, or the path alone for a whole file."""
    return f"{path}:{line}" if line else path
