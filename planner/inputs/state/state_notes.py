"""Sentences about conditions of the cluster that an operator should know before planning."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from planner.inputs.importers.state_parts import RegisteredBroker, StatePart
from planner.inputs.state.merge import Merged, rack_named
from planner.model.cluster import (
    CONFIGS_UNKNOWN,
    Broker,
    Config,
    Partition,
    PartitionKey,
    a_few,
    brokers_down,
    keyed_partitions,
    partition_name,
    possible_reassignments,
)
from planner.model.formats import brokers as named_brokers
from planner.model.formats import counted, first_names


def conditions(merged: Merged) -> Iterator[str]:
    """One sentence for each abnormal condition, with the first few partitions or topics."""
    topics = merged.assignment.topics
    rows = list(keyed_partitions(topics))
    mixed = [topic.name for topic in topics if len({len(each.replicas) for each in topic.partitions}) > 1]
    deleting = [topic.name for topic in topics if topic.deleting]
    yield from _partitions(rows)
    if mixed:
        yield f"{a_few(mixed)} with unlike replication factors within the topic"
    if deleting:
        yield f"{a_few(deleting)} marked for deletion: kept as is"
    yield from (sentence for _, sentence in brokers_down(row for _, row in rows))
    yield from possible_reassignments(topics)
    for broker, dirs in sorted(merged.cordoned.items()):
        yield f"broker {broker} is cordoned (cordoned.log.dirs={','.join(dirs)}): no plan may copy to these log dirs"
    yield from _unknown_brokers(rows, merged.brokers)
    if merged.sizes is None:
        yield "sizes are unknown: add the output of kafka-log-dirs --describe"
    elif without := [partition_name(*key) for key, _ in rows if key not in merged.sizes]:
        yield f"{a_few(without, 'partition')} without a size, counted as empty"
    if not merged.configs_known:
        yield CONFIGS_UNKNOWN
    yield from unknown_origin({topic.name: topic.effective_config for topic in topics})


def _partitions(rows: Sequence[tuple[PartitionKey, Partition]]) -> Iterator[str]:
    offline = [partition_name(*key) for key, row in rows if row.leader is None]
    lagging = [
        partition_name(*key)
        for key, row in rows
        if row.isr is not None and row.leader is not None and len(row.isr) < len(row.replicas)
    ]
    strayed = sum(row.leader is not None and row.leader != row.replicas[0] for _, row in rows)
    if offline:
        yield f"{a_few(offline, 'partition')} without a leader: offline"
    if lagging:
        yield f"{a_few(lagging, 'partition')} under-replicated"
    if strayed:
        yield f"{strayed:,} of {len(rows):,} partitions not led by their preferred leaders"


def _unknown_brokers(
    rows: Sequence[tuple[PartitionKey, Partition]], registered: Sequence[RegisteredBroker]
) -> Iterator[str]:
    """Notes on brokers that hold replicas but aren't live, if the live ones are known; and on brokers without racks."""
    live = {broker.id for broker in registered}
    holders = sorted({broker for _, row in rows for broker in row.replicas})
    for broker in holders:
        if live and broker not in live:
            yield f"broker {broker} holds replicas, but isn't live: its rack isn't known"
    rackless = [broker for broker in registered if broker.rack is None]
    if len(rackless) < len(registered):
        for each in rackless:
            yield f"broker {each.id} has no rack by {each.source}, but others have one: state it, or leave out all"
    else:
        yield "racks are unknown: add them to cluster.brokers, or the output of kafka-broker-api-versions"


def left_out_brokers(parts: Iterable[StatePart], listed: Iterable[Broker]) -> Iterator[str]:
    """Notes on brokers without replicas that only kafka-log-dirs names, which doesn't know their racks."""
    listed_ids = {broker.id for broker in listed}
    for part in parts:
        if idle := [broker for broker in part.idle if broker not in listed_ids]:
            yield (
                f"{part.file} has {named_brokers(idle)} without a replica: left out of cluster.brokers; write "
                f"{'it' if len(idle) == 1 else 'them'} there, or add the output of kafka-broker-api-versions"
            )
            listed_ids.update(idle)


def unknown_origin(effective: Mapping[str, Config]) -> Iterator[str]:
    """A note on configurations in force of unknown origin, and on the source that would show it."""
    if topics := [topic for topic, config in effective.items() if config]:
        keys = sorted({key for config in effective.values() for key, _ in config})
        names = f"{first_names(keys, 2)} ({counted(len(topics), 'topic')})"
        yield (
            f"unknown whether topics have their own {names} or inherit it: the tfvars leave these topics' configs out; "
            "add the output of kafka-configs --describe --entity-type topics --all, which says so"
        )


def broker_notes(
    listed: Sequence[Broker], joining: Sequence[Broker], registered: Sequence[RegisteredBroker]
) -> Iterator[str]:
    """Notes where the YAML's brokers differ from the registered ones. Brokers that join need not be registered."""
    lists = {"cluster.brokers": listed, "changes": joining}
    racks = {broker.id: (broker.rack, key) for key, brokers in lists.items() for broker in brokers}
    for broker in registered:
        if broker.id not in racks:
            yield f"broker {broker.id} is live by {broker.source}, but isn't in cluster.brokers: it gets no replica"
        elif broker.rack != racks[broker.id][0]:
            rack, key = racks[broker.id]
            text = f"broker {broker.id} is in rack {rack_named(broker.rack)} by {broker.source}"
            yield f"{text}, in rack {rack_named(rack)} by {key}, which counts"
    live = {broker.id for broker in registered}
    for each in listed if registered else ():
        if each.id not in live:
            yield f"broker {each.id} of cluster.brokers isn't among the live ones of {registered[0].source}"
