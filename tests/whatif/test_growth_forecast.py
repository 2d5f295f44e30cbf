"""How partitions grow: rates, retention, what lies there already; when a limit is reached, and what helps."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from clusters import spec_of
from growing_topics import RACKS, rated
from hypothesis import given
from hypothesis import strategies as st

from planner.model.build_problem import build
from planner.model.cluster import Apart, Broker
from planner.model.spec import BrokerClass, Changes, Limits, Monthly, Rate
from planner.scoring import independent_check
from planner.whatif import growth_forecast
from planner.whatif.growth_forecast import MONTH_SECONDS, WEEK_MS, Retention, forecast, retention

MB = 10**6


def sizes(spec, *months):
    """The partition's bytes in these months."""
    ahead = forecast(spec, build(spec))
    return [int(ahead.at(month).size_bytes[0]) for month in months]


def test_nothing_changes_where_nothing_grows():
    """A topic at the size that its rate and retention make of it stays there."""
    written = 1000 * WEEK_MS // 1000 + MB
    config = [("segment.bytes", str(MB))]

    assert [written] * 3 == sizes(rated(config, size=written, bytes_in=1000), 0, 1, 7)
    assert [5, 5, 5] == sizes(rated(size=5), 0, 3, 12)


def test_without_a_rate_sizes_grow_as_it_is_said():
    """So they do where the topic is compacted; the first entry that matches counts."""
    assert [1_000_000, 1_080_000, 1_166_400] == sizes(rated(size=1_000_000, ppm=80_000), 0, 1, 2)
    compacted = rated([("cleanup.policy", "compact")], size=1_000_000, bytes_in=9, ppm=-500_000)
    assert [1_000_000, 500_000, 250_000] == sizes(compacted, 0, 1, 2)
    first = (Rate("t", 1_000_000), Rate("*", 0))
    assert [1, 2, 4] == sizes(rated(size=1, rates=first), 0, 1, 2)
    assert [1, 1] == sizes(rated(size=1, rates=first[::-1]), 0, 1)


def test_retention_may_be_inherited():
    """As a topic's own, with or without a known origin."""
    own = rated([("retention.ms", "-1")], size=7, bytes_in=10, ppm=1_000_000)
    (topic,) = own.cluster.topics
    bare = replace(topic, config=())
    inherited = replace(own.cluster, topics=(bare,), config_defaults=topic.config)
    printed = replace(own.cluster, topics=(replace(bare, effective_config=topic.config),))

    assert sizes(own, 1, 2) == sizes(replace(own, cluster=inherited), 1, 2)
    assert sizes(own, 1, 2) == sizes(replace(own, cluster=printed), 1, 2)


def test_what_is_kept_for_ever_adds_up():
    """Without retention all that is written stays: the rate of each month times its seconds."""
    spec = rated([("retention.ms", "-1")], size=7, bytes_in=10, ppm=1_000_000)

    assert [7, 7 + 10 * MONTH_SECONDS, 7 + 30 * MONTH_SECONDS] == sizes(spec, 0, 1, 2)


def test_retention_by_size_caps_a_partition():
    """It holds at the most retention.bytes and a segment."""
    config = [("retention.ms", "-1"), ("retention.bytes", "5000"), ("segment.bytes", "200")]

    assert [7, 5200, 5200] == sizes(rated(config, size=7, bytes_in=10), 0, 1, 2)


def test_old_data_ages_out_while_new_data_comes():
    """Half of what lies there is gone after half of its retention, and what is written meanwhile has come."""
    config = [("retention.ms", str(2 * MONTH_SECONDS * 1000)), ("segment.ms", "0")]

    assert [8 * MB, 4 * MB + MONTH_SECONDS, 2 * MONTH_SECONDS] == sizes(rated(config, size=8 * MB, bytes_in=1), 0, 1, 2)


def test_sizes_that_nobody_measured_are_made_of_rates():
    """They are what retention keeps, written at today's rate before today."""
    config = [("retention.ms", str(2 * MONTH_SECONDS * 1000)), ("segment.ms", "0")]
    spec = rated(config, bytes_in=1, ppm=1_000_000, sizes_known=False)

    assert [2 * MONTH_SECONDS, 3 * MONTH_SECONDS] == sizes(spec, 1, 2)


def test_rates_grow_each_month():
    """Written and read alike."""
    then = forecast(spec := rated(bytes_in=100, ppm=100_000), build(spec)).at(2)

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
    """Kafka's defaults, compaction, and what stays on the brokers of tiered topics."""
    assert expected == retention(config)


@given(
    st.integers(0, 10**12), st.integers(0, 10**8), st.integers(0, 300_000), st.integers(0, 10**11), st.integers(1, 20)
)
def test_more_growth_is_never_smaller(size, bytes_in, ppm, keep, month):
    """Faster growth makes no partition smaller, and no size is negative."""
    config = [("retention.ms", str(keep)), ("segment.bytes", "1000000")]
    slow, fast = (sizes(rated(config, size=size, bytes_in=bytes_in, ppm=each), month)[0] for each in (ppm, ppm + 1000))

    assert 0 <= slow <= fast + 1


def cluster(disk=None, network=None, classes=(), months=3, **limits):
    """Two brokers of a kind with eight partitions of a thousand bytes that double every month."""
    spec = spec_of(RACKS, {"t": [[1], [2], [1], [2], [1], [2], [1], [1]]}, sizes=1000)
    brokers = tuple(replace(each, disk_bytes=disk, network_bytes_per_sec=network) for each in spec.cluster.brokers)
    rates = Monthly((Rate("*", 1_000_000),), classes)
    spec = replace(spec, cluster=replace(spec.cluster, brokers=brokers), growth=rates, limits=Limits(**limits))
    return growth_forecast.cases(spec, months)


def test_the_month_in_which_a_broker_is_full():
    """The first one at whose beginning it holds more than its limit; five of eight partitions lie on broker 1."""
    (base, *_) = cluster(disk=9_999)
    now, planned = growth_forecast.as_it_is(base), growth_forecast.evaluate(base)

    assert ([1, 2], 1) == (now["disk_month"], now["first"])
    assert ([2, 2], 2) == (planned["disk_month"], planned["first"])
    assert [40_000, 24_000] == now["size_bytes"]
    assert [0, 1] == growth_forecast.as_it_is(cluster(disk=9_999, disk_used_ppm=500_000)[0])["disk_month"]


def test_no_limit_is_reached_where_none_is_stated():
    """Brokers without a capacity last for ever, and no brokers are added."""
    cases = cluster()

    assert ["as planned"] == [case.name for case in cases]
    assert -1 == growth_forecast.as_it_is(cases[0])["first"]


def test_network_limits_count_both_ways():
    """What is written to replicas or what leaders send, whichever is more."""
    spec = rated(bytes_in=10, ppm=1_000_000, size=1)
    brokers = tuple(replace(each, network_bytes_per_sec=75) for each in spec.cluster.brokers)
    (base, *_) = growth_forecast.cases(replace(spec, cluster=replace(spec.cluster, brokers=brokers)), 3)
    now = growth_forecast.as_it_is(base)

    assert ([2, 3], [-1, -1]) == (now["network_month"], now["disk_month"])
    assert ([80, 80], [240, 0]) == (now["network_in"], now["network_out"])


def test_leaders_that_no_election_changes_go_on_sending():
    """Broker 2 leads what 1 should, of which consumers read 10 bytes/s: it does once the plan is carried out, too."""
    changes = Changes(rebalance="none")
    spec = spec_of(RACKS, {"t": [[1, 2]]}, leaders={"t": [2]}, changes=changes, growth=Monthly((Rate("*", 0),)))
    (topic,) = spec.cluster.topics
    read = replace(topic, partitions=tuple(replace(each, bytes_out_per_sec=10) for each in topic.partitions))
    (base, *_) = growth_forecast.cases(replace(spec, cluster=replace(spec.cluster, topics=(read,))), 1)

    assert [[0, 10]] * 2 == [
        each["network_out"] for each in (growth_forecast.as_it_is(base), growth_forecast.evaluate(base))
    ]


def test_the_fewest_brokers_that_last():
    """Of each class as many as all bytes take at the least, and more; in the racks that have the fewest."""
    classes = (BrokerClass("small", 9_999), BrokerClass("big", 50_000), BrokerClass("tiny", 10))
    cases = cluster(disk=9_999, classes=classes, months=3)
    rows = growth_forecast.run(cases)
    expected = ["as planned", "5 × small", "6 × small", "1 × big", "2 × big", "4 × big"]

    assert expected == [case.name for case in cases]
    assert {"small": "6 × small", "big": "1 × big"} == growth_forecast.chosen(cases, rows)
    problem = cases[2].forecast.problem
    assert [4, 4] == np.bincount(problem.broker_racks).tolist()
    assert Broker(2, "b").id < problem.broker_ids[2]


def test_a_cluster_many_times_as_large_is_not_planned():
    """How many brokers it takes at the least is told; more than four times today's aren't tried."""
    most = (growth_forecast.MOST_TIMES - 1) * 2
    cases = cluster(disk=9_999, classes=(BrokerClass("small", 9_999),), months=3)
    beyond = cluster(disk=9_999, classes=(BrokerClass("small", 64_000 // (most + 3)),), months=3)

    assert most >= max(case.added for case in cases)
    assert ["as planned"] == [case.name for case in beyond]


def test_a_plan_that_lasts_is_the_only_one_that_is_made(monkeypatch):
    """Windows at the end besides those of today never make it cheaper."""
    made = []
    solve = growth_forecast.optimum.solve
    monkeypatch.setattr(
        growth_forecast.optimum, "solve", lambda *args, **options: made.append(1) or solve(*args, **options)
    )

    assert (-1, 1) == (growth_forecast.evaluate(cluster(disk=99_999)[0])["first"], len(made))
    made.clear()
    assert (2, 2) == (growth_forecast.evaluate(cluster(disk=9_999)[0])["first"], len(made))


def test_today_with_too_little_room_for_anything():
    """A plan is made all the same, and its month is 0."""
    (base, *_) = cluster(disk=10)

    assert 0 == growth_forecast.evaluate(base)["first"]


def test_brokers_that_would_help_get_free_ids_below_the_largest_one():
    """The largest id that Kafka knows may be taken."""
    assert [8, 9] == list(islice(growth_forecast.free_ids({0, 7}), 2))
    assert [2**31 - 1, 1, 2] == list(islice(growth_forecast.free_ids({0, 2**31 - 2}), 3))


def test_growth_beyond_every_number_ends_at_one():
    """Ten times as much each month for ten years: no warning of NumPy's, and nothing below 0."""
    with np.errstate(all="raise"):
        then = forecast(spec := rated(size=10**9, ppm=9_000_000), build(spec)).at(120)
    assert 10**18 < int(then.size_bytes[0]) < 2**63 // 2


def test_plans_keep_topics_apart():
    """A plan that would last is one that keeps the rule: no broker has both topics."""
    lists = {"a": [(1,), (2,), (3,), (1,)], "b": [(2,), (3,), (1,), (2,)]}
    spec = spec_of({1: None, 2: None, 3: None}, lists, sizes=10, apart=(Apart(("a", "b")),))
    case = growth_forecast.case_of(spec, "", "", 0, 1)
    problem = case.forecast.problem
    assignments = [assignment for _, _, assignment in growth_forecast._plans(case)]
    assert assignments
    assert [] == [broken for each in assignments for broken in independent_check.check(problem, each)]
