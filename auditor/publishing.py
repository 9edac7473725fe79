"""Reports for a host: what SARIF, annotations and the job summary need beside the document."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from auditor import __version__
from auditor.errors import UsageError
from auditor.options import STEP_SUMMARY, Options
from auditor.output import replace_file
from auditor.reports import summary
from auditor.reports.problems import Catalogue, Report, report_of
from auditor.ruleset.codes import cell_rules, change_rules, coded_rules, rule_names

if TYPE_CHECKING:
    from auditor.changes import Drift
    from auditor.coverage import Coverage

#: Where a step of GitHub Actions says that its summary goes.
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
#: The name of a section where none is given.
MARKER = "draftaudit"


def catalogue() -> Catalogue:
    """What every code means, from ``rules/``."""
    return Catalogue(
        version=__version__,
        rules={rule.code: rule for rule in coded_rules()},
        names=rule_names(),
        cells={rule.cell: rule.code for rule in cell_rules()},
        changes={rule.change: rule.code for rule in change_rules()},
    )


def repository_prefix(spec: str | None, cwd: Path) -> str:
    """From the root of the repository to the folder that holds ``vllm/``, with a slash at its end.

    Empty where both are one, and for a source that is not of a repository.

    Args:
        spec: what ``--vllm`` names.
        cwd: what it is relative to.
    """
    folder = _folder(spec, cwd)
    return _below_repository(folder, "/") if folder is not None else ""


def _below_repository(path: Path, end: str = "") -> str:
    """``path`` from the root of the repository that it is in; empty where that is none, or it."""
    for parent in (path, *path.parents):
        if (parent / ".git").exists():
            relative = path.relative_to(parent).as_posix()
            return "" if relative == "." else f"{relative}{end}"
    return ""


def _folder(spec: str | None, cwd: Path) -> Path | None:
    """Where the files of a source stand in a checkout: the folder that holds ``vllm/``."""
    from auditor.sources.folder import package_root
    from auditor.sources.open import checkout_around
    from auditor.sources.spec import split_revision

    if spec is None:
        root = checkout_around(cwd)
        return root.resolve() if root is not None else None
    if os.path.lexists(cwd / os.path.expanduser(spec)):
        return package_root((cwd / os.path.expanduser(spec)).resolve())
    revision = split_revision(spec, cwd)
    if revision is None:
        return None
    folder = revision[0].resolve()
    return next((up for up in (folder, *folder.parents) if package_root(up) == up), folder)


def for_host(coverage: Coverage, options: Options) -> str:
    """The report as SARIF, or as annotations."""
    texts = catalogue()
    report = report_of(coverage, texts, only=options.only, failing=options.fail_on)
    return _rendered(report, texts, options)


def drift_for_host(drift: Drift, options: Options) -> str:
    """The same of a drift."""
    texts = catalogue()
    return _rendered(_report_of_drift(drift, texts), texts, options)


def _report_of_drift(drift: Drift, texts: Catalogue) -> Report:
    from auditor.reports.drifted import report_of_drift

    file = _below_repository(Path(drift.baseline).resolve()) if drift.baseline else ""
    return report_of_drift(drift, texts, baseline=file)


def _rendered(report: Report, texts: Catalogue, options: Options) -> str:
    spec, cwd, _ = options.source
    prefix = repository_prefix(spec, cwd)
    if options.format == "sarif":
        from auditor.reports import sarif

        return sarif.render(report, texts, prefix=prefix)
    from auditor.reports import github

    return github.render(report, texts, prefix=prefix)


def write_section(text: str, options: Options) -> bool:
    """Put a report between the markers of a file; with ``--check`` only compare.

    Returns:
        Whether the file differs, or differed.

    Raises:
        UsageError: the file cannot be read or written, or its markers are not sound.
    """
    from auditor.reports.section import checked_name, with_section

    path = Path(os.path.realpath(str(options.into)))
    name = checked_name(MARKER if options.marker is None else options.marker)
    try:
        before = path.read_bytes()
        after = with_section(before, name, text, str(options.into))
        if before != after and not options.check:
            replace_file(path, after)
    except OSError as error:
        verb = f"cannot be read or written: {error.strerror}"
        raise UsageError(verb, where=str(options.into)) from error
    return before != after


def summarise(coverage: Coverage, options: Options) -> None:
    """Append the summary to the file that was asked for; says so where it has no room."""
    _summarise(
        report_of(coverage, catalogue(), only=options.only, failing=options.fail_on), options
    )


def summarise_drift(drift: Drift, options: Options) -> None:
    """The same of a drift."""
    _summarise(_report_of_drift(drift, catalogue()), options)


def _summarise(report: Report, options: Options) -> None:
    if not append_summary(report, str(options.summary), os.environ):
        click.echo(f"the summary has no room left below {summary.LIMIT} bytes", err=True)


def append_summary(report: Report, target: str, environ: Mapping[str, str]) -> bool:
    """Append the summary to a file, within what the limit leaves of it.

    Args:
        report: what to write.
        target: the file, or :data:`STEP_SUMMARY` for the one that the environment names.
        environ: the environment.

    Returns:
        Whether the summary had room.

    Raises:
        UsageError: there is no such variable, or the file cannot be written.
    """
    path = environ.get(SUMMARY_VARIABLE, "") if target == STEP_SUMMARY else target
    if not path:
        raise UsageError(
            f"no file was given, and {SUMMARY_VARIABLE} is not set",
            where="--summary",
            next_step="Name a file: --summary FILE.",
        )
    try:
        taken = os.path.getsize(path) if os.path.exists(path) else 0
        text = summary.render(report, room=summary.LIMIT - taken)
        with open(path, "ab") as file:
            file.write(text.encode())
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=path) from error
    return bool(text)
