"""The benchmark of the sweep and of single candidates: the same winner everywhere, and consistent speeds."""

from __future__ import annotations

import pytest

from benchmarks import candidates, cases, sweep
from benchmarks.sweep import DRAWN, SOLVED, WHATIF, Timing
from benchmarks.table import Figures
from planner.model import build_problem
from planner.model.problem import Problem
from planner.sweep import evaluate
from planner.sweep.sweep_result import RANKING


def small() -> Problem:
    """The cluster that the sweep is benchmarked on."""
    return build_problem.build(cases.to_spec(cases.make(sweep.CASE)))


@pytest.mark.slow
def test_the_sweep_names_the_best_candidate():
    """All drawn candidates are evaluated, and the sweep's best is the first of the ranking."""
    flat = small()
    rows = sweep.rows(flat, DRAWN, 500)

    timing = sweep.apart(sweep.in_this_process, DRAWN, 500)

    scores = evaluate.evaluated(flat, rows).to_pylist()
    best = min(scores, key=lambda score: [score[name] for name in RANKING])
    assert (best["candidate"], best["bytes_moved"]) == (timing.best_candidate, timing.best_bytes_moved)
    assert 500 == len({score["digest"] for score in scores}) == timing.candidates


@pytest.mark.parametrize(("job", "most_solved"), [(WHATIF, 60), (SOLVED, 60)])
def test_a_whatif_has_solved_plans(job: str, most_solved: int):
    """Both jobs have the command's 300 candidates. In the second job, a fifth of them are solved."""
    strategies = sweep.rows(small(), job, 300).by_strategy

    assert 300 == sum(strategies.values())
    assert {"unchanged", "optimum", "kafka_classic"} <= set(strategies)
    assert strategies["optimum"] == most_solved if job == SOLVED else strategies["optimum"] <= most_solved


def test_ratios_are_to_one_worker():
    """The cells have candidates a second and the speed-up over one worker, with and without the session's start."""
    one = Timing(DRAWN, 1000, 1, 30.0, 10.0, 0, 7, 10**9, 0, 21.5, 21.5)
    two = Timing(DRAWN, 1000, 2, 20.0, 10.0, 10**8, 7, 10**9, 0, 22.0, 12.0)

    cells = sweep._cells(two, one)

    assert (
        "1,000, Kafka's placements",
        "Spark local[2]",
        "20.00",
        "10.00",
        "22.00",
        "12.00",
        "50",
        "100",
        "1.500",
        "2.000",
        "100",
        "7 (1.000 GB)",
    ) == cells


@pytest.mark.spark
def test_spark_names_the_same_best_candidate():
    """One worker, two workers and a run without Spark find the same winner, and each has its time and memory."""
    entries = list(sweep.entries([(WHATIF, 60)]))

    timings = [entry.values for entry in entries if isinstance(entry, Figures)]
    assert [0, 1, 2] == [timing["workers"] for timing in timings]
    assert 1 == len({(timing["best_candidate"], timing["best_bytes_moved"]) for timing in timings})
    assert all(timing["seconds"] > timing["session_seconds"] >= 0 for timing in timings)
    assert all(timing["peak_bytes"] > 20_000_000 for timing in timings)
    assert all(timing["cpu_seconds"] >= timing["chain_seconds"] > 0 for timing in timings)
    assert [True, True, False] == [timing["cpu_seconds"] == timing["chain_seconds"] for timing in timings]


def test_candidates_are_timed_both_ways(monkeypatch):
    """Candidates are timed from tables and one by one. The sweep's own way is compared with the peer."""
    monkeypatch.setattr(candidates, "_FROM_TABLES", 10_000_000)
    monkeypatch.setattr(candidates, "_PLACED", 20_000)

    speed = candidates.measure("expand-small")

    assert (564, speed.from_tables_per_second) == (speed.replicas, speed.per_second)
    assert speed.per_second > speed.one_by_one_per_second > 0
    assert (speed.tables_seconds or 0) > 0
    cells = candidates._cells(speed)
    assert ("expand-small", "564", "1,800") == (*cells[:2], cells[3])
    assert f"{speed.per_second / 1800:.3f}" == cells[4]
