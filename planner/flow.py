"""Min-cost flow with windows on arcs, on OR-tools' solver.

A window [low, high] on an arc is turned into plain capacities by moving `low` units for certain: the arc keeps
capacity high - low, and the two nodes' supplies are corrected. Where windows can't all hold, `elastic` adds priced arcs
beyond each window, dearer the further out, so that the least and most widely shared excess is found.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from ortools.graph.python import min_cost_flow

from planner.model import IntArray, LongArray
from planner.windows import EXCESS_STEPS

_Numbers = IntArray | LongArray


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
    """Arcs that must carry between low and high units, at no cost, and the price of a unit of excess."""

    tails: IntArray
    heads: IntArray
    low: LongArray
    high: LongArray
    price: int


@dataclass(frozen=True)
class Flow:
    """A solved flow: units on each plain arc (K,), the cost of the plain arcs, and the priced excess of all windows."""

    units: LongArray
    cost: int
    excess: int


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
    return Windowed(tails, heads, np.minimum(low, high), high, price)


def solve(
    plain: Arcs, windowed: tuple[Windowed, ...], supplies: LongArray, excess_factor: int | None = None
) -> Flow | None:
    """The cheapest flow, None where there is none.

    supplies (nodes,): positive sends, negative receives. `excess_factor` None keeps the windows hard; else a unit of
    excess costs its window's price times this factor (0: excess is free of charge for the plain arcs' sake).
    """
    solver = min_cost_flow.SimpleMinCostFlow()
    inside = [arcs(w.tails, w.heads, w.high, 0, w.low) for w in windowed]
    beyond = [] if excess_factor is None else [_excess(w) for w in windowed]
    plain_at = _add(solver, plain)
    for part in inside:
        _add(solver, part)
    beyond_at = [_add(solver, replace(part, costs=part.costs * (excess_factor or 0))) for part in beyond]
    net = _corrected(supplies, (plain, *inside))
    solver.set_nodes_supplies(np.arange(len(net), dtype=np.int32), net)
    if solver.solve() != solver.OPTIMAL:
        return None
    units = solver.flows(plain_at) + plain.lows
    excess = sum(int((solver.flows(at) * part.costs).sum()) for at, part in zip(beyond_at, beyond, strict=True))
    return Flow(units, int((units * plain.costs).sum()), excess)


def solve_elastic(plain: Arcs, windowed: tuple[Windowed, ...], supplies: LongArray) -> Flow | None:
    """The cheapest flow among those with the least excess over the windows.

    Hard windows first. Where they can't hold, the least excess E is found with the plain arcs free of charge; then the
    cost is minimised with excess at a high price. If that flow's excess is E, it is the cheapest of all that have E.
    """
    hard = solve(plain, windowed, supplies)
    if hard is not None:
        return hard
    free = replace(plain, costs=np.zeros_like(plain.costs))
    least = solve(free, windowed, supplies, excess_factor=1)
    if least is None:
        return None
    factor = 4 * int(plain.costs.max(initial=1))
    while True:
        flow = solve(plain, windowed, supplies, excess_factor=factor)
        if flow is None or flow.excess <= least.excess:
            return flow
        factor *= 16


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


def _excess(window: Windowed) -> Arcs:
    """Arcs beyond the window, upwards in steps, and back against what is certain, down to nothing."""
    up = [arcs(window.tails, window.heads, units, step * window.price) for units, step in EXCESS_STEPS]
    down, left = [], window.low
    for units, step in EXCESS_STEPS:
        taken = np.minimum(left, units)
        down.append(arcs(window.heads, window.tails, taken, step * window.price))
        left = left - taken
    return join(*up, *down)
