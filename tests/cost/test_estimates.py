"""Between measured points there is a number, outside of them there is none."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.cost.estimate import crossing, estimate
from auditor.cost.measurements import Measurement, Point, Saving, Series, in_order
from auditor.errors import UsageError

times = st.floats(0.001, 1e9, allow_nan=False)
point_lists = st.lists(
    st.builds(Point, st.integers(1, 2**24), times, times),
    min_size=1,
    max_size=8,
    unique_by=lambda point: point.batch,
)


def series(*points: tuple[int, float, float]) -> Series:
    return Series(100, 2, points=tuple(Point(*point) for point in points))


def rising(points: list[Point]) -> Series:
    return in_order(Measurement("m", (Series(100, 2, points=tuple(points)),))).series[0]


@given(point_lists)
def test_at_a_measured_batch_the_number_is_the_measured_one(points: list[Point]) -> None:
    measured = rising(points)
    for point in points:
        said = estimate(measured, point.batch)
        assert (said.by, said.low, said.high) == ("measured", point.batch, point.batch)
        assert (said.default_us, said.reduction_us) == (point.default_us, point.reduction_us)


@given(point_lists, st.integers(1, 2**24))
def test_between_two_points_the_number_lies_between_theirs(points: list[Point], batch: int) -> None:
    measured = rising(points)
    said = estimate(measured, batch)
    if said.by != "interpolated":
        return
    at = {point.batch: point for point in points}
    low, high = at[said.low or 0], at[said.high or 0]
    assert low.batch < batch < high.batch
    assert not any(low.batch < point.batch < high.batch for point in points)
    for name in ("default_us", "reduction_us"):
        ends = sorted((getattr(low, name), getattr(high, name)))
        assert ends[0] <= getattr(said, name) <= ends[1]


@given(point_lists, st.integers(1, 2**24))
def test_outside_of_the_points_there_is_no_number(points: list[Point], batch: int) -> None:
    measured = rising(points)
    said = estimate(measured, batch)
    inside = measured.points[0].batch <= batch <= measured.points[-1].batch
    assert (said.by != "nothing") is inside
    if not inside:
        assert (said.default_us, said.reduction_us, said.saved_percent) == (None, None, None)
        assert said.effect == "unknown"


@given(point_lists)
def test_a_break_even_lies_between_what_costs_and_what_saves(points: list[Point]) -> None:
    measured = rising(points)
    cross = crossing(measured)
    if cross is None:
        return
    assert cross.low < cross.high
    assert all(one.saved_us <= 0 for one in measured.points if one.batch <= cross.low)
    assert all(one.saved_us > 0 for one in measured.points if one.batch >= cross.high)
    if cross.batch is not None:
        assert cross.low <= cross.batch <= cross.high


def test_halfway_is_half() -> None:
    said = estimate(series((10, 100.0, 130.0), (20, 200.0, 150.0)), 15)
    assert (said.default_us, said.reduction_us, said.effect) == (150.0, 140.0, "saves")
    assert said.saved_percent == pytest.approx(100 * 10 / 150)


def test_the_break_even_is_where_the_lines_cross() -> None:
    cross = crossing(series((10, 100.0, 130.0), (20, 200.0, 140.0)))
    assert cross is not None
    assert (cross.low, cross.high, cross.reported) == (10, 20, False)
    assert cross.batch == pytest.approx(10 + 10 / 3)


def test_where_costing_and_saving_alternate_there_is_a_range_and_no_batch() -> None:
    mixed = series((1, 1.0, 2.0), (2, 3.0, 2.0), (4, 3.0, 4.0), (8, 9.0, 4.0))
    cross = crossing(mixed)
    assert cross is not None
    assert (cross.low, cross.high, cross.batch) == (1, 8, None)


@pytest.mark.parametrize(
    "points",
    [
        [(1, 2.0, 1.0), (2, 2.0, 1.0)],
        [(1, 1.0, 2.0), (2, 1.0, 2.0)],
        [(1, 2.0, 1.0), (2, 1.0, 2.0)],
        [(1, 2.0, 1.0), (2, 1.0, 2.0), (3, 2.0, 1.0)],
        [(7, 1.0, 2.0)],
    ],
)
def test_without_a_change_from_costing_to_saving_there_is_no_break_even(
    points: list[tuple[int, float, float]],
) -> None:
    assert crossing(series(*points)) is None


def test_a_range_of_a_source_gives_the_effect_outside_of_it_and_no_time() -> None:
    reported = Series(100, 4, break_even=(128, 256))
    effects = {batch: estimate(reported, batch).effect for batch in (1, 128, 129, 255, 256, 900)}
    assert effects == {
        1: "costs",
        128: "costs",
        129: "unknown",
        255: "unknown",
        256: "saves",
        900: "saves",
    }
    assert estimate(reported, 900).default_us is None


def test_a_share_counts_at_its_own_batch_alone() -> None:
    shares = Series(100, 2, savings=(Saving(128, 49.3), Saving(1024, 75.2)))
    assert estimate(shares, 128).saved_percent == 49.3
    assert estimate(shares, 512).by == "nothing"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (Series(0, 2, break_even=(1, 2)), "series[0].vocab_size: 0 is no vocabulary size"),
        (Series(9, -1, break_even=(1, 2)), "series[0].tp: -1 is no number of ranks"),
        (Series(9, 2, "int8", break_even=(1, 2)), "series[0].dtype: no dtype"),
        (Series(9, 2), "neither points, savings nor break_even"),
        (Series(9, 2, break_even=(4, 4)), "4 is not below 4"),
        (Series(9, 2, points=(Point(1, 1, 1),), break_even=(1, 2)), "follows from the points"),
        (Series(9, 2, points=(Point(0, 1, 1),)), "points[0].batch: 0 is no draft batch"),
        (
            Series(9, 2, points=(Point(1, 1, 1), Point(1, 2, 2))),
            "points[1].batch: 1 is there twice",
        ),
        (Series(9, 2, points=(Point(1, 0, 1),)), "points[0].default_us: 0 is no time"),
        (Series(9, 2, points=(Point(1, 1, math.nan),)), "points[0].reduction_us: nan is no time"),
        (Series(9, 2, points=(Point(1, math.inf, 1),)), "points[0].default_us: inf is no time"),
        (Series(9, 2, savings=(Saving(1, 101.0),)), "savings[0].percent: not a share"),
    ],
)
def test_figures_that_cannot_be_are_refused_by_key(wrong: Series, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        in_order(Measurement("m", (wrong,)))
    assert says in caught.value.what


def test_two_series_for_the_same_are_refused() -> None:
    twice = (Series(9, 2, "bf16", break_even=(1, 2)), Series(9, 2, break_even=(3, 4)))
    with pytest.raises(UsageError, match="a second series for vocab 9, TP 2, bfloat16"):
        in_order(Measurement("m", twice))
