"""Cordoned brokers get no new replica (`cordoned.log.dirs` of Kafka 4.3, KIP-1066), and may keep today's replicas.

A partition with a replica on a cordoned broker may keep it or give it up. No other partition may come to the broker.
So the brokers that a partition may use depend on where it is today, and not only on its topic.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.model.cluster import Broker
from planner.model.problem import UNCAPPED, BoolArray, IntArray, LongArray, Problem
from planner.model.spec import Spec


def with_cordons(problem: Problem, brokers: Sequence[Broker], today_ids: Collection[int]) -> Problem:
    """The problem of these brokers (B,), in which cordoned brokers of `today_ids` get no new replica.

    A broker that joins although it is cordoned isn't left empty: the plan copies to it, and is refused for that.
    """
    cordoned = np.array([each.cordoned and each.id in today_ids for each in brokers], dtype=bool)
    return replace(problem, cordoned=cordoned) if cordoned.any() else problem


def only_cordoned(spec: Spec, ids: Collection[int]) -> Spec:
    """The spec with these brokers cordoned and no others, for a plan that was decided with them.

    Copies to brokers that are cordoned since then are refused later.
    """
    brokers = (replace(each, cordoned_log_dirs=("*",) * (each.id in ids)) for each in spec.cluster.brokers)
    return replace(spec, cluster=replace(spec.cluster, brokers=tuple(brokers)))


def may_hold(problem: Problem, rows: IntArray | int, brokers: IntArray | int) -> BoolArray:
    """(n,): True where these partitions may have a replica on these brokers; `rows` or `brokers` may be a single
    number. `placement` allows the topic there, and the broker isn't cordoned or has a replica of the partition today.
    """
    rows, brokers = np.broadcast_arrays(np.atleast_1d(rows), brokers)
    is_allowed: BoolArray = np.ones(len(rows), dtype=bool)
    if problem.allowed is not None:
        is_allowed = problem.allowed[problem.topic_of[rows], brokers]
    if problem.cordoned is not None:
        is_allowed &= ~problem.cordoned[brokers] | (problem.replicas[rows] == brokers[:, None]).any(axis=1)
    return is_allowed


def usable_sets(problem: Problem) -> tuple[BoolArray, IntArray] | None:
    """The distinct sets of target brokers that partitions may use (S, Bt), and the set of each partition (P,); None if
    every partition may use all target brokers.
    """
    if problem.allowed is None and problem.cordoned is None:
        return None
    brokers = np.flatnonzero(problem.targets)
    allowed = np.ones((1, len(brokers)), dtype=bool) if problem.allowed is None else problem.allowed[:, brokers]
    sets, of_topic = np.unique(allowed, axis=0, return_inverse=True)
    of_row = np.broadcast_to(of_topic.reshape(-1), len(problem.topic_names))[problem.topic_of]
    if problem.cordoned is None:
        return sets, of_row.astype(np.int32)
    has_replica = _has_replica_on(problem, positions := _cordoned_targets(problem))
    kinds, of_row = np.unique(np.column_stack([of_row, has_replica]), axis=0, return_inverse=True)
    usable = sets[kinds[:, 0]]
    usable[:, positions] &= kinds[:, 1:].astype(bool)
    return usable, of_row.reshape(-1).astype(np.int32)


def most_on_broker(problem: Problem, column: LongArray, summed: Callable[[LongArray], NDArray[Any]]) -> NDArray[Any]:
    """The most that a broker may hold: `summed` over one replica of each partition (P, 1). (K, 1); or (K, Bt) if
    brokers are cordoned, because these may hold no more than today.
    """
    most, positions = summed(column), _cordoned_targets(problem)
    if len(positions):
        most = np.repeat(most, int(problem.targets.sum()), axis=1)
        most[:, positions] = summed(column * _has_replica_on(problem, positions))
    return most


def most_led(problem: Problem) -> LongArray | None:
    """(1, Bt): the most partitions that each target broker may lead, by its cap or because it is cordoned; None if each
    may lead all.
    """
    if problem.caps is None and problem.cordoned is None:
        return None
    most: LongArray = np.full((1, int(problem.targets.sum())), UNCAPPED, dtype=np.int64)
    if problem.caps is not None:
        most = problem.caps[1:, problem.targets]
    positions = _cordoned_targets(problem)
    most[0, positions] = np.minimum(most[0, positions], _has_replica_on(problem, positions).sum(axis=0))
    return most


def _cordoned_targets(problem: Problem) -> IntArray:
    """The positions of the cordoned brokers among the target brokers."""
    none = np.zeros(0, dtype=np.int32)
    return none if problem.cordoned is None else np.flatnonzero(problem.cordoned[problem.targets]).astype(np.int32)


def _has_replica_on(problem: Problem, positions: IntArray) -> BoolArray:
    """(P, K): True where the partition has a replica today on the target broker at that position."""
    brokers = np.flatnonzero(problem.targets)[positions].tolist()
    has_replica = np.zeros((problem.rows, len(positions)), dtype=bool)
    for column, broker in enumerate(brokers):
        has_replica[:, column] = (problem.replicas == broker).any(axis=1)
    return has_replica
