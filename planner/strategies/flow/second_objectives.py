"""The choice among the cheapest placements: fewest leaders changed, then fewest partitions touched, then even arrivals.

Each objective is a flow of its own over the arcs that all objectives before it leave free (see `min_cost_flow.Face`):

1. Partitions whose leader loses its replica; the preferred leader counts where nobody leads. One unit a partition, on
   the arc by which that broker keeps its replica: exact. Where `rebalance` is `none` or `racks` this comes before the
   windows of replicas: nobody loses a leader so that counts come out more even.
2. Partitions that gain or lose a replica. That is a charge on a partition, however many of its replicas leave, which no
   flow has. A partition that could lose k of its replicas is charged 1/k for each of them, which is never more than the
   charge: where the flow's total, rounded up, is met, nothing is better. Else the charge is divided by what the last
   flow took from each partition, and solved again, a few times; the best of these is kept. Whether nothing is better
   is then for `tie_breaks` to find out.
3. The sum of the squares of the replicas that arrive at each broker. What arrives goes through a node of its own and on
   by arcs that cost 1, 3, 5 and so on, whose sum is the square. A topic's window on a broker limits what stays there
   and what arrives together. Where that window limits nothing that the objectives above left open, both go past it,
   and the result is exact. Elsewhere what stays is kept as it is, and what arrives has the rest of the window.

An aim that the user names before `leaders_changed` comes first: bytes across racks where racks are enforced, as a cost
on the arc by which a partition enters a rack. The others can't be added up and are chosen by among the candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import lcm

import numpy as np

from planner.model.build_problem import taken_over
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.scoring.window_excess import EXCESS_STEPS
from planner.scoring.windows import Windows
from planner.strategies.flow import min_cost_flow
from planner.strategies.flow.layout import Layout, Network
from planner.strategies.flow.min_cost_flow import Face, face_of
from planner.strategies.flow.placement import Placed, deal, place
from planner.strategies.work_limits import ARRIVAL_STEPS, TOUCHED_SHARES, TOUCHED_SLOPES

_SHARED = lcm(*range(1, TOUCHED_SHARES + 1))
# Whole bytes as costs are cut to so many bits.
_COST_BITS = 30


def leaders_today(problem: Problem) -> IntArray:
    """(P,): the leader of each partition, the preferred one where there is none; or the broker that replaces it."""
    leaders = np.where(problem.leaders >= 0, problem.leaders, problem.replicas[:, 0])
    return taken_over(problem, leaders[:, None])[:, 0]


@dataclass(frozen=True, eq=False)
class OpenTies:
    """What the flows found, units (K,) on the plain arcs, among all flows of a face that change as few leaders.

    rows (K0,), open_rows (M,) row of each keep arc, and the rows that could stay as they are
    entering (K,), brokers (K,) True where a replica arrives at a broker, and that broker
    least, even                no flow touches fewer of those rows; True where none that touches the same is more even
    """

    face: Face
    units: LongArray
    rows: IntArray
    open_rows: BoolArray
    entering: BoolArray
    brokers: IntArray
    least: int
    even: bool

    def touched(self, units: LongArray) -> int:
        """How many of the rows that could stay lose a replica."""
        return len(np.unique(self.rows[(units[: len(self.rows)] == 0) & self.open_rows[self.rows]]))

    def arrivals(self, units: LongArray) -> LongArray:
        """(Bt,): the replicas that arrive at each broker."""
        return _summed(self.brokers[self.entering], units[self.entering], int(self.brokers.max(initial=0)) + 1)


# The units of a flow at least as good, and whether it is known that none is better.
Finish = Callable[[OpenTies], tuple[LongArray, bool]]


def settled(problem: Problem, layout: Layout, wanted: Windows, placed: Placed, finish: Finish | None = None) -> Placed:
    """The best placement by the objectives of all with the same cost."""
    while True:
        units, proven = _Face.of(problem, layout, placed).best(finish)
        if (units == placed.solved.units).all():
            return replace(placed, ties_proven=proven)
        decided, entered, arriving = placed.network.read(layout, units)
        chosen, undealt = deal(layout, decided, entered, arriving, problem.width)
        if not undealt.any():
            cells = arriving.astype(np.int64)
            np.add.at(cells, (layout.topics[decided[0]], decided[1]), 1)
            through = (cells.ravel(), cells.sum(axis=0))
            solved = replace(placed.solved, units=units, through=through)
            return replace(placed, chosen=chosen, solved=solved, ties_proven=proven)
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
        if problem.forced_only:
            # Windows come after leaders: see `_within_windows`.
            windowed = tuple(min_cost_flow.opened(each) for each in windowed)
            found = min_cost_flow.solve(network.arcs, windowed, network.supplies)
            if found is None:
                raise AssertionError("the flow that was found is within open windows")
            solved = found
        return _Face(problem, layout, placed, face_of(network.arcs, windowed, solved, nodes))

    def best(self, finish: Finish | None) -> tuple[LongArray, bool]:
        """Units (K,) on the plain arcs of the best flow by all objectives in their order; True where none is better."""
        now = self._exact_bytes()
        aims = list(self.problem.aims)
        before = aims[: aims.index("leaders_changed")] if "leaders_changed" in aims else aims
        if "cross_rack_bytes" in before:
            now = now._cheapest(now._crossing())
        now = now._cheapest(now._leaders_dropped())
        if self.problem.forced_only:
            now = now._within_windows()
        charges, layout, network = _Charges.of(now), self.layout, self.placed.network
        face, least = _fewest_touched(now, charges)
        units, even = _even_arrivals(layout, network, face)
        if finish is None:
            return units, False
        taken = layout.replaced[np.nonzero(layout.home >= 0)]
        entering = np.zeros(len(units), dtype=bool)
        entering[: len(taken)], entering[network.ends[0] : network.ends[3]] = taken, True
        entering[network.ends[0] : network.ends[1]] = False  # these go on by the arcs from pools
        brokers = np.zeros(len(units), dtype=np.int32)
        brokers[: len(taken)] = network.keep[1]
        brokers[network.ends[1] : network.ends[3]] = np.concatenate([network.own[1], network.arrive[1]])
        open_rows = charges.open_rows
        return finish(OpenTies(now.face, units, charges.rows, open_rows, entering, brokers, least, even))

    def _within_windows(self) -> _Face:
        """The least excess over the windows that were open so far."""
        network, windowed = self.placed.network, self.placed.windowed
        low, high = (each[: len(network.arcs.tails)] for each in (self.face.low, self.face.high))
        plain = replace(network.arcs, lows=low, capacities=high, costs=np.zeros_like(low))
        solved = min_cost_flow.solve(plain, windowed, network.supplies, excess_factor=1)
        if solved is None:
            raise AssertionError("a flow that exists is within windows that may be exceeded")
        return replace(self, face=face_of(plain, windowed, solved, len(network.supplies)))

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
        stays: BoolArray = ~layout.replaced[np.nonzero(layout.home >= 0)]
        return finer._cheapest(self._unless_kept(layout.copy_bytes % layout.cost_unit_bytes, stays))

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
        worth, racks, ends = layout.copy_bytes >> coarse, problem.broker_racks[source], network.ends
        rows, groups = network.enter
        costs[ends[0] : ends[1]] = worth[rows] * (of_group[groups] != racks[rows])
        rows, brokers = network.own
        costs[ends[1] : ends[2]] = worth[rows] * (problem.broker_racks[layout.targets[brokers]] != racks[rows])
        return costs

    def _leaders_dropped(self) -> LongArray:
        """1 on every way but that by which the leader's broker keeps its replica; a row takes as many in any case."""
        layout = self.layout
        leaders = layout.here[leaders_today(self.problem)[layout.rows]]
        rows, brokers = self.placed.network.keep
        return self._unless_kept(np.ones(len(layout.rows), dtype=np.int64), leaders[rows] == brokers)

    def _unless_kept(self, charges: LongArray, kept: BoolArray) -> LongArray:
        """(K,): each row's charge (M,) for every replica but those on the keep arcs of the mask."""
        network = self.placed.network
        costs = np.zeros(len(network.arcs.tails), dtype=np.int64)
        ends = network.ends
        costs[: ends[0]] = charges[network.keep[0]] * ~kept
        costs[ends[0] : ends[1]] = charges[network.enter[0]]
        costs[ends[1] : ends[2]] = charges[network.own[0]]
        return costs


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
        held = (now.problem.replicas[now.layout.rows] >= 0).sum(axis=1)
        stays = ((now.layout.home >= 0) & ~now.layout.replaced).sum(axis=1)
        open_rows = (held == now.layout.factors) & (stays == held) & (leaving > 0) & ~gone
        return _Charges(rows, open_rows, leaving.clip(1, TOUCHED_SHARES))

    def left(self, face: Face) -> LongArray:
        """(M,): replicas that leave each of the rows."""
        gone = np.bincount(self.rows, weights=1 - face.units[: len(self.rows)], minlength=len(self.open_rows))
        return np.where(self.open_rows, gone, 0).astype(np.int64)

    def solved(self, now: _Face, shares: LongArray) -> Face:
        """The cheapest flow where a row's charge is divided by `fair_shares` (M,)."""
        charges = np.where(self.open_rows, _SHARED // shares.clip(1, TOUCHED_SHARES), 0)
        return now._cheapest(now._unless_kept(charges, np.ones(len(self.rows), dtype=bool))).face


def _fewest_touched(now: _Face, charges: _Charges) -> tuple[Face, int]:
    """A face with few rows touched of those that could stay as they are, and the fewest that there may be."""
    if not charges.open_rows.any():
        return now.face, 0
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
    return best.fixed(fixed), least


def _even_arrivals(layout: Layout, network: Network, face: Face) -> tuple[LongArray, bool]:
    """Units (K,) of a flow of the face with even arrivals; True where none has a lesser sum of their squares."""
    units = face.units[: len(network.arcs.tails)]
    cells, ends = _Cells.of(layout, network, face), network.ends
    free = face.free[: len(units)]
    if not free[ends[1] : ends[3]].any():
        return units, True
    # Kept replicas go to the broker past windows that limit nothing; the others stay as they are.
    keeps = np.flatnonzero(free[: ends[0]])
    past = cells.slack[cells.of_keep[keeps]]
    keeps = keeps[past]
    others = np.flatnonzero(free[ends[0] :]) + ends[0]
    # From the cells to the nodes of what arrives at their brokers, from there to the brokers, and on to the sink.
    at = np.flatnonzero(cells.high > 0)
    into = (layout.first_cell + at, layout.sink + 1 + at % len(layout.targets))
    steps, stepped = _steps(layout, cells, len(network.supplies))
    brokers = np.arange(layout.first_broker, layout.sink)
    arcs = min_cost_flow.join(
        _arcs(face, keeps, layout.first_broker + network.keep[1][keeps]),
        _arcs(face, others, face.heads[others]),
        min_cost_flow.arcs(*into, cells.high[at], 0, cells.low[at]),
        steps,
        min_cost_flow.arcs(brokers, np.full_like(brokers, layout.sink), cells.broker_high, 0, cells.broker_low),
    )
    known = np.concatenate([units[keeps], units[others], cells.now[at], stepped, cells.held])
    solved = min_cost_flow.cheapest(arcs, known)
    best = units.copy()
    best[keeps] = solved[: len(keeps)]
    best[others] = solved[len(keeps) : len(keeps) + len(others)]
    return best, bool(past.all() and (cells.high - cells.low).sum() <= ARRIVAL_STEPS)


@dataclass(frozen=True, eq=False)
class _Cells:
    """What (topic, broker) and brokers hold: T·Bt cells, flat, and Bt brokers.

    of_keep (K,) cell of each keep arc · slack (T·Bt,) True where the window limits nothing
    low, high, now (T·Bt,) what may arrive and what does · broker_low, broker_high, held (Bt,) in all
    """

    of_keep: IntArray
    slack: BoolArray
    low: LongArray
    high: LongArray
    now: LongArray
    broker_low: LongArray
    broker_high: LongArray
    held: LongArray

    @staticmethod
    def of(layout: Layout, network: Network, face: Face) -> _Cells:
        """The cells of a face, which limits what its flows may carry."""
        count, brokers = layout.topic_count * len(layout.targets), len(layout.targets)
        of_keep = layout.topics[network.keep[0]].astype(np.int64) * brokers + network.keep[1]
        of_own = layout.topics[network.own[0]].astype(np.int64) * brokers + network.own[1]
        ends = network.ends

        def arriving(column: LongArray) -> LongArray:
            total = _summed(of_own, column[ends[1] : ends[2]], count)
            return total + column[ends[2] : ends[3]]

        def staying(column: LongArray) -> LongArray:
            return _summed(of_keep, column[: ends[0]], count)

        through_low, through_high, broker_low, broker_high = _through(face, len(network.arcs.tails), count, brokers)
        slack = through_low <= arriving(face.low) + staying(face.low)
        slack &= through_high >= arriving(face.high) + staying(face.high)
        stays, now = staying(face.units), arriving(face.units)
        return _Cells(
            of_keep=of_keep,
            slack=slack,
            low=np.maximum(arriving(face.low), np.where(slack, 0, through_low - stays)),
            high=np.minimum(arriving(face.high), np.where(slack, now + arriving(face.high), through_high - stays)),
            now=now,
            broker_low=broker_low,
            broker_high=broker_high,
            held=(stays + now).reshape(-1, brokers).sum(axis=0),
        )


def _through(face: Face, plain: int, cells: int, brokers: int) -> tuple[LongArray, ...]:
    """What may go through each cell and through each broker: inside the windows, and beyond them."""
    steps = len(EXCESS_STEPS)
    low, high = face.low[plain:], face.high[plain:]
    inside = cells + brokers
    found = []
    for first, count, beyond in ((0, cells, inside), (cells, brokers, inside + 2 * steps * cells)):
        least, most = low[first : first + count].copy(), high[first : first + count].copy()
        if len(low) > inside:
            ends = slice(beyond, beyond + 2 * steps * count)
            up_low, down_low = low[ends].reshape(2, steps, count).sum(axis=1)
            up_high, down_high = high[ends].reshape(2, steps, count).sum(axis=1)
            least, most = least + up_low - down_high, most + up_high - down_low
        found += [least, most]
    return tuple(found)


def _arcs(face: Face, at: IntArray, heads: IntArray) -> min_cost_flow.Arcs:
    return min_cost_flow.arcs(face.tails[at], heads, face.high[at], 0, face.low[at])


def _steps(layout: Layout, cells: _Cells, first: int) -> tuple[min_cost_flow.Arcs, LongArray]:
    """Arcs of rising cost from what arrives at a broker to the broker, and what they carry."""
    least, most, now = (
        each.reshape(-1, len(layout.targets)).sum(axis=0) for each in (cells.low, cells.high, cells.now)
    )
    width = np.maximum(1, -(-(most - least) // ARRIVAL_STEPS))
    counts = 1 + -(-(most - least) // width)
    brokers = np.repeat(np.arange(len(least)), counts)
    number = np.arange(len(brokers)) - np.repeat(np.cumsum(counts) - counts, counts) - 1
    # The first arc of each is for what arrives in any case.
    begin = np.where(number < 0, 0, least[brokers] + number * width[brokers])
    end = np.where(number < 0, least[brokers], np.minimum(begin + width[brokers], most[brokers]))
    carried = (now[brokers] - begin).clip(0, end - begin)
    arcs = min_cost_flow.arcs(
        (first + brokers).astype(np.int32), (layout.first_broker + brokers).astype(np.int32), end - begin, begin + end
    )
    return arcs, carried


def _summed(at: IntArray, values: LongArray, count: int) -> LongArray:
    """(count,): sums of values by where they are."""
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, at, values)
    return sums
