"""Calls that are not looked into: what they may have changed of what they were handed.

Only what ``rules/head.toml`` lists is taken to leave its arguments alone. Anything else may change
the tensors that it is handed, a part of the model with all that is in it, or the whole model.
"""

from __future__ import annotations

import ast
from abc import ABC
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec.structs import replace

from auditor.classes import Missing
from auditor.headpath.effects import changed_to
from auditor.headpath.expressions import Expressions
from auditor.headpath.state import State
from auditor.headpath.terms import (
    Apply,
    Changed,
    Constant,
    Global,
    Item,
    Operation,
    Part,
    Self,
    Stored,
    Term,
    Unknown,
    is_model_part,
    may_be_same,
    show,
)
from auditor.nodes import nodes_of
from auditor.values import ClassValue, Foreign, Place

#: Keywords by which a function is told to write into something, or handed one to call.
_WRITES = ("out", "inplace", "key", "default_factory")

#: Operators that hold their operands, where others compute something new.
_DISPLAYS = ("tuple", "list", "set", "dict", "*", "and", "or")

#: What has a meaning of its own in a glob.
_WILD = frozenset("*?[")


class Opaque(Expressions, ABC):
    """Knows what a call that is not looked into may change."""

    def after_call(
        self, function: str, touched: Iterable[Term], place: Place, state: State
    ) -> State:
        """The state after a call of something that may change what it is handed."""
        reason = f"{function}() may have changed what it was handed"
        why = Unknown(reason, str(place), place=place)
        for one in touched:
            state = self.disturbed(one, why, state)
        return state

    def disturbed(self, term: Term, why: Unknown, state: State) -> State:
        """The state after a value was handed to something that may change it."""
        match term:
            case Constant() | Global():
                return state
            case Self():
                return replace(state, lost=why)
            case Operation(name=name, operands=operands) if name in _DISPLAYS:
                for operand in operands:
                    state = self.disturbed(operand, why, state)
                return state
            case Apply(function=Global(name="dict"), keywords=keywords):
                for _, value in keywords:
                    state = self.disturbed(value, why, state)
                return state
            case Unknown():
                state = changed_to(state, term, why, why.place or Place("", 0), self._rule)
                return replace(state, lost=why)
            case Part(owner=owner, name=name) if self._is_method(owner, name):
                return self.disturbed(owner, why, state)
            case Part() | Item() if is_model_part(term):
                state = changed_to(state, term, why, why.place or Place("", 0), self._rule)
                return replace(state, stores={**state.stores, term: why})
            case _:
                return changed_to(state, term, why, why.place or Place("", 0), self._rule)

    def _is_method(self, owner: Term, name: str) -> bool:
        cls = self.class_of(owner)
        return (
            isinstance(cls, ClassValue)
            and not self.values_of(owner, name)
            and not isinstance(self.found(cls, name), Missing)
        )

    def as_used(self, term: Term, state: State) -> Term:
        """A part of the model as a whole: unknown where something in it was changed before."""
        if not is_model_part(term):
            return term
        if state.lost is not None:
            return state.lost
        for key, value in state.stores.items():
            inner = key.owner if isinstance(key, Part | Item) else None
            while isinstance(inner, Part | Item):
                if may_be_same(inner, term, isinstance(value, Changed | Stored)):
                    if isinstance(value, Unknown):
                        return value
                    where = key.place or Place("", 0)
                    reason = f"{show(key)} was set before {show(term)} is used"
                    return Unknown(reason, str(where), place=where)
                inner = inner.owner
        return term

    def is_pure_function(self, name: str, keywords: Mapping[str, Term]) -> bool:
        """Whether a function is known to leave what it is handed alone."""
        if any(keyword in keywords for keyword in _WRITES):
            return False
        return _matches(name, self._rule.pure_functions) or _matches(name, self._rule.silent_calls)

    def is_pure_method(self, name: str, keywords: Mapping[str, Term]) -> bool:
        """Whether a method is known to leave the object and its arguments alone."""
        return name in self._rule.pure_methods and not any(k in keywords for k in _WRITES)

    def converts(self, name: str, owner: Term, cls: ClassValue | Foreign | None) -> bool:
        """Whether a method gives a new tensor, but changes a module: the owner may be one."""
        return name in self._rule.conversions and is_model_part(owner) and not _is_tensor(cls)

    def is_chance(self, name: str) -> bool:
        """Whether a function need not give the same twice."""
        return _matches(name.rpartition(".")[2].lower(), self._rule.chance)

    def is_pure_module(self, module: Term, cls: ClassValue | Foreign | None, count: int) -> bool:
        """Whether calling a submodule leaves its input alone.

        A norm that is handed two tensors adds the second in place.
        """
        if self.is_plainly(cls, self._rule.norms):
            return count < 2
        return self.is_plainly(cls, self._rule.pure_modules) and not self._writes(module)

    def _writes(self, module: Term) -> bool:
        """Whether a module is built with an argument that makes it write into its input."""
        held = module.owner if isinstance(module, Item) else module
        values = self.values_of(held.owner, held.name) if isinstance(held, Part) else ()
        return any(
            keyword.arg is None or keyword.arg in _WRITES
            for value in values
            if value.call is not None
            for call in nodes_of(value.call)
            if isinstance(call, ast.Call)
            for keyword in call.keywords
        )


@lru_cache(maxsize=4096)
def _matches(name: str, globs: tuple[str, ...]) -> bool:
    """Whether a name fits one of the globs; the same few functions are called all over."""
    return name in globs or any(fnmatchcase(name, glob) for glob in _patterns(globs))


@lru_cache(maxsize=64)
def _patterns(globs: tuple[str, ...]) -> tuple[str, ...]:
    """Those that are more than a name: few, and each is compiled."""
    return tuple(glob for glob in globs if not _WILD.isdisjoint(glob))


def _is_tensor(cls: ClassValue | Foreign | None) -> bool:
    """Whether a class outside the tree is one of tensors."""
    return isinstance(cls, Foreign) and cls.name.rpartition(".")[2] in ("Parameter", "Tensor")
