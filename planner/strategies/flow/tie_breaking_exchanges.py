"""The choice among equally cheap placements: fewer leaders and partitions changed, and copies within racks.

If only counts have windows, flows choose (see `tie_breaking`), and exchanges then move copies into the racks that
they are copied from. With windows of bytes, exchanges do all of it as well as they can. Rows of a topic exchange
brokers if that costs nothing, keeps every count, and takes no load further outside its window. An exchange gains if a
leader keeps its replica, if a partition stays as it is, or if bytes are copied from a broker of the same rack. The user
decides whether leaders or racks come first (`sweep.aims`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from planner.model.problem import BoolArray, FloatArray, IntArray, LongArray, Problem
from planner.scoring.windows import Windows
from planner.strategies.flow import tie_breaking
from planner.strategies.flow.placement import Placed, matrix, on_brokers, widened
from planner.strategies.flow.placement_network import Layout
from planner.strategies.flow.tie_breaking import leaders_today
from planner.strategies.load_windows.byte_loads import ByteLoads
from planner.strategies.load_windows.local_search_state import SearchPlacement, leaving_rows, of_layout, outward_by
from planner.strategies.work_limits import TIE_CELLS, TIE_ROUNDS

# Gains below the first count as none; the second is the gain of a move that isn't allowed.
_NOTHING, _NEVER = 1e-12, -np.inf
# The worth of the first aim, of a partition that stays as it is, and of the whole other aim.
_FIRST, _SECOND, _LAST = 1e6, 1.0, 1e-3


@dataclass(frozen=True, eq=False)
class Ties:
    """For each row (M,): the broker that leads it (-1: none), the rack it is copied from, and its bytes.

    `broker_racks` (Bt,) are the brokers' racks, whether or not the rack rule is enforced. `per_leader`, `per_byte` and
    `per_touched` are the worth of a leader that stays, of a byte copied within a rack, and of a partition that keeps
    all its replicas. `pinned` (M, Bt) are replicas on brokers that replace others one to one; None: there are none.
    With `copies_only`, copies exchange brokers only with copies.
    """

    leaders: IntArray
    racks: IntArray
    broker_racks: IntArray
    size_bytes: LongArray
    per_leader: float
    per_byte: float
    pinned: BoolArray | None = None
    per_touched: float = 0.0
    copies_only: bool = False


def ties(problem: Problem, layout: Layout) -> Ties | None:
    """The worth of leaders and racks by the problem's aims; None without such an aim, or for large placements."""
    aims = [aim for aim in problem.aims if aim in ("leaders_changed", "cross_rack_bytes")]
    if not aims or not 0 < len(layout.rows) * len(layout.targets) <= TIE_CELLS:
        return None
    copied_from = problem.copied_from[layout.rows]
    leaders_now = leaders_today(problem)[layout.rows]
    leaders = np.where(leaders_now >= 0, layout.numbers[leaders_now], -1)
    # A leaving broker is still copied from, best by a broker of its rack.
    racks, target_racks = problem.broker_racks[copied_from], problem.broker_racks[layout.targets]
    per_byte = _worth(aims, "cross_rack_bytes") / max(1, int(layout.copy_bytes.sum()))
    per_leader = _worth(aims, "leaders_changed")
    per_touched = _SECOND if "leaders_changed" in aims else 0.0
    return Ties(leaders, racks, target_racks, layout.copy_bytes, per_leader, per_byte, layout.pinned, per_touched)


def ties_broken(
    problem: Problem, layout: Layout, windows: Windows, placed: Placed, *, exactly: bool = False
) -> tuple[IntArray, bool]:
    """A flow's placement (M, W) with its ties broken, if only counts have windows; True if none is better.

    `exactly`: integer programs look for better ones, if they are small.
    """
    if not len(layout.rows):
        return placed.chosen, True
    placed = tie_breaking.ties_broken(problem, layout, windows, placed, exactly=exactly)
    open_ties = ties(problem, layout)
    if open_ties is None or not open_ties.per_byte:
        return placed.chosen, placed.ties_proven
    # Doubled, so that an empty partition costs less than a partition of one byte.
    costs = np.where(layout.is_new, 0, np.maximum(2 * layout.copy_bytes, 1))
    search = of_layout(layout, widened(layout, windows, placed), costs, ByteLoads.none(layout))
    placement = SearchPlacement(search, on_brokers(layout, placed.chosen))
    break_ties(placement, (after := after_flows(problem, open_ties)))
    # Exchanges of copies for copies keep what is proven; exchanges for bytes across racks that come first may not.
    return matrix(layout, np.stack(np.nonzero(placement.on)), problem.width), placed.ties_proven and after.copies_only


def after_flows(problem: Problem, ties: Ties) -> Ties:
    """The ties that exchanges decide after the flows: only copies for copies, unless racks come before leaders."""
    return ties if problem.aims[:1] == ("cross_rack_bytes",) else replace(ties, copies_only=True)


def break_ties(placement: SearchPlacement, ties: Ties) -> None:
    """Make every exchange within a topic that costs nothing and gains by the ties."""
    for _ in range(TIE_ROUNDS):
        gainful, any_gain = _gainful(placement, ties), False
        for source, target in combinations(range(placement.on.shape[1]), 2):
            if gainful[source, target] and (moved := _exchange_all(placement, source, target, ties)):
                any_gain = True
                # The rows that moved may now gain by moves to other brokers.
                changed = np.union1d([source, target], np.flatnonzero(placement.on[moved].any(axis=0)))
                gainful[changed] = gainful[:, changed] = True
        if not any_gain:
            return


def _gainful(placement: SearchPlacement, ties: Ties) -> BoolArray:
    """(Bt, Bt): True for two brokers if any row gains by a move between them; otherwise no exchange gains."""
    brokers = np.arange(placement.on.shape[1])
    gainful = np.zeros((len(brokers), len(brokers)), dtype=bool)
    # Counted once, because nothing moves in this function and it examines each row for every broker.
    copied = (placement.on & (placement.search.levels > 0)).sum(axis=1)
    for broker in brokers.tolist():
        out = leaving_rows(placement, broker, brokers)
        gains = _gains(placement, out.rows, np.full_like(out.partners, broker), out.partners, ties, copied)
        gainful[broker, out.partners[gains > 0]] = True
    return gainful | gainful.T


def _worth(aims: Sequence[str], aim: str) -> float:
    if aim not in aims:
        return 0.0
    return _FIRST if aims[0] == aim else _LAST


def _exchange_all(placement: SearchPlacement, source: int, target: int, ties: Ties) -> list[int]:
    """Make the gainful exchanges of two brokers, best with best; return the rows that moved."""
    out_rows, back_rows = _exchanges(placement, source, target, ties)
    moved = list[int]()
    for leaving, coming in zip(out_rows.tolist(), back_rows.tolist(), strict=True):
        # No exchange may take a load further outside its window.
        shifts = [np.array([moving[leaving] - moving[coming]]) for moving in placement.search.loads]
        if any(
            (outward_by(placement, load, source, -shift) + outward_by(placement, load, target, shift))[0] > 0
            for load, shift in enumerate(shifts)
        ):
            continue
        placement.move(leaving, source, target)
        placement.move(coming, target, source)
        moved += [leaving, coming]
    return moved


def _exchanges(placement: SearchPlacement, source: int, target: int, ties: Ties) -> tuple[IntArray, IntArray]:
    """Rows that leave `source` and those that come back, of the same topic and for the same bytes and replicas.

    Among rows with the same costs, the ones that gain most are paired first, so no pair is looked at twice.
    """
    out, back = _Movers.of(placement, source, target, ties), _Movers.of(placement, target, source, ties)
    out = out.gainful_with(back)
    back = back.gainful_with(out)
    if not len(back.rows):
        return out.rows[:0], back.rows
    _, outs, backs = np.intersect1d(out.matches(back, 1), back.matches(out, -1), return_indices=True)
    gain = out.gains[outs] + back.gains[backs]
    best = np.flatnonzero(gain > _NOTHING)
    best = best[np.argsort(-gain[best], kind="stable")]
    return out.rows[outs[best]], back.rows[backs[best]]


@dataclass(frozen=True, eq=False)
class _Movers:
    """Rows (K,) that may move from one broker to another, the most gainful first: their topics, and each move's cost in
    bytes and in replicas, and its gain.
    """

    rows: IntArray
    topics: IntArray
    costs: LongArray
    copies: LongArray
    gains: FloatArray

    @staticmethod
    def of(placement: SearchPlacement, source: int, target: int, ties: Ties) -> _Movers:
        """All rows that may move from `source` to `target`."""
        search, rows = placement.search, leaving_rows(placement, source, np.array([target])).rows
        gains = _gains(placement, rows, np.full_like(rows, source), np.full_like(rows, target), ties)
        order = np.argsort(-gains, kind="stable")[: np.count_nonzero(gains > _NEVER)]
        rows, gains = rows[order], gains[order]
        copies = search.levels[rows, target].astype(np.int64) - search.levels[rows, source]
        return _Movers(rows, search.topics[rows], search.costs[rows] * copies, copies, gains)

    def gainful_with(self, other: _Movers) -> _Movers:
        """The rows of the other side's topics that gain together with its best row, in the same order."""
        count = int(np.searchsorted(-self.gains, other.gains.max(initial=-np.inf) - _NOTHING, "left"))
        kept = np.flatnonzero(np.isin(self.topics[:count], other.topics))
        return _Movers(self.rows[kept], self.topics[kept], self.costs[kept], self.copies[kept], self.gains[kept])

    def matches(self, other: _Movers, sign: int) -> LongArray:
        """(K,): equal numbers for rows of two sides whose costs cancel out and whose ranks by gain are equal."""
        own_keys, other_keys = (
            np.stack([side.topics, turn * side.costs, turn * side.copies], axis=1)
            for side, turn in ((self, sign), (other, -sign))
        )
        _, kinds = np.unique(np.concatenate([own_keys, other_keys]), axis=0, return_inverse=True)
        kinds = kinds.ravel()[: len(own_keys)]
        order = np.argsort(kinds, kind="stable")
        ranks = np.empty(len(kinds), dtype=np.int64)
        ranks[order] = np.arange(len(kinds)) - np.searchsorted(kinds[order], kinds[order])
        places: LongArray = kinds * (len(own_keys) + len(other_keys) + 1) + ranks
        return places


def _gains(
    placement: SearchPlacement,
    rows: IntArray,
    source: IntArray,
    target: IntArray,
    ties: Ties,
    copied: IntArray | None = None,
) -> FloatArray:
    """(K,): each row's gain by a move from one broker to another; _NEVER if it has to stay.

    copied (M,): how many of a row's replicas are copied, if that is known.
    """
    levels, may_move = placement.search.levels, np.ones(len(rows), dtype=bool)
    if ties.pinned is not None:
        may_move &= ~ties.pinned[rows, source]
    if ties.copies_only:
        may_move &= (levels[rows, source] > 0) & (levels[rows, target] > 0)
    gains = np.full(len(rows), _NEVER)
    rows, source, target = rows[may_move], source[may_move], target[may_move]
    gains[may_move] = _value(placement, rows, target, ties) - _value(placement, rows, source, ties)
    if ties.per_touched:
        # A row loses if it copies something only after the exchange, and gains if it then copies nothing any more.
        before = (placement.on[rows] & (levels[rows] > 0)).sum(axis=1) if copied is None else copied[rows]
        after = before + levels[rows, target].astype(np.int64) - levels[rows, source]
        gains[may_move] -= ties.per_touched * ((after > 0).astype(np.int64) - (before > 0))
    return gains


def _value(placement: SearchPlacement, rows: IntArray, brokers: IntArray, ties: Ties) -> FloatArray:
    """(K,): the worth of each row's replica on its broker."""
    search = placement.search
    copied = np.where(search.levels[rows, brokers] > 0, ties.size_bytes[rows], 0)
    within = copied * (ties.racks[rows] == ties.broker_racks[brokers])
    worth: FloatArray = ties.per_leader * (ties.leaders[rows] == brokers) + ties.per_byte * within
    return worth
