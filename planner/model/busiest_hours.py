"""The hours of the week that bind: brokers' traffic in each hour, and the hours that become scenarios of a plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.model.load_history import HOURS_OF_WEEK, WeekOfLoad, hour_name
from planner.model.problem import IntArray, LongArray, Problem

# The most hours that become scenarios: each adds a load to the optimum and to its proof.
MOST_HOURS = 6


def of_partitions(problem: Problem, week: WeekOfLoad) -> LongArray:
    """(2, P, 168): bytes/s in and out of the problem's partitions in each hour of the week."""
    return week.of(problem.partition_keys, np.stack([problem.bytes_in_per_sec, problem.bytes_out_per_sec]))


def of_brokers(problem: Problem, hours: LongArray, replicas: IntArray, leaders: IntArray) -> LongArray:
    """(2, B, 168): bytes/s in and out of every broker under replicas (P, W) and leaders (P,); -1 is none.

    `hours` are those of `of_partitions`. As in `broker_loads`, every replica receives what is written,
    and the leader sends it to each follower, in addition to what consumers read.
    """
    loads = np.zeros((2, len(problem.broker_ids), HOURS_OF_WEEK), dtype=np.int64)
    for position in replicas.T:
        rows = np.flatnonzero(position >= 0)
        np.add.at(loads[0], position[rows], hours[0, rows])
    led = np.flatnonzero(leaders >= 0)
    followers = np.maximum((replicas[led] >= 0).sum(axis=1) - 1, 0)[:, None]
    np.add.at(loads[1], leaders[led], hours[0, led] * followers + hours[1, led])
    return loads


def chosen(loads: LongArray) -> tuple[int, ...]:
    """The hours of the week that bind, of brokers' loads (2, B, 168), the most loaded first; at most MOST_HOURS.

    For each broker, and for all brokers together, the hour with the highest load in and the one with the highest load
    out; of these the ones with the highest loads. Of equal hours the earlier one counts.
    """
    every = np.concatenate([loads.sum(axis=1), *loads])
    highest = zip((-every.max(axis=1)).tolist(), every.argmax(axis=1).tolist(), strict=True)
    distinct = dict.fromkeys(hour for load, hour in sorted(highest) if load)
    return tuple(distinct)[:MOST_HOURS]


def with_busiest_hours(problem: Problem, week: WeekOfLoad) -> Problem:
    """The problem with the hours that bind today as scenarios, after those that it has."""
    hours = of_partitions(problem, week)
    found = chosen(of_brokers(problem, hours, problem.replicas, problem.leaders))
    if not found:
        return problem
    return replace(
        problem,
        scenario_names=(*problem.scenario_names, *(hour_name(hour, week.time_zone) for hour in found)),
        scenario_hours=np.ascontiguousarray(np.moveaxis(hours[:, :, list(found)], 2, 0)),
    )
