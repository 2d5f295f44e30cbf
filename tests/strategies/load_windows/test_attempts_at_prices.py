"""Proofs of placements, checked by trying every plan: no plan within the windows moves less than the bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from brute_force import AS_GIVEN, as_plan, countable, keeps, moved, plans_within
from clusters import loaded_problems, problems
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples
from uneven_clusters import uneven_problems

from planner.model.balance import Balance, Tolerance
from planner.model.problem import Problem
from planner.plan import bound_json
from planner.scoring import independent_check
from planner.scoring.windows import windows
from planner.strategies import lagrangian_bound
from planner.strategies.flow.placement_network import bounds as count_windows
from planner.strategies.flow.placement_network import lay_out
from planner.strategies.lagrangian_bound import GRAIN, BoundFacts, Certificate, Prices, none_priced, price_at_edges
from planner.strategies.load_windows.attempts_at_prices import facts_of, in_units
from planner.strategies.load_windows.byte_loads import byte_loads
from planner.strategies.optimum import solve
from planner.sweep.candidates import STRATEGIES, Candidate

KINDS = ("all", "all", "all", "leaders", "none")
SMALL = {"brokers": 5, "topics": 2, "partitions": 4, "rebalance": KINDS}


def with_any_prices(problem: Problem, seed: int) -> Certificate:
    """A certificate of the windows asked for, at random prices that have nothing to do with the problem."""
    rng = np.random.default_rng(seed)
    layout, wanted = lay_out(problem, seed), windows(problem, problem.balance)
    loads = byte_loads(problem, layout, wanted)
    of_loads = loads.windows
    cells, brokers = count_windows(layout, wanted)
    steep = int(rng.choice([1, GRAIN, 20 * GRAIN, 10**6]))
    of_cells, of_brokers = (rng.integers(-steep, steep, each[0].shape, endpoint=True) for each in (cells, brokers))
    load_prices = rng.integers(-3 * GRAIN, 3 * GRAIN, of_loads[:, 0].shape, endpoint=True)
    prices = Prices(
        price_at_edges(of_cells, cells),
        price_at_edges(of_brokers, brokers),
        tuple(map(price_at_edges, load_prices, of_loads)),
    )
    return Certificate(facts_of(problem, layout, loads), prices)


@examples(200)
@given(
    st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=4),
    st.integers(1, 2**10),
    st.integers(1, 2**20),
    st.integers(1, 2**10),
)
def test_prices_in_units_are_exact_however_large(prices: list[int], parts: int, unit: int, scale: int) -> None:
    """To the nearest whole unit; Python's own integers where 64 bits are too few."""
    found = in_units(np.array(prices, dtype=np.int64), parts * unit, unit, scale)
    assert [(each * parts + scale // 2) // scale * unit for each in prices] == found.tolist()


def least_within(problem: Problem, in_bytes: bool, balance: Balance = AS_GIVEN) -> int | None:
    """The fewest bytes, or replicas, of all plans that keep the windows; None if no plan does.

    The windows that the spreads of `balance` leave open begin anywhere.
    """
    plans = plans_within(problem, windows(problem, problem.balance), balance)
    return min((moved(problem, plan)[0 if in_bytes else 1] for plan in plans), default=None)


@examples(300)
@given(loaded_problems(**SMALL).filter(countable), st.integers(0, 2**32))
def test_any_prices_stay_below_every_plan(problem: Problem, seed: int) -> None:
    """Whatever the prices are, of counts, bytes or traffic, no plan within the windows moves less than the bound."""
    assume(len(lay_out(problem, 0).rows))
    certificate = with_any_prices(problem, seed)
    least = least_within(problem, certificate.facts.measure == "bytes")
    if least is not None:
        assert lagrangian_bound.lower_bound(certificate) <= least


@examples(60)
@given(loaded_problems(**SMALL), st.integers(0, 2**32))
def test_the_same_from_its_document(problem: Problem, seed: int) -> None:
    """Written as plain data and read again a certificate has the same bound, whatever it is about."""
    certificate = with_any_prices(problem, seed)
    again = bound_json.from_document(bound_json.to_document(certificate))
    assert lagrangian_bound.lower_bound(certificate) == lagrangian_bound.lower_bound(again)


@pytest.mark.slow
@examples(250)
@given(loaded_problems(**SMALL).filter(countable))
def test_windows_of_bytes_on_tiny_clusters(problem: Problem) -> None:
    """Where some plan keeps all windows, so does the one found, and none moves less; the bound is below both.

    Windows that a spread leaves open begin anywhere: the plan may move less than any within the windows at one start.
    """
    solution = solve(problem, problem.balance, certify=True)
    plan, wanted = as_plan(solution.assignment), windows(problem, problem.balance)
    assert () == independent_check.check(problem, solution.assignment)
    if solution.certificate is None:
        return
    in_bytes = solution.certificate.facts.measure == "bytes"
    bound, mine = lagrangian_bound.lower_bound(solution.certificate), moved(problem, plan)[0 if in_bytes else 1]
    at_start, anywhere = (least_within(problem, in_bytes, each) for each in (AS_GIVEN, problem.balance))
    assert bound <= mine
    if anywhere is not None:
        assert bound <= anywhere
    if at_start is not None and problem.rebalance == "all":
        assert keeps(problem, wanted, plan, problem.balance)
        assert mine <= at_start


@examples(100)
@given(problems(brokers=5, topics=2, partitions=4))
def test_without_windows_of_bytes_the_proof_is_exact(problem: Problem) -> None:
    """The prices of the flow alone come to what the plan moves."""
    solution = solve(problem, problem.balance, certify=True)
    if solution.certificate is not None and (problem.replacements < 0).all():
        in_bytes = solution.certificate.facts.measure == "bytes"
        mine = moved(problem, as_plan(solution.assignment))[0 if in_bytes else 1]
        assert mine == lagrangian_bound.lower_bound(solution.certificate)


@pytest.mark.slow
@examples(10)
@given(uneven_problems())
def test_no_strategy_is_below_the_bound(problem: Problem) -> None:
    """On uneven clusters too no valid plan within the windows that the optimum's proof is about moves less than it."""
    solution = solve(problem, problem.balance, certify=True)
    wanted = windows(problem, problem.balance)
    assume(solution.certificate is not None)
    least = lagrangian_bound.lower_bound(solution.certificate) if solution.certificate else 0
    measure = 0 if solution.certificate and solution.certificate.facts.measure == "bytes" else 1
    assert least <= moved(problem, as_plan(solution.assignment))[measure]
    for name, strategy in STRATEGIES.items():
        plan = strategy(problem, Candidate(name, 1, balance=problem.balance)).assignment
        if not independent_check.check(problem, plan) and keeps(problem, wanted, as_plan(plan)):
            assert least <= moved(problem, as_plan(plan))[measure], name


@examples(20)
@given(problems(brokers=5, topics=2, partitions=4).filter(countable))
def test_wider_windows_have_lower_bounds(problem: Problem) -> None:
    """The looser the windows of counts, the lower the bound, down to what the other changes force."""
    steps = [replace(problem.balance, replicas=Tolerance.parse(text)) for text in ("0", "2", "4", "none")]
    assume(next(plans_within(problem, windows(problem, steps[0])), None) is not None)
    found = [each for each in (solve(problem, step, certify=True).certificate for step in steps) if each is not None]
    least = [lagrangian_bound.lower_bound(each) for each in found]
    assert sorted(least, reverse=True) == least
    assert all(
        lagrangian_bound.lower_bound(Certificate(each.facts, none_priced(each.facts))) <= least[-1] for each in found
    )


def test_prices_beyond_64_bits_are_added_up_exactly() -> None:
    """Partitions of an exabyte, at prices whose sums need more than 64 bits."""
    size = 10**18
    about = BoundFacts(
        measure="bytes",
        broker_ids=np.array([1, 2]),
        racks=np.array([0, 0]),
        least=np.array([[0], [1]]),
        most=np.array([[0], [1]]),
        topics=np.array([0, 0]),
        factors=np.array([1, 1]),
        costs=np.array([size, size]),
        home=np.array([[0], [0]]),
        home_costs=np.array([[0], [0]]),
        loads=np.array([[size, size]]),
        load_names=("disk",),
        kinds=np.array([1, 1]),
    )
    window = np.array([[0, size], [2 * size, 2 * size]])
    priced = replace(none_priced(about), loads=(price_at_edges(np.array([0, GRAIN]), window),))
    assert size == lagrangian_bound.lower_bound(Certificate(about, priced))


def test_nothing_that_may_move() -> None:
    """A certificate about no partition can be read back, and its bound is 0."""
    empty = BoundFacts(
        "bytes",
        *(np.array([1]), np.array([0])),
        *(np.zeros((1, 1), dtype=np.int64) for _ in range(2)),
        *(np.zeros(0, dtype=np.int64) for _ in range(3)),
        *(np.zeros((0, 3), dtype=np.int64) for _ in range(2)),
        np.zeros((0, 0), dtype=np.int64),
        (),
        np.zeros(0, dtype=np.int64),
    )
    document = bound_json.to_document(Certificate(empty, none_priced(empty)))
    assert 0 == lagrangian_bound.lower_bound(bound_json.from_document(document))
