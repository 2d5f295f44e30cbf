"""Finds what is left of an approved plan on the cluster as it is now, by partition, and makes the spec of that rest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from msgspec import structs
from msgspec.structs import asdict

from planner.approval.changes_since_plan import Now
from planner.approval.plan_against_cluster import PlanOnCluster, Standing, broker_differences, path_of, standing_of_new
from planner.export.folder_check import digest
from planner.inputs.cluster_load import of_means, with_rates
from planner.model import cluster
from planner.model.balance import Balance, Tolerance
from planner.model.document_fields import InputRow, StatedRateRow
from planner.model.errors import StalePlanError
from planner.model.formats import brokers, counted, first_lines, printable, replica_list
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
class Rest:
    """What is left: `changes`, sorted by topic and partition, and `made`, the replica lists of partitions to create.

    `targets` are the target lists of the plan's partitions that exist, even if they are reached already; without
    `dropped` ones. `there` counts the partitions that need no further change; `notes` are for the operator.
    """

    changes: tuple[cluster.PartitionChange, ...]
    targets: dict[cluster.PartitionKey, tuple[int, ...]]
    made: dict[cluster.PartitionKey, tuple[int, ...]]
    dropped: tuple[DroppedRow, ...]
    there: int
    notes: tuple[str, ...]


def rest_of(plan: Plan, now: Now, *, leave_moved: bool = False) -> Rest:
    """The rest of a plan. With `leave_moved`, partitions that others moved or created stay and count as dropped.

    StalePlanError for missing state; or with all partitions that others reassign now, have moved, or have created.
    """
    held = PlanOnCluster(plan, now)
    _require_known(held)
    # On the brokers of no step of the plan; the order of the brokers doesn't matter.
    elsewhere = [key for key, standing in held.standings.items() if standing is Standing.ELSEWHERE]
    strangers = {
        key: f"{'is being reassigned to' if key in now.moving else 'has replicas'} {replica_list(found.replicas)}; "
        f"the plan's lists are {path_of(held.states[key])}"
        for key in elsewhere
        if (found := held.partition(key)) is not None
    }
    new_strangers = {
        name: "it is gone" if held.lost(name) else "it has others"
        for name, new in held.made.items()
        if held.lost(name) or standing_of_new(new, now.topics.get(name)) is None
    }
    foreign = [cluster.partition_name(*key) for key in sorted(now.moving - held.rows.keys())]
    _refuse([f"{name} is being reassigned, but not by the plan; wait until that ends" for name in foreign])
    if not leave_moved:
        _refuse([f"{cluster.partition_name(*key)} {why}" for key, why in strangers.items()])
        others = [name for name in new_strangers if not held.lost(name)]
        _refuse([f"{name} has other partitions than the plan wants to make" for name in others])
    gone = {key: "it is gone" for key, standing in held.standings.items() if standing is Standing.GONE}
    left = {key: row for key, row in held.rows.items() if key not in gone and key not in strangers}
    changes = [change for row in left.values() if (change := _change(held, row)).reassigned or change.elects]
    made, not_made = _unmade(held, new_strangers)
    wait = f"{counted(held.moving, 'partition')} of the plan still being reassigned: wait until they are in place"
    return Rest(
        changes=tuple(sorted(changes, key=lambda change: change.key)),
        targets={key: row.replicas for key, row in left.items()},
        made=made,
        dropped=(
            *(DroppedRow(topic=key[0], partition=key[1], why=why) for key, why in sorted((gone | strangers).items())),
            *not_made,
        ),
        there=len(left) - len(changes),
        notes=(wait,) if held.moving else (),
    )


def _refuse(lines: Sequence[str]) -> None:
    if lines:
        raise StalePlanError(
            "nothing was written: these partitions are neither where the plan found them nor where it moves them:",
            *(f"  {line}" for line in first_lines([*map(printable, lines)], SHOWN)),
            "plan again, or leave partitions that others have moved where they are (--leave-moved)",
        )


def _require_known(held: PlanOnCluster) -> None:
    """StalePlanError if sizes or log dirs that the plan needs are unknown, or brokers aren't as planned."""
    plan, now = held.plan, held.now
    allowed = "allowed: one more --state, with the output of kafka-log-dirs --describe"
    if plan.cluster.sizes_known and now.sizes is None:
        raise StalePlanError(f"the plan counts bytes, but the state has no sizes; {allowed}")
    if any(row.log_dirs for row in plan.partitions) and not now.log_dirs.brokers:
        raise StalePlanError(f"the plan names log dirs, but the state doesn't say which replica is in which; {allowed}")
    needed = {broker for row in plan.partitions for broker in row.replicas}
    if now.racks is not None and (absent := needed - now.racks.keys()):
        raise StalePlanError(f"not live: {brokers(absent)}; the plan's target needs all of its brokers; plan again")
    if elsewhere := [str(each) for each in broker_differences(held) if each.kind in ("rack", "log_dir")]:
        raise StalePlanError(f"{'; '.join(elsewhere)}; plan again")


def _change(held: PlanOnCluster, row: PartitionRow) -> cluster.PartitionChange:
    """What is left to do for one existing partition."""
    found = held.partition(row.key)
    assert found is not None
    before, after = _log_dirs(held, row, found)
    return cluster.PartitionChange(
        topic=row.topic,
        partition=row.partition,
        before=found.replicas,
        after=row.replicas,
        leader_before=found.leader,
        size_bytes=(held.now.sizes or {}).get(row.key, row.size_bytes),
        reason=row.reason,
        bytes_in_per_sec=row.bytes_in_per_sec or 0,
        log_dirs_before=before,
        log_dirs=after,
    )


def _log_dirs(
    held: PlanOnCluster, row: PartitionRow, found: cluster.Partition
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Log dirs before and after: `any` if a replica is already in its planned log dir; empty if none are planned."""
    if row.log_dirs is None:
        return (), ()
    lies = {broker: path for broker in found.replicas if (path := held.lying.get((*row.key, broker)))}
    wanted = zip(row.replicas, row.log_dirs, strict=True)
    after = {broker: cluster.ANY if lies.get(broker) == path else path for broker, path in wanted}
    stays = {broker for broker, path in after.items() if path == cluster.ANY}
    before = (cluster.ANY if broker in stays else lies.get(broker, cluster.ANY) for broker in found.replicas)
    return tuple(before), tuple(after.values())


def _unmade(
    held: PlanOnCluster, strangers: Mapping[str, str]
) -> tuple[dict[cluster.PartitionKey, tuple[int, ...]], list[DroppedRow]]:
    """The replica lists of new partitions that are still to be created, and the topics that no longer get any."""
    made: dict[cluster.PartitionKey, tuple[int, ...]] = {}
    dropped: list[DroppedRow] = []
    for name, new in held.made.items():
        if name in strangers:
            dropped.append(DroppedRow(topic=name, partition=None, why=f"its new partitions: {strangers[name]}"))
        elif standing_of_new(new, held.now.topics.get(name)) is Standing.FOUND:
            made |= {(name, at): replicas for at, replicas in enumerate(new.replicas, new.partitions_before)}
    return made, dropped


def spec_of(plan: Plan, now: Now, rest: Rest, captured_at: str | None) -> Spec:
    """The spec of what is left."""
    inherited = {**(plan.cluster.config_defaults or {}), **dict(now.config_defaults)}
    found = tuple(_topics(plan, now))
    topics = with_rates(found, rates := tuple(_rates(plan, now, rest, found)))
    holding = cluster.brokers_holding(topics)
    unsized = sum((topic.name, each.id) not in (now.sizes or ()) for topic in topics for each in topic.partitions)
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
        apart=tuple(cluster.Apart(rule.topics, rule.sides, proven=False, by=rule.by) for rule in plan.spec.apart or ()),
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
        inputs=(InputRow("plan.json", digest(codec.encode(plan))), *now.inputs),
        captured_at=captured_at,
        valid_for_seconds=plan.validity.valid_for_seconds if plan.validity else None,
    )


def balance_of(windows: BalanceWindows) -> Balance:
    """The balance with the windows of a plan."""
    return Balance(**{name: Tolerance.parse(text) for name, text in asdict(windows).items()})


def with_traffic(spec: Spec, plan: Plan, now: Now) -> Spec:
    """The spec with the hours of the week, and the plan's growth, consumers and prices."""
    months = plan.hours.months if plan.hours else ()
    return replace(
        spec,
        growth=Monthly(
            tuple(Rate(name, ppm) for name, ppm in (plan.spec.growth_ppm or {}).items()),
            at_end=of_means(now.at_end, spec.cluster.rates),
        ),
        report=ReportSections(growth_months=months[-1].month if months else None),
        week=now.week,
        traffic=plan.spec.traffic or RackTraffic(),
    )


def _rates(plan: Plan, now: Now, rest: Rest, topics: Sequence[cluster.Topic]) -> Iterator[StatedRateRow]:
    """The YAML's rates, and the expected rates of partitions created since, unless a load profile has theirs.

    The rate of a whole topic was divided among the partitions that the topic had then; new ones got no part of it.
    """
    yield from (given := plan.spec.rates or ())
    stated, left, found = _stated(plan), {topic for topic, _ in rest.made}, {topic.name: topic for topic in topics}
    for new in plan.new_topics:
        if new.topic not in found or new.topic in left:
            continue
        topic, expected = found[new.topic], (stated[new.topic].bytes_in or 0, stated[new.topic].bytes_out or 0)
        by_topic = any(each.partition is None and fnmatchcase(topic.name, each.topics) for each in given)
        if by_topic:
            (of_then,) = with_rates((replace(topic, partitions=topic.partitions[: new.partitions_before]),), given)
            for each in of_then.partitions:
                yield StatedRateRow(topic.name, each.id, each.bytes_in_per_sec, each.bytes_out_per_sec)
        for each in topic.partitions[new.partitions_before :]:
            known = (topic.name, each.id) in now.rates
            if by_topic or (any(expected) and not known):
                rates = (each.bytes_in_per_sec, each.bytes_out_per_sec) if known else expected
                yield StatedRateRow(topic.name, each.id, *rates)


def _stated(plan: Plan) -> dict[str, CreateTopicRow | AddPartitionsRow]:
    """By topic, the changes asked for: topics to create, and topics that get more partitions."""
    return {each.name: each for each in plan.changes.create_topics} | {
        each.topic: each for each in plan.changes.add_partitions
    }


def _topics(plan: Plan, now: Now) -> Iterator[cluster.Topic]:
    """Today's topics with their sizes and rates; with the plan's configuration if the state has none."""
    rows, sizes, rates = {row.name: row for row in plan.topics}, now.sizes or {}, now.rates
    for name in sorted(now.topics):
        topic, row = now.topics[name], rows.get(name)
        if row is not None and not now.tells_configs:
            own, effective = (tuple(sorted((each or {}).items())) for each in (row.config, row.effective_config))
            topic = replace(topic, config=own, effective_config=effective)
        loads = (
            (each, sizes.get((name, each.id), 0), *rates.get((name, each.id), (0, 0))) for each in topic.partitions
        )
        partitions = (
            replace(each, size_bytes=size, bytes_in_per_sec=received, bytes_out_per_sec=sent)
            for each, size, received, sent in loads
        )
        yield replace(topic, partitions=tuple(partitions))


def _brokers(plan: Plan, now: Now, holding: set[int]) -> tuple[cluster.Broker, ...]:
    """Today's brokers: those that stay, and all others that hold replicas.

    The racks are those before `set_racks`, unless the state says that a broker is in another rack now.
    """
    racks = {row.id: row.rack for row in plan.brokers}
    for broker, rack in (plan.spec.racks_before or {}).items():
        racks[int(broker)] = (now.racks or {}).get(int(broker), rack)
    kept = (row for row in plan.brokers if row.role == "stays" or row.id in holding)
    there = [replace(_broker(row), rack=racks[row.id]) for row in kept]
    there += [cluster.Broker(number, (now.racks or {}).get(number)) for number in sorted(holding - racks.keys())]
    return tuple(replace(each, cordoned_log_dirs=now.cordoned.get(each.id, ())) for each in there)


def _broker(row: BrokerRow) -> cluster.Broker:
    caps = row.max_replicas, row.max_leaders, row.max_disk_bytes
    return cluster.Broker(row.id, row.rack, row.disk_bytes, row.network_bytes_per_sec, (), *caps)


def _changes(plan: Plan, now: Now, rest: Rest, holding: set[int]) -> Changes:
    """The changes asked for, without those that are done.

    An added broker that already holds replicas isn't new any more; a leaving broker that holds none isn't listed.
    """
    asked, known = plan.changes, {row.id for row in plan.brokers}
    resizes = any(len(change.before) != len(change.after) for change in rest.changes)
    stated, left = _stated(plan), {topic for topic, _ in rest.made}
    return Changes(
        add_brokers=tuple(
            replace(_broker(row), cordoned_log_dirs=now.cordoned.get(row.id, ()))
            for row in plan.brokers
            if row.role == "added" and row.id not in holding
        ),
        remove_brokers=tuple(broker for broker in asked.remove_brokers if broker in holding),
        replace_brokers=tuple((int(old), new) for old, new in asked.replace_brokers.items() if int(old) in holding),
        set_racks=tuple((int(broker), rack) for broker, rack in asked.set_racks.items() if int(broker) in known),
        set_replication_factor=asked.set_replication_factor if resizes or plan.unfinished else (),
        new_partitions=tuple(
            NewPartitions(
                new.topic,
                new.partitions_before,
                new.partitions,
                new.replication_factor,
                tuple(sorted(new.config.items())),
                *(getattr(stated[new.topic], key) or 0 for key in ("size", "bytes_in", "bytes_out")),
            )
            for new in plan.new_topics
            if new.topic in left
        ),
        demote_brokers=asked.demote_brokers or (),
        rebalance=asked.rebalance,
    )
