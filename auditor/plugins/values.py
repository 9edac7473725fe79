"""Values of events, and members of enumerations."""

from __future__ import annotations

from auditor import facts as f
from auditor.evaluation.frame import Frame, is_plain
from auditor.imports import ImportRun
from auditor.values import (
    UNBOUND,
    ClassValue,
    Closure,
    Either,
    Foreign,
    Function,
    Instance,
    ModuleValue,
    Opaque,
    PythonError,
    Value,
)

#: How much of a plain value is shown.
_LONG = 200


def shown(value: Value) -> str:
    """A value for a person; empty where nothing is known of it."""
    match value:
        case ClassValue():
            return value.dotted
        case Function():
            return f"{value.module.name}.{value.prefix}{value.facts.name}"
        case ModuleValue() | Foreign():
            return value.name
        case Instance(cls=cls):
            return f"{cls.dotted}(…)"
        case Closure():
            return "a lambda"
        case Opaque(text=text):
            return text
        case Either():
            return " or ".join(dict.fromkeys(filter(None, map(shown, value.values()))))
        case _ if value is not UNBOUND and is_plain(value):
            text = value if isinstance(value, str) else repr(value)
            return text if len(text) <= _LONG else f"{text[:_LONG]}…"
        case _:
            return ""


def member_of_enum(run: ImportRun, owner: ClassValue, name: str) -> Value:
    """What an assignment in a class body gives an attribute; UNBOUND where there is none, or more.

    The body of a class that only assigns is not run, so the statement is evaluated here.
    """
    if name in owner.extra:
        return owner.extra[name][0]
    found = [
        stmt for stmt in owner.facts.body
        if isinstance(stmt, f.Assign) and f.Name(name) in stmt.targets
    ]  # fmt: skip
    if not found or any(isinstance(s, f.If | f.Try | f.Loop) for s in owner.facts.body):
        return UNBOUND
    frame = Frame(owner.module, {})
    try:
        return run.force(run.evaluate(found[-1].value, frame, found[-1].line), frame)
    except PythonError:
        # The class body has run, so the names that it read were there then and are not now.
        return UNBOUND
