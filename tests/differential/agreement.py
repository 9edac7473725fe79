"""Holds an import run against what real Python reported for the same tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from auditor.values import UNBOUND, Doubts, Error, ModuleValue, Opaque, Value
from differential.ours import Answers
from differential.sameness import brief, covers, may_be_unbound, same_error, show
from differential.trees import Tree

Report = Any


@dataclass
class Comparison:
    """Disagreements of one report of real Python with our answers, and how much stayed open."""

    tree: Tree
    ours: Answers
    theirs: Report
    with_variable: bool = False
    problems: list[str] = field(default_factory=list)
    decided: int = 0
    left_open: int = 0
    parted: bool = False
    excused: bool = False

    def run(self) -> Comparison:
        """Compare everything there is to compare."""
        if "failed" in self.theirs:
            self.problems.append(f"real Python did not finish: {self.theirs}")
            return self
        for name, ours, theirs in zip(
            self.tree.entries, self.ours.entries, self.theirs["entries"], strict=True
        ):
            self._ending(f"import {name}", ours, theirs, imports=True)
            if self.parted:
                # The process took an exception that we only doubt: it has other modules now.
                return self
        for name, names in self.theirs["modules"].items():
            self._module(name, names)
        for name in self.ours.names.keys() - self.theirs["modules"].keys():
            self._surplus_module(name)
        for (module, name), ours, theirs in zip(
            self.tree.probes, self.ours.probes, self.theirs["probes"], strict=True
        ):
            if (module in self.ours.names) is (module in self.theirs["modules"]):
                self._ending(f"{module}.{name}", ours, theirs, imports=False)
            if self.parted:
                return self
        return self

    def _note(self, agrees: bool | None, what: str) -> None:
        if agrees is False and self._excused():
            agrees = None
        if agrees is None:
            self.left_open += 1
        else:
            self.decided += 1
        if agrees is False:
            self.problems.append(what)

    def _excused(self) -> bool:
        """What is not followed of an open condition, beyond the branches that it decides.

        A module that failed by it, or that one branch alone imported first, and that is imported
        once more, runs in another state of the process than the run can tell. And what only a
        set variable makes raise is noted, and not followed further.
        """
        if not self.tree.open:
            return False
        noted = self.with_variable and self._only_with_variable("")
        twice = any(count > 1 for count in self.theirs["runs"].values())
        self.excused = noted or twice or bool(self.ours.run.run_again)
        return self.excused

    def _ending(self, what: str, ours: tuple[Value, Doubts], theirs: Any, imports: bool) -> None:
        value, doubts = ours
        doubted = [brief(doubt.error) for doubt in doubts]
        shown = f"{what}: we say {show(value)}, doubts {doubted}; real {theirs}"
        if theirs[0] == "raises":
            error = (theirs[1], theirs[2])
            if isinstance(value, Error) and same_error(value, *error):
                self.parted = len(doubts) > 0
                return self._note(None if len(doubts) else True, shown)
            # Doubts are kept one for each type and condition, with the first message.
            covered = any(
                error[0] in doubt.error.bases[:1] or "?" in doubt.error.bases for doubt in doubts
            )
            # What ``finally`` does after a doubt is not followed: the answer is open anyway.
            finally_ = any("finally:" in text for text in self.tree.files.values())
            covered = covered or (finally_ and len(doubts) > 0)
            # How deep Python recurses before it gives up is not followed.
            covered = covered or theirs[1] == "RecursionError"
            self.parted = covered or self._only_with_variable(error[0])
            agrees = None if self.parted or isinstance(value, Opaque) else False
            return self._note(agrees, shown)
        if isinstance(value, Error):
            return self._note(False, shown)
        found = True if imports else covers(value, theirs[1])
        return self._note(None if len(doubts) and found else found, shown)

    def _only_with_variable(self, type_: str) -> bool:
        """By design no doubt, but an open condition: what only a set variable makes raise."""
        return any(
            f"raises {type_}" in why.reason for why in self.ours.run.open_conditions.values()
        )

    def _module(self, name: str, theirs: dict[str, Any]) -> None:
        module = self.ours.run.modules.get(name, UNBOUND)
        if not isinstance(module, ModuleValue):
            self._note(False if module is UNBOUND else None, f"{name} is not loaded by us")
            return
        ours = self.ours.names[name]
        for key, real in theirs.items():
            value = ours.get(key, UNBOUND)
            if value is UNBOUND and module.wild is not None:
                value = module.wild
            self._note(covers(value, real), f"{name}.{key}: we say {show(value)}, real {real}")
        for key, value in ours.items():
            if isinstance(value, ModuleValue) and value.name not in self.theirs["modules"]:
                continue  # held against the real one in _surplus_module
            public = not key.startswith("_") or key == "__all__"
            if public and key not in theirs:
                agrees = None if may_be_unbound(value) else False
                self._note(agrees, f"{name}.{key}: we say {show(value)}, really unbound")

    def _surplus_module(self, name: str) -> None:
        module = self.ours.run.modules[name]
        unsure = isinstance(module, ModuleValue) and (
            len(module.doubts) or self.ours.run.open_conditions
        )
        self._note(None if unsure else False, f"{name} is loaded by us, and not really")
