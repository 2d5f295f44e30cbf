"""Topics that share no broker, or no rack (`apart`): the target brokers are split among the sides of each group.

A plan without the rule proves nothing about one with it, since topics are balanced over the brokers that they may use.
So a split is chosen first, and all that follows takes it as given: the problem's `allowed` has it, and the bound is
that of the split. Splits are planned one by one, the most promising first, until no other can be better.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from planner.model.build_problem import build
from planner.model.cluster import LEADERS, Apart
from planner.model.errors import InfeasibleError
from planner.model.problem import BoolArray, FloatArray, IntArray, LongArray, Problem, like_brokers, misplaced
from planner.model.spec import Spec
from planner.scoring.fair_shares import RackRule, ShareFilling, disk_weights, per_rack, rack_rule, water_filled
from planner.scoring.score import ScoringBasis, score
from planner.strategies.optimum import Assigned, Shared, assigned
from planner.strategies.work_limits import MOST_SPLITS, OTHERS, SPLIT_IMPROVEMENTS, SPLIT_PARTITIONS, SPLITS_SOLVED
from planner.sweep.candidates import ALL_SCENARIOS, NO_SCENARIOS

# (N, G, Bt): for each split and group, the side of each target broker.
Sides = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Splits:
    """Ways to split the target brokers among the sides of each group.

    `lacking` (N,): how many brokers and racks are missing where topics have to be, and how many replicas that may not
    move are on another side's brokers; a plan exists only where it is 0. `uneven` (N, 2): in per cent of what an even
    cluster has, the share of the fullest broker, then what the emptiest lacks; 0 where evenness isn't asked for.
    `outside` (N,): bytes, or replicas where no sizes are known, on brokers of other sides: a plan copies no less.
    """

    side_of: Sides
    lacking: LongArray
    uneven: LongArray
    outside: LongArray

    def order(self) -> IntArray:
        """The splits from the most promising on."""
        return np.lexsort((self.outside, self.uneven[:, 1], self.uneven[:, 0], self.lacking)).astype(np.int32)

    def key(self, at: int) -> tuple[int, ...]:
        """What `order` sorts by: less is better."""
        return int(self.lacking[at]), *map(int, self.uneven[at]), int(self.outside[at])


@dataclass(frozen=True, eq=False)
class _Tried:
    """A split that was planned: less is better of `rank`; the bytes (replicas) copied."""

    rank: tuple[int, ...]
    uneven: tuple[int, ...]
    copied: int
    found: Assigned
    exact: bool
    uneven_leaders: bool
    spec: Spec

    @cached_property
    def least(self) -> int:
        """The least that the split must copy; few are asked, and a proof may take as long as the plan."""
        proven = self.found.proven()
        return proven.least_bytes if self.found.asked.problem.sizes_known else proven.least_replicas

    def settled(self, uneven: tuple[int, ...], outside: int, *, even: bool, led: bool) -> bool:
        """True where no later split, as uneven and copying `outside` or more, can be better; of leaders: copy less."""
        if not self.exact or (led and self.copied == self.least):
            return self.exact and not self.uneven_leaders
        return uneven > self.uneven or (outside >= self.copied if even else outside > self.copied)


def with_sides(spec: Spec, at_most: int = SPLITS_SOLVED[1]) -> Spec:
    """The spec with the sides of `apart` chosen: each target broker belongs to one side of each group.

    Splits whose plan breaks no rule and misses no window come first; of these the most even where everything may move,
    then the fewest bytes. All are compared up to MOST_SPLITS, the most promising planned first, until no other can be
    better, or `at_most` are; beyond, there is one. InfeasibleError where no split leaves enough brokers.
    """
    if not spec.apart or spec.apart[0].proven is not None:
        return spec
    problem, sides = build(spec), [len(rule.topics) for rule in spec.apart]
    whole, led = _all_compared(problem, sides), all(rule.by.endswith(LEADERS) for rule in spec.apart)
    found = judged(problem, every_split(problem, sides)) if whole else improved(problem, sides)
    if len(found.side_of) == 1 and not found.lacking[0] and not led:
        return _split_problem(split_by(spec, problem, found.side_of[0]))[0]
    tried, refused, shared, even = list[_Tried](), list[InfeasibleError](), Shared(), problem.rebalance == "all"
    most = max(min(at_most, SPLIT_PARTITIONS // max(problem.rows, 1)), SPLITS_SOLVED[0])
    for number, at in enumerate(found.order()):
        lacking, *uneven, outside = found.key(at)
        best = min(tried, default=None, key=lambda each: each.rank)
        if lacking or (best is not None and best.settled(tuple(uneven), outside, even=even, led=led)):
            break
        if number >= most:
            whole = False
            break
        try:
            tried.append(_tried(split_by(spec, problem, found.side_of[at]), tuple(uneven), shared))
        except InfeasibleError as error:
            refused.append(error)
    if refused and not tried:
        raise refused[0]
    if not tried:
        few = "no split" if whole else "none of the splits that were tried"
        why = f"apart: {few} of the brokers leaves each topic enough of them and enough racks"
        raise InfeasibleError(f"{why}; allowed: more brokers, or fewer replicas")
    best = min(tried, key=lambda each: each.rank)
    alike = (each.least for each in tried if each.uneven <= best.uneven)
    surely = best.exact and (best.copied == best.least if led else whole and best.least == min(alike))
    return replace(best.spec, apart=tuple(replace(rule, proven=surely) for rule in best.spec.apart))


def as_planned(spec: Spec, problem: Problem, scenarios: str) -> tuple[Apart, ...]:
    """`spec.apart` for a plan of this problem at its balance and scenarios: other splits were compared for the whole
    change at the balance asked for, not for a first step or another plan of the front.
    """
    whole = problem.deferred is None and problem.balance == spec.balance
    whole = whole and scenarios == (ALL_SCENARIOS if problem.scenario_names else NO_SCENARIOS)
    return tuple(replace(rule, proven=bool(rule.proven) and whole) for rule in spec.apart)


def sides_of(spec: Spec, problem: Problem, assignment: IntArray) -> Spec:
    """The spec with the sides of an assignment (P, W) that keeps the rule; free brokers go where they are needed."""
    sides = [len(rule.topics) for rule in spec.apart]
    stays = replace(problem, replicas=assignment, leaders=assignment[:, 0], movable=np.zeros(problem.rows, dtype=bool))
    found = judged(stays, every_split(stays, sides)) if _all_compared(problem, sides) else improved(stays, sides)
    return split_by(spec, problem, found.side_of[found.order()[0]])


def split_by(spec: Spec, problem: Problem, side_of: NDArray[np.int8]) -> Spec:
    """The spec with the sides of a split (G, Bt)."""
    ids = problem.broker_ids[problem.targets]
    rules = [
        replace(rule, sides=tuple(tuple(ids[mine == side].tolist()) for side in range(len(rule.topics))), proven=False)
        for rule, mine in zip(spec.apart, side_of, strict=True)
    ]
    return replace(spec, apart=tuple(rules))


def _split_problem(spec: Spec) -> tuple[Spec, Problem]:
    """A split and its problem; InfeasibleError where a partition that may not move would have to."""
    problem = build(spec)
    if (left := misplaced(problem, problem.replicas) & ~problem.movable).any():
        stays = "{}-{}".format(*problem.partition_keys[int(np.argmax(left))])
        raise InfeasibleError(f"apart: {stays} may not move, and would have to; allowed: let it move")
    return spec, problem


def _tried(spec: Spec, uneven: tuple[int, ...], shared: Shared) -> _Tried:
    """The plan of a split; InfeasibleError without a plan."""
    _, problem = _split_problem(spec)
    found, even = assigned(problem, problem.balance, 0, OTHERS, shared), problem.rebalance == "all"
    scores = score(ScoringBasis.of(problem), found.assignment)
    moved = scores.bytes_moved if problem.sizes_known else scores.replicas_moved
    broken, excess, copied = (int(each[0]) for each in (scores.violations, scores.excess, moved))
    rank = (broken, excess, *uneven, copied) if even else (broken, copied, excess)
    exact, missed = broken == 0 and not (even and excess), problem.rebalance == "leaders" and excess > 0
    return _Tried(rank, uneven, copied, found, exact, missed, spec)


def units(problem: Problem, group: int) -> IntArray:
    """(Bt,): which of the units that are on one side as a whole each target broker belongs to: itself, or its rack."""
    found: IntArray = np.unique(problem.not_shared(group)[problem.targets], return_inverse=True)[1].reshape(-1)
    return found


def _all_compared(problem: Problem, sides: Sequence[int]) -> bool:
    """True where all splits are compared."""
    return prod(each ** (int(units(problem, at).max()) + 1) for at, each in enumerate(sides)) <= MOST_SPLITS


def every_split(problem: Problem, sides: Sequence[int]) -> Sides:
    """(N, G, Bt): all ways to split the target brokers among so many sides of each group; of those that are the same
    but for which of several like brokers is on a side, one.
    """
    groups = []
    for group, each in enumerate(sides):
        mine = units(problem, group)
        groups.append(np.array(list(product(range(each), repeat=int(mine.max()) + 1)), dtype=np.int8)[:, mine])
    at = np.indices([len(each) for each in groups]).reshape(len(groups), -1)
    every = np.stack([each[mine] for each, mine in zip(groups, at, strict=True)], axis=1)
    # A broker's sides in all groups as one number, which mustn't fall from one like broker to the next.
    codes = np.tensordot(np.cumprod([1, *sides[:-1]]), every.astype(np.int64), axes=(0, 1))
    kept = np.ones(len(every), dtype=bool)
    for one, other in like_brokers(problem):
        kept &= codes[:, one] <= codes[:, other]
    return every[kept]


def improved(problem: Problem, sides: Sequence[int]) -> Splits:
    """One split: the likely one, improved by giving brokers to other sides, and by swapping two brokers' sides, while
    that helps. Not where only leaders are apart: it would no longer have whole racks.
    """
    best = judged(problem, _likely_split(problem, sides))
    done = not best.lacking[0] and all(by.endswith(LEADERS) for by in problem.apart_by)
    for _ in range(0 if done else SPLIT_IMPROVEMENTS):
        near = judged(problem, neighbors(problem, best.side_of[0], sides))
        at = near.order()[0]
        if near.key(at) >= best.key(0):
            break
        best = judged(problem, near.side_of[at : at + 1])
    return best


def neighbors(problem: Problem, side_of: NDArray[np.int8], sides: Sequence[int]) -> Sides:
    """(N, G, Bt): this split (G, Bt) with one broker on another side, or with one broker's and another's sides swapped:
    of each broker, with the one in its rack that leaves least to be copied. Whole racks instead where these are split.
    """
    found = []
    for group, count in enumerate(sides):
        unit, first, racks = _unit_racks(problem, group)
        mine, held = side_of[group][first].astype(np.int64), _by_unit(_held(problem, group, count)[0], unit)
        brokers = np.arange(len(mine))
        for broker, side in product(range(len(mine)), range(count)):
            if side != mine[broker]:
                found.append((group, np.isin(unit, broker), side, side))
        # What each broker holds of its own side, and of the other's: held there, it need not be copied.
        stays = held[mine, brokers]
        gain = held[mine[None, :], brokers[:, None]] + held[mine[:, None], brokers[None, :]] - stays[:, None] - stays
        gain[(racks[:, None] != racks) | (mine[:, None] == mine)] = np.iinfo(np.int64).min
        for broker, other in enumerate(gain.argmax(axis=1).tolist()):
            if gain[broker, other] > 0:
                found.append((group, np.isin(unit, (broker, other)), int(mine[other]), int(mine[broker])))
    near = np.repeat(side_of[None], len(found), axis=0)
    for at, (group, changed, to, back) in enumerate(found):
        near[at, group, changed] = np.where(side_of[group, changed] == to, back, to)
    return near


def _likely_split(problem: Problem, sides: Sequence[int]) -> Sides:
    """(1, G, Bt): in each rack, brokers for each side by its replicas, those first that hold most of what it has; or of
    all racks whole ones.
    """
    groups = []
    for group, count in enumerate(sides):
        unit, _, racks = _unit_racks(problem, group)
        held, stuck = (_by_unit(each, unit) for each in _held(problem, group, count))
        of_topic = np.full(len(problem.topic_names), -1) if problem.apart is None else problem.apart[group]
        side_of_row = of_topic[problem.topic_of]
        replicas = [int(problem.replication_factors[side_of_row == side].sum()) for side in range(count)]
        most = replicas.index(max(replicas))
        side_of = np.full(len(racks), -1, dtype=np.int8)
        for rack in np.unique(racks):
            here = np.flatnonzero(racks == rack)
            room = [max(1, len(here) * each // max(sum(replicas), 1)) for each in replicas]
            room[most] += max(len(here) - sum(room), 0)
            pairs = sorted(
                product(here.tolist(), range(count)),
                key=lambda pair: (not stuck[pair[1], pair[0]], -int(held[pair[1], pair[0]])),
            )
            for broker, side in pairs:
                if side_of[broker] < 0 and (room[side] > 0 or stuck[side, broker]):
                    side_of[broker], room[side] = side, room[side] - 1
        if problem.apart_by[group].endswith(LEADERS) and not stuck.any():
            # Racks one after the other: where partitions have a replica in each, all sides can lead theirs.
            room = [max(1, len(racks) * each // max(sum(replicas), 1)) for each in replicas]
            side_of[np.argsort(racks, kind="stable")] = np.repeat(np.arange(count), room)[
                np.arange(len(racks)) % sum(room)
            ]
        groups.append(np.where(side_of < 0, most, side_of)[unit])
    return np.stack(groups)[None].astype(np.int8)


def _unit_racks(problem: Problem, group: int) -> tuple[IntArray, IntArray, IntArray]:
    """(Bt,) the unit of each target broker; (U,) the first broker of each, and its rack: one rack for all where racks
    don't matter, or are the units.
    """
    first = np.unique(unit := units(problem, group), return_index=True)[1]
    apart = problem.racks_matter and problem.apart_by[group].startswith("broker")
    racks = problem.broker_racks[problem.targets][first]
    return unit, first, racks if apart else np.zeros_like(racks)


def _by_unit(held: LongArray, unit: IntArray) -> LongArray:
    """(sides, U): what units hold of what their brokers (sides, Bt) do."""
    return np.stack([np.bincount(unit, weights=each) for each in held]).astype(np.int64)


def _held(problem: Problem, group: int, sides: int) -> tuple[LongArray, LongArray]:
    """(sides, Bt) each: what target brokers hold of a side that has to leave other sides' brokers, replicas without
    sizes; how many replicas of a partition that may not move. Of preferred leaders alone where only they are apart.
    """
    held, stuck = (np.zeros((sides, len(problem.targets)), dtype=np.int64) for _ in range(2))
    if problem.apart is None:
        return held, stuck
    sizes = problem.size_bytes if problem.sizes_known else np.ones(problem.rows, dtype=np.int64)
    leading = problem.apart_by[group].endswith(LEADERS)
    kept = (problem.replicas >= 0).sum(axis=1) <= problem.replication_factors
    side_of_row = problem.apart[group][problem.topic_of]
    for column in problem.replicas.T[: 1 if leading else None]:
        rows = np.flatnonzero((column >= 0) & (side_of_row >= 0))
        np.add.at(held, (side_of_row[rows], column[rows]), np.where(kept, sizes, 0)[rows])
        # A partition without a leader moves once it is forced to.
        rows = rows[~problem.movable[rows] & (leading | (problem.leaders[rows] >= 0))]
        np.add.at(stuck, (side_of_row[rows], column[rows]), 1)
    return held[:, problem.targets], stuck[:, problem.targets]


def judged(problem: Problem, side_of: Sides) -> Splits:
    """What these splits (N, G, Bt) leave to each topic, how even that is, and what has to be copied at least."""
    lacking, outside = np.zeros((2, len(side_of)), dtype=np.int64)
    for group in range(side_of.shape[1]):
        sides = 1 if problem.apart is None else int(problem.apart[group].max(initial=0)) + 1
        held, stuck = _held(problem, group, max(sides, int(side_of[:, group].max(initial=0)) + 1))
        elsewhere = np.stack([side_of[:, group] != side for side in range(len(held))])
        # More than all that brokers and racks may lack.
        lacking += np.einsum("snb,sb->n", elsewhere, stuck) * (2 * problem.width * len(problem.topic_names) + 1)
        # A replica may be in the way of two groups and is copied once.
        leading = problem.apart_by[group].endswith(LEADERS)
        more = without_leader(problem, group, elsewhere) if leading else np.einsum("snb,sb->n", elsewhere, held)
        outside = np.maximum(outside, more)
    racks, weighing = rack_rule(problem), disk_weights(problem)
    measures: list[LongArray] = [np.ones(problem.rows, dtype=np.int64)]
    if problem.balance.disk.kind != "none" and problem.sizes_known:
        measures.append(problem.size_bytes)
    of_leaders = [at for at, by in enumerate(problem.apart_by) if by.endswith(LEADERS)]
    shares = np.zeros((len(measures) + bool(of_leaders), len(side_of), len(weighing)))
    for rows, usable, of_side in _kinds_of_topics(problem):
        mine = np.repeat(usable[None], len(side_of), axis=0)
        leads = np.ones_like(mine)
        for group, side in enumerate(of_side):
            where = leads if group in of_leaders else mine
            where &= (side_of[:, group] == side) | (side < 0)
        if of_leaders:
            leads &= mine
            lacking += ~leads.any(axis=1)
            shares[-1] += len(rows) * leads / np.maximum(leads.sum(axis=1, keepdims=True), 1)
        sizes = np.stack([mine[:, racks.rack_of == rack].sum(axis=1) for rack in range(len(racks.sizes))], axis=1)
        most = int(problem.replication_factors[rows].max(initial=0))
        lacking += np.maximum(most - sizes.sum(axis=1), 0)
        lacking += np.maximum(min(most, len(racks.sizes)) - (sizes > 0).sum(axis=1), 0)
        for at, values in enumerate(measures):
            shares[at] += _shares_of(problem.replication_factors[rows], values[rows], mine * weighing, sizes, racks)
    uneven = np.zeros((len(side_of), 2), dtype=np.int64)
    if problem.rebalance == "all":
        # Of what a broker would have if all were alike by weight.
        even = np.maximum(shares.sum(axis=2, keepdims=True), 1) * weighing / weighing.sum()
        level = np.rint(shares / even * 100).astype(np.int64)
        uneven = np.stack([level.max(axis=(0, 2)), 100 - level.min(axis=(0, 2))], axis=1)
    return Splits(side_of, lacking, uneven, outside)


def without_leader(problem: Problem, group: int, elsewhere: BoolArray) -> LongArray:
    """(N,): bytes (replicas without sizes) of the partitions that no replica of today can lead, for brokers (sides, N,
    Bt) that are elsewhere for each side: each copies a replica at least.
    """
    assert problem.apart is not None
    sides, here = problem.apart[group][problem.topic_of], np.cumsum(problem.targets) - 1
    rows = np.flatnonzero((sides >= 0) & ~problem.is_new & problem.movable)
    on = np.zeros((len(rows), len(here)), dtype=bool)
    at, slots = np.nonzero(problem.replicas[rows] >= 0)
    on[at, problem.replicas[rows[at], slots]] = True
    kinds, of_row = np.unique(np.column_stack([sides[rows], on[:, problem.targets]]), axis=0, return_inverse=True)
    sizes = problem.size_bytes if problem.sizes_known else np.ones(problem.rows, dtype=np.int64)
    values = np.bincount(of_row.reshape(-1), weights=sizes[rows], minlength=len(kinds)).astype(np.int64)
    found = np.zeros(elsewhere.shape[1], dtype=np.int64)
    for (side, *held), value in zip(kinds, values, strict=True):
        found += value * elsewhere[side][:, np.array(held, dtype=bool)].all(axis=1)
    return found


def _kinds_of_topics(problem: Problem) -> list[tuple[IntArray, BoolArray, tuple[int, ...]]]:
    """Topics that may use the same brokers in every split: their partitions, the target brokers that rules of placement
    let them use (Bt,), and their side in each group, -1 for none.
    """
    topics, brokers = len(problem.topic_names), int(problem.targets.sum())
    usable = np.ones((topics, brokers), dtype=bool) if problem.allowed_targets is None else problem.allowed_targets
    sides = np.zeros((0, topics), dtype=np.int32) if problem.apart is None else problem.apart
    kinds, of_topic = np.unique(np.concatenate([sides.T, usable], axis=1), axis=0, return_inverse=True)
    rows = [np.flatnonzero(of_topic.reshape(-1)[problem.topic_of] == at) for at in range(len(kinds))]
    return [
        (mine.astype(np.int32), kind[len(sides) :].astype(bool), tuple(kind[: len(sides)].tolist()))
        for kind, mine in zip(kinds, rows, strict=True)
    ]


def _shares_of(
    factors: IntArray, values: LongArray, weighing: LongArray, sizes: LongArray, racks: RackRule
) -> FloatArray:
    """(N, Bt): the fair shares of partitions with these factors and this much in each replica, for brokers of weights
    (N, Bt), 0 where they may not be, and so many brokers in racks (N, R). As in `fair_shares`, but to a millionth.
    """
    # So that totals times weights fit 64 bits.
    scale = max(int((values * factors).sum()) // 1_000_000, 1)
    total, least, most, cap = 0, np.zeros_like(sizes), np.zeros_like(sizes), 0
    for factor in np.unique(factors).tolist():
        held = int(values[factors == factor].sum()) // scale
        low, high = per_rack(sizes, factor)
        total, least, most, cap = total + held * factor, least + held * low, most + held * high, cap + held
    totals, caps = (np.full((len(sizes), 1), each, dtype=np.int64) for each in (total, cap))
    found = water_filled(ShareFilling(totals, least, most, caps, weighing, racks))
    return np.asarray(found.count / found.parts * scale, dtype=np.float64)
