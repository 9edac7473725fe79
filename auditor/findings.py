"""Coded remarks on a row: calls that do not fit, flags that do nothing, tokens that differ.

What a class is comes from the import run, what it computes from the analysis of its head, and who
calls it from the contracts of the engine. ``rules/findings/*.toml`` says of each code what it
means, why it matters, and what to do.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from auditor.analysis import Analysis
from auditor.contracts.contract import Contracts
from auditor.contracts.drafters import Call, Drafter
from auditor.contracts.selection import Selected
from auditor.contracts.signature import misfit, open_binding, signature
from auditor.coverage import Finding, Row
from auditor.headpath.brief import name_of
from auditor.headpath.path import HeadPath, step_parameters
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.findings import finding_rules
from auditor.values import Place

#: A method that a class has, and the class that provides it.
Method = tuple[str, ast.FunctionDef]


class Subject(msgspec.Struct, frozen=True):
    """A row whose class is known: what it is, what it computes, and how to find its methods."""

    row: Row
    analysis: Analysis
    method: Callable[[str], Method | None]


class Remark(msgspec.Struct, frozen=True):
    """A finding before it has a severity; ``breaks`` is why a caller's call would fail."""

    code: str
    message: str
    where: Place
    breaks: str = ""
    open: str = ""


class Findings:
    """Makes the remarks on rows.

    Args:
        contracts: who calls the capability.
        capability: the capability.
        step: the argument that says which draft step it is.
    """

    def __init__(self, contracts: Contracts, capability: Capability, step: str) -> None:
        self._contracts = contracts
        self._capability = capability
        self._step = step
        self._severity = {rule.code: rule.severity for rule in finding_rules()}

    def of(self, subject: Subject) -> tuple[Row, tuple[Finding, ...]]:
        """The row with its codes and the verdict that its callers leave it, and the findings."""
        remarks = [*self._of_callers(subject), *_of_analysis(subject.analysis, self._capability)]
        row = self._judged(subject.row, remarks)
        codes = tuple(sorted({remark.code for remark in remarks}))
        found = tuple(self._finding(remark, row) for remark in dict.fromkeys(remarks))
        return replace(row, findings=codes), found

    def _finding(self, remark: Remark, row: Row) -> Finding:
        return Finding(
            remark.code,
            self._severity[remark.code],
            remark.message,
            remark.where.path,
            remark.where.line,
            (row.architecture,),
            (row.platform,),
        )

    def _judged(self, row: Row, remarks: list[Remark]) -> Row:
        """A class with the method is as safe as its callers; what is not known of them counts."""
        if row.verdict not in ("yes", "yes?"):
            return row
        broken = next((remark.breaks for remark in remarks if remark.breaks), "")
        if broken:
            return replace(row, verdict="unsafe", reason=broken)
        unknown = self._contracts.unknown(row.architecture) or next(
            (remark.open for remark in remarks if remark.open), None
        )
        if row.verdict == "yes" and unknown is not None:
            return replace(row, verdict="yes?", reason=f"it is not known what calls it: {unknown}")
        return row

    # --- who calls it

    def _of_callers(self, subject: Subject) -> Iterator[Remark]:
        for selected, drafter in self._contracts.of(subject.row.architecture):
            if drafter.open:
                yield from self._of_unread(drafter)
                continue
            yield from self._of_drafter(subject, selected, drafter)

    @staticmethod
    def _of_unread(drafter: Drafter) -> Iterator[Remark]:
        reason = f"the calls of {drafter.cls.name}: {drafter.open}"
        yield Remark("SD106", reason, drafter.where, open=reason)

    def _of_drafter(
        self, subject: Subject, selected: Selected, drafter: Drafter
    ) -> Iterator[Remark]:
        name, agrees = self._capability.probed, self._capability.agrees_with
        calls = drafter.of(name)
        others = drafter.of(agrees) if agrees is not None else ()
        for call in calls:
            yield from self._fitting(subject, selected, call)
        for call in others:
            yield from self._fitting_other(subject, drafter, call)
        if not calls and self._contracts.flagged:
            yield self._never(drafter)
        elif calls and not drafter.guarded:
            message = f"{drafter.cls.name} calls {name}, and does not ask whether the model has it"
            yield Remark("SD104", message, calls[0].where)
        yield from self._dropping(subject, selected, calls, others)

    def _never(self, drafter: Drafter) -> Remark:
        flag = self._capability.flag.name if self._capability.flag is not None else "the flag"
        never = f"{drafter.cls.name} never calls {self._capability.probed}"
        if drafter.guarded:
            message = f"{never}, though it demands it at start-up: {flag} does nothing"
        else:
            message = f"{never}: {flag} is accepted and does nothing"
        return Remark("SD103", message, drafter.where)

    def _fitting(self, subject: Subject, selected: Selected, call: Call) -> Iterator[Remark]:
        """Whether the class's own method takes a call."""
        if not subject.row.hasattr:
            return
        found = subject.method(call.method)
        if found is None:
            reason = f"the signature of {call.method} could not be read"
            yield Remark("SD106", reason, call.where, open=reason)
            return
        qualname, function = found
        problem = misfit(call, function, qualname)
        caller = f"{selected.drafter.name} calls {call.form}"
        if problem is not None:
            where = f", where {' and '.join(selected.conditions)}" if selected.conditions else ""
            message = f"{caller}{where}: TypeError: {problem}"
            if selected.open:
                unsure = f"whether it drafts for this depends on {selected.open}"
                yield Remark("SD101", f"{message} ({unsure})", call.where, open=unsure)
            else:
                yield Remark("SD101", message, call.where, breaks=message)
            return
        unknown = open_binding(call, function)
        if unknown is not None:
            message = f"{caller} of {signature(function)}: {unknown}"
            yield Remark("SD106", message, call.where, open=message)

    @staticmethod
    def _fitting_other(subject: Subject, drafter: Drafter, call: Call) -> Iterator[Remark]:
        found = subject.method(call.method)
        problem = misfit(call, found[1], found[0]) if found is not None else None
        if problem is not None:
            message = f"{drafter.cls.name} calls {call.form}: TypeError: {problem}"
            yield Remark("SD105", message, call.where)

    def _dropping(
        self,
        subject: Subject,
        selected: Selected,
        calls: tuple[Call, ...],
        others: tuple[Call, ...],
    ) -> Iterator[Remark]:
        """A caller that tells one method the step, and not the other."""
        if not any(self._passes(call) for call in others):
            return
        for call in calls:
            if not self._passes(call) and not call.unpacked:
                name = selected.drafter.name
                message = (
                    f"{name} passes {self._step} to {self._capability.agrees_with} and not to "
                    f"{call.form}"
                )
                depends = self._by_step(subject.analysis.logits)
                breaks = f"{message}: it takes the first head at every step" if depends else ""
                yield Remark("SD102", message, call.where, breaks=breaks)

    def _passes(self, call: Call) -> bool:
        return self._step in call.keywords or self._step in call.arguments

    def _by_step(self, path: HeadPath | None) -> bool:
        """Whether logits depend on the step."""
        terms = [branch.result for branch in path.branches] if path is not None else []
        return any(self._step in step_parameters(term) for term in terms)


# --- what it computes


def _of_analysis(analysis: Analysis, capability: Capability) -> Iterator[Remark]:
    here = Place(analysis.cls.module.path, analysis.cls.facts.line)
    agree, name = analysis.equivalence, analysis.cls.qualname
    broken = [premise for premise in analysis.premises if premise.state == "violated"]
    if agree is not None:
        for premise in broken:
            yield Remark("SD205", f"{name}: not so: {premise.text}", premise.where or here)
        code = {"different": "SD201", "conditional": "SD202", "unproven": "SD203"}.get(agree.answer)
        if code is not None and not (code == "SD201" and broken):
            yield Remark(code, f"{name}.{capability.probed}: {agree.reason}", here)
        for check in analysis.checks:
            message = f"only {check.method} checks this: {check.text}"
            if "." in check.method:  # a method of the processor, whoever uses it
                yield Remark("SD208", message, check.where)
            else:
                yield Remark("SD204", f"{name}: {message}", check.where)
    norms = analysis.convention
    if norms is None:
        return
    where = norms.positions[0].where if norms.positions else None
    if norms.verdict == "double":
        norm = name_of(norms.applied) if norms.applied is not None else "the head path"
        message = f"{name}: forward returns states {norms.positions[0]}; {norm} norms again"
        yield Remark("SD206", message, where or here)
    elif norms.verdict == "never" and norms.unused is not None:
        built = norms.unused.where
        message = f"{name}: no norm between forward and the head; one is built at {built}"
        yield Remark("SD207", message, where or here)
