"""A file as a syntax tree that keeps every byte, with the places of its parts (LibCST)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from auditor.values import Place
from codemods.plans import Factor, PassArgument, Refusal, Refused, Site, Spot

#: What the parser raises; a declared encoding that there is not is a plain ``SyntaxError``.
_UNREADABLE = (cst.ParserSyntaxError, SyntaxError, UnicodeDecodeError, LookupError)


class Parsed:
    """A file as a syntax tree with positions."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        try:
            module = cst.parse_module(source)
        except _UNREADABLE as error:
            raise not_editable(f"it cannot be parsed: {type(error).__name__}", path, 0) from error
        if module.bytes != source:
            raise not_editable("the parser does not give its bytes back", path, 0)
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        self.module = module
        self._ranges: Mapping[cst.CSTNode, CodeRange] = wrapper.resolve(PositionProvider)

    def line(self, node: cst.CSTNode) -> int:
        """The line that a node starts in."""
        return self._ranges[node].start.line

    def column(self, node: cst.CSTNode) -> int:
        """The column, in characters, that a node starts at."""
        return self._ranges[node].start.column

    def cls(self, site: Site) -> cst.ClassDef:
        """The class at a site."""
        name = site.qualname.rpartition(".")[2]
        for node in self._ranges:
            if (
                isinstance(node, cst.ClassDef)
                and node.name.value == name
                and self.line(node) == site.line
            ):
                return node
        raise not_editable(f"there is no class {site.qualname} in that line", self.path, site.line)

    def method(self, cls: cst.ClassDef, name: str, line: int) -> cst.FunctionDef:
        """The method of a class whose ``def`` stands in a line."""
        for node in cls.body.body:
            if (
                isinstance(node, cst.FunctionDef)
                and node.name.value == name
                and self.line(node) == line
            ):
                return node
        raise not_editable(f"{name} is not a plain method of its class", self.path, line)

    def calls(self, method: cst.FunctionDef, spots: Sequence[Spot]) -> dict[cst.Call, str]:
        """The calls at ``spots``, by the node; each spot must be one."""
        found: dict[cst.Call, str] = {}
        kinds = {(spot.line, spot.column): spot.kind for spot in spots}

        class Search(cst.CSTVisitor):
            def on_visit(search, node: cst.CSTNode) -> bool:  # noqa: N805
                if isinstance(node, cst.Call):
                    kind = kinds.pop((self.line(node), self.column(node)), None)
                    if kind is not None:
                        found[node] = kind
                return True

        method.visit(Search())
        if kinds:
            raise not_editable("a call is not where it was analysed", self.path, min(kinds)[0])
        return found

    def passed(self, edits: Iterable[PassArgument]) -> dict[cst.Call, tuple[PassArgument, str]]:
        """The calls that get an argument, each with the line that it starts in."""
        places = {(edit.line, edit.column): edit for edit in edits}
        lines = self.module.code.split("\n") if places else []
        found = {
            node: (places.pop((self.line(node), self.column(node))), lines[self.line(node) - 1])
            for node in self._ranges
            if isinstance(node, cst.Call) and (self.line(node), self.column(node)) in places
        }
        if places:
            raise not_editable("a call is not where it was analysed", self.path, min(places)[0])
        return found

    def between(self, method: cst.FunctionDef, factor: Factor) -> list[cst.BaseStatement]:
        """The statements of a method from the first line of a factor to its last."""
        body = method.body.body
        return [
            stmt
            for stmt in body
            if isinstance(stmt, cst.BaseStatement)
            and factor.first <= self.line(stmt) <= factor.last
        ]


def not_editable(reason: str, path: str, line: int) -> Refused:
    """The refusal of a file that is not what an edit needs."""
    return Refused(Refusal("not-editable", reason, Place(path, line)))
