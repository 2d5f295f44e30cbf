"""Every partition at each stage of a plan: today, while each batch runs, and afterwards.

While Kafka moves a partition, its replicas are the new list followed by the replicas to be removed (KIP-455,
`PartitionReassignmentReplicas`). New replicas are not in sync before the copy is complete. Partitions of a batch
complete one by one, so each partition is in one of two conditions: copying or complete. A batch is judged by the worse
condition of each partition; no possible mix is worse. `outcome` gives what a failure of brokers does to each partition.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from planner.model.cluster import in_force
from planner.model.document_fields import TopicPartition
from planner.model.errors import StalePlanError
from planner.model.problem import BoolArray, IntArray, LongArray, Problem, effective_min_insync
from planner.model.spec import Spec
from planner.plan.document.partition_types import BatchRow, StepRow

TODAY, PLANNED = "today", "planned"


@dataclass(frozen=True, eq=False)
class PartitionStates:
    """N partitions in one condition; brokers are indices of the problem, -1 means none.

    replicas    (N, W)  in the order in which Kafka elects leaders, padded with -1
    in_sync     (N, W)  True for the live in-sync replicas; all False if the partition has no leader
    holding     (N, W)  True if the broker has the data, even if it lags; False while it copies
    leaders     (N,)    the leader
    min_insync, size_bytes, bytes_in, bytes_out (N,); unclean (N,) True with `unclean.leader.election.enable`
    """

    replicas: IntArray
    in_sync: BoolArray
    holding: BoolArray
    leaders: IntArray
    min_insync: IntArray
    unclean: BoolArray
    size_bytes: LongArray
    bytes_in: LongArray
    bytes_out: LongArray

    def take(self, rows: LongArray) -> Self:
        """Some of the partitions, with only as many columns as they need."""
        columns = {field.name: getattr(self, field.name)[rows] for field in fields(self)}
        width = max(int((columns["replicas"] >= 0).sum(axis=1).max(initial=1)), 1)
        return replace(self, **{name: each[:, :width] if each.ndim == 2 else each for name, each in columns.items()})

    @classmethod
    def today(cls, spec: Spec, problem: Problem, width: int) -> Self:
        """Today's partitions: if the ISR is known, replicas outside of it don't count as live."""
        topics = sorted(spec.cluster.topics, key=lambda each: each.name)
        partitions = [partition for topic in topics for partition in topic.partitions]
        replicas = np.pad(problem.replicas, ((0, 0), (0, width - problem.replicas.shape[1])), constant_values=-1)
        has_replica = replicas >= 0
        in_sync = has_replica.copy()
        for row, partition in enumerate(partitions):
            if partition.isr is not None and set(partition.isr) != set(partition.replicas):
                in_sync[row] &= np.isin(problem.broker_ids[replicas[row]], partition.isr)
        in_sync[problem.leaders < 0] = False
        configs = {topic.name: in_force(topic, spec.cluster.config_defaults) for topic in topics}
        unclean = [configs[name].get("unclean.leader.election.enable") == "true" for name in problem.topic_names]
        return cls(
            replicas,
            in_sync,
            has_replica,
            problem.leaders,
            problem.min_insync,
            np.array(unclean, dtype=bool)[problem.topic_of],
            problem.size_bytes,
            problem.bytes_in_per_sec,
            problem.bytes_out_per_sec,
        )


@dataclass(frozen=True, eq=False)
class Stage:
    """A moment of the plan: today, while a batch runs, or after the last one.

    `rows` (n,): the partitions that differ from the stage before; all of them at the first stage. `first` and `second`:
    all P partitions in the two conditions that are possible at this stage: copying and complete in a batch, else equal.
    """

    name: str
    rows: LongArray
    first: PartitionStates
    second: PartitionStates


def stages(spec: Spec, problem: Problem, batches: Sequence[BatchRow]) -> Iterator[Stage]:
    """Today, every batch, and the completed plan; only today if there is no batch.

    StalePlanError if a batch doesn't begin with the replica lists that the batch before it left.
    """
    all_rows = np.arange(problem.rows, dtype=np.int64)
    # The most replicas that a partition ever has, old and new ones together.
    unions = (len({*step.replicas_before, *step.replicas}) for batch in batches for step in batch.partitions)
    states = PartitionStates.today(spec, problem, max([problem.replicas.shape[1], *unions]))
    yield Stage(TODAY, all_rows, states, states)
    if not batches:
        return
    indices = _Indices(problem)
    # apply.yml starts once all replicas are in sync, except those on removed brokers.
    caught_up = states.holding & (states.leaders >= 0)[:, None] & problem.targets[states.replicas]
    earlier_rows: LongArray = np.flatnonzero((caught_up & ~states.in_sync).any(axis=1))
    states = replace(states, in_sync=states.in_sync | caught_up)
    for batch in batches:
        changed, copying, states = _apply_batch(states, indices, batch)
        yield Stage(f"batch {batch.number}", np.union1d(earlier_rows, changed), copying, states)
        earlier_rows = changed
    yield Stage(PLANNED, earlier_rows, states, states)


class _Indices:
    """Row and broker indices by Kafka's names."""

    def __init__(self, problem: Problem) -> None:
        self._rows = problem.row_of
        self._brokers = {broker: index for index, broker in enumerate(problem.broker_ids.tolist())}

    def row(self, item: TopicPartition) -> int:
        index = self._rows.get(item.key)
        if index is None:
            raise StalePlanError(f"{item.name} is in the plan, but not in the cluster's state")
        return index

    def brokers(self, ids: Sequence[int]) -> list[int]:
        unknown = [broker for broker in ids if broker not in self._brokers]
        if unknown:
            raise StalePlanError(f"broker {unknown[0]} is in the plan, but not in the spec")
        return [self._brokers[broker] for broker in ids]


def _apply_batch(
    states: PartitionStates, indices: _Indices, batch: BatchRow
) -> tuple[LongArray, PartitionStates, PartitionStates]:
    """(n,) the partitions that a batch changes, ascending; and all partitions, first while it copies, then after it."""
    steps = {indices.row(step): step for step in batch.partitions}
    elected = {indices.row(item) for item in batch.elect}
    changed = sorted(steps.keys() | elected)
    copying, complete = _copy(states), _copy(states)
    for row in changed:
        if row in steps:
            before, after = (indices.brokers(ids) for ids in (steps[row].replicas_before, steps[row].replicas))
            _apply_step(copying, complete, row, before, after, steps[row])
        # A preferred election does nothing if the preferred leader isn't in sync.
        if row in elected and complete.in_sync[row, 0]:
            complete.leaders[row] = complete.replicas[row, 0]
    return np.array(changed, dtype=np.int64), copying, complete


def _copy(rows: PartitionStates) -> PartitionStates:
    """A copy of the partitions whose replicas and leaders can be overwritten."""
    moving = ("replicas", "in_sync", "holding", "leaders")
    return replace(rows, **{name: getattr(rows, name).copy() for name in moving})


def _apply_step(
    copying: PartitionStates, complete: PartitionStates, row: int, before: list[int], after: list[int], step: StepRow
) -> None:
    """Applies one step of a reassignment to both conditions."""
    if [broker for broker in copying.replicas[row].tolist() if broker >= 0] != before:
        raise StalePlanError(
            f"{step.name}: the plan takes it from replicas {list(step.replicas_before)}, which "
            "it doesn't have then; allowed: a plan that was made from this state"
        )
    in_sync = set(copying.replicas[row][copying.in_sync[row]].tolist())
    added = [broker for broker in after if broker not in before]
    _set_row(copying, row, [*after, *(broker for broker in before if broker not in after)], in_sync, before)
    _set_row(complete, row, after, {*in_sync, *added} if in_sync else set(), after)
    if complete.leaders[row] >= 0 and complete.leaders[row] not in after:
        # Kafka elects the first in-sync replica if the leader isn't kept.
        electable = complete.replicas[row][complete.in_sync[row]]
        complete.leaders[row] = electable[0] if len(electable) else -1


def _set_row(rows: PartitionStates, row: int, brokers: list[int], in_sync: set[int], holding: Sequence[int]) -> None:
    pad = [-1] * (rows.replicas.shape[1] - len(brokers))
    rows.replicas[row] = brokers + pad
    rows.in_sync[row] = [broker in in_sync for broker in brokers] + [False] * len(pad)
    rows.holding[row] = [broker in holding for broker in brokers] + [False] * len(pad)


# offline: no leader. unclean: led by a replica that was not in sync. writes_refused: fewer live in-sync replicas than
# `effective_min_insync`, so that acks=all is refused (includes offline partitions). at_risk: exactly one live in-sync
# replica. lost: every broker with the data failed, so the data is gone if their disks are; lost_bytes: the size of one
# copy. leaders_moved: another broker leads.
FACTS = ("offline", "unclean", "writes_refused", "at_risk", "lost", "lost_bytes", "leaders_moved")


@dataclass(frozen=True, eq=False)
class Outcome:
    """`facts` (N, len(FACTS)); `leaders` (N,): the new leader, -1 if none; `scarce` (N,): True if writes with acks=all
    are refused without one more replica; `written` and `sent` (N,): bytes/s written to each live replica, and sent by
    the leader.
    """

    facts: LongArray
    leaders: IntArray
    scarce: BoolArray
    written: LongArray
    sent: LongArray


def outcome(rows: PartitionStates, failed: BoolArray) -> Outcome:
    """The partitions' outcome if the brokers of these replicas (N, W) fail."""
    serving = rows.in_sync & ~failed
    live = serving.sum(axis=1)
    leader_is_live = (serving & (rows.replicas == rows.leaders[:, None])).any(axis=1)
    leaders = np.where(leader_is_live, rows.leaders, _first_replica(rows.replicas, serving))
    unclean = (leaders < 0) & rows.unclean & (rows.leaders >= 0)
    if unclean.any():
        leaders = np.where(unclean, _first_replica(rows.replicas, (rows.replicas >= 0) & ~failed), leaders)
        live = np.where(unclean & (leaders >= 0), 1, live)
    online = leaders >= 0
    needed = effective_min_insync(rows.min_insync, (rows.replicas >= 0).sum(axis=1))
    lost: BoolArray = ~np.any(rows.holding & ~failed, axis=1)
    facts = {
        "offline": ~online,
        "unclean": online & ~(rows.in_sync & (rows.replicas == leaders[:, None])).any(axis=1),
        "writes_refused": ~online | (live < needed),
        "at_risk": online & (live == 1),
        "lost": lost,
        "lost_bytes": lost * rows.size_bytes,
        "leaders_moved": online & (leaders != rows.leaders),
    }
    followers = np.maximum(((rows.replicas >= 0) & ~failed).sum(axis=1) - 1, 0)
    return Outcome(
        np.stack([facts[name].astype(np.int64) for name in FACTS], axis=1),
        leaders,
        online & (live == np.maximum(needed, 1)),
        np.where(online, rows.bytes_in, 0),
        np.where(online, rows.bytes_in * followers + rows.bytes_out, 0),
    )


def worse(one: LongArray, other: LongArray) -> LongArray:
    """The worse of two facts (N, F) of the same partitions, fact by fact; a partition that is offline isn't at risk."""
    both = np.maximum(one, other)
    both[:, FACTS.index("at_risk")] *= 1 - both[:, FACTS.index("offline")]
    return both


def _first_replica(replicas: IntArray, is_eligible: BoolArray) -> IntArray:
    """The first replica of each row that is among these, (N,); -1 if there is none."""
    slots = is_eligible.argmax(axis=1)
    row_indices = np.arange(len(replicas))
    return np.where(is_eligible[row_indices, slots], replicas[row_indices, slots], -1)
