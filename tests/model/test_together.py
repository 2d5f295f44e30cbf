"""Slots of `together`: partitions that one broker should lead, the brokers that can, and the moves that this forces."""

from __future__ import annotations

from dataclasses import replace

from clusters import no_racks, problem_of, spec_of

from planner.model.build_problem import build
from planner.model.document_fields import PlacementRuleRow
from planner.model.spec import Changes, TopicFilter
from planner.model.together import common_brokers, without_common_broker
from planner.strategies.optimum import solve

GROUP = (("orders", "clicks"),)
STAYS = Changes(rebalance="none")


def test_partitions_with_one_number_are_a_slot() -> None:
    """Partitions of the group's topics with the same number are a slot; other topics are in none."""
    lists = {"orders": [(1,), (2,)], "clicks": [(2,), (1,)], "audit": [(1,), (2,)]}
    problem = problem_of(no_racks(1, 2), lists, together=GROUP)
    slots = dict(zip(problem.partition_keys, problem.slot_of.tolist(), strict=True))
    assert slots["orders", 0] == slots["clicks", 0] != slots["orders", 1] == slots["clicks", 1]
    assert -1 == slots["audit", 0] == slots["audit", 1]
    assert {-1} == set(problem_of(no_racks(1, 2), lists).slot_of.tolist())


def test_topics_that_are_deleted_are_in_no_slot() -> None:
    """A topic marked for deletion is in no slot; then the group's last topic isn't either."""
    spec = spec_of(no_racks(1, 2), {"orders": [(1,)], "clicks": [(2,)]}, together=GROUP)
    gone = tuple(replace(topic, deleting=topic.name == "clicks") for topic in spec.cluster.topics)
    problem = build(replace(spec, cluster=replace(spec.cluster, topics=gone)))
    assert [-1, -1] == problem.slot_of.tolist()


def test_a_broker_that_placement_takes_from_a_topic_is_no_common_broker() -> None:
    """Broker 2 has both today, and orders may not stay there: clicks is forced to follow, whatever may move."""
    rules = (PlacementRuleRow("orders", "set", (1, 3), exclusive=False),)
    lists = {"orders": [(2, 3)], "clicks": [(2,)]}
    problem = problem_of(no_racks(1, 2, 3), lists, together=GROUP, placement=rules, changes=STAYS)
    assert 0 == len(common_brokers(problem, problem.replicas)[1])
    assert problem.forced.all()
    solved = solve(problem, problem.balance).assignment
    assert 1 == len(set(solved[:, 0].tolist()))


def test_common_brokers_have_a_replica_of_each_partition() -> None:
    """Common brokers have a replica of each partition in a slot; a partition that may not move keeps its leader."""
    lists = {"orders": [(1, 2, 3), (1, 2)], "clicks": [(2, 3, 4), (3, 4)]}
    problem = problem_of(no_racks(1, 2, 3, 4), lists, together=GROUP)
    _, brokers = common_brokers(problem, problem.replicas)
    assert [2, 3] == problem.broker_ids[brokers].tolist()
    fixed = problem_of(no_racks(1, 2, 3, 4), lists, together=GROUP, topics=TopicFilter(exclude=("clicks",)))
    _, brokers = common_brokers(fixed, fixed.replicas)
    assert [2] == fixed.broker_ids[brokers].tolist()


def test_what_no_broker_can_lead_is_forced_to_move() -> None:
    """Both partitions of a slot without a common broker are forced to move, and no others."""
    lists = {"orders": [(1, 2), (1, 2)], "clicks": [(2, 3), (3, 4)]}
    problem = problem_of(no_racks(1, 2, 3, 4), lists, together=GROUP, changes=STAYS)
    assert [number == 1 for _, number in problem.partition_keys] == without_common_broker(problem).tolist()
    assert problem.forced.tolist() == without_common_broker(problem).tolist()
