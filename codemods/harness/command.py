"""What ``codemod verify`` does: which tree it takes, what it prints, how it ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from auditor.errors import UsageError
from auditor.options import Options
from codemods.harness.document import SCHEMA_VERSION, Verification
from codemods.session import opened, planned

if TYPE_CHECKING:
    from auditor.live.asking import Interpreter

OK, FINDINGS, INCOMPLETE = 0, 1, 3
#: How long an interpreter may take from one answer to the next, in seconds.
_SECONDS = 600.0


def run(
    options: Options,
    architectures: tuple[str, ...],
    live: str | None,
    seconds: float | None,
    as_json: bool,
) -> tuple[int, str]:
    """The exit code, and what is printed.

    Raises:
        DraftauditError: the tree cannot be audited, or the interpreter cannot be asked.
    """
    from codemods.harness.report import json_of, table_of
    from codemods.harness.verify import verified
    from codemods.reports import left_open, refusals, undecided, unread

    asked = _interpreter(options, live, seconds)
    if asked is not None:
        options = replace(options, vllm=str(asked.folder))
    source = opened(options)
    plan = planned(source, options, architectures)
    results = verified(plan, source, asked, _teller(options), architectures)
    document = Verification(
        SCHEMA_VERSION,
        source.label,
        asked.name if asked is not None else "",
        ", ".join(options.platform),
        results,
        tuple(refusals(plan)),
        tuple(undecided(plan)),
        tuple(unread(plan)),
    )
    text = json_of(document) if as_json else table_of(document)
    # Classes without a row: what is refused, and what could not be told.
    for line in (*refusals(plan), *left_open(plan)):
        click.echo(line, err=True)
    if document.failures:
        return FINDINGS, text
    return (INCOMPLETE if plan.undecided or plan.unread else OK), text


def _interpreter(options: Options, live: str | None, seconds: float | None) -> Interpreter | None:
    if live is None:
        if seconds is not None:
            raise UsageError("has a meaning only with --live", where="--live-timeout")
        return None
    if options.vllm is not None:
        what = "cannot be combined with --live: what is patched is the vLLM of the interpreter"
        raise UsageError(what, where="--vllm")
    from auditor.live.asking import interpreter
    from auditor.live.interpreter import found
    from auditor.ruleset.target import target

    environment = {**os.environ, **dict(options.env)}
    python = found(live, Path.cwd())
    return interpreter(python, target().package.name, environment, seconds or _SECONDS)


def _teller(options: Options) -> Callable[[str], None]:
    def tell(what: str) -> None:
        if not options.quiet:
            click.echo(what, err=True)

    return tell
