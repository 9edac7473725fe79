"""``codemod verify``'s table, and its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from codemods.harness.document import Verification, Verified

_HEAD = ("architecture", "term proof", "test", "mutants killed", "two ranks")


def json_of(document: Verification) -> str:
    """The whole answer as JSON."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2)
    return text.decode() + "\n"


def table_of(document: Verification) -> str:
    """One line a class; below it why, where something is not as it should be."""
    rows = [_HEAD, *map(_row, document.families)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    lines: list[str] = []
    for row, one in zip(rows, [None, *document.families], strict=True):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(cells).rstrip())
        if one is not None:
            lines.extend(f"    {text}" for text in _reasons(one))
    lines += ["", _summary(document)]
    return "\n".join(lines) + "\n"


def _row(one: Verified) -> tuple[str, str, str, str, str]:
    killed = sum(mutant.killed for mutant in one.mutants)
    cases = f" ({one.passed})" if one.live == "passed" else ""
    return (
        one.architecture,
        f"{one.proof}, patched" if one.patch else one.proof,
        f"{one.live}{cases}" if one.patch else "-",
        f"{killed} of {len(one.mutants)}" if one.mutants else "-",
        one.ranks or "-",
    )


def _reasons(one: Verified) -> Iterator[str]:
    if one.reason and (one.live != "passed"):
        yield one.reason
    for mutant in one.mutants:
        if not mutant.killed:
            yield f"alive: {mutant.fault} in {mutant.method}"


def _summary(document: Verification) -> str:
    families = document.families
    patched = [one for one in families if one.patch]
    parts = [f"{len(families)} classes", f"{len(patched)} patched"]
    if document.python:
        mutants = [mutant for one in families for mutant in one.mutants]
        parts += [
            f"{_count(one.live == 'passed' for one in patched)} tests pass in {document.python}",
            f"{_count(mutant.killed for mutant in mutants)} of {len(mutants)} mutants killed",
        ]
        for state in ("failed", "crashed", "not importable", "not built"):
            number = _count(one.live == state for one in patched)
            if number:
                parts.append(f"{number} {state}")
    return ", ".join(parts)


def _count(found: Iterable[bool]) -> int:
    return sum(1 for one in found if one)
