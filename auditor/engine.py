"""What the engine says: where it probes a model for a capability, and with which sentence.

Read off the audited tree: ``if not hasattr(model, "<name>"): raise …`` below ``vllm/v1/``, and the
settings that its configuration classes have.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

import msgspec

from auditor import facts as f
from auditor.facts import Unparsed
from auditor.program import Files, Probe
from auditor.syntax.parsing import parse
from auditor.values import Place


class Sources(Protocol):
    """Files of a tree that take note of what is asked of them."""

    def source(self, path: str) -> bytes | Unparsed:
        """The bytes of a file, or why they cannot be read."""
        ...

    def text(self, path: str) -> bytes | Unparsed:
        """The bytes of a file for one who notes himself what he asks of it."""
        ...

    def note(self, path: str, probe: Probe) -> None:
        """Take note that something was asked of a file."""
        ...


class GuardSite(msgspec.Struct, frozen=True):
    """One probe that raises: its place, the exception type, and the message as a template.

    ``{class}`` in the message stands for the name of the draft class; other braces hold the
    source of what would be formatted.
    """

    where: Place
    text: str
    type: str
    message: str

    def sentence(self, class_name: str) -> str:
        """What the engine would raise for a draft class of this name."""
        return f"{self.type}: {self.message.replace('{class}', class_name)}"


def guard_sites(
    files: Sources,
    paths: Iterable[str],
    folder: str,
    capability: str,
    functions: Sequence[str] = (),
) -> tuple[GuardSite, ...]:
    """Every place below ``folder`` that raises where a model lacks ``capability``.

    ``functions`` are those of the tree that ask a model for it.
    """
    sites: list[GuardSite] = []
    probed = " ".join((capability, *functions))
    for path in sorted(paths):
        if not path.startswith(folder) or not path.endswith(".py"):
            continue
        files.note(path, ("guards", probed, 0, 0, 0))
        sites.extend(guards_in(files.text(path), path, probed))
    return tuple(sites)


def has_setting(
    files: Files, modules: Mapping[str, tuple[str, bool]], holder: str, name: str
) -> bool:
    """Whether the body of the class ``holder`` (dotted) of the tree gives ``name`` a value."""
    module, _, class_name = holder.rpartition(".")
    located = modules.get(module)
    facts = files.facts(located[0]) if located else None
    if not isinstance(facts, f.ModuleFacts):
        return False
    return any(
        isinstance(stmt, f.Class)
        and stmt.name == class_name
        and any(f.Name(name) in getattr(inner, "targets", ()) for inner in stmt.body)
        for stmt in facts.body
    )


def guards_in(source: bytes | Unparsed, path: str, probed: str) -> tuple[GuardSite, ...]:
    """The places in one file that raise where a model lacks what is probed.

    ``probed`` is the attribute, and the functions that ask for it, with blanks between them.
    """
    attribute, *functions = probed.split()
    texts = (f'"{attribute}"', f"'{attribute}'", *(f"{name}(" for name in functions))
    if isinstance(source, Unparsed) or not any(text.encode() in source for text in texts):
        return ()
    return _raises_in(source, path, attribute, frozenset(functions))


@lru_cache(maxsize=64)  # asked for the answer, and once more to keep it
def _raises_in(
    source: bytes, path: str, attribute: str, functions: frozenset[str]
) -> tuple[GuardSite, ...]:
    tree = parse(source)
    return () if isinstance(tree, Unparsed) else tuple(_sites(tree, path, attribute, functions))


def _sites(
    tree: ast.Module, path: str, attribute: str, functions: frozenset[str]
) -> Iterable[GuardSite]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and _probes(node.test, attribute, functions):
            for inner in node.body:
                if isinstance(inner, ast.Raise) and isinstance(inner.exc, ast.Call):
                    yield GuardSite(
                        Place(path, node.test.lineno),
                        f"if {ast.unparse(node.test)}:",
                        ast.unparse(inner.exc.func),
                        _template(inner.exc),
                    )


def _probes(test: ast.expr, attribute: str, functions: frozenset[str]) -> bool:
    """Whether the test holds exactly when the model lacks the attribute."""
    match test:
        case ast.UnaryOp(
            op=ast.Not(),
            operand=ast.Call(func=ast.Name(id="hasattr"), args=[_, ast.Constant(value=name)]),
        ):
            return bool(name == attribute)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id=called), args=[_])):
            return called in functions
        case _:
            return False


def _template(call: ast.Call) -> str:
    if not call.args:
        return ""
    match call.args[0]:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(_part, values))
        case other:
            return ast.unparse(other)


def _part(value: ast.expr) -> str:
    match value:
        case ast.Constant(value=text):
            return str(text)
        case ast.FormattedValue(value=inner):
            source = ast.unparse(inner)
            return "{class}" if source.endswith("__name__") else f"{{{source}}}"
        case other:
            return ast.unparse(other)
