"""What an assignment puts on brokers: replicas, leaders, bytes, and traffic as Kafka really makes it.

Every replica of a partition is written what producers write to it, the leader's by them and a follower's by its
fetches; a leader sends that to each follower, and to consumers what they read.
"""

from __future__ import annotations

import numpy as np

from planner.model import IntArray, LongArray, Problem

MEASURES = ("replicas", "leaders", "size_bytes", "network_in", "network_out")
# Measures that are there where no rate is known: traffic would be zeros that a sweep adds up millions of times.
_WITHOUT_RATES = 3


def measured(problem: Problem) -> int:
    """How many of MEASURES, the first ones, say anything about this problem."""
    known = bool(problem.bytes_in_per_sec.any() or problem.bytes_out_per_sec.any())
    return len(MEASURES) if known else _WITHOUT_RATES


def loads(problem: Problem, assignment: IntArray, leaders: IntArray | None = None) -> LongArray:
    """(3, Bt): bytes, bytes/s in and bytes/s out of each target broker under an assignment (P, W).

    Preferred leaders lead, unless others are given (P,), -1 for none.
    """
    leading = assignment[:, 0] if leaders is None else leaders
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
    at = np.where(replicas >= 0, here[replicas], -1)
    led_by = np.where(leaders >= 0, here[leaders], -1)
    rows, slots = np.nonzero(at >= 0)
    held = groups[rows].astype(np.int64) * columns + at[rows, slots]
    lead = np.flatnonzero(led_by >= 0)
    led = groups[lead].astype(np.int64) * columns + led_by[lead]
    followers = np.maximum((replicas[lead] >= 0).sum(axis=1) - 1, 0)
    cells = count * columns
    parts = (
        lambda: np.bincount(held, minlength=cells),
        lambda: np.bincount(led, minlength=cells),
        lambda: _added(cells, held, problem.size_bytes[rows]),
        lambda: _added(cells, held, problem.bytes_in_per_sec[rows]),
        lambda: _added(cells, led, problem.bytes_in_per_sec[lead] * followers + problem.bytes_out_per_sec[lead]),
    )
    made = [part().reshape(count, columns) for part in parts[:measures]]
    return np.stack(made, axis=1).astype(np.int64)


def _added(cells: int, at: LongArray, values: LongArray) -> LongArray:
    """(cells,): the values added up where they belong; exact, which a weighted count of floats isn't."""
    sums = np.zeros(cells, dtype=np.int64)
    np.add.at(sums, at, values)
    return sums
