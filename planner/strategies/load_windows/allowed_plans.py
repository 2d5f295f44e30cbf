"""The plans that a bound is for: the starts that windows of replicas may have, and how far outside plans may be.

Brokers that differ by no more than a spread are within a window of that width, but it may begin anywhere. If windows
can't all hold, plans may be as far outside of them as one known plan is, in the terms of `window_excess`.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from planner.model.balance import Balance, Tolerance
from planner.model.problem import BoolArray, IntArray, LongArray, Problem, sums_at
from planner.scoring.fair_shares import Shares, disk_weights, fair_shares
from planner.scoring.window_excess import BROKER_PRICE, TOPIC_PRICE, Allowed, CountWindows, Loads, excess
from planner.scoring.windows import Windows, alike, starts
from planner.strategies import lagrangian_bound
from planner.strategies.flow.placement_network import Layout
from planner.strategies.lagrangian_bound import Certificate, Outside, Part, Prices, Starting, changed
from planner.strategies.load_windows.byte_loads import ByteLoads


@dataclass(frozen=True, eq=False)
class Begins:
    """The windows (K,) that may begin anywhere, the first and the last start (K,) of each, and their width."""

    open: BoolArray
    first: LongArray
    last: LongArray
    spread: int

    def widened(self, window: LongArray) -> LongArray:
        """Windows (2, K, Bt) that contain the windows at all starts."""
        low, high = np.minimum(window[0], self.first[:, None]), np.maximum(window[1], self.last[:, None] + self.spread)
        return np.where(self.open[:, None], np.stack([low, high]), window)


@dataclass(frozen=True, eq=False)
class OpenWindows:
    """The open windows of topics (T) and of all replicas (1), and the starts of the latter to be tried one by one.

    `lows` is empty if that window isn't open, or isn't the same for all brokers.
    """

    topics: Begins
    replicas: Begins
    lows: range

    @property
    def any(self) -> bool:
        """True if some window is open."""
        return bool(self.topics.open.any() or self.replicas.open.any())

    def widened(self, wanted: Windows) -> Windows:
        """The windows, wide enough for all starts, except the starts that are tried one by one."""
        replicas = wanted.replicas if self.lows else self.replicas.widened(wanted.replicas[:, None])[:, 0]
        return replace(wanted, topic_replicas=self.topics.widened(wanted.topic_replicas), replicas=replicas)


def open_windows(problem: Problem, balance: Balance, layout: Layout, wanted: Windows) -> OpenWindows:
    """The windows that a balance leaves open on this problem."""
    fair, same_disks = fair_shares(problem), bool(np.ptp(disk_weights(problem)) == 0)
    held = layout.fixed_cells.sum(axis=1) + layout.topic_replicas
    topics = _begins(fair.topic_replicas, balance.topic_replicas, wanted.topic_replicas, same_disks, held)
    if problem.open_targets is not None:
        topics = replace(topics, open=topics.open & problem.open_targets.all(axis=1))
    window = wanted.replicas[:, None]
    replicas = _begins(fair.replicas, balance.replicas, window, same_disks, held.sum(keepdims=True))
    if wanted.caps is not None and wanted.caps[0].min() < replicas.last[0] + replicas.spread:
        # A window that a cap cuts has no other start.
        replicas = replace(replicas, open=np.zeros_like(replicas.open))
    lows = range(int(replicas.first[0]), int(replicas.last[0]) + 1)
    by_start = replicas.open[0] and alike(window)[0] and len(lows) > 1
    return OpenWindows(topics, replicas, lows if by_start else range(0))


def _begins(fair: Shares, tolerance: Tolerance, window: LongArray, same_disks: bool, held: LongArray) -> Begins:
    """The starts of windows (2, K, Bt), for brokers that together hold `held` (K,).

    Shares that differ by more than the spread can't be brought within it: then only the window around each one counts.
    """
    if tolerance.kind != "spread" or tolerance.value < 2:
        closed = np.zeros(len(held), dtype=np.int64)
        return Begins(closed > 0, closed, closed, 0)
    spread, brokers = int(tolerance.value), window.shape[2]
    floor, ceil = fair.count // fair.parts, -(-fair.count // fair.parts)
    within = (floor.max(axis=1) - ceil.min(axis=1) <= spread) & same_disks
    return Begins(within | alike(window), np.maximum(-(-held // brokers) - spread, 0), held // brokers, spread)


def excess_and_cost_of_topics(layout: Layout, wanted: Windows, chosen: IntArray) -> tuple[LongArray, LongArray]:
    """(T,) twice: each topic's weight outside its windows, and its cost, for rows of replicas (M, W) as brokers of the
    problem.
    """
    at = layout.numbered(chosen)
    cells = layout.fixed_cells + _cells(layout, at)
    stays = (at[:, :, None] == layout.home[:, None, :]) & (at >= 0)[:, :, None]
    entering = layout.enter_costs[np.arange(len(at))[:, None], layout.groups[at]]
    costs = np.where(stays.any(axis=2), (stays * layout.keep_costs[:, None, :]).sum(axis=2), entering)
    total = sums_at(layout.topic_count, layout.topics, np.where(at >= 0, costs, 0).sum(axis=1))
    return excess(wanted.topic_replicas[:, :, layout.order], cells, TOPIC_PRICE), total


def _cells(layout: Layout, at: IntArray) -> LongArray:
    """(T, Bt): the number of replicas, for rows (M, W) of brokers of the flow."""
    rows, slots = np.nonzero(at >= 0)
    return sums_at((layout.topic_count, len(layout.targets)), (layout.topics[rows], at[rows, slots]))


def closed(problem: Problem, balance: Balance, topics: int) -> OpenWindows:
    """No open windows, except that of all replicas if a spread of one leaves it two starts."""
    lows = starts(problem, balance.replicas)
    ends = np.array([lows[0]]) if lows else np.zeros(1, dtype=np.int64), np.array([lows[-1] if lows else 0])
    spread = int(balance.replicas.value) if lows else 0
    none = np.zeros(topics, dtype=np.int64)
    return OpenWindows(Begins(none > 0, none, none, 0), Begins(np.array([len(lows) > 1]), *ends, spread), range(0))


def allowed(layout: Layout, wanted: Windows, anywhere: OpenWindows, loads: ByteLoads) -> Allowed:
    """The windows asked for, with nothing allowed outside of them yet."""
    fixed, movable = layout.fixed_cells, layout.topic_replicas
    in_all = fixed.sum(axis=0, keepdims=True), movable.sum(keepdims=True)
    by_topic, by_broker = wanted.topic_replicas[:, :, layout.order], wanted.replicas[:, None, layout.order]
    return Allowed(
        CountWindows(by_topic, fixed, movable, TOPIC_PRICE, **vars(anywhere.topics)),
        CountWindows(by_broker, *in_all, BROKER_PRICE, **vars(anywhere.replicas)),
        Loads(loads.windows, loads.scales),
        furthest=np.zeros(len(loads.scales), dtype=np.int64),
    )


def reached(layout: Layout, none: Allowed, loads: ByteLoads, chosen: IntArray) -> Allowed:
    """The windows, with as much allowed outside as rows of replicas (M, W), as brokers of the problem, are."""
    at = layout.numbered(chosen)
    return none.reached(_cells(layout, at), loads.held(at))


def within(certificate: Certificate, most: Allowed) -> Certificate:
    """The certificate for all plans that are no further outside than `most`, at the best prices of units outside.

    Only parts of all racks are kept. Nothing proves yet how far outside every plan is.
    """
    every, there = set(lagrangian_bound.every_rack(certificate.facts)), most.beginning(certificate.lows)
    kept = (part for part in certificate.parts if set(part.racks) == every)
    parts = tuple(Part(part.racks, changed(part.case, partial(_priced, most=there))) for part in kept)
    nothing = (Starting(lagrangian_bound.none_priced(certificate.facts)),)
    outside = Outside(most, nothing, nothing, (), np.zeros(0, dtype=np.int64))
    others = tuple(replace(within(other, most), outside=None) for other in certificate.others)
    prices = _priced(certificate.prices, there)
    return Certificate(certificate.facts, prices, parts, others, outside, certificate.lows)


def at_price(prices: Prices, most: Allowed) -> Prices:
    """Prices of loads, cut to the price of a unit outside, which is 1; replicas outside have their best price."""
    clipped = tuple(
        np.stack([table[0], table[1].clip(-scale * prices.grain, scale * prices.grain), table[2]])
        for table, scale in zip(prices.loads, most.windows.scales.tolist(), strict=True)
    )
    gentle = replace(prices, loads=clipped)
    return replace(gentle, of_replicas=most.prices(gentle.tables)[0], of_loads=prices.grain)


def _priced(prices: Prices, most: Allowed) -> Prices:
    """The prices with the best prices of units outside."""
    of_replicas, of_loads = most.prices(prices.tables)
    return replace(prices, of_replicas=of_replicas, of_loads=of_loads)
