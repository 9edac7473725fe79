"""The entry point ``audit``, and how every command of the project ends."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import click

from auditor import cli, session
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
        return session.USAGE
    except click.ClickException as error:
        _complain(error.format_message())
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(f"Try '{error.ctx.command_path} --help'.", err=True)
        return session.USAGE
    except click.Abort:
        _complain("interrupted")
        return session.INTERRUPTED
    except SystemExit:
        # click exits by itself in two cases: it wrote a shell completion, or nobody reads its
        # help any more. For the latter it says 1, which means findings here.
        return session.OK
    except Exception:  # noqa: BLE001 - the boundary of the program
        traceback.print_exc()
        _complain("this is a bug in draftaudit; please report it with the lines above")
        return session.BUG
    return result if isinstance(result, int) else session.OK


def _complain(message: str) -> None:
    click.echo(f"error: {literal(' '.join(message.split()))}", err=True)


def process(command: click.Command, prog_name: str) -> NoReturn:
    """Be the process that runs ``command`` with the arguments of the command line, and end it.

    The cyclic collector stays off: a process that answers one question has no use for the memory.
    """
    gc.disable()
    _leave(run(command, sys.argv[1:], prog_name))


def _leave(code: int) -> NoReturn:
    """End the process; where all went well, without taking apart what it has built.

    Freeing the modules and classes of a cold run takes a tenth of its time. What waits to be
    written is written first; a stream that cannot be, and every error, ends as Python ends.
    """
    if code in (session.OK, session.FINDINGS, session.INCOMPLETE):
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            sys.exit(code)
        os._exit(code)
    sys.exit(code)


def audit() -> NoReturn:
    """Entry point of ``audit``."""
    process(command, "audit")
