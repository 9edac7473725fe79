"""What a value of a rule must be beyond its type: names to ask for, patterns, conditions.

The check of types (:mod:`auditor.ruleset.parsing`) says that a value is text; here it is read as
what it stands for, so that a mistake is told where it stands, and not by an example that does not
hold.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import get_args

import msgspec

from auditor.coverage import VerdictName
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.lines import Key, dotted
from auditor.ruleset.platforms import PlatformRule
from auditor.ruleset.shapes import ShapeRule

_OPTION = re.compile(r"[\w.-]+")
_TRUTHS = ("true", "false", "undecided")
#: The functions of a pattern, with how many arguments each takes.
_FUNCTIONS = {"norm": 2, "step": 1, "flat": 1}
#: What may happen to logits behind the head; see ``auditor/headpath/path.py``.
_POSTS = ("slice", "scale", "remap", "rows", "mask", "change")


class Mistake(msgspec.Struct, frozen=True):
    """A value that cannot be what it stands for: its key, what is wrong, and what to do."""

    key: tuple[Key, ...]
    what: str
    next_step: str = ""


def mistakes(rule: object) -> Iterator[Mistake]:
    """The values of a rule that are of the right type, and wrong all the same."""
    match rule:
        case Capability():
            yield from _of_capability(rule)
        case PlatformRule():
            yield from _of_platform(rule)
        case ShapeRule():
            yield from _of_shape(rule)
        case _:
            return


def _of_capability(rule: Capability) -> Iterator[Mistake]:
    yield from _option(rule.name)
    if not rule.tables:
        yield Mistake(("registry",), "`registry` names no table")
    several = not isinstance(rule.registry, str)
    for number, table in enumerate(rule.tables):
        yield from _dotted(("registry", number) if several else ("registry",), table)
    if not rule.attribute:
        yield from _name(("name",), rule.name, " Or say what is probed as `attribute`.")
    else:
        yield from _name(("attribute",), rule.attribute)
    for key, value in (("part", rule.part), ("agrees_with", rule.agrees_with)):
        if value is not None:
            yield from _name((key,), value)
    if rule.mixin is not None:
        yield from _dotted(("mixin",), rule.mixin)
    if rule.flag is not None:
        yield from _name(("flag", "name"), rule.flag.name)
        yield from _dotted(("flag", "holder"), rule.flag.holder)
    if rule.guard is not None:
        for number, function in enumerate(rule.guard.functions):
            yield from _name(("guard", "functions", number), function)
        yield from _folder(rule.guard.search)
    known = get_args(VerdictName)
    for verdict in rule.verdicts:
        if verdict not in known:
            what = f"`verdicts`: there is no verdict {verdict!r}"
            yield Mistake(("verdicts", verdict), what, f"Known: {', '.join(known)}.")


def _folder(search: str) -> Iterator[Mistake]:
    parts = search.removesuffix("/").split("/")
    if not all(parts) or ".." in parts or "." in parts:
        what = f"`guard.search` must be a folder inside the tree, not {search!r}"
        yield Mistake(("guard", "search"), what, "Write it as in vllm/v1/.")


def _of_platform(rule: PlatformRule) -> Iterator[Mistake]:
    yield from _option(rule.name)
    for number, example in enumerate(rule.examples):
        key = ("examples", number)
        if _expression(example.condition) is None:
            what = f"`examples[{number}].condition`: {example.condition!r} is no Python expression"
            yield Mistake((*key, "condition"), what)
        if example.is_ not in _TRUTHS:
            what = f"`examples[{number}].is`: {example.is_!r} is none of {', '.join(_TRUTHS)}"
            yield Mistake((*key, "is"), what)


def _of_shape(rule: ShapeRule) -> Iterator[Mistake]:
    for key, patterns in (("head", rule.head), ("hidden", rule.hidden)):
        for number, text in enumerate(patterns):
            pattern = _expression(text)
            wrong = "it is no Python expression" if pattern is None else _in_pattern(pattern)
            if wrong:
                what = f"`{key}[{number}]`: {text!r} is not a pattern: {wrong}"
                yield Mistake((key, number), what)
    yield from _among("some_post", rule.some_post, _POSTS)


def _in_pattern(node: ast.expr) -> str:
    """Why an expression is no pattern; empty where it is one."""
    match node:
        case ast.Name(id=name):
            known = name == "param" or name.startswith("_")
            return "" if known else f"{name} is neither `param` nor begins with an underscore"
        case ast.Attribute(value=owner):
            return _in_pattern(owner)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            if len(args) != _FUNCTIONS[name]:
                return f"{name}() takes {_FUNCTIONS[name]} and is given {len(args)}"
            return next(filter(None, map(_in_pattern, args)), "")
        case _:
            return f"{ast.unparse(node)} stands for nothing; known: {', '.join(_FUNCTIONS)}"


def _among(key: str, given: Iterable[str], known: tuple[str, ...]) -> Iterator[Mistake]:
    for number, value in enumerate(given):
        if value not in known:
            what = f"`{key}[{number}]`: {value!r} is none of {', '.join(known)}"
            yield Mistake((key, number), what)


def _option(name: str) -> Iterator[Mistake]:
    """A name that is given on the command line, where a comma parts names."""
    if not _OPTION.fullmatch(name):
        what = f"`name` {name!r} cannot be asked for on the command line"
        yield Mistake(("name",), what, "Use letters, digits, '_', '-' and '.'.")


def _name(key: tuple[Key, ...], value: str, more: str = "") -> Iterator[Mistake]:
    if not value.isidentifier():
        yield Mistake(key, f"`{dotted(key)}`: {value!r} is no Python name", f"Correct it.{more}")


def _dotted(key: tuple[Key, ...], value: str) -> Iterator[Mistake]:
    if not all(part.isidentifier() for part in value.split(".")):
        what = f"`{dotted(key)}`: {value!r} is no dotted Python name"
        yield Mistake(key, what, "Write it as in module.NAME.")


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
