"""From what is known of a class's head to the cell that a reader sees, and to its record."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from auditor.analysis import Analysis
from auditor.classes import Found, lookup
from auditor.coverage import Condition, Head, MethodPath, Question, Row, Step, VerdictName, Way
from auditor.headpath.brief import brief, name_of
from auditor.headpath.conditions import Premise
from auditor.headpath.fingerprints import fingerprint
from auditor.headpath.path import Branch, HeadPath, show_guard
from auditor.headpath.terms import Term, show
from auditor.program import Files
from auditor.ruleset.capabilities import Capability
from auditor.values import Place

_VERDICT: dict[str, VerdictName] = {
    "equivalent": "yes",
    "different": "unsafe",
    "conditional": "yes?",
    "unproven": "yes?",
}


def question(rule: Capability) -> Question:
    """What a document says of the capability that it is about."""
    without = rule.without
    return Question(
        rule.probed, rule.part, rule.model, rule.agrees_with, without.does, without.text
    )


def legend(rule: Capability) -> dict[str, str]:
    """What the cells mean for a capability, where that depends on it."""
    found = {"no": f"lacks the method: {rule.without.text}"}
    if rule.agrees_with is None:
        found = {
            "yes": "has it, as hasattr alone decides",
            "no": f"lacks it: the engine {rule.without.does}: {rule.without.text}",
        }
    return {**found, **rule.verdicts}


def judged(row: Row, analysis: Analysis) -> Row:
    """The row with what the analysis says of its class.

    Only a row that has the method gets another verdict by it; what lacks the method keeps its own.
    """
    agree = analysis.equivalence
    row = replace(row, shape=analysis.shape_name)
    if row.verdict != "yes?":
        return row
    if agree is None:
        return replace(row, reason="the class has no method to compare it with")
    reason = None if agree.answer == "equivalent" else agree.reason
    return replace(row, verdict=_VERDICT[agree.answer], reason=reason, equivalence=agree.answer)


def head_of(analysis: Analysis, platform: str, files: Files) -> Head:
    """The record of an analysis, as one platform has it."""
    agree, norms = analysis.equivalence, analysis.convention
    return Head(
        class_=analysis.cls.dotted,
        platforms=(platform,),
        logits=_method(analysis, analysis.logits, files),
        tokens=_method(analysis, analysis.tokens, files),
        shape=analysis.shape_name,
        fix=analysis.shape.fix if analysis.shape is not None else None,
        equivalence=agree.answer if agree is not None else None,
        reason=agree.reason if agree is not None else None,
        conditions=tuple(map(_condition, analysis.premises)),
        returns=tuple(map(str, norms.positions)) if norms is not None else (),
        norm=norms.verdict if norms is not None else None,
        remarks=tuple(_remarks(analysis, files)),
        terms=(agree.logits, agree.tokens) if agree is not None and agree.logits else (),
    )


def _remarks(analysis: Analysis, files: Files) -> Iterator[Step]:
    """What only one method checks, and a norm that is applied twice or never."""
    for check in analysis.checks:
        note = f"only {check.method} checks this"
        yield _step("check", check.where, files, check.text, note)
    norms = analysis.convention
    where = norms.positions[0].where if norms is not None else None
    if norms is None or where is None:
        return
    if norms.verdict == "double" and norms.applied is not None:
        note = f"forward returns states {norms.positions[0]}; {name_of(norms.applied)} norms again"
        yield _step("norm", where, files, note=note)
    if norms.verdict == "never":
        note = "forward returns states that are not normed, and no norm is applied before the head"
        yield _step("norm", where, files, note=note)


def _condition(premise: Premise) -> Condition:
    where = premise.where or Place("", 0)
    return Condition(premise.name, premise.state, premise.text, where.path, where.line)


def _method(analysis: Analysis, path: HeadPath | None, files: Files) -> MethodPath | None:
    if path is None:
        return None
    found = lookup(analysis.cls, path.method)
    where = found.where if isinstance(found, Found) else Place("", 0)
    where = _handed_on_to(path) or where
    return MethodPath(
        path.method,
        brief(path),
        tuple(_way(branch, files) for branch in path.branches),
        fingerprint(path, analysis.first),
        where.path,
        where.line,
    )


def _handed_on_to(path: HeadPath) -> Place | None:
    """The method of the same name that is entered last: what computes, where others hand on."""
    entered = [one.where for b in path.branches for one in b.entered if one.name == path.method]
    return entered[-1] if entered else None


def _way(branch: Branch, files: Files) -> Way:
    term = branch.head_term
    return Way(
        guards=tuple(map(show_guard, branch.guards)),
        processor=_shown(term.processor) if term is not None else None,
        head=_shown(term.head) if term is not None else None,
        hidden=_shown(term.hidden) if term is not None else None,
        bias=_shown(term.bias) if term is not None else None,
        post=tuple(f"{post.kind}: {post.text}" for post in branch.post),
        result=show(branch.result),
        hops=tuple(_step("hop", place, files) for place in branch.hops),
        checks=tuple(_step("check", check.place, files, check.text) for check in branch.checks),
        unknown=tuple(_unknown(branch, files)),
    )


def _unknown(branch: Branch, files: Files) -> Iterator[Step]:
    for one in branch.unknown:
        if one.place is not None:
            yield _step("unknown", one.place, files, note=one.reason)
        else:
            yield Step("unknown", "", 0, one.where, one.reason)


def _shown(term: Term | None) -> str | None:
    return None if term is None else show(term)


def _step(kind: str, where: Place, files: Files, text: str = "", note: str = "") -> Step:
    return Step(kind, where.path, where.line, text or files.line(where.path, where.line), note)
