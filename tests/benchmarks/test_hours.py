"""The benchmark of the busiest hours: the drawn rates, and the figures of plans."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import hours
from benchmarks.cases import make, to_spec
from planner.model.build_problem import build
from planner.model.load_history import MOST_HOURS
from planner.scoring.broker_loads import loads
from planner.scoring.growth_scenarios import scenarios


def test_the_worst_hour_is_the_most_of_any_broker_in_any_hour() -> None:
    """The worst hour is the maximum over planned hours, and above the average. The same seed gives the same hours."""
    first, second = (build(hours.spec(1, 60)) for _ in range(2))
    assert np.array_equal(first.scenario_hours, second.scenario_hours)
    assert 0 < len(first.scenario_names) <= MOST_HOURS
    week = hours.spec(1, 60).week
    assert week is not None
    rate_in, rate_out, above = hours.worst(first, week, first.replicas)
    held = np.stack([loads(each.problem, first.replicas) for each in scenarios(first)])
    # Today, the worst hour of all brokers is one of the planned hours.
    assert (int(held[:, 1].max()), int(held[:, 2].max())) == (rate_in, rate_out)
    assert loads(first, first.replicas)[1].max() < rate_in
    # None of 12 brokers can be within a fifteenth in the busiest hour, because 3 brokers hold nothing.
    assert above > 0


def test_replicas_are_in_three_racks() -> None:
    """Replicas are already in three racks, so a plan needn't repair racks."""
    problem = build(hours.spec(2, 60))
    assert [[0, 1, 2]] == np.unique(np.sort(problem.broker_racks[problem.replicas], axis=1), axis=0).tolist()


@pytest.mark.slow
def test_a_sweep_is_replayed_over_the_hours() -> None:
    """All candidates are replayed over the hours, which aren't in the problem."""
    asked = hours.with_week(to_spec(make("expand-small")), 1)
    assert len(build(asked).scenario_names) == 0
    count, *seconds = hours.replayed(asked, 30)
    assert count == 30
    assert all(0 < each < 60 for each in seconds)
