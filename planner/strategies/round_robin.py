"""The round robin that most articles on Kafka describe: replica j of partition i on broker (i + j) mod n.

It is Kafka's own placement with one fixed start index and shift and without the extra shift after each round, so
that the same brokers follow each other in every round: cheap to explain, and worse when a broker fails.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.model.build_problem import rows_to_place, today
from planner.model.errors import InfeasibleError
from planner.model.problem import IntArray, Problem
from planner.strategies.kafka_classic import broker_order, starts_and_shifts


def place(brokers: Sequence[int], partitions: int, replication_factor: int, start: int = 0) -> list[tuple[int, ...]]:
    """Replica lists of partitions 0..partitions-1, preferred leader first, on `brokers` (ids) in the order given.

    InfeasibleError for a replication factor below 1 or above the number of brokers, or nothing to place.
    """
    if partitions <= 0:
        raise InfeasibleError(f"partitions is {partitions}: at least 1 partition is needed to place anything")
    _check_factor(replication_factor, len(brokers))
    n, replicas = len(brokers), range(replication_factor)
    return [tuple(brokers[(start + i + j) % n] for j in replicas) for i in range(partitions)]


def assign(problem: Problem, seed: int = 0, start_index: int = -1) -> IntArray:
    """Round robin of every topic that may move, as an assignment (P, W) of broker indices padded with -1.

    The target brokers are in Kafka's order, alternated by rack where racks matter. A start index of -1 is drawn for
    each topic from the seed. Rows that may not move keep today's replicas. InfeasibleError as in `place`.
    """
    order, _ = broker_order(problem)
    starts, _ = starts_and_shifts(problem, seed, start_index, 0)
    rows = np.flatnonzero(rows_to_place(problem))
    assignment = today(problem)
    factors = problem.replication_factors[rows]
    for factor in set(factors.tolist()):
        _check_factor(factor, len(order))
    replicas = np.arange(problem.width, dtype=np.int32)
    firsts = problem.partition_ids[rows] + starts[problem.topic_of[rows]]
    lists = order.take(firsts[:, None] + replicas, mode="wrap") if len(rows) else assignment[rows]
    assignment[rows] = np.where(replicas < factors[:, None], lists, -1)
    return assignment


def _check_factor(replication_factor: int, brokers: int) -> None:
    if not 1 <= replication_factor <= brokers:
        allowed = f"from 1 to {brokers}, the number of brokers"
        raise InfeasibleError(f"replication factor is {replication_factor}: it must be {allowed}")
