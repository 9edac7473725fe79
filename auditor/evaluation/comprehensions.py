"""Comprehensions and generator expressions over what is known.

A generator expression is evaluated where it stands, and as far as its consumer goes: ``any``,
``all`` and ``next`` stop early, everything else takes all.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor import facts as f
from auditor.evaluation.binding import Binding
from auditor.evaluation.frame import Frame, is_own, is_unordered
from auditor.evaluation.touches import nodes_of
from auditor.evaluation.truth import ITERATING
from auditor.values import Iterated, Opaque, Undecided, Value

_MAX_ITEMS = 4096

_ITERABLE = (list, tuple, dict, set, frozenset, str, range)


class _OpenError(Exception):
    """Which items there are is not known."""

    def __init__(self, value: Opaque) -> None:
        super().__init__()
        self.value = value


class Comprehensions(Binding):
    """Evaluates comprehensions."""

    def comprehension(self, node: f.Comprehension, frame: Frame, line: int) -> Value:
        """The list, set or dict; what a generator expression gives."""
        outer, self.readings.unordered = self.readings.unordered, False
        try:
            items = list(self.produced(node, frame, line))
        except _OpenError as open_:
            return self._left_open(open_, node, frame, line)
        finally:
            unordered, self.readings.unordered = (
                self.readings.unordered and node.kind != "set",
                outer,
            )
        if node.kind == "generator":
            like = (None for _ in ())
            return Iterated(items, self.steps, like, unordered=unordered and len(items) > 1)
        if unordered and len(items) > 1:
            return Opaque("the order of a set", frame.place(line), node.text)
        if node.kind == "dict":
            made: dict[Value, Value] = {}
            for key, value in items:
                if not self.hashed(key, frame, line):
                    return Opaque("a dict with unknown keys", frame.place(line), node.text)
                self._python(made.__setitem__, key, value, frame, line)
            return self.new(made)
        if node.kind == "set":
            if not all(self.hashed(item, frame, line) for item in items):
                return Opaque("a set of values not known", frame.place(line), node.text)
            return self.new(self._python(lambda v, _: set(v), items, None, frame, line))
        return self.new(items)

    @staticmethod
    def _left_open(open_: _OpenError, node: f.Comprehension, frame: Frame, line: int) -> Value:
        """The value of a comprehension over what is not known; any ``:=`` in it may have run."""
        if ":=" in node.text:
            names = frame.names if frame.outer is None else frame.outer
            for inner in nodes_of((node,)):
                if isinstance(inner, f.Walrus):
                    names[inner.name] = Opaque("bound in a comprehension", frame.place(line))
        return open_.value

    def produced(self, node: f.Comprehension, frame: Frame, line: int) -> Iterator[Value]:
        """The items one by one; for a dict, pairs of key and value.

        Raises:
            _OpenError: it is not known which come next.
        """
        scope: dict[str, Value] = {}
        inner = Frame(
            frame.module, scope, (scope, *frame.enclosing), frame.guards, frame.doubts,
            trying=frame.trying, probing=frame.probing, is_call=frame.is_call,
            depth=frame.depth, prefix=frame.prefix, unusual=frame.unusual, shared=frame.shared,
            outer=frame.names if frame.outer is None else frame.outer,
        )  # fmt: skip
        first = self.evaluate(node.generators[0].iter, frame, line)
        yield from self._rounds_of(node, 0, first, inner, line)

    def _rounds_of(
        self, node: f.Comprehension, depth: int, over: Value, frame: Frame, line: int
    ) -> Iterator[Value]:
        generator = node.generators[depth]
        self.readings.unordered = self.readings.unordered or is_unordered(over)
        over = self.listed(over, frame)
        if not isinstance(over, _ITERABLE) or len(over) > _MAX_ITEMS:
            self.iterates(over, frame, line)
            self.refuse(iter, over, ITERATING, frame, line)
            raise _OpenError(
                Opaque("not evaluated", frame.place(line), node.text, own=is_own(over))
            )
        for item in list(over):
            self.steps += 1
            self.store(frame, generator.target, item, f.Bind((), line), line)
            if not self._passes(node, generator, frame, line):
                continue
            if depth + 1 < len(node.generators):
                deeper = self.evaluate(node.generators[depth + 1].iter, frame, line)
                yield from self._rounds_of(node, depth + 1, deeper, frame, line)
            elif node.value is not None:
                key = self.force(self.evaluate(node.element, frame, line), frame)
                yield key, self.evaluate(node.value, frame, line)
            else:
                yield self.evaluate(node.element, frame, line)

    def _passes(
        self, node: f.Comprehension, generator: f.Generator, frame: Frame, line: int
    ) -> bool:
        for test in generator.ifs:
            truth = self.truth(self.evaluate(test, frame, line), frame)
            if isinstance(truth, Undecided):
                where = truth.where or frame.place(line)
                raise _OpenError(Opaque(truth.reason, where, node.text, own=truth.own))
            if not truth:
                return False
        return True

    def some_of(self, node: f.Comprehension, frame: Frame, line: int, name: str) -> Value:
        """``any`` or ``all`` of a generator expression, which stops at the first that settles."""
        settles = name == "any"
        unsettled: Undecided | None = None
        try:
            for item in self.produced(node, frame, line):
                truth = self.truth(item, frame)
                if isinstance(truth, Undecided):
                    unsettled = truth if unsettled is None else unsettled
                elif truth is settles and unsettled is None:
                    return settles
        except _OpenError as open_:
            return self._left_open(open_, node, frame, line)
        if unsettled is None:
            return not settles
        where = unsettled.where or frame.place(line)
        return Opaque(unsettled.reason, where, unsettled.text, own=unsettled.own)
