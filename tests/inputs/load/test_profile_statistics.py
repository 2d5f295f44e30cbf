"""Levels, percentiles, the week and the trend of known curves."""

from __future__ import annotations

import numpy as np
import pytest

from planner.inputs.load import profile_statistics as statistics
from planner.model.load_history import Span

# Monday, 2 November 2026, 00:00 UTC, in hours since 1970.
MONDAY = 498_216
FOUR_WEEKS = Span(MONDAY, MONDAY + 28 * 24)
HOURS = np.arange(FOUR_WEEKS.hours)


def test_the_week_begins_on_monday_at_midnight_utc() -> None:
    """The week begins on Monday at midnight UTC."""
    hourly = np.full((1, FOUR_WEEKS.hours), 10.0)
    hourly[0, 9::168] = 70

    found = statistics.statistics(hourly, FOUR_WEEKS)

    assert 70 == found.week[0, 9]
    assert 10 == found.week[0, 8]
    assert 70 == found.highest[0]


def test_a_history_that_begins_midweek_has_its_hours_in_their_places() -> None:
    """A history that begins midweek has its hours in their places."""
    span = Span(MONDAY + 50, MONDAY + 50 + 200)
    hourly = (np.arange(200.0) + 50)[None, :]

    week = statistics.statistics(hourly, span).week[0]

    # Hour 50 of the week came twice, in this week and in the next.
    assert 50 + 84 == week[50]
    assert 100 == week[100]
    assert 168 + 49 == week[49]


def test_percentiles_are_of_the_hourly_means() -> None:
    """Percentiles are of the hourly means."""
    hourly = np.arange(FOUR_WEEKS.hours, dtype=np.float64)[None, ::-1]

    found = statistics.statistics(hourly, FOUR_WEEKS)

    assert np.percentile(hourly[0], [50, 95, 99]).tolist() == found.percentiles[0].tolist()
    assert hourly.mean() == found.mean[0]


def test_a_partition_that_was_never_measured_is_unknown() -> None:
    """A partition that was never measured is unknown."""
    hourly = np.full((2, FOUR_WEEKS.hours), np.nan)
    hourly[1] = 5

    found = statistics.statistics(hourly, FOUR_WEEKS)

    assert np.isnan([found.mean[0], found.highest[0], *found.percentiles[0], *found.week[0]]).all()
    assert 5 == found.mean[1]


@pytest.mark.parametrize("growth", [-0.2, 0.0, 0.08, 1.5])
def test_growth_is_found_under_a_weekly_curve_and_odd_days(growth: float) -> None:
    """Growth is found under a weekly curve and odd days."""
    months = HOURS / 24 / statistics.MONTH_DAYS
    curve = 1000 * (2 + np.cos(HOURS * 2 * np.pi / 24) + 0.5 * (HOURS % 168 < 120))
    hourly = (curve * (1 + growth) ** months)[None, :]
    # Two days of an incident, and a day that wasn't measured.
    hourly[0, 240:288] *= 20
    hourly[0, 400:424] = np.nan

    found, low, high = statistics.growth(hourly, FOUR_WEEKS)

    assert found[0] == pytest.approx(growth, abs=0.01)
    assert low[0] <= found[0] <= high[0]


def test_the_interval_holds_the_growth_in_95_of_100() -> None:
    """The interval holds the growth in 95 of 100."""
    random = np.random.default_rng(7)
    months = HOURS / 24 / statistics.MONTH_DAYS
    daily = np.repeat(random.normal(0, 0.05, (2000, 28)), 24, axis=1)
    hourly = 1000 * 1.1**months * np.exp(daily)

    _, low, high = statistics.growth(hourly, FOUR_WEEKS)

    assert 0.92 < ((low <= 0.1) & (high >= 0.1)).mean() < 0.98


def test_growth_is_unknown_within_two_weeks_and_of_what_is_idle() -> None:
    """Growth is unknown within two weeks and of what is idle."""
    short = Span(MONDAY, MONDAY + 7 * 24)

    assert np.isnan(statistics.growth(np.ones((1, short.hours)), short)).all()
    assert np.isnan(statistics.growth(np.zeros((1, FOUR_WEEKS.hours)), FOUR_WEEKS)).all()
