"""Limits of work: how much its parts may spend, and what a solve does with little work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import cases
from planner.model import build_problem
from planner.model.balance import Balance, Tolerance
from planner.strategies import optimum
from planner.strategies.work_limits import FULL_WORK, Effort, WorkLimit


def test_a_part_may_spend_its_share_and_no_more() -> None:
    """A part's spending counts against the whole, up to the part's share; the rest stays with the whole."""
    whole = Effort(100_000)
    part = whole.part(0.5)
    part.spend(20_000)
    assert (25_000, 75_000) == (part.left, whole.left)
    part.spend(30_000)
    assert (True, False, 40_000) == (part.spent, whole.spent, whole.left)


def test_a_part_of_what_is_spent_is_nothing() -> None:
    """A part of an effort that is spent is spent too, and a part ends with the whole."""
    whole = Effort(10_000)
    part = whole.part(1)
    whole.spend(10_000)
    assert part.spent
    assert whole.spent
    assert whole.part(0.5).spent


def test_large_programs_are_worth_more() -> None:
    """A large program gets work in proportion to its columns, if that is more than the minimum."""
    worth = WorkLimit(1_000_000, 100)
    assert [1_000_000, 1_000_000, 2_000_000] == [Effort.of(worth, each).left for each in (1, 10_000, 20_000)]


def test_small_programs_take_longer_than_their_columns_say() -> None:
    """A small program costs more work than its columns; for a large one, the surcharge is small."""
    spent = []
    for columns in (10, 1_000, 1_000_000):
        effort = Effort(10**9)
        effort.spend(columns)
        spent.append(10**9 - effort.left)
    assert [110, 6_000, 1_005_000] == spent


@pytest.mark.slow
def test_less_work_proves_no_more_and_never_wrongly() -> None:
    """Less work proves a lower bound and finds no better plan; more work brings them within 0.1 %."""
    case = cases.to_spec(cases.make("skewed-sizes", "y5"))
    problem = replace(build_problem.build(case), balance=Balance(disk=Tolerance("percent", 2)))
    little, much = (optimum.solve(problem, problem.balance, work=each) for each in (WorkLimit(100_000, 1), FULL_WORK))
    assert little.least_bytes <= much.least_bytes
    assert _moved(problem, much) <= _moved(problem, little)
    assert much.least_bytes <= _moved(problem, much) <= much.least_bytes * 1.001


@pytest.mark.slow
def test_the_same_work_finds_the_same_plan() -> None:
    """The same amount of work finds the same plan and bound, independent of time."""
    case = cases.to_spec(cases.make("skewed-sizes", "x4"))
    problem = replace(build_problem.build(case), balance=Balance(disk=Tolerance("percent", 2)))
    first, second = (optimum.solve(problem, problem.balance, work=WorkLimit(500_000, 10)) for _ in range(2))
    assert first.assignment.tolist() == second.assignment.tolist()
    assert first.least_bytes == second.least_bytes


def _moved(problem: build_problem.Problem, solution: optimum.Proposal) -> int:
    held = solution.assignment[:, :, None] == problem.replicas[:, None, :]
    added = (solution.assignment >= 0) & ~held.any(axis=2)
    return int(np.dot(added.sum(axis=1), problem.size_bytes))
