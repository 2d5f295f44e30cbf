"""The placement of `kafka-reassign-partitions --generate` and of ZooKeeper clusters: Kafka's AdminUtils.

One function serves both of Kafka's variants: over a single rack the rack-aware algorithm skips nothing and equals the
rack-unaware formula. A replica list depends only on the first replica's position and on the shift modulo n - 1. So a
table of n × (n - 1) lists holds all of them, and many candidates are placed by one look-up.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain, zip_longest

import numpy as np

from planner.model.build_problem import rows_to_place, today
from planner.model.errors import InfeasibleError
from planner.model.problem import IntArray, LongArray, Problem, draw_numbers
from planner.strategies.java_random import utf16_key

NO_RACK = -1
# Ids and racks.
Brokers = Sequence[tuple[int, str | None]]


def place(
    brokers: Brokers,
    partitions: int,
    replication_factor: int,
    *,
    start_index: int,
    next_replica_shift: int,
    start_partition_id: int = 0,
    rack_aware: bool = True,
) -> list[tuple[int, ...]]:
    """Replica lists of `partitions` partitions from `start_partition_id` on, preferred leader first.

    `brokers` are (id, rack). Without racks their order counts as given; with racks they are alternated (see
    `rack_alternated`). If `start_partition_id` is above 0, the shift is that of the first partition placed, as when
    Kafka adds partitions to a topic. InfeasibleError if Kafka refuses: nothing to place, a replication factor below 1
    or above the number of brokers, racks on only some brokers.

    Source: Kafka 3.9, org.apache.kafka.admin.AdminUtils.assignReplicasToBrokers (KIP-36).
    """
    require_placeable(len(brokers), partitions, replication_factor)
    if start_index < 0 or next_replica_shift < 0:  # Kafka would draw one
        settings = f"start index {start_index}, next replica shift {next_replica_shift}"
        raise InfeasibleError(f"{settings}: both must be at least 0")
    order, racks = _in_kafka_order(brokers, rack_aware)
    count, first_id = len(order), max(start_partition_id, 0)
    ids = np.arange(first_id, first_id + partitions)
    # The shift grows at each multiple of the number of brokers, except at 0.
    shifts = next_replica_shift + ids // count - max(first_id - 1, 0) // count
    positions = _walk(racks, replication_factor, (ids + start_index) % count, shifts * len(set(racks)))
    return [tuple(order[position] for position in row) for row in positions.tolist()]


def rack_alternated(brokers: Sequence[tuple[int, str]]) -> list[int]:
    """Broker ids, one of each rack in turn: racks by name, brokers by id, spent racks left out.

    Racks {0, 1, 2} {3, 4, 5} {6, 7, 8} give 0, 3, 6, 1, 4, 7, 2, 5, 8.
    Source: AdminUtils.getRackAlternatedBrokerList.
    """
    members: defaultdict[str, list[int]] = defaultdict(list)
    for broker, rack in sorted(brokers):
        members[rack].append(broker)
    rounds = zip_longest(*(members[rack] for rack in sorted(members, key=utf16_key)))
    return [broker for broker in chain.from_iterable(rounds) if broker is not None]


def with_rack_numbers(brokers: Sequence[tuple[int, str]]) -> tuple[list[int], list[int]]:
    """The brokers, `rack_alternated`, and a number for the rack of each: racks are counted by name from 0."""
    order, rack_of = rack_alternated(brokers), dict(brokers)
    numbers = {rack: number for number, rack in enumerate(sorted(set(rack_of.values())))}
    return order, [numbers[rack_of[broker]] for broker in order]


def place_rows(
    order: IntArray, racks: IntArray, replication_factor: int, ids: IntArray, starts: IntArray, shifts: IntArray
) -> IntArray:
    """The replica list of each partition id under its own start index and shift (those of the topic's partition 0).

    `order` (n,) is Kafka's order of the brokers (see `broker_order`), `racks` (n,) the rack of each position, all -1 to
    place without racks. `ids`, `starts` and `shifts` broadcast to a shape S; the result is S + (replication_factor,),
    values of `order`.
    """
    n = len(order)
    table = order[replica_lists(tuple(racks.tolist()), replication_factor)]
    rack_count = len(set(racks.tolist()))
    turns = (shifts + ids // n) * rack_count % table.shape[1]
    # One flat index into rows of replica lists takes half the time of two arrays of indices.
    rows = (ids + starts) % n * table.shape[1] + turns
    lists: IntArray = table.reshape(-1, replication_factor).take(rows, axis=0)
    return lists


def broker_order(problem: Problem) -> tuple[IntArray, IntArray]:
    """The target brokers' indices in Kafka's order and the rack of each, both (n,): the input of `place_rows`.

    Alternated by rack if racks matter; otherwise by id, and every rack is -1.
    """
    targets = np.flatnonzero(problem.targets).astype(np.int32)
    if not problem.racks_matter:
        return targets, np.full(len(targets), NO_RACK, dtype=np.int32)
    racks = problem.broker_racks[targets].tolist()
    named = [(broker, problem.rack_names[rack]) for broker, rack in zip(targets.tolist(), racks, strict=True)]
    order = np.array(rack_alternated(named), dtype=np.int32)
    return order, problem.broker_racks[order]


def assign(problem: Problem, seed: int = 0, start_index: int = -1, next_replica_shift: int = -1) -> IntArray:
    """Kafka's placement of every topic that may move, as an assignment (P, W) of broker indices padded with -1.

    A start index or shift of -1 is drawn for each topic from the seed.

    The target brokers are in `broker_order`. Each partition gets the list that its topic would give it at its wanted
    replication factor. Rows that `rows_to_place` leaves out keep today's replicas. InfeasibleError if a replication
    factor exceeds the number of target brokers.
    """
    order, racks = broker_order(problem)
    starts, shifts = starts_and_shifts(problem, seed, start_index, next_replica_shift)

    def lists(factor: int, ids: IntArray, topics: IntArray) -> IntArray:
        return place_rows(order, racks, factor, ids, starts[topics], shifts[topics])

    return _with_rows_placed(problem, lists)


def _with_rows_placed(problem: Problem, lists: Callable[[int, IntArray, IntArray], IntArray]) -> IntArray:
    """Today's assignment (P, W) with the rows of `rows_to_place` placed anew. `lists` places all rows of one
    replication factor, given the factor, the partitions' ids and their topics.
    """
    to_place, factors = rows_to_place(problem), problem.replication_factors
    assignment = today(problem)
    for factor in np.unique(factors[to_place]).tolist():
        rows = np.flatnonzero(to_place & (factors == factor))
        require_placeable(int(problem.targets.sum()), len(rows), factor)
        replica_lists = lists(factor, problem.partition_ids[rows], problem.topic_of[rows])
        assignment[rows] = np.pad(replica_lists, ((0, 0), (0, problem.width - factor)), constant_values=-1)
    return assignment


def starts_and_shifts(problem: Problem, seed: int, start_index: int, shift: int) -> tuple[IntArray, IntArray]:
    """Each topic's start index and shift, both (T,): as given, or for -1 drawn below the number of target brokers."""
    (starts,), (shifts,) = draws(np.array([seed]), len(problem.topic_names), max(int(problem.targets.sum()), 1))
    given = np.full_like(starts, start_index), np.full_like(shifts, shift)
    return starts if start_index < 0 else given[0], shifts if shift < 0 else given[1]


def draws(seeds: LongArray, topics: int, bound: int) -> tuple[IntArray, IntArray]:
    """Start indices and shifts, both (C, T) and in 0..bound-1, for `seeds` (C,) and topics 0..T-1.

    Topic t uses the counters 2t (start index) and 2t + 1 (shift), so more topics never change the earlier ones.
    """
    numbers = draw_numbers(seeds.astype(np.int64).view(np.uint64), 2 * topics, bound)
    return numbers[:, 0::2], numbers[:, 1::2]


@lru_cache(maxsize=64)
def replica_lists(racks: tuple[int, ...], replication_factor: int) -> IntArray:
    """All replica lists as positions, (n, max(n - 1, 1), replication_factor), by first position and turn."""
    n, period = len(racks), max(len(racks) - 1, 1)
    lists = _walk(racks, replication_factor, *np.divmod(np.arange(n * period), period))
    lists.flags.writeable = False  # shared by all callers
    return lists.reshape(n, period, replication_factor)


def _walk(racks: Sequence[int], replication_factor: int, first: IntArray, turns: IntArray) -> IntArray:
    """(K, replication_factor): positions of partitions' replicas: `first` (K,), then by a walk from `turns` (K,) on. As
    in Kafka, it skips a rack that has a replica if another rack has none, and a broker that has a replica.

    All walks that aren't done advance by one step at a time.
    """
    n, period, rack_of, step = len(racks), max(len(racks) - 1, 1), np.array(racks), turns.copy()
    chosen = np.full((len(first), replication_factor), -1, dtype=np.int32)
    chosen[:, 0] = first
    for column in range(1, replication_factor):
        pending = np.arange(len(first))
        while len(pending):
            position, earlier = (first[pending] + 1 + step[pending] % period) % n, chosen[pending, :column]
            used_racks = np.sort(rack_of[earlier], axis=1)
            has_all_racks = 1 + (used_racks[:, 1:] != used_racks[:, :-1]).sum(axis=1) == len(set(racks))
            fits = (earlier != position[:, None]).all(axis=1) & (
                has_all_racks | (rack_of[earlier] != rack_of[position][:, None]).all(axis=1)
            )
            chosen[pending[fits], column] = position[fits]
            step[pending] += 1
            pending = pending[~fits]
    return chosen


def _in_kafka_order(brokers: Brokers, rack_aware: bool) -> tuple[list[int], list[int]]:
    """The brokers' ids in Kafka's order and a rack number for each, all the same without racks."""
    ids = [broker for broker, _ in brokers]
    with_racks = [(broker, rack) for broker, rack in brokers if rack is not None]
    if not rack_aware or not with_racks:
        return ids, [NO_RACK] * len(ids)
    if len(with_racks) < len(ids):
        missing = ", ".join(map(str, sorted(set(ids) - {broker for broker, _ in with_racks})))
        raise InfeasibleError(
            f"no rack is known for broker {missing} although other brokers have one; rack-aware placement needs a rack "
            "on every broker or on none: give each broker a rack, or set rack_aware: disabled"
        )
    return with_rack_numbers(with_racks)


def require_placeable(brokers: int, partitions: int, replication_factor: int) -> None:
    """InfeasibleError for what Kafka refuses to place on so many brokers."""
    if partitions <= 0:
        raise InfeasibleError(f"partitions is {partitions}: at least 1 partition is needed to place anything")
    if not 1 <= replication_factor <= brokers:
        allowed = f"from 1 to {brokers}, the number of brokers"
        raise InfeasibleError(f"replication factor is {replication_factor}: it must be {allowed}")


def round_robin(
    brokers: Sequence[int], partitions: int, replication_factor: int, start: int = 0
) -> list[tuple[int, ...]]:
    """The round robin that most articles on Kafka describe: replica j of partition i on broker (i + j) mod n.

    It is Kafka's own placement with one fixed start index and shift, but without the extra shift after each round. So
    the same brokers follow each other in every round: easy to explain, but worse when a broker fails. Replica lists of
    partitions 0..partitions-1, preferred leader first, on `brokers` (ids) in the order given.

    InfeasibleError for a replication factor below 1 or above the number of brokers, or nothing to place.
    """
    require_placeable(len(brokers), partitions, replication_factor)
    n, replicas = len(brokers), range(replication_factor)
    return [tuple(brokers[(start + i + j) % n] for j in replicas) for i in range(partitions)]


def assign_round_robin(problem: Problem, seed: int = 0, start_index: int = -1) -> IntArray:
    """Round robin of every topic that may move, as an assignment (P, W) of broker indices padded with -1.

    The target brokers are in Kafka's order, alternated by rack if racks matter. A start index of -1 is drawn for each
    topic from the seed. Rows that may not move keep today's replicas. InfeasibleError as in `round_robin`.
    """
    order, _ = broker_order(problem)
    starts, _ = starts_and_shifts(problem, seed, start_index, 0)

    def lists(factor: int, ids: IntArray, topics: IntArray) -> IntArray:
        return order.take((ids + starts[topics])[:, None] + np.arange(factor), mode="wrap")

    return _with_rows_placed(problem, lists)
