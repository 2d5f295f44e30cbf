"""The history that a load profile is made of: its hours, its flaws, and what it is too short for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

HOURS_OF_WEEK = 168
# Any Monday at 00:00 UTC.
_MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


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
    """What a history has of flaws, each with how often it was found; and topics not to be trusted, each with why."""

    counts: Mapping[str, int] = field(default_factory=dict)
    untrusted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class About:
    """What a profile says of its history: its hours since 1970, UTC, from `first` to before `end`; the findings.

    `time_zone` is the cluster's, by name, for people; hours of the week are UTC whatever it is.
    """

    span: Span
    time_zone: str = "UTC"
    findings: Findings = field(default_factory=Findings)


def doubts(span: Span) -> tuple[str, ...]:
    """What a history is too short for."""
    days = span.hours / 24
    if span.hours < 7 * 24:
        return (
            f"the history has {days:.3g} days: hours of the week that it doesn't have are unknown, and so is growth",
        )
    if span.hours < 14 * 24 + 12:
        return (f"the history has {days:.3g} days: growth needs more than two weeks, and is unknown",)
    return ()


def hour_name(hour: int, zone: str = "UTC") -> str:
    """An hour of the week for people, such as `Monday 09:00 UTC`; in a zone of its own as it is in January."""
    at = (_MONDAY + timedelta(hours=hour)).astimezone(ZoneInfo(zone))
    return f"{_DAYS[at.weekday()]} {at:%H:%M} {zone}"


@dataclass(frozen=True, eq=False)
class WeekOfLoad:
    """The hours of the week of N partitions, in bytes/s in and out, and the time zone in which people name hours.

    rows: (topic, partition) to its number · means (2, N) · hours (2, N, 168), Monday 00:00 UTC first; NaN: unknown.
    """

    rows: Mapping[tuple[str, int], int]
    means: NDArray[np.floating[Any]]
    hours: NDArray[np.floating[Any]]
    time_zone: str = "UTC"

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
