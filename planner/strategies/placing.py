"""A layout placed by one min-cost flow: the cheapest replicas within the windows of counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner import flow
from planner.errors import InfeasibleError
from planner.model import BoolArray, IntArray, LongArray, Problem
from planner.strategies import condensed
from planner.strategies.dealing import deal
from planner.strategies.layout import Layout
from planner.strategies.network import Network, windowed
from planner.windows import Windows


@dataclass(frozen=True, eq=False)
class Placed:
    """Replicas of the rows that may move (M, W) as brokers of the problem, and the flow that chose them."""

    chosen: IntArray
    network: Network
    windowed: tuple[flow.Windowed, flow.Windowed]
    solved: flow.Flow

    def node_prices(self) -> LongArray:
        """The prices of the flow's nodes, which prove it optimal."""
        return flow.potentials(self.network.arcs, self.windowed, self.network.supplies, self.solved)


def place(problem: Problem, layout: Layout, wanted: Windows, own: BoolArray | None = None) -> Placed:
    """The cheapest placement, at the least excess over the windows; where `rebalance` isn't `all`, costs come first.

    Rows of the mask `own` (M,) have an arc to each broker from the start.
    InfeasibleError where no assignment keeps the replication factors on the target brokers.
    """
    own = np.zeros(len(layout.rows), dtype=bool) if own is None else own
    windows = windowed(layout, wanted)
    while True:
        network = Network.of(layout, own)
        # Bytes come before windows where little may move, and rows with arcs of their own can't be condensed.
        quick = problem.rebalance == "all" and not own.any()
        solved = condensed.solve(layout, network, windows) if quick else None
        if solved is None:
            solved = _solve(problem, layout, network, windows)
        kept, entered, arriving = network.read(layout, solved.units)
        chosen, undealt = deal(layout, kept, entered, arriving, problem.width)
        if not undealt.any():
            return Placed(chosen, network, windows, solved)
        own = own | undealt


def on_brokers(layout: Layout, chosen: IntArray) -> BoolArray:
    """(M, Bt): True where rows of replicas (M, W), as brokers of the problem, lie on a broker of the flow."""
    here = np.full(int(layout.targets.max()) + 1, -1, dtype=np.int64)
    here[layout.targets] = np.arange(len(layout.targets))
    on = np.zeros((len(chosen), len(layout.targets)), dtype=bool)
    rows, slots = np.nonzero(chosen >= 0)
    on[rows, here[chosen[rows, slots]]] = True
    return on


def widened(layout: Layout, wanted: Windows, placed: Placed) -> Windows:
    """The windows of counts, as wide as a placement has made them where they couldn't all hold."""
    topic_units, broker_units = placed.solved.through
    here = np.argsort(layout.order)
    cells = (topic_units.reshape(layout.fixed_cells.shape) + layout.fixed_cells)[:, here]
    held = (broker_units + layout.fixed_cells.sum(axis=0))[here]
    return replace(
        wanted, topic_replicas=_as_wide(wanted.topic_replicas, cells), replicas=_as_wide(wanted.replicas, held)
    )


def _as_wide(window: LongArray, held: LongArray) -> LongArray:
    return np.stack([np.minimum(window[0], held), np.maximum(window[1], held)])


def _solve(problem: Problem, layout: Layout, network: Network, windows: tuple[flow.Windowed, ...]) -> flow.Flow:
    solve = flow.solve_excess_first if problem.rebalance == "all" else flow.solve_cost_first
    solved = solve(network.arcs, windows, network.supplies)
    if solved is None:
        raise InfeasibleError(
            "no assignment keeps every partition's replication factor on the brokers that stay; "
            f"{len(layout.targets)} brokers are left for a replication factor of up to {layout.factors.max(initial=0)}"
        )
    return solved
