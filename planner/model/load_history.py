"""The history behind a load profile: its hours, its flaws, warnings if it is too short, hours of the week, growth."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from planner.model.formats import counted, first_names, percent

# A month is a twelfth of 365.25 days.
HOUR_SECONDS, MONTH_SECONDS, HOURS_OF_WEEK = 3600, 2_629_800, 168
# Growth compares days of the same weekday, and a day counts if it has at least 12 hours. Shorter histories have none.
GROWTH_HOURS = 2 * HOURS_OF_WEEK + 12
# The most growth per month that is forecast; the YAML may state as much. A history in which a topic begins may have any
# growth, but no topic grows a hundredfold every month.
MOST_GROWTH = 99.0
# If the write rate at the end is at least this many times the mean, the mean doesn't represent today.
_OUTGROWN = 1.25
# Any Monday at 00:00 UTC.
_MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Span:
    """The hours of a history since 1970, UTC: from `first` to before `end`."""

    first: int
    end: int

    @property
    def hours(self) -> int:
        """The number of hours."""
        return self.end - self.first


@dataclass(frozen=True)
class Findings:
    """How often each flaw was found in a history, and the topics with untrusted rates, each with the reason."""

    counts: Mapping[str, int] = field(default_factory=dict)
    untrusted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HistoryFacts:
    """A profile's facts about its history: its hours and the findings.

    `time_zone` is the name of the cluster's zone. It is for people only: hours of the week are always UTC.
    """

    span: Span
    time_zone: str = "UTC"
    findings: Findings = field(default_factory=Findings)


def history_warnings(span: Span) -> tuple[str, ...]:
    """Warnings about what a history is too short for."""
    long = counted(span.hours, "hour") if span.hours < 2 * 24 else f"{span.hours / 24:.3g} days"
    if span.hours < HOURS_OF_WEEK:
        return (f"the history has {long}: hours of the week that it doesn't have are unknown, and so is growth",)
    if span.hours < GROWTH_HOURS:
        return (f"the history has {long}: growth needs more than two weeks, and is unknown",)
    return ()


def at_end(hours: float, growth: float) -> float:
    """The rate at the end of `hours` hours divided by their mean, if the rate grows by `growth` per month."""
    # A topic that is no longer written has a growth of -1, whose logarithm is infinite.
    power = hours * HOUR_SECONDS / MONTH_SECONDS * math.log1p(max(growth, -0.99))
    return power / -math.expm1(-power) if power else 1.0


def topic_ends(
    topic_of: NDArray[np.integer[Any]],
    growth: NDArray[np.floating[Any]],
    coverage: NDArray[np.floating[Any]],
    span: Span,
) -> list[float]:
    """(T,): each topic's rate at the end divided by its mean, by its growth (T,); 1 if its growth is unknown.

    A topic's known hours, by its partitions' coverage (N,), are the last ones, because it may have been created later.
    """
    covered = np.bincount(topic_of, np.nan_to_num(coverage, nan=1.0)) / np.bincount(topic_of).clip(min=1)
    pairs = zip(covered.tolist(), np.nan_to_num(growth).tolist(), strict=True)
    return [at_end(share * span.hours, rate) for share, rate in pairs]


def outgrown(span: Span, times: Mapping[str, float]) -> tuple[str, ...]:
    """A warning if topics are written far faster at a history's end than on average; `times` are those of `at_end`."""
    faster = sorted((-each, topic) for topic, each in times.items() if each >= _OUTGROWN)
    if not faster:
        return ()
    most, names = percent(-100 * faster[0][0] - 100), first_names([topic for _, topic in faster])
    return (
        f"the profile's rates are means over {span.hours / 24:.3g} days; at their end topics are written up to {most} "
        f"faster ({names}): planner growth, planner size and months until disks are full begin there; the rest is for "
        "the means, and a profile of the last weeks is nearer to today",
    )


def hours_ahead(zone: str) -> float:
    """How many hours a zone's clocks are ahead of UTC in January."""
    ahead = _MONDAY.astimezone(ZoneInfo(zone)).utcoffset() or timedelta()
    return ahead / timedelta(hours=1)


def hour_name(hour: int, zone: str = "UTC") -> str:
    """An hour of the week for people, `Monday 09:00 UTC`; in another zone by that zone's offset to UTC in January."""
    moment = (_MONDAY + timedelta(hours=hour)).astimezone(ZoneInfo(zone))
    return f"{DAYS[moment.weekday()]} {moment:%H:%M} {zone}"


@dataclass(frozen=True, eq=False)
class WeekOfLoad:
    """Rates of N partitions in each hour of the week, bytes/s in and out, and the time zone for showing hours.

    rows: (topic, partition) to its number · means (2, N) · hours (2, N, 168), Monday 00:00 UTC first; NaN: unknown.
    `planned_for`: the plan must also be even in the busiest hours; otherwise they only judge plans.
    """

    rows: Mapping[tuple[str, int], int]
    means: NDArray[np.floating[Any]]
    hours: NDArray[np.floating[Any]]
    time_zone: str = "UTC"
    planned_for: bool = True

    def hours_of(
        self, partitions: Iterable[tuple[str, int]], rates: NDArray[np.integer[Any]]
    ) -> NDArray[np.integer[Any]]:
        """(2, P, 168): bytes/s of these partitions, whose mean rates are (2, P), in each hour of the week.

        An hour's rate is the profile's, times the partition's mean rate over the profile's mean. Partitions and hours
        that the profile doesn't have get their mean rate.
        """
        rows = np.array([self.rows.get(key, -1) for key in partitions], dtype=np.int64)
        is_known, flat = rows >= 0, np.broadcast_to(rates[:, :, None].astype(np.float64), (*rates.shape, HOURS_OF_WEEK))
        hours = np.full(flat.shape, np.nan)
        means = np.where(self.means[:, rows[is_known]] > 0, self.means[:, rows[is_known]], np.nan)
        hours[:, is_known] = self.hours[:, rows[is_known]] * (rates[:, is_known] / means)[:, :, None]
        return np.rint(np.where(np.isnan(hours), flat, hours)).astype(np.int64)


def topics_of(rows: Any) -> tuple[NDArray[np.int64], list[str]]:
    """The topics of a profile's table with N rows: (N,) the number of each row's topic, and the topics' names."""
    encoded = rows["topic"].combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices, dtype=np.int64), encoded.dictionary.to_pylist()


def columns(rows: Any, *names: str) -> list[NDArray[np.floating[Any]]]:
    """(N,) each: columns of a profile's table; NaN for null."""
    return [np.asarray(rows[name].cast("double").fill_null(np.nan), dtype=np.float64) for name in names]


def weeks(rows: Any, *names: str) -> list[NDArray[np.floating[Any]]]:
    """(N, 168) each: columns of a profile's table that list the hours of the week; NaN for null."""
    lists = [rows[name].combine_chunks().flatten().fill_null(np.nan) for name in names]
    return [np.asarray(each, dtype=np.float64).reshape(-1, HOURS_OF_WEEK) for each in lists]


def topic_growth(
    topic_of: NDArray[np.integer[Any]], topics: int, growth: NDArray[np.floating[Any]], rates: NDArray[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    """(T,) the growth of each topic: the mean growth (N,) of its partitions, weighted by their rates in (N,).

    NaN if no partition's growth is known, and at most MOST_GROWTH. A rate counts as at least 1 byte/s, so that a topic
    whose rates are 0 or unknown (NaN) gets the plain mean.
    """
    is_known = ~np.isnan(growth)
    weights = np.nan_to_num(rates[is_known]).clip(min=1)
    sums = np.bincount(topic_of[is_known], weights=weights * growth[is_known], minlength=topics)
    totals = np.bincount(topic_of[is_known], weights=weights, minlength=topics)
    return np.where(totals > 0, np.minimum(sums / totals.clip(min=1), MOST_GROWTH), np.nan)


# The most hours that become scenarios, because each adds a load to the optimum and to its proof.
MOST_HOURS = 6


def busiest_hours(loads: NDArray[np.integer[Any]]) -> tuple[int, ...]:
    """The busiest hours of the week by brokers' loads (2, B, 168), the most loaded first; at most MOST_HOURS.

    The candidates are the hours with the highest load in and with the highest load out, of each broker and of all
    brokers together. Those with the highest loads are chosen. Of equal hours, the earlier one counts.
    """
    loads_and_sum = np.concatenate([loads.sum(axis=1), *loads])
    highest = zip((-loads_and_sum.max(axis=1)).tolist(), loads_and_sum.argmax(axis=1).tolist(), strict=True)
    distinct = dict.fromkeys(hour for load, hour in sorted(highest) if load)
    return tuple(distinct)[:MOST_HOURS]
