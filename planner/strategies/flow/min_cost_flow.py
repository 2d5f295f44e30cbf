"""Min-cost flow with windows on arcs, on OR-tools' solver.

A window [low, high] on an arc is turned into plain capacities by moving `low` units for certain: the arc keeps
capacity high - low, and the two nodes' supplies are corrected. Where windows can't all hold, priced arcs are added
beyond each window, dearer the further out, so that the least and most widely shared excess is found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import count, zip_longest

import numpy as np
from ortools.graph.python import min_cost_flow

from planner.model.problem import IntArray, LongArray
from planner.scoring.window_excess import EXCESS_STEPS

_Numbers = IntArray | LongArray

# More units than any arc will carry.
_ENDLESS = 1 << 30


@dataclass(frozen=True)
class Arcs:
    """Parallel arrays (K,): tail and head nodes, capacity, cost a unit, and the units that it must carry."""

    tails: IntArray
    heads: IntArray
    capacities: LongArray
    costs: LongArray
    lows: LongArray


@dataclass(frozen=True)
class Windowed:
    """Arcs that must carry between low and high units, at no cost, and the price of a unit of excess.

    `over` and `under` (K,) are by how much a window is missed whatever the arc carries, for being below nothing or
    above all there is: further units are the dearer for it.
    """

    tails: IntArray
    heads: IntArray
    low: LongArray
    high: LongArray
    over: LongArray
    under: LongArray
    price: int


@dataclass(frozen=True)
class Flow:
    """A solved flow: units on each plain arc (K,), the cost of the plain arcs, and the priced excess of all windows.

    `through` has the units that went through each window, those beyond it among them. `shift` is by how many bits
    costs were rounded down to fit the solver. What was minimized are the plain arcs' costs times `cost_factor` and the
    excess times `excess_factor`, None for hard windows; `beyond` (2, steps, K) has the units beyond each window.
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
    """All arcs one after the other."""
    names = [field.name for field in fields(Arcs)]
    return Arcs(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def arcs(
    tails: IntArray, heads: IntArray, capacity: _Numbers | int, cost: _Numbers | int, low: _Numbers | int = 0
) -> Arcs:
    """Arcs with capacities, costs and least units given for each or for all."""
    columns = (np.broadcast_to(column, tails.shape).astype(np.int64) for column in (capacity, cost, low))
    return Arcs(tails.astype(np.int32), heads.astype(np.int32), *columns)


def window(tails: IntArray, heads: IntArray, bounds: LongArray, most: int, price: int) -> Windowed:
    """Windowed arcs with bounds (2, K), cut to what can be: nothing below 0, nothing above `most`."""
    low, high = bounds.clip(0, most)
    return Windowed(tails, heads, np.minimum(low, high), high, (-bounds[1]).clip(0), (bounds[0] - most).clip(0), price)


class CostRangeError(ArithmeticError):
    """Costs, times the number of nodes, are too large for the solver's 64-bit arithmetic."""


def largest_cost(nodes: int) -> int:
    """Costs up to this one are safe: the solver multiplies them by the number of nodes, and adds up paths of them."""
    return (1 << 60) // (nodes + 1)


def solve(
    plain: Arcs, windowed: tuple[Windowed, ...], supplies: LongArray, excess_factor: int | None = None
) -> Flow | None:
    """The cheapest flow, None where there is none.

    supplies (nodes,): positive sends, negative receives. `excess_factor` None keeps the windows hard; else a unit of
    excess costs its window's price times this factor. CostRangeError where the costs are too large.
    """
    beyond = [] if excess_factor is None else [_excess(w, excess_factor) for w in windowed]
    inside = [arcs(w.tails, w.heads, w.high, 0, w.low) for w in windowed]
    parts = [plain, *inside, *beyond]
    if max(int(part.costs.max(initial=0)) for part in parts) > largest_cost(len(supplies)):
        raise CostRangeError
    solver = min_cost_flow.SimpleMinCostFlow()
    at = [_add(solver, part) for part in parts]
    net = _corrected(supplies, (plain, *inside))
    solver.set_nodes_supplies(np.arange(len(net), dtype=np.int32), net)
    status = solver.solve()
    if status == solver.INFEASIBLE:
        return None
    if status != solver.OPTIMAL:
        raise AssertionError(f"the solver refused the network: {status}")
    units = solver.flows(at[0]) + plain.lows
    taken = [solver.flows(places).reshape(2, len(EXCESS_STEPS), -1) for places in at[1 + len(inside) :]]
    excess = sum(_price(w, units_beyond) for w, units_beyond in zip(windowed, taken, strict=False))
    through = [solver.flows(places) + part.lows for places, part in zip(at[1:], inside, strict=False)]
    through = [carried + _beyond(units_beyond) for carried, units_beyond in zip_longest(through, taken)]
    cost = int((units * plain.costs).sum())
    return Flow(units, cost, excess, tuple(through), excess_factor=excess_factor, beyond=tuple(taken))


def whole(plain: Arcs, windowed: tuple[Windowed, ...], solved: Flow) -> tuple[Arcs, LongArray]:
    """All arcs of a network that was solved, and what each carries (K,): plain ones, windows, those beyond windows.

    Their costs are those that were minimized.
    """
    costs = (plain.costs >> solved.shift) * solved.cost_factor
    inside = [arcs(w.tails, w.heads, w.high, 0, w.low) for w in windowed]
    if solved.excess_factor is None:
        return join(replace(plain, costs=costs), *inside), np.concatenate([solved.units, *solved.through])
    outside = [_excess(w, solved.excess_factor) for w in windowed]
    within = [carried - _beyond(taken) for carried, taken in zip(solved.through, solved.beyond, strict=True)]
    taken = [each.ravel() for each in solved.beyond]
    parts = (replace(plain, costs=costs), *inside, *outside)
    return join(*parts), np.concatenate([solved.units, *within, *taken])


def potentials(plain: Arcs, windowed: tuple[Windowed, ...], supplies: LongArray, solved: Flow) -> LongArray:
    """The nodes' prices (nodes,) that prove a flow optimal: no arc with room left is cheaper than they say.

    They are those of the costs that were minimized, the excess's among them.
    """
    network, units = whole(plain, windowed, solved)
    return distances(network, units, len(supplies)) << np.int64(solved.shift)


def distances(network: Arcs, units: LongArray, nodes: int) -> LongArray:
    """The nodes' prices (nodes,) that prove a flow (K,) of these arcs optimal."""
    more, less = units < network.capacities, units > network.lows
    return _distances(
        np.concatenate([network.tails[more], network.heads[less]]),
        np.concatenate([network.heads[more], network.tails[less]]),
        np.concatenate([network.costs[more], -network.costs[less]]),
        nodes,
    )


def _distances(tails: IntArray, heads: IntArray, costs: LongArray, nodes: int) -> LongArray:
    """Shortest distances (nodes,) from a source that reaches every node for nothing; there is no negative cycle."""
    by_head = np.argsort(heads, kind="stable")
    tails, heads, costs = tails[by_head], heads[by_head], costs[by_head]
    first = np.flatnonzero(np.diff(heads, prepend=-1))
    ends = heads[first]
    distances = np.zeros(nodes, dtype=np.int64)
    for _ in range(nodes):
        nearer = np.minimum.reduceat(distances[tails] + costs, first) if len(first) else np.zeros(0, dtype=np.int64)
        better = nearer < distances[ends]
        if not better.any():
            break
        distances[ends[better]] = nearer[better]
    return distances


def solve_excess_first(plain: Arcs, windowed: tuple[Windowed, ...], supplies: LongArray) -> Flow | None:
    """The cheapest flow among those with the least excess over the windows.

    Hard windows first. Where they can't hold, the least excess E is found with the plain arcs free of charge; then the
    cost is minimised with excess at ever higher prices: as soon as that flow's excess is E, it is the cheapest of
    all that have E. Where the prices outgrow the solver, costs are rounded down until they fit: the cost that is
    told is then still one that no flow with excess E is below.
    """
    hard = solve(plain, windowed, supplies)
    if hard is not None:
        return hard
    free = replace(plain, costs=np.zeros_like(plain.costs))
    least = solve(free, windowed, supplies, excess_factor=1)
    if least is None:
        return None

    def at(coarse: Arcs) -> Flow | None:
        return _dearer_until(
            lambda factor: solve(coarse, windowed, supplies, excess_factor=factor),
            lambda flow: flow.excess <= least.excess,
            4 * max(1, int(coarse.costs.max(initial=1))),
        )

    return _at_finest(plain, at)


def solve_cost_first(plain: Arcs, windowed: tuple[Windowed, ...], supplies: LongArray) -> Flow | None:
    """The flow with the least excess among the cheapest ones: the least cost C is found with the windows open, then
    excess is minimised with the plain arcs ever dearer, until the flow costs C. Costs that outgrow the solver are
    rounded down for that; the cost that is told is C itself.
    """
    open_windows = tuple(opened(window) for window in windowed)
    cheapest = solve(plain, open_windows, supplies)
    if cheapest is None:
        return None

    def at(coarse: Arcs) -> Flow | None:
        least = solve(coarse, open_windows, supplies)
        return (
            None
            if least is None
            else _dearer_until(
                lambda factor: _at_its_own_cost(coarse, windowed, supplies, factor),
                lambda flow: flow.cost <= least.cost,
                1000,
            )
        )

    flow = _at_finest(plain, at)
    return None if flow is None else replace(flow, cost=cheapest.cost)


def _at_finest(plain: Arcs, solve_at: Callable[[Arcs], Flow | None]) -> Flow | None:
    """The flow at the finest costs that the solver's arithmetic bears, its cost in the units of the plain arcs."""
    for shift in count(0, 4):
        try:
            flow = solve_at(replace(plain, costs=plain.costs >> shift))
        except CostRangeError:
            continue
        return None if flow is None else replace(flow, cost=flow.cost << shift, shift=shift)
    raise AssertionError("costs of nothing always fit")


def _dearer_until(solve_at: Callable[[int], Flow | None], enough: Callable[[Flow], bool], factor: int) -> Flow | None:
    while True:
        flow = solve_at(factor)
        if flow is None or enough(flow):
            return flow
        factor *= 16


def _at_its_own_cost(coarse: Arcs, windowed: tuple[Windowed, ...], supplies: LongArray, factor: int) -> Flow | None:
    if int(coarse.costs.max(initial=0)) * factor > largest_cost(len(supplies)):
        raise CostRangeError
    flow = solve(replace(coarse, costs=coarse.costs * factor), windowed, supplies, excess_factor=1)
    return None if flow is None else replace(flow, cost=flow.cost // factor, cost_factor=factor)


def _beyond(taken: LongArray | None) -> LongArray | int:
    """Units (K,) beyond a window, those below it negative, from (2, steps, K)."""
    return 0 if taken is None else taken[0].sum(axis=0) - taken[1].sum(axis=0)


def _price(window: Windowed, taken: LongArray) -> int:
    """The weight of units beyond a window, (2, steps, K), without the factor they were solved at."""
    weights = np.array([step for _, step in EXCESS_STEPS]) * window.price
    return int((taken.sum(axis=(0, 2)) * weights).sum())


def opened(window: Windowed) -> Windowed:
    """The window as one that holds whatever goes through it."""
    return replace(window, low=np.zeros_like(window.low), high=np.full_like(window.high, _ENDLESS))


def _add(solver: min_cost_flow.SimpleMinCostFlow, part: Arcs) -> IntArray:
    room = part.capacities - part.lows
    return solver.add_arcs_with_capacity_and_unit_cost(part.tails, part.heads, room, part.costs)


def _corrected(supplies: LongArray, parts: tuple[Arcs, ...]) -> LongArray:
    """Supplies after every arc has carried what it must."""
    net = supplies.astype(np.int64)
    for part in parts:
        np.subtract.at(net, part.tails, part.lows)
        np.add.at(net, part.heads, part.lows)
    return net


def _excess(window: Windowed, factor: int) -> Arcs:
    """Arcs beyond the window, upwards in steps, and back against what is certain, down to nothing."""
    up = _steps(window.tails, window.heads, window.over, np.full_like(window.low, _ENDLESS), window.price * factor)
    down = _steps(window.heads, window.tails, window.under, window.low, window.price * factor)
    return join(*up, *down)


def _steps(tails: IntArray, heads: IntArray, spent: LongArray, left: LongArray, price: int) -> list[Arcs]:
    """One run of arcs a step, for `left` (K,) units beyond the `spent` ones, which have used up the cheaper steps."""
    runs = []
    for units, step in EXCESS_STEPS:
        used = np.minimum(spent, units)
        taken = np.minimum(left, units - used)
        runs.append(arcs(tails, heads, taken, step * price))
        spent, left = spent - used, left - taken
    return runs
