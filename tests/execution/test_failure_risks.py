"""Writes that are refused while a plan runs, batch by batch."""

from __future__ import annotations

from dataclasses import replace

from clusters import no_racks, spec_of

from planner.execution import failure_risks
from planner.execution.batch_cutting import split
from planner.execution.failure_risks import RefusedWrites
from planner.model.partition_changes import PartitionChange, Reason
from planner.model.spec import BatchRules, Spec


def spec(in_sync: tuple[int, ...] | None) -> Spec:
    """Two partitions on 1 and 2 that need both for writes; the first with these in sync, the second with all."""
    made = spec_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 1)]}, config={"x": (("min.insync.replicas", "2"),)})
    first, second = made.cluster.topics[0].partitions
    parts = (replace(first, isr=in_sync), replace(second, isr=(2, 1)))
    return replace(made, cluster=replace(made.cluster, topics=(replace(made.cluster.topics[0], partitions=parts),)))


def found(in_sync: tuple[int, ...] | None, first: tuple[int, ...] = (3, 2)) -> RefusedWrites:
    """The risks of moving the first partition, then the second."""
    changes = [
        PartitionChange("x", 0, (1, 2), first, 1, 1, Reason.BALANCE_REPLICAS),
        PartitionChange("x", 1, (2, 1), (3, 1), 2, 1, Reason.BALANCE_REPLICAS),
    ]
    return failure_risks.refused_writes(spec(in_sync), split(changes, BatchRules(moves_per_broker=1), {}))


def test_replicas_in_sync_are_enough() -> None:
    """A batch takes none of them out of sync."""
    assert RefusedWrites(True, (0, 0)) == found((1, 2))


def test_too_few_in_sync_are_counted_in_their_batch() -> None:
    """One in sync where two are needed."""
    assert [1] == [count for count in found((2,)).under_min_isr if count]


def test_what_is_inherited_counts() -> None:
    """A topic's own isn't needed for writes to be refused."""
    made = spec((2,))
    (topic,) = made.cluster.topics
    cluster = replace(made.cluster, topics=(replace(topic, config=()),), config_defaults=topic.config)
    move = [PartitionChange("x", 0, (1, 2), (3, 2), 1, 1, Reason.BALANCE_REPLICAS)]
    batches = split(move, BatchRules(), {})
    assert (1,) == failure_risks.refused_writes(replace(made, cluster=cluster), batches).under_min_isr


def test_too_few_wanted_are_counted_too() -> None:
    """A replication factor below min.insync.replicas refuses writes once the batch is complete."""
    assert [1] == [count for count in found((1, 2), (3,)).under_min_isr if count]


def test_where_nobody_says_who_is_in_sync_all_count() -> None:
    """And the plan says so."""
    assert RefusedWrites(False, (0, 0)) == found(None)
