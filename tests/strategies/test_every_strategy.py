"""Every strategy's plan keeps its windows or says which it relaxed, on clusters that are uneven in every way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from clusters import problem_of
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from uneven_clusters import uneven_problems

from planner.model.balance import Tolerance
from planner.model.cluster import Broker
from planner.model.problem import IntArray, Problem
from planner.model.spec import Changes
from planner.scoring import independent_check
from planner.scoring.missed_targets import RelaxedRow, relaxed
from planner.scoring.score import ScoringBasis, score
from planner.scoring.windows import windows
from planner.sweep.candidates import STRATEGIES, Candidate

Held = tuple[str, str | None, Sequence[Sequence[int]], list[int]]


def plan_of(problem: Problem, strategy: str, seed: int = 0) -> IntArray:
    """A strategy's plan for the problem's balance."""
    return STRATEGIES[strategy](problem, Candidate(strategy, seed, balance=problem.balance)).assignment


def held(problem: Problem, plan: IntArray) -> Iterator[Held]:
    """Every window asked for, with its topic, its bounds, and the amount on each target broker, counted one by one."""
    wanted, of = windows(problem, problem.balance), Counter[tuple[str, str | None, int]]()
    for row, replicas in enumerate(plan.tolist()):
        brokers, topic = [broker for broker in replicas if broker >= 0], problem.topic_names[problem.topic_of[row]]
        written, read = int(problem.bytes_in_per_sec[row]), int(problem.bytes_out_per_sec[row])
        of["leaders", None, brokers[0]] += 1
        of["topic_leaders", topic, brokers[0]] += 1
        of["network_out", None, brokers[0]] += written * (len(brokers) - 1) + read
        for broker in brokers:
            of["replicas", None, broker] += 1
            of["topic_replicas", topic, broker] += 1
            of["disk", None, broker] += int(problem.size_bytes[row])
            of["network_in", None, broker] += written
    for name in ("replicas", "leaders", "topic_replicas", "topic_leaders", "disk", "network_in", "network_out"):
        bounds = getattr(wanted, name)
        if getattr(problem.balance, name).kind != "none":
            for at, topic in enumerate(problem.topic_names) if name.startswith("topic") else ((None, None),):
                on = [of[name, topic, broker] for broker in np.flatnonzero(problem.targets).tolist()]
                yield name, topic, (bounds if at is None else bounds[:, at]).tolist(), on


def broken(problem: Problem, plan: IntArray) -> set[tuple[str, str | None]]:
    """The windows that at least one broker is outside."""
    return {
        (name, topic)
        for name, topic, (low, high), on in held(problem, plan)
        if any(not least <= each <= most for least, each, most in zip(low, on, high, strict=True))
    }


def wide(problem: Problem, plan: IntArray) -> set[tuple[str, str | None]]:
    """The spreads that are wider than asked for, if all brokers are of one size."""
    return {
        (name, topic)
        for name, topic, _, on in held(problem, plan)
        if getattr(problem.balance, name).kind == "spread"
        and max(on) - min(on) > getattr(problem.balance, name).value
        and len(set(problem.disk_bytes[problem.targets].tolist())) == 1
    }


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@examples(10)
@given(problem=uneven_problems(), seed=st.integers(0, 3))
def test_every_window_left_is_named_and_no_other(strategy: str, problem: Problem, seed: int) -> None:
    """A plan is inside every window but those that it says it relaxed, each with a reason that is true."""
    plan = plan_of(problem, strategy, seed)
    named = relaxed(ScoringBasis.of(problem), plan)
    outside, spread = broken(problem, plan), wide(problem, plan)
    alike = len(set(problem.disk_bytes[problem.targets].tolist())) == 1
    percent = {each for each in outside if getattr(problem.balance, each[0]).kind != "spread" or not alike}
    assert percent | spread == {(each.window, each.topic) for each in named}
    for each in named:
        assert reason_holds(problem, each, (each.window, each.topic) in outside), each


def reason_holds(problem: Problem, each: RelaxedRow, outside: bool) -> bool:
    """True if the reason applies to this problem."""
    racks = Counter(problem.broker_racks[problem.targets].tolist())
    if each.why.startswith("brokers in smaller racks hold more"):
        return not outside and problem.racks_matter and len(set(racks.values())) > 1
    if each.why.startswith("with rebalance"):
        return problem.rebalance != "all"
    if "topics key excludes" in each.why:
        return not problem.movable.all()
    return outside


@pytest.mark.slow
@examples(6)
@given(uneven_problems(rebalance=("all",)))
def test_the_optimum_relaxes_no_count_that_another_keeps(problem: Problem) -> None:
    """Where any strategy's valid plan keeps all windows of replicas, so does the optimum."""
    counts = {"replicas", "topic_replicas"}
    mine = {name for name, _ in broken(problem, plan_of(problem, "optimum"))} & counts
    for name in STRATEGIES:
        plan = plan_of(problem, name)
        if not independent_check.check(problem, plan) and not {each for each, _ in broken(problem, plan)} & counts:
            assert set() == mine, name


@examples(6)
@given(uneven_problems())
def test_the_score_sees_what_is_named(problem: Problem) -> None:
    """A plan has excess exactly where it names a window that a broker is outside of; disks that are full aside."""
    problem = replace(problem, disk_limit_bytes=np.full_like(problem.disk_limit_bytes, -1))
    basis = ScoringBasis.of(problem)
    for name in STRATEGIES:
        plan = plan_of(problem, name)
        assert bool(broken(problem, plan)) == bool(score(basis, plan).excess[0]), name


def test_one_huge_partition_is_the_reason() -> None:
    """If a partition is larger than every broker's window, it is named as the reason why disks aren't even."""
    rows = {"huge": [(1,)], "small": [(1,), (2,), (3,)]}
    problem = problem_of(
        {1: "a", 2: "b", 3: "c"},
        rows,
        sizes={"huge": [10**12], "small": [1, 1, 1]},
        changes=Changes(add_brokers=(Broker(4, "d"),)),
    )
    asked = replace(problem, balance=replace(problem.balance, disk=Tolerance("percent", 10)))
    found = relaxed(ScoringBasis.of(asked), plan_of(asked, "optimum"))
    assert [("disk", "a single partition is larger than the target allows")] == [
        (each.window, each.why) for each in found
    ]
