"""The text of one file, and of the nodes of its syntax tree."""

from __future__ import annotations

import ast
from functools import cached_property


class SourceText:
    """The text of one file; it is split into lines once, when a line is first asked for.

    Args:
        source: the bytes of the file, or its lines where they are split already.
    """

    def __init__(self, source: bytes | list[bytes]) -> None:
        self._source = source

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines, without their ends."""
        return self._source.splitlines() if isinstance(self._source, bytes) else self._source

    def line(self, number: int) -> bytes:
        """A line by its number; empty where there is none."""
        return self.lines[number - 1] if number <= len(self.lines) else b""

    def text(self, node: ast.AST) -> str:
        """The source of ``node`` on one line, without comments on the way."""
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if first and first == last:
            start, stop = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
            return self.line(first)[start:stop].decode("utf-8", "replace")
        return " ".join(ast.unparse(node).split())
