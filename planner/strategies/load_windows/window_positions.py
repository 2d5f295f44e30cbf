"""Chooses where windows of replicas begin: a spread of two and more says how wide they are, not where.

The window of all replicas: the fewest bytes are a convex function of its start (it bounds a flow's arcs linearly), so
bisection finds the best start. With windows of bytes that start is a guess, which is moved as long as that helps.

Windows of topics: without the other windows, each topic's bytes would be such a function of its own start, so all are
bisected at once. That is a guess if other windows matter. Other guesses are the starts next to the counts of the
relaxed placement, whose windows of topics contain all starts. The cheapest of these guesses and of the start with the
fewest replicas is taken. At the prices of brokers that prove its bound, topics are separate again: bisecting at these
gives the next guess, as long as that saves bytes. Small clusters also try the starts that are the cheapest if replicas
could be split (`StartProgram`). No plan costs less than the relaxed placement, wherever its windows begin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import scipy  # its parts are imported where they are first used: most commands use none

from planner.model.balance import Balance
from planner.model.build_problem import today
from planner.model.problem import IntArray, LongArray, Problem
from planner.scoring.windows import Windows, equal_for_all, nearest_windows, opened, starting, starts
from planner.strategies.flow.min_cost_flow import CostRangeError
from planner.strategies.flow.placement import Placed, place
from planner.strategies.flow.placement_network import Layout
from planner.strategies.lagrangian_bound import Prices
from planner.strategies.load_windows.allowed_plans import OpenWindows, Starts, excess_and_cost_of_topics, open_windows
from planner.strategies.load_windows.attempts_at_prices import Best, facts_of, proof
from planner.strategies.load_windows.balanced_placement import BalancedPlan
from planner.strategies.load_windows.byte_loads import ByteLoads, priced
from planner.strategies.load_windows.common_leader_program import prices_of
from planner.strategies.load_windows.lp_relaxation import Fits, WholeProgram, whole_program
from planner.strategies.load_windows.price_program import Program, solve
from planner.strategies.work_limits import (
    AT_STARTS,
    FEW_START_COLUMNS,
    SHARE_OF_BEST_START,
    SHARE_OF_OTHER_STARTS,
    START_CLOSE,
    START_COLUMNS,
    START_NODES,
    START_PROGRAM_COLUMNS,
    START_ROUNDS,
    START_WHOLE_COLUMNS,
    Effort,
)

Even = Callable[[Windows, Placed, Effort | None, Best | None], BalancedPlan | None]


class Started(NamedTuple):
    """Windows with chosen starts, the placement in them, and that brought into windows of bytes, if there are any."""

    windows: Windows
    placed: Placed
    evened: BalancedPlan | None


@dataclass(frozen=True, eq=False)
class WideWindows:
    """A placement in windows that contain all their starts, so that no plan costs less.

    `low`: the start of the window of all replicas, None if it isn't tried start by start. `started_at` gives the
    placement at another start, and is worth its time if `by_cases`.
    """

    started: Started
    openings: OpenWindows
    low: int | None
    started_at: Callable[[int], Started]
    by_cases: bool

    @property
    def cases(self) -> list[tuple[range, int]]:
        """The start `low`, the starts below and those above, each with the nearest one to `low`; none if it is None."""
        if (low := self.low) is None:
            return []
        below, above = range(self.openings.lows.start, low), range(low + 1, self.openings.lows.stop)
        cases = ((range(low, low + 1), low), (below, low - 1), (above, low + 1))
        return [(lows, nearest) for lows, nearest in cases if lows]


class BestPosition(NamedTuple):
    """The cheapest of all starts, and the relaxed placement, the least cost of any plan, if there was a choice.

    `lows`: starts of a window that allows the same plans at each, if it can hold; `started_at`: the placement at one.
    """

    best: Started
    relaxed: WideWindows | None = None
    lows: range = range(0)
    started_at: Callable[[int], Started] | None = None

    @property
    def lowest(self) -> Started:
        """The placement that no plan costs less than."""
        return self.best if self.relaxed is None else self.relaxed.started


def best_position(
    problem: Problem, balance: Balance, layout: Layout, windows: Windows, loads: ByteLoads, even: Even, effort: Effort
) -> BestPosition:
    """The placement at the starts that move the fewest bytes; `even` brings a placement into the windows of `loads`."""
    openings = open_windows(problem, balance, layout, windows)
    if problem.rebalance != "all" or not len(layout.rows) or not openings.any:
        search = _Search(problem, balance, layout, windows, loads, even, effort)
        lows = starts(problem, balance.replicas)
        best = search.finished(search.best(lows), SHARE_OF_BEST_START if len(lows) > 1 else 1)
        is_repeatable = len(lows) > 1 and problem.rebalance == "all" and (best.evened is None or search.small)
        return BestPosition(best, lows=lows, started_at=search.finished_at if is_repeatable else None)
    search = _Search(problem, balance, layout, openings.widened(windows), loads, even, effort)
    started = search.best(openings.lows)
    # If all open windows were tried start by start, no window is wider than it may be.
    only_starts = len(openings.lows) > 0 and not openings.topics.open.any()
    best = started if only_starts else _best_of_guesses(search, windows, started, openings)
    finished = search.finished(best, SHARE_OF_BEST_START)
    relaxed = finished if started is best else search.finished(started, SHARE_OF_BEST_START)
    is_worth = effort.topic_flows and search.columns <= START_WHOLE_COLUMNS and problem.together is None
    if best is not started and is_worth:
        # With little work, another start may seem cheaper than the one that is cheapest with split replicas.
        program = StartProgram.of(layout, windows, loads, openings)
        at_starts = None if program is None else program.cheapest(windows)
        if at_starts is not None:
            # Work of its own, because the bound needs what is left.
            own_effort = Effort(effort.left, topic_flows=effort.topic_flows)
            other = _Search(problem, balance, layout, at_starts, loads, even, own_effort)
            candidate = other.finished(other.best(range(0)), SHARE_OF_BEST_START)
            finished = min(finished, candidate, key=_rank)
    by_cases = started.evened is None or search.small
    return BestPosition(finished, WideWindows(relaxed, openings, search.low, search.finished_at, by_cases))


def _best_of_guesses(search: _Search, windows: Windows, relaxed: Started, openings: OpenWindows) -> Started:
    """The cheapest of the starts that are worth a try."""
    lows = openings.lows
    best = search.within(_next_to(search, windows, relaxed)).best(lows)
    if _rank(best) <= _rank(relaxed):
        return best
    if best.evened is None or search.small:
        # Only the cheapest guess without windows of bytes is brought into these.
        guesses = (_topic_starts(search, search.layout, windows, openings.topics), windows)
        guess = min(guesses, key=lambda each: _rank(search.within(each, lambda *_: None).best(lows)))
        best = min(best, search.within(guess).best(lows), key=_rank)
    for _ in range(search.rounds):
        next_windows = _starts_at_its_prices(search, best, openings.topics)
        if next_windows is None or np.array_equal(next_windows.topic_replicas, best.windows.topic_replicas):
            break
        candidate = search.within(replace(next_windows, replicas=windows.replicas)).best(lows)
        if _rank(candidate) >= _rank(best):
            break
        best = candidate
    return best


def _starts_at_its_prices(search: _Search, started: Started, topics: Starts) -> Windows | None:
    """The windows of topics with the cheapest starts at a placement's prices of brokers, at which topics are separate;
    None if these exceed the solver's arithmetic.
    """
    layout, loads = search.layout, search.loads
    if started.evened is None:
        prices = proof(facts_of(search.problem, layout, loads), layout, started.placed).prices
    else:
        prices = started.evened.certificate.prices
    of_brokers = prices.of_brokers(len(layout.targets))
    try:
        if of_brokers.any():
            layout = priced(layout, loads.with_counts(layout, started.windows), of_brokers)
        return _topic_starts(search, layout, started.windows, topics)
    except CostRangeError:
        return None


def _next_to(search: _Search, windows: Windows, relaxed: Started) -> Windows:
    """The windows that begin next to the counts of the relaxed placement."""
    assignment = today(search.problem)
    assignment[search.layout.rows] = relaxed.placed.chosen if relaxed.evened is None else relaxed.evened.chosen
    return nearest_windows(search.problem, search.balance, windows, assignment)


def _topic_starts(search: _Search, layout: Layout, windows: Windows, topics: Starts) -> Windows:
    """The windows of topics with the starts at which each topic's cost is least without the other windows."""
    topics_only = replace(windows, replicas=opened(windows.replicas), caps=None)
    is_free = topics.open & equal_for_all(windows.topic_replicas)
    low, high = topics.first.copy(), topics.last.copy()

    def windows_at(lows: LongArray) -> Windows:
        low_edges = np.broadcast_to(lows[:, None], windows.topic_replicas.shape[1:])
        window = np.where(is_free[:, None], np.stack([low_edges, low_edges + topics.spread]), windows.topic_replicas)
        return replace(topics_only, topic_replicas=window)

    def excess_and_cost(lows: LongArray) -> tuple[LongArray, LongArray]:
        candidate = windows_at(lows)
        return excess_and_cost_of_topics(layout, candidate, place(search.problem, layout, candidate).chosen)

    while (is_free & (low < high)).any():
        middle = (low + high) // 2
        mid, above = excess_and_cost(middle), excess_and_cost(np.minimum(middle + 1, topics.last))
        down = (mid[0] < above[0]) | ((mid[0] == above[0]) & (mid[1] <= above[1]))
        low, high = np.where(down | (low >= high), low, middle + 1), np.where(down & (low < high), middle, high)
    return replace(windows_at(low), replicas=windows.replicas, caps=windows.caps)


@dataclass(frozen=True, eq=False)
class StartProgram:
    """The program of shares (see `lp_relaxation`) in which every open window has a column for its start, the last ones.

    topics (K,): those whose windows are open; the window of all replicas may be open, too
    """

    layout: Layout
    base: WholeProgram
    program: Program
    topics: IntArray
    spread: int
    spread_of_all: int

    @classmethod
    def of(cls, layout: Layout, windows: Windows, loads: ByteLoads, openings: OpenWindows) -> Self | None:
        """The program of a layout; None if no window is open and the same for all brokers, or if it is too large."""
        topics, replicas, width = openings.topics, openings.replicas, len(layout.targets)
        of_topics = topics.open & equal_for_all(windows.topic_replicas)
        is_open = np.append(of_topics, replicas.open & equal_for_all(windows.replicas[:, None]))
        if not of_topics.any() or len(layout.rows) * width > START_PROGRAM_COLUMNS:
            return None
        base = whole_program(layout, windows, loads)
        program, counts = base.program, len(is_open) * width
        first, last = (np.append(getattr(topics, end), getattr(replicas, end))[is_open] for end in ("first", "last"))
        spreads = np.append(np.full(len(of_topics), topics.spread), replicas.spread)[is_open, None]
        fixed = np.vstack([layout.fixed_cells, layout.fixed_cells.sum(axis=0)])[is_open]
        rows = (len(program.low) - base.worth_of_loads.size - counts + np.arange(counts)).reshape(-1, width)[is_open]
        low, high = program.low.copy(), program.high.copy()
        low[rows], high[rows] = -fixed, spreads - fixed
        columns, shape = np.repeat(np.arange(len(rows)), width), (len(low), len(rows))
        starts = scipy.sparse.csr_matrix((np.full(rows.size, -1.0), (rows.ravel(), columns)), shape=shape)
        with_starts = Program(
            np.append(program.costs, np.zeros(len(rows))),
            scipy.sparse.hstack([program.matrix, starts]).tocsr(),
            low,
            high,
            np.append(program.least, first),
            np.append(program.most, last),
        )
        return cls(layout, base, with_starts, np.flatnonzero(of_topics), topics.spread, replicas.spread)

    def prices(self, fits: Fits) -> Prices | None:
        """The prices if starts could be fractions, too, at the edges of these windows; None if it has no solution."""
        solved = solve(self.program, "highs-ds")
        return None if solved is None else prices_of(self.layout, self.base, solved, fits)

    def cheapest(self, windows: Windows) -> Windows | None:
        """The windows at the starts with the fewest bytes, or nearly, if replicas could be split; None: none found."""
        program, shares = self.program, len(self.base.program.costs)
        solved = scipy.optimize.milp(
            program.costs,
            integrality=np.arange(len(program.costs)) >= shares,
            bounds=scipy.optimize.Bounds(program.least, program.most),
            constraints=scipy.optimize.LinearConstraint(program.matrix, program.low, program.high),
            options={"node_limit": START_NODES, "mip_rel_gap": START_CLOSE},
        )
        if solved.x is None:
            return None
        lows, of_all = np.split(solved.x[shares:].round().astype(np.int64), [len(self.topics)])
        window, width = windows.topic_replicas.copy(), windows.replicas.shape[1]
        window[:, self.topics] = np.stack([lows, lows + self.spread])[:, :, None]
        in_all = (
            windows.replicas if not len(of_all) else np.repeat([of_all, of_all + self.spread_of_all], width, axis=1)
        )
        return replace(windows, topic_replicas=window, replicas=in_all)


class _Search:
    """A search over the starts of the window of all replicas; each start is placed once."""

    def __init__(
        self,
        problem: Problem,
        balance: Balance,
        layout: Layout,
        windows: Windows,
        loads: ByteLoads,
        even: Even,
        effort: Effort,
    ) -> None:
        self.problem, self.balance, self.layout, self.windows = problem, balance, layout, windows
        self.loads, self.even = loads, even
        self.columns = len(layout.rows) * len(layout.targets)
        self.small, self.effort = self.columns <= START_COLUMNS, effort
        # How often starts at the prices of the last plan are tried.
        few_rounds = 1 if effort.topic_flows and self.columns <= AT_STARTS else 0
        self.rounds = START_ROUNDS if self.small else few_rounds
        # Starts are compared with little work, unless there are few columns or only one start can be tried.
        self._to_compare = effort if not self.small or self.columns <= FEW_START_COLUMNS else None
        self.low: int | None = None
        self.costs: dict[int, tuple[int, int]] = {}
        self.started_by_low: dict[int, Started] = {}
        # Done once, because less work is left the next time.
        self.finished_by_low: dict[int, Started] = {}

    def within(self, windows: Windows, even: Even | None = None) -> _Search:
        """The same search with other windows, and with another `even` if one is given."""
        return _Search(self.problem, self.balance, self.layout, windows, self.loads, even or self.even, self.effort)

    def best(self, lows: range) -> Started:
        """The placement at the cheapest of these starts; in the windows as given if there is no choice."""
        if self.problem.rebalance != "all" or len(lows) < 2:
            return self._start_in(self.windows)
        self.low = self._bisect(lows)
        first = self.started_at(self.low)
        if first.evened is None or not self.small:
            return first
        moved = self._move_start(-1, lows, first)
        return moved if moved is not first else self._move_start(1, lows, first)

    def started_at(self, low: int) -> Started:
        """The placement at a start."""
        if low not in self.started_by_low:
            self.started_by_low[low] = self._start_in(self._windows_at(low))
        return self.started_by_low[low]

    def finished(self, started: Started, share: float) -> Started:
        """The start, continued with a share of the work that is left, if it was only made to be compared."""
        if started.evened is None or started.evened.best_so_far is None:
            return started
        effort = self.effort.part(share)
        return started._replace(evened=self.even(started.windows, started.placed, effort, started.evened.best_so_far))

    def finished_at(self, low: int) -> Started:
        """The placement at a start, continued with some of the work that is left."""
        if low not in self.finished_by_low:
            self.finished_by_low[low] = self.finished(self.started_at(low), SHARE_OF_OTHER_STARTS)
        return self.finished_by_low[low]

    def _start_in(self, windows: Windows) -> Started:
        placed = place(self.problem, self.layout, windows)
        return Started(windows, placed, self.even(windows, placed, self._to_compare, None))

    def _windows_at(self, low: int) -> Windows:
        return starting(self.windows, low, int(self.balance.replicas.value))

    def _bisect(self, lows: range) -> int:
        """The lowest of the cheapest starts, by bisection."""
        low, high = lows[0], lows[-1]
        while low < high:
            middle = (low + high) // 2
            if self._cost(middle) <= self._cost(middle + 1):
                high = middle
            else:
                low = middle + 1
        return low

    def _move_start(self, step: int, lows: range, best: Started) -> Started:
        """The best placement so far, with its start moved up or down while that saves bytes."""
        assert self.low is not None
        while self.low + step in lows and _rank(candidate := self.started_at(self.low + step)) < _rank(best):
            best, self.low = candidate, self.low + step
        return best

    def _cost(self, low: int) -> tuple[int, int]:
        if low not in self.costs:
            placed = place(self.problem, self.layout, self._windows_at(low))
            self.costs[low] = placed.excess, placed.solved.cost
        return self.costs[low]


def _rank(started: Started) -> tuple[int, int, int]:
    """The excess of counts, the bytes outside their windows, and the cost or the bytes moved."""
    if started.evened is None:
        return started.placed.excess, 0, started.placed.solved.cost
    return started.placed.excess, started.evened.outside, started.evened.moved
