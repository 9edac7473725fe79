"""The Coverage document: what an audit found, as versioned JSON.

Every report is a function of this document alone. It is sorted at one place
(:func:`sorted_coverage`), holds no timestamps and no absolute paths, and round-trips through
JSON. ``audit schema`` prints its JSON Schema, generated from the types below.
"""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA_VERSION = "1.2"

VerdictName = Literal["yes", "yes?", "unsafe", "no", "stub", "import", "absent", "n/a", "?"]

#: What each cell means where the rule of a capability has no words of its own for it.
VERDICTS: dict[VerdictName, str] = {
    "yes": "has the method, proven equivalent, every caller satisfied",
    "yes?": "has the method; whether it picks the same token is conditional or unproven",
    "unsafe": "has the method, but it picks other tokens, or a caller's call would fail",
    "no": "lacks the method",
    "stub": "the class only raises NotImplementedError",
    "import": "the class cannot be imported on this platform",
    "absent": "the module resolves but does not provide the class there",
    "n/a": "lacks the method that it would have to agree with",
    "?": "undecided; the condition that decides it is listed",
}


class Step(msgspec.Struct, frozen=True):
    """One line of evidence: a place in the tree, its source text, and what it shows.

    Attributes:
        kind: ``registry``, ``module``, ``branch``, ``import``, ``getattr``, ``class``, ``base``,
            ``method``, ``raise``, ``fact``, ``guard`` or ``plugin``; in a head path ``hop``,
            ``check``, ``unknown`` or the name of a remark.
        path: POSIX path relative to the folder that holds ``vllm/``; empty for a platform fact.
        line: 1-based line number; 0 for a platform fact.
        text: the deciding source text, on one line.
        note: what this step shows (``taken``, ``not taken: false on rocm``, …).
    """

    kind: str
    path: str
    line: int
    text: str
    note: str = ""


class ErrorInfo(msgspec.Struct, frozen=True):
    """The exception that loading the class would raise, and the imports that lead to it."""

    type: str
    message: str
    chain: tuple[Step, ...] = ()


class Row(msgspec.Struct, frozen=True, rename={"class_": "class"}):
    """What one registry entry is on one platform.

    Attributes:
        architecture: the registry key.
        platform: the platform's name.
        verdict: the cell (:data:`VERDICTS`).
        hasattr: what ``hasattr(cls, <capability>)`` would say; null when it cannot be said.
        module: dotted module that defines the class, or null when there is no class.
        class_: the class's own name there (in JSON: ``class``), or null.
        owner: dotted class that provides the method, or null when none does.
        error: the exception at import, or null.
        shape: name of the head path's shape, or null while unknown.
        equivalence: verdict of the equivalence proof, or null while unknown.
        reason: what stopped the decision, or what the verdict rests on where there is no error.
        findings: codes of the findings on this row.
        evidence: the steps from the registry line to the answer, in order.
    """

    architecture: str
    platform: str
    verdict: VerdictName
    hasattr: bool | None
    module: str | None
    class_: str | None
    owner: str | None
    error: ErrorInfo | None = None
    shape: str | None = None
    equivalence: str | None = None
    reason: str | None = None
    findings: tuple[str, ...] = ()
    evidence: tuple[Step, ...] = ()


class Way(msgspec.Struct, frozen=True):
    """One way through a method, from hidden states to logits or to tokens.

    Attributes:
        guards: the conditions on this way, as expressions.
        processor: the logits processor; null where none is called.
        head: the head that it is given, or null.
        hidden: the hidden states that it is given, or null.
        bias: the bias that it is given, or null.
        post: what happens to the logits or tokens afterwards, in order.
        result: the whole term that the method returns.
        hops: the calls on the way to the head, outermost first.
        checks: what it asserts or raises on the way.
        unknown: what could not be followed, with reason.
    """

    guards: tuple[str, ...]
    processor: str | None
    head: str | None
    hidden: str | None
    bias: str | None
    post: tuple[str, ...]
    result: str
    hops: tuple[Step, ...] = ()
    checks: tuple[Step, ...] = ()
    unknown: tuple[Step, ...] = ()


class MethodPath(msgspec.Struct, frozen=True):
    """The head path of one method: every way through it that returns something.

    Attributes:
        method: its name.
        brief: for people: ``lm_head ∘ norm``, with the guards of each way.
        ways: every way through it that returns something.
        fingerprint: equal where another source computes the same, however it is written.
        path: the file that defines it, or empty; where it hands on to one of the same name, the
            file of that one.
        line: the line of that definition, or 0.
    """

    method: str
    brief: str
    ways: tuple[Way, ...]
    fingerprint: str = ""
    path: str = ""
    line: int = 0


class Condition(msgspec.Struct, frozen=True):
    """Something that the equality of the two methods rests on, and whether the source shows it.

    Attributes:
        name: a short name (``vocabulary``, ``scale``, ``soft cap``, ``remap``, ``head`` …).
        state: ``proven``, ``violated``, or ``assumed`` where the source does not settle it.
        text: the condition, in a sentence.
        path: where it is read; empty when it is read nowhere.
        line: 1-based, or 0.
    """

    name: str
    state: Literal["proven", "violated", "assumed"]
    text: str
    path: str = ""
    line: int = 0


class Head(msgspec.Struct, frozen=True, rename={"class_": "class"}):
    """What is known of how one class gets from hidden states to a token.

    Attributes:
        class_: the dotted class (in JSON: ``class``).
        platforms: on which of the platforms of the document all of this holds.
        logits: the head path of the method that the capability must agree with, or null.
        tokens: the head path of the capability, or null where the class lacks it.
        shape: the name of the first path's shape; ``unnamed`` where none fits; null where the
            path could not be followed.
        fix: what the shape says of providing the capability, in a sentence.
        equivalence: ``equivalent``, ``different``, ``conditional`` or ``unproven``; null where a
            method is missing.
        reason: why.
        returns: what ``forward`` returns in each position: ``normed by …``, ``raw`` or ``unknown``.
        norm: how often the hidden states for the logits are normed on the way to the head:
            ``once``, ``double``, ``never`` or ``unknown``; null where it does not apply.
        terms: the two terms where they differ, or where the proof stopped; else empty.
        conditions: what the equality rests on.
        remarks: what a reader should know (a norm applied twice, a check in one method only).
    """

    class_: str
    platforms: tuple[str, ...]
    logits: MethodPath | None
    tokens: MethodPath | None
    shape: str | None = None
    fix: str | None = None
    equivalence: str | None = None
    reason: str | None = None
    returns: tuple[str, ...] = ()
    norm: str | None = None
    terms: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    remarks: tuple[Step, ...] = ()


class Finding(msgspec.Struct, frozen=True):
    """A coded, located remark."""

    code: str
    severity: Literal["error", "warning", "note"]
    message: str
    path: str
    line: int
    architectures: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()


class Caller(msgspec.Struct, frozen=True, rename={"class_": "class"}):
    """A class of the engine that may draft, and what it calls on its draft model.

    Attributes:
        class_: the dotted class (in JSON: ``class``).
        runner: the model runner that makes it.
        method: the speculative method with which it is made.
        conditions: what a checkpoint or a user must say for it; empty where nothing else can be.
        open: why it is not sure that it can be made at all, or null.
        made: the call that makes it.
        calls: its calls of the capability, and of the method that must agree with it.
        guarded: whether it asks for the capability before it calls it.
        architectures: what it may draft for.
    """

    class_: str
    runner: str
    method: str
    conditions: tuple[str, ...]
    open: str | None
    made: Step
    calls: tuple[Step, ...]
    guarded: bool
    architectures: tuple[str, ...] = ()


#: Kinds of undecided items that are input which was not analysed at all.
INPUT_KINDS = frozenset({"source", "table", "file"})


class UndecidedItem(msgspec.Struct, frozen=True):
    """Something that could not be evaluated.

    Attributes:
        kind: ``file`` (did not parse or could not be read), ``condition``, ``base``, ``table``,
            ``source`` (a member of the source that was left out), ``caller`` (what calls the
            method, or drafts for an architecture) or ``plugin`` (what a plugin does).
        path: where; relative to the folder that holds ``vllm/``.
        line: 1-based, or 0 when the whole file is meant.
        text: the source text in question, or empty.
        reason: why it could not be evaluated, and what would decide it.
        platforms: on which platforms it stayed open; empty when it concerns all.
        architectures: which answers depend on it; empty when none does.
    """

    kind: Literal["file", "condition", "base", "table", "source", "caller", "plugin"]
    path: str
    line: int
    text: str
    reason: str
    platforms: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()


class SourceInfo(msgspec.Struct, frozen=True):
    """What was audited: a label for people, the version, and a digest of the files read."""

    label: str
    version: str | None
    digest: str


class Question(msgspec.Struct, frozen=True):
    """What the capability of a document is: what the engine probes, and what follows.

    Attributes:
        attribute: the attribute that is probed.
        part: the attribute of the model that is asked in its stead, or null.
        model: ``draft`` or ``target``.
        agrees_with: the method that it must pick the same token as; null where ``hasattr`` alone
            decides.
        without: what the engine does with a model that lacks it.
        text: the same in words.
    """

    attribute: str
    part: str | None
    model: Literal["draft", "target"]
    agrees_with: str | None
    without: Literal["raises", "falls back", "skips"]
    text: str


class PluginEvent(msgspec.Struct, frozen=True):
    """One thing that a plugin does to vLLM.

    Attributes:
        kind: ``architecture`` (registered), ``table`` (an entry of a registry table), ``attribute``
            (of a class or module), ``module`` (replaced), ``config`` (an attribute of the class
            that holds the speculative configuration), ``hook`` (on importing), ``entry`` (an entry
            point), ``worker`` (a class that makes one) or ``call`` (one that is not followed).
        target: what it is done to: the architecture, or a dotted name.
        value: what is put there, as far as it is known.
        path: where; relative to the folder that holds the plugin's packages.
        line: 1-based.
        text: the source line.
        outcome: ``applied``, ``undecided``, ``dead`` (a guard keeps it from being done) or
            ``failed``.
        reason: why it is undecided, dead or failed; what is to be said of it otherwise.
        platforms: on which platforms of the document.
        guards: the conditions above it.
    """

    kind: Literal[
        "architecture",
        "table",
        "attribute",
        "module",
        "config",
        "hook",
        "entry",
        "worker",
        "call",
    ]
    target: str
    value: str
    path: str
    line: int
    text: str
    outcome: Literal["applied", "undecided", "dead", "failed"]
    reason: str = ""
    platforms: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()


class PluginInfo(msgspec.Struct, frozen=True):
    """A plugin that was loaded over the source.

    Attributes:
        name: its normalised name.
        label: for people: the name with the version.
        version: its release, or null.
        platform: the platform that it provides and that was answered for, or null.
        platform_class: the dotted class of that platform, or null.
        entry_points: each entry point that vLLM loads, and where it stands.
        events: what it does to vLLM, in order.
    """

    name: str
    label: str
    version: str | None
    platform: str | None
    platform_class: str | None
    entry_points: tuple[Step, ...] = ()
    events: tuple[PluginEvent, ...] = ()


class Coverage(msgspec.Struct, frozen=True):
    """The whole answer for one source.

    Attributes:
        schema_version: of this document (``major.minor``; a new major breaks readers).
        capability: the name of the capability asked for.
        registry: dotted name of the table the entries come from; of several, with commas.
        source: what was audited.
        platforms: the platforms asked for, in the order of the report.
        imports: ``run`` when the import run was done, ``skipped`` when it was not.
        notes: sentences about the whole audit (``this release has no such flag``).
        rows: one an entry and platform.
        heads: one a class that some row resolves to, and set of platforms where it is the same.
        findings: remarks.
        undecided: what was not decided.
        callers: the classes of the engine that draft, and what they call.
        plugins: the plugins over the source, in the order in which they were loaded.
        question: what the capability is; null in documents before 1.2.
        legend: what a cell means here, where that is not what :data:`VERDICTS` says.
    """

    schema_version: str
    capability: str
    registry: str
    source: SourceInfo
    platforms: tuple[str, ...]
    imports: Literal["run", "skipped"]
    notes: tuple[str, ...]
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...] = ()
    undecided: tuple[UndecidedItem, ...] = ()
    callers: tuple[Caller, ...] = ()
    heads: tuple[Head, ...] = ()
    plugins: tuple[PluginInfo, ...] = ()
    question: Question | None = None
    legend: dict[str, str] = {}


def meaning(coverage: Coverage, verdict: VerdictName) -> str:
    """What a cell of a document means."""
    return coverage.legend.get(verdict, VERDICTS[verdict])


def sorted_coverage(coverage: Coverage) -> Coverage:
    """The same document in its one canonical order. The only place that sorts.

    Rows keep the order of ``coverage.platforms`` within an architecture; everything else is
    sorted by value.
    """
    position = {name: index for index, name in enumerate(coverage.platforms)}
    return msgspec.structs.replace(
        coverage,
        rows=tuple(
            sorted(coverage.rows, key=lambda row: (row.architecture, position[row.platform]))
        ),
        heads=tuple(
            sorted(coverage.heads, key=lambda h: (h.class_, [position[p] for p in h.platforms]))
        ),
        findings=tuple(
            sorted(coverage.findings, key=lambda f: (f.path, f.line, f.code, f.message))
        ),
        callers=tuple(
            sorted(coverage.callers, key=lambda c: (c.class_, c.runner, c.method, c.conditions))
        ),
        undecided=tuple(
            sorted(coverage.undecided, key=lambda u: (u.kind, u.path, u.line, u.text, u.reason))
        ),
    )


def to_json(coverage: Coverage) -> bytes:
    """The document as indented JSON with a final newline; same input, same bytes."""
    return msgspec.json.format(msgspec.json.encode(coverage), indent=2) + b"\n"


def from_json(data: bytes) -> Coverage:
    """Read a document written by :func:`to_json`.

    Raises:
        msgspec.ValidationError: the document is not a Coverage, with the JSON path at fault.
    """
    return msgspec.json.decode(data, type=Coverage)


def json_schema() -> dict[str, object]:
    """The JSON Schema (2020-12) of the Coverage document."""
    schema = msgspec.json.schema(Coverage)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "draftaudit coverage",
        **schema,
    }
