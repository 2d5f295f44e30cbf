"""Windows of loads that can't all hold: budgets of what is outside, and the plans that use them."""

from __future__ import annotations

import numpy as np
import pytest
from clusters import crowded

from benchmarks.exact import Judge
from planner.strategies import bounds
from planner.strategies.load_windows.local_search import polish
from planner.strategies.load_windows.local_search_state import MostOutside, Placement, SearchState, outward
from planner.strategies.optimum import solve


def search(loads: list[int], levels: list[list[int]], most: MostOutside | None) -> SearchState:
    """Rows of one topic on three brokers of one rack, at most 10 of a load on each, costing what they weigh."""
    rows, of = len(loads), np.array(loads, dtype=np.int64)
    return SearchState(
        topics=np.zeros(rows, dtype=np.int32),
        costs=of,
        levels=np.array(levels, dtype=np.int8),
        allowed=None,
        racks=np.zeros(3, dtype=np.int32),
        least=np.full((rows, 1), 1, dtype=np.int32),
        most=np.full((rows, 1), 1, dtype=np.int32),
        loads=of[None],
        scales=np.array([1]),
        load_windows=np.array([[[0, 0, 0], [10, 10, 10]]]),
        cell_windows=np.array([[[0, 0, 0]], [[9, 9, 9]]]),
        broker_windows=np.array([[0, 0, 0], [9, 9, 9]]),
        most_outside=most,
    )


HOME = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("most", "cost"),
    [
        # Row 1 makes place for row 0, which costs a copy of it.
        (None, 3),
        (MostOutside(8, np.array([8])), 0),
        (MostOutside(8, np.array([7])), 3),
        (MostOutside(7, np.array([8])), 3),
    ],
)
def test_as_much_may_be_outside_as_is_allowed(most: MostOutside | None, cost: int) -> None:
    """Row 0 goes home: both rows stay there only where that is neither too much in all nor too much of one broker."""
    on = np.array([[False, True, False], [True, False, False]])
    placement = Placement(search([15, 3], [[0, 1, 1], [0, 1, 1]], most), on)
    polish(placement)
    assert placement.cost == cost


def test_outward_counts_all_brokers_together() -> None:
    """Without a budget each load may be no further outside in sum; with one the sum of all is what counts."""
    on = np.array([[True, False, False], [False, True, False], [False, True, False]])
    here = Placement(search([14, 8, 6], HOME, None), on)
    shifts = np.array([[[-4, -5, 3]], [[4, 5, -3]]])
    assert [False, True, False] == outward(here, (0, 1), shifts).tolist()
    roomy = Placement(search([14, 8, 6], HOME, MostOutside(9, np.array([9]))), on)
    assert [False, False, False] == outward(roomy, (0, 1), shifts).tolist()
    close = Placement(search([14, 8, 6], HOME, MostOutside(9, np.array([8]))), on)
    assert [False, True, False] == outward(close, (0, 1), shifts).tolist()


def test_settled_is_within_what_may_be_outside() -> None:
    """Within the windows, or as much outside as is allowed."""
    on = np.array([[True, False, False], [False, True, False], [False, True, False]])
    assert not Placement(search([14, 8, 6], HOME, None), on).settled()
    assert Placement(search([14, 8, 6], HOME, MostOutside(8, np.array([4]))), on).settled()
    assert not Placement(search([14, 8, 6], HOME, MostOutside(7, np.array([4]))), on).settled()
    assert not Placement(search([14, 8, 6], HOME, MostOutside(8, np.array([3]))), on).settled()


def test_the_least_outside_and_then_the_fewest_bytes() -> None:
    """Windows of counts and of bytes that can't hold: the solver finds no better plan, and every claim is true."""
    problem = crowded()
    solution, judge = solve(problem, problem.balance, certify=True), Judge(problem)
    outside = judge.outside(solution.assignment)
    assert outside.replicas > 0 < outside.loads
    assert (outside.replicas, outside.loads) == (
        judge.least_replicas().exact,
        judge.least_loads(outside.replicas).exact,
    )
    assert judge.copied(solution.assignment) == judge.least_bytes(outside).exact >= solution.least_bytes
    assert solution.certificate is not None
    assert solution.certificate.outside is not None
    told = bounds.least_outside(solution.certificate.facts, solution.certificate.outside)
    assert told.replicas == outside.replicas
    assert 0 <= told.loads <= outside.loads
