"""Where the window of all brokers' replicas begins: a spread of two and more says how wide it is, not where.

The fewest bytes are a convex function of the window's start (it bounds a flow's arcs linearly), so halving finds the
best. With windows of bytes that start is a guess, which is moved for as long as that helps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from planner.balance import Balance
from planner.model import Problem
from planner.strategies.evening import Evened
from planner.strategies.layout import Layout
from planner.strategies.placing import Placed, place
from planner.windows import Windows, starting, starts

# Beyond so many rows × brokers bringing bytes into their windows takes too long to be done more than once.
_MOST_COLUMNS = 100_000

Even = Callable[[Windows, Placed], Evened | None]


class Started(NamedTuple):
    """Windows that begin somewhere, the placement in them, and that brought into windows of bytes, if there are any."""

    wanted: Windows
    placed: Placed
    evened: Evened | None


def cheapest(problem: Problem, balance: Balance, layout: Layout, wanted: Windows, even: Even) -> Started:
    """The start that moves the fewest bytes; `even` brings a placement into the windows of bytes."""
    lows = starts(problem, balance.replicas)
    if problem.rebalance != "all" or len(lows) < 2:
        placed = place(problem, layout, wanted)
        return Started(wanted, placed, even(wanted, placed))
    search = _Search(problem, layout, wanted, int(balance.replicas.value))
    low = search.halved(lows)
    first = search.started(low, even)
    if first.evened is None or len(layout.rows) * len(layout.targets) > _MOST_COLUMNS:
        return first
    return search.moved(low, lows, first, even)


class _Search:
    """The starts of one problem, each placed once."""

    def __init__(self, problem: Problem, layout: Layout, wanted: Windows, spread: int) -> None:
        self.problem, self.layout, self.wanted, self.spread = problem, layout, wanted, spread
        self.costs: dict[int, tuple[int, int]] = {}

    def halved(self, lows: range) -> int:
        """The least start of the cheapest."""
        low, high = lows[0], lows[-1]
        while low < high:
            middle = (low + high) // 2
            if self._cost(middle) <= self._cost(middle + 1):
                high = middle
            else:
                low = middle + 1
        return low

    def started(self, low: int, even: Even) -> Started:
        """Everything at a start."""
        wanted = starting(self.wanted, low, self.spread)
        placed = place(self.problem, self.layout, wanted)
        return Started(wanted, placed, even(wanted, placed))

    def moved(self, low: int, lows: range, best: Started, even: Even) -> Started:
        """A start and what is there, moved up or down while that saves bytes."""
        found = self._moved_by(-1, low, lows, best, even)
        return found if found is not best else self._moved_by(1, low, lows, best, even)

    def _moved_by(self, step: int, low: int, lows: range, best: Started, even: Even) -> Started:
        while (low := low + step) in lows:
            tried = self.started(low, even)
            if _judged(tried) >= _judged(best):
                break
            best = tried
        return best

    def _cost(self, low: int) -> tuple[int, int]:
        if low not in self.costs:
            solved = place(self.problem, self.layout, starting(self.wanted, low, self.spread)).solved
            self.costs[low] = solved.excess, solved.cost
        return self.costs[low]


def _judged(started: Started) -> tuple[int, int, int]:
    """What is outside the windows of counts and of bytes, and the bytes moved."""
    if started.evened is None:
        raise AssertionError("only what was brought into windows of bytes is judged")
    return started.placed.solved.excess, started.evened.outside, started.evened.moved
