"""Rings: three rows of a topic that move on over three brokers, which leaves every count as it was.

Where no two brokers can exchange anything that saves bytes, three still may: the first row goes where it costs less,
the second makes place for it by going to a third broker, and the third row comes from there to where the first was.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.model.problem import BoolArray, IntArray
from planner.strategies.load_windows.local_search_state import Placement, outward

# Rings tried at once within one topic; of more, evenly spaced ones.
_MOST_RINGS = 300_000


class _Ring(NamedTuple):
    """Three rows, and the brokers they are on; each moves to the next one's."""

    rows: tuple[int, int, int]
    brokers: tuple[int, int, int]


def take_rings(placement: Placement) -> bool:
    """Take all rings that save bytes and take no load further outside its window; True where there were any."""
    topics = placement.arena.topics
    any_saved = False
    for topic in np.unique(topics).tolist():
        first, end = np.searchsorted(topics, [topic, topic + 1]).tolist()
        while ring := _best(placement, first, end):
            for row, source, target in zip(ring.rows, ring.brokers, np.roll(ring.brokers, -1).tolist(), strict=True):
                placement.move(row, source, target)
            any_saved = True
    return any_saved


def _best(placement: Placement, first: int, end: int) -> _Ring | None:
    """The ring that saves the most among a topic's rows, from `first` to before `end`."""
    on = placement.on[first:end]
    third, over = np.nonzero(on)
    one, two, here, there = _joined(placement, first, end, _MOST_RINGS // max(1, len(third)))
    if not len(one):
        return None
    levels, costs = placement.arena.levels[first:end].astype(np.int64), placement.arena.costs[first:end]
    saved = (costs[one] * (levels[one, here] - levels[one, there]))[:, None] - (
        costs[two, None] * (levels[two][:, over] - levels[two, there][:, None])
        + costs[third] * (levels[third][:, here].T - levels[third, over])
    )
    free = (over != here[:, None]) & (over != there[:, None]) & ~on[two][:, over] & ~on[third][:, here].T
    if (allowed := placement.arena.allowed) is not None:
        free &= allowed[first + two][:, over] & allowed[first + third][:, here].T
    at, of = np.nonzero(free & (saved > 0))
    rows, brokers = first + np.stack([one[at], two[at], third[of]]), np.stack([here[at], there[at], over[of]])
    gain = np.where(_kept(placement, rows, brokers), saved[at, of], 0)
    if not gain.any():
        return None
    best = gain.argmax()
    return _Ring(tuple(rows[:, best].tolist()), tuple(brokers[:, best].tolist()))


def _joined(placement: Placement, first: int, end: int, most: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Rows that would cost less elsewhere, each with all rows there: (K,) rows, rows, the brokers of both."""
    on, levels = placement.on[first:end], placement.arena.levels[first:end]
    cheaper = ~on & (levels < (on * levels).max(axis=1, initial=0)[:, None])
    if (allowed := placement.arena.allowed) is not None:
        cheaper &= allowed[first:end]
    rows, elsewhere = np.nonzero(cheaper)
    at, here = np.nonzero(on[rows] & (levels[rows] > levels[rows, elsewhere][:, None]))
    one, there = rows[at], elsewhere[at]
    may = placement.racks_allow(first + one, here, there)
    one, here, there = one[may], here[may], there[may]
    pair, two = np.nonzero(on[:, there].T)
    if len(pair) > most:
        chosen = np.arange(most) * len(pair) // most
        pair, two = pair[chosen], two[chosen]
    return one[pair], two, here[pair], there[pair]


def _kept(placement: Placement, rows: IntArray, brokers: IntArray) -> BoolArray:
    """(K,): True where racks allow rings of rows (3, K) on brokers (3, K), and no load is further outside for it."""
    kept = np.ones(rows.shape[1], dtype=bool)
    for row, source, target in zip(rows, brokers, np.roll(brokers, -1, axis=0), strict=True):
        kept &= placement.racks_allow(row, source, target)
    of = placement.arena.loads
    shifts = of[:, np.roll(rows, 1, axis=0)] - of[:, rows]
    return kept & ~outward(placement, brokers, shifts.transpose(1, 0, 2))
