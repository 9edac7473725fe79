"""Class by platform to its head path, its shape, and whether the capability agrees with it.

The method that the capability must agree with (``agrees_with`` of its rule) and the capability
itself are run over terms; the shape is the first rule below ``rules/shapes/`` that the head path
fits; equivalence is read off the two head paths.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from copy import copy

from msgspec.structs import replace

from auditor.analysis import Analysis
from auditor.classes import Found, Open, lookup
from auditor.headpath.bodies import SourceBodies, Syntax
from auditor.headpath.checks import OneSided, of_processor, one_sided
from auditor.headpath.conditions import Premise, Premises
from auditor.headpath.equivalence import Equivalence, compare
from auditor.headpath.norms import Convention, Forward, convention
from auditor.headpath.path import HeadPath, head_path
from auditor.headpath.questions import fingerprint
from auditor.headpath.shapes import shape_of
from auditor.headpath.state import Outcome, State
from auditor.headpath.symbolic import Symbolic
from auditor.headpath.terms import Unknown
from auditor.imports import ImportRun
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.heads import head_rule
from auditor.ruleset.shapes import ShapeRule, shapes
from auditor.sharing import Analyses
from auditor.values import ClassValue, Place

#: Decorators of the standard library and PyTorch that leave the signature of a method alone.
_PLAIN_DECORATORS = frozenset(
    "staticmethod classmethod abstractmethod final override inference_mode no_grad".split()
)


class Analyzer:
    """Analyses the classes of one import run, each once."""

    def __init__(
        self,
        run: ImportRun,
        syntax: Syntax,
        outside: Mapping[str, Place],
        capability: Capability,
        analyses: Analyses | None = None,
    ) -> None:
        self._analyses = Analyses() if analyses is None else analyses
        self._bodies = SourceBodies(run, syntax, outside)
        self._capability = capability
        self._known: dict[int, Analysis] = {}

    def sharing(self, analyses: Analyses) -> Analyzer:
        """An analyzer of the same run that shares these analyses."""
        analyzer = copy(self)
        analyzer._analyses, analyzer._known = analyses, {}
        return analyzer

    @property
    def bodies(self) -> SourceBodies:
        """The bodies of the classes of this run."""
        return self._bodies

    def analyse(self, cls: ClassValue, stub: bool = False) -> Analysis:
        """The analysis of a class; a stub, which cannot be made, has no head."""
        if id(cls) not in self._known:
            self._known[id(cls)] = self._stub(cls) if stub else self._shared(cls)
        return self._known[id(cls)]

    def method(self, cls: ClassValue, name: str) -> tuple[str, ast.FunctionDef] | None:
        """The method that an instance finds, with its qualified name; None for anything else."""
        found = lookup(cls, name)
        if not isinstance(found, Found):
            return None
        function = self._bodies.functions(found.owner).get(name)
        if function is None or found.where.path != found.owner.module.path:
            return None
        if not all(map(_keeps_signature, function.decorator_list)):
            return None
        first = min([function.lineno, *(mark.lineno for mark in function.decorator_list)])
        if not first <= found.where.line <= function.lineno:
            return None  # the name is bound to something else further down
        return f"{found.owner.qualname}.{name}", function

    def _shared(self, cls: ClassValue) -> Analysis:
        """The analysis of the same class by another run, where it would come out the same."""
        key = fingerprint(cls)
        for answers, analysis in self._analyses.of(key):
            if self._bodies.answers_alike(answers):
                return self._analyses.taken(key, analysis, cls)
        self._bodies.asked = {}
        before = self._bodies.run.extent()
        analysis = self._analyse(cls)
        # What an analysis adds to its run, another run would not get with it.
        alone = self._bodies.run.extent() == before
        self._analyses.add(key, self._bodies.asked, analysis, tell=alone)
        return analysis

    @staticmethod
    def _stub(cls: ClassValue) -> Analysis:
        return Analysis(cls, None, None, _special("stub"), None)

    def _analyse(self, cls: ClassValue) -> Analysis:
        symbolic = Symbolic(cls, self._bodies, head_rule())
        agrees = self._capability.agrees_with
        logits = _path(cls, symbolic, agrees) if agrees is not None else None
        first = symbolic.first_parameter(agrees) if logits is not None and agrees else None
        tokens = _path(cls, symbolic, self._capability.probed, first)
        agree = compare(logits, tokens) if logits is not None and tokens is not None else None
        premises = Premises(symbolic, self._bodies, cls, head_rule()).of(logits) if logits else ()
        agree = _under(self._same_defaults(cls, agree), premises)
        norms = self._convention(cls, logits) if logits else None
        checks = self._checks(symbolic, logits, tokens) if logits and tokens else ()
        return Analysis(cls, logits, tokens, _shape(logits), agree, premises, norms, checks, first)

    def _same_defaults(self, cls: ClassValue, agree: Equivalence | None) -> Equivalence | None:
        """An equality of methods that take another default for what a caller leaves out."""
        names = (self._capability.agrees_with, self._capability.probed)
        found = [self.method(cls, name) for name in names if name is not None]
        if agree is None or agree.answer != "equivalent" or len(found) < 2:
            return agree
        one, other = (_defaults(method[1]) if method is not None else {} for method in found)
        for name in one.keys() & other.keys():
            if one[name] != other[name]:
                text = f"as long as callers pass {name}: its default is {one[name]} in one method"
                return Equivalence("conditional", f"{text} and {other[name]} in the other")
        return agree

    @staticmethod
    def _checks(symbolic: Symbolic, logits: HeadPath, tokens: HeadPath) -> tuple[OneSided, ...]:
        terms = [b.head_term.processor for b in tokens.branches if b.head_term is not None]
        processors = [
            check
            for term in dict.fromkeys(terms)
            for check in of_processor(symbolic, term, head_rule())
        ]
        return (*one_sided(logits, tokens), *processors)

    def _convention(self, cls: ClassValue, logits: HeadPath) -> Convention | None:
        forward = Forward(cls, self._bodies, head_rule(), logits)
        return convention(forward, logits, head_rule())


def _defaults(function: ast.FunctionDef) -> dict[str, str]:
    """The defaults of parameters, as source."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    late = positional[len(positional) - len(arguments.defaults) :]
    found = {p.arg: ast.unparse(d) for p, d in zip(late, arguments.defaults, strict=True)}
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            found[parameter.arg] = ast.unparse(default)
    return found


def _keeps_signature(decorator: ast.expr) -> bool:
    """Whether what a decorator makes of a method is called as the method is written."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(function).rpartition(".")[2] in _PLAIN_DECORATORS


def _under(agree: Equivalence | None, premises: tuple[Premise, ...]) -> Equivalence | None:
    """An equality whose premise fails is none; one that nothing is read of is a condition."""
    broken = next((premise for premise in premises if premise.state == "violated"), None)
    if agree is None or agree.answer != "equivalent":
        return agree
    if broken is None:
        unread = next((premise for premise in premises if premise.open), None)
        if unread is None:
            return agree
        reason = f"as long as {unread.text} ({unread.where})"
        return replace(agree, answer="conditional", reason=reason)
    return replace(agree, answer="different", reason=f"not so: {broken.text} ({broken.where})")


def _shape(logits: HeadPath | None) -> ShapeRule | None:
    if logits is None:
        return _special("missing")
    refused = {refusal.check.text.split("(")[0] for refusal in logits.refusals}
    if not logits.branches and refused == {"raise NotImplementedError"}:
        return _special("stub")
    return shape_of(logits, shapes())


def _special(kind: str) -> ShapeRule | None:
    return next((rule for rule in shapes() if rule.special == kind), None)


def _path(
    cls: ClassValue, symbolic: Symbolic, method: str, first: str | None = None
) -> HeadPath | None:
    """The head path of a method that the class has, or may have."""
    if not isinstance(lookup(cls, method), Found | Open):
        return None
    try:
        return head_path(method, symbolic.run(method, first))
    except RecursionError:
        where = Place(cls.module.path, cls.facts.line)
        deep = Unknown(f"{method} is nested too deeply", str(where), place=where)
        return head_path(method, (Outcome(deep, State({})),))
