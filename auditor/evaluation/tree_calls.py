"""Calls of functions and classes of the tree, with what they do to others.

A call that can raise, or change what others see, is run where it stands. One that cannot is run
when its value is asked for (:mod:`~auditor.evaluation.summaries`), and only as long as the names
that it reads still have their values. What cannot be followed loses what it could touch.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from auditor import facts as f
from auditor.classes import Found, body_namespace, linearise, lookup
from auditor.evaluation.contexts import returns
from auditor.evaluation.frame import (
    CONSTANT_TYPES,
    Frame,
    Returning,
    UnfollowedError,
    doubtful,
    join,
    opposite,
)
from auditor.evaluation.machine import MAX_OWN_FORKS, MAX_OWN_FORKS_ASKED
from auditor.evaluation.readings import Summary
from auditor.evaluation.signatures import bound_arguments
from auditor.evaluation.standins import is_undecorated, makes_itself, takes_nothing
from auditor.evaluation.summaries import TRANSPARENT, Summaries, bindings
from auditor.evaluation.touches import touches
from auditor.values import (
    UNBOUND,
    ClassValue,
    Closure,
    Context,
    Doubt,
    Error,
    Foreign,
    Function,
    Instance,
    ModuleValue,
    Opaque,
    Pending,
    Place,
    PythonError,
    Read,
    Trace,
    Undecided,
    Value,
    builtin_error,
)

_MAX_DEPTH = 12


#: How many statements the calls of one process may run; a release needs a tenth of it.
_MAX_STEPS = 2_000_000

_Keywords = tuple[tuple[str, Value], ...]


class TreeCalls(Summaries):
    """Runs functions of the tree."""

    #: How many calls are being run, each for the value of another.
    running: int = 0

    def tree_call(
        self, function: Function, args: tuple[Value, ...], keywords: _Keywords, frame: Frame,
        place: Place, text: str,
    ) -> Value:  # fmt: skip
        """The value of a call: run at once if it has effects, else when asked for."""
        if function.decorators and self._is_kept(function, args, keywords, frame, place):
            key = (id(function.facts), *map(id, function.bound), args, keywords)
            if key not in self.readings.kept or self.bare_environment:
                bare = structs.replace(function, decorators=())
                made = self.tree_call(bare, args, keywords, frame, place, text)
                if self.open_guards or self.bare_environment:
                    return made
                self.readings.kept[key] = (function, made)
            return self.readings.kept[key][1]
        if function.decorators and self._is_context_manager(function, frame):
            return Context(function, args, keywords)
        summary = self.summary(function)
        given = (*function.bound, *args)
        if summary.harmless and self._can_wait(function, summary, given, keywords):
            pending = Pending(function, args, keywords, place, text, self.steps, summary.reads)
            return self.result(pending, frame) if frame.trying else pending
        if frame.is_call and self._looks_into_unknown(function, given):
            self.lose_effects(function, given, place)
            return Opaque(f"{function.facts.name}() of something unknown", place, text, own=True)
        return self.force(self.invoke(function, args, keywords, frame, place, text), frame)

    def _is_kept(
        self, function: Function, args: tuple[Value, ...], keywords: _Keywords, frame: Frame,
        place: Place,
    ) -> bool:  # fmt: skip
        """Whether ``functools.cache`` runs a call for its first arguments alone.

        Raises:
            PythonError: ``TypeError``, where it has no hash of them.
        """
        node = function.decorators[0]
        node = node.func if isinstance(node, f.Call) else node
        last = node.attr if isinstance(node, f.Attr) else getattr(node, "id", "")
        if last not in ("cache", "lru_cache") or len(function.decorators) != 1:
            return False
        outer = Frame(function.module, {}, function.scopes, depth=frame.depth + 1)
        found = self.evaluate(node, outer, function.facts.start)
        if found not in (Foreign("functools.cache"), Foreign("functools.lru_cache")):
            return False
        given = (*args, *(value for _, value in keywords))
        for value in given:
            if type(value) in (list, dict, set):
                message = f"unhashable type: {type(value).__name__!r}"
                raise PythonError(builtin_error("TypeError", message, place))
        return all(type(value) in CONSTANT_TYPES for value in given)

    def _is_context_manager(self, function: Function, frame: Frame) -> bool:
        """Whether a function is a generator function under ``contextlib.contextmanager``."""
        node = function.decorators[0]
        if len(function.decorators) != 1 or not isinstance(node, f.Attr | f.Name):
            return False
        outer = Frame(function.module, {}, function.scopes, depth=frame.depth + 1)
        found = self.evaluate(node, outer, function.facts.start)
        return isinstance(found, Foreign) and found.name == "contextlib.contextmanager"

    def only_changes(self, decorator: Value) -> bool:
        """Whether a decorator surely does no more than change what it is given."""
        return (
            isinstance(decorator, Function)
            and self.summary(decorator).harmless
            and _gives_back(self.function_facts(decorator))
        )

    def make(
        self, cls: ClassValue, args: tuple[Value, ...], keywords: _Keywords, frame: Frame,
        place: Place, text: str,
    ) -> Value:  # fmt: skip
        """An instance of a class of the tree; its ``__init__`` runs if it has effects."""
        made = Instance(cls, place, args, keywords)
        if cls.metaclass is not None:
            self.special(cls, "__call__", args, frame, place.line, run=False)
        maker = self.maker(cls)
        summary = self.summary(maker) if maker is not None else None
        if maker is not None and summary is not None:
            given = (made, *args)
            runs = not summary.harmless or bool(summary.texts)
            if not runs and not self.fits(maker, given, keywords):
                runs = is_undecorated(cls) and makes_itself(cls)
            if runs:
                self.invoke(maker, given, keywords, frame, place, text)
        elif (args or keywords) and takes_nothing(cls):
            message = f"{cls.facts.name}() takes no arguments"
            raise PythonError(builtin_error("TypeError", message, place))
        return made

    def special(
        self, owner: Value, name: str, args: tuple[Value, ...], frame: Frame, line: int, *,
        run: bool = True,
    ) -> Value:  # fmt: skip
        """What a special method of the tree gives, or UNBOUND where there is none.

        Python looks for it in the class of an object, which is the metaclass of a class. Where it
        may not ``run``, nothing is known of what it gives and does.
        """
        cls = getattr(owner, "metaclass" if type(owner) is ClassValue else "cls", None)
        if type(cls) is not ClassValue:
            return UNBOUND
        known = self.readings.specials
        if (cls, name) not in known:
            known[cls, name] = self.method(cls, name)
        method = known[cls, name]
        if method is None:
            return UNBOUND
        place = frame.place(line)
        if not run:
            self.lose_effects(method, (owner, *args), place)
            return Opaque(f"what {name}() gives", place, own=True)
        bound = structs.replace(method, bound=(owner,))
        return self.tree_call(bound, args, (), frame, place, f"{name}(…)")

    def method(self, cls: ClassValue, name: str) -> Function | None:
        """A method as the class body that provides it defines it, where that is plain."""
        found = lookup(cls, name)
        if not isinstance(found, Found) or name in found.owner.extra:
            return None
        owner = found.owner
        defined = self.program.texts.methods.of(owner.facts).get(name, ())
        if len(defined) != 1:
            return None
        prefix = f"{owner.qualname}."
        decorators, scopes = defined[0].decorators, owner.scopes
        return Function(owner.module, defined[0], decorators, scopes, prefix=prefix)

    def _can_wait(
        self, function: Function, summary: Summary, given: tuple[Value, ...], keywords: _Keywords
    ) -> bool:
        """Whether a call that has no effect by its text surely gives a value."""
        if summary.texts:
            facts = self.function_facts(function)
            assert isinstance(facts, f.FunctionFacts)
            values = dict(zip(facts.params, given, strict=False)) | dict(keywords)
            if not all(isinstance(values.get(name), str) for name in summary.texts):
                return False
        return self.fits(function, given, keywords)

    def _looks_into_unknown(self, function: Function, given: tuple[Value, ...]) -> bool:
        """Whether a call within a call is about an object that is not followed any more.

        That is an instance too, of which no attribute is known. Each of its conditions would stay
        open. One that raises in any case is run.
        """
        unknown = any(isinstance(value, Opaque) and value.own for value in given)
        if not unknown and not (given and all(map(_is_of_instance, given))):
            return False
        facts = self.function_facts(function)
        return isinstance(facts, f.FunctionFacts) and not any(
            isinstance(stmt, f.Raise) for stmt in facts.body
        )

    def fits(
        self, function: Function, args: tuple[Value, ...], keywords: Iterable[tuple[str, Value]]
    ) -> bool:
        """Whether a call surely fits the signature."""
        facts = self.function_facts(function)
        if not isinstance(facts, f.FunctionFacts):
            return False
        if not keywords and len(args) == len(facts.params) and not facts.kwonly:
            return True
        name = f"{function.prefix}{function.facts.name}"
        return isinstance(bound_arguments(name, facts, args, tuple(keywords)), dict)

    def result(self, pending: Pending, frame: Frame) -> Value:
        """The value of a pending call, run once; in a bare environment it may be another."""
        self.environment_asked += 1
        if pending.result is not UNBOUND and not self.bare_environment:
            return pending.result
        if self.running >= _MAX_DEPTH:
            return Opaque("calls nested too deeply", pending.where, pending.text)
        late = pending.step != self.steps
        if late and self._holds_changed(pending):
            reason = "what it reads has changed since"
            pending.result = Opaque(reason, pending.where, pending.text)
            return pending.result
        self.running += 1
        now = _put_back(pending.reads) if late and not self.reads_alike(pending.reads) else ()
        try:
            if self.bare_environment:
                return self.force(self._run_pending(pending, frame), frame)
            pending.result = Opaque("a call that asks for itself", pending.where, pending.text)
            pending.result = self.force(self._run_pending(pending, frame), frame)
        finally:
            self.running -= 1
            _put_back(now)
        return pending.result

    def _holds_changed(self, pending: Pending) -> bool:
        """Whether a list, dict or set that a call rests on is another than when it was put off."""
        changed, step = self.containers.changed_since, pending.step
        held = [*pending.args, *(value for _, value in pending.keywords)]
        held += [read.value for read in pending.reads]
        return any(isinstance(v, list | dict | set) and changed(v, step) for v in held)

    def _run_pending(self, call: Pending, frame: Frame) -> Value:
        """Run the function for its value.

        Where the statement that calls asks for the value, an exception is raised, as in Python.
        Later on the call counts as done: an exception that it surely ends in leaves a doubt and an
        unknown value, and one that it may end in leaves nothing.
        """
        mark, at_once = frame.doubts.mark(), call.step == self.steps
        try:
            value = self.invoke(
                call.function, call.args, call.keywords, frame, call.where, call.text, effects=False
            )
        except PythonError as raised:
            if at_once:
                raise
            error = f"{raised.error.type}: {raised.error.message}"
            why = Undecided(f"calling it ends in {error}", call.where, call.text)
            frame.doubt(Doubt(raised.error, why))
            return Opaque(why.reason, call.where, call.text)
        if not at_once:
            frame.doubts.drop(frame.doubts.since(mark))
        return value

    def invoke(
        self, function: Function, args: tuple[Value, ...], keywords: _Keywords,
        frame: Frame, place: Place, text: str, trace: list[Trace] | None = None, *,
        effects: bool = True, forks: int = MAX_OWN_FORKS,
    ) -> Value:  # fmt: skip
        """Call a function of the tree and give what it returns.

        Raises:
            PythonError: what its body raises.
        """
        given = (*function.bound, *args)
        if frame.depth >= _MAX_DEPTH or self.steps > _MAX_STEPS:
            return self._beyond_bounds(function, given, frame, place, text)
        wrapped = self._decorated(function, frame) if function.decorators else function
        if not isinstance(wrapped, Function) or wrapped.decorators:
            self.lose_effects(function, given, place)
            return Opaque(f"{function.facts.name}() is decorated", place, text)
        given = (*wrapped.bound, *args)
        if frame.is_call:
            return self._run_body(wrapped, given, keywords, frame, place, text, trace, effects)
        # What is asked of a module is worth more questions than what a call does on the way.
        self.own_forks = forks if trace is None else MAX_OWN_FORKS_ASKED
        try:
            return self._run_body(wrapped, given, keywords, frame, place, text, trace, effects)
        except UnfollowedError:
            self.lose_effects(wrapped, given, place)
            return Opaque(f"{function.facts.name}() is not followed", place, text, own=True)

    def _beyond_bounds(
        self, function: Function, given: tuple[Value, ...], frame: Frame, place: Place, text: str
    ) -> Value:
        """A call that is not run any more: what it could touch is not known, nor how it ends."""
        self.lose_effects(function, given, place)
        why = Undecided("calls nested too deeply", place, text)
        if not self.summary(function).harmless:
            frame.doubt(Doubt(builtin_error("Exception", "…", place), why))
        return Opaque(why.reason, place, text)

    def lose_effects(self, function: Function, args: tuple[Value, ...], place: Place) -> None:
        """Nothing is known any more of what a call could have changed, by its text."""
        why = Opaque(f"{function.facts.name}() may have changed it", place)
        for owner, name in touches(self, function, args):
            if isinstance(owner, ModuleValue) and name:
                self.store_anything(owner, name, why)
            elif isinstance(owner, Instance):
                self._lose_shared(owner.cls, why)
            elif isinstance(owner, ModuleValue | ClassValue):
                owner.wild = owner.wild or why
            else:
                self.containers.lose(owner, why)

    def _lose_shared(self, cls: ClassValue, why: Opaque) -> None:
        """The containers that instances of a class share may have been changed."""
        for member in linearise(cls):
            if isinstance(member, ClassValue):
                for value in body_namespace(member).values():
                    if isinstance(value, list | dict | set):
                        self.containers.lose(value, why)

    def store_anything(self, module: ModuleValue, name: str, why: Opaque) -> None:
        """A name of a module may have been bound to anything."""
        if name not in module.names:
            module.wild = module.wild or why
        else:
            module.names[name] = why

    def _decorated(self, function: Function, frame: Frame) -> Value:
        """The function that its decorators make of it, innermost first."""
        value: Value = structs.replace(function, decorators=(), bound=())
        outer = Frame(function.module, {}, function.scopes, depth=frame.depth + 1)
        for node in reversed(function.decorators):
            target = node.func if isinstance(node, f.Call) else node
            decorator = self.evaluate(target, outer, function.facts.start)
            if isinstance(decorator, Foreign) and decorator.name in TRANSPARENT:
                continue
            if not isinstance(decorator, Function) or isinstance(node, f.Call):
                return Opaque("decorated")
            place = Place(function.module.path, function.facts.start)
            value = self.force(self.invoke(decorator, (value,), (), outer, place, ""), outer)
            if isinstance(value, Function):
                value = self._decorated(value, outer)
            if not isinstance(value, Function):
                return Opaque("decorated")
            value = structs.replace(value, bound=function.bound)
        return value

    def _run_body(
        self, function: Function, args: tuple[Value, ...], keywords: _Keywords, frame: Frame,
        place: Place, text: str, trace: list[Trace] | None, effects: bool,
    ) -> Value:  # fmt: skip
        facts = self.function_facts(function)
        if isinstance(facts, f.Unparsed) or facts.generator:
            self.lose_effects(function, args, place)
            return Opaque(f"{function.facts.name}() is not followed", place, text)
        scope = self.arguments(function, facts, args, keywords, frame, place)
        inner = self.call_frame(function, scope, frame)
        inner.trace, inner.effects = trace, effects
        inner.local = self.program.texts.local.of(facts)
        mark = inner.doubts.mark()
        try:
            with self.passage():
                result = self.returned_by(inner, facts.body)
        except Returning as signal:
            result = signal.value
        except PythonError as raised:
            if not inner.returns:
                raise
            return self._unless_raised(inner, raised.error)
        finally:
            if inner.unusual and not frame.trying:
                self.pass_over_unusual(inner, mark)
        if not inner.returns:
            return result
        return join((*inner.returns, (opposite(inner.returns[-1][0]), result)))

    def returned_by(self, frame: Frame, body: tuple[f.Stmt, ...]) -> Value:
        """Run the body of a function, and give what it returns.

        Raises:
            PythonError: what it raises.
            Returning: a ``return`` before the last statement.
        """
        last = body[-1] if body else None
        if not isinstance(last, f.Return):
            self.block(frame, body)
            return None
        self.block(frame, body[:-1])
        self.steps += 1
        return self.returned(frame, last)

    def call_frame(self, function: Function, scope: dict[str, Value], frame: Frame) -> Frame:
        """Where the body of a function runs that is called from ``frame``."""
        return Frame(
            function.module, scope, (scope, *function.scopes), doubts=frame.doubts,
            trying=frame.trying, probing=frame.probing, is_call=True, depth=frame.depth + 1,
            prefix=f"{function.prefix}{function.facts.name}.<locals>.", unusual=frame.unusual,
        )  # fmt: skip

    @staticmethod
    def _unless_raised(frame: Frame, error: Error) -> Value:
        """What a call returns that has returned on an open branch, and raises on the other."""
        raising = opposite(frame.returns[-1][0])
        if not frame.effects:
            # Asked for its value alone, as in _run_pending.
            value = Opaque(f"the call may end in {error.type}: {error.message}", raising.where)
            return join((*frame.returns, (raising, value)))
        frame.doubt(Doubt(error, doubtful(raising, "depends on an open condition")))
        return join(frame.returns)

    def arguments(
        self, function: Function, facts: f.FunctionFacts, args: tuple[Value, ...],
        keywords: _Keywords, frame: Frame, place: Place,
    ) -> dict[str, Value]:  # fmt: skip
        """The parameters' values, or the ``TypeError`` of a call that does not fit."""
        name = f"{function.prefix}{function.facts.name}"
        scope = bound_arguments(name, facts, args, keywords)
        if isinstance(scope, str):
            raise PythonError(builtin_error("TypeError", scope, place))
        left_out = [(name, node) for name, node in facts.defaults if name not in scope]
        if left_out:
            outer = Frame(function.module, {}, function.scopes, depth=frame.depth + 1)
            evaluated = dict(function.defaults)
            for name, node in left_out:
                scope[name] = (
                    evaluated[name]
                    if name in evaluated
                    else self.evaluate(node, outer, function.facts.line)
                )
        return scope

    def apply(self, closure: Closure, args: tuple[Value, ...], frame: Frame) -> Value:
        """Call a lambda."""
        return self._closure(closure, args, frame)

    def _closure(self, closure: Closure, args: tuple[Value, ...], frame: Frame) -> Value:
        if frame.depth >= _MAX_DEPTH:
            return Opaque("calls nested too deeply")
        scope = dict(zip(closure.facts.params, args, strict=True))
        scopes = (scope, *closure.scopes)
        inner = Frame(
            closure.module, scope, scopes, doubts=frame.doubts, trying=frame.trying,
            probing=frame.probing, is_call=True, depth=frame.depth + 1,
        )  # fmt: skip
        if not frame.is_call:
            self.own_forks = MAX_OWN_FORKS
        try:
            return self.evaluate(closure.facts.body, inner, 0)
        except UnfollowedError:
            if frame.is_call:
                raise
            return Opaque("a lambda is not followed", own=True)


def _gives_back(facts: f.FunctionFacts | f.Unparsed) -> bool:
    """Whether a function surely returns its first argument, by its text."""
    if isinstance(facts, f.Unparsed) or not facts.params or not facts.body:
        return False
    given = f.Name(facts.params[0])
    bound = any(name == given.id for name, _ in bindings(facts.body))
    ends = isinstance(facts.body[-1], f.Return)
    return ends and not bound and all(stmt.value == given for stmt in returns(facts.body))


def _is_of_instance(value: Value) -> bool:
    """Whether a value is an instance of a class of the tree, or a method bound to one."""
    if isinstance(value, Function):
        return any(isinstance(owner, Instance) for owner in value.bound)
    return isinstance(value, Instance)


def _put_back(reads: tuple[Read, ...]) -> tuple[Read, ...]:
    """Give names the values that they were read with; what they had until now."""
    now = tuple([Read(names, name, names.get(name, UNBOUND)) for names, name, _ in reads])
    for names, name, value in reads:
        if value is UNBOUND:
            names.pop(name, None)
        else:
            names[name] = value
    return now
