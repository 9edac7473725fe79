"""From an answer back to the lines that decided it."""

from __future__ import annotations

from collections.abc import Iterator

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
        yield self.step("registry", entry.where, f"names {entry.class_name} of {entry.module}")
        located = self._run.program.modules.get(entry.module)
        if located is not None:
            yield Step("module", located[0], 1, entry.module, "the module asked for the class")

    def binding(self, module: ModuleValue, name: str) -> Iterator[Step]:
        """How a name of a module came to its value, hop by hop, to where it is defined."""
        seen: set[tuple[str, str]] = set()
        at: tuple[ModuleValue, str] | None = (module, name)
        while at is not None and (at[0].name, at[1]) not in seen and len(seen) < _MAX_HOPS:
            seen.add((at[0].name, at[1]))
            origin = at[0].origins.get(at[1])
            if origin is None:
                return
            yield from self._guards(origin.guards)
            yield from self._traced(origin.trace)
            if (
                origin.stmt is not None
                and not origin.trace
                and not isinstance(origin.stmt, f.Class)
            ):
                yield self.step("import", Place(at[0].path, origin.line))
            at = self._next(at[0], at[1], origin)

    def _next(
        self, module: ModuleValue, name: str, origin: Origin
    ) -> tuple[ModuleValue, str] | None:
        match origin.stmt:
            case f.ImportFrom(names=names) as stmt:
                attr = next((attr for attr, bound in names if bound == name), name)
                target = self._run.modules.get(self._absolute(stmt, module))
                return (target, attr) if isinstance(target, ModuleValue) else None
            case f.Assign(value=f.Name(id=other)) if other != name:
                return (module, other)
            case _:
                return None

    def _absolute(self, stmt: f.ImportFrom, module: ModuleValue) -> str:
        if not stmt.level:
            return stmt.module
        parts = module.package.split(".")
        base = ".".join(parts[: len(parts) - stmt.level + 1])
        return f"{base}.{stmt.module}" if stmt.module else base

    def _guards(self, guards: tuple[Guard, ...]) -> Iterator[Step]:
        platform = self._run.platform.name
        for guard in guards:
            if guard.outcome is None:
                note = f"open on {platform}; followed as {'false' if guard.negated else 'true'}"
            elif guard.outcome:
                note = f"true on {platform}: taken"
            else:
                note = f"false on {platform}: not taken"
            yield self.step("branch", guard.where, note, guard.text)

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
            yield self.step(
                "method", found.where, f"{found.owner.dotted}.{capability}, {found.how}"
            )
        else:
            yield Step("method", "", 0, capability, "no class in this order has it")

    def guards(self, sites: tuple[GuardSite, ...], class_name: str) -> Iterator[Step]:
        """The probes of the engine, with the sentence that each raises."""
        for site in sites:
            yield Step(
                "guard", site.where.path, site.where.line, site.text, site.sentence(class_name)
            )

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
            steps.append(Step("fact", "", 0, error.searching, error.fact))
        return tuple(steps)
