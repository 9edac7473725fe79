"""What a checkpoint's ``config.json`` says of its logits: how many, and of which dtype."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from auditor.cost.grid import LARGEST
from auditor.cost.sizes import cost_rule, dtype_named
from auditor.errors import UsageError

#: No configuration is this large; what is would only be read to be refused.
_MOST_BYTES = 64 * 2**20

_Config = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a configuration says, and by which of its keys.

    Attributes:
        name: of the file, as it was given; ``-`` is standard input.
        vocab_size: the tokens of the draft model's head; None where no key says so, or where it
            was not looked for.
        vocab_key: the dotted key that says it.
        target_vocab_size: the target's, where the head has a vocabulary of its own.
        dtype: of the logits; None as well.
        dtype_key: the dotted key that says it.
        downcast: the dtype in the file, where vLLM makes another one of it.
    """

    name: str
    vocab_size: int | None
    vocab_key: str | None
    target_vocab_size: int | None
    dtype: str | None
    dtype_key: str | None
    downcast: str | None


def read_sizes(given: str, *, vocabulary: bool = True, dtype: bool = True) -> Sizes:
    """Read a file, the ``config.json`` of a folder, or standard input (``-``).

    Args:
        given: which of these.
        vocabulary: whether to look for the size of the vocabulary.
        dtype: whether to look for the dtype.

    Raises:
        UsageError: it cannot be read, is no JSON object, or says something impossible.
    """
    config = _object(_text(given), given)
    vocab_key, vocab_size = _vocabulary(config, given) if vocabulary else (None, None)
    own = vocab_key == cost_rule().config.own_vocabulary
    target = _first_number(config, given, cost_rule().config.vocabulary) if own else None
    dtype_key, written = _dtype(config, given) if dtype else (None, None)
    found = written
    if dtype_key != cost_rule().config.head_dtype:
        found = cost_rule().config.downcast.get(written or "", written)
    return Sizes(
        name=given,
        vocab_size=vocab_size,
        vocab_key=vocab_key,
        target_vocab_size=target[1] if target else None,
        dtype=found,
        dtype_key=dtype_key,
        downcast=written if written != found else None,
    )


def _text(given: str) -> bytes:
    try:
        if given == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            path = Path(given)
            file = path / "config.json" if path.is_dir() else path
            with file.open("rb") as stream:
                data = stream.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot be read: {reason}", where=given) from error
    if len(data) > _MOST_BYTES:
        raise UsageError(f"more than {_MOST_BYTES // 2**20} MiB: no configuration", where=given)
    return data


def _object(data: bytes, given: str) -> _Config:
    try:
        config = json.loads(data)
    except json.JSONDecodeError as error:
        raise UsageError(f"not JSON: {error.msg}", where=f"{given}:{error.lineno}") from error
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UsageError(f"not JSON that can be read: {reason}", where=given) from error
    if not isinstance(config, dict):
        raise UsageError("not a JSON object", where=given)
    return config


def _parts(config: _Config) -> list[tuple[str, _Config]]:
    """The configuration and those of language models within it, with the dotted keys of these."""
    parts: list[tuple[str, _Config]] = [("", config)]
    for path in cost_rule().config.nested:
        part: object = config
        for key in path.split("."):
            part = part.get(key) if isinstance(part, dict) else None
        if isinstance(part, dict):
            parts.append((f"{path}.", part))
    return parts


def _vocabulary(config: _Config, given: str) -> tuple[str | None, int | None]:
    rule = cost_rule().config
    for key in (rule.own_vocabulary, rule.vocabulary):
        if found := _first_number(config, given, key):
            return found
    return None, None


def _first_number(config: _Config, given: str, key: str) -> tuple[str, int] | None:
    """The outermost value of ``key``; an inner one counts where the outer has none."""
    inner: dict[int, str] = {}
    for prefix, part in _parts(config):
        if part.get(key) is None:
            continue
        number = _checked(part[key], f"{given}: {prefix}{key}")
        if not prefix:
            return key, number
        inner.setdefault(number, f"{prefix}{key}")
    if len(inner) > 1:
        said = ", ".join(f"{name} is {number}" for number, name in inner.items())
        raise UsageError(f"several sizes: {said}", where=given, next_step="Give --vocab-size.")
    return next(((name, number) for number, name in inner.items()), None)


def _checked(value: object, where: str) -> int:
    largest = LARGEST["vocabulary size"]
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= largest:
        shown = json.dumps(value)[:40]
        raise UsageError(f"{shown} is no vocabulary size", where=where)
    return value


def _dtype(config: _Config, given: str) -> tuple[str | None, str | None]:
    """The head's own dtype, else that of the model, the outermost first."""
    rule = cost_rule().config
    for key in (rule.head_dtype, *rule.dtypes):
        for prefix, part in _parts(config):
            value = part.get(key)
            if value is None or (key == rule.head_dtype and (prefix or value == rule.model_dtype)):
                continue
            if not isinstance(value, str):
                shown = json.dumps(value)[:40]
                raise UsageError(f"{shown} is no dtype", where=f"{given}: {prefix}{key}")
            return f"{prefix}{key}", _named(value, f"{given}: {prefix}{key}")
    return None, None


def _named(value: str, where: str) -> str:
    try:
        return dtype_named(value)
    except UsageError as error:
        raise UsageError(error.what, where=where, next_step=error.next_step) from error
