"""What ``audit --live`` does: which options fit it, and how it ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from auditor.errors import UsageError
from auditor.options import OWN_PYTHON, Options
from auditor.output import deliver

if TYPE_CHECKING:
    from auditor.api import Request, Resources
    from auditor.live.document import LiveDocument

OK, FINDINGS, INCOMPLETE = 0, 1, 3
#: How long an interpreter may take from one answer to the next: importing PyTorch from a disk
#: that is not warm takes minutes.
_SECONDS = 300


def check(options: Options) -> None:
    """Refuse what cannot be asked together with ``--live``.

    Raises:
        UsageError: an option that says otherwise than the interpreter, or has no meaning here.
    """
    if options.live is None:
        if options.live_timeout is not None:
            raise UsageError("has a meaning only with --live", where="--live-timeout")
        return
    for name, given, why in (
        ("--vllm", options.vllm, "what is audited is the vLLM of the interpreter"),
        ("--plugin", options.plugin, "the interpreter loads the plugins that it has"),
        ("--with", options.with_module, "the interpreter is asked what it has"),
        ("--without", options.without_module, "the interpreter is asked what it has"),
        ("--no-imports", options.no_imports, "the interpreter runs every import"),
        ("--only", options.only, "its rows have no verdicts"),
        ("--fail-on", options.fail_on, "its rows have no verdicts"),
        ("--summary", options.summary, "its rows have no verdicts"),
        ("--into", options.into, "its rows have no verdicts"),
    ):
        if given:
            raise UsageError(f"cannot be combined with --live: {why}", where=name)
    if options.format not in (None, "table", "json"):
        raise UsageError("--live writes --format table or json only", where="--format")


def run(options: Options, request: Request, resources: Resources) -> int:
    """Ask both sides, print the report, and return the exit code: 1 where anything differs.

    Raises:
        DraftauditError: the interpreter cannot be asked, or the audit cannot be done.
    """
    from auditor.live.report import render, render_json

    document = _asked(options, request, resources)
    if options.for_people:
        text = render(document, width=options.columns, color=options.in_color)
    else:
        text = render_json(document)
    deliver(text, options)
    if document.differences:
        return FINDINGS
    return INCOMPLETE if any(row.outcome == "open" for row in document.rows) else OK


def _asked(options: Options, request: Request, resources: Resources) -> LiveDocument:
    from msgspec.structs import replace

    from auditor.live.asking import interpreter
    from auditor.live.auditing import audit_live
    from auditor.live.interpreter import found
    from auditor.ruleset.target import target
    from auditor.sources.open import open_source

    package = target().package.name
    given = None if options.live == OWN_PYTHON else options.live
    environment = {**os.environ, **dict(options.env)}
    seconds = options.live_timeout or _SECONDS
    asked = interpreter(found(given, Path.cwd()), package, environment, seconds)
    source = open_source(str(asked.folder), cwd=Path.cwd())
    # What is set for the package is set for both sides.
    own = {k: v for k, v in environment.items() if k.startswith(f"{package.upper()}_")}
    request = replace(request, env={**own, **request.env})
    return audit_live(source, asked, request, resources, _teller(options))


def _teller(options: Options) -> Callable[[str], None]:
    def tell(what: str) -> None:
        if not options.quiet:
            click.echo(what, err=True)

    return tell
