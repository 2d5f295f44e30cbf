"""How far plans may be outside their windows: as far as one given plan is; and prices that fit that allowance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from clusters import balance_of, crowded, problems
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from benchmarks.exact import Judge
from planner.model.problem import IntArray, Problem
from planner.scoring.window_excess import Allowed
from planner.scoring.windows import windows
from planner.strategies import lagrangian_bound
from planner.strategies.flow.placement_network import lay_out
from planner.strategies.lagrangian_bound import Branch, changed
from planner.strategies.load_windows.allowed_plans import at_price, no_open_windows, no_slack, slack_of, with_slack
from planner.strategies.load_windows.byte_loads import byte_loads
from planner.strategies.optimum import solve

ANY = balance_of("none", "none", "none", "none")


def outside(problem: Problem, assignment: IntArray) -> Allowed:
    """How far a plan (P, W) is outside the windows asked for; asserts that nothing was allowed outside before."""
    layout, wanted = lay_out(problem, 0, 1), windows(problem, problem.balance)
    loads = byte_loads(problem, layout, wanted)
    none = no_slack(layout, wanted, no_open_windows(problem, problem.balance, layout.topic_count), loads)
    assert none.none
    return slack_of(layout, none, loads, assignment[layout.rows])


@examples(40)
@given(problems(), st.integers(0, 3))
def test_a_plan_is_as_far_outside_as_the_judge_says(problem: Problem, seed: int) -> None:
    """The judge adds up replicas broker by broker, whatever the plan was made for."""
    assignment = solve(problem, ANY, seed).assignment
    assert Judge(problem).outside(assignment).replicas >= outside(problem, assignment).certain
    assert outside(problem, assignment).replicas == Judge(problem).outside(assignment).replicas


def test_loads_outside_are_as_the_judge_says() -> None:
    """The loads outside windows agree with the judge's, in total and on the broker that is furthest outside."""
    problem = crowded()
    for balance in (ANY, problem.balance):
        assignment = solve(problem, balance).assignment
        found, judged = outside(problem, assignment), Judge(problem).outside(assignment)
        assert found.furthest is not None
        assert (judged.replicas, judged.loads) == (found.replicas, found.loads)
        assert judged.furthest == tuple(found.furthest.tolist())


def test_what_may_be_less_far_outside_moves_no_less() -> None:
    """If plans may be only half as far outside, the bound is as high or higher."""
    problem = crowded()
    certificate = solve(problem, problem.balance, certify=True).certificate
    assert certificate is not None
    assert certificate.outside is not None
    most = certificate.outside.slack
    assert most.furthest is not None
    half = replace(most, replicas=most.replicas // 2, loads=most.loads // 2, furthest=most.furthest // 2)
    least = [lagrangian_bound.lower_bound(with_slack(certificate, each)) for each in (most, half)]
    assert 0 < least[0] <= least[1]


def test_a_price_of_loads_is_no_steeper_than_a_unit_outside() -> None:
    """Prices that are too steep for the allowance are lowered to it, in each case of a branch."""
    problem = crowded()
    certificate = solve(problem, problem.balance, certify=True).certificate
    assert certificate is not None
    assert certificate.outside is not None
    most, prices = certificate.outside.slack, certificate.prices
    steep = tuple(np.stack([table[0], table[1] * 10**9, table[2]]) for table in prices.loads)
    assert any(np.abs(table[1]).max(initial=0) > 10**6 for table in steep)
    branch = changed(Branch(0, 0, replace(prices, loads=steep), prices), lambda each: at_price(each, most))
    assert isinstance(branch, Branch)
    for case in (branch.off, branch.on):
        assert not isinstance(case, Branch)
        assert case.of_loads == case.grain
        for table, scale in zip(case.loads, most.windows.scales.tolist(), strict=True):
            assert np.abs(table[1]).max(initial=0) <= scale * case.grain
