"""The classes and functions at the top level of a file, off the syntax of the whole of it.

Each is what parsing its lines alone would give, so that it does not matter how it was come by. It
is told by those lines, as :mod:`auditor.syntax.definitions` notes them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from auditor.facts import Unparsed
from auditor.syntax.parsing import parse
from auditor.syntax.text import SourceText

#: Classes and functions by their first and last line, decorators included.
Blocks = Mapping[tuple[int, int], ast.stmt]

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
#: An encoding may be declared on the first two lines (PEP 263); the lines of a block do not say so.
_DECLARED = re.compile(rb"\A(?:[^\n\r]*[\n\r]{1,2})?[^\n\r]*coding[:=]")
#: How a block begins that parses alone: not inside brackets, and not behind a form feed.
_BEGIN = re.compile(rb"[ \t]*(?:@|class\b|def\b|async\b)")


def blocks(source: bytes) -> Blocks | Unparsed:
    """The classes and functions of a file, in branches too; or why it does not parse as a whole.

    Left out is what its lines alone may not give.
    """
    tree = parse(source)
    if isinstance(tree, Unparsed):
        return tree
    if _DECLARED.match(source):
        return {}
    text = SourceText(source)
    found = ((_first_line(node), node) for node in _definitions(tree.body))
    return {(n, node.end_lineno or 0): node for n, node in found if _BEGIN.match(text.line(n))}


def _first_line(node: _Definition) -> int:
    return node.decorator_list[0].lineno if node.decorator_list else node.lineno


def _definitions(body: Iterable[ast.stmt]) -> Iterator[_Definition]:
    for node in body:
        if isinstance(node, _Definition):
            yield node
            continue
        for block in ("body", "orelse", "finalbody"):
            yield from _definitions(getattr(node, block, ()))
        for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield from _definitions(inner.body)
