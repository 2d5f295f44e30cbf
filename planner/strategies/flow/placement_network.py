"""The optimum's flow network: a problem as nodes, costs, arcs and supplies; `optimum` draws a picture of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from planner.model.build_problem import rows_to_place
from planner.model.problem import BoolArray, IntArray, LongArray, Problem, hash64, sums_at
from planner.scoring.broker_loads import counts_by_group
from planner.scoring.fair_shares import rack_rule
from planner.scoring.window_excess import BROKER_PRICE, TOPIC_PRICE
from planner.scoring.windows import Windows
from planner.strategies.flow import min_cost_flow

# The unit of cost is the smallest partition's bytes divided by this: no plan's bytes are off by more than 0.001 %.
_COST_RESOLUTION = 100_000
# If tie-breaks don't fit beside costs in the finest unit, the unit rises to this part of the mean partition's bytes.
_COARSER = 1e-6
# The unit is one byte if all rows' costs together stay below this, because finer costs take longer to solve.
_PLAIN_COSTS = 10**14
# Costs stay this many times below the solver's limit, which leaves room for the prices of excess.
_ROOM = 64


@dataclass(frozen=True, eq=False)
class Layout:
    """The rows that may move (M), in the flow's own numbers. T topics, Bt target brokers, R racks.

    rows (M,)         their places in the problem
    topics (M,)       topic of each
    factors (M,)      replicas wanted
    home (M, W0)      target broker where each of today's replicas can stay, or that broker's replacement; -1: none
    replaced (M, W0)  True if `home` is a replacement, to which the replica must be copied
    copy_bytes (M,)   bytes copied when a replica enters a broker: the partition's size, 0 for a new partition
    is_new (M,)       True for new partitions
    keep_costs (M, W0)  cost of each replica on its `home`
    enter_costs (M, G) cost of a replica on any other broker of a group
    least, most (M, R) fewest and most replicas that the rack rule allows in each rack
    order (Bt,)       target broker number (ascending by id) of each broker of the flow; shuffled by the seed
    targets (Bt,)     the problem's number of each broker of the flow
    numbers (B,)      the flow's number of each broker of the problem, -1: not a target
    racks (Bt,)       rack of each broker of the flow
    groups (Bt,)      group of each broker of the flow: brokers of one rack that cost the same to enter
    group_racks, group_sizes (G,) rack and number of brokers of each group
    fixed_cells (T, Bt) replicas of rows that may not move
    cost_unit_bytes   bytes that a unit stands for
    tie_scale         cost of a unit; that of a tie-break is 1
    ties_beyond_scale how much more than a unit all tie-breaks together can cost
    forbidden (T, Bt)  True if no replica of the topic may enter the broker (`placement`, or cordoned); None: all may
    kinds (M,)        each row's row in `lagrangian_bound.BoundFacts.least` and `most`
    """

    rows: IntArray
    topics: IntArray
    factors: IntArray
    size_bytes: LongArray
    home: IntArray
    replaced: BoolArray
    copy_bytes: LongArray
    is_new: BoolArray
    keep_costs: LongArray
    enter_costs: LongArray
    least: IntArray
    most: IntArray
    order: IntArray
    targets: IntArray
    numbers: IntArray
    racks: IntArray
    groups: IntArray
    group_racks: IntArray
    group_sizes: IntArray
    fixed_cells: LongArray
    topic_count: int
    cost_unit_bytes: int
    tie_scale: int
    ties_beyond_scale: int
    kinds: IntArray
    forbidden: BoolArray | None

    def part(self, rows: IntArray) -> Layout:
        """The layout of some of its rows."""
        of_rows = (
            *("rows", "topics", "factors", "size_bytes", "home", "replaced", "copy_bytes", "is_new"),
            *("keep_costs", "enter_costs", "least", "most", "kinds"),
        )
        return replace(self, **{name: getattr(self, name)[rows] for name in of_rows})

    @cached_property
    def home_racks(self) -> BoolArray:
        """(M, R): True if one of today's replicas could stay in that rack."""
        mask = np.zeros(self.most.shape, dtype=bool)
        rows, slots = np.nonzero(self.home >= 0)
        mask[rows, self.racks[self.home[rows, slots]]] = True
        return mask

    @cached_property
    def pinned(self) -> BoolArray | None:
        """(M, Bt): True if a broker replaces another that holds a replica of the row; None without replacements."""
        if not self.replaced.any():
            return None
        pinned = np.zeros((len(self.rows), len(self.targets)), dtype=bool)
        rows, slots = np.nonzero(self.replaced & (self.home >= 0))
        pinned[rows, self.home[rows, slots]] = True
        return pinned

    @cached_property
    def home_cells(self) -> LongArray:
        """(T, Bt): the number of today's replicas that could stay."""
        rows, slots = np.nonzero(self.home >= 0)
        return sums_at((self.topic_count, len(self.targets)), (self.topics[rows], self.home[rows, slots]))

    @cached_property
    def reachable(self) -> BoolArray | None:
        """(M, Bt): True if a replica may enter the broker or stay there; None: everywhere."""
        if self.forbidden is None:
            return None
        reachable = ~self.forbidden[self.topics]
        rows, slots = np.nonzero(self.home >= 0)
        reachable[rows, self.home[rows, slots]] = True
        return reachable

    @cached_property
    def rack_nodes(self) -> IntArray:
        """(M, R): the node that sends a row's replicas to a rack; the row's own node if that rack needs none."""
        own_nodes = np.arange(len(self.rows), dtype=np.int32)[:, None]
        needed = self.needs_node
        numbers = len(self.rows) + np.cumsum(needed.ravel(), dtype=np.int32).reshape(needed.shape) - 1
        return np.where(needed, numbers, own_nodes)

    @cached_property
    def needs_node(self) -> BoolArray:
        """(M, R): True if a row needs a node for a rack: its replicas there are bounded, and have several ways in."""
        bounded = (self.most < self.factors[:, None]) | (self.least > 0)
        several = np.bincount(self.group_racks, minlength=self.most.shape[1]) > 1
        return (self.home_racks | several | (self.most > 1) | (self.least > 0)) & bounded & (self.most > 0)

    @cached_property
    def first_pool(self) -> int:
        """First (topic, group) node."""
        return len(self.rows) + int(self.needs_node.sum())

    @cached_property
    def first_cell(self) -> int:
        """First (topic, broker) node."""
        return self.first_pool + self.topic_count * len(self.group_racks)

    @cached_property
    def first_broker(self) -> int:
        """First broker node."""
        return self.first_cell + self.topic_count * len(self.targets)

    @cached_property
    def sink(self) -> int:
        """The last node, which takes every replica."""
        return self.first_broker + len(self.targets)

    @cached_property
    def topic_replicas(self) -> LongArray:
        """(T,): the number of replicas of the rows that may move."""
        return np.bincount(self.topics, weights=self.factors, minlength=self.topic_count).astype(np.int64)

    def pool(self, topics: IntArray, groups: IntArray) -> IntArray:
        """The node of a topic's replicas that enter a group of brokers."""
        return (self.first_pool + topics * len(self.group_racks) + groups).astype(np.int32)

    def cell(self, topics: IntArray, brokers: IntArray) -> IntArray:
        """The node of a topic's replicas on a broker."""
        return (self.first_cell + topics * len(self.targets) + brokers).astype(np.int32)

    def numbered(self, chosen: IntArray) -> IntArray:
        """Brokers of the problem (M, W) as brokers of the flow; -1 for none."""
        brokers: IntArray = np.where(chosen >= 0, self.numbers[chosen], -1)
        return brokers

    def free_brokers(self, rows: BoolArray) -> tuple[IntArray, IntArray]:
        """(row, broker) pairs of the masked rows, for brokers where no replica could stay and one may enter."""
        indices = np.flatnonzero(rows)
        free = np.ones((len(indices), len(self.targets)), dtype=bool)
        home_indices, slots = np.nonzero(self.home[indices] >= 0)
        free[home_indices, self.home[indices][home_indices, slots]] = False
        if self.forbidden is not None:
            free &= ~self.forbidden[self.topics[indices]]
        pairs, brokers = np.nonzero(free)
        return indices[pairs].astype(np.int32), brokers.astype(np.int32)

    @cached_property
    def cost_bytes(self) -> float:
        """Bytes per unit of cost; replicas per unit if no row has bytes."""
        return self.cost_unit_bytes / self.tie_scale if self.copy_bytes.any() else 1.0

    def bytes_of(self, cost: int) -> int:
        """The bytes that any flow of this cost or more copies at least: costs are rounded down, and tie-breaks don't
        count.
        """
        return max(cost - self.ties_beyond_scale, 0) // self.tie_scale * self.cost_unit_bytes

    def replicas_of(self, cost: int) -> int:
        """The replicas that enter brokers in a flow of this cost. -1 if some have bytes, which then count instead, or
        if brokers are replaced, because entering a replacement costs no tie-break.
        """
        return -1 if self.copy_bytes.any() or self.replaced.any() else cost % self.tie_scale


def lay_out(problem: Problem, seed: int, room: int = 1) -> Layout:
    """The problem as a layout. Seed 0 keeps the brokers in order; others shuffle them, alike with every numpy version.
    Costs are so small that they can be multiplied by `room`.
    """
    to_place, targets = rows_to_place(problem), np.flatnonzero(problem.targets)
    rows = np.flatnonzero(to_place).astype(np.int32)
    order, rule = np.arange(len(targets)), rack_rule(problem)
    if seed:
        order = np.argsort(hash64(order.astype(np.uint64) + hash64(np.array([seed], dtype=np.uint64))), kind="stable")
    factors, size_bytes = problem.replication_factors[rows], problem.size_bytes[rows]
    numbers = np.full(len(problem.broker_ids), -1, dtype=np.int32)
    numbers[targets[order]] = np.arange(len(targets))
    home, replaced = _home(problem, rows, numbers)
    fixed = np.where(to_place[:, None], -1, problem.replicas)
    nodes = len(rows) * (1 + len(rule.sizes)) + len(problem.topic_names) * (len(rule.sizes) + len(targets))
    is_new, largest = problem.is_new[rows], min_cost_flow.largest_cost(nodes + len(targets)) // room
    unit, scale, costs, ties = _costs(np.where(is_new, 0, size_bytes), factors, is_new, replaced, largest)
    return Layout(
        rows=rows,
        topics=problem.topic_of[rows],
        factors=factors,
        size_bytes=size_bytes,
        home=home,
        replaced=replaced,
        copy_bytes=np.where(is_new, 0, size_bytes),
        is_new=is_new,
        keep_costs=np.where(replaced, costs[:, None], 0),
        enter_costs=np.broadcast_to((costs + ties)[:, None], (len(rows), len(rule.sizes))),
        least=rule.least[rule.kinds[rows]],
        most=rule.most[rule.kinds[rows]],
        order=order.astype(np.int32),
        targets=targets[order].astype(np.int32),
        numbers=numbers,
        racks=rule.rack_of[order],
        groups=rule.rack_of[order],
        group_racks=np.arange(len(rule.sizes), dtype=np.int32),
        group_sizes=rule.sizes,
        fixed_cells=counts_by_group(problem, fixed, problem.topic_of, len(problem.topic_names))[:, order],
        topic_count=len(problem.topic_names),
        cost_unit_bytes=unit,
        tie_scale=scale,
        ties_beyond_scale=max(int(ties @ factors) - scale + 1, 0),
        kinds=rule.kinds[rows],
        forbidden=None if problem.open_targets is None else ~problem.open_targets[:, order],
    )


def _home(problem: Problem, rows: IntArray, numbers: IntArray) -> tuple[IntArray, BoolArray]:
    """Brokers of the flow where today's replicas can stay, and which of those are replacements of a leaving broker."""
    today = problem.replicas[rows]
    successor = np.where(today >= 0, problem.replacements[today], -1)
    taken = (successor[:, :, None] == today[:, None, :]).any(axis=2)
    replaced = (successor >= 0) & ~taken
    brokers = np.where(replaced, successor, today)
    home = np.where(today >= 0, numbers[brokers], -1)
    if problem.allowed is not None:
        home = np.where(problem.allowed[problem.topic_of[rows, None], brokers], home, -1)
    return home.astype(np.int32), replaced


def _costs(
    size_bytes: LongArray, factors: IntArray, is_new: BoolArray, replaced: BoolArray, largest: int
) -> tuple[int, int, LongArray, LongArray]:
    """Bytes per unit of cost, the cost of a unit, the cost (M,) of a row's bytes, and 1 (M,) for rows with a tie-break.

    A row without bytes, or with a replaced broker, pays a tie-break for entering another broker; a new partition pays
    nothing. No cost exceeds `largest // _ROOM`. A unit costs more than all tie-breaks together, unless that would make
    it coarse, as with thousands of empty partitions among large ones.
    """
    largest = largest // _ROOM
    smallest = int(size_bytes[size_bytes > 0].min(initial=size_bytes.max(initial=0)))
    unit = max(1, min(smallest // _COST_RESOLUTION, int(size_bytes.max(initial=0)) * len(size_bytes) // _PLAIN_COSTS))
    while True:
        plain = size_bytes // unit
        tied = ((plain == 0) & ~is_new) | replaced.any(axis=1)
        scale, most = 1 + int(factors[tied].sum()), int(plain.max(initial=0))
        if scale * most > largest >= most and unit >= _COARSER * size_bytes.mean():
            scale = largest // most
        if scale * most <= largest:
            return unit, scale, plain * scale, tied.astype(np.int64)
        unit *= 2


@dataclass(frozen=True, eq=False)
class Network:
    """The flow's plain arcs in four runs, with the row or topic and the broker or group of each arc; and the supplies.

    keep: row and broker of each replica that could stay (or go to its replacement); enter: row and group;
    own: row and broker, for rows that could not be dealt different brokers; arrive: topic and broker.
    """

    layout: Layout
    keep: IntArray
    enter: IntArray
    own: IntArray
    arrive: IntArray

    @staticmethod
    def of(layout: Layout, own_rows: BoolArray) -> Network:
        """The network in which the rows of the mask have an arc to each broker instead of arcs to pools."""
        rows, slots = np.nonzero(layout.home >= 0)
        masks = (
            (layout.most[:, layout.group_racks] > 0) & ~own_rows[:, None],
            np.ones((layout.topic_count, len(layout.targets)), dtype=bool),
        )
        enter, arrive = (np.stack(np.nonzero(mask)).astype(np.int32) for mask in masks)
        keep = np.stack([rows, layout.home[rows, slots]]).astype(np.int32)
        return Network(layout, keep, enter, np.stack(layout.free_brokers(own_rows)), arrive)

    @property
    def supplies(self) -> LongArray:
        """The units that each node sends (+) or takes (-)."""
        layout, supplies = self.layout, np.zeros(self.layout.sink + 1, dtype=np.int64)
        supplies[: len(layout.rows)] = layout.factors
        supplies[layout.sink] = -int(layout.factors.sum())
        return supplies

    @property
    @lru_cache(maxsize=1)  # noqa: B019 - on purpose: a large cluster's take hundreds of megabytes
    def arcs(self) -> min_cost_flow.Arcs:
        """The arcs of the four runs, then those from rows to racks. Only the last network's arcs are kept in memory."""
        layout, (keep_rows, keep_brokers), (enter_rows, enter_groups) = self.layout, self.keep, self.enter
        (own_rows, own_brokers), (arrive_topics, arrive_brokers) = self.own, self.arrive
        enter_racks, (rows, racks) = layout.group_racks[enter_groups], np.nonzero(layout.needs_node)
        may_arrive = layout.topic_replicas[arrive_topics]
        if layout.forbidden is not None:
            may_arrive = np.where(layout.forbidden.ravel(), 0, may_arrive)
        return min_cost_flow.join(
            min_cost_flow.arcs(
                layout.rack_nodes[keep_rows, layout.racks[keep_brokers]],
                layout.cell(layout.topics[keep_rows], keep_brokers),
                1,
                layout.keep_costs[layout.home >= 0],
            ),
            min_cost_flow.arcs(
                layout.rack_nodes[enter_rows, enter_racks],
                layout.pool(layout.topics[enter_rows], enter_groups),
                np.minimum(layout.most[enter_rows, enter_racks], layout.group_sizes[enter_groups]),
                layout.enter_costs[enter_rows, enter_groups],
            ),
            min_cost_flow.arcs(
                layout.rack_nodes[own_rows, layout.racks[own_brokers]],
                layout.cell(layout.topics[own_rows], own_brokers),
                1,
                layout.enter_costs[own_rows, layout.groups[own_brokers]],
            ),
            min_cost_flow.arcs(
                layout.pool(arrive_topics, layout.groups[arrive_brokers]),
                layout.cell(arrive_topics, arrive_brokers),
                may_arrive,
                0,
            ),
            min_cost_flow.arcs(
                rows, layout.rack_nodes[rows, racks], layout.most[rows, racks], 0, layout.least[rows, racks]
            ),
        )

    def read(self, units: LongArray) -> tuple[IntArray, IntArray, IntArray]:
        """A flow's units (K,) as decided (row, broker) pairs, units entering (M, G), and units arriving (T, Bt)."""
        keep, enter, own, arrive, _ = np.split(units, self.ends)
        decided = np.concatenate([self.keep[:, keep > 0], self.own[:, own > 0]], axis=1)
        entered = np.zeros(self.layout.enter_costs.shape, dtype=np.int32)
        entered[*self.enter] = enter
        return decided.astype(np.int32), entered, arrive.reshape(self.layout.topic_count, -1).astype(np.int32)

    @cached_property
    def ends(self) -> IntArray:
        """(4,): where the runs of keep, enter, own and arrive arcs end among the plain arcs."""
        return np.cumsum([run.shape[1] for run in (self.keep, self.enter, self.own, self.arrive)])


def windowed(layout: Layout, windows: Windows) -> tuple[min_cost_flow.Windowed, min_cost_flow.Windowed]:
    """The windows of (topic, broker) and of brokers, minus the replicas of rows that may not move."""
    topic_bounds, broker_bounds = bounds(layout, windows)
    most = int(layout.factors.sum())
    caps = None if windows.caps is None else windows.caps[0, layout.order] - layout.fixed_cells.sum(axis=0)
    cells = np.arange(layout.first_cell, layout.first_broker, dtype=np.int32)
    brokers = np.arange(layout.first_broker, layout.sink, dtype=np.int32)
    return (
        min_cost_flow.window(
            cells, np.tile(brokers, layout.topic_count), topic_bounds.reshape(2, -1), most, TOPIC_PRICE
        ),
        min_cost_flow.window(brokers, np.full_like(brokers, layout.sink), broker_bounds, most, BROKER_PRICE, caps),
    )


def bounds(layout: Layout, windows: Windows) -> tuple[LongArray, LongArray]:
    """The windows that are left for the rows that may move: (2, T, Bt) per topic and (2, Bt) over all topics."""
    return (
        windows.topic_replicas[:, :, layout.order] - layout.fixed_cells,
        windows.replicas[:, layout.order] - layout.fixed_cells.sum(axis=0),
    )
