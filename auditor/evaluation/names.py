"""Names and attributes, by Python's scoping and lookup rules."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterable
from itertools import chain

from msgspec import structs

from auditor import facts as f
from auditor.classes import Found, Missing, linearise, lookup, own_value
from auditor.evaluation.comparisons import Comparisons
from auditor.evaluation.frame import CONSTANT_TYPES, CONTAINERS, Frame, is_own, join
from auditor.evaluation.raised import error_attribute
from auditor.evaluation.standins import inherits_builtin, is_ordinary, may_serve
from auditor.evaluation.touches import stores_on_self
from auditor.values import (
    ASSUMED,
    UNBOUND,
    Builtin,
    ClassValue,
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
    Place,
    PlatformMethod,
    PlatformObject,
    PythonError,
    Undecided,
    Value,
    Version,
    builtin_error,
)

_BUILTIN_CONSTANTS: dict[str, Value] = {
    "__debug__": True,
    "NotImplemented": Opaque("NotImplemented"),
}


#: Libraries that are no part of Python, and whose functions have their meaning in the run.
_FOLLOWED = frozenset(("packaging", "typing_extensions"))


#: Methods by which making an instance, or asking it for an attribute, may give something else.
_MAKING = ("__new__", "__getattribute__")
#: Decorators under which a name of a class is no method.
_DESCRIPTORS = (f.Name("property"), f.Name("cached_property"))

#: What every class is called.
_NAMES_OF_CLASSES: dict[str, Callable[[ClassValue], str]] = {
    "__name__": lambda cls: cls.facts.name,
    "__qualname__": lambda cls: cls.qualname,
    "__module__": lambda cls: cls.module.name,
}


class Names(Comparisons):
    """Reads names and attributes."""

    def name(self, frame: Frame, name: str, line: int) -> Value:
        """The value of a name; a ``NameError`` where no scope binds it."""
        if self.platform.assumed and name in self.platform.assumed:
            return self.platform.assumed[name]
        if name in frame.local and name not in frame.names and name not in frame.shared:
            raise PythonError(_not_bound(name, frame, line))
        for scope in frame.scopes:
            value = scope.get(name, UNBOUND)
            if value is not UNBOUND:
                break
        else:
            value = frame.module.names.get(name, UNBOUND)
            if value is UNBOUND:
                return self._beyond_module(frame, name, line)
        return self._settled(value, frame, line, name) if type(value) is Either else value

    def _settled(self, value: Either, frame: Frame, line: int, name: str) -> Value:
        """One of several values; where some branch left the name unbound, a doubt remains."""
        if any(v is UNBOUND for _, v in self.alive(value)):
            guards = [guard for guard, option in value.options if option is UNBOUND]
            error = _not_bound(name, frame, line)
            frame.doubt(
                Doubt(
                    error, Undecided("a branch does not bind it", guards[0].where, str(guards[0]))
                )
            )
            return join(option for option in value.options if option[1] is not UNBOUND)
        return value

    def _beyond_module(self, frame: Frame, name: str, line: int) -> Value:
        module = frame.module
        if name == "__name__":
            return module.name
        if name == "__package__":
            return module.package
        if name in ("__file__", "__path__", "__doc__", "__spec__", "__loader__", "__builtins__"):
            return Opaque(f"{name} of a module", frame.place(line))
        if name in _BUILTIN_CONSTANTS:
            return _BUILTIN_CONSTANTS[name]
        if hasattr(builtins, name):
            return Builtin(name)
        if module.wild is not None:
            return module.wild
        raise PythonError(_not_bound(name, frame, line))

    def use(self, frame: Frame, dotted: str, line: int) -> Value:
        """Read a dotted name for its exceptions alone; gives the value, as far as it is read."""
        head, *rest = dotted.split(".")
        value = self.name(frame, head, line)
        for attr in rest:
            if not isinstance(value, ModuleValue | ClassValue | Deferred | None):
                break
            value = self.attribute(value, attr, frame, line)
        return value

    def attribute(self, owner: Value, name: str, frame: Frame, line: int) -> Value:
        """``owner.name``, or the ``AttributeError`` that Python would raise."""
        place, value = frame.place(line), self.force(owner, frame)
        if type(value) is Foreign:
            if frame.probing:
                self.perhaps_missing(value.name, name, frame, place)
            return self.foreign_attribute(f"{value.name}.{name}")
        match value:
            case ModuleValue() as module:
                return self.module_attribute(module, name, place, frame)
            case ClassValue() as cls:
                return self._class_attribute(cls, name, place, frame)
            case PlatformObject():
                return self._platform_attribute(name, place)
            case Instance() as instance:
                self._perhaps_served(instance, name, frame, place)
                return self._instance_attribute(instance, name, place, frame)
            case Either() as either:
                return self._each(
                    self.alive(either), frame, lambda v: self.attribute(v, name, frame, line)
                )
            case Opaque(like=like) as opaque:
                if like is not UNBOUND and not hasattr(like, name):
                    raise PythonError(_lacking(like, name, place))
                return opaque
            case Error() as error if (known := error_attribute(error, name)) is not UNBOUND:
                return known
            case Builtin(name=cls) if name == "__name__" and isinstance(
                getattr(builtins, cls, 0), type
            ):
                return cls
            case Version(possible=possible) if name in ("major", "minor"):
                index = ("major", "minor").index(name)
                numbers = {version[index] for version in possible}
                return numbers.pop() if len(numbers) == 1 else Opaque("the Python release", place)
            case value if isinstance(value, (*CONSTANT_TYPES, *CONTAINERS)):
                if hasattr(value, name):
                    found = getattr(value, name)
                    return found if type(found) in CONSTANT_TYPES else Method(value, name)
                raise PythonError(_lacking(value, name, place))
            case _:
                if name == "cache_clear":
                    self.readings.kept.clear()
                return Opaque(f"attribute {name}", place, own=is_own(owner))

    def perhaps_missing(self, prefix: str, name: str, frame: Frame, place: Place) -> None:
        """A handler that names ``AttributeError`` asks what ``hasattr`` does: that stays open."""
        full = f"{prefix}.{name}"
        root = prefix.partition(".")[0]
        if name.startswith("__") or root in sys.stdlib_module_names or root in _FOLLOWED:
            return
        # What a build of the tree puts there was made for the tree.
        if self.comes_with_tree(full):
            return
        if type(self.foreign_attribute(full)) is Foreign and self.settled(ASSUMED + full) is None:
            error = builtin_error("AttributeError", f"{prefix!r} has no attribute {name!r}", place)
            why = Undecided(f"whether there is {full} is not known", place, full, ASSUMED + full)
            frame.doubt(Doubt(error, why))

    def perhaps_not_installed(self, name: str, frame: Frame, place: Place, text: str) -> None:
        """A handler runs where a distribution is asked for that nothing knows of."""
        why = Undecided(
            f"whether {name} is installed is not known", place, text, f"{ASSUMED}{place}"
        )
        error = builtin_error("ModuleNotFoundError", f"No package metadata for {name!r}", place)
        frame.doubt(Doubt(error, why))

    def _class_attribute(self, cls: ClassValue, name: str, place: Place, frame: Frame) -> Value:
        unknown = Opaque(f"attribute {name} of {cls.qualname}", place, own=True)
        match lookup(cls, name):
            case Found(owner=owner):
                if name in owner.extra:
                    return owner.extra[name][0]
                method = self.class_method(cls, owner, name)
                if method is not None:
                    return method
                value = (owner.namespace or {}).get(name, UNBOUND)
                served = isinstance(value, Instance) and may_serve(value.cls)
                if served:
                    made = self.special(value, "__get__", (None, cls), frame, place.line)
                    return unknown if made is UNBOUND else made
                if isinstance(value, Either) or value is UNBOUND or not is_ordinary(cls):
                    return unknown
                return value
            case Missing() if is_ordinary(cls) and name in _NAMES_OF_CLASSES:
                return _NAMES_OF_CLASSES[name](cls)
            case Missing() if name != "__annotations__" and (
                is_ordinary(cls) and not inherits_builtin(cls, name)
            ):
                raise PythonError(no_attribute(cls, name, place))
            case _:
                made = self.special(cls, "__getattr__", (name,), frame, place.line)
                return unknown if made is UNBOUND or name.startswith("__") else made

    def _instance_attribute(self, owner: Instance, name: str, place: Place, frame: Frame) -> Value:
        """A method, bound to the instance, or a container that all instances of a class share.

        Other attributes of instances are not known.
        """
        unknown = Opaque(f"attribute {name}", place, own=True)
        found = lookup(owner.cls, name)
        if not isinstance(found, Found) or any(
            isinstance(lookup(owner.cls, special), Found) for special in _MAKING
        ):
            return unknown
        bound = self.class_method(owner.cls, found.owner, name)
        if bound is not None:
            return bound
        method = self.method(owner.cls, name)
        if method is None:
            value = own_value(found.owner, name)
            if isinstance(value, Instance):
                self.special(value, "__get__", (owner, owner.cls), frame, place.line, run=False)
            if not isinstance(value, list | dict | set) or self._makes_own(owner.cls, name):
                return unknown
            if self._may_be_given(owner.cls, name):
                # What is done to it is done to what the class has, or not.
                self.containers.lose(value, unknown)
                return unknown
            return value
        if any(isinstance(node, f.Attr) or node in _DESCRIPTORS for node in method.decorators):
            self.lose_effects(method, (owner,), place)
            return unknown
        return structs.replace(method, bound=(owner,))

    def _perhaps_served(self, owner: Instance, name: str, frame: Frame, place: Place) -> None:
        """The ``__getattr__`` of a class of the tree may import, or raise, for an attribute.

        Which attributes an instance has itself is not known, so whether it is asked is not either.
        """
        hook = self.method(owner.cls, "__getattr__")
        if hook is None or name.startswith("__") or isinstance(lookup(owner.cls, name), Found):
            return
        if self.summary(hook).harmless:
            return
        self.lose_effects(hook, (owner, name), place)
        reason = f"what {owner.cls.qualname}.__getattr__ does for {name} is not followed"
        why = Undecided(reason, place, name)
        self.open_condition(why, frame)
        bases = ("?", "Exception", "BaseException")
        frame.doubt(Doubt(Error("Exception", "…", bases, (place,)), why))

    def _makes_own(self, cls: ClassValue, name: str) -> bool:
        """Whether ``__init__`` gives each instance an attribute of its own, by its text."""
        maker = self.method(cls, "__init__")
        facts = self.function_facts(maker) if maker is not None else None
        return facts is not None and stores_on_self(facts, name)

    def _may_be_given(self, cls: ClassValue, name: str) -> bool:
        """Whether an instance may have got an attribute: by a method's text, or from outside."""
        for member in linearise(cls):
            if not isinstance(member, ClassValue):
                continue
            if member.given is not None and name in member.given:
                return True
            for method in chain(*self.program.texts.methods.of(member.facts).values()):
                if stores_on_self(self.function_facts(Function(member.module, method, ())), name):
                    return True
        return False

    def _platform_attribute(self, name: str, place: Place) -> Value:
        value = self.platform.attribute(name)
        if isinstance(value, Undecided):
            return PlatformMethod(name)
        return value

    def _each(
        self,
        options: Iterable[tuple[Guard, Value]],
        frame: Frame,
        function: Callable[[Value], Value],
    ) -> Value:
        """Apply ``function`` to each option; where it raises on some, a doubt remains."""
        results: list[tuple[Guard, Value]] = []
        errors: list[tuple[Guard, PythonError]] = []
        for guard, option in options:
            try:
                results.append((guard, function(option)))
            except PythonError as error:
                errors.append((guard, error))
        failing = errors if results else errors[1:]
        for guard, raised in failing:
            why = Undecided("one of several values", guard.where, str(guard), "", guard.own)
            frame.doubt(Doubt(raised.error, why))
        if not results:
            raise errors[0][1]
        return join(results)

    def class_method(self, cls: ClassValue, owner: ClassValue, name: str) -> Function | None:
        """A class or static method that the body of ``owner`` defines once and plainly.

        It is bound to ``cls``.
        """
        found = self.program.texts.methods.of(owner.facts).get(name, ())
        if len(found) != 1:
            return None
        outermost = found[0].decorators[0] if found[0].decorators else None
        last = outermost.id if isinstance(outermost, f.Name) else ""
        if last not in ("classmethod", "staticmethod"):
            return None
        bound = (cls,) if last == "classmethod" else ()
        prefix = f"{owner.qualname}."
        decorators, scopes = found[0].decorators[1:], owner.scopes
        return Function(owner.module, found[0], decorators, scopes, bound, prefix)


def _not_bound(name: str, frame: Frame, line: int) -> Error:
    """The ``NameError`` of a name that nothing has bound, or not yet."""
    if name in frame.local and name not in frame.shared:
        message = f"cannot access local variable {name!r} where it is not associated with a value"
        return builtin_error("UnboundLocalError", message, frame.place(line))
    return builtin_error("NameError", f"name {name!r} is not defined", frame.place(line))


def _lacking(value: object, name: str, place: Place) -> Error:
    """The ``AttributeError`` of a plain value."""
    message = f"{type(value).__name__!r} object has no attribute {name!r}"
    return builtin_error("AttributeError", message, place)


def no_attribute(cls: ClassValue, name: str, place: Place) -> Error:
    """The ``AttributeError`` of a class that lacks an attribute."""
    message = f"type object {cls.facts.name!r} has no attribute {name!r}"
    return builtin_error("AttributeError", message, place)
