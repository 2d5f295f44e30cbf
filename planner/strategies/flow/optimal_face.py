"""All cheapest flows of a network at once, and the best of them by a further objective.

Node prices that prove a flow optimal say what every other optimum looks like (complementary slackness): an arc whose
reduced cost isn't zero carries the same in all of them. Of the others only those on a cycle of such arcs with room left
can change at all. So the next objective is a smaller min-cost flow with costs of its own, and nothing has to be scaled
so that one objective outweighs another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy  # its parts are imported where they are first used: most commands use none
from ortools.graph.python import min_cost_flow

from planner.model.problem import BoolArray, IntArray, LongArray
from planner.strategies.flow import min_cost_flow as flow


@dataclass(frozen=True, eq=False)
class Face:
    """The flows (K,) of arcs from tails to heads that carry between low and high; `units` is one of them.

    All of them are optimal for every objective so far.
    """

    tails: IntArray
    heads: IntArray
    low: LongArray
    high: LongArray
    units: LongArray

    @property
    def free(self) -> BoolArray:
        """(K,): True for the arcs that needn't carry what they do."""
        return self.low < self.high

    def cheapest(self, costs: LongArray) -> Face:
        """The flows with the least total of these costs (K,) a unit; none is below 0."""
        at = np.flatnonzero(self.free)
        if not costs[at].any():
            return self
        nodes, numbers = np.unique(np.concatenate([self.tails[at], self.heads[at]]), return_inverse=True)
        tails, heads = numbers.reshape(2, -1).astype(np.int32)
        arcs = flow.Arcs(tails, heads, self.high[at], costs[at], self.low[at])
        best = restricted(arcs, cheapest(arcs, self.units[at]), len(nodes))
        low, high, all_units = self.low.copy(), self.high.copy(), self.units.copy()
        low[at], high[at], all_units[at] = best.low, best.high, best.units
        return replace(self, low=low, high=high, units=all_units)

    def fixed(self, mask: BoolArray) -> Face:
        """The flows that are as now on the arcs of the mask (K,)."""
        return replace(self, low=np.where(mask, self.units, self.low), high=np.where(mask, self.units, self.high))


def of(plain: flow.Arcs, windowed: tuple[flow.Windowed, ...], solved: flow.Flow, nodes: int) -> Face:
    """The optimal flows of a network that was solved: its plain arcs first, then those of each window."""
    arcs, units = flow.whole(plain, windowed, solved)
    return restricted(arcs, units, nodes)


def restricted(arcs: flow.Arcs, units: LongArray, nodes: int) -> Face:
    """All optimal flows of a network of which one is known."""
    prices = flow.distances(arcs, units, nodes)
    tight = arcs.costs + prices[arcs.tails] == prices[arcs.heads]
    more, less = tight & (units < arcs.capacities), tight & (units > arcs.lows)
    tails = np.concatenate([arcs.tails[more], arcs.heads[less]])
    heads = np.concatenate([arcs.heads[more], arcs.tails[less]])
    graph = scipy.sparse.coo_matrix((np.ones(len(tails), dtype=np.int8), (tails, heads)), shape=(nodes, nodes))
    part = scipy.sparse.csgraph.connected_components(graph.tocsr(), directed=True, connection="strong")[1]
    free = (more | less) & (part[arcs.tails] == part[arcs.heads])
    return Face(arcs.tails, arcs.heads, np.where(free, arcs.lows, units), np.where(free, arcs.capacities, units), units)


def cheapest(arcs: flow.Arcs, units: LongArray) -> LongArray:
    """The cheapest flow (K,) with the supplies of one that is known."""
    nodes, numbers = np.unique(np.concatenate([arcs.tails, arcs.heads]), return_inverse=True)
    tails, heads = numbers.reshape(2, -1).astype(np.int32)
    solver = min_cost_flow.SimpleMinCostFlow()
    at = solver.add_arcs_with_capacity_and_unit_cost(tails, heads, arcs.capacities - arcs.lows, arcs.costs)
    supplies = np.zeros(len(nodes), dtype=np.int64)
    np.add.at(supplies, tails, units - arcs.lows)
    np.subtract.at(supplies, heads, units - arcs.lows)
    solver.set_nodes_supplies(np.arange(len(nodes), dtype=np.int32), supplies)
    status = solver.solve()
    if status != solver.OPTIMAL:
        raise AssertionError(f"a flow that exists wasn't found: {status}")
    found: LongArray = solver.flows(at) + arcs.lows
    return found
