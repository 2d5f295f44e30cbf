"""Forecasts the size of every replica, and its write and read rates, some months from now.

A topic with a known write rate holds what its retention keeps. Today's bytes expire evenly over the retention. New
bytes are added at a rate that grows month by month. Kafka deletes a whole segment when its newest record is too old, so
the oldest record is as old as the retention plus one segment's time span. A segment of full size spans less time as the
rate grows. By size, Kafka deletes when the log exceeds `retention.bytes` plus one segment
(`UnifiedLog.deleteRetentionMsBreachedSegments`, `deleteRetentionSizeBreachedSegments`). Compacted topics, and topics of
unknown rate, grow by the topic's growth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import NamedTuple

import numpy as np

from planner.model.cluster import PartitionKey, Topic, in_force, keyed_partitions
from planner.model.document_fields import PPM
from planner.model.load_history import MONTH_SECONDS
from planner.model.problem import BoolArray, FloatArray, LongArray, Problem
from planner.model.spec import Rate, Spec, first_rule

# How many months a forecast covers if `report.growth` doesn't say.
MONTHS = 12
# Kafka's defaults, used if the topic neither sets nor inherits a value.
WEEK_MS, GIBIBYTE = 604_800_000, 1 << 30
_FOREVER = -1.0


class Retention(NamedTuple):
    """What a topic keeps. `seconds` and `size_bytes` are -1 without a limit. `by_rate` is False for compacted topics.

    For tiered topics (KIP-405), it is the part that stays on the brokers.
    """

    by_rate: bool
    seconds: float
    size_bytes: float
    segment_seconds: float
    segment_bytes: float


@dataclass(frozen=True, eq=False)
class Forecast:
    """T topics, P partitions: `growth` (T,) per month, and the retention's columns, (P,) each.

    `retention_months` are infinite without a limit. A segment is closed after `roll_months`, or when it has
    `segment_bytes`. `most_bytes` is the largest size.
    """

    problem: Problem
    growth: FloatArray
    by_rate: FloatArray
    retention_months: FloatArray
    roll_months: FloatArray
    segment_bytes: FloatArray
    most_bytes: FloatArray

    def in_month(self, month: int) -> Problem:
        """The problem with the sizes and rates of `month` months from now; unchanged for 0."""
        if month == 0:
            return self.problem
        factors = self.factors(month)[:, month][self.problem.topic_of]
        rates = (self.problem.bytes_in_per_sec, self.problem.bytes_out_per_sec)
        bytes_in, bytes_out = (self._rounded(each * factors) for each in rates)
        return replace(
            self.problem, size_bytes=self.sizes(month), bytes_in_per_sec=bytes_in, bytes_out_per_sec=bytes_out
        )

    def sizes(self, month: int) -> LongArray:
        """(P,) bytes of one replica, `month` months from now."""
        if month == 0:
            return self.problem.size_bytes
        by_growth = self.problem.size_bytes * self.factors(month)[:, month][self.problem.topic_of]
        return self._rounded(np.where(self.by_rate > 0, self._retained(month), by_growth))

    @property
    def most(self) -> int:
        """The most that a size or rate is counted up to, so that the sum over all replicas still fits into 64 bits."""
        return 2**62 // max(1, len(self.problem.topic_of) * len(self.problem.targets))

    def capped(self, month: int) -> BoolArray:
        """(P,): True for partitions with a size or a rate that reaches `most`, so it may be larger in truth."""
        ahead = self.in_month(month)
        values = (ahead.size_bytes, ahead.bytes_in_per_sec, ahead.bytes_out_per_sec)
        return np.logical_or.reduce([each >= self.most for each in values])

    def _rounded(self, values: FloatArray) -> LongArray:
        """Rounds to whole numbers, at most `most`."""
        return np.rint(np.minimum(values, self.most)).astype(np.int64)

    def factors(self, month: int) -> FloatArray:
        """(T, month + 1): each month's rate divided by today's."""
        return compounded(self.growth, month)

    def age(self, month: int) -> FloatArray:
        """(P,): the age of the oldest record in months, some months from now; infinite without a limit.

        The oldest segment is kept until its newest record is as old as the retention.
        """
        limited = np.isfinite(self.retention_months)
        newest = month - np.where(limited, self.retention_months, 0.0)
        by_bytes = self._written(month, newest) - self.segment_bytes / self._bytes_a_month
        begin = self._month_when(month, np.maximum(by_bytes, self._written(month, newest - self.roll_months)))
        return np.where(limited, month - begin, np.inf)

    @cached_property
    def age_today(self) -> FloatArray:
        """(P,): the age of the oldest record in months; infinite without a limit."""
        return self.age(0)

    @cached_property
    def _bytes_a_month(self) -> FloatArray:
        """(P,) bytes that today's rate writes in a month; not 0."""
        return np.maximum(self.problem.bytes_in_per_sec.astype(np.float64), 1e-9) * MONTH_SECONDS

    def _retained(self, month: int) -> FloatArray:
        """(P,) bytes of the topics whose rate is known."""
        problem, sizes_known, age = self.problem, self.problem.sizes_known, self.age(month)
        limited = np.isfinite(age)
        begin = np.where(limited, month - age, 0.0)
        written = self._written(month, np.full(len(begin), float(month)))
        # If sizes are unknown, they are what today's rate has written.
        written_before = self._written(month, np.maximum(begin, 0.0) if sizes_known else begin)
        share_left = np.where(
            limited, np.clip(-begin / np.where(limited, np.maximum(self.age_today, 1e-12), 1.0), 0.0, 1.0), 1.0
        )
        old_bytes = problem.size_bytes * share_left if sizes_known else 0.0
        sizes: FloatArray = np.minimum(old_bytes + self._bytes_a_month * (written - written_before), self.most_bytes)
        return sizes

    def _written(self, month: int, until: FloatArray) -> FloatArray:
        """(P,): what is written from now to `until` (P,), in months of today's rate; negative before now."""
        factors = self.factors(month)
        sums = np.concatenate([np.zeros((len(factors), 1)), np.cumsum(factors, axis=1)], axis=1)
        full_months = np.clip(np.floor(until), 0, month).astype(np.int64)
        topics = self.problem.topic_of
        ahead: FloatArray = sums[topics, full_months] + (until - full_months) * factors[topics, full_months]
        return np.where(until < 0, until, ahead)

    def _month_when(self, month: int, written: FloatArray) -> FloatArray:
        """(P,): when so much was written (P,); the inverse of `_written`."""
        factors, topics = self.factors(month), self.problem.topic_of
        until, before = written, np.zeros(len(written))
        for step in range(month + 1):
            rate = factors[topics, step]
            until = np.where(written > before, step + (written - before) / np.maximum(rate, 1e-300), until)
            before = before + rate
        return until


def compounded(growth: FloatArray, months: int) -> FloatArray:
    """(T, months + 1): each month's rate divided by today's, for growth (T,) per month. Multiplied step by step,
    because powers differ between CPUs.
    """
    steps = np.repeat((1.0 + growth)[:, None], months, axis=1)
    return np.concatenate([np.ones((len(growth), 1)), np.cumprod(steps, axis=1)], axis=1)


def at_history_end(spec: Spec) -> Spec:
    """The spec with a profile's rates as they are at the end of its history, because every forecast begins there."""
    if not spec.growth.at_end:
        return spec
    topics, rated_topics = spec.cluster.topics, list[Topic]()
    times = iter(_times_at_end(spec, [key for key, _ in keyed_partitions(topics)]).T)
    for topic in topics:
        # zip takes one pair of factors for each of the topic's partitions.
        with_factors = zip(topic.partitions, times, strict=False)
        rates = ((each, each.bytes_in_per_sec * w, each.bytes_out_per_sec * r) for each, (w, r) in with_factors)
        rated = (replace(each, bytes_in_per_sec=round(w), bytes_out_per_sec=round(r)) for each, w, r in rates)
        rated_topics.append(replace(topic, partitions=tuple(rated)))
    cluster = replace(spec.cluster, topics=tuple(rated_topics))
    return replace(spec, cluster=cluster, growth=replace(spec.growth, at_end={}))


def _times_at_end(spec: Spec, keys: Sequence[PartitionKey]) -> FloatArray:
    """(2, N): factors from the mean rates in and out of these partitions to those at the end of the profile's history;
    1 for a rate that the YAML states, because it is today's.
    """
    by_partition = {(each.topics, each.partition): each for each in spec.cluster.rates}
    topic_rates = [each for each in spec.cluster.rates if each.partition is None]
    of_topics = {topic: first_rule(topic, topic_rates) for topic in spec.growth.at_end}
    rows = [(by_partition.get(key), of_topics.get(key[0])) for key in keys]
    names = ("bytes_in_per_sec", "bytes_out_per_sec")
    is_stated = np.array(
        [[any(getattr(each, name, None) is not None for each in row) for row in rows] for name in names], dtype=bool
    )
    return np.where(is_stated, 1.0, [spec.growth.at_end.get(topic, PPM) / PPM for topic, _ in keys])


def forecast(spec: Spec, problem: Problem, topics: Sequence[Topic]) -> Forecast:
    """The forecast of a spec's `growth` for its problem; `topics` (T,) are the problem's."""
    growth = np.array(per_month_ppm(spec.growth.rates, [topic.name for topic in topics])) / PPM
    retentions = [retention(in_force(topic, spec.cluster.config_defaults)) for topic in topics]
    columns = np.array(retentions, dtype=np.float64).reshape(-1, len(Retention._fields))[problem.topic_of]
    by_rate, seconds, size_bytes, roll_seconds, segment = columns.T
    per_sec = problem.bytes_in_per_sec.astype(np.float64)
    return Forecast(
        problem,
        growth,
        by_rate * (per_sec > 0),
        np.where(seconds == _FOREVER, np.inf, seconds / MONTH_SECONDS),
        roll_seconds / MONTH_SECONDS,
        segment,
        np.where(size_bytes == _FOREVER, np.inf, size_bytes + segment),
    )


def retention(config: Mapping[str, str]) -> Retention:
    """The retention that a topic's configuration sets."""
    tiered = config.get("remote.storage.enable") == "true"

    def limit_of(kind: str, default: int) -> float:
        """The retention on the brokers. For a tiered topic, a local retention of -2 means its full retention."""
        local = float(config.get(f"local.retention.{kind}", -2)) if tiered else -2
        return float(config.get(f"retention.{kind}", default)) if local == -2 else local

    milliseconds, size_bytes = limit_of("ms", WEEK_MS), limit_of("bytes", -1)
    return Retention(
        "compact" not in config.get("cleanup.policy", "delete"),
        _FOREVER if milliseconds < 0 else milliseconds / 1000,
        _FOREVER if size_bytes < 0 else size_bytes,
        float(config.get("segment.ms", WEEK_MS)) / 1000,
        float(config.get("segment.bytes", GIBIBYTE)),
    )


def months_ahead(spec: Spec) -> int:
    """How many months a forecast covers: those of `report.growth`, and at least those that the plan must last."""
    required = spec.sweep.choice.value if spec.sweep.choice.rule == "fewest_bytes_lasting_months" else 0
    return max(spec.report.growth_months or MONTHS, spec.limits.months_until_full or 0, required)


def with_sizes_ahead(problem: Problem, spec: Spec, topics: Sequence[Topic]) -> Problem:
    """The problem with the sizes of the coming months, if sizes, growth and some broker's disk are known."""
    if not (spec.growth.rates and problem.sizes_known and (problem.disk_limit_bytes >= 0).any()):
        return problem
    times = np.where(problem.is_new, 1.0, _times_at_end(spec, problem.partition_keys)[0])
    problem_at_end = replace(problem, bytes_in_per_sec=np.rint(problem.bytes_in_per_sec * times).astype(np.int64))
    ahead = forecast(spec, problem_at_end, topics)
    sizes = [ahead.sizes(month) for month in range(months_ahead(spec) + 1)]
    return replace(problem, sizes_ahead=np.stack(sizes, axis=1))


def per_month_ppm(rates: Sequence[Rate], topics: Sequence[str]) -> list[int]:
    """The growth of each topic in millionths per month, by the first rate that matches it; 0 if none does."""
    # A load profile has a rate for each topic by its name, so only patterns are matched one by one.
    index_of: dict[str, int] = {}
    patterns = []
    for index, rate in enumerate(rates):
        if any(each in rate.topics for each in "*?["):
            patterns.append(index)
        else:
            index_of.setdefault(rate.topics, index)
    growths = []
    for topic in topics:
        matching = (index for index in patterns if fnmatchcase(topic, rates[index].topics))
        best = min(next(matching, len(rates)), index_of.get(topic, len(rates)))
        growths.append(rates[best].ppm if best < len(rates) else 0)
    return growths


def months_until_full(problem: Problem, bytes_held: LongArray) -> LongArray:
    """(C,): the first month in which a broker holds more bytes (C, B, M + 1) than its disk's limit, M + 1 if none does;
    -1 if months aren't known.
    """
    months, limits = bytes_held.shape[2], problem.disk_limit_bytes[:, None]
    full: BoolArray = np.logical_or.reduce((bytes_held > limits) & (limits >= 0), axis=1)
    return np.where(full.any(axis=1), full.argmax(axis=1), months) if months else np.full(len(bytes_held), -1)
