"""What an assignment costs and how even it is, as raw terms with units; integers, so that no sum depends on its order.

Everything but the last step is additive over topics: a `Tally` of one topic's partitions holds counts for each broker
and sums, and the tally of a plan is the sum of its topics'. That is what lets a sweep score a million candidates by
adding up rows of a table (see `sweep_tables`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner import checks, loads, shares
from planner.draws import mix
from planner.model import BoolArray, IntArray, LongArray, Problem
from planner.windows import BROKER_PRICE, TOPIC_PRICE, Windows, byte_excess, excess, windows

# Columns of a tally before the per-broker counts. The topic spread is a maximum, the others are sums.
SUMS = (
    "digest",
    "violations",
    "rack_violations",
    "bytes_moved",
    "replicas_moved",
    "leaders_changed",
    "cross_rack_bytes",
    "topic_excess",
)


@dataclass(frozen=True, eq=False)
class Yardstick:
    """A problem with what its scores are measured against: the windows of the balance asked for.

    `measures` is how many of `loads.MEASURES` there are to say of it; `parts` (measures, Bt) is how many times a
    broker's capacity makes up all capacities.
    """

    problem: Problem
    windows: Windows
    measures: int
    parts: NDArray[np.float64]

    @staticmethod
    def of(problem: Problem) -> Yardstick:
        """The yardstick of a problem."""
        disk, network = (
            weights.sum() / weights for weights in (shares.disk_weights(problem), shares.network_weights(problem))
        )
        measures = loads.measured(problem)
        parts = np.stack([disk, network, disk, network, network][:measures])
        return Yardstick(problem, windows(problem, problem.balance), measures, parts)


@dataclass(frozen=True)
class Tally:
    """Additive terms of G topics or candidates: `sums` (G, len(SUMS)); `per_broker` (G, measures, Bt), as many of
    `loads.MEASURES` as the yardstick has, on each target broker; `topic_spread` (G,), which combines by its maximum.
    """

    sums: LongArray
    per_broker: LongArray
    topic_spread: LongArray


@dataclass(frozen=True)
class Scores:
    """Terms of C candidates, each (C,) int64; `imbalance_ppm` is how far the fullest broker is above its share, by
    capacity, of replicas, leaders, bytes or traffic, whichever is the farthest, in parts per million.
    """

    digest: LongArray
    violations: LongArray
    excess: LongArray
    bytes_moved: LongArray
    replicas_moved: LongArray
    leaders_changed: LongArray
    cross_rack_bytes: LongArray
    rack_violations: LongArray
    replica_spread: LongArray
    leader_spread: LongArray
    topic_replica_spread: LongArray
    replicas_max: LongArray
    leaders_max: LongArray
    size_bytes_max: LongArray
    network_in_max: LongArray
    network_out_max: LongArray
    imbalance_ppm: LongArray


def score(yardstick: Yardstick, assignment: IntArray, leaders: IntArray | None = None) -> Scores:
    """The scores (1,) of one assignment (P, W), led by its preferred leaders unless others are given (P,), -1: none."""
    tally = by_topic(yardstick, assignment, leaders)
    total = Tally(
        tally.sums.sum(axis=0)[None],
        tally.per_broker.sum(axis=0)[None],
        tally.topic_spread.max(axis=0, initial=0)[None],
    )
    return finish(yardstick, total)


def by_topic(yardstick: Yardstick, assignment: IntArray, leaders: IntArray | None = None) -> Tally:
    """The tallies of the T topics under an assignment (P, W); leaders as in `score`."""
    problem = yardstick.problem
    leading = assignment[:, 0] if leaders is None else leaders
    per_broker = loads.by_group(
        problem, assignment, leading, problem.topic_of, len(problem.topic_names), yardstick.measures
    )
    here = per_broker[:, 0]
    columns = [_topic_sums(problem, column) for column in _row_terms(problem, assignment, leading)]
    beyond = excess(yardstick.windows.topic_replicas, here, TOPIC_PRICE)
    if yardstick.windows.topic_leaders is not None:
        beyond = beyond + excess(yardstick.windows.topic_leaders, per_broker[:, 1], TOPIC_PRICE)
    return Tally(np.stack([*columns, beyond], axis=1), per_broker, here.max(axis=1) - here.min(axis=1))


def finish(yardstick: Yardstick, total: Tally) -> Scores:
    """Scores (C,) from the summed tallies of C candidates."""
    columns = dict(zip(SUMS, total.sums.T, strict=True))
    held = total.per_broker
    replicas, leaders = held[:, 0], held[:, 1]
    beyond = columns.pop("topic_excess") + excess(yardstick.windows.replicas, replicas, BROKER_PRICE)
    beyond = beyond + excess(yardstick.windows.leaders, leaders, BROKER_PRICE)
    most = np.zeros((len(loads.MEASURES), len(held)), dtype=np.int64)
    most[: yardstick.measures] = held.max(axis=2).T
    return Scores(
        **columns,
        excess=beyond + _byte_excess(yardstick, held),
        replica_spread=replicas.max(axis=1) - replicas.min(axis=1),
        leader_spread=leaders.max(axis=1) - leaders.min(axis=1),
        topic_replica_spread=total.topic_spread,
        **{f"{measure}_max": column for measure, column in zip(loads.MEASURES, most, strict=True)},
        imbalance_ppm=_above_shares(yardstick, held),
    )


def digest(assignment: IntArray) -> int:
    """The digest of an assignment (P, W): equal for equal assignments, as a signed 64-bit number."""
    return int(_digest(assignment).sum())


def adding(problem: Problem, replicas: IntArray) -> BoolArray:
    """(P, W): True where the broker has to copy the partition."""
    here = np.zeros(replicas.shape, dtype=bool)
    for column in problem.replicas.T:
        here |= replicas == column[:, None]
    return (replicas >= 0) & ~here


def _byte_excess(yardstick: Yardstick, held: LongArray) -> LongArray:
    """(C,): the excess of the windows of bytes and traffic; no traffic where no rates are known."""
    missing = len(loads.MEASURES) - yardstick.measures
    return byte_excess(
        yardstick.windows, np.pad(held[:, 2:], ((0, 0), (0, missing), (0, 0))) if missing else held[:, 2:]
    )


def _above_shares(yardstick: Yardstick, held: LongArray) -> LongArray:
    """How far the fullest broker is above its share, in parts per million (C,); 0 where there is nothing."""
    total = held.sum(axis=2)
    share = (held * yardstick.parts).max(axis=2) / np.maximum(total, 1)
    return np.where(total > 0, np.rint((share - 1) * 1_000_000), 0).max(axis=1).astype(np.int64)


def _row_terms(problem: Problem, replicas: IntArray, leaders: IntArray) -> tuple[LongArray, ...]:
    """The additive terms of each partition (P,), in the order of SUMS without the last."""
    broken = checks.broken_rules(problem, replicas)
    added = adding(problem, replicas)
    return (
        _digest(replicas),
        np.sum(list(broken.values()), axis=0, dtype=np.int64),
        broken["rack spread"].astype(np.int64),
        added.sum(axis=1) * problem.size_bytes,
        added.sum(axis=1),
        (problem.may_lead_anew & (problem.leaders != leaders)).astype(np.int64),
        (added & _crosses_racks(problem, replicas)).sum(axis=1) * problem.size_bytes,
    )


def _crosses_racks(problem: Problem, replicas: IntArray) -> BoolArray:
    """(P, W): True where the broker's rack isn't that of the leader it would copy from."""
    source = np.where(problem.leaders >= 0, problem.leaders, problem.replicas[:, 0])
    return problem.broker_racks[replicas] != problem.broker_racks[source][:, None]


def _topic_sums(problem: Problem, values: LongArray) -> LongArray:
    sums = np.zeros(len(problem.topic_names), dtype=np.int64)
    np.add.at(sums, problem.topic_of, values)
    return sums


def _digest(replicas: IntArray) -> LongArray:
    """A 64-bit mix of (row, position, broker) summed over positions (P,); sums wrap, whatever their order."""
    position = np.arange(replicas.shape[1], dtype=np.uint64)
    places = np.arange(len(replicas), dtype=np.uint64)[:, None] * np.uint64(1 << 32) + position * np.uint64(1 << 24)
    mixed = np.where(
        replicas >= 0, mix(places + replicas.astype(np.int64).astype(np.uint64) + np.uint64(1)), np.uint64(0)
    )
    return mixed.sum(axis=1, dtype=np.uint64).view(np.int64)
