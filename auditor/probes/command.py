"""What ``audit capabilities`` does: read one source, or two and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from auditor.api import collector_paused
from auditor.coverage import SourceInfo, UndecidedItem
from auditor.errors import SourceError
from auditor.factcache import FactCache
from auditor.memo import digest_of
from auditor.probes.discover import Discover, Interfaces
from auditor.probes.document import (
    SCHEMA_VERSION,
    Capability,
    Change,
    Discovery,
    Probe,
)
from auditor.probes.trees import Trees
from auditor.program import Files
from auditor.ruleset.capabilities import Capability as Rule
from auditor.ruleset.capabilities import capabilities
from auditor.ruleset.engine import engine_rule
from auditor.sources.tree import Source


@dataclass(frozen=True, slots=True)
class _Reading:
    """The probes of one source, and what was read for them."""

    info: SourceInfo
    probes: tuple[Probe, ...]
    trees: Trees

    def undecided(self) -> Iterable[UndecidedItem]:
        """Files of the source that could not be read."""
        for path, why in sorted(self.trees.unread.items()):
            yield UndecidedItem("file", path, why.line, "", f"{self.info.label}: {why.reason}")


def discovered(
    source: Source, cache: Path | None, *, every: bool, against: Source | None = None
) -> Discovery:
    """The capabilities that rules describe, and with ``every`` all probes of the engine.

    Args:
        source: what is read.
        cache: where facts of files are kept, or None.
        every: whether probes of which no rule speaks are asked for.
        against: a source to compare with, or None.

    Raises:
        SourceError: the tree has no engine.
    """
    rule = engine_rule().models
    with collector_paused():
        reading = _read(source, cache, every=every or against is not None)
        other = _read(against, cache, every=True) if against is not None else None
    known = tuple(_capability(one, reading) for one in capabilities())
    readings = [reading, *([other] if other is not None else [])]
    return Discovery(
        schema_version=SCHEMA_VERSION,
        source=reading.info,
        folder=rule.search,
        capabilities=known,
        probes=reading.probes if every or other is not None else None,
        against=other.info if other is not None else None,
        changes=_changes(other.probes, reading.probes) if other is not None else (),
        undecided=tuple(item for one in readings for item in one.undecided()),
    )


def _read(source: Source, cache: Path | None, *, every: bool) -> _Reading:
    rule, rules = engine_rule().models, capabilities()
    paths = source.tree.files()
    with closing(FactCache(cache)) as facts:
        files = Files(source.tree, facts)
        trees = Trees(files, sorted(paths), rule.search)
        if not trees.paths:
            raise SourceError(
                f"{source.label} has no {rule.search}",
                where=source.origin,
                next_step="Check that --vllm names a vLLM tree.",
            )
        asked = (name.replace(".", "/") + ".py" for name in rule.interfaces)
        interfaces = Interfaces(files, (path for path in asked if path in paths))
        words = () if every else tuple(word for one in rules for word in _words(one))
        found = Discover(trees, interfaces, rule, rules).all(words)
        wanted = (probe for probe in found if every or probe.rule is not None)
        probes = sorted(wanted, key=lambda one: (one.path, one.line, one.attribute, one.receiver))
        digest = digest_of({path: files.key(path) for path in trees.paths})
    return _Reading(SourceInfo(source.label, source.version, digest), tuple(probes), trees)


def _words(rule: Rule) -> tuple[str, ...]:
    functions = rule.guard.functions if rule.guard is not None else ()
    return (rule.probed, *functions)


def _capability(rule: Rule, reading: _Reading) -> Capability:
    probes = tuple(probe for probe in reading.probes if probe.rule == rule.name)
    return Capability(
        name=rule.name,
        summary=rule.summary,
        attribute=rule.probed,
        part=rule.part,
        model=rule.model,
        agrees_with=rule.agrees_with,
        registry=rule.tables,
        without=rule.without.does,
        text=rule.without.text,
        probes=probes,
        uses=tuple(_uses(rule, probes, reading.trees)),
    )


def _uses(rule: Rule, probes: Sequence[Probe], trees: Trees) -> Iterable[str]:
    """Calls of what a rule is about, as ``path:line``."""
    asked = {(probe.path, probe.line) for probe in probes}
    lines = {(module.path, call.lineno) for module, call in trees.calls(rule.probed)}
    yield from (f"{path}:{line}" for path, line in sorted(lines - asked))


# --- what two sources differ in


def _changes(before: Sequence[Probe], after: Sequence[Probe]) -> tuple[Change, ...]:
    """What was added, removed, or ends otherwise; probes of something else than models left out."""
    old = [probe for probe in before if probe.asks != "other"]
    new = [probe for probe in after if probe.asks != "other"]
    pairs, gone, come = _paired(old, new)
    known_before, known_after = (frozenset(map(_asked, known)) for known in (old, new))
    changes = [Change("added", _asked(one) not in known_before, one) for one in come]
    changes += [Change("removed", _asked(one) not in known_after, one) for one in gone]
    changes += [
        Change("changed", False, now, then.without)
        for then, now in pairs
        if then.without.does != now.without.does
    ]
    order = {"added": 0, "removed": 1, "changed": 2}

    def key(change: Change) -> tuple[int, bool, str, int, str]:
        probe = change.probe
        return (order[change.kind], not change.new, probe.path, probe.line, probe.attribute)

    return tuple(sorted(changes, key=key))


def _key(probe: Probe) -> tuple[str, ...]:
    """By what a probe is the same in two releases: all but its line."""
    form = "" if probe.through is not None else probe.form
    return (probe.path, probe.holder, form, _asked(probe), probe.receiver)


def _asked(probe: Probe) -> str:
    """What a probe asks for: the function that it asks through, else the attribute."""
    return probe.through or probe.attribute


def _paired(
    before: Sequence[Probe], after: Sequence[Probe]
) -> tuple[list[tuple[Probe, Probe]], list[Probe], list[Probe]]:
    """The probes of both, and those of one alone; several that are alike pair in order."""
    counts: Counter[tuple[str, ...]] = Counter()
    old: dict[tuple[tuple[str, ...], int], Probe] = {}
    for probe in before:
        key = _key(probe)
        old[key, counts[key]] = probe
        counts[key] += 1
    counts.clear()
    pairs, come = [], []
    for probe in after:
        key = _key(probe)
        then = old.pop((key, counts[key]), None)
        counts[key] += 1
        if then is None:
            come.append(probe)
        else:
            pairs.append((then, probe))
    return pairs, list(old.values()), come
