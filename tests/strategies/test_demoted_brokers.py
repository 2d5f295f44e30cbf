"""Partitions that are made or that move get a replica on a broker that isn't demoted, if there is a way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusters import ids_of, no_racks, problem_of
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.cluster import Broker
from planner.model.problem import IntArray, Problem
from planner.model.spec import Changes, NewPartitions
from planner.scoring.independent_check import check
from planner.strategies.optimum import solve


def newly_alone(problem: Problem, assignment: IntArray, demoted: set[int]) -> list[int]:
    """The rows with other brokers than today, all of them demoted."""
    today = [set(problem.broker_ids[row[row >= 0]].tolist()) for row in problem.replicas]
    after = [set(row) for row in ids_of(problem, assignment)]
    return [at for at, (was, now) in enumerate(zip(today, after, strict=True)) if was != now and now <= demoted]


@examples(60)
@given(st.data(), st.booleans(), st.sampled_from([(), (("t*", "u*"),)]))
def test_no_partition_moves_to_demoted_brokers_only(
    data: st.DataObject, racks: bool, together: tuple[tuple[str, ...], ...]
) -> None:
    """With a broker in each rack that isn't demoted, some replica of every partition that moves is on one of these."""
    brokers = {at: "ab"[at % 2] if racks else None for at in range(1, 7)}
    lists = st.lists(st.sampled_from(range(1, 7)), min_size=2, max_size=2, unique=True)
    rows = {name: data.draw(st.lists(lists, min_size=4, max_size=4)) for name in ("t", "u")}
    sizes = {name: data.draw(st.lists(st.integers(1, 30), min_size=4, max_size=4)) for name in rows}
    changes = Changes(demote_brokers=(5, 6), add_brokers=(Broker(7, "a" if racks else None),))
    problem = problem_of(brokers, rows, sizes=sizes, changes=changes, together=together)
    assignment = solve(problem, problem.balance).assignment
    assert [] == newly_alone(problem, assignment, {5, 6})
    assert () == check(problem, assignment)


def test_a_partition_of_one_replica_does_not_move_to_a_demoted_broker() -> None:
    """A demoted broker is empty: one of its own partitions stays, and none is added for balance."""
    rows = {"t": [(1,), (1,), (1,), (2,), (3,), (4,)]}
    problem = problem_of(no_racks(1, 2, 3, 4, 5), rows, changes=Changes(demote_brokers=(4, 5)))
    found = ids_of(problem, solve(problem, problem.balance).assignment)
    assert [4] == found[5]
    assert not {4, 5} & {row[0] for row in found[:5]}


@pytest.mark.parametrize(("full", "expected"), [((), 0), ((1, 2), 4)])
def test_new_partitions_are_on_a_broker_that_may_lead(full: tuple[int, ...], expected: int) -> None:
    """Emptier demoted brokers don't get all replicas of a new topic, unless the disks of all others are full."""
    rows = {"old": [(1, 2), (2, 1), (1, 2), (2, 1)]}
    made = NewPartitions(topic="new", first=0, count=4, replication_factor=2, size_bytes=5)
    changes = Changes(demote_brokers=(3, 4), new_partitions=(made,), rebalance="none")
    problem = problem_of(no_racks(1, 2, 3, 4), rows, changes=changes)
    limits = np.where(np.isin(problem.broker_ids, full), 5, -1).astype(np.int64)
    problem = replace(problem, disk_limit_bytes=limits)
    assignment = solve(problem, problem.balance).assignment
    assert expected == len(newly_alone(problem, assignment, {3, 4}))
