"""``audit capabilities`` for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.probes.document import Capability, Change, Discovery, Probe, to_json
from auditor.reports.console import plain, to_text
from auditor.reports.json import escaped

_INDENT = (0, 0, 0, 2)


def render_json(document: Discovery) -> str:
    """The document as JSON."""
    return escaped(to_json(document))


def render(document: Discovery, *, width: int, color: bool = False) -> str:
    """What rules describe, then every probe, then what two sources differ in.

    Args:
        document: what to show.
        width: in terminal cells; no line is longer.
        color: whether to write ANSI colours.
    """
    return to_text(Group(*_blocks(document)), width=width, color=color)


def _blocks(document: Discovery) -> Iterator[RenderableType]:
    label = document.source.label
    if document.probes is None:
        yield plain(f"Capabilities, and where {label} probes for them", "bold")
        for one in document.capabilities:
            yield Text()
            yield from _capability(one)
    elif document.against is None:
        yield from _discovered(document.probes, f"{label}, {document.folder}")
    else:
        yield from _compared(document, document.probes)
    if document.undecided:
        yield Text()
        yield plain("Files that could not be read:", "bold")
        for item in document.undecided:
            yield Padding(plain(f"{item.path}  {item.reason}"), _INDENT)


def _capability(one: Capability) -> Iterator[RenderableType]:
    asked = f"the {one.model}'s `{one.part}`" if one.part else f"the {one.model}"
    yield plain(f"{one.name}: {one.summary}", "bold")
    lines = [f"asked of {asked}; without it the engine {one.without}: {one.text}"]
    if one.agrees_with is not None:
        lines.append(f"must pick the same token as {one.agrees_with}")
    lines += [f"{place(probe)}  {sentence(probe)}" for probe in one.probes]
    if not one.probes:
        uses = f"; it is called at {', '.join(one.uses)}" if one.uses else ""
        lines.append(f"no probe for it in this source{uses}")
    yield from (Padding(plain(line), _INDENT) for line in lines)


def place(probe: Probe) -> str:
    """``path:line``."""
    return f"{probe.path}:{probe.line}"


def asking(probe: Probe) -> str:
    """The probe in short: ``hasattr(self.model, "x")``."""
    if probe.through is not None:
        return f"{probe.through}({probe.receiver})"
    if probe.form == "isinstance":
        return f"isinstance({probe.receiver}, {probe.attribute})"
    more = ", …" if probe.form != "hasattr" else ""
    call = "hasattr" if probe.form == "hasattr" else "getattr"
    return f'{call}({probe.receiver}, "{probe.attribute}"{more})'


def sentence(probe: Probe) -> str:
    """What is asked, and what follows where the answer is no."""
    return f"{asking(probe)}  {probe.without.does}: {probe.without.text}"


def _discovered(probes: Sequence[Probe], where: str) -> Iterator[RenderableType]:
    counts = Counter(probe.asks for probe in probes)
    models = [probe for probe in probes if probe.asks in ("model", "part")]
    known = sum(1 for probe in models if probe.rule is not None)
    yield plain(
        f"{where}: {len(models)} probes of models and their parts, {known} of them described by "
        "a rule",
        "bold",
    )
    for asks, title in (("model", "Of a model:"), ("part", "Of a part of a model:")):
        yield Text()
        yield plain(title, "bold")
        yield _table([probe for probe in probes if probe.asks == asks])
    yield Text()
    yield plain(
        f"Undecided, {counts['undecided']} probes of objects that were not followed:", "bold"
    )
    for probe in probes:
        if probe.asks == "undecided":
            line = f"{place(probe)}  {asking(probe)}  ({probe.because})"
            yield Padding(plain(line), _INDENT)
    yield Text()
    yield plain(
        f"{counts['other']} more ask objects that are no models; --format json lists all "
        f"{len(probes)}"
    )


def _table(probes: Sequence[Probe]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for probe in probes:
        mark = f"rule {probe.rule}" if probe.rule else "new"
        table.add_row(
            Text(probe.without.does, _STYLES.get(probe.without.does, "")), _cell(probe, mark)
        )
    return table


_STYLES = {"raises": "red", "falls back": "yellow", "skips": "cyan", "undecided": "magenta"}


def _cell(probe: Probe, mark: str) -> Text:
    text = plain(f"{asking(probe)}  [{mark}]\n", "bold")
    text.append_text(plain(f"{place(probe)}  {probe.without.text}"))
    return text


def _compared(document: Discovery, probes: Sequence[Probe]) -> Iterator[RenderableType]:
    before = document.against.label if document.against is not None else ""
    label = document.source.label
    yield plain(f"Probes of models: {before} to {label}, {document.folder}", "bold")
    decided = [change for change in document.changes if change.probe.asks != "undecided"]
    for kind, title in (("added", "asked for since"), ("removed", "asked for no more")):
        names = dict.fromkeys(
            change.probe.attribute for change in decided if change.kind == kind and change.new
        )
        yield plain(f"{title}: {', '.join(names) or 'nothing'}")
    for kind, title in (
        ("added", "Added"),
        ("removed", "Removed"),
        ("changed", "Ends otherwise"),
    ):
        yield from _listed([one for one in decided if one.kind == kind], title)
    unsure = [change for change in document.changes if change.probe.asks == "undecided"]
    yield from _listed(unsure, "Undecided, of objects that were not followed")
    yield Text()
    yield plain(f"{len(probes)} probes in {label}; --format json lists them")


def _listed(changes: Sequence[Change], title: str) -> Iterator[RenderableType]:
    if changes:
        yield Text()
        yield plain(f"{title} ({len(changes)}):", "bold")
        yield from (Padding(plain(_change(change)), _INDENT) for change in changes)


def _change(change: Change) -> str:
    probe = change.probe
    unsure = f"  ({change.kind}; {probe.because})" if probe.asks == "undecided" else ""
    mark = f"  [rule {probe.rule}]" if probe.rule else "  [new]" if change.new else ""
    was = f"  (before: {change.before.does})" if change.before is not None else ""
    return f"{place(probe)}  {sentence(probe)}{mark}{was}{unsure}"
