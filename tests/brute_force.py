"""Every plan of a tiny problem, tried one by one: what solvers are measured against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np

from planner.model.problem import IntArray, LongArray, Problem
from planner.scoring.windows import Windows

MOST_PLANS = 3_000


def even_sets(problem: Problem, row: int) -> list[tuple[int, ...]]:
    """Every set of target brokers that a partition may be on: the least sum of squares over racks, if racks matter."""
    usable = problem.targets if problem.allowed is None else problem.targets & problem.allowed[problem.topic_of[row]]
    if problem.cordoned is not None:
        usable = usable & (~problem.cordoned | np.isin(np.arange(len(usable)), held(problem, row)))
    sets = list(combinations(np.flatnonzero(usable).tolist(), int(problem.replication_factors[row])))
    if not problem.racks_matter:
        return sets
    if problem.racks_as_today and not problem.forced[row]:
        return [each for each in sets if not _worse(problem, row, each, sets)]
    crowding = [sum(n * n for n in Counter(problem.broker_racks[list(each)].tolist()).values()) for each in sets]
    return [each for each, crowd in zip(sets, crowding, strict=True) if crowd == min(crowding)]


def _worse(problem: Problem, row: int, brokers: tuple[int, ...], sets: list[tuple[int, ...]]) -> bool:
    """True where a partition that is uneven today isn't spread between today's way and an even one; or just uneven."""

    def in_racks(of: tuple[int, ...]) -> LongArray:
        return np.bincount(problem.broker_racks[list(of)], minlength=len(problem.rack_names))

    counts = [in_racks(each) for each in sets]
    fewest = min(int((each**2).sum()) for each in counts)
    even = [each for each in counts if int((each**2).sum()) == fewest]
    now, before = in_racks(brokers), in_racks(held(problem, row))
    if int((before**2).sum()) == fewest:
        return int((now**2).sum()) != fewest
    low, high = np.min([*even, before], axis=0), np.max([*even, before], axis=0)
    return bool(((now < low) | (now > high)).any())


def held(problem: Problem, row: int) -> tuple[int, ...]:
    """Today's replicas of a partition."""
    return tuple(broker for broker in problem.replicas[row].tolist() if broker >= 0)


def options(problem: Problem) -> list[list[tuple[int, ...]]]:
    """For each partition the sets of brokers that it may be on."""
    free = problem.movable & (problem.forced | (problem.rebalance == "all"))
    return [even_sets(problem, row) if free[row] else [held(problem, row)] for row in range(problem.rows)]


def countable(problem: Problem) -> bool:
    """True where trying every plan takes a moment."""
    return float(np.prod([len(sets) for sets in options(problem)], dtype=float)) <= MOST_PLANS


def moved(problem: Problem, plan: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Bytes and replicas that a plan copies, by sets."""
    new = [len(set(brokers) - set(held(problem, row))) for row, brokers in enumerate(plan)]
    return sum(count * size for count, size in zip(new, problem.size_bytes.tolist(), strict=True)), sum(new)


def as_plan(assignment: IntArray) -> list[tuple[int, ...]]:
    """An assignment (P, W) as sets of brokers."""
    return [tuple(broker for broker in row if broker >= 0) for row in assignment.tolist()]


def counts(problem: Problem, plan: Sequence[Sequence[int]], of: LongArray) -> tuple[LongArray, LongArray]:
    """Replicas (T, Bt) and their bytes, or whatever `of` (P,) each brings, (Bt,) of the target brokers."""
    number = {broker: at for at, broker in enumerate(np.flatnonzero(problem.targets).tolist())}
    cells = np.zeros((len(problem.topic_names), len(number)), dtype=np.int64)
    load = np.zeros(len(number), dtype=np.int64)
    for row, brokers in enumerate(plan):
        for at in (number[broker] for broker in brokers if broker in number):
            cells[problem.topic_of[row], at] += 1
            load[at] += of[row]
    return cells, load


def keeps(problem: Problem, wanted: Windows, plan: Sequence[Sequence[int]]) -> bool:
    """True where a plan is within the windows of replicas, of disk and of traffic in."""
    cells, disk = counts(problem, plan, problem.size_bytes)
    traffic = counts(problem, plan, problem.bytes_in_per_sec)[1]
    windows = (
        (wanted.topic_replicas, cells),
        (wanted.replicas, cells.sum(axis=0)),
        (wanted.disk, disk),
        (wanted.network_in, traffic),
    )
    return all(
        bool(((held >= window[0]) & (held <= window[1])).all()) for window, held in windows if window is not None
    )


def plans_within(problem: Problem, wanted: Windows) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every plan within those windows."""
    return (plan for plan in product(*options(problem)) if keeps(problem, wanted, plan))
