"""What is known of a platform, and what a user adds to it for one run.

A platform answers three kinds of question: a predicate or attribute of ``current_platform``,
whether a module outside the tree exists there, and an environment variable. Each answer is
known, or :class:`~auditor.values.Undecided` with its reason; nothing defaults to "no".
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from auditor.errors import UsageError
from auditor.facts import Unparsed
from auditor.ruleset.distributions import ModuleRule, generated, optional_modules
from auditor.ruleset.platforms import PlatformRule
from auditor.ruleset.target import target
from auditor.values import Place, Undecided, Value

_Item = TypeVar("_Item")
#: The options that stand in the place of a rule's reason.
_OPTIONS = ("--with", "--without")
_WORDS: dict[str, Value] = {"true": True, "false": False, "none": None}


class Existence(msgspec.Struct, frozen=True):
    """Whether a module outside the tree exists, and the fact that says so."""

    exists: bool | Undecided
    fact: str


class Installed(msgspec.Struct, frozen=True):
    """Modules that exist and modules that are missing, each with the line that says so.

    ``unread_build`` is why the file that says which extension modules are built cannot be read.
    """

    present: Mapping[str, str]
    missing: Mapping[str, str]
    versions: Mapping[str, str]
    unread_build: Unparsed | None = None


class Watched(dict[str, _Item]):
    """A dict that knows which of its keys were asked for and found."""

    def __init__(self, items: Mapping[str, _Item] | None = None) -> None:
        super().__init__(items or {})
        self.used: set[str] = set()

    def __getitem__(self, key: str) -> _Item:
        value = super().__getitem__(key)
        self.used.add(key)
        return value


class Platform(msgspec.Struct, frozen=True):
    """A platform's facts, with the user's ``--assume``, ``--env``, ``--with`` and ``--without``.

    Attributes:
        name: as in ``rules/platforms/``.
        attributes: plain attributes of ``current_platform``.
        predicates: results of its methods without arguments.
        modules: rules for modules outside the tree that count before what the tree says.
        fallback: rules that count where the tree says nothing.
        constants: values of dotted names outside the tree (``torch.version.hip``).
        assumed: source text or name of a condition to its value.
        environment: variables that the user set.
        present: modules that the tree says are installed, each with the line that says so.
        missing: modules that the tree says are not.
        versions: what the tree requires of the version of a distribution.
        unread_build: why it is not known which extension modules are built.
        consulted: module rules that decided something, by reason and name.
        everything: every module outside the tree exists (for a build, which has its tools).
        asked: modules outside the tree and the standard library that were asked for.
        failing: modules outside the tree that exist and cannot be imported: the type and the
            message of the exception.
    """

    name: str
    attributes: Mapping[str, str]
    predicates: Mapping[str, bool]
    modules: tuple[ModuleRule, ...] = ()
    fallback: tuple[ModuleRule, ...] = ()
    constants: Mapping[str, Value] = msgspec.field(default_factory=dict)
    assumed: Watched[Value] = msgspec.field(default_factory=Watched)
    environment: Watched[str] = msgspec.field(default_factory=Watched)
    present: Mapping[str, str] = msgspec.field(default_factory=dict)
    missing: Mapping[str, str] = msgspec.field(default_factory=dict)
    versions: Mapping[str, str] = msgspec.field(default_factory=dict)
    everything: bool = False
    unread_build: Unparsed | None = None
    consulted: set[tuple[str, str]] = msgspec.field(default_factory=set)
    asked: set[str] = msgspec.field(default_factory=set)
    failing: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)

    def options_used(self) -> frozenset[tuple[str, str]]:
        """The user's options that decided something: each with its name or module."""
        return frozenset(
            {
                *(("--assume", text) for text in self.assumed.used),
                *(("--env", name) for name in self.environment.used),
                *(rule for rule in self.consulted if rule[0] in _OPTIONS),
            }
        )

    def attribute(self, name: str) -> Value:
        """The value of ``current_platform.<name>``, or Undecided.

        A method gives Undecided here too; :meth:`call` asks for its result.
        """
        if name in self.assumed:
            return self.assumed[name]
        if name in self.attributes:
            return self.attributes[name]
        return Undecided(f"current_platform.{name} is not known on {self.name}")

    def call(self, name: str, has_arguments: bool) -> Value:
        """The result of ``current_platform.<name>(…)``, or Undecided."""
        if name in self.assumed:
            return self.assumed[name]
        if name in self.predicates and not has_arguments:
            return self.predicates[name]
        return Undecided(
            f"current_platform.{name}() depends on the device; --assume {name}=VALUE decides it"
        )

    def existence(self, module: str) -> Existence:
        """Whether ``module`` (dotted, outside the tree) can be found on this platform."""
        if self.everything or module.partition(".")[0] in sys.stdlib_module_names:
            return Existence(True, "Python's standard library")
        self.asked.add(module)
        # A rule for a submodule is nearer than what is known of its package.
        for name in _prefixes(module):
            for rule in self.modules:
                if name in rule.names:
                    self.consulted.add((rule.reason, name))
                    by_option = rule.reason in _OPTIONS
                    return Existence(
                        rule.exist, f"{rule.reason} {name}" if by_option else rule.reason
                    )
            if name in self.present:
                return Existence(True, self.present[name])
            if name in self.missing:
                return Existence(False, self.missing[name])
            for rule in self.fallback:
                if name in rule.names:
                    return Existence(rule.exist, rule.reason)
        return self._unlisted(module)

    def failure(self, module: str) -> tuple[str, str, str] | None:
        """The type and message of what importing ``module`` raises, and the module that does."""
        raising = (name for name in reversed([*_prefixes(module)]) if name in self.failing)
        return next(((*self.failing[name], name) for name in raising), None)

    def _unlisted(self, module: str) -> Existence:
        root = module.partition(".")[0]
        if not all(part.isidentifier() for part in module.split(".")):
            return Existence(False, f"{module!r} is not the name of a module")
        reason = f"nothing says whether {root} is installed on {self.name}"
        if root == target().package.name and self.unread_build is not None:
            line = self.unread_build.line
            fact = f"setup.py, which says whether {module} is built, {self.unread_build.reason}"
            decides = f"{fact}; --with or --without {module} decides it"
            return Existence(
                Undecided(decides, Place("setup.py", line), key=f"installed:{module}"), fact
            )
        if root == target().package.name:
            return Existence(
                False, f"the tree has no {module}, and nothing builds it on {self.name}"
            )
        decided_by = f"{reason}; --with {root} or --without {root} decides it"
        why = Undecided(decided_by, key=f"installed:{root}")
        return Existence(why, reason)


def _prefixes(module: str) -> Iterator[str]:
    """``a.b.c``, ``a.b``, ``a``."""
    while module:
        yield module
        module = module.rpartition(".")[0]


def build(
    rule: PlatformRule,
    assume: Mapping[str, str],
    environment: Mapping[str, str],
    extra: tuple[ModuleRule, ...] = (),
    installed: Installed | None = None,
    failing: Mapping[str, tuple[str, str]] | None = None,
) -> Platform:
    """The platform of ``rule`` as the user's options change it.

    ``extra`` module rules (the user's own) come before the rule's; ``installed`` is what the
    tree says, and comes last. ``failing`` is as in :class:`Platform`.
    """
    return Platform(
        name=rule.name,
        attributes=rule.attributes,
        predicates=rule.predicates,
        modules=(*extra, *rule.modules, *generated()),
        fallback=(*rule.fallback, *optional_modules()),
        constants={name: literal(value) for name, value in rule.constants.items()},
        assumed=Watched({normal_text(name): literal(value) for name, value in assume.items()}),
        environment=Watched(environment),
        present=installed.present if installed else {},
        missing=installed.missing if installed else {},
        versions=installed.versions if installed else {},
        unread_build=installed.unread_build if installed else None,
        failing=failing or {},
    )


def literal(text: str) -> Value:
    """The value of an option: a Python literal, ``true``/``false``, or else the string itself."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def normal_text(text: str) -> str:
    """Source text as ``--assume`` compares it: parsed and written again, so spacing is free.

    Raises:
        UsageError: the text is not an expression.
    """
    try:
        return ast.unparse(ast.parse(text.strip(), mode="eval"))
    except SyntaxError as error:
        raise UsageError(
            f"{text!r} is not a Python expression: {error.msg}",
            where="--assume",
            next_step="Give NAME=VALUE, where NAME is a name or the text of a condition.",
        ) from error
