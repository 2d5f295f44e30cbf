"""Generates a month of a cluster's load with known true values, against which load profiles are measured.

Each topic has its own daily and weekly curve, growth rate and fan-out of consumers; each partition has a share of its
topic, and noise in every sample. The history is written as Parquet, one file per day, with counted flaws: samples that
are missing, repeated or make no sense, partitions that appear late, and a clock that jumps.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from planner.model.problem import BoolArray, FloatArray, IntArray

# Monday, 2 November 2026, 00:00 UTC, in seconds: the first sample.
START = 1_793_577_600
HOUR, DAY, HOURS_OF_WEEK = 3600, 86_400, 168
# 1970 began on a Thursday, three days into a week that begins on Monday.
_EPOCH_HOUR_OF_WEEK = 72
_MONTH_DAYS = 365.25 / 12


@dataclass(frozen=True)
class Flaws:
    """For each kind of flaw, the share of samples or partitions that have it."""

    missing: float = 0.005
    repeated: float = 0.002
    negative: float = 0.0005
    late_partitions: float = 0.01
    misdated: float = 0.00001


NO_FLAWS = Flaws(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class HistoryRecipe:
    """`noise` is the standard deviation of a sample around its curve, as a fraction of the curve."""

    partitions: int = 50_000
    days: int = 28
    step_seconds: int = HOUR
    seed: int = 1
    noise: float = 0.02
    flaws: Flaws = Flaws()


@dataclass(frozen=True, eq=False)
class History:
    """The true values of P partitions: the means of all samples before flaws were put in.

    topic_of, partition_ids (P,); mean_in, mean_out, growth_per_month (P,); hours_in (P, 168) means by hour of the week,
    Monday 00:00 UTC first; counted: how often each flaw was put in. best_growth (P,) is the least-squares fit to the
    samples' logarithms with each topic's curve known: with this noise, no unbiased estimate is closer.
    """

    topic_names: tuple[str, ...]
    topic_of: IntArray
    partition_ids: IntArray
    mean_in: FloatArray
    mean_out: FloatArray
    growth_per_month: FloatArray
    hours_in: FloatArray
    best_growth: FloatArray
    counted: dict[str, int]


@dataclass(frozen=True, eq=False)
class _Curves:
    """The curves of T topics and P partitions: weekly (T, 168) by hour, rate (P,), growth and fan_out (T,)."""

    topic_of: IntArray
    partition_ids: IntArray
    weekly: FloatArray
    rate: FloatArray
    growth: FloatArray
    fan_out: FloatArray

    def rates_at(self, second: int) -> FloatArray:
        """(P,) bytes per second that producers write, without noise."""
        hour = second // HOUR + _EPOCH_HOUR_OF_WEEK
        share, low = second % HOUR / HOUR, self.weekly[:, hour % HOURS_OF_WEEK]
        curve = low + share * (self.weekly[:, (hour + 1) % HOURS_OF_WEEK] - low)
        months = (second - START) / (_MONTH_DAYS * DAY)
        return self.rate * (curve * (1 + self.growth) ** months)[self.topic_of]


@dataclass(frozen=True, eq=False)
class _Line:
    """Sums for a line through points (x, y) of each of P partitions, (5, P): 1, x, x², y and xy."""

    sums: FloatArray

    def add(self, x: float, y: FloatArray, exists: BoolArray) -> None:
        """Adds a point for each partition that exists by then (`exists`)."""
        ones = np.ones_like(y)
        self.sums[:] += np.where(exists, (ones, ones * x, ones * x * x, y, x * y), 0)

    def slope(self) -> FloatArray:
        """(P,) the slopes of the lines, by least squares."""
        count, x, xx, y, xy = self.sums
        slope: FloatArray = (count * xy - x * y) / (count * xx - x * x)
        return slope


def write(folder: Path, recipe: HistoryRecipe) -> History:
    """Write the history's Parquet files, and return its true values."""
    random = np.random.default_rng(recipe.seed)
    curves = _curves(random, recipe.partitions)
    names = np.array([f"topic-{number:04d}" for number in range(len(curves.growth))])
    counted = dict.fromkeys(("missing", "repeated", "negative", "late_partitions", "misdated"), 0)
    begins = np.full(recipe.partitions, START)
    is_late = random.random(recipe.partitions) < recipe.flaws.late_partitions
    begins[is_late] += random.integers(1, recipe.days * 24 // 2, np.count_nonzero(is_late)) * HOUR
    counted["late_partitions"] = int(is_late.sum())
    sums, weeks = np.zeros((2, recipe.partitions)), np.zeros((recipe.partitions, HOURS_OF_WEEK))
    samples, sample_counts = np.zeros(recipe.partitions), np.zeros((recipe.partitions, HOURS_OF_WEEK))
    line = _Line(np.zeros((5, recipe.partitions)))
    folder.mkdir(parents=True, exist_ok=True)
    dictionary = pa.array(names)
    for day in range(recipe.days):
        with pq.ParquetWriter(folder / f"day-{day:03d}.parquet", _SCHEMA, compression="zstd") as writer:
            for second in range(START + day * DAY, START + (day + 1) * DAY, recipe.step_seconds):
                exists = begins <= second
                smooth = curves.rates_at(second)
                written = np.rint(smooth * (1 + recipe.noise * random.standard_normal(recipe.partitions)))
                read = np.rint(written * curves.fan_out[curves.topic_of])
                hour = (second // HOUR + _EPOCH_HOUR_OF_WEEK) % HOURS_OF_WEEK
                sums += np.where(exists, (written, read), 0)
                weeks[:, hour] += np.where(exists, written, 0)
                sample_counts[:, hour] += exists
                samples += exists
                line.add((second - START) / (_MONTH_DAYS * DAY), np.log(written.clip(1) / smooth), exists)
                rows = _flawed_rows(random, np.flatnonzero(exists), recipe.flaws, counted)
                writer.write_table(_table(random, curves, dictionary, second, written, read, rows, recipe, counted))
    return History(
        tuple(names.tolist()),
        curves.topic_of,
        curves.partition_ids,
        sums[0] / samples,
        sums[1] / samples,
        curves.growth[curves.topic_of],
        weeks / sample_counts.clip(min=1),
        (1 + curves.growth[curves.topic_of]) * np.exp(line.slope()) - 1,
        counted,
    )


def week(random: np.random.Generator, partitions: int) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Topics and partition ids (P,) drawn as in a history; bytes/s in and out by hour of the week (P, 168)."""
    curves = _curves(random, partitions)
    written = curves.rate[:, None] * curves.weekly[curves.topic_of]
    return curves.topic_of, curves.partition_ids, written, written * curves.fan_out[curves.topic_of][:, None]


def _curves(random: np.random.Generator, partitions: int) -> _Curves:
    topics = max(1, partitions // 33)
    topic_of = np.sort(random.integers(0, topics, partitions)).astype(np.int32)
    firsts = np.searchsorted(topic_of, np.arange(topics))
    hours = np.arange(HOURS_OF_WEEK)
    peak, swing = random.uniform(0, 24, (topics, 1)), random.uniform(0.1, 0.8, (topics, 1))
    daily = 1 + swing * np.cos(2 * np.pi * (hours - peak) / 24)
    weekly = daily * np.where(hours >= 120, random.uniform(0.2, 1.0, (topics, 1)), 1)
    # Every third topic has a peak on Monday at nine.
    weekly[::3, 9] *= random.uniform(2, 4)
    rate = np.exp(random.normal(0, 1.2, topics))[topic_of] * np.exp(random.normal(11, 0.4, partitions))
    growth, fan_out = random.uniform(-0.05, 0.25, topics), random.uniform(0.5, 4, topics)
    ids = (np.arange(partitions) - firsts[topic_of]).astype(np.int32)
    return _Curves(topic_of, ids, weekly, rate, growth, fan_out)


_SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("ms", tz="UTC")),
        ("topic", pa.dictionary(pa.int32(), pa.string())),
        ("partition", pa.int32()),
        ("bytes_in_per_sec", pa.float64()),
        ("bytes_out_per_sec", pa.float64()),
        ("size_bytes", pa.int64()),
    ]
)


def _flawed_rows(random: np.random.Generator, all_rows: IntArray, flaws: Flaws, counted: dict[str, int]) -> IntArray:
    """The rows that are written; some are left out, some are repeated."""
    fate = random.random(len(all_rows))
    kept, repeated = all_rows[fate >= flaws.missing], all_rows[fate >= 1 - flaws.repeated]
    counted["missing"] += len(all_rows) - len(kept)
    counted["repeated"] += len(repeated)
    return np.concatenate([kept, repeated])


def _table(
    random: np.random.Generator,
    curves: _Curves,
    names: pa.Array,
    second: int,
    written: FloatArray,
    read: FloatArray,
    rows: IntArray,
    recipe: HistoryRecipe,
    counted: dict[str, int],
) -> pa.Table:
    rates, times = written[rows], np.full(len(rows), second * 1000)
    negative, misdated = random.random((2, len(rows)))
    rates = np.where(negative < recipe.flaws.negative, -1.0, rates)
    # The clock of these samples was set back to 1970.
    times[misdated < recipe.flaws.misdated] = second % DAY * 1000
    counted["negative"] += int((negative < recipe.flaws.negative).sum())
    counted["misdated"] += int((misdated < recipe.flaws.misdated).sum())
    topics = pa.DictionaryArray.from_arrays(pa.array(curves.topic_of[rows]), names)
    sizes = (curves.rate[rows] * 3 * DAY).astype(np.int64)
    columns = (
        pa.array(times, pa.timestamp("ms", tz="UTC")),
        topics,
        curves.partition_ids[rows],
        rates,
        read[rows],
        sizes,
    )
    return pa.table([pa.array(each) for each in columns], schema=_SCHEMA)
