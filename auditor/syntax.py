"""One file to platform-free facts, with the standard library's parser.

``ast`` is used and not LibCST because only the structure is needed here, and it is ten times
faster. The parser is that of the running interpreter: a file that needs a newer grammar is
reported as unparsed, with the version that tried.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from auditor.facts import (
    Assert,
    Assign,
    Attr,
    AugAssign,
    Bind,
    BinOp,
    BoolOp,
    Call,
    Case,
    Class,
    Compare,
    Comprehension,
    Const,
    Delete,
    Do,
    Expr,
    FString,
    Func,
    FunctionFacts,
    Generator,
    Global,
    Handler,
    If,
    IfExp,
    Import,
    ImportFrom,
    Jump,
    Lambda,
    Loop,
    Mapping,
    ModuleFacts,
    Name,
    Not,
    Raise,
    Return,
    Sequence,
    Slice,
    Stmt,
    Subscript,
    Switch,
    Try,
    Unary,
    Unknown,
    Unparsed,
    Uses,
    Walrus,
    With,
)
from auditor.outline import outline

#: A file longer than this is not source that a person wrote; parsing it would need about
#: 200 times its size in memory.
MAX_SOURCE_BYTES = 8 * 1024 * 1024

_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Mod: "%", ast.FloorDiv: "//", ast.BitOr: "|",
    ast.BitAnd: "&", ast.BitXor: "^", ast.Pow: "**", ast.Div: "/", ast.LShift: "<<",
    ast.RShift: ">>",
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
_COMPREHENSIONS: dict[type[ast.expr], str] = {
    ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "generator",
}  # fmt: skip
_DISPLAYS: dict[type[ast.expr], str] = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}
_BUILTINS = frozenset(dir(builtins))
_DEFERRED = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)


def module_facts(source: bytes, root: str) -> ModuleFacts | Unparsed:
    """The facts of one module; the grammar inside its functions is :func:`grammar`'s to judge.

    Args:
        source: the bytes of the file, in the encoding that it declares (PEP 263).
        root: the top-level package the module belongs to; names imported from elsewhere are
            foreign, and attributes of foreign things are taken to exist.
    """
    tree = _top_level(source)
    if isinstance(tree, Unparsed):
        return tree
    builder = _Builder(_Text(source), root, _postpones_annotations(tree))
    return ModuleFacts(builder.block(tree.body))


def _top_level(source: bytes) -> ast.Module | Unparsed:
    """The syntax tree without function bodies, or with them where the outline is not sure."""
    reduced = outline(source) if len(source) <= MAX_SOURCE_BYTES else None
    tree = parse(reduced) if reduced is not None else None
    return tree if isinstance(tree, ast.Module) else parse(source)


def grammar(source: bytes) -> Unparsed | None:
    """Why a file as a whole, function bodies included, does not parse; None when it does."""
    tree = parse(source)
    return tree if isinstance(tree, Unparsed) else None


def function_facts(source: bytes, start: int, end: int, name: str) -> FunctionFacts | Unparsed:
    """The facts of the function ``name`` that stands at lines ``start`` to ``end``.

    Only those lines are parsed. Names are not pruned here: every read in a body counts.
    """
    text = _Text(source)
    lines = text.lines[start - 1 : end]
    # A block of its own keeps the indentation legal; empty lines before it keep the numbers right.
    indented = bool(lines) and lines[0][:1].isspace() and start > 1
    head = b"\n" * (start - 2) + b"if 1:\n" if indented else b"\n" * (start - 1)
    tree = parse(head + b"\n".join(lines) + b"\n")
    if isinstance(tree, Unparsed):
        return tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            try:
                return _function(node, text)
            except RecursionError:
                return Unparsed(f"{name!r} is nested too deeply to be read", start)
    return Unparsed(f"no function {name!r} at lines {start}-{end}", start)


def parse(source: bytes) -> ast.Module | Unparsed:
    """``ast.parse`` with every way in which a hostile file can fail turned into a value."""
    if len(source) > MAX_SOURCE_BYTES:
        size = len(source) / 1024 / 1024
        return Unparsed(f"{size:.0f} MiB is more than the {MAX_SOURCE_BYTES >> 20} MiB read", 0)
    version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    try:
        return ast.parse(source)
    except SyntaxError as error:
        return Unparsed(f"does not parse as {version}: {error.msg}", error.lineno or 0)
    except ValueError as error:
        return Unparsed(f"does not parse as {version}: {error}", 0)
    except (RecursionError, MemoryError):
        return Unparsed(f"nested too deeply for the parser of {version}", 0)


def _postpones_annotations(tree: ast.Module) -> bool:
    """Whether annotations are not evaluated (``from __future__ import annotations``, PEP 563)."""
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in tree.body
    )


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, text: _Text) -> FunctionFacts:
    builder = _Builder(text, "", postponed=True, prune=False)
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    late = positional[len(positional) - len(arguments.defaults) :]
    defaults = [
        (argument.arg, builder.expr(default))
        for argument, default in zip(late, arguments.defaults, strict=True)
    ]
    for argument, default_or_none in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default_or_none is not None:
            defaults.append((argument.arg, builder.expr(default_or_none)))
    return FunctionFacts(
        params=tuple(argument.arg for argument in [*positional, *arguments.kwonlyargs]),
        defaults=tuple(defaults),
        vararg=arguments.vararg.arg if arguments.vararg else None,
        kwarg=arguments.kwarg.arg if arguments.kwarg else None,
        generator=isinstance(node, ast.AsyncFunctionDef) or _yields(node),
        body=builder.block(node.body),
        kwonly=len(arguments.kwonlyargs),
        posonly=len(arguments.posonlyargs),
    )


def _yields(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    pending: list[ast.AST] = list(node.body)
    while pending:
        child = pending.pop()
        if isinstance(child, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(child, (*_DEFERRED, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(child))
    return False


class _Text:
    """The text of one file; it is split into lines once, when a line is first asked for."""

    def __init__(self, source: bytes) -> None:
        self._source = source

    @cached_property
    def lines(self) -> list[bytes]:
        return self._source.splitlines()

    def line(self, number: int) -> bytes:
        """A line by its number; empty where there is none."""
        return self.lines[number - 1] if number <= len(self.lines) else b""


class _Builder:
    """Turns statements into facts, and keeps account of which names are bound for certain."""

    def __init__(self, source: _Text, root: str, postponed: bool, prune: bool = True) -> None:
        self._source = source
        self._root = root
        self._postponed = postponed
        self._prune = prune
        self._sure: set[str] = set()
        self._foreign: set[str] = set()

    # --- statements

    def block(self, body: Iterable[ast.stmt]) -> tuple[Stmt, ...]:
        facts: list[Stmt] = []
        for node in body:
            facts.extend(self._statement(node))
        return tuple(facts)

    def _branch(self, body: Iterable[ast.stmt]) -> tuple[Stmt, ...]:
        """A block that may not run: what it binds is not certain afterwards."""
        sure, foreign = set(self._sure), set(self._foreign)
        facts = self.block(body)
        # A name that only a branch binds may hide what was certain before: forget both.
        changed = (self._sure ^ sure) | (self._foreign ^ foreign) | _bound(facts)
        self._sure, self._foreign = sure - changed, foreign - changed
        return facts

    def _statement(self, node: ast.stmt) -> Iterable[Stmt]:
        method = _STATEMENTS.get(type(node))
        return method(self, node) if method is not None else self._unknown_statement(node)

    def _unknown_statement(self, node: ast.stmt) -> Iterator[Stmt]:
        yield Do(self._unknown(node), node.lineno)

    def _bind(self, names: Iterable[str], foreign: bool = False) -> None:
        for name in names:
            self._sure.add(name)
            (self._foreign.add if foreign else self._foreign.discard)(name)

    def _import(self, node: ast.Import) -> Iterator[Stmt]:
        for alias in node.names:
            yield Import(alias.name, alias.asname, node.lineno)
            head = alias.name.partition(".")[0]
            self._bind([alias.asname or head], foreign=head != self._root)

    def _importfrom(self, node: ast.ImportFrom) -> Iterator[Stmt]:
        module = node.module or ""
        if module == "__future__" and not node.level:
            return
        names = tuple((alias.name, alias.asname or alias.name) for alias in node.names)
        yield ImportFrom(module, node.level, names, node.lineno)
        foreign = not node.level and module.partition(".")[0] != self._root
        self._bind((bound for _, bound in names if bound != "*"), foreign)

    def _functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Stmt]:
        arguments = node.args
        read: list[ast.expr] = [*node.decorator_list, *arguments.defaults]
        read += [default for default in arguments.kw_defaults if default is not None]
        annotations = [] if self._postponed else _annotations(node)
        for annotation in annotations:
            if _makes_calls(annotation):
                yield from self._annotation(annotation)
        read += annotations
        yield Func(
            node.name,
            node.lineno,
            node.decorator_list[0].lineno if node.decorator_list else node.lineno,
            node.end_lineno or node.lineno,
            tuple(self.expr(decorator) for decorator in node.decorator_list),
            self._uses(read),
            self._late_defaults(arguments),
        )
        self._bind([node.name])

    def _late_defaults(self, arguments: ast.arguments) -> tuple[tuple[str, Expr], ...]:
        """Default values other than constants and what a foreign module has."""
        if not arguments.defaults and not arguments.kw_defaults:
            return ()  # as most functions have it
        positional = [*arguments.posonlyargs, *arguments.args]
        late = positional[len(positional) - len(arguments.defaults) :]
        pairs = [*zip(late, arguments.defaults, strict=True)]
        pairs += [
            (argument, default)
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if default is not None
        ]
        return tuple(
            (argument.arg, self.expr(default))
            for argument, default in pairs
            if not isinstance(default, ast.Constant | ast.Attribute | ast.UnaryOp)
        )

    def _classdef(self, node: ast.ClassDef) -> Iterator[Stmt]:
        inner = _Builder(self._source, self._root, self._postponed, self._prune)
        inner._sure, inner._foreign = set(self._sure), set(self._foreign)
        body = inner.block(node.body)
        plain = all(isinstance(fact, Func | Assign | Bind) and _is_plain(fact) for fact in body)
        yield Class(
            name=node.name,
            line=node.lineno,
            start=node.decorator_list[0].lineno if node.decorator_list else node.lineno,
            end=node.end_lineno or node.lineno,
            bases=tuple(self.expr(base) for base in node.bases),
            keywords=tuple((k.arg or "**", self.expr(k.value)) for k in node.keywords),
            decorators=tuple(self.expr(decorator) for decorator in node.decorator_list),
            body=body,
            uses=(),
            plain=plain,
        )
        self._bind([node.name])

    def _assign(self, node: ast.Assign) -> Iterator[Stmt]:
        yield Assign(
            tuple(self.expr(target) for target in node.targets),
            self.expr(node.value),
            node.lineno,
        )
        self._bind(name for target in node.targets for name in _target_names(target))

    def _annassign(self, node: ast.AnnAssign) -> Iterator[Stmt]:
        if node.value is not None:
            yield Assign((self.expr(node.target),), self.expr(node.value), node.lineno)
        if not self._postponed:
            # The value is stored before the annotation is evaluated.
            yield from self._annotation(node.annotation)
        if node.value is not None:
            self._bind(_target_names(node.target))

    def _annotation(self, node: ast.expr) -> Iterator[Stmt]:
        """An annotation that is evaluated: for its calls, else for the names in it alone."""
        if _makes_calls(node):
            yield Do(self.expr(node), node.lineno)
        elif uses := self._uses([node]):
            yield Uses(uses, node.lineno)

    def _augassign(self, node: ast.AugAssign) -> Iterator[Stmt]:
        op = _BINARY.get(type(node.op), "other")
        yield AugAssign(self.expr(node.target), op, self.expr(node.value), node.lineno)

    def _delete(self, node: ast.Delete) -> Iterator[Stmt]:
        yield Delete(tuple(self.expr(target) for target in node.targets), node.lineno)
        gone = {name for target in node.targets for name in _target_names(target)}
        self._sure -= gone
        self._foreign -= gone

    def _expr(self, node: ast.Expr) -> Iterator[Stmt]:
        if not isinstance(node.value, ast.Constant):
            yield Do(self.expr(node.value), node.lineno)

    def _if(self, node: ast.If, is_elif: bool = False) -> Iterator[Stmt]:
        test = self.expr(node.test)
        body = self._branch(node.body)
        inner = node.orelse
        if len(inner) == 1 and isinstance(inner[0], ast.If) and self._spells_elif(inner[0]):
            orelse = tuple(self._if(inner[0], is_elif=True))
        else:
            orelse = self._branch(inner)
        yield If(test, self._text(node.test), node.test.lineno, body, orelse, is_elif)

    def _spells_elif(self, node: ast.If) -> bool:
        return self._source.line(node.lineno)[node.col_offset :].startswith(b"elif")

    def _try(self, node: ast.Try) -> Iterator[Stmt]:
        yield Try(
            self._branch(node.body),
            tuple(
                Handler(
                    self.expr(handler.type) if handler.type is not None else None,
                    handler.name,
                    self._branch(handler.body),
                    handler.lineno,
                )
                for handler in node.handlers
            ),
            self._branch(node.orelse),
            self._branch(node.finalbody),
            node.lineno,
        )
        # A handler unbinds its name.
        self._sure -= {handler.name for handler in node.handlers if handler.name}

    def _with(self, node: ast.With | ast.AsyncWith) -> Iterator[Stmt]:
        names = tuple(
            name
            for item in node.items
            if item.optional_vars is not None
            for name in _target_names(item.optional_vars)
        )
        items = tuple(self.expr(item.context_expr) for item in node.items)
        yield With(items, names, self._branch(node.body), node.lineno)

    def _for(self, node: ast.For | ast.AsyncFor) -> Iterator[Stmt]:
        text = f"for {self._text(node.target)} in {self._text(node.iter)}"
        yield Loop(
            self.expr(node.target),
            self.expr(node.iter),
            text,
            self._branch(node.body),
            self._branch(node.orelse),
            node.lineno,
        )
        self._sure -= set(_target_names(node.target))

    def _while(self, node: ast.While) -> Iterator[Stmt]:
        text = f"while {self._text(node.test)}"
        body, orelse = self._branch(node.body), self._branch(node.orelse)
        yield Loop(None, self.expr(node.test), text, body, orelse, node.lineno)

    def _match(self, node: ast.Match) -> Iterator[Stmt]:
        subject = self.expr(node.subject)
        text = f"match {self._text(node.subject)}"
        cases = tuple(self._case(case) for case in node.cases)
        bodies = tuple(self._branch(case.body) for case in node.cases)
        yield Switch(subject, text, cases, bodies, node.lineno)

    def _case(self, case: ast.match_case) -> Case:
        names = tuple(
            name
            for part in ast.walk(case.pattern)
            if (name := getattr(part, "name", None) or getattr(part, "rest", None)) is not None
        )
        self._sure -= set(names)
        always = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
        guard = self.expr(case.guard) if case.guard is not None else None
        return Case(self._pattern_values(case.pattern), always, names, guard)

    def _pattern_values(self, pattern: ast.pattern) -> tuple[Expr, ...] | None:
        match pattern:
            case ast.MatchValue(value=value):
                return (self.expr(value),)
            case ast.MatchSingleton(value=value):
                return (Const(value),)
            case ast.MatchOr(patterns=patterns):
                parts = [self._pattern_values(one) for one in patterns]
                known = [part for part in parts if part is not None]
                return (
                    tuple(v for part in known for v in part) if len(known) == len(parts) else None
                )
            case _:
                return None

    def _raise(self, node: ast.Raise) -> Iterator[Stmt]:
        yield Raise(self.expr(node.exc) if node.exc is not None else None, node.lineno)

    def _assert(self, node: ast.Assert) -> Iterator[Stmt]:
        message = self.expr(node.msg) if node.msg is not None else None
        yield Assert(self.expr(node.test), self._text(node.test), node.lineno, message)

    def _return(self, node: ast.Return) -> Iterator[Stmt]:
        yield Return(self.expr(node.value) if node.value is not None else None, node.lineno)

    def _pass(self, node: ast.Pass) -> Iterable[Stmt]:
        return ()

    def _break(self, node: ast.Break) -> Iterator[Stmt]:
        yield Jump("break", node.lineno)

    def _continue(self, node: ast.Continue) -> Iterator[Stmt]:
        yield Jump("continue", node.lineno)

    def _global(self, node: ast.Global) -> Iterator[Stmt]:
        yield Global(tuple(node.names), node.lineno)

    def _nonlocal(self, node: ast.Nonlocal) -> Iterator[Stmt]:
        yield Global(tuple(node.names), node.lineno, nonlocal_=True)

    def _typealias(self, node: ast.stmt) -> Iterator[Stmt]:
        # ``type X = …`` (PEP 695) evaluates its value lazily: it only binds.
        name = getattr(node, "name", None)
        if isinstance(name, ast.Name):
            yield Bind((name.id,), node.lineno)
            self._bind([name.id])

    # --- expressions

    def expr(self, node: ast.expr) -> Expr:
        """The facts of an expression; what has none of its own is unknown."""
        method = _EXPRESSIONS.get(type(node))
        return method(self, node) if method is not None else self._unknown(node)

    def _exprs(self, nodes: Iterable[ast.expr]) -> tuple[Expr, ...]:
        return tuple([self.expr(node) for node in nodes])

    def _expr_or_none(self, node: ast.expr | None) -> Expr | None:
        return self.expr(node) if node is not None else None

    def _constant(self, node: ast.Constant) -> Expr:
        value = node.value
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            return self._unknown(node)
        if value is None or isinstance(value, str | bool | int | float):
            return Const(value)
        return self._unknown(node)

    def _name(self, node: ast.Name) -> Expr:
        return Name(node.id)

    def _attribute(self, node: ast.Attribute) -> Expr:
        return Attr(self.expr(node.value), node.attr)

    def _bool_op(self, node: ast.BoolOp) -> Expr:
        return BoolOp("and" if isinstance(node.op, ast.And) else "or", self._exprs(node.values))

    def _unary_op(self, node: ast.UnaryOp) -> Expr:
        op, operand = node.op, node.operand
        if isinstance(op, ast.Not):
            return Not(self.expr(operand))
        if isinstance(op, ast.USub) and isinstance(operand, ast.Constant):
            number = operand.value
            if isinstance(number, int | float):
                return Const(-number)
        return Unary(_UNARY[type(op)], self.expr(operand))

    def _comparison(self, node: ast.Compare) -> Expr:
        spelled = tuple(_COMPARE[type(op)] for op in node.ops)
        return Compare(self.expr(node.left), spelled, self._exprs(node.comparators))

    def _bin_op(self, node: ast.BinOp) -> Expr:
        if type(node.op) not in _BINARY:
            return self._unknown(node)
        return BinOp(_BINARY[type(node.op)], self.expr(node.left), self.expr(node.right))

    def _display(self, node: ast.Tuple | ast.List | ast.Set) -> Expr:
        starred = any(isinstance(item, ast.Starred) for item in node.elts)
        if starred and not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return self._unknown(node)
        return Sequence(_DISPLAYS[type(node)], self._exprs(node.elts))

    def _dict(self, node: ast.Dict) -> Expr:
        return Mapping(tuple(map(self._expr_or_none, node.keys)), self._exprs(node.values))

    def _starred(self, node: ast.Starred) -> Expr:
        return Unary("*", self.expr(node.value))

    def _subscript(self, node: ast.Subscript) -> Expr:
        return Subscript(self.expr(node.value), self.expr(node.slice))

    def _slice(self, node: ast.Slice) -> Expr:
        return Slice(*map(self._expr_or_none, (node.lower, node.upper, node.step)))

    def _collected(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Expr:
        return self._comprehension(node, _COMPREHENSIONS[type(node)], node.elt, None)

    def _dict_comp(self, node: ast.DictComp) -> Expr:
        return self._comprehension(node, "dict", node.key, node.value)

    def _if_exp(self, node: ast.IfExp) -> Expr:
        return IfExp(self.expr(node.test), self.expr(node.body), self.expr(node.orelse))

    def _lambda(self, node: ast.Lambda) -> Expr:
        if not _is_simple(node.args):
            return self._unknown(node)
        return Lambda(tuple(argument.arg for argument in node.args.args), self.expr(node.body))

    def _named_expr(self, node: ast.NamedExpr) -> Expr:
        return Walrus(node.target.id, self.expr(node.value))

    def _comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        kind: str,
        element: ast.expr,
        value: ast.expr | None,
    ) -> Expr:
        if any(one.is_async for one in node.generators):
            return self._unknown(node)
        generators = tuple(
            Generator(self.expr(one.target), self.expr(one.iter), tuple(map(self.expr, one.ifs)))
            for one in node.generators
        )
        made = self.expr(value) if value is not None else None
        return Comprehension(kind, self.expr(element), made, generators, self._text(node))

    def _call(self, node: ast.Call) -> Expr:
        return Call(
            self.expr(node.func),
            tuple(
                self.expr(argument.value if isinstance(argument, ast.Starred) else argument)
                for argument in node.args
            ),
            tuple((k.arg or "**", self.expr(k.value)) for k in node.keywords),
            self._text(node),
            tuple(i for i, argument in enumerate(node.args) if isinstance(argument, ast.Starred)),
        )

    def _fstring(self, node: ast.JoinedStr) -> Expr:
        parts: list[Expr] = []
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                if value.format_spec is not None or value.conversion not in (-1, 114):
                    return self._unknown(node)
                inner = self.expr(value.value)
                if value.conversion == 114:
                    inner = Call(Name("repr"), (inner,), (), "repr(…)")
                parts.append(inner)
            else:
                parts.append(self.expr(value))
        return FString(tuple(parts))

    def _unknown(self, node: ast.AST) -> Unknown:
        return Unknown(self._text(node), self._uses([node]))

    # --- names read

    def _uses(self, nodes: Iterable[ast.AST]) -> tuple[str, ...]:
        """Dotted names read when ``nodes`` are evaluated, less those that surely exist."""
        found: dict[str, None] = {}
        for node in nodes:
            if type(node) is ast.Name and self._prune and self._surely_exists(node.id, ""):
                continue  # most annotations are one name
            for dotted in _reads(node, []):
                head, _, rest = dotted.partition(".")
                if not (self._prune and self._surely_exists(head, rest)):
                    found[dotted] = None
        return tuple(found)

    def _surely_exists(self, head: str, rest: str) -> bool:
        if head in self._sure:
            return not rest or head in self._foreign
        return not rest and head in _BUILTINS

    # --- source text

    def _text(self, node: ast.AST) -> str:
        """The source of ``node`` on one line, without comments on the way."""
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if first and first == last:
            start, stop = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
            return self._source.line(first)[start:stop].decode("utf-8", "replace")
        return " ".join(ast.unparse(node).split())


_STATEMENTS: dict[type[ast.stmt], Callable[..., Iterable[Stmt]]] = {
    ast.Import: _Builder._import, ast.ImportFrom: _Builder._importfrom,
    ast.FunctionDef: _Builder._functiondef, ast.AsyncFunctionDef: _Builder._functiondef,
    ast.ClassDef: _Builder._classdef, ast.Assign: _Builder._assign,
    ast.AnnAssign: _Builder._annassign, ast.AugAssign: _Builder._augassign,
    ast.Delete: _Builder._delete, ast.Expr: _Builder._expr, ast.If: _Builder._if,
    ast.Try: _Builder._try, ast.TryStar: _Builder._try, ast.With: _Builder._with,
    ast.AsyncWith: _Builder._with, ast.For: _Builder._for, ast.AsyncFor: _Builder._for,
    ast.While: _Builder._while, ast.Match: _Builder._match, ast.Raise: _Builder._raise,
    ast.Assert: _Builder._assert, ast.Return: _Builder._return, ast.Pass: _Builder._pass,
    ast.Break: _Builder._break, ast.Continue: _Builder._continue, ast.Global: _Builder._global,
    ast.Nonlocal: _Builder._nonlocal,
}  # fmt: skip
if sys.version_info >= (3, 12):
    _STATEMENTS[ast.TypeAlias] = _Builder._typealias
_EXPRESSIONS: dict[type[ast.expr], Callable[..., Expr]] = {
    ast.Constant: _Builder._constant, ast.Name: _Builder._name,
    ast.Attribute: _Builder._attribute, ast.Call: _Builder._call, ast.BoolOp: _Builder._bool_op,
    ast.UnaryOp: _Builder._unary_op, ast.Compare: _Builder._comparison,
    ast.BinOp: _Builder._bin_op, ast.Tuple: _Builder._display, ast.List: _Builder._display,
    ast.Set: _Builder._display, ast.Dict: _Builder._dict, ast.Starred: _Builder._starred,
    ast.Subscript: _Builder._subscript, ast.Slice: _Builder._slice,
    ast.ListComp: _Builder._collected, ast.SetComp: _Builder._collected,
    ast.GeneratorExp: _Builder._collected, ast.DictComp: _Builder._dict_comp,
    ast.IfExp: _Builder._if_exp, ast.JoinedStr: _Builder._fstring, ast.Lambda: _Builder._lambda,
    ast.NamedExpr: _Builder._named_expr,
}  # fmt: skip


def _annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    """The annotations of a function, in the order in which ``def`` evaluates them."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg]
    every += [*arguments.kwonlyargs, arguments.kwarg]
    found = [one.annotation for one in every if one is not None and one.annotation is not None]
    return found if node.returns is None else [*found, node.returns]


def _makes_calls(node: ast.expr) -> bool:
    """Whether evaluating an annotation calls something; most are a name or a few."""
    match node:
        case ast.Name() | ast.Constant():
            return False
        case ast.Attribute(value=inner):
            return _makes_calls(inner)
        case ast.Subscript(value=one, slice=other) | ast.BinOp(left=one, right=other):
            return _makes_calls(one) or _makes_calls(other)
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return any(map(_makes_calls, elts))
        case _:
            return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _is_simple(arguments: ast.arguments) -> bool:
    return not (
        arguments.vararg
        or arguments.kwarg
        or arguments.kwonlyargs
        or arguments.defaults
        or arguments.posonlyargs
    )


def _is_plain(fact: Func | Assign | Bind) -> bool:
    """Whether running ``fact`` in a class body can only bind names."""
    if isinstance(fact, Func):
        return not fact.uses and all(isinstance(node, Name) for _, node in fact.defaults)
    if isinstance(fact, Assign):
        return isinstance(fact.value, Const) and all(isinstance(t, Name) for t in fact.targets)
    return True


def _bound(facts: Iterable[Stmt]) -> set[str]:
    """Names that a block may bind or delete, at any depth."""
    names: set[str] = set()
    for fact in facts:
        match fact:
            case Import(module=module, asname=asname):
                names.add(asname or module.partition(".")[0])
            case ImportFrom(names=pairs):
                names.update(bound for _, bound in pairs)
            case Func(name=name) | Class(name=name):
                names.add(name)
            case Bind(names=bound):
                names.update(bound)
            case Assign(targets=targets) | Delete(targets=targets):
                names.update(t.id for t in targets if isinstance(t, Name))
            case If(body=body, orelse=orelse) | Loop(body=body, orelse=orelse):
                names |= _bound(body) | _bound(orelse)
            case Try(body=body, handlers=handlers, orelse=orelse, final=final):
                names |= _bound(body) | _bound(orelse) | _bound(final)
                for handler in handlers:
                    names |= _bound(handler.body) | ({handler.name} if handler.name else set())
            case With(body=body, names=bound):
                names |= _bound(body) | set(bound)
            case Switch(cases=cases, bodies=bodies):
                for case in cases:
                    names |= set(case.binds)
                for inner in bodies:
                    names |= _bound(inner)
            case _:
                pass
    return names


def _target_names(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            for item in elts:
                yield from _target_names(item)
        case ast.Starred(value=value):
            yield from _target_names(value)
        case _:
            return


def _reads(node: ast.AST, found: list[str]) -> list[str]:
    """Add to ``found`` the dotted names that evaluating ``node`` reads at once.

    Bodies of lambdas, and all but the first iterable of a comprehension, run later or in a
    scope of their own, and what they read is not listed.
    """
    kind = type(node)
    if kind is ast.Name:
        found.append(node.id)  # type: ignore[attr-defined]
    elif kind is ast.Attribute:
        parts: list[str] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            found.append(".".join([inner.id, *reversed(parts)]))
        else:
            _reads(inner, found)
    elif isinstance(node, ast.Subscript):
        _reads(node.value, found)
        _reads(node.slice, found)
    elif isinstance(node, ast.BinOp):
        _reads(node.left, found)
        _reads(node.right, found)
    elif isinstance(node, ast.Lambda):
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            _reads(default, found)
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        _reads(node.generators[0].iter, found)
    elif kind is not ast.Constant:
        for child in ast.iter_child_nodes(node):
            _reads(child, found)
    return found
