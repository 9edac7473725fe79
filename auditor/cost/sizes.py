"""What each rank holds after the collective of one draft step, with and without the flag.

The facts are in ``rules/cost.toml``, with the files of vLLM that they come from.
"""

from __future__ import annotations

from functools import cache

import msgspec

from auditor.errors import UsageError
from auditor.reports.names import hint
from auditor.ruleset.files import load, rules_folder


class PairRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a rank sends of its shard for one token, and up to which index that is exact."""

    values: int
    bytes: int
    largest_index: int


class HeadRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the rows of a head are padded before they are shared out."""

    padding: int


class ConfigRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a checkpoint's configuration says what the logits are like."""

    own_vocabulary: str
    vocabulary: str
    head_dtype: str
    dtypes: tuple[str, ...]
    model_dtype: str
    downcast: dict[str, str]
    nested: tuple[str, ...]


class CostRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``rules/cost.toml``."""

    dtypes: dict[str, int]
    aliases: dict[str, str]
    pair: PairRule
    head: HeadRule
    config: ConfigRule


@cache
def cost_rule() -> CostRule:
    """What is known of the collectives of a draft step."""
    return load(rules_folder() / "cost.toml", CostRule)


def default_bytes(batch: int, vocab_size: int, dtype: str) -> int:
    """Bytes of the gathered logits on each rank: ``[batch, vocab_size]`` of ``dtype``.

    A vocabulary that is no multiple of the head's padding is gathered with the padding and cut
    afterwards; these are the bytes after the cut.
    """
    return batch * vocab_size * cost_rule().dtypes[dtype]


def reduction_bytes(batch: int, tp: int) -> int:
    """Bytes of the gathered pairs on each rank: ``[batch, 2 * tp]`` in float32.

    With one rank vLLM returns before it gathers anything; this is then the size of one pair.
    """
    pair = cost_rule().pair
    return batch * pair.values * tp * pair.bytes


def padded(vocab_size: int) -> int:
    """The rows of the head, over all ranks."""
    padding = cost_rule().head.padding
    return -(-vocab_size // padding) * padding


def dtype_named(name: str) -> str:
    """The dtype that is called ``name`` (``bf16``, ``torch.bfloat16``, ``half``).

    Raises:
        UsageError: logits cannot have it, or there is none of that name.
    """
    rule = cost_rule()
    plain = name.strip().lower().removeprefix("torch.")
    found = rule.aliases.get(plain, plain)
    if found in rule.dtypes:
        return found
    known = [*rule.dtypes, *rule.aliases]
    raise UsageError(f"no dtype of logits is called {name!r}", next_step=hint(plain, known))


def check_shards(vocab_size: int, tp: int) -> None:
    """Refuse a number of ranks that the head cannot be shared out to.

    Raises:
        UsageError: vLLM would not load such a head either (``divide`` in
            vllm/distributed/utils.py).
    """
    rows = padded(vocab_size)
    if rows % tp:
        raise UsageError(
            f"{tp} ranks cannot share a head of {rows} rows (vocabulary {vocab_size}, padded to "
            f"a multiple of {cost_rule().head.padding}); vLLM does not load it",
            where="--tp",
            next_step=f"Take a divisor of {rows}.",
        )


def size_text(count: int) -> str:
    """A number of bytes for people: ``126.2 MiB``, ``8.0 KiB``, ``16 B``."""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} PiB"
