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
from planner.strategies.moves import movers, within_topics
from planner.strategies.placing import Placed, on_brokers, widened
from planner.windows import Windows

# Looking at every pair of brokers isn't worth its time on placements of more than so many rows × brokers.
_MOST_CELLS = 2_000_000
# Rounds over all pairs; the second finds next to nothing.
_ROUNDS = 2
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
    """All gainful exchanges of two brokers; True where there were any."""
    here, there = pair
    any_gain = False
    while (found := _best(placement, here, there, by)) is not None:
        out, back = found
        placement.move(out, here, there)
        placement.move(back, there, here)
        any_gain = True
    return any_gain


def _best(placement: Placement, here: int, there: int, by: Ties) -> tuple[int, int] | None:
    """The rows of the best exchange, None where none gains."""
    ours, theirs = movers(placement, here, there), movers(placement, there, here)
    if by.pinned is not None:
        ours, theirs = ours[~by.pinned[ours, here]], theirs[~by.pinned[theirs, there]]
    out, back = within_topics(placement, ours, theirs)
    if not len(out):
        return None
    arena, level = placement.arena, placement.arena.levels
    goes, comes = (
        level[out, there].astype(np.int64) - level[out, here],
        level[back, here].astype(np.int64) - level[back, there],
    )
    cost = arena.costs[out] * goes + arena.costs[back] * comes
    gain = _value(placement, out, there, by) - _value(placement, out, here, by)
    gain += _value(placement, back, here, by) - _value(placement, back, there, by)
    # Replicas without a known size cost nothing, but are still replicas.
    gain[(cost != 0) | (goes + comes > 0)] = 0
    for load, moving in enumerate(arena.loads):
        shifted = moving[out] - moving[back]
        gain[further(placement, load, here, -shifted) + further(placement, load, there, shifted) > 0] = 0
    best = int(gain.argmax())
    return (int(out[best]), int(back[best])) if gain[best] > 1e-12 else None


def _value(placement: Placement, rows: IntArray, broker: int, by: Ties) -> FloatArray:
    """What it is worth that these rows lie on a broker."""
    arena = placement.arena
    copied = np.where(arena.levels[rows, broker] > 0, by.size_bytes[rows], 0)
    within = copied * (by.racks[rows] == by.broker_racks[broker])
    worth: FloatArray = by.per_leader * (by.leaders[rows] == broker) + by.per_byte * within
    return worth
