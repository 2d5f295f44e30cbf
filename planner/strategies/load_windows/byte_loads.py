"""The loads that a placement must spread evenly in addition to counts: bytes on disk, and bytes per second in.

Both are linear in the replicas: each replica adds its partition's size, and what producers write to it, on any broker.
What a broker sends depends on which partitions it leads; see `leaders`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from planner.model.problem import IntArray, LongArray, Problem, sums_at
from planner.scoring.growth_scenarios import Scenario
from planner.scoring.windows import Windows
from planner.strategies.flow import min_cost_flow
from planner.strategies.flow.placement_network import Layout, bounds
from planner.strategies.lagrangian_bound import GRAIN


@dataclass(frozen=True, eq=False)
class ByteLoads:
    """D loads of a layout's M rows on its Bt brokers.

    names (D,) as in the YAML · weights (D, M) of one replica · scales (D,) bytes that a unit is worth, so that prices
    of unlike loads compare · windows (D, 2, Bt) least and most, minus the loads of rows that may not move
    """

    names: tuple[str, ...]
    weights: LongArray
    scales: LongArray
    windows: LongArray

    @classmethod
    def none(cls, layout: Layout) -> Self:
        """No load at all."""
        rows, width = len(layout.rows), len(layout.targets)
        weights, scales, windows = (np.zeros((0, *shape), dtype=np.int64) for shape in ((rows,), (), (2, width)))
        return cls((), weights, scales, windows)

    def by_broker(self, brokers: IntArray) -> LongArray:
        """(D, Bt): the loads of replicas on these brokers of the flow (M, W), -1 for none."""
        rows, slots = np.nonzero(brokers >= 0)
        count = self.windows.shape[2]
        loads = [sums_at(count, brokers[rows, slots], weights[rows]) for weights in self.weights]
        return np.array(loads, dtype=np.int64).reshape(-1, count)

    def within(self, brokers: IntArray) -> bool:
        """True if replicas on these brokers (M, W) are inside all windows."""
        load = self.by_broker(brokers)
        return bool(((self.windows[:, 0] <= load) & (load <= self.windows[:, 1])).all())

    def with_counts(self, layout: Layout, windows: Windows) -> Self:
        """The same, with the number of replicas as the first load."""
        return replace(
            self,
            names=("replicas", *self.names),
            weights=np.concatenate([np.ones((1, len(layout.rows)), dtype=np.int64), self.weights]),
            scales=np.concatenate([[layout.cost_unit_bytes], self.scales]),
            windows=np.concatenate([bounds(layout, windows)[1][None], self.windows]),
        )

    def too_large(self) -> bool:
        """True if a single replica is above the window of every broker."""
        return bool((self.weights.max(axis=1, initial=0) > self.windows[:, 1].max(axis=1)).any())

    def surely_outside(self, factors: IntArray) -> int:
        """The least that is outside with so many replicas (M,), weighed: their total against the windows' totals."""
        outside = 0
        for weights, windows, scale in zip(self.weights, self.windows, self.scales.tolist(), strict=True):
            least, most = (sum(bound) for bound in windows.clip(min=0).tolist())
            load = int(weights @ factors)
            outside += scale * max(load - most, least - load, 0)
        return outside


def byte_loads(problem: Problem, layout: Layout, windows: Windows, scenarios: Sequence[Scenario] = ()) -> ByteLoads:
    """The loads that have a window, today's and those of each scenario."""
    windowed = _loads_with_window(problem, windows, "")
    for scenario in scenarios:
        windowed += _loads_with_window(scenario.problem, scenario.windows, f" in {scenario.name}")
    if not windowed:
        return ByteLoads.none(layout)
    total_bytes = int((problem.size_bytes[layout.rows] * layout.factors).sum())
    fixed = np.ones(problem.rows, dtype=bool)
    fixed[layout.rows] = False
    # The replicas of the rows that may not move.
    rows, slots = np.nonzero((problem.replicas >= 0) & fixed[:, None])
    brokers, count = problem.replicas[rows, slots], len(problem.broker_ids)
    totals = [int((weights[layout.rows] * layout.factors).sum()) for _, _, weights in windowed]
    return ByteLoads(
        names=tuple(name for name, _, _ in windowed),
        weights=np.stack([weights[layout.rows] for _, _, weights in windowed]),
        scales=np.array([max(1, total_bytes // each) if each else 1 for each in totals], dtype=np.int64),
        windows=np.stack(
            [
                window[:, layout.order] - sums_at(count, brokers, weights[rows])[layout.targets]
                for _, window, weights in windowed
            ]
        ),
    )


def _loads_with_window(problem: Problem, windows: Windows, suffix: str) -> list[tuple[str, LongArray, LongArray]]:
    """Name, window (2, Bt) and weights (P,) of the loads that have a window."""
    loads = (("disk", windows.disk, problem.size_bytes), ("network_in", windows.network_in, problem.bytes_in_per_sec))
    return [(name + suffix, window, weights) for name, window, weights in loads if window is not None]


def priced(layout: Layout, loads: ByteLoads, prices: LongArray) -> Layout:
    """The layout with loads at these prices (D, Bt), in 1 / GRAIN byte (or replica) per unit of load.

    Brokers of a rack with the same prices form a group, because they cost the same to enter. CostRangeError if that
    exceeds the solver's arithmetic.
    """
    keys = np.concatenate([layout.racks[None], prices])
    values, groups = np.unique(keys, axis=1, return_inverse=True)
    enter, keep = GRAIN * layout.enter_costs[:, values[0]], GRAIN * layout.keep_costs
    home_brokers = np.where(layout.home >= 0, layout.home, 0)
    for weights, scale, in_group, on_broker in zip(loads.weights, loads.scales, values[1:], prices, strict=True):
        # In units of cost first, like the costs: at a price of a byte per byte, rounding then leaves no differences.
        units = weights * scale // layout.cost_unit_bytes * (layout.tie_scale if layout.copy_bytes.any() else 1)
        if int(units.max()) * (int(np.abs(on_broker).max()) // int(scale) + 1) > min_cost_flow.largest_cost(1):
            raise min_cost_flow.CostRangeError
        enter = enter - np.rint(units[:, None] * (in_group / scale)).astype(np.int64)
        keep = keep - np.rint(units[:, None] * (on_broker[home_brokers] / scale)).astype(np.int64)
    # Every replica pays once for keeping or entering, so a row's least cost is taken off, and no cost is negative.
    base = np.minimum(enter.min(axis=1), np.where(layout.home >= 0, keep, enter.max()).min(axis=1, initial=enter.max()))
    return replace(
        layout,
        enter_costs=enter - base[:, None],
        keep_costs=np.where(layout.home >= 0, keep - base[:, None], 0),
        groups=groups.reshape(-1).astype(np.int32),
        group_racks=values[0].astype(np.int32),
        group_sizes=np.bincount(groups.reshape(-1)).astype(np.int32),
    )
