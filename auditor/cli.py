"""The ``audit`` command group: options in, reports out. No judgement is made here.

Everything but click is imported where it is used, so that ``audit --help`` stays instant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auditor import __version__, completion
from auditor.errors import SourceError, UsageError
from auditor.options import (
    OF_A_SECTION,
    OF_THE_DOCUMENT,
    ONE_FORMAT,
    SOURCES,
    Options,
    drift_options,
    options_named,
)
from auditor.output import deliver, encodable
from auditor.reports.text import literal

if TYPE_CHECKING:
    from auditor.api import Request
    from auditor.coverage import Coverage
    from auditor.sources.cache import CacheConfig
    from auditor.sources.plugin import Plugin
    from auditor.sources.tree import Source

_Command = Callable[..., int]

#: The documents that commands write as JSON, and where each is defined.
DOCUMENTS = {
    "coverage": "auditor.coverage",
    "live": "auditor.live.document",
    "drift": "auditor.changes",
    "cost": "auditor.cost.document",
    "capabilities": "auditor.probes.document",
    "checkpoint": "auditor.checkpoints.document",
}
OK, FINDINGS, USAGE, INCOMPLETE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

EXAMPLES = """
\b
Verdicts:  yes  yes?  unsafe  no  stub  import  absent  n/a  ?

\b
Examples:
  audit --platform rocm
  audit --vllm 0.11.0 --only no,import --format markdown
  audit explain EagleLlamaForCausalLM --platform xpu
  audit --vllm 0.32.0 --vllm 0.33.0 --format html -o report.html
  audit --live ~/venv
  audit shape
  audit drift --against 0.31.0
  audit rules SD101
"""
EXIT_CODES = """
\b
Exit codes:
    0  done
    1  a row has a verdict named by --fail-on, --live differs,
       or --check found a section of a file out of date
    2  wrong usage, or a source that cannot be read
    3  done, but a cell stayed undecided or part of the input
       could not be analysed (1 wins over 3)
   70  a bug in draftaudit itself
  130  interrupted
"""
KINDS_OF_CHANGE = """
\b
Kinds of change:
  lost unsafe silent added-without unimportable undecided removed
  stale verdict head-path method-path moved owner gained importable
  decided added finding finding-gone
"""
DRIFT_EXIT_CODES = EXIT_CODES.replace(
    "a row has a verdict named by --fail-on, or --live differs",
    "a change is of a kind named by --fail-on",
)

COST_EXAMPLES = """
\b
Examples:
  audit cost --vocab-size 129280 --tp 2 --batch 512
  audit cost config.json --tp 2,4 --batch 1-1024
  audit cost config.json --measured mine.csv
"""


def _sizes(flag: str, **settings: Any) -> Callable[[_Command], _Command]:
    """An option that takes whole numbers, lists of them and ranges."""
    return click.option(flag, multiple=True, metavar="N[,...]", **settings)


@click.group(
    invoke_without_command=True,
    epilog=EXAMPLES + EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="draftaudit", message="%(prog)s %(version)s")
@SOURCES
@options_named("--vllm", but=True)
@click.pass_context
def audit(ctx: click.Context, /, **given: Any) -> int:
    """Say which models have what the engine probes for, on which platform.

    The audited vLLM is neither imported nor executed.
    """
    return OK if ctx.invoked_subcommand else _report(Options.of_group(given).configured(ctx))


@audit.command(epilog=EXIT_CODES)
@click.argument("architecture", metavar="ARCH", shell_complete=completion.architectures)
@options_named(
    "--arch", "--only", "--format", "--live", "--live-timeout", *OF_THE_DOCUMENT, but=True
)
@ONE_FORMAT
@click.pass_context
def explain(ctx: click.Context, /, architecture: str, **given: Any) -> int:
    """Show how the answer for one architecture comes about, step by step."""
    options = Options.merged(ctx, given)
    if options.format not in (None, "table", "json"):
        raise click.UsageError("explain writes --format table or json only.", ctx)
    return _explain(options, architecture)


@audit.command(epilog=EXIT_CODES)
@click.argument(
    "architecture", metavar="[ARCH]", required=False, shell_complete=completion.architectures
)
@options_named("--arch", "--only", "--live", "--live-timeout", *OF_THE_DOCUMENT, but=True)
@click.pass_context
def shape(ctx: click.Context, /, architecture: str | None, **given: Any) -> int:
    """Show how each family gets from hidden states to a token.

    With ARCH, of that architecture alone, with the calls and conditions on the way.
    """
    options = Options.merged(ctx, given)
    if options.format not in (None, "table", "json"):
        raise click.UsageError("shape writes --format table or json only.", ctx)
    return _shape(options, architecture)


@audit.command(epilog=EXIT_CODES)
@options_named(
    "--only", "--fail-on", "--format", "--width", "--no-color", "--live", "--live-timeout",
    *OF_THE_DOCUMENT, but=True,
)  # fmt: skip
@click.pass_context
def baseline(ctx: click.Context, /, **given: Any) -> int:
    """Write what every draft model has to a file that is made to be committed.

    Sorted text without timestamps, one line an entry and platform. Notes and reasons that a
    reader has added to the file are kept when it is written again.
    """
    from auditor.drift_command import run_baseline

    # The text is for machines too: what is told beside it goes to stderr.
    options = replace(Options.merged(ctx, given), format="toml")
    return run_baseline(options, _audits(options))


@audit.command(epilog=KINDS_OF_CHANGE + DRIFT_EXIT_CODES)
@options_named("--only", "--fail-on", "--live", "--live-timeout", *OF_A_SECTION, but=True)
@drift_options
@click.pass_context
def drift(ctx: click.Context, /, **given: Any) -> int:
    """Say what changed since a baseline, or against another source.

    The source audited is that of --vllm. By default a check fails where the method was lost,
    became unsafe, or stayed behind a change of the logits, and where a new entry lacks it.
    """
    from auditor.drift_command import Wanted, run_drift

    names = Wanted.__dataclass_fields__
    wanted = Wanted(**{name: given.pop(name) for name in names})
    options = Options.merged(ctx, given)
    return run_drift(options, wanted, _audits(options))


@audit.command(epilog=EXIT_CODES)
@click.argument("configs", metavar="[CONFIG]...", nargs=-1)
@click.option("--survey", metavar="DIR", help="Every configuration below DIR, in one table.")
@click.option(
    "--method",
    type=click.Choice(("mtp", "eagle", "eagle3", "dflash", "dspark", "draft_model")),
    help="The speculative method; default: the one that vLLM chooses.",
)
@click.option("--model", metavar="NAME", help="What vLLM is told as the model; default: the path.")
@click.option(
    "--transformers",
    "python",
    metavar="PYTHON",
    help="A Python with Transformers, asked for class defaults; default: the one that runs this.",
)
@options_named(
    "--arch", "--only", "--registry", "--fail-on", "--format", "--live", "--live-timeout",
    *OF_THE_DOCUMENT, but=True,
)  # fmt: skip
@ONE_FORMAT
@click.pass_context
def checkpoint(
    ctx: click.Context,
    /,
    configs: tuple[str, ...],
    survey: str | None,
    method: str | None,
    model: str | None,
    python: str | None,
    **given: Any,
) -> int:
    """Say which draft architecture a checkpoint's config.json comes to.

    CONFIG is a config.json, a folder with one, or - for standard input. No code of a checkpoint is
    run.
    """
    from auditor.checkpoints import command

    options = Options.merged(ctx, given)
    asked = command.Asked(configs, survey, method, model, python)
    return command.run(
        asked,
        options,
        lambda: (_source(options), _request(options, ()), _plugins(options)),
        _cache(options).folder,
    )


@audit.command()
@click.argument("code", metavar="[CODE]", required=False, shell_complete=completion.codes)
@options_named("--format", "--output", "--width", "--no-color", "--rules")
@click.pass_context
def rules(ctx: click.Context, /, code: str | None, **given: Any) -> int:
    """List what an audit may report; with CODE, why it matters and what to do."""
    from auditor.reports import findings
    from auditor.ruletexts import coded_rules

    options = Options.merged(ctx, given)
    if options.format not in (None, "table", "json"):
        raise click.UsageError("rules writes --format table or json only.", ctx)
    chosen = [rule for rule in coded_rules() if code is None or rule.code == code.upper()]
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
    from auditor.ruletexts import coded_rules

    known = [rule.code for rule in coded_rules()]
    return UsageError(f"no finding has the code {code!r}", next_step=hint(code, known))


@audit.command(epilog=COST_EXAMPLES)
@click.argument("config", metavar="[CONFIG]", required=False)
@_sizes("--vocab-size", help="Tokens of the draft model's head; default: what CONFIG says.")
@_sizes("--tp", help="Ranks that share the head; default 2,4,8.")
@_sizes("--batch", help="Draft batches: 512, or 16,32,64, or 1-1024 for doubles; the default.")
@click.option(
    "--dtype", multiple=True, metavar="NAME[,...]", help="Of the logits; default bfloat16."
)
@click.option("--measured", metavar="FILE", help="Your own step times, as .csv or .toml.")
@options_named("--format", "--output", "--width", "--no-color")
@click.pass_context
def cost(ctx: click.Context, /, **given: Any) -> int:
    """Say what the flag saves a draft step, and from which batch on it saves time.

    CONFIG is a checkpoint's config.json, the folder that holds it, or - for standard input.
    """
    from auditor.cost import command

    names = ("config", "vocab_size", "tp", "batch", "dtype", "measured")
    asked = command.Asked(**{name: given.pop(name) for name in names})
    return command.run(asked, Options.merged(ctx, given))


@audit.command()
@click.argument("document", type=click.Choice(list(DOCUMENTS)), default="coverage")
@options_named("--output")
@click.pass_context
def schema(ctx: click.Context, /, document: str, **given: Any) -> int:
    """Print the JSON Schema of what a command writes as JSON; without DOCUMENT, of audit itself."""
    import json
    from importlib import import_module

    json_schema = import_module(DOCUMENTS[document]).json_schema
    options = Options.merged(ctx, given)
    deliver(json.dumps(json_schema(), indent=2) + "\n", options)
    return OK


def _report(options: Options) -> int:
    if options.live is not None or options.live_timeout is not None:
        return _live(options)
    from auditor import publishing

    publishing.check_usage(options)
    if options.format == "html":
        return _page(options)
    if options.compared:
        raise UsageError("only --format html compares several sources", where="--vllm")
    coverage = _audit(options, options.arch)
    if options.into is not None:
        stale = publishing.write_section(_rendered(coverage, options), options)
        click.echo(f"{options.into}: {_SECTION[stale, options.check]}", err=True)
    else:
        stale = False
        deliver(_rendered(coverage, options), options)
    if options.summary is not None:
        publishing.summarise(coverage, options)
    _say_what_is_missing(coverage, options)
    return FINDINGS if stale and options.check else _exit_code(coverage, options)


#: What became of a section, by whether it differed, and whether it was only to be compared.
_SECTION = {
    (True, False): "written",
    (True, True): "would be written",
    (False, False): "as it was",
    (False, True): "up to date",
}


def _page(options: Options) -> int:
    from auditor.api import Resources
    from auditor.reports import html
    from auditor.several import audit_each

    if options.compared:
        sources = (_source(replace(options, vllm=spec)) for spec in options.every_vllm)
        resources = Resources(_cache(options).folder)
        coverages = audit_each(sources, _request(options, options.arch), resources)
    else:
        coverages = [_audit(options, options.arch)]
    deliver(html.render(coverages, only=options.only), options)
    codes = {_exit_code(coverage, options) for coverage in coverages}
    return next(code for code in (FINDINGS, INCOMPLETE, OK) if code in codes)


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


def _audits(options: Options) -> Callable[[str | None, Sequence[str]], Coverage]:
    """Audits of what ``--vllm`` names, and of what ``--against`` does, on platforms."""

    def run(spec: str | None, platforms: Sequence[str]) -> Coverage:
        chosen = replace(options, platform=tuple(platforms) or options.platform)
        if spec is None:
            return _audit(chosen, options.arch)
        try:
            return _audit(replace(chosen, vllm=spec), (), why="given by --against")
        except SourceError as error:
            raise _of_against(error) from error

    return run


def _of_against(error: SourceError) -> SourceError:
    """The error in the words of the option that the source was named by."""
    where, step = (text.replace("--vllm", "--against") for text in (error.where, error.next_step))
    return SourceError(error.what, where=where, next_step=step)


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


def _source(options: Options, why: str | None = None) -> Source:
    """The tree to audit; says which one it is, and why, before anything can go wrong with it."""
    from auditor.sources.open import open_source
    from auditor.sources.progress import console_progress

    progress = console_progress(quiet=options.quiet)
    spec, folder, by = options.source
    source = open_source(spec, cwd=folder, cache=_cache(options), progress=progress)
    if not options.quiet:
        line = literal(f"{source.label} from {source.origin} ({why or by or source.why})")
        click.echo(encodable(line), err=not (options.for_people and options.to_stdout))
    return source


def _plugins(options: Options) -> tuple[Plugin, ...]:
    """The plugins over the tree, in the order in which they were named; says which they are."""
    if not options.plugin:
        return ()
    from auditor.rulesdata import target
    from auditor.sources.plugin import open_plugin
    from auditor.sources.progress import console_progress

    rule = target()
    groups = (rule.plugins.platform_group, rule.plugins.general_group)
    progress = console_progress(quiet=options.quiet)
    found: dict[str, Plugin] = {}
    for spec in options.plugin:
        for plugin in open_plugin(
            spec, groups, rule.package.name, cwd=Path.cwd(), cache=_cache(options),
            progress=progress,
        ):  # fmt: skip
            if plugin.name in found:
                what = f"the plugin {plugin.name} is named twice"
                raise UsageError(what, where=f"--plugin {spec}", next_step="Name it once.")
            found[plugin.name] = plugin
            if not options.quiet:
                line = literal(f"with {plugin.label} from {plugin.origin}")
                click.echo(encodable(line), err=not (options.for_people and options.to_stdout))
    return tuple(found.values())


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


def _audit(options: Options, architectures: tuple[str, ...], why: str | None = None) -> Coverage:
    """The document; a glob without a match is an error, even where another one matches."""
    from auditor.api import Resources
    from auditor.api import audit as run

    source, request = _source(options, why), _request(options, architectures)
    try:
        plugins = _plugins(options)
        coverage = run(source, request, Resources(_cache(options).folder), plugins)
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

    match "markdown" if options.into is not None else options.format:
        case "json":
            from auditor.reports import json

            return json.render(filtered(coverage, options.only))
        case "csv":
            from auditor.reports import csv

            return csv.render(filtered(coverage, options.only))
        case "markdown":
            from auditor.reports import markdown

            return markdown.render(coverage, only=options.only)
        case "sarif" | "github":
            from auditor import publishing

            return publishing.for_host(coverage, options)
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
