"""Small random clusters whose windows often can't all hold: small enough for an exact solver, and still realistic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.model.balance import Balance, Tolerance
from planner.model.build_problem import build
from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.document_fields import PlacementRuleRow, ReplicationFactorRow
from planner.model.problem import Problem, misplaced
from planner.model.spec import Changes, Rebalance, Spec, TopicFilter

_MOST_PARTITIONS = 10
_RACKS = ("a", "b", "c")
_GB = 10**9
# Clusters with this number or a higher one have placement rules.
PLACED = 1_000_000


def cluster(number: int) -> Problem:
    """The problem with this number; the same on every machine."""
    rng = np.random.Generator(np.random.PCG64(number))
    spec = _spec(rng)
    problem = build(spec if number < PLACED else _with_placement(rng, spec))
    if rng.random() < 0.1:
        # Partitions that a budget leaves for later stay where they are.
        waiting = problem.movable & (rng.random(problem.rows) < 0.4)
        replica_counts = (problem.replicas >= 0).sum(axis=1).astype(np.int32)
        problem = replace(
            problem,
            movable=problem.movable & ~waiting,
            deferred=waiting & problem.forced,
            replication_factors=np.where(waiting, replica_counts, problem.replication_factors),
        )
    return problem


def _with_placement(rng: np.random.Generator, spec: Spec) -> Spec:
    """The spec with one or two rules that every topic can keep; without rules if 20 tries find none."""
    names = [topic.name for topic in spec.cluster.topics]
    ids = [broker.id for broker in (*spec.cluster.brokers, *spec.changes.add_brokers)]
    for _ in range(20):
        exclusive = bool(rng.random() < 0.5)
        shuffled = rng.permutation(ids).tolist()
        cut = int(rng.integers(1, len(ids)))
        sets = [(rng.permutation(ids)[: int(rng.integers(1, len(ids) + 1))].tolist()) for _ in range(2)]
        if exclusive:
            sets = [shuffled[:cut], shuffled[cut:]]
        chosen = rng.permutation(names)[: int(rng.integers(1, 3))].tolist()
        rules = zip(chosen, sets, strict=False)
        placed_spec = replace(
            spec, placement=tuple(PlacementRuleRow(n, f"of {n}", tuple(each), exclusive) for n, each in rules)
        )
        problem = build(placed_spec)
        usable = problem.allowed_targets
        assert usable is not None
        has_enough = usable.sum(axis=1)[problem.topic_of] >= problem.replication_factors
        if has_enough.all() and not (misplaced(problem, problem.replicas) & ~problem.movable).any():
            return placed_spec
    return spec


def _spec(rng: np.random.Generator) -> Spec:
    count = int(rng.integers(3, 7))
    has_racks = rng.random() < 0.5
    has_disks = rng.random() < 0.2
    today = [_broker(rng, each, has_rack=has_racks, has_disk=has_disks) for each in range(1, count + 1)]
    added = [
        _broker(rng, count + 1 + each, has_rack=has_racks, has_disk=has_disks)
        for each in range(int(rng.integers(0, 3)))
    ]
    leaving = rng.permutation(count)[: int(rng.integers(0, 3))] + 1 if rng.random() < 0.4 else np.zeros(0, dtype=int)
    staying = count - len(leaving) + len(added)
    replaced = list(zip(leaving.tolist(), [each.id for each in added], strict=False)) if rng.random() < 0.3 else []
    removed = [each for each in leaving.tolist() if each not in dict(replaced)]
    topics = _topics(rng, count, min(3, staying, count))
    excluded = tuple(
        topic.name
        for topic in topics
        if rng.random() < 0.15 and not any(set(leaving.tolist()) & set(each.replicas) for each in topic.partitions)
    )
    factors = tuple(
        ReplicationFactorRow(topic.name, int(rng.integers(1, min(3, staying) + 1)))
        for topic in topics
        if topic.name not in excluded and rng.random() < 0.15
    )
    moved = [each for each in today if rng.random() < 0.2 and each.id not in leaving] if rng.random() < 0.2 else []
    rebalance: Rebalance = "all" if rng.random() < 0.85 else "none" if rng.random() < 0.5 else "leaders"
    return Spec(
        cluster=Cluster("random", tuple(today), tuple(topics), sizes_known=True),
        changes=Changes(
            add_brokers=tuple(added),
            remove_brokers=tuple(removed),
            replace_brokers=tuple(replaced),
            set_racks=tuple((each.id, str(rng.choice(_RACKS))) for each in moved) if has_racks else (),
            set_replication_factor=factors,
            rebalance=rebalance,
        ),
        topics=TopicFilter(exclude=excluded),
        rack_aware=bool(rng.random() < 0.9),
        balance=_balance(rng),
    )


def _broker(rng: np.random.Generator, number: int, *, has_rack: bool, has_disk: bool) -> Broker:
    disk = int(rng.choice([200, 400, 1000])) * _GB if has_disk else None
    return Broker(number, str(rng.choice(_RACKS)) if has_rack else None, disk_bytes=disk)


def _topics(rng: np.random.Generator, brokers: int, most: int) -> list[Topic]:
    topics: list[Topic] = []
    remaining = int(rng.integers(3, _MOST_PARTITIONS + 1))
    while remaining:
        rows = int(rng.integers(1, min(remaining, 5) + 1))
        remaining -= rows
        factor, scale = int(rng.integers(1, most + 1)), float(rng.choice([1, 10, 70]))
        partitions = [
            Partition(
                number,
                tuple((rng.permutation(brokers)[:factor] + 1).tolist()),
                None,
                None,
                int(rng.lognormal(0, 0.6) * scale * 1000) * (_GB // 1000),
                int(rng.integers(0, 5000)),
            )
            for number in range(rows)
        ]
        led_partitions = [
            replace(each, leader=None if rng.random() < 0.03 else each.replicas[0]) for each in partitions
        ]
        topics.append(Topic(f"t{len(topics)}", tuple(led_partitions)))
    return topics


def _balance(rng: np.random.Generator) -> Balance:
    def one(*texts: str) -> Tolerance:
        return Tolerance.parse(str(rng.choice(texts)))

    return Balance(
        replicas=one("1", "1", "1", "0", "2", "3", "20%", "none"),
        topic_replicas=one("1", "1", "1", "0", "2", "none"),
        disk=one("10%", "10%", "10%", "2%", "0%", "30%", "none"),
        network_in=one("none", "none", "none", "10%"),
    )
