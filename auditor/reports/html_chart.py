"""The small charts of the HTML report, as inline SVG without a script or a style of its own.

Each bar is one platform of one version, stacked by what its cells come to. The colours are
classes of the page's style sheet; every number stands in a table beside the chart too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from auditor.coverage import Coverage

#: What the verdicts come to in a bar, from its bottom up: the class, what it is called, its
#: verdicts.
GROUPS: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("have", "have the method", frozenset({"yes", "yes?"})),
    ("unsafe", "have it, and it is unsafe", frozenset({"unsafe"})),
    ("lack", "lack it", frozenset({"no"})),
    ("unloadable", "cannot be used there", frozenset({"stub", "import", "absent"})),
    ("nothing", "have nothing to reduce", frozenset({"n/a"})),
    ("open", "undecided", frozenset({"?"})),
)

_INDEXES = range(len(GROUPS))
_HEIGHT, _BAR, _GAP = 72, 14, 5


@dataclass(frozen=True, slots=True)
class Counted:
    """How the cells of one platform divide into :data:`GROUPS`."""

    parts: tuple[int, ...]

    @classmethod
    def of(cls, coverage: Coverage, platform: str) -> Counted:
        """The rows of a document on a platform; all zero where it has none."""
        count = Counter(row.verdict for row in coverage.rows if row.platform == platform)
        return cls(tuple(sum(count[v] for v in count if v in names) for _, _, names in GROUPS))

    @property
    def have(self) -> int:
        """How many have the method, and nothing says that it is unsafe."""
        return self.parts[0]

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.parts)

    @property
    def sentence(self) -> str:
        """``33 have the method, 34 lack it``: every group that is not empty."""
        said = [
            f"{count} {words}"
            for (_, words, _), count in zip(GROUPS, self.parts, strict=True)
            if count
        ]
        return ", ".join(said) or "nothing"


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle of a bar, in the units of its SVG."""

    group: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of one version in the chart of a platform."""

    version: int
    x: int
    title: str
    rects: tuple[Rect, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """One platform over all versions.

    Attributes:
        platform: its name.
        width: of the drawing; :attr:`height` is the same for all.
        bars: one a version, in their order.
        counts: the numbers that they show.
    """

    platform: str
    width: int
    bars: tuple[Bar, ...]
    counts: tuple[Counted, ...]
    height: int = _HEIGHT

    @property
    def bar_width(self) -> int:
        """Of every bar."""
        return _BAR


def strip(counted: Counted, *, width: int = 100, height: int = 4) -> tuple[Rect, ...]:
    """A bar that lies, ``width`` long: the share of each group."""
    return tuple(_stacked(counted, width, height))


def charts(names: Sequence[str], coverages: Sequence[Coverage]) -> tuple[Chart, ...]:
    """One chart a platform that some version has, all with one scale."""
    platforms = dict.fromkeys(name for coverage in coverages for name in coverage.platforms)
    counts = {p: [Counted.of(coverage, p) for coverage in coverages] for p in platforms}
    most = max((c.total for column in counts.values() for c in column), default=0)
    return tuple(
        Chart(
            platform,
            len(names) * (_BAR + _GAP) - _GAP,
            tuple(_bar(i, names[i], c, most) for i, c in enumerate(column)),
            tuple(column),
        )
        for platform, column in counts.items()
    )


def key(drawn: Sequence[Chart]) -> list[tuple[str, str]]:
    """The groups that some bar has, with what they are called."""
    found = [any(c.parts[index] for chart in drawn for c in chart.counts) for index in _INDEXES]
    return [(group, words) for (group, words, _), some in zip(GROUPS, found, strict=True) if some]


def _bar(version: int, name: str, counted: Counted, most: int) -> Bar:
    x = version * (_BAR + _GAP)
    length = round(_HEIGHT * counted.total / most, 2) if most else 0
    rects = tuple(
        Rect(lying.group, x, round(_HEIGHT - lying.x - lying.width, 2), _BAR, lying.width)
        for lying in _stacked(counted, length, _BAR)
    )
    return Bar(version, x, f"{name}: {counted.sentence}", rects)


def _stacked(counted: Counted, length: float, breadth: int) -> Iterator[Rect]:
    start = 0.0
    for (group, _, _), count in zip(GROUPS, counted.parts, strict=True):
        if count:
            size = length * count / counted.total
            yield Rect(group, round(start, 2), 0, round(size, 2), breadth)
            start += size
