"""Finds the most even placement of new partitions that fills no disk above its limit: branch and bound over flows.

A limit of bytes is a side constraint that a flow can't express, but a limit on the number of replicas of one size is an
arc's capacity. With one size, that is exact. With several, a broker that is too full has at least one replica less of
one of these sizes in every placement within the limits, so there is a case for each of them. The cheapest case comes
first, so the first placement within the limits is the most even one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple, Self

import numpy as np

from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.scoring.broker_loads import loads
from planner.scoring.windows import OPEN_BYTES
from planner.strategies.work_limits import DISK_FLOWS, LEVEL_CELLS


class Placing(NamedTuple):
    """The cost of a placement of N rows, and (N, B) True if a row has a replica on the broker."""

    cost: int
    on: BoolArray


# The cheapest placement with at most so many replicas of each size on each broker (K, B); None if there is none.
Place = Callable[[LongArray], Placing | None]


@dataclass(frozen=True, eq=False)
class DiskRoom:
    """Bytes of N rows to place on B brokers, and what the brokers hold without them.

    sizes (K,) different sizes, largest first · size_of (N,) index of each row's size, -1: empty · held (B,) bytes
    room (B,) bytes until a disk is at its limit, OPEN_BYTES without a limit
    """

    sizes: LongArray
    size_of: IntArray
    held: LongArray
    room: LongArray

    @classmethod
    def of(cls, problem: Problem, assignment: IntArray, rows: IntArray) -> Self | None:
        """The room for rows (n,) with all others placed by an assignment (P, W); None if they are empty."""
        of_rows = problem.size_bytes[rows]
        sizes = np.unique(of_rows[of_rows > 0])[::-1]
        if not len(sizes):
            return None
        others = assignment.copy()
        others[rows] = -1
        held, limits = loads(problem, others)[0], problem.disk_limit_bytes[problem.targets]
        size_of = np.where(of_rows > 0, np.searchsorted(-sizes, -of_rows), -1)
        return cls(sizes, size_of, held, np.where(limits < 0, OPEN_BYTES, np.maximum(limits - held, 0)))

    def counts(self, on: BoolArray) -> LongArray:
        """(K, B): replicas of each size on each broker."""
        return np.stack([on[self.size_of == at].sum(axis=0) for at in range(len(self.sizes))])

    def too_full(self, on: BoolArray) -> IntArray:
        """The brokers whose disks a placement (N, B) fills above their limits."""
        return np.flatnonzero(self.sizes @ self.counts(on) > self.room)

    def within(self, placed: Placing, place: Place) -> BoolArray | None:
        """(N, B): the cheapest placement within the limits, if `placed` is the cheapest without limits.

        After a number of flows, the largest replicas are placed first, which may not be the cheapest. None if there is
        no placement within the limits, or if none was found.
        """
        if int(self.sizes @ self.counts(placed.on).sum(axis=1)) > sum(self.room.tolist()):
            return None
        root = np.minimum(self.room // self.sizes[:, None], len(self.size_of))
        queue, tried, cases = list[tuple[int, int, LongArray, BoolArray]](), set[bytes](), [root]
        flows = min(DISK_FLOWS, 1 + LEVEL_CELLS // placed.on.size)
        while cases or queue:
            for most in cases:
                if len(tried) < flows and most.tobytes() not in tried:
                    tried.add(most.tobytes())
                    if (found := place(most)) is not None:
                        heappush(queue, (found.cost, len(tried), most, found.on))
            cases = []
            if queue:
                _, _, most, on = heappop(queue)
                if not len(full := self.too_full(on)):
                    return on
                counts = self.counts(on)[:, full[0]]
                for at in np.flatnonzero(counts):
                    cases.append(most.copy())
                    cases[-1][at, full[0]] = counts[at] - 1
        return self._largest_first(root, place) if len(tried) == flows else None

    def _largest_first(self, most: LongArray, place: Place) -> BoolArray | None:
        """A placement within the limits: each size where those larger than it leave room."""
        most, on = most.copy(), None
        for at in range(len(self.sizes)):
            left = self.room - self.sizes[:at] @ most[:at]
            most[at:] = np.minimum(most[at:], left // self.sizes[at:, None])
            if (found := place(most)) is None:
                return None
            on = found.on
            most[at] = self.counts(on)[at]
        return on
