"""The full network, to compare the condensed networks with, and a cluster in four racks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from clusters import problem_of

from planner.model.cluster import Broker
from planner.model.problem import Problem
from planner.model.spec import Changes
from planner.strategies.flow import min_cost_flow
from planner.strategies.flow.placement_network import Network

FOUR_RACKS = {1: "a", 2: "b", 3: "c", 4: "d"}


def spread_out(partitions: int, least_bytes: int = 1) -> Problem:
    """Partitions with three replicas each in four racks, evenly over the racks, and a second broker in each rack."""
    lists = {name: [(1, 2, 3), (2, 3, 4), (3, 4, 1), (4, 1, 2)] * partitions for name in ("t", "u")}
    sizes = {name: list(range(least_bytes, least_bytes + 4 * partitions)) for name in lists}
    added = tuple(Broker(broker + 4, rack) for broker, rack in FOUR_RACKS.items())
    return problem_of(FOUR_RACKS, lists, sizes=sizes, changes=Changes(add_brokers=added))


def assert_is_a_flow(network: Network, bounds: Sequence[min_cost_flow.Windowed], solved: min_cost_flow.Flow) -> None:
    """Every arc and window carries an amount within its bounds, and every node sends on all that it receives."""
    carried = [(network.arcs.tails, network.arcs.heads, solved.units)]
    carried += [(each.tails, each.heads, units) for each, units in zip(bounds, solved.through, strict=True)]
    net = network.supplies.copy()
    for tails, heads, units in carried:
        np.subtract.at(net, tails, units)
        np.add.at(net, heads, units)
    assert not net.any()
    assert ((network.arcs.lows <= solved.units) & (solved.units <= network.arcs.capacities)).all()
    for each, units in zip(bounds, solved.through, strict=True):
        assert ((each.low <= units) & (units <= each.high)).all()
