"""Which platform a plugin gives, and what its class answers to the conditions of the package.

vLLM asks the function of each entry point of the platform group for the dotted name of a class
(``resolve_current_platform_cls_qualname`` in ``vllm/platforms/__init__.py``). The predicates are
the methods of that class and of its bases, run with the class's own attributes; what cannot be
evaluated is left out, and stays undecided wherever it is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec import structs

from auditor.classes import Found, linearise, lookup
from auditor.evaluation.machine import MAX_OWN_FORKS_ASKED
from auditor.plugins.events import Event
from auditor.plugins.run import PluginRun
from auditor.plugins.values import member_of_enum, shown
from auditor.ruleset.distributions import ModuleRule
from auditor.ruleset.platforms import PlatformRule
from auditor.sources.metadata import EntryPoint
from auditor.values import (
    UNBOUND,
    ClassValue,
    Either,
    Function,
    Instance,
    Opaque,
    Place,
    PythonError,
    Undecided,
    Value,
)

_INSTALLED = "installed:"


@dataclass(slots=True)
class Given:
    """The platform that the entry points of one plugin give.

    Attributes:
        dotted: its class; empty where the functions give none.
        cls: that class, or None where it cannot be loaded.
        entry: the entry point that gives it.
        needs: modules outside the tree without which it does not load.
        condition: what it depends on whether it is given at all, or empty.
        events: entry points that failed, or could not be followed.
    """

    dotted: str = ""
    cls: ClassValue | None = None
    entry: EntryPoint | None = None
    needs: tuple[str, ...] = ()
    condition: str = ""
    events: list[Event] = field(default_factory=list)


def ask_for_platform(run: PluginRun, plugin: str, entry_points: Iterable[EntryPoint]) -> Given:
    """Ask each entry point of the platform group, and load the class that one gives."""
    given = Given()
    for entry in entry_points:
        where = Place(entry.path, entry.line)
        try:
            value = run.call_entry(entry_value(run, entry), where)
        except PythonError as raised:
            # vLLM logs it, and goes on as if there were no such plugin.
            reason = f"{raised.error.type}: {raised.error.message}"
            event = Event(plugin, "entry", entry.target, UNBOUND, where, "failed", reason)
            given.events.append(event)
            continue
        names, open_reason = _names_in(value)
        if not names and open_reason:
            event = Event(plugin, "entry", entry.target, UNBOUND, where)
            given.events.append(event.open(f"what it returns is not known: {open_reason}"))
        if names:
            given.dotted, given.entry, given.condition = names[0], entry, open_reason
            _load_class(run, plugin, given)
    return given


def entry_value(run: PluginRun, entry: EntryPoint) -> Value:
    """The object that an entry point names: a module, then attributes.

    Raises:
        PythonError: what importing the module, or looking an attribute up, raises.
    """
    module_name, _, attributes = entry.target.partition(":")
    value = run.load(module_name.strip())
    for name in filter(None, attributes.strip().split(".")):
        value, _ = run.get(value, name, [])
    return value


def _names_in(value: Value) -> tuple[list[str], str]:
    """The dotted names that a function may have returned, and the condition it depends on."""
    match value:
        case str():
            return [value], ""
        case Either(options=options):
            names = [option for _, option in options if isinstance(option, str)]
            guard = options[0][0]
            return list(dict.fromkeys(names)), f"`{guard.text}` ({guard.where})"
        case Opaque(reason=reason):
            return [], reason
        case _:
            return [], ""


def _load_class(run: PluginRun, plugin: str, given: Given) -> None:
    assert given.entry is not None
    where = Place(given.entry.path, given.entry.line)
    module_name, _, name = given.dotted.rpartition(".")
    event = Event(plugin, "entry", given.dotted, UNBOUND, where)
    try:
        module = run.load(module_name)
        value, doubts = run.get(module, name, [])
        value, more = run.forced(value)
    except PythonError as raised:
        error = raised.error
        reason = f"the platform cannot be loaded: {error.type}: {error.message}"
        given.events.append(Event(plugin, "entry", given.dotted, UNBOUND, where, "failed", reason))
        return
    if isinstance(value, Either):
        # Twins by an open condition, such as with and without a library that counts devices.
        value = next((one for one in value.values() if isinstance(one, ClassValue)), value)
    if not isinstance(value, ClassValue):
        given.events.append(event.open(f"it is no class that can be read: {shown(value)}"))
        return
    given.cls = value
    open_ones = [*getattr(module, "doubts", ()), *doubts, *more]
    keys = (doubt.condition.key for doubt in open_ones)
    given.needs = tuple(
        dict.fromkeys(k.removeprefix(_INSTALLED) for k in keys if k.startswith(_INSTALLED))
    )


# --- what the class says --------------------------------------------------------------------------


def platform_rule(
    run: PluginRun, cls: ClassValue, name: str, label: str, rules: Iterable[PlatformRule]
) -> PlatformRule:
    """The rule of a plugin's platform: its own answers, over the facts of the platform it is like.

    What is installed beside it is taken from the platform whose predicates it shares most of.
    """
    rules = tuple(rules)
    names = {key for rule in rules for key in rule.predicates} | set(_asked_for(cls))
    predicates = _predicates(run, cls, sorted(names))
    like = min(rules, key=lambda rule: _unlike(rule, predicates))
    return structs.replace(
        like,
        name=name,
        summary=f"{cls.dotted} of {label}",
        order=len(rules) + 1,
        attributes=_attributes(run, cls),
        predicates=predicates,
        examples=(),
    )


def needed(modules: Iterable[str], label: str) -> tuple[ModuleRule, ...]:
    """Modules that exist where a plugin's platform does, since its class is loaded with them."""
    reason = f"the platform of {label} does not load without it"
    names = tuple(modules)
    return (ModuleRule(names, True, reason),) if names else ()


def _unlike(rule: PlatformRule, predicates: dict[str, bool]) -> int:
    return sum(
        predicates.get(name) is not truth
        for name, truth in rule.predicates.items()
        if name in predicates
    )


def _asked_for(cls: ClassValue) -> Iterable[str]:
    """The predicates by name that the class and its bases define."""
    for member in linearise(cls):
        if isinstance(member, ClassValue):
            for stmt in member.facts.body:
                name = getattr(stmt, "name", "")
                if name.startswith("is_"):
                    yield name


def _predicates(run: PluginRun, cls: ClassValue, names: Iterable[str]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    instance = Instance(cls, Place(cls.module.path, cls.facts.line))
    run.asking = cls
    try:
        for name in names:
            truth = _answer(run, cls, instance, name)
            if truth is not None:
                found[name] = truth
    finally:
        run.asking = None
    return found


def _answer(run: PluginRun, cls: ClassValue, instance: Instance, name: str) -> bool | None:
    frame = run._outer()
    try:
        method = run.attribute(instance, name, frame, 0)
        if not isinstance(method, Function):
            return None
        where = Place(method.module.path, method.facts.line)
        value = run.invoke(method, (), (), frame, where, name, forks=MAX_OWN_FORKS_ASKED)
        truth = run.truth(run.force(value, frame), frame)
    except PythonError:
        # Who asks it while a module loads finds it undecided, and the place is told there.
        return None
    open_ones = [doubt for doubt in frame.doubts if not doubt.unusual]
    return None if isinstance(truth, Undecided) or open_ones else truth


def _attributes(run: PluginRun, cls: ClassValue) -> dict[str, str]:
    """Attributes of the class that are strings, as its body assigns them."""
    found: dict[str, str] = {}
    for member in linearise(cls):
        if not isinstance(member, ClassValue):
            continue
        names = [
            getattr(target, "id", "")
            for stmt in member.facts.body
            for target in getattr(stmt, "targets", ())
        ]
        for name in names:
            value = lookup(cls, name)
            if name and name not in found and isinstance(value, Found) and value.owner is member:
                text = member_of_enum(run, member, name)
                if isinstance(text, str):
                    found[name] = text
    return found
