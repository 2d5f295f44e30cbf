"""Topics that share no broker, or no rack (`apart`): the target brokers are divided among each group's sides.

A plan without the rule gives no bound for a plan with it, because each topic is balanced over the brokers it may use.
So a split of the brokers is chosen first and then taken as given: it is part of the problem's `allowed`, and the bound
is valid for this split. Splits are planned one by one, the most promising first, until no other split can be better.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from planner.model.build_problem import build
from planner.model.cluster import partition_name
from planner.model.document_fields import LEADERS, Apart
from planner.model.errors import InfeasibleError
from planner.model.problem import BoolArray, FloatArray, IntArray, LongArray, Problem, like_brokers, misplaced
from planner.model.spec import Spec
from planner.scoring.fair_shares import RackRule, ShareFilling, disk_weights, per_rack, rack_rule, water_filled
from planner.scoring.score import ScoringBasis, score
from planner.strategies.optimum import OptimalAssignment, Shared, assign
from planner.strategies.work_limits import LITTLE_WORK, MOST_SPLITS, SPLIT_IMPROVEMENTS, SPLIT_PARTITIONS, SPLITS_SOLVED
from planner.sweep.candidates import ALL_SCENARIOS, NO_SCENARIOS

# (N, G, Bt): for each split and group, the side of each target broker.
Sides = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Splits:
    """Ways to split the target brokers among the sides of each group.

    `lacking` (N,): how many brokers and racks the topics lack, plus the replicas that may not move but are on another
    side's brokers; a split has a plan only if this is 0. `lost` (N,): `Problem.ranks_lost`. `uneven` (N, 2): the share
    of the fullest broker, then how much the emptiest one lacks, in percent of an even cluster's share; 0 if the plan
    need not be even. `outside` (N,): bytes (replicas without sizes) that every plan copies from other sides' brokers.
    """

    side_of: Sides
    lacking: LongArray
    lost: LongArray
    uneven: LongArray
    outside: LongArray

    def order(self) -> IntArray:
        """The numbers of the splits, the most promising first."""
        return np.lexsort((self.outside, *self.uneven.T[::-1], self.lost, self.lacking)).astype(np.int32)

    def key(self, index: int) -> tuple[int, ...]:
        """The sort key of `order`; less is better."""
        return tuple(map(int, (self.lacking[index], self.lost[index], *self.uneven[index], self.outside[index])))


@dataclass(frozen=True, eq=False)
class _PlannedSplit:
    """A split that was planned: its rank (less is better), `Splits.lost` and `uneven`, bytes (or replicas) copied."""

    rank: tuple[int, ...]
    uneven: tuple[int, ...]
    copied: int
    solved: OptimalAssignment
    exact: bool
    uneven_leaders: bool
    spec: Spec

    @cached_property
    def least(self) -> int:
        """A lower bound on what the split copies. Computed on demand: a proof may take as long as the plan."""
        proven = self.solved.proven()
        return proven.least_bytes if self.solved.query.problem.sizes_known else proven.least_replicas

    def is_best(self, uneven: tuple[int, ...], outside: int, *, even: bool, of_leaders: bool) -> bool:
        """True if no later split, as uneven and copying `outside` or more, can be better (`of_leaders`: copy less)."""
        if not self.exact or (of_leaders and self.copied == self.least):
            return self.exact and not self.uneven_leaders
        return uneven > self.uneven or (outside >= self.copied if even else outside > self.copied)


def with_sides(spec: Spec, at_most: int = SPLITS_SOLVED[1]) -> Spec:
    """The spec with the sides of `apart` chosen: each target broker belongs to one side of each group.

    Ranked by broken rules and lost ranks; then, if everything may move, by excess over windows, evenness, bytes; else
    by bytes and excess. Up to MOST_SPLITS all are compared: the most promising are planned first, until no other can be
    better or `at_most` (fewer if large) are planned. Beyond, one is. InfeasibleError if none has enough brokers.
    """
    if not spec.apart or spec.apart[0].sides:
        return spec
    problem, sides = build(spec), [len(rule.topics) for rule in spec.apart]
    complete, of_leaders = _all_compared(problem, sides), all(rule.by.endswith(LEADERS) for rule in spec.apart)
    splits = judged(problem, every_split(problem, sides)) if complete else improved(problem, sides)
    if len(splits.side_of) == 1 and not splits.lacking[0] and not of_leaders:
        _split_problem(only := split_by(spec, problem, splits.side_of[0]))
        return only
    plans, errors, shared, even = list[_PlannedSplit](), list[InfeasibleError](), Shared(), problem.rebalance == "all"
    most = max(min(at_most, SPLIT_PARTITIONS // max(problem.rows, 1)), SPLITS_SOLVED[0])
    for number, index in enumerate(splits.order()):
        lacking, *uneven, outside = splits.key(index)
        best = min(plans, default=None, key=lambda each: each.rank)
        if lacking or (best is not None and best.is_best(tuple(uneven), outside, even=even, of_leaders=of_leaders)):
            break
        if number >= most:
            complete = False
            break
        try:
            plans.append(_plan_split(split_by(spec, problem, splits.side_of[index]), tuple(uneven), shared))
        except InfeasibleError as error:
            errors.append(error)
    if not plans:
        subject = "no split" if complete else "none of the splits that were tried"
        reason = f"apart: {subject} of the brokers leaves each topic enough of them and enough racks"
        raise errors[0] if errors else InfeasibleError(f"{reason}; allowed: more brokers, or fewer replicas")
    best = min(plans, key=lambda each: each.rank)
    bounds = (each.least for each in plans if each.uneven <= best.uneven)
    proven = best.exact and (best.copied == best.least if of_leaders else complete and best.least == min(bounds))
    return replace(best.spec, apart=tuple(structs.replace(rule, proven=proven) for rule in best.spec.apart))


def as_planned(spec: Spec, problem: Problem, scenarios: str) -> tuple[Apart, ...]:
    """`spec.apart` for a plan of this problem at its balance and scenarios. A split is proven only for the whole change
    at the balance asked for: not for a first step, nor for another plan of the front.
    """
    complete = problem.deferred is None and problem.balance == spec.balance
    complete = complete and scenarios == (ALL_SCENARIOS if problem.scenario_names else NO_SCENARIOS)
    return tuple(structs.replace(rule, proven=rule.proven and complete) for rule in spec.apart)


def sides_of(spec: Spec, problem: Problem, assignment: IntArray) -> Spec:
    """The spec with the sides of an assignment (P, W) that keeps the rule; free brokers join a side that needs them."""
    sides = [len(rule.topics) for rule in spec.apart]
    given = replace(problem, replicas=assignment, leaders=assignment[:, 0], movable=np.zeros(problem.rows, dtype=bool))
    splits = judged(given, every_split(given, sides)) if _all_compared(problem, sides) else improved(given, sides)
    return split_by(spec, problem, splits.side_of[splits.order()[0]])


def split_by(spec: Spec, problem: Problem, side_of: NDArray[np.int8]) -> Spec:
    """The spec with the sides of a split (G, Bt)."""
    ids = problem.broker_ids[problem.targets]
    rules = []
    for rule, side_of_rule in zip(spec.apart, side_of, strict=True):
        sides = tuple(tuple(ids[side_of_rule == side].tolist()) for side in range(len(rule.topics)))
        rules.append(structs.replace(rule, sides=sides, proven=False))
    return replace(spec, apart=tuple(rules))


def _split_problem(spec: Spec) -> Problem:
    """A split's problem; InfeasibleError if a partition would have to move but may not."""
    problem = build(spec)
    if (must_move := misplaced(problem, problem.replicas) & ~problem.movable).any():
        name = partition_name(*problem.partition_keys[int(np.argmax(must_move))])
        raise InfeasibleError(f"apart: {name} may not move, and would have to; allowed: let it move")
    return problem


def _plan_split(spec: Spec, uneven: tuple[int, ...], shared: Shared) -> _PlannedSplit:
    """The plan of a split; InfeasibleError if it has none."""
    problem = _split_problem(spec)
    solved, even = assign(problem, problem.balance, 0, LITTLE_WORK, shared), problem.rebalance == "all"
    scores = score(ScoringBasis.of(problem), solved.assignment)
    moved = scores.bytes_moved if problem.sizes_known else scores.replicas_moved
    violations, excess, copied = (int(each[0]) for each in (scores.violations, scores.excess, moved))
    rank = (violations, uneven[0], excess, *uneven[1:], copied) if even else (violations, uneven[0], copied, excess)
    exact, uneven_leaders = violations == 0 and not (even and excess), problem.rebalance == "leaders" and excess > 0
    return _PlannedSplit(rank, uneven, copied, solved, exact, uneven_leaders, spec)


def units(problem: Problem, group: int) -> IntArray:
    """(Bt,): each target broker's unit. A unit is on one side as a whole: it is a broker, or a rack."""
    unit_of: IntArray = np.unique(problem.not_shared(group)[problem.targets], return_inverse=True)[1].reshape(-1)
    return unit_of


def _all_compared(problem: Problem, sides: Sequence[int]) -> bool:
    """True if there are at most MOST_SPLITS splits, so that all are compared."""
    return prod(count ** (int(units(problem, group).max()) + 1) for group, count in enumerate(sides)) <= MOST_SPLITS


def every_split(problem: Problem, sides: Sequence[int]) -> Sides:
    """(N, G, Bt): all ways to split the target brokers among each group's number of sides. Of splits that differ only
    in which of several interchangeable brokers is on a side, one is kept.
    """
    groups = []
    for group, count in enumerate(sides):
        unit_of = units(problem, group)
        groups.append(np.array(list(product(range(count), repeat=int(unit_of.max()) + 1)), dtype=np.int8)[:, unit_of])
    indices = np.indices([len(each) for each in groups]).reshape(len(groups), -1)
    splits = np.stack([each[rows] for each, rows in zip(groups, indices, strict=True)], axis=1)
    # A broker's sides in all groups as one number. Among interchangeable brokers, these numbers must not decrease.
    codes = np.tensordot(np.cumprod([1, *sides[:-1]]), splits.astype(np.int64), axes=(0, 1))
    is_kept = np.ones(len(splits), dtype=bool)
    for broker, twin in like_brokers(problem):
        is_kept &= codes[:, broker] <= codes[:, twin]
    return splits[is_kept]


def improved(problem: Problem, sides: Sequence[int]) -> Splits:
    """One split: the likely one, improved by moving a broker to another side or swapping the sides of two brokers,
    while that helps. If only leaders are apart, it is not improved, because it would no longer have whole racks.
    """
    best = judged(problem, _likely_split(problem, sides))
    done = not best.lacking[0] and all(by.endswith(LEADERS) for by in problem.apart_by)
    for _ in range(0 if done else SPLIT_IMPROVEMENTS):
        nearby = judged(problem, neighbors(problem, best.side_of[0], sides))
        index = nearby.order()[0]
        if nearby.key(index) >= best.key(0):
            break
        best = judged(problem, nearby.side_of[index : index + 1])
    return best


def neighbors(problem: Problem, side_of: NDArray[np.int8], sides: Sequence[int]) -> Sides:
    """(N, G, Bt): this split (G, Bt) with one unit (broker or rack) on another side, or with the sides of two units
    swapped. Each unit is swapped with the one, in its rack, that leaves the least to copy.
    """
    changes = []
    for group, count in enumerate(sides):
        unit, first, racks = _unit_racks(problem, group)
        home, loads = side_of[group][first].astype(np.int64), _by_unit(_side_bytes(problem, group, count)[0], unit)
        brokers = np.arange(len(home))
        for broker, side in product(range(len(home)), range(count)):
            if side != home[broker]:
                changes.append((group, np.isin(unit, broker), side, side))
        # The bytes that each unit holds of its own side, and of the other unit's side: these needn't be copied.
        kept = loads[home, brokers]
        gain = loads[home[None, :], brokers[:, None]] + loads[home[:, None], brokers[None, :]] - kept[:, None] - kept
        gain[(racks[:, None] != racks) | (home[:, None] == home)] = np.iinfo(np.int64).min
        for broker, other in enumerate(gain.argmax(axis=1).tolist()):
            if gain[broker, other] > 0:
                changes.append((group, np.isin(unit, (broker, other)), int(home[other]), int(home[broker])))
    near = np.repeat(side_of[None], len(changes), axis=0)
    for index, (group, changed, to_side, from_side) in enumerate(changes):
        near[index, group, changed] = np.where(side_of[group, changed] == to_side, from_side, to_side)
    return near


def _likely_split(problem: Problem, sides: Sequence[int]) -> Sides:
    """(1, G, Bt): in each rack, each side gets brokers in proportion to its replicas, first the brokers that hold most
    of its bytes. If leaders are apart, each side gets whole racks.
    """
    groups = []
    for group, count in enumerate(sides):
        unit, _, racks = _unit_racks(problem, group)
        loads, stuck = (_by_unit(each, unit) for each in _side_bytes(problem, group, count))
        side_of_row = problem.apart[group][problem.topic_of]
        replicas = [int(problem.replication_factors[side_of_row == side].sum()) for side in range(count)]
        largest = replicas.index(max(replicas))
        side_of = np.full(len(racks), -1, dtype=np.int8)
        for rack in np.unique(racks):
            rack_units = np.flatnonzero(racks == rack)
            room = [max(1, len(rack_units) * each // max(sum(replicas), 1)) for each in replicas]
            room[largest] += max(len(rack_units) - sum(room), 0)
            pairs = sorted(
                product(rack_units.tolist(), range(count)),
                key=lambda pair: (not stuck[pair[1], pair[0]], -int(loads[pair[1], pair[0]])),
            )
            for broker, side in pairs:
                if side_of[broker] < 0 and (room[side] > 0 or stuck[side, broker]):
                    side_of[broker], room[side] = side, room[side] - 1
        if problem.apart_by[group].endswith(LEADERS) and not stuck.any():
            # Deal out racks one after the other: if a partition has a replica in each rack, each side can lead its own.
            room = [max(1, len(racks) * each // max(sum(replicas), 1)) for each in replicas]
            dealt = np.repeat(np.arange(count), room)[np.arange(len(racks)) % sum(room)]
            side_of[np.argsort(racks, kind="stable")] = dealt
        groups.append(np.where(side_of < 0, largest, side_of)[unit])
    return np.stack(groups)[None].astype(np.int8)


def _unit_racks(problem: Problem, group: int) -> tuple[IntArray, IntArray, IntArray]:
    """(Bt,) the unit of each target broker; (U,) the first broker of each unit; (U,) its rack. All units are in one
    rack if racks don't matter or are the units.
    """
    first = np.unique(unit := units(problem, group), return_index=True)[1]
    apart = problem.racks_matter and problem.apart_by[group].startswith("broker")
    racks = problem.broker_racks[problem.targets][first]
    return unit, first, racks if apart else np.zeros_like(racks)


def _by_unit(values: LongArray, unit: IntArray) -> LongArray:
    """(sides, U): sums over each unit's brokers of `values` (sides, Bt)."""
    return np.stack([np.bincount(unit, weights=each) for each in values]).astype(np.int64)


def _side_bytes(problem: Problem, group: int, sides: int) -> tuple[LongArray, LongArray]:
    """(sides, Bt) each: the bytes (replicas if sizes are unknown) of each side that a target broker must give away if
    it is on another side; the replicas that may not move. Counts only preferred leaders if only leaders are apart.
    """
    bytes_on, stuck = (np.zeros((sides, len(problem.targets)), dtype=np.int64) for _ in range(2))
    sizes = problem.size_bytes if problem.sizes_known else np.ones(problem.rows, dtype=np.int64)
    only_leaders = problem.apart_by[group].endswith(LEADERS)
    not_shrunk = (problem.replicas >= 0).sum(axis=1) <= problem.replication_factors
    side_of_row = problem.apart[group][problem.topic_of]
    for column in problem.replicas.T[: 1 if only_leaders else None]:
        rows = np.flatnonzero((column >= 0) & (side_of_row >= 0))
        np.add.at(bytes_on, (side_of_row[rows], column[rows]), np.where(not_shrunk, sizes, 0)[rows])
        # A partition without a leader may move if it is forced to.
        rows = rows[~problem.movable[rows] & (only_leaders | (problem.leaders[rows] >= 0))]
        np.add.at(stuck, (side_of_row[rows], column[rows]), 1)
    return bytes_on[:, problem.targets], stuck[:, problem.targets]


def judged(problem: Problem, side_of: Sides) -> Splits:
    """How many brokers and racks these splits (N, G, Bt) lack, how even they are, and how much they copy at least."""
    lacking, lost, outside = np.zeros((3, len(side_of)), dtype=np.int64)
    for group in range(side_of.shape[1]):
        sides = int(problem.apart[group].max(initial=0)) + 1
        loads, stuck = _side_bytes(problem, group, max(sides, int(side_of[:, group].max(initial=0)) + 1))
        elsewhere = np.stack([side_of[:, group] != side for side in range(len(loads))])
        # One replica that may not move weighs more than all brokers and racks that may be missing.
        lacking += np.einsum("snb,sb->n", elsewhere, stuck) * (2 * problem.width * len(problem.topic_names) + 1)
        # A replica on a wrong side of two groups is copied only once, so the largest group counts, not the sum.
        leading = problem.apart_by[group].endswith(LEADERS)
        copied = copied_to_lead(problem, group, elsewhere) if leading else np.einsum("snb,sb->n", elsewhere, loads)
        outside = np.maximum(outside, copied)
        # With brokers of its own in each rack, a side has those that its leaders prefer.
        if problem.apart_by[group] != "broker":
            lost += problem.ranks_lost(problem.apart[group], elsewhere)
    racks, weighing = rack_rule(problem), disk_weights(problem)
    measures: list[LongArray] = [np.ones(problem.rows, dtype=np.int64)]
    if problem.balance.disk.kind != "none" and problem.sizes_known:
        measures.append(problem.size_bytes)
    leader_groups = [group for group, by in enumerate(problem.apart_by) if by.endswith(LEADERS)]
    shares = np.zeros((len(measures) + bool(leader_groups), len(side_of), len(weighing)))
    for rows, usable, topic_sides in _kinds_of_topics(problem):
        uses = np.repeat(usable[None], len(side_of), axis=0)
        can_lead = np.ones_like(uses)
        for group, side in enumerate(topic_sides):
            allowed = can_lead if group in leader_groups else uses
            allowed &= (side_of[:, group] == side) | (side < 0)
        if leader_groups:
            can_lead &= uses
            lacking += ~can_lead.any(axis=1)
            shares[-1] += len(rows) * can_lead / np.maximum(can_lead.sum(axis=1, keepdims=True), 1)
        sizes = np.stack([uses[:, racks.rack_of == rack].sum(axis=1) for rack in range(len(racks.sizes))], axis=1)
        most = int(problem.replication_factors[rows].max(initial=0))
        lacking += np.maximum(most - sizes.sum(axis=1), 0)
        lacking += np.maximum(min(most, len(racks.sizes)) - (sizes > 0).sum(axis=1), 0)
        for row, values in enumerate(measures):
            shares[row] += _shares_of(problem.replication_factors[rows], values[rows], uses * weighing, sizes, racks)
    uneven = np.zeros((len(side_of), 2), dtype=np.int64)
    if problem.rebalance == "all":
        # In percent of the share that each broker would have, by its weight, if all topics used all brokers.
        even_share = np.maximum(shares.sum(axis=2, keepdims=True), 1) * weighing / weighing.sum()
        level = np.rint(shares / even_share * 100).astype(np.int64)
        uneven = np.stack([level.max(axis=(0, 2)), 100 - level.min(axis=(0, 2))], axis=1)
    return Splits(side_of, lacking, lost, uneven, outside)


def copied_to_lead(problem: Problem, group: int, elsewhere: BoolArray) -> LongArray:
    """(N,): bytes (replicas if sizes are unknown) of the partitions that none of today's replicas can lead: each copies
    at least one replica. `elsewhere` (sides, N, Bt): the brokers that are on another side.
    """
    sides, column_of = problem.apart[group][problem.topic_of], np.cumsum(problem.targets) - 1
    rows = np.flatnonzero((sides >= 0) & ~problem.is_new & problem.movable)
    is_on = np.zeros((len(rows), len(column_of)), dtype=bool)
    row, slots = np.nonzero(problem.replicas[rows] >= 0)
    is_on[row, problem.replicas[rows[row], slots]] = True
    kinds, of_row = np.unique(np.column_stack([sides[rows], is_on[:, problem.targets]]), axis=0, return_inverse=True)
    sizes = problem.size_bytes if problem.sizes_known else np.ones(problem.rows, dtype=np.int64)
    values = np.bincount(of_row.reshape(-1), weights=sizes[rows], minlength=len(kinds)).astype(np.int64)
    copied = np.zeros(elsewhere.shape[1], dtype=np.int64)
    for (side, *holders), value in zip(kinds, values, strict=True):
        copied += value * elsewhere[side][:, np.array(holders, dtype=bool)].all(axis=1)
    return copied


def _kinds_of_topics(problem: Problem) -> list[tuple[IntArray, BoolArray, tuple[int, ...]]]:
    """Topics grouped by the brokers they may use in every split: their partitions; (Bt,) the target brokers that the
    rules of placement allow; their side in each group, or -1 if they have none.
    """
    topics, brokers = len(problem.topic_names), int(problem.targets.sum())
    usable = np.ones((topics, brokers), dtype=bool) if problem.allowed_targets is None else problem.allowed_targets
    sides = problem.apart
    kinds, of_topic = np.unique(np.concatenate([sides.T, usable], axis=1), axis=0, return_inverse=True)
    rows = [np.flatnonzero(of_topic.reshape(-1)[problem.topic_of] == number) for number in range(len(kinds))]
    return [
        (its_rows.astype(np.int32), kind[len(sides) :].astype(bool), tuple(kind[: len(sides)].tolist()))
        for kind, its_rows in zip(kinds, rows, strict=True)
    ]


def _shares_of(
    factors: IntArray, values: LongArray, weighing: LongArray, sizes: LongArray, racks: RackRule
) -> FloatArray:
    """(N, Bt): fair shares, as in `fair_shares` but to one millionth, of partitions with these replication factors and
    `values` in each replica. `weighing` (N, Bt): brokers' weights, 0 if not usable. `sizes` (N, R): usable brokers.
    """
    # Scaled down, so that totals times weights fit into 64 bits.
    scale = max(int((values * factors).sum()) // 1_000_000, 1)
    total, least, most, cap = 0, np.zeros_like(sizes), np.zeros_like(sizes), 0
    for factor in np.unique(factors).tolist():
        value = int(values[factors == factor].sum()) // scale
        low, high = per_rack(sizes, factor)
        total, least, most, cap = total + value * factor, least + value * low, most + value * high, cap + value
    totals, caps = (np.full((len(sizes), 1), each, dtype=np.int64) for each in (total, cap))
    shares = water_filled(ShareFilling(totals, least, most, caps, weighing, racks))
    return np.asarray(shares.count / shares.parts * scale, dtype=np.float64)
