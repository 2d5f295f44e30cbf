"""Slow corners: clusters with partitions as large as the windows of bytes, with brokers that all differ, both large and
of skewed sizes, or with topics whose windows may begin anywhere.

Slow clusters had in common: sizes with a heavy tail, so that a few partitions fill a broker; disks, racks and
replication factors of many kinds; and windows that can't all hold. A flow can't decide where the large partitions go.
That takes branch and bound, whose number of cases is unbounded. This measures its time and the plans' gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter

import numpy as np

from benchmarks.apart import apart
from benchmarks.measure import solve
from benchmarks.table import UNKNOWN, Entries, Figures, gap, gigabytes, head, row
from planner.model.balance import Balance, Tolerance
from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.spec import Changes, Spec, Sweep
from planner.scoring.missed_targets import relaxed
from planner.scoring.score import ScoringBasis
from planner.sweep import evaluate
from planner.sweep.candidates import candidates

SMALL, WIDE, OVERFULL, HEAVY, SKEWED, SPREAD = "small", "wide", "over-full", "heavy", "skewed", "spread"
# The seeds of the clusters of each kind.
SEEDS = {SMALL: range(12), WIDE: range(2), OVERFULL: range(2), HEAVY: range(2), SKEWED: range(3), SPREAD: range(3)}
# An over-full cluster's disks have room for this part of all bytes.
_ROOM = 0.9
_SPREADS = ("1", "1", "2", "3", "none")
_DISKS = ("5%", "10%", "20%")

_COLUMNS = (
    "cluster",
    "brokers",
    "partitions",
    "GB moved",
    "bound GB",
    "gap",
    "windows not kept",
    "plan s",
    "what-if s",
)


@dataclass(frozen=True)
class Corner:
    """One cluster: its plan with the bound, the seconds of the plan alone, and the seconds of all candidates of a
    what-if in this process, None if they weren't tried.
    """

    kind: str
    seed: int
    brokers: int
    partitions: int
    bytes_moved: int
    least_bytes: int
    not_kept: int
    plan_seconds: float
    whatif_seconds: float | None


def entries(seeds: dict[str, range] | None = None) -> Entries:
    """The corners' Markdown, each line as soon as it is measured."""
    yield from ("## Slow corners: partitions as large as the windows, brokers all unlike", "")
    yield from head(_COLUMNS)
    for kind, seed_range in (SEEDS if seeds is None else seeds).items():
        for seed in seed_range:
            # Each candidate of a wide cluster takes as long as a plan, so only small clusters try all.
            corner = apart(measure, kind, seed, try_all=kind == SMALL)
            yield Figures("corners", asdict(corner))
            yield row(_cells(corner))


def measure(kind: str, seed: int, *, try_all: bool = True) -> Corner:
    """Make a cluster, plan it, and with `try_all` also try all candidates of a what-if, in this process."""
    solved = solve(make(kind, seed))
    problem, started = solved.problem, perf_counter()
    if try_all:
        evaluate.run(problem, candidates(problem, Sweep()))
    return Corner(
        kind=kind,
        seed=seed,
        brokers=int(problem.targets.sum()),
        partitions=problem.rows,
        bytes_moved=solved.plan.bytes_moved,
        least_bytes=solved.least_bytes,
        not_kept=len(relaxed(ScoringBasis.of(problem), solved.assignment)),
        plan_seconds=solved.solve_seconds,
        whatif_seconds=perf_counter() - started if try_all else None,
    )


def make(kind: str, seed: int) -> Spec:
    """The spec of a cluster; the same kind and seed give the same spec."""
    rng = np.random.default_rng([len(kind), seed])
    makers = {SMALL: _small, SKEWED: _skewed, SPREAD: _spread}
    return makers[kind](rng) if kind in makers else _wide(rng, kind)


def _small(rng: np.random.Generator) -> Spec:
    """31 to 95 partitions on 8 to 20 brokers; up to two more may join, and one may leave."""
    count = int(rng.integers(8, 21))
    brokers = _brokers(rng, count, racks=int(rng.integers(1, 5)), classes=int(rng.integers(1, 3)))
    topics = _topics(rng, brokers, int(rng.integers(31, 96)), topic_size=12, tail=float(rng.uniform(1.0, 2.0)))
    spreads = [Tolerance.parse(str(rng.choice(_SPREADS))) for _ in range(2)]
    balance = Balance(replicas=spreads[0], topic_replicas=spreads[1], disk=Tolerance.parse(str(rng.choice(_DISKS))))
    joining = tuple(
        Broker(100 + index, brokers[index].rack, brokers[index].disk_bytes) for index in range(int(rng.integers(0, 3)))
    )
    leaving = (brokers[-1].id,) if rng.integers(2) else ()
    return Spec(Cluster("corner", brokers, topics), Changes(joining, leaving), balance=balance)


def _wide(rng: np.random.Generator, kind: str) -> Spec:
    """200 brokers with disks of many sizes, and 12,000 partitions; 4,000 partitions of the same sizes if heavy."""
    brokers = _brokers(rng, 200, racks=5, classes=8)
    topics = _topics(rng, brokers, *((4_000, 40) if kind == HEAVY else (12_000, 60)), tail=1.0)
    if kind == OVERFULL:
        stored_bytes = sum(each.size_bytes or 0 for topic in topics for each in topic.partitions for _ in each.replicas)
        factor = _ROOM * stored_bytes / sum(broker.disk_bytes or 0 for broker in brokers)
        brokers = tuple(replace(broker, disk_bytes=int(factor * (broker.disk_bytes or 0))) for broker in brokers)
    return Spec(Cluster("corner", brokers, topics), Changes(), balance=Balance(disk=Tolerance.parse("10%")))


def _skewed(rng: np.random.Generator) -> Spec:
    """60 like brokers, three more, and 6,000 partitions of log-normal sizes, in topics of up to 40."""
    return _in_three_racks(rng, 60, 6_000, 1.5, Balance(disk=Tolerance.parse("10%")))


def _spread(rng: np.random.Generator) -> Spec:
    """30 like brokers, three more, and 5,000 partitions in topics whose replicas on brokers may differ by 2."""
    balance = Balance(topic_replicas=Tolerance.parse("2"), disk=Tolerance.parse("20%"))
    return _in_three_racks(rng, 30, 5_000, 0.7, balance)


def _in_three_racks(rng: np.random.Generator, brokers: int, partitions: int, tail: float, balance: Balance) -> Spec:
    """Like brokers in three racks, one more in each; each partition has a replica in each rack."""
    all_brokers = tuple(Broker(broker, f"r{broker % 3}") for broker in range(brokers + 3))
    topics: list[Topic] = []
    while (remaining := partitions - sum(len(topic.partitions) for topic in topics)) > 0:
        rows = []
        for partition in range(min(remaining, int(rng.integers(1, 41)))):
            replicas = tuple(int(3 * rng.integers(brokers // 3) + rack) for rack in rng.permutation(3))
            rows.append(Partition(partition, replicas, replicas[0], None, int(rng.lognormal(24, tail))))
        topics.append(Topic(f"t{len(topics):03}", tuple(rows)))
    return Spec(
        Cluster("corner", all_brokers[:brokers], tuple(topics)), Changes(all_brokers[brokers:]), balance=balance
    )


def _brokers(rng: np.random.Generator, count: int, racks: int, classes: int) -> tuple[Broker, ...]:
    disks = [int(4e12 * (1 + index)) for index in range(classes)]
    return tuple(Broker(broker, f"r{rng.integers(racks)}", int(rng.choice(disks))) for broker in range(1, count + 1))


def _topics(
    rng: np.random.Generator, brokers: Sequence[Broker], count: int, topic_size: int, tail: float
) -> tuple[Topic, ...]:
    """`count` partitions of log-normal sizes, in topics of up to `topic_size`, with replication factors 1 to 3."""
    topics: list[Topic] = []
    remaining, ids = count, [broker.id for broker in brokers]
    while remaining:
        partitions, factor = min(remaining, int(rng.integers(1, topic_size, endpoint=True))), int(rng.integers(1, 4))
        rows = []
        for partition in range(partitions):
            replicas = tuple(rng.permutation(ids)[:factor].tolist())
            size = int(rng.lognormal(24, tail))
            rows.append(Partition(partition, replicas, replicas[0], None, size))
        topics.append(Topic(f"t{len(topics):03}", tuple(rows)))
        remaining -= partitions
    return tuple(topics)


def _cells(corner: Corner) -> tuple[str, ...]:
    return (
        f"{corner.kind} {corner.seed}",
        f"{corner.brokers:,}",
        f"{corner.partitions:,}",
        gigabytes(corner.bytes_moved),
        gigabytes(corner.least_bytes),
        gap(corner.bytes_moved, corner.least_bytes),
        f"{corner.not_kept:,}",
        f"{corner.plan_seconds:.2f}",
        UNKNOWN if corner.whatif_seconds is None else f"{corner.whatif_seconds:.2f}",
    )
