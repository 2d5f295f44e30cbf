"""Arrivals that are spread evenly over the brokers that receive."""

from __future__ import annotations

import numpy as np
import pytest
from clusters import balance_of, no_racks, problem_of

from planner.model.balance import Balance
from planner.model.cluster import Broker
from planner.model.problem import Problem
from planner.model.spec import Changes
from planner.scoring import score
from planner.strategies.flow import even_arrivals
from planner.strategies.optimum import solve


def draining(balance: Balance) -> Problem:
    """Broker 1 leaves with two topics of five partitions; brokers 2 to 4 are empty."""
    rows = {"a": [(1,)] * 5, "b": [(1,)] * 5}
    added = tuple(Broker(broker) for broker in (2, 3, 4))
    return problem_of(no_racks(1), rows, changes=Changes(add_brokers=added, remove_brokers=(1,)), balance=balance)


def arriving(problem: Problem) -> list[int]:
    """Replicas that arrive at each broker."""
    plan = solve(problem, problem.balance).assignment
    return np.bincount(plan[score.adding(problem, plan)], minlength=len(problem.broker_ids)).tolist()


@pytest.mark.parametrize("by_topic", ["none", "1", "200%"])
def test_as_even_as_whole_numbers_are(by_topic: str) -> None:
    """Ten replicas over three brokers, whether or not their topics have windows."""
    assert [0, 3, 3, 4] == sorted(arriving(draining(balance_of("none", "none", by_topic))))


def test_windows_come_first() -> None:
    """What a broker must hold arrives there, and the others share the rest."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    rows = {"a": [(1,)] * 6 + [(3,)] * 6}
    problem = problem_of(
        racks,
        rows,
        changes=Changes(add_brokers=(Broker(5, "a"), Broker(6, "a"))),
        balance=balance_of(0, "none", "none"),
        rack_aware=False,
    )
    assert [0, 2, 0, 2, 2, 2] == arriving(problem)


def test_many_at_once_are_nearly_even(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where arcs are for several replicas each, brokers differ by no more than one arc takes."""
    monkeypatch.setattr(even_arrivals, "ARRIVAL_STEPS", 2)
    problem = draining(balance_of("none", "none", "none"))
    found = arriving(problem)
    assert sum(found) == 10
    assert max(found[1:]) - min(found[1:]) <= 5
