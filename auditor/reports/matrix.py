"""The grid of verdicts, in the layout that fits the width.

Where the width allows, what an architecture resolves to stands in two columns of the same row;
where it does not, on lines below it. Long names fold. Nothing is cut off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.coverage import Row
from auditor.reports import rows as view
from auditor.reports.text import literal

STYLES = {
    "yes": "green",
    "yes?": "yellow",
    "unsafe": "bold red",
    "no": "red",
    "stub": "magenta",
    "import": "magenta",
    "absent": "magenta",
    "n/a": "dim",
    "?": "bold cyan",
}

#: With less room than this, sentences beside the cells would fold into ribbons.
_ROOM_BESIDE = 64
_GAP = 2
_INDENT = 4


class Entry(msgspec.Struct, frozen=True):
    """One architecture as it is shown."""

    name: str
    verdicts: dict[str, str]
    targets: tuple[view.Target, ...]

    @classmethod
    def of(cls, architecture: str, rows: Sequence[Row]) -> Entry:
        """From the rows of one architecture."""
        verdicts: dict[str, str] = {row.platform: row.verdict for row in rows}
        return cls(literal(architecture), verdicts, view.targets(rows))

    def lines(self) -> Iterator[tuple[str, str]]:
        """Class and provider, with the platforms in brackets where they differ."""
        for target in self.targets:
            among = f" [{' '.join(target.platforms)}]" if len(self.targets) > 1 else ""
            yield literal(target.resolves_to + among), literal(target.method_from)


def matrix(platforms: Sequence[str], entries: Sequence[Entry], width: int) -> RenderableType:
    """The grid of at least one entry, no line longer than ``width``."""
    taken = _name_width(entries) + sum(_GAP + w for w in _cell_widths(platforms, entries))
    columns = list(zip(*(line for entry in entries for line in entry.lines()), strict=True))
    whole = sum(max(map(len, column)) + _GAP for column in columns)
    words = [
        max((len(word) for text in column for word in text.split()), default=0)
        for column in columns
    ]
    if width - taken >= max(sum(words) + 2 * _GAP, min(whole, _ROOM_BESIDE)):
        return _beside(platforms, entries, words)
    return Group(*_below(platforms, entries, width))


def _name_width(entries: Sequence[Entry]) -> int:
    return max(len("architecture"), *(len(entry.name) for entry in entries))


def _cell_widths(platforms: Sequence[str], entries: Sequence[Entry]) -> list[int]:
    return [
        max(len(name), *(len(entry.verdicts.get(name, "")) for entry in entries))
        for name in platforms
    ]


def _cells(platforms: Sequence[str], entry: Entry) -> list[Text]:
    words = [entry.verdicts.get(name, "") for name in platforms]
    return [Text(word, STYLES.get(word, "")) for word in words]


def _beside(platforms: Sequence[str], entries: Sequence[Entry], words: Sequence[int]) -> Table:
    """Two more columns, each at least as wide as its longest word: no class name is broken."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, _GAP - 1, 0, 0), show_edge=False)
    table.add_column("architecture", no_wrap=True)
    for name in platforms:
        table.add_column(literal(name), no_wrap=True)
    for title, least in zip(("resolves to", "method from"), words, strict=True):
        table.add_column(title, overflow="fold", min_width=least)
    for entry in entries:
        start = [Text(entry.name, "bold"), *_cells(platforms, entry)]
        for target, provider in entry.lines():
            table.add_row(*start, Text(target), Text(provider))
            start = [Text()] * len(start)
    return table


def _below(
    platforms: Sequence[str], entries: Sequence[Entry], width: int
) -> Iterator[RenderableType]:
    cells = _cell_widths(platforms, entries)
    names = min(_name_width(entries), max(width - sum(w + 1 for w in cells), _INDENT))
    gap = _GAP if names + sum(w + _GAP for w in cells) <= width else 1
    heads = [Text(name, "bold") for name in map(literal, platforms)]
    yield from _line(Text("architecture", "bold"), heads, names, cells, gap)
    yield _indented(Text("resolves to, and the method from", "bold"))
    yield Text("─" * width)
    for entry in entries:
        yield from _line(Text(entry.name, "bold"), _cells(platforms, entry), names, cells, gap)
        for target, provider in entry.lines():
            method = "" if provider == view.NOTHING else f", method from {provider}"
            yield _indented(Text(target + method, "dim"))


def _line(
    name: Text, words: Sequence[Text], names: int, cells: Sequence[int], gap: int
) -> Iterator[Text]:
    """The name and its verdicts; a name longer than its column gets a line of its own."""
    if len(name) > names:
        name.overflow = "fold"
        yield name
        name = Text()
    name.pad_right(names - len(name))
    for word, cell in zip(words, cells, strict=True):
        name.append(" " * gap)
        name.append_text(word)
        name.pad_right(cell - len(word))
    name.rstrip()
    name.overflow = "fold"
    yield name


def _indented(text: Text) -> Padding:
    text.overflow = "fold"
    return Padding(text, (0, 0, 0, _INDENT))
