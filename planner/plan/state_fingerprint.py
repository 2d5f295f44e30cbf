"""The state that a plan was made from, small enough for plan.json: what changed since can be counted, partition by
partition, without a copy of it.

A topic has two characters for each partition's replica list, and one for who leads it. The two are 12 bits of a
checksum: of the lists that changed one in 4,096 looks unchanged. The digest over everything misses none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from zlib import crc32

from planner.model.cluster import Partition, Topic
from planner.plan.document.cluster_types import StateRow, StateSection

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NOBODY = "-"


def section(topics: Iterable[Topic], *, sizes_known: bool) -> StateSection:
    """The `state` of plan.json."""
    ordered = sorted(topics, key=lambda topic: topic.name)
    return StateSection(
        sha256=digest(ordered),
        topics=tuple(
            StateRow(
                topic=topic.name,
                replicas="".join(map(of_replicas, topic.partitions)),
                leaders="".join(map(of_leader, topic.partitions)),
                size_bytes=sum(each.size_bytes for each in topic.partitions) if sizes_known else None,
            )
            for topic in ordered
        ),
    )


def digest(topics: Sequence[Topic]) -> str:
    """SHA-256 over the replicas and leaders of all partitions; `topics` by name."""
    found = hashlib.sha256()
    for topic in topics:
        lists = ";".join(_text(each) for each in topic.partitions)
        found.update(f"{topic.name}\n{lists}\n{''.join(map(of_leader, topic.partitions))}\n".encode())
    return found.hexdigest()


def of_replicas(partition: Partition) -> str:
    """Two characters for a replica list in its order."""
    number = crc32(_text(partition).encode()) % len(_ALPHABET) ** 2
    return _ALPHABET[number // len(_ALPHABET)] + _ALPHABET[number % len(_ALPHABET)]


def of_leader(partition: Partition) -> str:
    """One character for which of its replicas leads a partition."""
    if partition.leader not in partition.replicas:
        return _NOBODY
    return _ALPHABET[partition.replicas.index(partition.leader) % len(_ALPHABET)]


def _text(partition: Partition) -> str:
    return ",".join(map(str, partition.replicas))


def unlike(before: StateRow, topic: Topic) -> tuple[list[int], list[int]]:
    """The partitions of a topic whose replicas changed, and those of which another leads, of those there were."""
    replicas, leaders = before.replicas, before.leaders
    rows = topic.partitions[: len(leaders)]
    changed = [at for at, each in enumerate(rows) if of_replicas(each) != replicas[2 * at : 2 * at + 2]]
    moved = set(changed)
    return changed, [at for at, each in enumerate(rows) if at not in moved and of_leader(each) != leaders[at]]
