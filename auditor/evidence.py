"""From an answer back to the lines that decided it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from auditor import facts as f
from auditor.classes import Found, Lookup, linearise, member_name, own_attribute
from auditor.coverage import Step
from auditor.engine import GuardSite
from auditor.imports import ImportRun
from auditor.program import Files
from auditor.registry import Entry
from auditor.values import (
    Builtin,
    ClassValue,
    Error,
    Foreign,
    Guard,
    ModuleValue,
    Opaque,
    Origin,
    Place,
    Trace,
)

_MAX_HOPS = 40

#: How the guard of an ``except`` block starts; the exception that it took follows.
_AFTER = "except after "


class Evidence:
    """Builds the steps of one platform's answers."""

    def __init__(self, run: ImportRun, files: Files) -> None:
        self._run = run
        self._files = files

    def step(self, kind: str, where: Place, note: str = "", text: str = "") -> Step:
        """A step at a place; its text is the source line unless given."""
        return Step(
            kind, where.path, where.line, text or self._files.line(where.path, where.line), note
        )

    def registry(self, entry: Entry) -> Iterator[Step]:
        """The registry line, and the module that it names."""
        names = f"names {entry.class_name} of {entry.module}"
        if entry.option:
            if entry.where.path:
                yield self.step("registry", entry.where, f"overridden by {entry.option}")
            yield Step("registry", "", 0, entry.option, names)
        elif entry.open is not None:
            yield self.step("plugin", entry.where, f"{entry.by}: {entry.open.reason}")
            return
        elif entry.by:
            yield self.step("plugin", entry.where, f"{entry.by}: {names}")
        else:
            yield self.step("registry", entry.where, names)
        located = self._run.program.modules.get(entry.module)
        if located is not None:
            yield Step("module", located[0], 1, entry.module, "the module asked for the class")

    def binding(self, module: ModuleValue, name: str) -> Iterator[Step]:
        """How a name of a module came to its value, hop by hop, to where it is defined."""
        for holder, origin in self._hops(module, name):
            yield from self._guards(origin.guards)
            yield from self._alternatives(origin.guards)
            yield from self._traced(origin.trace)
            if (
                origin.stmt is not None
                and not origin.trace
                and not isinstance(origin.stmt, f.Class)
            ):
                yield self.step("import", Place(holder.path, origin.line))

    def _hops(self, module: ModuleValue, name: str) -> Iterator[tuple[ModuleValue, Origin]]:
        """The modules that a name passes through, each with what bound it there."""
        seen: set[tuple[str, str]] = set()
        at: tuple[ModuleValue, str] | None = (module, name)
        while at is not None and (at[0].name, at[1]) not in seen and len(seen) < _MAX_HOPS:
            seen.add((at[0].name, at[1]))
            origin = at[0].origins.get(at[1])
            if origin is None:
                return
            yield at[0], origin
            at = self._next(at[0], at[1], origin)

    def _next(
        self, module: ModuleValue, name: str, origin: Origin
    ) -> tuple[ModuleValue, str] | None:
        match origin.stmt:
            case f.ImportFrom(names=names) as stmt:
                attr = next((attr for attr, bound in names if bound == name), name)
                target = self._run.modules.get(f.absolute_name(stmt, module.package))
                return (target, attr) if isinstance(target, ModuleValue) else None
            case f.Assign(value=f.Name(id=other)) if other != name:
                return (module, other)
            case _:
                return None

    def _guards(self, guards: tuple[Guard, ...]) -> Iterator[Step]:
        platform = self._run.platform.name
        for guard in guards:
            if guard.text.startswith(_AFTER):
                note = guard.text.removeprefix("except ")
                yield self.step("branch", guard.where, note)
                continue
            if guard.outcome is None:
                note = f"open on {platform}; followed as {'false' if guard.negated else 'true'}"
            elif guard.outcome:
                note = f"true on {platform}: taken"
            else:
                note = f"false on {platform}: not taken"
            yield self.step("branch", guard.where, note, guard.text)

    def _alternatives(self, guards: tuple[Guard, ...]) -> Iterator[Step]:
        """The branches that an ``if`` has after the one that was taken."""
        for guard in guards:
            facts = self._files.facts(guard.where.path) if guard.outcome is True else None
            body = facts.body if isinstance(facts, f.ModuleFacts) else ()
            found = _branch(body, guard)
            yield from self._not_reached(found, guard.where.path) if found else ()

    def unbound(self, module: ModuleValue, name: str) -> Iterator[Step]:
        """The conditions in a module by which a name that it could bind is not bound here."""
        yield from self._around(module.facts.body, name, module.path)

    def _around(self, body: Iterable[f.Stmt], name: str, path: str) -> Iterator[Step]:
        for stmt in body:
            if not isinstance(stmt, f.If) or not _may_bind(stmt, name):
                continue
            place = Place(path, stmt.line)
            outcome = self._run.outcomes.get(place)
            if outcome is None:
                continue
            yield from self._guards((Guard(place, stmt.text, outcome),))
            yield from self._around(stmt.body if outcome else stmt.orelse, name, path)
            if outcome:
                yield from self._not_reached(stmt, path)

    def _not_reached(self, taken: f.If, path: str) -> Iterator[Step]:
        note = f"not reached on {self._run.platform.name}: a branch above is taken"
        match taken.orelse:
            case (f.If(is_elif=True) as other,):
                yield self.step("branch", Place(path, other.line), note, other.text)
                yield from self._not_reached(other, path)
            case (first, *_):
                yield self.step("branch", Place(path, first.line), f"the else branch, {note}")

    def _traced(self, trace: tuple[Trace, ...]) -> Iterator[Step]:
        for item in trace:
            note = item.note
            if item.kind == "branch":
                note = f"{note} on {self._run.platform.name}"
            yield self.step(item.kind, item.where, note)

    def class_steps(self, cls: ClassValue, capability: str, found: Lookup) -> Iterator[Step]:
        """The class, its MRO in order, and where the capability is or that none has it."""
        for index, member in enumerate(linearise(cls)):
            kind = "class" if index == 0 else "base"
            match member:
                case ClassValue():
                    own = own_attribute(member, capability)
                    has = isinstance(own, Found)
                    note = f"{'defines' if has else 'does not define'} {capability}"
                    where = Place(member.module.path, member.facts.line)
                    yield self.step(kind, where, f"{member.dotted} {note}")
                case Foreign(name=name) | Builtin(name=name):
                    yield Step(kind, "", 0, name, "outside the tree; taken not to define it")
                case Opaque(where=Place() as where):
                    yield self.step(kind, where, f"could not be resolved: {member.reason}")
                case _:
                    yield Step(kind, "", 0, member_name(member), "could not be resolved")
        if isinstance(found, Found):
            module = found.where.path.removesuffix(".py").replace("/", ".")
            plugin = self._run.plugin_of(module)
            if plugin and plugin != self._run.plugin_of(found.owner.module.name):
                note = f"{plugin} sets {found.owner.dotted}.{capability}"
                yield self.step("plugin", found.where, note)
            yield self.step(
                "method", found.where, f"{found.owner.dotted}.{capability}, {found.how}"
            )
        else:
            yield Step("method", "", 0, capability, "no class in this order has it")

    def guards(self, sites: tuple[GuardSite, ...], class_name: str) -> Iterator[Step]:
        """The probes of the engine, with the sentence that each raises."""
        for site in sites:
            line = self._files.line(site.where.path, site.where.line)
            text = line if line.endswith(":") else site.text
            yield self.step("guard", site.where, site.sentence(class_name), text)

    def error_chain(self, error: Error) -> tuple[Step, ...]:
        """From the outermost import to the raising statement, and the fact behind it."""
        hops = [(p, g) for p, g in zip(error.chain, error.guards, strict=True) if p.path]
        steps: list[Step] = []
        for index, (place, guards) in enumerate(reversed(hops), start=1):
            steps.extend(self._guards(guards))
            last = index == len(hops)
            note = f"{error.type}: {error.message}" if last else ""
            steps.append(self.step("raise" if last else "import", place, note))
        if error.fact:
            steps.append(Step("fact", "", 0, error.searching or error.message, error.fact))
        elif hops:
            steps.extend(self._behind(*hops[0]))
        return tuple(steps)

    def _behind(self, place: Place, guards: tuple[Guard, ...]) -> Iterator[Step]:
        """Why the names in the conditions above a raise are what they are.

        Told are names that an ``except`` block bound: the exception that it took names the
        module that is missing on the platform.
        """
        module = self._run.failed.get(place.path)
        texts = [guard.text for guard in guards if guard.outcome is not None]
        for name in dict.fromkeys(name for text in texts for name in _names(text)):
            for holder, origin in self._hops(module, name) if module is not None else ():
                for guard in origin.guards:
                    if guard.text.startswith(_AFTER):
                        note = guard.text.removeprefix("except ")
                        yield self.step("fact", Place(holder.path, origin.line), note)


def _may_bind(stmt: f.Stmt, name: str) -> bool:
    """Whether a statement, or one in its branches, binds a name."""
    match stmt:
        case f.If(body=body, orelse=orelse):
            return any(_may_bind(inner, name) for inner in (*body, *orelse))
        case f.ImportFrom(names=names):
            return any(bound == name for _, bound in names)
        case f.Import(asname=bound) | f.Class(name=bound) | f.Func(name=bound):
            return bound == name
        case f.Assign(targets=targets):
            return f.Name(name) in targets
        case _:
            return False


def _branch(body: Iterable[f.Stmt], guard: Guard) -> f.If | None:
    """The ``if`` at the place of a guard."""
    for stmt in body:
        if isinstance(stmt, f.If):
            if stmt.line == guard.where.line and stmt.text == guard.text:
                return stmt
            found = _branch((*stmt.body, *stmt.orelse), guard)
            if found is not None:
                return found
        elif isinstance(stmt, f.Try | f.With):
            found = _branch(stmt.body, guard)
            if found is not None:
                return found
    return None


def _names(text: str) -> Iterator[str]:
    """The names that an expression reads, in order."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return
    yield from (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
