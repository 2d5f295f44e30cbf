"""How partitions spread over the racks: which could be spread more evenly, and which may stay as they are today."""

from itertools import combinations

import numpy as np

from planner.model.problem import BoolArray, IntArray, LongArray, Problem, sums_at


def uneven_racks(problem: Problem, replicas: IntArray) -> BoolArray:
    """(P,): partitions whose replicas (P, W) could be spread over the racks more evenly, even if they may not move.

    A better spread exists if a rack has at least two replicas more than another rack with a free usable broker.
    """
    uneven = np.zeros(problem.rows, dtype=bool)
    if not problem.racks_matter:
        return uneven
    names = problem.broker_racks.clip(min=0)
    # If no rack has two replicas of a partition, none has two more than another.
    racks = [
        np.where(each >= 0, names[each.clip(0, len(names) - 1)], -1 - position)
        for position, each in enumerate(replicas.T)
    ]
    shares_rack = np.zeros(len(replicas), dtype=bool)
    for first, second in combinations(racks, 2):
        shares_rack |= first == second
    crowded = np.flatnonzero(shares_rack)
    counts = _by_rack(replicas[crowded], problem)
    sizes = _rack_sizes(problem, crowded)
    roomiest = np.where(counts < sizes, counts, np.iinfo(np.int32).max).min(axis=0)
    uneven[crowded] = counts.max(axis=0) >= roomiest.astype(np.int64) + 2
    return uneven


def bounds_as_today(
    problem: Problem, rack_of: IntArray, bounds: tuple[IntArray, IntArray], kinds: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """The least and most replicas in each rack (K, R), and their row for each partition (P,), if `rack_aware` is
    `as_today`. For partitions that are uneven today and not forced to move, they include what the racks hold today.

    `rack_of` (Bt,) is the rack number of each target broker.
    """
    least, most = bounds
    if not problem.racks_as_today:
        return least, most, kinds
    rows = np.flatnonzero(uneven_racks(problem, problem.replicas) & ~problem.forced)
    number_of = np.full(len(problem.targets), -1)
    number_of[problem.targets] = rack_of
    rack_numbers = np.where(problem.replicas[rows] >= 0, number_of[problem.replicas[rows]], -1)
    indices, slots = np.nonzero(rack_numbers >= 0)
    today = sums_at((len(rows), least.shape[1]), (indices, rack_numbers[indices, slots]))
    wide_bounds = np.hstack([np.minimum(least[kinds[rows]], today), np.maximum(most[kinds[rows]], today)])
    wide_bounds, of_row = np.unique(wide_bounds, axis=0, return_inverse=True)
    kinds = kinds.copy()
    kinds[rows] = len(least) + of_row.reshape(-1)
    lows, highs = np.split(wide_bounds.astype(least.dtype), 2, axis=1)
    return np.concatenate([least, lows]), np.concatenate([most, highs]), kinds


def as_even_as_today(problem: Problem, replicas: IntArray) -> BoolArray:
    """(P,): partitions that are uneven today and, with these replicas (P, W), have in each rack a number of replicas
    between today's and that of the most even spread, inclusive.
    """
    is_even, rows = np.zeros(problem.rows, dtype=bool), np.flatnonzero(uneven_racks(problem, problem.replicas))
    if len(rows):
        today, (least, most) = _by_rack(replicas[rows], problem), _limits(problem, rows)
        is_even[rows] = ((least <= today) & (today <= most)).all(axis=0)
    return is_even


def limits_in_racks(problem: Problem) -> LongArray | None:
    """(2, R, P): the least and most replicas that a partition may have in each rack, if racks stay as they are today.

    Only partitions that are uneven today have limits here. None without such a rule.
    """
    if not (problem.racks_as_today and problem.racks_matter):
        return None
    rows = np.flatnonzero(uneven_racks(problem, problem.replicas))
    limits = np.zeros((2, len(problem.rack_names), problem.rows), dtype=np.int64)
    limits[1], limits[:, :, rows] = problem.width, _limits(problem, rows)
    return limits


def _limits(problem: Problem, rows: LongArray) -> LongArray:
    """(2, R, n): the least and most replicas of these partitions in each rack, today or with the most even spread."""
    sizes, factors = _rack_sizes(problem, rows), problem.replication_factors[rows]
    level = np.zeros((1, len(rows)), dtype=np.int64)
    for _ in range(int(factors.max(initial=0))):
        level += np.minimum(sizes, level).sum(axis=0) < factors
    most = np.minimum(sizes, level)
    least = np.where(most.sum(axis=0) == factors, most, np.minimum(sizes, (level - 1).clip(0)))
    today = _by_rack(problem.replicas[rows], problem)
    return np.stack([np.minimum(least, today), np.maximum(most, today)])


def _rack_sizes(problem: Problem, rows: LongArray) -> IntArray:
    """(R, n) or (R, 1): how many brokers of each rack these partitions may use."""
    names = problem.broker_racks.clip(min=0)
    if problem.open_targets is None:
        return np.bincount(names[problem.targets], minlength=len(problem.rack_names))[:, None]
    of_racks = names[problem.targets][:, None] == np.arange(len(problem.rack_names))
    sizes = (problem.open_targets.astype(np.int64) @ of_racks.astype(np.int64)).T[:, problem.topic_of[rows]]
    if problem.cordoned is not None:
        for broker in np.flatnonzero(problem.targets & problem.cordoned).tolist():
            has_replica = (problem.replicas[rows] == broker).any(axis=1)
            sizes[names[broker]] += (
                has_replica
                if problem.allowed is None
                else has_replica & problem.allowed[problem.topic_of[rows], broker]
            )
    return sizes


def _by_rack(replicas: IntArray, problem: Problem) -> IntArray:
    """(R, n): how many of these replicas (n, W) are in each rack."""
    names = problem.broker_racks.clip(min=0)
    counts = np.zeros((len(problem.rack_names), len(replicas)), dtype=np.int32)
    for position in replicas.T:
        rows = np.flatnonzero(position >= 0)
        # Each partition has one broker at this position, so no index repeats and += counts correctly.
        counts[names[position[rows].clip(max=len(names) - 1)], rows] += 1
    return counts


def crowding(replicas: IntArray, racks: IntArray) -> IntArray:
    """(P,): ordered pairs of replicas in one rack, also of each replica with itself. No rack counts as one rack."""
    names = np.where(replicas >= 0, racks[replicas], -2 - np.arange(replicas.shape[1]))
    return (names[:, :, None] == names[:, None, :]).sum(axis=(1, 2)).astype(np.int32)
