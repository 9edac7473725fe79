"""What is said of the audited package as a whole: ``rules/vllm.toml``."""

from __future__ import annotations

from functools import cache

from auditor.ruleset.files import Strict, load, rules_folder


class PackageRule(Strict, frozen=True):
    """Where the audited package keeps the objects that conditions ask."""

    name: str
    current_platform: str


class PythonRule(Strict, frozen=True):
    """Python releases that the audited package is run with."""

    versions: tuple[str, ...]


class RegistryRule(Strict, frozen=True):
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


class PluginsRule(Strict, frozen=True):
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


class Flag(Strict, frozen=True):
    """A setting, and the class that holds it."""

    name: str
    holder: str


class QuestionRule(Strict, frozen=True):
    """What an audit asks for when it is not told."""

    capability: str


class TargetRule(Strict, frozen=True):
    """``rules/vllm.toml``."""

    package: PackageRule
    registry: RegistryRule
    plugins: PluginsRule
    question: QuestionRule
    overrides: Flag
    constants: dict[str, bool | str | int]
    python: PythonRule


@cache
def target() -> TargetRule:
    """The conventions of the audited package."""
    return load(rules_folder() / "vllm.toml", TargetRule)
