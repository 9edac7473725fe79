"""The facts of one function, body included, for a call that runs it."""

from __future__ import annotations

import ast

from auditor.facts import FunctionFacts, Unparsed
from auditor.syntax.parameters import with_defaults
from auditor.syntax.parsing import parse
from auditor.syntax.statements import Statements
from auditor.syntax.text import SourceText

#: What has a body of its own.
_DEFINITIONS = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def function_facts(lines: list[bytes], start: int, end: int, name: str) -> FunctionFacts | Unparsed:
    """The facts of the function ``name`` that stands at ``start`` to ``end`` of a file's lines.

    Only those lines are parsed. Names are not pruned here: every read in a body counts.
    """
    own = lines[start - 1 : end]
    # A block of its own keeps the indentation legal; empty lines before it keep the numbers right.
    indented = bool(own) and own[0][:1].isspace() and start > 1
    head = b"\n" * (start - 2) + b"if 1:\n" if indented else b"\n" * (start - 1)
    block = b"\n".join(own)
    tree = parse(head + block + b"\n")
    if isinstance(tree, Unparsed):
        return tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            try:
                return _function(node, SourceText(lines), may_yield=b"yield" in block)
            except RecursionError:
                return Unparsed(f"{name!r} is nested too deeply to be read", start)
    return Unparsed(f"no function {name!r} at lines {start}-{end}", start)


def _function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, text: SourceText, *, may_yield: bool
) -> FunctionFacts:
    statements = Statements(text, "", postponed=True, prune=False)
    arguments = node.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return FunctionFacts(
        params=tuple(parameter.arg for parameter in parameters),
        defaults=tuple(
            (parameter.arg, statements.expr(default))
            for parameter, default in with_defaults(arguments)
        ),
        vararg=arguments.vararg.arg if arguments.vararg else None,
        kwarg=arguments.kwarg.arg if arguments.kwarg else None,
        generator=isinstance(node, ast.AsyncFunctionDef) or (may_yield and _yields(node)),
        body=statements.block(node.body),
        kwonly=len(arguments.kwonlyargs),
        posonly=len(arguments.posonlyargs),
    )


def _yields(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the function itself has a ``yield``; those of definitions in it are their own."""
    pending: list[ast.AST] = list(node.body)
    while pending:
        child = pending.pop()
        if isinstance(child, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(child, _DEFINITIONS):
            pending.extend(ast.iter_child_nodes(child))
    return False
