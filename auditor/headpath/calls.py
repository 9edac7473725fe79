"""Calls over terms: methods that are entered, the logits processor, norms, everything else."""

from __future__ import annotations

import ast
from dataclasses import replace

from auditor.classes import Missing, lookup
from auditor.headpath.arguments import bind, head_arguments, pairs
from auditor.headpath.attributes import dotted_name
from auditor.headpath.effects import changed_to, in_place
from auditor.headpath.expressions import Expressions
from auditor.headpath.state import Frame, State, Values
from auditor.headpath.terms import (
    Apply,
    Changed,
    Constant,
    Global,
    Item,
    Logits,
    Module,
    Operation,
    Part,
    Self,
    Term,
    TopTokens,
    Unknown,
    is_model_part,
    walk,
)
from auditor.values import ClassValue, Place

_MAX_DEPTH = 12

#: More parts than this, and comparing terms costs more than an answer is worth.
_MAX_SIZE = 2000

#: Before the names of a caller, while a callee runs; no name of a program starts so.
_CALLER = " "


class Calls(Expressions):
    """Runs calls over terms."""

    def call(self, node: ast.Call, state: State, frame: Frame) -> Values:
        """The terms that a call may stand for."""
        place = self._place(frame.owner, node)
        results: Values = []
        keywords = [keyword for keyword in node.keywords if keyword.arg is not None]
        nodes = [*node.args, *(keyword.value for keyword in keywords)]
        for terms, after in self._several(nodes, state, frame):
            given = terms[: len(node.args)]
            named = dict(zip((str(k.arg) for k in keywords), terms[len(node.args) :], strict=True))
            if len(keywords) < len(node.keywords) or any(
                isinstance(a, ast.Starred) for a in node.args
            ):
                results.append((self._unknown("unpacked arguments", node, frame), after))
            else:
                results.extend(self._call_of(node.func, given, named, place, after, frame))
        return results

    def _call_of(
        self,
        func: ast.expr,
        args: tuple[Term, ...],
        named: dict[str, Term],
        place: Place,
        state: State,
        frame: Frame,
    ) -> Values:
        match func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[]), attr=name) if (
                frame.owner is not None
            ):
                cls = self.class_of(frame.self_term)
                found = self.method(cls, name, frame.owner) if isinstance(cls, ClassValue) else None
                if found is not None:
                    return self.enter(*found, frame.self_term, args, named, place, state, frame)
                return [(Apply(Global(f"super().{name}"), args, pairs(named), place=place), state)]
            case ast.Attribute(value=owner, attr=name):
                return [
                    pair
                    for term, after in self.expr(owner, state, frame)
                    for pair in self._method_call(term, name, args, named, place, after, frame)
                ]
            case ast.Name(id=name) if name not in state.names:
                return self._free_call(name, args, named, place, state, frame)
            case _:
                return [
                    pair
                    for term, after in self.expr(func, state, frame)
                    for pair in self._apply(term, args, named, place, after, frame)
                ]

    def _method_call(
        self,
        owner: Term,
        name: str,
        args: tuple[Term, ...],
        named: dict[str, Term],
        place: Place,
        state: State,
        frame: Frame,
    ) -> Values:
        """``owner.name(…)``: a method that is entered, a submodule that is applied, or a call."""
        cls = self.class_of(owner)
        if isinstance(cls, ClassValue):
            if self.is_processor(cls):
                return [(self._of_processor(owner, name, args, named, place), state)]
            if self.values_of(owner, name):
                return [
                    pair
                    for term, after in self._part(owner, name, place, state, frame)
                    for pair in self._apply(term, args, named, place, after, frame)
                ]
            found = self.method(cls, name)
            if found is not None and not self.is_a(cls, self._rule.leaves):
                return self.enter(*found, owner, args, named, place, state, frame)
            if found is None and not isinstance(lookup(cls, name), Missing):
                reason = f"what {name} of {cls.dotted} is, is not known"
                return [(Unknown(reason, str(place), place=place), state)]
        function: Term = Part(owner, name, place=place)
        if isinstance(owner, Global):
            dotted = f"{owner.name}.{name}"
            entered = self._enter_function(dotted, args, named, place, state, frame)
            if entered is not None:
                return entered
            function = Global(dotted, place=place)
        elif in_place(name):
            named_terms = (Operation(f"{key}=", (term,)) for key, term in named.items())
            changed = Changed(owner, name, (*args, *named_terms), place=place)
            return [(changed, changed_to(state, owner, changed, place, self._rule))]
        elif name in self._rule.views or name in self._rule.neutral_methods:
            return [(Apply(function, args, pairs(named), place=place), state)]
        elif isinstance(owner, Part | Item) and cls is None and not _is_data(owner):
            return self._apply(function, args, named, place, state, frame)
        return [(Apply(function, args, pairs(named), place=place), state)]

    def _of_processor(
        self, owner: Term, name: str, args: tuple[Term, ...], named: dict[str, Term], place: Place
    ) -> Term:
        if name in self._rule.top_tokens_methods:
            head, hidden, bias = head_arguments(args, named)
            if head is not None and hidden is not None:
                return TopTokens(owner, head, hidden, bias, place=place)
        if name in ("forward", "__call__"):
            return self._logits(owner, args, named, place)
        return Apply(Part(owner, name, place=place), args, pairs(named), place=place)

    def _logits(
        self, owner: Term, args: tuple[Term, ...], named: dict[str, Term], place: Place
    ) -> Term:
        head, hidden, bias = head_arguments(args, named)
        if head is None or hidden is None:
            return Unknown(
                "a call of the logits processor in another form", str(place), place=place
            )
        return Logits(owner, head, hidden, bias, place=place)

    def _apply(
        self,
        module: Term,
        args: tuple[Term, ...],
        named: dict[str, Term],
        place: Place,
        state: State,
        frame: Frame,
    ) -> Values:
        """An object called: the logits processor, a norm, an identity, a module to enter."""
        cls = self.class_of(module)
        if self.is_processor(cls):
            return [(self._logits(module, args, named, place), state)]
        if self.is_a(cls, self._rule.identities) and args:
            return [(args[0], state)]
        label = cls.dotted if isinstance(cls, ClassValue) else getattr(cls, "name", "")
        arguments = (*args, *named.values())
        if self.is_a(cls, self._rule.norms):
            return [(Module(module, "norm", label, arguments, place=place), state)]
        if isinstance(cls, ClassValue) and not self.is_a(cls, self._rule.leaves):
            found = self.method(cls, "forward")
            if found is not None:
                return self.enter(*found, module, args, named, place, state, frame)
        if isinstance(module, Part | Item):
            return [(Module(module, "other", label, arguments, place=place), state)]
        return [(Apply(module, args, pairs(named), place=place), state)]

    def _free_call(
        self,
        name: str,
        args: tuple[Term, ...],
        named: dict[str, Term],
        place: Place,
        state: State,
        frame: Frame,
    ) -> Values:
        match name, args:
            case "getattr", (owner, Constant(value=str() as attr), default):
                return self._getattr(owner, attr, default, place, state, frame)
            case "getattr", (owner, Constant(value=str() as attr)):
                return self._part(owner, attr, place, state, frame)
            case _:
                dotted = self._dotted(name, frame)
                entered = self._enter_function(dotted, args, named, place, state, frame)
                if entered is not None:
                    return entered
                function = Global(dotted, place=place)
                return [(Apply(function, args, pairs(named), place=place), state)]

    def _getattr(
        self, owner: Term, attr: str, default: Term, place: Place, state: State, frame: Frame
    ) -> Values:
        """``getattr(owner, "attr", default)``: the default only where nothing assigns it."""
        cls = self.class_of(owner)
        lacks = isinstance(cls, ClassValue) and not self.may_have(cls, attr)
        if lacks and Part(owner, attr) not in state.stores:
            return [(default, state)]
        return self._part(owner, attr, place, state, frame)

    def _enter_function(
        self,
        dotted: str,
        args: tuple[Term, ...],
        named: dict[str, Term],
        place: Place,
        state: State,
        frame: Frame,
    ) -> Values | None:
        """Enter a function of the tree that is handed the logits processor; None for another."""
        if not any(map(self.holds_processor, (*args, *named.values()))):
            return None
        found = self._bodies.function(frame.scope, dotted)
        if found is None:
            return None
        scope, function = found
        return self.enter(scope, function, None, args, named, place, state, frame)

    def enter(
        self,
        owner: ClassValue,
        function: ast.FunctionDef,
        self_term: Term | None,
        args: tuple[Term, ...],
        named: dict[str, Term],
        place: Place,
        state: State,
        frame: Frame,
    ) -> Values:
        """Run a method or function, and go on with each value that it returns."""
        if frame.depth >= _MAX_DEPTH:
            return [(Unknown("calls nested too deeply", str(place), place=place), state)]
        if any(self._sizes.of(term) > _MAX_SIZE for term in (*args, *named.values())):
            return [(Unknown("an argument too large to write out", str(place), place=place), state)]
        if not self._is_transparent(function, owner):
            reason = f"{function.name}() has a decorator that is not known"
            return [(Unknown(reason, str(place), place=place), state)]
        has_self = self_term is not None and not _is_static(function)
        bound = bind(function, has_self, args, named)
        if bound is None:
            reason = f"the arguments do not fit {function.name}()"
            return [(Unknown(reason, str(place), place=place), state)]
        inner = Frame(owner, owner, self_term or Self(), frame.depth + 1)
        # The caller's names go along, out of reach, so that what is changed in place is changed
        # for the caller as well.
        callers = {f"{_CALLER}{name}": term for name, term in state.names.items()}
        passed = [t for t in bound.values() if isinstance(t, Part | Item) and is_model_part(t)]
        start = replace(
            state,
            names={**callers, **bound},
            hops=(*state.hops, place),
            passed=(*state.passed, *passed),
        )
        results: Values = []
        for outcome in self.body(function, start, inner):
            names = outcome.state.names.items()
            mine = {name[1:]: term for name, term in names if name.startswith(_CALLER)}
            after = replace(outcome.state, names=mine)
            # Where it raises, the value is never used: the statement that calls ends there.
            value = Constant(None, place=place) if outcome.value is None else outcome.value
            results.append((value, after))
        return results


def _is_static(function: ast.FunctionDef) -> bool:
    return any(dotted_name(node) == "staticmethod" for node in function.decorator_list)


def _is_data(term: Term) -> bool:
    """Whether an attribute is data of something, not a submodule of the model."""
    names = {part.name for part in walk(term) if isinstance(part, Part)}
    return bool(names & {"weight", "data", "config"})
