"""What a function could change, by its text: for calls that cannot be followed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from auditor import facts as f
from auditor.evaluation.containers import MUTATING_METHODS
from auditor.evaluation.machine import Machine
from auditor.values import UNBOUND, ClassValue, Function, Instance, ModuleValue, Value

#: An object, and its name in a module's namespace where that is what changes ("" for anything).
Touched = tuple[Value, str]

_INTO = frozenset(("setattr", "delattr"))
_ANY_NAME = frozenset(("globals", "exec", "vars"))
_CHANGEABLE = (ClassValue, ModuleValue, Instance, list, dict, set)


class Text(msgspec.Struct, frozen=True, gc=False):
    """What the text of one function says that it changes.

    Attributes:
        shared: names that it declares global.
        heads: names into which it stores an attribute or an item, or whose contents it changes.
        any_name: it can bind any global.
        calls: names that it calls, and methods of names, with the names passed.
        inner: functions that it defines.
        makes_dicts: it makes dicts, which may become namespaces.
    """

    shared: tuple[str, ...]
    heads: tuple[str, ...]
    any_name: bool
    calls: tuple[tuple[str, tuple[str, ...]], ...]
    inner: tuple[f.Func, ...]
    makes_dicts: bool


def touches(run: Machine, function: Function, args: tuple[Value, ...]) -> list[Touched]:
    """Names of modules, classes and containers that a call could change."""
    return list(_touched(run, function, args, set()))


def _touched(
    run: Machine, function: Function, args: tuple[Value, ...], seen: set[tuple[str, int]]
) -> Iterator[Touched]:
    module, key = function.module, (function.module.path, function.facts.line)
    if key in seen:
        return
    seen.add(key)
    facts = run.function_facts(function)
    if not isinstance(facts, f.FunctionFacts):
        yield module, ""
        yield from ((arg, "") for arg in args if _can_change(arg))
        return
    text, given = run.program.texts.changes.of(facts), dict(zip(facts.params, args, strict=False))
    yield from ((module, name) for name in text.shared)
    if text.any_name:
        yield module, ""
    for head in text.heads:
        value = given.get(head, module.names.get(head, UNBOUND))
        if _can_change(value):
            yield value, ""
    for name, passed in text.calls:
        values = tuple(given.get(one, module.names.get(one, UNBOUND)) for one in passed)
        head, _, attr = name.partition(".")
        called = given.get(head, UNBOUND) if attr else UNBOUND
        called = module.names.get(head, UNBOUND) if called is UNBOUND else called
        if attr and isinstance(called, Instance):
            values = (called, *values)
            called = run.method(called.cls, attr)
        if isinstance(called, Function):
            yield from _touched(run, called, values, seen)
    for func in text.inner:
        yield from _touched(run, Function(module, func, ()), (), seen)


def _can_change(value: Value) -> bool:
    return isinstance(value, _CHANGEABLE)


def text_of(facts: f.FunctionFacts) -> Text:
    """What a function says that it changes."""
    shared: list[str] = []
    heads: list[str] = []
    calls: list[tuple[str, tuple[str, ...]]] = []
    inner: list[f.Func] = []
    any_name = makes_dicts = False
    for node in nodes_of(facts.body):
        match node:
            case f.Global(names=names, nonlocal_=False):
                shared.extend(names)
            case f.Assign(targets=targets) | f.Delete(targets=targets):
                heads.extend(_head(t) for t in targets if not isinstance(t, f.Name))
            case f.AugAssign(target=target):
                heads.append(_head(target))
            case f.Call(func=f.Name(id=name), args=nodes):
                any_name = any_name or name in _ANY_NAME
                passed = tuple(map(_head, nodes))
                heads.extend(passed[:1] if name in _INTO else ())
                calls.append((name, passed))
                makes_dicts = makes_dicts or name == "dict"
            case f.Call(func=f.Attr(value=owner, attr=attr), args=nodes):
                heads.extend((_head(owner),) if attr in MUTATING_METHODS else ())
                if isinstance(owner, f.Name):
                    calls.append((f"{owner.id}.{attr}", tuple(map(_head, nodes))))
            case f.Mapping() | f.Comprehension(kind="dict"):
                makes_dicts = True
            case f.Func():
                inner.append(node)
            case _:
                pass
    return Text(tuple(shared), tuple(heads), any_name, tuple(calls), tuple(inner), makes_dicts)


def stores_on_self(facts: f.FunctionFacts | f.Unparsed, name: str) -> bool:
    """Whether a method may set an attribute of the object that it is called on."""
    if isinstance(facts, f.Unparsed) or not facts.params:
        return True
    stored = f.Attr(f.Name(facts.params[0]), name)
    return any(stored in getattr(node, "targets", ()) for node in nodes_of(facts.body))


def _head(node: f.Expr) -> str:
    while isinstance(node, f.Attr | f.Subscript):
        node = node.value
    return node.id if isinstance(node, f.Name) else ""


def nodes_of(body: Iterable[object]) -> Iterator[msgspec.Struct]:
    """All statements and expressions of a body, at any depth."""
    for item in body:
        if isinstance(item, f.Node):
            yield item
            yield from nodes_of(getattr(item, name) for name in item.__struct_fields__)
        elif isinstance(item, tuple):
            yield from nodes_of(item)
