"""The plan's section on new partitions: their replicas as Kafka's tools write them, compared with Kafka's placements.

Kafka's two rules place the new partitions on the same brokers, after every existing replica is where the plan puts it:
`AdminUtils` (the classic rule, see `kafka_classic`) and KRaft's `StripedReplicaPlacer` (see `kafka_striped`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from planner.model.formats import replica_assignment
from planner.model.problem import IntArray, LongArray, Problem
from planner.model.spec import NewPartitions, Spec
from planner.plan.document.comparison_types import THIS_PLAN
from planner.plan.document.partition_types import NewPartitionsRow, NewPartitionsSection, PlacementRow
from planner.scoring.broker_loads import counts_by_group, leaders_after
from planner.strategies import kafka_classic, kafka_striped
from planner.strategies.java_random import utf16_key
from planner.strategies.kafka_classic import Brokers, draws

# Each rule makes at most 200 placements and at least 10: as many as place about 100,000 replicas in all.
_MOST_SEEDS, _LEAST_SEEDS, _PLACEMENTS = 200, 10, 100_000

TopicLists = list[tuple[int, ...]]


def section(spec: Spec, problem: Problem, assignment: IntArray) -> NewPartitionsSection | None:
    """The `new_partitions` of plan.json; None if none are asked for."""
    requested = sorted(spec.changes.new_partitions, key=lambda new: new.topic)
    if not requested:
        return None
    concerned = {new.topic for new in requested}
    today: dict[str, TopicLists] = {
        topic.name: [each.replicas for each in topic.partitions]
        for topic in spec.cluster.topics
        if topic.name in concerned
    }
    ids, lists_of = problem.broker_ids, dict[str, TopicLists]()
    for row in np.flatnonzero(problem.is_new).tolist():
        replicas = tuple(ids[[broker for broker in assignment[row] if broker >= 0]].tolist())
        lists_of.setdefault(problem.topic_names[problem.topic_of[row]], []).append(replicas)
    return NewPartitionsSection(
        topics=tuple(
            NewPartitionsRow(
                topic=new.topic,
                partitions_before=new.first,
                partitions=new.count,
                replication_factor=new.replication_factor,
                config=dict(new.config),
                replicas=tuple(lists_of[new.topic]),
                # `kafka-topics --alter` also needs today's partitions in the list, and skips them.
                replica_assignment=replica_assignment((*today.get(new.topic, ()), *lists_of[new.topic])),
            )
            for new in requested
        ),
        compared=_compared(Board.of(problem, assignment, requested), lists_of, today),
    )


@dataclass(frozen=True, eq=False)
class Board:
    """Counts of existing replicas and leaders. Placements of new partitions are added to measure how even they are.

    `topics` maps each topic with new partitions to its row, `columns` each broker id to its column. `replicas` and
    `leaders` (T + 1, B) count existing ones: a row per topic with new partitions; the last row is all other topics.
    """

    requested: Sequence[NewPartitions]
    brokers: Brokers
    topics: dict[str, int]
    columns: dict[int, int]
    replicas: LongArray
    leaders: LongArray

    @classmethod
    def of(cls, problem: Problem, assignment: IntArray, requested: Sequence[NewPartitions]) -> Self:
        """The counts of an assignment (P, W)."""
        targets = np.flatnonzero(problem.targets).tolist()
        ids, racks = problem.broker_ids.tolist(), problem.broker_racks.tolist()
        topics = {new.topic: number for number, new in enumerate(requested)}
        groups = np.array([topics.get(name, len(requested)) for name in problem.topic_names])[problem.topic_of]
        lists, leaders = (each[~problem.is_new] for each in (assignment, leaders_after(problem, assignment)[:, None]))
        return cls(
            requested=requested,
            brokers=[
                (ids[broker], problem.rack_names[racks[broker]] if problem.racks_matter else None) for broker in targets
            ],
            topics=topics,
            columns={ids[broker]: column for column, broker in enumerate(targets)},
            replicas=counts_by_group(problem, lists, groups[~problem.is_new], len(requested) + 1),
            leaders=counts_by_group(problem, leaders, groups[~problem.is_new], len(requested) + 1),
        )

    def measure(self, lists: dict[str, TopicLists]) -> tuple[int, ...]:
        """Most minus fewest replicas, and leaders, on a broker after these replica lists are added; then the same two
        numbers of the worst topic that has new partitions.
        """
        replicas, leaders = self.replicas.copy(), self.leaders.copy()
        for name, replica_lists in lists.items():
            columns = np.array([[self.columns[broker] for broker in each] for each in replica_lists])
            np.add.at(replicas[self.topics[name]], columns.ravel(), 1)
            np.add.at(leaders[self.topics[name]], columns[:, 0], 1)
        tables = (replicas.sum(axis=0), leaders.sum(axis=0), replicas[:-1], leaders[:-1])
        return tuple(int((table.max(axis=-1) - table.min(axis=-1)).max()) for table in tables)


def _compared(board: Board, planned: dict[str, TopicLists], today: dict[str, TopicLists]) -> tuple[PlacementRow, ...]:
    """The plan, then the most even and the median placement of each of Kafka's rules."""
    rows = [PlacementRow(THIS_PLAN, 1, *board.measure(planned))]
    replicas = sum((new.count - new.first) * new.replication_factor for new in board.requested)
    seeds = min(max(_PLACEMENTS // max(replicas, 1), _LEAST_SEEDS), _MOST_SEEDS)
    for label, placements in (
        ("Kafka's classic rule", classic(board, today, seeds)),
        ("Kafka's striped rule", _striped(board, seeds)),
    ):
        measured = sorted(map(board.measure, placements))
        count = len(measured)
        picks = {f", best of {count}": measured[0], f", median of {count}": measured[(count - 1) // 2]}
        if count == 1:
            picks = {"": measured[0]}
        rows += [PlacementRow(label + pick, count, *spreads) for pick, spreads in picks.items()]
    return tuple(rows)


def classic(board: Board, today: dict[str, TopicLists], seeds: int) -> Iterator[dict[str, TopicLists]]:
    """Placements by Kafka's classic rule: as many as `seeds`, or one if no topic is new.

    For a new topic, start index and shift are drawn at random. Partitions added to a topic start at the first broker of
    its partition 0. Source: AdminZkClient.addPartitions (Kafka 3.9).
    """
    created = any(not new.first for new in board.requested)
    starts, shifts = draws(np.arange(1, seeds + 1), len(board.requested), len(board.brokers))
    for seed in range(seeds if created else 1):
        lists_of: dict[str, TopicLists] = {}
        for index, new in enumerate(board.requested):
            start, shift = int(starts[seed, index]), int(shifts[seed, index])
            if new.first:
                leader = today[new.topic][0][0]
                start = shift = next((each for each, (broker, _) in enumerate(board.brokers) if broker >= leader), 0)
            lists_of[new.topic] = kafka_classic.place(
                board.brokers,
                new.count - new.first,
                new.replication_factor,
                start_index=start,
                next_replica_shift=shift,
                start_partition_id=new.first,
            )
        yield lists_of


def _striped(board: Board, seeds: int) -> Iterator[dict[str, TopicLists]]:
    """Placements by KRaft's rule: for each seed, as by a controller that has just started, with a request per topic."""
    brokers = [(broker, rack, False) for broker, rack in board.brokers]
    for seed in range(seeds):
        yield {
            new.topic: kafka_striped.place(
                brokers,
                new.count - new.first,
                new.replication_factor,
                java_random_seed=seed * len(board.requested) + index,
                start_partition=new.first,
            )
            for index, new in enumerate(sorted(board.requested, key=lambda each: utf16_key(each.topic)))
        }
