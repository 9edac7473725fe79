"""Coverage by Coverage to a Drift: what changed, where to look, and which of it fails a check.

A row is compared in what it says (verdict, class, owner, head path, findings), not in where the
tree says it: a file that is only formatted anew, or whose lines moved, gives no change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from auditor.changes import (
    FAILING,
    GAPS,
    KINDS,
    SCHEMA_VERSION,
    Change,
    Drift,
    Kind,
    Undecided,
    judged,
    sorted_drift,
)
from auditor.coverage import Coverage, Finding, Head, MethodPath, Row, VerdictName
from auditor.snapshot import (
    Key,
    Line,
    Snapshot,
    brief_of,
    findings_by_row,
    head_of,
    heads_by_class,
    snapshot,
    unplaced,
)

#: Verdicts of classes that have the capability.
HAVE: frozenset[str | None] = frozenset({"yes", "yes?", "unsafe"})
#: Verdicts of entries that cannot be loaded.
FAIL: frozenset[str | None] = frozenset({"import", "absent"})
#: Verdicts of entries that an accepted gap is about.
LACK: frozenset[str | None] = frozenset({"no", "stub", "?"}) | FAIL

#: What was not analysed at all, of the kinds of a Coverage.
_INPUT = frozenset({"source", "table", "file"})


def drift(before: Coverage, after: Coverage, fail_on: Iterable[Kind] = FAILING) -> Drift:
    """What changed from one audit to another of the same request.

    Args:
        before: the audit that is compared with.
        after: the audit that is judged.
        fail_on: the kinds of change that fail the check.
    """
    found = _drift(snapshot(before), after, fail_on, findings_by_row(before))
    undecided = (*found.undecided, *_undecided(before, "before"))
    return sorted_drift(replace(found, undecided=undecided))


def drift_since(before: Snapshot, after: Coverage, fail_on: Iterable[Kind] = FAILING) -> Drift:
    """What changed since a snapshot was taken, on the platforms of ``after``."""
    return _drift(before, after, fail_on, {})


def _drift(
    before: Snapshot,
    after: Coverage,
    fail_on: Iterable[Kind],
    said: Mapping[Key, tuple[Finding, ...]],
) -> Drift:
    """The drift; ``said`` are the findings before, where more than their codes is known."""
    kinds = frozenset(fail_on)
    comparison = _Comparison(before, after, said)
    return sorted_drift(
        Drift(
            schema_version=SCHEMA_VERSION,
            capability=after.capability,
            registry=after.registry,
            before=before.source,
            after=after.source,
            baseline=before.baseline,
            platforms=after.platforms,
            fail_on=tuple(kind for kind in KINDS if kind in kinds),
            compared=comparison.compared,
            changes=tuple(judged(change, kinds) for change in comparison.changes()),
            undecided=tuple(_undecided(after, "after")),
        )
    )


def _undecided(coverage: Coverage, side: Literal["after", "before"]) -> Iterator[Undecided]:
    """Rows without an answer, and input that was not analysed."""
    for row in coverage.rows:
        if row.verdict == "?":
            where = _last(row)
            reason = row.reason or "it is not known"
            yield Undecided(side, row.architecture, row.platform, *where, reason)
    for item in coverage.undecided:
        if item.kind in _INPUT:
            yield Undecided(side, None, None, item.path, item.line, item.reason)


Where = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Now:
    """An entry on a platform as it is now."""

    row: Row
    line: Line
    head: Head | None
    findings: tuple[Finding, ...]

    def entry(self) -> Where:
        """The line of the registry."""
        return _step(self.row, "registry")

    def defined(self) -> Where:
        """The line of the class; where it cannot be loaded, the line that stops it."""
        if self.row.error is not None:
            chain = [s for s in self.row.error.chain if s.line and s.kind != "fact"]
            return (chain[-1].path, chain[-1].line) if chain else _last(self.row)
        return _step(self.row, "class") if self.row.class_ else _last(self.row)

    def provider(self) -> Where:
        """The line of the capability's definition, else that of the class."""
        where = _step(self.row, "method")
        return where if where[1] else self.defined()

    def of(self, path: MethodPath | None) -> Where:
        """The line of a method, else that of the class."""
        return (path.path, path.line) if path is not None and path.line else self.defined()

    def base(self, owner: str | None) -> Where:
        """The line of the class that had the capability, where it still is a base."""
        for step in self.row.evidence:
            is_class = step.kind in ("class", "base") and step.line
            if is_class and owner and step.note.startswith(f"{owner} "):
                return step.path, step.line
        return self.defined()


def _step(row: Row, kind: str) -> Where:
    found = [step for step in row.evidence if step.kind == kind and step.line]
    return (found[0].path, found[0].line) if found else _last(row)


def _last(row: Row) -> Where:
    """The last line of the evidence that is in the tree."""
    found = [step for step in row.evidence if step.line and step.kind != "guard"]
    return (found[-1].path, found[-1].line) if found else ("", 0)


class _Comparison:
    """Every line of a snapshot against the row of today."""

    def __init__(
        self, before: Snapshot, after: Coverage, said: Mapping[Key, tuple[Finding, ...]]
    ) -> None:
        self._snapshot = before
        self._said = said
        self._before = {line.key: line for line in before.lines}
        self._platforms = frozenset(after.platforms)
        self._capability = after.capability
        heads, findings = heads_by_class(after), findings_by_row(after)
        now = zip(after.rows, snapshot(after).lines, strict=True)
        self._now: Mapping[Key, _Now] = {
            line.key: _Now(row, line, head_of(row, heads), findings.get(line.key, ()))
            for row, line in now
        }

    @property
    def compared(self) -> int:
        """How many entries by platform both sides have."""
        return sum(
            key in self._now for key, line in self._before.items() if line.verdict is not None
        )

    def changes(self) -> Iterator[Change]:
        """Every change, not yet judged."""
        for key, now in self._now.items():
            was = self._before.get(key)
            if was is None or was.verdict is None:
                changes: Iterator[Change] = self._added(now)
            else:
                said = frozenset(unplaced(one.message) for one in self._said.get(key, ()))
                changes = _RowComparison(was, now, self._capability, said).changes()
            for change in changes:
                yield change if was is None else _with_words(change, was)
        for line in self._before.values():
            yield from self._of_line(line)

    def _added(self, now: _Now) -> Iterator[Change]:
        verdict = now.row.verdict
        kind: Kind = "added-without" if verdict == "no" else "added"
        also: tuple[Kind, ...] = ()
        if verdict == "unsafe":
            kind, also = "unsafe", ("added",)
        elif verdict in FAIL:
            also = ("unimportable",)
        elif verdict == "?":
            also = ("undecided",)
        message = f"new entry: {_told(now, self._capability)}"
        yield _change(kind, now, None, verdict, message, now.entry(), also=also)

    def _of_line(self, line: Line) -> Iterator[Change]:
        """What is wrong with a line of the snapshot itself."""
        now = self._now.get(line.key)
        in_baseline = self._snapshot.baseline is not None
        if line.platform not in self._platforms:
            if in_baseline and line.platform not in self._snapshot.platforms:
                yield self._stale(line, f"no platform is called {line.platform}")
        elif now is None and line.verdict is None:
            yield self._stale(line, "the registry has no such entry")
        elif now is None:
            had = line.class_ or line.verdict
            message = f"the entry is gone; it was {line.verdict}" + (
                f", {had}" if line.class_ else ""
            )
            yield Change(
                "removed",
                line.architecture,
                line.platform,
                line.verdict,
                None,
                False,
                "note",
                message,
                line.path,
                line.line,
                "baseline" if in_baseline else "before",
                ("stale",) if in_baseline else (),
                line.verdict,
                note=line.note,
            )
        elif line.accepted is not None and now.row.verdict not in LACK:
            yield self._stale(line, f"the gap that is accepted is none: {now.row.verdict}")

    def _stale(self, line: Line, why: str) -> Change:
        now = self._now.get(line.key)
        return Change(
            "stale",
            line.architecture,
            line.platform,
            line.accepted or line.verdict,
            None,
            False,
            "warning",
            why,
            line.path,
            line.line,
            "baseline",
            verdict_before=line.verdict,
            verdict_after=now.row.verdict if now is not None else None,
            note=line.note,
        )


def _with_words(change: Change, line: Line) -> Change:
    """The change with what a reader wrote in its line; a reason only where it is about a gap."""
    accepted = line.accepted if change.kinds & GAPS else None
    return replace(change, accepted=accepted, note=line.note)


def _change(
    kind: Kind,
    now: _Now,
    before: str | None,
    after: str | None,
    message: str,
    where: Where,
    *,
    also: tuple[Kind, ...] = (),
    verdict: VerdictName | None = None,
    code: str | None = None,
) -> Change:
    """A change of an entry that is there now; whether it fails is judged later."""
    return Change(
        kind=kind,
        architecture=now.row.architecture,
        platform=now.row.platform,
        before=before,
        after=after,
        failing=False,
        severity="note",
        message=message,
        path=where[0],
        line=where[1],
        also=also,
        verdict_before=verdict,
        verdict_after=now.row.verdict,
        code=code,
    )


@dataclass(frozen=True, slots=True)
class _RowComparison:
    """One entry on one platform, then and now."""

    was: Line
    now: _Now
    capability: str
    said: frozenset[str]

    def changes(self) -> Iterator[Change]:
        """What changed; one change for each thing that did."""
        verdict = self._of_verdict()
        path = self._of_path()
        if path is not None and path.kind == "silent" and verdict is not None:
            # One cause: what it does to the verdict is told with it.
            yield replace(path, also=(verdict.kind, *verdict.also))
        else:
            yield from (change for change in (verdict, path) if change is not None)
        yield from self._of_class()
        yield from self._of_findings()

    def _change(
        self,
        kind: Kind,
        before: str | None,
        after: str | None,
        message: str,
        where: Where,
        also: tuple[Kind, ...] = (),
        code: str | None = None,
    ) -> Change:
        verdict = self.was.verdict
        return _change(
            kind, self.now, before, after, message, where, also=also, verdict=verdict, code=code
        )

    # --- the verdict

    def _of_verdict(self) -> Change | None:
        was, verdict = self.was.verdict, self.now.row.verdict
        if was is None or was == verdict:
            return None
        kind, *also = kinds_of(was, verdict)
        message = self._verdict_message(kind)
        return self._change(kind, was, verdict, message, self._verdict_place(kind), tuple(also))

    def _verdict_message(self, kind: Kind) -> str:
        name, told = self.capability, _told(self.now, self.capability)
        match kind:
            case "lost":
                return f"{name} is gone: {told}{_from(self.was.owner)}"
            case "gained":
                return f"{name} is there now: {told}"
            case "unimportable":
                return f"cannot be loaded any more: {told}"
            case "importable":
                return f"can be loaded again: {told}"
            case "undecided":
                return f"cannot be said any more: {told}"
            case "decided":
                return f"can be said now: {told}"
            case _:
                return f"{self.was.verdict} became {self.now.row.verdict}: {told}"

    def _verdict_place(self, kind: Kind) -> Where:
        if kind == "lost":
            return self.now.base(self.was.owner)
        own = self.now.line.owner == self.now.line.class_
        if kind == "gained" or (kind == "unsafe" and own):
            return self.now.provider()
        return self.now.defined()

    # --- the class, and who provides the method

    def _of_class(self) -> Iterator[Change]:
        was, now = self.was, self.now.line
        if was.class_ and now.class_ and was.class_ != now.class_:
            message = f"resolves to {now.class_} instead of {was.class_}"
            yield self._change("moved", was.class_, now.class_, message, self.now.defined())
        own = was.owner == was.class_ and now.owner == now.class_
        if was.owner and now.owner and was.owner != now.owner and not own:
            message = f"{self.capability} comes from {now.owner} instead of {was.owner}"
            yield self._change("owner", was.owner, now.owner, message, self.now.provider())

    # --- the head path

    def _of_path(self) -> Change | None:
        was, now, head = self.was, self.now.line, self.now.head
        if head is None or was.logits is None or now.logits is None:
            return None
        logits, tokens = was.logits != now.logits, was.tokens != now.tokens
        both = was.tokens is not None and now.tokens is not None
        before, after = was.head, now.head
        if logits and both and not tokens and self.now.row.equivalence != "equivalent":
            message = f"{self._goes(head)}, and {self.capability} does not follow{self._so()}"
            return self._change("silent", before, after, message, self.now.of(head.logits))
        if logits or was.shape != now.shape:
            follow = f", and {self.capability} with it" if both and tokens else ""
            stay = f"; {self.capability} still agrees" if both and not tokens else ""
            message = f"{self._goes(head)}{follow}{stay}"
            return self._change("head-path", before, after, message, self.now.of(head.logits))
        if both and tokens:
            message = f"{self.capability} computes something else{self._so()}"
            after = brief_of(head.tokens)
            where = self.now.of(head.tokens)
            return self._change("method-path", None, after, message, where)
        return None

    def _goes(self, head: Head) -> str:
        """What the full method computes then and now; by shape where that tells them apart."""
        name = head.logits.method if head.logits is not None else ""
        was, now = self.was, self.now.line
        if was.head != now.head:
            return f"{name} is {now.head} instead of {was.head}"
        if was.shape != now.shape:
            return f"{name} has the shape {now.shape} instead of {was.shape}"
        return f"{name} computes something else than before ({now.head})"

    def _so(self) -> str:
        """What that leaves of the verdict."""
        was, now = self.was.verdict, self.now.row.verdict
        return f": {now}" if was == now else f": {was} became {now}"

    # --- findings

    def _of_findings(self) -> Iterator[Change]:
        """Codes that are there more often, or less often, than before.

        An entry that could not be loaded had none, so that all of its findings would be new.
        """
        if not self.was.class_ or not self.now.line.class_:
            return
        for code in sorted({*self.was.findings, *self.now.line.findings}):
            was, now = self.was.findings.count(code), self.now.line.findings.count(code)
            if now > was:
                finding = self._newest(code)
                where = (finding.path, finding.line)
                often = f", {now} instead of {was}" if was else ""
                message = f"{code}{often}: {finding.message}"
                yield self._change("finding", str(was), str(now), message, where, code=code)
            elif now < was:
                message = f"{code} is there no more" if not now else f"{code} is there less often"
                where = self.now.defined()
                yield self._change("finding-gone", str(was), str(now), message, where, code=code)

    def _newest(self, code: str) -> Finding:
        """The first finding of a code that says what was not said before, if that is known."""
        of_code = [one for one in self.now.findings if one.code == code]
        return next((one for one in of_code if unplaced(one.message) not in self.said), of_code[0])


def kinds_of(was: str, verdict: str) -> tuple[Kind, ...]:
    """Of which kinds a change of verdict is; the one to name it by first."""
    had, has = was in HAVE, verdict in HAVE
    kinds: list[Kind] = []
    if verdict == "unsafe":
        kinds.append("unsafe")
    if verdict == "?":
        kinds.append("undecided")
    elif was == "?":
        kinds.append("decided")
    elif verdict in FAIL and was not in FAIL:
        kinds += ["unimportable", "lost"] if had else ["unimportable"]
    elif was in FAIL and verdict not in FAIL:
        kinds += ["importable", "gained"] if has else ["importable"]
    elif had and not has:
        kinds.append("lost")
    elif has and not had:
        kinds.append("gained")
    return tuple(kinds) or ("verdict",)


def _told(now: _Now, capability: str) -> str:
    """What the row says, in a few words."""
    row = now.row
    name = now.line.class_ or "no class"
    if row.error is not None:
        return f"{row.error.type}: {unplaced(row.error.message)}"
    match row.verdict:
        case "no":
            return f"{name} has no {capability}"
        case "stub":
            return f"{name} only raises NotImplementedError"
        case "n/a":
            return f"{name} computes no logits"
        case "?":
            return row.reason or "it is not known"
        case "yes" | "yes?" | "unsafe":
            reason = f": {row.reason}" if row.reason else ""
            return f"{name} is {row.verdict}{reason}"
        case _:
            return f"{name} is {row.verdict}"


def _from(owner: str | None) -> str:
    return f" (it came from {owner})" if owner else ""
