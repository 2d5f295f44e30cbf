"""Which rows may go from one broker to another, and which may take each other's place with counts in their windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.model import BoolArray, IntArray, LongArray
from planner.strategies.arena import Placement

# Rows of other topics that are tried against each other.
_SAMPLE = 200


class Ends(NamedTuple):
    """Rows (K,) that may go between a broker and some of its partners, and which of those, ascending, each row's is."""

    rows: IntArray
    partners: IntArray


class Pairs(NamedTuple):
    """Places (N,) in two arrays of rows, one of each, the last of an array for none; which partner each pair is of."""

    out: IntArray
    back: IntArray
    partners: IntArray


class Moving(NamedTuple):
    """Rows (K + 1,) that go from one broker to another, what each costs there more than here, and its loads
    (D, K + 1). The last stands for none at all: row -1, without cost or load.
    """

    rows: IntArray
    costs: LongArray
    loads: LongArray

    @staticmethod
    def of(placement: Placement, rows: IntArray, source: int | IntArray, target: int | IntArray) -> Moving:
        """The rows (K,) with what moving them means; brokers are of all rows or one each."""
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


def going(placement: Placement, here: int, partners: IntArray) -> Ends:
    """Rows that may go from here to each of the partners (K,), as far as racks and other replicas let them."""
    arena, rows = placement.arena, np.flatnonzero(placement.on[:, here])
    free = ~placement.on[rows][:, partners]
    if arena.allowed is not None:
        free &= arena.allowed[rows][:, partners]
    to, at = np.nonzero(free.T)
    rows = rows[at]
    may = placement.racks_allow(rows, here, partners[to])
    return Ends(rows[may], to[may])


def coming(placement: Placement, here: int, partners: IntArray) -> Ends:
    """Rows that may come here from each of the partners (K,)."""
    arena, free = placement.arena, ~placement.on[:, here]
    if arena.allowed is not None:
        free &= arena.allowed[:, here]
    of, rows = np.nonzero(placement.on[:, partners].T & free)
    may = placement.racks_allow(rows, partners[of], here)
    return Ends(rows[may], of[may])


def within_topics(placement: Placement, out: IntArray, back: IntArray) -> tuple[IntArray, IntArray]:
    """Every pair of rows, one of each, that are of one topic."""
    at, of = _alike(placement.arena.topics[out], placement.arena.topics[back])
    return out[at], back[of]


def pairings(placement: Placement, here: int, partners: IntArray, out: Ends, back: Ends) -> Pairs:
    """Rows that may go to a partner and back from it, by partners: all of one topic, those of two topics with room, and
    those alone where there is room. Of two topics with many rows, some.
    """
    topics, brokers = placement.arena.topics, (partners[out.partners], partners[back.partners])
    kinds = int(topics.max(initial=0)) + 1
    ours = _roomy(placement, here, brokers[0], out.rows)
    theirs = _roomy(placement, brokers[1], here, back.rows)
    alone = ours[_broker_room(placement, here, partners)[out.partners[ours]]]
    back_alone = theirs[_broker_room(placement, partners, here)[back.partners[theirs]]]
    ours, theirs = ours[_sampled(out.partners[ours])], theirs[_sampled(back.partners[theirs])]
    at, of = _alike(out.partners[ours], back.partners[theirs])
    pairs = (
        _alike(out.partners * kinds + topics[out.rows], back.partners * kinds + topics[back.rows]),
        (alone, np.full_like(alone, len(back.rows))),
        (np.full_like(back_alone, len(out.rows)), back_alone),
        (ours[at], theirs[of]),
    )
    there = [out.partners[pairs[0][0]], out.partners[alone], back.partners[back_alone], out.partners[pairs[3][0]]]
    order = np.argsort(np.concatenate(there), kind="stable")
    gone, came, by = (np.concatenate(each)[order] for each in (*zip(*pairs, strict=True), there))
    return Pairs(gone, came, by)


def can_exchange(placement: Placement, here: int, there: int, out: int, back: int) -> bool:
    """True where these rows, -1 for none, may go there and back with every count in its window."""
    for row, source, target in ((out, here, there), (back, there, here)):
        if row >= 0 and (not placement.on[row, source] or placement.on[row, target]):
            return False
        if row >= 0 and not placement.racks_allow(np.array([row]), source, target)[0]:
            return False
    if out < 0 or back < 0:
        source, target, row = (here, there, out) if back < 0 else (there, here, back)
        roomy = _roomy(placement, source, target, np.array([row]))
        return bool(len(roomy) and _broker_room(placement, source, target))
    if placement.arena.topics[out] == placement.arena.topics[back]:
        return True
    room = len(_roomy(placement, here, there, np.array([out]))), len(_roomy(placement, there, here, np.array([back])))
    return bool(min(room))


def _alike(ours: IntArray, theirs: IntArray) -> tuple[IntArray, IntArray]:
    """Places of all pairs that are equal; both ascending."""
    first = np.searchsorted(theirs, ours, "left")
    counts = np.searchsorted(theirs, ours, "right") - first
    at = np.repeat(np.arange(len(ours)), counts)
    within = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
    return at, np.repeat(first, counts) + within


def _roomy(placement: Placement, source: int | IntArray, target: int | IntArray, rows: IntArray) -> IntArray:
    """Places of the rows whose topics may have one replica less here and one more there."""
    topics, (low, high) = placement.arena.topics[rows], placement.arena.cell_windows
    fewer = placement.cells[topics, source] > low[topics, source]
    return np.flatnonzero(fewer & (placement.cells[topics, target] < high[topics, target]))


def _broker_room(placement: Placement, source: int | IntArray, target: int | IntArray) -> BoolArray:
    low, high = placement.arena.broker_windows
    room: BoolArray = (placement.held[source] > low[source]) & (placement.held[target] < high[target])
    return room


def _sampled(partners: IntArray) -> BoolArray:
    """True for all of each partner, ascending, or for evenly spaced ones where there are too many."""
    first = np.searchsorted(partners, partners, "left")
    count, at = np.searchsorted(partners, partners, "right") - first, np.arange(len(partners)) - first
    nth = -(-at * _SAMPLE // np.maximum(count, 1))
    sampled: BoolArray = (count <= _SAMPLE) | (nth * count // _SAMPLE == at)
    return sampled
