"""What makes one plan better than another: the ranking, and the Pareto front.

Both work on columns of numbers, so that any part of a sweep can be ranked where it was scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from planner.model.problem import LongArray, Problem
from planner.model.spec import AIMS

# Two tie-breaks that are counted for solved plans alone, UNKNOWN for Kafka's: partitions that gain or lose a replica,
# and the sum over brokers of the squares of the replicas that arrive.
TIES = ("partitions_touched", "arrivals_squared")

# The scores that each of `spec.AIMS` is about, most important first.
AIM_COLUMNS = {
    "leaders_changed": ("leaders_changed", *TIES),
    "cross_rack_bytes": ("cross_rack_bytes",),
    "makespan": ("busiest_bytes",),
    "peak_disk": ("peak_disk_ppm",),
}
# What `resilience.survive` asks for comes before the balance: the partitions of the worst single failure.
SURVIVE_COLUMNS: dict[str, tuple[str, ...]] = {
    "none": (),
    "broker": ("broker_offline", "broker_refused"),
    "rack": ("rack_offline", "rack_refused"),
}


def ranking(aims: Iterable[str], survive: str = "none", *, sizes_known: bool = True) -> tuple[str, ...]:
    """What makes one plan better than another, most important first; the row's number settles what is left.

    Aims that aren't named come after those that are, in their usual order. Replicas moved come after all of them,
    unless no sizes are known: then they are what is moved.
    """
    first = ("violations", "unproven", *SURVIVE_COLUMNS[survive], "excess", "scenario_excess", "bytes_moved")
    by_aims = [column for aim in dict.fromkeys((*aims, *AIMS)) for column in AIM_COLUMNS[aim]]
    moved = (*by_aims, "replicas_moved") if sizes_known else ("replicas_moved", *by_aims)
    return (*first, *moved, "imbalance_ppm", "candidate")


def ranking_of(problem: Problem) -> tuple[str, ...]:
    """The ranking of a problem's plans."""
    return ranking(problem.aims, problem.survive, sizes_known=problem.sizes_known)


def moved_column(problem: Problem) -> str:
    """The score that says how much a plan moves: where sizes are unknown, all plans have the same bytes, none."""
    return "bytes_moved" if problem.sizes_known else "replicas_moved"


RANKING = ranking(AIMS)


def first(columns: Sequence[LongArray], count: int) -> LongArray:
    """The places of the first `count` rows when they are sorted by these columns (each (C,)), in that order."""
    sure, open_to = np.zeros(0, dtype=np.int64), np.arange(len(columns[0]))
    # Sorting all rows by all columns would take longer than scoring them: only those that tie are looked at further.
    for column in columns:
        missing = count - len(sure)
        if len(open_to) <= missing or not missing:
            break
        values = column[open_to]
        limit = np.partition(values, missing - 1)[missing - 1]
        sure = np.concatenate([sure, open_to[values < limit]])
        open_to = open_to[values == limit]
    found = np.concatenate([sure, open_to[: count - len(sure)]])
    return found[np.lexsort([column[found] for column in reversed(columns)])]


def unbeaten(moved: LongArray, imbalance: LongArray, order: Sequence[LongArray]) -> LongArray:
    """The places of the rows that no other beats in both what is moved and imbalance (each (C,)), by those.

    Of rows that are equal in both, the first by the columns of `order`.
    """
    by_moved = np.lexsort([imbalance, moved])
    if not len(by_moved):
        return by_moved
    so_far = np.minimum.accumulate(imbalance[by_moved])
    # A row is on the front, or equal to one that is, where its imbalance is below that of all that move less.
    starts = np.ones(len(by_moved), dtype=bool)
    starts[1:] = so_far[1:] < so_far[:-1]
    leader = by_moved[np.maximum.accumulate(np.where(starts, np.arange(len(by_moved)), 0))]
    alike = by_moved[(moved[by_moved] == moved[leader]) & (imbalance[by_moved] == imbalance[leader])]
    ordered = alike[np.lexsort([column[alike] for column in (*reversed(order), imbalance, moved)])]
    firsts = np.ones(len(ordered), dtype=bool)
    firsts[1:] = moved[ordered][1:] != moved[ordered][:-1]
    return ordered[firsts]
