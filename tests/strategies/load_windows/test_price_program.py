"""A linear program, solved by both methods, and the prices of bytes from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy
from brute_force import countable, moved, plans_within
from clusters import balance_of, no_racks, problem_of, problems
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

from planner.model.balance import NO_TOLERANCE, Tolerance
from planner.model.cluster import Broker
from planner.model.problem import FloatArray, Problem
from planner.model.spec import Changes
from planner.scoring.windows import windows
from planner.strategies import lagrangian_bound
from planner.strategies.flow.placement import place, widened
from planner.strategies.flow.placement_network import Layout, lay_out
from planner.strategies.lagrangian_bound import GRAIN
from planner.strategies.load_windows import price_program
from planner.strategies.load_windows.attempts_at_prices import facts_of, proof
from planner.strategies.load_windows.byte_loads import ByteLoads, byte_loads, priced
from planner.strategies.load_windows.price_program import Method, Program, first_order_prices, solve

# Three units in all at 1, 2 and 4 each: at most two of the first kind, and at least two of the last two kinds.
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
    """A unit more in total costs 1, one more of the last kinds costs 1 more; a bound with slack costs nothing."""
    solved = solve(PROGRAM, method)
    assert solved is not None
    assert [1, 2, 0] == pytest.approx(solved.values.tolist())
    assert [1, 1, 0] == pytest.approx(solved.prices.tolist())


def test_what_columns_may_be_counts() -> None:
    """A column with a fixed value keeps it, and the other columns take the cheapest values that remain."""
    solved = solve(replace(PROGRAM, least=np.array([0.0, 0.0, 1.0])), "highs-ds")
    assert solved is not None
    assert ([1, 1, 1], 7) == (pytest.approx(solved.values.tolist()), pytest.approx(PROGRAM.costs @ solved.values))


def test_what_cannot_be_has_no_solution() -> None:
    """A program without a solution: at least four of three units."""
    assert solve(replace(PROGRAM, low=np.array([3.0, 4.0, -np.inf])), "highs-ds") is None


def test_the_first_order_method_agrees() -> None:
    """The first-order method's prices are close to the exact ones."""
    prices = first_order_prices(PROGRAM)
    assert prices is not None
    assert [1, 1, 0] == pytest.approx(prices.tolist(), abs=1e-2)


def within(problem: Problem, **shares: int) -> Problem:
    """The problem with only these windows of bytes, in per cent."""
    asked = {name: Tolerance("percent", share) for name, share in shares.items()}
    return replace(problem, balance=replace(balance_of("none", "none", "none"), **asked))


def parts(problem: Problem) -> tuple[Layout, ByteLoads]:
    """The layout and the loads of a problem that has windows of bytes."""
    layout = lay_out(problem, 0, 1024)
    loads = byte_loads(problem, layout, windows(problem, problem.balance))
    return layout, loads


def prices_of(problem: Problem) -> FloatArray | None:
    """The prices (D, Bt) of a problem's windows."""
    layout, loads = parts(problem)
    return price_program.byte_prices(layout, windows(problem, problem.balance), loads)


def expansion(**rest: Any) -> Problem:
    """Two brokers with four partitions of 10 bytes each, and a third broker without any."""
    rows = {"a": [(1,)] * 4 + [(2,)] * 4}
    return replace(problem_of(no_racks(1, 2), rows, sizes=10, changes=Changes(add_brokers=(Broker(3),))), **rest)


def test_what_fills_a_new_broker_costs_a_byte_a_byte() -> None:
    """The new broker must get at least 14 bytes, each of which is copied; the old brokers are within their windows."""
    assert [[0, 0, 1]] == np.round(found(prices_of(within(expansion(), disk=50))), 6).tolist()


def test_windows_that_hold_anyway_have_no_price() -> None:
    """If nothing must move for the disks, all prices are 0."""
    assert [[0, 0, 0]] == np.round(found(prices_of(within(expansion(), disk=150))), 6).tolist()


def test_a_broker_that_is_too_full_is_cheaper_to_leave() -> None:
    """Of 60 and 20 bytes, 12 must move: a byte on the emptier broker is worth one byte more."""
    problem = problem_of(no_racks(1, 2), {"a": [(1,)] * 6 + [(2,)] * 2}, sizes=10)
    ((full, empty),) = found(prices_of(within(problem, disk=20)))
    assert 1 == pytest.approx(empty - full)


def test_traffic_is_priced_by_what_has_to_be_copied_for_it() -> None:
    """To move five bytes a second, ten bytes are copied: a byte a second on the new broker is worth two bytes."""
    problem = within(expansion(bytes_in_per_sec=np.full(8, 5)), network_in=50)
    assert [[0, 0, 2]] == np.round(found(prices_of(problem)), 6).tolist()


def test_first_order_prices_of_bytes_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The method for larger programs gives nearly the exact prices, and the same prices every time."""
    problem = within(expansion(), disk=50)
    monkeypatch.setattr(price_program, "EXACT_PRICE_COLUMNS", 0)
    first, again = found(prices_of(problem)), found(prices_of(problem))
    assert np.abs(first - [[0, 0, 1]]).max() < 0.02
    assert first.tolist() == again.tolist()


def test_no_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """No prices without bytes, with windows that can't all hold, and for programs that are too large."""
    assert prices_of(within(expansion(size_bytes=np.zeros(8, dtype=np.int64)), disk=50)) is None
    lone = problem_of({1: "a", 2: "b", 3: "b"}, {"a": [(1, 2), (1, 3)]}, sizes=10)
    # Broker 1 is alone in its rack, so both partitions are on it; half a share is too little for them.
    tight = replace(parts(within(lone, disk=10))[1], windows=np.array([[[0, 0, 0], [10, 40, 40]]]))
    assert price_program.byte_prices(lay_out(lone, 0), windows(lone, balance_of("none", "none", "none")), tight) is None
    monkeypatch.setattr(price_program, "PRICE_COLUMNS", 10)
    assert prices_of(within(expansion(), disk=50)) is None


def test_counts_that_cannot_hold_have_prices_if_they_are_widened() -> None:
    """Broker 1 is alone in its rack, so it has a replica of all six partitions, however many it should have. A byte is
    worth one byte more on broker 3, which must get 25 of broker 2's 60 bytes.
    """
    problem = within(problem_of({1: "a", 2: "b", 3: "b"}, {"a": [(1, 2)] * 6}, sizes=10), disk=50)
    layout, loads = parts(problem)
    loads = replace(loads, windows=np.array([[[0, 25, 25], [60, 40, 40]]]))
    target_windows = replace(windows(problem, problem.balance), replicas=np.array([[2] * 3, [4] * 3]))
    assert price_program.byte_prices(layout, target_windows, loads) is None
    reachable = widened(layout, target_windows, place(problem, layout, target_windows))
    ((_, full, empty),) = found(price_program.byte_prices(layout, reachable, loads))
    assert 1 == pytest.approx(empty - full)


@pytest.mark.parametrize("racks", ["abc", "aab"])
def test_racks_that_are_too_many_are_taken_together(racks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rack for each broker takes 38 columns, and two racks take 30, which is too many; one rack takes 22."""
    rows = {"a": [(1,)] * 4 + [(2,)] * 4}
    one, two, three = racks
    problem = problem_of({1: one, 2: two}, rows, sizes=10, changes=Changes(add_brokers=(Broker(3, three),)))
    monkeypatch.setattr(price_program, "PRICE_COLUMNS", 29)
    monkeypatch.setattr(price_program, "PRICE_RACKS", 1)
    assert [[0, 0, 1]] == np.round(found(prices_of(within(problem, disk=50))), 6).tolist()


def found(prices: FloatArray | None) -> FloatArray:
    """Asserts that there are prices, and returns them."""
    assert prices is not None
    return prices


def proven(problem: Problem, prices: FloatArray) -> int:
    """The bound in bytes at these prices (D, Bt), which are in bytes a unit."""
    layout, loads = parts(problem)
    whole = np.rint(prices.clip(-3 * loads.scales[:, None], 3 * loads.scales[:, None]) * GRAIN).astype(np.int64)
    at = priced(layout, loads, whole) if whole.any() else layout
    placed = place(problem, at, windows(problem, problem.balance))
    return lagrangian_bound.lower_bound(proof(facts_of(problem, layout, loads), at, placed, (whole, loads.windows)))


@examples(20)
@given(problems(brokers=5, topics=2, partitions=3).filter(countable), st.sampled_from([5, 20, 60]), st.data())
def test_prices_prove_more_than_none_and_no_more_than_is_true(
    problem: Problem, share: int, data: st.DataObject
) -> None:
    """The bound at the prices isn't below the one without them, nor above what the best plan moves."""
    sizes = np.array(data.draw(st.lists(st.integers(10**6, 10**7), min_size=problem.rows, max_size=problem.rows)))
    balance = replace(problem.balance, disk=Tolerance("percent", share), topic_leaders=NO_TOLERANCE)
    asked = replace(problem, size_bytes=sizes, balance=balance)
    assume(len(lay_out(asked, 0).rows))
    wanted = windows(asked, balance)
    best = [moved(asked, plan)[0] for plan in plans_within(asked, wanted)]
    assume(best)
    prices = found(prices_of(asked))
    rounding = int((sizes * asked.replication_factors).sum()) // 500
    nothing = np.zeros_like(prices)
    assert proven(asked, nothing) - rounding <= proven(asked, prices) <= min(best)
