"""The options of ``audit``, what they accept, and what the user asked for with them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auditor import completion
from auditor.errors import DraftauditError

if TYPE_CHECKING:
    from auditor.config import Configured

#: The narrowest table that keeps one word a cell for six platforms.
_MIN_WIDTH = 60
#: Where no terminal says how wide it is: a log, a file.
_LOG_WIDTH = 120

FORMATS = ("table", "json", "markdown", "csv", "sarif", "github", "html")
VLLM_HELP = """The vLLM to audit: a folder, an archive, PATH@REVISION, 'installed', 'latest' or a
version. Default: the checkout around the working directory, else the installed package, else
the latest release."""
SEVERAL_HELP = f"{VLLM_HELP} May be repeated with --format html, which compares them."

#: The value of ``--live`` without one; nobody can type it.
OWN_PYTHON = "\0"
#: The value of ``--summary`` without one.
STEP_SUMMARY = "\0"
#: The options that are about a section of a file.
OF_A_SECTION = ("--into", "--marker", "--check")
#: The options that are about the report of the whole document.
OF_THE_DOCUMENT = ("--summary", *OF_A_SECTION)

_Command = Callable[..., int]


def _verdict_names() -> tuple[str, ...]:
    from auditor.coverage import VERDICTS

    return tuple(VERDICTS)


def _platform_names() -> tuple[str, ...]:
    from auditor.api import platform_names

    return platform_names()


def _capability_names() -> tuple[str, ...]:
    from auditor.ruleset.capabilities import capability_names

    return capability_names()


_Names = Callable[[], Sequence[str]]
_Callback = Callable[[click.Context, click.Parameter, Sequence[str]], object]


def names_of(kind: str, known: _Names) -> _Callback:
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


def _kinds(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> tuple[str, ...] | None:
    """Kinds of change; None where none is given."""
    from auditor.changes import KINDS
    from auditor.config import ANY, NONE, kinds

    if not values:
        return None
    named: Any = names_of("kind of change", lambda: (*KINDS, NONE, ANY))(ctx, param, values)
    return kinds(named)


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
    _lay_over(ctx, values, "--rules")
    return tuple(values)


def _lay_over(ctx: click.Context, folders: Sequence[str | Path], named: str) -> None:
    if folders:
        from auditor.ruleset.checks import check
        from auditor.ruleset.files import laid_over

        check(folders, named)
        ctx.with_resource(laid_over(folders))


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
    plugin: tuple[str, ...] = ()
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
    summary: str | None = None
    into: str | None = None
    marker: str | None = None
    check: bool = False
    compared: tuple[str, ...] = ()
    config: Configured | None = None

    @classmethod
    def of_group(cls, given: Mapping[str, Any]) -> Options:
        """Options of the group alone, whose ``--vllm`` may be repeated."""
        first, *others = given["vllm"] or (None,)
        return cls(**{**given, "vllm": first, "compared": tuple(others)})

    @classmethod
    def merged(cls, ctx: click.Context, given: Mapping[str, Any]) -> Options:
        """Options before the subcommand count as if they stood after it.

        Repeatable ones add up, of the others the later wins. One that the subcommand does not
        have is an error, so that nothing the user typed is ignored; so are several sources.
        """
        before = _given(ctx.parent.params if ctx.parent else {})
        for param in ctx.parent.command.params if ctx.parent else ():
            if param.name in before and param.name not in given:
                raise click.UsageError(f"{param.opts[-1]} has no meaning for {ctx.info_name}.", ctx)
        if isinstance(specs := before.get("vllm"), tuple):
            if len(specs) > 1:
                raise click.UsageError(f"{ctx.info_name} is about one --vllm.", ctx)
            before["vllm"] = specs[0]
        after = _given(given)
        both = {
            name: (*before[name], *value)
            for name, value in after.items()
            if name in before and isinstance(value, tuple)
        }
        return cls(**{**before, **after, **both}).configured(ctx)

    def configured(self, ctx: click.Context) -> Options:
        """With what the configuration says where nothing was typed.

        Raises:
            DraftauditError: the configuration, or a rule that it names, is wrong.
        """
        config = ctx.meta.get(_CONFIG)
        if isinstance(config, DraftauditError):
            raise config
        if config is None:
            return self
        said = config.said
        platforms = self.platform or said.platforms
        rules = self.rules or tuple(map(str, config.rules))
        if self.live is not None:  # what is asked there is what the interpreter has
            return replace(self, platform=platforms, rules=rules, config=config)
        return replace(
            self,
            platform=platforms,
            rules=rules,
            with_module=self.with_module or _but(said.with_, self.without_module),
            without_module=self.without_module or _but(said.without, self.with_module),
            config=config,
        )

    @property
    def source(self) -> tuple[str | None, Path, str | None]:
        """The SPEC to audit, what its paths are relative to, and who gave it if not the user."""
        config = self.config
        if self.vllm is None and config is not None and config.said.vllm is not None:
            return config.said.vllm, config.folder, f"given by {config.name}"
        return self.vllm, Path.cwd(), None

    @property
    def every_vllm(self) -> tuple[str | None, ...]:
        """What to audit: one source, or several to compare."""
        return (self.vllm, *self.compared)

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


def _but(names: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in others)


#: Where a context keeps the configuration, or why it cannot be read.
_CONFIG = "draftaudit.config"


def _configure(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Read the configuration before any other option is looked at: it may bring platforms.

    What is wrong with it is told by the command that needs it: one may still say ``--config``.
    """
    from auditor import config

    if value is None and _CONFIG in ctx.meta:
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
        ctx.meta[_CONFIG] = found
    except DraftauditError as error:
        ctx.meta[_CONFIG] = error


def _option(*flags: str, **settings: Any) -> tuple[str, Callable[[_Command], _Command]]:
    return flags[-1], click.option(*flags, **settings)


def _several(*flags: str, metavar: str, **settings: Any) -> tuple[str, Any]:
    return _option(*flags, multiple=True, metavar=metavar, **settings)


def _listed(*flags: str, kind: str, known: _Names, **settings: Any) -> tuple[str, Any]:
    metavar = f"{kind.upper()}[,...]"
    settings |= {"callback": names_of(kind, known), "shell_complete": completion.listed(known)}
    return _several(*flags, metavar=metavar, **settings)


def _pairs(*flags: str, last: bool, **settings: Any) -> tuple[str, Any]:
    return _several(*flags, metavar="NAME=VALUE", callback=pairs_split_at(last=last), **settings)


_VERDICT: Mapping[str, Any] = {"kind": "verdict", "known": _verdict_names}
_PLATFORM: Mapping[str, Any] = {"kind": "platform", "known": _platform_names}

_OPTIONS = (
    _option("--vllm", metavar="SPEC", help=VLLM_HELP),
    _several(
        "--plugin",
        metavar="SPEC",
        is_eager=True,
        help="A vLLM plugin over it: a folder, an archive, NAME or NAME==VERSION of the package "
        "index, or 'installed[:NAME]'. Repeatable.",
    ),
    _listed("-p", "--platform", help="Platforms to answer for; default all.", **_PLATFORM),
    _several(
        "-a",
        "--arch",
        metavar="GLOB",
        shell_complete=completion.architectures,
        help="Architectures to answer for; default all.",
    ),
    _option(
        "-c",
        "--capability",
        metavar="NAME",
        callback=name_of("capability", _capability_names),
        shell_complete=completion.listed(_capability_names),
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
    _option(
        "--summary",
        metavar="[FILE]",
        is_flag=False,
        flag_value=STEP_SUMMARY,
        help="Append a summary in Markdown, 1 MiB at most; default: $GITHUB_STEP_SUMMARY.",
    ),
    _option(
        "--into",
        metavar="FILE",
        help="Write Markdown between <!-- gen:NAME --> and <!-- /gen:NAME --> in this file.",
    ),
    _option("--marker", metavar="NAME", help="The NAME of --into; default: draftaudit."),
    _option("--check", is_flag=True, help="Exit with 1 if --into would change the file."),
    _option(
        "--config",
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=_configure,
        help="The pyproject.toml whose [tool.draftaudit] counts, or 'none'. Default: the nearest.",
    ),
    _option("--cache-dir", metavar="DIR", help="Where downloads and parsed files are kept."),
    _option("--no-cache", is_flag=True, help="Neither read nor write a cache."),
)

_DRIFT_OPTIONS = (
    click.option("--baseline", metavar="FILE", help="Compare with what audit baseline wrote."),
    click.option("--against", metavar="SPEC", help="Compare with another source, as for --vllm."),
    click.option(
        "--fail-on",
        "fail_on",
        multiple=True,
        metavar="KIND[,...]",
        callback=_kinds,
        help="Exit with 1 on such a change; 'none', 'any'. "
        "Default: lost,unsafe,silent,added-without.",
    ),
    click.option("--update", is_flag=True, help="Take what is new into the baseline."),
    click.option("--prune", is_flag=True, help="Take out of it what means nothing any more."),
    click.option("--accept", metavar="REASON", help="With --update: why its gaps are accepted."),
)


def drift_options(command: _Command) -> _Command:
    """What ``audit drift`` has beside the options of an audit."""
    for option in reversed(_DRIFT_OPTIONS):
        command = option(command)
    return command


#: ``--vllm`` of the group, which reports on several sources in one page.
SOURCES: Callable[[_Command], _Command] = _several("--vllm", metavar="SPEC", help=SEVERAL_HELP)[1]

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
