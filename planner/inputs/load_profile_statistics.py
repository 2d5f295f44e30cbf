"""The statistics of a load profile: hourly sums of samples of partitions' load; mean, percentiles, week and trend.

A sample is a measurement of one partition at one time. A block of samples becomes one row for each partition, so that
Spark shuffles these rows and not the samples.

For the mean of an hour of the week, an hour without samples gets the value of the same hour in other weeks, scaled to
its week's level. Otherwise a growing partition would seem to have less traffic in hours whose last sample is missing.

Growth is a seasonal Theil-Sen estimate (Sen 1968; Hirsch and Slack 1984). A day's level is its traffic divided by the
week's mean traffic in the same hours, so that missing night hours don't raise it. For all pairs of days of the same
weekday, the change of the level's logarithm is divided by the days between them; the estimate is the median. Neither a
weekly pattern nor a few unusual days disturb it. The 95 % interval is Sen's, with the variance of Kendall's statistic
summed over the weekdays, and with ends between ranks: half a rank nearer to the median than Sen's whole ranks. With
those, it would hold the truth of 96.8 % of the benchmark's partitions (`python -m benchmarks --load`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.model.load_history import GROWTH_HOURS, HOUR_SECONDS, HOURS_OF_WEEK, Span
from planner.model.problem import BoolArray, FloatArray, IntArray, LongArray, sums_at

# Larger values are errors, and sums of hours must fit in 64 bits: 1 TiB/s, and 1 EiB.
MOST_RATE, MOST_SIZE = 2**40, 2**60
# The year 5138: later times are errors, for example milliseconds read as seconds.
END_OF_TIME = 100_000_000_000
# The year 2001: Kafka is from 2011, so earlier times are errors, for example days since 1900 read as seconds.
FIRST_HOUR = 978_307_200 // HOUR_SECONDS
# A longer history means wrong times; this many hours of a partition still fit in memory.
LONGEST_HISTORY_HOURS = 3 * 366 * 24
# Hours that are further than this from the rest are from a wrong clock.
_APART_HOURS = 7 * 24
# The samples that are summed at once: some 150 MB.
BLOCK_SAMPLES = 1_500_000

_RATES = ("bytes_in_per_sec", "bytes_out_per_sec")
# The columns of a table of samples, which has at least one of MEASURED.
REQUIRED, MEASURED = ("time", "topic", "partition"), (*_RATES, "size_bytes")
TABLE_COLUMNS = (*REQUIRED, *MEASURED)
# `at` is in seconds since 1970, UTC. A value that wasn't measured is null, an unusable one is below 0. `source` is an
# index into SOURCES.
SAMPLE_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("at", pa.int64()),
        *((name, pa.int64()) for name in MEASURED),
        ("source", pa.int8()),
    ]
)
# The source of a partition's rates: measured by partition, or its topic's rate divided by log end offsets or by sizes.
SOURCES = ("measured", "offsets", "size")

_HOURS = pa.list_(pa.int32())
_SUMS = pa.list_(pa.int64())
# For each of MEASURED: how many values are given, and how many of them are unusable.
VALUE_COUNTS = tuple(pa.field(f"{what}_{name}", pa.int64()) for what in ("given", "unusable") for name in MEASURED)
# One partition's samples of a block: lists of the same length, by hour since 1970; and the last known size.
BLOCK_FIELDS = (
    pa.field("hours", _HOURS),
    pa.field("in_sums", _SUMS),
    pa.field("in_counts", _HOURS),
    pa.field("out_sums", _SUMS),
    pa.field("out_counts", _HOURS),
    pa.field("sized_at", pa.int64()),
    pa.field("size_bytes", pa.int64()),
    pa.field("source", pa.int8()),
    pa.field("samples", pa.int64()),
    pa.field("repeated", pa.int64()),
    *VALUE_COUNTS,
)
BLOCK_SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), *BLOCK_FIELDS])
# Represents null in arrays; every other value below 0 is unusable.
_UNMEASURED = np.iinfo(np.int64).min


def span_of(hours: LongArray, samples: LongArray) -> tuple[Span, int]:
    """The span of a history and the number of samples outside it, from distinct hours (N,) and their counts of samples.

    A gap of more than a week separates runs of hours. The span is the run with the most samples; the other runs count
    as samples of a wrong clock, and so do all hours before FIRST_HOUR. One hour at least must not be before it.
    """
    order = np.argsort(hours)
    hours, samples = hours[order], samples[order]
    run = np.concatenate([[0], np.cumsum(np.diff(hours) > _APART_HOURS)])
    possible = hours >= FIRST_HOUR
    totals = np.bincount(run, weights=np.where(possible, samples, 0))
    in_span = possible & (run == totals.argmax())
    return Span(int(hours[in_span][0]), int(hours[in_span][-1]) + 1), int(samples[~in_span].sum())


def blocks(batches: Iterable[pa.RecordBatch], span: Span) -> Iterator[pa.RecordBatch]:
    """Batches of samples (SAMPLE_SCHEMA) as rows of BLOCK_SCHEMA, without samples outside the span."""
    pending: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        pending.append(batch)
        count += len(batch)
        if count >= BLOCK_SAMPLES:
            yield from _block(pa.Table.from_batches(pending), span)
            pending, count = [], 0
    if pending:
        yield from _block(pa.Table.from_batches(pending), span)


def _block(samples: pa.Table, span: Span) -> Iterator[pa.RecordBatch]:
    """The rows of one block of samples; none if all are outside the span."""
    hours = pc.divide(samples["at"], HOUR_SECONDS)
    samples = samples.filter(pc.and_(pc.greater_equal(hours, span.first), pc.less(hours, span.end)))
    if not len(samples):
        return
    topics = samples["topic"].combine_chunks().dictionary_encode()
    topic_of, partitions = np.asarray(topics.indices, dtype=np.int64), np.asarray(samples["partition"], dtype=np.int64)
    width = int(partitions.max()) + 1
    seconds = np.asarray(samples["at"], dtype=np.int64)
    pair = topic_of * width + partitions
    # Samples of the same partition and time are merged to the mean of their measured values.
    order = np.lexsort((seconds, pair))
    pair, seconds = pair[order], seconds[order]
    time_starts = _run_starts(pair, seconds)
    measured = np.array([np.asarray(samples[name].fill_null(_UNMEASURED), np.int64)[order] for name in MEASURED])
    values = [_means(each, time_starts) for each in measured[:-1]]
    pair_of_time, hour_of_time = pair[time_starts], seconds[time_starts] // HOUR_SECONDS
    hour_starts = _run_starts(pair_of_time, hour_of_time)
    row_starts = _run_starts(pair_of_time[hour_starts])
    offsets = np.append(row_starts, len(hour_starts)).astype(np.int32)
    lists = [pa.ListArray.from_arrays(offsets, pa.array(hour_of_time[hour_starts].astype(np.int32)))]
    for means, is_known in values:
        for sums, kind in ((np.where(is_known, means, 0), np.int64), (is_known, np.int32)):
            added = np.add.reduceat(sums.astype(np.int64), hour_starts).astype(kind)
            lists.append(pa.ListArray.from_arrays(offsets, pa.array(added)))
    pairs = pair_of_time[hour_starts][row_starts]
    group_starts = np.searchsorted(pair, pairs)
    counts = np.diff(np.append(group_starts, len(pair)))
    distinct = np.diff(np.append(np.searchsorted(pair_of_time, pairs), len(pair_of_time)))
    sized_at, sizes = _last_sizes(measured[-1], seconds, group_starts)
    is_given = measured > _UNMEASURED
    flawed = (
        np.add.reduceat(each, group_starts, axis=1, dtype=np.int64) for each in (is_given, is_given & (measured < 0))
    )
    sources = np.maximum.reduceat(np.asarray(samples["source"].fill_null(0), dtype=np.int8)[order], group_starts)
    columns = [
        topics.dictionary.take(pa.array(pairs // width)),
        pa.array((pairs % width).astype(np.int32)),
        *lists,
        *map(pa.array, (sized_at, sizes, sources, counts, counts - distinct, *np.concatenate([*flawed]))),
    ]
    typed = [each.cast(field.type) for each, field in zip(columns, BLOCK_SCHEMA, strict=True)]
    yield pa.record_batch(typed, BLOCK_SCHEMA)


def _run_starts(*sorted_keys: LongArray) -> LongArray:
    """The index at which each run of equal keys begins."""
    changes: BoolArray = np.ones(len(sorted_keys[0]), dtype=bool)
    changes[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in sorted_keys])
    return np.flatnonzero(changes)


def _means(values: LongArray, starts: LongArray) -> tuple[LongArray, BoolArray]:
    """For each run of values, which begin at `starts`: the mean of those of at least 0, and whether there are any."""
    is_known = values >= 0
    sums = np.add.reduceat(np.where(is_known, values, 0), starts)
    counts = np.add.reduceat(is_known.astype(np.int64), starts)
    return sums // counts.clip(min=1), counts > 0


def _last_sizes(sizes: LongArray, seconds: LongArray, group_starts: LongArray) -> tuple[LongArray, LongArray]:
    """For each group of sorted samples: the time of its last known size, and the largest size then; -1 without any."""
    times = np.where(sizes >= 0, seconds, -1)
    last_times = np.maximum.reduceat(times, group_starts)
    of_group = np.repeat(np.arange(len(group_starts)), np.diff(np.append(group_starts, len(seconds))))
    return last_times, np.maximum.reduceat(
        np.where(times == last_times[of_group], sizes, -1).clip(min=-1), group_starts
    )


def sums_by_hour(parts: pa.ListArray, span: Span) -> tuple[LongArray, LongArray, LongArray, LongArray, BoolArray]:
    """(K, H) each, for K partitions with lists of their blocks (structs of BLOCK_FIELDS): the sum and the count of the
    rates in, those of the rates out, and whether there is any sample.
    """
    flat = parts.flatten()
    partition_of_block = np.asarray(pc.list_parent_indices(parts), dtype=np.int64)
    hours = flat.field("hours")
    rows = partition_of_block[np.asarray(pc.list_parent_indices(hours), dtype=np.int64)]
    cells = rows, np.asarray(hours.flatten(), dtype=np.int64) - span.first
    sampled = np.zeros((len(parts), span.hours), dtype=bool)
    sampled[cells] = True
    in_sums, in_counts, out_sums, out_counts = (
        sums_at(sampled.shape, cells, np.asarray(flat.field(name).flatten(), dtype=np.int64))
        for name in ("in_sums", "in_counts", "out_sums", "out_counts")
    )
    return in_sums, in_counts, out_sums, out_counts, sampled


class Noted(NamedTuple):
    """(K,) each, for K partitions: the last size, -1 if unknown; the source; counts of samples and of repeated ones.

    (V, K): counts of values, one row for each of VALUE_COUNTS.
    """

    sizes: LongArray
    source: IntArray
    samples: LongArray
    repeated: LongArray
    values: LongArray


def sizes_and_counts(parts: pa.ListArray) -> Noted:
    """The last sizes, sources and counts of K partitions, from lists of blocks like those of `sums_by_hour`."""
    flat, owner = parts.flatten(), np.asarray(pc.list_parent_indices(parts), dtype=np.int64)
    count = len(parts)
    last_times: LongArray = np.full(count, -1, dtype=np.int64)
    sized_at, size = (np.asarray(flat.field(name), dtype=np.int64) for name in ("sized_at", "size_bytes"))
    np.maximum.at(last_times, owner, sized_at)
    sizes: LongArray = np.full(count, -1, dtype=np.int64)
    np.maximum.at(sizes, owner, np.where(sized_at == last_times[owner], size, -1))
    source = np.zeros(count, dtype=np.int8)
    np.maximum.at(source, owner, np.asarray(flat.field("source"), dtype=np.int8))
    samples, repeated, *values = (
        np.bincount(owner, weights=np.asarray(flat.field(name)), minlength=count).astype(np.int64)
        for name in ("samples", "repeated", *(each.name for each in VALUE_COUNTS))
    )
    return Noted(sizes, source, samples, repeated, np.array(values))


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
    """Statistics of K partitions' hourly mean rates in bytes/s; NaN if nothing was measured.

    mean, highest (K,); percentiles (K, 3), those of PERCENTILES; week (K, 168), Monday 00:00 UTC first. Hours without
    samples are estimated, except in `highest`.
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
    has_values = ~np.isnan(hourly).all(axis=1)
    count = len(hourly)
    mean, highest = np.full((2, count), np.nan)
    percentiles, week = np.full((count, len(PERCENTILES)), np.nan), np.full((count, HOURS_OF_WEEK), np.nan)
    measured = hourly[has_values]
    if len(measured):
        # Without estimates for its gaps, a history that lacks nights would have the mean of days.
        filled = _filled(measured, span)
        mean[has_values], highest[has_values] = np.nanmean(filled, axis=1), np.nanmax(measured, axis=1)
        percentiles[has_values] = np.nanpercentile(filled, PERCENTILES, axis=1).T
        weeks = _periods(filled, span.first + _EPOCH_HOUR_OF_WEEK, HOURS_OF_WEEK)
        week[has_values] = _known_means(weeks, axis=1, least=1)
    return Statistics(mean, percentiles, highest, week)


def _periods(hourly: FloatArray, first_hour: int, length: int) -> FloatArray:
    """(K, N, length): the hours (K, H) in N weeks or days of `length` hours, NaN before the first and after the last.

    `first_hour` is the number of the first hour, counted from the beginning of any week or day.
    """
    before = first_hour % length
    after = -(before + hourly.shape[1]) % length
    return np.pad(hourly, ((0, 0), (before, after)), constant_values=np.nan).reshape(len(hourly), -1, length)


def _known_means(values: FloatArray, *, axis: int, least: int) -> FloatArray:
    """The means of the known values along an axis, NaN if fewer than `least` are known."""
    counts = (~np.isnan(values)).sum(axis=axis)
    return np.where(counts >= least, np.nansum(values, axis=axis) / counts.clip(min=1), np.nan)


def _filled(hourly: FloatArray, span: Span) -> FloatArray:
    """The hours (K, H), with estimates for unknown hours between the first and the last known one.

    An hour stays unknown if nothing is known of its week, or of the same hour in any other week.
    """
    is_known, first_hour = ~np.isnan(hourly), span.first + _EPOCH_HOUR_OF_WEEK
    is_inside = np.maximum.accumulate(is_known, axis=1) & np.maximum.accumulate(is_known[:, ::-1], axis=1)[:, ::-1]
    weeks = _periods(hourly, first_hour, HOURS_OF_WEEK)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = weeks / _known_means(weeks, axis=1, least=1)[:, None]
        # The median, so that one unusual day doesn't change the level of its week.
        relative = np.sort(relative.reshape(-1, HOURS_OF_WEEK), axis=1)
        middle = ((~np.isnan(relative)).sum(axis=1) - 1).clip(0) / 2
        level = _interpolated(relative, middle).reshape(*weeks.shape[:2], 1)
        estimated = _known_means(np.where(level > 0, weeks / level, np.nan), axis=1, least=1)[:, None] * level
    before = first_hour % HOURS_OF_WEEK
    estimates = estimated.reshape(len(hourly), -1)[:, before : before + hourly.shape[1]]
    return np.where(is_inside & ~is_known, estimates, hourly)


def growth(hourly: FloatArray, week: FloatArray, span: Span) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(K,) growth per month and the ends of its 95 % interval, as fractions, from hours (K, H) and their week (K, 168).

    NaN if no two days of the same weekday are known, and for a history shorter than GROWTH_HOURS.
    """
    hour_of_week = (span.first + _EPOCH_HOUR_OF_WEEK + np.arange(hourly.shape[1])) % HOURS_OF_WEEK
    usual = np.where(np.isnan(hourly), np.nan, week[:, hour_of_week])
    days, usual_days = (
        _known_means(_periods(each, span.first, DAY_HOURS), axis=2, least=_LEAST_HOURS_OF_DAY)
        for each in (hourly, usual)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(days > 0, np.log(days / usual_days), np.nan)
    first_day, second_day = np.triu_indices(logs.shape[1], k=1)
    same_weekday = (second_day - first_day) % WEEK_DAYS == 0
    first_day, second_day = first_day[same_weekday], second_day[same_weekday]
    result = np.full((3, len(hourly)), np.nan)
    if not len(first_day) or span.hours < GROWTH_HOURS:
        return result[0], result[1], result[2]
    slopes = np.sort((logs[:, second_day] - logs[:, first_day]) / (second_day - first_day), axis=1)
    pair_counts = (~np.isnan(slopes)).sum(axis=1)
    half_width = _NORMAL_975 * np.sqrt(_kendall_variance(logs)) / 2
    rows = np.flatnonzero(pair_counts > 0)
    middle = (pair_counts[rows] - 1) / 2
    for index, place in enumerate((middle, middle - half_width[rows], middle + half_width[rows])):
        result[index, rows] = np.expm1(_interpolated(slopes[rows], place.clip(0, pair_counts[rows] - 1)) * MONTH_DAYS)
    return result[0], result[1], result[2]


def _kendall_variance(days: FloatArray) -> FloatArray:
    """(K,) the variance of Kendall's S, summed over the weekdays: n (n - 1) (2 n + 5) / 18 for n known days.

    days: (K, D) of consecutive days, NaN where unknown.
    """
    total: FloatArray = np.zeros(len(days))
    for weekday in range(min(WEEK_DAYS, days.shape[1])):
        day_counts = (~np.isnan(days[:, weekday::WEEK_DAYS])).sum(axis=1)
        total += day_counts * (day_counts - 1) * (2 * day_counts + 5) / 18
    return total


def _interpolated(rows: FloatArray, place: FloatArray) -> FloatArray:
    """(K,) the linearly interpolated value of each sorted row (K, N) at a fractional column `place` (K,)."""
    low = np.floor(place).astype(np.int64)
    high = np.ceil(place).astype(np.int64)
    indices = np.arange(len(rows))
    below = rows[indices, low]
    return below + (place - low) * (rows[indices, high] - below)
