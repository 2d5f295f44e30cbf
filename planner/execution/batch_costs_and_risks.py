"""What batches cost and risk while they run: time at a throttle, disk for both copies, refused writes, failures.

Kafka's throttle (KIP-73) is a rate for each broker, once as a leader and once as a follower. What producers write to a
partition counts against it too. On the broker that copies, it counts until the copy is in sync. On the leader, it
counts for every follower, because the leader also counts followers in sync and holds back only the others (`KafkaApis`,
`ReplicaManager.shouldLeaderThrottle`).

Candidates are ranked only by their final assignments, because their batches couldn't change the order. A replica list
in between keeps two racks if both ends have two (`partition_changes`). So a partition that doesn't survive a failure
while the plan runs doesn't survive it today or in the end, and today's failures are the same for every plan.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from planner.execution.batch_cutting import Batch, added_and_removed
from planner.execution.partition_changes import Step
from planner.model.build_problem import brokers_after, min_insync_of
from planner.model.cluster import PartitionKey, keyed_partitions
from planner.model.document_fields import Count, Positive, Section, doc
from planner.model.problem import BoolArray
from planner.model.spec import Spec

Side = Literal["copies in", "leads", "moves inside"]


@dataclass(frozen=True)
class CopyFlow:
    """One side of a broker in a batch: bytes to copy, and the producers' bytes/s that count against the throttle."""

    batch: int
    broker: int
    side: Side
    size_bytes: int
    produced_bytes_per_sec: int


@dataclass(frozen=True)
class Peak:
    """The most bytes that a broker holds, in which batch (0: today), and its `disk_bytes` (None if not stated)."""

    broker: int
    size_bytes: int
    batch: int
    disk_bytes: int | None


@dataclass(frozen=True)
class Costs:
    """Batches and their costs; `seconds` and `fullest` have one entry per batch, `peaks` one per broker, by id.

    A batch's seconds are None without a throttle, without sizes, or if it never completes (`endless` says which).
    `fullest` is None without sizes. `total_seconds` is the sum over all batches, which run one after the other.
    """

    batches: tuple[Batch, ...]
    seconds: tuple[int | None, ...]
    total_seconds: int | None
    peaks: tuple[Peak, ...]
    fullest: tuple[Peak | None, ...]


def flows(batch: Batch) -> Iterator[CopyFlow]:
    """Every broker that copies in, leads what others copy, or moves replicas between its log dirs in this batch.

    Sorted by side, then by broker id. Moves between log dirs have a separate throttle (KIP-113); what producers write
    to the moving replicas counts against it.
    """
    received, written_to, sent, read_from, inside, written_inside = (Counter[int]() for _ in range(6))
    for step in batch.steps:
        for broker in step.dir_moves:
            inside[broker] += step.size_bytes
            written_inside[broker] += step.bytes_in_per_sec
        for broker in step.adding:
            received[broker] += step.size_bytes
            written_to[broker] += step.bytes_in_per_sec
        if step.adding:
            sent[step.source] += step.bytes_moved
            read_from[step.source] += step.bytes_in_per_sec * step.followers_meanwhile
    sides: tuple[tuple[Side, Counter[int], Counter[int]], ...] = (
        ("copies in", received, written_to),
        ("leads", sent, read_from),
        ("moves inside", inside, written_inside),
    )
    for side, sizes, produced in sides:
        yield from (CopyFlow(batch.number, each, side, sizes[each], produced[each]) for each in sorted(sizes))


def seconds_at_throttle(batch: Batch, throttle_bytes_per_sec: int | None) -> int | None:
    """Seconds until the last broker has copied its bytes at the rate that producers leave of the throttle, rounded up.

    None without a throttle, or if producers leave nothing on some broker.
    """
    if throttle_bytes_per_sec is None:
        return None
    needed = 0
    for flow in flows(batch):
        rate_left = throttle_bytes_per_sec - flow.produced_bytes_per_sec
        if rate_left <= 0:
            return None
        needed = max(needed, -(-flow.size_bytes // rate_left))
    return needed


def endless(batches: Iterable[Batch], throttle_bytes_per_sec: int | None) -> list[CopyFlow]:
    """The flows whose producers write at least as fast as the throttle allows: such a batch never completes."""
    if throttle_bytes_per_sec is None:
        return []
    return [flow for batch in batches for flow in flows(batch) if flow.produced_bytes_per_sec >= throttle_bytes_per_sec]


def costs(
    batches: Sequence[Batch],
    throttle_bytes_per_sec: int | None,
    held_bytes: Mapping[int, int],
    disk_bytes: Mapping[int, int],
    sizes_known: bool,
) -> Costs:
    """The costs of batches run in order. `held_bytes`: today's, of every broker; `disk_bytes`: if it is stated."""
    throttle = throttle_bytes_per_sec if sizes_known else None
    brokers = sorted(held_bytes)
    disks = np.array([disk_bytes.get(broker, 0) for broker in brokers], dtype=np.int64)
    bytes_on = np.array([held_bytes[broker] for broker in brokers], dtype=np.int64)
    most, when = bytes_on.copy(), np.zeros(len(brokers), dtype=np.int64)
    fullest: list[Peak | None] = []
    for batch in batches:
        added, removed = (
            np.array([counter[broker] for broker in brokers], dtype=np.int64)
            for counter in added_and_removed(batch.steps)
        )
        # Replicas are deleted only when the batch is complete.
        during = bytes_on + added
        bytes_on = during - removed
        is_fuller: BoolArray = during > most
        most, when = np.where(is_fuller, during, most), np.where(is_fuller, batch.number, when)
        # The largest share of a disk, or the most bytes if no disk is stated.
        full = np.where(disks > 0, during / np.maximum(disks, 1), -1.0) if disks.any() else during
        index = int(full.argmax())
        peak = Peak(brokers[index], int(during[index]), batch.number, disk_bytes.get(brokers[index]))
        fullest.append(peak if sizes_known else None)
    peaks = tuple(map(Peak, brokers, most.tolist(), when.tolist(), map(disk_bytes.get, brokers)))
    seconds = tuple(seconds_at_throttle(batch, throttle) for batch in batches)
    stated = [each for each in seconds if each is not None]
    total = sum(stated) if throttle is not None and len(stated) == len(seconds) else None
    return Costs(tuple(batches), seconds, total, peaks, tuple(fullest))


class RisksSection(Section, frozen=True):
    """Which writes are refused while the plan runs."""

    isr_known: Annotated[
        bool,
        doc("True where the state says which replicas are in sync for every partition; else all count as in sync."),
    ]
    under_min_isr: Annotated[
        tuple[Count, ...],
        doc(
            "For each batch, how many of its partitions have fewer replicas in sync than min.insync.replicas while it "
            "copies, counted without the new replicas; a min.insync.replicas above the number of replicas, old and new "
            "ones together, counts as that number, as since Kafka 3.7."
        ),
    ]
    refused_by_failure_today: Annotated[
        Count,
        doc(
            "How many partitions begin to refuse writes with acks=all if the worst single broker fails today, by the "
            "replicas in sync."
        ),
    ]
    refused_by_failure: Annotated[
        tuple[Count, ...],
        doc("The same for each batch, at its worst moment: each of its partitions may be as before or as afterwards."),
    ]
    out_of_sync: Annotated[
        Positive | None,
        doc("Partitions that apply.yml would find under-replicated today: it starts once there are none."),
    ] = None
    under_min_isr_once: Annotated[
        Positive | None,
        doc("How many partitions with a leader under_min_isr counts, each once; only if one is in several batches."),
    ] = None


def refused_writes(spec: Spec, batches: Sequence[Batch]) -> RisksSection:
    """The partitions that refuse writes with acks=all: today, while their batch copies, or if a broker fails.

    As in `effective_min_insync`, a `min.insync.replicas` above the number of assigned replicas counts as that number.
    """
    min_isr = {topic.name: min_insync_of(spec, topic) for topic in spec.cluster.topics}
    parts = list(keyed_partitions(spec.cluster.topics))
    in_sync = {key: part.replicas if part.isr is None else part.isr for key, part in parts}

    def refuses(step: Step) -> bool:
        return len(in_sync[step.key]) < min(min_isr[step.topic], len({*step.before, *step.after}))

    def needed(topic: str, replicas: Sequence[int], count: int) -> frozenset[int]:
        """All of these replicas in sync, of so many, if the partition refuses writes with one fewer; else none."""
        return frozenset(replicas if len(replicas) == min(min_isr[topic], count) else ())

    needed_by = {key: needed(key[0], in_sync[key], len(part.replicas)) for key, part in parts}
    by_broker = Counter(broker for brokers in needed_by.values() for broker in brokers)
    today, by_failure, refusing = max(by_broker.values(), default=0), list[int](), list[list[PartitionKey]]()
    for batch in batches:
        refusing.append([step.key for step in batch.steps if refuses(step)])
        in_sync |= {step.key: step.after for step in batch.steps}
        # While the batch runs, each of its partitions is as before or as after; a later batch may change it again.
        afterwards = {step.key: needed(step.topic, step.after, len(step.after)) for step in batch.steps}
        by_broker.update(broker for key, after in afterwards.items() for broker in after - needed_by[key])
        by_failure.append(max(by_broker.values(), default=0))
        by_broker.subtract(broker for key, after in afterwards.items() for broker in needed_by[key] - after)
        needed_by |= afterwards
    isr_known = all(part.isr is not None for _, part in parts)
    with_leader = [key for batch, keys in zip(batches, refusing, strict=True) if not batch.leaderless for key in keys]
    distinct = len(set(with_leader)) if len(set(with_leader)) < len(with_leader) else None
    return RisksSection(isr_known, tuple(map(len, refusing)), today, tuple(by_failure), under_min_isr_once=distinct)


def warnings(spec: Spec, batches: Iterable[Batch]) -> list[str]:
    """A sentence if the plan, or one of its batches, leaves partitions that don't survive the failure asked for.

    While a batch copies, its new replicas aren't in sync, so a partition survives by its old replicas. When the batch
    is complete, it survives by the new ones.
    """
    if spec.resilience == "none":
        return []
    today, during, after = _counts(spec, batches)
    worst = max(during, default=0)
    if not max(worst, after):
        return []
    batch = f"{worst:,} in batch {during.index(worst) + 1}, " if during else ""
    return [
        f"resilience.survive: {spec.resilience}: partitions on one {spec.resilience} only, offline if it fails: "
        f"{today:,} today, {batch}{after:,} after the plan"
    ]


def _counts(spec: Spec, batches: Iterable[Batch]) -> tuple[int, list[int], int]:
    """Partitions that don't survive: today, at any moment of each batch, and in the end."""
    domains: dict[int, Hashable] = {
        broker.id: broker.id if spec.resilience == "broker" else broker.rack for broker in brokers_after(spec)
    }

    def alone(replicas: Sequence[int]) -> bool:
        return len({domains[broker] for broker in replicas}) == 1

    lone = {key for key, part in keyed_partitions(spec.cluster.topics) if alone(part.replicas)}
    today, during = len(lone), list[int]()
    for batch in batches:
        after = {step.key for step in batch.steps if alone(step.after)}
        during.append(len(lone | after))
        lone = (lone - {step.key for step in batch.steps}) | after
    return today, during, len(lone)
