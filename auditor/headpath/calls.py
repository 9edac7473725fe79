"""Calls over terms: methods that are entered, the logits processor, norms, everything else."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from msgspec.structs import replace

from auditor.classes import Missing, Open, linearise, own_attribute
from auditor.headpath.arguments import bind, head_arguments, pairs
from auditor.headpath.attributes import dotted_name
from auditor.headpath.effects import changed_to, in_place
from auditor.headpath.expressions import own_name
from auditor.headpath.opaque import Opaque
from auditor.headpath.state import Check, Entered, Frame, State, Values
from auditor.headpath.stores import SETTERS
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
    show,
    walk,
)
from auditor.nodes import nodes_of
from auditor.values import ClassValue, Foreign, Place

_MAX_DEPTH = 12

#: More parts than this, and comparing terms costs more than an answer is worth.
_MAX_SIZE = 2000


class Calls(Opaque):
    """Runs calls over terms."""

    def call(self, node: ast.Call, state: State, frame: Frame) -> Values:
        """The terms that a call may stand for."""
        place = self._place(frame.owner, node)
        keywords = [keyword for keyword in node.keywords if keyword.arg is not None]
        if len(keywords) < len(node.keywords) or any(
            isinstance(argument, ast.Starred) for argument in node.args
        ):
            return self._unpacked(node, place, state, frame)
        results: Values = []
        nodes = [*node.args, *(keyword.value for keyword in keywords)]
        for terms, after in self._several(nodes, state, frame):
            given = terms[: len(node.args)]
            named = dict(zip((str(k.arg) for k in keywords), terms[len(node.args) :], strict=True))
            results.extend(self._call_of(node.func, given, named, place, after, frame))
        return results

    def _unpacked(self, node: ast.Call, place: Place, state: State, frame: Frame) -> Values:
        """A call with ``*`` or ``**``: which argument is which is not known."""
        why = self._unknown("unpacked arguments", node, frame)
        nodes = [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(node.func, ast.Attribute):
            nodes.append(node.func.value)
        results: Values = []
        for terms, after in self._several(nodes, state, frame):
            for one in terms:
                after = self.disturbed(one, why, after)
            results.append((why, after))
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
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")) as outer, attr=name):
                return self._super_call(outer, name, args, named, place, state, frame)
            case ast.Attribute(value=owner, attr=name):
                private = own_name(name, frame)
                return [
                    pair
                    for term, after in self.expr(owner, state, frame)
                    for pair in self._method_call(term, private, args, named, place, after, frame)
                ]
            case ast.Name(id=name) if name not in state.names:
                return self._free_call(name, args, named, place, state, frame)
            case _:
                return [
                    pair
                    for term, after in self.expr(func, state, frame)
                    for pair in self._apply(term, args, named, place, after, frame)
                ]

    def _super_call(
        self,
        outer: ast.Call,
        name: str,
        args: tuple[Term, ...],
        named: dict[str, Term],
        place: Place,
        state: State,
        frame: Frame,
    ) -> Values:
        """``super().name(…)``, or with a class of the order that it starts after."""
        after = frame.owner
        match outer.args:
            case []:
                pass
            case [ast.expr() as start, ast.Name(id="self")] if not outer.keywords:
                value = self._bodies.named(frame.scope, dotted_name(start))
                after = value if isinstance(value, ClassValue) else None
            case _:
                after = None
        cls = self.class_of(frame.self_term)
        if after is not None and isinstance(cls, ClassValue):
            found = self.method(cls, name, after)
            if found is not None:
                return self.enter(*found, frame.self_term, args, named, place, state, frame)
        base = f"{after.dotted}.super()" if after is not None else "super()"
        term = Apply(Global(f"{base}.{name}"), args, pairs(named), place=place)
        if self.is_pure_method(name, named) and name not in self._rule.conversions:
            return [(term, state)]
        touched = (frame.self_term, *args, *named.values())
        return [(term, self.after_call(name, touched, place, state))]

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
        touched = (owner, *args, *named.values())
        if name in SETTERS and (stored := _setter_arguments(args, named)) is not None:
            return self._set_attribute(owner, *stored, place, state)
        if isinstance(cls, ClassValue):
            if self.is_processor(cls):
                return self._of_processor(owner, name, args, named, place, state)
            if self.values_of(owner, name) or self.changed(owner, name) is not None:
                return [
                    pair
                    for term, after in self._part(owner, name, place, state, frame)
                    for pair in self._apply(term, args, named, place, after, frame)
                ]
            found = self.method(cls, name)
            if found is not None and not self.is_a(cls, self._rule.leaves):
                return self.enter(*found, owner, args, named, place, state, frame)
            if found is None and not isinstance(self.found(cls, name), Missing):
                reason = f"what {name} of {cls.dotted} is, is not known"
                return self._refused(reason, touched, place, state)
            # Of the model itself, a hook of the engine or of a plugin may set more than is read.
            # A processor that is not the known one is not proven to be anything.
            known = not isinstance(owner, Self) and not self.is_a(cls, self._rule.processors)
            if found is None and known and state.lost is None and not self.may_have(cls, name):
                return [(Constant(None, place=place), _without(cls, name, place, state))]
        function: Term = Part(owner, name, place=place)
        result = Apply(function, args, pairs(named), place=place)
        if isinstance(owner, Global):
            dotted = f"{owner.name}.{name}"
            return self._global_call(dotted, args, named, place, state, frame)
        if in_place(name):
            named_terms = (Operation(f"{key}=", (term,)) for key, term in named.items())
            changed = Changed(owner, name, (*args, *named_terms), place=place)
            changed_state = changed_to(state, owner, changed, place, self._rule)
            return self._by_chance(name, changed, args, place, changed_state)
        if isinstance(owner, Part | Item) and cls is None and not _is_data(owner):
            if self.is_pure_method(name, named):
                if self.converts(name, owner, cls):
                    state = self.after_call(name, (owner,), place, state)
                return [(result, state)]
            return self._apply(function, args, named, place, state, frame)
        if self.is_pure_method(name, named) and not self.converts(name, owner, cls):
            return self._by_chance(name, result, args, place, state)
        if self.is_a(cls, self._rule.leaves):
            touched = touched[1:]  # a layer computes, and stays what it is
        elif isinstance(cls, ClassValue) and not self.by_base(cls, name):
            touched = (function, *touched[1:])  # something that the object holds
        return self._by_chance(
            name, result, args, place, self.after_call(name, touched, place, state)
        )

    def _by_chance(
        self, name: str, result: Term, args: tuple[Term, ...], place: Place, state: State
    ) -> Values:
        """The result of a call; unknown where it need not be the same the next time."""
        if not self.is_chance(name):
            return [(result, state)]
        why = Unknown(f"{name}() may give another value each time", str(place), place=place)
        if isinstance(result, Changed):
            state = changed_to(state, result, why, place, self._rule)
        return [(why, state)]

    def _set_attribute(
        self, owner: Term, name: str, value: Term, place: Place, state: State
    ) -> Values:
        """``setattr(owner, "name", value)`` and what modules have for it."""
        return [(Constant(None, place=place), self.stored(owner, name, value, place, state))]

    def stored(self, owner: Term, name: str, value: Term, place: Place, state: State) -> State:
        """The state after ``owner.name = value``."""
        cls = self.class_of(owner)
        if isinstance(cls, ClassValue):
            by_class = self.found(cls, name)
            if self.is_hooked(cls) or not isinstance(by_class, Missing | Open):
                reason = f"what setting {name} of {cls.dotted} does is not followed"
                method = self.method(cls, name)
                if self.is_hooked(cls) or (method is not None and method[1].decorator_list):
                    return self.disturbed(owner, Unknown(reason, str(place), place=place), state)
        if isinstance(owner, Unknown):
            return replace(state, lost=state.lost or owner)
        match owner:
            case (
                Part(owner=instance, name="__class__")
                | Apply(function=Global(name="type"), arguments=(instance,))
            ):
                reason = f"{name} of the class of {show(instance)} was set"
                why = Unknown(reason, str(place), place=place)
                return self.disturbed(instance, why, state)
        if not is_model_part(owner):
            reason = f"{name} of it was set"
            why = Unknown(reason, str(place), place=place)
            return changed_to(state, owner, why, place, self._rule)
        return replace(state, stores={**state.stores, Part(owner, name, place=place): value})

    def _refused(self, reason: str, touched: Iterable[Term], place: Place, state: State) -> Values:
        """A call that cannot be followed: unknown, and so is what it was handed."""
        why = Unknown(reason, str(place), place=place)
        for one in touched:
            state = self.disturbed(one, why, state)
        return [(why, state)]

    def _of_processor(
        self,
        owner: Term,
        name: str,
        args: tuple[Term, ...],
        named: dict[str, Term],
        place: Place,
        state: State,
    ) -> Values:
        if name in self._rule.top_tokens_methods:
            head, hidden, bias = self._head_arguments(args, named, state)
            if head is not None and hidden is not None:
                processor = self.as_used(owner, state)
                return [(TopTokens(processor, head, hidden, bias, place=place), state)]
        if name in ("forward", "__call__"):
            return [(self._logits(owner, args, named, place, state), state)]
        term = Apply(Part(owner, name, place=place), args, pairs(named), place=place)
        return [(term, self.after_call(name, (*args, *named.values()), place, state))]

    def _head_arguments(
        self, args: tuple[Term, ...], named: dict[str, Term], state: State
    ) -> tuple[Term | None, Term | None, Term | None]:
        head, hidden, bias = head_arguments(args, named)
        head, bias = (None if one is None else self.as_used(one, state) for one in (head, bias))
        return head, hidden, bias

    def _logits(
        self,
        owner: Term,
        args: tuple[Term, ...],
        named: dict[str, Term],
        place: Place,
        state: State,
    ) -> Term:
        head, hidden, bias = self._head_arguments(args, named, state)
        if head is None or hidden is None:
            return Unknown(
                "a call of the logits processor in another form", str(place), place=place
            )
        return Logits(self.as_used(owner, state), head, hidden, bias, place=place)

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
            return [(self._logits(module, args, named, place, state), state)]
        is_engines = isinstance(module, Part) and self._attributes.outside(module.name) is not None
        if self.is_plainly(cls, self._rule.identities) and args and not is_engines:
            return [(args[0], state)]
        label = cls.dotted if isinstance(cls, ClassValue) else getattr(cls, "name", "")
        used = self.as_used(module, state)
        arguments = (*args, *named.values())
        count = len(arguments)
        if isinstance(cls, ClassValue) and not self.is_a(cls, self._rule.leaves):
            found = self._called(cls)
            if found is not None:
                return self.enter(*found, module, args, named, place, state, frame)
        if isinstance(module, Part | Item):
            kind = self._kind(module, cls)
            term = Module(used, kind, label, arguments, place=place)
            if self.is_pure_module(module, cls, count):
                return [(term, state)]
            touched = arguments if cls is not None else (module, *arguments)
            return [(term, self.after_call(show(module), touched, place, state))]
        if isinstance(module, Global):
            return self._global_call(module.name, args, named, place, state, frame)
        result = Apply(module, args, pairs(named), place=place)
        if isinstance(module, Unknown):
            for one in (module, *arguments):
                state = self.disturbed(one, module, state)
            return [(result, state)]
        return [(result, self.after_call(show(module), (module, *arguments), place, state))]

    def _kind(self, module: Part | Item, cls: ClassValue | Foreign | None) -> str:
        if self.is_plainly(cls, self._rule.norms):
            return "norm"
        values = self.values_of(module.owner, module.name) if isinstance(module, Part) else ()
        may_be = any(self.is_plainly(value.cls, self._rule.identities) for value in values)
        return "perhaps" if may_be else "other"

    def _called(self, cls: ClassValue) -> tuple[ClassValue, ast.FunctionDef] | None:
        """What calling an instance runs: ``__call__`` of its own, else ``forward``."""
        own = self.found(cls, "__call__")
        if isinstance(own, Missing) or self._is_compiled(cls):
            return self.method(cls, "forward")
        return self.method(cls, "__call__")

    def _is_compiled(self, cls: ClassValue) -> bool:
        """Whether a ``__call__`` is what a class decorator puts there to compile ``forward``."""
        for member in linearise(cls):
            if isinstance(member, ClassValue) and own_attribute(member, "__call__") is not None:
                _, where = member.extra.get("__call__", (None, None))
                return where is not None and where.path.startswith(self._rule.compilers)
        return False

    def _global_call(
        self,
        dotted: str,
        args: tuple[Term, ...],
        named: dict[str, Term],
        place: Place,
        state: State,
        frame: Frame,
    ) -> Values:
        """A function of a module: entered where it is handed the logits processor."""
        entered = self._enter_function(dotted, args, named, place, state, frame)
        if entered is not None:
            return entered
        used = tuple(self.as_used(one, state) for one in args)
        kept = {key: self.as_used(one, state) for key, one in named.items()}
        result = Apply(Global(dotted, place=place), used, pairs(kept), place=place)
        if not self.is_pure_function(dotted, named):
            touched = (*args, *named.values())
            state = self.after_call(dotted.rpartition(".")[2], touched, place, state)
        return self._by_chance(dotted, result, args, place, state)

    def _free_call(
        self,
        name: str,
        args: tuple[Term, ...],
        named: dict[str, Term],
        place: Place,
        state: State,
        frame: Frame,
    ) -> Values:
        dotted = self._dotted(name, frame)
        match dotted, args:
            case "getattr", (owner, Constant(value=str() as attr), default):
                return self._getattr(owner, attr, default, place, state, frame)
            case "getattr", (owner, Constant(value=str() as attr)):
                return self._part(owner, attr, place, state, frame)
            case "setattr", (owner, Constant(value=str() as attr), value):
                return self._set_attribute(owner, attr, value, place, state)
            case _:
                return self._global_call(dotted, args, named, place, state, frame)

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
        touched = (*([self_term] if self_term is not None else []), *args, *named.values())
        if frame.depth >= _MAX_DEPTH:
            return self._refused("calls nested too deeply", touched, place, state)
        if any(self._sizes.of(term) > _MAX_SIZE for term in (*args, *named.values())):
            return self._refused("an argument too large to write out", touched, place, state)
        if not self._is_transparent(function, owner):
            reason = f"{function.name}() has a decorator that is not known"
            return self._refused(reason, touched, place, state)
        if is_generator(function):
            return self._refused(f"{function.name}() is a generator", touched, place, state)
        has_self = self_term is not None and not _is_static(function)
        bound = bind(function, has_self, args, named, owner.module)
        if bound is None:
            reason = f"the arguments do not fit {function.name}()"
            return self._refused(reason, touched, place, state)
        inner = Frame(owner, owner, self_term or Self(), frame.depth + 1)
        passed = [t for t in bound.values() if isinstance(t, Part | Item) and is_model_part(t)]
        start = replace(
            state,
            names=bound,
            callers=(*state.callers, state.names),
            hops=(*state.hops, place),
            entered=(*state.entered, _entered(function, owner)),
            passed=(*state.passed, *passed),
        )
        results: Values = []
        for outcome in self.body(function, start, inner):
            *callers, mine = outcome.state.callers
            after = replace(outcome.state, names=mine, callers=tuple(callers))
            # Where it raises, the value is never used: the statement that calls ends there.
            value = Constant(None, place=place) if outcome.value is None else outcome.value
            results.append((value, after))
        return results


def _entered(function: ast.FunctionDef, owner: ClassValue) -> Entered:
    return Entered(function.name, Place(owner.module.path, function.lineno))


def _without(cls: ClassValue, name: str, place: Place, state: State) -> State:
    """The state after a method is called that instances of the class do not have."""
    return replace(state, raised=Check(f"raise AttributeError: {cls.dotted} has no {name}", place))


@lru_cache(maxsize=4096)
def is_generator(function: ast.FunctionDef) -> bool:
    """Whether calling a function runs nothing of its body yet."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes_of(function))


def _setter_arguments(args: tuple[Term, ...], named: dict[str, Term]) -> tuple[str, Term] | None:
    """Name and value of ``add_module("x", value)``, where the name is known."""
    given = dict(zip(("name", "value"), args, strict=False))
    given |= {("name" if key == "name" else "value"): v for key, v in named.items()
              if key not in ("persistent",)}  # fmt: skip
    match given.get("name"), given.get("value"):
        case Constant(value=str() as name), value if value is not None:
            return name, value
        case _:
            return None


def _is_static(function: ast.FunctionDef) -> bool:
    return any(dotted_name(node) == "staticmethod" for node in function.decorator_list)


def _is_data(term: Term) -> bool:
    """Whether an attribute is data of something, not a submodule of the model."""
    names = {part.name for part in walk(term) if isinstance(part, Part)}
    return bool(names & {"weight", "data", "config"})
