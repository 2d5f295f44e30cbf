"""What is in force for a topic: its own configuration, or what it inherits from the brokers.

Kafka looks in this order: the topic's own configuration, a broker's dynamic one, the cluster-wide dynamic default, the
broker's `server.properties`, Kafka's own default. Source: `org.apache.kafka.clients.admin.ConfigEntry.ConfigSource`,
`kafka.server.ConfigHelper`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from planner.model.cluster import Config, Topic

MIN_INSYNC = "min.insync.replicas"
# A note of a cluster of which no source tells configurations.
CONFIGS_UNKNOWN = (
    "no source tells configurations: min.insync.replicas counts as 1, Kafka's default, unless cluster.config_defaults "
    "says otherwise"
)
_NUMBER = re.compile("[0-9]{1,10}", re.ASCII)

# What Kafka calls the sources of a value: the topic's own configuration, and what topics inherit from the brokers.
OF_TOPIC = "DYNAMIC_TOPIC_CONFIG"
INHERITED = ("DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG", "STATIC_BROKER_CONFIG")

# Kafka has these for topics alone, so no topic inherits one (ServerTopicConfigSynonyms).
TOPIC_ONLY = frozenset(
    {
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "remote.storage.enable",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
    }
)


# Every configuration that a topic may have (TopicConfig of Kafka 4.x, and those of older ones).
TOPIC_CONFIGS = TOPIC_ONLY | {
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "index.interval.bytes",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.downconversion.enable",
    "message.format.version",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
}


def in_force(topic: Topic, defaults: Config) -> dict[str, str]:
    """The topic's configuration with what it inherits; `defaults` is what brokers set for all topics.

    A key that isn't here has Kafka's own default.
    """
    return {**dict(defaults), **dict(topic.effective_config), **dict(topic.config)}


def min_insync_replicas(config: Mapping[str, str]) -> int:
    """`min.insync.replicas` of a configuration in force, 1 (Kafka's default) where not set; ValueError for text."""
    return int(config.get(MIN_INSYNC, "1"))


def largest_min_insync(values: Iterable[str | None]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What topics inherit as `min.insync.replicas` of what brokers say, and a note where they don't agree.

    The broker that leads a partition decides, and any may lead, so the largest value counts. Empty without a number.
    """
    numbers = sorted({int(value) for value in values if value is not None and _NUMBER.fullmatch(value)})
    if not numbers:
        return {}, ()
    listed = ", ".join(map(str, numbers))
    note = f"brokers don't agree on the {MIN_INSYNC} that topics inherit ({listed}): {numbers[-1]} counts here"
    return {MIN_INSYNC: str(numbers[-1])}, (note,) if len(numbers) > 1 else ()
