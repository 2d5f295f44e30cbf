"""The forecast of partitions' growth from rates, retention and today's sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from growing_topics import rated
from hypothesis import given
from hypothesis import strategies as st

from planner.model.build_problem import build, topics_after
from planner.model.document_fields import StatedRateRow
from planner.model.growth_forecast import (
    WEEK_MS,
    Retention,
    at_history_end,
    forecast,
    per_month_ppm,
    retention,
)
from planner.model.load_history import MONTH_SECONDS
from planner.model.spec import Changes, Monthly, NewPartitions, Rate

MB = 10**6


def sizes(spec, *months):
    """The partition's bytes in these months from now."""
    ahead = forecast(spec, build(spec), topics_after(spec))
    return [int(ahead.in_month(month).size_bytes[0]) for month in months]


def test_nothing_changes_where_nothing_grows():
    """Without growth, a topic with the size that its rate and retention give keeps that size."""
    written = 1000 * WEEK_MS // 1000 + MB
    config = [("segment.bytes", str(MB))]

    assert [written] * 3 == sizes(rated(config, size=written, bytes_in=1000), 0, 1, 7)
    assert [5, 5, 5] == sizes(rated(size=5), 0, 3, 12)


def test_without_a_rate_sizes_grow_as_it_is_said():
    """Without a rate, or if it is compacted, a topic's size grows as stated; the first matching entry counts."""
    assert [1_000_000, 1_080_000, 1_166_400] == sizes(rated(size=1_000_000, ppm=80_000), 0, 1, 2)
    compacted = rated([("cleanup.policy", "compact")], size=1_000_000, bytes_in=9, ppm=-500_000)
    assert [1_000_000, 500_000, 250_000] == sizes(compacted, 0, 1, 2)
    first = (Rate("t", 1_000_000), Rate("*", 0))
    assert [1, 2, 4] == sizes(rated(size=1, rates=first), 0, 1, 2)
    assert [1, 1] == sizes(rated(size=1, rates=first[::-1]), 0, 1)


def test_retention_may_be_inherited():
    """Inherited retention counts as a topic's own, whether its origin is known or not."""
    own = rated([("retention.ms", "-1")], size=7, bytes_in=10, ppm=1_000_000)
    (topic,) = own.cluster.topics
    bare = replace(topic, config=())
    inherited = replace(own.cluster, topics=(bare,), config_defaults=topic.config)
    printed = replace(own.cluster, topics=(replace(bare, effective_config=topic.config),))

    assert sizes(own, 1, 2) == sizes(replace(own, cluster=inherited), 1, 2)
    assert sizes(own, 1, 2) == sizes(replace(own, cluster=printed), 1, 2)


def test_what_is_kept_for_ever_adds_up():
    """Without retention everything stays: a month adds its rate times its seconds."""
    spec = rated([("retention.ms", "-1")], size=7, bytes_in=10, ppm=1_000_000)

    assert [7, 7 + 10 * MONTH_SECONDS, 7 + 30 * MONTH_SECONDS] == sizes(spec, 0, 1, 2)


def test_retention_by_size_caps_a_partition():
    """retention.bytes caps a partition at that size and one segment."""
    config = [("retention.ms", "-1"), ("retention.bytes", "5000"), ("segment.bytes", "200")]

    assert [7, 5200, 5200] == sizes(rated(config, size=7, bytes_in=10), 0, 1, 2)


@pytest.mark.parametrize("ppm", [100_000, -100_000])
def test_a_segment_has_the_same_size_at_every_rate(ppm):
    """What an hour writes grows or shrinks, and one segment of 1 GiB stays. A slow topic's segment lasts a day."""
    hour, slow = [("retention.ms", "3600000")], [("retention.ms", "3600000"), ("segment.ms", "86400000")]
    then = (1 + ppm / 10**6) ** 11

    assert [round(3600 * MB * then) + 2**30] == sizes(rated(hour, size=4 * 10**9, bytes_in=MB, ppm=ppm), 12)
    assert [round(90_000 * 100 * then)] == sizes(rated(slow, size=9 * MB, bytes_in=100, ppm=ppm), 12)


def test_a_segment_of_several_months_spans_less_time_as_the_rate_doubles():
    """A segment has seven months of today's rate. With months of 1, 2, 4 and 8, its first record is of today."""
    config = [("retention.ms", str(MONTH_SECONDS * 1000)), ("segment.bytes", str(7 * MONTH_SECONDS))]
    config += [("segment.ms", str(99 * MONTH_SECONDS * 1000))]

    # Today: a month and the segment. In 4 months: what the fourth month has written, and the segment of three months.
    assert [8 * MONTH_SECONDS, 15 * MONTH_SECONDS] == sizes(
        rated(config, size=8 * MONTH_SECONDS, bytes_in=1, ppm=1_000_000), 0, 4
    )


def test_old_data_ages_out_while_new_data_comes():
    """With two months of retention, half of today's data is gone after one month, and the new data is there."""
    config = [("retention.ms", str(2 * MONTH_SECONDS * 1000)), ("segment.ms", "0")]

    assert [8 * MB, 4 * MB + MONTH_SECONDS, 2 * MONTH_SECONDS] == sizes(rated(config, size=8 * MB, bytes_in=1), 0, 1, 2)


def test_sizes_that_nobody_measured_are_made_of_rates():
    """If sizes are unknown, a size is what retention keeps of today's rate, written before today."""
    config = [("retention.ms", str(2 * MONTH_SECONDS * 1000)), ("segment.ms", "0")]
    spec = rated(config, bytes_in=1, ppm=1_000_000, sizes_known=False)

    assert [2 * MONTH_SECONDS, 3 * MONTH_SECONDS] == sizes(spec, 1, 2)


def test_forecasts_begin_at_the_end_of_a_history():
    """A history's end has twice the mean rate; forecasts and sizes for candidates begin there, plans keep the mean."""
    kept = rated([("retention.ms", "3600000"), ("segment.bytes", "1")], size=7, bytes_in=100, ppm=100_000)
    disks = tuple(replace(each, disk_bytes=10**9) for each in kept.cluster.brokers)
    spec = replace(kept, cluster=replace(kept.cluster, brokers=disks))
    ended = replace(spec, growth=Monthly(spec.growth.rates, at_end={"t": 2_000_000, "another": 3_000_000}))
    problem, now = build(ended), build(at_history_end(ended))

    assert ([100], [200], [200], [400]) == tuple(
        list(each) for one in (problem, now) for each in (one.bytes_in_per_sec, one.bytes_out_per_sec)
    )
    assert problem.sizes_ahead[0, :3].tolist() == sizes(at_history_end(ended), 0, 1, 2)
    first, then = build(spec).sizes_ahead[0, :2].tolist()
    assert (first, 2 * then) == (7, pytest.approx(problem.sizes_ahead[0, 1], rel=1e-3))
    assert at_history_end(spec).cluster is spec.cluster


def test_what_is_stated_is_the_rate_of_today_also_where_a_history_ends():
    """Rates that the YAML states, for today's or new partitions, are rates of today, whatever a history's end is."""
    spec = rated([("retention.ms", "3600000"), ("segment.bytes", "1")], size=7, bytes_in=100, ppm=100_000)
    disks = tuple(replace(each, disk_bytes=10**9) for each in spec.cluster.brokers)
    own = replace(spec.cluster, brokers=disks, rates=(StatedRateRow("t", 0, 100, None),))
    makes = Changes(new_partitions=(NewPartitions("t", 1, 2, 1, bytes_in_per_sec=100),))
    stated = replace(spec, cluster=own, changes=makes)
    ended = replace(stated, growth=Monthly(spec.growth.rates, at_end={"t": 2_000_000}))

    assert build(stated).sizes_ahead.tolist() == build(ended).sizes_ahead.tolist()
    (partition,) = at_history_end(ended).cluster.topics[0].partitions
    assert (100, 400) == (partition.bytes_in_per_sec, partition.bytes_out_per_sec), "what is read is a mean"


def test_rates_grow_each_month():
    """Bytes written and bytes read grow alike each month."""
    spec = rated(bytes_in=100, ppm=100_000)
    then = forecast(spec, build(spec), topics_after(spec)).in_month(2)

    assert (121, 242) == (then.bytes_in_per_sec[0], then.bytes_out_per_sec[0])


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, Retention(True, 604_800, -1, 604_800, 1 << 30)),
        ({"retention.ms": "-1", "retention.bytes": "9"}, Retention(True, -1, 9, 604_800, 1 << 30)),
        ({"cleanup.policy": "compact,delete", "segment.bytes": "7"}, Retention(False, 604_800, -1, 604_800, 7)),
        (
            {"remote.storage.enable": "true", "local.retention.ms": "1000", "retention.bytes": "5"},
            Retention(True, 1, 5, 604_800, 1 << 30),
        ),
        ({"remote.storage.enable": "true", "retention.ms": "2000"}, Retention(True, 2, -1, 604_800, 1 << 30)),
    ],
)
def test_retention_of_a_topic(config, expected):
    """Retention comes from Kafka's defaults, compaction, and the local retention of tiered topics."""
    assert expected == retention(config)


@given(
    st.integers(0, 10**12), st.integers(0, 10**8), st.integers(0, 300_000), st.integers(0, 10**11), st.integers(1, 20)
)
def test_more_growth_is_never_smaller(size, bytes_in, ppm, keep, month):
    """Faster growth makes no partition smaller, and no size is negative."""
    config = [("retention.ms", str(keep)), ("segment.bytes", "1000000")]
    slow, fast = (sizes(rated(config, size=size, bytes_in=bytes_in, ppm=each), month)[0] for each in (ppm, ppm + 1000))

    assert 0 <= slow <= fast + 1


def test_the_first_rate_that_matches_a_topic_counts() -> None:
    """The first matching rate counts, as a name or a pattern; a topic without a match doesn't grow."""
    rates = [Rate("a-1", 1), Rate("a-*", 2), Rate("b", 3), Rate("a-3", 4), Rate("[bc]", 5)]
    assert [1, 2, 2, 3, 5, 0] == per_month_ppm(rates, ["a-1", "a-2", "a-3", "b", "c", "d"])
    assert [0] == per_month_ppm([], ["a"])


def test_growth_beyond_every_number_ends_at_one():
    """Growth of ten times a month for ten years ends at a largest value, without overflow."""
    spec = rated(size=10**9, ppm=9_000_000)
    with np.errstate(all="raise"):
        ahead = forecast(spec, build(spec), topics_after(spec))
        then = ahead.in_month(120)
    assert 10**18 < int(then.size_bytes[0]) < 2**63 // 2
    assert ([False], [True]) == (ahead.capped(1).tolist(), ahead.capped(120).tolist())
