"""Properties of the tree's classes: what is run when such an attribute is read or set."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from auditor.contracts.sketch import Sketch
from auditor.facts import Unparsed

_READING = frozenset({"property", "cached_property"})


@dataclass(frozen=True, slots=True)
class Property:
    """A property, as the body of its class leaves it.

    Attributes:
        getter: what is run when it is read.
        setter: what is run when it is set, or None.
        cached: whether it is a ``cached_property``, which setting replaces.
    """

    getter: ast.FunctionDef
    setter: ast.FunctionDef | None = None
    cached: bool = False


def property_of(sketch: Sketch, cls: str, name: str) -> Property | None:
    """The property that a class itself defines under a name; None where it is something else."""
    chunk = sketch.members(cls).get(name)
    last = sketch.node(chunk) if chunk is not None and chunk.kind == "def" else None
    if not isinstance(last, ast.FunctionDef) or not last.decorator_list:
        return None
    found: Property | None = None
    for node in _definitions(sketch, cls, name) or [last]:
        found = _joined(found, node)
    return found


def _definitions(sketch: Sketch, cls: str, name: str) -> list[ast.FunctionDef]:
    """The functions of one name in the body of a class, in order."""
    tree = sketch.whole
    body = [] if isinstance(tree, Unparsed) else tree.body
    owner = next((n for n in reversed(body) if isinstance(n, ast.ClassDef) and n.name == cls), None)
    inside = owner.body if owner is not None else []
    return [node for node in inside if isinstance(node, ast.FunctionDef) and node.name == name]


def _joined(before: Property | None, node: ast.FunctionDef) -> Property | None:
    """What a name stands for behind one more definition of it."""
    for mark in node.decorator_list:
        text = ast.unparse(mark)
        kind = text.rpartition(".")[2]
        if kind in _READING:
            return Property(node, cached=kind == "cached_property")
        if before is None or text not in {f"{node.name}.{one}" for one in _CHANGING}:
            continue
        match kind:
            case "setter":
                return Property(before.getter, node)
            case "getter":
                return Property(node, before.setter)
            case _:
                return before
    return None


_CHANGING = ("setter", "getter", "deleter")
