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
from planner.strategies.work_limits import LARGE_PLACEMENT, SAMPLED_ROWS, SAMPLED_ROWS_OF_LARGE


class PartnerRows(NamedTuple):
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


def leaving_rows(placement: SearchPlacement, broker: int, partners: IntArray) -> PartnerRows:
    """Rows that may go from here to each of the partners (K,), if racks and other replicas allow it."""
    search, rows = placement.search, np.flatnonzero(placement.on[:, broker])
    free = ~placement.on[np.ix_(rows, partners)]
    if search.allowed is not None:
        free &= search.allowed[np.ix_(rows, partners)]
    partner_indices, row_indices = np.nonzero(free.T)
    rows = rows[row_indices]
    is_allowed = placement.racks_allow(rows, broker, partners[partner_indices])
    return PartnerRows(rows[is_allowed], partner_indices[is_allowed])


def returning_rows(placement: SearchPlacement, broker: int, partners: IntArray) -> PartnerRows:
    """Rows that may come here from each of the partners (K,)."""
    search, free = placement.search, ~placement.on[:, broker]
    if search.allowed is not None:
        free &= search.allowed[:, broker]
    # Of one axis, nonzero places are found several times faster than of two.
    partner_indices, rows = np.divmod(np.flatnonzero(placement.on.T[partners] & free), len(free))
    is_allowed = placement.racks_allow(rows, partners[partner_indices], broker)
    return PartnerRows(rows[is_allowed], partner_indices[is_allowed])


def pairings(placement: SearchPlacement, broker: int, partners: IntArray, out: PartnerRows, back: PartnerRows) -> Pairs:
    """Pairs of rows that may go to a partner and come back, by partner: all pairs of one topic; single rows and pairs
    of two topics if counts have room. If two topics have many rows, some of their pairs.
    """
    topics, brokers = placement.search.topics, (partners[out.partners], partners[back.partners])
    kinds = int(topics.max(initial=0)) + 1
    ours = _with_room(placement, broker, brokers[0], out.rows)
    theirs = _with_room(placement, brokers[1], broker, back.rows)
    out_alone = ours[_broker_room(placement, broker, partners)[out.partners[ours]]]
    back_alone = theirs[_broker_room(placement, partners, broker)[back.partners[theirs]]]
    most = SAMPLED_ROWS_OF_LARGE if placement.on.size > LARGE_PLACEMENT else SAMPLED_ROWS
    ours, theirs = ours[_sampled(out.partners[ours], most)], theirs[_sampled(back.partners[theirs], most)]
    first, second = _equal_pairs(out.partners[ours], back.partners[theirs])
    pairs = (
        _equal_pairs(out.partners * kinds + topics[out.rows], back.partners * kinds + topics[back.rows]),
        (out_alone, np.full_like(out_alone, len(back.rows))),
        (np.full_like(back_alone, len(out.rows)), back_alone),
        (ours[first], theirs[second]),
    )
    parts = [out.partners[pairs[0][0]], out.partners[out_alone], back.partners[back_alone], out.partners[pairs[3][0]]]
    order = np.argsort(np.concatenate(parts), kind="stable")
    outs, backs, pair_partners = (np.concatenate(each)[order] for each in (*zip(*pairs, strict=True), parts))
    return Pairs(outs, backs, pair_partners)


def can_exchange(placement: SearchPlacement, from_broker: int, to_broker: int, out_row: int, back_row: int) -> bool:
    """True if these rows, -1 for none, may go there and back with every count in its window."""
    for row, source, target in ((out_row, from_broker, to_broker), (back_row, to_broker, from_broker)):
        if row >= 0 and (not placement.on[row, source] or placement.on[row, target]):
            return False
        if row >= 0 and not placement.racks_allow(np.array([row]), source, target)[0]:
            return False
    if out_row < 0 or back_row < 0:
        source, target, row = (from_broker, to_broker, out_row) if back_row < 0 else (to_broker, from_broker, back_row)
        with_room = _with_room(placement, source, target, np.array([row]))
        return bool(len(with_room) and _broker_room(placement, source, target))
    if placement.search.topics[out_row] == placement.search.topics[back_row]:
        return True
    room = (
        len(_with_room(placement, from_broker, to_broker, np.array([out_row]))),
        len(_with_room(placement, to_broker, from_broker, np.array([back_row]))),
    )
    return bool(min(room))


def _equal_pairs(first_values: IntArray, second_values: IntArray) -> tuple[IntArray, IntArray]:
    """The places of all pairs of equal values in two ascending arrays."""
    starts = np.searchsorted(second_values, first_values, "left")
    counts = np.searchsorted(second_values, first_values, "right") - starts
    first_indices = np.repeat(np.arange(len(first_values)), counts)
    offsets = np.arange(len(first_indices)) - np.repeat(np.cumsum(counts) - counts, counts)
    return first_indices, np.repeat(starts, counts) + offsets


def _with_room(placement: SearchPlacement, source: int | IntArray, target: int | IntArray, rows: IntArray) -> IntArray:
    """Places of the rows whose topics may have one replica less on the source and one more on the target."""
    topics, (low, high) = placement.search.topics[rows], placement.search.cell_windows
    fewer = placement.cells[topics, source] > low[topics, source]
    return np.flatnonzero(fewer & (placement.cells[topics, target] < high[topics, target]))


def _broker_room(placement: SearchPlacement, source: int | IntArray, target: int | IntArray) -> BoolArray:
    low, high = placement.search.broker_windows
    room: BoolArray = (placement.counts[source] > low[source]) & (placement.counts[target] < high[target])
    return room


def _sampled(partners: IntArray, most: int) -> BoolArray:
    """True for all rows of each partner, ascending, or for `most` evenly spaced rows if there are more."""
    first = np.searchsorted(partners, partners, "left")
    count, index = np.searchsorted(partners, partners, "right") - first, np.arange(len(partners)) - first
    nth = -(-index * most // np.maximum(count, 1))
    sampled: BoolArray = (count <= most) | (nth * count // most == index)
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


def of_layout(layout: Layout, windows: Windows, costs: LongArray, loads: ByteLoads) -> SearchState:
    """A search over a layout's rows at costs (M,), within windows of counts and of loads."""
    levels = np.ones((len(layout.rows), len(layout.targets)), dtype=np.int8, order="F")
    rows, slots = np.nonzero((layout.home >= 0) & ~layout.replaced)
    levels[rows, layout.home[rows, slots]] = 0
    topics, brokers = windowed(layout, windows)
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
    assignment: IntArray,
    leaders: IntArray,
    numbers: IntArray,
    rows: IntArray,
    requested: tuple[Windows, LongArray, LongArray],
    is_on: BoolArray,
) -> SearchState:
    """The free rows (M,) as a local search with one replica per row: its leader, now on a broker of `is_on` (M, Bt)."""
    target_windows, load_windows, sent = requested
    weights, totals = sent[:, rows], sent[:, rows].sum(axis=1)
    fixed = np.setdiff1d(np.flatnonzero((leaders >= 0) & (numbers[leaders] >= 0)), rows)
    fixed_cells, by_topic = (
        counts_by_group(problem, leaders[which][:, None], problem.topic_of[which], len(problem.topic_names))
        for which in (fixed, rows)
    )
    fixed_sent = np.stack([sums_at(is_on.shape[1], numbers[leaders[fixed]], amounts[fixed]) for amounts in sent])
    allowed = np.zeros(is_on.shape, dtype=bool, order="F")
    indices, slots = np.nonzero(may_be_elected(problem, assignment, rows))
    allowed[indices, numbers[assignment[rows[indices], slots]]] = True
    topics = target_windows.topic_leaders
    of_topics = opened(np.stack([by_topic] * 2)) if topics is None else as_wide(topics - fixed_cells, by_topic)
    return SearchState(
        topics=problem.topic_of[rows],
        costs=np.full(len(rows), max(1, int(weights[0].mean())), dtype=np.int64),
        levels=_levels(problem, rows, numbers, is_on.shape[1]),
        allowed=allowed,
        racks=np.zeros(is_on.shape[1], dtype=np.int64),
        least=np.ones((len(rows), 1), dtype=np.int64),
        most=np.ones((len(rows), 1), dtype=np.int64),
        loads=weights,
        # Bytes sent in one hour's scenario count as much as bytes sent on average.
        scales=np.maximum(totals[0] // np.maximum(totals, 1), 1),
        load_windows=load_windows - fixed_sent[:, None],
        cell_windows=of_topics,
        broker_windows=as_wide(target_windows.leaders - fixed_cells.sum(axis=0), by_topic.sum(axis=0)),
    )


def _levels(problem: Problem, rows: IntArray, numbers: IntArray, brokers: int) -> IntArray:
    """(M, Bt): 2 if a broker isn't today's preferred leader, plus 1 if it doesn't lead at this moment."""
    levels = np.full((len(rows), brokers), 3, dtype=np.int8, order="F")
    for todays, level in zip(led_now(problem)[rows].T, (2, 1), strict=True):
        leaders = np.where(todays >= 0, numbers[todays], -1)
        led_rows = np.flatnonzero(leaders >= 0)
        levels[led_rows, leaders[led_rows]] -= level
    return levels


@dataclass(eq=False)
class SearchPlacement:
    """The brokers of rows, `on` (M, B), and the sums that follow from it; every move changes them.

    in_rack (M, R) of each row · load (D, B) · cells (T, B) and counts (B,) of replicas · changes (B,) moves so far
    """

    search: SearchState
    on: BoolArray
    in_rack: IntArray = field(init=False)
    load: LongArray = field(init=False)
    cells: LongArray = field(init=False)
    counts: LongArray = field(init=False)
    changes: LongArray = field(init=False)

    def __post_init__(self) -> None:
        search = self.search
        rows, brokers = np.nonzero(self.on)
        self.in_rack = sums_at(search.least.shape, (rows, search.racks[brokers])).astype(np.int32)
        self.cells = sums_at(search.cell_windows.shape[1:], (search.topics[rows], brokers))
        self.load = np.zeros((len(search.loads), self.on.shape[1]), dtype=np.int64)
        for index, weights in enumerate(search.loads):
            self.load[index] = sums_at(self.on.shape[1], brokers, weights[rows])
        self.counts = self.cells.sum(axis=0)
        self.changes = np.zeros(len(self.counts), dtype=np.int64)
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
        return (self._excess() * self.search.scales[:, None]).sum(axis=0)

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
            self.counts[broker] += sign
            self.changes[broker] += 1

    def within_windows(self) -> bool:
        """True if no more is outside of windows than allowed."""
        limit = self.search.most_outside
        if limit is None:
            return not self.outside().any()
        return bool(self.outside().sum() <= limit.total and (self._excess() <= limit.furthest[:, None]).all())

    def _excess(self) -> LongArray:
        """(D, B): how far outside its window each load of a broker is."""
        return _below_and_above(self.search.load_windows.transpose(1, 0, 2), self.load.copy())


BrokerNumbers = Sequence[int] | IntArray


def takes_outward(placement: SearchPlacement, brokers: BrokerNumbers, shifts: LongArray) -> BoolArray:
    """(K,): True if shifts (N, D, K) of the loads of brokers, N or (N, K), take more outside of windows than allowed.

    Without `most_outside`, no load may go further outside; with it, neither the total nor a broker may exceed it.
    """
    search, limit, worse = placement.search, placement.search.most_outside, np.zeros(shifts.shape[2], dtype=bool)
    total = np.zeros(shifts.shape[2], dtype=np.int64)
    for load, scale in enumerate(search.scales.tolist()):
        sums = np.zeros_like(total)
        for broker, shift in zip(brokers, shifts[:, load], strict=True):
            sums += outward_by(placement, load, broker, shift)
            if limit is not None:
                worse |= _excess_after(placement, load, broker, shift) > limit.furthest[load]
        if limit is None:
            worse |= sums > 0
        total += scale * sums
    if limit is not None and len(search.scales):
        worse |= total > limit.total - int(placement.outside().sum())
    return worse


def outward_by(placement: SearchPlacement, load: int, broker: int | IntArray, shifts: LongArray) -> LongArray:
    """By how much each shift takes a broker's load further outside its window; negative: nearer."""
    change = _excess_after(placement, load, broker, shifts)
    change -= _below_and_above(placement.search.load_windows[load], placement.load[load].copy())[broker]
    return change


def _excess_after(placement: SearchPlacement, load: int, broker: int | IntArray, shifts: LongArray) -> LongArray:
    """How far outside its window each shift takes a broker's load."""
    return _below_and_above(placement.search.load_windows[load][:, broker], placement.load[load, broker] + shifts)


def _below_and_above(window: LongArray, loads: LongArray) -> LongArray:
    """How far outside a window (2, …) each of these loads is; overwrites the loads."""
    outside: LongArray = np.maximum(window[0] - loads, 0)
    # In place, because a search asks for tens of thousands at a time.
    outside += np.maximum(np.subtract(loads, window[1], out=loads), 0, out=loads)
    return outside
