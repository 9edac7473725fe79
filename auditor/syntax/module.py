"""The facts of a module."""

from __future__ import annotations

import ast

from auditor.facts import ModuleFacts, Unparsed
from auditor.syntax.annotations import postpones_annotations
from auditor.syntax.outline import outline
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
    outlined = outline(source) if len(source) <= MAX_SOURCE_BYTES else None
    tree = parse(outlined.text) if outlined is not None else None
    if not isinstance(tree, ast.Module):
        # The outline is not sure, or an error is to be told as it is in the whole file.
        outlined, tree = None, parse(source)
    if isinstance(tree, Unparsed):
        return tree
    definitions = outlined.definitions if outlined is not None else {}
    statements = Statements(
        SourceText(source), root, postpones_annotations(tree), outlined=definitions
    )
    try:
        return ModuleFacts(statements.block(tree.body))
    except RecursionError:
        return Unparsed("is nested too deeply to be read", 0)
