"""Places the rows of a layout by one min-cost flow, and turns the flow into replica lists."""

from dataclasses import dataclass, replace

import numpy as np

from planner.model.errors import InfeasibleError
from planner.model.formats import brokers, counted, enumerated
from planner.model.interrupts import free_memory
from planner.model.problem import BoolArray, IntArray, LongArray, Problem, sums_at
from planner.scoring.window_excess import weight
from planner.scoring.windows import Windows
from planner.strategies.flow import condensed_network, min_cost_flow, priced_network
from planner.strategies.flow.placement_network import Layout, Network, windowed

# For more nodes, the solver takes hundreds of megabytes.
_MANY_NODES = 1_000_000


@dataclass(frozen=True, eq=False)
class Placed:
    """Replicas of the rows that may move (M, W) as brokers of the problem, and the flow that chose them.

    `ties_proven`: no flow of the same cost is better by the second objectives.
    """

    chosen: IntArray
    network: Network
    windowed: tuple[min_cost_flow.Windowed, min_cost_flow.Windowed]
    solved: min_cost_flow.Flow
    ties_proven: bool = False

    @property
    def excess(self) -> int:
        """The excess of all replicas, with that of every flow: it differs between the starts of a window."""
        certain = (weight(np.stack([each.over, each.under]), each.price).sum() for each in self.windowed)
        return self.solved.excess + int(sum(certain))


def place(problem: Problem, layout: Layout, windows: Windows, own_rows: BoolArray | None = None) -> Placed:
    """The cheapest placement at the least excess over the windows; costs come first unless `rebalance` is `all`.

    Rows of the mask `own_rows` (M,) have an arc to each broker from the start. InfeasibleError if no assignment keeps
    the replication factors on the target brokers.
    """
    own_rows = np.zeros(len(layout.rows), dtype=bool) if own_rows is None else own_rows
    limits = windowed(layout, windows)
    while True:
        network = Network.of(layout, own_rows)
        # Unless `rebalance` is `all`, bytes come before windows. Rows with their own arcs can't be condensed.
        solved = None
        if problem.rebalance == "all" and not own_rows.any():
            solved = condensed_network.solve(layout, network, limits) or priced_network.solve(layout, network, limits)
        if solved is None:
            arcs, supplies = network.arcs, network.supplies
            if len(supplies) > _MANY_NODES:
                free_memory()
            solve = min_cost_flow.solve_excess_first if problem.rebalance == "all" else min_cost_flow.solve_cost_first
            solved = solve(arcs, limits, supplies)
        if solved is None:
            raise InfeasibleError(_why_infeasible(problem, layout))
        decided, entered, arriving = network.read(solved.units)
        chosen, undealt = deal(layout, decided, entered, arriving, problem.width)
        if not undealt.any():
            return Placed(chosen, network, limits, solved)
        own_rows = own_rows | undealt


def _why_infeasible(problem: Problem, layout: Layout) -> str:
    count = len(layout.targets)
    rules = ["every partition's replication factor"]
    if problem.racks_matter:
        rules.append("an even spread over racks (rack_aware)")
    if problem.caps is not None:
        rules.append("max_replicas")
    cordoned = [] if problem.cordoned is None else problem.broker_ids[problem.cordoned & problem.targets].tolist()
    return (
        f"no assignment keeps {enumerated(rules)} on the brokers that stay; "
        f"{counted(count, 'broker')} {'is' if count == 1 else 'are'} left for a replication factor of up to "
        f"{layout.factors.max(initial=0)}"
        + (f", and new replicas can't go to {brokers(cordoned)} (cordoned.log.dirs)" if cordoned else "")
    )


def on_brokers(layout: Layout, chosen: IntArray) -> BoolArray:
    """(M, Bt): True if a row of replicas (M, W), as brokers of the problem, has one on a broker of the flow."""
    is_on = np.zeros((len(chosen), len(layout.targets)), dtype=bool)
    rows, slots = np.nonzero(chosen >= 0)
    is_on[rows, layout.numbers[chosen[rows, slots]]] = True
    return is_on


def copied(problem: Problem, layout: Layout, chosen: IntArray) -> int:
    """Bytes that a placement (M, W) of the layout's rows copies."""
    today = problem.replicas[layout.rows]
    copies = (chosen >= 0) & ~(chosen[:, :, None] == today[:, None, :]).any(axis=2)
    return int(copies.sum(axis=1) @ layout.copy_bytes)


def widened(layout: Layout, windows: Windows, placed: Placed) -> Windows:
    """The windows; those of counts are widened to contain a placement, if it couldn't meet them all."""
    topic_units, broker_units = placed.solved.through
    to_targets = np.argsort(layout.order)
    cells = (topic_units.reshape(layout.fixed_cells.shape) + layout.fixed_cells)[:, to_targets]
    counts = (broker_units + layout.fixed_cells.sum(axis=0))[to_targets]
    return replace(
        windows, topic_replicas=as_wide(windows.topic_replicas, cells), replicas=as_wide(windows.replicas, counts)
    )


def as_wide(window: LongArray, counts: LongArray) -> LongArray:
    """The window (2, …), widened to contain `counts` (…)."""
    return np.stack([np.minimum(window[0], counts), np.maximum(window[1], counts)])


def deal(
    layout: Layout, decided: IntArray, entered: IntArray, arriving: IntArray, width: int
) -> tuple[IntArray, BoolArray]:
    """Replicas (M, width) as brokers of the problem, padded with -1, and the rows that got too few (M,).

    decided (2, K): (row, broker) pairs that are settled; entered (M, G): replicas of a row that enter each group;
    arriving (T, Bt): replicas of a topic that each broker takes.
    """
    kept = sums_at(entered.shape, (decided[0], layout.groups[decided[1]]))
    several = bool(((entered > 0) & (entered + kept > 1)).any())
    dealt = (
        _deal_by_flow(layout, decided, entered, arriving)
        if several
        else _deal_evenly(layout, decided, entered, arriving)
    )
    pairs = np.concatenate([decided, dealt], axis=1)
    counts = np.bincount(pairs[0], minlength=len(layout.rows))
    return matrix(layout, pairs, width), counts < layout.factors


def _deal_evenly(layout: Layout, decided: IntArray, entered: IntArray, arriving: IntArray) -> IntArray:
    """At most one entering replica per (row, group), and no other there: the group's emptiest broker takes it."""
    rows, groups = np.nonzero(entered)
    load = np.bincount(decided[1], weights=layout.size_bytes[decided[0]], minlength=len(layout.targets)).tolist()
    room = arriving.tolist()
    # By topic and group: the brokers that have room left, ascending.
    open_brokers: dict[tuple[int, int], list[int]] = {}
    for topic, broker in np.argwhere(arriving > 0).tolist():
        open_brokers.setdefault((topic, int(layout.groups[broker])), []).append(broker)
    dealt = np.empty(len(rows), dtype=np.int32)
    topics, sizes = layout.topics[rows], layout.size_bytes[rows]
    order = np.lexsort((groups, rows, -sizes))
    # Python lists, because for so few brokers at a time arrays take several times as long.
    of_rows = zip(*(each[order].tolist() for each in (topics, groups, sizes)), strict=True)
    for index, (topic, group, size) in zip(order.tolist(), of_rows, strict=True):
        brokers = open_brokers[topic, group]
        broker = min(brokers, key=load.__getitem__)
        dealt[index] = broker
        load[broker] += size
        room[topic][broker] -= 1
        if not room[topic][broker]:
            brokers.remove(broker)
    return np.stack([rows, dealt]).astype(np.int32)


def _deal_by_flow(layout: Layout, decided: IntArray, entered: IntArray, arriving: IntArray) -> IntArray:
    """For several replicas per (row, group): a bipartite flow finds different brokers, none of which the row is on."""
    entering = np.flatnonzero(entered.sum(axis=1))
    # A pair (place in `entering`, broker) may be dealt if the row enters the broker's group, the topic has room on the
    # broker, and the row isn't on it already.
    may_deal = (entered[entering][:, layout.groups] > 0) & (arriving[layout.topics[entering]] > 0)
    places = np.full(len(layout.rows), -1, dtype=np.int64)
    places[entering] = np.arange(len(entering))
    is_entering = places[decided[0]] >= 0
    may_deal[places[decided[0][is_entering]], decided[1][is_entering]] = False
    indices, brokers = np.nonzero(may_deal)
    pairs = (
        indices * entered.shape[1] + layout.groups[brokers],
        layout.topics[entering[indices]] * len(layout.targets) + brokers,
        np.ones(len(indices), dtype=np.int64),
    )
    supplies, demands = (each.ravel().astype(np.int64) for each in (entered[entering], arriving))
    chosen = min_cost_flow.largest_flow(supplies, pairs, demands) > 0
    return np.stack([entering[indices[chosen]], brokers[chosen]]).astype(np.int32)


def matrix(layout: Layout, pairs: IntArray, width: int) -> IntArray:
    """(row, broker) pairs as rows of brokers of the problem, ascending."""
    brokers = layout.targets[pairs[1]]
    by_row = np.lexsort((brokers, pairs[0]))
    rows, brokers = pairs[0][by_row], brokers[by_row]
    slots = np.arange(len(rows)) - np.searchsorted(rows, rows)
    replicas = np.full((len(layout.rows), width), -1, dtype=np.int32)
    replicas[rows, slots] = brokers
    return replicas
