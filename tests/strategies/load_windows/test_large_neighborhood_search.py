"""Integer programs of a few brokers: the cheapest placement there, and plans that copy less because of them."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import as_plan, countable, moved, plans_within
from clusters import loaded_problems, no_racks, problem_of
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

from planner.model import build_problem
from planner.model.balance import Balance, Tolerance
from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.problem import BoolArray, Problem
from planner.model.spec import Changes, Spec
from planner.scoring import independent_check
from planner.scoring.windows import windows
from planner.strategies.flow.placement import matrix, on_brokers, place
from planner.strategies.flow.placement_network import lay_out
from planner.strategies.load_windows import large_neighborhood_search
from planner.strategies.load_windows.byte_loads import byte_loads
from planner.strategies.load_windows.large_neighborhood_search import placed_anew
from planner.strategies.load_windows.lp_relaxation import whole_program
from planner.strategies.optimum import Proposal, solve
from planner.strategies.work_limits import NEIGHBORHOOD_CLOSE, Effort

SMALL = {"brokers": 5, "topics": 2, "partitions": 4}


def unlike_sizes() -> Spec:
    """21 brokers in three racks, three of them new, and 150 partitions of unlike sizes."""
    rng = np.random.default_rng(0)
    brokers = tuple(Broker(number, f"r{number % 3}") for number in range(21))
    topics = list[Topic]()
    for number in range(15):
        rows = []
        for partition in range(10):
            replicas = tuple(int(3 * rng.integers(6) + rack) for rack in rng.permutation(3))
            rows.append(Partition(partition, replicas, replicas[0], None, int(rng.lognormal(24, 1))))
        topics.append(Topic(f"t{number:02}", tuple(rows)))
    balance = Balance(disk=Tolerance.parse("20%"))
    return Spec(Cluster("unlike", brokers[:18], tuple(topics)), Changes(brokers[18:]), balance=balance)


def _placed(problem: Problem, free: BoolArray) -> tuple[BoolArray, BoolArray] | None:
    """The placement by counts alone (M, Bt), and the cheapest that differs from it only in free places (M, Bt)."""
    layout, wanted = lay_out(problem, 0), windows(problem, problem.balance)
    by_counts = on_brokers(layout, place(problem, layout, wanted).chosen)
    program = whole_program(layout, wanted, byte_loads(problem, layout, wanted)).program
    free = free if layout.reachable is None else free & layout.reachable
    changed = placed_anew(program, by_counts, free, Effort(10**9))
    return None if changed is None else (by_counts, changed)


def _copied(problem: Problem, proposal: Proposal) -> int:
    return moved(problem, as_plan(proposal.assignment))[0]


@examples(100)
@given(loaded_problems(**SMALL))
def test_with_all_places_free_it_is_the_cheapest_plan(problem: Problem) -> None:
    """Brute force finds no plan within the windows that copies less; the program may stop a thousandth before it."""
    layout, wanted = lay_out(problem, 0), windows(problem, problem.balance)
    assume(len(layout.rows) and countable(problem) and problem.rebalance == "all" and layout.copy_bytes.any())
    placed = _placed(problem, np.ones((len(layout.rows), len(layout.targets)), dtype=bool))
    # If counts alone miss windows of counts, the program may too.
    costs = [moved(problem, plan)[0] for plan in plans_within(problem, wanted)]
    assume(costs and placed is not None)
    assert placed is not None
    assignment = build_problem.today(problem)
    assignment[layout.rows] = matrix(layout, np.stack(np.nonzero(placed[1])), problem.width)
    assert moved(problem, as_plan(assignment))[0] <= min(costs) * (1 + NEIGHBORHOOD_CLOSE) + len(layout.rows)


@examples(100)
@given(loaded_problems(**SMALL), st.integers(0, 2**20))
def test_other_places_stay_and_counts_are_kept(problem: Problem, seed: int) -> None:
    """A few places are free: all others are as before, and so is how many replicas each partition has."""
    layout = lay_out(problem, 0)
    free = np.random.default_rng(seed).random((len(layout.rows), len(layout.targets))) < 0.5
    assume(free.any())
    placed = _placed(problem, free)
    assert placed is not None, "as before is one way"
    before, after = placed
    assert not ((before != after) & ~free).any()
    assert (before.sum(axis=1) == after.sum(axis=1)).all()


def test_without_a_free_place_there_is_nothing_to_place() -> None:
    """No program is solved."""
    problem = problem_of(no_racks(1, 2), {"a": [(1,), (2,)]})
    assert _placed(problem, np.zeros((2, 2), dtype=bool)) is None


@pytest.mark.slow
def test_large_partitions_are_copied_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 150 partitions of unlike sizes on 21 brokers, the plan copies less than one without these programs."""
    problem = build_problem.build(unlike_sizes())
    proposal = solve(problem, problem.balance)
    monkeypatch.setattr(large_neighborhood_search, "NEIGHBORHOODS", 0)
    without = solve(problem, problem.balance)
    assert not independent_check.check(problem, proposal.assignment)
    assert proposal.least_bytes <= _copied(problem, proposal) < 0.998 * _copied(problem, without)
