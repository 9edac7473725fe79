"""Findings on plugins: patches that do nothing any more, half of a family, drafters without a flag.

What each code means stands in ``rules/findings/SD3*.toml``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from auditor.contracts.contract import Contracts
from auditor.contracts.drafters import Drafter, Drafters
from auditor.contracts.families import families
from auditor.contracts.names import Names, Ref
from auditor.coverage import Finding, Row
from auditor.plugins.events import Event
from auditor.plugins.session import Session
from auditor.program import Files
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.engine import EngineRule
from auditor.ruleset.findings import finding_rules


@dataclass(frozen=True, slots=True)
class On:
    """What the remarks rest on beside the plugins."""

    files: Files
    modules: Mapping[str, tuple[str, bool]]
    contracts: Contracts
    capability: Capability
    rule: EngineRule


class Remarks:
    """Makes the remarks on the plugins of a session."""

    def __init__(self, session: Session, asked: On, rows: Sequence[Row]) -> None:
        self._session = session
        self._asked = asked
        self._rows = rows
        self._names = Names(asked.files, asked.modules)
        self._severity = {rule.code: rule.severity for rule in finding_rules()}

    def findings(self) -> tuple[Finding, ...]:
        """Every remark, each once with its platforms."""
        found: dict[Finding, list[str]] = {}
        for finding, platform in self._every():
            found.setdefault(finding, []).append(platform)
        return tuple(
            replace(finding, platforms=tuple(dict.fromkeys(filter(None, names))))
            for finding, names in found.items()
        )

    def _every(self) -> Iterator[tuple[Finding, str]]:
        for event in (e for given in self._session.given.values() for e in given.events):
            if event.outcome == "failed":
                yield self._failed(event), ""
        for platform, started in self._session.started.items():
            for event in started.events:
                if event.outcome == "failed":
                    yield self._failed(event), platform
                elif event.outcome == "dead":
                    yield self._dead(event), platform
                elif event.kind == "table" and event.table != self._models:
                    yield self._late(event), platform
            for finding in self._halves(started.events):
                yield finding, platform
        for finding in self._deaf():
            yield finding, ""

    @property
    def _models(self) -> str:
        rule = self._session.rule.registry
        return f"{rule.object}.{rule.models}"

    def _finding(
        self, code: str, message: str, path: str, line: int, architectures: Iterable[str] = ()
    ) -> Finding:
        return Finding(code, self._severity[code], message, path, line, tuple(architectures))

    def _dead(self, event: Event) -> Finding:
        done = "registers" if event.kind == "architecture" else "sets"
        message = f"{event.plugin} {done} {event.target} no more: {event.reason}"
        names = [event.target] if event.kind in ("architecture", "table") else []
        listed = [name for name in names if any(r.architecture == name for r in self._rows)]
        return self._finding("SD401", message, event.where.path, event.where.line, listed)

    def _failed(self, event: Event) -> Finding:
        message = f"{event.plugin}: {event.target}: {event.reason}"
        return self._finding("SD404", message, event.where.path, event.where.line)

    def _late(self, event: Event) -> Finding:
        message = (
            f"{event.plugin} changes {event.target or 'an entry'} in {event.table}, from which "
            f"{self._session.rule.registry.object} was made before: a server looks it up there"
        )
        names = [event.target] if event.target else []
        return self._finding("SD405", message, event.where.path, event.where.line, names)

    # --- half of a family

    def _halves(self, events: Iterable[Event]) -> Iterator[Finding]:
        replaced: dict[str, Event] = {}
        for event in events:
            if event.kind in ("architecture", "table") and event.outcome == "applied":
                replaced[event.target] = event
        if not replaced:
            return
        table = {row.architecture for row in self._rows}
        for family in families(self._names, self._asked.rule, table):
            own = [name for name, _ in family.drafts if name in replaced]
            others = [(name, of) for name, of in family.drafts if name not in replaced]
            if not own or not others:
                continue
            event = replaced[own[0]]
            missing = "; ".join(f"{name} (model type {', '.join(of)})" for name, of in others)
            message = (
                f"{event.plugin} replaces {', '.join(own)} and not {missing}, which the "
                f"configuration code gives to checkpoints of the same family ({family.where})"
            )
            names = [name for name, _ in others]
            yield self._finding("SD402", message, event.where.path, event.where.line, names)

    # --- drafters that never look at the flag

    def _deaf(self) -> Iterator[Finding]:
        capability = self._asked.capability
        if capability.flag is None or capability.agrees_with is None:
            return
        rule = self._asked.rule.drafter
        methods = (capability.name, capability.agrees_with)
        reader = Drafters(self._names, rule.model, rule.entries, methods)
        known = {drafter.cls: drafter for drafter in self._asked.contracts.drafters}
        for module in sorted(self._asked.modules):
            plugin = self._session.plugin_of(module)
            for cls in self._drafting(module, known) if plugin else ():
                drafter = reader.of(cls)
                if self._is_deaf(drafter, reader, capability.flag.name):
                    message = (
                        f"{cls.name} of {plugin} takes tokens from {capability.agrees_with}, never "
                        f"asks {capability.flag.name} and never calls {capability.name}: the "
                        "setting is accepted and does nothing"
                    )
                    where = drafter.where
                    yield self._finding("SD403", message, where.path, where.line)

    def _is_deaf(self, drafter: Drafter, reader: Drafters, flag: str) -> bool:
        capability = self._asked.capability
        assert capability.agrees_with is not None
        return (
            not drafter.open
            and bool(drafter.of(capability.agrees_with))
            and not drafter.of(capability.name)
            and not any(
                self._session.plugin_of(owner.module) and _reads(function, flag)
                for owner, function in reader.reached(drafter.cls)
            )
        )

    def _drafting(self, module: str, known: Mapping[Ref, Drafter]) -> Iterator[Ref]:
        """Classes of a module that draft: by their base, or since a runner is given one."""
        sketch = self._names.sketch(module)
        found: dict[Ref, None] = {}
        for chunk in sketch.top.values() if sketch is not None else ():
            if sketch is None or chunk.kind != "class":
                continue
            cls = Ref(module, chunk.name)
            if any(base in known for base in self._names.order(cls)[1:]):
                found[cls] = None
            for name in sketch.members(chunk.name):
                method = sketch.method(chunk.name, name)
                for made in self._given(method) if method is not None else ():
                    named = self._names.resolve(module, made)
                    if isinstance(named, Ref) and self._session.plugin_of(named.module):
                        found[named] = None
        yield from found

    def _given(self, method: ast.AST) -> Iterator[str]:
        """What a method calls to make the object that drafts."""
        for node in ast.walk(method):
            match node:
                case ast.Assign(
                    targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)],
                    value=ast.Call(func=ast.Name(id=name)),
                ) if attr in self._asked.rule.drafter.attributes:
                    yield name
                case _:
                    continue


def _reads(function: ast.AST, name: str) -> bool:
    return any(
        getattr(node, "attr", "") == name or getattr(node, "value", "") == name
        for node in ast.walk(function)
    )


def with_codes(rows: Iterable[Row], findings: Iterable[Finding]) -> tuple[Row, ...]:
    """Rows with the codes of the findings that are about them."""
    listed = tuple(findings)

    def codes(row: Row) -> tuple[str, ...]:
        own = {
            one.code
            for one in listed
            if row.architecture in one.architectures and row.platform in one.platforms
        }
        return tuple(sorted({*row.findings, *own}))

    return tuple(replace(row, findings=codes(row)) for row in rows)
