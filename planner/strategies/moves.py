"""Which rows may go from one broker to another, and which may take each other's place with counts in their windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from planner.model import IntArray, LongArray
from planner.strategies.arena import Placement

# Rows of other topics that are tried against each other.
_SAMPLE = 200

# Places in two arrays of rows, one of each, -1 for none.
Pairs = tuple[IntArray, IntArray]


class Moving(NamedTuple):
    """Rows (K + 1,) that go from one broker to another, what each costs there more than here, and its loads
    (D, K + 1). The last stands for none at all: row -1, without cost or load.
    """

    rows: IntArray
    costs: LongArray
    loads: LongArray

    @staticmethod
    def of(placement: Placement, rows: IntArray, source: int, target: int) -> Moving:
        """The rows (K,) with what moving them means."""
        arena = placement.arena
        steps = arena.levels[rows, target].astype(np.int64) - arena.levels[rows, source]
        loads = np.concatenate([arena.loads[:, rows], np.zeros((len(arena.loads), 1), dtype=np.int64)], axis=1)
        return Moving(np.append(rows, -1), np.append(arena.costs[rows] * steps, 0), loads)


def movers(placement: Placement, source: int, target: int) -> IntArray:
    """Rows that may go from one broker to the other, as far as racks and other replicas let them."""
    arena, on = placement.arena, placement.on
    free = on[:, source] & ~on[:, target]
    if arena.allowed is not None:
        free &= arena.allowed[:, target]
    rows = np.flatnonzero(free)
    if arena.racks[source] == arena.racks[target]:
        return rows
    return rows[placement.racks_allow(rows, source, target)]


def within_topics(placement: Placement, out: IntArray, back: IntArray) -> tuple[IntArray, IntArray]:
    """Every pair of rows, one of each, that are of one topic."""
    at, of = _alike(placement.arena.topics[out], placement.arena.topics[back])
    return out[at], back[of]


def pairings(placement: Placement, here: int, there: int, out: IntArray, back: IntArray) -> Iterator[Pairs]:
    """Places of all rows that may go there and back: of one topic, or of two with room, or alone where there is room.

    Where two topics have many rows, some of them.
    """
    yield _alike(placement.arena.topics[out], placement.arena.topics[back])
    ours, theirs = _roomy(placement, here, there, out), _roomy(placement, there, here, back)
    if _broker_room(placement, here, there):
        yield ours, np.full_like(ours, -1)
    if _broker_room(placement, there, here):
        yield np.full_like(theirs, -1), theirs
    ours, theirs = _sampled(ours), _sampled(theirs)
    yield np.repeat(ours, len(theirs)), np.tile(theirs, len(ours))


def can_exchange(placement: Placement, here: int, there: int, out: int, back: int) -> bool:
    """True where these rows, -1 for none, may go there and back with every count in its window."""
    for row, source, target in ((out, here, there), (back, there, here)):
        if row >= 0 and (not placement.on[row, source] or placement.on[row, target]):
            return False
        if row >= 0 and not placement.racks_allow(np.array([row]), source, target)[0]:
            return False
    if out < 0 or back < 0:
        source, target, row = (here, there, out) if back < 0 else (there, here, back)
        return _broker_room(placement, source, target) and bool(len(_roomy(placement, source, target, np.array([row]))))
    if placement.arena.topics[out] == placement.arena.topics[back]:
        return True
    roomy = len(_roomy(placement, here, there, np.array([out]))), len(_roomy(placement, there, here, np.array([back])))
    return bool(min(roomy))


def _alike(ours: IntArray, theirs: IntArray) -> Pairs:
    """Places of all pairs of equal topics; both ascending."""
    first = np.searchsorted(theirs, ours, "left")
    counts = np.searchsorted(theirs, ours, "right") - first
    at = np.repeat(np.arange(len(ours)), counts)
    within = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
    return at, np.repeat(first, counts) + within


def _roomy(placement: Placement, source: int, target: int, rows: IntArray) -> IntArray:
    """Places of the rows whose topics may have one replica less here and one more there."""
    topics, (low, high) = placement.arena.topics[rows], placement.arena.cell_windows
    fewer = placement.cells[topics, source] > low[topics, source]
    return np.flatnonzero(fewer & (placement.cells[topics, target] < high[topics, target]))


def _broker_room(placement: Placement, source: int, target: int) -> bool:
    low, high = placement.arena.broker_windows
    return bool(placement.held[source] > low[source] and placement.held[target] < high[target])


def _sampled(places: IntArray) -> IntArray:
    """Evenly spaced ones where there are too many."""
    return places if len(places) <= _SAMPLE else places[np.arange(_SAMPLE) * len(places) // _SAMPLE]
