"""A file as a syntax tree that keeps every byte, with the places of its parts (LibCST)."""

from __future__ import annotations

import ast
import codecs
from collections.abc import Iterable, Iterator, Mapping, Sequence

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from auditor.values import Place
from codemods.plans import Factor, PassArgument, Refusal, Refused, Site, Spot

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS = (
    cst.BaseSuite, cst.BaseCompoundStatement, cst.Else, cst.Finally, cst.ExceptHandler,
    cst.ExceptStarHandler, cst.MatchCase,
)  # fmt: skip

#: The blocks around a class, outermost first.
_Outer = tuple[cst.BaseSuite, ...]

#: What the parser raises; a declared encoding that there is not is a plain ``SyntaxError``.
_UNREADABLE = (cst.ParserSyntaxError, SyntaxError, UnicodeDecodeError, LookupError)


class Parsed:
    """A file as a syntax tree, and the places of what is asked for.

    LibCST knows the place of a node only after it has written out the whole file, which takes
    longer than all else here. So places are those of :mod:`ast`, definitions are paired in the
    order in which they stand, and only the methods that are edited are written out.
    """

    def __init__(self, path: str, source: bytes, ahead: int = 0) -> None:
        """Take the bytes of a file, or of statements of it with ``ahead`` lines before them."""
        self.path = path
        try:
            module = cst.parse_module(source)
            places = ast.increment_lineno(ast.parse(source), ahead)
        except (*_UNREADABLE, ValueError, RecursionError) as error:
            raise not_editable(f"it cannot be parsed: {type(error).__name__}", path, 0) from error
        if module.bytes != source:
            raise not_editable("the parser does not give its bytes back", path, 0)
        self.module = module
        self._classes: dict[cst.ClassDef, tuple[ast.ClassDef, _Outer]] = {}
        theirs = [one for one in _definitions(places) if isinstance(one, ast.ClassDef)]
        ours = list(_classes(module, ()))
        if [one.name for one in theirs] != [one.name.value for one, _ in ours]:
            raise not_editable("its classes are not told apart", path, 0)
        for (node, outer), place in zip(ours, theirs, strict=True):
            self._classes[node] = place, outer

    def column(self, cls: cst.ClassDef) -> int:
        """The column that a class starts at."""
        return self._classes[cls][0].col_offset

    def line(self, cls: cst.ClassDef) -> int:
        """The line of a class's ``class`` statement."""
        return self._classes[cls][0].lineno

    def cls(self, site: Site) -> cst.ClassDef:
        """The class at a site."""
        name = site.qualname.rpartition(".")[2]
        for node, (place, _) in self._classes.items():
            if place.name == name and place.lineno == site.line:
                return node
        raise not_editable(f"there is no class {site.qualname} in that line", self.path, site.line)

    def method(self, cls: cst.ClassDef, name: str, line: int) -> cst.FunctionDef:
        """The method of a class whose ``def`` stands in a line."""
        body = self._classes[cls][0].body
        theirs = [one for one in body if isinstance(one, _FUNCTIONS) and one.name == name]
        ours = [
            one
            for one in cls.body.body
            if isinstance(one, cst.FunctionDef) and one.name.value == name
        ]
        for node, place in zip(ours, theirs, strict=True):
            if place.lineno == line:
                return node
        raise not_editable(f"{name} is not a plain method of its class", self.path, line)

    def calls(
        self, cls: cst.ClassDef, method: cst.FunctionDef, line: int, spots: Sequence[Spot]
    ) -> dict[cst.Call, str]:
        """The calls at ``spots``, by the node; each spot must be one."""
        kinds = {(spot.line, spot.column): spot.kind for spot in spots}
        found: dict[cst.Call, str] = {
            node: kinds.pop(place)
            for node, place in self._starts(cls, method, line).items()
            if isinstance(node, cst.Call) and place in kinds
        }
        if kinds:
            raise not_editable("a call is not where it was analysed", self.path, min(kinds)[0])
        return found

    def passed(self, edits: Iterable[PassArgument]) -> dict[cst.Call, tuple[PassArgument, str]]:
        """The calls that get an argument, each with the line that it starts in."""
        found: dict[cst.Call, tuple[PassArgument, str]] = {}
        for edit in edits:
            text = self.module.code.split("\n")[edit.line - 1]
            cls = self.cls(edit.site)
            for node, place in self._starts(cls, *self._around(cls, edit.line)).items():
                if isinstance(node, cst.Call) and place == (edit.line, edit.column):
                    found[node] = edit, text
                    break
            else:
                raise not_editable("a call is not where it was analysed", self.path, edit.line)
        return found

    def _around(self, cls: cst.ClassDef, line: int) -> tuple[cst.FunctionDef, int]:
        """The method that a line stands in, with the line of its ``def``."""
        for place in self._classes[cls][0].body:
            if isinstance(place, _FUNCTIONS) and place.lineno <= line <= (place.end_lineno or 0):
                return self.method(cls, place.name, place.lineno), place.lineno
        raise not_editable("a call is not where it was analysed", self.path, line)

    def between(
        self, cls: cst.ClassDef, method: cst.FunctionDef, line: int, factor: Factor
    ) -> list[cst.BaseStatement]:
        """The statements of a method from the first line of a factor to its last."""
        starts = self._starts(cls, method, line)
        return [
            stmt
            for stmt in method.body.body
            if isinstance(stmt, cst.BaseStatement)
            and factor.first <= starts[stmt][0] <= factor.last
        ]

    def starting(
        self, cls: cst.ClassDef, method: cst.FunctionDef, line: int, lines: Sequence[int]
    ) -> list[cst.BaseStatement]:
        """The statements of a method that start in one of these lines."""
        starts = self._starts(cls, method, line)
        return [
            stmt
            for stmt in method.body.body
            if isinstance(stmt, cst.BaseStatement) and starts[stmt][0] in lines
        ]

    def _starts(
        self, cls: cst.ClassDef, method: cst.FunctionDef, line: int
    ) -> dict[cst.CSTNode, tuple[int, int]]:
        """Where the nodes of a method start; ``line`` is where its ``def`` stands.

        The method is written out alone, as deep as it stands in its file.
        """
        inner: cst.BaseStatement = method
        for block in reversed((*self._classes[cls][1], cls.body)):
            indent = block.indent if isinstance(block, cst.IndentedBlock) else None
            body = cst.IndentedBlock(body=[inner], indent=indent)
            inner = cst.If(test=cst.Name("deeper"), body=body)
        alone = self.module.with_changes(header=[], body=[inner], footer=[])
        wrapper = MetadataWrapper(alone, unsafe_skip_copy=True)
        ranges: Mapping[cst.CSTNode, CodeRange] = wrapper.resolve(PositionProvider)
        by = line - ranges[method].start.line
        return {node: (where.start.line + by, where.start.column) for node, where in ranges.items()}


def alone(source: bytes, lines: Iterable[int]) -> list[tuple[int, int]] | None:
    """The classes at the top of a file whose ``class`` stands in one of ``lines``.

    Each is told by its first line, decorators included, and its last; they are in order. None where
    a class is not at the top, shares a line with something, or the file says how it is encoded:
    then the file has to be taken as a whole.
    """
    head = source[:200]
    if head.startswith(codecs.BOM_UTF8) or b"coding" in head or b"\f" in source:
        return None
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError):
        return None
    spans = [
        (min([stmt.lineno, *(d.lineno for d in getattr(stmt, "decorator_list", ()))]), stmt)
        for stmt in body
    ]
    wanted, found = set(lines), list[tuple[int, int]]()
    before = 0
    for (first, stmt), after in zip(spans, [*spans[1:], (None, None)], strict=True):
        last = stmt.end_lineno or stmt.lineno
        if isinstance(stmt, ast.ClassDef) and stmt.lineno in wanted:
            if first <= before or after[0] == last:
                return None
            wanted.remove(stmt.lineno)
            found.append((first, last))
        before = last
    return None if wanted else found


def _definitions(node: ast.AST) -> Iterator[ast.ClassDef]:
    """The classes in the statements of a node, in the order in which they stand."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield child
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _definitions(child)


def _classes(node: cst.CSTNode, outer: _Outer) -> Iterator[tuple[cst.ClassDef, _Outer]]:
    """The same of a tree that keeps every byte, each with the blocks around it."""
    for child in node.children:
        if isinstance(child, cst.ClassDef):
            yield child, outer
        if isinstance(child, _BLOCKS):
            yield from _classes(
                child, (*outer, child) if isinstance(child, cst.BaseSuite) else outer
            )


def not_editable(reason: str, path: str, line: int) -> Refused:
    """The refusal of a file that is not what an edit needs."""
    return Refused(Refusal("not-editable", reason, Place(path, line)))
