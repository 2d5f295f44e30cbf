"""The optimum's flow network: arcs and supplies made of a layout, and what a solved flow says about its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.problem import BoolArray, IntArray, LongArray
from planner.scoring.windows import BROKER_PRICE, TOPIC_PRICE, Windows
from planner.strategies.flow import min_cost_flow
from planner.strategies.flow.layout import Layout


@dataclass(frozen=True)
class Network:
    """The flow's plain arcs in four runs, each with the (row, ...) it stands for, and the nodes' supplies.

    keep: row and broker of each replica that could stay (or go to its replacement); enter: row and group;
    own: row and broker, for rows whose replicas were dealt no different brokers; arrive: topic and broker.
    """

    arcs: min_cost_flow.Arcs
    supplies: LongArray
    keep: IntArray
    enter: IntArray
    own: IntArray
    arrive: IntArray

    @staticmethod
    def of(layout: Layout, own_rows: BoolArray) -> Network:
        """The network where the rows of the mask have an arc to each broker instead of going through a pool."""
        keep_rows, keep_slots = np.nonzero(layout.home >= 0)
        keep_brokers = layout.home[keep_rows, keep_slots]
        enter_rows, enter_groups = np.nonzero((layout.most[:, layout.group_racks] > 0) & ~own_rows[:, None])
        enter_racks = layout.group_racks[enter_groups]
        own_at, own_brokers = layout.free_brokers(own_rows)
        arrive_topics, arrive_brokers = (axis.ravel() for axis in np.indices((layout.topic_count, len(layout.targets))))
        runs = (
            min_cost_flow.arcs(
                layout.rack_node(keep_rows, layout.racks[keep_brokers]),
                layout.cell(layout.topics[keep_rows], keep_brokers),
                1,
                layout.keep_costs[keep_rows, keep_slots],
            ),
            min_cost_flow.arcs(
                layout.rack_node(enter_rows, enter_racks),
                layout.pool(layout.topics[enter_rows], enter_groups),
                np.minimum(layout.most[enter_rows, enter_racks], layout.group_sizes[enter_groups]),
                layout.enter_costs[enter_rows, enter_groups],
            ),
            min_cost_flow.arcs(
                layout.rack_node(own_at, layout.racks[own_brokers]),
                layout.cell(layout.topics[own_at], own_brokers),
                1,
                layout.enter_costs[own_at, layout.groups[own_brokers]],
            ),
            min_cost_flow.arcs(
                layout.pool(arrive_topics, layout.groups[arrive_brokers]),
                layout.cell(arrive_topics, arrive_brokers),
                layout.topic_replicas[arrive_topics],
                0,
            ),
        )
        return Network(
            arcs=min_cost_flow.join(*runs, layout.rack_arcs()),
            supplies=layout.supplies(),
            keep=np.stack([keep_rows, keep_brokers]),
            enter=np.stack([enter_rows, enter_groups]),
            own=np.stack([own_at, own_brokers]),
            arrive=np.stack([arrive_topics, arrive_brokers]),
        )

    def read(self, layout: Layout, units: LongArray) -> tuple[IntArray, IntArray, IntArray]:
        """What a flow says: (row, broker) pairs that are decided, units entering (M, G), units arriving (T, Bt)."""
        ends = np.cumsum([run.shape[1] for run in (self.keep, self.enter, self.own, self.arrive)])
        keep, enter, own, arrive = (units[ends[i] - run.shape[1] : ends[i]] for i, run in enumerate(self._runs))
        decided = np.concatenate([self.keep[:, keep > 0], self.own[:, own > 0]], axis=1)
        entered = np.zeros(layout.enter_costs.shape, dtype=np.int32)
        entered[self.enter[0], self.enter[1]] = enter
        return (
            decided.astype(np.int32),
            entered,
            arrive.reshape(layout.topic_count, len(layout.targets)).astype(np.int32),
        )

    @property
    def _runs(self) -> tuple[IntArray, ...]:
        return self.keep, self.enter, self.own, self.arrive


def windowed(layout: Layout, wanted: Windows) -> tuple[min_cost_flow.Windowed, min_cost_flow.Windowed]:
    """The windows of (topic, broker) and of brokers, less what the rows hold that may not move."""
    topic_bounds, broker_bounds = bounds(layout, wanted)
    most = int(layout.factors.sum())
    cells = np.arange(layout.first_cell, layout.first_broker, dtype=np.int32)
    brokers = np.arange(layout.first_broker, layout.sink, dtype=np.int32)
    return (
        min_cost_flow.window(
            cells, np.tile(brokers, layout.topic_count), topic_bounds.reshape(2, -1), most, TOPIC_PRICE
        ),
        min_cost_flow.window(brokers, np.full_like(brokers, layout.sink), broker_bounds, most, BROKER_PRICE),
    )


def bounds(layout: Layout, wanted: Windows) -> tuple[LongArray, LongArray]:
    """The windows of the rows that may move: (2, T, Bt) a topic and (2, Bt) in all."""
    return (
        wanted.topic_replicas[:, :, layout.order] - layout.fixed_cells,
        wanted.replicas[:, layout.order] - layout.fixed_cells.sum(axis=0),
    )
