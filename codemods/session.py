"""What every command of ``codemod`` starts with: the source, the request, the cache."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from auditor.errors import UsageError
from auditor.options import Options
from auditor.session import cache_of, request_of

if TYPE_CHECKING:
    from auditor.api import Resources
    from auditor.sources.tree import Source
    from codemods.plans import Plan


def opened(options: Options) -> Source:
    """The tree; which one it is, and why, is said on standard error."""
    from auditor.sources.open import open_source
    from auditor.sources.progress import console_progress

    progress = console_progress(quiet=options.quiet)
    source = open_source(options.vllm, cwd=Path.cwd(), cache=cache_of(options), progress=progress)
    if not options.quiet:
        click.echo(f"{source.label} from {source.origin} ({source.why})", err=True)
    return source


def planned(source: Source, options: Options, architectures: tuple[str, ...]) -> Plan:
    """The plan for the architectures asked for; a glob that matches none is an error.

    Raises:
        UsageError: no architecture of the registry matches a glob.
    """
    from fnmatch import fnmatchcase

    from auditor.reports.names import hint
    from codemods.kept import plan_of

    result = plan_of(source, request_of(options, architectures), resources(options))
    known = sorted({row.architecture for row in result.before.rows})
    for glob in architectures:
        if not any(fnmatchcase(name, glob) for name in known):
            what = f"no architecture of {source.label} is called {glob!r}"
            raise UsageError(what, next_step=hint(glob, known))
    return result


def resources(options: Options) -> Resources:
    """The cache to use."""
    from auditor.api import Resources

    return Resources(cache_of(options).folder)
