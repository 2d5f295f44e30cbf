"""Which of the cheapest placements: the fewest leaders changed, then partitions touched, then even arrivals.

Each objective is a flow of its own over the arcs that all objectives before it leave free (see `optimal_face`):

1. Partitions whose leader loses its replica; the preferred leader counts where nobody leads. One unit a partition, on
   the arc by which that broker keeps its replica: exact. Where `rebalance` is `none` this comes before the windows of
   replicas: nobody loses a leader so that counts come out more even.
2. Partitions that gain or lose a replica. That is a charge on a partition, however many of its replicas leave, which no
   flow has. A partition that could lose k of its replicas is charged 1/k for each of them, which is never more than the
   charge: where the flow's total, rounded up, is met, nothing is better. Else the charge is divided by what the last
   flow took from each partition, and solved again, a few times; the best of these is kept.
3. The sum of the squares of the replicas that arrive at each broker, by arcs of rising cost into the brokers. Exact
   where no window of a topic limits what its brokers keep; else among the placements that keep the same replicas.

An aim that the user names before `leaders_changed` comes first: bytes across racks where racks are enforced, as a cost
on the arc by which a partition enters a rack. The others can't be added up and are chosen by among the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm

import numpy as np

from planner.model.build_problem import taken_over
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.scoring.windows import Windows
from planner.strategies.flow import min_cost_flow, optimal_face
from planner.strategies.flow.even_arrivals import spread
from planner.strategies.flow.layout import Layout
from planner.strategies.flow.network import Network
from planner.strategies.flow.optimal_face import Face
from planner.strategies.flow.placement import Placed, deal, place
from planner.strategies.work_limits import TOUCHED_SHARES, TOUCHED_SLOPES

_SHARED = lcm(*range(1, TOUCHED_SHARES + 1))
# Whole bytes as costs are cut to so many bits.
_COST_BITS = 30


def leaders_today(problem: Problem) -> IntArray:
    """(P,): who leads each partition, the preferred leader where nobody does; or who replaces that broker."""
    leaders = np.where(problem.leaders >= 0, problem.leaders, problem.replicas[:, 0])
    return taken_over(problem, leaders[:, None])[:, 0]


def settled(problem: Problem, layout: Layout, wanted: Windows, placed: Placed) -> Placed:
    """The placement of the same cost that is the best by the objectives."""
    while True:
        units = _Face.of(problem, layout, placed).best()
        if (units == placed.solved.units).all():
            return placed
        decided, entered, arriving = placed.network.read(layout, units)
        chosen, undealt = deal(layout, decided, entered, arriving, problem.width)
        if not undealt.any():
            cells = arriving.astype(np.int64)
            np.add.at(cells, (layout.topics[decided[0]], decided[1]), 1)
            through = (cells.ravel(), cells.sum(axis=0))
            return replace(placed, chosen=chosen, solved=replace(placed.solved, units=units, through=through))
        # Partitions that the pools' brokers can't be dealt to get arcs of their own.
        own = undealt.copy()
        own[placed.network.own[0]] = True
        placed = place(problem, layout, wanted, own)


@dataclass(frozen=True, eq=False)
class _Face:
    """The cheapest flows of a layout's network, with what objectives are made of."""

    problem: Problem
    layout: Layout
    placed: Placed
    face: Face

    @staticmethod
    def of(problem: Problem, layout: Layout, placed: Placed) -> _Face:
        """All flows as cheap as the placement's."""
        network, nodes = placed.network, len(placed.network.supplies)
        windowed: tuple[min_cost_flow.Windowed, ...] = placed.windowed
        solved = placed.solved
        if problem.rebalance == "none":
            # Windows come after leaders: see `_within_windows`.
            windowed = tuple(min_cost_flow.opened(each) for each in windowed)
            found = min_cost_flow.solve(network.arcs, windowed, network.supplies)
            if found is None:
                raise AssertionError("the flow that was found is within open windows")
            solved = found
        return _Face(problem, layout, placed, optimal_face.of(network.arcs, windowed, solved, nodes))

    def best(self) -> LongArray:
        """Units (K,) on the plain arcs of the best flow by all objectives in their order."""
        now = self._exact_bytes()
        aims = list(self.problem.aims)
        before = aims[: aims.index("leaders_changed")] if "leaders_changed" in aims else aims
        if "cross_rack_bytes" in before:
            now = now._cheapest(now._crossing())
        now = now._cheapest(now._leaders_dropped())
        if self.problem.rebalance == "none":
            now = now._within_windows()
        now = replace(now, face=_fewest_touched(now))
        return spread(now.layout, now.placed.network, now.face)

    def _within_windows(self) -> _Face:
        """The least excess over the windows that were open so far."""
        network, windowed = self.placed.network, self.placed.windowed
        low, high = (each[: len(network.arcs.tails)] for each in (self.face.low, self.face.high))
        plain = replace(network.arcs, lows=low, capacities=high, costs=np.zeros_like(low))
        solved = min_cost_flow.solve(plain, windowed, network.supplies, excess_factor=1)
        if solved is None:
            raise AssertionError("a flow that exists is within windows that may be exceeded")
        return replace(self, face=optimal_face.of(plain, windowed, solved, len(network.supplies)))

    def _cheapest(self, costs: LongArray) -> _Face:
        """With costs (K,) of the plain arcs."""
        every = np.zeros(len(self.face.units), dtype=np.int64)
        every[: len(costs)] = costs
        return replace(self, face=self.face.cheapest(every))

    def _exact_bytes(self) -> _Face:
        """The fewest bytes to the byte, where the flow's costs were coarser."""
        layout, network, shift = self.layout, self.placed.network, self.placed.solved.shift
        finer = self._cheapest(network.arcs.costs & ((1 << shift) - 1)) if shift else self
        if layout.cost_unit_bytes == 1:
            return finer
        return finer._cheapest(self._entering(layout.copy_bytes % layout.cost_unit_bytes))

    def _entering(self, values: LongArray) -> LongArray:
        """(K,): a value for each row (M,) on the arcs that copy it."""
        network, layout = self.placed.network, self.layout
        costs = np.zeros(len(network.arcs.tails), dtype=np.int64)
        rows, slots = np.nonzero(layout.home >= 0)
        ends = _ends(network)
        costs[: ends[0]] = np.where(layout.replaced[rows, slots], values[rows], 0)
        costs[ends[0] : ends[1]] = values[network.enter[0]]
        costs[ends[1] : ends[2]] = values[network.own[0]]
        return costs

    def _crossing(self) -> LongArray:
        """Bytes that are copied from a leader in another rack, where the flow knows the racks."""
        problem, layout, network = self.problem, self.layout, self.placed.network
        costs = np.zeros(len(network.arcs.tails), dtype=np.int64)
        if not problem.racks_matter:
            return costs
        source = np.where(problem.leaders >= 0, problem.leaders, problem.replicas[:, 0])[layout.rows]
        of_group = np.zeros(len(layout.group_racks), dtype=np.int64)
        of_group[layout.groups] = problem.broker_racks[layout.targets]
        coarse = max(0, int(layout.copy_bytes.max(initial=0)).bit_length() - _COST_BITS)
        worth, racks, ends = layout.copy_bytes >> coarse, problem.broker_racks[source], _ends(network)
        rows, groups = network.enter
        costs[ends[0] : ends[1]] = worth[rows] * (of_group[groups] != racks[rows])
        rows, brokers = network.own
        costs[ends[1] : ends[2]] = worth[rows] * (problem.broker_racks[layout.targets[brokers]] != racks[rows])
        return costs

    def _leaders_dropped(self) -> LongArray:
        """1 on every way but that by which the leader's broker keeps its replica; a row takes as many in any case."""
        layout = self.layout
        here = np.full(len(self.problem.broker_ids), -1, dtype=np.int64)
        here[layout.targets] = np.arange(len(layout.targets))
        leaders = here[leaders_today(self.problem)[layout.rows]]
        rows, brokers = self.placed.network.keep
        return self._unless_kept(np.ones(len(layout.rows), dtype=np.int64), leaders[rows] == brokers)

    def _unless_kept(self, charges: LongArray, kept: LongArray) -> LongArray:
        """(K,): each row's charge (M,) for every replica but those on the keep arcs of the mask."""
        network = self.placed.network
        costs = np.zeros(len(network.arcs.tails), dtype=np.int64)
        ends = _ends(network)
        costs[: ends[0]] = charges[network.keep[0]] * ~kept
        costs[ends[0] : ends[1]] = charges[network.enter[0]]
        costs[ends[1] : ends[2]] = charges[network.own[0]]
        return costs


def _ends(network: Network) -> IntArray:
    """Where the runs of keep, enter and own arcs end."""
    return np.cumsum([run.shape[1] for run in (network.keep, network.enter, network.own)])


@dataclass(frozen=True, eq=False)
class _Charges:
    """A charge on rows that are touched, over the keep arcs (K,): the row of each arc, rows (M,) that could stay whole
    or not, and how many of their replicas could leave (M,).
    """

    rows: IntArray
    open_rows: BoolArray
    most: LongArray

    @staticmethod
    def of(now: _Face) -> _Charges:
        """Of a face: rows that lose a replica in all of its flows are touched whatever else they lose."""
        rows, count = now.placed.network.keep[0], len(now.layout.rows)
        low, high = (each[: len(rows)] for each in (now.face.low, now.face.high))
        leaving = np.bincount(rows[low == 0], minlength=count)
        gone = np.bincount(rows[high == 0], minlength=count) > 0
        open_rows = _whole(now.problem, now.layout) & (leaving > 0) & ~gone
        return _Charges(rows, open_rows, leaving.clip(1, TOUCHED_SHARES))

    def left(self, face: Face) -> LongArray:
        """(M,): replicas that leave each of the rows."""
        gone = np.bincount(self.rows, weights=1 - face.units[: len(self.rows)], minlength=len(self.open_rows))
        return np.where(self.open_rows, gone, 0).astype(np.int64)

    def solved(self, now: _Face, shares: LongArray) -> Face:
        """The cheapest flow where a row's charge is divided by `fair_shares` (M,)."""
        charges = np.where(self.open_rows, _SHARED // shares.clip(1, TOUCHED_SHARES), 0)
        return now._cheapest(now._unless_kept(charges, np.ones(len(self.rows), dtype=bool))).face


def _fewest_touched(now: _Face) -> Face:
    """The fewest rows of which a replica leaves that needn't, among those that could stay as they are."""
    charges = _Charges.of(now)
    if not charges.open_rows.any():
        return now.face
    best = charges.solved(now, charges.most)
    left = charges.left(best)
    least, fewest = -(-int((left * (_SHARED // charges.most)).sum()) // _SHARED), np.count_nonzero(left)
    for _ in range(TOUCHED_SLOPES):
        if fewest <= least:
            break
        face = charges.solved(now, left)
        left = charges.left(face)
        if np.count_nonzero(left) >= fewest:
            break
        best, fewest = face, np.count_nonzero(left)
    # Where several of a row's replicas could leave, other flows of the same charges may touch more rows.
    fixed = np.zeros(len(best.units), dtype=bool)
    fixed[: len(charges.rows)] = (charges.open_rows & (charges.most > 1))[charges.rows]
    return best.fixed(fixed)


def _whole(problem: Problem, layout: Layout) -> BoolArray:
    """(M,): True for rows that could stay as they are."""
    held = (problem.replicas[layout.rows] >= 0).sum(axis=1)
    stays = ((layout.home >= 0) & ~layout.replaced).sum(axis=1)
    whole: BoolArray = (held == layout.factors) & (stays == held)
    return whole
