"""A spec becomes a problem of flat arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from clusters import assignment_of, no_racks, problem_of, spec_of, specs
from hypothesis import given
from properties import examples

from planner.model import build_problem
from planner.model.build_problem import brokers_after, build, problem_today
from planner.model.cluster import Broker
from planner.model.document_fields import ReplicationFactorRow
from planner.model.load_history import HOURS_OF_WEEK, WeekOfLoad
from planner.model.spec import Changes, Spec, TopicFilter
from planner.scoring import broker_loads
from planner.scoring.growth_scenarios import scenario_problem


def test_arrays_by_hand() -> None:
    """All arrays are checked for a cluster with a broker added, one removed, one replaced, new racks and factors."""
    spec = spec_of(
        {4: "b", 2: "a", 9: "a"},
        {"z": [(4, 2)], "b": [(9, 4), (2,)]},
        sizes={"z": [7], "b": [5, 0]},
        leaders={"b": [4, None]},
        config={"b": (("min.insync.replicas", "2"),)},
        changes=Changes(
            add_brokers=(Broker(11, "c"), Broker(3, "b")),
            remove_brokers=(2,),
            replace_brokers=((9, 3),),
            set_racks=((4, "d"),),
            set_replication_factor=(ReplicationFactorRow("b", 2),),
        ),
        topics=TopicFilter(exclude=("z*",)),
    )
    problem = build(spec)
    assert [2, 3, 4, 9, 11] == problem.broker_ids.tolist()
    assert ("a", "b", "c", "d") == problem.rack_names
    assert [0, 1, 3, 0, 2] == problem.broker_racks.tolist()
    assert [False, True, True, False, True] == problem.targets.tolist()
    assert ("b", "z") == problem.topic_names
    assert [0, 0, 1] == problem.topic_of.tolist()
    assert [0, 1, 0] == problem.partition_ids.tolist()
    assert [[3, 2], [0, -1], [2, 0]] == problem.replicas.tolist()
    assert [2, -1, 2] == problem.leaders.tolist()
    assert [-1, -1, -1, 1, -1] == problem.replacements.tolist()
    assert [5, 0, 7] == problem.size_bytes.tolist()
    assert [2, 2, 2] == problem.replication_factors.tolist()
    assert [2, 2, 1] == problem.min_insync.tolist()
    assert [True, True, False] == problem.movable.tolist()
    assert [True, True, True] == problem.forced.tolist()
    assert (3, 2, True) == (problem.rows, problem.width, problem.racks_matter)


def test_forced_by_each_change() -> None:
    """A partition is forced by a leaving broker, a new factor, or racks that make its spread worse; by nothing else."""
    racks = {1: "a", 2: "b", 3: "c"}
    rows = {"x": [(1, 2), (2, 3), (3, 1)]}
    asked = [
        (Changes(), [False, False, False]),
        (Changes(remove_brokers=(1,), add_brokers=(Broker(7, "a"),)), [True, False, True]),
        (Changes(set_replication_factor=(ReplicationFactorRow("x", 2),)), [False, False, False]),
        (Changes(set_replication_factor=(ReplicationFactorRow("x", 3),)), [True, True, True]),
        (Changes(set_racks=((3, "b"),)), [False, True, False]),
        (Changes(add_brokers=(Broker(7, "d"),)), [False, False, False]),
    ]
    assert [expected for _, expected in asked] == [
        problem_of(racks, rows, changes=changes).forced.tolist() for changes, _ in asked
    ]


def test_set_racks_that_crowd_a_rack_force() -> None:
    """New racks hold three replicas and one instead of two and two, so the partition is forced, with as many racks."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b", 6: "b"}
    problem = problem_of(
        racks, {"x": [(1, 2, 3, 4)]}, changes=Changes(set_racks=((2, "b"), (5, "a")), rebalance="none")
    )
    assert [True] == problem.forced.tolist()


def test_brokers_after_have_their_new_racks() -> None:
    """Brokers of today and added ones are sorted by id; set_racks counts for both."""
    changes = Changes(add_brokers=(Broker(1, "x"),), set_racks=((1, "y"), (5, "z")))
    spec = spec_of({5: "a", 3: "b"}, {"t": [(5,)]}, changes=changes)
    assert [Broker(1, "y"), Broker(3, "b"), Broker(5, "z")] == brokers_after(spec)


@examples(80)
@given(specs(rebalance=("all", "leaders", "racks", "none")))
def test_nothing_is_lost(spec: Spec) -> None:
    """Every partition is there once with its replicas, leader and size, whatever the order of topics and brokers."""
    problem = build(spec)
    ids = problem.broker_ids.tolist()
    found = {
        (problem.topic_names[topic], number, tuple(ids[b] for b in row if b >= 0), size): ids[leader]
        if leader >= 0
        else None
        for topic, number, row, size, leader in zip(
            problem.topic_of.tolist(),
            problem.partition_ids.tolist(),
            problem.replicas.tolist(),
            problem.size_bytes.tolist(),
            problem.leaders.tolist(),
            strict=True,
        )
    }
    expected = {
        (topic.name, part.id, part.replicas, part.size_bytes): part.leader
        for topic in spec.cluster.topics
        for part in topic.partitions
    }
    assert expected == found


def test_racks_force_what_breaks_the_rule_and_may_move() -> None:
    """`rebalance: racks` forces what breaks the rack rule, except excluded topics and partitions without a leader."""
    racks, rows = {1: "a", 2: "a", 3: "b"}, {"even": [(1, 3)], "kept": [(1, 2)], "x": [(2, 1), (1, 2)]}
    kept = TopicFilter(exclude=("kept",))
    for rebalance, forced in (("racks", [False, False, True, False]), ("none", [False] * 4), ("all", [False] * 4)):
        changes = Changes(rebalance=rebalance)  # type: ignore[arg-type]
        spec = spec_of(racks, rows, leaders={"x": [2, None]}, changes=changes, topics=kept)
        assert forced == build(spec).forced.tolist()


ROWS = {"x": [(1, 2), (2, 3), (3, 1)]}


def week(peaks: list[dict[int, float]]) -> WeekOfLoad:
    """Partitions of x with 10 bytes/s in, except in the given hours, and twice as many out."""
    hours = np.full((2, len(peaks), HOURS_OF_WEEK), 10.0)
    for row, peak in enumerate(peaks):
        hours[0, row, list(peak)] = list(peak.values())
    hours[1] = 2 * hours[0]
    return WeekOfLoad({("x", row): row for row in range(len(peaks))}, np.rint(hours.mean(axis=2)), hours)


def problem(known: WeekOfLoad):
    """A spec of three brokers with these hours, and its problem; the rates are the means."""
    spec = spec_of(no_racks(1, 2, 3), ROWS, week=known)
    (topic,) = spec.cluster.topics
    means = np.rint(known.means).astype(int)
    partitions = tuple(
        replace(each, bytes_in_per_sec=int(means[0, at]), bytes_out_per_sec=int(means[1, at]))
        for at, each in enumerate(topic.partitions)
    )
    spec = replace(spec, cluster=replace(spec.cluster, topics=(replace(topic, partitions=partitions),)))
    return spec, build(spec)


def test_loads_of_an_hour_are_those_of_its_rates() -> None:
    """In each hour, the brokers' loads are those of a problem with that hour's rates."""
    _, found = problem(week([{5: 70}, {5: 30, 100: 900}, {167: 55}]))
    hours = build_problem.hours_of_partitions(found, week([{5: 70}, {5: 30, 100: 900}, {167: 55}]))
    assignment = assignment_of(found, [(2, 1), (3,), (1, 3)])
    by_hour = build_problem.hours_of_brokers(found, hours, assignment, assignment[:, 0])
    for hour in range(HOURS_OF_WEEK):
        then = replace(found, bytes_in_per_sec=hours[0, :, hour], bytes_out_per_sec=hours[1, :, hour])
        assert np.array_equal(broker_loads.loads(then, assignment)[1:], by_hour[:, :, hour])


def test_a_problem_has_the_hours_as_scenarios_of_traffic() -> None:
    """Each busy hour is a scenario with its name, its rates and today's sizes; the cluster today has no scenarios."""
    spec, found = problem(week([{5: 700}, {100: 900}, {}]))
    # Hour 100 is the cluster's busiest, in hour 5 broker 1 sends most, and broker 3 sends the same in each hour.
    assert ("Friday 04:00 UTC", "Monday 05:00 UTC", "Monday 00:00 UTC") == found.scenario_names
    then = scenario_problem(found, 1)
    assert [700, 10, 10] == then.bytes_in_per_sec.tolist()
    assert [1400, 20, 20] == then.bytes_out_per_sec.tolist()
    assert found.size_bytes.tolist() == then.size_bytes.tolist()
    assert () == problem_today(spec).scenario_names


def test_a_spread_that_is_the_best_possible_is_not_forced() -> None:
    """`set_racks` turns three racks into two: two replicas in one rack are then the best spread, and not forced."""
    requested = Changes(set_racks=((3, "b"),), rebalance="none")
    problem = build(spec_of({1: "a", 2: "b", 3: "c"}, {"t": [(1, 2, 3)]}, changes=requested))
    assert not problem.forced.any()
    worse = build(
        spec_of(
            {1: "a", 2: "a", 3: "b", 4: "b"}, {"t": [(1, 4)]}, changes=Changes(set_racks=((4, "a"),), rebalance="none")
        )
    )
    assert worse.forced.all()
