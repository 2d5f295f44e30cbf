"""What a flow proves, put into the terms of `bounds`: facts that anyone can check, and prices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.problem import LongArray, Problem
from planner.scoring.fair_shares import ExactArray
from planner.scoring.windows import rack_rule
from planner.strategies import bounds
from planner.strategies.flow.layout import Layout
from planner.strategies.flow.placement import Placed
from planner.strategies.load_windows.byte_loads import ByteLoads

# Prices up to this fit 64 bits with room to spare; larger ones are told in coarser parts, by so many bits at most.
_MOST, _MOST_BITS = 1 << 60, bounds.GRAIN.bit_length() - 1


@dataclass(frozen=True, eq=False)
class Proof:
    """Prices of (topic, broker) (T, Bt), brokers (Bt,) and loads (D, Bt) in parts of `grain`, and windows."""

    cells: LongArray
    brokers: LongArray
    loads: LongArray
    cell_windows: LongArray
    broker_windows: LongArray
    grain: int = bounds.GRAIN

    def certificate(self, facts: bounds.Facts, load_windows: LongArray) -> bounds.Certificate:
        """The certificate of this proof, for windows of loads (D, 2, Bt)."""
        loads = zip(self.loads, load_windows, strict=True)
        return bounds.Certificate(
            facts,
            bounds.Prices(
                bounds.at_edges(self.cells, self.cell_windows),
                bounds.at_edges(self.brokers, self.broker_windows),
                tuple(bounds.at_edges(prices, window) for prices, window in loads),
                self.grain,
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


def proof(layout: Layout, placed: Placed, prices: LongArray, *, of_excess: bool = False) -> Proof:
    """The proof of a placement that was made at these prices of loads (D, Bt), in parts of GRAIN a unit of load.

    With `of_excess` costs were weights of what is outside of windows.
    """
    nodes = placed.node_prices()
    cells = nodes[layout.first_cell : layout.first_broker].reshape(layout.topic_count, -1)
    brokers = nodes[layout.first_broker : layout.sink]
    # Where no load has a price, costs aren't in parts of GRAIN yet.
    grain = 1 if prices.any() else bounds.GRAIN
    unit, scale = (layout.cost_unit_bytes, layout.tie_scale) if layout.copy_bytes.any() and not of_excess else (1, 1)
    topic_window, broker_window = placed.windowed
    in_parts = [_in_parts(each, grain * unit, unit, scale) for each in (cells - brokers, brokers - nodes[layout.sink])]
    coarser = min(max(_bits_beyond(each) for each in in_parts), _MOST_BITS)
    coarse_cells, coarse_brokers = ((each >> coarser).clip(-_MOST, _MOST).astype(np.int64) for each in in_parts)
    return Proof(
        cells=coarse_cells,
        brokers=coarse_brokers,
        loads=prices >> coarser,
        grain=bounds.GRAIN >> coarser,
        cell_windows=np.stack([topic_window.low, topic_window.high]).reshape(2, *cells.shape),
        broker_windows=np.stack([broker_window.low, broker_window.high]),
    )


def _in_parts(prices: LongArray, times: int, unit: int, scale: int) -> ExactArray:
    """Prices times `times` / scale, in whole units, to the nearest: tie-breaks don't count."""
    largest = int(np.abs(prices).max(initial=0)) * times // scale
    exact = prices.astype(object) if largest >= _MOST else prices
    whole, rest = np.divmod(exact, scale)
    return (whole * (times // unit) + (rest * (times // unit) + scale // 2) // scale) * unit


def _bits_beyond(prices: ExactArray) -> int:
    """By how many bits prices have to be coarser to be far within 64: where units outside of windows are dear."""
    return max(0, (int(np.abs(prices).max(initial=0)) // _MOST).bit_length())
