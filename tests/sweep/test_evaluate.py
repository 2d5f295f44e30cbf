"""Evaluation in any order and any split, the ranking and the front against their plain definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from clusters import balance_of, no_racks, problem_of, problems, spec_of
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.build_problem import build
from planner.model.problem import Problem
from planner.model.spec import AIMS, Changes, Growth, Sweep
from planner.scoring.independent_check import check
from planner.scoring.score import digest
from planner.sweep import evaluate as sweep
from planner.sweep.candidates import CANDIDATE_SCHEMA, candidates
from planner.sweep.evaluate import (
    AIM_COLUMNS,
    RANKING,
    SCORE_SCHEMA,
    best,
    evaluate,
    front,
    planned_for,
    propose,
    ranking,
    result,
    run,
)

Row = dict[str, Any]


def scored(problem: Problem, rows: Sequence[Row]) -> list[Row]:
    """The rows evaluated as one batch."""
    return evaluate(problem, pa.RecordBatch.from_pylist(rows, schema=CANDIDATE_SCHEMA)).to_pylist()


@examples(25)
@given(problems(brokers=5, topics=2, rebalance=("all", "leaders", "none")), st.randoms(use_true_random=False))
def test_any_order_and_any_split(problem: Problem, random: Any) -> None:
    """Each row's scores are its own: batches cut and shuffled at will give the same rows."""
    rows = candidates(problem, Sweep(60, 3)).to_pylist()
    together = scored(problem, rows)
    random.shuffle(rows)
    cut = random.randint(0, len(rows))
    apart = [row for part in (rows[:cut], rows[cut:]) for row in scored(problem, part)]
    assert together == sorted(apart, key=lambda row: row["candidate"])


@pytest.mark.slow
@examples(25)
@given(problems(brokers=5, topics=2, rebalance=("all", "leaders", "none")))
def test_rows_are_what_the_candidates_make(problem: Problem) -> None:
    """A row's assignment made again has the row's digest, is valid where the row says so, and its bound holds."""
    swept = run(problem, candidates(problem, Sweep(60, 3)))
    for at, row in enumerate(swept.scores.to_pylist()):
        proposal = propose(problem, swept.scores, at)
        assert digest(proposal.assignment) == row["digest"]
        assert (row["violations"] == 0) == (check(problem, proposal.assignment) == ())
        assert row["least_bytes"] == proposal.least_bytes <= row["bytes_moved"]


@examples(25)
@given(problems(brokers=6, rebalance=("all", "leaders", "none")))
def test_the_winner_is_valid(problem: Problem) -> None:
    """Every spec that keeps the rules of the YAML has a valid plan, and the sweep finds one."""
    assert 0 == run(problem, candidates(problem, Sweep(20))).top["violations"][0].as_py()


def score_table(points: Sequence[tuple[int, ...]]) -> pa.Table:
    """Rows of SCORE_SCHEMA with these terms in the order of RANKING, less the candidate's number."""
    empty = {field.name: "" if field.type == pa.string() else 0 for field in SCORE_SCHEMA}
    rows = [empty | dict(zip(RANKING, (*point, number), strict=True)) for number, point in enumerate(points)]
    return pa.Table.from_pylist(rows, schema=SCORE_SCHEMA)


points = st.lists(st.tuples(*[st.integers(0, 3)] * (len(RANKING) - 1)), min_size=1, max_size=25)


@examples(150)
@given(points, st.integers(1, 12))
def test_best_is_the_sorted_head(rows: list[tuple[int, ...]], count: int) -> None:
    """The first rows by every term of the ranking, the candidate's number last."""
    expected = sorted((*row, number) for number, row in enumerate(rows))[:count]
    found = best(score_table(rows), count)
    assert expected == [tuple(row[name] for name in RANKING) for row in found.to_pylist()]


@examples(150)
@given(points, st.sampled_from(("bytes_moved", "replicas_moved")))
def test_front_is_what_nothing_beats(rows: list[tuple[int, ...]], moved: str) -> None:
    """Valid rows that no valid row beats in bytes or imbalance without losing the other, one a point, by bytes.

    The same of replicas, where sizes are unknown.
    """
    table = score_table(rows).to_pylist()
    valid = [row for row in table if row["violations"] == 0]

    def beaten(row: Row) -> bool:
        mine = (row[moved], row["imbalance_ppm"])
        others = {(other[moved], other["imbalance_ppm"]) for other in valid} - {mine}
        return any(amount <= mine[0] and imbalance <= mine[1] for amount, imbalance in others)

    first: dict[tuple[int, int], Row] = {}
    for row in sorted(valid, key=lambda row: tuple(row[name] for name in RANKING)):
        if not beaten(row):
            first.setdefault((row[moved], row["imbalance_ppm"]), row)
    expected = [first[point]["candidate"] for point in sorted(first)]
    assert expected == front(score_table(rows), moved=moved)["candidate"].to_pylist()


def test_front_without_sizes_is_by_replicas() -> None:
    """No row moves bytes there: the front still goes from doing nothing to the most even plan."""
    problem = replace(problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 1)] * 3}, sizes=0), sizes_known=False)
    found = run(problem, candidates(problem, Sweep(40))).front.to_pylist()
    points = [(row["replicas_moved"], row["imbalance_ppm"]) for row in found]
    assert [(0, 500_000), (4, 0)] == [points[0], points[-1]]
    assert sorted(points) == points


def test_the_balance_asked_for_is_proven_to_its_last_digit() -> None:
    """The balance that a row's text is read as is the one asked for: its optimum is the plan, not doing nothing."""
    wanted = balance_of(1, 1, 1, "none", "33.33333%")
    problem = problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 1)] * 3}, balance=wanted)
    assert [("optimum", 0)] == [
        (row["strategy"], row["unproven"])
        for row in run(problem, candidates(problem, Sweep(30))).top.slice(0, 1).to_pylist()
    ]


@examples(50)
@given(points, st.permutations(AIMS), st.integers(0, 4))
def test_aims_come_after_bytes(rows: list[tuple[int, ...]], aims: list[str], named: int) -> None:
    """In the order given, those that aren't named behind in their usual order; whatever the aims, bytes come first."""
    order = ranking(aims[:named])
    every = [*aims[:named], *(aim for aim in AIMS if aim not in aims[:named])]
    columns = [column for aim in every for column in AIM_COLUMNS[aim]]
    assert [*RANKING[:5], *columns, *RANKING[-3:]] == list(order)
    without_sizes = ranking(aims[:named], sizes_known=False)
    assert [*RANKING[:5], "replicas_moved", *columns, *RANKING[-2:]] == list(without_sizes)
    table = score_table(rows)
    expected = sorted(tuple(row[name] for name in order) for row in table.to_pylist())
    assert expected == [tuple(row[name] for name in order) for row in best(table, len(rows), order).to_pylist()]


def test_the_problems_aims_rank_its_result() -> None:
    """The top and the front of a sweep are by the aims of its spec: whatever else, the same rows in another order."""
    names = ("bytes_moved", "leaders_changed", "busiest_bytes", "peak_disk_ppm")
    empty = {field.name: "" if field.type == pa.string() else 0 for field in SCORE_SCHEMA}
    points = [(1, 0, 9, 9), (1, 9, 0, 9), (1, 9, 9, 0), (0, 9, 9, 9)]
    rows = [empty | {"candidate": at} | dict(zip(names, row, strict=True)) for at, row in enumerate(points)]
    table = pa.Table.from_pylist(rows, schema=SCORE_SCHEMA)
    spec = spec_of(no_racks(1, 2), {"x": [(1, 2)]})
    tops = [
        result(build(replace(spec, sweep=Sweep(aims=aims))), table).top["candidate"].to_pylist()
        for aims in (AIMS, ("makespan", "peak_disk"), ("peak_disk",))
    ]
    assert [[3, 0, 1, 2], [3, 1, 2, 0], [3, 2, 0, 1]] == tops


def test_rows_say_whether_they_look_at_scenarios() -> None:
    """A row for no scenario is solved as if there were none; the others see the problem as it is."""
    spec = spec_of(no_racks(1, 2), {"x": [(1, 2)] * 2}, sweep=Sweep(growth=(Growth("twice", "x", 2.0),)))
    problem = build(spec)
    assert problem is planned_for(problem, "all")
    assert ((), None) == (planned_for(problem, "none").scenario_names, planned_for(problem, "none").scenario_ppm)


def test_result() -> None:
    """All rows by candidate, the ten best, and progress up to the last row."""
    problem = problem_of(no_racks(1, 2, 3), {"x": [(1, 2)] * 6})
    seen: list[tuple[int, int]] = []
    result = run(problem, candidates(problem, Sweep(100)), lambda done, total: seen.append((done, total)))
    assert list(range(100)) == result.scores["candidate"].to_pylist()
    assert (100, 100) == seen[-1]
    assert (10, SCORE_SCHEMA) == (len(result.top), result.top.schema)
    assert "optimum" == result.top["strategy"][0].as_py()


def test_strategies_without_an_answer_lose() -> None:
    """With fewer brokers than replicas every placement fails: a violation a partition, and nothing crashes."""
    changes = Changes(remove_brokers=(3,))
    problem = problem_of(no_racks(1, 2, 3), {"x": [(1, 2, 3)] * 4}, changes=changes)
    rows = candidates(problem, Sweep(30)).to_pylist()
    assert {4} == {row["violations"] for row in scored(problem, rows) if row["strategy"] != "unchanged"}


@pytest.mark.slow
def test_batches_larger_than_one(monkeypatch: Any) -> None:
    """Batches of a run are joined in order."""
    problem = problem_of(no_racks(1, 2, 3), {"x": [(1, 2)] * 6})
    rows = candidates(problem, Sweep(100))
    whole = run(problem, rows)
    monkeypatch.setattr(sweep, "_BATCH_ROWS", 7)
    parts = run(problem, rows)
    assert whole.scores.equals(parts.scores)
    assert np.array_equal(whole.front["candidate"], parts.front["candidate"])
