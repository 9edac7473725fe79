"""What ``audit checkpoint`` does: configurations in, one document out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from auditor.checkpoints.document import (
    SCHEMA_VERSION,
    CheckpointDocument,
    Result,
    Unreadable,
)
from auditor.checkpoints.reading import ConfigError, Given, files_below, names_of, read
from auditor.errors import UsageError
from auditor.options import Options
from auditor.output import deliver
from auditor.reports.text import literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from auditor.api import Request, Resources
    from auditor.checkpoints.tables import Tables
    from auditor.sources.plugin import Plugin
    from auditor.sources.tree import Source

OK, USAGE, INCOMPLETE = 0, 2, 3


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asks: configurations or a folder of them, and how they are to be drafted for.

    Attributes:
        configs: files, folders, or ``-``.
        survey: a folder of configurations instead.
        method: the speculative method, or None for the one that vLLM chooses.
        model: what vLLM is told as the model, or None for the path.
        python: a Python with Transformers, or None for the one that runs this.
    """

    configs: tuple[str, ...]
    survey: str | None
    method: str | None
    model: str | None
    python: str | None


def run(
    asked: Asked,
    options: Options,
    opened: Callable[[], tuple[Source, Request, Sequence[Plugin]]],
    cache: Path | None,
) -> int:
    """Print what each configuration comes to, and return the exit code.

    Raises:
        DraftauditError: nothing can be read, or the tree cannot be audited.
    """
    from auditor.api import Resources
    from auditor.checkpoints.report import render, render_json
    from auditor.checkpoints.survey import surveyed

    given, failed = _given(asked)
    if not given:
        raise failed[0]
    for error in failed:
        click.echo(f"error: {literal(error.message)}", err=True)
    source, request, plugins = opened()
    made = document(source, request, Resources(cache), given, asked.method, asked.python, plugins)
    made = msgspec.structs.replace(made, unreadable=unreadable(failed))
    if asked.survey is not None:
        made = surveyed(made)
    if options.for_people:
        text = render(made, width=options.columns, color=options.in_color)
    else:
        text = render_json(made)
    deliver(text, options)
    return exit_code(made)


def _given(asked: Asked) -> tuple[list[Given], list[ConfigError]]:
    if asked.survey is not None:
        if asked.configs:
            raise UsageError("cannot be combined with a CONFIG", where="--survey")
        if asked.model is not None:
            raise UsageError("has no meaning with --survey", where="--model")
        return surveyed_configs(asked.survey)
    if not asked.configs:
        raise UsageError(
            "no configuration is given", next_step="Give a config.json, a folder, or --survey DIR."
        )
    if asked.model is not None and len(asked.configs) > 1:
        raise UsageError("names one model, and several are given", where="--model")
    if asked.configs.count("-") > 1:
        raise UsageError("standard input can be read once", where="-")
    return given_configs(asked.configs, asked.model)


def given_configs(
    configs: Sequence[str], model: str | None
) -> tuple[list[Given], list[ConfigError]]:
    """The configurations that were named; those that cannot be read beside them."""
    found: list[Given] = []
    failed: list[ConfigError] = []
    for given, name in zip(configs, names_of(configs), strict=True):
        try:
            found.append(read(given, name, model))
        except ConfigError as error:
            failed.append(error)
    return found, failed


def surveyed_configs(folder: str) -> tuple[list[Given], list[ConfigError]]:
    """The configurations below a folder; a JSON file that is none is left out.

    Raises:
        ConfigError: the folder cannot be read, or holds no configuration.
    """
    root = Path(folder)
    if not root.is_dir():
        raise ConfigError("is not a folder", where=folder)
    found: list[Given] = []
    failed: list[ConfigError] = []
    for path in files_below(root):
        below = str(path.relative_to(root))
        name = os.path.dirname(below) or "." if path.name == "config.json" else below[:-5]
        try:
            one = read(str(path), name, None)
        except ConfigError as error:
            failed.append(error)
            continue
        if "model_type" in one.config or "architectures" in one.config:
            found.append(one)
    if not found and not failed:
        raise ConfigError("no configuration of a model is in this folder", where=folder)
    return found, failed


def document(
    source: Source,
    request: Request,
    resources: Resources,
    given: Sequence[Given],
    method: str | None,
    python: str | None,
    plugins: Sequence[Plugin] = (),
) -> CheckpointDocument:
    """What each configuration comes to.

    Raises:
        DraftauditError: the tree cannot be audited.
    """
    from auditor.api import collector_paused
    from auditor.checkpoints.answer import Answers
    from auditor.checkpoints.engine import new_run
    from auditor.checkpoints.library import library_of
    from auditor.checkpoints.tables import Tables
    from auditor.contracts.names import Names
    from auditor.coverage import SourceInfo
    from auditor.job import conventions
    from auditor.memo import digest_of
    from auditor.modules import locate_modules
    from auditor.program import Files
    from auditor.ruleset.platforms import platform_names

    library = library_of(python)
    files = Files(source.tree)
    modules = locate_modules(sorted(source.tree.files()), conventions().roots)[0]
    names = Names(files, modules)
    tables = Tables(new_run(names, library), source, request, resources, plugins)
    try:
        with collector_paused():
            answers = Answers(names, library, tables)
            results = [answers.result(one, method) for one in given]
            version = library.version or None
    finally:
        library.close()
    digest = digest_of({path: files.key(path) for path in files.probes()})
    asked = request.platforms
    return CheckpointDocument(
        SCHEMA_VERSION,
        SourceInfo(source.label, source.version, digest),
        version,
        tuple(one for one in platform_names() if not asked or one in asked),
        tuple(_with_rows(results, tables)),
    )


def _with_rows(results: Sequence[Result], tables: Tables) -> list[Result]:
    """The results with what their architectures are on each platform."""
    from auditor.checkpoints.tables import rows_of

    wanted: dict[str, list[str]] = {}
    for one in results:
        if one.registered and one.table is not None and one.architecture is not None:
            wanted.setdefault(one.table, []).append(one.architecture)
    rows = {table: rows_of(tables.coverage(table, names)) for table, names in wanted.items()}
    return [
        msgspec.structs.replace(one, rows=rows[one.table].get(one.architecture or "", ()))
        if one.registered and one.table in rows
        else one
        for one in results
    ]


def unreadable(failed: Sequence[ConfigError]) -> tuple[Unreadable, ...]:
    """Files that are no configuration, for the document."""
    return tuple(Unreadable(error.where, error.what) for error in failed)


def exit_code(made: CheckpointDocument) -> int:
    """3 where something stayed open or could not be read, else 0."""
    is_open = any(
        any(gap.decides for gap in one.gaps) or any(row.verdict == "?" for row in one.rows)
        for one in made.results
    )
    return INCOMPLETE if is_open or made.unreadable else OK
