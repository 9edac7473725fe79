"""What the template of the HTML report shows, version by version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from auditor.coverage import Coverage, Finding, UndecidedItem
from auditor.reports import rows as view
from auditor.reports.html_changes import TITLES, Change
from auditor.reports.html_chart import Counted, Rect, strip

#: The class of a cell in the style sheet.
CLASSES = {
    "yes": "yes",
    "yes?": "maybe",
    "unsafe": "unsafe",
    "no": "no",
    "stub": "stub",
    "import": "import",
    "absent": "absent",
    "n/a": "na",
    "?": "open",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A platform of a version: its name, its numbers, and they as a bar."""

    name: str
    counted: Counted

    @property
    def strip(self) -> tuple[Rect, ...]:
        """The share of each group."""
        return strip(self.counted)


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table; the cell is empty where the architecture has no row on a platform."""

    architecture: str
    cells: tuple[str, ...]
    targets: tuple[view.Target, ...]
    split: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Changes of one kind."""

    title: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One version on the page.

    Attributes:
        name: what it is called in the list of versions; no other has this name.
        coverage: the document.
        columns: the platforms.
        lines: the table.
        since: the name of the version before, or empty.
        changes: what changed since that.
        whole: the numbers over all platforms.
    """

    name: str
    coverage: Coverage
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    since: str
    changes: tuple[Group, ...]
    whole: Counted

    @property
    def heading(self) -> str:
        """What was asked, of what."""
        return view.heading(self.coverage)

    @property
    def registry(self) -> str:
        """The table that the rows come from."""
        return view.shortened(self.coverage.registry)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the whole audit."""
        return tuple(view.notes(self.coverage))

    @property
    def findings(self) -> list[Finding]:
        """Errors first."""
        return view.by_severity(self.coverage)

    @property
    def undecided(self) -> list[tuple[str, list[UndecidedItem]]]:
        """By kind; what a cell rests on first."""
        return [
            (title, sorted(items, key=lambda item: not item.architectures))
            for title, items in view.undecided_by_kind(self.coverage)
        ]

    @property
    def strip(self) -> tuple[Rect, ...]:
        """The share of each group over all platforms."""
        return strip(self.whole)

    @property
    def gist(self) -> tuple[str, ...]:
        """The changes in a few words: ``+3 gained``, ``2 new``."""
        return tuple(_gist(self.changes))


def in_order(coverages: Sequence[Coverage]) -> list[Coverage]:
    """From the oldest release to the newest; as they are where one has no version that sorts."""
    try:
        return sorted(coverages, key=lambda coverage: Version(coverage.source.version or ""))
    except InvalidVersion:
        return list(coverages)


def names(coverages: Sequence[Coverage]) -> list[str]:
    """A short name for each, none twice."""
    short = [c.source.label.removeprefix("vllm ") or "unnamed" for c in coverages]
    count, seen = Counter(short), Counter[str]()
    found = []
    for name in short:
        seen[name] += 1
        found.append(f"{name} ({seen[name]})" if count[name] > 1 else name)
    return found


def pages(
    called: Sequence[str],
    coverages: Sequence[Coverage],
    since: Sequence[Sequence[Change]],
    shown: frozenset[str],
) -> list[Page]:
    """Every version as the template shows it; ``since`` has the changes from the one before."""
    return [
        _page(name, coverage, called[index - 1] if index else "", since[index], shown)
        for index, (name, coverage) in enumerate(zip(called, coverages, strict=True))
    ]


def _page(
    name: str, coverage: Coverage, since: str, changes: Sequence[Change], shown: frozenset[str]
) -> Page:
    columns = tuple(Column(p, Counted.of(coverage, p)) for p in coverage.platforms)
    lines = tuple(
        _line(
            architecture, {row.platform: row.verdict for row in rows}, view.targets(rows), columns
        )
        for architecture, rows in view.by_architecture(coverage)
        if architecture in shown
    )
    parts = zip(*(column.counted.parts for column in columns), strict=True)
    whole = Counted(tuple(map(sum, parts)))
    return Page(name, coverage, columns, lines, since, tuple(grouped(changes)), whole)


def _line(
    architecture: str,
    verdicts: dict[str, str],
    targets: tuple[view.Target, ...],
    columns: Sequence[Column],
) -> Line:
    cells = tuple(verdicts.get(column.name, "") for column in columns)
    return Line(architecture, cells, targets, len(targets) > 1)


def grouped(changes: Sequence[Change]) -> Iterator[Group]:
    """The kinds that occur, with their changes."""
    for kind, title in TITLES.items():
        if found := tuple(change for change in changes if change.kind == kind):
            yield Group(title, found)


def _gist(groups: Sequence[Group]) -> Iterator[str]:
    words = {
        TITLES["lost"]: "lost",
        TITLES["unsafe"]: "unsafe now",
        TITLES["silent"]: "silently worse",
        TITLES["added-without"]: "new without it",
        TITLES["unimportable"]: "unloadable",
        TITLES["gained"]: "gained",
        TITLES["added"]: "new",
        TITLES["removed"]: "removed",
    }
    for group in groups:
        if word := words.get(group.title):
            count = len({change.architecture for change in group.changes})
            yield f"{count} {word}"
