"""A cluster as it is: its parts, the configuration in force, unusual findings, and the change of one partition."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from planner.model.document_fields import StatedRateRow
from planner.model.formats import counted, first_names

# The log dir in Kafka's reassignment JSON if the broker may choose one or the replica stays where it is (KIP-113).
ANY = "any"

# A topic and the number of one of its partitions.
PartitionKey = tuple[str, int]


@dataclass(frozen=True)
class LogDir:
    """One of a broker's `log.dirs`: its absolute path, its total and free bytes; None if not stated.

    `error` is Kafka's name of the log dir's error, None without one.
    """

    path: str
    disk_bytes: int | None = None
    free_bytes: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ReplicaDir:
    """The log dir of a broker's replica, and the replica's size there.

    `moving`: the broker is moving the replica to this log dir from another of its log dirs.
    """

    topic: str
    partition: int
    broker: int
    path: str
    size_bytes: int
    moving: bool = False


@dataclass(frozen=True)
class LogDirs:
    """What is known of log dirs: each broker that answered, by id, with its log dirs sorted by path; and the replicas.

    Replicas are sorted by topic, partition and broker, without duplicates.
    """

    brokers: tuple[tuple[int, tuple[LogDir, ...]], ...] = ()
    replicas: tuple[ReplicaDir, ...] = ()


NO_LOG_DIRS = LogDirs()


def merge_log_dirs(parts: Iterable[LogDirs]) -> LogDirs:
    """Merges descriptions. If a broker is in more than one, the first counts."""
    brokers: dict[int, tuple[LogDir, ...]] = {}
    replicas: list[ReplicaDir] = []
    for part in parts:
        replicas += [replica for replica in part.replicas if replica.broker not in brokers]
        brokers = dict(part.brokers) | brokers
    ordered = sorted(replicas, key=lambda each: (each.topic, each.partition, each.broker))
    return LogDirs(tuple(sorted(brokers.items())), tuple(ordered))


# Configuration as (key, value) pairs, sorted by key.
Config = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Broker:
    """A broker: the rack in its `broker.rack`, the room for its log dirs, its network's capacity each way; None if not
    stated. `log_dirs` are those that the YAML lists. `max_replicas`, `max_leaders` and `max_disk_bytes` cap what it
    holds and leads. `cordoned_log_dirs` get no new replica (`cordoned.log.dirs`); `*` means all.
    """

    id: int
    rack: str | None = None
    disk_bytes: int | None = None
    network_bytes_per_sec: int | None = None
    log_dirs: tuple[LogDir, ...] = ()
    max_replicas: int | None = None
    max_leaders: int | None = None
    max_disk_bytes: int | None = None
    cordoned_log_dirs: tuple[str, ...] = ()

    @property
    def capacity(self) -> tuple[int | None, ...]:
        """The values that all brokers of a class share. `max_disk_bytes` may differ, as for a broker being drained."""
        return self.disk_bytes, self.network_bytes_per_sec, self.max_replicas, self.max_leaders

    @property
    def cordoned(self) -> bool:
        """True if all of its listed log dirs get no new replica."""
        dirs = {each.path for each in self.log_dirs}
        return "*" in self.cordoned_log_dirs or bool(dirs and dirs.issubset(self.cordoned_log_dirs))


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as the cluster reports it. `replicas[0]` is the preferred leader.

    `leader` is today's leader, None without one. `isr` is None if the source doesn't show it. `size_bytes` is the size
    of one replica (the largest, if brokers report different sizes), 0 if unknown. `bytes_in_per_sec` is what producers
    write to the partition, `bytes_out_per_sec` what consumers read from it; 0 if not stated.
    """

    id: int
    replicas: tuple[int, ...]
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    size_bytes: int = 0
    bytes_in_per_sec: int = 0
    bytes_out_per_sec: int = 0


@dataclass(frozen=True)
class Topic:
    """A topic with its own configuration and its partitions by id.

    `deleting` is True if it is marked for deletion: it stays as it is until Kafka has deleted it. `effective_config` is
    also in force, but no source says whether the topic sets or inherits it.
    """

    name: str
    partitions: tuple[Partition, ...]
    config: Config = ()
    deleting: bool = False
    effective_config: Config = ()


@dataclass(frozen=True)
class Cluster:
    """Today's cluster. `sizes_known` is False if no source has sizes; then replicas are counted instead of bytes.

    `unsized` is how many partitions have no size although others have one; they count as empty. `log_dirs` is what
    brokers report, read only if log dirs are to be balanced. `notes` are sentences about sources of the state that
    disagree. `outgrown` warns that topics have outgrown the means of their profile. `config_defaults` is what brokers
    and the cluster set for all topics, under the topics' names for it. `rates` are those that the YAML states;
    partitions already include them.
    """

    name: str
    brokers: tuple[Broker, ...]
    topics: tuple[Topic, ...]
    bootstrap_servers: tuple[str, ...] = ()
    sizes_known: bool = True
    unsized: int = 0
    log_dirs: LogDirs = NO_LOG_DIRS
    notes: tuple[str, ...] = ()
    outgrown: tuple[str, ...] = ()
    config_defaults: Config = ()
    rates: tuple[StatedRateRow, ...] = ()


class Reason(StrEnum):
    """Why a partition's replica list changes: the first reason that applies, in this order."""

    BROKER_LEAVES = "broker_leaves"
    PLACEMENT = "placement"
    RACK_RULE = "rack_rule"
    REPLICATION_FACTOR = "replication_factor"
    TOGETHER = "together"
    BALANCE_REPLICAS = "balance_replicas"
    LEADER_RULE = "leader_rule"
    BALANCE_LEADERS = "balance_leaders"
    BALANCE_LOG_DIRS = "balance_log_dirs"


@dataclass(frozen=True)
class ReplicaLists:
    """A partition with its replica lists before and after: the common part of a plan's change and a step of it.

    The lists have broker ids, preferred leader first. `log_dirs_before` and `log_dirs` are parallel to them: ANY if the
    plan names no log dir, empty if log dirs aren't planned.
    """

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    log_dirs_before: tuple[str, ...] = field(default=(), kw_only=True)
    log_dirs: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def key(self) -> PartitionKey:
        """Topic and partition."""
        return self.topic, self.partition

    @cached_property
    def adding(self) -> tuple[int, ...]:
        """Brokers that get a new replica of the partition, in the order of the new replica list."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def dir_moves(self) -> tuple[int, ...]:
        """Brokers that keep their replica and move it to another of their log dirs."""
        pairs = zip(self.after, self.log_dirs, strict=False)
        return tuple(broker for broker, path in pairs if path != ANY and broker in self.before)


@dataclass(frozen=True)
class PartitionChange(ReplicaLists):
    """One partition whose replica list, leader or log dirs the plan changes.

    `down` are the brokers that drop the partition and are in no ISR today.
    """

    leader_before: int | None
    size_bytes: int
    reason: Reason
    bytes_in_per_sec: int = 0
    down: frozenset[int] = frozenset()

    @property
    def removing(self) -> tuple[int, ...]:
        """Brokers that drop the partition, in the order of the old replica list."""
        return tuple(broker for broker in self.before if broker not in self.after)

    @property
    def reassigned(self) -> bool:
        """True if Kafka needs a reassignment: the replica list changes, even if only its order, or a log dir does."""
        return self.before != self.after or any(path != ANY for path in self.log_dirs)

    @property
    def elects(self) -> bool:
        """True if the new preferred leader isn't today's leader, unless only log dirs change."""
        return self.leader_before != self.after[0] and self.reason is not Reason.BALANCE_LOG_DIRS


def perhaps_in_sync(partitions: Iterable[Partition]) -> set[int]:
    """The brokers that lead a partition or are in a leader's ISR; all of its replicas where the ISR is unknown."""
    pairs = [(row.leader, row.replicas if row.isr is None else row.isr) for row in partitions if row.leader is not None]
    return {broker for leader, isr in pairs for broker in (leader, *isr)}


def brokers_down(partitions: Iterable[Partition]) -> Iterator[tuple[int, str]]:
    """The id and a sentence for each broker whose replicas are all out of sync, so in no leader's ISR.

    For a partition without a leader, Kafka shows the last ISR. All of its brokers are down, or one of them would lead.
    """
    rows = list(partitions)
    with_isr = [row for row in rows if row.isr is not None]
    counts = Counter(broker for row in with_isr for broker in row.replicas)
    listed = {broker for row in with_isr for broker in row.isr or ()}
    for broker in sorted(counts.keys() - perhaps_in_sync(rows)):
        aside = ", leaderless partitions aside" if broker in listed else ""
        text = f"broker {broker} is in no ISR of its {counted(counts[broker], 'replica')}{aside}: it seems to be down"
        yield broker, text


def possible_reassignments(topics: Iterable[Topic]) -> Iterator[str]:
    """Partitions that may be in a reassignment. Kafka before 2.4 shows only the old and new replicas in one list.

    Such a list is longer than those of the topic's other partitions, and its new replicas aren't in sync yet.
    """
    names = []
    for topic in topics:
        usual = min(len(row.replicas) for row in topic.partitions)
        names += [
            partition_name(topic.name, row.id)
            for row in topic.partitions
            if row.leader is not None and row.isr is not None and usual < len(row.replicas) > len(row.isr)
        ]
    if names:
        yield (
            f"{a_few(names, 'partition')} with more replicas than others of the topic, and not all in sync: "
            "perhaps being reassigned; check with kafka-reassign-partitions --list"
        )


def brokers_holding(topics: Iterable[Topic]) -> set[int]:
    """The brokers that have replicas of these topics."""
    return {broker for topic in topics for partition in topic.partitions for broker in partition.replicas}


def keyed_partitions(topics: Iterable[Topic]) -> Iterator[tuple[PartitionKey, Partition]]:
    """Each partition of these topics with its key."""
    return (((topic.name, each.id), each) for topic in topics for each in topic.partitions)


def partition_name(topic: str, number: int) -> str:
    """A partition as Kafka's tools name it in their messages."""
    return f"{topic}-{number}"


def a_few(names: Sequence[str], noun: str = "topic") -> str:
    """Up to three names, and the number of the others."""
    return f"{noun if len(names) == 1 else f'{noun}s'} {first_names(names)}"


MIN_INSYNC = "min.insync.replicas"
# The note for a cluster whose sources have no configurations.
CONFIGS_UNKNOWN = (
    "no source tells configurations: min.insync.replicas counts as 1, Kafka's default, unless cluster.config_defaults "
    "says otherwise"
)
# A number as Kafka's tools print it, and the largest id of a broker or a partition.
NUMBER = re.compile("[0-9]{1,10}", re.ASCII)

# What Kafka calls the sources of a value: the topic's own configuration, and what topics inherit from the brokers.
OF_TOPIC = "DYNAMIC_TOPIC_CONFIG"
INHERITED = ("DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG", "STATIC_BROKER_CONFIG")

# Brokers don't have these configurations, so no topic inherits one (ServerTopicConfigSynonyms).
TOPIC_ONLY = frozenset(
    {
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "remote.storage.enable",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
    }
)


# Every configuration that a topic may have (TopicConfig of Kafka 4.x, and those of older versions).
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
    """The topic's configuration and what it inherits; `defaults` is what brokers set for all topics.

    Kafka looks in this order: the topic's own configuration, a broker's dynamic one, the cluster-wide dynamic default,
    the broker's `server.properties`. A key that isn't here has Kafka's own default. Source:
    `org.apache.kafka.clients.admin.ConfigEntry.ConfigSource`, `kafka.server.ConfigHelper`.
    """
    return {**dict(defaults), **dict(topic.effective_config), **dict(topic.config)}


def min_insync_replicas(config: Mapping[str, str]) -> int:
    """`min.insync.replicas` of a configuration in force, 1 (Kafka's default) if not set; ValueError for text."""
    return int(config.get(MIN_INSYNC, "1"))


def largest_min_insync(values: Iterable[str | None]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The `min.insync.replicas` that topics inherit from brokers with these values, and a note if they differ.

    The leader's value applies, and any broker may lead, so the largest value counts. Empty without a number.
    """
    numbers = sorted({int(value) for value in values if value is not None and NUMBER.fullmatch(value)})
    if not numbers:
        return {}, ()
    listed = ", ".join(map(str, numbers))
    note = f"brokers don't agree on the {MIN_INSYNC} that topics inherit ({listed}): {numbers[-1]} counts here"
    return {MIN_INSYNC: str(numbers[-1])}, (note,) if len(numbers) > 1 else ()
