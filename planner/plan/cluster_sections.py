"""The plan's sections on the cluster: the fingerprint of its state, the changes asked for, brokers, racks, topics, the
partitions that change, and batches.

The fingerprint tells which partitions have changed since, without a copy of the state. Each partition has two
characters for its replica list and one for its leader. The two characters are 12 bits of a checksum, so one changed
list in 4,096 looks unchanged; the digest of the whole state misses no change.
"""

import hashlib
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from zlib import crc32

import numpy as np

from planner.execution.batch_costs_and_risks import Costs
from planner.execution.partition_changes import bytes_in_and_out
from planner.model.build_problem import today, topics_after
from planner.model.cluster import Partition, PartitionChange, Topic
from planner.model.document_fields import TopicPartition
from planner.model.formats import replica_list
from planner.model.problem import BoolArray, IntArray, LongArray, Problem, sums_at
from planner.model.spec import Changes, Spec
from planner.plan.document.cluster_types import BrokerRow, HeldLoad, RackRow, StateRow, StateSection, TopicRow
from planner.plan.document.partition_types import BatchRow, FullestBroker, PartitionRow, StepRow
from planner.plan.document.request_types import AddBrokerRow, AddPartitionsRow, ChangesSection, CreateTopicRow
from planner.scoring import score
from planner.scoring.broker_loads import MEASURES, leaders_after, measure_count, on_all_brokers

_ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"


def state(topics: Iterable[Topic], *, sizes_known: bool) -> StateSection:
    """The `state` of plan.json."""
    ordered = sorted(topics, key=lambda topic: topic.name)
    return StateSection(
        sha256=state_digest(ordered),
        topics=tuple(
            StateRow(
                topic=topic.name,
                replicas="".join(map(of_replicas, topic.partitions)),
                leaders="".join(map(of_leader, topic.partitions)),
                size_bytes=sum(each.size_bytes for each in topic.partitions) if sizes_known else None,
            )
            for topic in ordered
        ),
    )


def state_digest(topics: Sequence[Topic]) -> str:
    """SHA-256 over the replicas and leaders of all partitions; `topics` are sorted by name."""
    sha256 = hashlib.sha256()
    for topic in topics:
        lists = ";".join(replica_list(each.replicas) for each in topic.partitions)
        sha256.update(f"{topic.name}\n{lists}\n{''.join(map(of_leader, topic.partitions))}\n".encode())
    return sha256.hexdigest()


def of_replicas(partition: Partition) -> str:
    """Two characters: a checksum of a replica list, in its order."""
    first, second = divmod(crc32(replica_list(partition.replicas).encode()) % len(_ALPHABET) ** 2, len(_ALPHABET))
    return _ALPHABET[first] + _ALPHABET[second]


def of_leader(partition: Partition) -> str:
    """One character: the position of the leader in the replica list."""
    if partition.leader not in partition.replicas:
        return "-"
    return _ALPHABET[partition.replicas.index(partition.leader) % len(_ALPHABET)]


def unlike_state(before: StateRow, topic: Topic) -> tuple[list[int], list[int]]:
    """Of a topic's earlier partitions, the numbers of those with changed replicas, and with only another leader."""
    rows = list(enumerate(topic.partitions[: len(before.leaders)]))
    changed = {number for number, each in rows if of_replicas(each) != before.replicas[2 * number : 2 * number + 2]}
    led_anew = [number for number, each in rows if number not in changed and of_leader(each) != before.leaders[number]]
    return sorted(changed), led_anew


def changes(requested: Changes) -> ChangesSection:
    """The `changes` of plan.json, in the YAML's own shape; amounts are plain numbers."""
    return ChangesSection(
        add_brokers=tuple(AddBrokerRow(id=broker.id, rack=broker.rack) for broker in requested.add_brokers),
        remove_brokers=requested.remove_brokers,
        demote_brokers=requested.demote_brokers or None,
        replace_brokers={str(old): new for old, new in requested.replace_brokers},
        set_racks={str(broker): rack for broker, rack in requested.set_racks},
        set_replication_factor=requested.set_replication_factor,
        create_topics=tuple(
            CreateTopicRow(
                name=new.topic,
                partitions=new.count,
                replication_factor=new.replication_factor,
                config=dict(new.config) or None,
                size=new.size_bytes or None,
                bytes_in=new.bytes_in_per_sec or None,
                bytes_out=new.bytes_out_per_sec or None,
            )
            for new in requested.new_partitions
            if not new.first
        ),
        add_partitions=tuple(
            AddPartitionsRow(
                topic=new.topic,
                partitions=new.count,
                size=new.size_bytes or None,
                bytes_in=new.bytes_in_per_sec or None,
                bytes_out=new.bytes_out_per_sec or None,
            )
            for new in requested.new_partitions
            if new.first
        ),
        rebalance=requested.rebalance,
    )


def brokers(spec: Spec, problem: Problem, assignment: IntArray, costs: Costs) -> tuple[BrokerRow, ...]:
    """Every broker of today and of the target: its load before, after and at the peak, and the bytes it copies.

    `costs` are those of the changes, in batches.
    """
    before, after = (
        on_all_brokers(problem, today(problem), problem.leaders),
        on_all_brokers(problem, assignment, leaders_after(problem, assignment)),
    )
    arriving, _ = bytes_in_and_out(problem, assignment)
    # In a later batch of a partition, today's leader may be gone, and another broker sends.
    sent = Counter[int]()
    for step in (step for batch in costs.batches for step in batch.steps):
        sent[step.source] += step.bytes_moved
    ids_today = {broker.id for broker in spec.cluster.brokers}
    broker_of = {each.id: each for each in spec.all_brokers}
    return tuple(
        BrokerRow(
            id=broker,
            rack=problem.rack_names[problem.broker_racks[index]] if problem.broker_racks[index] >= 0 else None,
            role=("stays" if broker in ids_today else "added") if problem.targets[index] else "removed",
            before=_load(problem, before[:, index]),
            after=_load(problem, after[:, index]),
            bytes_in=int(arriving[index]),
            bytes_out=sent[broker],
            disk_bytes=peak.disk_bytes,
            peak_size_bytes=peak.size_bytes,
            network_bytes_per_sec=broker_of[broker].network_bytes_per_sec,
            max_replicas=broker_of[broker].max_replicas,
            max_leaders=broker_of[broker].max_leaders,
            max_disk_bytes=broker_of[broker].max_disk_bytes,
            cordoned=(problem.cordoned is not None and bool((problem.cordoned & problem.targets)[index])) or None,
            seems_down=(problem.out_of_sync is not None and bool(problem.out_of_sync[index])) or None,
        )
        for index, (broker, peak) in enumerate(zip(problem.broker_ids.tolist(), costs.peaks, strict=True))
    )


def racks(spec: Spec, brokers: Sequence[BrokerRow]) -> tuple[RackRow, ...]:
    """Every rack of today and of the target, as the sum of its brokers. Brokers without a rack are in the rack None.

    Before: a broker that `set_racks` moves counts in its old rack. After: a broker that leaves counts if it still holds
    a replica.
    """
    today = {broker.id: broker.rack for broker in spec.cluster.brokers}
    names = {row.rack for row in brokers} | set(today.values())
    rates_known = brokers[0].before.network_in is not None
    keys, no_traffic = HeldLoad.__struct_fields__[: None if rates_known else 3], () if rates_known else (None, None)
    rows = list[RackRow]()
    for rack in sorted(names, key=lambda name: (name is None, name or "")) if names != {None} else ():
        old = [row.before for row in brokers if row.id in today and today[row.id] == rack]
        new = [row.after for row in brokers if row.rack == rack and (row.role != "removed" or row.after.replicas)]
        before, after = (
            HeldLoad(*(sum(getattr(load, key) for load in loads) for key in keys), *no_traffic) for loads in (old, new)
        )
        rows.append(RackRow(rack=rack, brokers_before=len(old), brokers_after=len(new), before=before, after=after))
    return tuple(rows)


def topics(
    spec: Spec, problem: Problem, assignment: IntArray, changes: Iterable[PartitionChange]
) -> tuple[TopicRow, ...]:
    """Every topic, sorted by name: its replication factor before and after, its configuration, and what it moves."""
    count = len(problem.topic_names)
    before = today(problem)
    added = score.added_replicas(problem, assignment).sum(axis=1)
    is_new = problem.is_new
    changed = Counter(change.topic for change in changes)
    sums = [
        np.bincount(problem.topic_of, weights=column, minlength=count).astype(np.int64).tolist()
        for column in (np.ones(problem.rows), added)
    ]
    moved = sums_at(count, problem.topic_of, added * problem.size_bytes)
    factors_before = _factors(problem, (before >= 0).sum(axis=1), ~is_new)
    factors_after = _factors(problem, problem.replication_factors, np.ones_like(is_new))
    configs = {topic.name: topic for topic in topics_after(spec)}
    return tuple(
        TopicRow(
            name=name,
            partitions=partitions,
            replication_factor_before=tuple(factors_before[index]),
            # A budget may raise only some of a topic's partitions, and a topic may have several factors today.
            replication_factor=factors_after[index][0] if len(factors_after[index]) == 1 else None,
            config=dict(configs[name].config),
            effective_config=dict(configs[name].effective_config) or None,
            partitions_changed=changed[name],
            replicas_moved=replicas_moved,
            bytes_moved=int(moved[index]),
        )
        for index, (name, partitions, replicas_moved) in enumerate(zip(problem.topic_names, *sums, strict=True))
    )


def partition_rows(changed: Iterable[PartitionChange]) -> tuple[PartitionRow, ...]:
    """The `partitions` of plan.json."""
    return tuple(
        PartitionRow(
            topic=change.topic,
            partition=change.partition,
            replicas_before=change.before,
            replicas=change.after,
            log_dirs_before=change.log_dirs_before or None,
            log_dirs=change.log_dirs or None,
            leader_before=change.leader_before,
            size_bytes=change.size_bytes,
            reason=change.reason,
            bytes_in_per_sec=change.bytes_in_per_sec or None,
        )
        for change in changed
    )


def batch_rows(costs: Costs) -> tuple[BatchRow, ...]:
    """The `batches` of plan.json."""
    return tuple(
        BatchRow(
            number=batch.number,
            partitions=tuple(
                StepRow(
                    topic=step.topic,
                    partition=step.partition,
                    replicas_before=step.before,
                    replicas=step.after,
                    log_dirs_before=step.log_dirs_before or None,
                    log_dirs=step.log_dirs or None,
                )
                for step in batch.steps
            ),
            elect=tuple(TopicPartition(topic=topic, partition=partition) for topic, partition in batch.elect),
            bytes_moved=batch.bytes_moved,
            replicas_moved=batch.replicas_moved,
            seconds_at_throttle=seconds,
            fullest_broker=None
            if peak is None
            else FullestBroker(id=peak.broker, peak_size_bytes=peak.size_bytes, disk_bytes=peak.disk_bytes),
            leaderless=batch.leaderless,
        )
        for batch, seconds, peak in zip(costs.batches, costs.seconds, costs.fullest, strict=True)
    )


def _load(problem: Problem, column: LongArray) -> HeldLoad:
    """A broker's load, from its column (MEASURES,); traffic is None if no rates are known."""
    counts, traffic = column[:3].tolist(), column[3:].tolist()
    return HeldLoad(*counts, *(traffic if measure_count(problem) == len(MEASURES) else (None, None)))


def _factors(problem: Problem, counts: IntArray, rows: BoolArray) -> list[list[int]]:
    """For each topic (T), the distinct factors among the `counts` (P,) of its partitions in `rows` (P,), ascending."""
    pairs = np.unique(np.stack([problem.topic_of[rows], counts[rows]]), axis=1)
    bounds = np.searchsorted(pairs[0], np.arange(len(problem.topic_names) + 1))
    return [pairs[1, start:end].tolist() for start, end in pairwise(bounds)]
