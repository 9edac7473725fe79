"""What a document says of plugins: their events, what stays open, and sentences about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from auditor.coverage import PluginEvent, PluginInfo, Step, UndecidedItem
from auditor.plugins.events import Event
from auditor.plugins.session import Session
from auditor.plugins.values import shown
from auditor.program import Files
from auditor.sources.plugin import Plugin
from auditor.values import (
    Place,
)


class Account:
    """The account of one session, once every platform is answered."""

    def __init__(self, session: Session, files: Files) -> None:
        self._session = session
        self._files = files

    def infos(self, order: Sequence[str]) -> tuple[PluginInfo, ...]:
        """What the document says of each plugin; ``order`` are the platforms of the document."""
        return tuple(self._info(plugin, order) for plugin in self._session.plugins)

    def _info(self, plugin: Plugin, order: Sequence[str]) -> PluginInfo:
        given = self._session.given.get(plugin.name)
        events: dict[PluginEvent, list[str]] = {}
        for event in given.events if given is not None else ():
            events.setdefault(self._event(event), [])
        for name in order:
            started = self._session.started.get(name)
            for event in started.events if started is not None else ():
                if event.plugin == plugin.name:
                    events.setdefault(self._event(event), []).append(name)
        return PluginInfo(
            plugin.name,
            plugin.label,
            plugin.version,
            plugin.name if plugin.name in order else None,
            given.dotted if given is not None and given.cls is not None else None,
            tuple(
                Step("plugin", one.path, one.line, f"{one.name} = {one.target}", one.group)
                for one in plugin.entry_points
            ),
            tuple(
                msgspec.structs.replace(event, platforms=tuple(dict.fromkeys(names)))
                for event, names in events.items()
            ),
        )

    def _event(self, event: Event) -> PluginEvent:
        return PluginEvent(
            event.kind,
            event.target or event.table,
            shown(event.value),
            event.where.path,
            event.where.line,
            self._files.line(event.where.path, event.where.line),
            event.outcome,
            event.reason,
            (),
            tuple(dict.fromkeys(str(guard) for guard in event.guards)),
        )

    def undecided(self) -> Iterator[UndecidedItem]:
        """What of the plugins was not decided, and what was left out of them."""
        for plugin in self._session.plugins:
            for problem in plugin.problems:
                yield UndecidedItem("source", problem.path, 0, "", problem.reason)
            for unread in plugin.unread:
                reason = f"{plugin.name}: {unread.reason}"
                yield UndecidedItem("plugin", unread.path, unread.line, "", reason)
        for name, event in self._config_events():
            reason = f"{event.plugin} replaces {event.target}, which is read as the release has it"
            yield UndecidedItem(
                "caller", event.where.path, event.where.line,
                self._files.line(event.where.path, event.where.line), reason, (name,),
            )  # fmt: skip
        every = [e for given in self._session.given.values() for e in given.events]
        found: dict[tuple[Place, str], tuple[Event, list[str]]] = {}
        for event in every:
            found.setdefault((event.where, event.reason), (event, []))
        for name, started in self._session.started.items():
            for event in started.events:
                key = (event.where, f"{event.target}: {event.reason}")
                found.setdefault(key, (event, []))[1].append(name)
        for event, names in found.values():
            if event.outcome == "undecided":
                target = f"{event.target}: " if event.target else ""
                yield UndecidedItem(
                    "plugin", event.where.path, event.where.line,
                    self._files.line(event.where.path, event.where.line),
                    f"{event.plugin}: {target}{event.reason}", tuple(dict.fromkeys(names)),
                )  # fmt: skip

    def _config_events(self) -> Iterator[tuple[str, Event]]:
        """Changes of the code that says which draft a checkpoint asks for, by platform."""
        for name, started in self._session.started.items():
            for event in started.events:
                if event.kind == "config" and event.outcome != "dead":
                    yield name, event

    def notes(self) -> Iterator[str]:
        """Sentences about the whole audit."""
        rule = self._session.rule.plugins
        groups = (rule.platform_group, rule.general_group)
        for plugin in self._session.plugins:
            if not plugin.entry_points and not plugin.unread:
                which = " or ".join(groups)
                yield f"{plugin.label} has no entry point of {which}: vLLM loads nothing of it"
            given = self._session.given.get(plugin.name)
            if given is not None and given.condition:
                yield (
                    f"whether {plugin.label} gives its platform depends on {given.condition}; "
                    "it is taken to"
                )
