"""A plan's changes with their reasons, and intermediate replica lists: few replicas at a time, racks apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusters import assignment_of, no_racks, problem_of, problems
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.execution.partition_changes import bytes_in_and_out, changes, replica_lists, steps_of
from planner.model.build_problem import today
from planner.model.cluster import PartitionChange, Reason
from planner.model.document_fields import ReplicationFactorRow
from planner.model.problem import Problem
from planner.model.spec import BatchRules, Changes, TopicFilter
from planner.strategies.optimum import solve

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}


def reasons(problem: Problem, rows: list[tuple[int, ...]]) -> list[Reason]:
    """The reasons of an assignment's changes."""
    return [change.reason for change in changes(problem, assignment_of(problem, rows))]


def test_reason_of_each_kind() -> None:
    """A change has the first reason that applies: the broker leaves, racks, replication factor, replicas, leaders."""
    rows = {"a": [(4, 1), (1, 2), (1, 3), (1, 3), (3, 2)], "b": [(1, 3)]}
    requested = Changes(remove_brokers=(4,), set_replication_factor=(ReplicationFactorRow("b", 1),))
    problem = problem_of(RACKS, rows, changes=requested)
    found = reasons(problem, [(3, 1), (1, 3), (1, 3), (2, 3), (2, 3), (3,)])
    assert [
        Reason.BROKER_LEAVES,
        Reason.RACK_RULE,
        Reason.BALANCE_REPLICAS,
        Reason.BALANCE_LEADERS,
        Reason.REPLICATION_FACTOR,
    ] == found


def test_a_change_by_hand() -> None:
    """One change, checked in full: ids, lists, leader, size, and the replicas added and removed."""
    problem = problem_of(no_racks(5, 7, 9), {"a": [(5, 7)]}, sizes=42, leaders={"a": [7]})
    expected = PartitionChange("a", 0, (5, 7), (9, 7), 7, 42, Reason.BALANCE_REPLICAS)
    assert (expected,) == changes(problem, assignment_of(problem, [(9, 7)]))
    assert ((9,), (5,), True, True) == (expected.adding, expected.removing, expected.reassigned, expected.elects)


def test_elections_alone() -> None:
    """A partition not led by its preferred leader is a change without a reassignment, unless it has no leader."""
    problem = problem_of(no_racks(1, 2), {"a": [(1, 2), (1, 2), (2, 1)]}, leaders={"a": [2, None, 2]})
    found = changes(problem, today(problem))
    assert [(0, False, True, 2)] == [
        (change.partition, change.reassigned, change.elects, change.leader_before) for change in found
    ]


def test_no_elections_where_nothing_may_change() -> None:
    """Partitions of excluded topics, and all partitions with `rebalance: none`, get no elections."""
    rows, led = {"a": [(1, 2)], "b": [(1, 2)]}, {"a": [2], "b": [2]}
    kept = problem_of(no_racks(1, 2), rows, leaders=led, topics=TopicFilter(exclude=("a",)))
    assert ["b"] == [change.topic for change in changes(kept, today(kept))]
    none = problem_of(no_racks(1, 2), rows, leaders=led, changes=Changes(rebalance="none"))
    assert () == changes(none, today(none))


def test_bytes_in_and_out_by_hand() -> None:
    """Bytes go from today's leader, or the preferred one if there is none, to the new replicas."""
    rows = {"a": [(1, 2), (2, 1)]}
    problem = problem_of(no_racks(1, 2, 3), rows, sizes={"a": [10, 7]}, leaders={"a": [2, None]})
    arriving, leaving = bytes_in_and_out(problem, assignment_of(problem, [(1, 3), (3, 1)]))
    assert ([0, 0, 17], [0, 17, 0]) == (arriving.tolist(), leaving.tolist())


@examples(60)
@given(problems(rebalance=("all", "leaders", "none")))
def test_changes_applied_are_the_plan(problem: Problem) -> None:
    """Today's lists with every change applied are the plan; all others stay; bytes in are bytes out are the score's."""
    assignment = solve(problem, problem.balance).assignment
    ids = problem.broker_ids.tolist()
    lists = {
        (problem.topic_names[topic], number): tuple(ids[broker] for broker in row if broker >= 0)
        for topic, number, row in zip(problem.topic_of, problem.partition_ids, problem.replicas.tolist(), strict=True)
    }
    found = changes(problem, assignment)
    assert sorted((change.topic, change.partition) for change in found) == [(c.topic, c.partition) for c in found]
    for change in found:
        assert lists[change.topic, change.partition] == change.before
        assert change.reassigned or change.elects
        lists[change.topic, change.partition] = change.after
    assert [tuple(ids[b] for b in row if b >= 0) for row in assignment.tolist()] == list(lists.values())
    arriving, leaving = bytes_in_and_out(problem, assignment)
    copied = sum(change.size_bytes * len(change.adding) for change in found)
    assert copied == arriving.sum() == leaving.sum()
    assert not arriving[~problem.targets].any()
    assert np.all(arriving >= 0)


def lists(
    before: tuple[int, ...], after: tuple[int, ...], at_most: int | None, racks: str = ""
) -> list[tuple[int, ...]]:
    """The lists after each step; broker n is in rack `racks[n]`."""
    change = PartitionChange("t", 0, before, after, before[0], 1, Reason.BALANCE_REPLICAS)
    pairs = list(replica_lists(change, at_most, dict(enumerate(racks))))
    assert [before, *(reached for _, reached in pairs)] == [*(start for start, _ in pairs), after]
    return [reached for _, reached in pairs]


def test_without_a_limit_there_is_one_step() -> None:
    """Without a limit one step adds all replicas."""
    assert [(4, 5, 6)] == lists((1, 2, 3), (4, 5, 6), None)


def test_a_list_that_shrinks_or_turns_takes_one_step() -> None:
    """A list that only shrinks or changes its order takes one step, because nothing is copied."""
    assert [(2,)] == lists((1, 2, 3), (2,), 1)
    assert [(3, 2, 1)] == lists((1, 2, 3), (3, 2, 1), 1)


def test_the_last_step_adds_what_is_left() -> None:
    """With three replicas, two at a time, the second step adds the last one; the first broker stays until then."""
    assert [2, 1] == [
        len(set(b) - set(a)) for a, b in [((1, 2, 3), lists((1, 2, 3), (4, 5, 6), 2)[0]), ((4, 5), (4, 6))]
    ]
    assert 1 == lists((1, 2, 3), (4, 5, 6), 2)[0][0]


def test_a_list_that_grows_gets_the_rack_that_is_missing_first() -> None:
    """A list that grows gets the replica in a new rack first: broker 2 before broker 1, which is in broker 0's rack."""
    assert [(0, 2), (0, 1, 2)] == lists((0,), (0, 1, 2), 1, "aab")


def test_a_replica_takes_the_place_of_the_one_in_its_rack() -> None:
    """Broker 3 replaces broker 1 in rack b; broker 2 replaces broker 0 in rack a in the last step."""
    assert [(0, 3), (2, 3)] == lists((0, 1), (2, 3), 1, "abab")


def test_the_leader_of_today_goes_last() -> None:
    """If two brokers could leave first, the one that doesn't lead leaves."""
    change = PartitionChange("t", 0, (1, 2, 3), (1, 4, 5), 3, 1, Reason.BALANCE_REPLICAS)

    assert [(1, 4, 3), (1, 4, 5)] == [reached for _, reached in replica_lists(change, 1, {})]


def without_down(before: tuple[int, ...], after: tuple[int, ...], *down: int) -> list[tuple[int, ...]]:
    """The lists after each step, one replica at a time, if these brokers are down."""
    change = PartitionChange("t", 0, before, after, None, 1, Reason.BROKER_LEAVES, down=frozenset(down))
    return [reached for _, reached in replica_lists(change, 1, {})]


def test_a_broker_that_is_down_leaves_first() -> None:
    """Brokers that are down leave in the first step, because Kafka's tool refuses lists with them."""
    assert [(2, 3, 5), (2, 6, 5), (5, 6, 7)] == without_down((1, 2, 3), (5, 6, 7), 1)
    assert [(3, 5, 6), (5, 6, 7)] == without_down((1, 2, 3), (5, 6, 7), 1, 2)
    assert [(5, 6, 7)] == without_down((1, 2, 3), (5, 6, 7), 1, 2, 3)
    assert [(3, 5, 6)] == without_down((1, 2, 3), (3, 5, 6), 1, 2)
    assert [(2, 5), (2, 5, 6), (5, 6, 7)] == without_down((1, 2), (5, 6, 7), 1)


def test_brokers_that_are_down_are_those_out_of_sync() -> None:
    """`down` has the brokers out of sync from which a change takes the partition."""
    problem = problem_of(no_racks(1, 2, 3, 4), {"a": [(1, 3, 2), (3, 2, 1)]})
    problem = replace(problem, out_of_sync=problem.broker_ids == 2)
    found = changes(problem, assignment_of(problem, [(1, 3, 4), (3, 1, 2)]))
    assert [frozenset({2}), frozenset()] == [change.down for change in found]


@examples(60)
@given(st.permutations(range(6)), st.permutations(range(8)), st.integers(1, 4), st.integers(1, 4), st.integers(0, 15))
def test_no_list_to_come_has_a_broker_that_is_down(
    before: list[int], after: list[int], old: int, new: int, off: int
) -> None:
    """Whatever goes and comes; every list has as many replicas as one of the ends, or a number between."""
    was, wanted = tuple(before[:old]), tuple(after[:new])
    down = frozenset(broker for at, broker in enumerate(was) if broker not in wanted and off >> at & 1)
    change = PartitionChange("t", 0, was, wanted, None, 1, Reason.BROKER_LEAVES, down=down)
    reached = was
    for start, end in replica_lists(change, 1, {}):
        assert (reached, set()) == (start, down & {*end})
        assert min(old, new) <= len({*end}) == len(end) <= max(old, new)
        reached = end
    assert wanted == reached


@pytest.mark.parametrize(("written", "expected"), [(0, [2, 4]), (2, [1, 2, 3, 4])])
def test_several_replicas_of_a_partition_keep_the_duration(written: int, expected: list[int]) -> None:
    """Their leader sends each of them, and what producers write meanwhile to every follower. One is always allowed."""
    four = PartitionChange("t", 0, (1,), (2, 3, 4, 5), 1, 45, Reason.BALANCE_REPLICAS, bytes_in_per_sec=written)
    found = steps_of(four, BatchRules(replicas_per_partition=4, seconds=10, bytes_per_sec=10), {})

    assert expected == [sum(broker != 1 for broker in step.after) for step in found]
