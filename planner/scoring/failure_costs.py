"""The cost to an assignment if one broker or one rack fails, quick enough to score every candidate.

For each broker and rack that fails alone: how many partitions go offline (all replicas fail), and how many begin to
refuse writes with acks=all (fewer than `effective_min_insync` are left). All replicas count as in sync.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np

from planner.model.problem import IntArray, LongArray, Problem, effective_min_insync

# Losses are packed into one number, so that a sum takes one addition: partitions that go offline above the shift,
# partitions that begin to refuse writes below it.
_SHIFT = 32
_LOW = (1 << _SHIFT) - 1


@dataclass(frozen=True, eq=False)
class Fragile:
    """The data that `lost_by_group` needs of a problem: the partitions (n,) for which a single broker matters, and how
    many numbers each group has: one per rack, and one per broker if any partition is fragile.
    """

    rows: LongArray
    width: int

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """The partitions with `min.insync.replicas` replicas or fewer, today or after the change."""
        is_fragile = np.zeros(problem.rows, dtype=bool)
        for factors in (problem.replication_factors, (problem.replicas >= 0).sum(axis=1)):
            is_fragile |= (factors > 0) & (factors == effective_min_insync(problem.min_insync, factors))
        # A leaving broker holds partitions today, and still does if a budget leaves some for a later step.
        brokers = len(problem.broker_ids) if is_fragile.any() else 0
        return cls(np.flatnonzero(is_fragile), len(problem.rack_names) + brokers)


def lost_by_group(problem: Problem, fragile: Fragile, assignment: IntArray, groups: IntArray, count: int) -> LongArray:
    """(count, width): offline and refused partitions of each group of partitions (P,), packed, for each rack and broker
    that fails alone.
    """
    racks = len(problem.rack_names)
    lost = np.zeros((count, fragile.width), dtype=np.int64)
    if racks:
        _add_racks(problem, assignment, groups, lost)
    if fragile.width > racks:
        replicas, row_groups = assignment[fragile.rows], groups[fragile.rows]
        factors = (replicas >= 0).sum(axis=1)
        refused = factors == effective_min_insync(problem.min_insync[fragile.rows], factors)
        packed = ((factors == 1).astype(np.int64) << _SHIFT) + refused
        rows, slots = np.nonzero((replicas >= 0) & (packed > 0)[:, None])
        np.add.at(lost, (row_groups[rows], racks + replicas[rows, slots]), packed[rows])
    return lost


def worst_losses(problem: Problem, total: LongArray) -> dict[str, LongArray]:
    """The worst broker's and rack's counts, (C,) each, of the sums (C, width) of C candidates."""
    racks = len(problem.rack_names)
    losses = {}
    for name, part in (("broker", total[:, racks:]), ("rack", total[:, :racks])):
        losses[f"{name}_offline"] = (part >> _SHIFT).max(axis=1, initial=0)
        losses[f"{name}_refused"] = (part & _LOW).max(axis=1, initial=0)
    return losses


def _add_racks(problem: Problem, assignment: IntArray, groups: IntArray, lost: LongArray) -> None:
    """Add what each rack's failure costs each group; a rack counts once per partition, at its first replica there."""
    slots = np.ascontiguousarray(assignment.T)
    racks = np.append(problem.broker_racks, -1)[slots]
    in_rack, first = np.ones(slots.shape, dtype=np.int8), racks >= 0
    for slot, other in combinations(range(len(slots)), 2):
        same = racks[slot] == racks[other]
        in_rack[slot] += same
        in_rack[other] += same
        first[other] &= ~same
    factors = (slots >= 0).sum(axis=0)
    surviving = factors - in_rack
    columns, rows = np.nonzero(first & (surviving < effective_min_insync(problem.min_insync, factors)))
    packed = ((surviving[columns, rows] == 0).astype(np.int64) << _SHIFT) + 1
    np.add.at(lost, (groups[rows], racks[columns, rows]), packed)
