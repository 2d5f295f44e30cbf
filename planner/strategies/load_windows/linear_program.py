"""A linear program as arrays, and its two solvers: HiGHS for exact answers, and a first-order method for large ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import scipy  # its parts are imported where they are first used: most commands use none
from ortools.pdlp import solvers_pb2
from ortools.pdlp.python import pdlp

from planner.model.problem import FloatArray, IntArray, LongArray
from planner.strategies.work_limits import PRICE_ITERATIONS, PRICE_TOLERANCE

# HiGHS' interior point method and its dual simplex: the one for prices alone, the other for few split shares.
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


class Rows:
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
        """The program of these rows, for columns (K,) from nothing to `most`."""
        rows, columns, values = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        matrix = scipy.sparse.csr_matrix((values, (rows, columns)), shape=(self._count, len(costs)))
        return Program(costs, matrix, np.concatenate(self._low), np.concatenate(self._high), np.zeros_like(most), most)


class Solution(NamedTuple):
    """The columns' values (K,), and the rows' prices (N,)."""

    values: FloatArray
    prices: FloatArray


def solve(program: Program, method: Method) -> Solution | None:
    """The optimum by HiGHS; None: there is none."""
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
    """The rows' prices (N,) by OR-tools' PDLP, always in as many pieces, so that it doesn't matter who runs it."""
    quadratic = pdlp.QuadraticProgram()
    quadratic.objective_vector = program.costs
    quadratic.constraint_matrix = scipy.sparse.csc_matrix(program.matrix)
    quadratic.constraint_lower_bounds, quadratic.constraint_upper_bounds = program.low, program.high
    quadratic.variable_lower_bounds, quadratic.variable_upper_bounds = program.least, program.most
    settings = solvers_pb2.PrimalDualHybridGradientParams(num_threads=2, num_shards=8)
    criteria = settings.termination_criteria.simple_optimality_criteria
    criteria.eps_optimal_relative = criteria.eps_optimal_absolute = PRICE_TOLERANCE
    settings.termination_criteria.iteration_limit = PRICE_ITERATIONS
    solved = pdlp.primal_dual_hybrid_gradient(quadratic, settings)
    prices = np.asarray(solved.dual_solution, dtype=np.float64)
    return prices if np.isfinite(prices).all() else None
