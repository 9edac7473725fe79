"""The facts of a module."""

from __future__ import annotations

import ast

from auditor.facts import ModuleFacts, Unparsed
from auditor.syntax.annotations import postpones_annotations
from auditor.syntax.outline import Outline, outline
from auditor.syntax.parsing import MAX_SOURCE_BYTES, parse
from auditor.syntax.statements import Statements
from auditor.syntax.text import SourceText


def module_facts(source: bytes, root: str) -> ModuleFacts | Unparsed:
    """The facts of one module, as far as an import runs it.

    Whether the bodies of its functions parse is for :func:`auditor.syntax.blocks.blocks` to say.

    Args:
        source: the bytes of the file, in the encoding that it declares (PEP 263).
        root: the top-level package the module belongs to; names imported from elsewhere are
            foreign, and attributes of foreign things are taken to exist.
    """
    tree, read = _top_level(source)
    if isinstance(tree, Unparsed):
        return tree
    postponed = postpones_annotations(tree)
    statements = Statements(SourceText(read.text), root, postponed, outlined=read.definitions)
    try:
        body = statements.block(tree.body)
    except RecursionError:
        return Unparsed("is nested too deeply to be read", 0)
    return statements.misplaced or ModuleFacts(body)


def _top_level(source: bytes) -> tuple[ast.Module | Unparsed, Outline]:
    """The syntax tree of the outline; that of the file where the outline is not sure."""
    reduced = outline(source) if len(source) <= MAX_SOURCE_BYTES else None
    tree = parse(reduced.text) if reduced is not None else None
    if reduced is not None and isinstance(tree, ast.Module):
        return tree, reduced
    return parse(source), Outline(source, {})
