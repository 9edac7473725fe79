"""What the user asked for with the options of ``audit``, and what the configuration adds to it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from auditor.errors import DraftauditError

if TYPE_CHECKING:
    from auditor.config import Configured

#: The narrowest table that keeps one word a cell for six platforms.
MIN_WIDTH = 60
#: Where no terminal says how wide it is: a log, a file.
_LOG_WIDTH = 120

#: The value of ``--live`` without one; nobody can type it.
OWN_PYTHON = "\0"
#: The value of ``--summary`` without one.
STEP_SUMMARY = "\0"
#: Where a context keeps the configuration, or why it cannot be read.
CONFIG = "draftaudit.config"


def _given(params: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were typed. An empty text counts: it is an error for whoever reads it."""
    return {name: value for name, value in params.items() if value not in (None, False, ())}


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for, on the group and on the subcommand together."""

    vllm: str | None = None
    plugin: tuple[str, ...] = ()
    platform: tuple[str, ...] = ()
    arch: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    fail_on: tuple[str, ...] = ()
    format: str | None = None
    output: str | None = None
    width: int | None = None
    no_color: bool = False
    quiet: bool = False
    assume: tuple[tuple[str, str], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    no_imports: bool = False
    with_module: tuple[str, ...] = ()
    without_module: tuple[str, ...] = ()
    cache_dir: str | None = None
    no_cache: bool = False
    capability: str | None = None
    registry: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    override: tuple[tuple[str, str], ...] = ()
    live: str | None = None
    live_timeout: int | None = None
    summary: str | None = None
    into: str | None = None
    marker: str | None = None
    check: bool = False
    compared: tuple[str, ...] = ()
    config: Configured | None = None

    @classmethod
    def of_group(cls, given: Mapping[str, Any]) -> Options:
        """Options of the group alone, whose ``--vllm`` may be repeated."""
        first, *others = given["vllm"] or (None,)
        return cls(**{**given, "vllm": first, "compared": tuple(others)})

    @classmethod
    def merged(cls, ctx: click.Context, given: Mapping[str, Any]) -> Options:
        """Options before the subcommand count as if they stood after it.

        Repeatable ones add up, of the others the later wins. One that the subcommand does not
        have is an error, so that nothing the user typed is ignored; so are several sources.
        """
        before = _given(ctx.parent.params if ctx.parent else {})
        for param in ctx.parent.command.params if ctx.parent else ():
            if param.name in before and param.name not in given:
                raise click.UsageError(f"{param.opts[-1]} has no meaning for {ctx.info_name}.", ctx)
        if isinstance(specs := before.get("vllm"), tuple):
            if len(specs) > 1:
                raise click.UsageError(f"{ctx.info_name} is about one --vllm.", ctx)
            before["vllm"] = specs[0]
        after = _given(given)
        both = {
            name: (*before[name], *value)
            for name, value in after.items()
            if name in before and isinstance(value, tuple)
        }
        return cls(**{**before, **after, **both}).configured(ctx)

    def configured(self, ctx: click.Context) -> Options:
        """With what the configuration says where nothing was typed.

        Raises:
            DraftauditError: the configuration, or a rule that it names, is wrong.
        """
        config = ctx.meta.get(CONFIG)
        if isinstance(config, DraftauditError):
            raise config
        if config is None:
            return self
        said = config.said
        platforms = self.platform or said.platforms
        rules = self.rules or tuple(map(str, config.rules))
        if self.live is not None:  # what is asked there is what the interpreter has
            return replace(self, platform=platforms, rules=rules, config=config)
        return replace(
            self,
            platform=platforms,
            rules=rules,
            with_module=self.with_module or _but(said.with_, self.without_module),
            without_module=self.without_module or _but(said.without, self.with_module),
            config=config,
        )

    @property
    def source(self) -> tuple[str | None, Path, str | None]:
        """The SPEC to audit, what its paths are relative to, and who gave it if not the user."""
        config = self.config
        if self.vllm is None and config is not None and config.said.vllm is not None:
            return config.said.vllm, config.folder, f"given by {config.name}"
        return self.vllm, Path.cwd(), None

    @property
    def every_vllm(self) -> tuple[str | None, ...]:
        """What to audit: one source, or several to compare."""
        return (self.vllm, *self.compared)

    @property
    def in_color(self) -> bool:
        """Whether the report may hold ANSI codes (https://no-color.org)."""
        plain = self.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return self.to_stdout and not plain and sys.stdout.isatty()

    @property
    def columns(self) -> int:
        """How wide the report may be, in terminal cells."""
        terminal = shutil.get_terminal_size((_LOG_WIDTH, 24)).columns
        return self.width or max(terminal, MIN_WIDTH)

    @property
    def to_stdout(self) -> bool:
        """Whether the report goes to standard output."""
        return self.output in (None, "-")

    @property
    def for_people(self) -> bool:
        """Whether the report is the one for a terminal."""
        return self.format in (None, "table")


def _but(names: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in others)
