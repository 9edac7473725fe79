"""The ``audit`` command group: options in, reports out. No judgement is made here.

Everything but click is imported where it is used, so that ``audit --help`` stays instant.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auditor import __version__
from auditor.errors import UsageError
from auditor.options import ONE_FORMAT, Options, options_named
from auditor.output import deliver, encodable
from auditor.reports.text import literal

if TYPE_CHECKING:
    from auditor.api import Request
    from auditor.coverage import Coverage
    from auditor.sources.cache import CacheConfig
    from auditor.sources.tree import Source

OK, FINDINGS, USAGE, INCOMPLETE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

EXAMPLES = """
\b
Verdicts:  yes  yes?  unsafe  no  stub  import  absent  n/a  ?

\b
Examples:
  audit --platform rocm
  audit --vllm 0.11.0 --only no,import --format markdown
  audit explain EagleLlamaForCausalLM --platform xpu
  audit --live ~/venv
  audit shape
  audit rules SD101
"""
EXIT_CODES = """
\b
Exit codes:
    0  done
    1  a row has a verdict named by --fail-on, or --live differs
    2  wrong usage, or a source that cannot be read
    3  done, but a cell stayed undecided or part of the input
       could not be analysed (1 wins over 3)
   70  a bug in draftaudit itself
  130  interrupted
"""


@click.group(
    invoke_without_command=True,
    epilog=EXAMPLES + EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="draftaudit", message="%(prog)s %(version)s")
@options_named(but=True)
@click.pass_context
def audit(ctx: click.Context, /, **given: Any) -> int:
    """Say which models have what the engine probes for, on which platform.

    The audited vLLM is neither imported nor executed.
    """
    return OK if ctx.invoked_subcommand else _report(Options(**given))


@audit.command(epilog=EXIT_CODES)
@click.argument("architecture", metavar="ARCH")
@options_named("--arch", "--only", "--format", "--live", "--live-timeout", but=True)
@ONE_FORMAT
@click.pass_context
def explain(ctx: click.Context, /, architecture: str, **given: Any) -> int:
    """Show how the answer for one architecture comes about, step by step."""
    options = Options.merged(ctx, given)
    if options.format not in (None, "table", "json"):
        raise click.UsageError("explain writes --format table or json only.", ctx)
    return _explain(options, architecture)


@audit.command(epilog=EXIT_CODES)
@click.argument("architecture", metavar="[ARCH]", required=False)
@options_named("--arch", "--only", "--live", "--live-timeout", but=True)
@click.pass_context
def shape(ctx: click.Context, /, architecture: str | None, **given: Any) -> int:
    """Show how each family gets from hidden states to a token.

    With ARCH, of that architecture alone, with the calls and conditions on the way.
    """
    options = Options.merged(ctx, given)
    if options.format not in (None, "table", "json"):
        raise click.UsageError("shape writes --format table or json only.", ctx)
    return _shape(options, architecture)


@audit.command()
@click.argument("code", metavar="[CODE]", required=False)
@options_named("--format", "--output", "--width", "--no-color", "--rules")
@click.pass_context
def rules(ctx: click.Context, /, code: str | None, **given: Any) -> int:
    """List what an audit may find; with CODE, why it matters and what to do."""
    from auditor.reports import findings
    from auditor.rulesdata import finding_rules

    options = Options.merged(ctx, given)
    if options.format not in (None, "table", "json"):
        raise click.UsageError("rules writes --format table or json only.", ctx)
    chosen = [rule for rule in finding_rules() if code is None or rule.code == code.upper()]
    if not chosen:
        raise _no_rule(str(code))
    width, color = options.columns, options.in_color
    if not options.for_people:
        text = findings.render_json(chosen)
    elif code is not None:
        text = findings.render_one(chosen[0], width=width, color=color)
    else:
        text = findings.render(chosen, width=width, color=color)
    deliver(text, options)
    return OK


@audit.command()
@click.option("--discover", is_flag=True, help="List every probe of a model, also without a rule.")
@click.option("--against", metavar="SPEC", help="Say what differs from this vLLM.")
@options_named(
    "--vllm",
    "--rules",
    "--format",
    "--output",
    "--width",
    "--no-color",
    "--quiet",
    "--cache-dir",
    "--no-cache",
)
@click.pass_context
def capabilities(
    ctx: click.Context, /, *, discover: bool, against: str | None, **given: Any
) -> int:
    """List what the engine probes models for, and what follows where the answer is no.

    Without --discover, the capabilities that rules describe, with where the audited source asks
    for each.
    """
    options = Options.merged(ctx, given)
    if options.format not in (None, "table", "json"):
        raise click.UsageError("capabilities writes --format table or json only.", ctx)
    return _capabilities(options, every=discover, against=against)


def _capabilities(options: Options, *, every: bool, against: str | None) -> int:
    from auditor.probes import report
    from auditor.probes.command import discovered

    source = _source(options)
    other = _source(replace(options, vllm=against)) if against is not None else None
    document = discovered(source, _cache(options).folder, every=every, against=other)
    if options.for_people:
        text = report.render(document, width=options.columns, color=options.in_color)
    else:
        text = report.render_json(document)
    deliver(text, options)
    return INCOMPLETE if document.undecided else OK


def _no_rule(code: str) -> UsageError:
    from auditor.reports.names import hint
    from auditor.rulesdata import finding_rules

    known = [rule.code for rule in finding_rules()]
    return UsageError(f"no finding has the code {code!r}", next_step=hint(code, known))


@audit.command()
@click.argument(
    "document", type=click.Choice(["coverage", "live", "capabilities"]), default="coverage"
)
@options_named("--output")
@click.pass_context
def schema(ctx: click.Context, /, document: str, **given: Any) -> int:
    """Print the JSON Schema of audit --format json; with live, of audit --live, and so on."""
    import json

    if document == "live":
        from auditor.live.document import json_schema
    elif document == "capabilities":
        from auditor.probes.document import json_schema
    else:
        from auditor.coverage import json_schema

    options = Options.merged(ctx, given)
    deliver(json.dumps(json_schema(), indent=2) + "\n", options)
    return OK


def _report(options: Options) -> int:
    if options.live is not None or options.live_timeout is not None:
        return _live(options)
    coverage = _audit(options, options.arch)
    deliver(_rendered(coverage, options), options)
    _say_what_is_missing(coverage, options)
    return _exit_code(coverage, options)


def _live(options: Options) -> int:
    from auditor.api import Resources
    from auditor.live import command

    command.check(options)
    return command.run(options, _request(options, options.arch), Resources(_cache(options).folder))


def _explain(options: Options, architecture: str) -> int:
    from glob import escape

    from auditor.reports import explain, json

    coverage = _audit(options, (escape(architecture),))
    if options.for_people:
        width, color = options.columns, options.in_color
        text = explain.render(coverage, architecture, width=width, color=color)
    else:
        text = json.render(coverage)
    deliver(text, options)
    return _exit_code(coverage, options)


def _shape(options: Options, architecture: str | None) -> int:
    from glob import escape

    from auditor.reports import shape

    _must_be_compared(options)
    coverage = _audit(options, (escape(architecture),) if architecture else ())
    if options.for_people:
        width, color, detailed = options.columns, options.in_color, architecture is not None
        text = shape.render(coverage, width=width, color=color, detailed=detailed)
    else:
        text = shape.render_json(coverage)
    deliver(text, options)
    return _exit_code(coverage, options)


def _must_be_compared(options: Options) -> None:
    """Shapes are those of the method that a capability agrees with; without one there is none."""
    from auditor.rulesdata import capability

    rule = capability(options.capability or "")
    if rule.agrees_with is None:
        raise UsageError(
            f"{rule.name} agrees with no method, so that there is no head path to show",
            where="--capability",
            next_step="Ask without `shape`.",
        )


def _source(options: Options) -> Source:
    """The tree to audit; says which one it is, and why, before anything can go wrong with it."""
    from auditor.sources.open import open_source
    from auditor.sources.progress import console_progress

    progress = console_progress(quiet=options.quiet)
    source = open_source(options.vllm, cwd=Path.cwd(), cache=_cache(options), progress=progress)
    if not options.quiet:
        line = literal(f"{source.label} from {source.origin} ({source.why})")
        click.echo(encodable(line), err=not (options.for_people and options.to_stdout))
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
        capability=options.capability or "",
        registry=tuple(name for given in options.registry for name in given.split(",")),
        rules=options.rules,
        overrides=dict(options.override),
    )


def _audit(options: Options, architectures: tuple[str, ...]) -> Coverage:
    """The document; a glob without a match is an error, even where another one matches."""
    from auditor.api import Resources
    from auditor.api import audit as run

    source, request = _source(options), _request(options, architectures)
    try:
        coverage = run(source, request, Resources(_cache(options).folder))
    except UsageError as error:
        if error.where != "--arch":
            raise
        if not request.architectures:
            what = f"the registry of {source.label} has no draft models"
            raise UsageError(what, next_step="Check that --vllm names a whole release.") from error
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
