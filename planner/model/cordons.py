"""Cordoned brokers: they get no new replica (`cordoned.log.dirs` of Kafka 4.3, KIP-1066), and keep those of today.

A partition with a replica on a cordoned broker may keep it or give it up; every other partition can't come there. So
what a partition may be on depends on where it is today, and not on its topic alone.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.model.cluster import Broker
from planner.model.problem import UNCAPPED, BoolArray, IntArray, LongArray, Problem
from planner.model.spec import Spec


def with_cordons(problem: Problem, brokers: Sequence[Broker], there: Collection[int]) -> Problem:
    """The problem, of these brokers (B,), where the cordoned ones that are `there` already get no new replica.

    One that joins though it is cordoned isn't left empty: the plan copies to it, and is refused for that.
    """
    cordoned = np.array([each.cordoned and each.id in there for each in brokers], dtype=bool)
    return replace(problem, cordoned=cordoned) if cordoned.any() else problem


def without_cordons(spec: Spec) -> Spec:
    """The spec of what is decided already: a plan that copies to a cordoned broker is then refused for that alone."""
    brokers = tuple(replace(each, cordoned_log_dirs=()) for each in spec.cluster.brokers)
    return replace(spec, cluster=replace(spec.cluster, brokers=brokers))


def may_hold(problem: Problem, rows: IntArray | int, brokers: IntArray | int) -> BoolArray:
    """(n,): True where these partitions may have a replica on these brokers, where one of both may be a single one:
    `placement` lets their topic be there, and the broker isn't cordoned or has a replica of theirs today.
    """
    rows, brokers = np.broadcast_arrays(np.atleast_1d(rows), brokers)
    found: BoolArray = np.ones(len(rows), dtype=bool)
    if problem.allowed is not None:
        found = problem.allowed[problem.topic_of[rows], brokers]
    if problem.cordoned is not None:
        found &= ~problem.cordoned[brokers] | (problem.replicas[rows] == brokers[:, None]).any(axis=1)
    return found


def usable_sets(problem: Problem) -> tuple[BoolArray, IntArray] | None:
    """The different sets of target brokers that partitions may be on (S, Bt), and the set of each partition (P,); None
    where every partition may be on all of them.
    """
    if problem.allowed is None and problem.cordoned is None:
        return None
    brokers = np.flatnonzero(problem.targets)
    allowed = np.ones((1, len(brokers)), dtype=bool) if problem.allowed is None else problem.allowed[:, brokers]
    sets, of_topic = np.unique(allowed, axis=0, return_inverse=True)
    of_row = np.broadcast_to(of_topic.reshape(-1), len(problem.topic_names))[problem.topic_of]
    if problem.cordoned is None:
        return sets, of_row.astype(np.int32)
    held = _held_on(problem, at := _cordoned_targets(problem))
    kinds, of_row = np.unique(np.column_stack([of_row, held]), axis=0, return_inverse=True)
    usable = sets[kinds[:, 0]]
    usable[:, at] &= kinds[:, 1:].astype(bool)
    return usable, of_row.reshape(-1).astype(np.int32)


def most_on_broker(problem: Problem, column: LongArray, summed: Callable[[LongArray], NDArray[Any]]) -> NDArray[Any]:
    """The most that a broker may hold, of sums over one replica of each partition (P, 1): (K, 1), or (K, Bt) where
    brokers are cordoned, which may hold only what they hold today.
    """
    most, at = summed(column), _cordoned_targets(problem)
    if len(at):
        most = np.repeat(most, int(problem.targets.sum()), axis=1)
        most[:, at] = summed(column * _held_on(problem, at))
    return most


def most_led(problem: Problem) -> LongArray | None:
    """(1, Bt): the most partitions that each target broker may lead, by its cap, or as it is cordoned; None where each
    may lead all.
    """
    if problem.caps is None and problem.cordoned is None:
        return None
    most: LongArray = np.full((1, int(problem.targets.sum())), UNCAPPED, dtype=np.int64)
    if problem.caps is not None:
        most = problem.caps[1:, problem.targets]
    at = _cordoned_targets(problem)
    most[0, at] = np.minimum(most[0, at], _held_on(problem, at).sum(axis=0))
    return most


def _cordoned_targets(problem: Problem) -> IntArray:
    """The positions among the target brokers of those that are cordoned."""
    none = np.zeros(0, dtype=np.int32)
    return none if problem.cordoned is None else np.flatnonzero(problem.cordoned[problem.targets]).astype(np.int32)


def _held_on(problem: Problem, at: IntArray) -> BoolArray:
    """(P, K): True where a partition has a replica today on each of these target brokers, by position."""
    brokers = np.flatnonzero(problem.targets)[at].tolist()
    held = np.zeros((problem.rows, len(at)), dtype=bool)
    for column, broker in enumerate(brokers):
        held[:, column] = (problem.replicas == broker).any(axis=1)
    return held
