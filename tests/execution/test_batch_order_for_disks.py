"""Batches are reordered or cut so that disks have room, and stay as they are if that isn't needed or doesn't help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from batch_changes import change, plans, rules, steps
from clusters import assignment_of, no_racks, spec_of
from hypothesis import given
from hypothesis import strategies as st

from planner.execution import partition_changes
from planner.execution.batch_costs_and_risks import costs
from planner.execution.batch_cutting import Batch, split, within_disks
from planner.execution.partition_changes import Step
from planner.model.build_problem import build
from planner.model.cluster import PartitionChange
from planner.model.spec import BatchRules
from planner.plan.build import costed

ALONE = BatchRules(bytes=50)


def held_by(changes: Sequence[PartitionChange]) -> dict[int, int]:
    """The bytes that brokers 0 to 8 hold today."""
    held = dict.fromkeys(range(9), 0)
    for each in changes:
        for broker in each.before:
            held[broker] += each.size_bytes
    return held


def most_held(batches: Sequence[Batch], held: Mapping[int, int]) -> dict[int, int]:
    """The most bytes that each broker holds at any time."""
    return {peak.broker: peak.size_bytes for peak in costs(batches, None, held, {}, sizes_known=True).peaks}


# Broker 2 is full. The replica that arrives there is the largest, so it is copied first unless disks need otherwise.
FILLS, FREES, FREES_TOO = (
    change(0, (1,), (2,), size_bytes=50),
    change(1, (2,), (3,), size_bytes=40),
    change(2, (2,), (4,), size_bytes=30),
)


def test_what_frees_a_disk_goes_before_what_fills_it() -> None:
    """In the original order broker 2 would hold 120 bytes, so a batch that frees it goes first."""
    changes = [FILLS, FREES, FREES_TOO]
    batches = split(changes, ALONE)
    found = within_disks(batches, held_by(changes), {2: 100})

    assert [[("t", 0)], [("t", 1)], [("t", 2)]] == steps(batches)
    assert [[("t", 1)], [("t", 0)], [("t", 2)]] == steps(found)
    assert [1, 2, 3] == [batch.number for batch in found]
    assert (120, 80) == (most_held(batches, held_by(changes))[2], most_held(found, held_by(changes))[2])


def test_a_plans_batches_fill_no_disk_above_its_limit() -> None:
    """Where brokers state their disks, a plan has its batches in such an order."""
    spec = spec_of(no_racks(1, 2, 3), {"a": [(1,)], "b": [(2,)]}, sizes=60)
    brokers = tuple(replace(each, disk_bytes=100) for each in spec.cluster.brokers)
    spec = replace(spec, cluster=replace(spec.cluster, brokers=brokers))
    problem = build(spec)
    found = costed(spec, problem, partition_changes.changes(problem, assignment_of(problem, [(2,), (3,)])))
    assert [["b"], ["a"]] == [[step.topic for step in batch.steps] for batch in found.batches]
    assert {1: 60, 2: 60, 3: 60} == {peak.broker: peak.size_bytes for peak in found.peaks}


def test_a_batch_is_cut_where_no_order_of_whole_ones_fits() -> None:
    """The only batch would fill broker 2, so it is cut in two; each election stays with its partition."""
    elects = change(3, (1, 5), (5, 1), leader=1)
    changes = [FILLS, FREES, FREES_TOO, elects]
    batches = split(changes, BatchRules())
    found = within_disks(batches, held_by(changes), {2: 100})

    assert [[("t", 0), ("t", 1), ("t", 2), ("t", 3)]] == steps(batches)
    assert [[("t", 1), ("t", 2), ("t", 3)], [("t", 0)]] == steps(found)
    assert [(("t", 1), ("t", 2), ("t", 3)), (("t", 0),)] == [batch.elect for batch in found]
    assert [(70, 2), (50, 1)] == [(batch.bytes_moved, batch.replicas_moved) for batch in found]


def test_where_no_order_fits_the_batches_stay_as_they_are() -> None:
    """Two full disks that have to swap replicas have no possible order, so the batches stay as they are."""
    swap = [change(0, (1,), (2,), size_bytes=50), change(1, (2,), (1,), size_bytes=50)]
    batches = split(swap, ALONE)

    assert batches == within_disks(batches, held_by(swap), {1: 60, 2: 60})


def test_partitions_of_a_topic_that_gets_other_replicas_stay_together() -> None:
    """Both partitions of topic g get a replica in the same batch: Terraform can't read a topic with two factors."""
    grow = [change(number, (1,), (1, 2), topic="g", size_bytes=30) for number in range(2)]
    changes = [*grow, FREES, FREES_TOO]
    batches = split(changes, BatchRules())
    found = within_disks(batches, held_by(changes), {2: 100})

    assert [[("t", 1), ("t", 2)], [("g", 0), ("g", 1)]] == steps(found)


def test_what_has_no_leader_stays_last() -> None:
    """The batch of a partition without a leader stays last, although it frees the disk: it may never end."""
    changes = [FILLS, replace(FREES, leader_before=None)]
    batches = split(changes, ALONE)

    assert [False, True] == [batch.leaderless for batch in batches]
    assert batches == within_disks(batches, held_by(changes), {2: 80})


def paths(batches: Sequence[Batch]) -> dict[tuple[str, int], list[Step]]:
    """The steps of each partition, in order."""
    found: dict[tuple[str, int], list[Step]] = {}
    for batch in batches:
        for step in batch.steps:
            found.setdefault(step.key, []).append(step)
    return found


@given(plans(), rules, st.dictionaries(st.integers(0, 8), st.integers(0, 900)))
def test_whatever_the_order_it_is_the_same_plan_within_the_same_rules(
    changes: list[PartitionChange], given_rules: BatchRules, limits: dict[int, int]
) -> None:
    """Every partition takes its steps in their order, with its election; a new order keeps within the limits."""
    held, batches = held_by(changes), split(changes, given_rules)
    most = {broker: max(limit, held[broker]) for broker, limit in limits.items()}
    found = within_disks(batches, held, most)
    before, after = (
        all(full[broker] <= limit for broker, limit in most.items())
        for full in (most_held(batches, held), most_held(found, held))
    )

    assert paths(batches) == paths(found)
    assert Counter(key for batch in batches for key in batch.elect) == Counter(
        k for batch in found for k in batch.elect
    )
    assert list(range(1, len(found) + 1)) == [batch.number for batch in found]
    assert found == batches if before else after or found == batches
    assert max((batch.bytes_moved for batch in found), default=0) <= max((b.bytes_moved for b in batches), default=0)
