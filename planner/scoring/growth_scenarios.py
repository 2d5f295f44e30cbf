"""Growth: what a problem becomes where topics have so many times their bytes and traffic, and what holds then."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.model.problem import IntArray, LongArray, Problem
from planner.scoring.broker_loads import loads
from planner.scoring.windows import BYTE_WINDOWS, Windows, windows

_MILLION = 1_000_000


@dataclass(frozen=True, eq=False)
class Scenario:
    """A scenario's name, the problem as it is then, and the windows of the balance asked for by the shares of then."""

    name: str
    problem: Problem
    windows: Windows


def scenarios(problem: Problem) -> tuple[Scenario, ...]:
    """Every scenario of the problem."""
    grown = [(name, under(problem, number)) for number, name in enumerate(problem.scenario_names)]
    return tuple(Scenario(name, each, windows(each, problem.balance)) for name, each in grown)


def under(problem: Problem, number: int) -> Problem:
    """The problem with the sizes and rates of a scenario, and no scenarios of its own."""
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
    """The problem as it is today, looking at no scenario."""
    return replace(problem, scenario_names=(), scenario_ppm=None)


def grown(values: LongArray, ppm: LongArray) -> LongArray:
    """Values (P,) times millionths (P,), rounded down; in two steps, as their product is beyond 64 bits."""
    whole, rest = np.divmod(values.astype(np.int64), _MILLION)
    return whole * ppm + rest * ppm // _MILLION


@dataclass(frozen=True)
class OutsideWindow:
    """A broker outside of a window of bytes or traffic: what it has then, and what is allowed."""

    window: str
    broker: int
    value: int
    least: int
    most: int


def outside(scenario: Scenario, assignment: IntArray) -> list[OutsideWindow]:
    """The brokers for which the assignment (P, W) doesn't stand a scenario; empty where it does."""
    problem = scenario.problem
    held = loads(problem, assignment)
    brokers = problem.broker_ids[problem.targets].tolist()
    return [
        OutsideWindow(
            window=_window(scenario, name, int(held[at, column]), column),
            broker=brokers[column],
            value=int(held[at, column]),
            least=int(bounds[0, column]),
            most=int(bounds[1, column]),
        )
        for at, (name, bounds) in enumerate(zip(BYTE_WINDOWS, scenario.windows.of_bytes, strict=True))
        if bounds is not None
        for column in np.flatnonzero((held[at] < bounds[0]) | (held[at] > bounds[1])).tolist()
    ]


def _window(scenario: Scenario, name: str, value: int, column: int) -> str:
    """The window's name; `disk_used` where it is the disk's own limit that is crossed."""
    limit = int(scenario.problem.disk_limit_bytes[scenario.problem.targets][column])
    full = name == "disk" and 0 <= limit < value
    return "disk_used" if full else name
