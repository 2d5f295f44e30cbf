"""The space of candidates, and its budget."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from clusters import balance_of, no_racks, problem_of, problems, spec_of
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.balance import WINDOWS, Tolerance
from planner.model.problem import Problem
from planner.model.spec import Budget, Changes, Growth, Spec, Sweep, TopicFilter
from planner.plan import build as plan
from planner.sweep import budget_steps, choice
from planner.sweep import candidates as space
from planner.sweep.candidates import CANDIDATE_SCHEMA, DEFAULT_CANDIDATES, PART, STRATEGIES, candidate_budget, of_row
from planner.sweep.evaluate import run

ROWS = {"x": [(0, 1)] * 10}


def candidates(problem: Problem, sweep: Sweep, among: int = 1) -> pa.Table:
    """All candidates as a table of CANDIDATE_SCHEMA."""
    every = space.candidates(problem, sweep, among)
    return every.rows(np.arange(len(every)))


def strategies(table: pa.Table) -> dict[str, int]:
    """The number of rows by strategy."""
    return dict(Counter(table["strategy"].to_pylist()))


@examples(80)
@given(problems(rebalance=("all", "leaders", "none")), st.integers(0, 400), st.integers(0, 2**31 - 1))
def test_never_more_than_asked(problem: Problem, asked: int, seed: int) -> None:
    """Rows are numbered from 0, no more than asked (at least two): do nothing first, the balance asked for second."""
    table = candidates(problem, Sweep(asked, seed))
    assert len(table) <= max(asked, 2)
    assert list(range(len(table))) == table["candidate"].to_pylist()
    assert table.schema.equals(CANDIDATE_SCHEMA)
    assert set(table["strategy"].to_pylist()) <= set(STRATEGIES)
    first, second = map(of_row, table.slice(0, 2).to_pylist())
    assert ("unchanged", "optimum", 0, problem.balance) == (first.strategy, *second[:2], second.balance)
    if (problem.movable & (problem.forced | (problem.rebalance == "all"))).any():
        assert max(asked, 2) == len(table)


@examples(30)
@given(problems(brokers=5), st.integers(2, 300), st.integers(0, 2**31 - 1))
def test_deterministic(problem: Problem, asked: int, seed: int) -> None:
    """The same problem and sweep give the same rows."""
    assert candidates(problem, Sweep(asked, seed)).equals(candidates(problem, Sweep(asked, seed)))


def test_fewer_plans_are_solved_if_a_partition_is_larger_than_a_window() -> None:
    """Such plans take much longer, so Kafka's placements take their numbers."""
    rows = {"x": [(0, 1), (1, 2), (2, 0)] * 400}

    def tried(largest: int) -> dict[str, int]:
        sizes = {"x": [largest, *[1_000] * 1199]}
        balance = balance_of(1, 1, 1, "none", "10%")
        found = candidates(problem_of(no_racks(0, 1, 2), rows, sizes=sizes, balance=balance), Sweep())
        assert DEFAULT_CANDIDATES == len(found)
        return strategies(found)

    # The windows asked for, of 10 %, are 184.5 kB wide.
    assert tried(185_000)["optimum"] < tried(184_000)["optimum"] // 2
    assert tried(184_000) == tried(1_000)


def test_no_row_twice() -> None:
    """No two rows are the same candidate."""
    problem = problem_of(no_racks(0, 1, 2, 3), ROWS)
    table = candidates(problem, Sweep(3000, 5)).drop_columns("candidate")
    assert len(table) == len(table.group_by(table.column_names).aggregate([]))


def test_seeds_of_two_sweeps_are_disjoint() -> None:
    """Another sweep seed gives completely different draws and tie-breaks."""
    problem = problem_of(no_racks(0, 1, 2, 3), ROWS)
    seeds = [set(candidates(problem, Sweep(2000, seed))["seed"].to_pylist()) - {0} for seed in (0, 1, 2**31 - 1)]
    assert not seeds[0] & seeds[1]
    assert not seeds[1] & seeds[2]
    assert all(0 < seed < 2**63 for each in seeds for seed in each)


@pytest.mark.parametrize(("asked", "exhaustive"), [(19, False), (200, True)])
def test_exhaustive_where_it_fits(asked: int, exhaustive: bool) -> None:
    """If the budget allows, all n² pairs of start index and shift are tried once; else none of them is."""
    problem = problem_of(no_racks(0, 1, 2, 3), ROWS)
    table = candidates(problem, Sweep(asked))
    fixed = [
        (each["start_index"], each["next_replica_shift"])
        for each in table.to_pylist()
        if each["strategy"] == "kafka_classic" and each["start_index"] >= 0
    ]
    everything = [(start, shift) for start in range(4) for shift in range(4)]
    assert (everything if exhaustive else []) == sorted(fixed)


def test_budget_by_size() -> None:
    """As many candidates as asked; by default 5,000, fewer for larger clusters, at least 20."""
    small = problem_of(no_racks(0, 1), ROWS)
    large, huge = (replace(small, replication_factors=np.full(rows, 2)) for rows in (50_000, 1_500_000))
    assert (5000, 500, 20) == tuple(candidate_budget(each, None) for each in (small, large, huge))
    assert (7, 7) == (candidate_budget(small, 7), candidate_budget(huge, 7))


def test_the_grid_of_the_yaml() -> None:
    """All combinations of the given targets with the balance asked for, which is first; each once."""
    problem = problem_of(no_racks(0, 1, 2), ROWS, balance=balance_of(1, 1, 1))
    grid = {"replicas": (Tolerance.parse("5%"), Tolerance.parse(1)), "topic_replicas": (Tolerance.parse("none"),)}
    table = candidates(problem, Sweep(1000, grid=grid)).to_pylist()
    found = [tuple(each[window] for window in WINDOWS) for each in table if each["strategy"] == "optimum"]
    points = [("1", "1", "1"), ("1", "1", "none"), ("5%", "1", "1"), ("5%", "1", "none")]
    expected = [(*point, *["none"] * 4) for point in points]
    assert expected == list(dict.fromkeys(found))
    assert {expected[0]} == set(found[4:])


@pytest.mark.parametrize(("solved", "expected"), [(1, 1), (3, 3), (150, 150), (199, 199), (500, 199)])
def test_as_many_solved_plans_as_asked_for(solved: int, expected: int) -> None:
    """The grid is first, then tie-breaks for the balance asked for; doing nothing stays a candidate."""
    problem = problem_of(no_racks(0, 1, 2), ROWS)
    table = candidates(problem, Sweep(200, solved=solved))
    assert 200 == len(table)
    assert (1, expected) == (strategies(table)["unchanged"], strategies(table)["optimum"])


def test_a_fleet_shares_the_solved_plans() -> None:
    """The clusters of a fleet share solved plans like candidates."""
    problem = problem_of(no_racks(0, 1, 2), ROWS)
    assert 25 == len(optima(problem, Sweep(200, solved=100), among=4))


def test_forced_only_has_no_grid() -> None:
    """If only forced moves are allowed, windows hardly matter: one balance, with tie-breaks."""
    changes = Changes(remove_brokers=(1,), rebalance="none")
    table = candidates(problem_of(no_racks(0, 1, 2), ROWS, changes=changes), Sweep(100))
    optima = [each for each in table.to_pylist() if each["strategy"] == "optimum"]
    assert (20, 1) == (len(optima), len({tuple(each[window] for window in WINDOWS) for each in optima}))


def test_nothing_to_place() -> None:
    """If no replica may move, there are no placements of Kafka's."""
    problem = problem_of(no_racks(0, 1), ROWS, topics=TopicFilter(exclude=("*",)))
    assert {"unchanged", "optimum"} == set(strategies(candidates(problem, Sweep(100))))


def test_rows_become_candidates_again() -> None:
    """A row has everything about its candidate, with tolerances as in the YAML."""
    balance = balance_of("2.5%", 2, "none", 1, "10%", "5%", "0.5%")
    problem = problem_of(no_racks(0, 1, 2), ROWS, balance=balance)
    table = candidates(problem, Sweep(50, 3))
    assert problem.balance == of_row(table.slice(0, 1).to_pylist()[0]).balance
    assert {("10%", "5%", "0.5%")} == {
        tuple(each[window] for window in WINDOWS[4:]) for each in table.to_pylist() if each["strategy"] != "optimum"
    }
    assert {"2.5%"} == set(table["replicas"].to_pylist()) - {"5%", "10%", "25%"}


BUDGET = Budget(bytes_moved=10)


@pytest.mark.parametrize(
    ("asked", "among", "expected"), [(2, 1, 1), (3, 1, 1), (4, 1, 2), (9, 1, 3), (20, 4, 3), (20, 1, 3), (50, 1, 9)]
)
def test_a_budgets_ladder_is_tried_however_few_the_candidates(asked: int, among: int, expected: int) -> None:
    """With a budget, three balances and a part of the first are tried if they may be; without one, a fifth."""
    sweep, plain = Sweep(asked), problem_of(no_racks(0, 1, 2), ROWS, balance=balance_of(1, 1, 1, "none", "10%"))
    found = optima(replace(plain, budget=BUDGET), sweep, among)
    assert expected == len(found) == len(set(found))
    assert expected == 1 or {"none"} == set(found[1])
    assert max(1, asked // among // 5) == len(optima(plain, sweep, among))


def test_a_budgets_ladder_on_a_very_large_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the smallest default number of candidates, also for four alternatives, three balances are tried."""
    # Only its number of replicas is large, so it has no windows.
    monkeypatch.setattr(budget_steps, "_payable", lambda *_: True)
    large = replace(problem_of(no_racks(0, 1), ROWS, budget=BUDGET), replication_factors=np.full(1_500_000, 2))
    assert [3, 3] == [len(set(optima(large, Sweep(), among))) for among in (1, 4)]
    assert 5 == len(candidates(large, Sweep(), 4))


def test_solved_plans_are_as_many_as_asked_for_with_a_budget_too() -> None:
    """As many solved plans as the YAML asks for, also with a budget."""
    problem = problem_of(no_racks(0, 1, 2), ROWS, budget=BUDGET)
    made = [candidates(problem, Sweep(200, solved=solved))["strategy"].to_pylist() for solved in (1, 2)]
    assert [(1, 0), (1, 1)] == [(each.count("optimum"), each.count(PART)) for each in made]


def optima(problem: Problem, sweep: Sweep, among: int = 1) -> list[tuple[str, ...]]:
    """The windows of each solved plan, one row for each."""
    table = candidates(problem, sweep, among).to_pylist()
    return [
        (*(each[window] for window in WINDOWS), each["scenarios"]) for each in table if each["strategy"] == "optimum"
    ]


def test_a_grid_of_our_own() -> None:
    """The balance asked for is first, then one target changes at a time: bytes with sizes, traffic with rates."""
    asked = ("1", "1", "1", "none", "10%", "none", "none", "none")
    problem = problem_of(no_racks(0, 1, 2), ROWS, balance=balance_of(*asked[:-1]))
    found = list(dict.fromkeys(optima(problem, Sweep(2000))))
    assert asked == found[0]
    assert {"2%", "5%", "10%", "25%", "none"} == {each[4] for each in found}
    assert {("none", "none")} == {each[5:7] for each in found}
    changed = [sum(one != other for one, other in zip(each, asked, strict=True)) for each in found]
    assert sorted(changed) == changed
    written = replace(problem, bytes_in_per_sec=np.ones(10, dtype=np.int64), size_bytes=np.zeros(10, dtype=np.int64))
    traffic = optima(written, Sweep(2000))
    assert {"10%"} == {each[4] for each in traffic}
    assert {"none", "10%"} == {each[5] for each in traffic} == {each[6] for each in traffic}


def test_windows_of_bytes_take_more_of_the_budget() -> None:
    """There are fewer solved plans with windows of bytes, because each takes much longer; some tie-breaks are left."""
    plain = problem_of(no_racks(0, 1, 2), ROWS, sizes=0)
    sized = problem_of(no_racks(0, 1, 2), ROWS, balance=balance_of(1, 1, 1, "none", "10%"))
    many, few = (optima(each, Sweep()) for each in (plain, sized))
    assert 200 == len(many)
    assert 15 <= len(few) <= 40
    assert 5 <= few.count(few[0])


def test_alternatives_share_the_budget() -> None:
    """Alternatives share rows and solved plans evenly."""
    problem = problem_of(no_racks(0, 1, 2), ROWS, balance=balance_of(1, 1, 1, "none", "10%"))
    assert 100 == len(candidates(problem, Sweep(400), 4))
    assert len(optima(problem, Sweep(), 4)) <= len(optima(problem, Sweep())) / 2


def test_scenarios_are_in_the_grid() -> None:
    """Every point of the grid is solved with and without scenarios; the balance asked for comes first, with them."""
    problem = problem_of(no_racks(0, 1), ROWS, sweep=Sweep(growth=(Growth("twice", "x", 2.0),)))
    found = optima(problem, Sweep(1000))
    assert ["all", "none"] == [each[-1] for each in found[:2]]
    assert found[0][:-1] == found[1][:-1]
    assert {"none"} == {each["scenarios"] for each in candidates(problem, Sweep(50)).to_pylist()[-10:]}


@examples(40)
@given(problems(brokers=5), st.integers(2, 300), st.integers(0, 2**31 - 1), st.randoms(use_true_random=False))
def test_a_candidate_is_a_function_of_its_number(problem: Problem, asked: int, seed: int, random: Any) -> None:
    """Rows of any numbers are those of the whole table, and say what the candidate of that number is."""
    every = space.candidates(problem, Sweep(asked, seed))
    numbers = np.array(sorted(random.sample(range(len(every)), random.randint(1, len(every)))))
    rows = every.rows(numbers)
    assert rows.equals(every.rows(np.arange(len(every))).take(pa.array(numbers)))
    assert [(of_row(each), each["scenarios"]) for each in rows.to_pylist()] == list(map(every.candidate, numbers))
    assert [each["strategy"] == "optimum" for each in rows.to_pylist()] == every.of(numbers, "optimum").tolist()


def test_a_billion_candidates_are_a_few_runs() -> None:
    """A billion candidates take no more memory than a few runs."""
    every = space.candidates(problem_of(no_racks(0, 1, 2), ROWS), Sweep(10**9))
    assert (10**9, "kafka_classic") == (len(every), every.candidate(10**9 - 1)[0].strategy)
    assert 10**9 == sum(every.by_strategy.values())
    assert len(every.runs) < 500


@pytest.mark.slow
def test_arrays_are_made_without_pandas() -> None:
    """Arrays are made without importing pandas, and pandas can still be imported afterwards."""
    code = (
        "import sys, numpy, pyarrow; from planner.sweep.candidates import without_pandas; without_pandas()\n"
        "assert 6 == pyarrow.array(numpy.arange(4)).to_numpy().sum(); assert 'pandas' not in sys.modules\n"
        "import pandas; assert [1, 2] == pyarrow.table({'a': [1, 2]}).to_pandas()['a'].to_list()\n"
        "assert 2 == len(pyarrow.Table.from_pandas(pandas.DataFrame({'a': [1, 2]})))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


LEADERS = spec_of(
    no_racks(1, 2, 3),
    {"t": [(1, 2, 3)] * 9},
    changes=Changes(rebalance="leaders"),
    budget=Budget(leaders_changed=3),
    sweep=Sweep(200),
)
# The first partition has two replicas in one rack; with another one on broker 4, all brokers have one or two.
EMPTY = spec_of(
    {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"},
    {"t": [(1, 2, 3), (1, 3, 5)]},
    sizes={"t": [0, 9]},
    changes=Changes(rebalance="racks"),
    budget=Budget(replicas_moved=1),
    sweep=Sweep(30),
)


@pytest.mark.parametrize(("asked", "spent"), [(LEADERS, {"leaders_changed": 3}), (EMPTY, {"replicas_moved": 1})])
def test_a_budgets_ladder_is_tried_whatever_may_move(asked: Spec, spent: dict[str, int]) -> None:
    """Even leaders would take six elections; an empty partition's other replica moves if that is more even."""
    tried = choice.alternatives(asked)
    done = choice.swept(tried, [run(each.problem, each.candidates) for each in tried])
    found = plan.planned(done).plan.budget
    assert found is not None
    assert spent == {name: getattr(found.spent, name) for name in spent}
