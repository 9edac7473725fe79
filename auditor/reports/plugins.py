"""What a plugin does to the release, in a few lines for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from auditor.coverage import PluginInfo

#: What is counted of each kind of event, one and several.
_KINDS = {
    "architecture": ("architecture registered", "architectures registered"),
    "table": ("table entry stored", "table entries stored"),
    "attribute": ("attribute set", "attributes set"),
    "config": ("attribute of the configuration set", "attributes of the configuration set"),
    "module": ("module replaced", "modules replaced"),
    "hook": ("hook on imports", "hooks on imports"),
    "entry": ("entry point", "entry points"),
    "worker": ("worker made", "workers made"),
    "call": ("call not followed", "calls not followed"),
}
_OUTCOMES = {
    "applied": "",
    "undecided": ", not decided whether or with what",
    "dead": ", kept from it by a condition about the release",
    "failed": " failed",
}


def heading(plugin: PluginInfo) -> str:
    """The plugin, and the platform that it gives."""
    gives = f", which gives the platform ({plugin.platform_class})" if plugin.platform else ""
    return f"With {plugin.label}{gives}:"


def done(plugin: PluginInfo) -> Iterator[str]:
    """What it does, counted by kind and outcome."""
    counts = Counter((event.outcome, event.kind) for event in plugin.events)
    for outcome, said in _OUTCOMES.items():
        for kind, (one, several) in _KINDS.items():
            count = counts[outcome, kind]  # type: ignore[index]
            if count:
                yield f"{count} {one if count == 1 else several}{said}"
    if not plugin.events:
        yield "it does nothing to it"
