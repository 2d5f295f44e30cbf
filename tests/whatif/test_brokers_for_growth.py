"""The month in which a broker reaches a limit, and the brokers that would help."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
from clusters import no_racks, spec_of
from growing_topics import RACKS, rated

from planner.model.cluster import Broker
from planner.model.document_fields import Apart, ReplicationFactorRow, SpecLimits
from planner.model.spec import BrokerClass, Changes, Monthly, Rate
from planner.scoring import independent_check
from planner.whatif import brokers_for_growth

MB = 10**6


def cluster(disk=None, network=None, classes=(), months=3, **limits):
    """Two equal brokers with eight partitions of a thousand bytes each, which double every month."""
    spec = spec_of(RACKS, {"t": [[1], [2], [1], [2], [1], [2], [1], [1]]}, sizes=1000)
    brokers = tuple(replace(each, disk_bytes=disk, network_bytes_per_sec=network) for each in spec.cluster.brokers)
    rates = Monthly((Rate("*", 1_000_000),), classes)
    spec = replace(spec, cluster=replace(spec.cluster, brokers=brokers), growth=rates, limits=SpecLimits(**limits))
    return brokers_for_growth.cases(spec, months)


def test_the_month_in_which_a_broker_is_full():
    """The month is the first that begins above the limit; broker 1 has five of eight partitions."""
    (base, *_) = cluster(disk=9_999)
    now, planned = brokers_for_growth.today_row(base), brokers_for_growth.evaluate(base)

    assert ([1, 2], 1) == (now["disk_month"], now["first"])
    assert ([2, 2], 2) == (planned["disk_month"], planned["first"])
    assert [40_000, 24_000] == now["size_bytes"]
    assert [0, 1] == brokers_for_growth.today_row(cluster(disk=9_999, disk_used_ppm=500_000)[0])["disk_month"]


def test_no_limit_is_reached_where_none_is_stated():
    """Brokers without a capacity never reach a limit, and no brokers are added."""
    cases = cluster()

    assert ["as planned"] == [case.name for case in cases]
    assert -1 == brokers_for_growth.today_row(cases[0])["first"]


def test_network_limits_count_both_ways():
    """The larger of writes to replicas and reads from leaders counts against the network."""
    spec = rated(bytes_in=10, ppm=1_000_000, size=1)
    brokers = tuple(replace(each, network_bytes_per_sec=75) for each in spec.cluster.brokers)
    (base, *_) = brokers_for_growth.cases(replace(spec, cluster=replace(spec.cluster, brokers=brokers)), 3)
    now = brokers_for_growth.today_row(base)

    assert ([2, 3], [-1, -1]) == (now["network_month"], now["disk_month"])
    assert ([80, 80], [240, 0]) == (now["network_in"], now["network_out"])


def test_leaders_that_no_election_changes_go_on_sending():
    """Broker 2 leads broker 1's partition, with 10 bytes/s of reads; without an election it still does later."""
    changes = Changes(rebalance="none")
    spec = spec_of(RACKS, {"t": [[1, 2]]}, leaders={"t": [2]}, changes=changes, growth=Monthly((Rate("*", 0),)))
    (topic,) = spec.cluster.topics
    read = replace(topic, partitions=tuple(replace(each, bytes_out_per_sec=10) for each in topic.partitions))
    (base, *_) = brokers_for_growth.cases(replace(spec, cluster=replace(spec.cluster, topics=(read,))), 1)

    assert [[0, 10]] * 2 == [
        each["network_out"] for each in (brokers_for_growth.today_row(base), brokers_for_growth.evaluate(base))
    ]


def test_the_fewest_brokers_that_last():
    """For each class, from the fewest brokers for all bytes upwards, in the racks with the fewest brokers."""
    classes = (BrokerClass("small", 9_999), BrokerClass("big", 50_000), BrokerClass("tiny", 10))
    cases = cluster(disk=9_999, classes=classes, months=3)
    rows = [brokers_for_growth.evaluate(each) for each in cases]
    expected = ["as planned", "5 × small", "6 × small", "1 × big", "2 × big", "3 × big", "4 × big"]

    assert expected == [case.name for case in cases]
    assert {"small": "6 × small", "big": "1 × big"} == brokers_for_growth.fewest_by_class(cases, rows)
    problem = cases[2].forecast.problem
    assert [4, 4] == np.bincount(problem.broker_racks).tolist()
    assert Broker(2, "b").id < problem.broker_ids[2]


def test_the_caps_of_a_class_hold_for_the_brokers_that_are_added():
    """Brokers of a class are added with its caps, as a plan for such brokers in the YAML would have them."""
    capped = BrokerClass("capped", 50_000, None, max_replicas=1, max_disk_bytes=20_000)
    cases = cluster(disk=9_999, classes=(capped,), months=3)
    problem = next(case for case in cases if case.added == 4).forecast.problem

    assert [1] * 4 == problem.caps[0, 2:].tolist()
    assert [20_000] * 4 == problem.disk_limit_bytes[2:].tolist()


def test_a_cluster_many_times_as_large_is_not_planned():
    """If more than four times today's brokers are needed, the number is stated, but no plan is tried."""
    most = (brokers_for_growth.MOST_TIMES - 1) * 2
    cases = cluster(disk=9_999, classes=(BrokerClass("small", 9_999),), months=3)
    beyond = cluster(disk=9_999, classes=(BrokerClass("small", 64_000 // (most + 3)),), months=3)

    assert most >= max(case.added for case in cases)
    assert ["as planned"] == [case.name for case in beyond]


def test_only_added_brokers_are_planned_for_the_end_too(monkeypatch):
    """If a plan for today's windows doesn't last, clusters with added brokers get a plan for windows at the end.

    The plan of the changes themselves is the one that `planner whatif` makes.
    """
    made = []
    solve = brokers_for_growth.optimum.solve
    monkeypatch.setattr(
        brokers_for_growth.optimum, "solve", lambda *args, **options: made.append(1) or solve(*args, **options)
    )

    assert (-1, 1) == (brokers_for_growth.evaluate(cluster(disk=99_999)[0])["first"], len(made))
    made.clear()
    base = cluster(disk=9_999)[0]
    assert (2, 1) == (brokers_for_growth.evaluate(base)["first"], len(made))
    made.clear()
    assert (2, 2) == (brokers_for_growth.evaluate(replace(base, added=1))["first"], len(made))


def test_today_with_too_little_room_for_anything():
    """If the disks are too small today, there is still a plan, and its month is 0."""
    (base, *_) = cluster(disk=10)

    assert 0 == brokers_for_growth.evaluate(base)["first"]


def test_brokers_that_would_help_get_free_ids_below_the_largest_one():
    """Added brokers get free ids above today's; after Kafka's largest id, lower free ones."""
    assert [8, 9] == list(islice(brokers_for_growth.free_ids({0, 7}), 2))
    assert [2**31 - 1, 1, 2] == list(islice(brokers_for_growth.free_ids({0, 2**31 - 2}), 3))


def test_plans_keep_topics_apart(monkeypatch):
    """Growth's plans keep topics apart: no broker has both."""
    lists = {"a": [(1,), (2,), (3,), (1,)], "b": [(2,), (3,), (1,), (2,)]}
    spec = spec_of({1: None, 2: None, 3: None}, lists, sizes=10, apart=(Apart(("a", "b")),))
    case = brokers_for_growth.case_of(spec, "", "", 0, 1)
    problem = case.forecast.problem
    made, given = [], brokers_for_growth.row_of
    monkeypatch.setattr(brokers_for_growth, "row_of", lambda of, found: made.append(found) or given(of, found))
    brokers_for_growth.evaluate(case)
    assert made
    assert [] == [broken for each in made for broken in independent_check.check(problem, each)]


def test_the_fewest_brokers_are_counted_with_the_replication_factors_of_the_changes():
    """Three replicas of 40 bytes need one more broker of 30; one or two need none, so none is asked for."""
    brokers = tuple(Broker(number, disk_bytes=30) for number in (1, 2, 3))
    for factor, least in ((None, 1), (1, 0), (2, 0)):
        asked = () if factor is None else (ReplicationFactorRow("t", factor),)
        spec = spec_of(
            no_racks(1, 2, 3), {"t": [(1, 2, 3)]}, sizes={"t": [40]}, changes=Changes(set_replication_factor=asked)
        )
        spec = replace(spec, cluster=replace(spec.cluster, brokers=brokers))
        base = brokers_for_growth.case_of(spec, "", "", 0, 1)
        assert least == brokers_for_growth.at_least(spec, base, BrokerClass("like", 30))
