"""Samples are summed by hour in any blocks; means, percentiles, weeks and trends of known curves are found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from load_samples import Sample, gathered, sample_batch

from planner.inputs import load_profile_statistics
from planner.model.load_history import Span

# Monday, 2 November 2026, 00:00 UTC, in hours since 1970.
MONDAY = 498_216
FOUR_WEEKS = Span(MONDAY, MONDAY + 28 * 24)
HOURS = np.arange(FOUR_WEEKS.hours)


def growth_of(hourly: np.ndarray, span: Span) -> tuple[np.ndarray, ...]:
    """The growth of hourly means, with both ends of its interval."""
    return load_profile_statistics.growth(hourly, load_profile_statistics.statistics(hourly, span).week, span)


def test_the_week_begins_on_monday_at_midnight_utc() -> None:
    """Hour 0 of the week is Monday, midnight UTC."""
    hourly = np.full((1, FOUR_WEEKS.hours), 10.0)
    hourly[0, 9::168] = 70

    found = load_profile_statistics.statistics(hourly, FOUR_WEEKS)

    assert 70 == found.week[0, 9]
    assert 10 == found.week[0, 8]
    assert 70 == found.highest[0]


def test_a_history_that_begins_midweek_has_its_hours_in_their_places() -> None:
    """If a history begins midweek, its hours still have their places in the week."""
    span = Span(MONDAY + 50, MONDAY + 50 + 200)
    hourly = (np.arange(200.0) + 50)[None, :]

    week = load_profile_statistics.statistics(hourly, span).week[0]

    # Hour 50 of the week comes twice, in this week and the next.
    assert 50 + 84 == week[50]
    assert 100 == week[100]
    assert 168 + 49 == week[49]


def test_percentiles_are_of_the_hourly_means() -> None:
    """Percentiles and the mean are those of the hourly means."""
    hourly = np.arange(FOUR_WEEKS.hours, dtype=np.float64)[None, ::-1]

    found = load_profile_statistics.statistics(hourly, FOUR_WEEKS)

    assert np.percentile(hourly[0], [50, 95, 99]).tolist() == found.percentiles[0].tolist()
    assert hourly.mean() == found.mean[0]


def test_a_partition_that_was_never_measured_is_unknown() -> None:
    """Statistics of a partition without samples are NaN."""
    hourly = np.full((2, FOUR_WEEKS.hours), np.nan)
    hourly[1] = 5

    found = load_profile_statistics.statistics(hourly, FOUR_WEEKS)

    assert np.isnan([found.mean[0], found.highest[0], *found.percentiles[0], *found.week[0]]).all()
    assert 5 == found.mean[1]


@pytest.mark.parametrize("growth", [-0.2, 0.0, 0.08, 1.5])
def test_growth_is_found_under_a_weekly_curve_and_odd_days(growth: float) -> None:
    """Growth is found despite a weekly curve, an incident and a missing day."""
    months = HOURS / 24 / load_profile_statistics.MONTH_DAYS
    curve = 1000 * (2 + np.cos(HOURS * 2 * np.pi / 24) + 0.5 * (HOURS % 168 < 120))
    hourly = (curve * (1 + growth) ** months)[None, :]
    # An incident of two days, and a day without samples.
    hourly[0, 240:288] *= 20
    hourly[0, 400:424] = np.nan

    found, low, high = growth_of(hourly, FOUR_WEEKS)

    assert found[0] == pytest.approx(growth, abs=0.01)
    assert low[0] <= found[0] <= high[0]


def test_the_interval_holds_the_growth_in_95_of_100() -> None:
    """The interval contains the true growth in about 95 of 100 random histories."""
    random = np.random.default_rng(7)
    months = HOURS / 24 / load_profile_statistics.MONTH_DAYS
    daily = np.repeat(random.normal(0, 0.05, (2000, 28)), 24, axis=1)
    hourly = 1000 * 1.1**months * np.exp(daily)

    _, low, high = growth_of(hourly, FOUR_WEEKS)

    assert 0.92 < ((low <= 0.1) & (high >= 0.1)).mean() < 0.98


def test_the_interval_is_sens_with_ends_between_ranks() -> None:
    """Four weeks have 42 pairs of days of one weekday: the ends are the slopes half a rank inside of Sen's ranks."""
    days = np.random.default_rng(5).lognormal(0, 0.1, 28)
    pairs = [(a, b) for a in range(28) for b in range(a + 7, 28, 7)]
    slopes = sorted(np.log(days[b] / days[a]) / (b - a) for a, b in pairs)
    spread = 1.959964 * np.sqrt(7 * 4 * 3 * 13 / 18)
    ranks = [(42 - spread) / 2 + 0.5, (42 + spread) / 2 + 0.5]
    ends = np.expm1(np.interp(ranks, np.arange(1, 43), slopes) * load_profile_statistics.MONTH_DAYS)

    _, low, high = growth_of(np.repeat(1000 * days, 24)[None], FOUR_WEEKS)

    assert [low[0], high[0]] == pytest.approx(ends)


def test_an_hour_that_is_missing_has_the_level_of_its_week() -> None:
    """A missing hour gets its week's level. Traffic doubles each week: a mean without the last week is 38 % too low."""
    curve = 100 + 50 * np.sin(HOURS * np.pi / 12)
    hourly = (curve * 2.0 ** (HOURS // 168))[None]
    whole = load_profile_statistics.statistics(hourly, FOUR_WEEKS).week
    gap = hourly.copy()
    gap[0, [3 * 168 + 9, 168 + 50]] = np.nan

    assert whole == pytest.approx(load_profile_statistics.statistics(gap, FOUR_WEEKS).week, rel=2e-2)


def test_nights_that_are_missing_change_no_mean() -> None:
    """The mean and the percentiles are those of the week's hours, although three of four weeks lack their nights."""
    whole = np.where(HOURS % 24 < 12, 1000.0, 9000.0)[None]
    gaps = whole.copy()
    gaps[0, (HOURS % 24 < 12) & (HOURS >= 168)] = np.nan

    wanted, found = (load_profile_statistics.statistics(each, FOUR_WEEKS) for each in (whole, gaps))
    assert wanted.mean == pytest.approx(found.mean)
    assert wanted.percentiles == pytest.approx(found.percentiles)


def test_hours_before_the_first_and_after_the_last_are_not_estimated() -> None:
    """Hours before a partition appeared aren't estimated: its week has the means of the last two weeks."""
    hourly = (100 * 2.0 ** (HOURS // 168))[None].copy()
    hourly[0, : 2 * 168 - 5] = np.nan

    week = load_profile_statistics.statistics(hourly, FOUR_WEEKS).week

    assert week[0, :163] == pytest.approx(600)
    assert week[0, 163:] == pytest.approx((200 + 400 + 800) / 3)


def test_hours_of_the_night_that_are_missing_are_no_growth() -> None:
    """Missing night hours give no false growth, because a day's level uses only its known hours."""
    hourly = (100 + 99 * np.sin(HOURS * np.pi / 12))[None].copy()
    for day in (21, 23, 24, 26, 27):
        hourly[0, day * 24 + 13 : day * 24 + 23] = np.nan

    found, low, high = growth_of(hourly, FOUR_WEEKS)

    assert (found[0], low[0], high[0]) == pytest.approx((0, 0, 0), abs=1e-9)


def test_growth_is_unknown_within_two_weeks_and_of_what_is_idle() -> None:
    """Growth is NaN for two weeks of history or less, and for idle partitions."""
    for hours in (7 * 24, 9 * 24, 14 * 24):
        short = Span(MONDAY, MONDAY + hours)
        assert np.isnan(growth_of(np.ones((1, hours)), short)).all()
    assert np.isnan(growth_of(np.zeros((1, FOUR_WEEKS.hours)), FOUR_WEEKS)).all()


HOUR = 3600
SPAN = Span(10, 14)


def test_samples_of_an_hour_are_added_up() -> None:
    """The samples of an hour are summed and counted; the size is the last one."""
    rows = sample_batch(
        ("a", 0, 10 * HOUR, 100, 7, 5), ("a", 0, 10 * HOUR + 60, 300, None, 6), ("a", 0, 12 * HOUR, 50, 1, 9)
    )
    keys, parts = gathered(list(load_profile_statistics.blocks([rows], SPAN)))
    in_sums, in_counts, out_sums, out_counts, seen = load_profile_statistics.sums_by_hour(parts, SPAN)

    assert [("a", 0)] == keys
    assert [[400, 0, 50, 0]] == in_sums.tolist()
    assert [[2, 0, 1, 0]] == in_counts.tolist()
    assert [[7, 0, 1, 0]] == out_sums.tolist()
    assert [[1, 0, 1, 0]] == out_counts.tolist()
    assert [[True, False, True, False]] == seen.tolist()
    assert [9] == load_profile_statistics.sizes_and_counts(parts).sizes.tolist()


def test_samples_of_the_same_time_count_once_with_their_mean() -> None:
    """Samples with the same time count as one sample with their mean."""
    rows = sample_batch(("a", 0, 10 * HOUR, 100, None, None), ("a", 0, 10 * HOUR, 300, None, None))
    _, parts = gathered(list(load_profile_statistics.blocks([rows], SPAN)))

    assert 200 == load_profile_statistics.sums_by_hour(parts, SPAN)[0][0, 0]
    assert (2, 1) == (
        load_profile_statistics.sizes_and_counts(parts).samples[0],
        load_profile_statistics.sizes_and_counts(parts).repeated[0],
    )


def test_a_value_below_zero_is_left_out_and_counted() -> None:
    """Negative values are left out and counted, and so are those that are given."""
    rows = sample_batch(("a", 0, 10 * HOUR, -1, 5, None), ("a", 0, 10 * HOUR + 1, 300, -1, -1))
    _, parts = gathered(list(load_profile_statistics.blocks([rows], SPAN)))
    in_sums, in_counts, out_sums, out_counts, _ = load_profile_statistics.sums_by_hour(parts, SPAN)

    assert (300, 1, 5, 1) == (in_sums[0, 0], in_counts[0, 0], out_sums[0, 0], out_counts[0, 0])
    noted = load_profile_statistics.sizes_and_counts(parts)
    assert [2, 2, 1, 1, 1, 1] == noted.values[:, 0].tolist()
    assert [-1] == noted.sizes.tolist()


def test_a_partition_without_a_size_has_none() -> None:
    """A partition without a size has -1."""
    _, parts = gathered(list(load_profile_statistics.blocks([sample_batch(("a", 0, 10 * HOUR, 1, 1, None))], SPAN)))

    assert [-1] == load_profile_statistics.sizes_and_counts(parts).sizes.tolist()


def test_samples_outside_of_the_span_are_left_out() -> None:
    """Samples outside the span are left out."""
    rows = sample_batch(("a", 0, 9 * HOUR, 1, 1, 1), ("a", 0, 14 * HOUR, 1, 1, 1))

    assert [] == list(load_profile_statistics.blocks([rows], SPAN))


def test_the_span_is_the_run_of_hours_with_most_samples() -> None:
    """The span is the run of successive hours with the most samples."""
    hours = np.array([498_300, 3, 498_301, 498_302, 499_000])
    samples = np.array([10, 1, 10, 10, 2])

    assert (Span(498_300, 498_303), 3) == load_profile_statistics.span_of(hours, samples)


def test_hours_before_2001_are_of_a_wrong_clock() -> None:
    """Hours of 1970 are never the span, even if most samples are there."""
    first = load_profile_statistics.FIRST_HOUR

    found = load_profile_statistics.span_of(np.array([12, 13, first - 1, first]), np.array([500, 500, 7, 1]))

    assert (Span(first, first + 1), 1007) == found


rows_of_samples = st.lists(
    st.tuples(
        st.sampled_from(["a", "b.c"]),
        st.integers(0, 2),
        st.integers(9 * HOUR, 15 * HOUR),
        st.one_of(st.none(), st.integers(-1, 10**9)),
        st.one_of(st.none(), st.integers(-1, 10**9)),
        st.one_of(st.none(), st.integers(0, 10**12)),
    ),
    min_size=1,
    max_size=40,
    unique_by=lambda row: row[:3],
)


@given(rows_of_samples, st.integers(1, 40))
def test_how_samples_are_cut_into_blocks_does_not_show(rows: list[Sample], cut: int) -> None:
    """How samples are cut into blocks does not show."""
    parts = [rows[:cut], rows[cut:]]
    whole = gathered(list(load_profile_statistics.blocks([sample_batch(*rows)], SPAN)))
    apart = gathered(
        [each for part in parts if part for each in load_profile_statistics.blocks([sample_batch(*part)], SPAN)]
    )

    assert whole[0] == apart[0]
    if whole[0]:
        for one, other in zip(
            (
                *load_profile_statistics.sums_by_hour(whole[1], SPAN),
                *load_profile_statistics.sizes_and_counts(whole[1]),
            ),
            (
                *load_profile_statistics.sums_by_hour(apart[1], SPAN),
                *load_profile_statistics.sizes_and_counts(apart[1]),
            ),
            strict=True,
        ):
            assert one.tolist() == other.tolist()
