"""A folder of configurations: which of them reach a draft class, per platform."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from auditor.checkpoints.document import CheckpointDocument, Reach, Result, State, Summary
from auditor.checkpoints.report import class_of
from auditor.coverage import VERDICTS, Row

_HAD = frozenset({"yes", "yes?"})


def surveyed(document: CheckpointDocument) -> CheckpointDocument:
    """The same document with each checkpoint's state on each platform, and their counts."""
    survey = tuple(
        reach
        for result in document.results
        for platform in document.platforms
        for reach in [_reach(result, platform)]
    )
    summary = tuple(_summary(platform, survey) for platform in document.platforms)
    return msgspec.structs.replace(document, survey=survey, summary=summary)


def _reach(result: Result, platform: str) -> Reach:
    row = next((one for one in result.rows if one.platform == platform), None)
    made = Reach(result.name, platform, "not reached", result.architecture)
    if any(gap.decides for gap in result.gaps):
        return _with(made, "?", next(gap.reason for gap in result.gaps if gap.decides))
    if result.draft_layers == 0:
        return _with(made, "no draft layers", "the checkpoint says so itself")
    if row is None or result.error is not None or result.refused is not None:
        return _with(made, "not reached", "; ".join(_why_not(result)))
    return _of_row(made, row)


def _why_not(result: Result) -> Iterator[str]:
    for error in (result.error, result.refused):
        if error is not None:
            yield f"{error.type}: {error.message}"
    if result.architecture is None:
        yield f"method {result.method} has no draft architecture"
    elif result.registered is False:
        yield f"{result.architecture} is no entry of the registry's table"


def _of_row(made: Reach, row: Row) -> Reach:
    named = f"{row.module}.{row.class_}" if row.module and row.class_ else None
    if row.verdict == "?":
        return _with(made, "?", row.reason or VERDICTS["?"])
    state: State = "had" if row.verdict in _HAD else "blocked"
    why = f"{row.verdict}: {row.reason or VERDICTS[row.verdict]}"
    if row.error is not None:
        why = f"{row.verdict}: {class_of(row)}"
    return msgspec.structs.replace(made, state=state, class_=named, why=why)


def _with(made: Reach, state: State, why: str) -> Reach:
    return msgspec.structs.replace(made, state=state, why=why or None)


def _summary(platform: str, survey: tuple[Reach, ...]) -> Summary:
    here = [one for one in survey if one.platform == platform]
    count = Counter(one.state for one in here)
    classes = Counter(
        one.class_ or f"{one.architecture}: {one.why}" for one in here if one.state == "blocked"
    )
    ordered = sorted(classes.items(), key=lambda item: (-item[1], item[0]))
    return Summary(
        platform,
        checkpoints=len(here),
        reached=count["had"] + count["blocked"],
        had=count["had"],
        blocked=count["blocked"],
        no_draft_layers=count["no draft layers"],
        not_reached=count["not reached"],
        undecided=count["?"],
        by_class=dict(ordered),
    )
