"""Whether a value of an import run is what real Python describes."""

from __future__ import annotations

import re
from typing import Any

from auditor.classes import Found, InconsistentOrder, Missing, linearise, lookup
from auditor.values import (
    UNBOUND,
    Builtin,
    ClassValue,
    Closure,
    Either,
    Error,
    Foreign,
    Function,
    Instance,
    Method,
    ModuleValue,
    Opaque,
    PlatformMethod,
    PlatformObject,
    Value,
)
from differential.trees import ATTRIBUTES, ROOT

#: Where Python's message names the file; since 3.13 it does so for a missing attribute too.
_PATH = re.compile(r" \((/[^()]*|unknown location)\)$| from '/[^']*'(?= has no attribute )")
_PLACEHOLDER = "…"


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
            return not _of_tree(real)
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
        case Closure(module=module):
            return f"lambda of {module.name}"
        case Method(owner=owner, name=name):
            return f"{name} of {show(owner)}"
        case Instance(cls=cls):
            return f"object of {cls.dotted}"
        case Opaque(reason=reason):
            return f"unknown ({reason})"
        case Error():
            return f"raises {brief(value)} at {' <- '.join(map(str, value.chain))}"
        case tuple() | list():
            return f"{type(value).__name__} {[show(item) for item in value]}"
        case dict():
            return f"dict {[(show(key), show(item)) for key, item in value.items()]}"
        case _:
            return repr(value)


def brief(error: Error) -> str:
    """An error on one line."""
    return f"{error.type}: {error.message}"
