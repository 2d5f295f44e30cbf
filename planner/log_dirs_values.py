"""A broker's log dirs, and which replica lies in which of them, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# What Kafka's reassignment JSON calls a log dir that the broker may choose by itself, or that stays as it is (KIP-113).
ANY = "any"


@dataclass(frozen=True)
class LogDir:
    """One of a broker's `log.dirs`: its absolute path, its room and what is left of that, None where not stated.

    `error` is Kafka's name for what is wrong with the dir, None where nothing is.
    """

    path: str
    disk_bytes: int | None = None
    free_bytes: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ReplicaDir:
    """The log dir that a broker's replica of a partition lies in, and its size there.

    `moving`: the replica is on its way to that dir from another one of the broker.
    """

    topic: str
    partition: int
    broker: int
    path: str
    size_bytes: int
    moving: bool = False


@dataclass(frozen=True)
class LogDirs:
    """What is known of log dirs: those of each broker that answered, by id, in the order of their paths; the replicas.

    Replicas are sorted by topic, partition and broker, each there once.
    """

    brokers: tuple[tuple[int, tuple[LogDir, ...]], ...] = ()
    replicas: tuple[ReplicaDir, ...] = ()


NO_LOG_DIRS = LogDirs()


def merged(parts: Iterable[LogDirs]) -> LogDirs:
    """Several descriptions as one; of a broker that is in more than one, the first counts."""
    brokers: dict[int, tuple[LogDir, ...]] = {}
    replicas: list[ReplicaDir] = []
    for part in parts:
        replicas += [replica for replica in part.replicas if replica.broker not in brokers]
        brokers = dict(part.brokers) | brokers
    ordered = sorted(replicas, key=lambda each: (each.topic, each.partition, each.broker))
    return LogDirs(tuple(sorted(brokers.items())), tuple(ordered))
