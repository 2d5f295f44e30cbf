"""Linear programs by hand: values and prices of both solvers, and what has no solution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy

from planner.strategies.load_windows.linear_program import Method, Program, first_order_prices, solve

# Three units in all at 1, 2 and 4 each, at most two of the first kind, and two at least of the last two kinds.
PROGRAM = Program(
    costs=np.array([1.0, 2.0, 4.0]),
    matrix=scipy.sparse.csr_matrix(np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])),
    low=np.array([3.0, 2.0, -np.inf]),
    high=np.array([3.0, np.inf, 1.0]),
    least=np.zeros(3),
    most=np.array([2.0, np.inf, np.inf]),
)


@pytest.mark.parametrize("method", ["highs-ipm", "highs-ds"])
def test_the_cheapest_values_and_their_prices(method: Method) -> None:
    """One more unit in all costs 1, one more of the last kinds 1 more; a bound that isn't met costs nothing."""
    solved = solve(PROGRAM, method)
    assert solved is not None
    assert [1, 2, 0] == pytest.approx(solved.values.tolist())
    assert [1, 1, 0] == pytest.approx(solved.prices.tolist())


def test_what_columns_may_be_counts() -> None:
    """A column that is settled stays, and the prices are those of what is left to choose."""
    solved = solve(replace(PROGRAM, least=np.array([0.0, 0.0, 1.0])), "highs-ds")
    assert solved is not None
    assert ([1, 1, 1], 7) == (pytest.approx(solved.values.tolist()), pytest.approx(PROGRAM.costs @ solved.values))


def test_what_cannot_be_has_no_solution() -> None:
    """Three in all, of which four."""
    assert solve(replace(PROGRAM, low=np.array([3.0, 4.0, -np.inf])), "highs-ds") is None


def test_the_first_order_method_agrees() -> None:
    """Its prices are close to the exact ones."""
    prices = first_order_prices(PROGRAM)
    assert prices is not None
    assert [1, 1, 0] == pytest.approx(prices.tolist(), abs=1e-2)
