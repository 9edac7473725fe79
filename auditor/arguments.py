"""What the options of ``audit`` accept: the values that they are given, read and checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from auditor.errors import DraftauditError
from auditor.options import CONFIG

#: Gives the names of a closed set.
Names = Callable[[], Sequence[str]]
#: What click calls with the values of an option that may be repeated.
Callback = Callable[[click.Context, click.Parameter, Sequence[str]], object]


def names_of(kind: str, known: Names) -> Callback:
    """Comma-separated names of a closed set, loaded when it is needed; duplicates count once."""

    def parse(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> object:
        names = [name.strip() for value in values for name in value.split(",")]
        for name in names:
            # A plugin may give a platform of its own, which is known once it is opened.
            if name not in known() and not (kind == "platform" and ctx.params.get("plugin")):
                from auditor.reports.names import hint

                message = f"no {kind} is called {name!r}. {hint(name, known())}"
                raise click.BadParameter(message, ctx, param)
        return tuple(dict.fromkeys(names))

    return parse


def kinds_of_change(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> tuple[str, ...] | None:
    """Kinds of change; None where none is given."""
    from auditor.changes import KINDS
    from auditor.config import ANY, NONE, kinds

    if not values:
        return None
    named: Any = names_of("kind of change", lambda: (*KINDS, NONE, ANY))(ctx, param, values)
    return kinds(named)


def name_of(kind: str, known: Names) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """One name of a closed set, loaded when it is needed."""

    def parse(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        if value is not None and value not in known():
            from auditor.reports.names import hint

            message = f"no {kind} is called {value!r}. {hint(value, known())}"
            raise click.BadParameter(message, ctx, param)
        return value

    return parse


def classes_by_name(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """``ARCH=module:Class``, as ``register_model`` reads it: one colon, and two names."""
    pairs = []
    for given in values:
        name, sign, target = given.partition("=")
        name, parts = name.strip(), [part.strip() for part in target.split(":")]
        if not sign or not name:
            raise click.BadParameter(f"{given!r} is not ARCH=module:Class.", ctx, param)
        if len(parts) != 2 or not all(_is_dotted(part) for part in parts) or "." in parts[1]:
            message = f"{target!r} is not <module>:<class>, such as package.module:Class."
            raise click.BadParameter(message, ctx, param)
        pairs.append((name, ":".join(parts)))
    return tuple(pairs)


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def load_rules(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> tuple[str, ...]:
    """Folders with rules of the user, in force from here on: other options may name them."""
    _lay_over(ctx, values, "--rules")
    return tuple(values)


def _lay_over(ctx: click.Context, folders: Sequence[str | Path], named: str) -> None:
    if folders:
        from auditor.ruleset.checks import check
        from auditor.ruleset.files import laid_over

        check(folders, named)
        ctx.with_resource(laid_over(folders))


def pairs_split_at(*, last: bool) -> Callback:
    """``NAME=VALUE``, split at the first or the last equals sign.

    A name that ends in a comparison (``x == 9``) was given without a value; it would be an
    assumption about nothing.
    """

    def parse(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> object:
        pairs = []
        for given in values:
            name, sign, value = given.rpartition("=") if last else given.partition("=")
            name = name.strip()
            if not sign or not name or (last and name[-1] in "=!<>"):
                raise click.BadParameter(f"{given!r} is not NAME=VALUE.", ctx, param)
            pairs.append((name, value.strip()))
        return tuple(pairs)

    return parse


def configure(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Read the configuration before any other option is looked at: it may bring platforms.

    What is wrong with it is told by the command that needs it: one may still say ``--config``.
    """
    from auditor import config

    if value is None and CONFIG in ctx.meta:
        return
    try:
        found = None
        if value is None:
            path = config.find(Path.cwd())
            found = config.read(path) if path is not None else None
        elif value != config.NONE:
            found = config.read(Path(value))
        if found is not None:
            from auditor.ruleset.platforms import platform_names

            _lay_over(ctx, found.rules, f"{found.name}: rules")
            config.check_platforms(found, platform_names())
        ctx.meta[CONFIG] = found
    except DraftauditError as error:
        ctx.meta[CONFIG] = error
