"""``[tool.draftaudit]`` of a ``pyproject.toml``: what a project always asks.

What the command line says counts more. Paths are relative to the folder of the file.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from auditor.changes import KINDS, Kind
from auditor.errors import DraftauditError
from auditor.reports.names import hint

FILE = "pyproject.toml"
_SECTION = "[tool.draftaudit]"
#: Names beside the kinds of change: none of them, and all of them.
NONE, ANY = "none", "any"


class ConfigError(DraftauditError):
    """A configuration that cannot be read, or that says what there is not."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What ``[tool.draftaudit]`` may say.

    Attributes:
        vllm: the source to audit, as for ``--vllm``.
        platforms: the platforms to answer for.
        baseline: the file of ``audit baseline`` and ``audit drift``.
        fail_on: kinds of change that fail ``audit drift``, or ``none`` or ``any``.
        rules: folders of further rules.
        with_: modules taken to be installed (in TOML: ``with``).
        without: modules taken to be missing.
    """

    vllm: str | None = None
    platforms: tuple[str, ...] = ()
    baseline: str | None = None
    fail_on: tuple[str, ...] | None = None
    rules: str | tuple[str, ...] = ()
    with_: tuple[str, ...] = msgspec.field(default=(), name="with")
    without: tuple[str, ...] = ()


class Configured(msgspec.Struct, frozen=True):
    """A configuration, and the file that it was read from.

    Attributes:
        said: what it says.
        name: the file, for messages.
        folder: what its paths are relative to.
    """

    said: Config
    name: str
    folder: Path

    @property
    def baseline(self) -> str | None:
        """The baseline's file, as it would be typed in the current folder."""
        if self.said.baseline is None:
            return None
        return os.path.relpath(self.folder / self.said.baseline)

    @property
    def rules(self) -> tuple[Path, ...]:
        """The folders of further rules."""
        rules = self.said.rules
        named = (rules,) if isinstance(rules, str) else rules
        return tuple(self.folder / name for name in named)

    @property
    def fail_on(self) -> tuple[Kind, ...] | None:
        """The kinds of change that fail the check, or None for the usual ones."""
        return None if self.said.fail_on is None else kinds(self.said.fail_on)


def kinds(names: Sequence[str]) -> tuple[Kind, ...]:
    """The kinds of change that are named; ``any`` stands for all, ``none`` adds nothing."""
    return tuple(kind for kind in KINDS if ANY in names or kind in names)


def find(folder: Path) -> Path | None:
    """The nearest ``pyproject.toml`` with the section, in a folder or above it.

    One that does not speak of draftaudit need not even be TOML.

    Raises:
        ConfigError: a file that does speak of it cannot be read as TOML.
    """
    for place in (folder, *folder.parents):
        path = place / FILE
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError, PermissionError, IsADirectoryError):
            # PermissionError: a folder above that is not ours to look into says nothing to us.
            continue
        if b"draftaudit" in data and _section(data, _shown(path)) is not None:
            return path
    return None


def read(path: Path) -> Configured:
    """What the section of a file says; whether its platforms exist is asked later.

    Raises:
        ConfigError: the file is not there or not TOML, has no such section, or a key of it is
            unknown or of another type.
    """
    name = _shown(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=name) from error
    section = _section(data, name)
    if section is None:
        raise ConfigError(
            f"has no {_SECTION}", where=name, next_step="Add the section, or give --config none."
        )
    return Configured(_checked(section, _Lines(name, data)), name, path.parent)


def check_platforms(config: Configured, known: Sequence[str]) -> None:
    """Whether every platform exists; to be asked once further rules are in use.

    Raises:
        ConfigError: a platform that does not.
    """
    for platform in config.said.platforms:
        if platform not in known:
            raise ConfigError(
                f"{_SECTION} platforms: no platform is called {platform!r}",
                where=config.name,
                next_step=hint(platform, known),
            )


class _Lines:
    """Where a key stands in a file."""

    def __init__(self, name: str, data: bytes) -> None:
        self._name = name
        self._lines = data.decode("utf-8", "replace").splitlines()

    def where(self, key: str) -> str:
        """``file:line`` of a key of the section, or the file."""
        inside = False
        for number, line in enumerate(self._lines, 1):
            if line.lstrip().startswith("["):
                inside = re.sub(r"[\s\"']", "", line).startswith(_SECTION)
            elif inside and line.partition("=")[0].strip(" \t\"'") == key:
                return f"{self._name}:{number}"
        return self._name


def _section(data: bytes, name: str) -> Mapping[str, Any] | None:
    try:
        tool = tomllib.loads(data.decode("utf-8")).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"not valid TOML: {error}", where=name, next_step="Mend it, or give --config none."
        ) from error
    section = tool.get("draftaudit") if isinstance(tool, dict) else None
    if section is not None and not isinstance(section, dict):
        raise ConfigError("tool.draftaudit is no table", where=name, next_step=f"Write {_SECTION}.")
    return section


def _checked(section: Mapping[str, Any], lines: _Lines) -> Config:
    known = [field.encode_name for field in msgspec.structs.fields(Config)]
    for key in section:
        if key not in known:
            raise ConfigError(
                f"{_SECTION} has no key {key!r}",
                where=lines.where(key),
                next_step=hint(key, known),
            )
    for key, value in section.items():
        try:
            msgspec.convert({key: value}, Config)
        except msgspec.ValidationError as error:
            what = str(error).replace("`", "").replace("$.", "").replace("array", "list")
            what = what.replace(" | null", "")
            raise ConfigError(
                f"{_SECTION} {key}: {what[:1].lower()}{what[1:]}", where=lines.where(key)
            ) from error
    config = msgspec.convert(dict(section), Config)
    _check_values(config, lines)
    return config


def _check_values(config: Config, lines: _Lines) -> None:
    every = (*KINDS, NONE, ANY)
    for kind in config.fail_on or ():
        if kind not in every:
            raise ConfigError(
                f"{_SECTION} fail-on: no kind of change is called {kind!r}",
                where=lines.where("fail-on"),
                next_step=hint(kind, every) or f"Known: {', '.join(every)}.",
            )
    for key, text in (("vllm", config.vllm), ("baseline", config.baseline)):
        if text is not None and not text.strip():
            raise ConfigError(f"{_SECTION} {key} is empty", where=lines.where(key))
    if both := set(config.with_) & set(config.without):
        raise ConfigError(
            f"{_SECTION} with and without both name {', '.join(sorted(both))}",
            where=lines.where("without"),
        )


def _shown(path: Path) -> str:
    return os.path.relpath(path)
