"""What stayed open, each thing once: files, table entries, callers, conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.answers import OpenCondition, PlatformAnswer, matches
from auditor.coverage import UndecidedItem
from auditor.document.audited import Audited
from auditor.values import Place


def undecided(audited: Audited, answers: Sequence[PlatformAnswer]) -> Iterator[UndecidedItem]:
    """Everything that could not be read or evaluated, with what rests on it."""
    for problem in audited.source.problems:
        yield UndecidedItem("source", problem.path, 0, "", problem.reason)
    build = audited.environment.unread_build()
    if build is not None:
        yield UndecidedItem("file", "setup.py", build.line, "", build.reason)
    unparsed = {p: why for answer in answers for p, why in answer.unparsed.items()}
    for path, why in unparsed.items():
        yield UndecidedItem("file", path, why.line, "", why.reason)
    yield from _unread(audited, answers)
    yield from _unknown_callers(audited)
    if audited.account is not None:
        yield from audited.account.undecided()
    yield from _open_conditions(answers)


def _unread(audited: Audited, answers: Sequence[PlatformAnswer]) -> Iterator[UndecidedItem]:
    """Entries of tables that are no literals."""
    found: dict[tuple[str, Place], list[str]] = {}
    for answer, table in zip(answers, audited.tables.read, strict=True):
        for entry in table.unread:
            found.setdefault(entry, []).append(answer.platform)
    for (key, where), names in found.items():
        reason = "the entry is not a pair of strings"
        yield UndecidedItem("table", where.path, where.line, key, reason, tuple(names))


def _unknown_callers(audited: Audited) -> Iterator[UndecidedItem]:
    """What was not followed of the engine, and architectures of which nothing drafts."""
    for problem in audited.contracts.problems:
        where = problem.where
        yield UndecidedItem("caller", where.path, where.line, "", problem.reason)
    # Who calls matters where the capability must pick the same token as another method.
    entries = audited.tables.entries() if audited.capability.agrees_with is not None else ()
    found: dict[str, list[str]] = {}
    for entry in entries:
        reason = audited.contracts.unknown(entry.architecture)
        if reason is not None and matches(entry.architecture, audited.request.architectures):
            found.setdefault(reason, []).append(entry.architecture)
    for reason, names in found.items():
        architectures = tuple(sorted(set(names)))
        yield UndecidedItem("caller", "", 0, "", reason, architectures=architectures)


def _open_conditions(answers: Sequence[PlatformAnswer]) -> Iterator[UndecidedItem]:
    """Conditions that stayed open: each once, with its platforms and the answers it decides."""
    found: dict[tuple[str, int, str], list[tuple[str, OpenCondition]]] = {}
    for answer in answers:
        for item in answer.conditions:
            key = (item.path, item.line, item.text)
            found.setdefault(key, []).append((answer.platform, item))
    for (path, line, text), items in found.items():
        first = items[0][1]
        yield UndecidedItem(
            "base" if "base of" in first.reason else "condition",
            path,
            line,
            text,
            first.reason,
            tuple(platform for platform, _ in items),
            tuple(sorted({name for _, item in items for name in item.architectures})),
        )
