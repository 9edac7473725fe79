"""How a class gets from hidden states to a token, for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from auditor.coverage import Condition, Head, MethodPath, Step, Way
from auditor.reports import rows as view
from auditor.reports.console import plain

#: How a condition is introduced, by its state.
_STATES = {"proven": "holds", "violated": "FAILS", "assumed": "assumed"}


def head_block(head: Head) -> RenderableType:
    """The head path of each method, the two terms side by side, and what the equality rests on."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in _lines(head):
        table.add_row(Text(label), plain(text))
    return table


def _lines(head: Head) -> Iterator[tuple[str, str]]:
    if head.logits is not None:
        shape = f"   shape: {head.shape}" if head.shape else ""
        yield "head", f"{head.logits.method} = {head.logits.brief}{shape}"
        yield from _places(head.logits)
    if head.tokens is not None:
        yield "head", f"{head.tokens.method} = {head.tokens.brief}"
        yield from _places(head.tokens)
    if head.tokens is None and head.fix is not None:
        yield "fix", head.fix
    if head.equivalence is not None:
        yield "proof", f"{head.equivalence}: {head.reason}"
    for method, term in zip((head.logits, head.tokens), head.terms, strict=False):
        if method is not None:
            yield "", f"{method.method}: {term}"
    for condition in head.conditions:
        yield "rests", _condition(condition)
    for remark in head.remarks:
        yield "note", _step(remark)


def _places(path: MethodPath) -> Iterator[tuple[str, str]]:
    """Hops, guards, checks and what was not followed, each once over all ways."""
    for kind, step in dict.fromkeys(pair for way in path.ways for pair in _steps(way)):
        yield kind, _step(step)


def _steps(way: Way) -> Iterator[tuple[str, Step]]:
    yield from (("  hop", step) for step in way.hops)
    yield from (("  check", step) for step in way.checks)
    yield from (("  open", step) for step in way.unknown)


def _step(step: Step) -> str:
    place = view.place(step.path, step.line)
    note = f"   {step.note}" if step.note else ""
    return f"{place}  {step.text}{note}".strip()


def _condition(condition: Condition) -> str:
    place = view.place(condition.path, condition.line)
    where = f"  ({place})" if place else ""
    return f"{_STATES[condition.state]}: {condition.text}{where}"
