"""The entry point ``audit``, and how every command of the project ends."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import click

from auditor import cli
from auditor.errors import DraftauditError
from auditor.reports.text import literal

#: The ``audit`` group, for those who mount it under another name.
command: click.Group = cli.audit


def run(command: click.Command, args: Sequence[str], prog_name: str) -> int:
    """Run a command and return its exit code; the only place that turns errors into codes.

    What went wrong is said in one line on stderr; a traceback means a bug of ours, which must not
    end like a finding does.
    """
    try:
        result = command.main(list(args), prog_name=prog_name, standalone_mode=False)
    except DraftauditError as error:
        _complain(error.message)
        return cli.USAGE
    except click.ClickException as error:
        _complain(error.format_message())
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(f"Try '{error.ctx.command_path} --help'.", err=True)
        return cli.USAGE
    except click.Abort:
        _complain("interrupted")
        return cli.INTERRUPTED
    except SystemExit:
        # click exits by itself in two cases: it wrote a shell completion, or nobody reads its
        # help any more. For the latter it says 1, which means findings here.
        return cli.OK
    except Exception:  # noqa: BLE001 - the boundary of the program
        traceback.print_exc()
        _complain("this is a bug in draftaudit; please report it with the lines above")
        return cli.BUG
    return result if isinstance(result, int) else cli.OK


def _complain(message: str) -> None:
    click.echo(f"error: {literal(' '.join(message.split()))}", err=True)


def audit() -> None:
    """Entry point of ``audit``."""
    sys.exit(run(command, sys.argv[1:], "audit"))
