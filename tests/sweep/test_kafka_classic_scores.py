"""Scores from tables or sums equal the scores of placing every partition."""

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
from planner.model.document_fields import LeaderRacksRow, PlacementRuleRow
from planner.model.problem import Problem
from planner.model.spec import Changes, Growth, NewPartitions, Sweep
from planner.scoring.independent_check import check
from planner.scoring.score import Scores, ScoringBasis, score
from planner.strategies import kafka_classic
from planner.strategies.kafka_classic import draws
from planner.sweep import kafka_classic_scores
from planner.sweep.candidates import CandidateRun, Candidates
from planner.sweep.evaluate import evaluated


def one(scores: Scores, at: int) -> dict[str, int]:
    """One candidate's terms."""
    return {name: int(column[at]) for name, column in asdict(scores).items()}


@examples(60)
@given(problems(rebalance=("all", "leaders", "none")), st.lists(st.integers(0, 2**62), min_size=1, max_size=3))
def test_drawn_candidates_score_alike(problem: Problem, seeds: list[int]) -> None:
    """Every term of every candidate whose topics draw their own start index and shift, the digest among them."""
    basis = ScoringBasis.of(problem)
    brokers = int(problem.targets.sum())
    starts, shifts = draws(np.array(seeds), len(problem.topic_names), brokers)
    found = kafka_classic_scores.by_tables(basis, starts, shifts)
    for at, seed in enumerate(seeds):
        assignment = kafka_classic.assign(problem, seed)
        assert one(score(basis, assignment), 0) == one(found, at)


def test_common_leaders_are_in_no_table() -> None:
    """Common leaders can't be scored from tables, because they depend on the whole placement."""
    lists = {"a": [(1, 2), (2, 1)], "b": [(2, 1), (1, 2)]}
    plain, together = (problem_of(no_racks(1, 2), lists, together=groups) for groups in ((), (("a", "b"),)))
    usable = [
        (kafka_classic_scores.has_tables(basis), kafka_classic_scores.has_sums(basis))
        for basis in map(ScoringBasis.of, (plain, together))
    ]
    assert [(True, True), (False, False)] == usable
    rows = evaluated(together, Candidates((CandidateRun("kafka_classic", 8, together.balance, first_seed=1),)))
    judged = [len(check(together, kafka_classic.assign(together, seed))) for seed in range(1, 9)]
    assert judged == rows["violations"].to_pylist()
    assert {0, 4} == set(judged)


@examples(40)
@given(loaded_problems(), st.integers(0, 2**62))
def test_traffic_and_windows_of_bytes_score_alike(problem: Problem, seed: int) -> None:
    """The same with rates, capacities and windows of bytes."""
    basis = ScoringBasis.of(problem)
    starts, shifts = draws(np.array([seed]), len(problem.topic_names), int(problem.targets.sum()))
    found = kafka_classic_scores.by_tables(basis, starts, shifts)
    assignment = kafka_classic.assign(problem, seed)
    assert one(score(basis, assignment), 0) == one(found, 0)


@examples(30)
@given(loaded_problems(), st.integers(0, 2**62), st.lists(st.integers(0, 5_000_000), min_size=1, max_size=3))
def test_scenarios_score_alike(problem: Problem, seed: int, factors: list[int]) -> None:
    """The same where topics grow: each scenario's bytes and traffic are sums over topics too."""
    grown = np.array([np.where(problem.topic_of == 0, factor, 1_000_000) for factor in factors])
    problem = replace(problem, scenario_names=tuple(map(str, range(len(factors)))), scenario_ppm=grown)
    basis = ScoringBasis.of(problem)
    starts, shifts = draws(np.array([seed]), len(problem.topic_names), int(problem.targets.sum()))
    found = kafka_classic_scores.by_tables(basis, starts, shifts)
    assignment = kafka_classic.assign(problem, seed)
    assert one(score(basis, assignment), 0) == one(found, 0)


@examples(40)
@given(problems(brokers=5), st.data())
def test_given_candidates_score_alike(problem: Problem, data: st.DataObject) -> None:
    """The same with one start index and one shift for all topics; shifts beyond n - 1 wrap as Kafka's do."""
    basis = ScoringBasis.of(problem)
    brokers = int(problem.targets.sum())
    start, shift = data.draw(st.integers(0, brokers - 1)), data.draw(st.integers(0, 3 * brokers))
    columns = (np.full((1, len(problem.topic_names)), value, dtype=np.int32) for value in (start, shift))
    found = kafka_classic_scores.by_tables(basis, *columns)
    assignment = kafka_classic.assign(problem, 0, start, shift)
    assert one(score(basis, assignment), 0) == one(found, 0)


def test_more_candidates_than_a_block() -> None:
    """Blocks are joined in order: 5,000 candidates repeat six, and have their scores."""
    problem = problem_of(no_racks(1, 2, 3), {"x": [(1, 2)] * 4, "y": [(3,)] * 2})
    basis = ScoringBasis.of(problem)
    pairs = np.arange(5000) % 6
    starts, shifts = (np.repeat(column[:, None], 2, axis=1) for column in (pairs // 2, pairs % 2))
    found = kafka_classic_scores.by_tables(basis, starts, shifts)
    six = kafka_classic_scores.by_tables(basis, starts[:6], shifts[:6])
    assert all(
        np.array_equal(np.resize(few, 5000), many)
        for few, many in zip(asdict(six).values(), asdict(found).values(), strict=True)
    )


def test_one_broker() -> None:
    """A cluster of one broker has one placement."""
    problem = problem_of(no_racks(7), {"x": [(7,), (7,)]})
    basis = ScoringBasis.of(problem)
    zero = np.zeros((1, 1), dtype=np.int32)
    found = one(kafka_classic_scores.by_tables(basis, zero, zero), 0)
    assert (0, 0, 2) == (found["bytes_moved"], found["violations"], found["replicas_max"])


def test_worthwhile() -> None:
    """Tables are made for small clusters, but not if they would be larger than the sweep itself."""
    few = problem_of(no_racks(*range(10)), {"x": [(0,)] * 10})
    many = problem_of(no_racks(*range(1000)), {"x": [(0,)] * 30})
    assert (True, False) == tuple(kafka_classic_scores.has_tables(ScoringBasis.of(each)) for each in (few, many))


def assert_sums_alike(problem: Problem, seeds: list[int]) -> None:
    """Asserts that every term and the digest are equal for these seeds."""
    basis = ScoringBasis.of(problem)
    starts, shifts = draws(np.array(seeds), len(problem.topic_names), int(problem.targets.sum()))
    found = kafka_classic_scores.by_sums(basis, starts, shifts)
    for at, seed in enumerate(seeds):
        assignment = kafka_classic.assign(problem, seed)
        assert one(score(basis, assignment), 0) == one(found, at)


def answered(problem: Problem) -> Problem:
    """The problem without parts that sums can't score, if that is possible."""
    balance = replace(problem.balance, topic_leaders=NO_TOLERANCE)
    asked = replace(problem, balance=balance, out_of_sync=None)
    assume(kafka_classic_scores.has_sums(ScoringBasis.of(asked)))
    return asked


seeds = st.lists(st.integers(0, 2**62), min_size=1, max_size=3)


@examples(100)
@given(problems(rebalance=("all",)), seeds)
def test_sums_of_drawn_candidates(problem: Problem, drawn: list[int]) -> None:
    """Brokers that join and leave, racks or none, mixed replication factors, leaders off the preferred one."""
    assert_sums_alike(answered(problem), drawn)


@examples(60)
@given(loaded_problems(), seeds)
def test_sums_of_traffic_and_windows_of_bytes(problem: Problem, drawn: list[int]) -> None:
    """The same with rates, capacities and windows of bytes."""
    assert_sums_alike(answered(problem), drawn)


@pytest.mark.parametrize("name", ["expand-small", "no-racks", "raise-rf"])
def test_sums_of_the_benchmarks_clusters(name: str) -> None:
    """Clusters with racks and sizes, some of them larger than the random ones."""
    problem = build_problem.build(cases.to_spec(cases.make(name)))
    assert kafka_classic_scores.has_sums(ScoringBasis.of(problem))
    assert_sums_alike(problem, [1, 2, 3])


def test_sums_of_clusters_with_new_partitions() -> None:
    """Topics to create and partitions to add are placed and led, but nothing is copied of them."""
    config = (("min.insync.replicas", "2"),)
    new = (NewPartitions("new", 0, 5, 3, config, size_bytes=7), NewPartitions("x", 4, 6, 2, bytes_in_per_sec=3))
    lists, sizes = {"x": [(1, 2), (2, 3), (3, 1), (1, 3)], "y": [(2, 1, 3)]}, {"x": [5, 6, 7, 8], "y": [9]}
    changes = Changes(new_partitions=new, rebalance="all")
    for brokers in (no_racks(1, 2, 3, 4), {1: "a", 2: "b", 3: "c", 4: "a"}):
        problem = problem_of(brokers, lists, sizes=sizes, changes=changes)
        assert kafka_classic_scores.has_sums(ScoringBasis.of(problem))
        assert_sums_alike(problem, [1, 2, 3])


def test_what_sums_do_not_answer_is_placed_one_by_one() -> None:
    """No sums for rules on placement and leaders, which they would count as kept, for partitions that stay, scenarios,
    windows of topics' leaders, too large factors, and huge sizes.
    """
    plain = problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 3)]})
    topic_leaders = replace(plain.balance, topic_leaders=Tolerance("spread", 1))
    others = (
        problem_of(no_racks(1, 2, 3), {"x": [(1, 2)]}, placement=(PlacementRuleRow("x", "s", (1, 2), False),)),
        problem_of({1: "a", 2: "b"}, {"x": [(1, 2)]}, leader_racks=(LeaderRacksRow("x", ("a",)),)),
        problem_of(no_racks(1, 2, 3), {"x": [(1, 2)]}, changes=Changes(demote_brokers=(1,), rebalance="all")),
        replace(plain, movable=np.array([True, False])),
        problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 3)]}, sweep=Sweep(growth=(Growth("twice", "x", 2.0),))),
        replace(plain, balance=topic_leaders),
        replace(plain, replication_factors=np.array([2, 4], dtype=np.int32)),
        replace(plain, size_bytes=np.array([1 << 55, 1])),
    )
    assert [True, *[False] * 8] == [kafka_classic_scores.has_sums(ScoringBasis.of(each)) for each in (plain, *others)]
