"""The import run: a module's top level under a platform, and all that it imports.

:class:`ImportRun` is Python's import system (the ``importlib`` reference, PEP 420 and 562) over a
read-only tree. Modules of the tree are run statement by statement; a module outside it exists
exactly where the platform's facts say so. Nothing of the tree is imported or executed.
"""

from __future__ import annotations

from auditor import facts as f
from auditor.evaluation.containers import Containers
from auditor.evaluation.frame import Frame
from auditor.evaluation.import_statements import Conventions, Program
from auditor.evaluation.module_attributes import ModuleAttributes
from auditor.evaluation.readings import Readings
from auditor.platforms import Platform
from auditor.values import (
    ClassValue,
    Deferred,
    Doubt,
    Doubts,
    Function,
    ModuleValue,
    Opaque,
    Place,
    Trace,
    Undecided,
    Value,
)


class ImportRun(ModuleAttributes):
    """One process on one platform: ``sys.modules``, and what stayed open.

    Args:
        eager: follow every import at once, as Python does. Otherwise an import only binds, and
            the module behind a name is run when something asks for the name.
    """

    def __init__(
        self, program: Program, platform: Platform, conventions: Conventions, *, eager: bool = True
    ) -> None:
        # CPython finds attributes by their position as long as a class has fewer than thirty, and
        # all objects of it set the same ones: so all are set here, and those below are few.
        self.program = program
        self.platform = platform
        self.conventions = conventions
        self.platform_module, _, self.platform_name = conventions.current_platform.rpartition(".")
        self.eager = eager
        self.modules: dict[str, Value] = {}
        self.failed: dict[str, ModuleValue] = {}
        self.outcomes: dict[Place, bool] = {}
        self.run_again: set[str] = set()
        self.open_conditions: dict[tuple[Place, str], Undecided] = {}
        self.unparsed: dict[str, f.Unparsed] = {}
        self.unreadable: dict[str, Doubt] = {}
        self.paths_read: set[str] = set()
        self.known: dict[str, bool] = {}
        self.containers = Containers()
        self.readings = Readings()
        self.namespaces: dict[int, ModuleValue] = {}
        self._looking_up: set[Deferred] = set()
        self._foreign: dict[str, Value] = {}
        self._perhaps_failed = False
        self._nested = 0
        self.steps = 0
        self.running = 0
        self.own_forks = 0
        self.bare_environment = 0
        self.environment_asked = 0
        self.open_guards = ()
        self._outside = ModuleValue("", "", False, f.ModuleFacts(()))

    def load(self, name: str) -> Value:
        """Import a module as a process would.

        Raises:
            PythonError: what the import raises, with the chain of imports.
        """
        frame = self._outer()
        module = self.import_module(name, frame, Place("", 0))
        if isinstance(module, ModuleValue):
            for doubt in frame.doubts:
                module.doubts.add(doubt)
                self._perhaps_failed = True
        return module

    def get(self, module: Value, name: str, trace: list[Trace]) -> tuple[Value, Doubts]:
        """``getattr(module, name)``, the doubts it leaves, and the steps a ``__getattr__`` took.

        Raises:
            PythonError: what the lookup raises.
        """
        frame = self._outer()
        frame.trace = trace
        value = self.force(self.attribute(module, name, frame, 0), frame)
        return value, frame.doubts

    def forced(self, value: Value) -> tuple[Value, Doubts]:
        """The value behind a pending call or a deferred name, with the doubts that it leaves.

        Raises:
            PythonError: what looking it up raises.
        """
        frame = self._outer()
        return self.force(value, frame), frame.doubts

    def settle(self, cls: ClassValue) -> None:
        """Look up the bases of a class and of its bases that were deferred.

        Raises:
            PythonError: what importing a base, or putting the bases in order, raises.
        """
        frame = self._outer()
        self._settle_bases(cls, frame, (), set())
        self._check_order(cls, frame, cls.facts.line)

    def _settle_bases(
        self, cls: ClassValue, frame: Frame, below: tuple[ClassValue, ...], done: set[int]
    ) -> None:
        """Look the bases of ``cls`` up, then theirs; ``below`` are the classes asked for so far.

        With imports put off, a class can be met as a base of itself, which Python never allows.
        """
        if id(cls) in done:
            return
        done.add(id(cls))
        family = (*below, cls)
        where = Place(cls.module.path, cls.facts.line)
        circle = Opaque("a base that leads back to the class", where, cls.qualname)
        forced = tuple(self.force(base, frame) for base in cls.bases)
        bases = tuple(circle if base in family else base for base in forced)
        if bases != cls.bases:
            cls.bases, cls.mro = bases, None
        for base in bases:
            if isinstance(base, ClassValue):
                self._settle_bases(base, frame, family, done)

    def _outer(self) -> Frame:
        """Where a question from outside the tree is asked; nothing is bound there."""
        return Frame(self._outside, {})

    def extent(self) -> tuple[int, ...]:
        """How much the run has come across; the same as before where nothing was added to it."""
        return (
            len(self.open_conditions),
            len(self.paths_read),
            len(self.modules),
            len(self.unparsed),
            len(self.platform.options_used()),
        )

    def open_condition(self, why: Undecided, frame: Frame) -> None:
        """Take note of a condition that stayed open; what more is said of it later counts too."""
        self.note_condition(why)

    def note_condition(self, why: Undecided) -> None:
        """As :meth:`open_condition`, wherever it was met."""
        if why.where is not None:
            known = self.open_conditions.setdefault((why.where, why.text), why)
            if known is not why and why.reason.startswith(f"{known.reason}; "):
                self.open_conditions[why.where, why.text] = why

    def plugin_of(self, name: str) -> str:
        """The plugin that a module belongs to; none in a process without plugins."""
        return ""

    def function_facts(self, function: Function) -> f.FunctionFacts | f.Unparsed:
        """The body of a function of the tree."""
        self.paths_read.add(function.module.path)
        return self.program.function(function.module.path, function.facts)
