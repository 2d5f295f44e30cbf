"""The sections of the plan document that describe the changes, brokers, racks, topics and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from planner.execution.batch_costs import Peak
from planner.execution.change_reasons import bytes_in_and_out
from planner.model.build_problem import may_move, today, topics_after
from planner.model.cluster import Broker
from planner.model.partition_changes import PartitionChange
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.model.spec import Changes, Spec
from planner.plan import new_partitions, plan_warnings
from planner.plan.document.cluster_types import BrokerRow, HeldLoad, RackRow, TopicRow
from planner.plan.document.request_types import AddBrokerRow, ChangesSection, ReplicationFactorRow
from planner.scoring import score
from planner.scoring.broker_loads import MEASURES, leaders_after, measured, on_all_brokers


def changes(wish: Changes) -> ChangesSection:
    """The wish in the YAML's own shape, every key there."""
    return ChangesSection(
        add_brokers=tuple(AddBrokerRow(id=broker.id, rack=broker.rack) for broker in wish.add_brokers),
        remove_brokers=wish.remove_brokers,
        replace_brokers={str(old): new for old, new in wish.replace_brokers},
        set_racks={str(broker): rack for broker, rack in wish.set_racks},
        set_replication_factor=tuple(
            ReplicationFactorRow(topics=change.topics, replication_factor=change.replication_factor)
            for change in wish.set_replication_factor
        ),
        create_topics=new_partitions.topics_to_create(wish.new_partitions),
        add_partitions=new_partitions.partitions_to_add(wish.new_partitions),
        rebalance=wish.rebalance,
    )


def brokers(spec: Spec, problem: Problem, assignment: IntArray, peaks: Iterable[Peak]) -> tuple[BrokerRow, ...]:
    """Every broker of today and of the target: what it holds before, after and at most, and what it copies.

    `peaks` has one for each broker, by id.
    """
    before, after = (
        on_all_brokers(problem, today(problem), problem.leaders),
        on_all_brokers(problem, assignment, leaders_after(problem, assignment)),
    )
    arriving, leaving = bytes_in_and_out(problem, assignment)
    known = {broker.id for broker in spec.cluster.brokers}
    capacities = {broker.id: broker.network_bytes_per_sec for broker in known_brokers(spec)}
    return tuple(
        BrokerRow(
            id=broker,
            rack=problem.rack_names[problem.broker_racks[at]] if problem.broker_racks[at] >= 0 else None,
            role=("stays" if broker in known else "added") if problem.targets[at] else "removed",
            before=_load(problem, before[:, at]),
            after=_load(problem, after[:, at]),
            bytes_in=int(arriving[at]),
            bytes_out=int(leaving[at]),
            disk_bytes=peak.disk_bytes,
            peak_size_bytes=peak.size_bytes,
            network_bytes_per_sec=capacities[broker],
        )
        for at, (broker, peak) in enumerate(zip(problem.broker_ids.tolist(), peaks, strict=True))
    )


def held_bytes(problem: Problem) -> dict[int, int]:
    """Broker id to the bytes that it holds today."""
    held = on_all_brokers(problem, today(problem), problem.leaders)[2]
    return dict(zip(problem.broker_ids.tolist(), held.tolist(), strict=True))


def known_brokers(spec: Spec) -> tuple[Broker, ...]:
    """Today's brokers and the added ones."""
    return spec.cluster.brokers + spec.changes.add_brokers


def racks(spec: Spec, problem: Problem, assignment: IntArray) -> tuple[RackRow, ...]:
    """Every rack of today and of the target, the sum of its brokers; brokers without one are in the rack None.

    Brokers that `set_racks` moves count in their old rack before. One that leaves counts after as long as it holds any
    replica.
    """
    now = {broker.id: broker.rack for broker in spec.cluster.brokers}
    ids = problem.broker_ids.tolist()
    names = [problem.rack_names[rack] if rack >= 0 else None for rack in problem.broker_racks]
    before, after = (
        on_all_brokers(problem, today(problem), problem.leaders),
        on_all_brokers(problem, assignment, leaders_after(problem, assignment)),
    )
    rows, there = list[RackRow](), problem.targets | (after[0] > 0)
    found = {*names, *now.values()}
    for rack in sorted(found, key=lambda name: (name is None, name or "")) if found != {None} else ():
        old = np.array([broker in now and now[broker] == rack for broker in ids], dtype=bool)
        new = np.array([name == rack for name in names], dtype=bool) & there
        rows.append(
            RackRow(
                rack=rack,
                brokers_before=int(old.sum()),
                brokers_after=int(new.sum()),
                before=_load(problem, before[:, old].sum(axis=1)),
                after=_load(problem, after[:, new].sum(axis=1)),
            )
        )
    return tuple(rows)


def topics(spec: Spec, problem: Problem, assignment: IntArray) -> tuple[TopicRow, ...]:
    """Every topic by name, with its factor before and after and what moves of it."""
    count = len(problem.topic_names)
    before = today(problem)
    added = score.adding(problem, assignment).sum(axis=1)
    new = problem.is_new
    changed = (before != assignment).any(axis=1) & ~new
    sums = [
        np.bincount(problem.topic_of, weights=column, minlength=count).astype(np.int64).tolist()
        for column in (np.ones(problem.rows), changed, added)
    ]
    moved = np.zeros(count, dtype=np.int64)
    np.add.at(moved, problem.topic_of, added * problem.size_bytes)
    factors = _factors(problem, (before >= 0).sum(axis=1), ~new)
    wanted = _factors(problem, problem.replication_factors, np.ones_like(new))
    configs = {topic.name: topic for topic in topics_after(spec)}
    return tuple(
        TopicRow(
            name=name,
            partitions=partitions,
            replication_factor_before=tuple(factors[at]),
            # A budget may raise some of a topic's partitions alone, and a topic may be of several factors today.
            replication_factor=wanted[at][0] if len(wanted[at]) == 1 else None,
            config=dict(configs[name].config),
            effective_config=dict(configs[name].effective_config) or None,
            partitions_changed=partitions_changed,
            replicas_moved=replicas_moved,
            bytes_moved=int(moved[at]),
        )
        for at, (name, partitions, partitions_changed, replicas_moved) in enumerate(
            zip(problem.topic_names, *sums, strict=True)
        )
    )


def warnings(spec: Spec, problem: Problem, changed: Sequence[PartitionChange]) -> list[str]:
    """What an operator should know before approving; nothing that the plan can help."""
    partitions = [part for topic in spec.cluster.topics for part in topic.partitions]
    lagging = sum(1 for part in partitions if part.isr is not None and len(part.isr) < len(part.replicas))
    grown = sum(1 for new in spec.changes.new_partitions if new.first)
    mixed = sum(1 for topic in spec.cluster.topics if len({len(part.replicas) for part in topic.partitions}) > 1)
    deleting = sum(topic.deleting for topic in spec.cluster.topics)
    kept = sum(not topic.deleting and not may_move(spec.topics, topic.name) for topic in spec.cluster.topics)
    targets = set(problem.broker_ids[problem.targets].tolist())
    stay = [broker for broker in known_brokers(spec) if broker.id in targets]
    disks, networks = {each.disk_bytes for each in stay}, {each.network_bytes_per_sec for each in stay}
    found = [
        (not spec.cluster.sizes_known, "sizes are unknown (no cluster.state.sizes): replicas are counted, not bytes"),
        (
            spec.cluster.unsized,
            f"{_number(spec.cluster.unsized, 'partition')} without a size, counted as empty: "
            "more bytes move than this plan says",
        ),
        (lagging, f"{_number(lagging, 'partition')} under-replicated today: a reassignment waits for a full ISR"),
        (grown, f"{_number(grown, 'topic')} with more partitions: keys will map to other partitions than before"),
        (mixed, f"{_number(mixed, 'topic')} with unlike replication factors within the topic"),
        (kept, f"{_number(kept, 'topic')} kept as they are by the topic filter, and counted"),
        (deleting, f"{_number(deleting, 'topic')} marked for deletion: kept as they are, and counted"),
        (
            not problem.racks_matter and problem.rack_aware,
            "no broker has a rack: replicas are not spread over racks",
        ),
        (
            None in disks and disks != {None},
            "capacity.disk is stated for some brokers alone: replicas and bytes are shared equally, not by capacity",
        ),
        (
            None in networks and networks != {None},
            "capacity.network is stated for some brokers alone: leaders and traffic are shared equally",
        ),
        (
            disks != {None} and not spec.cluster.sizes_known,
            "capacity.disk isn't checked: sizes are unknown",
        ),
    ]
    told = [text for applies, text in found if applies]
    return [*told, *plan_warnings.conditions(spec, problem, changed), *spec.cluster.notes]


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _load(problem: Problem, column: LongArray) -> HeldLoad:
    """A column of MEASURES; traffic is None where no rates are known."""
    replicas, leaders, size_bytes, *traffic = column.tolist()
    network_in, network_out = traffic if measured(problem) == len(MEASURES) else (None, None)
    return HeldLoad(
        replicas=replicas, leaders=leaders, size_bytes=size_bytes, network_in=network_in, network_out=network_out
    )


def _factors(problem: Problem, counts: IntArray, rows: BoolArray) -> list[list[int]]:
    """The different replication factors of each topic (T) among some rows (P,), ascending."""
    pairs = np.unique(np.stack([problem.topic_of[rows], counts[rows]]), axis=1)
    bounds = np.searchsorted(pairs[0], np.arange(len(problem.topic_names) + 1))
    return [pairs[1, start:end].tolist() for start, end in pairwise(bounds)]
