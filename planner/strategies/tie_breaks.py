"""Which of the equally cheap placements: the one that keeps leaders where they are, and copies within racks.

Rows of a topic exchange brokers where that costs nothing, leaves every count and leaves no load further outside its
window. What is gained is the partitions whose leader keeps its replica, and bytes that come from a broker of the same
rack; which of the two comes first is the user's (`sweep.aims`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from planner.model import BoolArray, FloatArray, IntArray, LongArray, Problem
from planner.strategies.arena import Placement, further, of_layout
from planner.strategies.dealing import matrix
from planner.strategies.layout import Layout
from planner.strategies.moves import movers
from planner.strategies.placing import Placed, on_brokers, widened
from planner.windows import Windows

# Looking at every pair of brokers isn't worth its time on placements of more than so many rows × brokers.
_MOST_CELLS = 2_000_000
# Rounds over all pairs; the second finds next to nothing.
_ROUNDS = 2
# Gains below this are none.
_NOTHING = 1e-12
# What the aim that comes first is worth against all of the other.
_FIRST = 1e6


@dataclass(frozen=True, eq=False)
class Ties:
    """For each row (M,): the broker that leads it (-1: none), the rack it is copied from, and its bytes.

    `broker_racks` (Bt,) are the racks that brokers are in, whether or not the rack rule is enforced. `per_leader` and
    `per_byte` are what a leader that stays, and a byte copied within a rack, are worth. `pinned` (M, Bt) are replicas
    on brokers that replace others, which take over one to one; None: there are none.
    """

    leaders: IntArray
    racks: IntArray
    broker_racks: IntArray
    size_bytes: LongArray
    per_leader: float
    per_byte: float
    pinned: BoolArray | None = None


def ties(problem: Problem, layout: Layout) -> Ties | None:
    """What is left to choose by; None where no such aim is asked for or the placement is too large."""
    aims = [aim for aim in problem.aims if aim in ("leaders_changed", "cross_rack_bytes")]
    if not aims or not 0 < len(layout.rows) * len(layout.targets) <= _MOST_CELLS:
        return None
    here = np.full(len(problem.broker_ids), -1, dtype=np.int64)
    here[layout.targets] = np.arange(len(layout.targets))
    source = np.where(problem.leaders >= 0, problem.leaders, problem.replicas[:, 0])[layout.rows]
    leaders = np.where(source >= 0, here[source], -1)
    # A broker that leaves is copied from all the same, at best by one of its own rack.
    racks, on = problem.broker_racks[source], problem.broker_racks[layout.targets]
    per_byte = _worth(aims, "cross_rack_bytes") / max(1, int(layout.copy_bytes.sum()))
    per_leader = _worth(aims, "leaders_changed")
    return Ties(leaders, racks, on, layout.copy_bytes, per_leader, per_byte, layout.pinned)


def settled(problem: Problem, layout: Layout, wanted: Windows, placed: Placed) -> IntArray:
    """A flow's placement (M, W) with its ties broken, where counts are all that has windows."""
    by = ties(problem, layout)
    if by is None:
        return placed.chosen
    # Doubled, or an empty partition would cost as much as one of a byte.
    costs = np.where(layout.new, 0, np.maximum(2 * layout.copy_bytes, 1))
    arena = of_layout(layout, widened(layout, wanted, placed), costs, None)
    placement = Placement(arena, on_brokers(layout, placed.chosen))
    settle(placement, by)
    return matrix(layout, np.stack(np.nonzero(placement.on)), problem.width)


def settle(placement: Placement, by: Ties) -> None:
    """Take every exchange within a topic that costs nothing and gains by the ties."""
    for _ in range(_ROUNDS):
        if not sum([_drain(placement, pair, by) for pair in combinations(range(placement.on.shape[1]), 2)]):
            return


def _worth(aims: Sequence[str], aim: str) -> float:
    if aim not in aims:
        return 0.0
    return _FIRST if aims[0] == aim else 1.0


def _drain(placement: Placement, pair: tuple[int, int], by: Ties) -> bool:
    """The gainful exchanges of two brokers, best with best; True where there were any."""
    here, there = pair
    out, back = _exchanges(placement, here, there, by)
    any_gain = False
    for leaving, coming in zip(out.tolist(), back.tolist(), strict=True):
        if _outward(placement, leaving, coming, here, there):
            continue
        placement.move(leaving, here, there)
        placement.move(coming, there, here)
        any_gain = True
    return any_gain


def _exchanges(placement: Placement, here: int, there: int, by: Ties) -> tuple[IntArray, IntArray]:
    """Rows that leave `here` and those that come back, of the same topic and for the same bytes and replicas.

    Of rows alike in that the one that gains most meets the one that gains most: no pair need be looked at twice.
    """
    ours, theirs = _Side.of(placement, here, there, by), _Side.of(placement, there, here, by)
    _, at, on = np.intersect1d(ours.places(theirs, 1), theirs.places(ours, -1), return_indices=True)
    gain = ours.gains[at] + theirs.gains[on]
    best = np.flatnonzero(gain > _NOTHING)
    best = best[np.argsort(-gain[best], kind="stable")]
    return ours.rows[at[best]], theirs.rows[on[best]]


@dataclass(frozen=True, eq=False)
class _Side:
    """Rows (K,) that may go from one broker to another, the most gainful first: their topics, what going there costs in
    bytes and replicas, and what it gains.
    """

    rows: IntArray
    topics: IntArray
    costs: LongArray
    copies: LongArray
    gains: FloatArray

    @staticmethod
    def of(placement: Placement, here: int, there: int, by: Ties) -> _Side:
        """All that may go from `here` to `there`."""
        rows = movers(placement, here, there)
        if by.pinned is not None:
            rows = rows[~by.pinned[rows, here]]
        gains = _value(placement, rows, there, by) - _value(placement, rows, here, by)
        order = np.argsort(-gains, kind="stable")
        rows, gains = rows[order], gains[order]
        arena = placement.arena
        copies = arena.levels[rows, there].astype(np.int64) - arena.levels[rows, here]
        return _Side(rows, arena.topics[rows], arena.costs[rows] * copies, copies, gains)

    def places(self, other: _Side, sign: int) -> LongArray:
        """(K,): equal for rows of two sides that undo each other's costs and have the same rank among their like."""
        mine, others = (
            np.stack([side.topics, turn * side.costs, turn * side.copies], axis=1)
            for side, turn in ((self, sign), (other, -sign))
        )
        _, kinds = np.unique(np.concatenate([mine, others]), axis=0, return_inverse=True)
        kinds = kinds.ravel()[: len(mine)]
        order = np.argsort(kinds, kind="stable")
        ranks = np.empty(len(kinds), dtype=np.int64)
        ranks[order] = np.arange(len(kinds)) - np.searchsorted(kinds[order], kinds[order])
        places: LongArray = kinds * (len(mine) + len(others) + 1) + ranks
        return places


def _outward(placement: Placement, leaving: int, coming: int, here: int, there: int) -> bool:
    """True where the exchange takes a load further outside its window."""
    for load, moving in enumerate(placement.arena.loads):
        shifted = np.array([moving[leaving] - moving[coming]])
        if (further(placement, load, here, -shifted) + further(placement, load, there, shifted))[0] > 0:
            return True
    return False


def _value(placement: Placement, rows: IntArray, broker: int, by: Ties) -> FloatArray:
    """What it is worth that these rows lie on a broker."""
    arena = placement.arena
    copied = np.where(arena.levels[rows, broker] > 0, by.size_bytes[rows], 0)
    within = copied * (by.racks[rows] == by.broker_racks[broker])
    worth: FloatArray = by.per_leader * (by.leaders[rows] == broker) + by.per_byte * within
    return worth
