"""From a document that the schema has accepted to the model's values: units gone, defaults filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from planner.amounts import parse_bytes, parse_bytes_per_sec, parse_seconds
from planner.balance import Balance, BalanceGrid, Tolerance
from planner.importers.entries import Assignment, Config, Entry
from planner.model import (
    BatchRules,
    Broker,
    Changes,
    Cluster,
    Execution,
    InputFile,
    Limits,
    Partition,
    ReplicationFactorChange,
    Spec,
    Sweep,
    Topic,
    TopicFilter,
)
from planner.yaml_source import Document, key_text

# The keys that `target_brokers` reads; a rule that uses it must not run where one of them is broken.
TARGET_KEYS = (
    "cluster.brokers",
    "changes.add_brokers",
    "changes.remove_brokers",
    "changes.replace_brokers",
    "changes.set_racks",
)

_COUNTS = ("replicas", "leaders", "topic_replicas", "topic_leaders")


@dataclass(frozen=True)
class Sizes:
    """Whether sizes are known, and how many partitions have none although others have one."""

    known: bool = False
    unsized: int = 0


def build_spec(document: Document, assignment: Assignment, sizes: Sizes, inputs: tuple[InputFile, ...]) -> Spec:
    """The spec; the document and the assignment have passed every check."""
    return Spec(
        cluster=Cluster(
            name=document.get("cluster", "name"),
            brokers=brokers_today(document),
            topics=_with_rates(document, assignment.topics),
            bootstrap_servers=tuple(document.get("cluster", "bootstrap_servers") or ()),
            sizes_known=sizes.known,
            unsized=sizes.unsized,
        ),
        changes=_changes(document),
        topics=topic_filter(document),
        rack_aware=rack_aware(document),
        balance=Balance(**_tolerances(document)),
        limits=_limits(document.get("limits") or {}),
        sweep=_sweep(document),
        execution=_execution(document.get("execution") or {}),
        inputs=inputs,
    )


def brokers_today(document: Document) -> tuple[Broker, ...]:
    """`cluster.brokers`, in the file's order."""
    return tuple(map(_broker, document.get("cluster", "brokers") or ()))


def added_brokers(document: Document) -> tuple[Broker, ...]:
    """`changes.add_brokers`, in the file's order."""
    return tuple(map(_broker, document.get("changes", "add_brokers") or ()))


def replacements(document: Document) -> tuple[tuple[int, int], ...]:
    """`changes.replace_brokers` as (old id, new id), in the file's order."""
    return tuple((int(old), new) for old, new in (document.get("changes", "replace_brokers") or {}).items())


def set_racks(document: Document) -> tuple[tuple[int, str], ...]:
    """`changes.set_racks` as (id, rack), in the file's order."""
    return tuple((int(broker), rack) for broker, rack in (document.get("changes", "set_racks") or {}).items())


def joining_brokers(document: Document) -> tuple[Broker, ...]:
    """The brokers added, and the replacements named nowhere else: in the rack, with the disk, of whom they replace."""
    added = added_brokers(document)
    today = {broker.id: broker for broker in brokers_today(document)}
    known = {*today, *(broker.id for broker in added)}
    pairs = [(today.get(old, Broker(old)), new) for old, new in replacements(document) if new not in known]
    inherited = {new: replace(old, id=new) for old, new in pairs}
    return (*added, *inherited.values())


def leaving_brokers(document: Document) -> frozenset[int]:
    """The brokers that hold nothing afterwards: removed or replaced."""
    removed = document.get("changes", "remove_brokers") or ()
    return frozenset((*removed, *(old for old, _ in replacements(document))))


def target_brokers(document: Document) -> tuple[Broker, ...]:
    """The brokers that may hold replicas afterwards, with the racks that they will have."""
    racks, leaving = dict(set_racks(document)), leaving_brokers(document)
    brokers = brokers_today(document) + joining_brokers(document)
    return tuple(replace(each, rack=racks.get(each.id, each.rack)) for each in brokers if each.id not in leaving)


def rack_aware(document: Document) -> bool:
    """False where `rack_aware` is `disabled`."""
    return bool(document.get("rack_aware") != "disabled")


def topic_filter(document: Document) -> TopicFilter:
    """`topics`, by default all of them."""
    chosen = document.get("topics") or {}
    return TopicFilter(tuple(chosen.get("include", ("*",))), tuple(chosen.get("exclude", ())))


def inline_assignment(document: Document) -> Assignment:
    """`cluster.topics` as topics by name, and an entry a partition in the file's order."""
    entries: list[Entry] = []
    topics: list[Topic] = []
    for at, item in enumerate(document.get("cluster", "topics") or ()):
        rows = [_inline_entry(document, at, item["name"], number) for number in range(len(item["partitions"]))]
        entries += rows
        topics.append(Topic(item["name"], tuple(row.partition for row in rows), _config(item.get("config") or {})))
    return Assignment(tuple(sorted(topics, key=lambda topic: topic.name)), tuple(entries))


def inline_sizes(document: Document) -> Sizes:
    """Sizes are known where any inline partition has one."""
    topics = document.get("cluster", "topics") or ()
    sized = ["size" in partition for topic in topics for partition in topic["partitions"]]
    return Sizes(True, sized.count(False)) if any(sized) else Sizes()


def with_sizes(assignment: Assignment, sizes: Mapping[tuple[str, int], int]) -> Assignment:
    """The assignment with each partition's size; 0 for those that have none."""
    topics = tuple(
        replace(
            topic,
            partitions=tuple(
                replace(partition, size_bytes=sizes.get((topic.name, partition.id), 0))
                for partition in topic.partitions
            ),
        )
        for topic in assignment.topics
    )
    return replace(assignment, topics=topics)


def topic_rates(document: Document) -> tuple[tuple[str, int], ...]:
    """`cluster.rates` as (pattern, bytes/s of the whole topic), in the file's order."""
    items = document.get("cluster", "rates") or ()
    return tuple((item["topics"], parse_bytes_per_sec(item["bytes_in"])) for item in items)


def _with_rates(document: Document, topics: Iterable[Topic]) -> tuple[Topic, ...]:
    """The topics with the rates of `cluster.rates`; a partition's own one outranks them."""
    rates = topic_rates(document)
    inline = document.get("cluster", "topics") or ()
    own = {topic["name"]: ["bytes_in" in item for item in topic["partitions"]] for topic in inline}
    return tuple(_with_rate(topic, _first_match(topic, rates), own.get(topic.name, ())) for topic in topics)


def _first_match(topic: Topic, rates: Iterable[tuple[str, int]]) -> int:
    return next((rate for pattern, rate in rates if fnmatchcase(topic.name, pattern)), 0)


def _with_rate(topic: Topic, total: int, own: Iterable[bool]) -> Topic:
    """The topic with `total` bytes/s dealt evenly to its partitions; those with their own rate keep that."""
    if not total:
        return topic
    count = len(topic.partitions)
    kept = {number for number, has in enumerate(own) if has}
    # The first partitions take what doesn't divide, so that the sum is the total.
    shares = [total // count + (number < total % count) for number in range(count)]
    partitions = (
        each if each.id in kept else replace(each, bytes_in_per_sec=share)
        for each, share in zip(topic.partitions, shares, strict=True)
    )
    return replace(topic, partitions=tuple(partitions))


def _broker(item: Mapping[str, Any]) -> Broker:
    disk = item.get("capacity", {}).get("disk")
    return Broker(item["id"], item.get("rack"), None if disk is None else parse_bytes(disk))


def _inline_entry(document: Document, topic_at: int, topic: str, number: int) -> Entry:
    path = ("cluster", "topics", topic_at, "partitions", number)
    item = document.get(*path)
    replicas = tuple(item["replicas"])
    leader = item.get("leader", replicas[0])
    partition = Partition(
        id=number,
        replicas=replicas,
        leader=None if leader == "none" else leader,
        isr=tuple(item["isr"]) if "isr" in item else None,
        size_bytes=parse_bytes(item.get("size", 0)),
        bytes_in_per_sec=parse_bytes_per_sec(item.get("bytes_in", 0)),
    )
    return Entry(document.place(path), key_text(path), topic, partition)


def _config(config: Mapping[str, Any]) -> Config:
    """Kafka's configuration values are text; YAML's booleans are written as Kafka writes them."""
    return tuple(
        sorted((key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in config.items())
    )


def _changes(document: Document) -> Changes:
    changes = document.get("changes") or {}
    return Changes(
        add_brokers=joining_brokers(document),
        remove_brokers=tuple(changes.get("remove_brokers", ())),
        replace_brokers=replacements(document),
        set_racks=set_racks(document),
        set_replication_factor=replication_factor_changes(document),
        rebalance=changes.get("rebalance", "all"),
    )


def replication_factor_changes(document: Document) -> tuple[ReplicationFactorChange, ...]:
    """`changes.set_replication_factor`, in the file's order."""
    items = document.get("changes", "set_replication_factor") or ()
    return tuple(ReplicationFactorChange(item["topics"], item["replication_factor"]) for item in items)


def _tolerances(document: Document) -> dict[str, Tolerance]:
    asked = document.get("balance") or {}
    return {count: Tolerance.parse(asked[count]) for count in _COUNTS if count in asked}


def _limits(limits: Mapping[str, Any]) -> Limits:
    bytes_moved, eta, disk_used = (limits.get(key) for key in ("bytes_moved", "eta", "disk_used"))
    return Limits(
        bytes_moved=None if bytes_moved is None else parse_bytes(bytes_moved),
        replicas_moved=limits.get("replicas_moved"),
        leaders_changed=limits.get("leaders_changed"),
        eta_seconds=None if eta is None else parse_seconds(eta),
        disk_used_ppm=None if disk_used is None else int(Fraction(disk_used.removesuffix("%")) * 10_000),
    )


def _sweep(document: Document) -> Sweep:
    sweep = document.get("sweep") or {}
    grid = {
        count: tuple(Tolerance.parse(value) for value in values)
        for count, values in (sweep.get("balance") or {}).items()
        if count in _COUNTS
    }
    return Sweep(sweep.get("candidates"), sweep.get("seed", 0), BalanceGrid(**grid))


def _execution(execution: Mapping[str, Any]) -> Execution:
    throttle, batches = execution.get("throttle"), execution.get("batches") or {}
    size = batches.get("bytes")
    return Execution(
        throttle_bytes_per_sec=None if throttle is None else parse_bytes_per_sec(throttle),
        batches=BatchRules(
            bytes=None if size is None else parse_bytes(size),
            moves_per_broker=batches.get("moves_per_broker"),
            replicas_per_partition=batches.get("replicas_per_partition"),
        ),
        kafka_bin_dir=execution.get("kafka_bin_dir", Execution.kafka_bin_dir),
    )
