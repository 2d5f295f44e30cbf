"""The linear program of shares: the cheapest placement if replicas could be split, on the brokers of some racks or all.

It is solved again and again with other replicas decided, each time from the last basis, which takes a few percent of a
solve from nothing. Its prices go into a proof as they are (see `lagrangian_bound`). Windows can be left at a high
price, so that the program has prices even if nothing fits: these prices prove it.

A basic solution splits few more rows than there are windows of loads. `roundings` turns its shares into placements: a
flow keeps all counts and follows the shares. Then the largest of the split rows are decided as in that flow, and the
program is solved again, which comes closer.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
import scipy  # its parts are imported where they are first used: most commands use none
from ortools.linear_solver import pywraplp

from planner.model.problem import BoolArray, FloatArray, IntArray, LongArray, Problem
from planner.scoring.window_excess import BROKER_PRICE, EXCESS_STEPS, TOPIC_PRICE, Allowed
from planner.scoring.windows import OPEN_BYTES, Windows
from planner.strategies import work_limits
from planner.strategies.flow.placement import on_brokers, place
from planner.strategies.flow.placement_network import Layout, bounds
from planner.strategies.lagrangian_bound import BoundFacts
from planner.strategies.load_windows.byte_loads import ByteLoads
from planner.strategies.load_windows.local_search_state import MostOutside
from planner.strategies.load_windows.price_program import Program, ProgramRows, solve

# The cost of a byte outside a window in copied bytes; of a replica outside in copies of the largest row; and if steep.
_OUTSIDE, _TOO_MANY, _FAR_TOO_MANY = 100.0, 10.0, 1_000.0
# If some bytes must be outside, the cost of each byte more than these.
_MORE_OUTSIDE = 10_000.0
# Less than this outside counts as nothing.
_NOTHING = 1e-6
# Dual simplex continues from the last basis, which preprocessing would lose. Work is limited, not time: if some loads
# are millions of times as large as others, the solver may go in circles, for two minutes with a limit of 60.
_PARAMETERS = "use_preprocessing:false use_dual_simplex:true max_deterministic_time:"
_WORK_A_COLUMN, _MOST_WORK = 0.001, 60
# Shares this close to 0 or 1 are whole.
_WHOLE = 1e-6
# The flow's cost of a replica on a broker where it has no share, and of a second one on the same broker.
_NO_SHARE, _TWICE = 100_000, 10_000_000

# Row, place of the broker in the part, and whether the row's replica is there.
Decision = tuple[int, int, bool]


@dataclass(frozen=True, eq=False)
class Fits:
    """The windows that the rows that may move must fit: of topics (2, T, Bt), brokers (2, Bt) and loads (D, 2, Bt); and
    the bytes that a unit of each load is worth, (D,).

    `slack`: how much may be outside of them, None: nothing. With `only_loads`, only loads outside of windows cost.
    `steep`: a replica outside costs more than any copies that it saves.
    """

    topics: LongArray
    brokers: LongArray
    loads: LongArray
    scales: LongArray
    slack: Allowed | None = None
    only_loads: bool = False
    steep: bool = False

    @classmethod
    def of(cls, layout: Layout, windows: Windows, loads: ByteLoads) -> Self:
        """The windows of a layout, for the rows that may move."""
        return cls(*bounds(layout, windows), loads.windows, loads.scales)

    @classmethod
    def anywhere(cls, slack: Allowed) -> Self:
        """The windows of a bound's plans, each with all its starts."""
        topics, brokers = (each.movable_part(each.widest) for each in (slack.topics, slack.brokers))
        return cls(topics, brokers[:, 0], slack.windows.bounds, slack.windows.scales, None if slack.none else slack)


class Duals(NamedTuple):
    """Prices in bytes of (topic, broker of the part) (T, b), of brokers (b,), and of loads per unit (D, b)."""

    cells: FloatArray
    brokers: FloatArray
    loads: FloatArray


class ShareProgram:
    """The program of the racks' `brokers` (b,). Decisions hold until others are made; decisions about `decidable`
    rows always leave it a solution.
    """

    def __init__(self, facts: BoundFacts, fits: Fits, racks: tuple[int, ...], decidable: IntArray) -> None:
        self.brokers: IntArray = np.flatnonzero(np.isin(facts.racks, racks))
        self._facts, self._fits, self._racks = facts, fits, racks
        self._unit = max(1.0, float(facts.costs.mean()))
        self._solver = pywraplp.Solver.CreateSolver("GLOP")
        work = min(len(facts.costs) * len(self.brokers) * _WORK_A_COLUMN, _MOST_WORK)
        self._solver.SetSolverSpecificParametersAsString(f"{_PARAMETERS}{work:.3f}")
        self._objective = self._solver.Objective()
        self._outside_columns: list[Any] = []
        self._excess_limits = self._excess_rows()
        self._shares = self._add_shares()
        self._add_rack_rules()
        self._cells, self._brokers = self._add_count_windows(set(facts.topics[decidable].tolist()))
        self._loads = [self._add_load_windows(kind) for kind in range(len(facts.loads))]
        self._decided: set[Decision] = set()

    @property
    def columns(self) -> int:
        """Rows times brokers."""
        return len(self._shares) * len(self.brokers)

    def least_cost(self, decisions: Iterable[Decision]) -> float | None:
        """The least bytes with these decisions; None if the solver gave up, or found no solution."""
        new_decisions = set(decisions)
        for row, broker, _ in self._decided - new_decisions:
            self._shares[row][broker].SetBounds(0, 1)
        for row, broker, is_on in new_decisions - self._decided:
            self._shares[row][broker].SetBounds(is_on, is_on)
        self._decided = new_decisions
        return self._objective.Value() * self._unit if self._solver.Solve() == pywraplp.Solver.OPTIMAL else None

    def fits(self) -> bool:
        """True if the last solution left no window."""
        return all(column.solution_value() < _NOTHING for column in self._outside_columns)

    def shares(self, rows: IntArray) -> FloatArray:
        """(K, b): the shares of these rows in the last solution."""
        # One pass, because millions are read with one call of the library each.
        flat = map(pywraplp.Variable.solution_value, chain.from_iterable(map(self._shares.__getitem__, rows.tolist())))
        return np.fromiter(flat, np.float64, len(rows) * len(self.brokers)).reshape(len(rows), len(self.brokers))

    def duals(self) -> Duals:
        """The prices of the last solution."""
        cells = np.zeros(self._fits.topics[0][:, self.brokers].shape)
        for (topic, broker), row in self._cells.items():
            cells[topic, broker] = row.dual_value()
        brokers = np.array([row.dual_value() for row in self._brokers])
        loads = np.array([[row.dual_value() if row else 0.0 for row in rows] for rows in self._loads])
        return Duals(cells * self._unit, brokers * self._unit, loads * self._fits.scales[:, None])

    def _add_shares(self) -> list[list[Any]]:
        """A share of each row on each broker, with its cost."""
        facts = self._facts
        costs = np.repeat(facts.costs[:, None], len(facts.racks), axis=1)
        rows, slots = np.nonzero(facts.home >= 0)
        costs[rows, facts.home[rows, slots]] = facts.home_costs[rows, slots]
        upper = np.ones(costs.shape)
        if facts.forbidden is not None:
            upper[facts.forbidden[facts.topics]] = 0
            upper[rows, facts.home[rows, slots]] = 1
        shares = [[self._solver.NumVar(0, each, "") for each in of_row] for of_row in upper[:, self.brokers].tolist()]
        paid_bytes = costs[:, self.brokers] / self._unit * (not self._fits.only_loads)
        for of_row, paid in zip(shares, paid_bytes.tolist(), strict=True):
            for share, cost in zip(of_row, paid, strict=True):
                self._objective.SetCoefficient(share, cost)
        self._objective.SetMinimization()
        return shares

    def _add_rack_rules(self) -> None:
        """Every row has as many replicas in each rack as it must and may, and its factor in all of them."""
        facts = self._facts
        least, most = (each[facts.kinds].astype(float).tolist() for each in (facts.least, facts.most))
        places = [(rack, np.flatnonzero(facts.racks[self.brokers] == rack).tolist()) for rack in self._racks]
        all_racks = len(self.brokers) == len(facts.racks)
        for row, (shares, low, high) in enumerate(zip(self._shares, least, most, strict=True)):
            for rack, indices in places:
                self._add_row(low[rack], high[rack], [shares[index] for index in indices], [1.0] * len(indices))
            if all_racks and sum(low) < sum(high):
                factor = float(facts.factors[row])
                self._add_row(factor, factor, shares, [1.0] * len(shares))

    def _add_count_windows(self, leavable: set[int]) -> tuple[dict[tuple[int, int], Any], list[Any]]:
        """The windows of topics, by topic and broker, and of brokers; leavable topics' and all brokers' can be left."""
        topics, brokers = self._fits.topics[:, :, self.brokers], self._fits.brokers[:, self.brokers]
        outside = (_FAR_TOO_MANY if self._fits.steep else _TOO_MANY) * float(self._facts.costs.max()) / self._unit
        cells, broker_rows = {}, []
        for topic in np.unique(self._facts.topics).tolist():
            rows = np.flatnonzero(self._facts.topics == topic).tolist()
            penalty = outside if topic in leavable else 0.0
            for index in range(len(self.brokers)):
                low, high = topics[:, topic, index].tolist()
                columns = [self._shares[row][index] for row in rows]
                cells[topic, index] = self._add_row(low, high, columns, [1.0] * len(rows), penalty)
                self._count_excess(cells[topic, index], TOPIC_PRICE)
        for index, (low, high) in enumerate(brokers.T.tolist()):
            columns = [shares[index] for shares in self._shares]
            broker_rows.append(self._add_row(low, high, columns, [1.0] * len(columns), outside))
            self._count_excess(broker_rows[-1], BROKER_PRICE)
        return cells, broker_rows

    def _excess_rows(self) -> tuple[Any, Any]:
        """Rows that limit the total outside of windows: of replicas by weight, and of loads; None for no such row.

        Both limits can be exceeded at a price; otherwise decisions might leave no solution.
        """
        slack = self._fits.slack
        if slack is None:
            return None, None
        in_all = slack.replicas - slack.certain, slack.loads / self._unit
        prices = _TOO_MANY * max(1.0, float(self._facts.costs.max()) / self._unit), _MORE_OUTSIDE
        rows = []
        for limit, price in zip(in_all, prices, strict=True):
            rows.append(self._solver.Constraint(-self._solver.infinity(), float(limit)))
            column = self._solver.NumVar(0, self._solver.infinity(), "")
            self._outside_columns.append(column)
            rows[-1].SetCoefficient(column, -1)
            self._objective.SetCoefficient(column, price)
        if slack.replicas <= slack.certain:
            rows[0] = None
        return rows[0], None if self._fits.only_loads else rows[1]

    def _count_excess(self, row: Any, price: int) -> None:
        """Columns of replicas outside of a window, at their weights."""
        if self._excess_limits[0] is None:
            return
        for sign in (1, -1):
            for units, step in EXCESS_STEPS:
                column = self._solver.NumVar(0, float(units), "")
                row.SetCoefficient(column, sign)
                self._excess_limits[0].SetCoefficient(column, step * price)

    def _load_excess(self, row: Any, furthest: float) -> None:
        """Columns of loads outside of a window: limited to as far as a broker may be, or at a price each."""
        for sign in (1, -1):
            column = self._solver.NumVar(0, self._solver.infinity() if self._fits.only_loads else furthest, "")
            row.SetCoefficient(column, sign)
            if self._excess_limits[1] is None:
                self._objective.SetCoefficient(column, 1)
            else:
                self._excess_limits[1].SetCoefficient(column, 1)

    def _add_load_windows(self, kind: int) -> list[Any]:
        """The rows of the windows of a kind of load; None for an open window."""
        scale = int(self._fits.scales[kind]) / self._unit
        weights = (self._facts.loads[kind] * scale).tolist()
        rows, slack = list[Any](), self._fits.slack
        for index, (low, high) in enumerate(self._fits.loads[kind][:, self.brokers].T.tolist()):
            ends = low * scale, high * scale if high < OPEN_BYTES // 2 else self._solver.infinity()
            open_ended = low <= 0 and high >= OPEN_BYTES // 2
            columns = [shares[index] for shares in self._shares]
            penalty = 0.0 if self._fits.only_loads else _OUTSIDE if slack is None else _MORE_OUTSIDE
            rows.append(None if open_ended else self._add_row(*ends, columns, weights, penalty))
            if rows[-1] is not None and slack is not None and slack.furthest is not None:
                self._load_excess(rows[-1], float(slack.furthest[kind]) * scale)
        return rows

    def _add_row(self, low: float, high: float, columns: list[Any], values: list[float], penalty: float = 0) -> Any:
        """low <= values × columns <= high; a unit outside costs `outside`, and isn't allowed if that is 0."""
        row = self._solver.Constraint(float(low), float(high))
        for column, value in zip(columns, values, strict=True):
            row.SetCoefficient(column, value)
        for sign in (1, -1) if penalty else ():
            excess_column = self._solver.NumVar(0, self._solver.infinity(), "")
            self._outside_columns.append(excess_column)
            row.SetCoefficient(excess_column, sign)
            self._objective.SetCoefficient(excess_column, penalty)
        return row


class Rounded(NamedTuple):
    """Prices of loads (D, Bt) in bytes per unit, and replicas of the rows (M, W) near the program's solution."""

    prices: FloatArray
    chosen: IntArray


def roundings(
    problem: Problem, layout: Layout, windows: Windows, loads: ByteLoads, effort: work_limits.Effort, reachable: Windows
) -> Iterator[Rounded]:
    """Placements near the windows of loads, one after the other with more rows decided, until the effort is spent; none
    if there can't be any, or if the program is too large. The program keeps the `reachable` windows of counts.

    HiGHS solves the program with the flow's own costs, ties included. GLOP stops at other corners of the same optimum,
    whose roundings moved up to 18 % more bytes on small clusters of large partitions.
    """
    shape = len(layout.rows), len(layout.targets)
    columns = shape[0] * shape[1]
    if columns > work_limits.FRACTION_COLUMNS:
        return
    program, _, load_worth = whole_program(layout, reachable, loads)
    is_settled, is_on = np.zeros(shape[0], dtype=bool), np.zeros(shape, dtype=bool)
    for _ in range(min(work_limits.FRACTION_ROUNDS, work_limits.FRACTION_COLUMNS_IN_ALL // max(1, columns))):
        least, most = (np.where(is_settled[:, None], is_on, free).ravel() for free in (0, 1))
        if effort.spent or (solved := solve(replace(program, least=least, most=most), "highs-ds")) is None:
            return
        effort.spend(work_limits.FROM_NOTHING * columns)
        shares = solved.values.reshape(shape)
        chosen = rounded(problem, layout, windows, shares)
        yield Rounded(solved.prices[-load_worth.size :].reshape(load_worth.shape) * load_worth, chosen)
        split = np.flatnonzero(is_split(shares).any(axis=1))
        if not len(split):
            return
        largest = split[np.argsort(-layout.enter_costs[split].max(axis=1), kind="stable")]
        is_settled[largest[: -(-len(split) // 2)]] = True
        is_on = np.where(is_settled[:, None], on_brokers(layout, chosen), is_on)


def integer_program(
    layout: Layout, windows: Windows, loads: ByteLoads, effort: work_limits.Effort, *, room: MostOutside, of_loads: bool
) -> BoolArray | None:
    """The cheapest placement (M, Bt) with at most `room` outside of its windows of loads, by an integer program; with
    `of_loads` the one with the least outside. If its nodes are used up, the best one found; None if there is none, or
    if the program is too large for the effort.
    """
    shape = len(layout.rows), len(layout.targets)
    columns = shape[0] * shape[1]
    if effort.spent or work_limits.WHOLE_WORTH * columns > effort.left:
        return None
    program, _, load_worth = whole_program(layout, windows, loads)
    count, ones = load_worth.size, scipy.sparse.identity(load_worth.size)
    # Columns of units below each window of loads, then of units above; and their sum in the objective's units.
    excess_columns = scipy.sparse.vstack([scipy.sparse.csr_matrix((len(program.low) - count, count)), ones])
    outside = np.concatenate([np.zeros(columns), *[(loads.scales[:, None] / load_worth).ravel()] * 2])
    unit = float(load_worth[0, 0]) * max(float(loads.weights[0].mean()), 1e-9)
    rows = scipy.sparse.vstack([scipy.sparse.hstack([program.matrix, excess_columns, -excess_columns]), outside[None]])
    furthest = np.repeat(room.furthest / np.maximum(loads.weights.mean(axis=1), 1e-9), load_worth.shape[1])
    reachable = np.ones(shape) if layout.reachable is None else layout.reachable
    solved = scipy.optimize.milp(
        outside if of_loads else np.concatenate([program.costs, np.zeros(2 * count)]),
        integrality=np.arange(len(outside)) < columns,
        bounds=scipy.optimize.Bounds(0, np.concatenate([reachable.ravel(), furthest, furthest])),
        constraints=scipy.optimize.LinearConstraint(
            rows, np.append(program.low, 0), np.append(program.high, room.total / unit)
        ),
        options={"node_limit": work_limits.WHOLE_NODES, "mip_rel_gap": 0},
    )
    effort.spend(work_limits.FROM_NOTHING * columns * (1 + (solved.mip_node_count or 0)))
    return None if solved.x is None else solved.x[:columns].reshape(shape).round() > 0


class WholeProgram(NamedTuple):
    """The program of all racks, a column per row and broker. Its last rows are the windows of topics (T × Bt), of
    brokers (Bt) and of loads (D × Bt).

    worth: bytes of a price of a replica · worth_of_loads (D, Bt): bytes of a price of a unit of load
    """

    program: Program
    worth: float
    worth_of_loads: FloatArray


def whole_program(layout: Layout, windows: Windows, loads: ByteLoads) -> WholeProgram:
    """The program of a layout within its windows."""
    count, width = len(layout.rows), len(layout.targets)
    rows, brokers = np.repeat(np.arange(count), width), np.tile(np.arange(width), count)
    costs = layout.enter_costs[:, layout.groups]
    kept_rows, slots = np.nonzero(layout.home >= 0)
    costs[kept_rows, layout.home[kept_rows, slots]] = layout.keep_costs[kept_rows, slots]
    unit, units = max(1.0, float(costs.mean())), np.maximum(loads.weights.mean(axis=1), 1e-9)
    by_topic, in_all = bounds(layout, windows)
    columns, table = np.arange(len(rows)), ProgramRows()
    table.add(np.stack([layout.factors] * 2), (rows, columns, 1.0))
    racks = np.stack([layout.least, layout.most])
    table.add(racks, (rows * racks.shape[2] + layout.racks[brokers], columns, 1.0))
    table.add(by_topic, (layout.topics[rows] * width + brokers, columns, 1.0))
    table.add(in_all, (brokers, columns, 1.0))
    for weights, window, each in zip(loads.weights, loads.windows, units, strict=True):
        opened = np.where(window >= OPEN_BYTES // 2, np.inf, window / each)
        table.add(opened, (brokers, columns, weights[rows] / each))
    worth = unit * layout.cost_bytes
    program = table.program(costs.ravel() / unit, np.ones(len(rows)))
    return WholeProgram(program, worth, np.repeat(worth / units[:, None], width, axis=1))


def is_split(shares: FloatArray) -> BoolArray:
    """True if a share is neither 0 nor 1."""
    split: BoolArray = np.minimum(shares, 1 - shares) > _WHOLE
    return split


def as_decided(rows: IntArray, is_on: BoolArray) -> set[Decision]:
    """The decisions whether each broker has a replica of these rows (K,), from `is_on` (K, b)."""
    brokers = np.tile(np.arange(is_on.shape[1]), len(rows)).tolist()
    return set(zip(np.repeat(rows, is_on.shape[1]).tolist(), brokers, is_on.ravel().tolist(), strict=True))


def rounded(problem: Problem, layout: Layout, windows: Windows, shares: FloatArray) -> IntArray:
    """Replicas (M, W) that keep all counts and are the closest to these shares (M, Bt).

    The larger a replica's share is, the less the flow pays for it.
    """
    costs = np.rint(_NO_SHARE * (1 - shares.clip(0, 1))).astype(np.int64)
    rows, slots = np.nonzero(layout.home >= 0)
    homes = layout.home[rows, slots]
    keep: LongArray = np.zeros_like(layout.keep_costs)
    keep[rows, slots] = costs[rows, homes]
    costs[rows, homes] = _TWICE
    brokers = np.arange(len(layout.targets), dtype=np.int32)
    as_shared = replace(
        layout,
        enter_costs=costs,
        keep_costs=keep,
        groups=brokers,
        group_racks=layout.racks,
        group_sizes=np.ones_like(brokers),
    )
    return place(problem, as_shared, windows).chosen
