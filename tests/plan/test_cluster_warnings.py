"""The warnings of a plan: topics without a replica to spare for min.insync.replicas, cordoned and demoted brokers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.model.balance import Tolerance
from planner.model.build_problem import build
from planner.model.cluster import Broker, Cluster, LogDir, Partition, PartitionChange, Reason, Topic
from planner.model.document_fields import LeaderRacksRow, PlacementRuleRow, ReplicationFactorRow
from planner.model.problem import Problem
from planner.model.spec import Budget, Changes, NewPartitions, Rebalance, Spec, TopicFilter
from planner.plan.cluster_warnings import (
    at_min_isr,
    copied_without_need,
    crowded,
    led_by_demoted,
    of_assignment,
    preferred_above_caps,
    warnings,
)
from planner.strategies.optimum import solve
from planner.sweep.budget_steps import first_step

BROKERS = tuple(Broker(number) for number in range(1, 5))


def topic(name: str, replicas: int, least: int | None = None, deleting: bool = False) -> Topic:
    """A topic with one partition; `least` is its own min.insync.replicas."""
    config = () if least is None else (("min.insync.replicas", str(least)),)
    return Topic(name, (Partition(0, tuple(range(1, replicas + 1)), 1),), config, deleting)


def told(*topics: Topic, defaults: int = 1, **requested: object) -> list[str]:
    """The warnings for a cluster whose topics inherit a min.insync.replicas of `defaults`."""
    cluster = Cluster("c", BROKERS, topics, config_defaults=(("min.insync.replicas", str(defaults)),))
    spec = Spec(cluster, Changes(**requested))  # type: ignore[arg-type]
    return list(at_min_isr(spec, build(spec)))


def to(factor: int) -> tuple[ReplicationFactorRow, ...]:
    """A change that gives every topic this factor."""
    return (ReplicationFactorRow("*", factor),)


ONE_DOWN = "while one of their brokers is down, writes with acks=all are refused"


@pytest.mark.parametrize(
    ("today", "factor", "least", "expected"),
    [
        (3, 2, 2, f"1 topic lowered to as many replicas as min.insync.replicas (t): {ONE_DOWN}"),
        (1, 2, 2, f"1 topic raised only to min.insync.replicas (t): {ONE_DOWN}"),
        (2, 1, 1, "1 topic lowered to one replica (t): offline while its broker is down"),
    ],
)
def test_what_the_plan_changes(today: int, factor: int, least: int, expected: str) -> None:
    """A changed factor that leaves no replica to spare has a warning, and each case has its own words."""
    assert [expected] == told(topic("t", today), defaults=least, set_replication_factor=to(factor))


def test_what_stays_is_told_once_with_the_first_of_them() -> None:
    """Topics that stay at min.insync.replicas, or below, are counted, with some names; deleted topics don't count."""
    kept = [topic(f"t{number}", 2) for number in range(5)]
    found = told(*kept, topic("own", 3, least=3), topic("less", 1), topic("gone", 1, deleting=True), defaults=2)
    assert [
        f"6 topics kept with as many replicas as min.insync.replicas (own, t0, t1 and 3 more): {ONE_DOWN}",
        f"1 topic kept with fewer replicas than min.insync.replicas (less): {ONE_DOWN}; before Kafka 3.7, always",
    ] == found


def test_new_topics_too() -> None:
    """New topics inherit min.insync.replicas, and have the warning too."""
    new = (NewPartitions("new", 0, 2, 2),)
    (found,) = told(topic("t", 3), defaults=2, new_partitions=new)
    assert found == f"1 topic with new partitions of as many replicas as min.insync.replicas (new): {ONE_DOWN}"


@pytest.mark.parametrize(("today", "factor", "least"), [(1, 1, 1), (2, 3, 2), (3, 2, 1)])
def test_a_replica_to_spare_is_no_warning(today: int, factor: int, least: int) -> None:
    """No warning if a replica can fail, or if a topic keeps its one replica."""
    assert [] == told(topic("t", today), defaults=least, set_replication_factor=to(factor))


def test_preferred_leaders_above_a_cap_are_named_where_others_lead() -> None:
    """Broker 1 leads one of the three partitions that prefer it: its cap of 2 holds until Kafka elects the others."""
    rows = [(1, 2), (1, 3), (1, 2)]
    brokers = (Broker(1, max_leaders=2), Broker(2), Broker(3))
    parts = tuple(Partition(at, row, leader) for at, (row, leader) in enumerate(zip(rows, (1, 3, 2), strict=True)))
    spec = Spec(Cluster("c", brokers, (Topic("t", parts),)), Changes(rebalance="none"))
    problem = build(spec)
    (warned,) = preferred_above_caps(problem, solve(problem, problem.balance).assignment)
    assert warned.startswith("broker 1: preferred leader of more partitions than max_leaders (broker 1: 3, at most 2)")
    led = build(replace(spec, changes=Changes(rebalance="leaders")))
    assert [] == list(preferred_above_caps(led, solve(led, led.balance).assignment))


@pytest.mark.parametrize(
    ("demoted", "expected"),
    [
        ((1,), ["2 partitions (t-0, t-1) with replicas only on demoted broker 1"]),
        ((1, 2), ["3 partitions (t-0, t-1, t-2) with replicas only on demoted brokers 1, 2"]),
        ((4,), []),
    ],
)
def test_what_only_demoted_brokers_can_lead_is_named(demoted: tuple[int, ...], expected: list[str]) -> None:
    """Partitions that only demoted brokers can lead are named, and stay led there; other brokers lead the rest."""
    lists = ((1,), (1,), (1, 2), (2, 3), (3, 1))
    old = Topic("t", tuple(Partition(number, row, row[0]) for number, row in enumerate(lists)))
    spec = Spec(Cluster("c", BROKERS, (old,)), Changes(demote_brokers=demoted, rebalance="none"))
    problem = build(spec)
    assignment = solve(problem, problem.balance).assignment
    led_there = [row for row in lists if row[0] in demoted and set(row) <= set(demoted)]

    assert [f"{each}: still led there, and offline while that is down" for each in expected] == list(
        led_by_demoted(spec, problem, assignment)
    )
    assert len(led_there) == sum(problem.broker_ids[assignment[:, 0]].tolist().count(broker) for broker in demoted)


def test_partitions_that_only_demoted_brokers_hold_are_named_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of all partitions are made once for a warning, not for each partition in it: that is quadratic."""
    old = Topic("t", tuple(Partition(number, (1,), 1) for number in range(50)))
    spec = Spec(Cluster("c", BROKERS, (old,)), Changes(demote_brokers=(1,), rebalance="none"))
    problem, made = build(spec), list[int]()
    names = [("t", number) for number in range(50)]
    monkeypatch.setattr(Problem, "partition_keys", property(lambda _: made.append(1) or names))

    (warned,) = led_by_demoted(spec, problem, problem.replicas)
    assert warned.startswith("50 partitions (t-0, t-1, t-2")
    assert 1 == len(made)


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ({"together": (("t", "u"),)}, "together"),
        ({"changes": Changes(demote_brokers=(3,))}, "changes.demote_brokers"),
        ({"leader_racks": (LeaderRacksRow("*", ("b",)),)}, "leader_racks"),
    ],
)
@pytest.mark.parametrize("led", [False, True])
def test_rules_on_leaders_that_partitions_without_a_leader_break_are_named(
    asked: dict[str, Any], rule: str, led: bool
) -> None:
    """u-0 isn't led by broker 2, as a rule asks, because nothing is elected for it; with a leader, it is."""
    lists = {"t": (2, 1), "u": (3, 2)}
    topics = tuple(
        Topic(name, (Partition(0, row, row[0] if led or name == "t" else None, row),)) for name, row in lists.items()
    )
    brokers = tuple(Broker(broker, rack) for broker, rack in ((1, "a"), (2, "b"), (3, "c")))
    spec = Spec(Cluster("c", brokers, topics), **asked)
    problem = build(spec)
    told = f"1 partition (u-0) without a leader, so not led as {rule} asks: plan again once a replica in sync is back"
    found = solve(problem, problem.balance).assignment
    assert ([] if led else [told]) == list(of_assignment(spec, problem, found))
    excluded = replace(spec, topics=TopicFilter(exclude=("u",)))
    assert led or not list(of_assignment(excluded, build(excluded), found))


def test_what_on_brokers_keeps_where_placement_forbids_it_is_named() -> None:
    """t-1 has no replica on broker 1, so on_brokers keeps it on broker 3, and that is named; t-0 leaves broker 3."""
    old = Topic("t", tuple(Partition(number, row, row[0]) for number, row in enumerate(((1, 3), (2, 3), (1, 2)))))
    rule = PlacementRuleRow("t", "few", (1, 2), exclusive=False)
    spec = Spec(Cluster("c", BROKERS, (old,)), placement=(rule,), topics=TopicFilter(on_brokers=(1,)))
    problem = build(spec)
    told = "1 partition (t-1) on brokers that placement or apart forbids: topics.on_brokers keeps them there"
    assert [told] == list(of_assignment(spec, problem, solve(problem, problem.balance).assignment))


@pytest.mark.parametrize(("most", "above"), [(3, []), (2, ["brokers 1–2"])])
def test_more_leaders_than_max_leaders_are_named_while_a_broker_is_in_no_isr(most: int, above: list[str]) -> None:
    """The others lead six partitions: three each are within the cap, or the warning names who is above it."""
    old = Topic("t", tuple(Partition(number, (1, 2, 3), 1, (1, 2)) for number in range(6)))
    capped = tuple(replace(broker, max_leaders=most) for broker in BROKERS[:2])
    problem = build(spec := Spec(Cluster("c", (*capped, BROKERS[2]), (old,)), Changes(rebalance="leaders")))
    told = "while broker 3 can't lead (in no ISR); plan again once all is in sync"
    assert [f"above max_leaders: {each}, {told}" for each in above] == list(
        of_assignment(spec, problem, solve(problem, problem.balance).assignment)
    )


@pytest.mark.parametrize(("insync", "named"), [((2,), True), ((2, 1), False)])
def test_partitions_led_elsewhere_while_the_preferred_rack_is_down_are_named(
    insync: tuple[int, ...], named: bool
) -> None:
    """Broker 1 is the only replica in the rack that leader_racks prefers; in no ISR, it can't be elected."""
    racks = tuple(Broker(number, rack) for number, rack in ((1, "a"), (2, "b")))
    old = Topic("t", (Partition(0, (2, 1), 2, insync),))
    spec = Spec(Cluster("c", racks, (old,)), Changes(rebalance="none"), leader_racks=(LeaderRacksRow("*", ("a",)),))
    told = (
        "1 partition (t-0) not led in the rack that leader_racks prefers, while broker 1 can't lead (in no ISR); "
        "plan again once all is in sync"
    )
    problem = build(spec)
    assert [told] * named == list(of_assignment(spec, problem, solve(problem, problem.balance).assignment))


@pytest.mark.parametrize(
    ("rebalance", "after", "expected"),
    [
        ("all", (4,), ["; to keep all that can stay, plan with changes.rebalance: none"]),
        ("none", (4,), [""]),
        ("all", (2,), []),
    ],
)
def test_partitions_without_a_leader_that_move_without_need_are_named(
    rebalance: Rebalance, after: tuple[int, ...], expected: list[str]
) -> None:
    """One of three replicas may stay; a plan that copies to a fourth broker instead says so, and what avoids it."""
    old = Topic("t", (Partition(0, (3, 1, 2), None),))
    changes = Changes(set_replication_factor=to(1), rebalance=rebalance)
    changed = PartitionChange("t", 0, (3, 1, 2), after, None, 1, Reason.REPLICATION_FACTOR)
    said = "1 partition (t-0) without a leader: more replicas are copied than must be, for balance or a rule"
    assert [f"{said}{each}" for each in expected] == list(
        copied_without_need(build(Spec(Cluster("c", BROKERS, (old,)), changes)), [changed])
    )


def test_what_a_broker_that_leaves_makes_copy_is_not_named() -> None:
    """Broker 3 leaves and broker 1 keeps its replica: one replica has to be copied, once there is a leader."""
    old = Topic("t", (Partition(0, (3, 1), None),))
    problem = build(Spec(Cluster("c", BROKERS, (old,)), Changes(remove_brokers=(3,))))
    few, more = (PartitionChange("t", 0, (3, 1), after, None, 1, Reason.BROKER_LEAVES) for after in ((2, 1), (2, 4)))
    assert [] == list(copied_without_need(problem, [few]))
    assert 1 == len(list(copied_without_need(problem, [few, more])))


def test_what_a_budget_leaves_where_placement_forbids_it_is_not_said_to_be_kept() -> None:
    """Both partitions leave broker 3, one of them in a later step: there is no warning that one is kept."""
    old = Topic("t", tuple(Partition(number, row, row[0]) for number, row in enumerate(((1, 3), (2, 3)))))
    rule = PlacementRuleRow("t", "few", (1, 2), exclusive=False)
    spec = Spec(Cluster("c", BROKERS, (old,)), placement=(rule,), budget=Budget(replicas_moved=1))
    problem = first_step(build(spec))
    assert problem.waits.sum() == 1
    assert not list(of_assignment(spec, problem, solve(problem, problem.balance).assignment))


@pytest.mark.parametrize(
    ("shut", "expected"),
    [
        ((), []),
        ((2,), ["broker 2 is cordoned (cordoned.log.dirs): no new replica goes there, and the other brokers share it"]),
        (
            (2, 3),
            ["brokers 2–3 are cordoned (cordoned.log.dirs): no new replica goes there, and the other brokers share it"],
        ),
        # A broker that leaves gets no replicas anyway.
        ((4,), []),
    ],
)
def test_brokers_that_get_nothing_are_named(shut: tuple[int, ...], expected: list[str]) -> None:
    """Cordoned brokers are named, because a plan that gives a broker nothing would look like a mistake."""
    brokers = tuple(replace(each, cordoned_log_dirs=("*",) * (each.id in shut)) for each in BROKERS)
    spec = Spec(Cluster("c", brokers, (topic("t", 2),)), Changes(remove_brokers=(4,)))
    found = [each for each in warnings(spec, build(spec), ()) if "cordoned" in each]
    assert [each.replace("share it", "share the rest") for each in expected] == found


@pytest.mark.parametrize(("held", "expected"), [(6, 1), (1, 0)])
def test_a_new_topic_on_few_brokers(held: int, expected: int) -> None:
    """A warning says if all of a new topic goes to brokers far emptier than the others; otherwise there is none."""
    old = Topic("old", tuple(Partition(number, (number % 3 + 1,), number % 3 + 1) for number in range(3 * held)))
    spec = Spec(
        Cluster("c", BROKERS, (old,)), Changes(new_partitions=(NewPartitions("new", 0, 5, 1),), rebalance="none")
    )
    problem = build(spec)
    found = list(crowded(problem, solve(problem, problem.balance).assignment))
    told = "1 new topic on few brokers, the emptiest: of new, broker 4 holds 5 replicas, with an even spread 2 at most"
    assert [told] * expected == found


def test_what_a_partition_without_a_size_means_for_the_plan() -> None:
    """More is copied than the plan says only if it copies a partition without a size."""
    spec = Spec(Cluster("c", BROKERS, (topic("t", 1),), sizes_known=True, unsized=1), Changes())
    change = PartitionChange("t", 0, (1,), (2, 1), 1, 0, Reason.BALANCE_REPLICAS)
    moves = ([change], [replace(change, size_bytes=9)], [replace(change, after=(1,))])
    told = [next(each for each in warnings(spec, build(spec), move) if "without a size" in each) for move in moves]
    start = "1 partition without a size, counted as empty: "
    more = ("more bytes move", "brokers hold more", "brokers hold more")
    assert [f"{start}{each} than the plan says" for each in more] == told


def test_racks_that_differ_only_in_capital_letters_are_named() -> None:
    """Such racks are most likely one rack, misspelled, but Kafka takes them for two."""
    racks = dict(zip((1, 2, 3, 4), ("a", "A", "b", "c"), strict=True))
    brokers = tuple(replace(each, rack=racks[each.id]) for each in BROKERS)
    spec = Spec(Cluster("c", brokers, (topic("t", 1),)), Changes())
    found = [each for each in warnings(spec, build(spec), ()) if "capital" in each]
    assert ["racks A, a differ only in capital letters, and count as different racks"] == found

    mended = replace(spec, changes=Changes(set_racks=((2, "a"),)))
    assert not [each for each in warnings(mended, build(mended), ()) if "capital" in each]


def test_log_dirs_that_are_listed_for_nothing() -> None:
    """A warning says if a broker lists log dirs and gets a replica, but balance.log_dirs isn't asked for."""
    several = tuple(replace(each, log_dirs=(LogDir("/a"), LogDir("/b"))) for each in BROKERS[1:])
    spec = Spec(Cluster("c", (BROKERS[0], *several), (topic("t", 1),)), Changes())
    change = PartitionChange("t", 0, (1,), (2, 1), 1, 0, Reason.BALANCE_REPLICAS)
    said = (
        "log_dirs of broker 2 aren't planned (no balance.log_dirs): Kafka puts each new replica into the log dir with "
        "the fewest partitions, however full it is"
    )
    planned = replace(spec, log_dirs=Tolerance.parse("10%"))
    told = [[*warnings(each, build(each), moves)] for each in (spec, planned) for moves in ([change], [])]
    assert [True, False, False, False] == [said in each for each in told]
