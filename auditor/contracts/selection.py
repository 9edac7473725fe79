"""Which speculator or proposer drafts for which architecture.

vLLM's own code decides it, and is run here over what is known: ``hf_config_override`` rewrites a
checkpoint's configuration, ``SpeculativeConfig.__post_init__`` settles the method and may rename
the architecture, and each model runner chooses a class by both. Every checkpoint that the code can
tell apart is tried: each architecture of the table, and each string that the rewriting code
compares with. What a checkpoint or a user may say either way is a condition; what could not be
followed is a reason.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

import msgspec

from auditor.contracts.checkpoints import Checkpoints, Settled, each
from auditor.contracts.interpreter import Path, explore
from auditor.contracts.names import Names, Ref
from auditor.contracts.things import (
    Frame,
    Question,
    Returned,
    Thing,
    TooMany,
    Value,
    of_one,
)
from auditor.ruleset.engine import EngineRule
from auditor.values import Place

_Answer = TypeVar("_Answer")
_End = tuple[Thing, tuple[Question, ...]]

#: A model type and an architecture that no code mentions.
OTHER = "<other>"


class Site(msgspec.Struct, frozen=True):
    """A place where a model runner makes what drafts: the statement that chooses, in its class."""

    where: Place
    module: str
    cls: str
    function: ast.FunctionDef
    statement: ast.stmt
    attribute: str

    @property
    def name(self) -> str:
        """The model runner, as ``module.Class``."""
        return f"{self.module}.{self.cls}" if self.cls else self.module


class Selected(msgspec.Struct, frozen=True):
    """A class that drafts for an architecture, with the conditions under which it does.

    Attributes:
        drafter: the class.
        where: the call that makes it.
        runner: the model runner that makes it.
        method: the speculative method.
        conditions: what a checkpoint or a user must say for it; empty where nothing else can be.
        open: why it is not sure that it can be chosen at all; empty where it is.
    """

    drafter: Ref
    where: Place
    runner: str
    method: str
    conditions: tuple[str, ...] = ()
    open: str = ""


class Selection:
    """Finds the drafters of architectures, by the tree's own code.

    Args:
        names: the definitions of the tree.
        rule: where that code stands.
        architectures: the table's keys.
        independent: those of them that draft as models of their own.
    """

    def __init__(
        self,
        names: Names,
        rule: EngineRule,
        architectures: Iterable[str],
        independent: Collection[str] = (),
    ) -> None:
        self._rule = rule
        self._checkpoints = Checkpoints(names, rule, architectures, independent)
        self.problems = self._checkpoints.problems

    def settled(self) -> dict[str, list[Settled]]:
        """For each architecture of the table, the configurations that come to it."""
        return self._checkpoints.settled()

    def choose(self, site: Site, settled: Sequence[Settled]) -> dict[Settled, list[Selected]]:
        """The classes that a model runner may choose for each configuration."""
        checkpoint = self._checkpoints.made([one.checkpoint for one in settled])
        method = each([one.method for one in settled])

        def run(path: Path) -> tuple[Value, tuple[int, ...]]:
            self._checkpoints.run.path = path
            config = self._checkpoints.configuration(
                method, self._checkpoints.draft(checkpoint, None)
            )
            self._checkpoints.run.fixed = {self._rule.config.attribute: config}
            try:
                return self._made_by(site), path.alive
            finally:
                self._checkpoints.run.fixed = {}

        ends: dict[Settled, list[_End]] = {one: [] for one in settled}
        try:
            for (made, alive), asked in explore(run, tuple(range(len(settled)))):
                for number in alive:
                    one = of_one(made, number)
                    if isinstance(one, Thing) and isinstance(one.cls, Ref):
                        ends[settled[number]].append((one, asked))
        except TooMany as problem:
            self.problems.append((str(problem), site.where))
        return {
            one: [_selected(site, one, made, asked, found) for made, asked in found]
            for one, found in ends.items()
        }

    def _made_by(self, site: Site) -> Value:
        this = Thing("self", plain=True)
        frame = Frame(site.module, None, {"self": this}, 0)
        for parameter in site.function.args.args[1:]:
            frame.names[parameter.arg] = Thing(parameter.arg, plain=True)
        frame.wanted = self._checkpoints.run.wanted_in(site.function)
        try:
            self._checkpoints.run.block([site.statement], frame)
        except Returned:
            return None
        return this.attrs.get(site.attribute)


def _selected(
    site: Site, settled: Settled, made: Thing, asked: tuple[Question, ...], ends: Iterable[_End]
) -> Selected:
    """One end, with the conditions that tell it from the others."""
    others = [
        {(question.text, question.answer) for question in questions}
        for other, questions in ends
        if other.cls != made.cls
    ]
    deciding = [q for q in asked if any((q.text, not q.answer) in other for other in others)]
    conditions = tuple(str(question) for question in deciding if not question.reason)
    reasons = [f"{q.text} at {q.where}: {q.reason}" for q in deciding if q.reason]
    cls = made.cls
    assert isinstance(cls, Ref)
    where = made.where or site.where
    return Selected(cls, where, site.name, settled.method, conditions, "; ".join(reasons))
