"""From options to documents: what is opened, what is asked of it, and how a command ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click

from auditor.errors import SourceError, UsageError
from auditor.options import Options
from auditor.output import encodable
from auditor.reports.text import literal

if TYPE_CHECKING:
    from auditor.api import Request
    from auditor.coverage import Coverage
    from auditor.sources.cache import CacheConfig
    from auditor.sources.plugin import Plugin
    from auditor.sources.tree import Source

OK, FINDINGS, USAGE, INCOMPLETE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130


def opened(options: Options, why: str | None = None) -> Source:
    """The tree to audit; says which one it is, and why, before anything can go wrong with it."""
    from auditor.sources.open import open_source
    from auditor.sources.progress import console_progress

    progress = console_progress(quiet=options.quiet)
    spec, folder, by = options.source
    source = open_source(spec, cwd=folder, cache=cache_of(options), progress=progress)
    if not options.quiet:
        line = literal(f"{source.label} from {source.origin} ({why or by or source.why})")
        click.echo(encodable(line), err=not (options.for_people and options.to_stdout))
    return source


def plugins_of(options: Options) -> tuple[Plugin, ...]:
    """The plugins over the tree, in the order in which they were named; says which they are."""
    if not options.plugin:
        return ()
    from auditor.ruleset.target import target
    from auditor.sources.plugin import open_plugin
    from auditor.sources.progress import console_progress

    rule = target()
    groups = (rule.plugins.platform_group, rule.plugins.general_group)
    progress = console_progress(quiet=options.quiet)
    found: dict[str, Plugin] = {}
    for spec in options.plugin:
        for plugin in open_plugin(
            spec, groups, rule.package.name, cwd=Path.cwd(), cache=cache_of(options),
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


def cache_of(options: Options) -> CacheConfig:
    """Where downloads, parsed files and answers are kept."""
    from auditor.sources.cache import CacheConfig

    if options.no_cache:
        return CacheConfig.off()
    return CacheConfig.at(Path(options.cache_dir)) if options.cache_dir else CacheConfig.default()


def request_of(options: Options, architectures: tuple[str, ...]) -> Request:
    """What is asked of a source.

    Raises:
        UsageError: a module is said to be installed and missing.
    """
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


def audited(options: Options, architectures: tuple[str, ...], why: str | None = None) -> Coverage:
    """The document; a glob without a match is an error, even where another one matches."""
    from auditor.api import Resources
    from auditor.api import audit as run

    source, request = opened(options, why), request_of(options, architectures)
    plugins = plugins_of(options)
    try:
        coverage = run(source, request, Resources(cache_of(options).folder), plugins)
    except UsageError as error:
        if error.where != "--arch":
            raise
        if not request.architectures:
            what = f"the registry of {source.label} has no draft models"
            raise UsageError(what, next_step="Check that --vllm names a whole release.") from error
        raise _no_architecture(request.architectures[0], source, request, plugins) from error
    for glob in request.architectures:
        if not any(fnmatchcase(row.architecture, glob) for row in coverage.rows):
            raise _no_architecture(glob, source, request, plugins)
    return coverage


def audits(options: Options) -> Callable[[str | None, Sequence[str]], Coverage]:
    """Audits of what ``--vllm`` names, and of what ``--against`` does, on platforms."""

    def run(spec: str | None, platforms: Sequence[str]) -> Coverage:
        chosen = dataclasses.replace(options, platform=tuple(platforms) or options.platform)
        if spec is None:
            return audited(chosen, options.arch)
        try:
            return audited(dataclasses.replace(chosen, vllm=spec), (), why="given by --against")
        except SourceError as error:
            raise _of_against(error) from error

    return run


def _of_against(error: SourceError) -> SourceError:
    """The error in the words of the option that the source was named by."""
    where, step = (text.replace("--vllm", "--against") for text in (error.where, error.next_step))
    return SourceError(error.what, where=where, next_step=step)


def _no_architecture(
    glob: str, source: Source, request: Request, plugins: tuple[Plugin, ...]
) -> UsageError:
    """The error for a name or glob without a match; costs a second audit, without imports."""
    from msgspec.structs import replace

    from auditor.api import audit as run
    from auditor.reports.names import hint

    asked = replace(request, architectures=(), run_imports=False)
    everything = run(source, asked, None, plugins)
    known = sorted({row.architecture for row in everything.rows})
    what = f"no architecture of {source.label} is called {glob!r}"
    return UsageError(what, next_step=hint(glob, known))


def exit_code(coverage: Coverage, options: Options) -> int:
    """How a command ends that has reported a document."""
    from auditor.reports.rows import is_complete, occurring

    if occurring(coverage).intersection(options.fail_on):
        return FINDINGS
    return OK if is_complete(coverage) else INCOMPLETE
