"""Evaluation in any order and split, against plain definitions; every candidate goes to one task once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from clusters import balance_of, no_racks, problem_of, problems, spec_of
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.balance import Balance
from planner.model.build_problem import build
from planner.model.problem import Problem
from planner.model.spec import Changes, Growth, Sweep
from planner.scoring.independent_check import check
from planner.scoring.score import digest
from planner.sweep import evaluate
from planner.sweep.candidates import ASKED, STRATEGIES, CandidateRun, Candidates, candidates
from planner.sweep.evaluate import planned_for, propose, run
from planner.sweep.sweep_result import SCORE_SCHEMA


def scored(problem: Problem, every: Candidates, numbers: Sequence[int]) -> list[list[int]]:
    """The scores of these candidates, evaluated together; one list for each."""
    return evaluate.scored(problem, every, np.array(numbers, dtype=np.int64)).T.tolist()


@examples(15)
@given(problems(brokers=5, topics=2, rebalance=("all", "leaders", "none")), st.randoms(use_true_random=False))
def test_any_order_and_any_split(problem: Problem, random: Any) -> None:
    """Each row's scores are its own: batches cut and shuffled at will give the same rows."""
    every = candidates(problem, Sweep(60, 3))
    numbers = list(range(len(every)))
    together = scored(problem, every, numbers)
    random.shuffle(numbers)
    cut = random.randint(0, len(numbers))
    apart = [row for part in (numbers[:cut], numbers[cut:]) for row in scored(problem, every, part)]
    assert together == sorted(apart)


@pytest.mark.slow
@examples(15)
@given(problems(brokers=5, topics=2, rebalance=("all", "leaders", "none")))
def test_rows_are_what_the_candidates_make(problem: Problem) -> None:
    """A row's assignment made again has the row's digest, is valid where the row says so, and its bound holds."""
    every = candidates(problem, Sweep(60, 3))
    for at, row in enumerate(run(problem, every).scores.to_pylist()):
        proposal = propose(problem, every, at)
        assert digest(proposal.assignment) == row["digest"]
        assert (row["violations"] == 0) == (check(problem, proposal.assignment) == ())
        assert row["least_bytes"] == proposal.least_bytes <= row["bytes_moved"]


@examples(25)
@given(problems(brokers=6, rebalance=("all", "leaders", "none")))
def test_the_winner_is_valid(problem: Problem) -> None:
    """Every spec that keeps the rules of the YAML has a valid plan, and the sweep finds one."""
    assert 0 == run(problem, candidates(problem, Sweep(20))).top["violations"][0].as_py()


def test_front_without_sizes_is_by_replicas() -> None:
    """Without sizes no row moves bytes; the front goes by replicas from doing nothing to the most even plan."""
    problem = replace(problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 1)] * 3}, sizes=0), sizes_known=False)
    found = run(problem, candidates(problem, Sweep(40))).front.to_pylist()
    points = [(row["replicas_moved"], row["imbalance_ppm"]) for row in found]
    assert [(0, 500_000), (4, 0)] == [points[0], points[-1]]
    assert sorted(points) == points


def test_the_balance_asked_for_is_proven_to_its_last_digit() -> None:
    """A balance read from a row's text equals the one asked for, so its optimum is the plan, not doing nothing."""
    wanted = balance_of(1, 1, 1, "none", "33.33333%")
    problem = problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 1)] * 3}, balance=wanted)
    assert [("optimum", 0)] == [
        (row["strategy"], row["unproven"])
        for row in run(problem, candidates(problem, Sweep(30))).top.slice(0, 1).to_pylist()
    ]


def test_rows_say_whether_they_look_at_scenarios() -> None:
    """A row without scenarios is solved as if there were none; other rows use the problem unchanged."""
    spec = spec_of(no_racks(1, 2), {"x": [(1, 2)] * 2}, sweep=Sweep(growth=(Growth("twice", "x", 2.0),)))
    problem = build(spec)
    assert problem is planned_for(problem, "all")
    assert ((), None) == (planned_for(problem, "none").scenario_names, planned_for(problem, "none").scenario_ppm)


def test_result() -> None:
    """The result has all rows in order, the ten best, and progress up to the last row."""
    problem = problem_of(no_racks(1, 2, 3), {"x": [(1, 2)] * 6})
    seen: list[tuple[int, int]] = []
    result = run(problem, candidates(problem, Sweep(100)), lambda done, total: seen.append((done, total)))
    assert list(range(100)) == result.scores["candidate"].to_pylist()
    assert (100, 100) == seen[-1]
    assert (10, SCORE_SCHEMA) == (len(result.top), result.top.schema)
    assert "optimum" == result.top["strategy"][0].as_py()


def test_strategies_without_an_answer_lose() -> None:
    """With fewer brokers than replicas every placement has one violation a partition, and none raises an error."""
    changes = Changes(remove_brokers=(3,))
    problem = problem_of(no_racks(1, 2, 3), {"x": [(1, 2, 3)] * 4}, changes=changes)
    rows = evaluate.evaluated(problem, candidates(problem, Sweep(30))).to_pylist()
    assert {4} == {row["violations"] for row in rows if row["strategy"] != "unchanged"}


@pytest.mark.slow
def test_batches_larger_than_one(monkeypatch: Any) -> None:
    """The blocks of a run are joined in order."""
    problem = problem_of(no_racks(1, 2, 3), {"x": [(1, 2)] * 6})
    rows = candidates(problem, Sweep(100))
    whole = run(problem, rows)
    monkeypatch.setattr(evaluate, "_BLOCK", 7)
    monkeypatch.setattr(evaluate, "_BLOCK_ONE_BY_ONE", 3)
    parts = run(problem, rows)
    assert whole == parts


def test_the_plan_asked_for_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The balance asked for is solved once, with its certificate, and its plan is kept in case it wins."""
    problem, solved = problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 1)] * 3}), list[Any]()
    other = STRATEGIES["optimum"]
    monkeypatch.setattr(
        evaluate, "STRATEGIES", {**STRATEGIES, "optimum": lambda *asked: solved.append(asked[1]) or other(*asked)}
    )
    every = candidates(problem, Sweep(30))
    found = run(problem, every)
    asked = every.candidate(ASKED)[0]
    assert (ASKED, asked.balance) == (found.top["candidate"][0].as_py(), problem.balance)
    assert asked not in solved
    assert 5 == len(solved)
    assert found.proposals[ASKED].certificate is not None
    assert digest(found.proposals[ASKED].assignment) == found.top["digest"][0].as_py()


DEALT = ("unchanged", "optimum", "kafka_striped", "kafka_classic")


def sweep(*counts: int) -> Candidates:
    """A sweep with these numbers of candidates for the strategies in DEALT."""
    return Candidates(
        tuple(CandidateRun(name, count, Balance()) for name, count in zip(DEALT, counts, strict=True) if count)
    )


sweeps = st.lists(st.tuples(st.builds(sweep, *[st.integers(0, 40)] * 4), st.booleans()), min_size=1, max_size=4)


@examples(200)
@given(sweeps, st.integers(1, 30))
def test_every_candidate_is_dealt_once(fleet: list[tuple[Candidates, bool]], tasks: int) -> None:
    """A task goes from one sweep to the next, and never back, with numbers that never are too many at once."""
    dealt = [list(evaluate.blocks(evaluate.pieces(fleet, task, tasks))) for task in range(tasks)]
    found = [(number, each) for blocks in dealt for number, numbers in blocks for each in numbers.tolist()]
    assert sorted(found) == [(number, each) for number, (one, _) in enumerate(fleet) for each in range(len(one))]
    for blocks in dealt:
        assert [number for number, _ in blocks] == sorted(number for number, _ in blocks)


@examples(100)
@given(sweeps, st.integers(1, 30))
def test_what_is_made_one_by_one_is_dealt_evenly(fleet: list[tuple[Candidates, bool]], tasks: int) -> None:
    """Each task has as many of each kind of each sweep as any other, but for one."""
    for number, (every, has_tables) in enumerate(fleet):
        for name in DEALT[: 3 if has_tables else 4]:
            counts = [
                sum(int(every.of(numbers, name).sum()) for at, numbers in blocks if at == number)
                for blocks in (evaluate.blocks(evaluate.pieces(fleet, task, tasks)) for task in range(tasks))
            ]
            assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("tasks", [1, 4, 7])
def test_few_tasks_make_the_tables_of_a_sweep(tasks: int) -> None:
    """Candidates scored from tables stay together, so that few tasks make a sweep's tables."""
    fleet = [(sweep(1, 20, 10, 300), True)] * 3
    users = [
        (task, each.sweep) for task in range(tasks) for each in evaluate.pieces(fleet, task, tasks) if each.from_tables
    ]
    assert len(users) <= 3 + tasks - 1


def test_a_billion_numbers_are_never_laid_out() -> None:
    """Numbers are made only for one block, of at most 16,384 candidates."""
    every = Candidates(
        (CandidateRun("kafka_classic", 10**9, Balance()), CandidateRun("kafka_striped", 10**9, Balance()))
    )
    for has_tables in (True, False):
        sizes = {len(next(iter(evaluate.blocks([each])))[1]) for each in evaluate.pieces([(every, has_tables)], 3, 16)}
        assert max(sizes) <= 16_384
