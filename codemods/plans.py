"""What a codemod would do to a tree, as values: edits of classes, or a refusal that says why."""

from __future__ import annotations

from typing import Literal

import msgspec

from auditor.coverage import Coverage, Row, UndecidedItem
from auditor.values import Place
from codemods.diff import diff_of
from codemods.harness.render import Subject

Code = Literal[
    "stub", "no-logits", "unknown-term", "no-head", "logits-changed", "post-processing",
    "indirect-head", "target-class", "names-not-there", "name-taken", "platforms-disagree",
    "norm-convention", "caller", "never-called", "not-proven", "not-editable",
]  # fmt: skip

#: Why a class is not patched, by the code of the refusal.
REFUSALS: dict[Code, str] = {
    "stub": "the class only raises NotImplementedError, so there is no head to reduce",
    "no-logits": "the class has no compute_logits that the method could agree with",
    "unknown-term": "a part of compute_logits could not be followed",
    "no-head": "compute_logits never calls the logits processor",
    "logits-changed": "the logits are changed or used after the head, where token ids would not do",
    "post-processing": "what follows the head has no counterpart for token ids",
    "indirect-head": "the head is reached through something other than methods of the model",
    "target-class": "the head is computed in a class that a target model uses as well",
    "names-not-there": "compute_logits uses names that the draft's own module does not have",
    "name-taken": "every name that the factored method could have is taken",
    "platforms-disagree": "platforms need different methods on the same class",
    "norm-convention": "a norm that compute_logits applies, or leaves out, contradicts the layer",
    "caller": "no method satisfies every call that the engine makes",
    "never-called": "no speculator of the engine calls the method for this architecture",
    "not-proven": "the patched tree does not prove that both pick the same token",
    "not-editable": "the source cannot be edited without touching more than the method",
}

Action = Literal["mixin", "method", "pair"]


class Site(msgspec.Struct, frozen=True):
    """A class in a file; ``line`` is that of its ``class`` statement."""

    path: str
    qualname: str
    line: int
    dotted: str


class Spot(msgspec.Struct, frozen=True):
    """A call in a method, by its place in the file (1-based line, 0-based column in characters).

    ``kind`` says what becomes of it: the call of the ``processor`` gets the method's name after
    it, a ``hop`` to the same method of a part of the model gets the other name.
    """

    line: int
    column: int
    kind: Literal["processor", "hop"]


class Parameter(msgspec.Struct, frozen=True):
    """A parameter: its name, and the sources of annotation and default (empty for none)."""

    name: str
    annotation: str
    default: str = ""


class Factor(msgspec.Struct, frozen=True):
    """The statements before the head that become a method which both use.

    Attributes:
        name: the method's name.
        parameters: its parameters without ``self``; the last is the one that the statements bind.
        annotation: the source of its return annotation.
        first, last: lines of the first and the last of the statements.
    """

    name: str
    parameters: tuple[Parameter, ...]
    annotation: str
    first: int
    last: int


class AddMixin(msgspec.Struct, frozen=True, tag=True):
    """Inherit ``mixin`` (a dotted class), first in the bases."""

    site: Site
    mixin: str


class AddMethod(msgspec.Struct, frozen=True, tag=True):
    """Define ``name`` on ``site``, made from the method ``source`` of ``origin``.

    Attributes:
        origin: the class whose method is the model; ``site`` itself unless it is inherited.
        source: the name of that method.
        line: where its ``def`` stands.
        spots: the calls in it that change.
        extra: parameters that it takes beside those of ``source``.
        doc: the docstring: paragraphs.
        factor: what is factored out first, or None.
        dropped: lines of the statements that only look at the logits, and are left out.
    """

    site: Site
    name: str
    origin: Site
    source: str
    line: int
    spots: tuple[Spot, ...]
    extra: tuple[Parameter, ...]
    doc: tuple[str, ...]
    factor: Factor | None = None
    dropped: tuple[int, ...] = ()


class PassArgument(msgspec.Struct, frozen=True, tag=True):
    """Pass ``keyword=value`` in a call of the engine, so that the method is told the draft step.

    Attributes:
        site: the class that the call stands in.
        line, column: where the call starts, as in :class:`Spot`.
        keyword: the argument.
        value: the source of its value.
    """

    site: Site
    line: int
    column: int
    keyword: str
    value: str


Edit = AddMixin | AddMethod | PassArgument


class Refusal(msgspec.Struct, frozen=True, tag=True):
    """Why nothing is done for a class: a code, a sentence, and the place that decides it."""

    code: Code
    reason: str
    place: Place | None = None


class Derivation(msgspec.Struct, frozen=True, tag=True):
    """What gives a class the capability, and what it was read off.

    Attributes:
        action: the kind of change.
        form: the same in a few words.
        edits: outermost class first.
        term: the head path that it follows, as an expression.
        brief: the same in a few words.
        place: where the logits are computed.
        why: why this form, in a sentence.
    """

    action: Action
    form: str
    edits: tuple[Edit, ...]
    term: str
    brief: str
    place: Place
    why: str

    @property
    def files(self) -> tuple[str, ...]:
        """The files that change, sorted."""
        return tuple(sorted({edit.site.path for edit in self.edits}))


class Item(msgspec.Struct, frozen=True):
    """What is done for one architecture on some platforms, or why nothing is."""

    architecture: str
    platforms: tuple[str, ...]
    cls: str
    outcome: Derivation | Refusal
    family: str = ""


class Family(msgspec.Struct, frozen=True):
    """One patch: its edits, and the files before and after it.

    Attributes:
        name: the first of its architectures, with platforms where another patch has it too.
        architectures: those that it is for.
        roots: the dotted draft classes that get the capability.
        edits: what is changed.
        before, after: the bytes of the files that change, by path.
    """

    name: str
    architectures: tuple[str, ...]
    roots: frozenset[str]
    edits: tuple[Edit, ...]
    before: dict[str, bytes]
    after: dict[str, bytes]

    @property
    def diff(self) -> bytes:
        """The patch, for ``git apply``."""
        return diff_of(self.before, self.after)


class Trial(msgspec.Struct, frozen=True):
    """The generated test of a patched class, or why there is none.

    Attributes:
        family: the name of the patch.
        cls: the dotted class.
        subject: what the test is about; None where no test can be generated.
        reason: why none can.
        platforms: where the class is what an entry of the registry becomes.
    """

    family: str
    cls: str
    subject: Subject | None
    reason: str
    platforms: tuple[str, ...]


class Plan(msgspec.Struct, frozen=True):
    """What would be done: items in the order of architectures, and the proven patches.

    Attributes:
        before: the document of the tree as it is.
        undecided: rows about which it cannot be said whether they lack the capability.
        unproven: rows that have the capability without proof, and are left as they are.
        unread: members of the source and files that could not be read, so that rows may be missing.
        applied_by: what tried each patch on the bytes that it is for; empty without patches.
        trials: a test for every patched class, in the order of families.
    """

    items: tuple[Item, ...]
    families: tuple[Family, ...]
    before: Coverage
    undecided: tuple[Row, ...]
    unproven: tuple[Row, ...]
    unread: tuple[UndecidedItem, ...]
    applied_by: str
    trials: tuple[Trial, ...] = ()

    @property
    def patched(self) -> tuple[Item, ...]:
        """The items that a proven patch covers."""
        return tuple(item for item in self.items if isinstance(item.outcome, Derivation))

    @property
    def refused(self) -> tuple[Item, ...]:
        """The items for which nothing is done."""
        return tuple(item for item in self.items if isinstance(item.outcome, Refusal))


class Refused(Exception):  # noqa: N818 - an outcome, told to the caller
    """Carries a refusal out of a derivation."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal
