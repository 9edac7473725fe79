"""What plugins make of registry tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from auditor.plugins.events import Event
from auditor.plugins.handed import is_of_any
from auditor.plugins.run import PluginRun
from auditor.registry import Entry, Table, absolute
from auditor.ruleset.target import TargetRule
from auditor.values import (
    UNBOUND,
    ClassValue,
    Instance,
    Opaque,
    Undecided,
    Value,
)


def _may_do_anything(event: Event) -> bool:
    """Whether nothing is known of what a plugin does there."""
    open_kind = event.kind in ("hook", "call", "entry") or is_of_any(event)
    return event.outcome == "undecided" and open_kind


class Registrations:
    """What the events of one process make of registry tables that are asked as one."""

    def __init__(self, run: PluginRun, names: tuple[str, ...], rule: TargetRule) -> None:
        self._run = run
        self._names = names
        self._rule = rule

    def over(self, table: Table, events: Iterable[Event]) -> Table:
        """The table with what plugins registered, stored and took out."""
        entries = {entry.architecture: entry for entry in table.entries}
        elsewhere = self._elsewhere(set(entries))
        for event in events:
            if event.kind not in ("architecture", "table") or event.outcome == "dead":
                continue
            if event.kind == "table" and not self._counts(event.table, entries):
                continue
            names = [event.target] if event.target else list(entries)
            for name in names:
                if name in elsewhere and name not in entries:
                    continue
                entry = self._entry(name, event, entries.get(name))
                if entry is None:
                    entries.pop(name, None)
                else:
                    entries[name] = entry
        unknown = next((e for e in events if _may_do_anything(e)), None)
        if unknown is not None:
            why = f"{unknown.plugin} may have changed it: {unknown.reason}"
            undecided = Undecided(why, unknown.where, unknown.target)
            entries = {
                name: entry
                if entry.open is not None
                else replace(entry, by=unknown.plugin, open=undecided)
                for name, entry in entries.items()
            }
        return Table(tuple(entries.values()), table.unread)

    def _tables(self) -> Iterator[tuple[str, dict[Value, Value]]]:
        for container, name in self._run.tracked.values():
            if isinstance(container, dict):
                yield name, container

    def _elsewhere(self, own: set[str]) -> set[str]:
        """Architectures of the registry's other tables."""
        found: set[str] = set()
        module = self._rule.registry.module
        for name, table in self._tables():
            if name.rpartition(".")[0] == module:
                keys = {key for key in table if isinstance(key, str)}
                if name not in self._names and not own <= keys:
                    found |= keys
        return found - own

    def _counts(self, table: str, entries: Mapping[str, Entry]) -> bool:
        """Whether a table is the one that is asked, or holds all of its entries."""
        if table in self._names:
            return True
        keys = next((set(one) for name, one in self._tables() if name == table), set())
        return table == self.models or (bool(entries) and entries.keys() <= keys)

    @property
    def models(self) -> str:
        """The dotted name of what is registered."""
        return f"{self._rule.registry.object}.{self._rule.registry.models}"

    def _entry(self, name: str, event: Event, before: Entry | None) -> Entry | None:
        """The row that an event makes; None where it takes it out."""
        by = f"{event.plugin} registers {name}"
        if event.kind == "table":
            by = f"{event.plugin} puts {name} into {event.table.rpartition('.')[2]}"
        entry = Entry(name, "", "", event.where, by)
        if event.outcome != "applied":
            why = f"{event.plugin} may have registered another class: {event.reason}"
            return replace(entry, open=Undecided(why, event.where, event.reason))
        value = event.value
        if value is UNBOUND and event.kind == "table":
            return None
        named = self._named(value, event)
        if named is not None:
            return replace(entry, module=named[0], class_name=named[1])
        if isinstance(value, ClassValue):
            return replace(entry, module=value.module.name, class_name=value.qualname, value=value)
        reason = value.reason if isinstance(value, Opaque) else "the class is not known"
        text = value.text if isinstance(value, Opaque) else ""
        why = f"{event.plugin} registers a class that is not known: {reason}"
        return replace(entry, open=Undecided(why, event.where, text))

    def _named(self, value: Value, event: Event) -> tuple[str, str] | None:
        match value:
            case str() if value.count(":") == 1:
                module, _, name = value.partition(":")
                return module, name
            case (str() as module, str() as name, *_):
                roots = self._run.conventions.roots
                return absolute(module, roots, self._rule.registry.package), name
            case Instance(args=(str() as module, str() as name, *_)):
                return module, name
            case Instance(keywords=keywords):
                given = [text for _, text in keywords if isinstance(text, str)]
                return (given[0], given[1]) if len(given) == 2 else None
            case _:
                return None
