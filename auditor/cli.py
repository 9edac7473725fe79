"""The ``audit`` command group: options in, reports out. No judgement is made here.

Everything but click is imported where it is used, so that ``audit --help`` stays instant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from auditor import __version__, completion, reporting
from auditor.errors import UsageError
from auditor.flags import (
    OF_A_SECTION,
    OF_THE_DOCUMENT,
    ONE_FORMAT,
    SOURCES,
    drift_options,
    options_named,
)
from auditor.options import Options
from auditor.output import deliver
from auditor.session import OK, audits, cache_of, opened, plugins_of, request_of

if TYPE_CHECKING:
    pass

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
    if ctx.invoked_subcommand:
        return OK
    return reporting.report(Options.of_group(given).configured(ctx))


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
    return reporting.explained(options, architecture)


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
    return reporting.shaped(options, architecture)


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
    return run_baseline(options, audits(options))


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
    return run_drift(options, wanted, audits(options))


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
        lambda: (opened(options), request_of(options, ()), plugins_of(options)),
        cache_of(options).folder,
    )


@audit.command()
@click.argument("code", metavar="[CODE]", required=False, shell_complete=completion.codes)
@options_named("--format", "--output", "--width", "--no-color", "--rules")
@click.pass_context
def rules(ctx: click.Context, /, code: str | None, **given: Any) -> int:
    """List what an audit may report; with CODE, why it matters and what to do."""
    from auditor.reports import findings
    from auditor.ruleset.codes import coded_rules

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
    return reporting.probes(options, every=discover, against=against)


def _no_rule(code: str) -> UsageError:
    from auditor.reports.names import hint
    from auditor.ruleset.codes import coded_rules

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
