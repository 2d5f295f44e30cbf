"""Which hours of the week bind, and what brokers carry in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from clusters import assignment_of, no_racks, spec_of

from planner.model import busiest_hours
from planner.model.build_problem import before, build
from planner.model.load_history import HOURS_OF_WEEK, WeekOfLoad
from planner.scoring import broker_loads
from planner.scoring.growth_scenarios import under

ROWS = {"x": [(1, 2), (2, 3), (3, 1)]}


def week(peaks: list[dict[int, float]]) -> WeekOfLoad:
    """Partitions of x with 10 bytes/s in, but in these hours, which have so many; and twice as many out."""
    hours = np.full((2, len(peaks), HOURS_OF_WEEK), 10.0)
    for row, peak in enumerate(peaks):
        hours[0, row, list(peak)] = list(peak.values())
    hours[1] = 2 * hours[0]
    return WeekOfLoad({("x", row): row for row in range(len(peaks))}, np.rint(hours.mean(axis=2)), hours)


def problem(known: WeekOfLoad):
    """The spec of three brokers with these hours, as a problem; rates are the means."""
    spec = spec_of(no_racks(1, 2, 3), ROWS, week=known)
    (topic,) = spec.cluster.topics
    means = np.rint(known.means).astype(int)
    partitions = tuple(
        replace(each, bytes_in_per_sec=int(means[0, at]), bytes_out_per_sec=int(means[1, at]))
        for at, each in enumerate(topic.partitions)
    )
    spec = replace(spec, cluster=replace(spec.cluster, topics=(replace(topic, partitions=partitions),)))
    return spec, build(spec)


def test_loads_of_an_hour_are_those_of_its_rates() -> None:
    """The same as the loads of a problem that has the hour's rates, in every hour."""
    _, found = problem(week([{5: 70}, {5: 30, 100: 900}, {167: 55}]))
    hours = busiest_hours.of_partitions(found, week([{5: 70}, {5: 30, 100: 900}, {167: 55}]))
    assignment = assignment_of(found, [(2, 1), (3,), (1, 3)])
    by_hour = busiest_hours.of_brokers(found, hours, assignment, assignment[:, 0])
    for hour in range(HOURS_OF_WEEK):
        then = replace(found, bytes_in_per_sec=hours[0, :, hour], bytes_out_per_sec=hours[1, :, hour])
        assert np.array_equal(broker_loads.loads(then, assignment)[1:], by_hour[:, :, hour])


def test_the_hours_with_the_highest_loads_are_chosen_each_once() -> None:
    """The cluster's, then each broker's, by their loads; of equal ones the earlier."""
    loads = np.ones((2, 3, HOURS_OF_WEEK), dtype=np.int64)
    loads[0, 0, [7, 9]] = 50
    loads[0, 1, 20] = 40
    loads[1, 2, 30] = 90
    # The cluster's: hour 30 out (92), hour 7 in (52). Brokers': 30, 7, 20, and hour 0 where nothing differs.
    assert (30, 7, 20, 0) == busiest_hours.chosen(loads)


def test_no_more_than_a_few_hours_are_chosen() -> None:
    """The most loaded ones; none where there is no traffic."""
    loads = np.zeros((2, 20, HOURS_OF_WEEK), dtype=np.int64)
    assert () == busiest_hours.chosen(loads)
    loads[0, range(20), range(20)] = np.arange(100, 120)
    assert (19, 18, 17, 16, 15, 14) == busiest_hours.chosen(loads)


def test_a_problem_has_the_hours_as_scenarios_of_traffic() -> None:
    """By their names, with the rates of then and the sizes of today; the cluster as it is has none."""
    spec, found = problem(week([{5: 700}, {100: 900}, {}]))
    # Hour 100 is the cluster's, hour 5 is when broker 1 sends most; what broker 3 sends is the same in each hour.
    assert ("Friday 04:00 UTC", "Monday 05:00 UTC", "Monday 00:00 UTC") == found.scenario_names
    then = under(found, 1)
    assert [700, 10, 10] == then.bytes_in_per_sec.tolist()
    assert [1400, 20, 20] == then.bytes_out_per_sec.tolist()
    assert found.size_bytes.tolist() == then.size_bytes.tolist()
    assert () == before(spec).scenario_names
