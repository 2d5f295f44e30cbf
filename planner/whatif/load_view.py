"""A load profile for people: the busiest topics and hours, growth, and the flaws of the history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from planner.model.formats import counted, number
from planner.model.load_history import HOUR_SECONDS, HOURS_OF_WEEK, About, Findings, doubts, hour_name, topic_growth
from planner.model.problem import FloatArray, LongArray
from planner.report.view import Column, Facts, Lines, Name, Quantity, Section, Table, View, told

_TOPICS_SHOWN, _HOURS_SHOWN, _UNTRUSTED_SHOWN = 10, 5, 10
_LONGEST_TOPIC = 60
_RATE = "bytes/s"


@dataclass(frozen=True)
class LoadedTopic:
    """The sums of a topic's partitions, rates in bytes/s; growth is a fraction per month, None where unknown.

    `busiest_hour` is the hour of the week with the highest mean rate in, 0 for Monday 00:00 UTC; None without rates.
    """

    topic: str
    partitions: int
    size_bytes: int
    mean_in: float
    mean_out: float
    busiest_hour: int | None
    busiest_in: float
    growth_per_month: float | None


@dataclass(frozen=True)
class BusyHour:
    """An hour of the week, 0 for Monday 00:00 UTC, and the summed mean rates of all topics in it, in bytes/s."""

    hour: int
    rate_in: float
    rate_out: float


@dataclass(frozen=True)
class LoadSummary:
    """A profile summed over the cluster; hours and topics are sorted by their rate in, the busiest first."""

    about: About
    partitions: int
    size_bytes: int
    mean_in: float
    mean_out: float
    hours: tuple[BusyHour, ...]
    topics: tuple[LoadedTopic, ...]


def summary(rows: pa.Table, about: About) -> LoadSummary:
    """The summary of a profile's rows (PROFILE_SCHEMA)."""
    encoded = rows["topic"].combine_chunks().dictionary_encode()
    of: LongArray = np.asarray(encoded.indices, dtype=np.int64)
    names: list[str] = encoded.dictionary.to_pylist()
    mean_in, mean_out, size = (
        _known(rows[name]) for name in ("bytes_in_per_sec_mean", "bytes_out_per_sec_mean", "size_bytes")
    )
    week_in, week_out = _by_topic(rows["hours_in"], of, len(names)), _by_topic(rows["hours_out"], of, len(names))
    per_month = np.asarray(rows["growth_per_month"].fill_null(np.nan), dtype=np.float64)
    growth = topic_growth(of, len(names), per_month, mean_in)

    def added(values: FloatArray) -> FloatArray:
        return np.bincount(of, weights=values, minlength=len(names)).astype(np.float64)

    totals = zip(added(np.ones(len(of))), added(size), added(mean_in), added(mean_out), strict=True)
    topics = [
        LoadedTopic(
            names[at],
            int(count),
            int(held),
            rate_in,
            rate_out,
            int(week_in[at].argmax()) if week_in[at].any() else None,
            float(week_in[at].max()),
            None if np.isnan(growth[at]) else float(growth[at]),
        )
        for at, (count, held, rate_in, rate_out) in enumerate(totals)
    ]
    all_in, all_out = week_in.sum(axis=0), week_out.sum(axis=0)
    hours = [BusyHour(hour, float(all_in[hour]), float(all_out[hour])) for hour in range(HOURS_OF_WEEK)]
    return LoadSummary(
        about,
        len(of),
        int(size.sum()),
        float(mean_in.sum()),
        float(mean_out.sum()),
        tuple(sorted(hours, key=lambda each: (-each.rate_in, each.hour))),
        tuple(sorted(topics, key=lambda each: (-each.mean_in, each.topic))),
    )


def _known(column: pa.ChunkedArray) -> FloatArray:
    """The values, 0 where unknown."""
    return np.asarray(column.fill_null(0), dtype=np.float64)


def _by_topic(column: pa.ChunkedArray, of: LongArray, topics: int) -> FloatArray:
    """(T, 168): the sums of the partitions' hours, unknown ones as 0."""
    flat = np.asarray(column.combine_chunks().flatten().fill_null(0), dtype=np.float64)
    total: FloatArray = np.zeros((topics, HOURS_OF_WEEK))
    np.add.at(total, of, flat.reshape(len(of), HOURS_OF_WEEK))
    return total


def view(of: LoadSummary) -> View:
    """What `planner load --show` prints."""
    history, hours, topics = blocks(of)
    return View("Load profile", (Section("", told(history[0], hours, topics, *history[1:])),))


def blocks(of: LoadSummary) -> tuple[tuple[Facts, Lines], Table[BusyHour], Table[LoadedTopic]]:
    """The history with its flaws; the busiest hours; the busiest topics."""
    span = of.about.span
    first, end = (datetime.fromtimestamp(hour * HOUR_SECONDS, UTC) for hour in (span.first, span.end))
    facts = Facts(
        (
            ("History", f"{first:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC ({counted(span.hours, 'hour')})"),
            ("Partitions", f"{counted(of.partitions, 'partition')} of {counted(len(of.topics), 'topic')}"),
            ("Stored", Quantity(of.size_bytes, "bytes")),
            ("Written", Quantity(of.mean_in, _RATE)),
            ("Read", Quantity(of.mean_out, _RATE)),
        )
    )
    found = (*doubts(span), *_flaws(of.about.findings))
    return (facts, Lines(found, quiet=True)), _hours(of), _topics(of)


def _hours(of: LoadSummary) -> Table[BusyHour]:
    column = Column[BusyHour]
    columns = (
        column("Busiest hours", lambda row: hour_name(row.hour, of.about.time_zone), numeric=False),
        column("Written", lambda row: Quantity(row.rate_in, _RATE)),
        column("Read", lambda row: Quantity(row.rate_out, _RATE)),
    )
    busy = [each for each in of.hours if each.rate_in or each.rate_out]
    return Table("", "", "hour", busy, columns, most=_HOURS_SHOWN)


def _topics(of: LoadSummary) -> Table[LoadedTopic]:
    column = Column[LoadedTopic]

    def busiest(row: LoadedTopic) -> str | None:
        return None if row.busiest_hour is None else hour_name(row.busiest_hour, of.about.time_zone)

    def growth(row: LoadedTopic) -> Quantity:
        return Quantity(None if row.growth_per_month is None else round(100 * row.growth_per_month, 1), "%")

    columns = (
        column("Busiest topics", lambda row: Name(row.topic, _LONGEST_TOPIC), numeric=False),
        column("Partitions", lambda row: row.partitions),
        column("Stored", lambda row: Quantity(row.size_bytes, "bytes")),
        column("Written", lambda row: Quantity(row.mean_in, _RATE)),
        column("Read", lambda row: Quantity(row.mean_out, _RATE)),
        column("Busiest hour", busiest, numeric=False),
        column("Written then", lambda row: Quantity(row.busiest_in, _RATE)),
        column("Growth per month", growth),
    )
    return Table("", "", "topic", of.topics, columns, most=_TOPICS_SHOWN)


_FLAW_NAMES = {
    "unreadable_rows": "row without a valid topic name, partition or time (left out)",
    "repeated_samples": "sample with the same time as another one (their mean counts)",
    "unusable_values": "value below 0 or no number (left out)",
    "misdated_samples": "sample more than a week apart from the others, as of a wrong clock (left out)",
    "hours_without_samples": "hour of a partition without a sample",
    "appeared_partitions": "partition that appeared after the history began",
    "vanished_partitions": "partition without samples at the end of the history",
    "counter_resets": "counter that began again at 0",
    "gaps_in_counters": "gap of more than six hours in a counter",
    "moved_partitions": "partition that moved to other brokers",
}


def _flaws(findings: Findings) -> Iterator[str]:
    for key, words in _FLAW_NAMES.items():
        if count := findings.counts.get(key, 0):
            noun, _, rest = words.partition(" ")
            yield f"{number(count)} {noun}{'' if count == 1 else 's'} {rest}"
    for topic, why in list(findings.untrusted.items())[:_UNTRUSTED_SHOWN]:
        yield f"topic {topic} can't be trusted: {why}"
    more = len(findings.untrusted) - _UNTRUSTED_SHOWN
    if more > 0:
        yield f"{counted(more, 'more topic')} can't be trusted"
