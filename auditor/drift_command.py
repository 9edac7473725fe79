"""What ``audit baseline`` and ``audit drift`` do, and how they end."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from auditor.baseline import (
    Baseline,
    BaselineError,
    dropped,
    parse,
    pruned,
    render,
    renewed,
    updated,
)
from auditor.changes import FAILING, GAPS, Change, Drift, Kind
from auditor.drift import LACK, drift, drift_since
from auditor.errors import UsageError
from auditor.options import Options
from auditor.output import deliver, write
from auditor.reports.text import literal
from auditor.snapshot import Snapshot, snapshot

if TYPE_CHECKING:
    from auditor.coverage import Coverage

OK, FINDINGS, INCOMPLETE = 0, 1, 3

#: The audit of the source that a SPEC names, None being what the options say, on platforms.
Audit = Callable[[str | None, Sequence[str]], "Coverage"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What ``audit drift`` is asked to do.

    Attributes:
        baseline: the file to compare with.
        against: the source to compare with.
        fail_on: kinds that fail the check; None for the usual ones.
        update: take what is new into the baseline.
        prune: take out of it what means nothing any more.
        accept: why the gaps that are taken in are accepted.
    """

    baseline: str | None = None
    against: str | None = None
    fail_on: tuple[Kind, ...] | None = None
    update: bool = False
    prune: bool = False
    accept: str | None = None


def run_baseline(options: Options, audit: Audit) -> int:
    """Write the baseline of a source: to the file of ``-o`` or of the configuration, or to stdout.

    What a reader wrote in the file that is there stays.

    Raises:
        DraftauditError: the source cannot be audited, the file is no baseline, or not written.
    """
    from auditor.reports.rows import is_complete

    if options.output is None and options.config is not None:
        options = dataclasses.replace(options, output=options.config.baseline)
    old = None if options.output is None or options.to_stdout else _existing(options.output)
    coverage = audit(None, ())
    new = Baseline(snapshot(coverage), given(options))
    if old is not None:
        new = renewed(old, new.snapshot, new.given)
        _say_dropped(old, new)
    deliver(render(new), options)
    return OK if is_complete(coverage) else INCOMPLETE


def run_drift(options: Options, wanted: Wanted, audit: Audit) -> int:
    """Compare, report, and return the exit code: 1 where a change fails, 3 where part is open.

    Raises:
        DraftauditError: wrong usage, or a source or baseline that cannot be read or compared.
    """
    wanted = _configured(options, wanted)
    _check(wanted)
    if wanted.against is not None:
        found = _against(options, wanted.against, wanted, audit)
        _report(found, options)
        return _code(found.failing, found)
    assert wanted.baseline is not None  # by _check
    return _since(options, wanted.baseline, wanted, audit)


def _configured(options: Options, wanted: Wanted) -> Wanted:
    """With what the configuration says where nothing was typed."""
    config = options.config
    if config is None:
        return wanted
    if wanted.fail_on is None:
        wanted = dataclasses.replace(wanted, fail_on=config.fail_on)
    if wanted.baseline is None and wanted.against is None:
        wanted = dataclasses.replace(wanted, baseline=config.baseline)
    return wanted


def _check(wanted: Wanted) -> None:
    if wanted.baseline is not None and wanted.against is not None:
        raise UsageError("cannot be combined with --baseline", where="--against")
    if wanted.baseline is None and wanted.against is None:
        raise UsageError(
            "there is nothing to compare with",
            next_step="Give --baseline FILE, which audit baseline -o writes, or --against SPEC.",
        )
    for name, given_ in (("--update", wanted.update), ("--prune", wanted.prune)):
        if given_ and wanted.against is not None:
            raise UsageError("changes a baseline, and --against reads none", where=name)
    if wanted.accept is not None and not wanted.update:
        raise UsageError("has a meaning only with --update", where="--accept")
    if wanted.accept is not None and not wanted.accept.strip():
        raise UsageError("a gap is not accepted without a reason", where="--accept")


def given(options: Options) -> tuple[str, ...]:
    """The options that an answer rests on beside the source and the platforms, as typed."""
    pairs = [
        *(("--assume", pair) for pair in options.assume),
        *(("--env", pair) for pair in options.env),
        *(("--override", pair) for pair in options.override),
    ]
    said = [f"{option} {name}={value}" for option, (name, value) in pairs]
    said += [f"--plugin {spec}" for spec in options.plugin]
    said += [f"--with {name}" for name in options.with_module]
    said += [f"--without {name}" for name in options.without_module]
    said += ["--no-imports"] if options.no_imports else []
    return tuple(sorted(set(said)))


# --- two sources


def _against(options: Options, spec: str, wanted: Wanted, audit: Audit) -> Drift:
    after = audit(None, options.platform)
    before = audit(spec, options.platform)
    rows = tuple(row for row in before.rows if _asked_for(row.architecture, options))
    before = replace(before, rows=rows)
    return drift(before, after, wanted.fail_on if wanted.fail_on is not None else FAILING)


# --- a baseline


def _since(options: Options, path: str, wanted: Wanted, audit: Audit) -> int:
    from auditor.api import platform_names

    old = _read(path)
    known = platform_names()
    if given(options) != old.given:
        raise _other_options(options, old)
    platforms = _platforms(options, old, known, wanted)
    coverage = audit(None, platforms)
    before = _narrowed(old.snapshot, options, known)
    _check_subject(before, coverage, path)
    found = drift_since(before, coverage, FAILING if wanted.fail_on is None else wanted.fail_on)
    _report(found, options)
    new = _changed(old, coverage, found, wanted, known)
    if new is None:
        return _code(found.failing, found)
    _say_dropped(old, new)
    write(path, render(new))
    left = [] if wanted.update else [c for c in found.failing if "stale" not in c.kinds]
    return _code(left, found)


def _changed(
    old: Baseline, coverage: Coverage, found: Drift, wanted: Wanted, known: Sequence[str]
) -> Baseline | None:
    """The baseline with what was asked for; None where nothing was."""
    new = old
    if wanted.update:
        reason = wanted.accept
        accept = {
            (change.architecture, change.platform): reason
            for change in found.changes
            if reason is not None and change.kinds & GAPS and change.verdict_after in LACK
        }
        new = updated(new, snapshot(coverage), accept, known)
    if wanted.prune:
        new = pruned(new, found, known)
    return new if wanted.update or wanted.prune else None


def _narrowed(before: Snapshot, options: Options, known: Sequence[str]) -> Snapshot:
    """The lines that are asked for; of platforms, those that there are."""
    lines = tuple(line for line in before.lines if _asked_for(line.architecture, options))
    platforms = tuple(name for name in before.platforms if name in known)
    return replace(before, lines=lines, platforms=platforms)


def _asked_for(architecture: str, options: Options) -> bool:
    return not options.arch or any(fnmatchcase(architecture, glob) for glob in options.arch)


def _platforms(
    options: Options, old: Baseline, known: Sequence[str], wanted: Wanted
) -> tuple[str, ...]:
    """The platforms to compare on: those asked for, else those of the baseline."""
    has = [name for name in old.snapshot.platforms if name in known]
    if not has:
        raise BaselineError(
            f"none of its platforms is known: {', '.join(old.snapshot.platforms) or 'it has none'}",
            where=old.snapshot.baseline or "",
            next_step=f"Known: {', '.join(known)}. Write it anew with audit baseline -o.",
        )
    missing = [name for name in options.platform if name not in has]
    if missing and not wanted.update:
        raise BaselineError(
            f"it says nothing about {', '.join(missing)}",
            where=old.snapshot.baseline or "",
            next_step=f"It is for {', '.join(has)}. audit drift --update takes more platforms in.",
        )
    return options.platform or tuple(has)


def _check_subject(before: Snapshot, after: Coverage, path: str) -> None:
    """A baseline is compared with what it is about: the same method of the same table."""
    for what, was, now in (
        ("capability", before.capability, after.capability),
        ("registry", before.registry, after.registry),
    ):
        if was != now:
            raise BaselineError(
                f"it is about another {what}: {was}, and what is audited is {now}",
                where=path,
                next_step="Write it anew with audit baseline -o.",
            )
    had = {line.architecture for line in before.lines if line.verdict is not None}
    if had and not had & {row.architecture for row in after.rows}:
        raise BaselineError(
            f"it is of another vLLM: none of its {len(had)} architectures is in "
            f"{after.source.label}",
            where=path,
            next_step=f"It was written for {before.source.label}. Check --vllm.",
        )


def _other_options(options: Options, old: Baseline) -> BaselineError:
    was, now = ", ".join(old.given) or "none", ", ".join(given(options)) or "none"
    return BaselineError(
        f"it was written with other options: {was}; given now: {now}",
        where=old.snapshot.baseline or "",
        next_step="Give the same, or write it anew with audit baseline -o.",
    )


def _read(path: str) -> Baseline:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BaselineError(
            f"cannot be read: {error.strerror}",
            where=path,
            next_step="audit baseline -o writes a baseline.",
        ) from error
    return parse(data, os.path.relpath(path))


def _existing(path: str) -> Baseline | None:
    """The baseline that is to be replaced, if there is one; anything else stays as it is.

    Raises:
        BaselineError: the file is there, and what a reader may have written in it cannot be read.
    """
    if not os.path.isfile(path) or not os.path.getsize(path):
        return None
    return _read(path)


def _say_dropped(old: Baseline, new: Baseline) -> None:
    for line in dropped(old, new):
        words = line.note or line.accepted or " ".join(old.comments[line.key])
        click.echo(
            literal(f"dropped with {line.architecture} on {line.platform}: {words}"), err=True
        )


# --- how it ends


def _code(failing: Iterable[Change], found: Drift) -> int:
    if any(True for _ in failing):
        return FINDINGS
    return INCOMPLETE if found.undecided else OK


def _report(found: Drift, options: Options) -> None:
    deliver(_rendered(found, options), options)
    if options.summary is not None:
        from auditor import publishing

        publishing.summarise_drift(found, options)
    if options.format == "csv" and found.undecided:
        count = len(found.undecided)
        click.echo(f"not decided: {count}; --format json lists them", err=True)


def _rendered(found: Drift, options: Options) -> str:
    match options.format:
        case "json":
            from auditor.reports.drift import json

            return json.render(found)
        case "csv":
            from auditor.reports.drift import csv

            return csv.render(found)
        case "html":
            from auditor.reports.drift import html

            return html.render(found)
        case "markdown":
            from auditor.reports.drift import markdown

            return markdown.render(found)
        case "sarif" | "github":
            from auditor import publishing

            return publishing.drift_for_host(found, options)
        case _:
            from auditor.reports.drift import table

            return table.render(found, width=options.columns, color=options.in_color)
