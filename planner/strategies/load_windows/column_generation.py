"""Column generation by topic (Dantzig and Wolfe, 1960), for placements too large for the program of shares.

A flow at prices of loads gives each topic a plan: the brokers of its replicas. The master program mixes each topic's
plans so that the counts and loads of the brokers are within their windows, at the least cost. Its prices give the next
flow, until the mix costs no more than the bound. It has only as many rows as there are topics and windows of brokers,
so it mixes plans of few topics. Then more and more topics get one plan each, those with the largest share first, and
the rest is mixed anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import fsum
from typing import NamedTuple, Self

import numpy as np
import scipy  # its parts are imported where they are first used: most commands use none

from planner.model.problem import BoolArray, FloatArray, IntArray, LongArray, sums_at
from planner.model.problem import hash64 as hashed
from planner.scoring.windows import OPEN_BYTES
from planner.strategies.flow.min_cost_flow import CostRangeError
from planner.strategies.flow.placement import on_brokers, place
from planner.strategies.flow.placement_network import Layout, windowed
from planner.strategies.lagrangian_bound import GRAIN
from planner.strategies.load_windows.attempts_at_prices import Bound, PricedFlow, Task, at_prices, whole_prices
from planner.strategies.load_windows.byte_loads import ByteLoads, priced
from planner.strategies.load_windows.lp_relaxation import rounded
from planner.strategies.load_windows.price_program import Method, Program, solve
from planner.strategies.work_limits import (
    FAIR,
    SHAKEN_BY,
    TOPIC_COLUMNS,
    TOPIC_FLOWS_LEFT,
    TOPIC_FLOWS_SHAKEN,
    TOPIC_PLANS,
    TOPICS_SETTLED,
)

# The cost of a byte outside a window in copied bytes: no price of a byte is higher (see `whole_prices`).
_OUTSIDE = 3.0
# The next prices: this part of the program's, the rest from those with the best bound. Its own vary too much at first.
_NEW_PART, _NEW_PART_AT_LAST = 0.3, 0.5
# A share this large is whole.
_WHOLE = 0.999


class Mixed(NamedTuple):
    """Prices of loads (D, Bt) in 1 / GRAIN per unit, the bound at them, and at last replicas of the rows (M, W)."""

    prices: LongArray
    bound: Bound
    chosen: IntArray | None = None


class _Mix(NamedTuple):
    """A solution of the master program: the columns that it is about (N,), the share of each, the cost of everything,
    and the prices of loads (D, Bt) in bytes per unit.
    """

    columns: IntArray
    shares: FloatArray
    cost: float
    prices: FloatArray


@dataclass(eq=False)
class _Plans:
    """Plans of T topics: placements (M, Bt) of all rows, and a column for each topic's part that differs from others'.

    topics, placements (K,) number of each column's topic and placement · costs (K,) · sums (K, (1 + D) × Bt) replicas
    and loads on each broker, in bytes' worth of a mean row
    """

    task: Task
    on: list[BoolArray] = field(default_factory=list)
    seen_plans: set[tuple[int, bytes]] = field(default_factory=set)
    topics: list[int] = field(default_factory=list)
    placements: list[int] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    sums: list[FloatArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        topics, loads = self.task.layout.topics, self.task.loads
        by_topic = np.argsort(topics, kind="stable")
        self.rows = np.split(by_topic, np.flatnonzero(np.diff(topics[by_topic])) + 1)
        # Sums are of whole numbers, so that they are the same on any machine.
        self.unit = max(1.0, int((loads.weights[0] * loads.scales[0]).sum()) / len(topics))
        counts, of_loads = windowed(self.task.layout, self.task.reachable)[1].bounds, loads.windows.transpose(1, 0, 2)
        opened = np.where(of_loads >= OPEN_BYTES // 2, np.inf, of_loads * (loads.scales[:, None] / self.unit))
        self.windows = np.concatenate([counts[:, None], opened], axis=1).reshape(2, -1)

    @property
    def none_settled(self) -> IntArray:
        """(T,): no topic is settled."""
        return np.full(len(self.rows), -1)

    def add(self, is_on: BoolArray) -> bool:
        """Add each topic's part of a placement (M, Bt); False if none is new."""
        count_before, search, loads = len(self.topics), self.task.search, self.task.loads
        costs = search.costs * (is_on * search.levels).sum(axis=1, dtype=np.int64)
        weights = np.concatenate([np.ones((1, len(is_on)), dtype=np.int64), loads.weights])
        unit_worth = np.append(1.0, loads.scales / self.unit)[:, None]
        for topic, rows in enumerate(self.rows):
            plan = is_on[rows]
            if (key := (topic, np.packbits(plan).tobytes())) in self.seen_plans:
                continue
            self.seen_plans.add(key)
            self.topics.append(topic)
            self.placements.append(len(self.on))
            self.costs.append(int(costs[rows].sum()) / self.unit)
            self.sums.append((weights[:, rows] @ plan.astype(np.int64) * unit_worth).ravel())
        self.on.append(is_on)
        return len(self.topics) > count_before

    def cheapest_mix(self, settled: IntArray, method: Method = "highs-ds") -> _Mix | None:
        """The cheapest mix of the topics without a settled column; `settled` (T,) has the others' columns, -1: none.

        None if the solver fails.
        """
        topics = np.array(self.topics)
        columns = np.flatnonzero(settled[topics] < 0)
        settled_columns = settled[settled >= 0].tolist()
        settled_sums = sum((self.sums[each] for each in settled_columns), np.zeros(self.windows.shape[1]))
        free, places = np.unique(topics[columns], return_inverse=True)
        ones = scipy.sparse.csr_matrix(
            (np.ones(len(places)), (places, np.arange(len(places)))), shape=(len(free), len(places))
        )
        sums = scipy.sparse.csr_matrix(np.stack([self.sums[each] for each in columns.tolist()], axis=1))
        identity = scipy.sparse.identity(len(settled_sums), format="csr")
        matrix = scipy.sparse.bmat([[ones, None, None], [sums, identity, -identity]], format="csr")
        # A replica outside costs as much as a mean row.
        width = self.on[0].shape[1]
        outside = np.repeat([1.0, _OUTSIDE], [width, len(settled_sums) - width])
        costs = np.concatenate([np.array(self.costs)[columns], outside, outside])
        low, high = (np.concatenate([np.ones(len(free)), bound - settled_sums]) for bound in self.windows)
        solved = solve(Program(costs, matrix, low, high, np.zeros_like(costs), np.full_like(costs, np.inf)), method)
        if solved is None:
            return None
        loads = self.task.loads
        prices = solved.prices[-loads.windows[:, 0].size :].reshape(len(loads.weights), -1) * loads.scales[:, None]
        cost = fsum((costs * solved.values).tolist()) + fsum(self.costs[each] for each in settled_columns)
        return _Mix(columns, solved.values[: len(columns)], cost * self.unit, prices)

    def placement(self, settled: IntArray) -> BoolArray:
        """(M, Bt): the placement of settled columns (T,), -1: none."""
        is_on = np.zeros_like(self.on[0])
        for topic in np.flatnonzero(settled >= 0).tolist():
            column, rows = settled[topic], self.rows[topic]
            is_on[rows] = self.on[self.placements[column]][rows]
        return is_on

    def shares(self, settled: IntArray, mix: _Mix) -> FloatArray:
        """(M, Bt): the replicas of settled topics, and the shares of the others in a mix."""
        shares = self.placement(settled).astype(np.float64)
        for column, share in zip(mix.columns.tolist(), mix.shares.tolist(), strict=True):
            rows = self.rows[self.topics[column]]
            if settled[self.topics[column]] < 0:
                shares[rows] += share * self.on[self.placements[column]][rows]
        return shares


def mixtures(task: Task, prices: LongArray, first_flow: PricedFlow) -> Iterator[Mixed]:
    """Better and better bounds, then placements near all windows; nothing if the work isn't worth it.

    `first_flow`: the flow at `prices`.
    """
    effort, columns = task.effort, task.search.levels.size
    if effort is None or not effort.topic_flows or columns > TOPIC_COLUMNS:
        return
    if len(np.unique(task.layout.topics)) * effort.topic_flows > TOPIC_PLANS:
        return
    plans, best, flow = _Plans(task), Mixed(prices, first_flow.bound), first_flow
    for _ in range(effort.topic_flows):
        is_new = plans.add(on_brokers(task.layout, flow.placed.chosen))
        if (mix := plans.cheapest_mix(plans.none_settled, "highs-ipm")) is None:
            return
        if not is_new or mix.cost - best.bound.least <= FAIR * mix.cost:
            break
        next_prices = _mix_prices(task, best.prices, mix, _NEW_PART)
        if (next_flow := at_prices(task, next_prices)) is None:
            return
        effort.spend(columns)
        flow = next_flow
        if next_flow.bound.least > best.bound.least:
            best = Mixed(next_prices, next_flow.bound)
            yield best
    for chosen in _settled_placements(task, plans, best.prices):
        yield best._replace(chosen=chosen)


def _settled_placements(task: Task, plans: _Plans, prices: LongArray) -> Iterator[IntArray]:
    """Replicas of the rows (M, W) near a mix; again whenever half of the topics of the last one have a single plan."""
    # At nearly the same prices, topics have other plans that cost as little: with these, loads fit better.
    all_topics = _OpenTopics(np.arange(len(task.layout.rows)), task.layout, task.loads)
    for seed in range(TOPIC_FLOWS_SHAKEN):
        plans.add(all_topics.placement(task, plans.on[0], _shake_prices(prices, seed)))
    settled, most_mixed, mix = plans.none_settled, 2 * len(plans.rows), plans.cheapest_mix(plans.none_settled)
    while mix is not None:
        _settle_topics(plans, settled, mix)
        if (mixed := int((settled < 0).sum())) <= most_mixed // 2:
            yield rounded(task.problem, task.layout, task.windows, plans.shares(settled, mix))
            most_mixed = mixed
        if not mixed:
            return
        is_on = plans.placement(settled)
        open_topics, next_prices = _OpenTopics.of(task, plans, settled, is_on), prices
        for _ in range(TOPIC_FLOWS_LEFT):
            next_prices = _mix_prices(task, next_prices, mix, _NEW_PART_AT_LAST)
            is_new = plans.add(open_topics.placement(task, is_on, next_prices))
            if (mix := plans.cheapest_mix(settled)) is None or not is_new:
                break


class _OpenTopics(NamedTuple):
    """The rows (m,) of the topics that aren't settled, as a layout, and their loads; all other rows are fixed."""

    rows: IntArray
    layout: Layout
    loads: ByteLoads

    @classmethod
    def of(cls, task: Task, plans: _Plans, settled: IntArray, is_on: BoolArray) -> Self:
        """The rest of a placement (M, Bt) of settled topics' rows."""
        layout, loads = task.layout, task.loads
        rows = np.sort(np.concatenate([plans.rows[topic] for topic in np.flatnonzero(settled < 0).tolist()]))
        fixed, brokers = np.nonzero(is_on)
        cells = sums_at(layout.fixed_cells.shape, (layout.topics[fixed], brokers))
        fixed_loads = [sums_at(is_on.shape[1], brokers, weights[fixed]) for weights in loads.weights]
        return cls(
            rows,
            replace(layout.part(rows), fixed_cells=layout.fixed_cells + cells),
            replace(loads, weights=loads.weights[:, rows], windows=loads.windows - np.array(fixed_loads)[:, None]),
        )

    def placement(self, task: Task, is_on: BoolArray, prices: LongArray) -> BoolArray:
        """The placement with these rows as the flow has them at prices (D, Bt)."""
        try:
            flow = place(task.problem, priced(self.layout, self.loads, prices), task.windows)
        except CostRangeError:
            return is_on
        is_on = is_on.copy()
        is_on[self.rows] = on_brokers(self.layout, flow.chosen)
        return is_on


def _settle_topics(plans: _Plans, settled: IntArray, mix: _Mix) -> None:
    """Settle the topics with a single plan, and a part of the others at their largest shares."""
    likely: dict[int, int] = {}
    for index in np.argsort(-mix.shares, kind="stable").tolist():
        column = int(mix.columns[index])
        likely.setdefault(plans.topics[column], column)
        if mix.shares[index] >= _WHOLE:
            settled[plans.topics[column]] = column
    mixed = [topic for topic in likely if settled[topic] < 0]
    for topic in mixed[: max(1, int(len(mixed) * TOPICS_SETTLED))]:
        settled[topic] = likely[topic]


def _mix_prices(task: Task, prices: LongArray, mix: _Mix, part: float) -> LongArray:
    """Prices between these and the mix's."""
    return whole_prices(task, part * mix.prices + (1 - part) * prices / GRAIN)


def _shake_prices(prices: LongArray, seed: int) -> LongArray:
    """Prices (D, Bt) that differ from these by a few percent, alike with every version of numpy."""
    numbers = np.arange(prices.size, dtype=np.uint64) + hashed(np.array([seed], dtype=np.uint64))
    fractions = (hashed(numbers) >> np.uint64(11)).astype(np.float64) / (1 << 53)
    return np.rint(prices * (1 + SHAKEN_BY * (2 * fractions - 1)).reshape(prices.shape)).astype(np.int64)
