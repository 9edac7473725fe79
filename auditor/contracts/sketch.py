"""The definitions of one module, each parsed only when it is asked for.

The engine's modules have thousands of lines, of which a contract needs a few methods. A definition
is found by its indentation and parsed alone. Where that does not parse (a string whose lines stand
further left than the code around it), the whole module is parsed instead.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property

import msgspec

from auditor.facts import Unparsed
from auditor.syntax.parsing import parse

_HEADER = re.compile(rb"(?:async[ \t]+)?(def|class)[ \t]+(\w+)")
_ASSIGNED = re.compile(rb"(\w+)[ \t]*(?::[^=\n]*)?=[^=]")
_IMPORT = re.compile(rb"(?:from|import)[ \t]")
#: How a line may begin that goes on with the statement above it, at the same indentation.
_CLOSING = (b")", b"]", b"}", b"#")


class Chunk(msgspec.Struct, frozen=True):
    """Lines ``start`` to ``end`` of a file, counted from 1: one definition with its decorators."""

    kind: str
    name: str
    start: int
    end: int


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


class Sketch:
    """What one module defines at its top level, and what its classes define."""

    def __init__(self, path: str, source: bytes | Unparsed) -> None:
        self.path = path
        self._source = b"" if isinstance(source, Unparsed) else source
        self.unparsed = source if isinstance(source, Unparsed) else None
        self._lines = self._source.splitlines()
        self._parsed: dict[Chunk, ast.stmt | None] = {}
        self._members: dict[str, dict[str, Chunk]] = {}
        self._headed: dict[int, tuple[tuple[int, int, bytes], ...]] = {}

    def _heads(self, indent: int) -> tuple[tuple[int, int, bytes], ...]:
        """Index, indentation and text of each line that may begin a statement so far out."""
        if indent not in self._headed:
            self._headed[indent] = tuple(
                (index, len(line) - len(text), text)
                for index, line in enumerate(self._lines)
                if not line[: indent + 1].isspace()  # most lines stand further in
                and (text := line.lstrip())
                and not text.startswith(_CLOSING)
            )
        return self._headed[indent]

    @cached_property
    def top(self) -> dict[str, Chunk]:
        """Functions, classes and assigned names of the module, the last of each name."""
        return {chunk.name: chunk for chunk in self._outline if chunk.kind != "import"}

    @cached_property
    def _outline(self) -> list[Chunk]:
        return self._chunks(0, len(self._lines), 0)

    @cached_property
    def imports(self) -> tuple[ast.Import | ast.ImportFrom, ...]:
        """The imports at the top level, without those of a branch."""
        chunks = [chunk for chunk in self._outline if chunk.kind == "import"]
        tree = parse(b"\n".join(map(self.text, chunks)))
        nodes = [self.node(c) for c in chunks] if isinstance(tree, Unparsed) else tree.body
        return tuple(n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom))

    def members(self, name: str) -> dict[str, Chunk]:
        """Methods and assigned names of the class ``name``."""
        if name not in self._members:
            self._members[name] = self._members_of(name)
        return self._members[name]

    def _members_of(self, name: str) -> dict[str, Chunk]:
        chunk = self.top.get(name)
        if chunk is None or chunk.kind != "class":
            return {}
        first = self._first_inside(chunk)
        if first is None:
            return {}
        found = self._chunks(first, chunk.end, self._indent(first))
        return {member.name: member for member in found if member.kind != "import"}

    def header(self, name: str) -> ast.ClassDef | None:
        """The class ``name`` with its bases and decorators, and an empty body."""
        chunk = self.top.get(name)
        if chunk is None or chunk.kind != "class":
            return None
        first = self._first_inside(chunk)
        if first is None:
            node = self._parse_lines(chunk.start, chunk.end)
        else:
            node = self._parse_lines(chunk.start, first, b" pass\n")
        return node if isinstance(node, ast.ClassDef) else None

    def node(self, chunk: Chunk) -> ast.stmt | None:
        """The syntax of a chunk at the lines where it stands; None where it cannot be parsed."""
        if chunk not in self._parsed:
            node = self._parse_lines(chunk.start, chunk.end)
            self._parsed[chunk] = node if node is not None else self._in_whole(chunk)
        return self._parsed[chunk]

    def function(self, name: str) -> ast.FunctionDef | None:
        """The function ``name`` of the module."""
        chunk = self.top.get(name)
        node = self.node(chunk) if chunk is not None and chunk.kind == "def" else None
        return node if isinstance(node, ast.FunctionDef) else None

    def method(self, cls: str, name: str) -> ast.FunctionDef | None:
        """The method ``name`` that the class itself defines."""
        chunk = self.members(cls).get(name)
        node = self.node(chunk) if chunk is not None and chunk.kind == "def" else None
        return node if isinstance(node, ast.FunctionDef) else None

    def value(self, name: str) -> ast.expr | None:
        """The expression that is assigned to a name of the module."""
        chunk = self.top.get(name)
        match self.node(chunk) if chunk is not None and chunk.kind == "value" else None:
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                return value
            case _:
                return None

    def text(self, chunk: Chunk) -> bytes:
        """The source of a chunk."""
        return b"\n".join(self._lines[chunk.start - 1 : chunk.end])

    def holder(self, line: int) -> tuple[str, str]:
        """The class and the function around a line; empty where there is none."""
        for chunk in self.top.values():
            if chunk.start <= line <= chunk.end and chunk.kind == "class":
                for member in self.members(chunk.name).values():
                    if member.start <= line <= member.end:
                        return chunk.name, member.name
                return chunk.name, ""
            if chunk.start <= line <= chunk.end and chunk.kind == "def":
                return "", chunk.name
        return "", ""

    @cached_property
    def whole(self) -> ast.Module | Unparsed:
        """The syntax of the module."""
        return self.unparsed or parse(self._source)

    def _in_whole(self, chunk: Chunk) -> ast.stmt | None:
        if isinstance(self.whole, Unparsed):
            return None
        for node in ast.walk(self.whole):
            if isinstance(node, ast.stmt) and chunk.start <= node.lineno <= chunk.end:
                named = getattr(node, "name", chunk.name)
                if named == chunk.name and type(node) is not ast.Expr:
                    return node
        return None

    def _parse_lines(self, start: int, end: int, tail: bytes = b"") -> ast.stmt | None:
        """The one statement in these lines, with their own line numbers."""
        lines = self._lines[start - 1 : end]
        indented = bool(lines) and lines[0][:1].isspace()
        # A block around it keeps its indentation legal, in the line before its own.
        head = b"\n" * (start - 2) + b"if 1:\n" if indented else b"\n" * (start - 1)
        tree = parse(head + b"\n".join(lines) + b"\n" + tail)
        if isinstance(tree, Unparsed) or not tree.body:
            return None
        node: ast.stmt = tree.body[0]
        return node.body[0] if indented and isinstance(node, ast.If) else node

    def _indent(self, index: int) -> int:
        line = self._lines[index]
        return len(line) - len(line.lstrip())

    def _first_inside(self, chunk: Chunk) -> int | None:
        """The index of the first line of a class's body."""
        outer = self._indent(chunk.start - 1)
        for index in range(chunk.start, chunk.end):
            line = self._lines[index].strip()
            if line and not line.startswith(_CLOSING) and self._indent(index) > outer:
                # A header of several lines holds its bases further in; its last line ends it.
                header = b"\n".join(self._lines[chunk.start - 1 : index]).rstrip()
                if header.endswith(b":"):
                    return index
        return None

    def _chunks(self, first: int, stop: int, indent: int) -> list[Chunk]:
        """The statements at one indentation between two indices that define or import."""
        heads = [head for head in self._heads(indent) if first <= head[0] < stop]
        ends = [*(index for index, _, _ in heads[1:]), stop] if heads else []
        found: list[Chunk] = []
        decorated: int | None = None
        for (index, depth, text), end in zip(heads, ends, strict=True):
            if text.startswith(b"@"):
                decorated = index if decorated is None else decorated
                continue
            start, decorated = (index if decorated is None else decorated), None
            kind, name = _kind_of(text)
            if kind and depth == indent:
                found.append(Chunk(kind, name, start + 1, self._last(index, end)))
        return found

    def _last(self, index: int, end: int) -> int:
        """The last line (from 1) of a statement that ends before the index ``end``."""
        while end > index + 1 and self._lines[end - 1].lstrip()[:1] in (b"", b"#"):
            end -= 1
        return end


def _kind_of(text: bytes) -> tuple[str, str]:
    header = _HEADER.match(text)
    if header is not None:
        return header[1].decode(), header[2].decode("utf-8", "replace")
    if _IMPORT.match(text):
        return "import", ""
    assigned = _ASSIGNED.match(text)
    return ("value", assigned[1].decode("utf-8", "replace")) if assigned else ("", "")
