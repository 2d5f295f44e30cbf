"""The condensed network for priced loads if brokers have only a few different prices, for example empty new brokers.

A row's cost depends on the price of the broker that it enters. So each (topic, broker) has a node, from which its
replicas leave by arcs to the pools of each price. Replicas of equal cost share an arc. All else is as in
`condensed_network`, and as exact: the flow is a relaxation, and its optimum is exact if its entering replicas can be
assigned to rows again. Topics for which that fails are laid out in full. So are topics with rows that lack replicas, or
that have some on brokers which are cheaper to enter than others.

For 50,000 rows on 90 brokers this takes 2 s of CPU; the full network takes 12 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from planner.model.problem import BoolArray, IntArray, LongArray
from planner.strategies.flow import min_cost_flow
from planner.strategies.flow.condensed_network import (
    Nodes,
    Solved,
    TopicsInFull,
    as_full_flow,
    attainable,
    dealt_to_racks,
    may_take,
    per_rack,
    topic_sums,
)
from planner.strategies.flow.placement_network import Layout, Network
from planner.strategies.work_limits import (
    CONDENSED_ROWS,
    LARGE_PLACEMENT,
    MOST_IN_FULL,
    PRICE_CLASSES,
)


@dataclass(frozen=True, eq=False)
class _PriceClasses:
    """The C prices of brokers, the dearest to enter first.

    of_group (G,) price of each group · sample (C,) a group of each · groups (R, C) each rack's group of each, -1: none
    """

    of_group: IntArray
    sample: IntArray
    groups: IntArray

    @staticmethod
    def of(layout: Layout) -> _PriceClasses | None:
        """The prices of a layout; None if there are more than PRICE_CLASSES."""
        sample: list[int] = []
        of_group = np.zeros(len(layout.group_racks), dtype=np.int64)
        for group, column in enumerate(layout.enter_costs.T):
            known = [at for at, other in enumerate(sample) if np.array_equal(column, layout.enter_costs[:, other])]
            if not known and len(sample) == PRICE_CLASSES:
                return None
            of_group[group] = known[0] if known else len(sample)
            sample += [] if known else [group]
        dearest = np.argsort(-layout.enter_costs[:, sample].sum(axis=0), kind="stable")
        of_group = np.argsort(dearest)[of_group]
        groups = np.full((layout.most.shape[1], len(sample)), -1, dtype=np.int64)
        groups[layout.group_racks, of_group] = np.arange(len(of_group))
        return _PriceClasses(of_group, np.array(sample)[dearest], groups)


@dataclass(frozen=True, eq=False)
class _Leaving:
    """The replicas that may leave for brokers of one price: K replicas by (topic, broker) and cost, and their N arcs.

    indices (K,) places among the condensed replicas · arc_of (K,) number of each one's arc
    cells, capacities, costs (N,) of the arcs; `_leaving_arcs` drops those without capacity
    """

    indices: IntArray
    arc_of: IntArray
    cells: LongArray
    capacities: LongArray
    costs: LongArray

    @staticmethod
    def of(cells: LongArray, costs: LongArray, turns: IntArray, spare: LongArray) -> _Leaving:
        """Replicas (K,) by cell. As many as a cell can spare may leave, the cheapest first; `turns` breaks ties."""
        order = np.lexsort((turns, costs, cells))
        cells, costs = cells[order], costs[order]
        rank = np.arange(len(cells)) - np.searchsorted(cells, cells)
        first = (np.diff(cells, prepend=-1) != 0) | (np.diff(costs, prepend=-1) != 0)
        arc_of = np.cumsum(first) - 1
        capacities = np.bincount(arc_of[rank < spare[cells]], minlength=int(first.sum()))
        return _Leaving(order, arc_of, cells[first], capacities, costs[first])

    def chosen(self, units: LongArray, used: BoolArray) -> tuple[IntArray, BoolArray]:
        """The unused replicas that leave, as many as `units` (N,) says; and the arcs (N,) that have too few."""
        is_used = used[self.indices]
        order = np.lexsort((is_used, self.arc_of))
        rank = np.arange(len(order)) - np.searchsorted(self.arc_of, self.arc_of)
        leaves = (rank < units[self.arc_of]) & ~is_used[order]
        counts = np.bincount(self.arc_of[leaves], minlength=len(units))
        return self.indices[order[leaves]], counts < units


def solve(
    layout: Layout, network: Network, windows: tuple[min_cost_flow.Windowed, min_cost_flow.Windowed]
) -> min_cost_flow.Flow | None:
    """The cheapest flow of the full network within its windows of topics and of brokers.

    None if there is no flow, on small and on vast clusters, if there are too many prices, if too little can be
    condensed, or if some topic still fails after CONDENSED_ROUNDS. No row may have its own arcs to brokers
    (`Network.own`).
    """
    small, vast = len(layout.rows) * len(layout.targets) <= LARGE_PLACEMENT, len(layout.rows) > CONDENSED_ROWS
    if small or vast or not attainable(layout, windows[0]) or (classes := _PriceClasses.of(layout)) is None:
        return None
    in_racks = per_rack(layout, *np.nonzero(layout.home >= 0))
    full = np.zeros(layout.topic_count, dtype=bool)
    home = layout.home >= 0
    elsewhere = (classes.of_group[layout.groups[layout.home]] > 0) & home
    gains = (layout.enter_costs[:, classes.sample].min(axis=1)[:, None] < layout.keep_costs) & home
    # Rows that lack replicas, have too many or few in a rack, or for which another broker is cheaper than their own.
    unlike = (
        (in_racks.sum(axis=1) != layout.factors)
        | (in_racks > layout.most).any(axis=1)
        | (in_racks < layout.least).any(axis=1)
    )
    full[layout.topics[unlike | (elsewhere | gains).any(axis=1)]] = True
    for most_in_full in MOST_IN_FULL:
        if np.count_nonzero(full[layout.topics]) > most_in_full * len(layout.rows):
            return None
        solved = _Condensed(layout, windows, classes, in_racks, full).solved()
        if solved is None:
            return None
        condensed, failed = solved
        if not failed.any():
            return as_full_flow(layout, network, condensed)
        full |= failed
    return None


class _Condensed:
    """The condensed network with the topics `full` (T,) laid out in full."""

    def __init__(
        self,
        layout: Layout,
        windows: tuple[min_cost_flow.Windowed, min_cost_flow.Windowed],
        classes: _PriceClasses,
        in_racks: LongArray,
        full: BoolArray,
    ) -> None:
        self._layout, self._classes, self._in_racks, self._full = layout, classes, in_racks, full
        self._nodes = nodes = Nodes(layout.topic_count, len(layout.group_racks), len(layout.targets))
        bounds = windows[0].bounds.reshape(2, nodes.topics, nodes.brokers)
        self._in_full = TopicsInFull.of(layout, bounds, full, nodes)
        self._in_all = windows[1]
        stays = (layout.home >= 0) & ~full[layout.topics][:, None]
        self._replicas = np.nonzero(stays)
        self._cells = layout.topics[self._replicas[0]].astype(np.int64) * nodes.brokers + layout.home[self._replicas]
        counts = np.bincount(self._cells, minlength=nodes.topics * nodes.brokers).reshape(nodes.topics, nodes.brokers)
        # What each (topic, broker) can spare and must give away; below 0: what it must and may take.
        self._counts, self._spare = counts, np.where(full[:, None], 0, counts - bounds)
        self._stays = stays

    def solved(self) -> tuple[Solved, BoolArray] | None:
        """The solution, and topics (T,) whose entering replicas don't fit the rows; None if there is no flow."""
        nodes, layout = self._nodes, self._layout
        spare, must = (each.ravel().clip(min=0) for each in self._spare)
        leaving = list(self._leaving(spare))
        sending = np.flatnonzero(spare)
        first_cell = nodes.sink + 1 + len(self._in_full.supplies)
        cell_nodes = np.zeros(spare.size, dtype=np.int64)
        cell_nodes[sending] = first_cell + np.arange(len(sending))
        first_hub = first_cell + len(sending)
        brokers = nodes.broker(np.arange(nodes.brokers))
        send = min_cost_flow.arcs(
            brokers[sending % nodes.brokers], cell_nodes[sending], spare[sending], 0, must[sending]
        )
        leave = [self._leaving_arcs(each, price, cell_nodes, first_hub) for price, each in enumerate(leaving)]
        low, high = may_take(layout, self._spare)
        taking = np.nonzero(high)
        pools = nodes.pool(taking[0], layout.groups[taking[1]])
        take = min_cost_flow.arcs(pools, nodes.broker(taking[1]), high[taking], 0, low[taking])
        across, back = self._through_hubs(first_hub)
        plain = min_cost_flow.join(*leave, send, take)
        supplies = np.zeros(first_hub + nodes.topics * len(self._classes.sample), dtype=np.int64)
        supplies[brokers] = self._counts.sum(axis=0)
        supplies[nodes.sink + 1 : first_cell] = self._in_full.supplies
        supplies[nodes.sink] = -int(layout.factors.sum())
        # A replica that changes racks costs 1 more; all these together cost less than the smallest difference of other
        # costs. At most prices, costs are multiples of a power of two: rounding down by its bits is exact.
        costs = np.concatenate([plain.costs, self._in_full.arcs.costs])
        cost_bits, factor = int(np.bitwise_or.reduce(costs, initial=0)), int(spare[sending].sum()) + 1
        shift = max((cost_bits & -cost_bits).bit_length() - 1, 0)
        while (int(costs.max(initial=0)) >> shift) * factor > min_cost_flow.largest_cost(len(supplies)):
            shift += 1
        plain, large = (replace(arcs, costs=(arcs.costs >> shift) * factor) for arcs in (plain, self._in_full.arcs))
        arcs = min_cost_flow.join(plain, across, back, large)
        in_all = replace(self._in_all, tails=brokers, heads=np.full_like(brokers, nodes.sink))
        flow = min_cost_flow.solve(arcs, (self._in_full.cells, in_all), supplies)
        if flow is None:
            return None
        sizes = [*(len(each.tails) for each in leave), len(send.tails), len(take.tails)]
        *leaving_units, _, taken_units, _ = np.split(flow.units, np.cumsum(sizes))
        return self._read_flow(flow.units, leaving, leaving_units, (taking, taken_units), shift)

    def _leaving(self, spare: LongArray) -> Iterator[_Leaving]:
        """The replicas that may leave for brokers of each price."""
        rows, slots = self._replicas
        keep = self._layout.keep_costs[rows, slots]
        # Each row starts with a different slot; otherwise tied rows would lose all their replicas.
        turns = (slots - rows) % self._layout.home.shape[1]
        for group in self._classes.sample.tolist():
            yield _Leaving.of(self._cells, self._layout.enter_costs[rows, group] - keep, turns, spare)

    def _leaving_arcs(self, leaving: _Leaving, price: int, cell_nodes: LongArray, first_hub: int) -> min_cost_flow.Arcs:
        """Arcs to the pool of a price in the broker's rack, or to the price's hub if that rack has no such brokers."""
        used = np.flatnonzero(leaving.capacities)
        topics, brokers = np.divmod(leaving.cells[used], self._nodes.brokers)
        groups = self._classes.groups[self._layout.racks[brokers], price]
        hubs = first_hub + topics * len(self._classes.sample) + price
        heads = np.where(groups >= 0, self._nodes.pool(topics, groups), hubs)
        return min_cost_flow.arcs(cell_nodes[leaving.cells[used]], heads, leaving.capacities[used], leaving.costs[used])

    def _through_hubs(self, first_hub: int) -> tuple[min_cost_flow.Arcs, min_cost_flow.Arcs]:
        """Between a topic's racks at a price: at most what rows may lose in one and have room for in the other."""
        layout, nodes = self._layout, self._nodes
        topics, groups = np.nonzero(np.broadcast_to(~self._full[:, None], (nodes.topics, nodes.racks)))
        pools = nodes.pool(topics, groups)
        hubs = first_hub + topics * len(self._classes.sample) + self._classes.of_group[groups]
        out, into = (
            topic_sums(layout.topics, room.clip(min=0), nodes.topics)[topics, layout.group_racks[groups]]
            for room in (self._in_racks - layout.least, layout.most - self._in_racks)
        )
        return min_cost_flow.arcs(pools, hubs, out, 1), min_cost_flow.arcs(hubs, pools, into, 0)

    def _read_flow(
        self,
        units: LongArray,
        leaving: list[_Leaving],
        leaving_units: list[LongArray],
        taken: tuple[tuple[IntArray, ...], LongArray],
        shift: int,
    ) -> tuple[Solved, BoolArray]:
        layout, nodes, in_full = self._layout, self._nodes, self._in_full
        used, failed = np.zeros(len(self._cells), dtype=bool), np.zeros(nodes.topics, dtype=bool)
        newcomers = np.zeros((len(layout.rows), len(leaving)), dtype=np.int64)
        for price, (each, units_left) in enumerate(zip(leaving, leaving_units, strict=True)):
            leave_counts = np.zeros(len(each.cells), dtype=np.int64)
            leave_counts[each.capacities > 0] = units_left
            chosen, short = each.chosen(leave_counts, used)
            failed[each.cells[short] // nodes.brokers] = True
            used[chosen] = True
            np.add.at(newcomers[:, price], self._replicas[0][chosen], 1)
        stays = self._stays.copy()
        stays[self._replicas[0][used], self._replicas[1][used]] = False
        arriving = np.zeros((nodes.topics, nodes.brokers), dtype=np.int32)
        arriving[taken[0]] = taken[1]
        condensed = Solved(stays, np.zeros(layout.enter_costs.shape, dtype=np.int32), arriving, shift)
        entered, lacking = self._dealt_to_rows(condensed, newcomers)
        return in_full.added(replace(condensed, entered=entered), units), failed | lacking

    def _dealt_to_rows(self, solved: Solved, newcomers: LongArray) -> tuple[IntArray, BoolArray]:
        """Each row's entering replicas per group (M, G); topics (T,) with some that the rack rule lets no row take."""
        layout, classes = self._layout, self._classes
        in_racks, count = per_rack(layout, *np.nonzero(solved.stays)), len(classes.sample)
        rows, prices = np.nonzero(newcomers)
        keys = layout.topics[rows].astype(np.int64) * count + prices
        # Arrivals by (topic, price) and by rack.
        arrivals = np.zeros((layout.topic_count, count * layout.most.shape[1]), dtype=np.int64)
        places = classes.of_group[layout.groups] * layout.most.shape[1] + layout.racks
        np.add.at(arrivals.T, places, solved.arriving.T)
        arrivals = arrivals.reshape(layout.topic_count * count, -1)
        room = np.where(classes.groups.T[prices] >= 0, (layout.most - in_racks).clip(min=0)[rows], 0)
        dealt = dealt_to_racks(keys, newcomers[rows, prices], room, arrivals)
        lacking = (topic_sums(keys, dealt, len(arrivals)) != arrivals).any(axis=1).reshape(-1, count).any(axis=1)
        entered = solved.entered.copy()
        at_rows, racks = np.nonzero(dealt)
        entered[rows[at_rows], classes.groups[racks, prices[at_rows]]] += dealt[at_rows, racks].astype(np.int32)
        rack_counts = in_racks + topic_sums(rows, dealt, len(in_racks))
        wrong = ~self._full[layout.topics] & ((rack_counts > layout.most) | (rack_counts < layout.least)).any(axis=1)
        lacking[layout.topics[wrong]] = True
        return entered, lacking
