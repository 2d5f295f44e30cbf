"""The plan that moves the fewest bytes for a stated balance: one min-cost flow, so its optimum is a proof.

Nodes: partition → (partition, rack) → (topic, broker) → broker → sink. Keeping a replica costs nothing, entering a
broker costs the partition's bytes. A broker that the partition isn't on is reached through a pool of its topic and
rack, since all of them cost the same: that keeps the arcs at partitions × (factor + racks). Where a rack may hold two
replicas of a partition, the pool's brokers are dealt out afterwards by a bipartite flow; partitions that can't be
dealt different brokers get arcs of their own and the flow is solved again, which keeps the answer exact.

Windows (see `windows`) that can't all hold are relaxed in this order, least excess first: those of single topics, then
the brokers' totals. Racks, replication factors and brokers are never relaxed. Where `rebalance` isn't `all`, bytes come
first: the fewest that the other changes force, and the least excess among those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner import flow
from planner.balance import Balance
from planner.errors import InfeasibleError
from planner.model import BoolArray, IntArray, LongArray, Problem
from planner.problem import today
from planner.strategies import leaders
from planner.strategies.dealing import deal
from planner.strategies.layout import Layout, lay_out
from planner.windows import BROKER_PRICE, TOPIC_PRICE, Windows, windows


@dataclass(frozen=True)
class Solution:
    """An assignment (P, W), and the least bytes that any plan must move that keeps the same windows.

    `least_replicas` likewise where no sizes are known, so that replicas are all there is to count; else -1.
    """

    assignment: IntArray
    least_bytes: int
    least_replicas: int


def solve(problem: Problem, balance: Balance, seed: int = 0) -> Solution:
    """The optimum for a balance. Different seeds give different plans of the same cost where there are several.

    InfeasibleError where no assignment keeps the replication factors on the target brokers.
    """
    layout = lay_out(problem, seed)
    wanted = windows(problem, balance)
    placed = today(problem)
    placed[layout.rows], least_cost = _place(problem, layout, wanted)
    return Solution(leaders.order(problem, placed, wanted), layout.bytes_of(least_cost), layout.replicas_of(least_cost))


def _place(problem: Problem, layout: Layout, wanted: Windows) -> tuple[IntArray, int]:
    """Replicas of the rows that may move (M, W), and their cost: the least of any plan."""
    own = np.zeros(len(layout.rows), dtype=bool)
    while True:
        network = _Network.of(layout, own)
        solved = _solve(problem, layout, network, _windowed(layout, wanted))
        kept, entered, arriving = network.read(layout, solved.units)
        chosen, undealt = deal(layout, kept, entered, arriving, problem.width)
        if not undealt.any():
            return chosen, solved.cost
        own |= undealt


def _solve(problem: Problem, layout: Layout, network: _Network, windowed: tuple[flow.Windowed, ...]) -> flow.Flow:
    solve = flow.solve_excess_first if problem.rebalance == "all" else flow.solve_cost_first
    solved = solve(network.arcs, windowed, network.supplies)
    if solved is None:
        raise InfeasibleError(
            "no assignment keeps every partition's replication factor on the brokers that stay; "
            f"{len(layout.targets)} brokers are left for a replication factor of up to {layout.factors.max(initial=0)}"
        )
    return solved


def _windowed(layout: Layout, wanted: Windows) -> tuple[flow.Windowed, ...]:
    """The windows of (topic, broker) and of brokers, less what the rows hold that may not move."""
    topic_bounds = (wanted.topic_replicas[:, :, layout.order] - layout.fixed_cells).reshape(2, -1)
    broker_bounds = wanted.replicas[:, layout.order] - layout.fixed_cells.sum(axis=0)
    most = int(layout.factors.sum())
    cells = np.arange(layout.first_cell, layout.first_broker, dtype=np.int32)
    brokers = np.arange(layout.first_broker, layout.sink, dtype=np.int32)
    return (
        flow.window(cells, np.tile(brokers, layout.topic_count), topic_bounds, most, TOPIC_PRICE),
        flow.window(brokers, np.full_like(brokers, layout.sink), broker_bounds, most, BROKER_PRICE),
    )


@dataclass(frozen=True)
class _Network:
    """The flow's plain arcs in four runs, each with the (row, ...) it stands for, and the nodes' supplies.

    keep: row and broker of each replica that could stay (or go to its replacement); enter: row and rack;
    own: row and broker, for rows whose replicas were dealt no different brokers; arrive: topic and broker.
    """

    arcs: flow.Arcs
    supplies: LongArray
    keep: IntArray
    enter: IntArray
    own: IntArray
    arrive: IntArray

    @staticmethod
    def of(layout: Layout, own_rows: BoolArray) -> _Network:
        """The network where the rows of the mask have an arc to each broker instead of going through a pool."""
        keep_rows, keep_slots = np.nonzero(layout.home >= 0)
        keep_brokers = layout.home[keep_rows, keep_slots]
        enter_rows, enter_racks = np.nonzero((layout.most > 0) & ~own_rows[:, None])
        own_at, own_brokers = layout.free_brokers(own_rows)
        arrive_topics, arrive_brokers = (axis.ravel() for axis in np.indices((layout.topic_count, len(layout.targets))))
        runs = (
            flow.arcs(
                layout.rack_node(keep_rows, layout.racks[keep_brokers]),
                layout.cell(layout.topics[keep_rows], keep_brokers),
                1,
                layout.keep_costs[keep_rows, keep_slots],
            ),
            flow.arcs(
                layout.rack_node(enter_rows, enter_racks),
                layout.pool(layout.topics[enter_rows], enter_racks),
                layout.most[enter_rows, enter_racks],
                layout.enter_costs[enter_rows],
            ),
            flow.arcs(
                layout.rack_node(own_at, layout.racks[own_brokers]),
                layout.cell(layout.topics[own_at], own_brokers),
                1,
                layout.enter_costs[own_at],
            ),
            flow.arcs(
                layout.pool(arrive_topics, layout.racks[arrive_brokers]),
                layout.cell(arrive_topics, arrive_brokers),
                layout.topic_replicas[arrive_topics],
                0,
            ),
        )
        return _Network(
            arcs=flow.join(*runs, layout.rack_arcs()),
            supplies=layout.supplies(),
            keep=np.stack([keep_rows, keep_brokers]),
            enter=np.stack([enter_rows, enter_racks]),
            own=np.stack([own_at, own_brokers]),
            arrive=np.stack([arrive_topics, arrive_brokers]),
        )

    def read(self, layout: Layout, units: LongArray) -> tuple[IntArray, IntArray, IntArray]:
        """What a flow says: (row, broker) pairs that are decided, units entering (M, R), units arriving (T, Bt)."""
        ends = np.cumsum([run.shape[1] for run in (self.keep, self.enter, self.own, self.arrive)])
        keep, enter, own, arrive = (units[ends[i] - run.shape[1] : ends[i]] for i, run in enumerate(self._runs))
        decided = np.concatenate([self.keep[:, keep > 0], self.own[:, own > 0]], axis=1)
        entered = np.zeros(layout.most.shape, dtype=np.int32)
        entered[self.enter[0], self.enter[1]] = enter
        return (
            decided.astype(np.int32),
            entered,
            arrive.reshape(layout.topic_count, len(layout.targets)).astype(np.int32),
        )

    @property
    def _runs(self) -> tuple[IntArray, ...]:
        return self.keep, self.enter, self.own, self.arrive
