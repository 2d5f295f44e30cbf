"""The choice among the cheapest placements: fewest leaders changed, then fewest partitions touched, then even arrivals.

Each objective is another flow over the arcs that all objectives before it leave free (see `min_cost_flow.Face`):

1. Partitions whose leader loses its replica; if there is no leader, the preferred leader counts. Each arc of the
   partition costs one unit, except the arc on which that broker keeps its replica: exact. If `rebalance` is `none` or
   `racks`, this comes before the windows of replicas: no leader changes to make counts more even.
2. Partitions that gain or lose a replica. A flow can't charge a partition once, however many of its replicas leave. So
   a partition that could lose k replicas is charged 1/k for each of them, which is never more than the whole charge.
   If a flow touches no more partitions than its total, rounded up, none is better. Else `fewest_changed_partitions`
   searches on.
3. The sum of the squares of the replicas that arrive at each broker. Arriving replicas go through a separate node and
   on by arcs that cost 1, 3, 5 and so on, whose sum is the square. A topic's window on a broker limits the sum of
   staying and arriving replicas. If that window limits nothing that the objectives above left open, both bypass it,
   and the result is exact. Otherwise the staying replicas are fixed, and the arriving ones have the rest of the
   window; a flow that bypasses all these windows is then a bound.

If the user names bytes across racks before `leaders_changed` and racks are enforced, they come first, as a cost on the
arc by which a partition enters a rack. Other aims can't be added up; they only choose among the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.model.build_problem import with_replacements
from planner.model.problem import BoolArray, IntArray, LongArray, Problem, sums_at
from planner.scoring.window_excess import EXCESS_STEPS
from planner.scoring.windows import Windows
from planner.strategies.flow import min_cost_flow
from planner.strategies.flow.fewest_changed_partitions import SHARED, Arrivals, OpenTies, TieProgram, touching_fewest
from planner.strategies.flow.min_cost_flow import Face, face_of
from planner.strategies.flow.placement import Placed, deal, place
from planner.strategies.flow.placement_network import Layout, Network
from planner.strategies.work_limits import ARRIVAL_STEPS, PROGRAM_ARCS

# Costs in bytes are cut to so many bits.
_COST_BITS = 30


def leaders_today(problem: Problem) -> IntArray:
    """(P,): the leader of each partition, or its preferred leader if it has none; or the broker that replaces it."""
    leaders = problem.copied_from
    return with_replacements(problem, leaders[:, None])[:, 0]


def ties_broken(problem: Problem, layout: Layout, windows: Windows, placed: Placed, *, exactly: bool = False) -> Placed:
    """The best placement by the objectives at the same cost; `exactly`: by integer programs too, if they are small."""
    own_rows = np.zeros(len(layout.rows), dtype=bool)
    while True:
        units, proven = _TieFace.of(problem, layout, placed).best(exactly=exactly)
        if (units == placed.solved.units).all():
            return replace(placed, ties_proven=proven)
        decided, entered, arriving = placed.network.read(units)
        chosen, undealt = deal(layout, decided, entered, arriving, problem.width)
        if not undealt.any():
            cells = arriving + sums_at(arriving.shape, (layout.topics[decided[0]], decided[1]))
            through = (cells.ravel(), cells.sum(axis=0))
            solved = replace(placed.solved, units=units, through=through)
            return replace(placed, chosen=chosen, solved=solved, ties_proven=proven)
        # Partitions that can't be dealt brokers from the pools get their own arcs to brokers; none if they are on all.
        own_rows |= undealt
        own_rows[placed.network.own[0]] = True
        placed = place(problem, layout, windows, own_rows)


@dataclass(frozen=True, eq=False)
class _TieFace:
    """The cheapest flows of a layout's network, and the data that the objectives need."""

    problem: Problem
    layout: Layout
    placed: Placed
    face: Face

    @staticmethod
    def of(problem: Problem, layout: Layout, placed: Placed) -> _TieFace:
        """All flows as cheap as the placement's."""
        network, nodes = placed.network, len(placed.network.supplies)
        if not problem.forced_only:
            return _TieFace(problem, layout, placed, face_of(network.arcs, placed.windowed, placed.solved, nodes))
        # Windows come after leaders: see `_within_windows`.
        windowed = tuple(min_cost_flow.opened(each) for each in placed.windowed)
        solved = min_cost_flow.solve(network.arcs, windowed, network.supplies)
        assert solved is not None, "the flow that was found is within open windows"
        return _TieFace(problem, layout, placed, face_of(network.arcs, windowed, solved, nodes))

    def best(self, *, exactly: bool) -> tuple[LongArray, bool]:
        """Units (K,) on the plain arcs of the best flow by all objectives in order; True if it is proven best."""
        face = self._exact_bytes()
        aims = list(self.problem.aims)
        before = aims[: aims.index("leaders_changed")] if "leaders_changed" in aims else aims
        if "cross_rack_bytes" in before:
            face = face._cheapest(face._crossing_costs())
        face = face._cheapest(face._leader_costs())
        if self.problem.forced_only:
            face = face._within_windows()
        ties = face._open_ties()
        touching, fewest = touching_fewest(ties, exactly=exactly)
        as_few, surely, are_all = ties.as_few(touching)
        units, even = _even_arrivals(self.placed.network, surely)
        if not exactly or (even and are_all):
            return units, exactly and fewest
        arrivals, network = self._arrivals(len(units)), self.placed.network
        squares = int((arrivals.counted(units) ** 2).sum())
        if squares <= _least_squares(network, as_few):
            return units, fewest
        if np.count_nonzero(as_few.free) > PROGRAM_ARCS:
            return units, False
        more_even, even = TieProgram.of_face(ties, as_few).more_even(arrivals, ties.count_touched(touching), squares)
        return units if more_even is None else more_even[: len(units)], fewest and even

    def _open_ties(self) -> OpenTies:
        """The flows of this face, and the rows that they could leave as they are.

        A row that loses a replica in every flow is touched anyway, so it isn't one of them.
        """
        layout, network, face = self.layout, self.placed.network, self.face
        rows, count, ends = network.keep[0], len(layout.rows), network.ends
        leaving = np.bincount(rows[face.low[: len(rows)] == 0], minlength=count)
        lost = np.bincount(rows[face.high[: len(rows)] == 0], minlength=count) > 0
        counts = (self.problem.replicas[layout.rows] >= 0).sum(axis=1)
        stays = ((layout.home >= 0) & ~layout.replaced).sum(axis=1)
        # If all of a row's replicas could stay, as many leave as enter other brokers.
        entered_rows = np.concatenate([network.enter[0], network.own[0]])
        least, most = (sums_at(count, entered_rows, each[ends[0] : ends[2]]) for each in (face.low, face.high))
        open_rows = (counts == layout.factors) & (stays == counts) & (leaving > 0) & ~lost & (least == 0)
        shares = np.minimum(leaving, most).clip(1)
        charges = np.where(open_rows, SHARED // shares, 0)
        charged = self._cheapest(self._costs_unless_kept(charges, np.ones(len(rows), dtype=bool))).face
        return OpenTies(face, rows, open_rows, shares, charged)

    def _arrivals(self, count: int) -> Arrivals:
        """The plain arcs (K,) on which replicas arrive."""
        layout, network = self.layout, self.placed.network
        is_taken_over, ends = layout.replaced[np.nonzero(layout.home >= 0)], network.ends
        entering, brokers = np.zeros(count, dtype=bool), np.zeros(count, dtype=np.int32)
        # A replica that enters a pool arrives by an arc from the pool.
        entering[: len(is_taken_over)], entering[ends[1] : ends[3]] = is_taken_over, True
        brokers[: len(is_taken_over)] = network.keep[1]
        brokers[ends[1] : ends[3]] = np.concatenate([network.own[1], network.arrive[1]])
        return Arrivals(entering, brokers)

    def _within_windows(self) -> _TieFace:
        """The flows with the least excess over the windows, which were open so far."""
        network, windowed = self.placed.network, self.placed.windowed
        low, high = (each[: len(network.arcs.tails)] for each in (self.face.low, self.face.high))
        plain = replace(network.arcs, lows=low, capacities=high, costs=np.zeros_like(low))
        solved = min_cost_flow.solve(plain, windowed, network.supplies, excess_factor=1)
        assert solved is not None, "a flow that exists is within windows that may be exceeded"
        return replace(self, face=face_of(plain, windowed, solved, len(network.supplies)))

    def _cheapest(self, costs: LongArray) -> _TieFace:
        """The flows with the least total of these costs (K,) of the plain arcs."""
        all_costs = np.zeros(len(self.face.units), dtype=np.int64)
        all_costs[: len(costs)] = costs
        return replace(self, face=self.face.cheapest(all_costs))

    def _exact_bytes(self) -> _TieFace:
        """The flows with the exact fewest bytes, if the solver's costs were coarser."""
        layout, network, shift = self.layout, self.placed.network, self.placed.solved.shift
        finer = self._cheapest(network.arcs.costs & ((1 << shift) - 1)) if shift else self
        if layout.cost_unit_bytes == 1:
            return finer
        may_stay: BoolArray = ~layout.replaced[np.nonzero(layout.home >= 0)]
        return finer._cheapest(self._costs_unless_kept(layout.copy_bytes % layout.cost_unit_bytes, may_stay))

    def _crossing_costs(self) -> LongArray:
        """(K,): bytes that are copied from a leader in another rack; 0 if racks don't matter."""
        problem, layout, network = self.problem, self.layout, self.placed.network
        costs = np.zeros(len(network.arcs.tails), dtype=np.int64)
        if not problem.racks_matter:
            return costs
        source = problem.copied_from[layout.rows]
        of_group = np.zeros(len(layout.group_racks), dtype=np.int64)
        of_group[layout.groups] = problem.broker_racks[layout.targets]
        coarse = max(0, int(layout.copy_bytes.max(initial=0)).bit_length() - _COST_BITS)
        row_bytes, racks, ends = layout.copy_bytes >> coarse, problem.broker_racks[source], network.ends
        rows, groups = network.enter
        costs[ends[0] : ends[1]] = row_bytes[rows] * (of_group[groups] != racks[rows])
        rows, brokers = network.own
        costs[ends[1] : ends[2]] = row_bytes[rows] * (problem.broker_racks[layout.targets[brokers]] != racks[rows])
        return costs

    def _leader_costs(self) -> LongArray:
        """Cost 1 on a row's arcs, 0 if its leader's broker keeps its replica; a row's units have a fixed sum."""
        layout = self.layout
        leaders = layout.numbers[leaders_today(self.problem)[layout.rows]]
        rows, brokers = self.placed.network.keep
        return self._costs_unless_kept(np.ones(len(layout.rows), dtype=np.int64), leaders[rows] == brokers)

    def _costs_unless_kept(self, charges: LongArray, kept: BoolArray) -> LongArray:
        """(K,): each row's charge (M,) on its arcs, except on the keep arcs of the mask."""
        network = self.placed.network
        costs = np.zeros(len(network.arcs.tails), dtype=np.int64)
        ends = network.ends
        costs[: ends[0]] = charges[network.keep[0]] * ~kept
        costs[ends[0] : ends[1]] = charges[network.enter[0]]
        costs[ends[1] : ends[2]] = charges[network.own[0]]
        return costs


def _even_arrivals(network: Network, face: Face) -> tuple[LongArray, bool]:
    """Units (K,) of a flow of the face with even arrivals; True if none has a smaller sum of their squares."""
    units = face.units[: len(network.arcs.tails)]
    cells, ends = _Cells.of(network, face), network.ends
    if not face.free[ends[1] : ends[3]].any():
        return units, True
    # Kept replicas bypass windows that limit nothing, straight to the broker; the others are fixed.
    keeps = np.flatnonzero(face.free[: ends[0]])
    keeps = keeps[bypasses := cells.slack[cells.of_keep[keeps]]]
    others, solved, _ = _spread(network, face, cells, keeps)
    best = units.copy()
    best[keeps] = solved[: len(keeps)]
    best[others] = solved[len(keeps) : len(keeps) + len(others)]
    return best, bool(bypasses.all() and cells.steps <= ARRIVAL_STEPS)


def _least_squares(network: Network, face: Face) -> int:
    """A bound on the sum of squared arrivals of all flows of the face: all staying replicas bypass the windows."""
    cells, keeps = _Cells.of(network, face, bypass=True), np.flatnonzero(face.free[: network.ends[0]])
    return _spread(network, face, cells, keeps)[2] if cells.steps <= ARRIVAL_STEPS else 0


def _spread(network: Network, face: Face, cells: _Cells, keeps: IntArray) -> tuple[IntArray, LongArray, int]:
    """The free plain arcs other than keep arcs, the units with the least squares (on these keep arcs, on those arcs,
    then on further arcs), and the sum of the squares.
    """
    layout, plain, ends = network.layout, len(network.arcs.tails), network.ends
    others = np.flatnonzero(face.free[ends[0] : plain]) + ends[0]
    # From the cells to their brokers' nodes of arriving replicas, from there to the brokers, and on to the sink.
    used = np.flatnonzero(cells.high > 0)
    arc_ends = (layout.first_cell + used, layout.sink + 1 + used % len(layout.targets))
    steps, stepped = _steps(layout, cells, len(network.supplies))
    brokers = np.arange(layout.first_broker, layout.sink)
    arcs = min_cost_flow.join(
        _arcs(face, keeps, layout.first_broker + network.keep[1][keeps]),
        _arcs(face, others, face.heads[others]),
        min_cost_flow.arcs(*arc_ends, cells.high[used], 0, cells.low[used]),
        steps,
        min_cost_flow.arcs(brokers, np.full_like(brokers, layout.sink), cells.broker_high, 0, cells.broker_low),
    )
    units = np.concatenate([face.units[keeps], face.units[others], cells.arrivals[used], stepped, cells.totals])
    solved = min_cost_flow.cheapest(arcs, units)
    return others, solved, int((solved * arcs.costs).sum())


@dataclass(frozen=True, eq=False)
class _Cells:
    """The replicas of (topic, broker) and of brokers: T·Bt cells, flat, and Bt brokers.

    of_keep (K,) cell of each keep arc · slack (T·Bt,) True if the window limits nothing
    low, high, arrivals (T·Bt,) least, most, current ones · broker_low, broker_high, totals (Bt,) the same of all units
    """

    of_keep: IntArray
    slack: BoolArray
    low: LongArray
    high: LongArray
    arrivals: LongArray
    broker_low: LongArray
    broker_high: LongArray
    totals: LongArray

    @property
    def steps(self) -> int:
        """The replicas by which arrivals may vary: with as many arcs of rising cost, costs are exact squares."""
        return int((self.high - self.low).sum())

    @staticmethod
    def of(network: Network, face: Face, *, bypass: bool = False) -> _Cells:
        """The cells within a face's limits; `bypass`: limits for any staying replicas, not only the current ones."""
        layout = network.layout
        count, brokers = layout.topic_count * len(layout.targets), len(layout.targets)
        of_keep = layout.topics[network.keep[0]].astype(np.int64) * brokers + network.keep[1]
        of_own = layout.topics[network.own[0]].astype(np.int64) * brokers + network.own[1]
        ends = network.ends

        def arriving(column: LongArray) -> LongArray:
            return sums_at(count, of_own, column[ends[1] : ends[2]]) + column[ends[2] : ends[3]]

        def staying(column: LongArray) -> LongArray:
            return sums_at(count, of_keep, column[: ends[0]])

        through_low, through_high, broker_low, broker_high = _through(face, len(network.arcs.tails), count, brokers)
        slack = through_low <= arriving(face.low) + staying(face.low)
        slack &= through_high >= arriving(face.high) + staying(face.high)
        stays, arrivals = staying(face.units), arriving(face.units)
        least, most = (staying(face.low), staying(face.high)) if bypass else (stays, stays)
        return _Cells(
            of_keep=of_keep,
            slack=slack,
            low=np.maximum(arriving(face.low), np.where(slack, 0, through_low - most)),
            high=np.minimum(arriving(face.high), np.where(slack, arrivals + arriving(face.high), through_high - least)),
            arrivals=arrivals,
            broker_low=broker_low,
            broker_high=broker_high,
            totals=(stays + arrivals).reshape(-1, brokers).sum(axis=0),
        )


def _through(face: Face, plain: int, cells: int, brokers: int) -> tuple[LongArray, ...]:
    """The least and most units through each cell and through each broker: inside the windows, and beyond them."""
    steps = len(EXCESS_STEPS)
    low, high = face.low[plain:], face.high[plain:]
    inside = cells + brokers
    limits = []
    for first, count, beyond in ((0, cells, inside), (cells, brokers, inside + 2 * steps * cells)):
        least, most = low[first : first + count].copy(), high[first : first + count].copy()
        if len(low) > inside:
            ends = slice(beyond, beyond + 2 * steps * count)
            up_low, down_low = low[ends].reshape(2, steps, count).sum(axis=1)
            up_high, down_high = high[ends].reshape(2, steps, count).sum(axis=1)
            least, most = least + up_low - down_high, most + up_high - down_low
        limits += [least, most]
    return tuple(limits)


def _arcs(face: Face, indices: IntArray, heads: IntArray) -> min_cost_flow.Arcs:
    return min_cost_flow.arcs(face.tails[indices], heads, face.high[indices], 0, face.low[indices])


def _steps(layout: Layout, cells: _Cells, first: int) -> tuple[min_cost_flow.Arcs, LongArray]:
    """Arcs of rising cost from a broker's node of arriving replicas to the broker, and the units that they carry."""
    least, most, arrivals = (
        each.reshape(-1, len(layout.targets)).sum(axis=0) for each in (cells.low, cells.high, cells.arrivals)
    )
    width = np.maximum(1, -(-(most - least) // ARRIVAL_STEPS))
    counts = 1 + -(-(most - least) // width)
    brokers = np.repeat(np.arange(len(least)), counts)
    number = np.arange(len(brokers)) - np.repeat(np.cumsum(counts) - counts, counts) - 1
    # The first arc of each broker is for the replicas that arrive in any case.
    begin = np.where(number < 0, 0, least[brokers] + number * width[brokers])
    end = np.where(number < 0, least[brokers], np.minimum(begin + width[brokers], most[brokers]))
    carried = (arrivals[brokers] - begin).clip(0, end - begin)
    arcs = min_cost_flow.arcs(
        (first + brokers).astype(np.int32), (layout.first_broker + brokers).astype(np.int32), end - begin, begin + end
    )
    return arcs, carried
