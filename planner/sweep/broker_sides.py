"""Topics that share no broker (`apart`): the target brokers are split among the sides of each group, each to one side.

A plan without the rule proves nothing about one with it, since topics are balanced over the brokers that they may use.
So a split is chosen first, and all that follows takes it as given: the problem's `allowed` has it, and the bound is
that of the split. Splits are planned one by one, those first that have to copy least, until no other can be better.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.model.build_problem import build
from planner.model.errors import InfeasibleError
from planner.model.problem import BoolArray, FloatArray, IntArray, LongArray, Problem
from planner.model.spec import Spec
from planner.scoring.fair_shares import disk_weights
from planner.scoring.score import ScoringBasis, score
from planner.strategies.optimum import solve
from planner.strategies.work_limits import MOST_SPLITS, SPLITS_SOLVED


@dataclass(frozen=True, eq=False)
class Splits:
    """Ways to split the target brokers among the sides of one group of `apart`.

    `side_of` (N, Bt): the side of each broker. `fullest` (N,): replicas per weight of the side that is fullest.
    `outside` (N,): bytes, or replicas where no sizes are known, on brokers of other sides: a plan copies no less.
    """

    side_of: NDArray[np.int8]
    fullest: FloatArray
    outside: LongArray


class _Tried(NamedTuple):
    """A split that was planned: less is better of `rank`; the bytes (replicas) copied, the least that it must copy."""

    rank: tuple[float, ...]
    copied: int
    least: int
    spec: Spec

    def settled(self, level: float, outside: int, *, even: bool) -> bool:
        """True where no split that is as full and copies no less than `outside`, or any after it, can be better."""
        if level > self.rank[0]:
            return True
        exact = self.rank[1] == 0 and not (even and self.rank[2])
        return exact and (outside >= self.copied if even else outside > self.copied)


def with_sides(spec: Spec) -> Spec:
    """The spec with the sides of `apart` chosen: each target broker belongs to one side of each group.

    Where everything may move, sides whose fullest broker holds least come first, then the least excess, then the fewest
    bytes; else only the bytes, then the excess. All splits are compared up to MOST_SPLITS, cheapest bound first, until
    no other can be better; else there is one, by what brokers hold. InfeasibleError where no side has enough brokers.
    """
    if not spec.apart or spec.apart[0].proven is not None:
        return spec
    problem = build(spec)
    sides, count = [len(rule.topics) for rule in spec.apart], int(problem.targets.sum())
    whole = prod(each**count for each in sides) <= MOST_SPLITS
    groups = [
        splits(problem, of_topic, every_split(each, count) if whole else likely_split(problem, of_topic, each))
        for each, of_topic in zip(sides, problem.apart if problem.apart is not None else (), strict=True)
    ]
    ids, even, tried = problem.broker_ids[problem.targets], problem.rebalance == "all", list[_Tried]()
    for number, (level, outside, chosen) in enumerate(cheapest_first(problem, groups)):
        best = min(tried, default=None, key=lambda each: each.rank)
        if best is not None and best.settled(level, outside, even=even):
            break
        if number >= SPLITS_SOLVED:
            whole = False
            break
        named = [
            replace(rule, sides=tuple(tuple(ids[side_of == side].tolist()) for side in range(len(rule.topics))))
            for rule, side_of in zip(spec.apart, chosen, strict=True)
        ]
        narrowed = build(split := replace(spec, apart=tuple(named)))
        with suppress(InfeasibleError):
            found = solve(narrowed, narrowed.balance)
            scores = score(ScoringBasis.of(narrowed), found.assignment)
            moved, least_of = scores.replicas_moved, found.least_replicas
            if problem.sizes_known:
                moved, least_of = scores.bytes_moved, found.least_bytes
            excess, copied = int(scores.excess[0]), int(moved[0])
            rank = (level, int(scores.violations[0]), *((excess, copied) if even else (copied, excess)))
            tried.append(_Tried(rank, copied, least_of, split))
    if not tried:
        why = "apart: no split of the brokers leaves each topic enough of them and enough racks"
        raise InfeasibleError(f"{why}; allowed: more brokers, or fewer replicas")
    best = min(tried, key=lambda each: each.rank)
    surely = whole and best.rank[1] == 0 and not (even and best.rank[2]) and best.least == min(x.least for x in tried)
    return replace(best.spec, apart=tuple(replace(rule, proven=surely) for rule in best.spec.apart))


def cheapest_first(problem: Problem, groups: Sequence[Splits]) -> Iterator[tuple[float, int, list[NDArray[np.int8]]]]:
    """Splits of all groups together, each with how full its fullest side is, and the least that it copies."""
    if not all(len(each.side_of) for each in groups):
        return
    at = np.indices([len(each.side_of) for each in groups]).reshape(len(groups), -1)
    fullest = np.max([each.fullest[mine] for each, mine in zip(groups, at, strict=True)], axis=0)
    fullest = np.round(fullest if problem.rebalance == "all" else np.zeros_like(fullest), 9)
    # A replica may be in the way of two groups and is copied once.
    outside = np.max([each.outside[mine] for each, mine in zip(groups, at, strict=True)], axis=0)
    for number in np.lexsort((outside, fullest)):
        chosen = [each.side_of[mine[number]] for each, mine in zip(groups, at, strict=True)]
        yield float(fullest[number]), int(outside[number]), chosen


def every_split(sides: int, count: int) -> NDArray[np.int8]:
    """(N, Bt): all ways to split so many brokers among so many sides."""
    return np.array(list(product(range(sides), repeat=count)), dtype=np.int8)


def likely_split(problem: Problem, of_topic: IntArray, sides: int) -> NDArray[np.int8]:
    """(1, Bt): in each rack, brokers for each side by its replicas, those first that hold most of what it has."""
    held, stuck, usable = held_by_side(problem, of_topic, sides)
    side_of_row = of_topic[problem.topic_of]
    replicas = [int(problem.replication_factors[side_of_row == side].sum()) for side in range(sides)]
    racks = problem.broker_racks[problem.targets] if problem.racks_matter else np.zeros(held.shape[1], dtype=np.int32)
    side_of = np.full(held.shape[1], -1, dtype=np.int8)
    for rack in np.unique(racks):
        here = np.flatnonzero(racks == rack)
        room = [max(1, len(here) * each // max(sum(replicas), 1)) for each in replicas]
        room[replicas.index(max(replicas))] += max(len(here) - sum(room), 0)
        pairs = sorted(
            product(here.tolist(), range(sides)),
            key=lambda pair: (not stuck[pair[1], pair[0]], not usable[pair[1], pair[0]], -int(held[pair[1], pair[0]])),
        )
        for broker, side in pairs:
            if side_of[broker] < 0 and (room[side] > 0 or stuck[side, broker]):
                side_of[broker], room[side] = side, room[side] - 1
    # What no side has room for goes to the one with most replicas.
    return np.where(side_of < 0, replicas.index(max(replicas)), side_of)[None].astype(np.int8)


def held_by_side(problem: Problem, of_topic: IntArray, sides: int) -> tuple[LongArray, BoolArray, BoolArray]:
    """(sides, Bt) each: what target brokers hold of a side that has to leave other sides' brokers, replicas without
    sizes; True where a partition that may not move has a replica; True where all of the side's topics may be.
    """
    held = np.zeros((sides, len(problem.targets)), dtype=np.int64)
    stuck = np.zeros(held.shape, dtype=bool)
    usable = np.ones(held.shape, dtype=bool)
    sizes = problem.size_bytes if problem.sizes_known else np.ones(problem.rows, dtype=np.int64)
    kept = (problem.replicas >= 0).sum(axis=1) <= problem.replication_factors
    side_of_row = of_topic[problem.topic_of]
    for column in problem.replicas.T:
        rows = np.flatnonzero((column >= 0) & (side_of_row >= 0))
        np.add.at(held, (side_of_row[rows], column[rows]), np.where(kept, sizes, 0)[rows])
        # A partition without a leader moves once it is forced to.
        rows = rows[~problem.movable[rows] & (problem.leaders[rows] >= 0)]
        stuck[side_of_row[rows], column[rows]] = True
    if problem.allowed is not None:
        for side in range(sides):
            usable[side] = problem.allowed[of_topic == side].all(axis=0)
    return held[:, problem.targets], stuck[:, problem.targets], usable[:, problem.targets]


def splits(problem: Problem, of_topic: IntArray, side_of: NDArray[np.int8]) -> Splits:
    """Of these splits (N, Bt) the ones that leave each topic of each side enough brokers, and enough racks."""
    sides, weighing = int(of_topic.max()) + 1, disk_weights(problem)
    held, stuck, _ = held_by_side(problem, of_topic, sides)
    kept, fullest = np.ones(len(side_of), dtype=bool), np.zeros(len(side_of))
    racks = problem.broker_racks[problem.targets] if problem.racks_matter else np.zeros(len(weighing), dtype=np.int32)
    factors = problem.replication_factors
    for side in range(sides):
        mine = side_of == side
        kept &= ~(~mine & stuck[side]).any(axis=1)
        for topic in np.flatnonzero(of_topic == side):
            usable = (
                np.ones(len(racks), dtype=bool) if problem.allowed is None else problem.allowed[topic, problem.targets]
            )
            most = int(factors[problem.topic_of == topic].max(initial=0))
            there = [(mine & usable & (racks == rack)).any(axis=1) for rack in np.unique(racks)]
            kept &= ((mine & usable).sum(axis=1) >= most) & (np.sum(there, axis=0) >= min(most, len(np.unique(racks))))
        replicas = int(factors[of_topic[problem.topic_of] == side].sum())
        fullest = np.maximum(fullest, replicas / np.maximum(mine @ weighing, 1))
    fullest = np.maximum(fullest, int(factors.sum()) / max(int(weighing.sum()), 1))
    outside = held.sum() - sum((side_of == side) @ held[side] for side in range(sides))
    return Splits(side_of[kept], fullest[kept], outside[kept])
