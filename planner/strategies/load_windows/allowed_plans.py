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
from planner.scoring.windows import Windows, equal_for_all, starts
from planner.strategies import lagrangian_bound
from planner.strategies.flow.placement_network import Layout
from planner.strategies.lagrangian_bound import Certificate, Outside, Part, Prices, StartCase, changed
from planner.strategies.load_windows.byte_loads import ByteLoads


@dataclass(frozen=True, eq=False)
class Starts:
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

    topics: Starts
    replicas: Starts
    lows: range

    @property
    def any(self) -> bool:
        """True if some window is open."""
        return bool(self.topics.open.any() or self.replicas.open.any())

    def widened(self, windows: Windows) -> Windows:
        """The windows, wide enough for all starts, except the starts that are tried one by one."""
        replicas = windows.replicas if self.lows else self.replicas.widened(windows.replicas[:, None])[:, 0]
        return replace(windows, topic_replicas=self.topics.widened(windows.topic_replicas), replicas=replicas)


def open_windows(problem: Problem, balance: Balance, layout: Layout, windows: Windows) -> OpenWindows:
    """The windows that a balance leaves open on this problem."""
    fair, same_disks = fair_shares(problem), bool(np.ptp(disk_weights(problem)) == 0)
    counts = layout.fixed_cells.sum(axis=1) + layout.topic_replicas
    topics = _starts_of(fair.topic_replicas, balance.topic_replicas, windows.topic_replicas, same_disks, counts)
    if problem.open_targets is not None:
        topics = replace(topics, open=topics.open & problem.open_targets.all(axis=1))
    window = windows.replicas[:, None]
    replicas = _starts_of(fair.replicas, balance.replicas, window, same_disks, counts.sum(keepdims=True))
    if windows.caps is not None and windows.caps[0].min() < replicas.last[0] + replicas.spread:
        # A window that a cap cuts has no other start.
        replicas = replace(replicas, open=np.zeros_like(replicas.open))
    lows = range(int(replicas.first[0]), int(replicas.last[0]) + 1)
    by_start = replicas.open[0] and equal_for_all(window)[0] and len(lows) > 1
    return OpenWindows(topics, replicas, lows if by_start else range(0))


def _starts_of(fair: Shares, tolerance: Tolerance, window: LongArray, same_disks: bool, counts: LongArray) -> Starts:
    """The starts of windows (2, K, Bt), for brokers that together hold `counts` (K,).

    Shares that differ by more than the spread can't be brought within it: then only the window around each one counts.
    """
    if tolerance.kind != "spread" or tolerance.value < 2:
        closed = np.zeros(len(counts), dtype=np.int64)
        return Starts(closed > 0, closed, closed, 0)
    spread, brokers = int(tolerance.value), window.shape[2]
    floor, ceil = fair.count // fair.parts, -(-fair.count // fair.parts)
    is_within = (floor.max(axis=1) - ceil.min(axis=1) <= spread) & same_disks
    return Starts(
        is_within | equal_for_all(window), np.maximum(-(-counts // brokers) - spread, 0), counts // brokers, spread
    )


def excess_and_cost_of_topics(layout: Layout, windows: Windows, chosen: IntArray) -> tuple[LongArray, LongArray]:
    """(T,) twice: each topic's weight outside its windows, and its cost, for rows of replicas (M, W) as brokers of the
    problem.
    """
    brokers = layout.numbered(chosen)
    cells = layout.fixed_cells + _cells(layout, brokers)
    is_kept = (brokers[:, :, None] == layout.home[:, None, :]) & (brokers >= 0)[:, :, None]
    enter_costs = layout.enter_costs[np.arange(len(brokers))[:, None], layout.groups[brokers]]
    costs = np.where(is_kept.any(axis=2), (is_kept * layout.keep_costs[:, None, :]).sum(axis=2), enter_costs)
    topic_costs = sums_at(layout.topic_count, layout.topics, np.where(brokers >= 0, costs, 0).sum(axis=1))
    return excess(windows.topic_replicas[:, :, layout.order], cells, TOPIC_PRICE), topic_costs


def _cells(layout: Layout, brokers: IntArray) -> LongArray:
    """(T, Bt): the number of replicas, for rows (M, W) of brokers of the flow."""
    rows, slots = np.nonzero(brokers >= 0)
    return sums_at((layout.topic_count, len(layout.targets)), (layout.topics[rows], brokers[rows, slots]))


def no_open_windows(problem: Problem, balance: Balance, topics: int) -> OpenWindows:
    """No open windows, except that of all replicas if a spread of one leaves it two starts."""
    lows = starts(problem, balance.replicas)
    ends = np.array([lows[0]]) if lows else np.zeros(1, dtype=np.int64), np.array([lows[-1] if lows else 0])
    spread = int(balance.replicas.value) if lows else 0
    zeros = np.zeros(topics, dtype=np.int64)
    return OpenWindows(Starts(zeros > 0, zeros, zeros, 0), Starts(np.array([len(lows) > 1]), *ends, spread), range(0))


def no_slack(layout: Layout, windows: Windows, openings: OpenWindows, loads: ByteLoads) -> Allowed:
    """The windows asked for, with nothing allowed outside of them yet."""
    fixed, movable = layout.fixed_cells, layout.topic_replicas
    in_all = fixed.sum(axis=0, keepdims=True), movable.sum(keepdims=True)
    by_topic, by_broker = windows.topic_replicas[:, :, layout.order], windows.replicas[:, None, layout.order]
    return Allowed(
        CountWindows(by_topic, fixed, movable, TOPIC_PRICE, **vars(openings.topics)),
        CountWindows(by_broker, *in_all, BROKER_PRICE, **vars(openings.replicas)),
        Loads(loads.windows, loads.scales),
        furthest=np.zeros(len(loads.scales), dtype=np.int64),
    )


def slack_of(layout: Layout, none_outside: Allowed, loads: ByteLoads, chosen: IntArray) -> Allowed:
    """The windows, with as much allowed outside as rows of replicas (M, W), as brokers of the problem, are."""
    brokers = layout.numbered(chosen)
    return none_outside.reached(_cells(layout, brokers), loads.by_broker(brokers))


def with_slack(certificate: Certificate, slack: Allowed) -> Certificate:
    """The certificate for all plans that are no further outside than allowed, at the best prices of units outside.

    Only parts of all racks are kept. Nothing proves yet how far outside every plan is.
    """
    all_racks, at_starts = set(lagrangian_bound.every_rack(certificate.facts)), slack.beginning(certificate.lows)
    whole_parts = (part for part in certificate.parts if set(part.racks) == all_racks)
    parts = tuple(Part(part.racks, changed(part.case, partial(_best_priced, slack=at_starts))) for part in whole_parts)
    no_prices = (StartCase(lagrangian_bound.none_priced(certificate.facts)),)
    outside = Outside(slack, no_prices, no_prices, (), np.zeros(0, dtype=np.int64))
    others = tuple(replace(with_slack(other, slack), outside=None) for other in certificate.others)
    prices = _best_priced(certificate.prices, at_starts)
    return Certificate(certificate.facts, prices, parts, others, outside, certificate.lows)


def at_price(prices: Prices, slack: Allowed) -> Prices:
    """Prices of loads, cut to the price of a unit outside, which is 1; replicas outside have their best price."""
    clipped = tuple(
        np.stack([table[0], table[1].clip(-scale * prices.grain, scale * prices.grain), table[2]])
        for table, scale in zip(prices.loads, slack.windows.scales.tolist(), strict=True)
    )
    cut_prices = replace(prices, loads=clipped)
    return replace(cut_prices, of_replicas=slack.prices(cut_prices.tables)[0], of_loads=prices.grain)


def _best_priced(prices: Prices, slack: Allowed) -> Prices:
    """The prices with the best prices of units outside."""
    of_replicas, of_loads = slack.prices(prices.tables)
    return replace(prices, of_replicas=of_replicas, of_loads=of_loads)
