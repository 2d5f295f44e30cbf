"""Builds a `Problem` from a spec: flat arrays, for everything that is computed many times."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from planner.model.cluster import (
    Broker,
    Partition,
    PartitionKey,
    Topic,
    in_force,
    min_insync_replicas,
    perhaps_in_sync,
)
from planner.model.cordons import with_cordons
from planner.model.document_fields import LEADERS, PPM
from planner.model.growth_forecast import with_sizes_ahead
from planner.model.load_history import HOURS_OF_WEEK, WeekOfLoad, busiest_hours, hour_name
from planner.model.problem import DEMOTED, NEVER_LEADS, UNCAPPED, BoolArray, IntArray, LongArray, Problem, misplaced
from planner.model.rack_spread import crowding, uneven_racks
from planner.model.spec import BrokerClass, Changes, Spec, first_rule
from planner.model.together import with_slots


def build(spec: Spec) -> Problem:
    """The spec as a `Problem`. The spec has been checked, so every id in it is known."""
    topics = topics_after(spec)
    problem = with_slots(with_sizes_ahead(_without_hours(spec), spec, topics), spec.together, topics)
    return problem if spec.week is None else with_week(problem, spec, spec.week)


def _without_hours(spec: Spec) -> Problem:
    """The spec as a `Problem`, without the busiest hours and the sizes of coming months."""
    brokers, topics = brokers_after(spec), topics_after(spec)
    ids, rows = np.array([each.id for each in brokers], np.int32), [row for topic in topics for row in topic.partitions]
    topic_of = np.repeat(np.arange(len(topics), dtype=np.int32), [len(topic.partitions) for topic in topics])
    replicas = _replica_matrix(rows, ids)
    targets = np.array([broker.id not in spec.changes.leaving for broker in brokers], dtype=bool)
    has_replica, factors = replicas >= 0, _replication_factors(spec, topics, replicas)
    # A broker of the partition leaves, or its replication factor changes.
    forced: BoolArray = (has_replica & ~targets[replicas]).any(axis=1) | (has_replica.sum(axis=1) != factors)
    problem = Problem(
        broker_ids=ids,
        **_broker_fields(spec, brokers, ids, targets),
        targets=targets,
        topic_names=tuple(topic.name for topic in topics),
        topic_of=topic_of,
        partition_ids=_ints(partition.id for partition in rows),
        replicas=replicas,
        leaders=_indices(ids, _ints(-1 if row.leader is None else row.leader for row in rows)),
        replication_factors=factors,
        min_insync=_ints(min_insync_of(spec, topic) for topic in topics)[topic_of],
        movable=_movable(spec, topics, topic_of, rows, forced),
        forced=forced,
        size_bytes=_longs(row.size_bytes for row in rows),
        bytes_in_per_sec=_longs(row.bytes_in_per_sec for row in rows),
        bytes_out_per_sec=_longs(row.bytes_out_per_sec for row in rows),
        rack_aware=spec.rack_aware,
        racks_as_today=spec.racks_as_today,
        rebalance=spec.changes.rebalance,
        balance=spec.balance,
        sizes_known=spec.cluster.sizes_known,
        budget=spec.budget,
        aims=spec.sweep.aims,
        scenario_names=tuple(scenario.name for scenario in spec.sweep.growth),
        scenario_ppm=_scenario_ppm(spec, topics, topic_of),
        survive=spec.resilience,
        out_of_sync=_out_of_sync(rows, ids),
        allowed=_allowed_brokers(spec, topics, ids),
        apart=_sides_of_topics(spec, topics),
        apart_by=tuple(rule.by for rule in spec.apart),
        leader_ranks=_leader_ranks(spec, topics, brokers),
    )
    problem = with_cordons(problem, brokers, {broker.id for broker in spec.cluster.brokers})
    worse = _forced_by_racks(spec, problem, brokers) | misplaced(problem, replicas)
    return replace(problem, forced=forced | worse, movable=_movable(spec, topics, topic_of, rows, forced | worse))


def problem_today(spec: Spec) -> Problem:
    """The cluster as it is: today's brokers in today's racks, without any change."""
    sweep = replace(spec.sweep, growth=(), variants=())
    unchanged = replace(spec, sweep=sweep, week=None, placement=(), leader_racks=(), apart=(), together=())
    return build(replace(unchanged, changes=Changes(rebalance="none")))


def min_insync_of(spec: Spec, topic: Topic) -> int:
    """The `min.insync.replicas` in force for a topic."""
    return min_insync_replicas(in_force(topic, spec.cluster.config_defaults))


def topics_after(spec: Spec) -> tuple[Topic, ...]:
    """Today's topics and the topics to create, sorted by name. Partitions to be made are included, without replicas."""
    by_name = {topic.name: topic for topic in spec.cluster.topics}
    for new in spec.changes.new_partitions:
        existing = by_name.get(new.topic, Topic(new.topic, (), new.config))
        load = (new.size_bytes, new.bytes_in_per_sec, new.bytes_out_per_sec)
        added = tuple(Partition(number, (), None, None, *load) for number in range(new.first, new.count))
        by_name[new.topic] = replace(existing, partitions=existing.partitions + added)
    return tuple(by_name[name] for name in sorted(by_name))


def _sides_of_topics(spec: Spec, topics: Sequence[Topic]) -> IntArray:
    """(G, T): `Problem.apart`. A topic that is being deleted is on no side."""
    names = ["" if topic.deleting else topic.name for topic in topics]
    side_lists = [
        [[fnmatchcase(each, pattern) for pattern in (*rule.topics, "*")].index(True) for each in names]
        for rule in spec.apart
    ]
    side_counts = _ints(len(rule.topics) for rule in spec.apart)[:, None]
    side_indices = np.array(side_lists, dtype=np.int32).reshape(len(spec.apart), len(topics))
    return np.where(side_indices == side_counts, -1, side_indices)


def _allowed_brokers(spec: Spec, topics: Sequence[Topic], ids: IntArray) -> BoolArray | None:
    """(T, B): the brokers of `ids` (B,) that each topic may use; None without rules.

    If no rule of `placement` matches a topic, it may use all brokers except those of exclusive sets. A topic that is
    being deleted may use every broker. A topic of `apart` may use only its side's brokers, if sides are chosen.
    """
    rules, split = spec.placement, [rule for rule in spec.apart if rule.sides and not rule.by.endswith(LEADERS)]
    if not (rules or split):
        return None
    reserved = np.isin(ids, [broker for rule in rules if rule.exclusive for broker in rule.brokers])
    allowed = np.ones((len(topics), len(ids)), dtype=bool)
    for index, topic in enumerate(topics):
        topic_rule = first_rule(topic.name, rules)
        if not topic.deleting:
            allowed[index] = ~reserved if topic_rule is None else np.isin(ids, topic_rule.brokers)
            for pattern, side in (pair for rule in split for pair in zip(rule.topics, rule.sides, strict=True)):
                if fnmatchcase(topic.name, pattern):
                    allowed[index] &= np.isin(ids, side)
    return allowed


def _leader_ranks(spec: Spec, topics: Sequence[Topic], brokers: Sequence[Broker]) -> IntArray | None:
    """(T, B): `Problem.leader_ranks`, by the racks that brokers have after the change.

    A broker has rank 0 if no rule matches the topic. Brokers to be demoted rank after all of these. Brokers that
    `apart` doesn't let lead the topic rank last.
    """
    split = [rule for rule in spec.apart if rule.sides and rule.by.endswith(LEADERS)]
    if not (spec.leader_racks or spec.changes.demote_brokers or split):
        return None
    ranks = np.zeros((len(topics), len(brokers)), dtype=np.int16)
    for index, topic in enumerate(topics):
        rule = first_rule(topic.name, spec.leader_racks)
        if rule is not None:
            order = {rack: rank for rank, rack in enumerate(rule.prefer)}
            ranks[index] = [order.get(broker.rack or "", len(order)) for broker in brokers]
    ranks[:, [broker.id in spec.changes.demote_brokers for broker in brokers]] = DEMOTED
    for pattern, side in (pair for rule in split for pair in zip(rule.topics, rule.sides, strict=True)):
        able = np.isin([broker.id for broker in brokers], side) & (ranks < DEMOTED)
        is_matched = [fnmatchcase(topic.name, pattern) for topic in topics]
        ranks[is_matched] = np.where(able[is_matched], ranks[is_matched], NEVER_LEADS)
    return ranks


def _forced_by_racks(spec: Spec, problem: Problem, brokers: Sequence[Broker]) -> BoolArray:
    """(P,): partitions that break the rack rule and have to be repaired.

    With `rebalance: racks`, these are all that may move; otherwise only those that `set_racks` makes worse.
    """
    if spec.changes.rebalance == "racks":
        return uneven_racks(problem, problem.replicas) & problem.movable
    if not (spec.rack_aware and spec.changes.set_racks):
        return np.zeros(problem.rows, dtype=bool)
    todays = {broker.id: broker.rack for broker in spec.all_brokers}
    _, racks_today = _rack_indices([Broker(broker.id, todays[broker.id]) for broker in brokers])
    crowding_before, crowding_after = (
        crowding(problem.replicas, racks) for racks in (racks_today, problem.broker_racks)
    )
    worse: BoolArray = uneven_racks(problem, problem.replicas) & (crowding_after > crowding_before)
    return worse


def _movable(
    spec: Spec, topics: Sequence[Topic], topic_of: IntArray, rows: Sequence[Partition], forced: BoolArray
) -> BoolArray:
    """(P,): True for partitions that may change, and for all that are to be made.

    Partitions outside the topic filter's topics or brokers stay as they are, and so do topics that are being deleted.
    A partition without a leader has no replica to copy from, so it moves only if it is forced to.
    """
    may_change = [spec.topics.moves(topic.name) and not topic.deleting for topic in topics]
    is_new = np.fromiter((not row.replicas for row in rows), dtype=bool, count=len(rows))
    is_led = np.fromiter((row.leader is not None for row in rows), dtype=bool, count=len(rows))
    is_near = np.fromiter((spec.topics.is_near(row.replicas) for row in rows), dtype=bool, count=len(rows))
    movable: BoolArray = (np.array(may_change, dtype=bool)[topic_of] & is_near & (is_led | forced)) | is_new
    return movable


def _out_of_sync(rows: Sequence[Partition], ids: IntArray) -> BoolArray | None:
    """(B,): brokers that hold replicas but are in no ISR, so that they can't be elected; None without any."""
    with_isr = [row for row in rows if row.isr is not None and row.leader is not None]
    holding = {broker for row in with_isr for broker in row.replicas}
    is_off = np.isin(ids, sorted(holding - perhaps_in_sync(rows)))
    return is_off if is_off.any() else None


def rows_to_place(problem: Problem) -> BoolArray:
    """(P,): the partitions that a placement may change. They are movable, and forced unless `rebalance` is `all`."""
    return problem.movable & (problem.forced | (problem.rebalance == "all"))


def today(problem: Problem) -> IntArray:
    """Today's replicas as an assignment (P, W), padded with -1."""
    padding = problem.width - problem.replicas.shape[1]
    return np.pad(problem.replicas, ((0, 0), (0, padding)), constant_values=-1)


def with_replica_lists(problem: Problem, lists: Mapping[PartitionKey, Sequence[int]]) -> IntArray:
    """(P, W): today's replicas, but those of `lists` (broker ids, by topic and partition id) for its partitions."""
    row_of = problem.row_of
    index_of = {broker: index for index, broker in enumerate(problem.broker_ids.tolist())}
    assignment = today(problem)
    extra = max(max(map(len, lists.values()), default=0) - assignment.shape[1], 0)
    assignment = np.pad(assignment, ((0, 0), (0, extra)), constant_values=-1)
    for key, brokers in lists.items():
        assignment[row_of[key]] = [
            *(index_of[broker] for broker in brokers),
            *[-1] * (assignment.shape[1] - len(brokers)),
        ]
    return assignment


def with_replacements(problem: Problem, brokers: IntArray) -> IntArray:
    """Brokers (P, K), each replaced by its replacement, unless the partition already has a replica on that broker."""
    successors = np.where(brokers >= 0, problem.replacements[brokers], -1)
    is_taken = (successors[:, :, None] == problem.replicas[:, None, :]).any(axis=2)
    return np.where((successors >= 0) & ~is_taken, successors, brokers).astype(np.int32)


def led_now(problem: Problem) -> IntArray:
    """(P, 2): each partition's preferred leader and leader today, -1: none; or the brokers that replace them. In place
    of a preferred leader in no ISR, which isn't elected, it has the leader.
    """
    leaders = with_replacements(problem, np.stack([problem.replicas[:, 0], problem.leaders], axis=1))
    if problem.out_of_sync is not None:
        is_off = (leaders[:, 1] >= 0) & np.append(problem.out_of_sync, False)[leaders[:, 0]]
        leaders[is_off, 0] = leaders[is_off, 1]
    return leaders


def brokers_after(spec: Spec) -> list[Broker]:
    """Today's brokers and the added ones, sorted by id, with their racks after the change."""
    racks = dict(spec.changes.set_racks)
    brokers = spec.all_brokers
    return sorted((replace(each, rack=racks.get(each.id, each.rack)) for each in brokers), key=lambda broker: broker.id)


def network_limits(spec: Spec) -> LongArray:
    """(B,): each broker's `capacity.network`, -1 if not stated."""
    return _longs(-1 if (limit := each.network_bytes_per_sec) is None else limit for each in brokers_after(spec))


def disk_limit(spec: Spec, of: Broker | BrokerClass) -> int | None:
    """The most bytes a broker may hold: its `capacity.max_disk`, and what `limits.disk_used` allows of its disk."""
    room = None if of.disk_bytes is None else spec.limits.on_disk(of.disk_bytes)
    return min((each for each in (room, of.max_disk_bytes) if each is not None), default=None)


def _rack_indices(brokers: Sequence[Broker]) -> tuple[tuple[str, ...], IntArray]:
    names = tuple(sorted({broker.rack for broker in brokers if broker.rack is not None}))
    index_of = {name: index for index, name in enumerate(names)}
    return names, _ints(-1 if broker.rack is None else index_of[broker.rack] for broker in brokers)


def _weights(targets: BoolArray, capacities: Sequence[int | None]) -> LongArray:
    """(B,): each broker's stated capacity as its weight; equal weights unless all target brokers state one."""
    if any(value is None for value, target in zip(capacities, targets, strict=True) if target):
        return np.ones(len(targets), dtype=np.int64)
    return _longs(value or 0 for value in capacities)


def _broker_fields(spec: Spec, brokers: Sequence[Broker], ids: IntArray, targets: BoolArray) -> dict[str, Any]:
    """The fields of a `Problem` by broker and by rack, except `broker_ids` and `targets`, which the caller has."""
    names, racks = _rack_indices(brokers)
    index_of = {broker: position for position, broker in enumerate(ids.tolist())}
    replacements = np.full(len(ids), -1, dtype=np.int32)
    for old, new in spec.changes.replace_brokers:
        replacements[index_of[old]] = index_of[new]
    disks = [broker.disk_bytes for broker in brokers]
    stated_caps = [each.max_replicas for each in brokers], [each.max_leaders for each in brokers]
    caps = np.array([[UNCAPPED if cap is None else cap for cap in values] for values in stated_caps], dtype=np.int64)
    return {
        "broker_racks": racks,
        "rack_names": names,
        "replacements": replacements,
        "caps": None if (caps == UNCAPPED).all() else caps,
        "disk_bytes": _weights(targets, disks),
        "network_bytes_per_sec": _weights(targets, [broker.network_bytes_per_sec for broker in brokers]),
        "disk_limit_bytes": _longs(-1 if (limit := disk_limit(spec, each)) is None else limit for each in brokers),
    }


def _scenario_ppm(spec: Spec, topics: Sequence[Topic], topic_of: IntArray) -> LongArray | None:
    """(S, P): each scenario's factor for each partition's bytes, in millionths; None without scenarios."""
    if not spec.sweep.growth:
        return None
    factors = [
        [scenario.factor if fnmatchcase(topic.name, scenario.topics) else 1 for topic in topics]
        for scenario in spec.sweep.growth
    ]
    ppm: LongArray = np.rint(np.array(factors, dtype=np.float64) * PPM).astype(np.int64)[:, topic_of]
    return ppm


def _replication_factors(spec: Spec, topics: Sequence[Topic], replicas: IntArray) -> IntArray:
    replica_counts = (replicas >= 0).sum(axis=1).astype(np.int32)
    counts = [len(topic.partitions) for topic in topics]
    of_new = {new.topic: new.replication_factor for new in spec.changes.new_partitions}
    new_factors = np.repeat(_ints(of_new.get(topic.name, 0) for topic in topics), counts)
    rules = [
        None if topic.deleting else first_rule(topic.name, spec.changes.set_replication_factor) for topic in topics
    ]
    per_row = np.repeat(_ints(0 if rule is None else rule.replication_factor for rule in rules), counts)
    factors = np.where(per_row > 0, per_row, replica_counts)
    return np.where(replica_counts > 0, factors, new_factors).astype(np.int32)


def _replica_matrix(rows: Sequence[Partition], ids: IntArray) -> IntArray:
    lengths = _ints(len(row.replicas) for row in rows)
    width = int(lengths.max(initial=1))
    flat = _ints(broker for row in rows for broker in row.replicas)
    matrix = np.full((len(rows), width), -1, dtype=np.int32)
    matrix[np.arange(width) < lengths[:, None]] = _indices(ids, flat)
    return matrix


def _indices(ids: IntArray, brokers: IntArray) -> IntArray:
    """The position of each broker in the sorted ids, -1 for a broker that isn't among them."""
    positions = np.searchsorted(ids, brokers).clip(max=len(ids) - 1)
    return np.where(ids[positions] == brokers, positions, -1).astype(np.int32)


def _longs(values: Iterable[int]) -> LongArray:
    return np.fromiter(values, dtype=np.int64)


def _ints(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int32)


def hours_of_partitions(problem: Problem, week: WeekOfLoad) -> LongArray:
    """(2, P, 168): bytes/s in and out of each partition of the problem in each hour of the week."""
    return week.hours_of(problem.partition_keys, np.stack([problem.bytes_in_per_sec, problem.bytes_out_per_sec]))


def hours_of_brokers(problem: Problem, hours: LongArray, replicas: IntArray, leaders: IntArray) -> LongArray:
    """(2, B, 168): bytes/s in and out of every broker under replicas (P, W) and leaders (P,); -1 is none.

    `hours` come from `hours_of_partitions`. As in `broker_loads`, every replica receives what producers write, and the
    leader sends that to each follower and also what consumers read.
    """
    loads = np.zeros((2, len(problem.broker_ids), HOURS_OF_WEEK), dtype=np.int64)
    for position in replicas.T:
        rows = np.flatnonzero(position >= 0)
        np.add.at(loads[0], position[rows], hours[0, rows])
    led_rows = np.flatnonzero(leaders >= 0)
    followers = np.maximum((replicas[led_rows] >= 0).sum(axis=1) - 1, 0)[:, None]
    np.add.at(loads[1], leaders[led_rows], hours[0, led_rows] * followers + hours[1, led_rows])
    return loads


def with_week(problem: Problem, spec: Spec, week: WeekOfLoad) -> Problem:
    """The problem with the hours of the week. If the plan is made for them, today's busiest hours become scenarios,
    after the problem's other scenarios.
    """
    hours = hours_of_partitions(problem, week)
    # int32 halves the memory, if the rates fit.
    stored = hours.astype(np.int32) if hours.max(initial=0) <= np.iinfo(np.int32).max else hours
    shares = spec.traffic.consumers if spec.traffic.nearest else {}
    near = [shares.get(rack, 0) for rack in problem.rack_names]
    read_in_racks = _longs(near) if any(near) else None
    problem = replace(problem, week=stored, network_limit=network_limits(spec), read_in_racks=read_in_racks)
    busiest = (
        busiest_hours(hours_of_brokers(problem, hours, problem.replicas, problem.leaders)) if week.planned_for else ()
    )
    if not busiest:
        return problem
    return replace(
        problem,
        scenario_names=(*problem.scenario_names, *(hour_name(hour, week.time_zone) for hour in busiest)),
        scenario_hours=np.ascontiguousarray(np.moveaxis(hours[:, :, list(busiest)], 2, 0)),
    )
