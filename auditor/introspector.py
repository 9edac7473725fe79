"""Entry by platform to a resolution with evidence.

A resolution says what a registry entry becomes when a process on that platform loads it: a class,
an exception with its chain, or undecided with the condition that decides it.
"""

from __future__ import annotations

import msgspec

from auditor import facts as f
from auditor.classes import Found, Lookup, Missing, Open, linearise, lookup
from auditor.coverage import ErrorInfo, Row, Step, VerdictName
from auditor.engine import GuardSite
from auditor.evidence import Evidence
from auditor.imports import ImportRun
from auditor.program import Files
from auditor.registry import Entry
from auditor.ruleset.capabilities import Capability
from auditor.values import (
    ClassValue,
    Either,
    Error,
    Foreign,
    Function,
    ModuleValue,
    Opaque,
    Place,
    PythonError,
    Trace,
    Undecided,
    Value,
)


class Loaded(msgspec.Struct, frozen=True):
    """The entry loads, and is this class."""

    cls: ClassValue
    found: Lookup


class Unimportable(msgspec.Struct, frozen=True):
    """Importing the module, or asking it for the class, raises."""

    error: Error


class Absent(msgspec.Struct, frozen=True):
    """The module loads, and does not provide the class: it has no such name."""

    error: Error
    module: Value


class Nothing(msgspec.Struct, frozen=True):
    """The module loads, and what it has under the name is None."""


class Unresolved(msgspec.Struct, frozen=True):
    """It cannot be said what the entry is."""

    why: Undecided


Resolution = Loaded | Unimportable | Absent | Nothing | Unresolved


class Introspector:
    """Resolves the entries of a registry table in one import run."""

    def __init__(
        self, run: ImportRun, files: Files, capability: Capability, guards: tuple[GuardSite, ...]
    ) -> None:
        self._run = run
        self._files = files
        self._capability = capability
        self._guards = guards
        self.evidence = Evidence(run, files)
        self.open_rows: dict[str, Undecided] = {}
        self.classes: dict[str, ClassValue] = {}

    def row(self, entry: Entry) -> Row:
        """The row of one entry on this run's platform."""
        steps = list(self.evidence.registry(entry))
        try:
            resolution = self._resolve(entry, steps)
        except RecursionError:
            resolution = Unresolved(Undecided("nested too deeply to be followed", entry.where))
        match resolution:
            case Loaded(cls=cls, found=found):
                return self._class_row(entry, cls, found, steps)
            case Unimportable(error=error):
                return self._error_row(entry, "import", error, steps)
            case Absent(error=error, module=module):
                if isinstance(module, ModuleValue):
                    steps.extend(self.evidence.unbound(module, entry.class_name))
                return self._error_row(entry, "absent", error, steps)
            case Nothing():
                return self._none_row(entry, steps)
            case Unresolved(why=why):
                return self._open_row(entry, why, steps)

    def _resolve(self, entry: Entry, steps: list[Step]) -> Resolution:
        """Load the module as the registry does, then ask it for the class."""
        if entry.open is not None:
            return Unresolved(entry.open)
        if entry.value is not None:
            return self._of_object(entry.value)
        try:
            module = self._run.load(entry.module)
        except PythonError as raised:
            return Unimportable(raised.error)
        trace: list[Trace] = []
        try:
            value, doubts = self._run.get(module, entry.class_name, trace)
            if isinstance(value, ClassValue):
                self._run.settle(value)
        except PythonError as raised:
            missing = raised.error.type == "AttributeError" and not trace
            return Absent(raised.error, module) if missing else Unimportable(raised.error)
        open_doubts = list(doubts)
        if isinstance(module, ModuleValue):
            steps.extend(self.evidence.binding(module, entry.class_name))
            open_doubts = [*module.doubts, *doubts]
        if open_doubts:
            error, condition = open_doubts[0].error, open_doubts[0].condition
            why = f"loads unless {error.type}: {error.message} ({condition.reason})"
            return Unresolved(Undecided(why, condition.where, condition.text))
        return self._of_value(value)

    def _of_object(self, cls: ClassValue) -> Resolution:
        """A class that stands in the registry itself, and is not looked up by its name."""
        try:
            self._run.settle(cls)
        except PythonError as raised:
            return Unimportable(raised.error)
        return self._of_value(cls)

    def _of_value(self, value: Value) -> Resolution:
        match value:
            case ClassValue():
                return self._of_class(value)
            case Either(options=options):
                answers = [self._of_value(option) for option in value.values()]
                loaded = [answer for answer in answers if isinstance(answer, Loaded)]
                if len(loaded) == len(answers) and len(set(map(_told, loaded))) == 1:
                    return loaded[0]
                guard = options[0][0]
                return Unresolved(
                    Undecided("another class by an open condition", guard.where, guard.text)
                )
            case Opaque(reason=reason, where=where, text=text):
                return Unresolved(Undecided(f"the class is not known: {reason}", where, text))
            case Foreign(name=name):
                return Unresolved(Undecided(f"the class stands outside the tree: {name}"))
            case None:
                return Nothing()
            case _:
                return Unresolved(Undecided(f"the name is bound to a {type(value).__name__}"))

    def _of_class(self, cls: ClassValue) -> Resolution:
        """A class counts as loaded when the files that define it and its bases parse in full."""
        family = [one for one in linearise(cls) if isinstance(one, ClassValue)]
        for path in dict.fromkeys(one.module.path for one in family):
            why = self._files.grammar(path)
            if why is not None:
                self._run.unparsed[path] = why
                return Unresolved(Undecided(f"{path} {why.reason}", Place(path, why.line)))
        return Loaded(cls, lookup(cls, self._capability.probed))

    def _class_row(self, entry: Entry, cls: ClassValue, found: Lookup, steps: list[Step]) -> Row:
        self.classes[entry.architecture] = cls
        if self._capability.agrees_with is None:
            # What an instance has is asked once every row is resolved (auditor/instances.py).
            return self._known_class(entry, cls, found, steps)
        steps.extend(self.evidence.class_steps(cls, self._capability.probed, found))
        verdict, reason = self._verdict(cls, found)
        # A stub raises before the engine could probe it.
        if verdict == "no":
            steps.extend(self.evidence.guards(self._guards, cls.facts.name))
        if isinstance(found, Open):
            self.open_rows[entry.architecture] = found.why
        return Row(
            architecture=entry.architecture,
            platform=self._run.platform.name,
            verdict=verdict,
            hasattr=None if isinstance(found, Open) else isinstance(found, Found),
            module=cls.module.name,
            class_=cls.qualname,
            owner=found.owner.dotted if isinstance(found, Found) else None,
            reason=reason,
            evidence=tuple(steps),
        )

    def _known_class(self, entry: Entry, cls: ClassValue, found: Lookup, steps: list[Step]) -> Row:
        """The row of a class, before it is said what its instances have."""
        stub = isinstance(found, Missing) and self._is_stub(cls)
        return Row(
            architecture=entry.architecture,
            platform=self._run.platform.name,
            verdict="stub" if stub else "?",
            hasattr=None,
            module=cls.module.name,
            class_=cls.qualname,
            owner=None,
            evidence=tuple(steps),
        )

    def _verdict(self, cls: ClassValue, found: Lookup) -> tuple[VerdictName, str | None]:
        match found:
            case Open(why=why):
                return "?", why.reason
            case Found():
                return "yes?", None
            case Missing():
                if self._is_stub(cls):
                    return "stub", None
                agrees = self._capability.agrees_with
                if agrees is not None and isinstance(lookup(cls, agrees), Missing):
                    return "n/a", f"no {agrees}"
                return "no", None

    def _is_stub(self, cls: ClassValue) -> bool:
        """Whether making an instance only raises ``NotImplementedError``."""
        found = lookup(cls, "__init__")
        if not isinstance(found, Found):
            return False
        func = next(
            (s for s in found.owner.facts.body if isinstance(s, f.Func) and s.name == "__init__"),
            None,
        )
        if func is None:
            return False
        body = self._run.function_facts(Function(found.owner.module, func, ()))
        return isinstance(body, f.FunctionFacts) and _only_refuses(body.body)

    def _error_row(
        self, entry: Entry, verdict: VerdictName, error: Error, steps: list[Step]
    ) -> Row:
        chain = self.evidence.error_chain(error)
        return Row(
            architecture=entry.architecture,
            platform=self._run.platform.name,
            verdict=verdict,
            hasattr=None,
            module=None,
            class_=None,
            owner=None,
            error=ErrorInfo(error.type, error.message, chain),
            evidence=(*steps, *chain),
        )

    def _none_row(self, entry: Entry, steps: list[Step]) -> Row:
        """``Name = None``: the registry gets None, and ``hasattr(None, …)`` is false."""
        return Row(
            architecture=entry.architecture,
            platform=self._run.platform.name,
            verdict="absent",
            hasattr=False,
            module=None,
            class_=None,
            owner=None,
            reason=f"{entry.module}.{entry.class_name} is None there",
            evidence=tuple(steps),
        )

    def _open_row(self, entry: Entry, why: Undecided, steps: list[Step]) -> Row:
        self.open_rows[entry.architecture] = why
        if why.where is not None:
            steps.append(self.evidence.step("branch", why.where, f"open: {why.reason}", why.text))
        return Row(
            architecture=entry.architecture,
            platform=self._run.platform.name,
            verdict="?",
            hasattr=None,
            module=None,
            class_=None,
            owner=None,
            reason=why.reason,
            evidence=tuple(steps),
        )


def _told(answer: Loaded) -> tuple[str, str, str]:
    """What a row tells of a class: two classes of one name may differ in what they have."""
    owner = answer.found.owner.dotted if isinstance(answer.found, Found) else ""
    return answer.cls.dotted, type(answer.found).__name__, owner


def _only_refuses(body: tuple[f.Stmt, ...]) -> bool:
    """Whether a body comes to ``raise NotImplementedError`` whatever happens."""
    for stmt in body:
        match stmt:
            case f.Raise(exc=f.Call(func=f.Name(id=name)) | f.Name(id=name)):
                return name == "NotImplementedError"
            case f.Do() | f.Assign() | f.AugAssign() | f.Bind() | f.Delete() | f.Uses():
                continue
            case f.Import() | f.ImportFrom() | f.Func() | f.Class() | f.Global():
                continue
            case _:
                return False
    return False
