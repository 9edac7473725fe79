"""The values that an import run computes with.

Python's own constants and containers stand for themselves; everything else is one of the classes
here. What cannot be known is a value too: an :class:`Opaque` is some object nobody looked into,
an :class:`Either` is one of several values by a condition that stayed open, and asking for the
truth of either gives :class:`Undecided`, which refuses to be used as a ``bool``.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec
from msgspec.structs import replace

if TYPE_CHECKING:
    from packaging.version import Version as PackageVersion

    from auditor.facts import Class, Func, Lambda, ModuleFacts, Stmt

#: Any value of the run: a Python constant or container, or a class of this module.
Value = Any


class Place(msgspec.Struct, frozen=True):
    """A line of a file of the tree."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Undecided(msgspec.Struct, frozen=True):
    """A condition that could not be evaluated: why, where, and its source text.

    ``key`` names the condition itself, wherever it is asked (``installed:triton``); a leading
    ``!`` means its opposite. Empty where the condition has no name of its own. ``own`` says that
    it asks about objects of the tree itself, and not about where the process runs.
    """

    reason: str
    where: Place | None = None
    text: str = ""
    key: str = ""
    own: bool = False

    def __bool__(self) -> NoReturn:
        raise TypeError(f"undecided condition used as a bool: {self.reason}")


class Unbound(msgspec.Struct, frozen=True):
    """What a name is on a branch that does not bind it."""


UNBOUND = Unbound()


class Opaque(msgspec.Struct, frozen=True, eq=False):
    """An object that exists, and that nobody looked into; ``key`` as for :class:`Undecided`.

    ``truth`` is its truth where that alone is known (``unknown or True``). ``own`` as for
    :class:`Undecided`. ``usual`` is the value in a process that sets no environment variable.
    ``alias`` is the class that ``Class[T]`` stands for, as a base and where it is called. ``like``
    is an object of the same type, where that is known.
    """

    reason: str
    where: Place | None = None
    text: str = ""
    key: str = ""
    truth: bool | None = None
    own: bool = False
    usual: Any = UNBOUND
    alias: Any = UNBOUND
    like: Any = UNBOUND

    def why(self) -> Undecided:
        """The condition that is open where this is asked for its truth."""
        return Undecided(self.reason, self.where, self.text, self.key, self.own)


class Foreign(msgspec.Struct, frozen=True):
    """A module, class or function outside the tree, by its dotted name (``torch.nn.Module``)."""

    name: str


class Builtin(msgspec.Struct, frozen=True):
    """A name of Python's ``builtins``."""

    name: str


class PlatformObject(msgspec.Struct, frozen=True):
    """``current_platform``."""


class PlatformMethod(msgspec.Struct, frozen=True):
    """A bound method of ``current_platform``."""

    name: str


class Version(msgspec.Struct, frozen=True):
    """A version known only up to a range, such as ``sys.version_info``: the releases possible."""

    possible: tuple[tuple[int, ...], ...]


class Release(msgspec.Struct, frozen=True):
    """The version of an installed distribution, known only up to what the tree requires.

    ``lowest`` and ``highest`` bound it (PEP 440 versions; None where nothing does); ``below`` says
    that ``highest`` itself is excluded.
    """

    name: str
    lowest: PackageVersion | None
    highest: PackageVersion | None
    below: bool


class Guard(msgspec.Struct, frozen=True):
    """One condition on the way to a statement: its place, text, and how it came out.

    ``outcome`` is None where the condition is undecided and the branch is one of two followed;
    ``negated`` then says which. ``usual`` is whether this is the branch of a process in whose
    environment no variable is set; None where the condition does not come down to that. ``own``
    as for :class:`Undecided`.
    """

    where: Place
    text: str
    outcome: bool | None
    negated: bool = False
    usual: bool | None = None
    key: str = ""
    own: bool = False

    @property
    def identity(self) -> str:
        """What tells this condition from others; the same for both of its branches."""
        return self.key or f"{self.where.path}:{self.where.line}:{self.text}"

    def __str__(self) -> str:
        return f"not ({self.text})" if self.negated else self.text


class Either(msgspec.Struct, frozen=True, eq=False):
    """One of several values; each option has the open condition under which it is the one."""

    options: tuple[tuple[Guard, Value], ...]

    def values(self) -> Iterator[Value]:
        """The values, without their conditions."""
        return (value for _, value in self.options)


#: Where a name of a module got its value: the statement, and the conditions above it.
class Origin(msgspec.Struct, frozen=True, eq=False):
    """The statement that bound a name, and the conditions that led to it."""

    stmt: Stmt | None
    line: int
    guards: tuple[Guard, ...]
    trace: tuple[Trace, ...] = ()


class Trace(msgspec.Struct, frozen=True, eq=False):
    """A step inside a function that was called while loading (a module's ``__getattr__``)."""

    kind: str
    where: Place
    note: str = ""


class ModuleValue(msgspec.Struct, eq=False):
    """A module of the tree, loaded or half loaded.

    Attributes:
        names: its namespace.
        origins: for each name, the statement that bound it.
        state: ``running`` while its body runs, then ``loaded`` or ``failed``.
        doubts: exceptions that loading it may raise, by a condition that stayed open.
        wild: a star import brought names that are not known.
        under: branches of open conditions in which alone it was imported so far.
    """

    name: str
    path: str
    is_package: bool
    facts: ModuleFacts
    names: dict[str, Value] = msgspec.field(default_factory=dict)
    origins: dict[str, Origin] = msgspec.field(default_factory=dict)
    state: str = "running"
    doubts: Doubts = msgspec.field(default_factory=lambda: Doubts())
    wild: Opaque | None = None
    importer: Place | None = None
    under: tuple[Guard, ...] = ()

    @property
    def package(self) -> str:
        """The package that relative imports in this module start from (PEP 328)."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


class ClassValue(msgspec.Struct, eq=False):
    """A class of the tree.

    ``bases`` are values: other classes, :class:`Foreign`, or what could not be resolved.
    ``extra`` are attributes set from outside the body (``Class.attr = …``, ``setattr``); ``wild``
    says why it may have more than are known, and ``under`` are the branches of open conditions in
    which alone it exists. ``hooked`` says that making a subclass runs ``__init_subclass__``, and
    ``followed`` that all its decorators were. ``lines`` are where its body binds names. ``scopes``
    are as for :class:`Function`, and ``given`` the names that instances were given from outside.
    """

    module: ModuleValue
    qualname: str
    facts: Class
    bases: tuple[Value, ...]
    decorators: tuple[Value, ...]
    namespace: dict[str, Value] | None = None
    extra: dict[str, tuple[Value, Place]] = msgspec.field(default_factory=dict)
    mro: Any = None
    wild: Opaque | None = None
    under: tuple[Guard, ...] = ()
    metaclass: Any = None
    hooked: bool = False
    followed: bool = False
    unfinished: Callable[[], object] | None = None
    lines: dict[str, int] | None = None
    scopes: tuple[dict[str, Value], ...] = ()
    given: set[str] | None = None

    def finish(self) -> None:
        """Run what was put off until something looks into the class: its decorators."""
        todo, self.unfinished = self.unfinished, None
        if todo is not None:
            todo()

    @property
    def dotted(self) -> str:
        """``module.Class``."""
        return f"{self.module.name}.{self.qualname}"


class Function(msgspec.Struct, frozen=True, eq=False):
    """A function of the tree.

    ``scopes`` hold the names of enclosing calls, innermost first; ``bound`` is the class of a
    class method. ``prefix`` stands before the name in the qualified name. ``defaults`` are the
    values of defaults that were evaluated by ``def``.
    """

    module: ModuleValue
    facts: Func
    decorators: tuple[Value, ...]
    scopes: tuple[dict[str, Value], ...] = ()
    bound: tuple[Value, ...] = ()
    prefix: str = ""
    defaults: tuple[tuple[str, Value], ...] = ()


class Closure(msgspec.Struct, frozen=True, eq=False):
    """A lambda; ``scopes`` as for :class:`Function`."""

    module: ModuleValue
    facts: Lambda
    scopes: tuple[dict[str, Value], ...] = ()


class Method(msgspec.Struct, frozen=True, eq=False):
    """An attribute of a plain Python value that is about to be called (``"a".lower``)."""

    owner: Value
    name: str


class Iterated(msgspec.Struct, frozen=True, eq=False):
    """An iterator, or a view of a dict: what it gives in the statement ``step`` that makes it.

    ``like`` is an empty one of its type, and ``over`` the dict of a view. ``unordered`` says that
    the order of the items is that of a set, which is another in each process.
    """

    items: list[Value]
    step: int
    like: object
    over: Value = UNBOUND
    unordered: bool = False


class Instance(msgspec.Struct, frozen=True, eq=False):
    """The result of calling a class of the tree."""

    cls: ClassValue
    where: Place
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()


class Spec(msgspec.Struct, frozen=True, eq=False):
    """The result of ``find_spec`` for a module that exists."""

    name: str


class Suppress(msgspec.Struct, frozen=True, eq=False):
    """``contextlib.suppress(types)``."""

    types: tuple[Value, ...]


class Context(msgspec.Struct, frozen=True, eq=False):
    """A call of a generator function of the tree under ``contextlib.contextmanager``."""

    function: Function
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]


class Read(NamedTuple):
    """A name that was read in a namespace, and its value then."""

    names: dict[str, Value]
    name: str
    value: Value


class Pending(msgspec.Struct, eq=False):
    """A call of a function of the tree, run only when its result is asked for.

    ``step`` is the statement of the run that calls, and ``reads`` are the names that its result
    rests on.
    """

    function: Function
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    where: Place
    text: str
    step: int = 0
    reads: tuple[Read, ...] = ()
    result: Value = UNBOUND


class Deferred(msgspec.Struct, frozen=True, eq=False):
    """A name of a module that is looked up only when asked for (when the run is skipped)."""

    module: str
    attr: str | None
    where: Place


#: How the keys of conditions begin that code outside the tree is as the tree takes it to be.
ASSUMED = "outside:"


# --- exceptions of the run -----------------------------------------------------------------------


class Error(msgspec.Struct, frozen=True, eq=False):
    """An exception that Python would raise.

    Attributes:
        type: the exception class's name.
        message: its message, or what of it could be evaluated.
        bases: names of the classes it is an instance of, itself first.
        chain: places from the innermost outwards: the raising statement, then the imports
            that led to it.
        guards: for each place of the chain, the conditions above it.
        fact: the platform fact that decided it (``triton is not installed on cpu: …``), or "".
        searching: for a ModuleNotFoundError, the module that was searched for.
        cls: the exception class, where it is one of the tree.
        exact: the message is known in full.
    """

    type: str
    message: str
    bases: tuple[str, ...]
    chain: tuple[Place, ...]
    fact: str = ""
    searching: str = ""
    guards: tuple[tuple[Guard, ...], ...] = ()
    cls: ClassValue | None = None
    exact: bool = False

    def seen_from(self, place: Place, guards: tuple[Guard, ...] = ()) -> Error:
        """The same exception one import further out, at ``place`` under ``guards``."""
        return replace(self, chain=(*self.chain, place), guards=(*self.guards, guards))


class Doubt(msgspec.Struct, frozen=True, eq=False):
    """An exception that may be raised, if an open condition comes out so.

    ``unusual`` says that it is raised only where an environment variable is set.
    """

    error: Error
    condition: Undecided
    unusual: bool = False

    @property
    def assumed(self) -> bool:
        """Whether it is raised only where code outside the tree fails.

        That is taken not to happen, but where a handler says what happens then.
        """
        # With a ``!`` it is raised where that code does not fail.
        return self.condition.key.startswith(ASSUMED)


class Watch:
    """The namespace as it was when each doubt came up, for the handler that would run then."""

    __slots__ = ("_snapshot", "_states")

    def __init__(self, snapshot: Callable[[], dict[str, Value]]) -> None:
        self._snapshot = snapshot
        self._states: dict[tuple[str, Undecided], dict[str, Value]] = {}

    def note(self, key: tuple[str, Undecided]) -> None:
        """A doubt has come up."""
        self._states[key] = self._snapshot()

    def state(self, doubt: Doubt) -> dict[str, Value]:
        """The namespace when ``doubt`` came up."""
        return self._states[doubt.error.type, doubt.condition]


class Doubts:
    """Doubts in the order in which they came up, one for each exception type and condition."""

    __slots__ = ("_by_key", "_watches")

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, Undecided], Doubt] = {}
        self._watches: list[Watch] = []

    def add(self, doubt: Doubt) -> None:
        """Take note of a doubt, once."""
        key = (doubt.error.type, doubt.condition)
        if key not in self._by_key:
            self._by_key[key] = doubt
            for watch in self._watches:
                watch.note(key)

    @contextmanager
    def watched(self, snapshot: Callable[[], dict[str, Value]]) -> Iterator[Watch]:
        """Keep, with each doubt that comes up, what ``snapshot`` gives at that moment."""
        watch = Watch(snapshot)
        self._watches.append(watch)
        try:
            yield watch
        finally:
            self._watches.remove(watch)

    def mark(self) -> int:
        """A position for :meth:`since`."""
        return len(self._by_key)

    def since(self, mark: int) -> list[Doubt]:
        """The doubts that came up after ``mark`` was taken."""
        return list(self._by_key.values())[mark:] if len(self._by_key) > mark else []

    def call_unusual(self, doubts: list[Doubt]) -> None:
        """Note that these arise only where an environment variable is set."""
        for doubt in doubts:
            key = (doubt.error.type, doubt.condition)
            self._by_key[key] = replace(doubt, unusual=True)

    def drop(self, doubts: list[Doubt]) -> None:
        """Forget doubts that something has dealt with."""
        for doubt in doubts:
            self._by_key.pop((doubt.error.type, doubt.condition), None)

    def __iter__(self) -> Iterator[Doubt]:
        return iter(list(self._by_key.values()))

    def __len__(self) -> int:
        return len(self._by_key)


class PythonError(Exception):
    """Carries an :class:`Error` up through the run, as Python would."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.type, error.message)
        self.error = error


def builtin_error(
    type_: str,
    message: str,
    where: Place,
    *,
    fact: str = "",
    searching: str = "",
    guards: tuple[Guard, ...] = (),
) -> Error:
    """An exception of one of Python's built-in classes, raised at ``where`` under ``guards``."""
    cls = getattr(builtins, type_)
    bases = tuple(base.__name__ for base in cls.__mro__)
    return Error(type_, message, bases, (where,), fact, searching, (guards,))
