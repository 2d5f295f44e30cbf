"""Compares plans and bounds with an exact solver, which knows the rules but not how plans are made."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from brute_force import as_plan, moved
from clusters import balance_of, no_racks, problem_of

from benchmarks.exact import Judge, options
from benchmarks.exact_clusters import PLACED, cluster
from benchmarks.exact_table import judged
from planner.model.cluster import Broker
from planner.model.problem import Problem
from planner.model.spec import Changes
from planner.strategies import lagrangian_bound
from planner.strategies.optimum import solve

# The number of clusters that are judged here; `python -m benchmarks --exact` judges as many as asked.
CLUSTERS = 14


def assert_true(number: int) -> None:
    """Assert that every claim about the cluster's plan is true."""
    verdict = judged(number)
    assert verdict is None or () == verdict.faults, verdict


@pytest.mark.slow
@pytest.mark.parametrize("number", range(CLUSTERS))
def test_no_claim_is_above_the_truth(number: int) -> None:
    """No bound exceeds the bytes of a plan that is no further outside of its windows, on whichever brokers."""
    assert_true(number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(PLACED, PLACED + CLUSTERS))
def test_no_claim_is_above_the_truth_with_rules_of_placement(number: int) -> None:
    """The same holds if topics may use only some brokers."""
    assert_true(number)


@pytest.mark.parametrize("number", [87, 98, 115])
def test_no_claim_is_false_where_nothing_may_move(number: int) -> None:
    """Only today's plan is possible, outside of its windows. The judge once took a missing certificate for a claim."""
    assert_true(number)


def overfull() -> Problem:
    """A new broker and a few partitions, of which the large ones exceed any window of bytes."""
    sizes = {"t0": [657, 602, 779], "t1": [502, 1461], "t2": [10_000], "t3": [62_400, 73_900, 70_900]}
    rows = {
        "t0": [(4, 2, 3), (3, 4, 1), (2, 1, 3)],
        "t1": [(2, 4), (2, 5)],
        "t2": [(1, 3, 5)],
        "t3": [(5, 3, 2), (3, 5, 1), (2, 3, 4)],
    }
    return problem_of(
        no_racks(1, 2, 3, 4, 5),
        rows,
        sizes={name: [size * 10**6 for size in of] for name, of in sizes.items()},
        changes=Changes(add_brokers=(Broker(6),)),
        balance=balance_of(1, 1, 1, "none", "10%"),
    )


@pytest.mark.slow
def test_another_broker_may_carry_what_is_outside() -> None:
    """The bound is at most the exact minimum for as much excess on any brokers, and the plan is within 0.1 % of it."""
    problem = overfull()
    solution, judge = solve(problem, problem.balance, certify=True), Judge(problem)
    outside = judge.outside(solution.assignment)
    least = judge.least_bytes(outside)
    assert outside.loads > 0
    assert least.exact is not None
    assert solution.least_bytes <= least.exact <= judge.copied(solution.assignment) <= 1.001 * least.exact
    assert judge.least_loads(outside.replicas).exact == outside.loads


@pytest.mark.slow
def test_the_excess_that_is_told_is_the_least_or_less() -> None:
    """The certificate's least excess is at most the plan's."""
    problem = overfull()
    certificate = solve(problem, problem.balance, certify=True).certificate
    assert certificate is not None
    assert certificate.outside is not None
    told = lagrangian_bound.least_outside(certificate.facts, certificate.outside)
    assert 0 < told.loads <= certificate.outside.slack.loads


def test_the_solver_agrees_with_trying_every_plan() -> None:
    """The solver's least excess and least bytes are those of brute force."""
    problem = problem_of(
        no_racks(1, 2, 3),
        {"a": [(1,), (1,), (2,)], "b": [(2, 1)]},
        sizes={"a": [5, 9, 2], "b": [4]},
        balance=balance_of(1, "none", 1, "none", "10%"),
    )
    judge = Judge(problem)
    every = []
    for plan in product(*(options(problem, row) for row in range(problem.rows))):
        assignment = np.full((problem.rows, problem.width), -1)
        for row, brokers in enumerate(plan):
            assignment[row, : len(brokers)] = brokers
        every.append((judge.outside(assignment), moved(problem, as_plan(assignment))[0], judge.copied(assignment)))
    assert all(by_sets == copied for _, by_sets, copied in every)
    replicas = min(outside.replicas for outside, _, _ in every)
    loads = min(outside.loads for outside, _, _ in every if outside.replicas <= replicas)
    assert (replicas, loads) == (judge.least_replicas().exact, judge.least_loads(replicas).exact)
    for most, _, _ in every[::7]:
        within = [
            copied
            for outside, _, copied in every
            if outside.replicas <= most.replicas
            and outside.loads <= most.loads
            and all(mine <= theirs for mine, theirs in zip(outside.furthest, most.furthest, strict=True))
        ]
        assert min(within) == judge.least_bytes(most).exact


def test_clusters_are_the_same_every_time() -> None:
    """A number always gives the same cluster, and different numbers give different balances."""
    first, second = cluster(7), cluster(7)
    assert (first.replicas.tolist(), first.size_bytes.tolist(), first.balance) == (
        second.replicas.tolist(),
        second.size_bytes.tolist(),
        second.balance,
    )
    assert len({cluster(number).balance for number in range(30)}) > 15
