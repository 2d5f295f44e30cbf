"""Scenarios: the problem with topics at a multiple of their bytes and traffic, or with the traffic of an hour of the
week; and which windows hold then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from planner.model.balance import NO_TOLERANCE
from planner.model.problem import IntArray, LongArray, Problem
from planner.model.spec import Rate
from planner.scoring.broker_loads import loads
from planner.scoring.windows import BYTE_WINDOWS, Windows, windows

_MILLION = 1_000_000


@dataclass(frozen=True, eq=False)
class Scenario:
    """A scenario's name, its problem, and the windows that the balance asks for on that problem.

    `of_hour`: it is one of the busiest hours, whose windows are part of the balance asked for.
    """

    name: str
    problem: Problem
    windows: Windows
    of_hour: bool = False


def per_month_ppm(rates: Sequence[Rate], topics: Sequence[str]) -> list[int]:
    """Millionths a month by which each of these topics grows, by the first rate that matches it; 0 where none does."""
    # A load profile has a rate for each topic by its name: patterns alone are looked through one by one.
    named: dict[str, int] = {}
    patterns = []
    for at, rate in enumerate(rates):
        if any(each in rate.topics for each in "*?["):
            patterns.append(at)
        else:
            named.setdefault(rate.topics, at)
    found = []
    for topic in topics:
        matching = (at for at in patterns if fnmatchcase(topic, rates[at].topics))
        first = min(next(matching, len(rates)), named.get(topic, len(rates)))
        found.append(rates[first].ppm if first < len(rates) else 0)
    return found


def scenarios(problem: Problem) -> tuple[Scenario, ...]:
    """Every scenario of the problem."""
    first_hour = len(problem.scenario_names) - (0 if problem.scenario_hours is None else len(problem.scenario_hours))
    then = [(name, under(problem, number)) for number, name in enumerate(problem.scenario_names)]
    return tuple(
        Scenario(name, each, windows(each, each.balance), number >= first_hour)
        for number, (name, each) in enumerate(then)
    )


def under(problem: Problem, number: int) -> Problem:
    """The problem with the sizes and rates of a scenario, and no scenarios of its own.

    In an hour of the week only traffic differs, so that it has no windows of bytes on disk.
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
    if problem.scenario_ppm is None:
        raise ValueError("the problem has no scenarios")
    ppm = problem.scenario_ppm[number]
    return replace(
        without(problem),
        size_bytes=grown(problem.size_bytes, ppm),
        bytes_in_per_sec=grown(problem.bytes_in_per_sec, ppm),
        bytes_out_per_sec=grown(problem.bytes_out_per_sec, ppm),
    )


def without(problem: Problem) -> Problem:
    """The problem of today, without scenarios."""
    return replace(problem, scenario_names=(), scenario_ppm=None, scenario_hours=None)


def grown(values: LongArray, ppm: LongArray) -> LongArray:
    """Values (P,) times millionths (P,), rounded down; in two steps, as their product is beyond 64 bits."""
    whole, rest = np.divmod(values.astype(np.int64), _MILLION)
    return whole * ppm + rest * ppm // _MILLION


@dataclass(frozen=True)
class OutsideWindow:
    """A broker outside a window of bytes or traffic in a scenario: what it has, and what is allowed."""

    window: str
    broker: int
    value: int
    least: int
    most: int


def outside(scenario: Scenario, assignment: IntArray) -> list[OutsideWindow]:
    """The brokers that are outside a window of bytes or traffic in a scenario, under an assignment (P, W)."""
    problem = scenario.problem
    held, limits = loads(problem, assignment), problem.disk_limit_bytes[problem.targets]
    brokers = problem.broker_ids[problem.targets].tolist()
    return [
        OutsideWindow(
            # `disk_used` where it is the disk's own limit that is crossed.
            window="disk_used" if name == "disk" and 0 <= limits[column] < held[at, column] else name,
            broker=brokers[column],
            value=int(held[at, column]),
            least=int(bounds[0, column]),
            most=int(bounds[1, column]),
        )
        for at, (name, bounds) in enumerate(zip(BYTE_WINDOWS, scenario.windows.of_bytes, strict=True))
        if bounds is not None
        for column in np.flatnonzero((held[at] < bounds[0]) | (held[at] > bounds[1])).tolist()
    ]
