"""Scores many of Kafka's classic placements at once, by table rows or by look-ups instead of replica lists.

A topic's placement depends only on its start index and shift, and a score consists of sums over topics. So each topic's
tally is computed once for each of the n × (n - 1) different pairs. A candidate draws one pair per topic, so its score
is a sum of one table row per topic: a million candidates are scored in seconds.

If such tables would be too large, every partition must be placed. But its replica list is one of few, given by the
position it starts at and by the shift. Most of what a score needs is known before: which brokers have the partition
today, their racks, and the partition's size. So a candidate takes one look-up per replica, and a score is a few sums
over all replicas. Both ways give the scores of `score.score`.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from planner.model.balance import BYTE_WINDOWS
from planner.model.build_problem import rows_to_place
from planner.model.problem import BoolArray, IntArray, LongArray, Problem, effective_min_insync, hash64
from planner.model.rack_spread import uneven_racks
from planner.scoring import broker_loads, failure_costs, growth_scenarios, score
from planner.scoring.fair_shares import sent_by_leader
from planner.scoring.score import Scores, ScoringBasis, Tally
from planner.scoring.window_excess import TOPIC_PRICE, weight
from planner.scoring.windows import equal_for_all
from planner.strategies import kafka_classic

Floats = NDArray[np.float64]

# Larger tables are worth neither their memory nor the time to make them.
_MOST_TABLE_BYTES, _MOST_PLACEMENTS = 128 << 20, 20_000_000
# Candidates added up at once: the block stays within the processor's cache.
_BLOCK = 2048


@dataclass(frozen=True)
class Tables:
    """Tallies of every topic (T) under every pair (K = n × max(n - 1, 1)) of start index and shift.

    terms (T, K, D): the arrays of the tally, flattened and joined; topic_spread (T, K); shapes: those of the arrays of
    one tally
    """

    terms: LongArray
    topic_spread: LongArray
    shapes: tuple[tuple[int, ...], ...]
    brokers: int


@lru_cache(maxsize=1)
def has_tables(basis: ScoringBasis) -> bool:
    """True if Kafka can place the replicas, and the tables are small enough to make and keep."""
    problem = basis.problem
    brokers = int(problem.targets.sum())
    # A table is about one topic: it does not know the leader of another topic's partition of the same number.
    if int(problem.replication_factors.max(initial=0)) > brokers or problem.together is not None:
        return False
    grown = len(basis.scenarios) * len(BYTE_WINDOWS)
    months = 0 if problem.sizes_ahead is None else problem.sizes_ahead.shape[1]
    columns = len(score.SUMS) + (basis.measures + grown) * brokers + (2 + months) * len(problem.broker_ids)
    columns += basis.fragile.width
    pairs = brokers * max(brokers - 1, 1)
    placements = pairs * int(problem.replication_factors.sum())
    return placements <= _MOST_PLACEMENTS and pairs * len(problem.topic_names) * columns * 8 <= _MOST_TABLE_BYTES


@lru_cache(maxsize=1)
def _tables_of(basis: ScoringBasis) -> Tables:
    """The tables of a problem that `has_tables`; the last problem's tables are kept."""
    problem = basis.problem
    brokers = int(problem.targets.sum())
    pairs = [(start, shift) for start in range(brokers) for shift in range(max(brokers - 1, 1))]
    assignments = (kafka_classic.assign(problem, 0, start, shift) for start, shift in pairs)
    tallies = [score.topic_tallies(basis, assignment) for assignment in assignments]
    flat = [np.concatenate([part.reshape(len(part), -1) for part in each[:-1]], axis=1) for each in tallies]
    spreads = np.stack([tally.topic_spread for tally in tallies], axis=1)
    shapes = tuple(part.shape[1:] for part in tallies[0][:-1])
    return Tables(np.ascontiguousarray(np.stack(flat, axis=1)), spreads, shapes, brokers)


def by_tables(basis: ScoringBasis, starts: IntArray, shifts: IntArray) -> Scores:
    """Scores (C,) of candidates with a start index and a shift for each topic, both (C, T)."""
    tables, tallies = _tables_of(basis), list[Tally]()
    pairs = starts * max(tables.brokers - 1, 1) + shifts % max(tables.brokers - 1, 1)
    ends = np.cumsum([prod(shape) for shape in tables.shapes])[:-1]
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        total = np.zeros((len(block), tables.terms.shape[2]), dtype=np.int64)
        spread = np.zeros(len(block), dtype=np.int64)
        for topic, column in enumerate(block.T):
            total += tables.terms[topic].take(column, axis=0)
            np.maximum(spread, tables.topic_spread[topic].take(column), out=spread)
        parts = zip(np.split(total, ends, axis=1), tables.shapes, strict=True)
        tallies.append(Tally(*[*(part.reshape(len(block), *shape) for part, shape in parts), spread]))
    return score.finish(basis, Tally(*map(np.concatenate, zip(*tallies, strict=True))))


# Every partition on every broker takes one byte; more than this is not worth its memory.
_MOST_BYTES = 128 << 20
# Bytes are summed as floats, which are exact up to this number.
_EXACT = 1 << 53
# Kinds of replicas on a broker: already there, copied within the leader's rack, copied from another rack.
_HERE, _COPIED, _CROSSING = range(3)


@lru_cache(maxsize=1)
def has_sums(basis: ScoringBasis) -> bool:
    """True if Kafka places all partitions anew and sums suffice for all rules and scores that are asked for."""
    problem = basis.problem
    factors, targets = problem.replication_factors, int(problem.targets.sum())
    if not problem.rows or not rows_to_place(problem).all() or int(factors.max()) > targets or int(factors.min()) < 1:
        return False
    weights = (problem.size_bytes, problem.bytes_in_per_sec, problem.bytes_out_per_sec)
    totals = [float((each.astype(np.float64) * (factors + 1)).sum()) for each in weights]
    rules = (problem.allowed, problem.leader_ranks, problem.out_of_sync, problem.deferred, problem.cordoned)
    others = (problem.together, basis.windows.topic_leaders)
    plain = all(rule is None for rule in (*rules, *others)) and not (problem.racks_as_today or basis.scenarios)
    small = problem.rows * targets <= _MOST_BYTES and len(problem.topic_names) * targets * 8 <= _MOST_BYTES
    return plain and small and sum(totals) < _EXACT


@dataclass(frozen=True, eq=False)
class _ReplicaPlaces:
    """All replicas to place (N,): those of position 0, then those of position 1, and so on; by partition in each.

    spans[k]: where position k's replicas are, and their partitions (None: all) · size (N,) bytes · rate_in (N,) bytes/s
    written · source (N,): the broker it is copied from · kinds_start (N,): where its partition begins in `kinds` ·
    counts_start (N,): where its topic begins among (topic, target broker) · digest (N,): mixed with the broker · kinds
    (P × Bt,): _HERE, _COPIED or _CROSSING · ahead (N, M + 1): bytes now and in each coming month (None: unknown)
    """

    spans: tuple[tuple[slice, LongArray | None], ...]
    size: Floats
    rate_in: Floats
    source: LongArray
    kinds_start: LongArray
    counts_start: LongArray
    digest: NDArray[np.uint64]
    kinds: NDArray[np.int8]
    ahead: LongArray | None

    @classmethod
    def of(cls, problem: Problem) -> Self:
        factors, targets = problem.replication_factors, int(problem.targets.sum())
        brokers = np.flatnonzero(problem.targets)
        positions = [np.flatnonzero(factors > position) for position in range(int(factors.max()))]
        row, ends = np.concatenate(positions), np.cumsum([len(each) for each in positions])
        spans = [(slice(end - len(each), end), each) for each, end in zip(positions, ends.tolist(), strict=True)]
        # New partitions have no broker to be copied from, so they get any: nothing is copied of them.
        source = problem.copied_from.clip(min=0)
        has_replica = np.zeros((problem.rows, len(problem.broker_ids) + 1), dtype=bool)
        has_replica[np.arange(problem.rows)[:, None], problem.replicas] = True
        has_replica[problem.is_new] = True  # new partitions are created, not copied
        crossing = problem.broker_racks[brokers] != problem.broker_racks[source][:, None]
        kinds = np.where(has_replica[:, brokers], _HERE, np.where(crossing, _CROSSING, _COPIED)).astype(np.int8)
        place = np.concatenate([np.full(len(each), position) for position, each in enumerate(positions)])
        return cls(
            tuple((span, None if len(rows) == problem.rows else rows) for span, rows in spans),
            problem.size_bytes[row].astype(np.float64),
            problem.bytes_in_per_sec[row].astype(np.float64),
            source[row].astype(np.int64),
            row * targets,
            problem.topic_of[row].astype(np.int64) * targets,
            score.digest_keys(row, place),
            kinds.reshape(-1),
            None if problem.sizes_ahead is None else problem.sizes_ahead[row],
        )


@dataclass(frozen=True, eq=False)
class _ListTables:
    """Kafka's replica lists by (start index + partition id, shift + round), neither reduced modulo the broker count.

    base (P,): where each partition's lists begin · stride: base + start index × stride + shift is the list's number ·
    positions[k] (L,): the target broker at position k · uneven (L,): breaks the rack rule · crowded (L,): the most
    replicas in one rack · brokers (Bt,): the problem's number of each target broker
    """

    base: LongArray
    stride: int
    positions: tuple[LongArray, ...]
    uneven: BoolArray
    crowded: IntArray
    brokers: LongArray

    @classmethod
    def of(cls, problem: Problem) -> Self:
        order, racks = kafka_classic.broker_order(problem)
        number, count = broker_loads.target_numbers(problem), len(order)
        ids, factors = problem.partition_ids, problem.replication_factors
        widest = int(factors.max())
        rounds = max(count - 1, 1)
        # Start index + partition id is less than 2 × count; shift + round is less than this stride.
        stride, length = count + rounds, 2 * count * (count + rounds)
        pairs = np.divmod(np.arange(length), stride)
        base = (ids % count).astype(np.int64) * stride + ids // count % rounds
        tables = []
        for index, factor in enumerate(np.unique(factors).tolist()):
            base[factors == factor] += index * length
            lists = kafka_classic.place_rows(order, racks, factor, np.zeros(length, dtype=np.int32), pairs[0], pairs[1])
            tables.append(np.pad(lists, ((0, 0), (0, widest - factor)), constant_values=-1))
        lists = np.concatenate(tables)
        list_problem = replace(problem, topic_of=np.zeros(len(lists), dtype=np.int32))
        list_racks = np.append(problem.broker_racks, -1)[lists]
        crowded = [((list_racks == column[:, None]) & (lists >= 0)).sum(axis=1) for column in list_racks.T]
        return cls(
            base,
            stride,
            tuple(np.where(column >= 0, number[column], 0).astype(np.int64) for column in lists.T),
            uneven_racks(list_problem, lists),
            np.max(crowded, axis=0).astype(np.int32),
            np.flatnonzero(problem.targets),
        )


@dataclass(frozen=True, eq=False)
class _Leading:
    """Who leads. `anew` (P,): the first replica of the new list leads. `today` (P,): the target broker that leads now,
    -1 if none does, -2 if an election would not count. `kept`, `kept_sent` (Bt,): number and traffic of the partitions
    that keep their leaders. `sent` (P,): what a leader sends.
    """

    anew: BoolArray
    today: LongArray
    kept: LongArray
    kept_sent: LongArray
    sent: Floats

    @classmethod
    def of(cls, problem: Problem) -> Self:
        number, targets = broker_loads.target_numbers(problem), int(problem.targets.sum())
        anew, has_leader = problem.may_lead_anew, problem.leaders >= 0
        today = np.where(has_leader, number[problem.leaders], -1).astype(np.int64)
        sent = sent_by_leader(problem)
        kept = today[~anew & (today >= 0)]
        kept_sent = np.bincount(kept, weights=sent[~anew & (today >= 0)].astype(np.float64), minlength=targets)
        return cls(
            anew,
            np.where(anew & ~problem.is_new, today, -2),
            np.bincount(kept, minlength=targets),
            kept_sent.astype(np.int64),
            sent.astype(np.float64),
        )


@dataclass(frozen=True, eq=False)
class ClassicSums:
    """Everything known about a problem's classic placements before one is drawn."""

    basis: ScoringBasis
    replicas: _ReplicaPlaces
    lists: _ListTables
    leading: _Leading
    few_in_sync: int
    # (P,): a rack's failure is felt if the rack has more than this many replicas of the partition.
    spare: IntArray
    weights: LongArray
    alike: BoolArray


@lru_cache(maxsize=1)
def _sums_of(basis: ScoringBasis) -> ClassicSums:
    """The look-ups of a problem that `has_sums`; the last problem's look-ups are kept."""
    problem, topic_windows = basis.problem, basis.windows.topic_replicas
    factors = problem.replication_factors
    before = (problem.replicas >= 0).sum(axis=1)
    most = max(int(np.bincount(problem.topic_of, weights=factors).max()), int(topic_windows[0].max(initial=0)))
    return ClassicSums(
        basis,
        _ReplicaPlaces.of(problem),
        _ListTables.of(problem),
        _Leading.of(problem),
        int(((factors < problem.min_insync) & (factors != before)).sum()),
        (factors - effective_min_insync(problem.min_insync, factors)).astype(np.int32),
        weight(np.arange(most + 1, dtype=np.int64), TOPIC_PRICE),
        equal_for_all(topic_windows),
    )


def by_sums(basis: ScoringBasis, starts: IntArray, shifts: IntArray) -> Scores:
    """Scores (C,) of candidates with a start index and a shift for each topic, both (C, T)."""
    sums = _sums_of(basis)
    tallies = [_tally(sums, *each) for each in zip(starts, shifts, strict=True)]
    return score.finish(basis, Tally(*map(np.stack, zip(*tallies, strict=True))))


def _tally(sums: ClassicSums, starts: IntArray, shifts: IntArray) -> Tally:
    """One candidate's tally, without the axis of candidates."""
    problem, replicas, lists = sums.basis.problem, sums.replicas, sums.lists
    list_of = lists.base + (starts.astype(np.int64) * lists.stride + shifts)[problem.topic_of]
    targets = len(lists.brokers)
    broker_of = np.empty(len(replicas.size), dtype=np.int64)
    for column, (span, rows) in zip(lists.positions, replicas.spans, strict=True):
        np.take(column, list_of if rows is None else list_of[rows], out=broker_of[span])
    kinds = replicas.kinds.take(replicas.kinds_start + broker_of)
    copied = replicas.size * (kinds > _HERE)
    arriving, sent = np.zeros((2, len(problem.broker_ids)), dtype=np.int64)
    arriving[lists.brokers] = np.bincount(broker_of, weights=copied, minlength=targets)
    sent[:] = np.bincount(replicas.source, weights=copied, minlength=len(sent))
    counts = np.bincount(replicas.counts_start + broker_of, minlength=len(problem.topic_names) * targets).reshape(
        -1, targets
    )
    uneven = int(np.count_nonzero(lists.uneven.take(list_of))) if lists.uneven.any() else 0
    excess, spread = _of_topics(sums, counts)
    digest = int(hash64(replicas.digest + lists.brokers.astype(np.uint64)[broker_of]).sum().view(np.int64))
    preferred = broker_of[: problem.rows]
    terms = (
        digest,
        sums.few_in_sync + uneven,
        uneven,
        int(copied.sum()),
        int(np.count_nonzero(kinds)),
        int(np.count_nonzero((sums.leading.today != preferred) & (sums.leading.today > -2))),
        int(copied[kinds == _CROSSING].sum()),
        excess,
    )
    return Tally(
        np.array(terms, dtype=np.int64),
        _per_broker(sums, broker_of, counts, preferred),
        np.stack([arriving, sent]),
        np.zeros((0, len(BYTE_WINDOWS), targets), dtype=np.int64),
        _ahead(sums, broker_of),
        _exposed(sums, list_of, broker_of),
        spread,
    )


def _per_broker(sums: ClassicSums, broker_of: LongArray, counts: LongArray, preferred: LongArray) -> LongArray:
    """(measures, Bt): `broker_loads.MEASURES`, of replicas on target brokers (N,) with counts by topic (T, Bt)."""
    replicas, leading, targets = sums.replicas, sums.leading, counts.shape[1]
    leaders = preferred[leading.anew]
    measures = np.zeros((sums.basis.measures, targets), dtype=np.int64)
    measures[0] = counts.sum(axis=0)
    measures[1] = leading.kept + np.bincount(leaders, minlength=targets)
    measures[2] = np.bincount(broker_of, weights=replicas.size, minlength=targets)
    if len(measures) > 3:
        measures[3] = np.bincount(broker_of, weights=replicas.rate_in, minlength=targets)
        measures[4] = leading.kept_sent + np.bincount(leaders, weights=leading.sent[leading.anew], minlength=targets)
    return measures


def _ahead(sums: ClassicSums, broker_of: LongArray) -> LongArray:
    """(B, M + 1): `growth_scenarios.bytes_ahead`, for replicas on target brokers (N,)."""
    sizes, brokers = sums.replicas.ahead, sums.lists.brokers
    bytes_ahead = np.zeros((len(sums.basis.problem.broker_ids), 0 if sizes is None else sizes.shape[1]), dtype=np.int64)
    if sizes is not None:
        bytes_ahead[brokers] = growth_scenarios.summed(sizes, broker_of, np.arange(len(broker_of) + 1), len(brokers))
    return bytes_ahead


def _of_topics(sums: ClassicSums, counts: LongArray) -> tuple[int, LongArray]:
    """How far the topics' replicas (T, Bt) are outside of their windows, and the largest spread of any topic."""
    low, high = sums.basis.windows.topic_replicas
    outside = np.maximum(low - counts, counts - high)
    by_topic = sums.weights.take(np.maximum(outside, 0, out=outside)).sum(axis=1)
    spreads = counts.max(axis=1) - counts.min(axis=1)
    tolerance = sums.basis.problem.balance.topic_replicas
    if tolerance.kind == "spread":
        # As in `windows.excess_anywhere`: a spread's window may begin at any number.
        by_topic[sums.alike & (spreads <= tolerance.value)] = 0
    return int(by_topic.sum()), np.asarray(spreads.max())


def _exposed(sums: ClassicSums, list_of: LongArray, broker_of: LongArray) -> LongArray:
    """(E,): `failure_costs.lost_by_group`; zeros in the usual case that no rack's failure is felt."""
    problem, fragile, replicas = sums.basis.problem, sums.basis.fragile, sums.replicas
    if not fragile.width:
        return np.zeros(0, dtype=np.int64)
    if not len(fragile.rows) and not (sums.lists.crowded.take(list_of) > sums.spare).any():
        return np.zeros(fragile.width, dtype=np.int64)
    assignment = np.full((problem.rows, problem.width), -1, dtype=np.int32)
    for position, (span, rows) in enumerate(replicas.spans):
        assignment[slice(None) if rows is None else rows, position] = sums.lists.brokers[broker_of[span]]
    return failure_costs.lost_by_group(problem, fragile, assignment, np.zeros_like(problem.topic_of), 1)[0]
