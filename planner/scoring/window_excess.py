"""The excess: how far an assignment is outside the windows by weight, and how much excess a bound allows plans to have.

If the windows can't all hold, a bound is for all plans with no more excess than the plan at hand, on any brokers.
`Allowed` describes that set: the windows, the weight of the excess of counts, the weighed sum of the excess of loads,
and how far outside a single broker is. `Allowed.cost` is the amount that it takes off a bound made of prices. For
prices α of a window's edges and a price λ of a unit of excess, that is `λ × excess + Σ most × max(0, α − λ)`, by the
duality of linear programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.model.problem import BoolArray, LongArray

# The weight of a unit beyond a window: the first unit has the price, the next three 3 times, all others 10 times as
# much, so that several windows are missed by one unit rather than one window by several. One unit beyond a broker's
# window weighs more than the units beyond topics' windows that would avoid it.
EXCESS_STEPS = ((1, 1), (3, 3), (1 << 30, 10))
TOPIC_PRICE, BROKER_PRICE = 1, 100
# More than any bound, and than any price.
_EVERYTHING, _NEVER = 1 << 400, 1 << 100


def excess(bounds: LongArray, counts: LongArray, price: int) -> LongArray:
    """The weight of everything outside windows (2, ..., Bt), summed over brokers: counts (..., Bt) to (...)."""
    summed: LongArray = weight(distance(bounds, counts), price).sum(axis=-1)
    return summed


def beyond(bounds: LongArray, amounts: LongArray) -> LongArray:
    """(2, …): how far `amounts` (…) are below windows (2, …), and how far they are above them."""
    return np.stack([np.maximum(bounds[0] - amounts, 0), np.maximum(amounts - bounds[1], 0)])


def distance(bounds: LongArray, amounts: LongArray) -> LongArray:
    """How far outside of windows (2, …) `amounts` (…) are."""
    far: LongArray = beyond(bounds, amounts).sum(axis=0)
    return far


def weight(units: LongArray, price: int) -> LongArray:
    """The weights of numbers of units (…) beyond windows; `price` is the weight of the first unit."""
    remaining, total = units.copy(), np.zeros_like(units)
    for count, step in EXCESS_STEPS:
        in_step = np.minimum(remaining, count)
        total += in_step * (step * price)
        remaining -= in_step
    return total


@dataclass(frozen=True, eq=False)
class CountWindows:
    """Windows of the replicas of K topics, or of all together, on Bt brokers.

    bounds (2, K, Bt) least and most · fixed (K, Bt) replicas there that may not move · movable (K,) those that may
    price of the first unit outside, see EXCESS_STEPS
    open (K,) True if a window may begin at each of first (K,) to last (K,) instead, and is `spread` wide then
    """

    bounds: LongArray
    fixed: LongArray
    movable: LongArray
    price: int
    open: BoolArray
    first: LongArray
    last: LongArray
    spread: int

    def beginning(self, lows: tuple[int, int] | None) -> CountWindows:
        """These windows with the open ones limited to begin within a range of starts; None: at any."""
        if lows is None:
            return self
        first, last = (np.where(self.open, low, end) for low, end in zip(lows, (self.first, self.last), strict=True))
        bounds = np.where(self.open[:, None], np.stack([first, first + self.spread])[:, :, None], self.bounds)
        return replace(self, bounds=bounds, first=first, last=last)

    def starts(self) -> Iterator[LongArray]:
        """The windows (2, K, Bt), as asked for and with open ones at each of their starts."""
        yield self.bounds
        for step in range(int(np.where(self.open, self.last - self.first + 1, 0).max(initial=0))):
            low = np.minimum(self.first + step, self.last)[:, None]
            yield np.where(self.open[:, None], np.stack([low, low + self.spread]), self.bounds)

    def weigh(self, moved: LongArray) -> int:
        """The weight of the excess with movable replicas (K, Bt); open windows begin where it is least."""
        counts = self.fixed + moved
        return int(np.min([excess(bounds, counts, self.price) for bounds in self.starts()], axis=0).sum())

    def bears(self, table: LongArray) -> bool:
        """True if the edges in prices (window, broker, price, edge) prove no more than the windows at any start."""
        window, brokers, prices, claimed = table
        total = np.zeros(len(self.movable), dtype=object)
        np.add.at(total, window, prices.astype(object) * claimed)
        for bounds in self.starts():
            low, high = self.movable_part(bounds)
            edges = np.where(prices > 0, np.minimum(low, high)[window, brokers], high[window, brokers])
            proven = np.zeros(len(self.movable), dtype=object)
            np.add.at(proven, window, prices.astype(object) * edges)
            if (total > proven).any():
                return False
        return True

    @property
    def widest(self) -> LongArray:
        """The windows (2, K, Bt), each with all its starts."""
        last_end = (self.last + self.spread)[:, None]
        ends = np.stack([np.minimum(self.bounds[0], self.first[:, None]), np.maximum(self.bounds[1], last_end)])
        return np.where(self.open[:, None], ends, self.bounds)

    def movable_part(self, bounds: LongArray) -> LongArray:
        """The part of windows (2, K, Bt) that is left for movable replicas."""
        return (bounds - self.fixed).clip(0, self.movable.sum())

    def certain(self) -> LongArray:
        """(2, K, Bt): units below and above the windows in any placement of movable replicas, at any start."""
        low, high = self.widest - self.fixed
        return np.stack([np.maximum(low - self.movable.sum(), 0), np.maximum(-high, 0)])

    def cost(self, table: LongArray, price: int) -> int:
        """The amount that prices (window, broker, price, edge) above `price` per weighed unit take off a bound."""
        steep = np.abs(table[2]).astype(object)
        costs = (room * np.maximum(steep - step * price, 0) for step, room in self.rooms(table))
        return sum(int(each.sum()) for each in costs)

    def rooms(self, table: LongArray) -> Iterator[tuple[int, LongArray]]:
        """Each step's weight, and how many units (N,) of it may be beyond the windows of this table's prices."""
        window, brokers, prices, edges = table
        is_lower, certain = prices > 0, self.certain()[:, window, brokers]
        spent = np.where(is_lower, certain[0], certain[1])
        remaining = np.where(is_lower, edges, self.movable[window]).clip(min=0)
        for count, step in EXCESS_STEPS:
            room = np.minimum(np.maximum(count - spent, 0), remaining)
            yield step * self.price, room
            spent, remaining = np.maximum(spent - count, 0), remaining - room


@dataclass(frozen=True, eq=False)
class Loads:
    """Windows (D, 2, Bt) of the loads of movable replicas, and the weights (D,) of a unit beyond each."""

    bounds: LongArray
    scales: LongArray

    def cost(self, tables: Iterable[LongArray], price: int, furthest: NDArray[Any] | None) -> int:
        """The amount that prices (broker, price, edge) above that of a weighed unit take off a bound, if no broker is
        further outside than `furthest` (D,), None: without a limit.
        """
        total = 0
        for kind, (table, scale) in enumerate(zip(tables, self.scales.tolist(), strict=True)):
            steeper = int(np.maximum(np.abs(table[1]).astype(object) - scale * price, 0).sum()) if table.size else 0
            most = _EVERYTHING if furthest is None else int(furthest[kind])
            total += steeper * most
        return total


@dataclass(frozen=True, eq=False)
class Allowed:
    """Windows, and how far outside of them the plans of a bound may be: `replicas` is the weight of counts, `loads` the
    weighed sum of loads over all brokers, `furthest` (D,) how far one broker may be outside of each.
    """

    topics: CountWindows
    brokers: CountWindows
    windows: Loads
    replicas: int = 0
    loads: int = 0
    furthest: LongArray | None = None

    def beginning(self, lows: tuple[int, int] | None) -> Allowed:
        """The same with the window of all replicas limited to begin within a range of starts; None: at any."""
        return replace(self, brokers=self.brokers.beginning(lows))

    def covered(self, lows: Sequence[tuple[int, int] | None]) -> bool:
        """True if these ranges contain every start that the window of all replicas may have."""
        if None in lows:
            return True
        starts = {low for ends in lows if ends is not None for low in range(ends[0], ends[1] + 1)}
        low, high = self.brokers.bounds[:, 0]
        as_asked = bool((low == low[0]).all() and (high == low + self.brokers.spread).all()) and int(low[0]) in starts
        all_starts = set(range(int(self.brokers.first[0]), int(self.brokers.last[0]) + 1))
        return bool(self.brokers.open[0]) and as_asked and all_starts <= starts

    def bears(self, tables: tuple[LongArray, ...]) -> bool:
        """True if the edges of these tables prove no more than the windows do."""
        loads = zip(tables[2:], self.windows.bounds, strict=True)
        of_loads = all(
            bool((np.where(table[1] > 0, table[2] <= window[0][table[0]], table[2] >= window[1][table[0]])).all())
            for table, window in loads
        )
        return of_loads and self.topics.bears(tables[0]) and self.brokers.bears(numbered(tables[1]))

    @property
    def none(self) -> bool:
        """True if plans have to be within all windows."""
        return not (self.replicas or self.loads)

    @property
    def certain(self) -> int:
        """The weight of counts that are outside in any placement of movable replicas."""
        return sum(int(weight(each.certain(), each.price).sum()) for each in (self.topics, self.brokers))

    def reached(self, cells: LongArray, load: LongArray) -> Allowed:
        """The same, allowing the excess of a plan with these movable replicas (T, Bt) and their loads (D, Bt)."""
        outside = distance(self.windows.bounds.transpose(1, 0, 2), load)
        return replace(
            self,
            replicas=self.topics.weigh(cells) + self.brokers.weigh(cells.sum(axis=0, keepdims=True)),
            loads=int((outside * self.windows.scales[:, None]).sum()),
            furthest=outside.max(axis=1, initial=0),
        )

    def holds(self, other: Allowed) -> bool:
        """True if plans with no more excess than the other allows are allowed."""
        if other.furthest is None or self.furthest is None:
            return False
        no_further = bool((other.furthest <= self.furthest).all())
        return other.replicas <= self.replicas and other.loads <= self.loads and no_further

    def prices(self, tables: tuple[LongArray, ...]) -> tuple[int, int]:
        """Prices of a weighed unit of counts, and of one of loads, that take the least off a bound of these tables."""
        of_counts = [
            (np.abs(table[2]).astype(np.float64) / step, room.astype(np.float64) * step)
            for windows, table in ((self.topics, tables[0]), (self.brokers, numbered(tables[1])))
            for step, room in windows.rooms(table)
        ]
        furthest = np.zeros(len(self.windows.scales)) if self.furthest is None else self.furthest
        of_loads = [
            (np.abs(table[1]).astype(np.float64) / scale, np.full(table.shape[1], float(scale) * float(most)))
            for table, scale, most in zip(tables[2:], self.windows.scales, furthest, strict=True)
        ]
        return _cheapest(of_counts, self.replicas - self.certain), _cheapest(of_loads, self.loads)

    def cost(self, prices: tuple[LongArray, ...], of_replicas: int, of_loads: int) -> int:
        """The amount that the allowed excess takes off a bound of these prices: by topic, in all, and of each load.

        A weighed unit of counts costs `of_replicas`, one of loads `of_loads`.
        """
        return (
            self.topics.cost(prices[0], of_replicas)
            + self.brokers.cost(numbered(prices[1]), of_replicas)
            + self.windows.cost(prices[2:], of_loads, self.furthest)
            + of_replicas * (self.replicas - self.certain)
            + of_loads * self.loads
        )


def numbered(table: LongArray) -> LongArray:
    """A table of one window's prices as a table of several windows."""
    return np.concatenate([np.zeros_like(table[:1]), table])


def _cheapest(slopes: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]], allowed: int) -> int:
    """The whole price λ >= 0 with the least `allowed × λ + Σ most × max(0, price - λ)` for prices and mosts (N,)."""
    prices, most = (np.concatenate([np.zeros(1), *(each[side] for each in slopes)]) for side in (0, 1))
    order = np.argsort(-prices, kind="stable")
    above = np.cumsum(most[order]) - most[order]
    if allowed < 0:
        # No plan is allowed: any price proves it, and a higher price proves more.
        return _NEVER
    # The lowest price at which all units of higher prices weigh no more than is allowed. The sum is convex in it.
    least = float(prices[order][np.flatnonzero(above <= allowed)[-1]])
    return min(ceil(least), floor(least), key=lambda price: allowed * price + most @ np.maximum(prices - price, 0))
