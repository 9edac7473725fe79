"""What may be asked of a source, and what may be used to answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec


class Request(msgspec.Struct, frozen=True):
    """What to ask of a source.

    Attributes:
        platforms: names; empty for every known platform.
        architectures: globs over registry keys; empty for all.
        assume: source text or name of a condition to its value.
        env: environment variables.
        run_imports: follow every import; otherwise only what a name needs.
        with_modules: modules taken to exist on every platform asked for.
        without_modules: modules taken to be missing there.
        failing_modules: modules that exist there and cannot be imported: the type and the message
            of the exception.
        capability: the name of what is asked for; empty for the usual one.
        registry: the tables whose entries are asked; empty for those of the capability.
        rules: folders with rules of the user, laid over those of the project.
        overrides: architectures to ``module:Class``, as if registered before any model is loaded.
    """

    platforms: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    assume: Mapping[str, str] = msgspec.field(default_factory=dict)
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    run_imports: bool = True
    with_modules: tuple[str, ...] = ()
    without_modules: tuple[str, ...] = ()
    failing_modules: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    capability: str = ""
    registry: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    overrides: Mapping[str, str] = msgspec.field(default_factory=dict)


class Resources(msgspec.Struct, frozen=True):
    """What may be used to answer faster; no answer depends on it.

    Attributes:
        cache: the folder where facts of files are kept, or None.
        processes: how many processes to use; None for as many as help.
    """

    cache: Path | None = None
    processes: int | None = None
