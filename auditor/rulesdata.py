"""Reads ``rules/``: data files in TOML, checked against typed structures.

The folder stands beside the packages in a checkout, and inside the ``auditor`` package in an
installed wheel, since ``rules`` as a top-level package name belongs to another project.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

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
        package: what module names of a table are relative to.
        object: the object whose method registers a model, dotted.
        register: that method.
        models: the attribute that holds what is registered.
    """

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


class TargetRule(_Strict, frozen=True):
    """``rules/vllm.toml``."""

    package: PackageRule
    registry: RegistryRule
    plugins: PluginsRule
    constants: dict[str, bool | str | int]
    python: PythonRule


class Flag(_Strict, frozen=True):
    """The setting that makes the engine ask for a capability, and the class that holds it."""

    name: str
    holder: str


class GuardRule(_Strict, frozen=True):
    """Below which folder the engine's ``hasattr`` is looked for."""

    search: str


class Capability(_Strict, frozen=True):
    """``rules/capabilities/*.toml``: a method that the engine probes a draft class for."""

    name: str
    summary: str
    registry: str
    agrees_with: str | None = None
    mixin: str | None = None
    flag: Flag | None = None
    guard: GuardRule | None = None


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


def load(path: Path, type_: type[_Rule]) -> _Rule:
    """Read one rule file.

    Raises:
        RuleError: the file is not TOML, or not what ``type_`` says; the message names the key.
    """
    where = path.relative_to(rules_folder().parent).as_posix()
    try:
        return msgspec.convert(tomllib.loads(path.read_text("utf-8")), type_)
    except tomllib.TOMLDecodeError as error:
        raise RuleError(f"not valid TOML: {error}", where=where) from error
    except msgspec.ValidationError as error:
        raise RuleError(str(error), where=where, next_step="Mend the file.") from error


def _load_all(folder: str, type_: type[_Rule]) -> Iterator[_Rule]:
    for path in sorted((rules_folder() / folder).glob("*.toml")):
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


@cache
def shapes() -> tuple[ShapeRule, ...]:
    """Every shape, the first that fits first."""
    return tuple(sorted(_load_all("shapes", ShapeRule), key=lambda rule: rule.order))


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
    """The configuration of the draft model, and how a checkpoint's own is changed."""

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


class EngineRule(_Strict, frozen=True):
    """``rules/engine.toml``: how the engine comes to the object that drafts."""

    drafter: DrafterRule
    config: ConfigRule
    draft: DraftRule
    converted: ConvertedRule
    types: TypesRule


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


@cache
def finding_rules() -> tuple[FindingRule, ...]:
    """Every remark that an audit may make, by code; each text on one line."""
    rules = (_on_one_line(rule) for rule in _load_all("findings", FindingRule))
    return tuple(sorted(rules, key=lambda rule: rule.code))


def _on_one_line(rule: FindingRule) -> FindingRule:
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


@cache
def platforms() -> tuple[PlatformRule, ...]:
    """Every platform, in the order of the report."""
    return tuple(sorted(_load_all("platforms", PlatformRule), key=lambda rule: rule.order))


@cache
def capability(name: str) -> Capability:
    """The capability of this name.

    Raises:
        RuleError: no rule file describes it.
    """
    for rule in _load_all("capabilities", Capability):
        if rule.name == name:
            return rule
    raise RuleError(f"no capability named {name!r}", where="rules/capabilities")


def platform_names() -> tuple[str, ...]:
    """The known platforms, in the order of reports."""
    return tuple(rule.name for rule in platforms())
