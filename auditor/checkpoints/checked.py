"""Fields that Transformers checks or rewrites: which of a configuration's are not as it likes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from auditor.checkpoints.conventions import BaseRule
from auditor.checkpoints.values import Value

#: The parts of a configuration that may be about text (``get_text_config``).
DECODERS = ("decoder", "generator", "text_config")
#: How the name of a kind of layer ends.
_KINDS = ("attention", "sparse", "dense", "mamba", "conv", "moe", "hybrid", "sliding")


def checked(rule: BaseRule, named: Mapping[str, Value], layers: Value) -> str | None:
    """What Transformers may refuse or rewrite in the fields of a configuration, or None.

    Args:
        rule: what it checks.
        named: the fields.
        layers: how many layers there are, by the fields or by defaults of the tree; else None.
    """
    return next(_found(rule, named, layers), None)


def _found(rule: BaseRule, named: Mapping[str, Value], layers: Value) -> Iterator[str]:
    if sum(named.get(key) is not None for key in DECODERS) > 1:
        yield "more than one part is about text"
    for key in rule.layer_types:
        yield from _of_layers(key, named.get(key), None if key in rule.uncounted else layers)
    for key in ("rope_parameters", "rope_scaling"):
        if not isinstance(named.get(key), dict | None):
            yield f"`{key}` is no object"
    for key in ("dtype", "torch_dtype"):
        if not isinstance(named.get(key), str | None):
            yield f"`{key}` is no name"
    for key in ("id2label", "label2id"):
        if named.get(key) is not None and not _are_labels(key, named[key]):
            yield f"`{key}` is no table of labels"


def _of_layers(key: str, names: Value, count: Value) -> Iterator[str]:
    """A list of names, as long as there are layers where that is compared."""
    if names is None:
        return
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        yield f"`{key}` is no list of names"
    elif count is not None and (
        len(names) != count or not all(one.endswith(_KINDS) for one in names)
    ):
        yield f"`{key}` does not fit the layers"


def _are_labels(key: str, value: Value) -> bool:
    numbered = key == "id2label"
    return isinstance(value, dict) and all(one.isdigit() for one in value if numbered)
