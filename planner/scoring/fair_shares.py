"""Fair shares of replicas, leaders and bytes as exact fractions, by the brokers' capacities and the rack rule.

A broker's fair share is its part of the total capacity, unless the rack rule or one replica per broker forbids that. A
rack of two brokers that must hold one replica of every partition has more per broker than a rack of four, and no broker
holds more than one replica of a partition. Shares are found by water filling over racks and brokers, between what each
must and may hold. Counts are int64. Sums of bytes times weights don't fit 64 bits, so they are Python's integers in
object arrays, in the same code.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import gcd, lcm
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from planner.model.cordons import most_led, most_on_broker, usable_sets
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.model.rack_spread import bounds_as_today

# int64, or Python's integers as objects.
ExactArray = NDArray[Any]

# The most that all weights add up to: times a million replicas, and a million again, that is far below 2^63.
_MOST_WEIGHT = 1_000_000
# Counts below this can be doubled and multiplied by a percentage's hundred in 64 bits.
_LARGEST_COUNT = 1 << 55


@dataclass(frozen=True)
class RackRule:
    """How many replicas of one partition each rack holds at the best possible spread, by replication factor.

    `least[f]`, `most[f]` (R,): a partition with f replicas has between least and most of them in each rack. Racks are
    the target brokers' racks, densely numbered; `rack_of` (Bt,) numbers each target broker's. If racks don't matter,
    there is one rack. `kinds` (P,): the row of `least` and `most` for each partition: its replication factor, or with
    rules of placement or cordons one row for each set of brokers and factor.
    """

    rack_of: IntArray
    sizes: IntArray
    least: IntArray
    most: IntArray
    kinds: IntArray


def rack_rule(problem: Problem) -> RackRule:
    """The rule for every replication factor of the problem, and every set of brokers that topics may use."""
    racks = problem.broker_racks[problem.targets]
    rack_of = np.unique(racks, return_inverse=True)[1] if problem.racks_matter else np.zeros(len(racks), dtype=int)
    factors, kinds = int(problem.replication_factors.max(initial=0)) + 1, problem.replication_factors
    sizes = [np.bincount(rack_of)]
    if (sets := usable_sets(problem)) is not None:
        count = len(sizes[0])
        sizes += [np.bincount(rack_of[brokers], minlength=count) for brokers in sets[0]]
        kinds = (sets[1] + 1) * factors + kinds
    bounds = [per_rack(each, factor) for each in sizes for factor in range(factors)]
    least, most = (np.array([bound[side] for bound in bounds], dtype=np.int32) for side in (0, 1))
    wide = bounds_as_today(problem, rack_of, (least, most), kinds)
    return RackRule(rack_of.astype(np.int32), sizes[0].astype(np.int32), *wide)


@dataclass(frozen=True)
class TopicsBySet:
    """The different sets of target brokers that topics may use, (S, Bt), and the number of each topic's set, (T,)."""

    brokers: BoolArray
    of_topic: IntArray

    @classmethod
    def of(cls, usable: BoolArray | None) -> Self | None:
        """Topics by the target brokers (T, Bt) that they may use, or that should lead them; None: all."""
        if usable is None:
            return None
        brokers, of_topic = np.unique(usable, axis=0, return_inverse=True)
        return cls(brokers, of_topic.reshape(-1).astype(np.int32))


def per_rack(sizes: LongArray, factor: int) -> tuple[LongArray, LongArray]:
    """Least and most replicas (…, R) in racks of these sizes (…, R) at the most even spread of `factor` replicas."""
    level = np.zeros((*sizes.shape[:-1], 1), dtype=np.int64)
    for _ in range(factor + 1):
        level += np.minimum(sizes, level).sum(axis=-1, keepdims=True) < factor
    most = np.minimum(sizes, level)
    # If the last level is filled completely, least is most; otherwise shares would come out as if there was a choice.
    is_filled = most.sum(axis=-1, keepdims=True) == factor
    return np.where(is_filled, most, np.minimum(sizes, np.maximum(level - 1, 0))), most


@dataclass(frozen=True)
class Shares:
    """Fair shares as exact fractions: `count / parts`, both (K, Bt)."""

    count: ExactArray
    parts: ExactArray

    @classmethod
    def of(cls, fractions: list[Fraction], dtype: type) -> Self:
        """Shares (1, Bt) of one total."""
        return cls(
            np.array([[each.numerator for each in fractions]], dtype=dtype),
            np.array([[each.denominator for each in fractions]], dtype=dtype),
        )

    @property
    def fractions(self) -> list[Fraction]:
        """Shares (1, Bt) of one total as Python's fractions."""
        pairs = zip(self.count[0], self.parts[0], strict=True)
        return [Fraction(int(count), int(parts)) for count, parts in pairs]


def weights(capacities: LongArray) -> LongArray:
    """Capacities (Bt,) as small integer weights that add up to about a million at most; 1 each if all are equal."""
    stated = [int(capacity) for capacity in capacities]
    divisor = gcd(*stated)
    total = sum(stated)
    if total // max(divisor, 1) <= _MOST_WEIGHT:
        return np.array([capacity // max(divisor, 1) for capacity in stated], dtype=np.int64)
    return np.array([max(1, round(capacity * _MOST_WEIGHT / total)) for capacity in stated], dtype=np.int64)


def disk_weights(problem: Problem) -> LongArray:
    """The weights (Bt,) of the shares of replicas and bytes."""
    return weights(problem.disk_bytes[problem.targets])


def network_weights(problem: Problem) -> LongArray:
    """The weights (Bt,) of the shares of leaders and traffic."""
    return weights(problem.network_bytes_per_sec[problem.targets])


def _proportional(totals: ExactArray, weighing: ExactArray) -> Shares:
    """Shares of totals (K, 1) by weights (Bt,) alone."""
    count = totals * weighing
    parts = np.maximum(np.sum(weighing, axis=-1, keepdims=True), 1)
    return Shares(count, np.zeros_like(count) + parts)


@dataclass(frozen=True)
class FairShares:
    """The fair shares of all that a balance can even out: counts (1, Bt), by topic (T, Bt); bytes, bytes/s (1, Bt)."""

    replicas: Shares
    leaders: Shares
    topic_replicas: Shares
    topic_leaders: Shares
    disk: Shares
    network_in: Shares
    network_out: Shares

    @classmethod
    def of_sets(cls, problem: Problem, sets: TopicsBySet) -> Self:
        """The fair shares with rules of placement: set by set, each within its brokers, and added up."""
        rule, disk, network = rack_rule(problem), disk_weights(problem), network_weights(problem)
        usable = sets.brokers[sets.of_topic]
        ones = np.ones(problem.rows, dtype=np.int64)

        def filled(values: LongArray, weighing: LongArray) -> Shares:
            weighing = weighing.astype(object)
            fillings = (
                _filling(problem, np.where(rows, values, 0), _total, weighing * brokers, rule)
                for rows, brokers in rows_of_sets(problem, sets)
            )
            return _sum_shares([water_filled(filling) for filling in fillings])

        return cls(
            replicas=_as_integers(filled(ones, disk)),
            topic_replicas=water_filled(_filling(problem, ones, partial(_topic_sums, problem), disk * usable, rule)),
            disk=filled(problem.size_bytes, disk),
            network_in=filled(problem.bytes_in_per_sec, network),
            **_of_leaders(problem),
        )


# Cached, because a sweep asks for the shares of its variant's problem with every candidate.
@lru_cache(maxsize=2)
def fair_shares(problem: Problem) -> FairShares:
    """The fair shares of all brokers: of replicas and bytes by disks, of leaders and traffic by networks.

    With rules of placement, a topic is shared by the brokers that it may use, and a broker's share is the sum of its
    shares of the topics of each set.
    """
    if (sets := TopicsBySet.of(problem.allowed_targets)) is not None:
        return FairShares.of_sets(problem, sets)
    rule, disk, network = rack_rule(problem), disk_weights(problem), network_weights(problem)
    topic_replicas = _filling(problem, np.ones(problem.rows, dtype=np.int64), partial(_topic_sums, problem), disk, rule)
    in_all = topic_replicas.summed()
    if problem.caps is not None:
        in_all = replace(in_all, cap=np.minimum(in_all.cap, problem.caps[:1, problem.targets]))
        topic_replicas = replace(topic_replicas, weights=_as_weights(water_filled(in_all)))
    # Bytes times weights are beyond 64 bits.
    disk, network = disk.astype(object), network.astype(object)
    return FairShares(
        replicas=water_filled(in_all),
        topic_replicas=water_filled(topic_replicas),
        disk=water_filled(_filling(problem, problem.size_bytes, _total, disk, rule)),
        network_in=water_filled(_filling(problem, problem.bytes_in_per_sec, _total, network, rule)),
        **_of_leaders(problem),
    )


def _of_leaders(problem: Problem) -> dict[str, Shares]:
    """The shares of `FairShares` that depend on leaders, each topic's among the brokers that should lead it."""
    network = network_weights(problem)
    is_led = problem.is_led.astype(np.int64)
    leaders, sent = _topic_sums(problem, is_led[:, None]), sent_by_leader(problem) * is_led
    # Bytes times weights are beyond 64 bits.
    weighing = network.astype(object)
    if (sets := TopicsBySet.of(problem.leading_targets)) is None:
        in_all = _proportional(leaders.sum(keepdims=True), network)
        if (most := most_led(problem)) is not None:
            # One rack of all brokers: none is above its cap, and the others share the rest.
            total, count = leaders.sum(keepdims=True), np.array([len(network)], dtype=np.int32)
            rule = RackRule(np.zeros(count, np.int32), count, total, total, np.zeros(0, np.int32))
            in_all = water_filled(ShareFilling(total, np.zeros_like(total), total, most, network, rule))
            network = _as_weights(in_all)
        return {
            "leaders": in_all,
            "topic_leaders": _proportional(leaders, network),
            "network_out": _proportional(_total(sent[:, None]), weighing),
        }
    set_rows = rows_of_sets(problem, sets)

    def by_weight(values: LongArray) -> Shares:
        totals = ((_total(np.where(rows, values, 0)[:, None]), brokers) for rows, brokers in set_rows)
        return _sum_shares([_proportional(total, weighing * brokers) for total, brokers in totals])

    return {
        "leaders": _as_integers(by_weight(is_led)),
        "topic_leaders": _proportional(leaders, network * sets.brokers[sets.of_topic]),
        "network_out": by_weight(sent),
    }


def _as_weights(shares: Shares) -> LongArray:
    """Shares (1, Bt) as integer weights (Bt,)."""
    exact = shares.fractions
    scale = lcm(*(each.denominator for each in exact))
    return weights(np.array([int(each * scale) for each in exact], dtype=object))


def rows_of_sets(problem: Problem, sets: TopicsBySet) -> list[tuple[BoolArray, BoolArray]]:
    """For each set: the partitions (P,) of its topics, and its brokers (Bt,)."""
    of_row = sets.of_topic[problem.topic_of]
    return [(of_row == number, brokers) for number, brokers in enumerate(sets.brokers)]


def _sum_shares(shares: list[Shares]) -> Shares:
    """The sum of exact shares (1, Bt); if all brokers' are equal, as the total over the number of brokers."""
    sums = [sum(of_broker, Fraction(0)) for of_broker in zip(*(each.fractions for each in shares), strict=True)]
    width = len(sums)
    if len(set(sums)) == 1:
        # The total of replicas is whole; other totals stay fractions.
        sums_of_all = sums[0] * width
        return Shares(
            np.array([[sums_of_all.numerator] * width], dtype=object),
            np.array([[sums_of_all.denominator * width] * width], dtype=object),
        )
    return Shares.of(sums, object)


def _as_integers(shares: Shares) -> Shares:
    """Shares of counts as 64-bit integers; to a millionth if exact fractions don't fit."""
    if max(*shares.count[0], *shares.parts[0]) >= _LARGEST_COUNT:
        return Shares.of([each.limit_denominator(_MOST_WEIGHT) for each in shares.fractions], np.int64)
    return Shares(shares.count.astype(np.int64), shares.parts.astype(np.int64))


def sent_by_leader(problem: Problem) -> LongArray:
    """Bytes/s (P,) that each partition's leader sends: written bytes to each follower, and read bytes to consumers."""
    followers = np.maximum(problem.replication_factors - 1, 0)
    return problem.bytes_in_per_sec * followers + problem.bytes_out_per_sec


@dataclass(frozen=True)
class ShareFilling:
    """The input of water filling: totals (K, 1), the least and most of a rack (K, R), the cap of a broker (K, 1), or
    (K, Bt) if caps differ; and weights (Bt,), or (K, Bt) if not all brokers may hold a total: the others weigh nothing.
    """

    totals: ExactArray
    least: ExactArray
    most: ExactArray
    cap: ExactArray
    weights: ExactArray
    rule: RackRule

    def summed(self) -> "ShareFilling":
        """The K totals added up to one."""
        columns = (self.totals, self.least, self.most, self.cap)
        totals, least, most, cap = (column.sum(axis=0, keepdims=True) for column in columns)
        return ShareFilling(totals, least, most, cap, self.weights, self.rule)


def water_filled(filling: ShareFilling) -> Shares:
    """Shares by weights between what the racks and brokers must and may hold.

    Racks that cross a bound are pinned to it, and the others share the rest, until nothing changes (at most R times).
    Racks above their `most` are pinned first, because that raises the level of the others; then those below `least`.
    """
    pinned = np.full_like(filling.least, -1)
    for bound, crosses in ((filling.most, np.greater), (filling.least, np.less)):
        for _ in range(pinned.shape[1]):
            level = _level(filling, pinned)
            crossed = (pinned < 0) & crosses(level.amount, bound * level.parts).astype(bool)
            if not crossed.any():
                break
            pinned = np.where(crossed, bound, pinned)
    level, rack_of = _level(filling, pinned), filling.rule.rack_of
    count = np.where(level.full, filling.cap, level.rest[:, rack_of] * filling.weights)
    return Shares(count, np.where(level.full, 1, level.parts[:, rack_of]))


@dataclass(frozen=True)
class _Level:
    """The water level in each rack, `rest / parts` per unit of weight; arrays are (K, R) except `full`.

    full (K, Bt): brokers that hold the most they may. amount: what the rack holds, times `parts`.
    """

    rest: ExactArray
    parts: ExactArray
    amount: ExactArray
    full: BoolArray


def _level(filling: ShareFilling, pinned: ExactArray) -> _Level:
    """The level if racks hold `pinned` (K, R); -1: racks that share the rest."""
    full = np.zeros((len(pinned), filling.weights.shape[-1]), dtype=bool)
    while True:
        used, open_weight = _by_rack(filling, full, filling.cap), _by_rack(filling, ~full, filling.weights)
        is_free = pinned < 0
        rest = filling.totals - np.where(is_free, used, pinned).sum(axis=1, keepdims=True)
        rest = np.where(is_free, rest, pinned - used)
        parts = np.where(is_free, np.where(is_free, open_weight, 0).sum(axis=1, keepdims=True), open_weight)
        parts = np.maximum(parts, 1)
        rack_of = filling.rule.rack_of
        overfull = ~full & (rest[:, rack_of] * filling.weights > filling.cap * parts[:, rack_of]).astype(bool)
        if not overfull.any():
            return _Level(rest, parts, rest * open_weight + used * parts, full)
        full |= overfull


def _by_rack(filling: ShareFilling, mask: BoolArray, values: ExactArray) -> ExactArray:
    """Sums over each rack's brokers of the values (K or 1, Bt or 1) in the mask (K, Bt): (K, R)."""
    order = np.argsort(filling.rule.rack_of, kind="stable")
    starts = np.concatenate([[0], np.cumsum(filling.rule.sizes)[:-1]]).astype(np.int64)
    return np.add.reduceat(np.where(mask, values, 0)[:, order], starts, axis=1)


def _filling(
    problem: Problem,
    per_replica: LongArray,
    summed: Callable[[LongArray], ExactArray],
    weighing: ExactArray,
    rule: RackRule,
) -> ShareFilling:
    """The filling of each replica's amount (P,), between the least and most of each rack by the rack rule.

    `summed` adds up columns (P, K): all rows, or by topic.
    """
    factors, column = problem.replication_factors, per_replica[:, None]
    replicas = (factors[:, None], rule.least[rule.kinds], rule.most[rule.kinds])
    totals, least, most = (summed(column * counts) for counts in replicas)
    return ShareFilling(totals, least, most, most_on_broker(problem, column, summed), weighing, rule)


def _topic_sums(problem: Problem, counts: LongArray) -> LongArray:
    """Columns of counts (P, K) summed by topic (T, K); floats hold them exactly."""
    columns = [np.bincount(problem.topic_of, column, minlength=len(problem.topic_names)) for column in counts.T]
    return np.stack(columns, axis=1).astype(np.int64)


def _total(values: LongArray) -> ExactArray:
    """Columns (P, K) summed to Python's integers (1, K)."""
    return values.sum(axis=0, dtype=np.int64, keepdims=True).astype(object)
