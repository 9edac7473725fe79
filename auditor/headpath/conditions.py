"""What the equality of the methods for logits and for tokens rests on beside the two terms.

Both go through the logits processor, but the one keeps the columns that the processor was told of,
and the other those of the head: sizes must agree. A factor must be positive, a remap must have an
entry for each row of the head. Each such condition is read off the constructors and stated as
proven, violated, or assumed where the source does not settle it.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from auditor.headpath.bodies import Bodies
from auditor.headpath.construction import Built, Construction
from auditor.headpath.path import HeadPath
from auditor.headpath.terms import Logits, Part, Term, show
from auditor.headpath.things import Things
from auditor.nodes import nodes_of
from auditor.ruleset.heads import HeadRule
from auditor.values import ClassValue, Place

State = Literal["proven", "violated", "assumed"]


_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class Premise(msgspec.Struct, frozen=True):
    """One condition, whether it holds, and where that is read.

    ``open`` where the source does not say at all how the part is built: the equality then rests on
    a condition that nothing supports.
    """

    name: str
    state: State
    text: str
    where: Place | None
    open: bool = False


class Premises:
    """Finds what the equality rests on for one draft class."""

    def __init__(self, things: Things, bodies: Bodies, root: ClassValue, rule: HeadRule) -> None:
        self._things = things
        self._bodies = bodies
        self._rule = rule
        self._construction = Construction(things, bodies, root)

    def of(self, logits: HeadPath) -> tuple[Premise, ...]:
        """The conditions for every way through the method for logits, each once."""
        found: dict[Premise, None] = {}
        for branch in logits.branches:
            term = branch.head_term
            if isinstance(term, Logits):
                tables = [post.by for post in branch.post if post.kind == "remap"]
                found.update(dict.fromkeys(self._of_head(term)))
                for table in tables:
                    found.update(dict.fromkeys(self._of_table(table, term.head)))
        return tuple(found)

    def _of_head(self, term: Logits) -> Iterator[Premise]:
        processors = self._construction.built(term.processor)
        heads = self._construction.built(term.head)
        yield self._vocabulary(term, processors, heads)
        for built in processors:
            yield from self._factor(built)
            yield from self._cap(term.processor, built)
            yield from self._whole(built)
        yield from self._set_later(term.processor)
        yield from self._replaced(term.head)
        if term.bias is not None:
            yield Premise("bias", "proven", f"both add {show(term.bias)}", term.place)

    def _vocabulary(
        self, term: Logits, processors: tuple[Built, ...], heads: tuple[Built, ...]
    ) -> Premise:
        """The columns that the method for logits keeps are those that the head has."""
        kept = _sizes(processors, self._rule.processor_sizes)
        rows = _sizes(heads, self._rule.head_sizes)
        where = heads[0].where if heads else term.place
        if kept == rows and len(kept) == 1:
            text = f"the logits processor and the head are built with {kept[0]}"
            return Premise("vocabulary", "proven", text, where)
        left, right = (" or ".join(sizes) or "a size that is not read" for sizes in (kept, rows))
        text = f"the logits processor is built with {left}, the head with {right}"
        literal = len(kept) == len(rows) == 1 and _is_number(left) and _is_number(right)
        state: State = "violated" if literal else "assumed"
        return Premise("vocabulary", state, f"{text}: the same number", where)

    def _factor(self, built: Built) -> Iterator[Premise]:
        """A factor that is not positive turns the order of the logits around."""
        for name in self._rule.processor_factors:
            text = built.arguments.get(name)
            if text is None:
                continue
            number = _number(text)
            state: State = (
                "assumed" if number is None else "proven" if 0 < number < math.inf else "violated"
            )
            yield Premise(name, state, f"the factor {text} is positive", built.where)

    def _whole(self, built: Built) -> Iterator[Premise]:
        """Whether all that the processor is built with is read, and it takes hidden states."""
        if built.unread:
            text = f"{built.text} is given no factor that is not positive"
            yield Premise("scale", "assumed", text, built.where, open=True)
        for name in self._rule.processor_inputs:
            given = built.arguments.get(name, "False")
            if given not in ("False", "None", "0"):
                state: State = "violated" if given in ("True", "1") else "assumed"
                text = f"the logits processor applies the head ({name} is {given})"
                yield Premise("head", state, text, built.where, open=state == "assumed")

    def _set_later(self, processor: Term) -> Iterator[Premise]:
        """What else may set the factor, the sizes or the cap after the processor is built."""
        cls = self._things.class_of(processor)
        if not isinstance(cls, ClassValue):
            return
        for name in (
            *self._rule.processor_factors,
            *self._rule.processor_sizes,
            *self._rule.processor_inputs,
        ):
            where = self._things.changed_by_others(processor, name)
            if where is not None:
                text = f"what sets {name} of {show(processor)} leaves the argmax as it is"
                yield Premise(name, "assumed", text, where, open=True)

    def _cap(self, processor: Term, built: Built) -> Iterator[Premise]:
        """A soft cap keeps the order; both methods must apply it for ties to be the same."""
        for name in self._rule.processor_caps:
            text = built.arguments.get(name)
            if text is None or text == "None":
                continue
            methods = ("forward", *self._rule.top_tokens_methods)
            both = all(self._reads(processor, method, name) for method in methods)
            what = f"the cap {text} is applied by both methods before the argmax"
            yield Premise("soft cap", "proven" if both else "assumed", what, built.where)

    def _reads(self, processor: Term, method: str, name: str) -> bool:
        cls = self._things.class_of(processor)
        found = self._things.method(cls, method) if isinstance(cls, ClassValue) else None
        return found is not None and any(
            isinstance(node, ast.Attribute) and node.attr == name for node in nodes_of(found[1])
        )

    def _replaced(self, head: Term) -> Iterator[Premise]:
        """The engine may put the target's head in its place: then that one's vocabulary counts."""
        if not isinstance(head, Part):
            return
        by_engine = self._bodies.outside(head.name)
        by_model = self._things.changed(head.owner, head.name)
        for who, where in (("the engine", by_engine), ("the model", by_model)):
            if where is not None:
                text = (
                    f"a head that {who} puts in place of {head.name} has the vocabulary that the "
                    "logits processor was built with"
                )
                yield Premise("shared head", "assumed", text, where)

    def _of_table(self, table: Term | None, head: Term) -> Iterator[Premise]:
        """A remap needs an entry for each row of the head, and another target for each."""
        if table is None:
            return
        tables = self._construction.built(table)
        sizes = {_table_size(built.text) for built in tables if built.text != "None"}
        rows = set(_sizes(self._construction.built(head), self._rule.head_sizes))
        where = tables[0].where if tables else table.place
        same = len(sizes) == 1 and sizes == rows
        text = f"{show(table)} has an entry for each row of {show(head)}"
        if same:
            text = f"{text}: both are built with {next(iter(rows))}"
        yield Premise("remap", "proven" if same else "assumed", text, where)
        text = f"{show(table)} sends no two draft ids to one target id"
        yield Premise("remap", "assumed", text, where)


def _sizes(calls: tuple[Built, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """The sizes that calls are given; those without one build what stands in for a head."""
    sizes = (_size(built, names) for built in calls)
    return tuple(dict.fromkeys(size for size in sizes if size is not None))


def _size(built: Built, names: tuple[str, ...]) -> str | None:
    """The first of several arguments that is given and not None: a size by its text."""
    for name in names:
        text = built.arguments.get(name)
        if text is not None and text != "None":
            return text
    return None


def _table_size(text: str) -> str | None:
    """The length of ``Parameter(torch.zeros(n, …))``: the first argument of the innermost call."""
    node: ast.expr = ast.parse(text, mode="eval").body
    while isinstance(node, ast.Call) and node.args:
        if not isinstance(node.args[0], ast.Call):
            return ast.unparse(node.args[0])
        node = node.args[0]
    return None


def _is_number(text: str) -> bool:
    return _number(text) is not None


def _number(text: str) -> float | None:
    """The number that a text is, arithmetic over literals included; None for anything else."""
    try:
        return _value(ast.parse(text, mode="eval").body)
    except (SyntaxError, OverflowError, ZeroDivisionError):
        return None


def _value(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
            inner = _value(operand)
            return None if inner is None else -inner if isinstance(op, ast.USub) else inner
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            one, other = _value(left), _value(right)
            return None if one is None or other is None else _ARITHMETIC[type(op)](one, other)
        case _:
            return None
