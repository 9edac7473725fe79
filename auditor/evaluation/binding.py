"""Statements that bind: assignments, definitions, deletions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from msgspec import structs

from auditor import facts as f
from auditor.classes import (
    Found,
    InconsistentOrder,
    Open,
    linearise,
    lookup,
    member_name,
    own_attribute,
    own_value,
)
from auditor.evaluation.containers import as_one, beyond
from auditor.evaluation.creation import (
    conflicts,
    given_bases,
    is_hooked,
    metaclass_of,
    name_descriptors,
    run_hooks,
)
from auditor.evaluation.expressions import Expressions
from auditor.evaluation.frame import Frame, doubtful, is_own, is_plain, join, opposite
from auditor.evaluation.machine import MAX_OWN_FORKS_ASKED
from auditor.evaluation.names import no_attribute
from auditor.evaluation.standins import base_error
from auditor.evaluation.truth import IN_PLACE, ITERATING
from auditor.values import (
    UNBOUND,
    Builtin,
    ClassValue,
    Closure,
    Deferred,
    Doubt,
    Either,
    Error,
    Foreign,
    Function,
    Guard,
    Instance,
    Method,
    ModuleValue,
    Opaque,
    Origin,
    Pending,
    Place,
    PythonError,
    Undecided,
    Value,
    builtin_error,
)

#: What of the tree is called as a decorator, and what the first name of one may mean.
_CALLED = (Function, Closure, ClassValue, Instance, Method)
_DECORATING = (Function, ClassValue, Closure, Pending, Instance, list, dict, set)
_CONFLICT = (
    "metaclass conflict: the metaclass of a derived class must be a (non-strict) subclass of the "
    "metaclasses of all its bases"
)
#: A name that no source can spell.
_ARGUMENT = "the argument"
#: Operators that change a container, by its type.
_IN_PLACE: dict[type, tuple[str, ...]] = {list: ("+", "*"), dict: ("|",), set: ("|", "&", "-", "^")}
#: What a base can be as it is.
_READY = frozenset((ClassValue, Foreign, Builtin, Opaque, Deferred, Either))


class Binding(Expressions):
    """Binds names, attributes and items."""

    def bind(self, frame: Frame, name: str, value: Value, stmt: f.Stmt, line: int) -> None:
        """Bind a name, and remember which statement under which conditions did it."""
        if frame.shared and name in frame.shared:
            names = frame.shared[name]
            module = self.namespaces.get(id(names))
            if module is not None:
                self._set_in_module(module, name, value, frame, frame.place(line))
            else:
                names[name] = value
            return
        frame.names[name] = value
        if not frame.is_call and frame.names is frame.module.names:
            frame.module.origins[name] = Origin(stmt, line, frame.guards)

    def bind_all(self, frame: Frame, values: dict[str, Value], stmt: f.Stmt, line: int) -> None:
        """Bind the names that one statement binds."""
        if frame.shared:
            for name, value in values.items():
                self.bind(frame, name, value, stmt, line)
            return
        frame.names.update(values)
        if not frame.is_call and frame.names is frame.module.names:
            origin, origins = Origin(stmt, line, frame.guards), frame.module.origins
            for name in values:
                origins[name] = origin

    def _func(self, frame: Frame, stmt: f.Func) -> None:
        for dotted in stmt.uses:
            self.use(frame, dotted, stmt.start)
        defaults: tuple[tuple[str, Value], ...] = ()
        if stmt.defaults:
            defaults = tuple(
                (name, self.evaluate(node, frame, stmt.line)) for name, node in stmt.defaults
            )
        scopes = frame.scopes
        if scopes and not frame.is_call and frame.outer is None:
            scopes = scopes[1:]  # as Frame.enclosing says, and most functions are methods
        function = Function(frame.module, stmt, stmt.decorators, scopes, (), frame.prefix, defaults)
        value = self._decorated_function(function, frame) if stmt.decorators else function
        self.bind(frame, stmt.name, value, stmt, stmt.line)

    def _decorated_function(self, function: Function, frame: Frame) -> Value:
        """The function after decorators of the tree that do more than give another function.

        Other decorators are run when something calls the function.
        """
        if not any(self._is_of_tree(node, frame) for node in function.decorators):
            return function
        line = function.facts.start
        decorators = [self.evaluate(node, frame, line) for node in function.decorators]
        followed = [self.force(d, frame) for d in decorators]
        if not any(isinstance(d, _CALLED) and not self.only_changes(d) for d in followed):
            return function
        value: Value = function
        for index in range(len(followed) - 1, -1, -1):
            bare = structs.replace(function, decorators=function.decorators[index + 1 :])
            before = bare if value is function else value
            made = self._decorated_by(followed[index], before, frame, line)
            value = value if made is before else made
        return value

    def _is_of_tree(self, node: f.Expr, frame: Frame) -> bool:
        """Whether a decorator is an object of the tree, by its first name.

        Of an instance, the one attribute that counts is a method.
        """
        if isinstance(node, f.Lambda):
            return True
        attr = ""
        while not isinstance(node, f.Name):
            if isinstance(node, f.Call):
                node = node.func
            elif isinstance(node, f.Attr):
                attr = node.attr
                node = node.value
            else:
                return False
        name = node.id
        for scope in (*frame.scopes, frame.module.names):
            if name in scope:
                first = scope[name]
                if isinstance(first, Instance) and attr:
                    return self.method(first.cls, attr) is not None
                return isinstance(first, _DECORATING)
        return False

    def _class(self, frame: Frame, stmt: f.Class) -> None:
        decorators: tuple[Value, ...] = ()
        if stmt.decorators:
            decorators = tuple([self.evaluate(n, frame, stmt.start) for n in stmt.decorators])
        listed = self.items(stmt.bases, frame, stmt.line)
        bases = (listed,) if isinstance(listed, Opaque) else tuple(listed)
        if Opaque in map(type, bases):
            bases = tuple([b.alias if _is_alias(b) else b for b in bases])
        keywords: tuple[tuple[str, Value], ...] = ()
        if stmt.keywords:
            keywords = tuple([(n, self._ready(e, frame, stmt.line)) for n, e in stmt.keywords])
        qualname = f"{frame.prefix}{stmt.name}"
        if not _READY.issuperset(map(type, bases)):
            bases = tuple([self.force(b, frame) if type(b) is Pending else b for b in bases])
            bases = given_bases(self, stmt.name, bases, frame, stmt.line)
        cls = ClassValue(frame.module, qualname, stmt, bases, decorators)
        cls.under, cls.scopes = self.open_guards, frame.enclosing
        cls.metaclass, cls.hooked = metaclass_of(cls, keywords), is_hooked(self, cls)
        refused = base_error(stmt.name, bases)
        if cls.metaclass is not None and conflicts(cls):
            refused = _CONFLICT
        # The metaclass is found before the body runs, and called after.
        if refused and refused.startswith("metaclass conflict"):
            raise PythonError(builtin_error("TypeError", refused, frame.place(stmt.line)))
        if not stmt.plain:
            cls.namespace = {}
            scopes = (cls.namespace, *cls.scopes)
            inner = Frame(
                frame.module, cls.namespace, scopes, frame.guards, frame.doubts,
                trying=frame.trying, probing=frame.probing, depth=frame.depth,
                prefix=f"{qualname}.",
            )  # fmt: skip
            self.block(inner, stmt.body)
            cls.wild = inner.wild
        if refused:
            raise PythonError(builtin_error("TypeError", refused, frame.place(stmt.line)))
        self._doubt_bases(cls, frame, stmt.line)
        if len(bases) > 1 and not any(isinstance(base, Deferred) for base in bases):
            self._check_order(cls, frame, stmt.line)
        if not stmt.plain:
            name_descriptors(self, cls, frame, stmt.line)
        if cls.hooked or keywords or isinstance(cls.metaclass, ClassValue):
            run_hooks(self, cls, keywords, frame, stmt.line)
        value = self._decorated_class(cls, frame)
        if isinstance(cls.metaclass, Function | Closure):
            value = Opaque("what its metaclass makes", frame.place(stmt.start), stmt.name, own=True)
        self.bind(frame, stmt.name, value, stmt, stmt.line)

    def _ready(self, node: f.Expr, frame: Frame, line: int) -> Value:
        """The value of an expression, and not a call that is put off."""
        value = self.evaluate(node, frame, line)
        return self.force(value, frame) if type(value) is Pending else value

    def _decorated_class(self, cls: ClassValue, frame: Frame) -> Value:
        """The class after its decorators: those of the tree are run for what they do.

        One that can only change the class is run when the class is first looked into; any other,
        at once. One from outside the tree, or that could not be followed, keeps the class.
        """
        if not cls.decorators:
            return cls
        followed = [d for d in cls.decorators if isinstance(d, (*_CALLED, Pending))]
        if not followed:
            return cls
        if all(self.only_changes(decorator) for decorator in followed):
            cls.unfinished = partial(self._run_decorators, cls, Frame(frame.module, {}))
            return cls
        return self._run_decorators(cls, frame)

    def _run_decorators(self, cls: ClassValue, frame: Frame) -> Value:
        value: Value = cls
        for decorator in reversed(cls.decorators):
            value = self._decorated_by(decorator, value, frame, cls.facts.start)
        known = [self.force(decorator, frame) for decorator in cls.decorators]
        all_followed = all(isinstance(one, _CALLED) for one in known)
        cls.followed = all_followed and isinstance(value, ClassValue)
        return value

    def _decorated_by(self, decorator: Value, value: Value, frame: Frame, line: int) -> Value:
        """What a decorator makes of a class or function, as far as it is followed."""
        function = self.force(decorator, frame)
        place = frame.place(line)
        if isinstance(function, Function):
            made = self.invoke(function, (value,), (), frame, place, "", forks=MAX_OWN_FORKS_ASKED)
            made = self.force(made, frame)
            return value if isinstance(made, Opaque | Foreign) else made
        if isinstance(function, Closure) and len(function.facts.params) == 1:
            made = self.apply(function, (value,), frame)
            return value if isinstance(made, Opaque | Foreign) else made
        if isinstance(function, ClassValue | Instance | Method):
            made = self.force(self._called_with(function, value, frame, line), frame)
            return value if isinstance(made, Opaque | Foreign) else made
        return value

    def _called_with(self, function: Value, value: Value, frame: Frame, line: int) -> Value:
        """The value of a call with one argument that is evaluated already."""
        scope = {_ARGUMENT: value}
        inner = Frame(
            frame.module, scope, (scope,), frame.guards, frame.doubts, trying=frame.trying,
            probing=frame.probing, is_call=frame.is_call, depth=frame.depth, unusual=frame.unusual,
        )  # fmt: skip
        call = f.Call(f.Name(_ARGUMENT), (f.Name(_ARGUMENT),), (), "")
        return self.call(function, call, inner, line)

    def _doubt_bases(self, cls: ClassValue, frame: Frame, line: int) -> None:
        """A base that may be no class may be refused."""
        for base in cls.bases:
            if type(base) is not Either:
                continue
            for guard, value in base.options:
                error = self._refusal(cls.facts.name, value, frame, line)
                if error:
                    why = doubtful(guard, f"a base of {cls.dotted} is one of several values")
                    frame.doubt(Doubt(error, why))

    def _refusal(self, name: str, base: Value, frame: Frame, line: int) -> Error | None:
        """What Python raises where ``base`` is the base of a class; None where it may be one."""
        try:
            given = given_bases(self, name, (base,), frame, line)
        except PythonError as raised:
            return raised.error
        refused = base_error(name, given)
        return builtin_error("TypeError", refused, frame.place(line)) if refused else None

    def _check_order(self, cls: ClassValue, frame: Frame, line: int) -> None:
        """Python refuses a class whose bases cannot be put in one order."""
        twice = next((base for i, base in enumerate(cls.bases) if base in cls.bases[:i]), None)
        if isinstance(twice, ClassValue | Foreign | Builtin):
            message = f"duplicate base class {member_name(twice).rpartition('.')[2]}"
            raise PythonError(builtin_error("TypeError", message, frame.place(line)))
        try:
            linearise(cls)
        except InconsistentOrder as error:
            refused = builtin_error("TypeError", str(error), frame.place(line))
            if all(isinstance(one, ClassValue | Builtin) for one in error.candidates):
                raise PythonError(refused) from error
            why = Undecided(
                "the order of bases depends on classes outside the tree", frame.place(line)
            )
            frame.doubt(Doubt(refused, why))
            cls.mro = (cls, *cls.bases)

    def _assign(self, frame: Frame, stmt: f.Assign) -> None:
        value = self.evaluate(stmt.value, frame, stmt.line)
        for target in stmt.targets:
            if type(target) is f.Name:
                self.bind(frame, target.id, value, stmt, stmt.line)
            else:
                self.store(frame, target, value, stmt, stmt.line)

    def store(self, frame: Frame, target: f.Expr, value: Value, stmt: f.Stmt, line: int) -> None:
        """Assign to a name, an attribute, an item, or each of several."""
        match target:
            case f.Name(id=name):
                self.bind(frame, name, value, stmt, line)
            case f.Attr(value=node, attr=attr):
                self.store_attribute(self.evaluate(node, frame, line), attr, value, frame, line)
            case f.Subscript(value=node, index=index):
                owner = self.evaluate(node, frame, line)
                self.store_item(owner, self.evaluate(index, frame, line), value, frame, line)
            case f.Sequence(items=items):
                self._unpack(frame, items, value, stmt, line)
            case _:
                for name in _unknown_names(target):
                    self.bind(frame, name, Opaque("unpacked", frame.place(line)), stmt, line)

    def _unpack(
        self, frame: Frame, items: tuple[f.Expr, ...], value: Value, stmt: f.Stmt, line: int
    ) -> None:
        if type(value) is not tuple:
            value = self.listed(value, frame)
        if isinstance(value, tuple | list | str | dict | range):
            if len(value) != len(items):
                few = "not enough" if len(value) < len(items) else "too many"
                got = f", got {len(value)}" if len(value) < len(items) else ""
                message = f"{few} values to unpack (expected {len(items)}{got})"
                raise PythonError(builtin_error("ValueError", message, frame.place(line)))
            parts: Iterable[Value] = value
        else:
            self.iterates(value, frame, line)
            self.refuse(_unpacked, value, ITERATING, frame, line)
            parts = [Opaque("unpacked", frame.place(line), own=is_own(value))] * len(items)
        for item, part in zip(items, parts, strict=False):
            self.store(frame, item, part, stmt, line)

    def store_attribute(
        self, owner: Value, name: str, value: Value, frame: Frame, line: int
    ) -> None:
        """``owner.name = value``."""
        place = frame.place(line)
        match self.force(owner, frame):
            case ModuleValue() as module if name == "__class__":
                module.wild = Opaque("the module is made one of another class", place)
            case ModuleValue() as module:
                self._set_in_module(module, name, value, frame, place)
            case ClassValue() as cls:
                self.special(cls, "__setattr__", (name, value), frame, line)
                self._set_in_class(cls, name, value, frame, place)
            case Either(options=options):
                for guard, option in options:
                    if isinstance(option, ClassValue):
                        other = Guard(guard.where, guard.text, None, not guard.negated)
                        both = join(((guard, value), (other, own_value(option, name))))
                        self._set_in_class(option, name, both, frame, place)
            case Instance(cls=cls) as made:
                self.special(made, "__setattr__", (name, value), frame, line)
                found = lookup(cls, name)
                served = own_value(found.owner, name) if isinstance(found, Found) else None
                if isinstance(served, Instance):
                    self.special(served, "__set__", (made, value), frame, line, run=False)
                cls.given = {name} if cls.given is None else cls.given | {name}
            case value_of if is_plain(value_of):
                # For its exception alone: no plain value takes a new attribute.
                self._python(lambda a, b: setattr(a, b, None), value_of, name, frame, line)
            case _:
                return

    def _set_in_module(
        self, module: ModuleValue, name: str, value: Value, frame: Frame, place: Place
    ) -> None:
        value = self._maybe(module.under, value, module.names.get(name, UNBOUND))
        if value is UNBOUND:
            module.names.pop(name, None)
        else:
            module.names[name] = value
            module.origins[name] = Origin(None, place.line, frame.guards)

    def _set_in_class(
        self, cls: ClassValue, name: str, value: Value, frame: Frame, place: Place
    ) -> None:
        self.readings.makers.clear()
        self.readings.specials.clear()
        cls.extra[name] = (self._maybe(cls.under, value, own_value(cls, name)), place)

    def _maybe(self, under: tuple[Guard, ...], value: Value, before: Value) -> Value:
        """What an attribute of a shared object is after a store on a branch that may not run.

        ``under`` are the open conditions under which the object exists at all.
        """
        open_guards = beyond(self.open_guards, under)
        if not open_guards:
            return value
        guard = as_one(open_guards)
        other = opposite(guard)
        return join(((guard, value), (other, _if(other, before))))

    def _aug_assign(self, frame: Frame, stmt: f.AugAssign) -> None:
        """``target op= value``; on a list it changes the list, which other names may share."""
        current = self.force(self.evaluate(stmt.target, frame, stmt.line), frame)
        value = self.force(self.evaluate(stmt.value, frame, stmt.line), frame)
        shared = _changed_in_place(current, stmt.op)
        if shared and (isinstance(current, Either) or isinstance(value, Either)):
            current = _of_copies(current)
        result = self.binary(stmt.op, current, value, frame, stmt.line, IN_PLACE)
        if any(one is not result for one in shared):
            # Which of them is changed, or by what, is not known.
            reason = f"{stmt.op}= of something unknown"
            result = Opaque(reason, frame.place(stmt.line), own=is_own(value))
            for one in shared:
                self.containers.lose(one, result)
        self.store(frame, stmt.target, result, stmt, stmt.line)

    def _bind_stmt(self, frame: Frame, stmt: f.Bind) -> None:
        for name in stmt.names:
            self.bind(frame, name, Opaque("not evaluated", frame.place(stmt.line)), stmt, stmt.line)

    def _delete(self, frame: Frame, stmt: f.Delete) -> None:
        for target in stmt.targets:
            match target:
                case f.Name(id=name):
                    self._delete_name(name, frame, stmt)
                case f.Attr(value=node, attr=attr):
                    owner = self.evaluate(node, frame, stmt.line)
                    self.delete_attribute(owner, attr, frame, stmt.line)
                case f.Subscript(value=node, index=index):
                    owner = self.force(self.evaluate(node, frame, stmt.line), frame)
                    key = self.force(self.evaluate(index, frame, stmt.line), frame)
                    self.delete_item(owner, key, frame, stmt.line)

    def _delete_name(self, name: str, frame: Frame, stmt: f.Delete) -> None:
        """``del name``, which looks in the scope that runs and in no other."""
        self.name(frame, name, stmt.line)
        names = frame.shared.get(name, frame.names)
        if names.pop(name, UNBOUND) is UNBOUND and frame.module.wild is None:
            message = f"name {name!r} is not defined"
            raise PythonError(builtin_error("NameError", message, frame.place(stmt.line)))

    def delete_attribute(self, owner: Value, attr: str, frame: Frame, line: int) -> None:
        """``del owner.attr``."""
        owner, place = self.force(owner, frame), frame.place(line)
        if isinstance(owner, ModuleValue):
            if attr not in owner.names and owner.wild is None:
                message = f"'module' object has no attribute {attr!r}"
                raise PythonError(builtin_error("AttributeError", message, place))
            self._set_in_module(owner, attr, UNBOUND, frame, place)
        elif isinstance(owner, ClassValue):
            error = no_attribute(owner, attr, place)
            match own_attribute(owner, attr):
                case None:
                    raise PythonError(error)
                case Open(why=why):
                    frame.doubt(Doubt(error, why))
            self._set_in_class(owner, attr, UNBOUND, frame, place)
        elif isinstance(owner, Instance):
            self.special(owner, "__delattr__", (attr,), frame, line)
        elif is_plain(owner):
            self._python(delattr, owner, attr, frame, line)  # for its exception alone


def _changed_in_place(value: Value, op: str) -> list[Value]:
    """The containers that ``value op= …`` may change."""
    options = [one for _, one in value.options] if isinstance(value, Either) else [value]
    return [one for one in options if op in _IN_PLACE.get(type(one), ())]


def _of_copies(value: Value) -> Value:
    if isinstance(value, Either):
        return Either(tuple((guard, _of_copies(one)) for guard, one in value.options))
    return type(value)(value) if type(value) in _IN_PLACE else value


def _if(guard: Guard, value: Value) -> Value:
    """A value where ``guard`` is the case: without the options of the other branch."""
    if not isinstance(value, Either):
        return value
    contrary = (guard.identity, not guard.negated)
    options = [one for one in value.options if (one[0].identity, one[0].negated) != contrary]
    return join(options) if options else value


def _unpacked(value: Any) -> None:
    _first, _second = value


def _is_alias(base: Value) -> bool:
    return isinstance(base, Opaque) and base.alias is not UNBOUND


def _unknown_names(target: f.Expr) -> tuple[str, ...]:
    return (
        tuple(use for use in target.uses if "." not in use) if isinstance(target, f.Unknown) else ()
    )
