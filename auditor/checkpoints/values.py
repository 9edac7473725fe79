"""What the interpreter computes with: Python's own values, and these for all that is not data.

Constants and containers stand for themselves, so that Python itself says what an operation gives
and how it fails. What is not known refuses every operation that would need to know it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NoReturn

from auditor.contracts.names import Ref
from auditor.values import Place

#: Any value of the run.
Value = Any


class CannotFollow(BaseException):
    """The run ends here without an answer: why, and at which line of the tree.

    Not an ``Exception``, so that no handler of the code that is run catches it.
    """

    def __init__(self, reason: str, where: Place | None = None) -> None:
        self.reason = reason
        self.where = where
        super().__init__(str(self))

    def __str__(self) -> str:
        return f"{self.reason} ({self.where})" if self.where else self.reason


class HeldBack(CannotFollow):
    """A value that Transformers checks or rewrites, as each of its releases sees fit."""


class Raised(BaseException):
    """The code that is run raised ``error``, at this line of the tree."""

    def __init__(self, error: BaseException, where: Place | None = None) -> None:
        self.error = error
        self.where = where
        super().__init__(error)

    @property
    def type(self) -> str:
        """The name of the exception's class."""
        return type(self.error).__name__

    @property
    def message(self) -> str:
        """What the exception says."""
        return str(self.error)

    @property
    def from_library(self) -> bool:
        """Whether a library outside the tree raised it."""
        return isinstance(self.error, FromLibrary)


class FromLibrary:
    """What marks the exceptions of a library outside the tree."""


class UnknownModelType(FromLibrary):
    """What marks the exception for a model type that an installed Transformers does not know."""


def library_error(name: str, message: str, mark: type[FromLibrary] = FromLibrary) -> BaseException:
    """An exception of a library, whose class may be unknown here, by its name."""
    found = getattr(builtins, name, None)
    base = found if isinstance(found, type) and issubclass(found, Exception) else ValueError
    said = {"__str__": lambda _: message}  # a KeyError would quote it
    made: BaseException = type(name, (mark, base), said)(message)
    return made


class Unknown:
    """A value that nobody can say: what a user gives, or what code outside the tree computes.

    Args:
        reason: why it is not known, as the end of a sentence.
        where: the line of the tree at which that was seen.
        given: whether it is known not to be None.
    """

    __slots__ = ("given", "reason", "where")

    def __init__(self, reason: str, where: Place | None = None, *, given: bool = False) -> None:
        self.reason = reason
        self.where = where
        self.given = given

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise CannotFollow(self.reason, self.where)

    def __deepcopy__(self, memo: object) -> Unknown:
        return self

    def __copy__(self) -> Unknown:
        return self

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __len__ = __iter__ = __contains__ = __getitem__ = __index__ = __int__ = __float__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __or__ = __ror__ = _refuse
    __and__ = __rand__ = __xor__ = __rxor__ = __neg__ = __str__ = __repr__ = _refuse
    __format__ = __call__ = __hash__ = __pow__ = __rpow__ = _refuse


@dataclass(frozen=True, slots=True)
class ModuleValue:
    """A module of the tree."""

    name: str


class External(Unknown):
    """Something that the tree does not define, by its dotted name."""

    __slots__ = ("dotted",)

    def __init__(self, dotted: str) -> None:
        super().__init__(f"`{dotted}` is not in the tree", given=True)
        self.dotted = dotted

    @property
    def name(self) -> str:
        """Its own name."""
        return self.dotted.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class ClassValue:
    """A class of the tree."""

    ref: Ref

    @property
    def name(self) -> str:
        """Its own name."""
        return self.ref.name


@dataclass(eq=False, slots=True)
class Frame:
    """One call, or the top level of a module where ``outer`` and ``node`` are None.

    ``names`` holds what is bound so far; ``local`` are the names that belong to this scope.
    """

    module: str
    names: dict[str, Value]
    local: frozenset[str] = frozenset()
    outer: Frame | None = None
    owner: Ref | None = None
    first: str = ""
    lenient: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the tree, with the frame that it was defined in."""

    node: ast.FunctionDef | ast.Lambda
    module: str
    owner: Ref | None = None
    outer: Frame | None = None

    @property
    def name(self) -> str:
        """Its own name."""
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A function with the values that come before its own arguments: a method, or a partial."""

    function: Value
    args: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Native:
    """A function outside the tree that the tool knows: it is given evaluated arguments.

    Where it is a function of ``python`` itself, what it raises is what the code raises.
    """

    name: str
    call: Callable[..., Value]
    python: bool = False


class Object:
    """An instance of a class of the tree, or of a configuration class outside it.

    Its own Python class bears the name of the class that it stands for, so that Python's messages
    about it are the right ones.
    """

    __slots__ = ("_attrs", "_cls")

    def __init__(self, cls: Value, attrs: dict[str, Value] | None = None) -> None:
        self._cls = cls
        self._attrs: dict[str, Value] = {} if attrs is None else attrs

    def _refuse(self, *_: object) -> NoReturn:
        raise CannotFollow(f"the text of a {type(self).__name__} is not computed")

    __str__ = __repr__ = __format__ = _refuse


class Config(Object):
    """A Transformers configuration (``transformers.PreTrainedConfig``)."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return False
        return bool(attrs_of(self) == attrs_of(other))

    def __iter__(self) -> Iterator[str]:
        raise CannotFollow("the attributes of a configuration are not listed")

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: dict[int, object]) -> Config:
        import copy

        made = type(self)(class_of(self))
        memo[id(self)] = made
        for key, value in attrs_of(self).items():
            attrs_of(made)[key] = copy.deepcopy(value, memo)
        return made

    def __copy__(self) -> Config:
        return type(self)(class_of(self), dict(attrs_of(self)))


class Partial(Object):
    """An object of which some attributes are known, and of the others that they exist.

    ``views`` are attributes that are computed from others whenever they are asked for.
    """

    __slots__ = ("reason", "views")

    def __init__(self, cls: Value, reason: str) -> None:
        super().__init__(cls)
        self.reason = reason
        self.views: Mapping[str, Callable[[], Value]] = {}

    def view(self, name: str) -> Value:
        """An attribute that is not held."""
        found = self.views.get(name)
        return Unknown(f"`{name}` of {self.reason} is not known") if found is None else found()


def attrs_of(value: Object) -> dict[str, Value]:
    """The attributes of an instance."""
    return value._attrs


def class_of(value: Object) -> Value:
    """The class that an instance was made of."""
    return value._cls


@cache
def python_class(name: str, config: bool) -> type[Object]:
    """A Python class of this name for instances of a class of the tree."""
    return type(name, (Config if config else Object,), {"__slots__": ()})


def instance(cls: Value, *, config: bool) -> Object:
    """A new instance of a class, without attributes."""
    return python_class(cls.name, config)(cls)
