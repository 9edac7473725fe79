"""What the commands print that answer about a whole source: the document in a format, or more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from auditor.errors import UsageError
from auditor.options import Options
from auditor.output import deliver
from auditor.session import (
    FINDINGS,
    INCOMPLETE,
    OK,
    audited,
    cache_of,
    exit_code,
    opened,
    request_of,
)

if TYPE_CHECKING:
    from auditor.coverage import Coverage


def report(options: Options) -> int:
    """``audit`` itself: the rows of every architecture, in the format asked for."""
    if options.live is not None or options.live_timeout is not None:
        return _live(options)
    _check_section(options)
    if options.format == "html":
        return _page(options)
    if options.compared:
        raise UsageError("only --format html compares several sources", where="--vllm")
    coverage = audited(options, options.arch)
    if options.into is not None:
        from auditor import publishing

        stale = publishing.write_section(_rendered(coverage, options), options)
        click.echo(f"{options.into}: {_SECTION[stale, options.check]}", err=True)
    else:
        stale = False
        deliver(_rendered(coverage, options), options)
    if options.summary is not None:
        from auditor import publishing

        publishing.summarise(coverage, options)
    _say_what_is_missing(coverage, options)
    return FINDINGS if stale and options.check else exit_code(coverage, options)


def _check_section(options: Options) -> None:
    """Options that exclude or demand each other.

    Raises:
        UsageError: two that do not go together were given.
    """
    if options.into is None:
        for name, given in (("--marker", options.marker), ("--check", options.check)):
            if given:
                raise UsageError("has a meaning only with --into", where=name)
        return
    if options.format not in (None, "markdown"):
        raise UsageError(f"writes Markdown, not {options.format}", where="--into")
    if options.output is not None:
        raise UsageError("cannot be combined with -o", where="--into")


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
        sources = (opened(replace(options, vllm=spec)) for spec in options.every_vllm)
        resources = Resources(cache_of(options).folder)
        coverages = audit_each(sources, request_of(options, options.arch), resources)
    else:
        coverages = [audited(options, options.arch)]
    deliver(html.render(coverages, only=options.only), options)
    codes = {exit_code(coverage, options) for coverage in coverages}
    return next(code for code in (FINDINGS, INCOMPLETE, OK) if code in codes)


def _live(options: Options) -> int:
    from auditor.api import Resources
    from auditor.live import command

    command.check(options)
    return command.run(
        options, request_of(options, options.arch), Resources(cache_of(options).folder)
    )


def explained(options: Options, architecture: str) -> int:
    """``audit explain``: how the answers for one architecture came about."""
    from glob import escape

    from auditor.reports import explain, json

    coverage = audited(options, (escape(architecture),))
    if options.for_people:
        width, color = options.columns, options.in_color
        text = explain.render(coverage, architecture, width=width, color=color)
    else:
        text = json.render(coverage)
    deliver(text, options)
    return exit_code(coverage, options)


def shaped(options: Options, architecture: str | None) -> int:
    """``audit shape``: how each family gets from hidden states to a token."""
    from glob import escape

    from auditor.reports import shape

    _must_be_compared(options)
    coverage = audited(options, (escape(architecture),) if architecture else ())
    if options.for_people:
        width, color, detailed = options.columns, options.in_color, architecture is not None
        text = shape.render(coverage, width=width, color=color, detailed=detailed)
    else:
        text = shape.render_json(coverage)
    deliver(text, options)
    return exit_code(coverage, options)


def _must_be_compared(options: Options) -> None:
    """Shapes are those of the method that a capability agrees with; without one there is none."""
    from auditor.ruleset.capabilities import capability

    rule = capability(options.capability or "")
    if rule.agrees_with is None:
        raise UsageError(
            f"{rule.name} agrees with no method, so that there is no head path to show",
            where="--capability",
            next_step="Ask without `shape`.",
        )


def probes(options: Options, *, every: bool, against: str | None) -> int:
    """``audit capabilities``: where the engine probes models."""
    from auditor.probes import report
    from auditor.probes.command import discovered

    source = opened(options)
    other = opened(replace(options, vllm=against)) if against is not None else None
    document = discovered(source, cache_of(options).folder, every=every, against=other)
    if options.for_people:
        text = report.render(document, width=options.columns, color=options.in_color)
    else:
        text = report.render_json(document)
    deliver(text, options)
    return INCOMPLETE if document.undecided else OK


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
