"""The ``codemod`` command group, and ``draftaudit``, which holds both groups.

``draftaudit`` stands here because this package knows ``auditor`` and not the other way round.
"""

from __future__ import annotations

import sys

import click

from auditor import __version__
from auditor.main import command as audit
from auditor.main import run

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_version = click.version_option(__version__, prog_name="draftaudit", message="%(prog)s %(version)s")


@click.group(invoke_without_command=True, context_settings=_SETTINGS)
@_version
@click.pass_context
def codemod(ctx: click.Context) -> int:
    """Patches are not built yet: this version audits only. See audit --help."""
    click.echo(ctx.get_help())
    return 0


@click.group(invoke_without_command=True, context_settings=_SETTINGS)
@_version
@click.pass_context
def group(ctx: click.Context) -> int:
    """Audit vLLM's draft models for a capability, and patch those that lack it."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    return 0


group.add_command(audit, "audit")
group.add_command(codemod, "codemod")


def main() -> None:
    """Entry point of ``codemod``."""
    sys.exit(run(codemod, sys.argv[1:], "codemod"))


def draftaudit() -> None:
    """Entry point of ``draftaudit``."""
    sys.exit(run(group, sys.argv[1:], "draftaudit"))
