"""A short text may ask for more than any machine holds: what no module needs stays unknown."""

from __future__ import annotations

import pytest
from differential.ours import answers
from differential.spellings import tree

from auditor.values import Either, Opaque


@pytest.mark.parametrize(
    "text",
    [
        "x = [*range(10**8)]",
        "x = [*range(10**30)]",
        "x = list(range(10**8))",
        "x, y = range(10**30)",
        "def f(*a): return a\nx = f(*range(10**30))",
        "x = [i for i in range(10**30)]",
        "for x in range(10**30): pass",
        "x = 'a' * 10**9",
        "x = [0] * 10000 * 10000",
        "x = [0]\nfor i in range(60): x += x",
        "x = 'a'\nfor i in range(60): x = x + x",
        "x = 10 ** 10 ** 9",
        "x = '%1000000000d' % 3",
        "x = '%*d' % (10**9, 3)",
        "x = f'{3:{10**9}}'",
        "x = '{:1000000000}'.format(3)",
        "x = '{:{}}'.format(3, 10**9)",
    ],
)
def test_what_is_too_large_is_not_made(text: str) -> None:
    found = answers(tree(a=text)).names["vllm.a"]["x"]
    assert isinstance(found, Opaque | Either), found


def test_what_is_not_too_large_is_made() -> None:
    names = answers(tree(a="x = [*range(100)]\ny = '%05d' % 3\nz = 'ab' * 1000 + 'c'")).names
    found = names["vllm.a"]
    assert (found["x"], found["y"], found["z"]) == ([*range(100)], "00003", "ab" * 1000 + "c")


def test_a_call_under_a_cache_needs_arguments_with_a_hash() -> None:
    text = "import functools\n@functools.cache\ndef f(x): return 1\n"
    made = answers(tree(a=f"{text}try: y = f([1])\nexcept TypeError: y = 2\nz = f(1)")).names
    assert (made["vllm.a"]["y"], made["vllm.a"]["z"]) == (2, 1)
