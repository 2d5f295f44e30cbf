"""Counters become hourly rates, through restarts and gaps, and are shared among a topic's partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from planner.inputs.load_profile_statistics import SOURCES
from planner.inputs.metric_files import MEASURE_SCHEMA, Measurement
from spark_jobs import load_profile

pytestmark = pytest.mark.spark

HOUR = 3600
START = 498_216 * HOUR


def frame(spark: Any, measures: Iterable[Measurement]) -> Any:
    """The measures as a Spark data frame."""
    return spark.createDataFrame(pa.Table.from_pylist([each._asdict() for each in measures], MEASURE_SCHEMA))


def rates(
    spark: Any, measures: Iterable[Measurement]
) -> dict[tuple[str, int, int], tuple[int | None, int | None, str]]:
    """(topic, partition, hour of the history) to bytes/s in, bytes/s out, and the source."""
    rows = load_profile.samples_of_counters(frame(spark, measures)).collect()
    return {
        (row.topic, row.partition, row["at"] // HOUR - START // HOUR): (
            row.bytes_in_per_sec,
            row.bytes_out_per_sec,
            SOURCES[row.source],
        )
        for row in rows
    }


def counter(kind: str, steps: Iterable[tuple[int, float]], partition: int = -1, broker: str = "1") -> list[Measurement]:
    """The measures of a counter of topic `a`, from (second of the history, value)."""
    return [Measurement(kind, "a", partition, broker, START + at, value) for at, value in steps]  # type: ignore[arg-type]


def test_a_topics_rate_is_shared_by_offsets(spark: Any) -> None:
    """A topic's rate is shared by messages, whatever the sizes, after adding both brokers' counters."""
    measures = [
        *counter("bytes_in", [(0, 0), (HOUR, 36e6)]),
        *counter("bytes_in", [(0, 5e9), (HOUR, 5e9 + 36e6)], broker="2"),
        *counter("bytes_out", [(0, 0), (HOUR, 144e6)]),
        *counter("offset", [(0, 100), (HOUR, 200)], 0),
        *counter("offset", [(0, 0), (HOUR, 300)], 1),
        *counter("size", [(0, 10), (HOUR, 10)], 0),
        *counter("size", [(0, 10), (HOUR, 10)], 1),
    ]

    found = rates(spark, measures)

    assert {(0, 0): "offsets", (0, 1): "measured", (1, 0): "offsets", (1, 1): "measured"} == {
        key[1:]: source for key, (_, _, source) in found.items()
    }, "an hour with a size alone has no rate"
    assert (5000, 10_000, "offsets") == found["a", 0, 0]
    assert (15_000, 30_000, "offsets") == found["a", 1, 0]


def test_without_offsets_sizes_share(spark: Any) -> None:
    """Without offsets, sizes share the rate. Without byte counters, the log's growth is the rate, unless it shrinks."""
    sized = [*counter("size", [(0, 100), (HOUR - 1, 100)], 0), *counter("size", [(0, 300), (HOUR - 1, 300)], 1)]
    assert (1000, None, "size") == rates(spark, [*counter("bytes_in", [(0, 0), (HOUR, 14.4e6)]), *sized])["a", 0, 0]
    grown = counter("size", [(0, 0), (1800, 18e6), (2700, 1e6), (3600, 10e6)], 0)
    assert (10_000, None, "size") == rates(spark, grown)["a", 0, 0]


def test_a_topic_without_a_byte_has_rates_of_0(spark: Any) -> None:
    """If logs don't grow and are empty, written and read bytes are 0."""
    empty = [*counter("bytes_in", [(0, 0), (HOUR, 0)]), *counter("bytes_out", [(0, 0), (HOUR, 0)])]
    sized = [*counter("size", [(0, 0), (HOUR, 0)], 0), *counter("size", [(0, 0), (HOUR, 0)], 1)]
    offsets = [*counter("offset", [(0, 0), (HOUR, 0)], 0), *counter("offset", [(0, 0), (HOUR, 0)], 1)]
    found = rates(spark, [*empty, *sized, *offsets])
    assert (0, 0, "size") == found["a", 0, 0] == found["a", 1, 0]


def test_hours_without_a_message_have_rates(spark: Any) -> None:
    """While nobody writes, the rate is 0 and not unknown, without sizes too. What is read then is divided evenly."""
    measures = [
        *counter("bytes_in", [(0, 0), (HOUR, 72e6), (2 * HOUR, 72e6)]),
        *counter("bytes_out", [(0, 0), (HOUR, 0), (2 * HOUR, 144e6)]),
        *counter("offset", [(0, 0), (HOUR, 10), (2 * HOUR, 10)], 0),
        *counter("offset", [(0, 0), (HOUR, 30), (2 * HOUR, 30)], 1),
    ]

    found = rates(spark, measures)

    assert {(0, 0): (5000, 0, "offsets"), (1, 0): (15_000, 0, "offsets")} == {
        key[1:]: rate for key, rate in found.items() if key[2] == 0
    }
    assert (0, 20_000, "offsets") == found["a", 0, 1] == found["a", 1, 1]


def test_sizes_share_the_hours_between_them_too(spark: Any) -> None:
    """Brokers whose sizes are known in different hours, and of which one shrinks, share their topic's rate."""
    measures = [
        *counter("bytes_in", [(hour * HOUR, hour * 36e6) for hour in range(5)]),
        *counter("bytes_out", [(hour * HOUR, hour * 72e6) for hour in range(5)]),
        *counter("size", [(0, 300), (2 * HOUR, 300), (4 * HOUR, 300)], 0, broker="1"),
        *counter("size", [(0, 200), (HOUR, 100), (3 * HOUR, 100), (4 * HOUR, 100)], 1, broker="2"),
    ]

    found = rates(spark, measures)

    assert [(6000, 12_000), *[(7500, 15_000)] * 3] == [found["a", 0, hour][:2] for hour in range(4)]
    assert [(4000, 8000), *[(2500, 5000)] * 3] == [found["a", 1, hour][:2] for hour in range(4)]


def test_a_counter_that_began_again_has_grown_by_its_new_value(spark: Any) -> None:
    """Growth between the last value and the restart is unknown. The reset is counted once."""
    measures = [
        *counter("bytes_in", [(0, 9e9), (HOUR // 2, 36e6), (HOUR, 72e6)]),
        *counter("offset", [(0, 0), (HOUR, 10)], 0),
    ]

    assert (20_000, None, "offsets") == rates(spark, measures)["a", 0, 0]
    assert 1 == load_profile.flaws(frame(spark, measures))["counter_resets"]


def test_a_small_fall_is_no_reset(spark: Any) -> None:
    """A small fall isn't growth by the whole value: two scrapers out of order, or a log that a follower truncated."""
    half = HOUR // 2
    measures = [
        *counter("bytes_in", [(0, 9e9), (half, 9e9 + 36e6), (half + 1, 9e9 + 35e6), (HOUR, 9e9 + 72e6)]),
        *counter("offset", [(0, 10_000), (half, 11_000), (half + 2, 10_000), (HOUR, 9_000)], 0),
        *counter("offset", [(0, 50), (HOUR, 1050)], 1),
    ]

    found = rates(spark, measures)

    assert [(10_000, None, "offsets")] * 2 == [found["a", partition, 0] for partition in (0, 1)]
    assert 0 == load_profile.flaws(frame(spark, measures))["counter_resets"]


def test_growth_over_several_hours_is_spread_and_a_gap_is_left_out(spark: Any) -> None:
    """Two hours without a value are filled evenly, but eight hours aren't."""
    measures = [
        *counter("bytes_in", [(0, 0), (2 * HOUR, 72e6), (10 * HOUR, 99e9), (11 * HOUR, 99e9 + 36e6)]),
        *counter("offset", [(0, 0), (2 * HOUR, 10), (10 * HOUR, 20), (11 * HOUR, 30)], 0),
    ]

    found = rates(spark, measures)

    assert {0: 10_000, 1: 10_000, 10: 10_000} == {hour: rate[0] for (_, _, hour), rate in found.items()}
    assert 2 == load_profile.flaws(frame(spark, measures))["gaps_in_counters"]


def test_what_a_broker_counted_in_a_gap_isnt_zero(spark: Any) -> None:
    """While only broker 2's exporter is down, the topic's rate is unknown. While broker 2 itself is down, or
    counts no byte, it adds 0.
    """
    every = [(hour * HOUR, hour * 36e6) for hour in range(11)]
    of_one = [*counter("bytes_in", every), *counter("offset", [(at, at) for at, _ in every], 0)]

    unseen = rates(spark, [*of_one, *counter("bytes_in", [*every[:2], *every[9:]], broker="2")])
    down = rates(spark, [*of_one, *counter("bytes_in", [*every[:2], (9 * HOUR, 0), (10 * HOUR, 36e6)], broker="2")])
    idle = rates(spark, [*of_one, *counter("bytes_in", [(0, 5e9), (HOUR, 5e9), (9 * HOUR, 5e9)], broker="2")])

    assert [20_000, *[None] * 8, 20_000] == [unseen.get(("a", 0, hour), (None,))[0] for hour in range(10)]
    assert [20_000, *[10_000] * 8, 20_000] == [down["a", 0, hour][0] for hour in range(10)]
    assert {10_000} == {rate[0] for rate in idle.values()}


def test_impossible_values_are_counted_by_topic(spark: Any) -> None:
    """Values below 0, too large or no number are counted; a topic's share is that of its worst kind."""
    measures = [
        *counter("bytes_in", [(at, at) for at in range(8)]),
        *counter("bytes_in", [(8, float("nan")), (9, float("inf"))]),
        *counter("size", [(0, -1), (1, 2.0**60 + 1e6), (2, 5), (3, 2.0**60)], 0),
        Measurement("offset", "b", 0, "1", START, 5),
    ]

    assert (4, {"a": 0.5}) == load_profile.impossible_values(frame(spark, measures))


def test_impossible_values_of_metrics_are_left_out(spark: Any) -> None:
    """Rates and sizes are those of the other values, and the flaws are counted."""
    measures = [
        *counter("bytes_in", [(0, 0), (1800, float("nan")), (2000, -5), (HOUR, 36e6)]),
        *counter("offset", [(0, 0), (HOUR, 10)], 0),
        *counter("size", [(0, 7), (1800, float("inf"))], 0),
        Measurement("offset", "not a topic", 0, "1", START, 5),
    ]

    samples, counts, shares = load_profile.samples_of_metrics(frame(spark, measures))

    first = min(samples.collect(), key=lambda row: row["at"])
    assert (10_000, 7) == (first.bytes_in_per_sec, first.size_bytes)
    assert (3, 1, 0) == tuple(counts[name] for name in ("unusable_values", "unreadable_rows", "counter_resets"))
    assert {"a": 0.5} == shares


def test_partitions_that_moved_are_counted(spark: Any) -> None:
    """Broker 2 took over partition 0 after three hours, and partition 1 stayed, so one moved."""
    times = [0, HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR]
    measures = [
        *counter("size", [(at, 5) for at in times[:3]], 0, "1"),
        *counter("size", [(at, 5) for at in times[3:]], 0, "2"),
        *counter("size", [(at, 5) for at in times], 1, "1"),
        *counter("size", [(at + 30, 5) for at in times], 1, "2"),
    ]

    assert 1 == load_profile.flaws(frame(spark, measures))["moved_partitions"]


def test_a_leader_that_moved_within_an_hour_adds_what_it_counted(spark: Any) -> None:
    """Brokers count a topic only while they lead a partition of it: before and after, one adds nothing."""
    minutes = [*range(0, HOUR // 2 + 60, 60)], [*range(HOUR // 2, HOUR + 60, 60)]
    measures = [
        *counter("bytes_in", [(at, 7e9 + at * 10_000) for at in minutes[0]]),
        *counter("bytes_in", [(at, (at - HOUR // 2) * 10_000) for at in minutes[1]], broker="2"),
        *counter("offset", [(0, 0), (HOUR, 3600)], 0),
    ]
    assert (10_000, None, "offsets") == rates(spark, measures)["a", 0, 0]


def test_a_replica_that_is_copied_isnt_written(spark: Any) -> None:
    """A new replica's log grows as fast as it is copied. The rate is that of the others, whose log is ahead."""
    copied = [(900, 0), (1800, 500e6), (HOUR, 1e9 + 36e6)]
    shown = [*counter("size", [(0, 1e9), (HOUR, 1e9 + 36e6)], 0), *counter("size", copied, 0, broker="2")]
    assert (10_000, None, "size") == rates(spark, shown)["a", 0, 0]
    offsets = [*counter("offset", [(0, 1e6), (HOUR, 1e6 + 10)], 0), *counter("offset", [(900, 0), (HOUR, 1e6)], 0, "2")]
    other = [*counter("offset", [(0, 0), (HOUR, 10)], 1), *counter("bytes_in", [(0, 0), (HOUR, 72e6)])]
    found = rates(spark, [*offsets, *other])
    assert [(10_000, None, "offsets")] * 2 == [found["a", partition, 0] for partition in (0, 1)]


def test_a_copy_that_ends_while_the_old_replica_goes_isnt_written(spark: Any) -> None:
    """In the hour in which only the copied log remains, the growth is unknown; from then on, it is known again."""
    old = counter("size", [(0, 1e9), (HOUR, 1e9 + 36e6)], 0)
    new = [(HOUR, 500e6), (2 * HOUR, 1e9 + 72e6), (3 * HOUR, 1e9 + 108e6)]
    found = rates(spark, [*old, *counter("size", new, 0, broker="2")])
    assert [10_000, None, 10_000] == [found["a", 0, hour][0] for hour in range(3)]
