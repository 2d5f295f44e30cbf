"""Prices of bytes by a linear program; such programs as arrays, and their solvers (HiGHS; first-order for large ones).

Prices of bytes on brokers are used if simpler guesses leave a gap. Their program relaxes the placement: replicas may be
split, and the replicas that enter a broker are known by topic alone, as a count and as bytes. A replica's bytes are
between the smallest and the largest partition's. That keeps it at partitions × (factor + racks) columns. Only the
prices of its windows of loads are used; whatever they are, the bound made with them holds. If windows can't all hold,
as much may be outside of them as a known plan has outside.
"""

from __future__ import annotations  # scipy.sparse in an annotation would import it

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, Self

import numpy as np
import scipy  # its parts are imported where they are first used: most commands use none
from ortools.pdlp import solvers_pb2
from ortools.pdlp.python import pdlp

from planner.model.problem import FloatArray, IntArray, LongArray, sums_at
from planner.scoring.windows import Windows
from planner.strategies.flow.placement_network import Layout, bounds
from planner.strategies.load_windows.byte_loads import ByteLoads
from planner.strategies.work_limits import (
    EXACT_PRICE_COLUMNS,
    FEW_RACKS_COLUMNS,
    PRICE_COLUMNS,
    PRICE_ITERATIONS,
    PRICE_RACKS,
    PRICE_TOLERANCE,
    PRICE_WORK,
)

# HiGHS' interior point method, for prices alone, and its dual simplex, for few split shares.
Method = Literal["highs-ipm", "highs-ds"]


@dataclass(frozen=True, eq=False)
class Program:
    """Least `costs` x with low <= matrix x <= high, N rows, and least <= x <= most, K columns."""

    costs: FloatArray
    matrix: scipy.sparse.csr_matrix
    low: FloatArray
    high: FloatArray
    least: FloatArray | LongArray
    most: FloatArray | LongArray


class ProgramRows:
    """The rows of a program, gathered block by block."""

    def __init__(self) -> None:
        self._count = 0
        self._parts: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._low: list[FloatArray] = []
        self._high: list[FloatArray] = []

    def add(self, bounds: LongArray | FloatArray, *entries: tuple[IntArray, IntArray, FloatArray | float]) -> None:
        """Rows within bounds (2, N), with entries of (row in the block, column, value)."""
        for rows, columns, values in entries:
            self._parts.append((rows + self._count, columns, np.broadcast_to(values, rows.shape).astype(np.float64)))
        self._low.append(bounds[0].astype(np.float64).ravel())
        self._high.append(bounds[1].astype(np.float64).ravel())
        self._count += bounds[0].size

    def program(self, costs: FloatArray, most: FloatArray) -> Program:
        """The program of these rows, for columns (K,) from 0 to `most`."""
        rows, columns, values = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        matrix = scipy.sparse.csr_matrix((values, (rows, columns)), shape=(self._count, len(costs)))
        return Program(costs, matrix, np.concatenate(self._low), np.concatenate(self._high), np.zeros_like(most), most)


class Solution(NamedTuple):
    """The columns' values (K,), and the rows' prices (N,)."""

    values: FloatArray
    prices: FloatArray


def solve(program: Program, method: Method, steps_a_row: int | None = None) -> Solution | None:
    """The optimum by HiGHS; None if there is none, or none after so many steps for each row."""
    fixed = program.low == program.high
    above, below = ~fixed & np.isfinite(program.high), ~fixed & np.isfinite(program.low)
    solved = scipy.optimize.linprog(
        program.costs,
        A_ub=scipy.sparse.vstack([program.matrix[above], -program.matrix[below]]),
        b_ub=np.concatenate([program.high[above], -program.low[below]]),
        A_eq=program.matrix[fixed],
        b_eq=program.low[fixed],
        bounds=np.stack([program.least, program.most], axis=1),
        method=method,
        options={} if steps_a_row is None else {"maxiter": steps_a_row * len(program.low)},
    )
    if solved.status != 0:
        return None
    prices = np.zeros(len(program.low))
    prices[fixed] = solved.eqlin.marginals
    highs, lows = np.split(solved.ineqlin.marginals, [int(above.sum())])
    prices[above] += highs
    prices[below] -= lows
    return Solution(solved.x, prices)


def first_order_prices(program: Program) -> FloatArray | None:
    """The rows' prices (N,) by OR-tools' PDLP, with the same shards on any machine, so that results don't differ."""
    quadratic = pdlp.QuadraticProgram()
    quadratic.objective_vector = program.costs
    quadratic.constraint_matrix = scipy.sparse.csc_matrix(program.matrix)
    quadratic.constraint_lower_bounds, quadratic.constraint_upper_bounds = program.low, program.high
    quadratic.variable_lower_bounds, quadratic.variable_upper_bounds = program.least, program.most
    settings = solvers_pb2.PrimalDualHybridGradientParams(num_threads=2, num_shards=8)
    criteria = settings.termination_criteria.simple_optimality_criteria
    criteria.eps_optimal_relative = criteria.eps_optimal_absolute = PRICE_TOLERANCE
    entries = max(1, program.matrix.nnz)
    settings.termination_criteria.iteration_limit = max(1, min(PRICE_ITERATIONS, PRICE_WORK // entries))
    solved = pdlp.primal_dual_hybrid_gradient(quadratic, settings)
    prices = np.asarray(solved.dual_solution, dtype=np.float64)
    return prices if np.isfinite(prices).all() else None


def byte_prices(layout: Layout, windows: Windows, loads: ByteLoads, allowed: int | None = None) -> FloatArray | None:
    """(D, Bt) prices in bytes per unit of load; None if the program is too large, isn't needed, or has no solution.

    `most`: how much may be outside of the windows of loads in sum, None: nothing.
    """
    if not layout.copy_bytes.any() or (allowed is None and loads.surely_outside(layout.factors)):
        return None
    limit, many_racks = PRICE_COLUMNS, layout.most.shape[1] > PRICE_RACKS
    if many_racks and (np.bincount(layout.racks) == 1).all():
        # A row has at most one replica on a broker anyway.
        layout = _in_few_racks(layout, 1)
    elif many_racks and _Columns.of(layout, len(loads.names)).starts[-1] > PRICE_COLUMNS:
        layout, limit = _in_few_racks(layout, PRICE_RACKS), FEW_RACKS_COLUMNS
    program = _program(layout, windows, loads, allowed)
    columns = len(program.costs)
    if columns > limit:
        return None
    if columns <= EXACT_PRICE_COLUMNS:
        solved = solve(program, "highs-ipm")
        prices = None if solved is None else solved.prices
    else:
        prices = first_order_prices(program)
    if prices is None:
        return None
    return prices[-loads.windows[:, 0].size :].reshape(len(loads.names), -1) * loads.scales[:, None]


def _in_few_racks(layout: Layout, racks: int) -> Layout:
    """The layout with neighboring racks as one and their rules added up, which excludes no placement."""
    count = layout.most.shape[1]
    new_racks = np.arange(count) * racks // count
    least, most = (sums_at((racks, len(each)), new_racks, each.T).T for each in (layout.least, layout.most))
    return replace(layout, racks=new_racks[layout.racks], least=least, most=np.minimum(most, layout.factors[:, None]))


@dataclass(frozen=True, eq=False)
class _Columns:
    """The columns: replicas that stay, rows that enter a rack, and what arrives at each (topic, broker)."""

    keep: IntArray
    enter: IntArray
    cells: IntArray
    kinds: int

    @classmethod
    def of(cls, layout: Layout, kinds: int) -> Self:
        """Rows and slots of today's replicas, rows and racks, topics and brokers; each (2, K)."""
        topics, brokers = np.unique(layout.topics), np.arange(len(layout.targets))
        return cls(
            np.stack(np.nonzero(layout.home >= 0)),
            np.stack(np.nonzero(layout.most > 0)),
            np.stack([np.repeat(topics, len(brokers)), np.tile(brokers, len(topics))]),
            kinds,
        )

    @cached_property
    def starts(self) -> IntArray:
        """The first column of: keep, enter, arriving counts, arriving loads of each kind; and the number of columns."""
        runs = (self.keep.shape[1], self.enter.shape[1], *[self.cells.shape[1]] * (1 + self.kinds))
        return np.concatenate([[0], np.cumsum(runs)])

    def run(self, index: int) -> IntArray:
        """The columns of one of these runs."""
        return np.arange(self.starts[index], self.starts[index + 1])


def _program(layout: Layout, target_windows: Windows, loads: ByteLoads, allowed: int | None) -> Program:
    """The program; its last D × Bt rows are the loads'."""
    columns = _Columns.of(layout, len(loads.names))
    unit = layout.copy_bytes.sum() / len(layout.rows)
    weights = loads.weights * loads.scales[:, None] / unit
    rows = ProgramRows()
    _add_rows(rows, layout, columns)
    for kind in range(len(weights)):
        _add_arrivals(rows, layout, columns, weights, kind)
    _add_windows(rows, layout, columns, target_windows)
    windows = loads.windows * (loads.scales[:, None, None] / unit)
    starts = columns.starts
    # Further columns: the units below and above each window.
    outside = np.arange(0 if allowed is None else 2 * windows[:, 0].size).reshape(-1, 2, windows.shape[2]) + starts[-1]
    costs, upper = np.zeros(starts[-1] + outside.size), np.full(starts[-1] + outside.size, np.inf)
    if allowed is not None:
        indices = np.zeros(outside.size, dtype=np.int64)
        rows.add(np.array([[0.0], [allowed / unit]]), (indices, outside.ravel(), 1.0))
    for kind, window in enumerate(windows):
        _add_loads(rows, layout, columns, weights, kind, (window, outside[kind : kind + 1]))
    sizes = layout.copy_bytes / unit
    kept, slots = columns.keep
    costs[: starts[1]] = np.where(layout.replaced[kept, slots], sizes[kept], 0)
    costs[starts[1] : starts[2]] = sizes[columns.enter[0]]
    upper[: starts[1]] = 1
    upper[starts[1] : starts[2]] = layout.most[columns.enter[0], columns.enter[1]]
    if layout.forbidden is not None:
        upper[starts[2] + np.flatnonzero(layout.forbidden[*columns.cells])] = 0
    return rows.program(costs, upper)


def _add_rows(rows: ProgramRows, layout: Layout, columns: _Columns) -> None:
    """Every row has its replicas, and in each rack as many as the rack rule allows."""
    (kept, slots), (entering, racks) = columns.keep, columns.enter
    keep, enter = columns.run(0), columns.run(1)
    rows.add(np.stack([layout.factors] * 2), (kept, keep, 1.0), (entering, enter, 1.0))
    count = layout.most.shape[1]
    places, indices = np.unique(
        np.concatenate([kept * count + layout.racks[layout.home[kept, slots]], entering * count + racks]),
        return_inverse=True,
    )
    bounds = np.stack([layout.least.ravel()[places], layout.most.ravel()[places]])
    rows.add(bounds, (indices, np.concatenate([keep, enter]), 1.0))


def _add_arrivals(rows: ProgramRows, layout: Layout, columns: _Columns, weights: FloatArray, kind: int) -> None:
    """Replicas that enter a rack arrive on its brokers: as a count, and as bytes that fit that count."""
    (entering, racks), (topics, brokers) = columns.enter, columns.cells
    count = layout.most.shape[1]
    leaving, coming = layout.topics[entering] * count + racks, topics * count + layout.racks[brokers]
    zero_bounds = np.zeros((2, layout.topic_count * count))
    enter, counts, arriving = columns.run(1), columns.run(2), columns.run(3 + kind)
    if kind == 0:
        rows.add(zero_bounds, (leaving, enter, 1.0), (coming, counts, -1.0))
    rows.add(zero_bounds, (leaving, enter, weights[kind][entering]), (coming, arriving, -1.0))
    least, most = np.full(layout.topic_count, np.inf), np.zeros(layout.topic_count)
    np.minimum.at(least, layout.topics, weights[kind])
    np.maximum.at(most, layout.topics, weights[kind])
    indices, zeros, endless = np.arange(len(topics)), np.zeros(len(topics)), np.full(len(topics), np.inf)
    rows.add(np.stack([zeros, endless]), (indices, arriving, 1.0), (indices, counts, -least[topics]))
    rows.add(np.stack([-endless, zeros]), (indices, arriving, 1.0), (indices, counts, -most[topics]))


def _add_windows(rows: ProgramRows, layout: Layout, columns: _Columns, windows: Windows) -> None:
    """The windows of counts, of each (topic, broker) and of each broker."""
    (kept, slots), (topics, brokers) = columns.keep, columns.cells
    keep, arriving = columns.run(0), columns.run(2)
    homes, width = layout.home[kept, slots], len(layout.targets)
    by_topic, in_all = (_opened(window, int(layout.factors.sum())) for window in bounds(layout, windows))
    rows.add(by_topic, (layout.topics[kept] * width + homes, keep, 1.0), (topics * width + brokers, arriving, 1.0))
    rows.add(in_all, (homes, keep, 1.0), (brokers, arriving, 1.0))


def _add_loads(
    rows: ProgramRows,
    layout: Layout,
    columns: _Columns,
    weights: FloatArray,
    kind: int,
    window: tuple[FloatArray, IntArray],
) -> None:
    """The window (2, Bt) of one kind of load, and the columns (1 or 0, 2, Bt) of the units below and above it."""
    (kept, slots), (_, brokers) = columns.keep, columns.cells
    opened = _opened(window[0], float(weights[kind] @ layout.factors))
    entries = [(layout.home[kept, slots], columns.run(0), weights[kind][kept]), (brokers, columns.run(3 + kind), 1.0)]
    brokers_of_all = np.arange(len(layout.targets))
    for below, above in window[1]:
        entries += [(brokers_of_all, below, 1.0), (brokers_of_all, above, -1.0)]
    rows.add(opened, *entries)


def _opened(window: LongArray | FloatArray, most: float) -> FloatArray:
    """The window (2, ...) without upper ends that nothing reaches. A first-order method measures its tolerance by the
    largest bound; with such large ends, doing nothing would meet all others.
    """
    low, high = window
    return np.stack([low.astype(np.float64), np.where(high >= most, np.inf, high)])
