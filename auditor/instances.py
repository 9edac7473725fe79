"""Whether an instance of a class, or a part of it, has what the engine probes for.

``hasattr(model, "x")`` is true of an instance for what its class has, and for what a method has set
on it. Of a part (``hasattr(draft.model, "x")``) the class is what ``__init__`` makes it of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from auditor import facts as f
from auditor.classes import Found, Lookup, Missing, Open, linearise, lookup, own_attribute
from auditor.coverage import Row, Step
from auditor.engine import GuardSite
from auditor.evidence import Evidence
from auditor.headpath.attributes import Attribute, Attributes
from auditor.headpath.bodies import SourceBodies
from auditor.ruleset.capabilities import Capability
from auditor.ruleset.heads import head_rule
from auditor.values import ClassValue, Foreign, Place, Undecided, Value


class _Answer(msgspec.Struct, frozen=True):
    """What one class says: its lookup, and for an attribute of instances where it is set."""

    cls: ClassValue
    found: Lookup


class Instances:
    """Answers ``hasattr`` for instances of the classes of one import run.

    Args:
        bodies: the methods of those classes.
        evidence: makes the steps.
        capability: what is asked.
        guards: where the engine raises without it.
    """

    def __init__(
        self,
        bodies: SourceBodies,
        evidence: Evidence,
        capability: Capability,
        guards: tuple[GuardSite, ...],
    ) -> None:
        self._bodies = bodies
        self._attributes = Attributes(bodies)
        self._evidence = evidence
        self._capability = capability
        self._guards = guards
        #: Why a row stayed open, by architecture.
        self.open_rows: dict[str, Undecided] = {}

    def row(self, row: Row, cls: ClassValue) -> Row:
        """The row of a class that loads, with what its instances have."""
        if row.verdict == "stub":
            return replace(row, hasattr=False)
        steps: list[Step] = []
        answers: Sequence[_Answer] | Undecided = [self._of(cls)]
        if self._capability.part is not None:
            answers = self._of_part(cls, self._capability.part, steps)
        if isinstance(answers, Undecided):
            return self._open(row, answers, [*steps, *self._mro(cls)])
        for answer in answers:
            steps += self._steps(answer)
        first = answers[0]
        if len({type(answer.found) for answer in answers}) > 1:
            why = Undecided(
                f"`{self._capability.part}` is an instance of one of several classes, of which "
                "not all have it",
                Place(cls.module.path, cls.facts.line),
            )
            return self._open(row, why, steps)
        match first.found:
            case Open(why=why):
                return self._open(row, why, steps)
            case Found(owner=owner):
                return replace(
                    row,
                    verdict="yes",
                    hasattr=True,
                    owner=owner.dotted,
                    evidence=(*row.evidence, *steps),
                )
            case Missing():
                steps += self._evidence.guards(self._guards, cls.facts.name)
                return replace(row, verdict="no", hasattr=False, evidence=(*row.evidence, *steps))

    def _open(self, row: Row, why: Undecided, steps: Sequence[Step]) -> Row:
        self.open_rows[row.architecture] = why
        return replace(
            row, verdict="?", hasattr=None, reason=why.reason, evidence=(*row.evidence, *steps)
        )

    def _mro(self, cls: ClassValue) -> Iterator[Step]:
        where = Place(cls.module.path, cls.facts.line)
        yield self._evidence.step("class", where, cls.dotted)

    def _steps(self, answer: _Answer) -> Iterator[Step]:
        steps = self._evidence.class_steps(answer.cls, self._capability.probed, answer.found)
        if isinstance(answer.found, Open):
            # The last step says that no class has it, which is not the question here.
            steps = iter(list(steps)[:-1])
        yield from steps

    # --- one class

    def _of(self, cls: ClassValue) -> _Answer:
        """What an instance of ``cls`` has."""
        name = self._capability.probed
        found = lookup(cls, name)
        if not isinstance(found, Missing):
            return _Answer(cls, found)
        return _Answer(cls, self._set(cls, name) or self._served(cls) or found)

    def _set(self, cls: ClassValue, name: str) -> Found | Open | None:
        """What methods of the class set on an instance."""
        values = self._attributes.of(cls, name)
        if values and self._attributes.settled(cls, name):
            return Found(values[0].init, values[0].where, "set by __init__ on every instance")
        where = values[0].where if values else self._attributes.set_at(cls, name)
        if where is None:
            return None
        text = f"{cls.dotted} sets it on an instance, though not on each in __init__"
        return Open(Undecided(text, where, self._evidence.step("", where).text))

    def _served(self, cls: ClassValue) -> Found | Open | None:
        """What a ``__getattr__`` of the tree, or a class outside it, may serve."""
        hook = lookup(cls, "__getattr__")
        if isinstance(hook, Found):
            return Open(Undecided(f"{hook.owner.dotted} serves attributes by itself", hook.where))
        rule = head_rule()
        if self._capability.probed in rule.module_attributes:
            for member in linearise(cls):
                if isinstance(member, Foreign) and member.name in rule.plain_bases:
                    where = Place(cls.module.path, cls.facts.line)
                    return Found(cls, where, f"inherited from {member.name}")
        return None

    # --- a part of it

    def _of_part(
        self, cls: ClassValue, part: str, steps: list[Step]
    ) -> Sequence[_Answer] | Undecided:
        """What the part has, for each class that ``__init__`` may make it of."""
        values = [value for value in self._attributes.of(cls, part) if not value.is_none]
        here = Place(cls.module.path, cls.facts.line)
        if not values:
            return Undecided(f"no __init__ of {cls.dotted} says what `{part}` is", here)
        changed = self._attributes.set_at(cls, part)
        if changed is not None:
            return Undecided(f"`{part}` may be set anew", changed)
        answers: dict[int, _Answer] = {}
        for value in values:
            steps.append(self._evidence.step("part", value.where, f"what `{part}` is"))
            made = value.cls or self._by_attribute(cls, value)
            if not isinstance(made, ClassValue):
                named = made.name if made is not None else ""
                why = f"which is {named}, outside the tree" if named else "which was not followed"
                return Undecided(f"it depends on the class of `{part}`, {why}", value.where)
            answers.setdefault(id(made), self._of(made))
        return list(answers.values())

    def _by_attribute(self, cls: ClassValue, value: Attribute) -> Value | None:
        """The class in ``self.model_cls(…)``, where a class body says what that attribute is."""
        name = self._called(value)
        if name is None:
            return None
        if self._attributes.of(cls, name) or self._attributes.set_at(cls, name) is not None:
            return None
        for member in linearise(cls):
            if not isinstance(member, ClassValue):
                return None
            for stmt in reversed(member.facts.body):
                match stmt:
                    case f.Assign(targets=(f.Name(id=bound),), value=f.Name(id=named)) if (
                        bound == name
                    ):
                        return self._bodies.named(member, named)
                    case _:
                        continue
            if isinstance(own_attribute(member, name), Found | Open):
                return None
        return None

    def _called(self, value: Attribute) -> str | None:
        """The attribute of ``self`` whose call an assignment gives; None for anything else."""
        init = self._bodies.functions(value.init).get("__init__")
        for node in ast.walk(init) if init is not None else ():
            match node:
                case ast.Assign(
                    value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name))
                ) if node.lineno == value.where.line:
                    return name
                case _:
                    continue
        return None
