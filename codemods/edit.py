"""Edits of classes, made on the syntax tree of a file that keeps every byte around them (LibCST).

All edits of a file are made in one go. A file that does not come out of the parser as it went in
is not edited at all.
"""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Callable, Mapping, Sequence

import libcst as cst

from auditor.errors import SourceError
from auditor.sources.tree import Tree
from codemods.importing import add_import
from codemods.layout import Fit, fit_bases, fit_signature, has_comment, with_argument
from codemods.parsed import Parsed, alone, not_editable
from codemods.plans import (
    AddMethod,
    AddMixin,
    Edit,
    Factor,
    Parameter,
    PassArgument,
)
from codemods.rewriting import as_block, merge_return, rewritten

#: What formatters of Python take where a project does not say (ruff, black).
DEFAULT_WIDTH = 88

_BLANK = cst.EmptyLine(indent=False, whitespace=cst.SimpleWhitespace(""))


def edited(
    path: str, edits: Sequence[Edit], read: Callable[[str], bytes], width: int = DEFAULT_WIDTH
) -> bytes:
    """The bytes of ``path`` after ``edits``.

    Args:
        path: the file.
        edits: edits of classes in it.
        read: gives the bytes of a file of the tree.
        width: the longest line.

    Raises:
        Refused: the file cannot be edited.
    """
    if all(isinstance(edit, AddMethod) and edit.origin == edit.site for edit in edits):
        source = read(path)
        spans = alone(source, {edit.site.line for edit in edits})
        if spans is not None:
            return _edited_classes(path, source, spans, edits, width)
    files = {path, *(e.origin.path for e in edits if isinstance(e, AddMethod))}
    result = _edited(path, edits, {name: Parsed(name, read(name)) for name in files}, width)
    package = path.rpartition("/")[0].replace("/", ".")
    for edit in edits:
        if isinstance(edit, AddMixin) and edit.mixin.rpartition(".")[0] != _module_name(path):
            result = add_import(result, package, edit.mixin, width)
    return result.bytes


def _edited_classes(
    path: str, source: bytes, spans: Sequence[tuple[int, int]], edits: Sequence[Edit], width: int
) -> bytes:
    """The same for classes that are taken out of their file, edited, and put back."""
    lines = source.splitlines(keepends=True)
    parts: list[bytes] = []
    done = 0
    for first, last in spans:
        own = [edit for edit in edits if first <= edit.site.line <= last]
        parsed = Parsed(path, b"".join(lines[first - 1 : last]), first - 1)
        parts += [*lines[done : first - 1], _edited(path, own, {path: parsed}, width).bytes]
        done = last
    return b"".join([*parts, *lines[done:]])


def _edited(
    path: str, edits: Sequence[Edit], parsed: Mapping[str, Parsed], width: int
) -> cst.Module:
    """The tree of ``path`` after edits of its classes and calls."""
    replaced: dict[cst.CSTNode, cst.ClassDef] = {}
    passed = parsed[path].passed(edit for edit in edits if isinstance(edit, PassArgument))
    own = [edit for edit in edits if not isinstance(edit, PassArgument)]
    for site in dict.fromkeys(edit.site for edit in own):
        cls = parsed[path].cls(site)
        new = cls
        for change in (one for one in own if one.site == site):
            new = _Class(change, parsed, width).apply(new, cls)
        replaced[cls] = new
    return _with_replaced(parsed[path].module, replaced, passed, width)


def line_width(tree: Tree) -> int:
    """The longest line that the tree's own formatter allows."""
    if "pyproject.toml" not in tree.files():
        return DEFAULT_WIDTH
    try:
        data = tomllib.loads(tree.read("pyproject.toml").decode())
    except (SourceError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return DEFAULT_WIDTH
    width = data.get("tool", {}).get("ruff", {}).get("line-length", DEFAULT_WIDTH)
    return width if isinstance(width, int) else DEFAULT_WIDTH


def _module_name(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _with_replaced(
    module: cst.Module,
    replaced: Mapping[cst.CSTNode, cst.ClassDef],
    passed: Mapping[cst.Call, tuple[PassArgument, str]],
    width: int,
) -> cst.Module:
    """The module with its new nodes; it is only walked where one stands further inside."""
    if not passed and replaced.keys() <= set(module.body):
        return module.with_changes(body=[replaced.get(node, node) for node in module.body])
    result = module.visit(_Replace(replaced, passed, width))
    assert isinstance(result, cst.Module)
    return result


class _Replace(cst.CSTTransformer):
    def __init__(
        self,
        replaced: Mapping[cst.CSTNode, cst.ClassDef],
        passed: Mapping[cst.Call, tuple[PassArgument, str]],
        width: int,
    ) -> None:
        super().__init__()
        self._replaced = replaced
        self._passed = passed
        self._width = width

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:  # noqa: N802
        edit, line = self._passed.get(original_node, (None, ""))
        if edit is None:
            return updated_node
        return with_argument(updated_node, edit.keyword, edit.value, line.rstrip(), self._width)

    def leave_ClassDef(  # noqa: N802
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.BaseStatement:
        new = self._replaced.get(original_node)
        if new is None:
            return updated_node
        if updated_node is not original_node and not updated_node.deep_equals(original_node):
            raise AssertionError("a class inside an edited class was edited as well")
        return new


class _Class:
    """One edit of one class."""

    def __init__(
        self, edit: AddMixin | AddMethod, parsed: Mapping[str, Parsed], width: int
    ) -> None:
        self._edit = edit
        self._parsed = parsed
        self._width = width
        self._file = parsed[edit.site.path]
        self._step = self._file.module.default_indent

    def apply(self, new: cst.ClassDef, cls: cst.ClassDef) -> cst.ClassDef:
        """The class after the edit; ``cls`` is the node as it was parsed."""
        indent = " " * self._file.column(cls)
        if isinstance(self._edit, AddMixin):
            return self._with_mixin(new, self._edit.mixin, indent)
        return self._with_method(new, cls, self._edit, indent + self._step)

    def _with_mixin(self, cls: cst.ClassDef, mixin: str, indent: str) -> cst.ClassDef:
        first = cst.Arg(cst.Name(mixin.rpartition(".")[2]))
        if cls.bases:
            comma = cls.bases[0].comma if len(cls.bases) > 1 or cls.keywords else None
            own = comma if isinstance(comma, cst.Comma) else cst.Comma(
                whitespace_after=cst.SimpleWhitespace(" "))  # fmt: skip
            first = first.with_changes(comma=own)
        new = cls.with_changes(
            bases=[first, *cls.bases], lpar=_paren(cls.lpar), rpar=_closing(cls.rpar)
        )
        return fit_bases(new, indent, self._step, self._width)

    def _with_method(
        self, new: cst.ClassDef, cls: cst.ClassDef, edit: AddMethod, indent: str
    ) -> cst.ClassDef:
        origin = self._parsed[edit.origin.path]
        source_cls = cls if edit.origin == edit.site else origin.cls(edit.origin)
        source = origin.method(source_cls, edit.source, edit.line)
        calls = origin.calls(source_cls, source, edit.line, edit.spots)
        moved: list[cst.BaseStatement] = []
        if edit.factor is not None:
            moved = origin.between(source_cls, source, edit.line, edit.factor)
        idle = origin.starting(source_cls, source, edit.line, edit.dropped) if edit.dropped else []
        method = self._method(source, edit, calls, moved, idle, indent)
        if edit.origin != edit.site:
            new = _as_block(new)
            return _with_body(new, _placed(list(new.body.body), method))
        body: list[cst.CSTNode] = list(new.body.body)
        at = next(i for i, node in enumerate(body) if node is source)
        if edit.factor is None:
            return _with_body(new, [*body[: at + 1], method, *body[at + 1 :]])
        helper = self._helper(source, edit.factor, moved)
        changed = self._using(source, edit.factor, calls, moved, indent)
        front = helper.with_changes(leading_lines=source.leading_lines)
        changed = changed.with_changes(leading_lines=[_BLANK])
        return _with_body(new, [*body[:at], front, changed, method, *body[at + 1 :]])

    def _method(
        self,
        source: cst.FunctionDef,
        edit: AddMethod,
        calls: Mapping[cst.Call, str],
        moved: Sequence[cst.BaseStatement],
        idle: Sequence[cst.BaseStatement],
        indent: str,
    ) -> cst.FunctionDef:
        """The new method: the source with its calls turned, and a docstring of its own."""
        if edit.factor is not None:
            new = self._using(source, edit.factor, calls, [*moved, *idle], indent, edit.name)
        else:
            new = rewritten(source, calls, edit.name, {}, idle)
        new = merge_return(as_block(new))
        statements = [node for node in new.body.body if not _is_docstring(node, new)]
        inner = indent + self._step
        laid = [self._fitted(node, inner) for node in statements]
        doc = self._docstring(edit.doc, inner)
        new = new.with_changes(
            name=cst.Name(edit.name),
            leading_lines=[_BLANK],
            lines_after_decorators=[],
            returns=_without_none(new.returns),
            body=new.body.with_changes(body=[doc, *laid]),
        )
        extra = _as_params(edit.extra)
        if extra and has_comment(new.params):
            where = edit.origin.path, edit.line
            raise not_editable("a parameter does not go among comments", *where)
        return fit_signature(new, extra, indent, self._step, self._width)

    def _using(
        self,
        source: cst.FunctionDef,
        factor: Factor,
        calls: Mapping[cst.Call, str],
        moved: Sequence[cst.BaseStatement],
        indent: str,
        name: str = "",
    ) -> cst.FunctionDef:
        """The method with the statements of a factor replaced by a call of it."""
        names = ", ".join(parameter.name for parameter in factor.parameters)
        call = cst.parse_expression(f"self.{factor.name}({names})")
        handed = dict.fromkeys(calls, (factor.parameters[-1].name, call))
        new = rewritten(source, calls if name else {}, name, handed, moved)
        laid = [self._fitted(node, indent + self._step) for node in new.body.body]
        return new.with_changes(body=new.body.with_changes(body=laid))

    def _helper(
        self, source: cst.FunctionDef, factor: Factor, moved: Sequence[cst.BaseStatement]
    ) -> cst.FunctionDef:
        """The factored method; the last assignment becomes its return."""
        *before, last = moved
        assert isinstance(last, cst.SimpleStatementLine)
        assign = last.body[0]
        assert isinstance(assign, cst.Assign)
        result = last.with_changes(body=[cst.Return(value=assign.value)])
        parameters = "".join(
            f"{self._step}{p.name}: {p.annotation},\n"
            if p.annotation
            else f"{self._step}{p.name},\n"
            for p in factor.parameters
        )
        returns = f" -> {factor.annotation}" if factor.annotation else ""
        text = f"def {factor.name}(\n{self._step}self,\n{parameters}){returns}:\n    pass\n"
        function = cst.parse_statement(text, self._file.module.config_for_parsing)
        assert isinstance(function, cst.FunctionDef)
        return function.with_changes(body=function.body.with_changes(body=[*before, result]))

    def _fitted(self, node: cst.CSTNode, indent: str) -> cst.CSTNode:
        return Fit(indent, self._step, self._width).of(node)

    def _docstring(self, paragraphs: Sequence[str], indent: str) -> cst.SimpleStatementLine:
        """A docstring, wrapped to the width of the file."""
        newline = self._file.module.default_newline
        width = self._width - len(indent)
        head, *rest = paragraphs
        if not rest:
            text = f'"""{head}"""'
        else:
            lines = [f'"""{head}', ""]
            for paragraph in rest:
                lines += textwrap.wrap(
                    paragraph, width, break_long_words=False, break_on_hyphens=False
                )
            lines.append('"""')
            text = newline.join(f"{indent}{line}" if line else "" for line in lines).lstrip()
        return cst.SimpleStatementLine(body=[cst.Expr(cst.SimpleString(text))])


def _as_params(extra: Sequence[Parameter]) -> list[cst.Param]:
    """Parameters as nodes."""
    return [
        cst.Param(
            name=cst.Name(one.name),
            annotation=cst.Annotation(cst.parse_expression(one.annotation)),
            default=cst.parse_expression(one.default),
        )
        for one in extra
    ]


def _is_docstring(node: cst.CSTNode, function: cst.FunctionDef) -> bool:
    if node is not function.body.body[0] or not isinstance(node, cst.SimpleStatementLine):
        return False
    one = node.body[0]
    return isinstance(one, cst.Expr) and isinstance(
        one.value, cst.SimpleString | cst.ConcatenatedString
    )


def _without_none(returns: cst.Annotation | None) -> cst.Annotation | None:
    """``X | None`` and ``Optional[X]`` as ``X``: the method always gives tokens."""
    match returns:
        case cst.Annotation(
            annotation=cst.BinaryOperation(left=left, operator=cst.BitOr(), right=cst.Name("None"))
        ):
            return returns.with_changes(annotation=left)
        case cst.Annotation(
            annotation=cst.Subscript(
                value=cst.Name("Optional"), slice=[cst.SubscriptElement(cst.Index(inner))]
            )
        ):
            return returns.with_changes(annotation=inner)
        case _:
            return returns


def _placed(body: list[cst.CSTNode], method: cst.FunctionDef) -> list[cst.CSTNode]:
    """A method of an inherited neighbour: after ``forward``, else at the end of the class.

    A class that says no more than ``pass`` says the method instead.
    """
    if len(body) == 1 and _is_placeholder(body[0]):
        return [method.with_changes(leading_lines=[])]
    named = [i for i, n in enumerate(body) if isinstance(n, cst.FunctionDef)
             and n.name.value == "forward"]  # fmt: skip
    at = named[-1] + 1 if named else len(body)
    return [*body[:at], method, *body[at:]]


def _is_placeholder(node: cst.CSTNode) -> bool:
    match node:
        case cst.SimpleStatementLine(body=[cst.Pass() | cst.Expr(value=cst.Ellipsis())]):
            return not has_comment(node)
        case _:
            return False


def _as_block(cls: cst.ClassDef) -> cst.ClassDef:
    """The class with its body on lines of its own."""
    if isinstance(cls.body, cst.IndentedBlock):
        return cls
    assert isinstance(cls.body, cst.SimpleStatementSuite)
    line = cst.SimpleStatementLine(
        body=cls.body.body, trailing_whitespace=cls.body.trailing_whitespace
    )
    return cls.with_changes(body=cst.IndentedBlock(body=[line]))


def _with_body(cls: cst.ClassDef, body: Sequence[cst.CSTNode]) -> cst.ClassDef:
    return cls.with_changes(body=cls.body.with_changes(body=body))


def _paren(lpar: object) -> cst.LeftParen:
    return lpar if isinstance(lpar, cst.LeftParen) else cst.LeftParen()


def _closing(rpar: object) -> cst.RightParen:
    return rpar if isinstance(rpar, cst.RightParen) else cst.RightParen()
