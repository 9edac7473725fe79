"""The arithmetic of a draft step, and the numbers that one types for it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.cost.grid import LARGEST, numbers
from auditor.cost.sizes import (
    check_shards,
    cost_rule,
    default_bytes,
    dtype_named,
    padded,
    reduction_bytes,
    size_text,
)
from auditor.errors import UsageError

batches = st.integers(1, LARGEST["draft batch"])
vocabularies = st.integers(1, LARGEST["vocabulary size"])
ranks = st.integers(1, LARGEST["number of ranks"])
dtypes = st.sampled_from(sorted(cost_rule().dtypes))


@pytest.mark.parametrize(
    ("vocab_size", "tp", "batch", "default", "reduction"),
    [
        (129280, 2, 512, "126.2 MiB", "8.0 KiB"),
        (154880, 2, 512, "151.2 MiB", "8.0 KiB"),
        (154880, 8, 1024, "302.5 MiB", "64.0 KiB"),
        (129280, 2, 1, "252.5 KiB", "16 B"),
    ],
)
def test_the_sizes_of_known_models_in_bfloat16(
    vocab_size: int, tp: int, batch: int, default: str, reduction: str
) -> None:
    assert size_text(default_bytes(batch, vocab_size, "bfloat16")) == default
    assert size_text(reduction_bytes(batch, tp)) == reduction


@given(batches, vocabularies, ranks, dtypes)
def test_more_of_anything_is_never_fewer_bytes(
    batch: int, vocab_size: int, tp: int, dtype: str
) -> None:
    assert default_bytes(batch + 1, vocab_size, dtype) > default_bytes(batch, vocab_size, dtype)
    assert default_bytes(batch, vocab_size + 1, dtype) > default_bytes(batch, vocab_size, dtype)
    assert reduction_bytes(batch + 1, tp) > reduction_bytes(batch, tp)
    assert reduction_bytes(batch, tp + 1) > reduction_bytes(batch, tp)
    assert default_bytes(batch, vocab_size, "float32") >= default_bytes(batch, vocab_size, dtype)


@given(batches, vocabularies, ranks, dtypes)
def test_the_ratio_does_not_depend_on_the_batch(
    batch: int, vocab_size: int, tp: int, dtype: str
) -> None:
    once = default_bytes(1, vocab_size, dtype) * reduction_bytes(batch, tp)
    assert default_bytes(batch, vocab_size, dtype) * reduction_bytes(1, tp) == once


@given(st.integers(0, 2**80), st.integers(0, 2**80))
def test_a_size_is_shown_with_at_most_four_digits_before_the_point(first: int, second: int) -> None:
    shown = size_text(min(first, 2**59))
    assert len(shown.split()[0].partition(".")[0]) <= 4
    assert shown.split()[1] in ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("bfloat16", "bfloat16"),
        ("BF16", "bfloat16"),
        ("torch.float16", "float16"),
        ("half", "float16"),
        (" fp32 ", "float32"),
    ],
)
def test_a_dtype_goes_by_several_names(name: str, found: str) -> None:
    assert dtype_named(name) == found


@pytest.mark.parametrize(
    ("name", "near"), [("bfloat61", "bfloat16"), ("flaot32", "float32"), ("int8", "Known: ")]
)
def test_an_unknown_dtype_names_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UsageError) as caught:
        dtype_named(name)
    assert near in caught.value.message
    assert repr(name) in caught.value.what


def test_a_head_is_padded_before_it_is_shared_out() -> None:
    assert padded(129280) == 129280
    assert padded(32001) == 32064
    check_shards(32001, 4)
    with pytest.raises(UsageError, match="3 ranks cannot share a head of 129280 rows"):
        check_shards(129280, 3)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (("512",), (512,)),
        (("64,16", "32,16"), (16, 32, 64)),
        (("1-1024",), tuple(2**n for n in range(11))),
        (("3-100",), (3, 6, 12, 24, 48, 96, 100)),
        (("8-8, 9",), (8, 9)),
        ((" 1 - 4 ",), (1, 2, 4)),
        ((), ()),
    ],
)
def test_numbers_are_typed_as_lists_and_ranges(typed: tuple[str, ...], found: object) -> None:
    assert numbers(typed, "draft batch") == found


@pytest.mark.parametrize(
    "typed",
    [
        "0",
        "-1",
        "",
        "1,,2",
        "x",
        "1.5",
        "1e3",
        "1_000",
        "-",
        "1-",
        "-1-4",
        "8-4",
        "1-2-3",
        "²",
        "٣",
    ],
)
def test_what_is_no_whole_number_from_one_is_refused(typed: str) -> None:
    with pytest.raises(UsageError):
        numbers((typed,), "draft batch")


@pytest.mark.parametrize("kind", LARGEST)
def test_a_number_beyond_any_use_is_refused(kind: str) -> None:
    for huge in (str(LARGEST[kind] + 1), "9" * 30, "9" * 5000):
        with pytest.raises(UsageError, match="it goes from 1 to"):
            numbers((huge,), kind)
    assert numbers((str(LARGEST[kind]),), kind) == (LARGEST[kind],)


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_a_range_doubles_and_holds_both_ends(one: int, other: int) -> None:
    low, high = sorted((one, other))
    found = numbers((f"{low}-{high}",), "draft batch")
    assert (found[0], found[-1]) == (low, high)
    assert all(b == 2 * a for a, b in pairwise(found[:-1]))
    assert all(a < b <= 2 * a for a, b in pairwise(found))
