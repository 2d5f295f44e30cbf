"""Sums over look-ups give the scores of placing every partition."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from clusters import loaded_problems, no_racks, problem_of, problems
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

from benchmarks import cases
from planner.model import build_problem
from planner.model.balance import NO_TOLERANCE, Tolerance
from planner.model.problem import Problem
from planner.model.seeded_numbers import draws
from planner.model.spec import Growth, Sweep
from planner.scoring.score import Scores, ScoringBasis, score
from planner.strategies import kafka_classic
from planner.sweep import classic_sums


def assert_alike(problem: Problem, seeds: list[int]) -> None:
    """Every term of candidates with these seeds, the digest among them."""
    basis = ScoringBasis.of(problem)
    starts, shifts = draws(np.array(seeds), len(problem.topic_names), int(problem.targets.sum()))
    found = classic_sums.scores(classic_sums.make(basis), starts, shifts)
    for at, seed in enumerate(seeds):
        assignment = kafka_classic.assign(problem, seed)
        assert one(score(basis, assignment), 0) == one(found, at)


def one(scores: Scores, at: int) -> dict[str, int]:
    """One candidate's terms."""
    return {name: int(column[at]) for name, column in asdict(scores).items()}


def answered(problem: Problem) -> Problem:
    """The problem without what sums don't answer, where that is possible."""
    balance = replace(problem.balance, topic_leaders=NO_TOLERANCE)
    asked = replace(problem, balance=balance, out_of_sync=None)
    assume(classic_sums.usable(ScoringBasis.of(asked)))
    return asked


seeds = st.lists(st.integers(0, 2**62), min_size=1, max_size=3)


@examples(100)
@given(problems(rebalance=("all",)), seeds)
def test_drawn_candidates_score_alike(problem: Problem, drawn: list[int]) -> None:
    """Brokers that join and leave, racks or none, mixed replication factors, leaders off the preferred one."""
    assert_alike(answered(problem), drawn)


@examples(60)
@given(loaded_problems(), seeds)
def test_traffic_and_windows_of_bytes_score_alike(problem: Problem, drawn: list[int]) -> None:
    """The same with rates, capacities and windows of bytes."""
    assert_alike(answered(problem), drawn)


@pytest.mark.parametrize("name", ["expand-small", "no-racks", "raise-rf"])
def test_the_benchmarks_clusters_score_alike(name: str) -> None:
    """Clusters with racks and sizes, some larger than those that are drawn."""
    problem = build_problem.build(cases.to_spec(cases.make(name)))
    assert classic_sums.usable(ScoringBasis.of(problem))
    assert_alike(problem, [1, 2, 3])


def test_what_sums_do_not_answer_is_placed_one_by_one() -> None:
    """Partitions that stay, scenarios, windows of topics' leaders, and a factor above the number of brokers."""
    plain = problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 3)]})
    topic_leaders = replace(plain.balance, topic_leaders=Tolerance("spread", 1))
    others = (
        replace(plain, movable=np.array([True, False])),
        problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 3)]}, sweep=Sweep(growth=(Growth("twice", "x", 2.0),))),
        replace(plain, balance=topic_leaders),
        replace(plain, replication_factors=np.array([2, 4], dtype=np.int32)),
        replace(plain, size_bytes=np.array([1 << 55, 1])),
    )
    assert [True, *[False] * 5] == [classic_sums.usable(ScoringBasis.of(each)) for each in (plain, *others)]
