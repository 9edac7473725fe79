"""The options of ``audit``, as a command line spells them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from auditor import completion
from auditor.arguments import (
    Names,
    classes_by_name,
    configure,
    kinds_of_change,
    load_rules,
    name_of,
    names_of,
    pairs_split_at,
)
from auditor.options import MIN_WIDTH, OWN_PYTHON, STEP_SUMMARY

FORMATS = ("table", "json", "markdown", "csv", "sarif", "github", "html")
VLLM_HELP = """The vLLM to audit: a folder, an archive, PATH@REVISION, 'installed', 'latest' or a
version. Default: the checkout around the working directory, else the installed package, else
the latest release."""
SEVERAL_HELP = f"{VLLM_HELP} May be repeated with --format html, which compares them."

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


def _option(*flags: str, **settings: Any) -> tuple[str, Callable[[_Command], _Command]]:
    return flags[-1], click.option(*flags, **settings)


def _several(*flags: str, metavar: str, **settings: Any) -> tuple[str, Any]:
    return _option(*flags, multiple=True, metavar=metavar, **settings)


def _listed(*flags: str, kind: str, known: Names, **settings: Any) -> tuple[str, Any]:
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
        callback=load_rules,
        help="Rules of your own, laid over those of the project.",
    ),
    _listed("--only", help="Show architectures with such a cell (json, csv: rows).", **_VERDICT),
    _listed("--fail-on", help="Exit with 1 if a row has such a verdict.", **_VERDICT),
    _option("-f", "--format", type=click.Choice(FORMATS), help="Default: table."),
    _option("-o", "--output", metavar="FILE", help="Write the report there, not to stdout."),
    _option(
        "--width",
        type=click.IntRange(MIN_WIDTH),
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
        callback=configure,
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
        callback=kinds_of_change,
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
