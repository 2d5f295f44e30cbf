"""Min-cost flow with windows on arcs, by OR-tools' solver; and the optimal face: the set of all optimal flows.

A window [low, high] on an arc becomes a plain capacity: `low` units are sent in any case, the arc keeps a capacity of
high - low, and the supplies of its two nodes are corrected. If the windows can't all hold, arcs with a price are added
beyond each window. Their price rises with the distance, so the solver finds the least excess and spreads it widely.

The optimal face follows from complementary slackness with the node prices that prove one flow optimal. An arc with a
nonzero reduced cost carries the same units in every optimal flow. The other arcs can change only if they are on a cycle
of such arcs with room left. Each further objective is a smaller min-cost flow over these arcs, with its own costs. So
no costs are scaled to make one objective outweigh another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count, zip_longest

import numpy as np
import scipy  # its parts are imported where they are first used: most commands use none
from ortools.graph.python import max_flow, min_cost_flow

from planner.model.problem import UNCAPPED, BoolArray, IntArray, LongArray, sums_at
from planner.scoring.window_excess import EXCESS_STEPS

_Numbers = IntArray | LongArray


@dataclass(frozen=True)
class Arcs:
    """Parallel arrays (K,): tail and head nodes, capacity, cost per unit, and the units that the arc must carry."""

    tails: IntArray
    heads: IntArray
    capacities: LongArray
    costs: LongArray
    lows: LongArray


@dataclass(frozen=True)
class Windowed:
    """Arcs that must carry between low and high units, at no cost, and the price of a unit of excess.

    `over` and `under` (K,) are the units by which every flow misses a window that ends below 0 or begins above all
    units that exist; the first further units of excess then cost more. `most` (K,) is the most that an arc may carry,
    beyond its window too; UNCAPPED: no limit.
    """

    tails: IntArray
    heads: IntArray
    low: LongArray
    high: LongArray
    over: LongArray
    under: LongArray
    price: int
    most: LongArray

    @property
    def bounds(self) -> LongArray:
        """(2, K): low and high."""
        return np.stack([self.low, self.high])


@dataclass(frozen=True)
class Flow:
    """A solved flow: units on each plain arc (K,), the cost of the plain arcs, and the priced excess of all windows.

    `through` has the units through each window, including those beyond it. Costs were rounded down by `shift` bits to
    fit the solver. The solver minimized the plain arcs' costs times `cost_factor` plus the excess times `excess_factor`
    (None: hard windows). `beyond` (2, steps, K) has the units beyond each window.
    """

    units: LongArray
    cost: int
    excess: int
    through: tuple[LongArray, ...]
    shift: int = 0
    cost_factor: int = 1
    excess_factor: int | None = None
    beyond: tuple[LongArray, ...] = ()


def join(*parts: Arcs) -> Arcs:
    """The arcs of all parts, concatenated."""
    return Arcs(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Arcs)))


def arcs(
    tails: IntArray, heads: IntArray, capacity: _Numbers | int, cost: _Numbers | int, low: _Numbers | int = 0
) -> Arcs:
    """Arcs whose capacities, costs and least units are arrays (K,), or one number for all arcs."""
    # There may be millions of arcs, and 32 bits are enough for most capacities.
    kind = "int32" if np.max(capacity, initial=0) <= np.iinfo(np.int32).max else "int64"
    given = ((capacity, kind), (cost, "int64"), (low, kind))
    capacities, costs, lows = (np.full(tails.shape, each, dtype) for each, dtype in given)
    return Arcs(tails.astype(np.int32, copy=False), heads.astype(np.int32, copy=False), capacities, costs, lows)


def window(
    tails: IntArray, heads: IntArray, bounds: LongArray, most: int, price: int, caps: LongArray | None = None
) -> Windowed:
    """Windowed arcs with bounds (2, K), cut to the possible range from 0 to `most`.

    `caps` (K,): the most that each arc may carry; windows end there.
    """
    low, high = bounds.clip(0, most)
    over, under = (-bounds[1]).clip(0), (bounds[0] - most).clip(0)
    caps = np.full_like(high, UNCAPPED) if caps is None else caps.clip(0, UNCAPPED)
    high = np.minimum(high, caps)
    return Windowed(tails, heads, np.minimum(low, high), high, over, under, price, caps)


class CostRangeError(ArithmeticError):
    """Costs, times the number of nodes, are too large for the solver's 64-bit arithmetic."""


def largest_cost(nodes: int) -> int:
    """The largest safe cost: the solver multiplies costs by the number of nodes, and adds them up along paths."""
    return (1 << 60) // (nodes + 1)


def solve(
    plain: Arcs, windowed: tuple[Windowed, ...], supplies: LongArray, excess_factor: int | None = None
) -> Flow | None:
    """The cheapest flow; None if there is no flow.

    supplies (nodes,): positive sends, negative receives. If `excess_factor` is None, the windows are hard; otherwise a
    unit of excess costs its window's price times this factor. CostRangeError if the costs are too large.
    """
    excess_arcs = [] if excess_factor is None else [_excess_arcs(w, excess_factor) for w in windowed]
    window_arcs = _window_arcs(windowed)
    parts = [plain, *window_arcs, *excess_arcs]
    if max(int(part.costs.max(initial=0)) for part in parts) > largest_cost(len(supplies)):
        raise CostRangeError
    part_units = _solve_parts(parts, supplies)
    if part_units is None:
        return None
    units, inside_units = part_units[0], part_units[1 : 1 + len(window_arcs)]
    excess_units = [each.reshape(2, len(EXCESS_STEPS), -1) for each in part_units[1 + len(window_arcs) :]]
    weights = np.array([step for _, step in EXCESS_STEPS])
    weighed = (int((each.sum(axis=(0, 2)) * weights).sum()) for each in excess_units)
    excess = sum(weight * w.price for w, weight in zip(windowed, weighed, strict=False))
    through = tuple(each + _net(units_beyond) for each, units_beyond in zip_longest(inside_units, excess_units))
    cost = int((units * plain.costs).sum())
    return Flow(units, cost, excess, through, excess_factor=excess_factor, beyond=tuple(excess_units))


def _window_arcs(windowed: Sequence[Windowed]) -> list[Arcs]:
    return [arcs(w.tails, w.heads, w.high, 0, w.low) for w in windowed]


def _solve_parts(parts: Sequence[Arcs], supplies: LongArray) -> list[LongArray] | None:
    """The units (K,) on the arcs of each part in the cheapest flow with these supplies; None if there is no flow."""
    solver = min_cost_flow.SimpleMinCostFlow()
    net = supplies.astype(np.int64)
    for part in parts:
        room = np.subtract(part.capacities, part.lows, dtype=np.int64)
        solver.add_arcs_with_capacity_and_unit_cost(part.tails, part.heads, room, part.costs)
        np.subtract.at(net, part.tails, part.lows)
        np.add.at(net, part.heads, part.lows)
    solver.set_nodes_supplies(np.arange(len(net), dtype=np.int32), net)
    status = solver.solve()
    if status == solver.INFEASIBLE:
        return None
    if status != solver.OPTIMAL:
        raise AssertionError(f"the solver refused the network: {status}")
    # The solver numbers arcs in the order in which they were added.
    ends = np.cumsum([len(part.tails) for part in parts])
    units = np.split(solver.flows(np.arange(ends[-1], dtype=np.int32)), ends[:-1])
    return [each + part.lows for each, part in zip(units, parts, strict=True)]


def _network(plain: Arcs, windowed: tuple[Windowed, ...], solved: Flow) -> tuple[Arcs, LongArray]:
    """All arcs of a solved network and the units on them (K,): plain arcs, windows, then the arcs beyond windows.

    The arcs have the costs that were minimized.
    """
    plain = replace(plain, costs=(plain.costs >> solved.shift) * solved.cost_factor)
    window_arcs = _window_arcs(windowed)
    if solved.excess_factor is None:
        return join(plain, *window_arcs), np.concatenate([solved.units, *solved.through])
    excess_arcs = [_excess_arcs(w, solved.excess_factor) for w in windowed]
    inside_units = [carried - _net(beyond) for carried, beyond in zip(solved.through, solved.beyond, strict=True)]
    excess_units = [each.ravel() for each in solved.beyond]
    return join(plain, *window_arcs, *excess_arcs), np.concatenate([solved.units, *inside_units, *excess_units])


def potentials(plain: Arcs, windowed: tuple[Windowed, ...], supplies: LongArray, solved: Flow) -> LongArray:
    """The nodes' prices (nodes,) that prove a solved flow optimal: no arc with room left has a negative reduced cost.

    They belong to the costs that were minimized, which include the price of excess.
    """
    # The network is the largest object here, so no variable holds it.
    return _shortest(_residual(*_network(plain, windowed, solved)), len(supplies)) << np.int64(solved.shift)


def _residual(network: Arcs, units: LongArray) -> list[IntArray | LongArray]:
    """The residual arcs, on which a flow (K,) can still change: tails, heads, costs."""
    can_rise, can_fall = units < network.capacities, units > network.lows
    return [
        np.concatenate([network.tails[can_rise], network.heads[can_fall]]),
        np.concatenate([network.heads[can_rise], network.tails[can_fall]]),
        np.concatenate([network.costs[can_rise], -network.costs[can_fall]]),
    ]


def _shortest(residual: list[IntArray | LongArray], nodes: int) -> LongArray:
    """The shortest distances (nodes,) by Bellman-Ford over arcs; their tails, heads and costs are sorted here."""
    by_head = np.argsort(residual[1], kind="stable")
    for index, each in enumerate(residual):
        residual[index] = each[by_head]
    tails, heads, costs = residual
    first = np.flatnonzero(np.diff(heads, prepend=-1))
    ends = heads[first]
    distances = np.zeros(nodes, dtype=np.int64)
    for _ in range(nodes):
        lengths = distances[tails]
        lengths += costs
        nearer = np.minimum.reduceat(lengths, first) if len(first) else np.zeros(0, dtype=np.int64)
        if not (better := nearer < distances[ends]).any():
            break
        distances[ends[better]] = nearer[better]
    return distances


def solve_excess_first(plain: Arcs, windowed: tuple[Windowed, ...], supplies: LongArray) -> Flow | None:
    """The cheapest flow among those with the least excess over the windows; None if there is no flow.

    The windows are tried as hard limits first. If they can't all hold, the least excess E is found with the plain arcs
    at cost 0. Then the cost is minimized at rising prices of excess: the first flow whose excess is E is the cheapest
    flow with excess E. If the prices are too large for the solver, costs are rounded down until they fit. The cost in
    the result is then still a lower bound for all flows with excess E.
    """
    hard = solve(plain, windowed, supplies)
    if hard is not None:
        return hard
    costless = replace(plain, costs=np.zeros_like(plain.costs))
    least = solve(costless, windowed, supplies, excess_factor=1)
    if least is None:
        return None

    def solve_at(coarse: Arcs) -> Flow | None:
        return _raised_until(
            lambda factor: solve(coarse, windowed, supplies, excess_factor=factor),
            lambda flow: flow.excess <= least.excess,
            4 * max(1, int(coarse.costs.max(initial=1))),
        )

    return _at_finest(plain, solve_at)


def solve_cost_first(plain: Arcs, windowed: tuple[Windowed, ...], supplies: LongArray) -> Flow | None:
    """The flow with the least excess among the cheapest flows; None if there is no flow.

    The least cost C is found with the windows open. Then excess is minimized at rising costs of the plain arcs until
    the flow costs C. Costs that are too large for the solver are rounded down in this step; the result's cost is C.
    """
    open_windows = tuple(opened(window) for window in windowed)
    least_cost = solve(plain, open_windows, supplies)
    if least_cost is None:
        return None

    def solve_at(coarse: Arcs) -> Flow | None:
        if (least := solve(coarse, open_windows, supplies)) is None:
            return None

        def raised(factor: int) -> Flow | None:
            if int(coarse.costs.max(initial=0)) * factor > largest_cost(len(supplies)):
                raise CostRangeError
            flow = solve(replace(coarse, costs=coarse.costs * factor), windowed, supplies, excess_factor=1)
            return None if flow is None else replace(flow, cost=flow.cost // factor, cost_factor=factor)

        return _raised_until(raised, lambda flow: flow.cost <= least.cost, 1000)

    flow = _at_finest(plain, solve_at)
    return None if flow is None else replace(flow, cost=least_cost.cost)


def _at_finest(plain: Arcs, solve_at: Callable[[Arcs], Flow | None]) -> Flow | None:
    """The flow at the finest costs that fit the solver's arithmetic; its cost is in the units of the plain arcs."""
    for shift in count(0, 4):
        try:
            flow = solve_at(replace(plain, costs=plain.costs >> shift))
        except CostRangeError:
            continue
        return None if flow is None else replace(flow, cost=flow.cost << shift, shift=shift)
    raise AssertionError("costs of nothing always fit")


def _raised_until(solve_at: Callable[[int], Flow | None], suits: Callable[[Flow], bool], factor: int) -> Flow | None:
    while True:
        flow = solve_at(factor)
        if flow is None or suits(flow):
            return flow
        factor *= 16


def _net(excess_units: LongArray | None) -> LongArray | int:
    """Units (K,) beyond a window, negative below it, from (2, steps, K)."""
    return 0 if excess_units is None else excess_units[0].sum(axis=0) - excess_units[1].sum(axis=0)


def opened(window: Windowed) -> Windowed:
    """The window without bounds; only `most` still limits it."""
    return replace(window, low=np.zeros_like(window.low), high=window.most)


def _excess_arcs(window: Windowed, factor: int) -> Arcs:
    """Arcs for units beyond the window: in steps above `high`, and backwards in steps from `low` down to 0."""
    room = np.where(window.most < UNCAPPED, window.most - window.high, UNCAPPED)
    above = _steps(window.tails, window.heads, window.over, room, window.price * factor)
    below = _steps(window.heads, window.tails, window.under, window.low, window.price * factor)
    return join(above, below)


def _steps(tails: IntArray, heads: IntArray, used: LongArray, left: LongArray, price: int) -> Arcs:
    """K arcs per step, for `left` (K,) units beyond the `used` (K,) ones, which have used up the cheaper steps."""
    units, weights = np.array(EXCESS_STEPS, dtype=np.int64).T[:, :, None]
    room = units - (used - (units.cumsum(axis=0) - units)).clip(0, units)
    capacities = (left - (room.cumsum(axis=0) - room)).clip(0, room)
    tails, heads = (np.tile(each, len(EXCESS_STEPS)) for each in (tails, heads))
    return arcs(tails, heads, capacities.ravel(), np.repeat(weights * price, len(capacities[0])))


@dataclass(frozen=True, eq=False)
class Face:
    """The flows on arcs from tails to heads that carry between low and high units; all arrays are (K,).

    `units` is one of these flows. All of them are optimal for every objective that was applied so far.
    """

    tails: IntArray
    heads: IntArray
    low: LongArray
    high: LongArray
    units: LongArray

    @property
    def free(self) -> BoolArray:
        """(K,): True for the arcs on which the flows of the face differ."""
        return self.low < self.high

    def cheapest(self, costs: LongArray) -> Face:
        """The face of the flows with the least total of these costs (K,) per unit; no cost is negative."""
        indices = np.flatnonzero(self.free)
        if not costs[indices].any():
            return self
        nodes, numbers = np.unique(np.concatenate([self.tails[indices], self.heads[indices]]), return_inverse=True)
        tails, heads = numbers.reshape(2, -1).astype(np.int32)
        network = Arcs(tails, heads, self.high[indices], costs[indices], self.low[indices])
        best = _optimal_face(network, cheapest(network, self.units[indices]), len(nodes))
        low, high, all_units = self.low.copy(), self.high.copy(), self.units.copy()
        low[indices], high[indices], all_units[indices] = best.low, best.high, best.units
        return replace(self, low=low, high=high, units=all_units)

    def fixed(self, mask: BoolArray) -> Face:
        """The face of the flows that carry `units` on the arcs of the mask (K,)."""
        return replace(self, low=np.where(mask, self.units, self.low), high=np.where(mask, self.units, self.high))


def face_of(plain: Arcs, windowed: tuple[Windowed, ...], solved: Flow, nodes: int) -> Face:
    """The optimal face of a solved network: its plain arcs first, then those of each window."""
    return _optimal_face(*_network(plain, windowed, solved), nodes)


def _optimal_face(arcs: Arcs, units: LongArray, nodes: int) -> Face:
    """The optimal face of a network, from one optimal flow of units (K,)."""
    # The node prices that prove the flow optimal: shortest distances in the residual network, which has no negative
    # cycle, from a source that has an arc of cost 0 to every node.
    prices = _shortest(_residual(arcs, units), nodes)
    tight = arcs.costs + prices[arcs.tails] == prices[arcs.heads]
    can_rise, can_fall = tight & (units < arcs.capacities), tight & (units > arcs.lows)
    tails = np.concatenate([arcs.tails[can_rise], arcs.heads[can_fall]])
    heads = np.concatenate([arcs.heads[can_rise], arcs.tails[can_fall]])
    graph = scipy.sparse.coo_matrix((np.ones(len(tails), dtype=np.int8), (tails, heads)), shape=(nodes, nodes))
    components = scipy.sparse.csgraph.connected_components(graph.tocsr(), directed=True, connection="strong")[1]
    free = (can_rise | can_fall) & (components[arcs.tails] == components[arcs.heads])
    return Face(arcs.tails, arcs.heads, np.where(free, arcs.lows, units), np.where(free, arcs.capacities, units), units)


def largest_flow(supplies: LongArray, pairs: tuple[IntArray, IntArray, LongArray], demands: LongArray) -> LongArray:
    """Units (K,) of the largest flow from givers (N,) to takers (M,) over pairs: giver, taker and capacity of each."""
    solver, source, sink = max_flow.SimpleMaxFlow(), len(supplies) + len(demands), len(supplies) + len(demands) + 1
    givers, takers = np.split(np.arange(source, dtype=np.int32), [len(supplies)])
    solver.add_arcs_with_capacity(np.full_like(givers, source), givers, supplies)
    pair_arcs = solver.add_arcs_with_capacity(pairs[0].astype(np.int32), takers[pairs[1]], pairs[2])
    solver.add_arcs_with_capacity(takers, np.full_like(takers, sink), demands.clip(min=0))
    solver.solve(source, sink)
    return solver.flows(pair_arcs)


def cheapest(arcs: Arcs, units: LongArray) -> LongArray:
    """The units (K,) of the cheapest flow with the same supplies as a known flow (K,)."""
    nodes, numbers = np.unique(np.concatenate([arcs.tails, arcs.heads]), return_inverse=True)
    tails, heads = numbers.reshape(2, -1).astype(np.int32)
    supplies = sums_at(len(nodes), tails, units) - sums_at(len(nodes), heads, units)
    part_units = _solve_parts([replace(arcs, tails=tails, heads=heads)], supplies)
    assert part_units is not None, "the flow with these units exists"
    return part_units[0]
