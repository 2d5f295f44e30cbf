"""What the plan says of the hours of the week, with every figure counted again by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusters import assignment_of, balance_of, no_racks, spec_of

from planner.model.balance import Tolerance
from planner.model.build_problem import build
from planner.model.load_history import HOURS_OF_WEEK, WeekOfLoad
from planner.model.spec import Spec, Sweep
from planner.plan.build import planned
from planner.plan.document.cluster_types import PlannedHourRow, WorstHourRow
from planner.report import sentences
from planner.scoring.missed_windows import relaxed
from planner.scoring.score import ScoringBasis, score
from planner.sweep import evaluate
from planner.sweep.variants import Swept, alternatives


def asked(network: int | None = None) -> Spec:
    """Two brokers with four partitions each alone; those of x peak on Monday 09:00, those of y on Sunday 23:00 UTC.

    On average all are alike, and nobody reads. All of x is on broker 1, and all of y on broker 2.
    """
    hours = np.full((2, 8, HOURS_OF_WEEK), 100.0)
    hours[0, :4, 9] = 1000
    hours[0, 4:, 167] = 1000
    hours[1] = 0
    keys = [(topic, number) for topic in "xy" for number in range(4)]
    week = WeekOfLoad({key: at for at, key in enumerate(keys)}, hours.mean(axis=2), hours, "Europe/Berlin")
    balance = replace(balance_of("1", "1", "none"), network_in=Tolerance("percent", 10))
    rows = {"x": [(1,)] * 4, "y": [(2,)] * 4}
    spec = spec_of(no_racks(1, 2), rows, sizes=50, balance=balance, week=week, sweep=Sweep(candidates=20))
    topics = tuple(
        replace(each, partitions=tuple(replace(row, bytes_in_per_sec=105) for row in each.partitions))
        for each in spec.cluster.topics
    )
    brokers = tuple(replace(each, network_bytes_per_sec=network) for each in spec.cluster.brokers)
    return replace(spec, cluster=replace(spec.cluster, topics=topics, brokers=brokers))


def plan_of(spec: Spec):
    """The plan of a sweep in this process."""
    tried = [
        Swept(each.name, each.spec, each.problem, evaluate.run(each.problem, each.candidates))
        for each in alternatives(spec)
    ]
    return planned(tried).plan


def test_without_busiest_hours_there_is_no_section() -> None:
    """Nor a line on the screen."""
    plan = plan_of(replace(asked(), week=None))
    assert (None, ()) == (plan.hours, sentences.hours(plan))


def test_the_plan_is_even_in_the_hours_that_bind() -> None:
    """Doing nothing is even on average; in both hours one broker has ten times as much as the other."""
    plan = plan_of(asked(network=3000))
    of = plan.hours
    assert of is not None
    # Rates are 105, the profile's mean is 105.36: 9.1 of 10 hours keep 100 and the peak 997.
    peak, rest = round(1000 * 105 / (100 + 900 / 168)), round(100 * 105 / (100 + 900 / 168))
    hours = (PlannedHourRow(hour=9, name="Monday 10:00 Europe/Berlin"), PlannedHourRow(hour=167, name=MIDNIGHT))
    assert hours == of.planned
    assert WorstHourRow(broker=1, hour=9, name=hours[0].name, bytes_per_sec=4 * peak) == of.today.network_in
    assert WorstHourRow(broker=1, hour=9, name=hours[0].name, bytes_per_sec=2 * (peak + rest)) == of.plan.network_in
    assert (2, 0) == (of.today.above_capacity, of.plan.above_capacity)
    # Two partitions each way; the plan for the mean leaves all where it is.
    assert (200, 0) == (of.plan.bytes_moved, of.of_mean.bytes_moved if of.of_mean else None)
    assert of.of_mean is not None
    assert of.today == of.of_mean
    assert ((), ()) == (plan.balance.missed, plan.scenarios)
    assert (200, 200) == (plan.bound.bytes_moved, plan.bound.least_bytes_moved)
    assert (
        "planned for Monday 10:00 Europe/Berlin, Monday 00:00 Europe/Berlin, besides the mean",
        "worst broker in the worst of 168 hours, today → plan: in 3.99 kB/s → 2.19 kB/s (broker 1, Monday 10:00 "
        "Europe/Berlin), out 0 B/s → 0 B/s (broker 1, Monday 01:00 Europe/Berlin); hours of brokers above capacity: "
        "2 → 0",
        "a plan for the mean alone copies 200 B less; in its worst hour: in 3.99 kB/s, out 0 B/s",
    ) == sentences.hours(plan)


MIDNIGHT = "Monday 00:00 Europe/Berlin"


def test_capacity_that_nobody_states_is_not_judged() -> None:
    """Null, not 0."""
    of = plan_of(asked()).hours
    assert of is not None
    assert (None, None) == (of.today.above_capacity, of.plan.above_capacity)


def test_windows_of_hours_that_are_missed_are_told_with_the_hour() -> None:
    """They are part of the balance asked for, by the score and by the list of what isn't met."""
    problem = build(asked())
    still = assignment_of(problem, [(1,)] * 4 + [(2,)] * 4)
    basis = ScoringBasis.of(problem)
    found = relaxed(basis, still)
    assert ["network_in", "network_in"] == [each.window for each in found]
    assert all(each.reached == pytest.approx(81.8, abs=0.1) for each in found)
    assert [True, True] == [
        each.why.startswith(f"on {name}: ") for each, name in zip(found, problem.scenario_names, strict=True)
    ]
    scores = score(basis, still)
    assert scores.excess[0] > 0
    assert (0, 0) == (scores.scenario_excess[0], scores.scenarios_missed[0])
