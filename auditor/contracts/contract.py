"""The contract of a capability: who calls it, how, and for which architecture.

It belongs to a source, not to a platform: the engine's modules are read as they stand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from auditor.contracts.drafters import Call, Drafter, Drafters, calls_in
from auditor.contracts.names import Names
from auditor.contracts.selection import Selected, Selection, Site
from auditor.contracts.sketch import Sketch
from auditor.engine import GuardSite, Sources
from auditor.nodes import nodes_of
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.engine import EngineRule
from auditor.values import Place


class Problem(msgspec.Struct, frozen=True):
    """Something of the engine that was not followed: what, and where."""

    reason: str
    where: Place


class Contracts(msgspec.Struct, frozen=True):
    """How the engine uses a capability.

    Attributes:
        guards: where it probes a model, and what it raises.
        calls: every call of the capability, and of the method that it must agree with.
        drafters: what each class that drafts comes to call.
        selected: for each architecture, what may draft for it.
        runners: the model runners that choose.
        problems: what was not followed.
        flagged: the release has the setting that makes the engine use the capability.
    """

    guards: tuple[GuardSite, ...] = ()
    calls: tuple[Call, ...] = ()
    drafters: tuple[Drafter, ...] = ()
    selected: dict[str, tuple[Selected, ...]] = msgspec.field(default_factory=dict)
    runners: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    flagged: bool = True

    def of(self, architecture: str) -> tuple[tuple[Selected, Drafter], ...]:
        """What may draft for an architecture, each with what it calls."""
        known = {drafter.cls: drafter for drafter in self.drafters}
        return tuple((one, known[one.drafter]) for one in self.selected.get(architecture, ()))

    def unknown(self, architecture: str) -> str | None:
        """Why it is not known what drafts for an architecture; None where it is."""
        if not self.runners:
            return "no model runner that makes a drafter was found"
        if not self.selected.get(architecture):
            return "no configuration was found that leads to this architecture"
        return None


class Engine:
    """Reads the contracts off the modules of the engine.

    Args:
        files: the files of the tree.
        modules: its modules, by dotted name.
        capability: the method of interest, and the one that it must agree with.
        rule: the engine's conventions.
    """

    def __init__(
        self,
        files: Sources,
        modules: Mapping[str, tuple[str, bool]],
        capability: Capability,
        rule: EngineRule,
    ) -> None:
        self._files = files
        self._names = Names(files, modules)
        self._modules = {path: name for name, (path, _) in modules.items()}
        self._rule = rule
        self._capability = capability
        self._methods = tuple(
            name for name in (capability.probed, capability.agrees_with) if name is not None
        )
        self._folder = capability.guard.search if capability.guard is not None else ""

    def contracts(
        self,
        architectures: Iterable[str],
        independent: Collection[str] = (),
        guards: tuple[GuardSite, ...] = (),
    ) -> Contracts:
        """Everything that is said of these architectures.

        ``independent`` are those of them that draft as models of their own.
        """
        sites = tuple(self._sites())
        selection = Selection(self._names, self._rule, architectures, independent)
        selected = self._selected(selection, sites)
        rule = self._rule.drafter
        reader = Drafters(self._names, rule.model, rule.entries, self._methods)
        chosen = dict.fromkeys(one.drafter for found in selected.values() for one in found)
        drafters = tuple(map(reader.of, chosen))
        return Contracts(
            guards=guards,
            calls=tuple(self._calls()),
            drafters=drafters,
            selected=selected,
            runners=tuple(dict.fromkeys(site.name for site in sites)),
            problems=tuple(self._problems(selection, drafters)),
        )

    @staticmethod
    def _problems(selection: Selection, drafters: Iterable[Drafter]) -> Iterator[Problem]:
        for what, where in selection.problems:
            yield Problem(f"which class drafts was not followed: {what}", where)
        for drafter in drafters:
            if drafter.open:
                yield Problem(f"the calls of {drafter.cls.name}: {drafter.open}", drafter.where)

    @staticmethod
    def _selected(selection: Selection, sites: Iterable[Site]) -> dict[str, tuple[Selected, ...]]:
        settled = selection.settled()
        everything = [one for found in settled.values() for one in found]
        chosen: dict[str, dict[Selected, None]] = {name: {} for name in settled}
        for site in sites:
            for one, found in selection.choose(site, everything).items():
                chosen[one.checkpoint.architecture].update(dict.fromkeys(found))
        return {name: tuple(found) for name, found in chosen.items()}

    # --- the modules of the engine

    def _mentioning(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The engine's modules whose text has one of the names."""
        wanted = tuple(names)
        for path in sorted(self._modules):
            if path.startswith(self._folder):
                for name in wanted:
                    self._files.note(path, ("mentions", name, 0, 0, 0))
                text = self._files.text(path)
                if isinstance(text, bytes) and any(name.encode() in text for name in wanted):
                    yield path, text

    def _calls(self) -> Iterator[Call]:
        pattern = re.compile(rb"\.(?:%s)\s*\(" % "|".join(self._methods).encode())
        for path, text in self._mentioning(self._methods):
            sketch = self._names.sketch_of(path)
            seen: set[tuple[str, str]] = set()
            for line in _lines(pattern, text):
                holder = sketch.holder(line)
                if holder not in seen:
                    seen.add(holder)
                    node = _syntax(sketch, *holder)
                    if node is not None:
                        yield from calls_in(node, path, self._methods, holder[0])

    def _sites(self) -> Iterator[Site]:
        """The statements that make what drafts."""
        attributes = self._rule.drafter.attributes
        pattern = re.compile(rb"self\.(?:%s)\b[^=\n]*=[^=]" % "|".join(attributes).encode())
        names = tuple(f"self.{name}" for name in attributes)
        for path, text in self._mentioning(names):
            sketch = self._names.sketch_of(path)
            seen: set[tuple[int, str]] = set()
            for line in _lines(pattern, text):
                cls, function = sketch.holder(line)
                node = _syntax(sketch, cls, function)
                if isinstance(node, ast.FunctionDef):
                    for site in self._sites_in(node, path, cls):
                        if (site.where.line, site.attribute) not in seen:
                            seen.add((site.where.line, site.attribute))
                            yield site

    def _sites_in(self, function: ast.FunctionDef, path: str, cls: str) -> Iterator[Site]:
        for statement in function.body:
            for node in nodes_of(statement):
                attribute = self._made(node)
                if attribute is not None:
                    where = Place(path, statement.lineno)
                    yield Site(where, self._modules[path], cls, function, statement, attribute)
                    break

    def _made(self, node: ast.AST) -> str | None:
        """The attribute that an assignment gives a new drafter to."""
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)], value=ast.Call()
            ) if attr in self._rule.drafter.attributes:
                return str(attr)
            case _:
                return None


def _lines(pattern: re.Pattern[bytes], text: bytes) -> Iterator[int]:
    """The lines, from 1, on which a pattern begins."""
    for match in pattern.finditer(text):
        yield text.count(b"\n", 0, match.start()) + 1


def _syntax(sketch: Sketch, cls: str, function: str) -> ast.AST | None:
    if cls and function:
        return sketch.method(cls, function)
    if function:
        return sketch.function(function)
    return None
