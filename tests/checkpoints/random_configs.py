"""Random configurations over the words that a tree's override reads and compares with."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from auditor.checkpoints.values import Function


@dataclass(frozen=True, slots=True)
class Words:
    """What a function reads, and the strings that it compares with."""

    fields: tuple[str, ...]
    strings: tuple[str, ...]


def words_of(function: Function) -> Words:
    """The attribute names and strings of a function of the tree."""
    fields: set[str] = set()
    strings: set[str] = set()
    for node in ast.walk(function.node):
        match node:
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant() as key, *_]
            ):
                fields.add(str(key.value))
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant() as key, *_]):
                fields.add(str(key.value))
            case ast.Attribute(attr=name, ctx=ast.Load()):
                fields.add(name)
            case ast.Constant(value=str(text)) if text.isidentifier():
                strings.add(text)
            case _:
                continue
    skipped = {"update", "get", "get_text_config", "intersection", "deepcopy", "items"}
    return Words(tuple(sorted(fields - skipped)), tuple(sorted(strings | {"llama", "exaone4_5x"})))


def configs(words: Words, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Configurations, the same for a seed; about half of them are well formed."""
    chance = random.Random(seed)
    for _ in range(count):
        yield _config(chance, words, nested=True, sane=chance.random() < 0.5)


def _config(chance: random.Random, words: Words, *, nested: bool, sane: bool) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if sane or chance.random() < 0.9:
        made["model_type"] = chance.choice(words.strings)
    if sane or chance.random() < 0.9:
        made["architectures"] = [chance.choice(words.strings)]
    if not sane and chance.random() < 0.3:
        made[chance.choice(["model_type", "architectures"])] = _odd(chance, words)
    for name in chance.sample(words.fields, chance.randrange(0, 7)):
        if name in made and sane:
            continue
        if name.endswith("layer_types"):
            made[name] = ["full_attention"] * chance.randrange(0, 4)
        else:
            made[name] = chance.randrange(0, 4) if sane else _odd(chance, words)
    if nested and chance.random() < 0.5:
        name = chance.choice(["text_config", "text_config", "decoder", "mtp_config", *words.fields])
        if name not in ("model_type", "architectures"):
            made[name] = _config(chance, words, nested=False, sane=sane)
    return made


def _odd(chance: random.Random, words: Words) -> Any:
    return chance.choice(
        [
            None, True, False, 0, 1, 2, -1, 10**30, 1.5, "", chance.choice(words.strings),
            [], ["x"], [chance.choice(words.strings)], [1, None], {}, {"a": 1},
            {"num_nextn_predict_layers": chance.choice([0, 1, "2", None])},
            [[chance.choice(words.strings)]],
        ]
    )  # fmt: skip
