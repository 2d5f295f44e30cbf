"""Windows of replicas that may begin at several places, and what holds wherever they begin.

Brokers that differ by no more than a spread are within a window of that width, but nobody says which. With a price on
each of its edges a window proves the less the further it moves against the sum of its prices: one of its ends proves
the least. That end's edges stand in the certificate, so that its bound holds for all plans with that spread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from planner.model.balance import Balance, Tolerance
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.scoring.fair_shares import Shares, disk_weights, fair_shares
from planner.scoring.windows import TOPIC_PRICE, Windows, excess
from planner.strategies.bounds import Branch, Case, Certificate, Lows, Part, Prices
from planner.strategies.flow.layout import Layout
from planner.strategies.work_limits import MOST_STARTS


@dataclass(frozen=True, eq=False)
class Begins:
    """Which windows may begin anywhere (K,), the first and the last start (K,) of each, and how wide they are."""

    open: BoolArray
    first: LongArray
    last: LongArray
    spread: int

    def widened(self, window: LongArray) -> LongArray:
        """Windows (2, K, Bt) that hold those at all starts."""
        low, high = np.minimum(window[0], self.first[:, None]), np.maximum(window[1], self.last[:, None] + self.spread)
        return np.where(self.open[:, None], np.stack([low, high]), window)


@dataclass(frozen=True, eq=False)
class OpenWindows:
    """Those of topics (T) and of all brokers' replicas (1), and the starts of the latter to be tried one by one.

    `lows` is empty where that window isn't open, or is but isn't the same for all brokers.
    """

    topics: Begins
    replicas: Begins
    lows: range

    @property
    def any(self) -> bool:
        """True where some window is open."""
        return bool(self.topics.open.any() or self.replicas.open.any())

    @property
    def only_starts(self) -> bool:
        """True where all that is open is tried start by start."""
        return len(self.lows) > 0 and not self.topics.open.any()

    def widened(self, wanted: Windows) -> Windows:
        """The windows, wide enough for all starts but those to be tried one by one."""
        replicas = wanted.replicas if self.lows else self.replicas.widened(wanted.replicas[:, None])[:, 0]
        return replace(wanted, topic_replicas=self.topics.widened(wanted.topic_replicas), replicas=replicas)


def open_windows(problem: Problem, balance: Balance, layout: Layout, wanted: Windows) -> OpenWindows:
    """The windows that a balance leaves open on this problem."""
    fair, alike = fair_shares(problem), bool(np.ptp(disk_weights(problem)) == 0)
    held = layout.fixed_cells.sum(axis=1) + layout.topic_replicas
    topics = _begins(fair.topic_replicas, balance.topic_replicas, wanted.topic_replicas, alike, held)
    window = wanted.replicas[:, None]
    replicas = _begins(fair.replicas, balance.replicas, window, alike, held.sum(keepdims=True))
    lows = range(int(replicas.first[0]), int(replicas.last[0]) + 1)
    by_start = replicas.open[0] and _same(window)[0] and len(lows) > 1
    return OpenWindows(topics, replicas, lows if by_start else range(0))


def _begins(fair: Shares, tolerance: Tolerance, window: LongArray, alike: bool, held: LongArray) -> Begins:
    """Where windows (2, K, Bt) may begin, for brokers that are `alike` in their disks and together hold `held` (K,).

    Shares that differ by more than the spread can't be brought within it: there only the windows count, around each.
    """
    if tolerance.kind != "spread" or tolerance.value < 2:
        closed = np.zeros(len(held), dtype=np.int64)
        return Begins(closed > 0, closed, closed, 0)
    spread, brokers = int(tolerance.value), window.shape[2]
    floor, ceil = fair.count // fair.parts, -(-fair.count // fair.parts)
    within = (floor.max(axis=1) - ceil.min(axis=1) <= spread) & alike
    return Begins(within | _same(window), np.maximum(-(-held // brokers) - spread, 0), held // brokers, spread)


def _same(window: LongArray) -> BoolArray:
    """(K,): True where a window (2, K, Bt) is the same for all brokers."""
    same: BoolArray = (window == window[:, :, :1]).all(axis=(0, 2))
    return same


def by_topic(layout: Layout, wanted: Windows, chosen: IntArray) -> tuple[LongArray, LongArray]:
    """(T,) twice: the weight of what is outside the topics' windows, and the cost of each, for rows of replicas (M, W)
    as brokers of the problem.
    """
    at = _here(layout, chosen)
    cells = layout.fixed_cells + _cells(layout, at)
    stays = (at[:, :, None] == layout.home[:, None, :]) & (at >= 0)[:, :, None]
    entering = layout.enter_costs[np.arange(len(at))[:, None], layout.groups[at]]
    costs = np.where(stays.any(axis=2), (stays * layout.keep_costs[:, None, :]).sum(axis=2), entering)
    total = np.zeros(layout.topic_count, dtype=np.int64)
    np.add.at(total, layout.topics, np.where(at >= 0, costs, 0).sum(axis=1))
    return excess(wanted.topic_replicas[:, :, layout.order], cells, TOPIC_PRICE), total


def cells_of(layout: Layout, chosen: IntArray) -> tuple[LongArray, IntArray]:
    """Replicas (T, Bt) of rows (M, W), and those as brokers of the flow."""
    at = _here(layout, chosen)
    return _cells(layout, at), at


def _here(layout: Layout, chosen: IntArray) -> IntArray:
    """Brokers of the problem (M, W) as brokers of the flow."""
    here = np.full(int(layout.targets.max()) + 1, -1, dtype=np.int64)
    here[layout.targets] = np.arange(len(layout.targets))
    found: IntArray = np.where(chosen >= 0, here[chosen], -1)
    return found


def _cells(layout: Layout, at: IntArray) -> LongArray:
    """(T, Bt): replicas of rows (M, W) of brokers of the flow."""
    cells = np.zeros((layout.topic_count, len(layout.targets)), dtype=np.int64)
    rows, slots = np.nonzero(at >= 0)
    np.add.at(cells, (layout.topics[rows], at[rows, slots]), 1)
    return cells


@dataclass(frozen=True, eq=False)
class Anywhere:
    """What makes a certificate hold for all starts.

    `by_cell`, `in_all`: the edges (2, T or 1, Bt) of windows at the first start, at the last one, and as they are.
    """

    anywhere: OpenWindows
    fixed: LongArray
    by_cell: tuple[LongArray, ...]
    in_all: tuple[LongArray, ...]
    lows: Lows = None

    @staticmethod
    def of(layout: Layout, wanted: Windows, anywhere: OpenWindows) -> Anywhere:
        """For the windows of a layout."""
        topics, in_all = wanted.topic_replicas[:, :, layout.order], wanted.replicas[:, None, layout.order]
        fixed, all_fixed = layout.fixed_cells, layout.fixed_cells.sum(axis=0, keepdims=True)
        return Anywhere(
            anywhere=anywhere,
            fixed=fixed,
            by_cell=tuple(_edges(anywhere.topics, topics, fixed)),
            in_all=tuple(_edges(anywhere.replicas, in_all, all_fixed)),
        )

    def within(self, lows: range) -> Anywhere:
        """The same, where the window of all brokers' replicas begins at one of these."""
        begins = replace(self.anywhere.replicas, first=np.array([lows[0]]), last=np.array([lows[-1]]))
        edges = tuple(_edges(begins, None, self.fixed.sum(axis=0, keepdims=True)))
        return replace(self, in_all=edges, lows=(lows[0], lows[-1]))

    def certificate(self, certificate: Certificate) -> Certificate:
        """The certificate with the edges that prove the least."""
        racks = certificate.facts.racks
        everywhere = np.ones(len(racks), dtype=bool)
        parts = [Part(part.racks, self._case(part.case, np.isin(racks, part.racks))) for part in certificate.parts]
        prices = self._prices(certificate.prices, everywhere)
        return Certificate(certificate.facts, prices, tuple(parts), lows=self.lows)

    def prices(self, prices: Prices) -> Prices:
        """Prices of all brokers with the edges that prove the least."""
        return self._prices(prices, np.ones(self.fixed.shape[1], dtype=bool))

    def case(self, case: Case) -> Case:
        """A case of all brokers with the edges that prove the least."""
        return self._case(case, np.ones(self.fixed.shape[1], dtype=bool))

    def _case(self, case: Case, here: BoolArray) -> Case:
        if isinstance(case, Branch):
            return replace(case, off=self._case(case.off, here), on=self._case(case.on, here))
        return self._prices(case, here)

    def _prices(self, prices: Prices, here: BoolArray) -> Prices:
        """Prices of which those of the brokers `here` (Bt,) count."""
        is_open, all_open = self.anywhere.topics.open, self.anywhere.replicas.open
        cells = _least(prices.topic_replicas, self.by_cell, is_open, here)
        # A table of one window a broker, as one of several windows.
        numbered = np.concatenate([np.zeros_like(prices.replicas[:1]), prices.replicas])
        in_all = _least(numbered, self.in_all, all_open, here)
        return replace(prices, topic_replicas=cells, replicas=in_all[1:])


def _edges(begins: Begins, window: LongArray | None, fixed: LongArray) -> Iterator[LongArray]:
    """The edges of windows, less what the rows hold that may not move: at every start, and where they are.

    No fewer than none of the others can be there, however much those hold. Where there are too many starts, at the
    first and the last: no other proves less, if it weren't for lower edges cut off at nothing.
    """
    several = int((begins.last - begins.first).max(initial=0))
    every = several <= MOST_STARTS
    for step in range(several + 1) if every else (0, several):
        start = np.minimum(begins.first + step, begins.last)
        low = np.broadcast_to(start[:, None], fixed.shape) - fixed
        yield np.stack([low.clip(min=0) if every else low, (low + begins.spread).clip(min=0)])
    if window is not None:
        yield (window - fixed).clip(min=0)


def _least(table: LongArray, edges: tuple[LongArray, ...], is_open: BoolArray, here: BoolArray) -> LongArray:
    """The table (window, broker, price, edge) with those of several edges (2, K, Bt) that prove the least."""
    at, brokers, prices = table[:3]
    tried = [np.where(prices > 0, each[0][at, brokers], each[1][at, brokers]) for each in edges]
    # Python's integers: prices times edges may be beyond 64 bits.
    sums = np.zeros((len(tried), len(is_open)), dtype=object)
    for total, found in zip(sums, tried, strict=True):
        np.add.at(total, at[here[brokers]], prices[here[brokers]].astype(object) * found[here[brokers]])
    best = np.stack(tried)[sums.argmin(axis=0)[at], np.arange(len(at))]
    return np.stack([at, brokers, prices, np.where(is_open[at], best, table[3])])
