"""The placement that a local search works on, the limits of its moves, and the moves that are feasible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from planner.model.build_problem import led_now
from planner.model.problem import BoolArray, IntArray, LongArray, Problem, may_be_elected, sums_at
from planner.scoring.broker_loads import counts_by_group
from planner.scoring.windows import Windows, opened
from planner.strategies.flow.placement import as_wide
from planner.strategies.flow.placement_network import Layout, windowed
from planner.strategies.load_windows.byte_loads import ByteLoads
from planner.strategies.work_limits import SAMPLED_ROWS


class Ends(NamedTuple):
    """Rows (K,) that may move between a broker and some of its partners, and each row's partner, ascending."""

    rows: IntArray
    partners: IntArray


class Pairs(NamedTuple):
    """Pairs (N,): places in two arrays of rows (an array's last place means no row), and each pair's partner."""

    out: IntArray
    back: IntArray
    partners: IntArray


class Moving(NamedTuple):
    """Rows (K + 1,) that move from one broker to another, how much each costs more there, and its loads (D, K + 1). The
    last one means no row: row -1, without cost or load.
    """

    rows: IntArray
    costs: LongArray
    loads: LongArray

    @staticmethod
    def of(placement: SearchPlacement, rows: IntArray, source: int | IntArray, target: int | IntArray) -> Moving:
        """The rows (K,) with the costs and loads of their moves; brokers are one for all rows, or one per row."""
        search = placement.search
        steps = search.levels[rows, target].astype(np.int64) - search.levels[rows, source]
        loads = np.concatenate([search.loads[:, rows], np.zeros((len(search.loads), 1), dtype=np.int64)], axis=1)
        return Moving(np.append(rows, -1), np.append(search.costs[rows] * steps, 0), loads)


def going(placement: SearchPlacement, here: int, partners: IntArray) -> Ends:
    """Rows that may go from here to each of the partners (K,), if racks and other replicas allow it."""
    search, rows = placement.search, np.flatnonzero(placement.on[:, here])
    free = ~placement.on[np.ix_(rows, partners)]
    if search.allowed is not None:
        free &= search.allowed[np.ix_(rows, partners)]
    to, at = np.nonzero(free.T)
    rows = rows[at]
    may = placement.racks_allow(rows, here, partners[to])
    return Ends(rows[may], to[may])


def coming(placement: SearchPlacement, here: int, partners: IntArray) -> Ends:
    """Rows that may come here from each of the partners (K,)."""
    search, free = placement.search, ~placement.on[:, here]
    if search.allowed is not None:
        free &= search.allowed[:, here]
    of, rows = np.nonzero(placement.on[:, partners].T & free)
    may = placement.racks_allow(rows, partners[of], here)
    return Ends(rows[may], of[may])


def pairings(placement: SearchPlacement, here: int, partners: IntArray, out: Ends, back: Ends) -> Pairs:
    """Pairs of rows that may go to a partner and come back, by partner: all pairs of one topic; single rows and pairs
    of two topics if counts have room. If two topics have many rows, some of their pairs.
    """
    topics, brokers = placement.search.topics, (partners[out.partners], partners[back.partners])
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


def can_exchange(placement: SearchPlacement, here: int, there: int, out: int, back: int) -> bool:
    """True if these rows, -1 for none, may go there and back with every count in its window."""
    for row, source, target in ((out, here, there), (back, there, here)):
        if row >= 0 and (not placement.on[row, source] or placement.on[row, target]):
            return False
        if row >= 0 and not placement.racks_allow(np.array([row]), source, target)[0]:
            return False
    if out < 0 or back < 0:
        source, target, row = (here, there, out) if back < 0 else (there, here, back)
        roomy = _roomy(placement, source, target, np.array([row]))
        return bool(len(roomy) and _broker_room(placement, source, target))
    if placement.search.topics[out] == placement.search.topics[back]:
        return True
    room = len(_roomy(placement, here, there, np.array([out]))), len(_roomy(placement, there, here, np.array([back])))
    return bool(min(room))


def _alike(ours: IntArray, theirs: IntArray) -> tuple[IntArray, IntArray]:
    """The places of all pairs of equal values in two ascending arrays."""
    first = np.searchsorted(theirs, ours, "left")
    counts = np.searchsorted(theirs, ours, "right") - first
    at = np.repeat(np.arange(len(ours)), counts)
    within = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
    return at, np.repeat(first, counts) + within


def _roomy(placement: SearchPlacement, source: int | IntArray, target: int | IntArray, rows: IntArray) -> IntArray:
    """Places of the rows whose topics may have one replica less on the source and one more on the target."""
    topics, (low, high) = placement.search.topics[rows], placement.search.cell_windows
    fewer = placement.cells[topics, source] > low[topics, source]
    return np.flatnonzero(fewer & (placement.cells[topics, target] < high[topics, target]))


def _broker_room(placement: SearchPlacement, source: int | IntArray, target: int | IntArray) -> BoolArray:
    low, high = placement.search.broker_windows
    room: BoolArray = (placement.held[source] > low[source]) & (placement.held[target] < high[target])
    return room


def _sampled(partners: IntArray) -> BoolArray:
    """True for all rows of each partner, ascending, or for evenly spaced rows if there are too many."""
    first = np.searchsorted(partners, partners, "left")
    count, at = np.searchsorted(partners, partners, "right") - first, np.arange(len(partners)) - first
    nth = -(-at * SAMPLED_ROWS // np.maximum(count, 1))
    sampled: BoolArray = (count <= SAMPLED_ROWS) | (nth * count // SAMPLED_ROWS == at)
    return sampled


@dataclass(frozen=True, eq=False)
class MostOutside:
    """The most that may be outside of windows of loads: in total, in bytes' worth, and on one broker, (D,)."""

    total: int
    furthest: LongArray


@dataclass(frozen=True, eq=False)
class SearchState:
    """The rows that may move, and their costs: M rows sorted by topic, B brokers, T topics, R racks, D loads.

    topics (M,) · costs (M,) of a row, times `levels` (M, B) of its broker · allowed (M, B) or None: anywhere
    racks (B,) · least, most (M, R) of a row in a rack
    loads (D, M) of a row · scales (D,) bytes that a unit of load is worth · load_windows (D, 2, B)
    cell_windows (2, T, B) · broker_windows (2, B)
    most_outside: None if no move may take any load further outside
    """

    topics: IntArray
    costs: LongArray
    levels: IntArray
    allowed: BoolArray | None
    racks: IntArray
    least: IntArray
    most: IntArray
    loads: LongArray
    scales: LongArray
    load_windows: LongArray
    cell_windows: LongArray
    broker_windows: LongArray
    most_outside: MostOutside | None = None

    @property
    def only_caps(self) -> bool:
        """True if no load may be too small."""
        return bool((self.load_windows[:, 0] <= 0).all())


def of_layout(layout: Layout, wanted: Windows, costs: LongArray, loads: ByteLoads) -> SearchState:
    """A search over a layout's rows at costs (M,), within windows of counts and of loads."""
    levels = np.ones((len(layout.rows), len(layout.targets)), dtype=np.int8, order="F")
    rows, slots = np.nonzero((layout.home >= 0) & ~layout.replaced)
    levels[rows, layout.home[rows, slots]] = 0
    topics, brokers = windowed(layout, wanted)
    allowed = None if layout.reachable is None else np.asfortranarray(layout.reachable)
    return SearchState(
        topics=layout.topics,
        costs=costs,
        levels=levels,
        allowed=allowed,
        racks=layout.racks,
        least=layout.least,
        most=layout.most,
        loads=loads.weights,
        scales=loads.scales,
        load_windows=loads.windows,
        cell_windows=topics.bounds.reshape(2, layout.topic_count, -1),
        broker_windows=brokers.bounds,
    )


def of_leaders(
    problem: Problem,
    placed: IntArray,
    leaders: IntArray,
    here: IntArray,
    rows: IntArray,
    asked: tuple[Windows, LongArray, LongArray],
    on: BoolArray,
) -> SearchState:
    """The free rows (M,) as a local search with one replica per row: its leader, now on a broker of `on` (M, Bt)."""
    wanted, windows, sent = asked
    weights, totals = sent[:, rows], sent[:, rows].sum(axis=1)
    fixed = np.setdiff1d(np.flatnonzero((leaders >= 0) & (here[leaders] >= 0)), rows)
    fixed_cells, by_topic = (
        counts_by_group(problem, leaders[which][:, None], problem.topic_of[which], len(problem.topic_names))
        for which in (fixed, rows)
    )
    fixed_sent = np.stack([sums_at(on.shape[1], here[leaders[fixed]], of[fixed]) for of in sent])
    allowed = np.zeros(on.shape, dtype=bool, order="F")
    at, slots = np.nonzero(may_be_elected(problem, placed, rows))
    allowed[at, here[placed[rows[at], slots]]] = True
    topics = wanted.topic_leaders
    of_topics = opened(np.stack([by_topic] * 2)) if topics is None else as_wide(topics - fixed_cells, by_topic)
    return SearchState(
        topics=problem.topic_of[rows],
        costs=np.full(len(rows), max(1, int(weights[0].mean())), dtype=np.int64),
        levels=_levels(problem, rows, here, on.shape[1]),
        allowed=allowed,
        racks=np.zeros(on.shape[1], dtype=np.int64),
        least=np.ones((len(rows), 1), dtype=np.int64),
        most=np.ones((len(rows), 1), dtype=np.int64),
        loads=weights,
        # Bytes sent in one hour's scenario count as much as bytes sent on average.
        scales=np.maximum(totals[0] // np.maximum(totals, 1), 1),
        load_windows=windows - fixed_sent[:, None],
        cell_windows=of_topics,
        broker_windows=as_wide(wanted.leaders - fixed_cells.sum(axis=0), by_topic.sum(axis=0)),
    )


def _levels(problem: Problem, rows: IntArray, here: IntArray, brokers: int) -> IntArray:
    """(M, Bt): 2 if a broker isn't today's preferred leader, plus 1 if it doesn't lead at this moment."""
    levels = np.full((len(rows), brokers), 3, dtype=np.int8, order="F")
    for todays, worth in zip(led_now(problem)[rows].T, (2, 1), strict=True):
        at = np.where(todays >= 0, here[todays], -1)
        stays = np.flatnonzero(at >= 0)
        levels[stays, at[stays]] -= worth
    return levels


@dataclass(eq=False)
class SearchPlacement:
    """The brokers of rows, `on` (M, B), and the sums that follow from it; every move changes them.

    in_rack (M, R) of each row · load (D, B) · cells (T, B) and held (B,) counts · changes (B,) moves so far
    """

    search: SearchState
    on: BoolArray
    in_rack: IntArray = field(init=False)
    load: LongArray = field(init=False)
    cells: LongArray = field(init=False)
    held: LongArray = field(init=False)
    changes: LongArray = field(init=False)

    def __post_init__(self) -> None:
        search = self.search
        rows, brokers = np.nonzero(self.on)
        self.in_rack = sums_at(search.least.shape, (rows, search.racks[brokers])).astype(np.int32)
        self.cells = sums_at(search.cell_windows.shape[1:], (search.topics[rows], brokers))
        self.load = np.zeros((len(search.loads), self.on.shape[1]), dtype=np.int64)
        for at, of in enumerate(search.loads):
            self.load[at] = sums_at(self.on.shape[1], brokers, of[rows])
        self.held = self.cells.sum(axis=0)
        self.changes = np.zeros(len(self.held), dtype=np.int64)
        # In column order, because the search reads columns.
        self.on = np.asfortranarray(self.on)

    def copy(self) -> SearchPlacement:
        """A copy that can be changed separately."""
        return SearchPlacement(self.search, self.on.copy())

    @property
    def cost(self) -> int:
        """The cost of the placement."""
        return int(self.search.costs @ (self.on * self.search.levels).sum(axis=1, dtype=np.int64))

    def outside(self) -> LongArray:
        """(B,): how far each broker is outside its windows, in bytes' worth."""
        return (self._beyond() * self.search.scales[:, None]).sum(axis=0)

    def racks_allow(self, rows: IntArray, source: int | IntArray, target: int | IntArray) -> BoolArray:
        """True if a row may go from one broker to another, by how many of its replicas each rack must and may hold."""
        search = self.search
        old, new = search.racks[source], search.racks[target]
        leaves = self.in_rack[rows, old] > search.least[rows, old]
        allowed: BoolArray = (old == new) | (leaves & (self.in_rack[rows, new] < search.most[rows, new]))
        return allowed

    def move(self, row: int, source: int, target: int) -> None:
        """Move one replica of a row from one broker to another."""
        search = self.search
        self.on[row, [source, target]] = False, True
        for broker, sign in ((source, -1), (target, 1)):
            self.in_rack[row, search.racks[broker]] += sign
            self.load[:, broker] += sign * search.loads[:, row]
            self.cells[search.topics[row], broker] += sign
            self.held[broker] += sign
            self.changes[broker] += 1

    def within_windows(self) -> bool:
        """True if no more is outside of windows than allowed."""
        most = self.search.most_outside
        if most is None:
            return not self.outside().any()
        return bool(self.outside().sum() <= most.total and (self._beyond() <= most.furthest[:, None]).all())

    def _beyond(self) -> LongArray:
        """(D, B): how far outside its window each load of a broker is."""
        return _below_and_above(self.search.load_windows.transpose(1, 0, 2), self.load.copy())


BrokerNumbers = Sequence[int] | IntArray


def outward(placement: SearchPlacement, brokers: BrokerNumbers, shifts: LongArray) -> BoolArray:
    """(K,): True if shifts (N, D, K) of the loads of brokers, N or (N, K), take more outside of windows than allowed.

    Without `most_outside`, no load may go further outside; with it, neither the total nor a broker may exceed it.
    """
    search, most, worse = placement.search, placement.search.most_outside, np.zeros(shifts.shape[2], dtype=bool)
    total = np.zeros(shifts.shape[2], dtype=np.int64)
    for load, scale in enumerate(search.scales.tolist()):
        sums = np.zeros_like(total)
        for broker, shift in zip(brokers, shifts[:, load], strict=True):
            sums += further(placement, load, broker, shift)
            if most is not None:
                worse |= _beyond(placement, load, broker, shift) > most.furthest[load]
        if most is None:
            worse |= sums > 0
        total += scale * sums
    if most is not None and len(search.scales):
        worse |= total > most.total - int(placement.outside().sum())
    return worse


def further(placement: SearchPlacement, load: int, broker: int | IntArray, shifts: LongArray) -> LongArray:
    """By how much each shift takes a broker's load further outside its window; negative: nearer."""
    found = _beyond(placement, load, broker, shifts)
    found -= _below_and_above(placement.search.load_windows[load], placement.load[load].copy())[broker]
    return found


def _beyond(placement: SearchPlacement, load: int, broker: int | IntArray, shifts: LongArray) -> LongArray:
    """How far outside its window each shift takes a broker's load."""
    return _below_and_above(placement.search.load_windows[load][:, broker], placement.load[load, broker] + shifts)


def _below_and_above(window: LongArray, loads: LongArray) -> LongArray:
    """How far outside a window (2, …) each of these loads is; overwrites the loads."""
    outside: LongArray = np.maximum(window[0] - loads, 0)
    # In place, because a search asks for tens of thousands at a time.
    outside += np.maximum(np.subtract(loads, window[1], out=loads), 0, out=loads)
    return outside
