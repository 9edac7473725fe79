"""What each part of the evaluation needs of the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from auditor import facts as f
from auditor.evaluation.containers import Containers
from auditor.evaluation.frame import Frame
from auditor.evaluation.readings import Readings, Summary
from auditor.platforms import Platform
from auditor.values import (
    ClassValue,
    Closure,
    Function,
    Guard,
    ModuleValue,
    Place,
    Trace,
    Undecided,
    Value,
)

if TYPE_CHECKING:
    from auditor.evaluation.import_statements import Program

#: Open conditions about objects of the tree that one call at top level is followed through, and
#: that one is whose result is asked for at once: a module's ``__getattr__``, a class decorator.
MAX_OWN_FORKS = 4
MAX_OWN_FORKS_ASKED = 64


class Machine(ABC):
    """One process on one platform, as its parts see each other."""

    platform: Platform

    #: The files of the tree as modules.
    program: Program

    #: The module that holds ``current_platform``, and its name there.
    platform_module: str
    platform_name: str

    #: Whether every import is followed at once, as Python does.
    eager: bool

    #: How many statements have been run.
    steps: int = 0

    #: Above zero while a condition is asked for as in a process that sets no variable.
    bare_environment: int = 0

    #: How often something was asked that such a process might answer otherwise.
    environment_asked: int = 0

    #: The branches of open conditions that are being followed, in the whole process.
    open_guards: tuple[Guard, ...] = ()

    #: What is known of lists, dicts and sets that are changed.
    containers: Containers
    #: Modules by the identity of their namespace.
    namespaces: dict[int, ModuleValue]
    #: What was read off functions so far.
    readings: Readings
    #: Open conditions that are settled on the branch that is being followed.
    known: dict[str, bool]
    #: Conditions that stayed open, by their place and text.
    open_conditions: dict[tuple[Place, str], Undecided]

    @abstractmethod
    def module_attribute(self, module: ModuleValue, name: str, place: Place, frame: Frame) -> Value:
        """``module.name``, by Python's rules for modules (PEP 562 included)."""

    @abstractmethod
    def foreign_attribute(self, name: str) -> Value:
        """The value of a dotted name outside the tree."""

    @abstractmethod
    def call(self, func: Value, call: f.Call, frame: Frame, line: int) -> Value:
        """The value of a call whose function is evaluated already."""

    @abstractmethod
    def invoke(
        self, function: Function, args: tuple[Value, ...], keywords: tuple[tuple[str, Value], ...],
        frame: Frame, place: Place, text: str, trace: list[Trace] | None = None, *,
        effects: bool = True, forks: int = MAX_OWN_FORKS,
    ) -> Value:  # fmt: skip
        """Call a function of the tree and give what it returns."""

    @abstractmethod
    def force(self, value: Value, frame: Frame) -> Value:
        """The value behind a pending call or a deferred name; any other value as it is."""

    @abstractmethod
    def open_condition(self, why: Undecided, frame: Frame) -> None:
        """Take note of a condition that stayed open."""

    @abstractmethod
    def import_module(self, name: str, frame: Frame, place: Place) -> Value:
        """Import ``name`` with its parents, and give the last module."""

    @abstractmethod
    def bind_import(self, stmt: f.Import, frame: Frame) -> None:
        """Run an ``import`` statement."""

    @abstractmethod
    def bind_import_from(self, stmt: f.ImportFrom, frame: Frame) -> None:
        """Run a ``from … import`` statement."""

    @abstractmethod
    def store_item(self, owner: Value, index: Value, value: Value, frame: Frame, line: int) -> None:
        """``owner[index] = value``."""

    @abstractmethod
    def delete_item(self, owner: Value, index: Value, frame: Frame, line: int) -> None:
        """``del owner[index]``."""

    @abstractmethod
    def put_in(self, name: str, value: Value, place: Place) -> None:
        """Set an entry of ``sys.modules``, or take it out (UNBOUND)."""

    @abstractmethod
    def find(self, name: str, place: Place) -> bool | Undecided:
        """Whether a module can be found, without importing it."""

    @abstractmethod
    def is_loaded(self, name: str) -> bool | Undecided:
        """Whether ``sys.modules`` has a module on the branch that is followed."""

    @abstractmethod
    def loaded(self, name: str) -> Value:
        """The entry of ``sys.modules``, or UNBOUND."""

    @abstractmethod
    def entry(self, name: str) -> Value:
        """The entry of ``sys.modules`` where there is one, which may not be known."""

    @abstractmethod
    def function_facts(self, function: Function) -> f.FunctionFacts | f.Unparsed:
        """The body of a function of the tree."""

    @abstractmethod
    def lose_effects(self, function: Function, args: tuple[Value, ...], place: Place) -> None:
        """Nothing is known any more of what a call could have changed."""

    @abstractmethod
    def looked_through(self, module: ModuleValue) -> None:
        """Take note that all names of a module were looked at at once."""

    @abstractmethod
    def asked_by_text(self, module: ModuleValue, name: str) -> None:
        """Take note that code of a module asks for an attribute by a text (``getattr``)."""

    @abstractmethod
    def installed_release(self, name: str, place: Place) -> Value:
        """The version of a distribution, up to what the tree requires of it."""

    @abstractmethod
    def comprehension(self, node: f.Comprehension, frame: Frame, line: int) -> Value:
        """The list, set or dict of a comprehension; what a generator expression gives."""

    @abstractmethod
    def evaluate(self, node: f.Expr, frame: Frame, line: int) -> Value:
        """The value of an expression."""

    @abstractmethod
    def is_platform(self, module: ModuleValue, name: str) -> bool:
        """Whether ``module.name`` is ``current_platform``."""

    @abstractmethod
    def exists_outside(self, name: str) -> bool:
        """Whether a module outside the tree surely exists."""

    @abstractmethod
    def comes_with_tree(self, name: str) -> bool:
        """Whether a dotted name belongs to the audited package, a build's extensions included."""

    @abstractmethod
    def method(self, cls: ClassValue, name: str) -> Function | None:
        """A method as the class body that provides it defines it, where that is plain."""

    @abstractmethod
    def summary(self, function: Function) -> Summary:
        """What calling a function can do besides giving a value."""

    @abstractmethod
    def special(
        self, owner: Value, name: str, args: tuple[Value, ...], frame: Frame, line: int, *,
        run: bool = True,
    ) -> Value:  # fmt: skip
        """What a special method of the tree gives, or UNBOUND where there is none."""

    @abstractmethod
    def only_changes(self, decorator: Value) -> bool:
        """Whether a class decorator surely does no more than change the class."""

    @abstractmethod
    def apply(self, closure: Closure, args: tuple[Value, ...], frame: Frame) -> Value:
        """Call a lambda."""

    @abstractmethod
    def arguments(
        self, function: Function, facts: f.FunctionFacts, args: tuple[Value, ...],
        keywords: tuple[tuple[str, Value], ...], frame: Frame, place: Place,
    ) -> dict[str, Value]:  # fmt: skip
        """The parameters' values, or the ``TypeError`` of a call that does not fit."""

    @abstractmethod
    def call_frame(self, function: Function, scope: dict[str, Value], frame: Frame) -> Frame:
        """Where the body of a function runs that is called from ``frame``."""

    @abstractmethod
    def fits(
        self, function: Function, args: tuple[Value, ...], keywords: Iterable[tuple[str, Value]]
    ) -> bool:
        """Whether a call surely fits the signature."""

    @abstractmethod
    def forget(
        self, owner: Value, reason: str, frame: Frame, line: int, *, own: bool = False
    ) -> None:
        """What is in a container is not known any more, by whatever name it is read."""

    @abstractmethod
    def block(self, frame: Frame, body: Iterable[f.Stmt]) -> None:
        """Run statements in order."""
