"""The ``audit`` command group: options in, reports out. No judgement is made here.

Everything but click is imported where it is used, so that ``audit --help`` stays instant.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auditor import __version__
from auditor.errors import UsageError
from auditor.reports.text import literal

if TYPE_CHECKING:
    from auditor.api import Request
    from auditor.coverage import Coverage
    from auditor.sources.cache import CacheConfig
    from auditor.sources.tree import Source

OK, FINDINGS, USAGE, INCOMPLETE, INTERRUPTED = 0, 1, 2, 3, 130

#: The narrowest table that keeps one word a cell for six platforms.
_MIN_WIDTH = 60
#: Where no terminal says how wide it is: a log, a file.
_LOG_WIDTH = 120

FORMATS = ("table", "json", "markdown", "csv")
VLLM_HELP = """The vLLM to audit: a folder, an archive, PATH@REVISION, 'installed', 'latest' or a
version. Default: the checkout around the working directory, else the installed package, else
the latest release."""

EXAMPLES = """
\b
Verdicts:  yes  yes?  unsafe  no  stub  import  absent  n/a  ?

\b
Examples:
  audit --platform rocm
  audit --vllm 0.11.0 --only no,import --format markdown
  audit explain EagleLlamaForCausalLM --platform xpu
"""
EXIT_CODES = """
\b
Exit codes:
    0  done
    1  a row has a verdict named by --fail-on
    2  wrong usage, or a source that cannot be read
    3  done, but a cell stayed undecided or part of the input
       could not be analysed (1 wins over 3)
  130  interrupted
"""

_Command = Callable[..., int]


def _verdict_names() -> tuple[str, ...]:
    from auditor.coverage import VERDICTS

    return tuple(VERDICTS)


def _platform_names() -> tuple[str, ...]:
    from auditor.api import platform_names

    return platform_names()


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
    _option("--cache-dir", metavar="DIR", help="Where downloads and parsed files are kept."),
    _option("--no-cache", is_flag=True, help="Neither read nor write a cache."),
)


def _options(*names: str, but: bool = False) -> Callable[[_Command], _Command]:
    """The options called ``names``, or all others."""

    def decorate(command: _Command) -> _Command:
        for name, option in reversed(_OPTIONS):
            if (name in names) is not but:
                command = option(command)
        return command

    return decorate


@click.group(
    invoke_without_command=True,
    epilog=EXAMPLES + EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="draftaudit", message="%(prog)s %(version)s")
@_options(but=True)
@click.pass_context
def audit(ctx: click.Context, /, **given: Any) -> int:
    """Say which draft models have get_top_tokens, on which platform.

    The audited vLLM is neither imported nor executed.
    """
    return OK if ctx.invoked_subcommand else _report(Options(**given))


@audit.command(epilog=EXIT_CODES)
@click.argument("architecture", metavar="ARCH")
@_options("--arch", "--only", but=True)
@click.pass_context
def explain(ctx: click.Context, /, architecture: str, **given: Any) -> int:
    """Show how the answer for one architecture comes about, step by step."""
    options = Options.merged(ctx, given)
    if options.format not in (None, "table", "json"):
        raise click.UsageError("explain writes --format table or json only.", ctx)
    return _explain(options, architecture)


@audit.command()
@_options("--output")
@click.pass_context
def schema(ctx: click.Context, /, **given: Any) -> int:
    """Print the JSON Schema of audit --format json."""
    import json

    from auditor.coverage import json_schema

    options = Options.merged(ctx, given)
    deliver(json.dumps(json_schema(), indent=2) + "\n", options)
    return OK


def _report(options: Options) -> int:
    coverage = _audit(_source(options), _request(options, options.arch))
    deliver(_rendered(coverage, options), options)
    _say_what_is_missing(coverage, options)
    return _exit_code(coverage, options)


def _explain(options: Options, architecture: str) -> int:
    from glob import escape

    from auditor.reports import explain, json

    coverage = _audit(_source(options), _request(options, (escape(architecture),)))
    if options.for_people:
        width, color = options.columns, options.in_color
        text = explain.render(coverage, architecture, width=width, color=color)
    else:
        text = json.render(coverage)
    deliver(text, options)
    return _exit_code(coverage, options)


def _source(options: Options) -> Source:
    """The tree to audit; says which one it is, and why, before anything can go wrong with it."""
    from auditor.sources.open import open_source
    from auditor.sources.progress import console_progress

    progress = console_progress(quiet=options.quiet)
    source = open_source(options.vllm, cwd=Path.cwd(), cache=_cache(options), progress=progress)
    if not options.quiet:
        line = literal(f"{source.label} from {source.origin} ({source.why})")
        click.echo(_encodable(line), err=not (options.for_people and options.to_stdout))
    return source


def _cache(options: Options) -> CacheConfig:
    from auditor.sources.cache import CacheConfig

    if options.no_cache:
        return CacheConfig.off()
    return CacheConfig.at(Path(options.cache_dir)) if options.cache_dir else CacheConfig.default()


def _request(options: Options, architectures: tuple[str, ...]) -> Request:
    from auditor.api import Request

    if both := set(options.with_module) & set(options.without_module):
        raise UsageError("cannot be installed and missing", where=", ".join(sorted(both)))
    return Request(
        platforms=tuple(dict.fromkeys(options.platform)),
        architectures=architectures,
        assume=dict(options.assume),
        env=dict(options.env),
        run_imports=not options.no_imports,
        with_modules=options.with_module,
        without_modules=options.without_module,
    )


def _audit(source: Source, request: Request) -> Coverage:
    """The document; a glob without a match is an error, even where another one matches."""
    from auditor.api import audit as run

    try:
        coverage = run(source, request)
    except UsageError as error:
        if error.where != "--arch":
            raise
        raise _no_architecture(request.architectures[0], source, request) from error
    for glob in request.architectures:
        if not any(fnmatchcase(row.architecture, glob) for row in coverage.rows):
            raise _no_architecture(glob, source, request)
    return coverage


def _no_architecture(glob: str, source: Source, request: Request) -> UsageError:
    """The error for a name or glob without a match; costs a second audit, without imports."""
    from auditor.api import audit as run
    from auditor.reports.names import hint

    everything = run(source, replace(request, architectures=(), run_imports=False))
    known = sorted({row.architecture for row in everything.rows})
    what = f"no architecture of {source.label} is called {glob!r}"
    return UsageError(what, next_step=hint(glob, known))


def _rendered(coverage: Coverage, options: Options) -> str:
    from auditor.reports.rows import filtered

    match options.format:
        case "json":
            from auditor.reports import json

            return json.render(filtered(coverage, options.only))
        case "csv":
            from auditor.reports import csv

            return csv.render(filtered(coverage, options.only))
        case "markdown":
            from auditor.reports import markdown

            return markdown.render(coverage, only=options.only)
        case _:
            from auditor.reports import table

            width, color = options.columns, options.in_color
            return table.render(coverage, width=width, color=color, only=options.only)


def _say_what_is_missing(coverage: Coverage, options: Options) -> None:
    """On stderr, what a table would say and rows alone do not."""
    from auditor.reports.rows import filtered

    rows_only = options.format in ("json", "csv")
    if rows_only and options.only and not filtered(coverage, options.only).rows:
        click.echo(f"no row has {', '.join(options.only)}", err=True)
    if options.format == "csv" and coverage.undecided:
        count = len(coverage.undecided)
        click.echo(f"not decided: {count}; --format json lists them", err=True)


def _exit_code(coverage: Coverage, options: Options) -> int:
    from auditor.reports.rows import is_complete, occurring

    if occurring(coverage).intersection(options.fail_on):
        return FINDINGS
    return OK if is_complete(coverage) else INCOMPLETE


def deliver(text: str, options: Options) -> None:
    """Write a report to stdout, or as UTF-8 to a file that is whole or untouched.

    A reader of stdout that has seen enough (``audit | head``) ends the output, not the audit.

    Raises:
        UsageError: the file cannot be written.
    """
    if options.output is None or options.to_stdout:
        _print(_encodable(text) if options.for_people else text.encode())
        return
    try:
        _replace(Path(os.path.realpath(options.output)), text.encode())
    except OSError as error:
        where = options.output or "--output"
        raise UsageError(f"cannot be written: {error.strerror}", where=where) from error


def _print(text: str | bytes) -> None:
    try:
        click.echo(text, nl=False)
    except BrokenPipeError:
        # What is still buffered must not fail again at exit (Python docs, "Note on SIGPIPE").
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _encodable(text: str) -> str:
    """``text`` with that replaced for which the terminal's encoding has no sign."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        simple = text.translate({ord("\u2014"): "-", ord("\u2500"): "-"})
        return simple.encode(encoding, "backslashreplace").decode(encoding)
    return text


def _replace(path: Path, data: bytes) -> None:
    """Write beside ``path``, then rename; a device or a pipe is written to directly."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=".draftaudit-")
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.chmod(beside, _mode(path))
        os.replace(beside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):  # renamed, unless something failed
            os.unlink(beside)


def _mode(path: Path) -> int:
    """The permissions ``path`` has, or those a new file would get."""
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
