"""Finds what is left of an approved plan on the cluster as it is now, by partition, and makes the spec of that rest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from msgspec import structs
from msgspec.structs import asdict

from planner.approval.changes_since_plan import ClusterNow
from planner.approval.plan_against_cluster import (
    PlanOnCluster,
    Standing,
    broker_differences,
    lists_path,
    standing_of_new,
)
from planner.inputs.cluster_load import unstated_ends, with_rates
from planner.model import cluster, file_reading
from planner.model.balance import Balance, Tolerance
from planner.model.document_fields import InputRow, StatedRateRow
from planner.model.errors import StalePlanError
from planner.model.formats import brokers, counted, first_lines, printable, replica_list, size
from planner.model.spec import (
    Changes,
    Execution,
    Monthly,
    NewPartitions,
    RackTraffic,
    Rate,
    ReportSections,
    Spec,
    Sweep,
    TopicFilter,
)
from planner.plan.document import codec
from planner.plan.document.cluster_types import BrokerRow
from planner.plan.document.comparison_types import BalanceWindows
from planner.plan.document.partition_types import PartitionRow
from planner.plan.document.plan_types import Plan
from planner.plan.document.request_types import AddPartitionsRow, CreateTopicRow, DroppedRow

SHOWN = 20


@dataclass(frozen=True)
class RemainingChanges:
    """What is left: `changes`, sorted by topic and partition, and `to_create`, replica lists of new partitions.

    `targets` are the target lists of the plan's partitions that exist, even if they are reached already; without
    `dropped` ones. `in_place` counts the partitions that need no further change; `notes` are for the operator.
    """

    changes: tuple[cluster.PartitionChange, ...]
    targets: dict[cluster.PartitionKey, tuple[int, ...]]
    to_create: dict[cluster.PartitionKey, tuple[int, ...]]
    dropped: tuple[DroppedRow, ...]
    in_place: int
    notes: tuple[str, ...]

    def between_log_dirs(self) -> Iterator[str]:
        """A note on the replicas that move between log dirs of their broker; none if none do."""
        sizes = []
        for each in self.changes:
            now = dict(zip(each.before, each.log_dirs_before, strict=False))
            then = dict(zip(each.after, each.log_dirs, strict=False))
            sizes += [each.size_bytes for broker, path in then.items() if now.get(broker, path) != path]
        if sizes:
            yield (
                f"also moves {counted(len(sizes), 'replica')} ({size(sum(sizes))}) from one log dir to another, and a "
                "rollback moves them back; only the times count that, and the log dirs' room isn't checked"
            )


def changes_left(plan: Plan, now: ClusterNow, *, leave_moved: bool = False) -> RemainingChanges:
    """The rest of a plan. With `leave_moved`, partitions that others moved or created stay and count as dropped.

    StalePlanError for missing state; or with all partitions that others reassign now, have moved, or have created.
    """
    compared = PlanOnCluster(plan, now)
    _require_known(compared)
    # On the brokers of no step of the plan; the order of the brokers doesn't matter.
    elsewhere = [key for key, standing in compared.standings.items() if standing is Standing.ELSEWHERE]
    strangers = {
        key: f"{'is being reassigned to' if key in now.moving else 'has replicas'} {replica_list(partition.replicas)}; "
        f"the plan's lists are {lists_path(compared.states[key])}"
        for key in elsewhere
        if (partition := compared.partition(key)) is not None
    }
    new_strangers = {
        name: "it is gone" if compared.lost_topic(name) else "it has others"
        for name, new in compared.new_by_topic.items()
        if compared.lost_topic(name) or standing_of_new(new, now.topics.get(name)) is None
    }
    foreign = [cluster.partition_name(*key) for key in sorted(now.moving - compared.rows.keys())]
    _refuse([f"{name} is being reassigned, but not by the plan; wait until that ends" for name in foreign])
    if not leave_moved:
        _refuse([f"{cluster.partition_name(*key)} {why}" for key, why in strangers.items()])
        other_topics = [name for name in new_strangers if not compared.lost_topic(name)]
        _refuse([f"{name} has other partitions than the plan wants to make" for name in other_topics])
    gone = {key: "it is gone" for key, standing in compared.standings.items() if standing is Standing.GONE}
    remaining = {key: row for key, row in compared.rows.items() if key not in gone and key not in strangers}
    changes = [change for row in remaining.values() if (change := _change(compared, row)).reassigned or change.elects]
    to_create, dropped_topics = _not_created(compared, new_strangers)
    wait = f"{counted(compared.moving, 'partition')} of the plan still being reassigned: wait until they are in place"
    return RemainingChanges(
        changes=tuple(sorted(changes, key=lambda change: change.key)),
        targets={key: row.replicas for key, row in remaining.items()},
        to_create=to_create,
        dropped=(
            *(DroppedRow(topic=key[0], partition=key[1], why=why) for key, why in sorted((gone | strangers).items())),
            *dropped_topics,
        ),
        in_place=len(remaining) - len(changes),
        notes=(wait,) if compared.moving else (),
    )


def _refuse(lines: Sequence[str]) -> None:
    if lines:
        raise StalePlanError(
            "nothing was written: these partitions are neither where the plan found them nor where it moves them:",
            *(f"  {line}" for line in first_lines([*map(printable, lines)], SHOWN)),
            "plan again, or leave partitions that others have moved where they are (--leave-moved)",
        )


def _require_known(compared: PlanOnCluster) -> None:
    """StalePlanError if sizes or log dirs that the plan needs are unknown, or brokers aren't as planned."""
    plan, now = compared.plan, compared.now
    allowed = "allowed: one more --state, with the output of kafka-log-dirs --describe"
    if plan.cluster.sizes_known and now.sizes is None:
        raise StalePlanError(f"the plan counts bytes, but the state has no sizes; {allowed}")
    if any(row.log_dirs for row in plan.partitions) and not now.log_dirs.brokers:
        raise StalePlanError(f"the plan names log dirs, but the state doesn't say which replica is in which; {allowed}")
    needed = {broker for row in plan.partitions for broker in row.replicas}
    if now.racks is not None and (absent := needed - now.racks.keys()):
        raise StalePlanError(f"not live: {brokers(absent)}; the plan's target needs all of its brokers; plan again")
    if differences := [str(each) for each in broker_differences(compared) if each.kind in ("rack", "log_dir")]:
        raise StalePlanError(f"{'; '.join(differences)}; plan again")


def _change(compared: PlanOnCluster, row: PartitionRow) -> cluster.PartitionChange:
    """What is left to do for one existing partition."""
    partition = compared.partition(row.key)
    assert partition is not None
    before, after = _log_dirs(compared, row, partition)
    return cluster.PartitionChange(
        topic=row.topic,
        partition=row.partition,
        before=partition.replicas,
        after=row.replicas,
        leader_before=partition.leader,
        size_bytes=(compared.now.sizes or {}).get(row.key, row.size_bytes),
        reason=row.reason,
        bytes_in_per_sec=row.bytes_in_per_sec or 0,
        log_dirs_before=before,
        log_dirs=after,
    )


def _log_dirs(
    compared: PlanOnCluster, row: PartitionRow, partition: cluster.Partition
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Log dirs before and after: `any` if a replica is already in its planned log dir; empty if none are planned."""
    if row.log_dirs is None:
        return (), ()
    dirs = {broker: path for broker in partition.replicas if (path := compared.log_dir_of.get((*row.key, broker)))}
    planned_dirs = zip(row.replicas, row.log_dirs, strict=True)
    after = {broker: cluster.ANY if dirs.get(broker) == path else path for broker, path in planned_dirs}
    staying = {broker for broker, path in after.items() if path == cluster.ANY}
    before = (cluster.ANY if broker in staying else dirs.get(broker, cluster.ANY) for broker in partition.replicas)
    return tuple(before), tuple(after.values())


def _not_created(
    compared: PlanOnCluster, strangers: Mapping[str, str]
) -> tuple[dict[cluster.PartitionKey, tuple[int, ...]], list[DroppedRow]]:
    """The replica lists of new partitions that are still to be created, and the topics that no longer get any."""
    to_create: dict[cluster.PartitionKey, tuple[int, ...]] = {}
    dropped: list[DroppedRow] = []
    for name, new in compared.new_by_topic.items():
        if name in strangers:
            dropped.append(DroppedRow(topic=name, partition=None, why=f"its new partitions: {strangers[name]}"))
        elif standing_of_new(new, compared.now.topics.get(name)) is Standing.FOUND:
            to_create |= {(name, index): replicas for index, replicas in enumerate(new.replicas, new.partitions_before)}
    return to_create, dropped


def spec_of(plan: Plan, now: ClusterNow, rest: RemainingChanges, captured_at: str | None) -> Spec:
    """The spec of what is left."""
    inherited = {**(plan.cluster.config_defaults or {}), **dict(now.config_defaults)}
    topics_now = tuple(_topics(plan, now))
    topics = with_rates(topics_now, rates := tuple(_rates(plan, now, rest, topics_now)))
    holding = cluster.brokers_holding(topics)
    unsized = sum(key not in (now.sizes or ()) for key, _ in cluster.keyed_partitions(topics))
    return Spec(
        cluster=cluster.Cluster(
            name=plan.cluster.name,
            brokers=_brokers(plan, now, holding),
            topics=topics,
            bootstrap_servers=plan.cluster.bootstrap_servers,
            sizes_known=now.sizes is not None,
            unsized=unsized if now.sizes else 0,
            config_defaults=tuple(sorted(inherited.items())),
            rates=rates,
            notes=now.disagreements,
        ),
        changes=_changes(plan, now, rest, holding),
        topics=TopicFilter(plan.spec.topics.include, plan.spec.topics.exclude, plan.spec.topics.on_brokers or ()),
        placement=plan.spec.placement or (),
        leader_racks=plan.spec.leader_racks or (),
        apart=tuple(structs.replace(rule, proven=False) for rule in plan.spec.apart or ()),
        together=plan.spec.together or (),
        rack_aware=plan.rack_aware,
        racks_as_today=bool(plan.spec.racks_as_today),
        balance=balance_of(plan.balance.wanted),
        resilience=plan.spec.survive,
        sweep=Sweep(aims=plan.spec.aims),
        # The rest has no separate bound, so `limits.gap` doesn't apply.
        limits=structs.replace(plan.spec.limits, gap_ppm=None),
        execution=Execution(
            throttle_bytes_per_sec=plan.execution.throttle_bytes_per_sec,
            batches=plan.execution.batches,
            kafka_bin_dir=plan.execution.kafka_bin_dir,
            derived=plan.execution.derived,
        ),
        inputs=(InputRow("plan.json", file_reading.digest(codec.encode(plan))), *now.inputs),
        captured_at=captured_at,
        valid_for_seconds=plan.validity.valid_for_seconds if plan.validity else None,
    )


def balance_of(windows: BalanceWindows) -> Balance:
    """The balance with the windows of a plan."""
    return Balance(**{name: Tolerance.parse(text) for name, text in asdict(windows).items()})


def with_traffic(spec: Spec, plan: Plan, now: ClusterNow) -> Spec:
    """The spec with the hours of the week, and the plan's growth, consumers and prices."""
    months = plan.hours.months if plan.hours else ()
    return replace(
        spec,
        growth=Monthly(
            tuple(Rate(name, ppm) for name, ppm in (plan.spec.growth_ppm or {}).items()),
            at_end=unstated_ends(now.at_end, spec.cluster.rates),
        ),
        report=ReportSections(growth_months=months[-1].month if months else None),
        week=now.week,
        traffic=plan.spec.traffic or RackTraffic(),
    )


def _rates(
    plan: Plan, now: ClusterNow, rest: RemainingChanges, topics: Sequence[cluster.Topic]
) -> Iterator[StatedRateRow]:
    """The YAML's rates, and the expected rates of partitions created since, unless a load profile has theirs.

    The rate of a whole topic was divided among the partitions that the topic had then; new ones got no part of it.
    """
    yield from (stated := plan.spec.rates or ())
    requests, not_created, topic_of = (
        _topic_requests(plan),
        {topic for topic, _ in rest.to_create},
        {topic.name: topic for topic in topics},
    )
    for new in plan.new_topics:
        if new.topic not in topic_of or new.topic in not_created:
            continue
        topic, expected = topic_of[new.topic], (requests[new.topic].bytes_in or 0, requests[new.topic].bytes_out or 0)
        by_topic = any(each.partition is None and fnmatchcase(topic.name, each.topics) for each in stated)
        if by_topic:
            (of_then,) = with_rates((replace(topic, partitions=topic.partitions[: new.partitions_before]),), stated)
            for each in of_then.partitions:
                yield StatedRateRow(topic.name, each.id, each.bytes_in_per_sec, each.bytes_out_per_sec)
        for each in topic.partitions[new.partitions_before :]:
            has_rate = (topic.name, each.id) in now.rates
            if by_topic or (any(expected) and not has_rate):
                rates = (each.bytes_in_per_sec, each.bytes_out_per_sec) if has_rate else expected
                yield StatedRateRow(topic.name, each.id, *rates)


def _topic_requests(plan: Plan) -> dict[str, CreateTopicRow | AddPartitionsRow]:
    """By topic, the changes asked for: topics to create, and topics that get more partitions."""
    return {each.name: each for each in plan.changes.create_topics} | {
        each.topic: each for each in plan.changes.add_partitions
    }


def _topics(plan: Plan, now: ClusterNow) -> Iterator[cluster.Topic]:
    """Today's topics with their sizes and rates; with the plan's configuration if the state has none."""
    rows, sizes, rates = {row.name: row for row in plan.topics}, now.sizes or {}, now.rates
    for name in sorted(now.topics):
        topic, row = now.topics[name], rows.get(name)
        if row is not None and not now.tells_configs:
            config, effective = (tuple(sorted((each or {}).items())) for each in (row.config, row.effective_config))
            topic = replace(topic, config=config, effective_config=effective)
        loads = (
            (each, sizes.get((name, each.id), 0), *rates.get((name, each.id), (0, 0))) for each in topic.partitions
        )
        partitions = (
            replace(each, size_bytes=size, bytes_in_per_sec=received, bytes_out_per_sec=sent)
            for each, size, received, sent in loads
        )
        yield replace(topic, partitions=tuple(partitions))


def _brokers(plan: Plan, now: ClusterNow, holding: set[int]) -> tuple[cluster.Broker, ...]:
    """Today's brokers: those that stay, and all others that hold replicas.

    The racks are those before `set_racks`, unless the state says that a broker is in another rack now.
    """
    racks = {row.id: row.rack for row in plan.brokers}
    for broker, rack in (plan.spec.racks_before or {}).items():
        racks[int(broker)] = (now.racks or {}).get(int(broker), rack)
    rows = (row for row in plan.brokers if row.role == "stays" or row.id in holding)
    brokers_now = [replace(_broker(row), rack=racks[row.id]) for row in rows]
    brokers_now += [cluster.Broker(number, (now.racks or {}).get(number)) for number in sorted(holding - racks.keys())]
    return tuple(replace(each, cordoned_log_dirs=now.cordoned.get(each.id, ())) for each in brokers_now)


def _broker(row: BrokerRow) -> cluster.Broker:
    caps = row.max_replicas, row.max_leaders, row.max_disk_bytes
    return cluster.Broker(row.id, row.rack, row.disk_bytes, row.network_bytes_per_sec, (), *caps)


def _changes(plan: Plan, now: ClusterNow, rest: RemainingChanges, holding: set[int]) -> Changes:
    """The changes asked for, without those that are done.

    An added broker that already holds replicas isn't new any more; a leaving broker that holds none isn't listed.
    """
    requested, ids = plan.changes, {row.id for row in plan.brokers}
    resizes = any(len(change.before) != len(change.after) for change in rest.changes)
    requests, not_created = _topic_requests(plan), {topic for topic, _ in rest.to_create}
    return Changes(
        add_brokers=tuple(
            replace(_broker(row), cordoned_log_dirs=now.cordoned.get(row.id, ()))
            for row in plan.brokers
            if row.role == "added" and row.id not in holding
        ),
        remove_brokers=tuple(broker for broker in requested.remove_brokers if broker in holding),
        replace_brokers=tuple((int(old), new) for old, new in requested.replace_brokers.items() if int(old) in holding),
        set_racks=tuple((int(broker), rack) for broker, rack in requested.set_racks.items() if int(broker) in ids),
        set_replication_factor=requested.set_replication_factor if resizes or plan.unfinished else (),
        new_partitions=tuple(
            NewPartitions(
                new.topic,
                new.partitions_before,
                new.partitions,
                new.replication_factor,
                tuple(sorted(new.config.items())),
                *(getattr(requests[new.topic], key) or 0 for key in ("size", "bytes_in", "bytes_out")),
            )
            for new in plan.new_topics
            if new.topic in not_created
        ),
        demote_brokers=requested.demote_brokers or (),
        rebalance=requested.rebalance,
    )
