"""What a flow proves, put into the terms of `planner.bounds`: facts that anyone can check, and prices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner import bounds
from planner.model import LongArray, Problem
from planner.strategies.byte_loads import ByteLoads
from planner.strategies.layout import Layout
from planner.strategies.placing import Placed
from planner.windows import rack_rule


@dataclass(frozen=True, eq=False)
class Proof:
    """Prices of (topic, broker) (T, Bt), brokers (Bt,) and loads (D, Bt) in parts of GRAIN, and windows."""

    cells: LongArray
    brokers: LongArray
    loads: LongArray
    cell_windows: LongArray
    broker_windows: LongArray

    def certificate(self, facts: bounds.Facts, load_windows: LongArray) -> bounds.Certificate:
        """The certificate of this proof, for windows of loads (D, 2, Bt)."""
        loads = zip(self.loads, load_windows, strict=True)
        return bounds.Certificate(
            facts,
            bounds.Prices(
                bounds.at_edges(self.cells, self.cell_windows),
                bounds.at_edges(self.brokers, self.broker_windows),
                tuple(bounds.at_edges(prices, window) for prices, window in loads),
            ),
        )


def facts(problem: Problem, layout: Layout, loads: ByteLoads | None) -> bounds.Facts:
    """The facts of a layout, in its own order of brokers."""
    rule = rack_rule(problem)
    in_bytes = bool(layout.copy_bytes.any())
    costs = layout.copy_bytes if in_bytes else (~layout.new).astype(np.int64)
    return bounds.Facts(
        measure="bytes" if in_bytes else "replicas",
        broker_ids=problem.broker_ids[layout.targets],
        racks=layout.racks,
        least=rule.least,
        most=rule.most,
        topics=layout.topics,
        factors=layout.factors,
        costs=costs,
        home=layout.home,
        home_costs=np.where(layout.replaced, costs[:, None], 0),
        loads=np.zeros((0, len(costs)), dtype=np.int64) if loads is None else loads.weights,
        load_names=() if loads is None else loads.names,
    )


def proof(layout: Layout, placed: Placed, prices: LongArray) -> Proof:
    """The proof of a placement that was made at these prices of loads (D, Bt), in parts of GRAIN a unit of load."""
    nodes = placed.node_prices()
    cells = nodes[layout.first_cell : layout.first_broker].reshape(layout.topic_count, -1)
    brokers = nodes[layout.first_broker : layout.sink]
    # Where no load has a price, costs aren't in parts of GRAIN yet.
    grain = 1 if prices.any() else bounds.GRAIN
    unit, scale = (layout.cost_unit_bytes, layout.tie_scale) if layout.copy_bytes.any() else (1, 1)
    topic_window, broker_window = placed.windowed
    topic_units, broker_units = placed.solved.through
    return Proof(
        cells=_rounded(cells - brokers, grain, scale) * unit,
        brokers=_rounded(brokers - nodes[layout.sink], grain, scale) * unit,
        loads=prices,
        cell_windows=_widened(topic_window.low, topic_window.high, topic_units).reshape(2, *cells.shape),
        broker_windows=_widened(broker_window.low, broker_window.high, broker_units),
    )


def _rounded(prices: LongArray, grain: int, scale: int) -> LongArray:
    """Prices times grain / scale, to the nearest, so that tie-breaks don't count; their product may not fit."""
    whole, rest = np.divmod(prices, scale)
    rounded: LongArray = whole * grain + (rest * grain + scale // 2) // scale
    return rounded


def _widened(low: LongArray, high: LongArray, units: LongArray) -> LongArray:
    """(2, K): windows that hold what the flow carries, where they couldn't all hold."""
    return np.stack([np.minimum(low, units), np.maximum(high, units)])
