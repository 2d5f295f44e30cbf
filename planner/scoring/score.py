"""The scores of an assignment: what it costs and how even it is, as raw terms with units.

All terms are integers, so that no sum depends on its order. Everything but the last step is additive over topics: a
`Tally` of a topic's partitions holds sums and counts for each broker, and a plan's tally is the sum over its topics. A
sweep scores a million candidates by adding up rows of a table (see `kafka_classic_scores`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.model import growth_forecast
from planner.model.balance import BYTE_WINDOWS
from planner.model.document_fields import PPM
from planner.model.problem import BoolArray, IntArray, LongArray, Problem, hash64
from planner.scoring import broker_loads, failure_costs, fair_shares, growth_scenarios, independent_check
from planner.scoring.fair_shares import sent_by_leader
from planner.scoring.growth_scenarios import Scenario, scenarios
from planner.scoring.windows import Windows, byte_excess, excess_of_brokers, excess_of_topics, spread, windows

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


# The measures of what brokers hold, and of what they lead, by their places in MEASURES.
_OF_REPLICAS, _OF_LEADERS = (0, 2, 3), (1, 4)


@dataclass(frozen=True, eq=False)
class ScoringBasis:
    """A problem with the data that its scores are measured against, above all the windows of its balance.

    `measures` is how many of `broker_loads.MEASURES` the problem has, counted from the first. `totals` (measures,) is
    what all brokers together should hold, and `totals / parts` (measures, Bt) is each broker's share of it by capacity,
    whatever the racks; `parts` is 0 if a broker has no share, because no topic may use it. `room_bytes` (Bt,) is a
    broker's disk if all brokers state theirs, else its fair share of the bytes; `held_bytes` (Bt,) is what it holds
    today.
    """

    problem: Problem
    windows: Windows
    measures: int
    parts: NDArray[np.float64]
    totals: LongArray
    room_bytes: LongArray
    held_bytes: LongArray
    fragile: failure_costs.Fragile
    scenarios: tuple[Scenario, ...]

    @staticmethod
    def of(problem: Problem) -> ScoringBasis:
        """The data that scoring needs of a problem, computed once."""
        measures = broker_loads.measure_count(problem)
        # What each partition adds to MEASURES over all brokers once everything is as asked, (measures, P).
        is_led, factors, sent = problem.is_led, problem.replication_factors.astype(np.int64), sent_by_leader(problem)
        of_replicas = factors * problem.size_bytes, factors * problem.bytes_in_per_sec
        amounts = np.stack([factors, is_led, *of_replicas, is_led * sent][:measures])
        target_windows = windows(problem, problem.balance)
        held_bytes = broker_loads.on_all_brokers(problem, problem.replicas, problem.leaders)[2, problem.targets]
        fragile = failure_costs.Fragile.of(problem)
        # A broker's disk if all state theirs, else its fair share of the bytes.
        room = problem.disk_bytes[problem.targets]
        if target_windows.byte_shares is not None and (problem.disk_limit_bytes[problem.targets] < 0).any():
            room = target_windows.byte_shares[BYTE_WINDOWS.index("disk")]
        totals, parts = amounts.sum(axis=1), _parts(problem, amounts)
        return ScoringBasis(
            problem, target_windows, measures, parts, totals, room, held_bytes, fragile, scenarios(problem)
        )


class Tally(NamedTuple):
    """Additive terms of G topics or candidates: `sums` (G, len(SUMS)); `per_broker` (G, measures, Bt), as many of
    `MEASURES` as the basis has, on each target broker; `copied` (G, 2, B), bytes that each broker copies in and sends;
    `grown` (G, S, 3, Bt), `broker_loads.loads` in each scenario; `ahead` (G, B, M + 1), `growth_scenarios.bytes_ahead`;
    `exposed` (G, E), `failure_costs.lost_by_group`; and last `topic_spread` (G,), which is combined as a maximum.
    """

    sums: LongArray
    per_broker: LongArray
    copied: LongArray
    grown: LongArray
    ahead: LongArray
    exposed: LongArray
    topic_spread: LongArray


@dataclass(frozen=True)
class Scores:
    """Terms of C candidates, each (C,) int64.

    `imbalance_ppm` is the largest distance of a broker above its share, by capacity, of replicas, leaders, bytes or
    traffic, in parts per million; `imbalance_measure` is the index of that one in `broker_loads.MEASURES`.
    `busiest_bytes` is the most that any broker copies in, or sends as a leader that is copied from; at a throttle it
    decides how long copying takes. `peak_disk_ppm` is how full the fullest broker is while everything is copied
    (today's bytes and those that arrive), in parts per million of its disk if all brokers state theirs, else of its
    fair share. `scenario_excess` is the excess of the windows of bytes summed over the scenarios, `scenarios_missed`
    the number of scenarios with any. `months_until_full` is defined in `growth_forecast`. `broker_offline` to
    `rack_refused` are the costs of the worst single failure (see `failure_costs`), `rack_leaders` is the number of
    leaders in the rack that has most.
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
    imbalance_measure: LongArray
    busiest_bytes: LongArray
    peak_disk_ppm: LongArray
    scenario_excess: LongArray
    scenarios_missed: LongArray
    months_until_full: LongArray
    broker_offline: LongArray
    broker_refused: LongArray
    rack_offline: LongArray
    rack_refused: LongArray
    rack_leaders: LongArray


def score(basis: ScoringBasis, assignment: IntArray, leaders: IntArray | None = None) -> Scores:
    """The scores (1,) of one assignment (P, W); leaders (P,), -1: none, are those of `leaders_after` unless given."""
    one_group, firsts = np.zeros_like(basis.problem.topic_of), np.zeros(1, dtype=np.int32)
    return finish(basis, _tally(basis, assignment, leaders, one_group, firsts))


def topic_tallies(basis: ScoringBasis, assignment: IntArray) -> Tally:
    """The tallies of the T topics under an assignment (P, W)."""
    problem = basis.problem
    return _tally(basis, assignment, None, problem.topic_of, np.arange(len(problem.topic_names), dtype=np.int32))


def _tally(
    basis: ScoringBasis, assignment: IntArray, leaders: IntArray | None, groups: IntArray, firsts: IntArray
) -> Tally:
    """The tally of groups (P,) of topics, by the first topic of each (G,). Partitions are sorted by topic."""
    problem, windows, count = basis.problem, basis.windows, len(firsts)
    leading = broker_loads.leaders_after(problem, assignment) if leaders is None else leaders
    # In column order, because numpy is ten times slower along a short innermost axis.
    assignment = np.asfortranarray(assignment)
    added = added_replicas(problem, assignment)
    first_rows = np.searchsorted(problem.topic_of, firsts)
    columns = (
        np.add.reduceat(column, first_rows, dtype=np.int64)
        for column in _row_terms(problem, assignment, leading, added)
    )
    most = 1 if windows.topic_leaders is None else 2
    counts = broker_loads.by_group(problem, assignment, leading, problem.topic_of, len(problem.topic_names), most)
    topic_excess = excess_of_topics(windows, problem.balance, counts)
    measures = len(broker_loads.MEASURES)
    loads = [
        broker_loads.by_group(each.problem, assignment, leading, groups, count, measures)[:, 2:]
        for each in basis.scenarios
    ]
    grown = (
        np.stack(loads, axis=1) if loads else np.zeros((count, 0, len(BYTE_WINDOWS), counts.shape[2]), dtype=np.int64)
    )
    return Tally(
        np.stack([*columns, np.add.reduceat(topic_excess, firsts)], axis=1),
        broker_loads.by_group(problem, assignment, leading, groups, count, basis.measures),
        _copied(problem, assignment, added, groups, count),
        grown,
        growth_scenarios.bytes_ahead(problem, assignment, groups, count),
        failure_costs.lost_by_group(problem, basis.fragile, assignment, groups, count),
        np.maximum.reduceat(spread(counts[:, 0], problem.allowed_targets), firsts),
    )


def finish(basis: ScoringBasis, total: Tally) -> Scores:
    """Scores (C,) from the summed tallies of C candidates."""
    columns = dict(zip(SUMS, total.sums.T, strict=True))
    per_broker = total.per_broker
    replicas, leaders = per_broker[:, 0], per_broker[:, 1]
    if (caps := independent_check.caps(basis.problem)) is not None:
        columns["violations"] = columns["violations"] + np.maximum(per_broker[:, :2] - caps, 0).sum(axis=(1, 2))
    # If no rates are known, there is no traffic.
    bytes_held = np.zeros((len(per_broker), len(BYTE_WINDOWS), per_broker.shape[2]), dtype=np.int64)
    bytes_held[:, : basis.measures - 2] = per_broker[:, 2:]
    excess = columns.pop("topic_excess")
    excess = excess + excess_of_brokers(basis.windows, basis.problem.balance, per_broker, bytes_held)
    for index, scenario in enumerate(basis.scenarios):
        excess = excess + (byte_excess(scenario.windows, total.grown[:, index]) if scenario.of_hour else 0)
    above = above_shares(basis, per_broker)
    maxima = np.zeros((len(broker_loads.MEASURES), len(per_broker)), dtype=np.int64)
    maxima[: basis.measures] = per_broker.max(axis=2).T
    room, arriving = basis.room_bytes, total.copied[:, 0, basis.problem.targets]
    full = np.where(room > 0, (basis.held_bytes + arriving) / np.maximum(room, 1) * PPM, 0)
    return Scores(
        **columns,
        excess=excess,
        replica_spread=replicas.max(axis=1) - replicas.min(axis=1),
        leader_spread=leaders.max(axis=1) - leaders.min(axis=1),
        topic_replica_spread=total.topic_spread,
        **{f"{measure}_max": column for measure, column in zip(broker_loads.MEASURES, maxima, strict=True)},
        imbalance_ppm=above.max(axis=1),
        imbalance_measure=above.argmax(axis=1),
        busiest_bytes=total.copied.max(axis=(1, 2), initial=0),
        peak_disk_ppm=np.rint(full.max(axis=1, initial=0)).astype(np.int64),
        **growth_scenarios.excess(basis.scenarios, total.grown),
        months_until_full=growth_forecast.months_until_full(basis.problem, total.ahead),
        **failure_costs.worst_losses(basis.problem, total.exposed),
        rack_leaders=broker_loads.rack_leaders(basis.problem, leaders),
    )


def digest(assignment: IntArray) -> int:
    """The digest of an assignment (P, W): equal for equal assignments, as a signed 64-bit number."""
    return int(_digest(assignment).sum())


def added_replicas(problem: Problem, replicas: IntArray) -> BoolArray:
    """(P, W): True if the broker has to copy the partition; new partitions aren't copied."""
    has_replica = np.zeros_like(replicas, dtype=bool)
    for column in problem.replicas.T:
        has_replica |= replicas == column[:, None]
    return (replicas >= 0) & ~has_replica & ~problem.is_new[:, None]


def ties(problem: Problem, assignment: IntArray) -> tuple[int, int]:
    """Partitions that gain or lose a replica, and the sum over brokers of the squares of the replicas that arrive."""
    added = added_replicas(problem, assignment)
    is_kept = np.zeros_like(problem.replicas, dtype=bool)
    for column in assignment.T:
        is_kept |= problem.replicas == column[:, None]
    lost = (problem.replicas >= 0) & ~is_kept
    arriving = np.bincount(assignment[added], minlength=len(problem.broker_ids))
    return int((added.any(axis=1) | lost.any(axis=1)).sum()), int((arriving**2).sum())


def _copied(problem: Problem, assignment: IntArray, added: BoolArray, groups: IntArray, count: int) -> LongArray:
    """(G, 2, B): bytes of each group (P,) that each broker copies in, and that today's leaders on it send."""
    brokers = len(problem.broker_ids)
    first = groups.astype(np.int64) * brokers
    arriving, sent = np.zeros((2, count * brokers), dtype=np.int64)
    for position, copies in zip(assignment.T, added.T, strict=True):
        rows = np.flatnonzero(copies)
        np.add.at(arriving, first[rows] + position[rows], problem.size_bytes[rows])
    np.add.at(sent, first + problem.copied_from, problem.size_bytes * added.sum(axis=1))
    return np.stack([each.reshape(-1, brokers) for each in (arriving, sent)], axis=1)


def above_shares(basis: ScoringBasis, per_broker: LongArray) -> LongArray:
    """The largest distance of a broker above its share, in parts per million, by measure: (C, measures, Bt) to (C,
    measures). 0 if there is nothing to share, or if no broker is above its share.
    """
    share = (per_broker * basis.parts).max(axis=2) / np.maximum(basis.totals, 1)
    above = np.rint((share - 1) * PPM).astype(np.int64)
    return np.where(basis.totals > 0, above, 0).clip(min=0)


def _parts(problem: Problem, amounts: LongArray) -> NDArray[np.float64]:
    """(measures, Bt): the total of amounts (measures, P) over each broker's share of it, by its capacity.

    With rules of placement, a topic is shared by the brokers that it may use. With rules on leaders, its leaders and
    what they send are shared by the brokers that should lead it.
    """
    disk, network = fair_shares.disk_weights(problem), fair_shares.network_weights(problem)
    weights = np.stack([disk, network, disk, network, network][: len(amounts)])
    parts: NDArray[np.float64] = weights.sum(axis=1, keepdims=True) / weights
    for usable, measures in ((problem.allowed_targets, _OF_REPLICAS), (problem.leading_targets, _OF_LEADERS)):
        if (sets := fair_shares.TopicsBySet.of(usable)) is None:
            continue
        indices = [measure for measure in measures if measure < len(amounts)]
        shares, values = np.zeros((len(indices), weights.shape[1])), amounts[indices]
        for rows, brokers in fair_shares.rows_of_sets(problem, sets):
            scaled = weights[indices] * brokers
            shares += (
                values[:, rows].sum(axis=1, keepdims=True) * scaled / scaled.sum(axis=1, keepdims=True).clip(min=1)
            )
        totals = np.broadcast_to(values.sum(axis=1, keepdims=True), shares.shape)
        parts[indices] = np.divide(totals, shares, out=np.zeros_like(shares), where=shares > 0)
    return parts


def _row_terms(problem: Problem, replicas: IntArray, leaders: IntArray, added: BoolArray) -> tuple[LongArray, ...]:
    """The additive terms of each partition (P,), in the order of SUMS without the last; `added` by `added_replicas`."""
    broken = independent_check.broken_rules(problem, replicas)
    # Replicas added in another rack than that of the leader that they are copied from.
    source = problem.broker_racks[problem.copied_from]
    crossing = np.zeros(len(replicas), dtype=np.int64)
    for brokers, copies in zip(replicas.T, added.T, strict=True):
        crossing += copies & (problem.broker_racks[brokers] != source)
    return (
        _digest(replicas),
        np.sum(list(broken.values()), axis=0, dtype=np.int64),
        broken["rack spread"].astype(np.int64),
        added.sum(axis=1) * problem.size_bytes,
        added.sum(axis=1),
        (problem.may_lead_anew & ~problem.is_new & (problem.leaders != leaders)).astype(np.int64),
        crossing * problem.size_bytes,
    )


def digest_keys(rows: LongArray, positions: LongArray) -> NDArray[np.uint64]:
    """The keys that a digest mixes with brokers, for replicas of these rows at these positions, broadcast."""
    return rows.astype(np.uint64) * np.uint64(1 << 32) + np.uint64(1) + (positions.astype(np.uint64) << np.uint64(24))


def _digest(replicas: IntArray) -> LongArray:
    """A 64-bit mix of (row, position, broker) summed over positions (P,); sums wrap, so their order doesn't matter."""
    rows, width = replicas.shape
    keys = digest_keys(np.arange(rows), np.arange(width)[:, None])
    total = np.zeros(rows, dtype=np.uint64)
    for key, brokers in zip(keys, replicas.T, strict=True):
        mixed = hash64(key + brokers.astype(np.uint64))
        # An absent replica, -1, adds nothing.
        mixed[brokers < 0] = 0
        total += mixed
    return total.view(np.int64)
