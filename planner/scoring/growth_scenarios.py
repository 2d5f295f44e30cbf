"""Scenarios: the problem with topics at a multiple of their bytes and traffic, or with the traffic of an hour of the
week; which windows hold then; and what brokers hold in the coming months.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import scipy  # as in `broker_loads`

from planner.model.balance import BYTE_WINDOWS, NO_TOLERANCE
from planner.model.document_fields import PPM, BrokerId, Count, Section, doc
from planner.model.problem import IntArray, LongArray, Problem
from planner.scoring.broker_loads import loads
from planner.scoring.window_excess import distance
from planner.scoring.windows import Windows, byte_excess, windows


@dataclass(frozen=True, eq=False)
class Scenario:
    """A scenario's name, its problem, and the windows that the balance asks for on that problem.

    `of_hour`: it is one of the busiest hours, whose windows are part of the balance asked for.
    """

    name: str
    problem: Problem
    windows: Windows
    of_hour: bool


def scenarios(problem: Problem) -> tuple[Scenario, ...]:
    """Every scenario of the problem."""
    first_hour = len(problem.scenario_names) - (0 if problem.scenario_hours is None else len(problem.scenario_hours))
    problems = [(name, scenario_problem(problem, number)) for number, name in enumerate(problem.scenario_names)]
    return tuple(
        Scenario(name, each, windows(each, each.balance), number >= first_hour)
        for number, (name, each) in enumerate(problems)
    )


def scenario_problem(problem: Problem, number: int) -> Problem:
    """The problem with the sizes and rates of a scenario, and without scenarios.

    In an hour of the week only traffic differs, so such a scenario has no windows of bytes on disk.
    """
    of_growth = 0 if problem.scenario_ppm is None else len(problem.scenario_ppm)
    if number >= of_growth and problem.scenario_hours is not None:
        bytes_in, bytes_out = problem.scenario_hours[number - of_growth]
        return replace(
            without(problem),
            bytes_in_per_sec=bytes_in,
            bytes_out_per_sec=bytes_out,
            balance=replace(problem.balance, disk=NO_TOLERANCE),
            disk_limit_bytes=np.full_like(problem.disk_limit_bytes, -1),
        )
    assert problem.scenario_ppm is not None, "the problem has scenarios"
    ppm = problem.scenario_ppm[number]
    return replace(
        without(problem),
        size_bytes=grow(problem.size_bytes, ppm),
        bytes_in_per_sec=grow(problem.bytes_in_per_sec, ppm),
        bytes_out_per_sec=grow(problem.bytes_out_per_sec, ppm),
    )


def without(problem: Problem) -> Problem:
    """The problem of today, without scenarios."""
    return replace(problem, scenario_names=(), scenario_ppm=None, scenario_hours=None)


def grow(values: LongArray, ppm: LongArray) -> LongArray:
    """Values (P,) times millionths (P,), rounded down; in two steps, because their product exceeds 64 bits."""
    quotient, remainder = np.divmod(values.astype(np.int64), PPM)
    return quotient * ppm + remainder * ppm // PPM


class OutsideRow(Section, frozen=True):
    """One broker outside of one window."""

    window: Annotated[
        Literal["disk", "network_in", "network_out", "disk_used"],
        doc("The window; disk_used where the broker's disk, or limits.disk_used, is too small."),
    ]
    broker: BrokerId
    value: Annotated[Count, doc("Bytes, or bytes per second, that the broker has then.")]
    least: Annotated[Count, doc("The least that is allowed.")]
    most: Annotated[Count, doc("The most that is allowed.")]


def brokers_outside(scenario: Scenario, assignment: IntArray) -> list[OutsideRow]:
    """The brokers that are outside a window of bytes or traffic in a scenario, under an assignment (P, W)."""
    problem = scenario.problem
    amounts, limits = loads(problem, assignment), problem.disk_limit_bytes[problem.targets]
    brokers = problem.broker_ids[problem.targets].tolist()
    rows = []
    for index, (name, bounds) in enumerate(zip(BYTE_WINDOWS, scenario.windows.of_bytes, strict=True)):
        if bounds is None:
            continue
        for column in np.flatnonzero(distance(bounds, amounts[index])).tolist():
            value, (least, most), limit = int(amounts[index, column]), bounds[:, column].tolist(), int(limits[column])
            if name == "disk" and 0 <= limit < value:
                rows.append(OutsideRow("disk_used", brokers[column], value, least, limit))
            else:
                rows.append(OutsideRow(name, brokers[column], value, least, most))
    return rows


def excess(scenarios: Sequence[Scenario], grown: LongArray) -> dict[str, LongArray]:
    """The excess of the windows of bytes over all scenarios, and how many have any: (C,) each, of (C, S, 3, Bt).

    The busiest hours don't count here: their excess belongs to the balance asked for.
    """
    total, missed = (np.zeros(len(grown), dtype=np.int64) for _ in range(2))
    for index, scenario in enumerate(scenarios):
        if scenario.of_hour:
            continue
        outside = byte_excess(scenario.windows, grown[:, index])
        total, missed = total + outside, missed + (outside > 0)
    return {"scenario_excess": total, "scenarios_missed": missed}


def bytes_ahead(problem: Problem, replicas: IntArray, groups: IntArray, count: int) -> LongArray:
    """(count, B, M + 1): bytes of each group of partitions (P,), of replicas (P, W), on every broker now and in each
    coming month; no months if they aren't known.
    """
    brokers = len(problem.broker_ids)
    if problem.sizes_ahead is None:
        return np.zeros((count, brokers, 0), dtype=np.int64)
    is_placed = replicas >= 0
    cells = (groups[:, None].astype(np.int64) * brokers + replicas)[is_placed]
    starts = np.append(0, is_placed.sum(axis=1).cumsum())
    return summed(problem.sizes_ahead, cells, starts, count * brokers).reshape(count, brokers, -1)


def summed(values: LongArray, cells: LongArray, starts: LongArray, count: int) -> LongArray:
    """(count, M): sums of values (N, M): each row is added to the cells from its start (N + 1,) to the next start."""
    # Whole numbers, so that sums don't depend on their order.
    matrix = scipy.sparse.csc_array((np.ones(len(cells), dtype=np.int64), cells, starts), shape=(count, len(values)))
    sums: LongArray = matrix @ values
    return sums
