"""Reads ``rules/``: data files in TOML, checked against typed structures.

The folder stands beside the packages in a checkout, and inside the ``auditor`` package in an
installed wheel, since ``rules`` as a top-level package name belongs to another project.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from auditor import rulefiles
from auditor.errors import RuleError

_Rule = TypeVar("_Rule")


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule: a key that is not known is an error, not a silent no-op."""


class PackageRule(_Strict, frozen=True):
    """Where the audited package keeps the objects that conditions ask."""

    name: str
    current_platform: str


class PythonRule(_Strict, frozen=True):
    """Python releases that the audited package is run with."""

    versions: tuple[str, ...]


class RegistryRule(_Strict, frozen=True):
    """Where models are registered.

    Attributes:
        module: the module of the tables.
        package: what module names of a table are relative to.
        object: the object whose method registers a model, dotted.
        register: that method.
        models: the attribute that holds what is registered.
    """

    module: str
    package: str
    object: str
    register: str
    models: str


class PluginsRule(_Strict, frozen=True):
    """How plugins are loaded.

    Attributes:
        platform_group: the group of entry points that may give a platform.
        general_group: the group whose functions are called for what they do.
        enum: the attribute of a platform class that says which platform it is.
        prepare: methods of the platform class that are called while a server starts.
        worker: the attribute of a configuration that names the class of a worker.
        worker_base: what such a class derives from.
        brought: modules that come with what the package itself requires.
    """

    platform_group: str
    general_group: str
    enum: str
    prepare: tuple[str, ...]
    worker: str
    worker_base: str
    brought: tuple[str, ...]


class Flag(_Strict, frozen=True):
    """A setting, and the class that holds it."""

    name: str
    holder: str


class QuestionRule(_Strict, frozen=True):
    """What an audit asks for when it is not told."""

    capability: str


class TargetRule(_Strict, frozen=True):
    """``rules/vllm.toml``."""

    package: PackageRule
    registry: RegistryRule
    plugins: PluginsRule
    question: QuestionRule
    overrides: Flag
    constants: dict[str, bool | str | int]
    python: PythonRule


class GuardRule(_Strict, frozen=True):
    """Where the engine asks a model.

    Attributes:
        search: the folder below which it is looked for.
        functions: names of functions of the tree that ask for it, given a model.
    """

    search: str
    functions: tuple[str, ...] = ()


class WithoutRule(_Strict, frozen=True):
    """What the engine does with a model that lacks a capability, and the same in a sentence."""

    does: Literal["raises", "falls back", "skips"]
    text: str


class Capability(_Strict, frozen=True):
    """``rules/capabilities/*.toml``: something that the engine probes a model for.

    Attributes:
        name: what it is called on the command line.
        summary: what a model with it can do.
        registry: the table or tables whose entries are asked, as ``module.NAME``.
        without: what follows where a model lacks it.
        attribute: what is probed; the name itself unless given.
        part: the attribute of the model that is asked in its stead (``model`` for
            ``hasattr(draft.model, …)``).
        model: whether the draft or the target is asked.
        agrees_with: the method that it must pick the same token as; without one, ``hasattr``
            alone decides.
        mixin: the class that provides it to whoever inherits it.
        flag: the setting that makes the engine ask.
        guard: where the engine asks.
        verdicts: other words for a cell than the usual ones.
        valid: sources with a class ``Draft`` that has it.
        invalid: sources with one that lacks it.
    """

    name: str
    summary: str
    registry: str | tuple[str, ...]
    without: WithoutRule
    attribute: str = ""
    part: str | None = None
    model: Literal["draft", "target"] = "draft"
    agrees_with: str | None = None
    mixin: str | None = None
    flag: Flag | None = None
    guard: GuardRule | None = None
    verdicts: dict[str, str] = {}
    valid: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()

    @property
    def probed(self) -> str:
        """The attribute that ``hasattr`` is asked for."""
        return self.attribute or self.name

    @property
    def tables(self) -> tuple[str, ...]:
        """The registry tables."""
        return (self.registry,) if isinstance(self.registry, str) else self.registry


class ModuleRule(_Strict, frozen=True):
    """Whether modules exist on a platform, and why that is so."""

    names: tuple[str, ...]
    exist: bool
    reason: str


class DistributionRule(_Strict, frozen=True):
    """``rules/distributions.toml``: the modules that a distribution brings."""

    name: str
    modules: tuple[str, ...]
    reason: str = ""


class VendoredRule(_Strict, frozen=True):
    """Python packages that building an extension copies into the tree.

    ``compiled`` says whether a module of the extension's own name exists as well; ``until`` is
    the first release that has the packages in its own tree.
    """

    extension: str
    provides: tuple[str, ...]
    compiled: bool
    until: str = ""


class _Distributions(_Strict, frozen=True):
    distribution: tuple[DistributionRule, ...]
    vendored: tuple[VendoredRule, ...]
    generated: tuple[ModuleRule, ...]
    optional: tuple[ModuleRule, ...]


class RecordedLine(_Strict, frozen=True):
    """A line that releases from ``since`` on have, up to and without ``until``."""

    text: str
    since: str = ""
    until: str = ""


class RecordedRequirements(_Strict, frozen=True):
    """What a requirement file says, over all releases."""

    file: str
    lines: tuple[RecordedLine, ...]


class RecordedExtensions(_Strict, frozen=True):
    """The extension modules that ``setup.py`` builds for a platform, over all releases."""

    platform: str
    lines: tuple[RecordedLine, ...]


class Builds(_Strict, frozen=True):
    """``rules/builds.toml``: what the files say that a wheel does not hold."""

    requirements: tuple[RecordedRequirements, ...]
    extensions: tuple[RecordedExtensions, ...]


class PlatformExample(_Strict, frozen=True):
    """A condition and its truth on the platform: ``true``, ``false`` or ``undecided``."""

    condition: str
    is_: str = msgspec.field(name="is")


class PlatformRule(_Strict, frozen=True):
    """``rules/platforms/*.toml``.

    Attributes:
        attributes: values of plain attributes of ``current_platform``.
        predicates: results of its methods that take no argument.
        requirements: files of the tree that list the platform's distributions; releases have had
            some of them under other names.
        constants: Python literals that dotted names outside the tree stand for there.
        target_device: the value of VLLM_TARGET_DEVICE that builds for it.
        build: what holds while ``setup.py`` runs for it (names to values).
        modules: modules outside the tree that count before what the tree says of them.
        fallback: modules outside the tree for which the tree may say nothing.
        order: position of the column in reports.
    """

    name: str
    summary: str
    order: int
    attributes: dict[str, str]
    predicates: dict[str, bool]
    requirements: tuple[str, ...] = ()
    constants: dict[str, str] = {}
    target_device: str | None = None
    build: dict[str, bool | str] = {}
    modules: tuple[ModuleRule, ...] = ()
    fallback: tuple[ModuleRule, ...] = ()
    examples: tuple[PlatformExample, ...] = ()


@cache
def rules_folder() -> Path:
    """The folder that holds the rules, in a checkout or in an installed package.

    Raises:
        RuleError: the installation is incomplete.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "rules", package.parent / "rules"):
        if (folder / "vllm.toml").is_file():
            return folder
    raise RuleError(
        "the rules folder is missing", where=package.name, next_step="Reinstall draftaudit."
    )


#: A folder with rules, with a digest of them: by both, what is read there is kept.
_Folder = tuple[Path, bytes]

#: Folders with rules of a user, laid over those of the project.
_OVER: ContextVar[tuple[_Folder, ...]] = ContextVar("rules of a user", default=())


@contextmanager
def laid_over(folders: Sequence[str | Path]) -> Iterator[None]:
    """Within this, rules are those of the project and those of these folders."""
    known = dict(_OVER.get())
    known.update((Path(folder), digest_over([folder])) for folder in folders)
    token = _OVER.set(tuple(known.items()))
    try:
        yield
    finally:
        _OVER.reset(token)


def digest_over(folders: Sequence[str | Path]) -> bytes:
    """A digest of the rules in these folders; empty without one."""
    files = [path for folder in folders for path in sorted(Path(folder).rglob("*.toml"))]
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        digest.update(f"{path.parent.name}/{path.name}\0".encode())
        digest.update(path.read_bytes())
    return digest.digest() if files else b""


def load(path: Path, type_: type[_Rule]) -> _Rule:
    """Read one rule file.

    Raises:
        RuleError: the file cannot be read, is not TOML, or not what ``type_`` says; the message
            names file, line and key.
    """
    own = path.is_relative_to(rules_folder())
    name = (path.relative_to(rules_folder().parent) if own else path).as_posix()
    return rulefiles.read(rulefiles.text_of(path, name), type_, name)


def _load_all(folder: str, type_: type[_Rule], over: Iterable[_Folder] = ()) -> Iterator[_Rule]:
    for root in (rules_folder(), *(path for path, _ in over)):
        for path in sorted((root / folder).glob("*.toml")):
            yield load(path, type_)


@cache
def target() -> TargetRule:
    """The conventions of the audited package."""
    return load(rules_folder() / "vllm.toml", TargetRule)


class HeadRule(_Strict, frozen=True):
    """``rules/head.toml``: classes that a head path is made of."""

    processors: tuple[str, ...]
    top_tokens_methods: tuple[str, ...]
    norms: tuple[str, ...]
    identities: tuple[str, ...]
    leaves: tuple[str, ...]
    norm_functions: tuple[str, ...]
    norm_names: str
    transparent_decorators: tuple[str, ...]
    views: tuple[str, ...]
    neutral_methods: tuple[str, ...]
    silent_calls: tuple[str, ...]
    pure_functions: tuple[str, ...]
    pure_methods: tuple[str, ...]
    pure_modules: tuple[str, ...]
    silent_contexts: tuple[str, ...]
    conversions: tuple[str, ...]
    chance: tuple[str, ...]
    compilers: tuple[str, ...]
    plain_bases: tuple[str, ...]
    module_attributes: tuple[str, ...]
    processor_inputs: tuple[str, ...]
    processor_sizes: tuple[str, ...]
    processor_factors: tuple[str, ...]
    processor_caps: tuple[str, ...]
    head_sizes: tuple[str, ...]
    handed_on: tuple[str, ...]
    gathers: tuple[str, ...]


class ShapeRule(_Strict, frozen=True):
    """``rules/shapes/*.toml``: a name for head paths that are built alike.

    A head path has the shape when every way through the method does.

    Attributes:
        order: the first shape that fits, by this number, is the one.
        action: the kind of patch that provides the capability: ``mixin``, ``method``, ``pair``,
            ``none`` where nothing is missing, ``refuse`` where none can be derived.
        fix: what to do, in a sentence.
        head: patterns, one of which the head fits; see ``auditor/headpath/shapes.py``.
        hidden: patterns, one of which the hidden states fit.
        passed: on some way the head must have been handed to an inner method.
        stored: the method must set an attribute to a parameter.
        through: globs, one of which a name that takes part in the hidden states must fit.
        some_post: kinds of post-processing, one of which must occur on some way.
        processor: ``missing`` where some way must not go through the logits processor.
        special: ``missing`` (no method) or ``stub`` (only raises).
        valid: sources of draft models that have the shape.
        invalid: sources that do not.
    """

    name: str
    order: int
    summary: str
    action: Literal["mixin", "method", "pair", "none", "refuse"]
    fix: str
    valid: tuple[str, ...]
    invalid: tuple[str, ...]
    head: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    passed: bool = False
    stored: bool = False
    through: tuple[str, ...] = ()
    some_post: tuple[str, ...] = ()
    processor: Literal["missing"] | None = None
    special: Literal["missing", "stub"] | None = None


def shapes() -> tuple[ShapeRule, ...]:
    """Every shape, the first that fits first."""
    return _shapes(_OVER.get())


@cache
def _shapes(over: tuple[_Folder, ...]) -> tuple[ShapeRule, ...]:
    return tuple(sorted(_load_all("shapes", ShapeRule, over), key=lambda rule: rule.order))


@cache
def head_rule() -> HeadRule:
    """What a head path is made of."""
    return load(rules_folder() / "head.toml", HeadRule)


class FieldRule(_Strict, frozen=True):
    """Configuration fields by a glob, and the constant of a generated test that stands for them."""

    name: str
    constant: str


class ArgumentsRule(_Strict, frozen=True):
    """Arguments of constructors that a part that stands alone does without."""

    dropped: tuple[str, ...]


class HarnessRule(_Strict, frozen=True):
    """``rules/harness.toml``: with what a generated test builds the parts of a draft model."""

    fields: tuple[FieldRule, ...]
    constants: dict[str, int | float]
    arguments: ArgumentsRule


@cache
def harness_rule() -> HarnessRule:
    """With what generated tests build models."""
    return load(rules_folder() / "harness.toml", HarnessRule)


class DrafterRule(_Strict, frozen=True):
    """What a model runner makes to draft, and what that calls."""

    attributes: tuple[str, ...]
    model: str
    entries: tuple[str, ...]
    step: str


class ConfigRule(_Strict, frozen=True):
    """The speculative configuration: its class, and the code that settles it."""

    attribute: str
    settle: str
    override: str
    method: str
    methods: str
    independent: tuple[str, ...]
    class_: str = msgspec.field(name="class")


class DraftRule(_Strict, frozen=True):
    """The table of draft models, their configuration, and how a checkpoint's own is changed."""

    table: str
    attribute: str
    name: str
    target: str
    checkpoint: str
    overrides: str
    architectures: str
    model_type: str
    bases: tuple[str, ...]
    updaters: tuple[str, ...]
    class_: str = msgspec.field(name="class")


class ConvertedRule(_Strict, frozen=True):
    """Checkpoints in a format of their own, and the code that converts them."""

    module: str
    decorator: str
    key: str
    settle: str
    class_: str = msgspec.field(name="class")


class TypesRule(_Strict, frozen=True):
    """The classes of the tree for model types: the table, and the modules of those classes."""

    table: str
    modules: str


class ModelsRule(_Strict, frozen=True):
    """By what the engine's code is told to hold a model.

    Attributes:
        search: the folder where the engine asks models what they have.
        interfaces: modules whose functions ask a model, and whose protocols it is an instance of.
        makers: functions and methods that give a model, or its class.
        part_makers: those that give parts of one.
        names: globs over names of variables, parameters and attributes that hold one.
        not_models: globs over names that hold none, though one of the others fits.
        modules: globs over annotations, by which it is a model or a part of one.
        parts: globs over annotations of parts.
        unsure: globs over annotations that leave it open.
    """

    search: str
    interfaces: tuple[str, ...]
    makers: tuple[str, ...]
    part_makers: tuple[str, ...]
    names: tuple[str, ...]
    not_models: tuple[str, ...]
    modules: tuple[str, ...]
    parts: tuple[str, ...]
    unsure: tuple[str, ...]


class EngineRule(_Strict, frozen=True):
    """``rules/engine.toml``: how the engine comes to the object that drafts."""

    drafter: DrafterRule
    config: ConfigRule
    draft: DraftRule
    converted: ConvertedRule
    types: TypesRule
    models: ModelsRule


class FindingRule(_Strict, frozen=True):
    """``rules/findings/*.toml``: a remark that an audit may make.

    Attributes:
        what: the remark in a sentence.
        why: what comes of it.
        fix: what to do.
        link: public code or discussion about it, or empty.
        valid: plugins, with files of a release, of which this is not said; see
            :func:`example_files`.
        invalid: those of which it is.
    """

    code: str
    severity: Literal["error", "warning", "note"]
    what: str
    why: str
    fix: str
    link: str = ""
    valid: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()


def example_files(example: str) -> dict[str, str]:
    """The files of an example: each begins with a line ``=== path``."""
    parts = example.strip().split("=== ")[1:]
    return {head.strip(): body for head, _, body in (part.partition("\n") for part in parts)}


_Coded = TypeVar("_Coded", bound=FindingRule)


def finding_rules() -> tuple[FindingRule, ...]:
    """Every remark that an audit may make, by code; each text on one line."""
    return tuple(load_named("findings", FindingRule).values())


def load_named(folder: str, type_: type[_Coded]) -> dict[str, _Coded]:
    """The coded rules of a folder, in the order of their codes, by the names of their files."""
    return _load_named(folder, type_, _OVER.get())


@cache
def _load_named(folder: str, type_: type[_Coded], over: tuple[_Folder, ...]) -> dict[str, _Coded]:
    """A user's rule of the same code takes the place of the project's."""
    found: dict[str, tuple[str, _Coded]] = {}
    for root in (rules_folder(), *(path for path, _ in over)):
        for path in sorted((root / folder).glob("*.toml")):
            rule = _on_one_line(load(path, type_))
            found[rule.code] = path.stem, rule
    return dict(found[code] for code in sorted(found))


def _on_one_line(rule: _Coded) -> _Coded:
    what, why, fix = (" ".join(text.split()) for text in (rule.what, rule.why, rule.fix))
    return msgspec.structs.replace(rule, what=what, why=why, fix=fix)


@cache
def engine_rule() -> EngineRule:
    """How the engine comes to the object that drafts."""
    return load(rules_folder() / "engine.toml", EngineRule)


@cache
def distributions() -> tuple[DistributionRule, ...]:
    """Distributions whose modules are not named like them."""
    return load(rules_folder() / "distributions.toml", _Distributions).distribution


@cache
def vendored() -> tuple[VendoredRule, ...]:
    """Packages that come with an extension."""
    return load(rules_folder() / "distributions.toml", _Distributions).vendored


@cache
def generated() -> tuple[ModuleRule, ...]:
    """Modules of the package that building it writes, on every platform."""
    return load(rules_folder() / "distributions.toml", _Distributions).generated


@cache
def builds() -> Builds:
    """What each release says of its builds."""
    return load(rules_folder() / "builds.toml", Builds)


@cache
def optional_modules() -> tuple[ModuleRule, ...]:
    """Modules that no requirement file names, and what holds for them on every platform."""
    return load(rules_folder() / "distributions.toml", _Distributions).optional


def platforms() -> tuple[PlatformRule, ...]:
    """Every platform, in the order of the report."""
    return _platforms(_OVER.get())


@cache
def _platforms(over: tuple[_Folder, ...]) -> tuple[PlatformRule, ...]:
    return tuple(sorted(_load_all("platforms", PlatformRule, over), key=lambda rule: rule.order))


def platform_names() -> tuple[str, ...]:
    """The known platforms, in the order of reports."""
    return tuple(rule.name for rule in platforms())


class ExamplesRule(_Strict, frozen=True):
    """``rules/examples.toml``: the tree that examples of rules stand in.

    Attributes:
        module: the module of an example.
        class_: its class, which the registry names.
        entry: the key of that entry.
        imports: what stands before an example.
        condition: the module of a condition's example.
        files: the other files, by path.
    """

    module: str
    entry: str
    imports: str
    condition: str
    files: dict[str, str]
    class_: str = msgspec.field(name="class")


@cache
def examples_rule() -> ExamplesRule:
    """The tree that examples of rules stand in."""
    return load(rules_folder() / "examples.toml", ExamplesRule)


def capabilities() -> tuple[Capability, ...]:
    """Every capability, by name."""
    return _capabilities(_OVER.get())


@cache
def _capabilities(over: tuple[_Folder, ...]) -> tuple[Capability, ...]:
    rules = map(_with_full_tables, _load_all("capabilities", Capability, over))
    return tuple(sorted(rules, key=lambda rule: rule.name))


def _with_full_tables(rule: Capability) -> Capability:
    """The rule with its tables as ``module.NAME``; a name alone is one of the registry."""
    module = target().registry.module
    tables = tuple(name if "." in name else f"{module}.{name}" for name in rule.tables)
    return msgspec.structs.replace(rule, registry=tables if len(tables) > 1 else tables[0])


def capability(name: str = "") -> Capability:
    """The capability of this name; without one, what an audit asks for when it is not told.

    Raises:
        RuleError: no rule file describes it.
    """
    wanted = name or target().question.capability
    for rule in capabilities():
        if rule.name == wanted:
            return rule
    raise RuleError(f"no capability named {name!r}", where="rules/capabilities")


def capability_names() -> tuple[str, ...]:
    """The known capabilities."""
    return tuple(rule.name for rule in capabilities())
