"""Configuration files: a ``config.json``, a folder with one, or standard input."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from auditor.errors import DraftauditError

#: The largest configuration that is read; published ones have a few hundred kilobytes at most.
MAX_BYTES = 8 * 1024 * 1024
#: How deep its parts may be nested.
MAX_DEPTH = 100
CONFIG = "config.json"
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


class ConfigError(DraftauditError):
    """A file that is no configuration."""


@dataclass(frozen=True, slots=True)
class Given:
    """A configuration as it was given.

    Attributes:
        name: how it is called in reports.
        model: what the engine would be told as the model: the folder of the file.
        config: its fields.
        remarks: what is unusual about the file.
    """

    name: str
    model: str
    config: dict[str, Any]
    remarks: tuple[str, ...] = ()


def read(given: str, name: str, model: str | None = None) -> Given:
    """The configuration that ``given`` names: a file, a folder, or ``-``.

    Raises:
        ConfigError: there is none, or it is not a JSON object that is read.
    """
    name = name.encode("utf-8", "backslashreplace").decode()  # a file name may be any bytes
    if given == "-":
        data = _limited(sys.stdin.buffer, name)
        return _parsed(data, name, model or "-")
    path = Path(given)
    try:
        file = path / CONFIG if path.is_dir() else path
        if file is not path and not file.exists():
            raise ConfigError(f"this folder has no {CONFIG}", where=name)
        with open(file, "rb") as stream:
            data = _limited(stream, name)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(f"cannot be read: {said}", where=name) from error
    return _parsed(data, name, model or model_of(given))


def model_of(given: str) -> str:
    """What a user would call the model: the folder of ``config.json``, else the file's own name."""
    path = Path(given)
    if path.name == CONFIG:
        return str(path.parent)
    return str(path.with_suffix("")) if path.suffix == ".json" else str(path)


def names_of(given: Sequence[str]) -> list[str]:
    """A short name for each: relative as given, absolute ones below what they have in common."""
    models = [model_of(one) for one in given]
    absolute = [one for one in models if os.path.isabs(one)]
    if not absolute:
        return ["." if one == "" else one for one in models]
    common = os.path.commonpath([os.path.dirname(one) for one in absolute])
    return [os.path.relpath(one, common) if os.path.isabs(one) else one for one in models]


def files_below(folder: Path) -> Iterator[Path]:
    """The configurations in a folder: ``config.json`` where there is one, else each ``*.json``.

    Links to folders are not followed.

    Raises:
        ConfigError: the folder cannot be read.
    """

    def failed(error: OSError) -> None:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(folder)) from error

    for here, folders, files in os.walk(folder, onerror=failed):
        folders.sort()
        chosen = [CONFIG] if CONFIG in files else sorted(f for f in files if f.endswith(".json"))
        yield from (Path(here) / name for name in chosen)


def _limited(stream: BinaryIO, name: str) -> bytes:
    data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        limit = MAX_BYTES // (1024 * 1024)
        raise ConfigError(
            f"is larger than {limit} MiB, which no configuration is",
            where=name,
            next_step=f"Give the model's {CONFIG}.",
        )
    return data


def _parsed(data: bytes, name: str, model: str) -> Given:
    """The fields of a configuration, as Python's ``json`` reads them, which vLLM does too."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text (byte {error.start})", where=name) from error
    if text.startswith("\ufeff"):
        raise ConfigError(
            "begins with a byte order mark, which the loader of vLLM refuses",
            where=name,
            next_step="Save it as UTF-8 without one.",
        )
    if _depth(data) > MAX_DEPTH:
        raise ConfigError(f"is nested more than {MAX_DEPTH} levels deep", where=name)
    remarks: list[str] = []

    def fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            twice = sorted({key for key, _ in pairs if sum(key == k for k, _ in pairs) > 1})
            remarks.append(f"the file has {', '.join(map(repr, twice))} twice; the last one counts")
        return made

    def constant(said: str) -> float:
        remarks.append(f"the file has {said}, which is not JSON; the loader of vLLM takes it")
        return float(said)

    try:
        config = json.loads(text, object_pairs_hook=fields, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"is not JSON: {error}", where=name) from error
    if not isinstance(config, dict):
        kind = {list: "a list", str: "a text", type(None): "null"}.get(type(config), "a value")
        raise ConfigError(f"is JSON, but {kind} and not an object", where=name)
    return Given(name, model, config, tuple(dict.fromkeys(remarks)))


def _depth(data: bytes) -> int:
    """How deep brackets are nested, outside strings."""
    depth = deepest = 0
    for found in _STRUCTURE.finditer(data):
        first = found.group()[:1]
        if first in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"]}":
            depth -= 1
    return deepest
