"""Certificates of plans: they are true of every plan that is no further outside, and of the plan itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusters import balances, problems
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from benchmarks.exact import Judge
from benchmarks.exact_table import judged
from planner.model.balance import Balance
from planner.model.problem import Problem
from planner.strategies import lagrangian_bound, work_limits
from planner.strategies.optimum import solve


@examples(40)
@given(problems(rebalance=("all", "leaders", "none")), balances(), st.integers(0, 3))
def test_no_plan_that_is_no_further_outside_is_below_the_bound(problem: Problem, other: Balance, seed: int) -> None:
    """Neither the plan that it was made for, nor one made for another balance."""
    asked = replace(problem, size_bytes=problem.size_bytes + 7)
    judge = Judge(asked)
    mine = solve(asked, asked.balance, seed, certify=True)
    certificate = mine.certificate
    if certificate is None:
        return
    least, allowed = lagrangian_bound.lower_bound(certificate), judge.outside(mine.assignment)
    assert least <= judge.copied(mine.assignment)
    theirs = solve(asked, other, seed).assignment
    if asked.rebalance != "all":
        assert least <= judge.copied(theirs)
        return
    outside = judge.outside(theirs)
    if outside.replicas <= allowed.replicas and outside.loads <= allowed.loads:
        assert least <= judge.copied(theirs)


@examples(40)
@given(problems(), st.integers(0, 3))
def test_a_certificate_is_for_windows_that_hold_or_tells_how_far_outside(problem: Problem, seed: int) -> None:
    """Where all windows hold, it is for plans within them; else it proves no more outside than the plan is."""
    mine = solve(problem, problem.balance, seed, certify=True)
    if mine.certificate is None:
        return
    outside = Judge(problem).outside(mine.assignment)
    told = mine.certificate.outside
    assert (told is None) == (outside.replicas == outside.loads == 0)
    if told is not None:
        assert (outside.replicas, outside.loads) == (told.slack.replicas, told.slack.loads)
        least = lagrangian_bound.least_outside(mine.certificate.facts, told)
        assert least.replicas <= outside.replicas


def test_cases_for_the_final_plans_question_close_the_gap() -> None:
    """Cases that helped to make the plan were for plans less far outside: the told gap was 12 %."""
    verdict = judged(431)
    assert verdict is not None
    assert (verdict.told, verdict.faults) == (verdict.moved, ())


@pytest.mark.parametrize("number", [19, 66])
def test_cases_for_the_final_plans_question_claim_nothing_false(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are tried whatever the gap is. Of 19, replicas that may not move fill windows beyond their ends."""
    monkeypatch.setattr(work_limits, "WHOLE_GAP", -1)
    verdict = judged(number)
    assert verdict is None or verdict.faults == ()
