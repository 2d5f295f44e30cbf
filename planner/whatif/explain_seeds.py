"""Finds the start index and shift that explain an assignment: the placement of `kafka_classic`, read backwards.

A partition's leader determines the start index (its position in the broker list minus the partition's id), and its
second replica determines the shift. So each partition votes for the pairs it agrees with, and counting finds the pair
with most votes. Source: Kafka 3.9, AdminUtils.assignReplicasToBrokers and AdminZkClient.addPartitions.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from planner.model.cluster import Partition, Topic, brokers_holding
from planner.model.problem import BoolArray, IntArray
from planner.strategies import kafka_striped
from planner.strategies.kafka_classic import NO_RACK, Brokers, place_rows, replica_lists, with_rack_numbers

Verdict = Literal["exact", "nearest", "round_robin", "striped", "none"]

# Rows of partitions that are compared with all shifts at once.
_CHUNK = 20_000
# A topic that differs only in its last partition was more likely edited than grown.
_LEAST_ADDED = 2
# How many lists that explain one topic are tried on the others.
_SHARED_LISTS = 8


@dataclass(frozen=True)
class BrokerList:
    """The brokers that a placement may have started from.

    `order`: Kafka's order (by id, alternated by rack if `racks` differ). `racks`: a number for each position, all equal
    if the placement ignored racks.
    """

    name: str
    order: tuple[int, ...]
    racks: tuple[int, ...]

    @property
    def rack_aware(self) -> bool:
        """True if the placement uses racks."""
        return NO_RACK not in self.racks


@dataclass(frozen=True)
class PlacementDifference:
    """A partition that isn't where the pair would place it; broker ids, preferred leader first."""

    partition: int
    replicas: tuple[int, ...]
    expected: tuple[int, ...]


@dataclass(frozen=True)
class Explanation:
    """The explanation of a topic's assignment.

    `exact`: every one of `shifts` (with `start_index`, on `brokers`) gives the assignment. `nearest`: they give all but
    `differences`, and no other pair gives more partitions. `round_robin`: the plain round robin from `start_index` on,
    which has no shift. `striped`: KRaft's placement, which has no such pair, can give the assignment on `brokers`.
    `none`: none of these, and no pair gives even half of the partitions. `grown_from`: the number of partitions that
    the topic was created with, if the later ones follow Kafka's rule for added partitions; None if none were added.
    `brokers` is None for `none`; `start_index` is -1 if there is no pair.
    """

    topic: str
    partitions: int
    replication_factor: int
    verdict: Verdict
    brokers: BrokerList | None = None
    start_index: int = -1
    shifts: tuple[int, ...] = ()
    differences: tuple[PlacementDifference, ...] = ()
    grown_from: int | None = None

    @property
    def agreeing(self) -> int:
        """Number of partitions that are where the pair places them."""
        return self.partitions - len(self.differences) if self.shifts else 0


def explain(topics: Sequence[Topic], brokers: Brokers = (), *, rack_aware: bool = True) -> tuple[Explanation, ...]:
    """The explanation of each topic, in the order given.

    `brokers` are today's, (id, rack); if empty, those that hold replicas. Lists are tried until one explains the whole
    topic: today's brokers; the same without racks; those up to the highest id that the topic uses (brokers with higher
    ids came later); those that the topic uses; the lists that explain other topics.
    """
    today = sorted(brokers) if brokers else [(broker, None) for broker in sorted(brokers_holding(topics))]
    lists = _lists(today, "today's brokers" if brokers else "the brokers with replicas", rack_aware)
    explanations = [_best(topic, chain(lists, _own_lists(topic, today, rack_aware))) for topic in topics]
    shared = _shared(explanations, lists)
    improved = [
        explanation if explanation.verdict == "exact" else _better(explanation, _best(topic, shared))
        for topic, explanation in zip(topics, explanations, strict=True)
    ]
    return tuple(
        explanation
        if explanation.verdict == "exact"
        else _round_robin(topic, explanation, chain(lists, _own_lists(topic, today, rack_aware)))
        or _striped(topic, explanation, today, lists[0].name)
        for topic, explanation in zip(topics, improved, strict=True)
    )


def placed(explanation: Explanation, partitions: Iterable[int]) -> list[tuple[int, ...]]:
    """The replica lists that an explanation's first pair gives to some partitions, as broker ids."""
    if explanation.brokers is None or not explanation.shifts:
        raise ValueError(f"no pair explains {explanation.topic}")
    ids = np.array(list(partitions), dtype=np.int64)
    pair = _Pair(explanation.start_index, explanation.shifts[0])
    return [
        tuple(row)
        for row in _placed_rows(
            explanation.brokers, explanation.replication_factor, pair, ids, explanation.grown_from
        ).tolist()
    ]


class _Pair(NamedTuple):
    """A start index and a shift, both those of the topic's partition 0."""

    start: int
    shift: int


class _Observed(NamedTuple):
    """A topic's partition ids (P,) and replicas (P, R) as positions in a broker list.

    A row that no pair can give (another length, or a broker that isn't in the list) is all -1.
    """

    ids: IntArray
    replicas: IntArray


def _lists(brokers: Brokers, name: str, rack_aware: bool) -> list[BrokerList]:
    """The brokers in Kafka's order: by racks if each broker has one, and without racks."""
    ids = tuple(broker for broker, _ in brokers)
    plain = BrokerList(name, ids, (NO_RACK,) * len(ids))
    racked = [(broker, rack) for broker, rack in brokers if rack is not None]
    if not rack_aware or not racked or len(racked) < len(ids):
        return [plain]
    alternated = BrokerList(name, *map(tuple, with_rack_numbers(racked)))
    return [alternated, replace(plain, name=f"{name}, racks disregarded")]


def _own_lists(topic: Topic, today: Brokers, rack_aware: bool) -> Iterator[BrokerList]:
    """Lists that the topic itself suggests, because the cluster may have had other brokers when it was created."""
    used = brokers_holding([topic])
    racks = dict(today)
    up_to = [(broker, rack) for broker, rack in today if broker <= max(used)]
    if used <= racks.keys() and len(up_to) < len(today):
        yield from _lists(up_to, f"brokers up to {max(used)}", rack_aware)
    # Any few replicas agree with a list that consists only of their brokers.
    is_telling = sum(len(partition.replicas) for partition in topic.partitions) >= 2 * len(used)
    if is_telling and used not in ({broker for broker, _ in up_to}, racks.keys()):
        used_brokers = [(broker, racks.get(broker)) for broker in sorted(used)]
        yield from _lists(used_brokers, "the brokers that the topic uses", rack_aware)


def _round_robin(topic: Topic, explanation: Explanation, lists: Iterable[BrokerList]) -> Explanation | None:
    """The topic as a plain round robin over one of the lists; None if it isn't one."""
    for brokers in lists:
        start = start_of(brokers.order, topic.partitions)
        if start is not None:
            without_pair = replace(explanation, shifts=(), differences=())
            return replace(without_pair, verdict="round_robin", brokers=brokers, start_index=start)
    return None


def start_of(order: Sequence[int], partitions: Sequence[Partition]) -> int | None:
    """The position in a list of brokers at which a plain round robin begins; None if the partitions aren't one."""
    if len({len(partition.replicas) for partition in partitions}) != 1 or partitions[0].replicas[0] not in order:
        return None
    start = (order.index(partitions[0].replicas[0]) - partitions[0].id) % len(order)
    is_round_robin = all(
        order[(start + partition.id + distance) % len(order)] == broker
        for partition in partitions
        for distance, broker in enumerate(partition.replicas)
    )
    return start if is_round_robin else None


def _striped(topic: Topic, explanation: Explanation, today: Brokers, name: str) -> Explanation:
    """The topic as KRaft's placement if this can give the assignment, else `explanation`."""
    lists = [partition.replicas for partition in topic.partitions]
    used, racks = brokers_holding([topic]), dict(today)
    ids_up_to = [each for each in racks if each <= max(used)]
    for list_name, ids in (
        (name, racks),
        (f"brokers up to {max(used)}", ids_up_to),
        ("the brokers that the topic uses", used),
    ):
        brokers = [(broker, racks.get(broker)) for broker in sorted(ids)]
        if kafka_striped.fits(brokers, lists):
            fitting = _lists(brokers, list_name, rack_aware=False)[0]
            return replace(explanation, verdict="striped", brokers=fitting, start_index=-1, shifts=(), differences=())
    return explanation


def _shared(explanations: Sequence[Explanation], lists: Sequence[BrokerList]) -> list[BrokerList]:
    """The lists that explain topics exactly, most topics first, without the lists that every topic was tried on."""
    name = "the brokers of other topics"
    tried_lists = {replace(each, name=name) for each in lists}
    counts = Counter(
        replace(each.brokers, name=name) for each in explanations if each.verdict == "exact" and each.brokers
    )
    others = [each for each in counts if each not in tried_lists]
    return sorted(others, key=lambda each: (-counts[each], -len(each.order), each.order))[:_SHARED_LISTS]


def _better(first: Explanation, second: Explanation) -> Explanation:
    """The explanation that more partitions agree with; the first if they tie."""
    return (
        second if (second.verdict == "exact", second.agreeing) > (first.verdict == "exact", first.agreeing) else first
    )


def _best(topic: Topic, lists: Iterable[BrokerList]) -> Explanation:
    """The first list that explains the whole topic, else the list that explains most of it."""
    lengths = Counter(len(partition.replicas) for partition in topic.partitions)
    factor = max(lengths, key=lambda length: (lengths[length], length))
    best = unexplained = Explanation(topic.name, len(topic.partitions), factor, "none")
    # A replica list of another length, which no pair can give, becomes a row of -1.
    rows = [each.replicas if len(each.replicas) == factor else (-1,) * factor for each in topic.partitions]
    replicas = np.array(rows, dtype=np.int64).reshape(-1, factor)
    for brokers in lists:
        if len(brokers.order) >= factor:
            best = _better(best, _explain_on(topic, unexplained, replicas, brokers))
        if best.verdict == "exact":
            break
    return best


def _explain_on(topic: Topic, unexplained: Explanation, replicas: IntArray, brokers: BrokerList) -> Explanation:
    """The explanation of a topic with replicas (P, R) on one list; `unexplained` if this list has none."""
    by_id = np.argsort(brokers.order)
    ids = np.array(brokers.order, dtype=np.int64)[by_id]
    indices = np.minimum(np.searchsorted(ids, replicas), len(ids) - 1)
    positions = np.where(ids[indices] == replicas, by_id[indices], -1)
    positions[(positions < 0).any(axis=1)] = -1
    observed = _Observed(np.array([each.id for each in topic.partitions], dtype=np.int64), positions)
    nearest = _nearest(unexplained, observed, brokers)
    if nearest.verdict == "exact":
        return nearest
    if grown := _grown_topic(unexplained, observed, brokers):
        return grown
    if not nearest.brokers:
        return unexplained
    expected = placed(nearest, [each.id for each in topic.partitions])
    pairs = zip(topic.partitions, expected, strict=True)
    differ = (
        PlacementDifference(partition.id, partition.replicas, replica_list)
        for partition, replica_list in pairs
        if partition.replicas != replica_list
    )
    return replace(nearest, differences=tuple(differ))


def _nearest(unexplained: Explanation, observed: _Observed, brokers: BrokerList) -> Explanation:
    """The pair that the most partitions agree with; `unexplained` if that is less than half of them."""
    n, firsts = len(brokers.order), observed.replicas[:, 0]
    # A start index that fewer than half of the leaders vote for can't give half of the partitions.
    votes = np.bincount((firsts - observed.ids)[firsts >= 0] % n, minlength=n)
    starts = np.flatnonzero((2 * votes >= len(observed.ids)) & (votes > 0))
    if not len(starts):
        return unexplained
    agreeing = _count_agreeing(observed, starts, brokers, unexplained.replication_factor)
    best_row = int(agreeing.max(axis=1).argmax())
    most, count = int(agreeing[best_row].max()), len(observed.ids)
    if 2 * most < count or most == 1 < count:
        return unexplained
    shifts = tuple(np.flatnonzero(agreeing[best_row] == most).tolist())
    verdict: Verdict = "exact" if most == count else "nearest"
    return replace(unexplained, verdict=verdict, brokers=brokers, start_index=int(starts[best_row]), shifts=shifts)


def _count_agreeing(observed: _Observed, starts: IntArray, brokers: BrokerList, factor: int) -> IntArray:
    """(starts, n): the number of partitions that each of these start indices gives with each shift."""
    n = len(brokers.order)
    counts = np.zeros((len(starts), n), dtype=np.int64)
    for begin in range(0, len(observed.ids), _CHUNK):
        ids, replicas = observed.ids[begin : begin + _CHUNK], observed.replicas[begin : begin + _CHUNK]
        agrees = _agrees(ids, replicas, brokers, factor)
        votes = (replicas[:, 0] - ids) % n
        for index, start in enumerate(starts.tolist()):
            counts[index] += agrees[votes == start].sum(axis=0)
    return counts


def _agrees(ids: IntArray, replicas: IntArray, brokers: BrokerList, factor: int) -> BoolArray:
    """(P, n): True if a shift (with the start index that the leader votes for) gives the partition's replicas."""
    n, firsts = len(brokers.order), replicas[:, 0]
    table = _table(brokers.racks, factor)
    turns = (ids[:, None] // n + np.arange(n)) % table.shape[1]
    if factor == 1:
        return np.repeat(firsts[:, None] >= 0, n, axis=1)
    # The second replica determines the turn, and so all later replicas.
    same_second = table[firsts, :, 1] == replicas[:, 1, None]
    turn = same_second.argmax(axis=1)
    is_valid = (table[firsts, turn] == replicas).all(axis=1) & (firsts >= 0)
    return np.take_along_axis(same_second & is_valid[:, None], turns, axis=1)


@lru_cache(maxsize=16)
def _table(racks: tuple[int, ...], factor: int) -> IntArray:
    """Kafka's replica lists by the leader's position and the shift, which takes one turn per rack."""
    lists = replica_lists(racks, factor)
    return lists[:, np.arange(lists.shape[1]) * len(set(racks)) % lists.shape[1]]


def _placed_rows(brokers: BrokerList, factor: int, pair: _Pair, ids: IntArray, grown_from: int | None) -> IntArray:
    """The broker ids (P, factor) that a pair gives to partitions; from `grown_from` on, as Kafka adds partitions."""
    order, racks = np.array(brokers.order, dtype=np.int64), np.array(brokers.racks)
    lists = place_rows(order, racks, factor, ids, np.array(pair.start), np.array(pair.shift))
    if grown_from is None:
        return lists
    leader = int(_placed_rows(brokers, factor, pair, np.zeros(1, dtype=np.int64), None)[0, 0])
    added = _placed_rows(brokers, factor, _added_pair(brokers, leader, grown_from), ids, None)
    return np.where((ids < grown_from)[:, None], lists, added)


def _added_pair(brokers: BrokerList, leader: int, grown_from: int) -> _Pair:
    """Kafka's pair for added partitions: the place of partition 0's leader among all ids is both start and shift.

    This shift is that of the first added partition, so the rounds before it are subtracted.
    """
    position = sorted(brokers.order).index(leader)
    return _Pair(position, position - (grown_from - 1) // len(brokers.order))


def _grown_topic(unexplained: Explanation, observed: _Observed, brokers: BrokerList) -> Explanation | None:
    """The explanation of a topic that got partitions later; None if it isn't one."""
    n, factor, start = len(brokers.order), unexplained.replication_factor, int(observed.replicas[0, 0])
    if len(observed.ids) <= _LEAST_ADDED or start < 0:
        return None
    # A quick check first: whether the leaders of the last partitions follow the rule for added partitions.
    last_rows, added = slice(-_LEAST_ADDED, None), _added_pair(brokers, brokers.order[start], 1)
    if ((added.start + observed.ids[last_rows]) % n != observed.replicas[last_rows, 0]).any():
        return None
    fits_pair = _agrees(observed.ids, observed.replicas, brokers, factor)
    fits_pair &= ((observed.replicas[:, 0] - observed.ids) % n == start)[:, None]
    lengths = np.logical_and.accumulate(fits_pair).sum(axis=0)
    created = _created_count(int(lengths.max()), observed, brokers, factor)
    if created is None:
        return None
    shifts = tuple(np.flatnonzero(lengths >= created).tolist())
    return replace(unexplained, verdict="exact", brokers=brokers, start_index=start, shifts=shifts, grown_from=created)


def _created_count(longest: int, observed: _Observed, brokers: BrokerList, factor: int) -> int | None:
    """The number of partitions (at most `longest`) at creation, if all later ones follow the rule; None if not.

    With n brokers, the rule for added partitions depends only on how many rounds of n were full before.
    """
    n, broker_ids = len(brokers.order), np.array([*brokers.order, -1])[observed.replicas]
    most_created = min(longest, len(observed.ids) - _LEAST_ADDED)
    # One count per round is enough: the highest possible one, then the last count of each earlier round.
    for created_count in [most_created, *range((most_created - 1) // n * n, 0, -n)] if most_created > 0 else []:
        pair = _added_pair(brokers, int(broker_ids[0, 0]), created_count)
        if (
            _placed_rows(brokers, factor, pair, observed.ids[created_count:], None) == broker_ids[created_count:]
        ).all():
            return created_count
    return None
