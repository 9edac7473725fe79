"""The worker classes of plugins: models are loaded in their processes, after what they patch.

A platform puts the dotted name of its worker class into the configuration. Which name it puts there
may depend on the device, so what counts is every name of such a class in a file that speaks of the
attribute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from auditor.contracts.names import Names, Ref
from auditor.facts import Unparsed
from auditor.program import Files
from auditor.ruleset.target import PluginsRule

_NAMED = re.compile(rb"""["']([A-Za-z_][\w.]*)\.([A-Z]\w*)["']""")


def worker_classes(
    files: Files, modules: Mapping[str, tuple[str, bool]], roots: frozenset[str], rule: PluginsRule
) -> tuple[Ref, ...]:
    """The worker classes that the packages ``roots`` name, in order of file and line."""
    names = Names(files, modules)
    module, _, name = rule.worker_base.rpartition(".")
    base = names.member(module, name)
    found: dict[Ref, None] = {}
    for cls in _named(files, modules, roots, rule.worker):
        if cls.module.partition(".")[0] in roots and names.is_a(cls, (base,)):
            found[cls] = None
    return tuple(found)


def _named(
    files: Files, modules: Mapping[str, tuple[str, bool]], roots: frozenset[str], attribute: str
) -> Iterator[Ref]:
    """The classes whose dotted names stand in files that speak of an attribute."""
    for module in sorted(modules):
        if module.partition(".")[0] not in roots:
            continue
        path = modules[module][0]
        files.note(path, ("mentions", attribute, 0, 0, 0))
        text = files.text(path)
        if isinstance(text, Unparsed) or attribute.encode() not in text:
            continue
        for match in _NAMED.finditer(text):
            owner, name = match[1].decode(), match[2].decode()
            if owner in modules:
                yield Ref(owner, name)
