"""Both answers for people: what agrees is counted, what differs is shown in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.live.document import LiveDocument, LiveRow, Said, to_json
from auditor.reports.console import plain, to_text
from auditor.reports.json import escaped


def render(document: LiveDocument, *, width: int, color: bool = False) -> str:
    """What both say of each entry, and what the interpreter has beside its vLLM.

    Args:
        document: what to show.
        width: in terminal cells; no line is longer.
        color: whether to write ANSI colours.
    """
    return to_text(Group(*_blocks(document)), width=width, color=color)


def render_json(document: LiveDocument) -> str:
    """The document as indented JSON with a final newline."""
    return escaped(to_json(document))


def _blocks(document: LiveDocument) -> Iterator[RenderableType]:
    rows = document.rows
    yield plain(
        f"{document.source.label} on {document.platform}: its files, and what {document.python} "
        f"says of {document.capability}"
    )
    yield Text()
    for row in rows:
        if row.outcome != "agree":
            yield from _row(document, row)
            yield Text()
    agreed = [row for row in rows if row.outcome == "agree"]
    yield plain(f"{len(agreed)} of {len(rows)} entries agree{_counted(agreed, document)}")
    differing = sum(row.outcome == "differ" for row in rows)
    if differing:
        yield plain(f"{differing} differ", style="bold")
    still_open = sum(row.outcome == "open" for row in rows)
    if still_open:
        yield plain(f"{still_open} cannot be compared, since one side does not know")
    yield from _errors(agreed)
    yield from _modules(document)


def _counted(rows: Iterable[LiveRow], document: LiveDocument) -> str:
    counts = Counter(_kind(row.live) for row in rows if row.live is not None)
    words = {
        "has": f"have {document.capability}",
        "lacks": "lack it",
        "fails": "cannot be loaded",
    }
    said = ", ".join(f"{counts[kind]} {text}" for kind, text in words.items() if counts[kind])
    return f": {said}" if said else ""


def _kind(said: Said) -> str:
    if not said.loads:
        return "fails"
    return "has" if said.hasattr else "lacks"


def _row(document: LiveDocument, row: LiveRow) -> Iterator[RenderableType]:
    yield plain(f"{row.architecture}: {row.outcome}", style="bold")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, side in (("static", row.static), ("live", row.live)):
        table.add_row(Text(label), plain(_told(document, side)))
    if row.outcome == "differ":
        what = (one.what for one in document.differences if one.architecture == row.architecture)
        table.add_row(Text("differs in"), plain(", ".join(what)))
    yield Padding(table, (0, 0, 0, 2))


def _told(document: LiveDocument, side: Said | None) -> str:
    """What a side says, in one line."""
    if side is None:
        return "has no such entry"
    if side.error is not None:
        return f"{side.error.type}: {side.error.message}"
    if not side.loads:
        return side.reason or "not known"
    method = {
        None: f"whether it has {document.capability} is not known: {side.reason}",
        True: f"has {document.capability} from {side.owner}",
        False: f"lacks {document.capability}",
    }[side.hasattr]
    return f"{side.class_ or side.reason or 'None'}, {method}"


def _errors(agreed: Iterable[LiveRow]) -> Iterator[RenderableType]:
    """The exceptions that both agree on, each once with its entries."""
    found: dict[str, list[str]] = {}
    for row in agreed:
        if row.live is not None and row.live.error is not None:
            error = f"{row.live.error.type}: {row.live.error.message}"
            found.setdefault(error, []).append(row.architecture)
    for error, names in found.items():
        yield Padding(plain(f"{', '.join(names)}: {error}"), (0, 0, 0, 2))


def _modules(document: LiveDocument) -> Iterator[RenderableType]:
    known = document.modules
    yield Text()
    count = f"beside vLLM: {len(known.present)} modules that importing it asks for are there"
    yield plain(f"{count}, {len(known.missing)} are missing")
    if known.missing:
        yield Padding(plain(", ".join(known.missing)), (0, 0, 0, 2))
    for one in known.failing:
        text = f"importing {one.module} raises {one.error.type}: {one.error.message}"
        yield Padding(plain(text), (0, 0, 0, 2))
