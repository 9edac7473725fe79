"""The facts of a module."""

from __future__ import annotations

import ast

from auditor.facts import ModuleFacts, Unparsed
from auditor.outline import outline
from auditor.syntax.annotations import postpones_annotations
from auditor.syntax.parsing import MAX_SOURCE_BYTES, parse
from auditor.syntax.statements import Statements
from auditor.syntax.text import SourceText


def module_facts(source: bytes, root: str) -> ModuleFacts | Unparsed:
    """The facts of one module, as far as an import runs it.

    Whether the bodies of its functions parse is for :func:`auditor.syntax.parsing.grammar` to say.

    Args:
        source: the bytes of the file, in the encoding that it declares (PEP 263).
        root: the top-level package the module belongs to; names imported from elsewhere are
            foreign, and attributes of foreign things are taken to exist.
    """
    tree = _top_level(source)
    if isinstance(tree, Unparsed):
        return tree
    statements = Statements(SourceText(source), root, postpones_annotations(tree))
    try:
        return ModuleFacts(statements.block(tree.body))
    except RecursionError:
        return Unparsed("is nested too deeply to be read", 0)


def _top_level(source: bytes) -> ast.Module | Unparsed:
    """The syntax tree without function bodies, or with them where the outline is not sure."""
    reduced = outline(source) if len(source) <= MAX_SOURCE_BYTES else None
    tree = parse(reduced) if reduced is not None else None
    return tree if isinstance(tree, ast.Module) else parse(source)
