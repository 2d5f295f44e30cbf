"""The Pareto front of a sweep: the candidates that no other candidate beats both in what it moves and in evenness.

Evenness is the imbalance, and, if a load profile is given, the worst hour and the months until a disk is full.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from planner.model.problem import LongArray, Problem

# The scores compared with what a plan moves. 1: more is worse; -1: more is better.
FRONTS = {"imbalance_ppm": 1, "worst_hour": 1, "months_until_full": -1}


def fronts(problem: Problem) -> Iterator[str]:
    """The columns that have a Pareto front: imbalance first, then the worst hour and the months ahead, if known."""
    known = (True, problem.week is not None, problem.sizes_ahead is not None)
    yield from (name for name, there in zip(FRONTS, known, strict=True) if there)


def moved_column(problem: Problem) -> str:
    """The score for what a plan moves: replicas if sizes are unknown, because then every plan moves 0 bytes."""
    return "bytes_moved" if problem.sizes_known else "replicas_moved"


def front(scores: pa.Table, order: Sequence[str], moved: str = "bytes_moved", even: str = "imbalance_ppm") -> pa.Table:
    """Valid rows that no other row beats in both `moved` and `even`, sorted by those; of equal rows, the first.

    `moved` is `moved_column(problem)`; `even` is one of `fronts(problem)`.
    """
    columns = [_column(scores, name) for name in (moved, even, *order)]
    valid = np.flatnonzero(_column(scores, "violations") == 0)
    return scores.take(pa.array(unbeaten(columns[0], FRONTS[even] * columns[1], columns[2:], valid)))


def unbeaten(moved: LongArray, imbalance: LongArray, order: Sequence[LongArray], valid: LongArray) -> LongArray:
    """The places, among `valid`, that no other row beats in both `moved` and `imbalance` (each (C,)), sorted by those.

    Of rows that are equal in both, the first by the columns of `order`.
    """
    if not len(valid):
        return valid
    # Sorting takes longest, so first drop the rows that one good row beats in both: nearly all of them.
    x, y = moved[valid], imbalance[valid]
    good = np.argmin(x / (abs(int(x.max())) + 1) + y / (abs(int(y.max())) + 1))
    valid = valid[(x <= x[good]) | (y <= y[good])]
    by_moved = valid[np.lexsort([imbalance[valid], moved[valid]])]
    so_far = np.minimum.accumulate(imbalance[by_moved])
    # A row is on the front, or equal to one on it, if its imbalance is below that of all rows that move less.
    starts = np.ones(len(by_moved), dtype=bool)
    starts[1:] = so_far[1:] < so_far[:-1]
    leader = by_moved[np.maximum.accumulate(np.where(starts, np.arange(len(by_moved)), 0))]
    alike = by_moved[(moved[by_moved] == moved[leader]) & (imbalance[by_moved] == imbalance[leader])]
    ordered = alike[np.lexsort([column[alike] for column in (*reversed(order), imbalance, moved)])]
    firsts = np.ones(len(ordered), dtype=bool)
    firsts[1:] = moved[ordered][1:] != moved[ordered][:-1]
    return ordered[firsts]


def _column(table: pa.Table, name: str) -> LongArray:
    return np.asarray(table[name], dtype=np.int64)
