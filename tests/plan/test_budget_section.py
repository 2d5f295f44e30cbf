"""The plan's section on its budget: what it allows, what is spent, what is left to do, and what that costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from clusters import assignment_of, balance_of, no_racks, problem_of, problems, spec_of
from hypothesis import given
from properties import examples

from planner.model.build_problem import today
from planner.model.cluster import Broker
from planner.model.problem import Problem
from planner.model.spec import Budget, Changes, Rebalance, Sweep, TopicFilter
from planner.plan.budget_section import problem_after, section
from planner.plan.build import planned
from planner.plan.document.codec import as_json
from planner.plan.headline import first_step
from planner.scoring import independent_check
from planner.scoring.broker_loads import leaders_after
from planner.scoring.score import ScoringBasis, score
from planner.strategies.optimum import solve
from planner.sweep import choice, evaluate

NONE_WAIT = {"partitions": 0, "brokers": []}
TERMS = ("bytes_moved", "replicas_moved", "leaders_changed")


def expansion(rebalance: Rebalance = "all") -> Problem:
    """Six partitions of different sizes on two brokers, and a third broker that should get two of them."""
    return problem_of(
        no_racks(1, 2),
        {"a": [(1,), (1,), (1,), (2,), (2,), (2,)]},
        sizes={"a": [5, 6, 7, 9, 8, 7]},
        changes=Changes(add_brokers=(Broker(3),), rebalance=rebalance),
        balance=balance_of(1, "none", "none"),
    )


def section_of(problem: Problem, budget: Budget, rows: list[tuple[int, ...]]) -> dict[str, Any]:
    """The budget section for a plan with these replica lists."""
    plan = assignment_of(problem, rows)
    scores = score(ScoringBasis.of(problem), plan)
    found = section(
        spec_of(no_racks(1), {"a": [(1,)]}, budget=budget),
        problem,
        plan,
        {term: int(getattr(scores, term)[0]) for term in TERMS},
    )
    assert found is not None
    return as_json(found)


def test_no_budget_no_section() -> None:
    """Without a budget there is no section."""
    problem = expansion()
    spec = spec_of(no_racks(1), {"a": [(1,)]})
    assert section(spec, problem, today(problem), dict.fromkeys(TERMS, 0)) is None


@pytest.mark.parametrize("most", [0, 1, 2])
def test_leaders_that_a_budget_leaves_for_later_are_told(most: int) -> None:
    """With rebalance: leaders, leaders that the budget doesn't pay for are left, and the budget is the reason."""
    lists = {"t": [(1, 2), (1, 2), (1, 2), (1, 3)]}
    budget, changes = Budget(leaders_changed=most), Changes(rebalance="leaders")
    spec = spec_of(no_racks(1, 2, 3), lists, changes=changes, budget=budget, sweep=Sweep(candidates=5))
    every = choice.alternatives(spec)
    plan = planned(choice.swept(every, [evaluate.run(each.problem, each.candidates) for each in every])).plan
    assert most == sum(len(batch.elect) for batch in plan.batches)
    if most == 2:
        assert plan.complete
        assert not plan.balance.missed
        return
    assert plan.unfinished is not None
    assert (0, 2 - most, ("leaders",)) == (
        plan.unfinished.partitions,
        plan.unfinished.leaders_changed,
        plan.unfinished.windows,
    )
    assert first_step(plan).startswith("FIRST STEP ONLY (budget: at most 1" if most else "NOTHING FITS THE BUDGET")
    assert {"not reached within the budget, with the replicas where they are"} == {
        row.why for row in plan.balance.relaxed
    }


def test_the_rest_after_a_first_step() -> None:
    """A partition of 5 bytes has moved; the one of 7 bytes that balance still needs is left."""
    found = section_of(expansion(), Budget(bytes_moved=6), [(3,), (1,), (1,), (2,), (2,), (2,)])
    assert {
        "limits": {"bytes_moved": 6, "replicas_moved": None, "leaders_changed": None},
        "spent": {"bytes_moved": 5, "replicas_moved": 1, "leaders_changed": 1},
        "undone": {
            "windows": ["replicas"],
            "partitions": 0,
            "brokers": [],
            "bytes_moved": 7,
            "replicas_moved": 1,
            "leaders_changed": 1,
        },
    } == found


def test_the_rest_begins_where_the_step_ends() -> None:
    """The step moved another partition than the cheapest, so what is left starts from there."""
    found = section_of(expansion(), Budget(bytes_moved=7), [(1,), (1,), (3,), (2,), (2,), (2,)])
    assert {"bytes_moved": 7, "replicas_moved": 1}.items() <= found["undone"].items()


def test_nothing_is_left() -> None:
    """If a step keeps all windows, nothing is left to do."""
    found = section_of(expansion(), Budget(bytes_moved=20), [(3,), (1,), (1,), (2,), (2,), (3,)])
    assert {"windows": [], **NONE_WAIT, **dict.fromkeys(TERMS, 0)} == found["undone"]


def test_what_may_not_move_costs_nothing() -> None:
    """With `rebalance: none`, windows stay missed and nothing is left, because no later step would move more."""
    found = section_of(expansion("none"), Budget(bytes_moved=20), [(1,)] * 3 + [(2,)] * 3)
    assert {"windows": ["replicas"], **NONE_WAIT, **dict.fromkeys(TERMS, 0)} == found["undone"]


def test_leaders_that_no_election_changes_stay_for_the_rest() -> None:
    """An excluded topic keeps its leaders on broker 2: the window stays missed, and no leader is left to change."""
    rows, led = {"a": [(1, 2)], "kept": [(1, 2)] * 4}, {"kept": [2] * 4}
    problem = problem_of(no_racks(1, 2), rows, leaders=led, topics=TopicFilter(exclude=("kept",)))
    found = section_of(problem, Budget(leaders_changed=9), [(1, 2)] * 5)
    assert (["leaders"], 0) == (found["undone"]["windows"], found["undone"]["leaders_changed"])


def test_after_a_replacement_nobody_is_replaced_any_more() -> None:
    """After a replacement, the new state has the step's replicas and leaders, and nothing is forced or replaced."""
    problem = problem_of(no_racks(1, 2, 3), {"a": [(1, 3), (3, 2)]}, changes=Changes((Broker(9),), (), ((3, 9),)))
    target = assignment_of(problem, [(1, 9), (9, 2)])
    rest = problem_after(problem, target, np.zeros(2, dtype=bool), leaders_after(problem, target))
    assert [[0, 3], [3, 1]] == rest.replicas.tolist()
    assert ([0, 3], [False, False], [-1] * 4) == (
        rest.leaders.tolist(),
        rest.forced.tolist(),
        rest.replacements.tolist(),
    )


@examples(30)
@given(problems(rebalance=("all", "leaders", "racks", "none")))
def test_a_second_step_of_a_whole_plan_is_none(problem: Problem) -> None:
    """After the optimum there is a valid plan that moves nothing."""
    step = solve(problem, problem.balance).assignment
    rest = problem_after(problem, step, np.zeros(problem.rows, dtype=bool), leaders_after(problem, step))
    assert () == independent_check.check(rest, today(rest))
    moved = score(ScoringBasis.of(rest), solve(rest, problem.balance).assignment)
    if not problem.size_bytes.any() or problem.rebalance != "all":
        assert 0 == moved.replicas_moved[0]
    assert 0 == moved.bytes_moved[0]


def test_arrays_stay_the_problems_own() -> None:
    """Working out what is left doesn't change the arrays of the problem."""
    problem = expansion()
    before = problem.replicas.copy()
    step = assignment_of(problem, [(3,)] * 6)
    rest = problem_after(replace(problem), step, np.zeros(6, dtype=bool), leaders_after(problem, step))
    assert np.array_equal(before, problem.replicas)
    assert 2 == int(rest.leaders[0])
