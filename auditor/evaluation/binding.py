"""Statements that bind: assignments, definitions, deletions."""

from __future__ import annotations

from collections.abc import Iterable

from auditor import facts as f
from auditor.classes import InconsistentOrder, linearise
from auditor.evaluation.expressions import Expressions
from auditor.evaluation.frame import Frame, is_plain, join
from auditor.values import (
    UNBOUND,
    ClassValue,
    Deferred,
    Doubt,
    Either,
    Function,
    Guard,
    ModuleValue,
    Opaque,
    Origin,
    PythonError,
    Undecided,
    Value,
    builtin_error,
)


class Binding(Expressions):
    """Binds names, attributes and items."""

    def bind(self, frame: Frame, name: str, value: Value, stmt: f.Stmt, line: int) -> None:
        """Bind a name, and remember which statement under which conditions did it."""
        if name in frame.shared:
            frame.module.names[name] = value
            return
        frame.names[name] = value
        if not frame.is_call and frame.names is frame.module.names:
            frame.module.origins[name] = Origin(stmt, line, frame.guards)

    def _func(self, frame: Frame, stmt: f.Func) -> None:
        for dotted in stmt.uses:
            self.use(frame, dotted, stmt.start)
        scope = frame.names if frame.is_call else None
        self.bind(
            frame, stmt.name, Function(frame.module, stmt, stmt.decorators, scope), stmt, stmt.line
        )

    def _class(self, frame: Frame, stmt: f.Class) -> None:
        line = stmt.start
        decorators = tuple(self.evaluate(node, frame, line) for node in stmt.decorators)
        bases = tuple(self._base(node, frame, stmt.line) for node in stmt.bases)
        for _, node in stmt.keywords:
            self.evaluate(node, frame, stmt.line)
        cls = ClassValue(frame.module, stmt.name, stmt, bases, decorators)
        if not stmt.plain:
            cls.namespace = {}
            scopes = (cls.namespace, *(frame.scopes if frame.is_call else ()))
            inner = Frame(frame.module, cls.namespace, scopes, frame.guards, depth=frame.depth)
            inner.doubts = frame.doubts
            self.block(inner, stmt.body)
        if len(bases) > 1 and not any(isinstance(base, Deferred) for base in bases):
            self._check_order(cls, frame, stmt.line)
        self.bind(frame, stmt.name, self._decorated_class(cls, frame), stmt, stmt.line)

    def _decorated_class(self, cls: ClassValue, frame: Frame) -> ClassValue:
        """The class after its decorators: those of the tree are run for what they set on it.

        A decorator succeeds, as every call does: one that could not be followed keeps the class.
        """
        place, mark = frame.place(cls.facts.start), frame.doubts.mark()
        for decorator in reversed(cls.decorators):
            try:
                function = self.force(decorator, frame)
                if isinstance(function, Function):
                    made = self.invoke(function, (cls,), (), frame, place, "")
                    made = self.force(made, frame)
                    cls = made if isinstance(made, ClassValue) else cls
            except PythonError:
                continue
        frame.doubts.drop(frame.doubts.since(mark))
        return cls

    def _base(self, node: f.Expr, frame: Frame, line: int) -> Value:
        base = self.evaluate(node, frame, line)
        if base is None or isinstance(base, ModuleValue):
            message = (
                "NoneType takes no arguments"
                if base is None
                else "module() takes at most 2 arguments (3 given)"
            )
            raise PythonError(builtin_error("TypeError", message, frame.place(line)))
        return base

    def _check_order(self, cls: ClassValue, frame: Frame, line: int) -> None:
        """Python refuses a class whose bases cannot be put in one order."""
        try:
            linearise(cls)
        except InconsistentOrder as error:
            if all(isinstance(candidate, ClassValue) for candidate in error.candidates):
                raise PythonError(
                    builtin_error("TypeError", str(error), frame.place(line))
                ) from error
            why = Undecided(
                "the order of bases depends on classes outside the tree", frame.place(line)
            )
            frame.doubt(Doubt(builtin_error("TypeError", str(error), frame.place(line)), why))
            cls.mro = (cls, *cls.bases)

    def _assign(self, frame: Frame, stmt: f.Assign) -> None:
        value = self.evaluate(stmt.value, frame, stmt.line)
        for target in stmt.targets:
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
        value = self.force(value, frame)
        if isinstance(value, tuple | list | str):
            if len(value) != len(items):
                few = "not enough" if len(value) < len(items) else "too many"
                got = f", got {len(value)}" if len(value) < len(items) else ""
                message = f"{few} values to unpack (expected {len(items)}{got})"
                raise PythonError(builtin_error("ValueError", message, frame.place(line)))
            parts: Iterable[Value] = value
        else:
            parts = [Opaque("unpacked", frame.place(line))] * len(items)
        for item, part in zip(items, parts, strict=False):
            self.store(frame, item, part, stmt, line)

    def store_attribute(
        self, owner: Value, name: str, value: Value, frame: Frame, line: int
    ) -> None:
        """``owner.name = value``."""
        place = frame.place(line)
        match self.force(owner, frame):
            case ModuleValue() as module:
                module.names[name] = self._maybe(frame, value, module.names.get(name, UNBOUND))
                module.origins[name] = Origin(None, line, frame.guards)
            case ClassValue() as cls:
                before = cls.extra[name][0] if name in cls.extra else UNBOUND
                cls.extra[name] = (self._maybe(frame, value, before), place)
            case Either(options=options):
                for guard, option in options:
                    if isinstance(option, ClassValue):
                        cls = option
                        before = cls.extra[name][0] if name in cls.extra else UNBOUND
                        cls.extra[name] = (Either(((guard, value), (guard, before))), place)
            case _:
                return

    @staticmethod
    def _maybe(frame: Frame, value: Value, before: Value) -> Value:
        """What an attribute of a shared object is after a store on a branch that may not run."""
        open_guards = [guard for guard in frame.guards if guard.outcome is None]
        if not open_guards:
            return value
        guard = open_guards[-1]
        other = Guard(guard.where, guard.text, None, negated=not guard.negated)
        return join(((guard, value), (other, before)))

    def _aug_assign(self, frame: Frame, stmt: f.AugAssign) -> None:
        current = self.evaluate(stmt.target, frame, stmt.line)
        value = self.evaluate(stmt.value, frame, stmt.line)
        if (
            isinstance(current, list)
            and stmt.op == "+"
            and isinstance(self.force(value, frame), list | tuple)
        ):
            # ``+=`` on a list changes the list itself, which other names may share.
            current.extend(self.force(value, frame))
            result: Value = current
        else:
            result = self.binary(stmt.op, current, value, frame, stmt.line)
        self.store(frame, stmt.target, result, stmt, stmt.line)

    def _bind_stmt(self, frame: Frame, stmt: f.Bind) -> None:
        for name in stmt.names:
            self.bind(frame, name, Opaque("not evaluated", frame.place(stmt.line)), stmt, stmt.line)

    def _delete(self, frame: Frame, stmt: f.Delete) -> None:
        for target in stmt.targets:
            match target:
                case f.Name(id=name):
                    self.name(frame, name, stmt.line)
                    frame.names.pop(name, None)
                case f.Attr(value=node, attr=attr):
                    self._delete_attribute(self.evaluate(node, frame, stmt.line), attr, frame, stmt)
                case f.Subscript(value=node, index=index):
                    owner = self.force(self.evaluate(node, frame, stmt.line), frame)
                    key = self.force(self.evaluate(index, frame, stmt.line), frame)
                    if isinstance(owner, dict) and is_plain(key):
                        self._python(dict.__delitem__, owner, key, frame, stmt.line)

    def _delete_attribute(self, owner: Value, attr: str, frame: Frame, stmt: f.Delete) -> None:
        if isinstance(owner, ModuleValue):
            self.attribute(owner, attr, frame, stmt.line)
            owner.names.pop(attr, None)
        elif isinstance(owner, ClassValue):
            owner.extra[attr] = (UNBOUND, frame.place(stmt.line))


def _unknown_names(target: f.Expr) -> tuple[str, ...]:
    return (
        tuple(use for use in target.uses if "." not in use) if isinstance(target, f.Unknown) else ()
    )
