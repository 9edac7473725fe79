"""What one file says at its top level, free of any platform.

A :class:`ModuleFacts` is a small program: the statements of a module in order, reduced to what
an import run needs. It is computed once a file (:mod:`auditor.syntax`), is immutable, and
round-trips through MessagePack, so it can be cached by the content of the file.

Function bodies are left out: a :class:`Func` remembers its lines, and its body is read only
when something calls it while a module is loading (``__getattr__``, a predicate in an ``if``).
"""

from __future__ import annotations

import msgspec

Literal = None | bool | int | float | str


class Node(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of all facts; array-like, so that the cache stays small and decodes fast."""


# --- expressions -------------------------------------------------------------------------------


class Const(Node, tag="c", frozen=True):
    """A literal."""

    value: Literal


class Name(Node, tag="n", frozen=True):
    """A name that is read."""

    id: str


class Attr(Node, tag="a", frozen=True):
    """``value.attr``."""

    value: Expr
    attr: str


class Call(Node, tag="(", frozen=True):
    """A call. ``text`` is its source on one line, for ``--assume`` and for reports.

    ``starred`` are the indices of ``*args`` among the arguments; ``**kwargs`` is the keyword
    ``**``.
    """

    func: Expr
    args: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...]
    text: str
    starred: tuple[int, ...] = ()


class BoolOp(Node, tag="b", frozen=True):
    """``a and b …`` or ``a or b …`` (``op`` is the word)."""

    op: str
    values: tuple[Expr, ...]


class Not(Node, tag="!", frozen=True):
    """``not value``."""

    value: Expr


class Compare(Node, tag="<", frozen=True):
    """``left op right op …`` with Python's operator spellings."""

    left: Expr
    ops: tuple[str, ...]
    rights: tuple[Expr, ...]


class BinOp(Node, tag="+", frozen=True):
    """``left op right``."""

    op: str
    left: Expr
    right: Expr


class Sequence(Node, tag="[", frozen=True):
    """A tuple, list or set display (``kind``)."""

    kind: str
    items: tuple[Expr, ...]


class Mapping(Node, tag="{", frozen=True):
    """A dict display; a key of None stands for ``**value``."""

    keys: tuple[Expr | None, ...]
    values: tuple[Expr, ...]


class Subscript(Node, tag="s", frozen=True):
    """``value[index]``."""

    value: Expr
    index: Expr


class IfExp(Node, tag="?", frozen=True):
    """``body if test else orelse``."""

    test: Expr
    body: Expr
    orelse: Expr


class FString(Node, tag="f", frozen=True):
    """An f-string: constants and plainly formatted values."""

    parts: tuple[Expr, ...]


class Lambda(Node, tag="l", frozen=True):
    """``lambda params: body`` without defaults or stars."""

    params: tuple[str, ...]
    body: Expr


class Walrus(Node, tag=":", frozen=True):
    """``(name := value)``."""

    name: str
    value: Expr


class Generator(Node, tag="fo", frozen=True):
    """``for target in iter if …`` of a comprehension."""

    target: Expr
    iter: Expr
    ifs: tuple[Expr, ...]


class Comprehension(Node, tag="co", frozen=True):
    """A comprehension (``kind`` list, set, dict) or a generator expression (``generator``).

    ``element`` is the key where it is a dict, and ``value`` then the value.
    """

    kind: str
    element: Expr
    value: Expr | None
    generators: tuple[Generator, ...]
    text: str


class Slice(Node, tag="sl", frozen=True):
    """``lower:upper:step`` as an index."""

    lower: Expr | None
    upper: Expr | None
    step: Expr | None


class Unary(Node, tag="-", frozen=True):
    """``-value``, ``+value`` or ``~value``; ``*value`` among the items of a display, or bases."""

    op: str
    value: Expr


class Unknown(Node, tag="u", frozen=True):
    """An expression that is not followed. ``uses`` are the dotted names it reads at once."""

    text: str
    uses: tuple[str, ...] = ()


Expr = (
    Const | Name | Attr | Call | BoolOp | Not | Compare | BinOp | Sequence | Mapping | Subscript
    | IfExp | FString | Lambda | Walrus | Comprehension | Slice | Unary | Unknown
)  # fmt: skip


# --- statements --------------------------------------------------------------------------------


class Import(Node, tag="I", frozen=True):
    """``import a.b.c`` or ``import a.b.c as name``; one module each."""

    module: str
    asname: str | None
    line: int


class ImportFrom(Node, tag="F", frozen=True):
    """``from module import name as bound, …``; a star is the one name ``*``."""

    module: str
    level: int
    names: tuple[tuple[str, str], ...]
    line: int


class Func(Node, tag="D", frozen=True):
    """A function definition: what is evaluated when ``def`` runs, and where its body stands.

    ``uses`` are dotted names read by decorators, defaults and annotations that are not bound
    for certain at this point; ``end`` is the last line of the body. ``defaults`` are those
    default values that are more than constants and dotted names of other packages.
    """

    name: str
    line: int
    start: int
    end: int
    decorators: tuple[Expr, ...]
    uses: tuple[str, ...]
    defaults: tuple[tuple[str, Expr], ...] = ()


class Class(Node, tag="C", frozen=True):
    """A class definition.

    ``plain`` says that running the body can only bind names (no branch, import, loop, call of
    interest), so that it need not be run to know them.
    """

    name: str
    line: int
    start: int
    end: int
    bases: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...]
    decorators: tuple[Expr, ...]
    body: tuple[Stmt, ...]
    uses: tuple[str, ...]
    plain: bool


class Assign(Node, tag="=", frozen=True):
    """``targets = value``. A target is an expression; several mean ``a = b = value``."""

    targets: tuple[Expr, ...]
    value: Expr
    line: int


class AugAssign(Node, tag="A", frozen=True):
    """``target op= value``."""

    target: Expr
    op: str
    value: Expr
    line: int


class Bind(Node, tag="B", frozen=True):
    """Names bound to something that is not followed (a ``for`` target, a ``with … as``)."""

    names: tuple[str, ...]
    line: int


class Delete(Node, tag="X", frozen=True):
    """``del target, …``."""

    targets: tuple[Expr, ...]
    line: int


class Do(Node, tag="E", frozen=True):
    """An expression evaluated for its effect."""

    value: Expr
    line: int


class Uses(Node, tag="U", frozen=True):
    """Dotted names read at this point by something that is not followed otherwise."""

    names: tuple[str, ...]
    line: int


class If(Node, tag="?s", frozen=True):
    """``if``; an ``elif`` is an :class:`If` alone in ``orelse`` with ``is_elif`` set."""

    test: Expr
    text: str
    line: int
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]
    is_elif: bool = False


class Handler(Node, tag="h", frozen=True):
    """``except types as name:``; ``types`` None catches everything."""

    types: Expr | None
    name: str | None
    body: tuple[Stmt, ...]
    line: int


class Try(Node, tag="T", frozen=True):
    """``try``."""

    body: tuple[Stmt, ...]
    handlers: tuple[Handler, ...]
    orelse: tuple[Stmt, ...]
    final: tuple[Stmt, ...]
    line: int


class With(Node, tag="W", frozen=True):
    """``with``; ``names`` are what ``as`` binds."""

    items: tuple[Expr, ...]
    names: tuple[str, ...]
    body: tuple[Stmt, ...]
    line: int


class Loop(Node, tag="L", frozen=True):
    """``for target in iter`` (``target`` set) or ``while test`` (``target`` None)."""

    target: Expr | None
    iter: Expr
    text: str
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]
    line: int


class Case(Node, tag="ca", frozen=True):
    """What a ``case`` asks: to be one of these values; None where its pattern is not followed.

    ``always`` is ``case _`` or ``case name``.
    """

    values: tuple[Expr, ...] | None
    always: bool
    binds: tuple[str, ...]
    guard: Expr | None


class Switch(Node, tag="M", frozen=True):
    """``match``: the body of the first case that matches runs, or none."""

    subject: Expr
    text: str
    cases: tuple[Case, ...]
    bodies: tuple[tuple[Stmt, ...], ...]
    line: int


class Raise(Node, tag="R", frozen=True):
    """``raise``; ``exc`` None re-raises."""

    exc: Expr | None
    line: int


class Assert(Node, tag="Z", frozen=True):
    """``assert test, message``."""

    test: Expr
    text: str
    line: int
    message: Expr | None = None


class Return(Node, tag="r", frozen=True):
    """``return`` in a function body."""

    value: Expr | None
    line: int


class Jump(Node, tag="j", frozen=True):
    """``break`` or ``continue``."""

    kind: str
    line: int


class Global(Node, tag="g", frozen=True):
    """``global`` or ``nonlocal`` in a function body."""

    names: tuple[str, ...]
    line: int
    nonlocal_: bool = False


Stmt = (
    Import | ImportFrom | Func | Class | Assign | AugAssign | Bind | Delete | Do | Uses | If | Try
    | With | Loop | Switch | Raise | Assert | Return | Jump | Global
)  # fmt: skip


class ModuleFacts(Node, tag="m", frozen=True):
    """The statements of one module, in order."""

    body: tuple[Stmt, ...]


class FunctionFacts(Node, tag="fn", frozen=True):
    """A function's body and parameters, read when something calls it.

    Attributes:
        params: positional parameters, in order.
        defaults: default values, for the last ``len(defaults)`` of ``params`` and ``kwonly``.
        vararg, kwarg: the names of ``*args`` and ``**kwargs``, if any.
        generator: contains ``yield`` or is ``async``; calling it runs nothing.
        kwonly, posonly: how many of ``params``, the last or the first, are keyword-only and
            positional-only.
    """

    params: tuple[str, ...]
    defaults: tuple[tuple[str, Expr], ...]
    vararg: str | None
    kwarg: str | None
    generator: bool
    body: tuple[Stmt, ...]
    kwonly: int = 0
    posonly: int = 0

    @property
    def defaults_run(self) -> bool:
        """Whether evaluating a default can do more than read a name or a constant."""
        return any(not is_simple(default) for _, default in self.defaults)


class Unparsed(Node, tag="x", frozen=True):
    """A file that could not be read as Python: why, and at which line (0 when unknown)."""

    reason: str
    line: int


def is_simple(node: Expr) -> bool:
    """Whether an expression is a constant, a name or a dotted name."""
    while isinstance(node, Attr):
        node = node.value
    return isinstance(node, Const | Name)


def absolute_name(stmt: ImportFrom, package: str) -> str:
    """The module that a ``from`` import in ``package`` names (PEP 328); "" beyond the top."""
    if not stmt.level:
        return stmt.module
    parts = package.split(".") if package else []
    if stmt.level > len(parts):
        return ""
    base = ".".join(parts[: len(parts) - stmt.level + 1])
    return f"{base}.{stmt.module}" if stmt.module else base
