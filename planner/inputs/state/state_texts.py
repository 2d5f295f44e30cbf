"""A state as the files that Kafka's tools print: for states too large to be written into YAML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from planner.model.cluster import Partition, Topic
from planner.model.effective_config import OF_TOPIC

Key = tuple[str, int]


def describe(topics: Iterable[Topic]) -> str:
    """As `kafka-topics --describe` prints them; the ISR is left out where it isn't known."""
    return "".join(f"{line}\n" for topic in topics for line in _topic(topic))


def _topic(topic: Topic) -> Iterator[str]:
    factor = len(topic.partitions[0].replicas)
    config = ",".join(
        f"{key}={value}" for key, value in sorted({**dict(topic.effective_config), **dict(topic.config)}.items())
    )
    counts = f"PartitionCount: {len(topic.partitions)}\tReplicationFactor: {factor}"
    deleting = "\tMarkedForDeletion: true" if topic.deleting else ""
    yield f"Topic: {topic.name}\t{counts}\tConfigs: {config}{deleting}"
    yield from (f"\t{_partition(topic.name, each)}{deleting}" for each in topic.partitions)


def _partition(topic: str, partition: Partition) -> str:
    leader = "none" if partition.leader is None else partition.leader
    isr = "" if partition.isr is None else f"\tIsr: {_ids(partition.isr)}"
    return f"Topic: {topic}\tPartition: {partition.id}\tLeader: {leader}\tReplicas: {_ids(partition.replicas)}{isr}"


def topic_configs(topics: Iterable[Topic]) -> str:
    """As `kafka-configs --describe --entity-type topics` prints topics' own configurations."""
    return "".join(f"{line}\n" for topic in topics for line in _configs(topic))


def _configs(topic: Topic) -> Iterator[str]:
    yield f"Dynamic configs for topic {topic.name} are:"
    for key, value in topic.config:
        yield f"  {key}={value} sensitive=false synonyms={{{OF_TOPIC}:{key}={value}}}"


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def log_dirs(topics: Sequence[Topic], sizes: Mapping[Key, int]) -> str:
    """As `kafka-log-dirs --describe` prints sizes, each at the partition's first replica; which log dir isn't told."""
    held: dict[int, list[dict[str, object]]] = {}
    for topic in topics:
        for each in topic.partitions:
            size_bytes = sizes.get((topic.name, each.id))
            if size_bytes is not None:
                row = {"partition": f"{topic.name}-{each.id}", "size": size_bytes, "offsetLag": 0, "isFuture": False}
                held.setdefault(each.replicas[0], []).append(row)
    brokers = [
        {"broker": broker, "logDirs": [{"partitions": rows, "error": None}]} for broker, rows in sorted(held.items())
    ]
    return json.dumps({"version": 1, "brokers": brokers}, ensure_ascii=False, separators=(",", ":")) + "\n"
