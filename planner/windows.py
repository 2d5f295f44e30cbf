"""What "even" means, in numbers: how many replicas and leaders each broker may hold.

A broker's fair share is the equal one unless the rack rule forbids it: a rack of two brokers that must hold one replica
of every partition carries more a broker than a rack of four. Shares are filled like water into the racks, between
what the rack rule makes each of them hold and what it lets them hold; a window is the tolerance around that share.
The strategies aim at these windows and the score measures against them; neither is told how the other does it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.balance import Balance, Tolerance
from planner.model import IntArray, LongArray, Problem

# What a unit beyond a window weighs: the first at the price, the next few at three times it, the rest at ten times it:
# one window isn't broken deeply where several could be broken by one. One unit beyond a broker's window weighs more
# than the units beyond topics' windows that would mend it.
EXCESS_STEPS = ((1, 1), (3, 3), (1 << 30, 10))
TOPIC_PRICE, BROKER_PRICE = 1, 100


@dataclass(frozen=True)
class Windows:
    """Least and most counts a target broker may hold; Bt target brokers, T topics.

    replicas (2, Bt) · leaders (2, Bt) · topic_replicas (2, T, Bt) · topic_leaders the same, None where not asked for
    """

    replicas: LongArray
    leaders: LongArray
    topic_replicas: LongArray
    topic_leaders: LongArray | None


@dataclass(frozen=True)
class RackRule:
    """How many replicas of one partition each rack holds at the best possible spread, by replication factor.

    `least[f]`, `most[f]` (R,): a partition with f replicas has between least and most of them in each rack. Racks are
    the target brokers' racks, densely numbered; `rack_of` (Bt,) numbers each target broker's. Where racks don't matter
    there is one rack.
    """

    rack_of: IntArray
    sizes: IntArray
    least: IntArray
    most: IntArray


def rack_rule(problem: Problem) -> RackRule:
    """The rule for every replication factor of the problem."""
    racks = problem.broker_racks[problem.targets]
    rack_of = np.unique(racks, return_inverse=True)[1] if problem.racks_matter else np.zeros(len(racks), dtype=int)
    sizes = np.bincount(rack_of)
    bounds = [_per_rack(sizes, factor) for factor in range(int(problem.replication_factors.max(initial=0)) + 1)]
    least, most = (np.array([bound[side] for bound in bounds], dtype=np.int32) for side in (0, 1))
    return RackRule(rack_of.astype(np.int32), sizes.astype(np.int32), least, most)


def _per_rack(sizes: LongArray, factor: int) -> tuple[LongArray, LongArray]:
    """The evenest spread of `factor` replicas over racks of these sizes: level by level, as racks have room."""
    level = 0
    while np.minimum(sizes, level).sum() < factor:
        level += 1
        if level > factor:
            break
    most = np.minimum(sizes, level)
    # Where the last level is filled up there is no choice; said here, or shares would be as if there were.
    return most if most.sum() == factor else np.minimum(sizes, max(level - 1, 0)), most


def windows(problem: Problem, balance: Balance) -> Windows:
    """The windows that a balance asks for on this problem."""
    rule = rack_rule(problem)
    topics = len(problem.topic_names)
    factors = problem.replication_factors
    totals = np.bincount(problem.topic_of, weights=factors, minlength=topics).astype(np.int64)[:, None]
    least, most = (_by_topic(problem, bound[factors]) for bound in (rule.least, rule.most))
    partitions = np.bincount(problem.topic_of, minlength=topics).astype(np.int64)[:, None]
    held, led = _today(problem, problem.replicas), _today(problem, problem.replicas[:, :1])
    summed = [sums.sum(axis=0, keepdims=True) for sums in (totals, least, most, held, led, partitions)]
    brokers = len(rule.rack_of)
    return Windows(
        replicas=_around(_shares(summed[0], summed[1], summed[2], rule), balance.replicas, summed[3])[:, 0],
        leaders=_around(_equal(summed[5], brokers), balance.leaders, summed[4])[:, 0],
        topic_replicas=_around(_shares(totals, least, most, rule), balance.topic_replicas, held),
        topic_leaders=(
            None
            if balance.topic_leaders.kind == "none"
            else _around(_equal(partitions, brokers), balance.topic_leaders, led)
        ),
    )


def _today(problem: Problem, replicas: IntArray) -> LongArray:
    """(T, Bt): how many of these replicas (P, K) each target broker holds today."""
    targets = int(problem.targets.sum())
    here = np.where(problem.targets, np.cumsum(problem.targets) - 1, -1)
    at = np.where(replicas >= 0, here[replicas], -1)
    cells = (problem.topic_of[:, None] * targets + at)[at >= 0]
    return np.bincount(cells, minlength=len(problem.topic_names) * targets).reshape(-1, targets)


def excess(bounds: LongArray, counts: LongArray, price: int) -> LongArray:
    """The weight of everything outside windows (2, ..., Bt), summed over brokers: counts (..., Bt) to (...)."""
    low, high = bounds
    left = np.maximum(low - counts, 0) + np.maximum(counts - high, 0)
    weight = np.zeros_like(left)
    for units, step in EXCESS_STEPS:
        taken = np.minimum(left, units)
        weight += taken * (step * price)
        left = left - taken
    return weight.sum(axis=-1)


def _by_topic(problem: Problem, per_partition: IntArray) -> LongArray:
    """Sums (P, R) to (T, R)."""
    sums = np.zeros((len(problem.topic_names), per_partition.shape[1]), dtype=np.int64)
    np.add.at(sums, problem.topic_of, per_partition)
    return sums


@dataclass(frozen=True)
class _Shares:
    """Fair shares as exact fractions: `count / brokers`, both (K, Bt)."""

    count: LongArray
    brokers: LongArray


def _equal(totals: LongArray, brokers: int) -> _Shares:
    counts = np.broadcast_to(totals, (len(totals), brokers))
    return _Shares(counts, np.full_like(counts, brokers))


def _shares(totals: LongArray, least: LongArray, most: LongArray, rule: RackRule) -> _Shares:
    """Water-filled shares: totals (K, 1), least and most a rack (K, R).

    Racks pinned at a bound leave the rest to the others; pinning is repeated until nothing changes, at most R times.
    Racks above their `most` are pinned first, as that raises the level of all others; then those below their `least`.
    """
    pinned = np.full(least.shape, -1, dtype=np.int64)
    for bound, beyond in ((most, np.greater), (least, np.less)):
        for _ in range(least.shape[1]):
            rest, brokers = _level(totals, pinned, rule)
            over = (pinned < 0) & beyond(rest * rule.sizes, bound * brokers)
            if not over.any():
                break
            pinned = np.where(over, bound, pinned)
    rest, brokers = _level(totals, pinned, rule)
    free = pinned < 0
    counts, sizes = np.where(free, rest, pinned), np.where(free, brokers, np.broadcast_to(rule.sizes, pinned.shape))
    return _Shares(counts[:, rule.rack_of], sizes[:, rule.rack_of])


def _level(totals: LongArray, pinned: LongArray, rule: RackRule) -> tuple[LongArray, LongArray]:
    """What is left for the racks that aren't pinned, and how many brokers share it; both (K, 1)."""
    free = pinned < 0
    rest = totals - np.where(free, 0, pinned).sum(axis=1, keepdims=True)
    brokers = np.where(free, rule.sizes, 0).sum(axis=1, keepdims=True)
    return rest, np.maximum(brokers, 1)


def _around(shares: _Shares, tolerance: Tolerance, today: LongArray) -> LongArray:
    """The window (2, K, Bt) that a tolerance makes of fair shares; `today` (K, Bt) is what the brokers hold.

    A spread of two and more leaves open where the window begins: at today's least count where the share allows it, so
    that brokers within the spread already stay as they are; else in the middle, where shares are unlike.
    """
    count, brokers = shares.count, shares.brokers
    floor, ceil = count // brokers, -(-count // brokers)
    match tolerance.kind:
        case "none":
            return np.stack([np.zeros_like(floor), np.full_like(floor, np.iinfo(np.int32).max)])
        case "percent":
            # 115 % of 100 is 114.99999999999999 in floating point: rounded before it is cut off.
            low = np.ceil(np.round(count / brokers * (1 - tolerance.value / 100), 6)).astype(np.int64)
            high = np.floor(np.round(count / brokers * (1 + tolerance.value / 100), 6)).astype(np.int64)
            return np.stack([np.minimum(low, floor).clip(min=0), np.maximum(high, ceil)])
        case _:
            spread = int(tolerance.value)
            low = (2 * count - (spread - 1) * brokers) // (2 * brokers)
            if spread > 1:
                alike = (floor == floor[:, :1]).all(axis=1, keepdims=True)
                aligned = np.clip(today.min(axis=1, keepdims=True), ceil - spread, floor)
                low = np.where(alike, aligned, low)
            return np.stack([low.clip(min=0), np.maximum(low + spread, spread)])
