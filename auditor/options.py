"""The options of ``audit``, what they accept, and what the user asked for with them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

#: The narrowest table that keeps one word a cell for six platforms.
_MIN_WIDTH = 60
#: Where no terminal says how wide it is: a log, a file.
_LOG_WIDTH = 120

FORMATS = ("table", "json", "markdown", "csv")
VLLM_HELP = """The vLLM to audit: a folder, an archive, PATH@REVISION, 'installed', 'latest' or a
version. Default: the checkout around the working directory, else the installed package, else
the latest release."""

#: The value of ``--live`` without one; nobody can type it.
OWN_PYTHON = "\0"

_Command = Callable[..., int]


def _verdict_names() -> tuple[str, ...]:
    from auditor.coverage import VERDICTS

    return tuple(VERDICTS)


def _platform_names() -> tuple[str, ...]:
    from auditor.api import platform_names

    return platform_names()


def _capability_names() -> tuple[str, ...]:
    from auditor.rulesdata import capability_names

    return capability_names()


_Names = Callable[[], Sequence[str]]
_Callback = Callable[[click.Context, click.Parameter, Sequence[str]], object]


def names_of(kind: str, known: _Names) -> _Callback:
    """Comma-separated names of a closed set, loaded when it is needed; duplicates count once."""

    def parse(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> object:
        names = [name.strip() for value in values for name in value.split(",")]
        for name in names:
            if name not in known():
                from auditor.reports.names import hint

                message = f"no {kind} is called {name!r}. {hint(name, known())}"
                raise click.BadParameter(message, ctx, param)
        return tuple(dict.fromkeys(names))

    return parse


def name_of(kind: str, known: _Names) -> Callable[[click.Context, click.Parameter, Any], Any]:
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


def _load_rules(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> tuple[str, ...]:
    """Folders with rules of the user, in force from here on: other options may name them."""
    if values:
        from auditor.rulechecks import check
        from auditor.rulesdata import laid_over

        check(values)
        ctx.with_resource(laid_over(values))
    return tuple(values)


def pairs_split_at(*, last: bool) -> _Callback:
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


def _given(params: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were typed. An empty text counts: it is an error for whoever reads it."""
    return {name: value for name, value in params.items() if value not in (None, False, ())}


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for, on the group and on the subcommand together."""

    vllm: str | None = None
    platform: tuple[str, ...] = ()
    arch: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    fail_on: tuple[str, ...] = ()
    format: str | None = None
    output: str | None = None
    width: int | None = None
    no_color: bool = False
    quiet: bool = False
    assume: tuple[tuple[str, str], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    no_imports: bool = False
    with_module: tuple[str, ...] = ()
    without_module: tuple[str, ...] = ()
    cache_dir: str | None = None
    no_cache: bool = False
    capability: str | None = None
    registry: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    override: tuple[tuple[str, str], ...] = ()
    live: str | None = None
    live_timeout: int | None = None

    @classmethod
    def merged(cls, ctx: click.Context, given: Mapping[str, Any]) -> Options:
        """Options before the subcommand count as if they stood after it.

        Repeatable ones add up, of the others the later wins. One that the subcommand does not
        have is an error, so that nothing the user typed is ignored.
        """
        before = _given(ctx.parent.params if ctx.parent else {})
        for param in ctx.parent.command.params if ctx.parent else ():
            if param.name in before and param.name not in given:
                raise click.UsageError(f"{param.opts[-1]} has no meaning for {ctx.info_name}.", ctx)
        after = _given(given)
        both = {
            name: (*before[name], *value)
            for name, value in after.items()
            if name in before and isinstance(value, tuple)
        }
        return cls(**{**before, **after, **both})

    @property
    def in_color(self) -> bool:
        """Whether the report may hold ANSI codes (https://no-color.org)."""
        plain = self.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return self.to_stdout and not plain and sys.stdout.isatty()

    @property
    def columns(self) -> int:
        """How wide the report may be, in terminal cells."""
        terminal = shutil.get_terminal_size((_LOG_WIDTH, 24)).columns
        return self.width or max(terminal, _MIN_WIDTH)

    @property
    def to_stdout(self) -> bool:
        """Whether the report goes to standard output."""
        return self.output in (None, "-")

    @property
    def for_people(self) -> bool:
        """Whether the report is the one for a terminal."""
        return self.format in (None, "table")


def _option(*flags: str, **settings: Any) -> tuple[str, Callable[[_Command], _Command]]:
    return flags[-1], click.option(*flags, **settings)


def _several(*flags: str, metavar: str, **settings: Any) -> tuple[str, Any]:
    return _option(*flags, multiple=True, metavar=metavar, **settings)


def _listed(*flags: str, kind: str, known: _Names, **settings: Any) -> tuple[str, Any]:
    metavar = f"{kind.upper()}[,...]"
    return _several(*flags, metavar=metavar, callback=names_of(kind, known), **settings)


def _pairs(*flags: str, last: bool, **settings: Any) -> tuple[str, Any]:
    return _several(*flags, metavar="NAME=VALUE", callback=pairs_split_at(last=last), **settings)


_VERDICT: Mapping[str, Any] = {"kind": "verdict", "known": _verdict_names}
_PLATFORM: Mapping[str, Any] = {"kind": "platform", "known": _platform_names}

_OPTIONS = (
    _option("--vllm", metavar="SPEC", help=VLLM_HELP),
    _listed("-p", "--platform", help="Platforms to answer for; default all.", **_PLATFORM),
    _several("-a", "--arch", metavar="GLOB", help="Architectures to answer for; default all."),
    _option(
        "-c",
        "--capability",
        metavar="NAME",
        callback=name_of("capability", _capability_names),
        help="What to ask for; see `audit capabilities`.",
    ),
    _several("--registry", metavar="TABLE[,...]", help="Ask the entries of these registry tables."),
    _several(
        "--override",
        metavar="ARCH=MODULE:CLASS",
        callback=classes_by_name,
        help="Register a class first, as --model-class-overrides does.",
    ),
    _several(
        "--rules",
        metavar="DIR",
        is_eager=True,
        callback=_load_rules,
        help="Rules of your own, laid over those of the project.",
    ),
    _listed("--only", help="Show architectures with such a cell (json, csv: rows).", **_VERDICT),
    _listed("--fail-on", help="Exit with 1 if a row has such a verdict.", **_VERDICT),
    _option("-f", "--format", type=click.Choice(FORMATS), help="Default: table."),
    _option("-o", "--output", metavar="FILE", help="Write the report there, not to stdout."),
    _option(
        "--width",
        type=click.IntRange(_MIN_WIDTH),
        metavar="N",
        help="Columns; default: the terminal's.",
    ),
    _option("--no-color", is_flag=True, help="No colours; setting NO_COLOR does the same."),
    _option("-q", "--quiet", is_flag=True, help="Neither name the source nor show progress."),
    _pairs("--assume", last=True, help="Decide an open condition. Split at the last '='."),
    _pairs("--env", last=False, help="Set an environment variable for the audited tree."),
    _option("--no-imports", is_flag=True, help="Do not follow imports: faster, and says less."),
    _several("--with", "with_module", metavar="MODULE", help="Take it to be installed."),
    _several("--without", "without_module", metavar="MODULE", help="Take it to be missing."),
    _option(
        "--live",
        metavar="[PYTHON]",
        is_flag=False,
        flag_value=OWN_PYTHON,
        help="Ask an installed vLLM too: exit with 1 if it says otherwise. PYTHON has it, or is "
        "the folder of its environment; default: the Python that runs this.",
    ),
    _option(
        "--live-timeout",
        type=click.IntRange(1),
        metavar="SECONDS",
        help="How long one import of --live may take; default 300.",
    ),
    _option("--cache-dir", metavar="DIR", help="Where downloads and parsed files are kept."),
    _option("--no-cache", is_flag=True, help="Neither read nor write a cache."),
)


#: The formats of a command whose answer is about one architecture.
ONE_FORMAT = _option("-f", "--format", type=click.Choice(FORMATS[:2]), help="Default: table.")[1]


def options_named(*names: str, but: bool = False) -> Callable[[_Command], _Command]:
    """The options called ``names``, or all others."""

    def decorate(command: _Command) -> _Command:
        for name, option in reversed(_OPTIONS):
            if (name in names) is not but:
                command = option(command)
        return command

    return decorate
