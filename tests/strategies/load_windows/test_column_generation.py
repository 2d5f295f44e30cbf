"""Placements from mixed plans of whole topics, where the program of shares would be too large."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from clusters import balance_of, no_racks, problem_of

from planner.model.balance import Tolerance
from planner.model.cluster import Broker
from planner.model.problem import Problem
from planner.model.spec import Changes
from planner.scoring import independent_check
from planner.scoring.windows import windows
from planner.strategies import optimum, work_limits
from planner.strategies.flow.placement import on_brokers
from planner.strategies.flow.placement_network import lay_out
from planner.strategies.load_windows.attempts_at_prices import Task, at_prices, facts_of
from planner.strategies.load_windows.byte_loads import byte_loads
from planner.strategies.load_windows.column_generation import Mixed, mixtures
from planner.strategies.load_windows.local_search_state import of_layout
from planner.strategies.work_limits import FULL_WORK, Effort, WorkLimit


def skewed(topics: int, partitions: int, seed: int = 1) -> Problem:
    """Twelve brokers and a new one, two replicas of each partition, sizes with heavy tails, disks within 10 %."""
    random = Random(seed)
    rows = {f"t{at}": [tuple(random.sample(range(1, 13), 2)) for _ in range(partitions)] for at in range(topics)}
    sizes = {name: [int(1e6 * random.lognormvariate(0, 1.5)) for _ in lists] for name, lists in rows.items()}
    changes = Changes(add_brokers=(Broker(13),))
    problem = problem_of(no_racks(*range(1, 13)), rows, sizes=sizes, changes=changes, balance=balance_of(1, 1, 1))
    return replace(problem, balance=replace(problem.balance, disk=Tolerance("percent", 10)))


def task_of(problem: Problem, effort: Effort | None) -> Task:
    """The task of bringing a problem's placement into its windows."""
    layout, wanted = lay_out(problem, 0, 1024), windows(problem, problem.balance)
    loads = byte_loads(problem, layout, wanted)
    about = facts_of(problem, layout, loads)
    return Task(
        problem, layout, wanted, loads, about, of_layout(layout, wanted, about.costs, loads), effort, None, wanted
    )


def mixed(problem: Problem, effort: Effort | None) -> list[Mixed]:
    """All results of a problem from the flow without prices."""
    task = task_of(problem, effort)
    prices = np.zeros((1, len(task.layout.targets)), dtype=np.int64)
    first = at_prices(task, prices)
    assert first is not None
    return list(mixtures(task, prices, first))


@pytest.mark.slow
def test_bounds_rise_and_placements_come_closer_to_the_windows() -> None:
    """Bounds rise; then come placements that keep all counts and are less outside than the flow's."""
    problem = skewed(40, 12)
    found, task = mixed(problem, Effort.of(FULL_WORK, 10**6)), task_of(problem, None)
    bounds = [each.bound.least for each in found]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]
    first = at_prices(task, np.zeros_like(found[0].prices))
    assert first is not None
    outside = [int(task.placement(each.chosen).outside().sum()) for each in found if each.chosen is not None]
    assert len(outside) >= 3
    assert min(outside) < int(task.placement(first.placed.chosen).outside().sum()) // 2
    low, high = windows(problem, problem.balance).topic_replicas
    for each in found:
        if each.chosen is not None:
            on = on_brokers(task.layout, each.chosen)
            assert (on.sum(axis=1) == 2).all()
            cells = np.stack([on[task.layout.topics == topic].sum(axis=0) for topic in range(40)])
            assert ((low <= cells) & (cells <= high)).all()


@pytest.mark.parametrize("effort", [None, Effort.of(WorkLimit(10**9, 600), 1)])
def test_no_mixture_without_work_for_it(effort: Effort | None) -> None:
    """Plans of topics are made only for the balance that was asked for."""
    assert [] == mixed(skewed(5, 6), effort)


def test_the_same_placements_every_time() -> None:
    """The same problem gives the same placements."""
    either, other = (mixed(skewed(12, 10), Effort.of(FULL_WORK, 10**6)) for _ in range(2))
    assert [None if each.chosen is None else each.chosen.tolist() for each in either] == [
        None if each.chosen is None else each.chosen.tolist() for each in other
    ]


@pytest.mark.slow
def test_large_placements_copy_less_with_plans_of_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the columns of the program of shares, plans of topics save bytes, and the bound holds for both plans."""
    monkeypatch.setattr(work_limits, "FRACTION_COLUMNS", 0)
    monkeypatch.setattr("planner.strategies.load_windows.branch_and_bound.CASE_COLUMNS", 0)
    problem = skewed(40, 12)
    copied = {}
    for worth in (FULL_WORK, FULL_WORK._replace(topic_flows=0)):
        found = optimum.solve(problem, problem.balance, work=worth)
        assert () == independent_check.check(problem, found.assignment)
        layout = lay_out(problem, 0)
        on, today = on_brokers(layout, found.assignment), on_brokers(layout, problem.replicas)
        copied[worth] = int((on & ~today).sum(axis=1) @ layout.copy_bytes)
        assert found.least_bytes <= copied[worth]
    with_topics, without = copied.values()
    assert with_topics < without
    assert with_topics - found.least_bytes <= 0.02 * with_topics
