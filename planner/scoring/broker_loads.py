"""What an assignment puts on brokers: replicas, leaders, bytes, and traffic as Kafka really makes it.

Every replica of a partition is written what producers write to it, the leader's by them and a follower's by its
fetches; a leader sends that to each follower, and to consumers what they read.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from planner.model.problem import IntArray, LongArray, Problem

MEASURES = ("replicas", "leaders", "size_bytes", "network_in", "network_out")
# Measures that are there where no rate is known: traffic would be zeros that a sweep adds up millions of times.
_WITHOUT_RATES = 3


def measured(problem: Problem) -> int:
    """How many of MEASURES, the first ones, say anything about this problem."""
    known = bool(problem.bytes_in_per_sec.any() or problem.bytes_out_per_sec.any())
    return len(MEASURES) if known else _WITHOUT_RATES


def leaders_after(problem: Problem, assignment: IntArray) -> IntArray:
    """(P,): who leads once an assignment (P, W) is carried out, -1 for none.

    The preferred leader where the plan may say who leads: it holds an election wherever another one does today.
    Nowhere else does it hold any, so that the others are led as they are today, be it by nobody; nor does it elect a
    broker that is in no ISR while today's leader stays.
    """
    first, anew = assignment[:, 0], problem.may_lead_anew
    if problem.out_of_sync is not None and problem.out_of_sync.any():
        stays = (assignment == problem.leaders[:, None]).any(axis=1) & (problem.leaders >= 0)
        anew = anew & ~(np.append(problem.out_of_sync, False)[first] & stays)
    return np.where(anew, first, problem.leaders)


def loads(problem: Problem, assignment: IntArray, leaders: IntArray | None = None) -> LongArray:
    """(3, Bt): bytes, bytes/s in and bytes/s out of each target broker under an assignment (P, W).

    Led as by `leaders_after`, unless others are given (P,), -1 for none.
    """
    leading = leaders_after(problem, assignment) if leaders is None else leaders
    measures = by_group(problem, assignment, leading, np.zeros_like(problem.topic_of), 1, len(MEASURES))
    return measures[0, 2:]


def on_all_brokers(problem: Problem, replicas: IntArray, leaders: IntArray) -> LongArray:
    """(5, B): MEASURES of every broker of the problem, those that leave among them."""
    here = np.arange(len(problem.broker_ids), dtype=np.int32)
    return _sums(problem, replicas, leaders, np.zeros_like(problem.topic_of), (1, len(MEASURES), here))[0]


def by_group(
    problem: Problem, replicas: IntArray, leaders: IntArray, groups: IntArray, count: int, measures: int
) -> LongArray:
    """(count, measures, Bt): the first MEASURES of each group of partitions (P,) on each target broker.

    Replicas and leaders on other brokers aren't counted.
    """
    here = np.where(problem.targets, np.cumsum(problem.targets) - 1, -1).astype(np.int32)
    return _sums(problem, replicas, leaders, groups, (count, measures, here))


def _sums(
    problem: Problem, replicas: IntArray, leaders: IntArray, groups: IntArray, shape: tuple[int, int, IntArray]
) -> LongArray:
    """(count, measures, columns) of a shape (count, measures, column of each broker or -1)."""
    count, measures, here = shape
    columns = int(here.max(initial=-1)) + 1
    first = groups.astype(np.int64) * columns
    sums = np.zeros((measures, count * columns), dtype=np.int64)
    of_replicas = ((2, problem.size_bytes), (3, problem.bytes_in_per_sec))
    for position in replicas.T:
        rows, cells = _cells(position, first, here)
        sums[0] += np.bincount(cells, minlength=count * columns)
        _add(sums, cells, rows, of_replicas)
    if measures > 1:
        rows, cells = _cells(leaders, first, here)
        sums[1] = np.bincount(cells, minlength=count * columns)
    if measures > _WITHOUT_RATES:
        _add(sums, cells, rows, ((4, _sent_per_sec(problem, replicas)),))
    return sums.reshape(measures, count, columns).transpose(1, 0, 2)


def _cells(brokers: IntArray, first: LongArray, here: IntArray) -> tuple[LongArray | slice, LongArray]:
    """The partitions of one of these brokers (P,) each that are on one that counts, and its (group, column), flat."""
    at = here[brokers]
    if brokers.min(initial=0) < 0:
        at[brokers < 0] = -1
    if at.min(initial=0) >= 0:
        return slice(None), first + at
    rows = np.flatnonzero(at >= 0)
    return rows, first[rows] + at[rows]


def _add(sums: LongArray, cells: LongArray, rows: LongArray | slice, measures: Iterable[tuple[int, LongArray]]) -> None:
    """Add each measure's values (P,) of the rows to its sums; exact, which a weighted count of floats isn't."""
    for measure, values in measures:
        if measure < len(sums):
            np.add.at(sums[measure], cells, values[rows])


def _sent_per_sec(problem: Problem, replicas: IntArray) -> LongArray:
    """(P,): what the leader of each partition sends to its followers and to consumers."""
    followers = np.maximum((np.asfortranarray(replicas) >= 0).sum(axis=1) - 1, 0)
    return problem.bytes_in_per_sec * followers + problem.bytes_out_per_sec
