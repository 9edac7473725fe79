"""Holds an import run against what real Python reported for the same tree."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from auditor.classes import Found, InconsistentOrder, Missing, linearise, lookup
from auditor.evaluation.frame import Frame
from auditor.evaluation.import_statements import Conventions, Program
from auditor.facts import Func, ModuleFacts, Unparsed
from auditor.imports import ImportRun
from auditor.platforms import Platform
from auditor.program import locate_modules
from auditor.syntax import function_facts, module_facts
from auditor.values import (
    UNBOUND,
    Builtin,
    ClassValue,
    Closure,
    Doubts,
    Either,
    Error,
    Foreign,
    Function,
    Instance,
    Method,
    ModuleValue,
    Opaque,
    Place,
    PlatformMethod,
    PlatformObject,
    PythonError,
    Value,
    Version,
)
from differential.trees import ATTRIBUTES, DEVICE, LIBRARY, PREDICATES, ROOT, Tree

Report = Any

_PATH = re.compile(r" \((/[^()]*|unknown location)\)$")
_PLACEHOLDER = "…"
_CONVENTIONS = Conventions(
    frozenset({ROOT}),
    f"{ROOT}.platforms.current_platform",
    {"typing.TYPE_CHECKING": False},
    Version(((3, 11), (3, 12), (3, 13))),
)


def program(tree: Tree) -> Program:
    """The tree as the import run reads it."""
    modules, namespaces = locate_modules(sorted(tree.files), [ROOT])
    parsed = {path: module_facts(text.encode(), ROOT) for path, text in tree.files.items()}

    def function(path: str, func: Func) -> Any:
        return function_facts(tree.files[path].encode(), func.start, func.end, func.name)

    broken = {path: facts for path, facts in parsed.items() if isinstance(facts, Unparsed)}
    assert not broken, f"the generator wrote what does not parse: {broken}"
    return Program(modules, namespaces - modules.keys(), parsed.__getitem__, function)


def platform(tree: Tree) -> Platform:
    """The platform's facts; they leave open what the tree leaves open."""
    missing = {"missing_lib": "it is missing", "present_lib.missing": "it is missing"}
    if LIBRARY not in tree.open:
        missing["maybe_lib"] = "it is missing"
    return Platform(
        "cuda", DEVICE, PREDICATES, present={"present_lib": "is there"}, missing=missing
    )


@dataclass
class Answers:
    """What an import run says of a tree: how each entry ends, every namespace, each probe."""

    run: ImportRun
    entries: list[tuple[Value, Doubts]]
    names: dict[str, dict[str, Value]]
    probes: list[tuple[Value, Doubts]]


def answers(tree: Tree) -> Answers:
    """Import the entries of a tree in an import run, then ask the probes."""
    run = ImportRun(program(tree), platform(tree), _CONVENTIONS)
    entries = [_imported(run, name) for name in tree.entries]
    modules = {n: m for n, m in run.modules.items() if isinstance(m, ModuleValue)}
    names = {
        name: {key: _forced(run, value) for key, value in module.names.items()}
        for name, module in modules.items()
    }
    return Answers(run, entries, names, [_asked(run, m, n) for m, n in tree.probes])


def _frame() -> Frame:
    return Frame(ModuleValue("", "", False, ModuleFacts(())), {})


def _imported(run: ImportRun, name: str) -> tuple[Value, Doubts]:
    frame = _frame()
    try:
        return run.import_module(name, frame, Place("", 0)), frame.doubts
    except PythonError as raised:
        return raised.error, frame.doubts


def _asked(run: ImportRun, module: str, name: str) -> tuple[Value, Doubts]:
    frame = _frame()
    owner = run.modules.get(module, UNBOUND)
    if owner is UNBOUND:
        return Error("KeyError", repr(module), ("KeyError", "Exception"), ()), frame.doubts
    try:
        value = run.force(run.attribute(owner, name, frame, 0), frame)
    except PythonError as raised:
        return raised.error, frame.doubts
    return value, frame.doubts


def _forced(run: ImportRun, value: Value) -> Value:
    return run.force(value, _frame())


@dataclass
class Comparison:
    """Disagreements of one report of real Python with our answers, and how much stayed open."""

    tree: Tree
    ours: Answers
    theirs: Report
    with_variable: bool = False
    problems: list[str] = field(default_factory=list)
    decided: int = 0
    left_open: int = 0
    parted: bool = False

    def run(self) -> Comparison:
        """Compare everything there is to compare."""
        if "failed" in self.theirs:
            self.problems.append(f"real Python did not finish: {self.theirs}")
            return self
        for name, ours, theirs in zip(
            self.tree.entries, self.ours.entries, self.theirs["entries"], strict=True
        ):
            self._ending(f"import {name}", ours, theirs, imports=True)
            if self.parted:
                # The process took an exception that we only doubt: it has other modules now.
                return self
        for name, names in self.theirs["modules"].items():
            self._module(name, names)
        for name in self.ours.names.keys() - self.theirs["modules"].keys():
            self._surplus_module(name)
        for (module, name), ours, theirs in zip(
            self.tree.probes, self.ours.probes, self.theirs["probes"], strict=True
        ):
            if (module in self.ours.names) is (module in self.theirs["modules"]):
                self._ending(f"{module}.{name}", ours, theirs, imports=False)
            if self.parted:
                return self
        return self

    def _note(self, agrees: bool | None, what: str) -> None:
        if agrees is False and self._excused():
            agrees = None
        if agrees is None:
            self.left_open += 1
        else:
            self.decided += 1
        if agrees is False:
            self.problems.append(what)

    def _excused(self) -> bool:
        """What follows from an exception that came by an open condition, beyond its handler.

        A module that failed so, and was imported again, has run twice, in another state of the
        process. And what only a set variable makes raise is noted, and not followed further.
        """
        if not self.tree.open:
            return False
        noted = self.with_variable and self._only_with_variable("")
        return noted or any(count > 1 for count in self.theirs["runs"].values())

    def _ending(self, what: str, ours: tuple[Value, Doubts], theirs: Any, imports: bool) -> None:
        value, doubts = ours
        doubted = [_brief(doubt.error) for doubt in doubts]
        shown = f"{what}: we say {show(value)}, doubts {doubted}; real {theirs}"
        if theirs[0] == "raises":
            error = (theirs[1], theirs[2])
            if isinstance(value, Error) and same_error(value, *error):
                return self._note(None if len(doubts) else True, shown)
            covered = any(same_error(doubt.error, *error) for doubt in doubts)
            # How deep Python recurses before it gives up is not followed.
            covered = covered or theirs[1] == "RecursionError"
            self.parted = covered or self._only_with_variable(error[0])
            agrees = None if self.parted or isinstance(value, Opaque) else False
            return self._note(agrees, shown)
        if isinstance(value, Error):
            return self._note(False, shown)
        found = True if imports else covers(value, theirs[1])
        return self._note(None if len(doubts) and found else found, shown)

    def _only_with_variable(self, type_: str) -> bool:
        """By design no doubt, but an open condition: what only a set variable makes raise."""
        return any(
            f"raises {type_}" in why.reason for why in self.ours.run.open_conditions.values()
        )

    def _module(self, name: str, theirs: dict[str, Any]) -> None:
        module = self.ours.run.modules.get(name, UNBOUND)
        if not isinstance(module, ModuleValue):
            self._note(False if module is UNBOUND else None, f"{name} is not loaded by us")
            return
        ours = self.ours.names[name]
        for key, real in theirs.items():
            value = ours.get(key, UNBOUND)
            if value is UNBOUND and module.wild is not None:
                value = module.wild
            self._note(covers(value, real), f"{name}.{key}: we say {show(value)}, real {real}")
        for key, value in ours.items():
            if isinstance(value, ModuleValue) and value.name not in self.theirs["modules"]:
                continue  # held against the real one in _surplus_module
            public = not key.startswith("_") or key == "__all__"
            if public and key not in theirs:
                agrees = None if may_be_unbound(value) else False
                self._note(agrees, f"{name}.{key}: we say {show(value)}, really unbound")

    def _surplus_module(self, name: str) -> None:
        module = self.ours.run.modules[name]
        unsure = isinstance(module, ModuleValue) and (
            len(module.doubts) or self.ours.run.open_conditions
        )
        self._note(None if unsure else False, f"{name} is loaded by us, and not really")


def same_error(error: Error, type_: str, message: str) -> bool:
    """Whether an error of ours is this exception, up to what is a placeholder in its message."""
    if "?" in error.bases:
        return True
    if error.type != type_:
        return False
    ours, theirs = _normal(error.message), _normal(message)
    return ours == theirs or _PLACEHOLDER in ours


def _normal(message: str) -> str:
    return " ".join(_PATH.sub("", message).split())


def may_be_unbound(value: Value) -> bool:
    """Whether a name may be missing where its value is this."""
    if value is UNBOUND or (isinstance(value, ModuleValue) and len(value.doubts)):
        return True
    return isinstance(value, Either) and any(map(may_be_unbound, value.values()))


def covers(value: Value, real: list[Any]) -> bool | None:
    """Whether our value is the real one: True, False, or None where ours is undecided."""
    match value:
        case Opaque():
            return None
        case Either():
            known = [covers(option, real) for option in value.values()]
            return False if all(answer is False for answer in known) else None
        case ClassValue():
            return _same_class(value, real)
        case ModuleValue() if len(value.doubts):
            return None
        case ModuleValue(name=name):
            return real == ["module", name]
        case Function(module=module, facts=facts):
            return real == ["function", module.name, facts.name]
        case Closure(module=module):
            return real == ["function", module.name, "<lambda>"]
        case PlatformObject():
            return real == ["platform"]
        case Instance(cls=cls):
            return real == ["object", cls.dotted] or None
        case Foreign() | Builtin():
            return None if not _of_tree(real) else False
        case tuple() | list():
            return _same_items(value, real)
        case dict():
            return _same_dict(value, real)
        case set() | frozenset():
            return real == [type(value).__name__, sorted(map(repr, value))]
        case None | bool() | int() | float() | str() | bytes():
            return bool(real == ["constant", repr(value)])
        case Method() | PlatformMethod():
            return bool(real[0] == "object")
        case _ if value is UNBOUND:
            return False
        case _:
            return None if real[0] == "object" else False


def _of_tree(real: list[Any]) -> bool:
    if real[0] == "platform":
        return True
    return real[0] in ("module", "class", "function") and real[1].partition(".")[0] == ROOT


def _same_items(value: tuple[Value, ...] | list[Value], real: list[Any]) -> bool | None:
    if real[0] != type(value).__name__ or len(real[1]) != len(value):
        return False
    return _all(covers(ours, theirs) for ours, theirs in zip(value, real[1], strict=True))


def _same_dict(value: dict[Value, Value], real: list[Any]) -> bool | None:
    if real[0] != "dict" or [repr(key) for key in value] != [key for key, _ in real[1]]:
        return False
    return _all(
        covers(ours, theirs) for ours, (_, theirs) in zip(value.values(), real[1], strict=True)
    )


def _all(answers: Any) -> bool | None:
    known = list(answers)
    if False in known:
        return False
    return None if None in known else True


def _same_class(cls: ClassValue, real: list[Any]) -> bool | None:
    if real[0] != "class" or real[1] != cls.dotted:
        return False
    try:
        order = linearise(cls)
    except InconsistentOrder:
        return False
    attributes = _all(_same_presence(lookup(cls, name), real[3][name]) for name in ATTRIBUTES)
    if not all(isinstance(member, ClassValue | Foreign | Builtin) for member in order):
        return None if attributes is not False else False
    names = [member.dotted for member in order if isinstance(member, ClassValue)]
    theirs = [name for name in real[2] if name.partition(".")[0] == ROOT]
    return attributes if names == theirs else False


def _same_presence(found: object, real: bool) -> bool | None:
    match found:
        case Found():
            return real
        case Missing():
            return not real
        case _:
            return None


def show(value: Value) -> str:
    """A value of the run, for a person."""
    match value:
        case Either():
            return f"one of ({', '.join(map(show, value.values()))})"
        case ModuleValue(name=name):
            return f"module {name}"
        case ClassValue():
            return f"class {value.dotted}"
        case Function(module=module, facts=facts):
            return f"function {module.name}.{facts.name}"
        case Opaque(reason=reason):
            return f"unknown ({reason})"
        case Error():
            return f"raises {_brief(value)} at {' <- '.join(map(str, value.chain))}"
        case tuple() | list():
            return f"{type(value).__name__} {[show(item) for item in value]}"
        case _:
            return repr(value)


def _brief(error: Error) -> str:
    return f"{error.type}: {error.message}"
