"""The optimum's flow on a smaller network: its arcs are replicas that leave or enter brokers, not all partitions.

If each row may keep every replica that can stay, the replicas that leave define a plan. A replica that leaves a broker
goes to the pool of its topic and rack, or through the topic's hub to the pool of another rack, and from there to a
broker. Replicas that are on no broker yet start at the hub. A topic's window on a broker limits the replicas that leave
and enter. So only the cheapest replicas that the window can spare get arcs, and neither partitions nor topics on
brokers need nodes. The network has a tenth of the arcs and a hundredth of the nodes, and the same optimum.

A pool doesn't know which row a replica belongs to, so the flow is a relaxation. Its optimum is exact if its entering
replicas can be assigned to rows again. The rack rule may forbid that, so among equal flows the one with the fewest
changes of rack is taken. Topics that still fail are laid out in full, as are topics with rows that can't keep all their
replicas.

Windows are hard limits here. If they can't all hold, there is no result, and the full network finds the least excess.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.model.problem import UNCAPPED, BoolArray, IntArray, LongArray, sums_at
from planner.strategies.flow import min_cost_flow
from planner.strategies.flow.placement_network import Layout, Network
from planner.strategies.work_limits import FEW_ROWS, MOST_IN_FULL


def solve(
    layout: Layout, network: Network, windows: tuple[min_cost_flow.Windowed, min_cost_flow.Windowed]
) -> min_cost_flow.Flow | None:
    """The cheapest flow of the full network within its windows of topics and of brokers.

    None if there is no flow, if a row's cost depends on which broker it enters, or if too little can be condensed. No
    row may have its own arcs to brokers (`Network.own`).
    """
    several_prices = len(layout.group_racks) > layout.most.shape[1] or np.ptp(layout.enter_costs, axis=1).any()
    if not len(layout.rows) or several_prices or not attainable(layout, windows[0]):
        return None
    in_racks = per_rack(layout, *np.nonzero(layout.home >= 0))
    # Topics in full: at first those with a row that can't keep all its replicas.
    missing = layout.factors - in_racks.sum(axis=1)
    too_few_left = np.maximum(layout.least - in_racks, 0).sum(axis=1) > missing
    full = np.zeros(layout.topic_count, dtype=bool)
    full[layout.topics[(in_racks > layout.most).any(axis=1) | too_few_left]] = True
    for most_in_full in MOST_IN_FULL:
        if np.count_nonzero(full[layout.topics]) > most_in_full * len(layout.rows):
            return None
        solved = Solved.of(layout, windows, in_racks, full)
        if solved is None:
            return None
        entered, failed = _dealt_to_rows(layout, solved, full)
        if not failed.any():
            return as_full_flow(layout, network, replace(solved, entered=entered))
        full |= failed
    return None


def attainable(layout: Layout, cells: min_cost_flow.Windowed) -> bool:
    """False if a topic's window on a broker asks for more replicas than could stay, and none may enter."""
    if layout.forbidden is None:
        return True
    is_reachable = cells.low.reshape(layout.forbidden.shape) <= layout.home_cells
    return bool(is_reachable[layout.forbidden].all())


def may_take(layout: Layout, spare: LongArray) -> tuple[LongArray, LongArray]:
    """How many replicas of a topic a broker must and may take (T, Bt), from how many it can spare (2, T, Bt)."""
    least, most = (-spare).clip(min=0)
    return least, most if layout.forbidden is None else np.where(layout.forbidden, 0, most)


def per_rack(layout: Layout, rows: IntArray, slots: IntArray) -> LongArray:
    """(M, R): how many of these replicas of today are in each rack."""
    return sums_at(layout.most.shape, (rows, layout.racks[layout.home[rows, slots]]))


@dataclass(frozen=True, eq=False)
class Solved:
    """A solved flow: which of today's replicas stay (M, W0), the replicas of each row that enter each group (M, G), and
    the replicas of each topic that arrive on each broker (T, Bt). Costs were rounded down by `shift` bits.
    """

    stays: BoolArray
    entered: IntArray
    arriving: IntArray
    shift: int

    @staticmethod
    def of(
        layout: Layout,
        windows: tuple[min_cost_flow.Windowed, min_cost_flow.Windowed],
        in_racks: LongArray,
        full: BoolArray,
    ) -> Solved | None:
        """The optimum of the network with these topics in full; None if the windows can't all hold."""
        nodes = Nodes(layout.topic_count, layout.most.shape[1], len(layout.targets))
        bounds = windows[0].bounds.reshape(2, nodes.topics, nodes.brokers)
        condensed = _CondensedArcs.of(layout, bounds, in_racks, full, nodes)
        in_full = TopicsInFull.of(layout, bounds, full, nodes)
        supplies = np.concatenate([condensed.supplies, in_full.supplies])
        supplies[nodes.sink] = -int(layout.factors.sum())
        brokers = nodes.broker(np.arange(nodes.brokers))
        in_all = replace(windows[1], tails=brokers, heads=np.full_like(brokers, nodes.sink))
        # A replica that changes racks costs 1 more; all these together cost less than the smallest difference of other
        # costs. Costs are rounded down by as many bits as this needs to fit the solver.
        factor, shift = condensed.crossings + 1, 0
        dearest = max(int(arcs.costs.max(initial=0)) for arcs in (condensed.leave, in_full.arcs))
        while (dearest >> shift) * factor > min_cost_flow.largest_cost(len(supplies)):
            shift += 1
        leave, plain = (replace(arcs, costs=(arcs.costs >> shift) * factor) for arcs in (condensed.leave, in_full.arcs))
        arcs = min_cost_flow.join(leave, condensed.take, condensed.cross, condensed.back, plain)
        solved = min_cost_flow.solve(arcs, (in_full.cells, in_all), supplies)
        if solved is None:
            return None
        leave_units, take_units, _ = np.split(
            solved.units, np.cumsum([len(condensed.leaving[0]), len(condensed.taking[0])])
        )
        stays, is_left = condensed.stays.copy(), leave_units > 0
        stays[condensed.leaving[0][is_left], condensed.leaving[1][is_left]] = False
        arriving = np.zeros((nodes.topics, nodes.brokers), dtype=np.int32)
        arriving[condensed.taking] = take_units
        result = Solved(stays, np.zeros(layout.enter_costs.shape, dtype=np.int32), arriving, shift)
        return in_full.added(result, solved.units)


@dataclass(frozen=True)
class Nodes:
    """Numbers of nodes: pools by (topic, rack), hubs by topic, brokers, the sink; then those of the rows in full."""

    topics: int
    racks: int
    brokers: int

    def pool(self, topics: IntArray, racks: IntArray) -> IntArray:
        """The pool of a topic's replicas that enter a rack."""
        return (topics * self.racks + racks).astype(np.int32)

    def hub(self, topics: IntArray) -> IntArray:
        """The hub of a topic's replicas that change racks or are on no broker yet."""
        return (self.topics * self.racks + topics).astype(np.int32)

    def broker(self, brokers: IntArray) -> IntArray:
        """A broker."""
        return (self.topics * (self.racks + 1) + brokers).astype(np.int32)

    @property
    def sink(self) -> int:
        """The node that takes every replica; only the nodes of the rows in full come after it."""
        return self.topics * (self.racks + 1) + self.brokers


@dataclass(frozen=True, eq=False)
class _CondensedArcs:
    """The condensed topics' arcs: `leave` of replicas that may leave (row, slot), `take` of (topic, broker) that may
    take more, `cross` from pools to hubs, and `back`. `stays` (M, W0) are all replicas that could stay. At most
    `crossings` replicas pay for changing racks.
    """

    leave: min_cost_flow.Arcs
    take: min_cost_flow.Arcs
    cross: min_cost_flow.Arcs
    back: min_cost_flow.Arcs
    leaving: tuple[IntArray, ...]
    taking: tuple[IntArray, ...]
    stays: BoolArray
    supplies: LongArray
    crossings: int

    @staticmethod
    def of(layout: Layout, bounds: LongArray, in_racks: LongArray, full: BoolArray, nodes: Nodes) -> _CondensedArcs:
        """The arcs of all topics that aren't in full, for windows (2, T, Bt)."""
        stays = (layout.home >= 0) & ~full[layout.topics][:, None]
        replicas = np.nonzero(stays)
        counts = sums_at((nodes.topics, nodes.brokers), (layout.topics[replicas[0]], layout.home[replicas]))
        spare = np.where(full[:, None], 0, counts - bounds)
        leaving, leave = _leaving_arcs(layout, replicas, spare, nodes)
        low, high = may_take(layout, spare)
        taking = np.nonzero(high)
        pools = nodes.pool(taking[0], layout.racks[taking[1]])
        take = min_cost_flow.arcs(pools, nodes.broker(taking[1]), high[taking], 0, low[taking])
        missing = np.where(full[layout.topics], 0, layout.factors - in_racks.sum(axis=1))
        supplies = sums_at(nodes.sink + 1, nodes.hub(layout.topics), missing)
        supplies[nodes.broker(np.arange(nodes.brokers))] = counts.sum(axis=0)
        cross, back, few_rows = _through_hubs(layout, in_racks, full, nodes)
        crossings = int(few_rows[layout.topics[leaving[0]]].sum() + missing[few_rows[layout.topics]].sum())
        return _CondensedArcs(leave, take, cross, back, leaving, taking, stays, supplies, crossings)


def _leaving_arcs(
    layout: Layout, replicas: tuple[IntArray, ...], spare: LongArray, nodes: Nodes
) -> tuple[tuple[IntArray, ...], min_cost_flow.Arcs]:
    """The arcs of replicas that may leave: the cheapest that windows can spare; replicas above windows must leave."""
    rows, brokers = replicas[0], layout.home[replicas]
    costs = layout.enter_costs[rows, 0] - layout.keep_costs[replicas]
    cells = layout.topics[rows].astype(np.int64) * nodes.brokers + brokers
    order = np.lexsort((costs, cells))
    cells = cells[order]
    rank = np.arange(len(cells)) - np.searchsorted(cells, cells)
    most, must = (each.ravel()[cells] for each in spare)
    chosen = order[rank < most]
    heads = nodes.pool(layout.topics[rows[chosen]], layout.racks[brokers[chosen]])
    low = (rank < must)[rank < most]
    leave = min_cost_flow.arcs(nodes.broker(brokers[chosen]), heads, 1, costs[chosen], low.astype(np.int64))
    return tuple(axis[chosen] for axis in replicas), leave


def _through_hubs(
    layout: Layout, in_racks: LongArray, full: BoolArray, nodes: Nodes
) -> tuple[min_cost_flow.Arcs, min_cost_flow.Arcs, BoolArray]:
    """Arcs from pools to hubs and back, limited by what the rows may lose in one rack and have room for in another.

    The arc to a hub costs 1 for topics with few rows, which are the third result (T,).
    """
    topics, racks = np.nonzero(np.broadcast_to(~full[:, None], (nodes.topics, nodes.racks)))
    pools, hubs = nodes.pool(topics, racks), nodes.hub(topics)
    out, into = (
        topic_sums(layout.topics, room.clip(min=0), nodes.topics)[topics, racks]
        for room in (in_racks - layout.least, layout.most - in_racks)
    )
    few_rows = np.bincount(layout.topics, minlength=nodes.topics) <= FEW_ROWS
    return (
        min_cost_flow.arcs(pools, hubs, out, few_rows[topics].astype(np.int64)),
        min_cost_flow.arcs(hubs, pools, into, 0),
        few_rows,
    )


def topic_sums(topics: IntArray, values: LongArray, count: int) -> LongArray:
    """(count, R): sums of the values (K, R) of rows by the rows' topics (K,)."""
    return sums_at((count, values.shape[1]), topics, values)


@dataclass(frozen=True, eq=False)
class TopicsInFull:
    """The topics in full: the layout and network of their `rows`. `used` are the network's arcs that don't belong to
    other topics; `arcs`, `cells` and `supplies` use the node numbers of the whole network.
    """

    layout: Layout
    network: Network
    rows: IntArray
    used: IntArray
    arcs: min_cost_flow.Arcs
    cells: min_cost_flow.Windowed
    supplies: LongArray

    @staticmethod
    def of(layout: Layout, bounds: LongArray, full: BoolArray, nodes: Nodes) -> TopicsInFull:
        """The network of these topics; its pools and brokers are those of the whole network."""
        rows = np.flatnonzero(full[layout.topics])
        part = layout.part(rows)
        network = Network.of(part, np.zeros(len(rows), dtype=bool))
        topics, brokers = np.flatnonzero(full), np.arange(nodes.brokers)
        numbers = _renumbered(part, topics, nodes)
        plain = network.arcs
        used = np.flatnonzero((numbers[plain.tails] >= 0) & (numbers[plain.heads] >= 0))
        tails, heads = numbers[plain.tails[used]], numbers[plain.heads[used]]
        arcs = min_cost_flow.Arcs(tails, heads, plain.capacities[used], plain.costs[used], plain.lows[used])
        cells = numbers[part.cell(topics[:, None], brokers)].ravel()
        heads = np.tile(nodes.broker(brokers), len(topics))
        low, high = bounds[:, full].reshape(2, -1)
        zeros, uncapped = np.zeros_like(low), np.full_like(low, UNCAPPED)
        supplies = np.zeros(part.first_pool + len(cells), dtype=np.int64)
        supplies[: len(rows)] = part.factors
        windowed = min_cost_flow.Windowed(cells, heads, low, high, zeros, zeros, 1, uncapped)
        return TopicsInFull(part, network, rows, used, arcs, windowed, supplies)

    def added(self, solved: Solved, units: LongArray) -> Solved:
        """The condensed topics' solution, completed by that of these topics, whose arcs are the last of `units`."""
        all_units = np.zeros(len(self.network.arcs.tails), dtype=np.int64)
        all_units[self.used] = units[len(units) - len(self.used) :]
        decided, entered_here, arriving = self.network.read(all_units)
        entered, stays = solved.entered.copy(), solved.stays.copy()
        entered[self.rows] = entered_here
        rows, slots = np.nonzero(self.layout.home >= 0)
        width = len(self.layout.targets)
        homes = rows.astype(np.int64) * width + self.layout.home[rows, slots]
        stays[self.rows[rows], slots] = np.isin(homes, decided[0].astype(np.int64) * width + decided[1])
        return replace(solved, stays=stays, entered=entered, arriving=solved.arriving + arriving)


def _renumbered(part: Layout, topics: IntArray, nodes: Nodes) -> IntArray:
    """The number in the whole network of each node of a part; -1: a (topic, broker) whose topic isn't in the part."""
    first = nodes.sink + 1
    numbers = np.full(part.sink + 1, -1, dtype=np.int32)
    numbers[: part.first_pool] = first + np.arange(part.first_pool)
    numbers[part.first_pool : part.first_cell] = np.arange(nodes.topics * nodes.racks)
    cells = np.arange(len(topics) * nodes.brokers).reshape(len(topics), nodes.brokers)
    numbers[part.cell(topics[:, None], np.arange(nodes.brokers))] = first + part.first_pool + cells
    numbers[part.first_broker : part.sink] = nodes.broker(np.arange(nodes.brokers))
    numbers[part.sink] = nodes.sink
    return numbers


def _dealt_to_rows(layout: Layout, solved: Solved, full: BoolArray) -> tuple[IntArray, BoolArray]:
    """Each row's entering replicas per rack (M, R); the topics (T,) with some that the rack rule lets no row take.

    A flow assigns them, from the condensed rows to those pools of their topics in whose racks the rows have room.
    """
    in_racks = per_rack(layout, *np.nonzero(solved.stays))
    missing = np.where(full[layout.topics], 0, layout.factors - in_racks.sum(axis=1))
    movers = np.flatnonzero(missing)
    topics = layout.topics[movers]
    certain = np.maximum(layout.least[movers] - in_racks[movers], 0)
    room = np.maximum(layout.most[movers] - in_racks[movers], 0) - certain
    arrivals = sums_at((layout.most.shape[1], layout.topic_count), layout.racks, solved.arriving.T).T
    arrivals[full] = 0
    open_arrivals = arrivals - topic_sums(topics, certain, len(arrivals))
    dealt = dealt_to_racks(topics, missing[movers] - certain.sum(axis=1), room, open_arrivals)
    entered = solved.entered.copy()
    entered[movers] = certain + dealt
    return entered, (topic_sums(topics, dealt, len(arrivals)) != open_arrivals).any(axis=1)


def dealt_to_racks(topics: IntArray, units: LongArray, room: LongArray, arrivals: LongArray) -> LongArray:
    """(K, R): `units` (K,) dealt to racks with `room` (K, R), within `arrivals` (T, R) unless they need all room."""
    if (room.sum(axis=1) == units).all():
        return room
    dealt, (rows, racks) = np.zeros(room.shape, dtype=np.int64), np.nonzero(room)
    pools = topics[rows] * room.shape[1] + racks
    dealt[rows, racks] = min_cost_flow.largest_flow(units, (rows, pools, room[rows, racks]), arrivals.ravel())
    return dealt


def as_full_flow(layout: Layout, network: Network, solved: Solved) -> min_cost_flow.Flow:
    """The solution as a flow of the full network, whose arcs are: keep, enter, arrive, racks; there are no own arcs."""
    in_racks = per_rack(layout, *np.nonzero(solved.stays))
    np.add.at(in_racks.T, layout.group_racks, solved.entered.T)
    units = np.concatenate(
        [
            solved.stays[layout.home >= 0],
            solved.entered[network.enter[0], network.enter[1]],
            solved.arriving.ravel(),
            in_racks[layout.needs_node],
        ]
    ).astype(np.int64)
    rows, slots = np.nonzero(solved.stays)
    cells = solved.arriving + sums_at(solved.arriving.shape, (layout.topics[rows], layout.home[rows, slots]))
    costs = np.concatenate(
        [layout.keep_costs[layout.home >= 0], layout.enter_costs[network.enter[0], network.enter[1]]]
    )
    cost = int((units[: len(costs)] * (costs >> solved.shift)).sum()) << solved.shift
    return min_cost_flow.Flow(units, cost, 0, (cells.ravel(), cells.sum(axis=0)), solved.shift)
