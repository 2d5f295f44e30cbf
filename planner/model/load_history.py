"""The history behind a load profile: its hours, its flaws, what it is too short for, the week in it, and growth."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from planner.model.formats import first_names, percent

HOUR_SECONDS, HOURS_OF_WEEK = 3600, 168
# Growth compares days of the same weekday, and a day counts with 12 of its hours or more: a shorter history has none.
GROWTH_HOURS = 2 * HOURS_OF_WEEK + 12
# A twelfth of 365.25 days.
_MONTH_HOURS = 730.5
# How many times as fast as on average a topic is written at the end where the average is no picture of today.
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
        """How many hours it has."""
        return self.end - self.first


@dataclass(frozen=True)
class Findings:
    """How often each flaw was found in a history; and the topics that can't be trusted, each with the reason."""

    counts: Mapping[str, int] = field(default_factory=dict)
    untrusted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class About:
    """What a profile says of its history: its hours and the findings.

    `time_zone` is the name of the cluster's zone. It is for people only: hours of the week are always UTC.
    """

    span: Span
    time_zone: str = "UTC"
    findings: Findings = field(default_factory=Findings)


def doubts(span: Span) -> tuple[str, ...]:
    """Warnings about what a history is too short for."""
    days = span.hours / 24
    if span.hours < HOURS_OF_WEEK:
        return (
            f"the history has {days:.3g} days: hours of the week that it doesn't have are unknown, and so is growth",
        )
    if span.hours < GROWTH_HOURS:
        return (f"the history has {days:.3g} days: growth needs more than two weeks, and is unknown",)
    return ()


def at_end(hours: float, growth: float) -> float:
    """How many times the mean of so many hours is what is written at their end, where it grows by so much a month."""
    # A topic that nobody writes to any more shrinks by all of it.
    power = hours / _MONTH_HOURS * math.log1p(max(growth, -0.99))
    return power / -math.expm1(-power) if power else 1.0


def topic_ends(
    topic_of: NDArray[np.integer[Any]],
    growth: NDArray[np.floating[Any]],
    coverage: NDArray[np.floating[Any]],
    span: Span,
) -> list[float]:
    """Of each topic, with its growth (T,), how many times its mean is written at the end: 1 where growth is unknown.

    The known hours of a topic, by its partitions' coverage (N,), are the last ones: it may have appeared later.
    """
    covered = np.bincount(topic_of, np.nan_to_num(coverage, nan=1.0)) / np.bincount(topic_of).clip(min=1)
    known = zip(covered.tolist(), np.nan_to_num(growth).tolist(), strict=True)
    return [at_end(share * span.hours, rate) for share, rate in known]


def outgrown(span: Span, times: Mapping[str, float]) -> tuple[str, ...]:
    """A warning where topics are written far faster at a history's end than on average: so many times (`at_end`)."""
    faster = sorted((-each, topic) for topic, each in times.items() if each >= _OUTGROWN)
    if not faster:
        return ()
    most, named = percent(-100 * faster[0][0] - 100), first_names([topic for _, topic in faster])
    return (
        f"the profile's rates are means over {span.hours / 24:.3g} days; at their end topics are written up to {most} "
        f"faster ({named}): planner growth, planner size and months until disks are full begin there; the rest is for "
        "the means, and a profile of the last weeks is nearer to today",
    )


def hour_name(hour: int, zone: str = "UTC") -> str:
    """An hour of the week for people, such as `Monday 09:00 UTC`; in another zone with its offset to UTC in January."""
    at = (_MONDAY + timedelta(hours=hour)).astimezone(ZoneInfo(zone))
    return f"{DAYS[at.weekday()]} {at:%H:%M} {zone}"


@dataclass(frozen=True, eq=False)
class WeekOfLoad:
    """The hours of the week of N partitions, in bytes/s in and out, and the time zone in which people name hours.

    rows: (topic, partition) to its number · means (2, N) · hours (2, N, 168), Monday 00:00 UTC first; NaN: unknown.
    `planned_for`: the plan is to be even in the busiest of them, too; else they are for judging plans alone.
    """

    rows: Mapping[tuple[str, int], int]
    means: NDArray[np.floating[Any]]
    hours: NDArray[np.floating[Any]]
    time_zone: str = "UTC"
    planned_for: bool = True

    def of(self, partitions: Iterable[tuple[str, int]], rates: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
        """(2, P, 168): bytes/s of these partitions, whose mean rates are (2, P), in each hour of the week.

        The profile gives the shape and the rates the level: an hour is the profile's, times the rate over the profile's
        mean. Partitions and hours that the profile doesn't know have their mean rate.
        """
        at = np.array([self.rows.get(key, -1) for key in partitions], dtype=np.int64)
        known, flat = at >= 0, np.broadcast_to(rates[:, :, None].astype(np.float64), (*rates.shape, HOURS_OF_WEEK))
        found = np.full(flat.shape, np.nan)
        means = np.where(self.means[:, at[known]] > 0, self.means[:, at[known]], np.nan)
        found[:, known] = self.hours[:, at[known]] * (rates[:, known] / means)[:, :, None]
        return np.rint(np.where(np.isnan(found), flat, found)).astype(np.int64)


def topics_of(rows: Any) -> tuple[NDArray[np.int64], list[str]]:
    """Of a profile's table with N rows: (N,) the number of each one's topic, and the topics' names."""
    encoded = rows["topic"].combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices, dtype=np.int64), encoded.dictionary.to_pylist()


def topic_growth(
    topic_of: NDArray[np.integer[Any]], topics: int, growth: NDArray[np.floating[Any]], rates: NDArray[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    """(T,) the growth of each topic: the mean of its partitions' (N,), weighted by their rates in (N,).

    NaN where no partition's growth is known. A rate counts as 1 byte/s at least, so that a topic whose rates are 0 or
    unknown (NaN) grows as its partitions do on average.
    """
    known = ~np.isnan(growth)
    weights = np.nan_to_num(rates[known]).clip(min=1)
    sums = np.bincount(topic_of[known], weights=weights * growth[known], minlength=topics)
    totals = np.bincount(topic_of[known], weights=weights, minlength=topics)
    return np.where(totals > 0, sums / totals.clip(min=1), np.nan)


# The most hours that become scenarios: each adds a load to the optimum and to its proof.
MOST_HOURS = 6


def busiest_hours(loads: NDArray[np.integer[Any]]) -> tuple[int, ...]:
    """The busiest hours of the week by brokers' loads (2, B, 168), the most loaded first; at most MOST_HOURS.

    For each broker, and for all brokers together, the hour with the highest load in and the one with the highest load
    out; of these the ones with the highest loads. Of equal hours the earlier one counts.
    """
    every = np.concatenate([loads.sum(axis=1), *loads])
    highest = zip((-every.max(axis=1)).tolist(), every.argmax(axis=1).tolist(), strict=True)
    distinct = dict.fromkeys(hour for load, hour in sorted(highest) if load)
    return tuple(distinct)[:MOST_HOURS]
