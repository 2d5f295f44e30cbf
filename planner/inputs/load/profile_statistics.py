"""From hourly means of partitions' load to what a profile says of each: level, percentiles, the week, the trend.

Growth is a seasonal Theil-Sen estimate (Sen 1968; Hirsch and Slack 1984). For all pairs of days of the same weekday, it
takes the change of the logarithm of the daily mean, divided by the days between them; the estimate is their median.
Neither a weekly curve nor a few odd days disturb it. Its 95 % interval is Sen's, with the variance of Kendall's
statistic added up over the weekdays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.load_history import HOURS_OF_WEEK, Span
from planner.model.problem import FloatArray, LongArray

WEEK_DAYS, DAY_HOURS = 7, 24
MONTH_DAYS = 365.25 / 12
# 1 January 1970 was a Thursday; hours of the week begin on Monday, 00:00 UTC.
_EPOCH_HOUR_OF_WEEK = 72
PERCENTILES = (50, 95, 99)
# A day counts for the trend if it has at least half of its hours.
_LEAST_HOURS_OF_DAY = 12
# The 97.5 % quantile of the normal distribution, for a two-sided 95 % interval.
_NORMAL_975 = 1.959964


@dataclass(frozen=True, eq=False)
class Statistics:
    """Rates of K partitions in bytes/s, of their hourly means; NaN where nothing was measured.

    mean, highest (K,); percentiles (K, 3), those of PERCENTILES; week (K, 168), Monday 00:00 UTC first.
    """

    mean: FloatArray
    percentiles: FloatArray
    highest: FloatArray
    week: FloatArray


def hourly_means(sums: LongArray, counts: LongArray) -> FloatArray:
    """(K, H) means of the samples of each hour, NaN without any."""
    return np.where(counts > 0, sums / counts.clip(min=1), np.nan)


def statistics(hourly: FloatArray, span: Span) -> Statistics:
    """The statistics of hourly means (K, H)."""
    some = ~np.isnan(hourly).all(axis=1)
    count = len(hourly)
    mean, highest = np.full((2, count), np.nan)
    percentiles, week = np.full((count, len(PERCENTILES)), np.nan), np.full((count, HOURS_OF_WEEK), np.nan)
    measured = hourly[some]
    if len(measured):
        mean[some], highest[some] = np.nanmean(measured, axis=1), np.nanmax(measured, axis=1)
        percentiles[some] = np.nanpercentile(measured, PERCENTILES, axis=1).T
        weeks = _periods(measured, span.first + _EPOCH_HOUR_OF_WEEK, HOURS_OF_WEEK)
        week[some] = _known_means(weeks, axis=1, least=1)
    return Statistics(mean, percentiles, highest, week)


def _periods(hourly: FloatArray, first: int, hours: int) -> FloatArray:
    """(K, N, hours): the hours (K, H) in N weeks or days of so many hours, NaN before the first and after the last.

    `first` is the number of the first hour, counted from any beginning of a period.
    """
    before = first % hours
    after = -(before + hourly.shape[1]) % hours
    return np.pad(hourly, ((0, 0), (before, after)), constant_values=np.nan).reshape(len(hourly), -1, hours)


def _known_means(values: FloatArray, *, axis: int, least: int) -> FloatArray:
    """The means of the known values along an axis, NaN where fewer than `least` are known."""
    counts = (~np.isnan(values)).sum(axis=axis)
    return np.where(counts >= least, np.nansum(values, axis=axis) / counts.clip(min=1), np.nan)


def growth(hourly: FloatArray, span: Span) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(K,) growth per month and the ends of its 95 % interval, as fractions.

    NaN where no two days of the same weekday are known.
    """
    days = _known_means(_periods(hourly, span.first, DAY_HOURS), axis=2, least=_LEAST_HOURS_OF_DAY)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(days > 0, np.log(days), np.nan)
    first, second = np.triu_indices(logs.shape[1], k=1)
    same = (second - first) % WEEK_DAYS == 0
    first, second = first[same], second[same]
    result = np.full((3, len(hourly)), np.nan)
    if not len(first):
        return result[0], result[1], result[2]
    slopes = np.sort((logs[:, second] - logs[:, first]) / (second - first), axis=1)
    pairs = (~np.isnan(slopes)).sum(axis=1)
    half = _NORMAL_975 * np.sqrt(_kendall_variance(logs)) / 2
    some = np.flatnonzero(pairs > 0)
    middle = (pairs[some] - 1) / 2
    for at, place in enumerate((middle, middle - half[some], middle + half[some])):
        result[at, some] = np.expm1(_interpolated(slopes[some], place.clip(0, pairs[some] - 1)) * MONTH_DAYS)
    return result[0], result[1], result[2]


def _kendall_variance(days: FloatArray) -> FloatArray:
    """(K,) the variance of Kendall's S, summed over the weekdays: n (n - 1) (2 n + 5) / 18 for n known days.

    days: (K, D) of consecutive days, NaN where unknown.
    """
    total: FloatArray = np.zeros(len(days))
    for weekday in range(min(WEEK_DAYS, days.shape[1])):
        known = (~np.isnan(days[:, weekday::WEEK_DAYS])).sum(axis=1)
        total += known * (known - 1) * (2 * known + 5) / 18
    return total


def _interpolated(rows: FloatArray, place: FloatArray) -> FloatArray:
    """(K,) the linearly interpolated value of each sorted row (K, N) at a fractional column `place` (K,)."""
    low = np.floor(place).astype(np.int64)
    high = np.ceil(place).astype(np.int64)
    at = np.arange(len(rows))
    below = rows[at, low]
    return below + (place - low) * (rows[at, high] - below)
