"""Every plan of a tiny problem, found by brute force. Tests compare solvers with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, compress, product

import numpy as np
from numpy.typing import NDArray

from planner.model.balance import NO_TOLERANCE, Balance, Tolerance
from planner.model.problem import IntArray, LongArray, Problem
from planner.scoring.windows import Windows

MOST_PLANS = 3_000
# No window begins elsewhere.
AS_GIVEN = Balance(NO_TOLERANCE, NO_TOLERANCE, NO_TOLERANCE)


def even_sets(problem: Problem, row: int) -> list[tuple[int, ...]]:
    """Every set of target brokers that the partition may be on. If racks matter, only the sets most even over racks."""
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
    """True if `as_today` is broken. Even racks must stay even; uneven ones stay between today's and even counts."""

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
    """The brokers that hold the partition's replicas today."""
    return tuple(broker for broker in problem.replicas[row].tolist() if broker >= 0)


def options(problem: Problem) -> list[list[tuple[int, ...]]]:
    """For each partition, the sets of brokers that it may be on."""
    free = problem.movable & (problem.forced | (problem.rebalance == "all"))
    return [even_sets(problem, row) if free[row] else [held(problem, row)] for row in range(problem.rows)]


def countable(problem: Problem) -> bool:
    """True if there are few enough plans to try all of them."""
    return float(np.prod([len(sets) for sets in options(problem)], dtype=float)) <= MOST_PLANS


def moved(problem: Problem, plan: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Bytes and replicas that the plan copies. The plan is one set of brokers for each partition."""
    new = [len(set(brokers) - set(held(problem, row))) for row, brokers in enumerate(plan)]
    return sum(count * size for count, size in zip(new, problem.size_bytes.tolist(), strict=True)), sum(new)


def as_plan(assignment: IntArray) -> list[tuple[int, ...]]:
    """An assignment (P, W) as one set of brokers for each partition."""
    return [tuple(broker for broker in row if broker >= 0) for row in assignment.tolist()]


def counts(problem: Problem, plan: Sequence[Sequence[int]], of: LongArray) -> tuple[LongArray, LongArray]:
    """The plan's replicas (T, Bt) on target brokers, and each target broker's sum (Bt,) of `of` (P,)."""
    cells, load = _counts_of_all(problem, [[brokers] for brokers in plan], of)
    return cells[0], load[0]


def keeps(problem: Problem, wanted: Windows, plan: Sequence[Sequence[int]], balance: Balance = AS_GIVEN) -> bool:
    """True if the plan is within the windows of replicas, of disk and of inbound traffic; `balance` as `which_keep`."""
    return bool(which_keep(problem, wanted, [[brokers] for brokers in plan], balance)[0])


def every_start(window: LongArray, spread: Tolerance, held: int, caps: LongArray | None = None) -> list[LongArray]:
    """The window (2, Bt) at every start from which it contains the shares of `held` replicas.

    A spread of two and more leaves the start open, unless shares differ or the caps (Bt,) are below the highest window.
    """
    width, brokers = int(spread.value) if spread.kind == "spread" else 0, window.shape[1]
    if width < 2 or (window != window[:, :1]).any() or (caps is not None and caps.min() < held // brokers + width):
        return [window]
    lows = range(max(-(-held // brokers) - width, 0), held // brokers + 1)
    return [np.stack([np.full_like(window[0], low), np.full_like(window[1], low + width)]) for low in lows]


def plans_within(
    problem: Problem, wanted: Windows, balance: Balance = AS_GIVEN
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every plan within the windows of replicas, of disk and of inbound traffic; `balance` as `which_keep`."""
    choices = options(problem)
    return compress(product(*choices), which_keep(problem, wanted, choices, balance))


def which_keep(
    problem: Problem, wanted: Windows, choices: Sequence[Sequence[Sequence[int]]], balance: Balance = AS_GIVEN
) -> NDArray[np.bool_]:
    """Which of the N plans in `product(*choices)` are within the windows, (N,), in the order of `product`.

    The windows that the spreads of `balance` leave open begin anywhere; by default, all are as given.
    """
    cells, disk = _counts_of_all(problem, choices, problem.size_bytes)
    traffic = _counts_of_all(problem, choices, problem.bytes_in_per_sec)[1]
    windows = [(wanted.replicas, balance.replicas, cells.sum(axis=1))]
    windows += [
        (wanted.topic_replicas[:, topic], balance.topic_replicas, cells[:, topic]) for topic in range(cells.shape[1])
    ]
    for of_bytes, load in ((wanted.disk, disk), (wanted.network_in, traffic)):
        windows += [] if of_bytes is None else [(of_bytes, NO_TOLERANCE, load)]
    kept = np.ones(len(cells), dtype=bool)
    for window, spread, found in windows:
        begun = every_start(window, spread, int(found[0].sum()))
        kept &= np.any([((found >= least) & (found <= most)).all(axis=1) for least, most in begun], axis=0)
    return kept


def _counts_of_all(
    problem: Problem, choices: Sequence[Sequence[Sequence[int]]], of: LongArray
) -> tuple[LongArray, LongArray]:
    """Replicas (N, T, Bt) of all N plans in `product(*choices)`, and their sums of `of` by target broker (N, Bt)."""
    number = np.cumsum(problem.targets) - 1
    shape = tuple(len(sets) for sets in choices)
    chosen = np.indices(shape).reshape(len(shape), -1)
    cells = np.zeros((chosen.shape[1], len(problem.topic_names), int(problem.targets.sum())), dtype=np.int64)
    load = np.zeros((len(cells), cells.shape[2]), dtype=np.int64)
    for row, sets in enumerate(choices):
        on = np.zeros((len(sets), cells.shape[2]), dtype=np.int64)
        for at, brokers in enumerate(sets):
            on[at, [number[broker] for broker in brokers if problem.targets[broker]]] = 1
        cells[:, problem.topic_of[row]] += on[chosen[row]]
        load += on[chosen[row]] * of[row]
    return cells, load
